/* For C and C++ programs that livepro measures: say from inside what is to be counted.

       warm_up();
       livepro_reset();
       work();
       livepro_snapshot("work");

   Each function makes one system call, readlink of a path below /proc/livepro. Where livepro
   does not watch the process, the call fails with ENOENT and nothing happens: the functions
   then return -1.

   Commands concern the whole run and are exact for the calling thread: they take effect right
   behind the system call's instruction. Header only, no library needed. */

#ifndef LIVEPRO_H
#define LIVEPRO_H

#ifdef __cplusplus
extern "C" {
#endif

/* Livepro looks only at calls with a buffer of this size. */
#define LIVEPRO_SIZE 4096

/* Ask with a path below /proc/livepro and a buffer of LIVEPRO_SIZE bytes; returns the length of
   the answer (not terminated), or -errno. The answer to a command that livepro does not know begins with "error: ". */
static inline long livepro_ask(const char *path, char *answer, unsigned long size) {
#if defined(__x86_64__)
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(89L /* readlink */), "D"(path), "S"(answer), "d"(size)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long number __asm__("x8") = 78; /* readlinkat */
    register long directory __asm__("x0") = -100; /* AT_FDCWD */
    register const char *name __asm__("x1") = path;
    register char *buffer __asm__("x2") = answer;
    register unsigned long room __asm__("x3") = size;
    __asm__ volatile("svc #0"
                     : "+r"(directory)
                     : "r"(number), "r"(name), "r"(buffer), "r"(room)
                     : "memory");
    return directory;
#else
    (void)path, (void)answer, (void)size;
    return -38; /* ENOSYS */
#endif
}

static inline int livepro_command(const char *path) {
    char answer[LIVEPRO_SIZE];
    return livepro_ask(path, answer, sizeof answer) == 2 ? 0 : -1; /* "ok" */
}

static inline long long livepro_number(const char *path) {
    char answer[LIVEPRO_SIZE];
    long length = livepro_ask(path, answer, sizeof answer), i;
    long long number = 0;
    for (i = 0; i < length; i++) {
        if (answer[i] < '0' || answer[i] > '9')
            return -1;
        number = number * 10 + (answer[i] - '0');
    }
    return length > 0 ? number : -1;
}

/* Count from here: forget what has been counted. */
static inline int livepro_reset(void) { return livepro_command("/proc/livepro/reset"); }

/* Count nothing until livepro_resume. */
static inline int livepro_pause(void) { return livepro_command("/proc/livepro/pause"); }

/* Count again. */
static inline int livepro_resume(void) { return livepro_command("/proc/livepro/resume"); }

/* Keep the counts of this moment for the report. A label is cut at 200 bytes. */
static inline int livepro_snapshot(const char *label) {
    static const char digits[] = "0123456789ABCDEF", prefix[] = "/proc/livepro/snapshot/";
    char path[sizeof prefix + 3 * 200];
    char *end = path;
    const char *from;
    int left = 200;
    for (from = prefix; *from; from++)
        *end++ = *from;
    for (; *label && left--; label++) {
        unsigned char byte = (unsigned char)*label;
        if ((byte | 32) >= 'a' && (byte | 32) <= 'z') {
            *end++ = *label;
        } else {
            *end++ = '%';
            *end++ = digits[byte >> 4];
            *end++ = digits[byte & 15];
        }
    }
    *end = 0;
    return livepro_command(path);
}

/* Instructions that this thread has executed since the last reset, without pauses; -1 without livepro. */
static inline long long livepro_instructions(void) {
    return livepro_number("/proc/livepro/instructions");
}

/* SIMD instructions among them. */
static inline long long livepro_simd(void) { return livepro_number("/proc/livepro/simd"); }

#ifdef __cplusplus
}
#endif

#endif
