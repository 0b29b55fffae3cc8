/* SPDX-License-Identifier: MIT */
/* What a call costs beside fork and waitpid of the same process, and what a large value costs beside
 * a pipe.
 *
 * The cost of a fork is mostly that of copying page tables, so it is asked of a process with little
 * memory and of processes as large as interpreters are. Beside both is what no call can be faster than:
 * a fork whose child applies the restrictions and ends, and has nothing to hand back. Ways take turns in random order, and medians
 * are compared, as the machine is never quiet; the tenth percentile is nearer to what the work itself
 * takes where others have the CPUs, too. */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <brig/call.h>

#include "bench.h"
#include "jail/confine/seccomp.h"

#define ROUNDS_MAX 10000
#define VALUE_BYTES ((size_t)100 << 20)
#define VALUE_ROUNDS 9
#define PIECE_BYTES 65536

/* ---- a call that does nothing ---- */

enum way { WAY_FORK, WAY_FLOOR, WAY_CALLER, WAY_CALL, WAY_FULL, WAY_NETWORK, WAYS };
static const char *const way_names[WAYS] = {
    "fork + waitpid", "the same with restrictions alone", "brig_caller_call",
    "brig_call",      "brig_caller_call, full jail",      "the same, no network"};

static struct brig_caller *callers[WAYS];
static struct brig_call_options options;

static int do_nothing(struct brig_call_child *child, void *argument)
{
    (void)child, (void)argument;
    return 0;
}

static int ruleset = -1;

static void make_ruleset(void)
{
    const struct landlock_ruleset_attr attr = {.handled_access_fs = LANDLOCK_ACCESS_FS_WRITE_FILE};
    ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
}

/* The least a confined child does: the filter of a call, an empty ruleset, nothing to hand back. */
static void raise_confine(void)
{
    const struct sock_fprog *filter =
        seccomp_program_alone(BRIG_SECCOMP_CODE, BRIG_NET_HOST, false);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        (ruleset >= 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) < 0) ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, filter) < 0)
        bench_die("restrictions", strerror(errno));
}

static void fork_and_wait(bool confine)
{
    pid_t pid = fork();
    if (pid == 0 && confine)
        raise_confine();
    if (pid == 0)
        _exit(0);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

static void go(enum way way)
{
    struct brig_call_result *result = NULL;
    struct brig_error err = {0};
    if (way == WAY_FORK || way == WAY_FLOOR) {
        fork_and_wait(way == WAY_FLOOR);
        return;
    }
    if (way == WAY_CALL)
        bench_must(brig_call_run(NULL, &options, do_nothing, NULL, &result, &err), "brig_call_run",
                   &err);
    else
        bench_must(brig_caller_call(callers[way], do_nothing, NULL, &result, &err), way_names[way],
                   &err);
    if (brig_call_result_outcome(result) != BRIG_CALL_RETURNED)
        bench_die(way_names[way], brig_call_outcome_name(brig_call_result_outcome(result)));
    brig_call_result_free(result);
}

static uint64_t samples[WAYS][ROUNDS_MAX];

static void measure(unsigned rounds, size_t megabytes, bool has_full)
{
    size_t order[WAYS], ways = has_full ? WAYS : WAY_FULL;
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < ways; i++)
        order[i] = i;
    for (unsigned round = 0; round < rounds + 5; round++) {
        bench_shuffle(order, ways, &state);
        for (size_t i = 0; i < ways; i++) {
            uint64_t start = bench_now_ns();
            go((enum way)order[i]);
            samples[order[i]][round < 5 ? 0 : round - 5] = bench_now_ns() - start;
        }
    }
    double fork_us = 0, fork_best_us = 0;
    for (size_t i = 0; i < ways; i++) {
        qsort(samples[i], rounds, sizeof samples[i][0], bench_compare);
        double median = bench_percentile_us(samples[i], rounds, 50);
        double best = bench_percentile_us(samples[i], rounds, 10);
        if (i == WAY_FORK) {
            fork_us = median;
            fork_best_us = best;
        }
        printf("%6zu MB  %-28s %9.1f us %5.2f x fork; p10 %9.1f us %5.2f x fork; p90 %9.1f us\n",
               megabytes, way_names[i], median, median / fork_us, best, best / fork_best_us,
               bench_percentile_us(samples[i], rounds, 90));
    }
}

/* ---- a large value ---- */

/* When the function had its value, in the caller's clock: only what follows is the way back. */
static uint64_t *produced_ns;

static void produce(char *bytes)
{
    for (size_t i = 0; i < VALUE_BYTES; i += 4096)
        bytes[i] = (char)(i >> 12);
    *produced_ns = bench_now_ns();
}

static int return_in_place(struct brig_call_child *child, void *argument)
{
    (void)argument;
    char *bytes = brig_call_reserve(child, VALUE_BYTES);
    if (!bytes)
        return 1;
    produce(bytes);
    return 0;
}

static int return_copy(struct brig_call_child *child, void *argument)
{
    (void)argument;
    char *bytes = malloc(VALUE_BYTES);
    if (!bytes)
        return 1;
    produce(bytes);
    return brig_call_return(child, bytes, VALUE_BYTES);
}

/* Both look at every page of what came. */
static void look(const char *bytes)
{
    for (size_t i = 0; i < VALUE_BYTES; i += 4096)
        if (bytes[i] != (char)(i >> 12))
            bench_die("the value", "is another");
}

static uint64_t by_call(brig_call_fn fn, uint64_t *ret_whole)
{
    struct brig_call_result *result = NULL;
    struct brig_error err = {0};
    uint64_t start = bench_now_ns();
    bench_must(brig_caller_call(callers[WAY_CALLER], fn, NULL, &result, &err), "a value", &err);
    if (brig_call_result_outcome(result) != BRIG_CALL_RETURNED)
        bench_die("a value", brig_call_outcome_name(brig_call_result_outcome(result)));
    look(brig_call_result_value(result, NULL));
    uint64_t end = bench_now_ns();
    brig_call_result_free(result);
    *ret_whole = end - start;
    return end - *produced_ns;
}

static void write_all(int fd, const char *bytes)
{
    for (size_t done = 0; done < VALUE_BYTES;) {
        ssize_t count = write(fd, bytes + done, VALUE_BYTES - done);
        if (count <= 0)
            _exit(1);
        done += (size_t)count;
    }
}

/* As it is usually done: a buffer that grows, filled piece by piece. */
static uint64_t by_pipe(uint64_t *ret_whole)
{
    int ends[2];
    uint64_t start = bench_now_ns();
    if (pipe2(ends, O_CLOEXEC) < 0)
        bench_die("pipe2", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        char *bytes = malloc(VALUE_BYTES);
        if (!bytes)
            _exit(1);
        produce(bytes);
        write_all(ends[1], bytes);
        _exit(0);
    }
    (void)close(ends[1]);
    char *bytes = NULL;
    size_t room = 0, length = 0;
    for (ssize_t count = 1; count > 0; length += (size_t)count) {
        if (room - length < PIECE_BYTES)
            bytes = realloc(bytes, room = room ? room * 2 : (size_t)PIECE_BYTES * 2);
        if (!bytes)
            bench_die("realloc", "out of memory");
        count = read(ends[0], bytes + length, PIECE_BYTES);
        if (count < 0)
            bench_die("read", strerror(errno));
    }
    (void)waitpid(pid, NULL, 0);
    if (length != VALUE_BYTES)
        bench_die("the pipe", "ended early");
    look(bytes);
    uint64_t end = bench_now_ns();
    free(bytes);
    (void)close(ends[0]);
    *ret_whole = end - start;
    return end - *produced_ns;
}

static void measure_values(void)
{
    static const char *const names[] = {"through a pipe, 64 kB pieces", "brig_call_return",
                                        "brig_call_reserve"};
    uint64_t back[3][VALUE_ROUNDS], whole[3][VALUE_ROUNDS];
    for (unsigned i = 0; i < VALUE_ROUNDS; i++) {
        back[0][i] = by_pipe(&whole[0][i]);
        back[1][i] = by_call(return_copy, &whole[1][i]);
        back[2][i] = by_call(return_in_place, &whole[2][i]);
    }
    double pipe_us = 0;
    for (size_t i = 0; i < 3; i++) {
        qsort(back[i], VALUE_ROUNDS, sizeof(uint64_t), bench_compare);
        qsort(whole[i], VALUE_ROUNDS, sizeof(uint64_t), bench_compare);
        double median = bench_percentile_us(back[i], VALUE_ROUNDS, 50);
        if (i == 0)
            pipe_us = median;
        printf("100 MB  %-30s %9.1f ms back, %9.1f ms with the fork and making it; %5.1f x as "
               "fast back\n",
               names[i], median / 1000, bench_percentile_us(whole[i], VALUE_ROUNDS, 50) / 1000,
               pipe_us / median);
    }
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {0, 16, 64};
    unsigned rounds = argc > 1 ? bench_count(argv[1], ROUNDS_MAX) : 300;
    struct brig_error err = {0};
    brig_call_options_init(&options, sizeof options);
    options.memory_mb = 1024;
    bench_must(brig_caller_new(NULL, &options, &callers[WAY_CALLER], &err), "a caller", &err);
    options.namespaces = 1;
    bool has_full = brig_caller_new(NULL, &options, &callers[WAY_FULL], &err) == 0;
    options.network = BRIG_NET_NONE;
    if (has_full)
        bench_must(brig_caller_new(NULL, &options, &callers[WAY_NETWORK], &err), "a caller", &err);
    options.namespaces = 0;
    options.network = BRIG_NET_HOST;
    make_ruleset();
    produced_ns = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t bytes = sizes[i] << 20;
        char *memory = bytes ? malloc(bytes) : NULL;
        if (memory)
            memset(memory, 1, bytes);
        measure(rounds, sizes[i], has_full);
        free(memory);
    }
    if (!has_full)
        printf("the full jail: %s\n", err.message);
    measure_values();
    brig_caller_free(callers[WAY_CALLER]);
    brig_caller_free(callers[WAY_FULL]);
    brig_caller_free(callers[WAY_NETWORK]);
    return 0;
}
