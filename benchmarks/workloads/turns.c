/* Matrix product, sorting, strings, each in many short turns. turns TURNS: prints the fastest turn of each, in ns */
#include <time.h>

#include "work.h"

enum { PARTS = 3 };

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int main(int argc, char **argv) {
    static const char *const names[PARTS] = {"product", "sorting", "strings"};
    int turns = argc > 1 ? atoi(argv[1]) : 1;
    int64_t fastest[PARTS] = {0};
    double product = 0;
    uint64_t sum = 0;
    for (int i = 0; i < turns; i++) {
        int seed = i % 4 + 1; /* the same work again and again */
        int64_t at[PARTS + 1] = {now()};
        product += multiply(150);
        at[1] = now();
        sum += sort(10000, seed);
        at[2] = now();
        sum += strings(20000, seed);
        at[3] = now();
        for (int part = 0; part < PARTS; part++) {
            int64_t took = at[part + 1] - at[part];
            if (i == 0 || took < fastest[part]) fastest[part] = took;
        }
    }
    for (int part = 0; part < PARTS; part++) printf("%s %lld\n", names[part], (long long)fastest[part]);
    printf("# %.1f %llx\n", product, (unsigned long long)sum);
    return 0;
}
