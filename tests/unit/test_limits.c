/* SPDX-License-Identifier: MIT */
/* Each limit of a policy holds on each path: commands that are run, started, driven by an event loop or
 * started from a template, and functions that are called, with and without namespaces. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <brig/brig.h>

#include "await.h"
#include "tap.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true /* their shadow memory is larger than any limit of address space */
#else
#define SANITIZED false
#endif

#define MIB (1 << 20)
#define REFUSED 42 /* what an act ends with when the limit has stopped it */

static char place[] = "/var/tmp/test_limits.XXXXXX";

/* ---- Acts: each uses too much of something ------------------------------------------------ */

__attribute__((noreturn)) static int sleep_long(void)
{
    for (;;)
        (void)pause();
}

__attribute__((noreturn)) static int spin(void)
{
    for (volatile unsigned i = 0;; i++)
        ;
}

static int map_much(void)
{
    void *room = mmap(NULL, (size_t)2048 * MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return room == MAP_FAILED && errno == ENOMEM ? REFUSED : 0;
}

static int write_much(const char *directory, size_t bytes, int wanted)
{
    char path[128];
    char block[4096] = {0};
    (void)snprintf(path, sizeof path, "%s/much", directory);
    (void)signal(SIGXFSZ, SIG_IGN);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    for (size_t done = 0; fd >= 0 && done < bytes; done += sizeof block)
        if (write(fd, block, sizeof block) != sizeof block)
            return errno == wanted ? REFUSED : 1;
    return fd < 0 ? 2 : 0;
}

static int write_large_file(void)
{
    return write_much(place, 64 * 1024, EFBIG);
}

static int fill_tmp(void)
{
    return write_much("/tmp", (size_t)4 * MIB, ENOSPC);
}

static int open_many(void)
{
    for (int i = 0; i < 200; i++)
        if (open("/dev/null", O_RDONLY | O_CLOEXEC) < 0)
            return errno == EMFILE ? REFUSED : 1;
    return 0;
}

static int fork_many(void)
{
    for (int i = 0; i < 64; i++) {
        pid_t pid = fork();
        if (pid == 0)
            (void)sleep_long();
        if (pid < 0)
            return errno == EAGAIN ? REFUSED : 1;
    }
    return 0;
}

static int make_many(void)
{
    for (int i = 0; i < 1000; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "/tmp/%d", i);
        if (mkdir(path, 0777) < 0)
            return errno == ENOSPC ? REFUSED : 1;
    }
    return 0;
}

static int watch_many(void)
{
    int fd = inotify_init1(IN_CLOEXEC);
    for (int i = 0; i < 100; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "/tmp/%d", i);
        if (mkdir(path, 0777) < 0)
            return 1;
        if (inotify_add_watch(fd, path, IN_CREATE) < 0)
            return errno == ENOSPC ? REFUSED : 2;
    }
    return 0;
}

static int print_much(void)
{
    for (int i = 0; i < 5000; i++)
        if (write(STDOUT_FILENO, "x", 1) != 1)
            return 1;
    return 0;
}

static int touch_much(void)
{
    volatile char *room =
        mmap(NULL, (size_t)256 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return REFUSED;
    for (size_t i = 0; i < (size_t)256 * MIB; i += 4096)
        room[i] = 1;
    return 0;
}

static void on_term(int number)
{
    (void)number;
    (void)!write(STDOUT_FILENO, "term", 4);
    _exit(0);
}

static int wait_for_term(void)
{
    (void)signal(SIGTERM, on_term);
    return sleep_long();
}

/* What is expected: an outcome, an exit code or value, or what is captured. */
static const struct row {
    const char *name;
    enum brig_limit limit;
    uint64_t value;
    int (*act)(void);
    const char *job, *call; /* outcomes; NULL: it ends with REFUSED */
    bool full;              /* needs namespaces */
    bool group;             /* needs a cgroup: else it is refused */
} rows[] = {
    {"wall", BRIG_LIMIT_WALL_MS, 300, sleep_long, "timeout", "timeout", false, false},
    {"cpu", BRIG_LIMIT_CPU_MS, 200, spin, "cpu-timeout", "cpu-timeout", false, false},
    {"address-space", BRIG_LIMIT_ADDRESS_SPACE, (uint64_t)1024 * MIB, map_much, NULL, NULL, false,
     false},
    {"file-size", BRIG_LIMIT_FILE_SIZE, 8192, write_large_file, NULL, NULL, false, false},
    {"open-files", BRIG_LIMIT_OPEN_FILES, 40, open_many, NULL, NULL, false, false},
    {"processes", BRIG_LIMIT_PROCESSES, 20, fork_many, NULL, NULL, false, true},
    {"output", BRIG_LIMIT_OUTPUT_BYTES, 1000, print_much, "exited", "output", false, false},
    {"tmp-bytes", BRIG_LIMIT_TMP_BYTES, MIB, fill_tmp, NULL, NULL, true, false},
    {"tmp-inodes", BRIG_LIMIT_TMP_INODES, 200, make_many, NULL, NULL, true, false},
    {"memory", BRIG_LIMIT_MEMORY_BYTES, (uint64_t)64 * MIB, touch_much, "oom", "memory", false,
     true},
    {"inotify", BRIG_LIMIT_INOTIFY_WATCHES, 10, watch_many, NULL, NULL, true, false},
    {"grace", BRIG_LIMIT_GRACE_MS, 60000, wait_for_term, NULL, NULL, false, false},
};
#define ROWS (sizeof rows / sizeof rows[0])

/* ---- Paths -------------------------------------------------------------------------------- */

/* What became of an act. */
struct seen {
    int error; /* nothing ran: its code */
    char outcome[32], out[16], message[BRIG_MESSAGE_MAX];
    int code; /* exit code, or value */
    int truncated;
    size_t length;
};

static struct seen see_job(const struct brig_result *result, int error, struct brig_error *err)
{
    struct seen seen = {.error = error};
    (void)snprintf(seen.message, sizeof seen.message, "%s", err->message);
    if (!result)
        return seen;
    (void)snprintf(seen.outcome, sizeof seen.outcome, "%s",
                   brig_outcome_name(brig_result_outcome(result)));
    seen.code = brig_result_exit_code(result);
    (void)snprintf(seen.out, sizeof seen.out, "%.8s",
                   brig_result_output(result, 1, &seen.length, &seen.truncated));
    return seen;
}

static int drive(struct brig_job *job)
{
    struct pollfd waiting = {.fd = brig_job_fd(job), .events = POLLIN};
    int over = 0;
    while (over == 0 && poll(&waiting, 1, await_ms()) > 0)
        over = brig_job_process(job, NULL);
    return over < 0 ? over : 0;
}

enum { RUN, START, LOOP, TEMPLATE, CALL, CALL_ALONE, CALLER, CALLER_ALONE, PATHS };
static const char *const paths[PATHS] = {
    "brig_run",      "brig_start",         "an event loop",    "brig_template_start",
    "brig_call_run", "without namespaces", "brig_caller_call", "a caller without namespaces"};

static struct seen command_by(int path, const struct brig_policy *policy, const char *name)
{
    const char *const argv[] = {"/run/acts", name, place, NULL};
    struct brig_command command = BRIG_COMMAND_INIT;
    struct brig_template *template = NULL;
    struct brig_result *result = NULL;
    struct brig_job *job = NULL;
    struct brig_error err = {0};
    int code;
    command.argv = argv;
    command.stdio[1].kind = BRIG_STDIO_CAPTURE;
    if (path == RUN)
        code = brig_run(policy, &command, &result, &err);
    else if (path != TEMPLATE)
        code = brig_start(policy, &command, &job, &err);
    else if ((code = brig_template_new(policy, &template, &err)) == 0)
        code = brig_template_start(template, &command, &job, &err);
    if (code == 0 && path != RUN)
        code = path == LOOP ? drive(job) : brig_job_wait(job, &err);
    if (code == 0 && path != RUN)
        code = brig_job_result(job, &result, &err);
    struct seen seen = see_job(result, code, &err);
    brig_result_free(result);
    brig_job_free(job);
    brig_template_free(template);
    return seen;
}

static int act_inside(struct brig_call_child *child, void *argument)
{
    const struct row *row = argument;
    int code = row->act();
    return brig_call_return(child, &code, sizeof code);
}

static struct seen call_by(int path, const struct brig_policy *policy, const struct row *row)
{
    struct brig_call_options options;
    struct brig_caller *caller = NULL;
    struct brig_call_result *result = NULL;
    struct brig_error err = {0};
    struct seen seen = {.code = -1};
    size_t length = 0;
    brig_call_options_init(&options, sizeof options);
    options.stdio[1] = BRIG_STDIO_CAPTURE;
    if (path == CALL || path == CALL_ALONE)
        seen.error =
            brig_call_run(policy, &options, act_inside, (void *)(uintptr_t)row, &result, &err);
    else if ((seen.error = brig_caller_new(policy, &options, &caller, &err)) == 0)
        seen.error = brig_caller_call(caller, act_inside, (void *)(uintptr_t)row, &result, &err);
    (void)snprintf(seen.message, sizeof seen.message, "%s", err.message);
    if (result) {
        const int *value = brig_call_result_value(result, &length);
        if (length == sizeof *value)
            seen.code = *value;
        (void)snprintf(seen.outcome, sizeof seen.outcome, "%s",
                       brig_call_outcome_name(brig_call_result_outcome(result)));
        (void)snprintf(seen.out, sizeof seen.out, "%.8s",
                       brig_call_result_output(result, 1, &seen.length, &seen.truncated));
    }
    brig_call_result_free(result);
    brig_caller_free(caller);
    return seen;
}

/* ---- The table ---------------------------------------------------------------------------- */

static struct brig_policy *policy_for(const struct row *row, bool alone, uint64_t wall_ms,
                                      const char *program)
{
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);
    if (!policy || brig_policy_limit(policy, row->limit, row->value, NULL) < 0 ||
        brig_policy_grant(policy, BRIG_READ_WRITE, place, NULL, 0, NULL) < 0)
        tap_bail("brig_policy_new");
    if (row->limit == BRIG_LIMIT_GRACE_MS)
        (void)brig_policy_limit(policy, BRIG_LIMIT_WALL_MS, wall_ms, NULL);
    if (row->limit != BRIG_LIMIT_MEMORY_BYTES && SANITIZED)
        (void)brig_policy_limit(policy, BRIG_LIMIT_MEMORY_BYTES, 0, NULL);
    if (alone)
        (void)brig_policy_disable(policy, BRIG_LAYER_NAMESPACES, NULL);
    else
        (void)brig_policy_grant(policy, BRIG_READ_ONLY, program, "/run/acts", 0, NULL);
    return policy;
}

static bool holds(const struct row *row, bool is_call, const struct seen *seen)
{
    const char *wanted = is_call ? row->call : row->job;
    if (seen->error != 0) /* never without a word */
        return seen->error == BRIG_E_UNSUPPORTED && row->group;
    if (row->limit == BRIG_LIMIT_GRACE_MS)
        return strcmp(seen->out, "term") == 0;
    if (row->limit == BRIG_LIMIT_OUTPUT_BYTES && !is_call)
        return seen->truncated && seen->length == row->value;
    return wanted ? strcmp(seen->outcome, wanted) == 0 : seen->code == REFUSED;
}

static void test_row(const struct row *row, const char *program)
{
    for (int path = 0; path < PATHS; path++) {
        bool alone = path == CALL_ALONE || path == CALLER_ALONE;
        if ((alone && row->full) || (SANITIZED && row->limit == BRIG_LIMIT_ADDRESS_SPACE))
            continue;
        struct seen seen;
        /* To use its grace a program must have come far enough before its time is over. */
        for (uint64_t wall_ms = 500;; wall_ms *= 4) {
            struct brig_policy *policy = policy_for(row, alone, wall_ms, program);
            seen = path < CALL ? command_by(path, policy, row->name) : call_by(path, policy, row);
            brig_policy_free(policy);
            if (row->limit != BRIG_LIMIT_GRACE_MS || wall_ms * 4 > (uint64_t)await_ms() ||
                holds(row, path >= CALL, &seen))
                break;
        }
        if (!tap_ok(holds(row, path >= CALL, &seen), "%s: %s", paths[path], row->name))
            tap_diag("outcome %s, code %d, output '%s' (%zu), error %d %s", seen.outcome, seen.code,
                     seen.out, seen.length, seen.error, seen.message);
    }
}

int main(int argc, char **argv)
{
    char program[4096];
    if (argc == 3) /* as a command */
        (void)snprintf(place, sizeof place, "%s", argv[2]);
    for (size_t i = 0; i < ROWS && argc == 3; i++)
        if (strcmp(rows[i].name, argv[1]) == 0)
            return rows[i].act();
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0 || !mkdtemp(place))
        tap_bail("cannot make '%s'", place);
    program[length] = 0;
    for (size_t i = 0; i < ROWS; i++)
        test_row(&rows[i], program);
    char path[128];
    (void)snprintf(path, sizeof path, "%s/much", place);
    (void)unlink(path);
    (void)rmdir(place);
    return tap_done();
}
