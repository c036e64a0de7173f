/* Jacobi iterations on a line, a plane and a cube. */
#include <stdio.h>
#define L 2000
#define N 40
#define M 14

static float line[2][L], plane[2][N][N], cube[2][M][M][M];

__attribute__((noinline)) static void stencil1(int from) {
    for (int i = 1; i < L - 1; i++)
        line[!from][i] = (line[from][i - 1] + 2 * line[from][i] + line[from][i + 1]) * 0.25f;
}

__attribute__((noinline)) static void stencil2(int from) {
    for (int i = 1; i < N - 1; i++)
        for (int j = 1; j < N - 1; j++)
            plane[!from][i][j] = (plane[from][i - 1][j] + plane[from][i + 1][j] + plane[from][i][j - 1] +
                                  plane[from][i][j + 1]) * 0.25f;
}

__attribute__((noinline)) static void stencil3(int from) {
    for (int i = 1; i < M - 1; i++)
        for (int j = 1; j < M - 1; j++)
            for (int k = 1; k < M - 1; k++)
                cube[!from][i][j][k] = (cube[from][i - 1][j][k] + cube[from][i + 1][j][k] +
                                        cube[from][i][j - 1][k] + cube[from][i][j + 1][k] +
                                        cube[from][i][j][k - 1] + cube[from][i][j][k + 1]) * 0.125f;
}

int main(void) {
    for (int i = 0; i < L; i++) line[0][i] = i % 16;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) plane[0][i][j] = i ^ j;
    for (int i = 0; i < M * M * M; i++) (&cube[0][0][0][0])[i] = i % 8;
    for (int step = 0; step < 10; step++) stencil1(step & 1), stencil2(step & 1), stencil3(step & 1);
    printf("stencil %.3f %.3f %.3f\n", line[0][L / 2], plane[0][N / 2][N / 2], cube[0][M / 2][M / 2][M / 2]);
    return 0;
}
