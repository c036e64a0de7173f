/* k-means of points in the plane. */
#include <stdio.h>
#define POINTS 1500
#define K 6

static float px[POINTS], py[POINTS], cx[K], cy[K];
static int member[POINTS];

__attribute__((noinline)) static int assign(void) {
    int moved = 0;
    for (int i = 0; i < POINTS; i++) {
        int best = 0;
        float least = 1e30f;
        for (int k = 0; k < K; k++) {
            float dx = px[i] - cx[k], dy = py[i] - cy[k], d = dx * dx + dy * dy;
            if (d < least) least = d, best = k;
        }
        moved += member[i] != best;
        member[i] = best;
    }
    return moved;
}

__attribute__((noinline)) static void move(void) {
    float sx[K] = {0}, sy[K] = {0};
    int n[K] = {0};
    for (int i = 0; i < POINTS; i++) sx[member[i]] += px[i], sy[member[i]] += py[i], n[member[i]]++;
    for (int k = 0; k < K; k++)
        if (n[k]) cx[k] = sx[k] / n[k], cy[k] = sy[k] / n[k];
}

int main(void) {
    unsigned seed = 1;
    for (int i = 0; i < POINTS; i++) {
        seed = seed * 1103515245u + 12345u;
        px[i] = (i % K) * 10 + (seed >> 16 & 7);
        seed = seed * 1103515245u + 12345u;
        py[i] = (i % K) * 5 + (seed >> 16 & 7);
    }
    for (int k = 0; k < K; k++) cx[k] = px[k], cy[k] = py[k];
    int rounds = 0;
    while (assign() && rounds < 8) move(), rounds++;
    int sizes[K] = {0};
    for (int i = 0; i < POINTS; i++) sizes[member[i]]++;
    printf("kmeans %d %d\n", sizes[0], sizes[K - 1]);
    return 0;
}
