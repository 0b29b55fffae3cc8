/* SPDX-License-Identifier: MIT */
/* Several threads start jails from one template at the same time. Each thread has jobs of its own; a
 * job, a result and an error belong to one thread at a time. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <brig/brig.h>

#define THREADS 4
#define RUNS 5

struct worker {
    struct brig_template *shared;
    pthread_t thread;
    int number;
    int good; /* runs that ended as they should */
};

static int run(struct worker *worker, int turn, struct brig_error *error)
{
    char wanted[32];
    (void)snprintf(wanted, sizeof wanted, "%d.%d", worker->number, turn);
    const char *const argv[] = {"/bin/echo", "-n", wanted, NULL};
    struct brig_command command = BRIG_COMMAND_INIT;
    command.argv = argv;
    command.stdio[1].kind = BRIG_STDIO_CAPTURE;

    struct brig_job *job = NULL;
    struct brig_result *result = NULL;
    int code = brig_template_start(worker->shared, &command, &job, error);
    if (code == 0)
        code = brig_job_wait(job, error);
    if (code == 0)
        code = brig_job_result(job, &result, error);
    if (code == 0 && strcmp(brig_result_output(result, 1, NULL, NULL), wanted) == 0)
        worker->good++;
    brig_result_free(result);
    brig_job_free(job);
    return code;
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    struct brig_error error = {0};
    for (int turn = 0; turn < RUNS; turn++)
        if (run(worker, turn, &error) < 0)
            fprintf(stderr, "threads: %s\n", error.message);
    return NULL;
}

int main(void)
{
    struct brig_error error = {0};
    struct brig_template *shared = NULL;
    struct worker workers[THREADS];
    int good = 0;
    if (brig_template_new(NULL, &shared, &error) < 0) {
        fprintf(stderr, "threads: %s\n", error.message);
        return 125;
    }
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.shared = shared, .number = i};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            return 125;
    }
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(workers[i].thread, NULL);
        good += workers[i].good;
    }
    brig_template_free(shared);
    printf("%d of %d runs are well\n", good, THREADS * RUNS);
    return good == THREADS * RUNS ? 0 : 1;
}
