/* Matrix product, C = A * B. */
#include <stdio.h>
#define N 48

static double a[N][N], b[N][N], c[N][N];

__attribute__((noinline)) static void product(void) {
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            for (int j = 0; j < N; j++) c[i][j] += a[i][k] * b[k][j];
}

__attribute__((noinline)) static double trace(void) {
    double sum = 0;
    for (int i = 0; i < N; i++) sum += c[i][i];
    return sum;
}

int main(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) a[i][j] = i % 5 + j % 3, b[i][j] = (i + j) % 4;
    product();
    printf("gemm %.0f\n", trace());
    return 0;
}
