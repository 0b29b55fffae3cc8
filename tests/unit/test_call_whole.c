/* SPDX-License-Identifier: MIT */
/* A function finds a whole process: the stack, thread, signals and libc of who called it, whichever way
 * its process was forked. */
#include <execinfo.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "call_support.h"

#if defined(__GLIBC__) && __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#define HAS_SEQUENCES
#endif

#define SMALL_STACK_BYTES ((size_t)(SANITIZED ? 1 << 20 : 64 << 10))
#define FAR_BYTES ((ptrdiff_t)256 << 10)

static const char *const kinds[] = {"without namespaces", "in the full jail"};

static _Thread_local int own_number;
static unsigned prepared, went_on, began;

static void before_fork(void)
{
    prepared++;
}

static void after_fork(void)
{
    went_on++;
}

static void in_child(void)
{
    began++;
}

static void on_signal(int signal)
{
    (void)signal;
}

static bool is_near(const void *a, const void *b)
{
    ptrdiff_t apart = (const char *)a - (const char *)b;
    return apart < FAR_BYTES && apart > -FAR_BYTES;
}

static void *add_one(void *argument)
{
    ++*(int *)argument;
    return argument;
}

static bool can_have_threads(void)
{
    pthread_t thread;
    int number = 1;
    return pthread_create(&thread, NULL, add_one, &number) == 0 &&
           pthread_join(thread, NULL) == 0 && number == 2;
}

static bool has_handlers(void)
{
    struct sigaction handled, ignored, plain;
    sigset_t mask;
    (void)sigaction(SIGUSR1, NULL, &handled);
    (void)sigaction(SIGUSR2, NULL, &ignored);
    (void)sigaction(SIGTERM, NULL, &plain);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &mask);
    return handled.sa_handler == on_signal && ignored.sa_handler == SIG_IGN &&
           plain.sa_handler == SIG_DFL && sigismember(&mask, SIGWINCH) == 1 &&
           sigismember(&mask, SIGTERM) == 0;
}

/* The kernel says so when asked for the very same once more. */
static bool has_sequences(void)
{
#ifdef HAS_SEQUENCES
    char *area =
        (char *)pthread_self() + __rseq_offset; /* as the thread pointer, where that is so */
    bool known = *(void **)pthread_self() == (void *)pthread_self();
    if (__rseq_size > 0 && known)
        return syscall(SYS_rseq, area, 32, 0, RSEQ_SIG) < 0 && errno == EBUSY;
#endif
    return true;
}

struct found {
    bool stack, thread, threads, handlers, forked, sequences, frames;
};

static int look_around(struct brig_call_child *child, void *argument)
{
    int here = 0;
    void *frames[64];
    struct found found = {
        .stack = is_near(&here, argument),
        .thread = own_number == 7 && getpid() == (pid_t)syscall(SYS_gettid) &&
                  pthread_kill(pthread_self(), 0) == 0,
        .threads = can_have_threads(),
        .handlers = has_handlers(),
        .forked = began > 0,
        .sequences = has_sequences(),
        .frames = backtrace(frames, 64) > 1,
    };
    return brig_call_return(child, &found, sizeof found);
}

static void test_found(bool namespaces, const char *who)
{
    struct brig_call_options options = new_options(namespaces);
    struct brig_call_result result;
    struct found found = {0};
    int here = 0;
    own_number = 7;
    prepared = went_on = began = 0;
    (void)call(&options, look_around, &here, &result);
    (void)has_outcome(&result, BRIG_CALL_RETURNED, "%s, from %s: a function looks around",
                      kinds[namespaces], who);
    if (result.length == sizeof found)
        memcpy(&found, result.value, sizeof found);
    call_result_done(&result);
    tap_ok(found.stack, "its stack is the caller's");
    tap_ok(found.thread, "it is the caller's thread, with its variables");
    tap_ok(found.threads, "which can start others");
    tap_ok(found.handlers, "signals are as the caller had them");
    tap_ok(found.forked, "handlers of forks ran in it");
    tap_ok(prepared > 0 && prepared == went_on && began == 0, "and as often before as after");
    tap_ok(found.sequences, "restartable sequences are registered as libc says");
    tap_ok(found.frames, "a backtrace has an end");
}

static int leave_thread(struct brig_call_child *child, void *argument)
{
    (void)child, (void)argument;
    pthread_exit(NULL);
}

/* The last thread's end is that of the process; the caller's frames are not unwound. */
static void test_thread_exit(bool namespaces)
{
    struct brig_call_options options = new_options(namespaces);
    struct brig_call_result result;
    (void)call(&options, leave_thread, NULL, &result);
    (void)has_outcome(&result, BRIG_CALL_EXITED, "%s: a function that ends its thread has exited",
                      kinds[namespaces]);
    tap_is_int(result.exit_code, 0, "with 0");
    call_result_done(&result);
}

static void *call_from_thread(void *argument)
{
    test_found(*(bool *)argument, "a thread with a small stack");
    return NULL;
}

static void test_from_thread(bool namespaces)
{
    pthread_attr_t attr;
    pthread_t thread;
    /* The least that libc allows is 16 KiB on x86_64 and 128 KiB on aarch64. */
    long least = sysconf(_SC_THREAD_STACK_MIN);
    size_t size =
        least > 0 && (size_t)least > SMALL_STACK_BYTES ? (size_t)least : SMALL_STACK_BYTES;
    (void)pthread_attr_init(&attr);
    if (pthread_attr_setstacksize(&attr, size) != 0 ||
        pthread_create(&thread, &attr, call_from_thread, &namespaces) != 0)
        tap_bail("pthread_create");
    (void)pthread_join(thread, NULL);
    (void)pthread_attr_destroy(&attr);
}

/* Nothing of the caller's own is different afterwards. */
static void test_caller(bool namespaces)
{
    struct brig_call_options options = new_options(namespaces);
    struct brig_call_result result;
    char directory[256], after[256];
    mode_t mask = umask(0027);
    bool known = getcwd(directory, sizeof directory) != NULL;
    (void)call(&options, look_around, &options, &result);
    call_result_done(&result);
    tap_ok(has_handlers(), "%s: the caller's signals are as before", kinds[namespaces]);
    tap_is_int(umask(mask), 0027, "and its umask");
    tap_ok(known && getcwd(after, sizeof after) && strcmp(directory, after) == 0,
           "and its directory");
}

int main(void)
{
    sigset_t blocked;
    (void)sigemptyset(&blocked);
    (void)sigaddset(&blocked, SIGWINCH);
    (void)pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    (void)signal(SIGUSR1, on_signal);
    (void)signal(SIGUSR2, SIG_IGN);
    (void)pthread_atfork(before_fork, after_fork, in_child);
    for (int namespaces = 0; namespaces < 2; namespaces++) {
        test_found(namespaces, "the main thread");
        test_from_thread(namespaces);
        test_thread_exit(namespaces);
        test_caller(namespaces);
    }
    return tap_done();
}
