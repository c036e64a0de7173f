/* Four threads take jobs from one queue and add up their results. threads JOBS */
#include <pthread.h>

#include "work.h"

enum { THREADS = 4 };

static struct {
    pthread_mutex_t mutex;
    int next, jobs;
    double product;
    uint64_t sum;
} queue = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void *worker(void *unused) {
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&queue.mutex);
        int job = queue.next < queue.jobs ? queue.next++ : -1;
        pthread_mutex_unlock(&queue.mutex);
        if (job < 0) return NULL;
        double product = multiply(60);
        uint64_t sum = sort(4000, job + 1) + strings(6000, job + 1);
        pthread_mutex_lock(&queue.mutex);
        queue.product += product;
        queue.sum += sum;
        pthread_mutex_unlock(&queue.mutex);
    }
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    queue.jobs = argc > 1 ? atoi(argv[1]) : 1;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, worker, NULL)) return 1;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    printf("%.1f %llx\n", queue.product, (unsigned long long)queue.sum);
    return 0;
}
