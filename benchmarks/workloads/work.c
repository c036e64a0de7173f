/* Matrix product, sorting, strings, in turns. work ROUNDS */
#include "work.h"

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    double product = 0;
    uint64_t sorted = 0, text = 0;
    for (int i = 0; i < rounds; i++) {
        product += multiply(300);
        sorted += sort(40000, i + 1);
        text += strings(160000, i + 1);
    }
    printf("%.1f %llx %llx\n", product, (unsigned long long)sorted, (unsigned long long)text);
    return 0;
}
