/* SPDX-License-Identifier: MIT */
/* The worker of bench/languages in C: does what a line of its input says, and prints the microseconds. */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

extern char **environ;

static const char *const argv[] = {"/bin/true", NULL};
static struct brig_policy *policy;
static struct brig_caller *caller;

static void wait_for(pid_t pid)
{
    int status;
    if (waitpid(pid, &status, 0) != pid || status != 0)
        bench_die("the child", "did not exit with 0");
}

static void command_plain(void)
{
    pid_t pid;
    if (posix_spawn(&pid, argv[0], NULL, NULL, (char *const *)(uintptr_t)argv, environ) != 0)
        bench_die("posix_spawn", argv[0]);
    wait_for(pid);
}

static void command_brig(void)
{
    struct brig_error err = {0};
    struct brig_result *result = NULL;
    struct brig_command command = BRIG_COMMAND_INIT;
    command.argv = argv;
    command.envp = (const char *const *)(uintptr_t)environ;
    bench_must(brig_run(policy, &command, &result, &err), "brig_run", &err);
    brig_result_free(result);
}

static void call_plain(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    wait_for(pid);
}

static int do_nothing(struct brig_call_child *child, void *argument)
{
    (void)child, (void)argument;
    return 0;
}

static void call_brig(void)
{
    struct brig_error err = {0};
    struct brig_call_result *result = NULL;
    bench_must(brig_caller_call(caller, do_nothing, NULL, &result, &err), "brig_caller_call", &err);
    brig_call_result_free(result);
}

static const struct {
    const char *name;
    void (*run)(void);
} ways[] = {{"command plain\n", command_plain},
            {"command brig\n", command_brig},
            {"call plain\n", call_plain},
            {"call brig\n", call_brig}};

int main(void)
{
    struct brig_error err = {0};
    char line[64];
    policy = brig_policy_new(BRIG_MODE_SEALED);
    bench_must(brig_policy_host_env(policy, 1, &err), "brig_policy_host_env", &err);
    bench_must(brig_caller_new(NULL, NULL, &caller, &err), "brig_caller_new", &err);
    while (fgets(line, sizeof line, stdin)) {
        for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
            if (strcmp(line, ways[i].name) != 0)
                continue;
            uint64_t begin = bench_now_ns();
            ways[i].run();
            printf("%.1f\n", (double)(bench_now_ns() - begin) / 1000.0);
            (void)fflush(stdout);
        }
    }
    brig_caller_free(caller);
    brig_policy_free(policy);
    return 0;
}
