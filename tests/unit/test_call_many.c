/* SPDX-License-Identifier: MIT */
/* Many calls: from many threads at once, one after the other without a trace, in parts, from an event
 * loop; and a process that confines itself. CALLS says how many are looked through for leaks. */
#include <pthread.h>
#include <sys/prctl.h>

#include "base/process.h"
#include "call/result.h"
#include "call_support.h"

#define THREADS 8
#define LEAK_CALLS_FULL (SANITIZED ? 30 : 300)
#define LEAK_BYTES (4 << 20) /* half of what one leaked page a call would come to */

/* ---- Threads ------------------------------------------------------------------------------ */

struct work {
    struct brig_caller *caller;
    unsigned thread, calls, good;
};

/* Uses malloc and stdio, which other threads are in the middle of when this one forks. */
static int compute(struct brig_call_child *child, void *argument)
{
    const unsigned *number = argument;
    char *text = malloc(4096);
    if (!text)
        return 1;
    int length = snprintf(text, 4096, "%u squared is %u", *number, *number * *number);
    int result = brig_call_return(child, text, (size_t)length);
    free(text);
    return result;
}

static void *call_often(void *argument)
{
    struct work *work = argument;
    for (unsigned i = 0; i < work->calls; i++) {
        unsigned number = work->thread * 1000 + i;
        char wanted[64];
        struct brig_call_result result;
        struct brig_error err = {0};
        int length = snprintf(wanted, sizeof wanted, "%u squared is %u", number, number * number);
        int code = caller_call(work->caller, compute, &number, &result, &err);
        char *busy = malloc(64 + i * 16);
        bool good = code == 0 && result.outcome == BRIG_CALL_RETURNED &&
                    result.length == (size_t)length &&
                    memcmp(result.value, wanted, (size_t)length) == 0;
        work->good += good;
        if (!good)
            tap_diag("thread %u, call %u: %s %s", work->thread, i,
                     brig_call_outcome_name(result.outcome), err.message);
        free(busy);
        call_result_done(&result);
    }
    return NULL;
}

static void test_threads(bool namespaces, unsigned calls)
{
    struct brig_call_options options = new_options(namespaces);
    struct brig_error err = {0};
    struct work work[THREADS];
    pthread_t threads[THREADS];
    struct brig_caller *caller = NULL;
    options.timeout_ms = 120000;
    if (brig_caller_new(NULL, &options, &caller, &err) < 0)
        tap_bail("brig_caller_new: %s", err.message);
    for (unsigned i = 0; i < THREADS; i++) {
        work[i] = (struct work){.caller = caller, .thread = i, .calls = calls};
        if (pthread_create(&threads[i], NULL, call_often, &work[i]) != 0)
            tap_bail("pthread_create");
    }
    unsigned good = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
        good += work[i].good;
    }
    tap_is_int(good, THREADS * calls, "%d threads, %u calls each%s, of one caller, all right",
               THREADS, calls, namespaces ? " in the full jail" : "");
    brig_caller_free(caller);
}

/* ---- Fork after use ----------------------------------------------------------------------- */

/* What a worker does that was forked by a server which has made its caller, and used it, before. */
static bool calls_well(struct brig_caller *caller, unsigned calls)
{
    struct work work = {.caller = caller, .thread = 1, .calls = calls};
    (void)call_often(&work);
    return work.good == calls;
}

static bool threads_call_well(struct brig_caller *caller)
{
    struct work work[THREADS];
    pthread_t threads[THREADS];
    unsigned good = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        work[i] = (struct work){.caller = caller, .thread = i, .calls = 5};
        if (pthread_create(&threads[i], NULL, call_often, &work[i]) != 0)
            return false;
    }
    for (unsigned i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
        good += work[i].good;
    }
    return good == THREADS * 5;
}

enum worker { WORKER_CALLS, WORKER_THREADS, WORKER_FORKS, WORKER_FREES, WORKERS };

static bool work_as(enum worker worker, struct brig_caller *caller)
{
    pid_t pid;
    switch (worker) {
    case WORKER_CALLS:
        return calls_well(caller, 3);
    case WORKER_THREADS:
        return threads_call_well(caller);
    case WORKER_FORKS: /* a fork of a fork, which has not called itself */
        pid = fork();
        if (pid == 0)
            _exit(calls_well(caller, 2) ? 0 : 1);
        return process_wait(pid) == 0 && calls_well(caller, 1);
    case WORKER_FREES:
        brig_caller_free(caller);
        return true;
    case WORKERS:
        break;
    }
    return false;
}

static void test_fork(bool namespaces)
{
    static const char *const names[WORKERS] = {"calls", "calls from threads",
                                               "forks again, and calls", "frees the caller"};
    struct brig_call_options options = new_options(namespaces);
    struct brig_caller *caller = NULL;
    options.timeout_ms = 120000;
    if (brig_caller_new(NULL, &options, &caller, NULL) < 0)
        tap_bail("brig_caller_new");
    (void)calls_well(caller, 1);
    for (int worker = 0; worker < WORKERS; worker++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(work_as(worker, caller) ? 0 : 1);
        bool meanwhile = calls_well(caller, 1);
        tap_is_int(process_wait(pid), 0, "a forked process %s, %s namespaces", names[worker],
                   namespaces ? "with" : "without");
        tap_ok(meanwhile && calls_well(caller, 1), "and its parent calls on");
    }
    brig_caller_free(caller);
}

/* ---- Leaks -------------------------------------------------------------------------------- */

static size_t resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    unsigned long pages = 0;
    if (file && fscanf(file, "%*u %lu", &pages) != 1)
        pages = 0;
    if (file)
        (void)fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Each kind of end in turn: a value, a large one, a failure, a crash, an exit. */
static int end_somehow(struct brig_call_child *child, void *argument)
{
    unsigned number = *(unsigned *)argument;
    if (number % 100 == 0)
        return brig_call_reserve(child, 1 << 20) ? 0 : 1;
    if (number % 5 == 1)
        return brig_call_fail_errno(child, EACCES, "/etc/passwd", BRIG_CALL_ACCESS_READ);
    if (number % 5 == 2)
        _exit(3);
    if (number % 50 == 3)
        (void)raise(SIGKILL);
    return brig_call_return(child, "value", 5);
}

static void call_many(bool namespaces, unsigned count, bool each_new)
{
    struct brig_call_options options = new_options(namespaces);
    struct brig_caller *caller = NULL;
    options.stdio[1] = BRIG_STDIO_CAPTURE;
    options.trace = count % 2;
    if (brig_caller_new(NULL, &options, &caller, NULL) < 0)
        tap_bail("brig_caller_new");
    for (unsigned i = 0; i < count; i++) {
        struct brig_call_result result;
        if (each_new && i % 10 == 0)
            (void)call_run(NULL, &options, end_somehow, &i, &result, NULL);
        else
            (void)caller_call(caller, end_somehow, &i, &result, NULL);
        call_result_done(&result);
    }
    brig_caller_free(caller);
}

static void test_leaks(bool namespaces, unsigned count)
{
    call_many(namespaces, namespaces ? 20 : 200, true); /* what is kept for good */
    call_many(namespaces, 21, true);
    size_t fds = count_fds(), bytes = resident_bytes();
    call_many(namespaces, count, !namespaces);
    tap_is_int(count_fds(), fds, "%u calls%s leave no fd", count,
               namespaces ? " in the full jail" : "");
    size_t after = resident_bytes();
    if (!tap_ok(after < bytes + LEAK_BYTES, "nor memory"))
        tap_diag("%zu kB more", (after - bytes) / 1024);
    tap_ok(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "nor a child");
}

static size_t count_children(void)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "re");
    size_t count = 0;
    int pid;
    while (file && fscanf(file, "%d", &pid) == 1)
        count++;
    if (file)
        (void)fclose(file);
    return count;
}

/* An init may still be taking its namespaces down when a call has returned, but only the last one. */
static void test_endings(void)
{
    struct brig_call_options options = new_options(true);
    struct brig_caller *caller = NULL;
    if (brig_caller_new(NULL, &options, &caller, NULL) < 0)
        tap_bail("brig_caller_new");
    size_t before = count_children();
    for (unsigned i = 0; i < 20; i++) {
        struct brig_call_result result;
        (void)caller_call(caller, compute, &i, &result, NULL);
        call_result_done(&result);
    }
    tap_ok(count_children() <= before + 1, "of 20 full jails at most one is about to end");
    brig_caller_free(caller);
    tap_is_int(count_children(), 0, "and none when their caller is gone");
}

/* ---- In parts ----------------------------------------------------------------------------- */

static struct brig_caller *new_caller(struct brig_call_options *options)
{
    struct brig_error err = {0};
    struct brig_caller *caller = NULL;
    if (brig_caller_new(NULL, options, &caller, &err) < 0)
        tap_bail("brig_caller_new: %s", err.message);
    return caller;
}

/* As an interpreter does it: fork, enter, leave. */
static struct brig_call *start_in_parts(struct brig_caller *caller, bool sleepy)
{
    struct brig_error err = {0};
    struct brig_call *begun = NULL;
    if (brig_call_begin(caller, &begun, &err) < 0)
        tap_bail("brig_call_begin: %s", err.message);
    pid_t pid = fork();
    if (pid == 0) {
        struct brig_call_child *child = brig_call_enter(begun, 0);
        while (sleepy)
            (void)pause();
        (void)printf("out");
        (void)brig_call_return(child, "in parts", 8);
        brig_call_leave(child);
    }
    if (brig_call_started(begun, pid, &err) < 0)
        tap_bail("brig_call_started: %s", err.message);
    return begun;
}

static void test_parts(bool namespaces)
{
    struct brig_call_options options = new_options(namespaces);
    struct brig_call_result *result = NULL;
    options.stdio[1] = BRIG_STDIO_CAPTURE;
    struct brig_caller *caller = new_caller(&options);
    struct brig_call *begun = start_in_parts(caller, false);
    size_t length = 0;
    tap_is_int(brig_call_finish(begun, &result, NULL), BRIG_E_STATE, "no result before the end");
    tap_ok(brig_call_wait_ms(begun, 0, NULL) >= 0, "waiting for no time returns at once");
    tap_is_int(brig_call_wait(begun, NULL), 0, "a call in parts ends");
    tap_is_int(brig_call_wait_ms(begun, 1, NULL), 1, "which a wait with a limit says too");
    tap_is_int(brig_call_finish(begun, &result, NULL), 0, "and has a result");
    struct brig_call_result *again = NULL;
    tap_is_int(brig_call_finish(begun, &again, NULL), BRIG_E_STATE, "which can be taken once");
    tap_is_int(brig_call_result_outcome(result), BRIG_CALL_RETURNED, "it returned");
    const void *value = brig_call_result_value(result, &length);
    tap_ok(length == 8 && memcmp(value, "in parts", 8) == 0, "with its value");
    tap_is_str(brig_call_result_output(result, 1, NULL, NULL), "out", "and what it printed");
    tap_is_str(brig_call_result_output(result, 2, NULL, NULL), "", "which is nothing on stderr");
    tap_ok(!brig_call_result_denial(result) && !brig_call_result_denial_at(result, 0) &&
               !brig_call_result_message(result) && brig_call_result_error(result)->code == 0,
           "and nothing of what there was not");
    brig_call_free(begun);
    brig_call_result_free(result);

    begun = start_in_parts(caller, true);
    tap_is_int(brig_call_wait_ms(begun, 20, NULL), 0, "one that sleeps is not over in 20 ms");
    tap_is_int(brig_call_cancel(begun, NULL), 0, "one that sleeps can be cancelled");
    struct brig_call_result cancelled = {0};
    (void)brig_call_wait(begun, NULL);
    (void)call_finish(begun, &cancelled, NULL);
    (void)has_outcome(&cancelled, BRIG_CALL_CANCELLED, "and is");
    call_result_done(&cancelled);
    brig_call_free(begun);
    brig_call_free(start_in_parts(caller, true)); /* ends it, too */
    if (!namespaces)                              /* there the template is our child */
        tap_ok(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "one that is freed is ended");

    (void)brig_call_begin(caller, &begun, NULL);
    tap_is_int(brig_call_wait(begun, NULL), BRIG_E_STATE, "what was not started is not waited for");
    errno = EAGAIN;
    tap_is_int(brig_call_started(begun, -1, NULL), BRIG_E_SYSTEM, "a fork that failed is an error");
    brig_call_free(begun);
    (void)brig_call_begin(caller, &begun, NULL);
    brig_call_free(begun);
    brig_caller_free(caller);
}

static void test_event_loop(bool namespaces)
{
    struct brig_call_options options = new_options(namespaces);
    options.stdio[1] = BRIG_STDIO_CAPTURE;
    for (int sleepy = 0; sleepy < 2; sleepy++) {
        options.timeout_ms = sleepy ? 300 : (unsigned)await_ms();
        struct brig_caller *caller = new_caller(&options);
        struct brig_call *begun = start_in_parts(caller, sleepy);
        struct pollfd waiting = {.fd = brig_call_fd(begun), .events = POLLIN};
        int over = 0, rounds = 0;
        while (over == 0 && rounds++ < 1000 && await_readable(waiting.fd))
            over = brig_call_process(begun, NULL);
        tap_is_int(over, 1, "an event loop sees the end");
        tap_ok(rounds < 50, "in few rounds");
        struct brig_call_result result = {0};
        (void)call_finish(begun, &result, NULL);
        (void)has_outcome(&result, sleepy ? BRIG_CALL_TIMEOUT : BRIG_CALL_RETURNED,
                          "of one that %s", sleepy ? "sleeps" : "returns");
        call_result_done(&result);
        brig_call_free(begun);
        brig_caller_free(caller);
    }
}

/* ---- Confining oneself -------------------------------------------------------------------- */

static int confined(const struct brig_policy *policy)
{
    struct brig_unenforced unenforced = {0};
    struct brig_error err = {0};
    int usable = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    if (confine_self(policy, &unenforced, &err) < 0)
        return 10;
    char byte;
    if (usable < 0 || read(usable, &byte, 1) != 1)
        return 11; /* what is open stays so */
    if (!policy && open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0)
        return 12;
    if (open("/usr/bin/env", O_RDONLY | O_CLOEXEC) < 0)
        return 13;
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 || unenforced.count == 0)
        return 14;
    return unshare(CLONE_NEWUSER) == 0 ? 15 : 0;
}

static void *do_nothing(void *argument)
{
    (void)pause();
    return argument;
}

static int confined_with_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, do_nothing, NULL) != 0)
        return 1;
    return confine_self(NULL, NULL, NULL) == BRIG_E_STATE ? 0 : 2;
}

static void test_confine_self(void)
{
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_CASUAL);
    for (int i = 0; i < 3; i++) {
        int status = 0;
        pid_t pid = fork();
        if (pid == 0)
            _exit(i == 0 ? confined(NULL) : i == 1 ? confined(policy) : confined_with_thread());
        (void)waitpid(pid, &status, 0);
        tap_is_int(status, 0, "%s",
                   i == 0   ? "a process confines itself"
                   : i == 1 ? "by a policy of its own"
                            : "not with threads");
    }
    brig_policy_free(policy);
}

static unsigned leak_calls(void)
{
    return SANITIZED || await_slowness() > 1 ? 300 : (unsigned)tap_rounds(2000, 10000);
}

int main(int argc, char **argv)
{
    bool quick = argc > 1 && strcmp(argv[1], "threads") == 0; /* what ThreadSanitizer is for */
    unsigned calls = (unsigned)tap_rounds(50, 200);
    test_threads(false, calls);
    test_threads(true, calls);
    test_fork(false);
    test_fork(true);
    if (quick)
        return tap_done();
    for (int namespaces = 0; namespaces < 2; namespaces++) {
        test_parts(namespaces);
        test_event_loop(namespaces);
    }
    test_endings();
    test_confine_self();
    test_leaks(false, leak_calls());
    test_leaks(true, (unsigned)tap_rounds(LEAK_CALLS_FULL / 3, LEAK_CALLS_FULL));
    return tap_done();
}
