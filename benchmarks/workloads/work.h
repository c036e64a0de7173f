/* Pieces of work that the C workloads share. Each returns a checksum. */
#ifndef WORK_H
#define WORK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* xorshift64*: the same numbers everywhere (Vigna 2016). */
static inline uint64_t next_random(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545F4914F6CDD1DULL;
}

/* n x n matrix product, the inner loop over contiguous rows. */
static double multiply(int n) {
    double *a = malloc(sizeof(double) * n * n), *b = malloc(sizeof(double) * n * n);
    double *c = calloc((size_t)n * n, sizeof(double));
    for (int i = 0; i < n * n; i++) {
        a[i] = i % 17 - 8;
        b[i] = i % 13 - 6;
    }
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++) {
            double x = a[i * n + k];
            for (int j = 0; j < n; j++) c[i * n + j] += x * b[k * n + j];
        }
    double sum = 0;
    for (int i = 0; i < n * n; i++) sum += c[i] * (i % 7);
    free(a);
    free(b);
    free(c);
    return sum;
}

static int compare_numbers(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* Move values[root] down to its place in the heap values[0..end). */
static void sift(uint64_t *values, int root, int end) {
    uint64_t value = values[root];
    for (int child; (child = 2 * root + 1) < end; root = child) {
        if (child + 1 < end && values[child] < values[child + 1]) child++;
        if (value >= values[child]) break;
        values[root] = values[child];
    }
    values[root] = value;
}

/* The C library's qsort with a comparison function, then other numbers by a heap. */
static uint64_t sort(int n, uint64_t seed) {
    uint64_t *values = malloc(sizeof *values * n), sum = 0;
    for (int i = 0; i < n; i++) values[i] = next_random(&seed) >> 20;
    qsort(values, n, sizeof *values, compare_numbers);
    for (int i = 0; i < n; i++) sum = sum * 31 + values[i];
    for (int i = 0; i < n; i++) values[i] = next_random(&seed) >> 20;
    for (int root = n / 2 - 1; root >= 0; root--) sift(values, root, n);
    for (int end = n - 1; end > 0; end--) {
        uint64_t greatest = values[0];
        values[0] = values[end];
        values[end] = greatest;
        sift(values, 0, end);
    }
    for (int i = 0; i < n; i++) sum = sum * 31 + values[i];
    free(values);
    return sum;
}

/* Words built, hashed, looked up in a table, joined and searched. */
static uint64_t strings(int n, uint64_t seed) {
    enum { BUCKETS = 4096, WIDTH = 24 };
    char(*table)[WIDTH] = calloc(BUCKETS, WIDTH);
    char *joined = malloc((size_t)n * WIDTH + 1), *end = joined;
    uint64_t found = 0, sum = 0;
    for (int i = 0; i < n; i++) {
        char word[WIDTH];
        uint64_t random = next_random(&seed);
        int length = 3 + random % 12;
        for (int j = 0; j < length; j++) word[j] = 'a' + (random >> (5 * j % 50)) % 11;
        word[length] = 0;
        uint64_t hash = 14695981039346656037ULL; /* FNV-1a */
        for (const char *p = word; *p; p++) hash = (hash ^ (unsigned char)*p) * 1099511628211ULL;
        char *slot = table[hash % BUCKETS];
        if (strcmp(slot, word) == 0) found++;
        strcpy(slot, word);
        if (i % 64 == 0) end += snprintf(end, WIDTH, "%d ", i);
        memcpy(end, word, length);
        end += length;
        *end++ = ' ';
        sum += strlen(slot) + hash % 7;
    }
    *end = 0;
    for (const char *p = joined; (p = strstr(p, "abc")); p++) sum += p - joined;
    for (const char *p = joined; (p = strchr(p, 'k')); p++) found++;
    free(table);
    free(joined);
    return sum * 31 + found;
}

#endif
