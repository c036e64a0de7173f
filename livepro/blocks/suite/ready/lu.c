/* LU decomposition without pivoting, and the solution of a triangular system. */
#include <stdio.h>
#define N 40

static double a[N][N], x[N];

__attribute__((noinline)) static void decompose(void) {
    for (int k = 0; k < N; k++)
        for (int i = k + 1; i < N; i++) {
            a[i][k] /= a[k][k];
            for (int j = k + 1; j < N; j++) a[i][j] -= a[i][k] * a[k][j];
        }
}

__attribute__((noinline)) static void solve(void) {
    for (int i = 0; i < N; i++) {
        x[i] = i + 1;
        for (int j = 0; j < i; j++) x[i] -= a[i][j] * x[j];
    }
    for (int i = N - 1; i >= 0; i--) {
        for (int j = i + 1; j < N; j++) x[i] -= a[i][j] * x[j];
        x[i] /= a[i][i];
    }
}

int main(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) a[i][j] = i == j ? N : 1.0 / (1 + i + j);
    decompose();
    solve();
    printf("lu %.6f %.6f\n", x[0], x[N - 1]);
    return 0;
}
