/* The least that single-stepping costs: PTRACE_SINGLESTEP, waitpid, PTRACE_GETREGS, in C.

   minimal RESULT COMMAND [ARGS...] runs COMMAND, found along PATH, without address space
   randomisation, and writes to the file RESULT how many steps it took and the seconds from
   the first to the last. It follows one thread and looks at nothing: no tool can step with
   less and still know where the program is. */

#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: minimal RESULT COMMAND [ARGS...]\n");
        return 2;
    }
    pid_t pid = fork();
    if (pid == 0) {
        personality(ADDR_NO_RANDOMIZE);
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        execvp(argv[2], argv + 2);
        perror(argv[2]);
        _exit(127);
    }
    int status;
    struct user_regs_struct registers;
    unsigned long steps = 0, sum = 0;
    waitpid(pid, &status, 0);
    double start = now();
    while (WIFSTOPPED(status)) {
        int number = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
        if (ptrace(PTRACE_SINGLESTEP, pid, 0, number) == -1)
            break;
        if (waitpid(pid, &status, 0) == -1)
            break;
        if (ptrace(PTRACE_GETREGS, pid, 0, &registers) == 0)
            sum += registers.rip; /* read, as a tool would */
        steps++;
    }
    double seconds = now() - start;
    FILE *result = fopen(argv[1], "w");
    if (result == NULL || fprintf(result, "%lu %.6f %lx\n", steps, seconds, sum) < 0) {
        perror(argv[1]);
        return 1;
    }
    return fclose(result) == 0 ? 0 : 1;
}
