// Threads that notice when they are held. `gaps FILE N SPIN` starts N threads that look at the
// clock every millisecond and SPIN more that do nothing else; each writes down when it could not, for LEAST or
// longer, in FILE (struct log per thread, mapped shared). Runs until SIGTERM; prints "ready" before,
// "done" behind.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { ROOM = 2047, LEAST = 3000000 };  // gaps that a log holds; nanoseconds

struct log {
    unsigned long gaps;  // written so far; the latest ROOM are there
    unsigned long turns;
    struct { long from, to; } gap[ROOM];  // CLOCK_MONOTONIC, ns
};

static struct log *logs;
static volatile sig_atomic_t over;
static int ticking;

static long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

static void *watch(void *which)
{
    struct log *log = &logs[(long)which];
    struct timespec tick = {0, 1000000};
    int sleeps = (long)which < ticking;
    for (long last = now(); !over; ) {
        long time = now();
        if (time - last >= LEAST) {
            log->gap[log->gaps % ROOM].from = last;
            log->gap[log->gaps % ROOM].to = time;
            __atomic_store_n(&log->gaps, log->gaps + 1, __ATOMIC_RELEASE);
        }
        log->turns++;
        last = time;
        if (sleeps)
            nanosleep(&tick, NULL);
    }
    return NULL;
}

static void handler(int number)
{
    (void)number;
    over = 1;
}

int main(int count, char **arguments)
{
    if (count != 4)
        return 2;
    ticking = atoi(arguments[2]);
    int threads = ticking + atoi(arguments[3]);
    int file = open(arguments[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || ftruncate(file, threads * sizeof *logs))
        return 2;
    logs = mmap(NULL, threads * sizeof *logs, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    pthread_t *thread = calloc(threads, sizeof *thread);
    if (logs == MAP_FAILED || !thread)
        return 2;
    signal(SIGTERM, handler);
    for (long n = 0; n < threads; n++)
        if (pthread_create(&thread[n], NULL, watch, (void *)n))
            return 2;
    puts("ready");
    fflush(stdout);
    while (!over)
        pause();
    for (int n = 0; n < threads; n++)
        pthread_join(thread[n], NULL);
    puts("done");
    return 0;
}
