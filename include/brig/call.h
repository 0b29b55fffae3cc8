/* SPDX-License-Identifier: MIT */
/* libbrig: call a function in a jail, and get its value or the reason why there is none.
 *
 * The function runs in a forked child: it sees the caller's memory as it was, and what it changes
 * there never reaches the caller. Its value comes back as bytes. Without any privilege and without
 * namespaces it is confined by Landlock (it can read system directories, and use the caller's grants),
 * the syscall profile `code`, resource limits and a time limit. With namespaces it has the full jail
 * of brig_run().
 *
 *     struct brig_call_options options;
 *     brig_call_options_init(&options, sizeof options);
 *     options.timeout_ms = 5000;
 *     struct brig_call_result *result;
 *     if (brig_call_run(NULL, &options, work, &argument, &result, &err) == 0 &&
 *         brig_call_result_outcome(result) == BRIG_CALL_RETURNED)
 *         use(brig_call_result_value(result, &length), length);
 *     brig_call_result_free(result);
 *
 * What to know about fork:
 *  - The function has a copy of the caller's memory, secrets included.
 *  - Memory that the caller has mapped as shared (MAP_SHARED, System V) stays so: the function can write
 *    to it.
 *  - Of the caller's threads only the calling one exists in the child. What another thread had
 *    locked stays locked for ever, unless its library has fork handlers (libc's malloc and stdio
 *    have). A function that takes no lock of the program's own is safe.
 *  - In the full jail it is the jail's first process that forks, in the caller's memory and on its stack,
 *    while the calling thread waits: handlers of pthread_atfork() for the parent run there, once.
 *  - Every fd of the caller from 3 on is closed in the child unless it is in keep_fds, so that no
 *    connection can be used, or corrupted, from there.
 *  - Without namespaces the function cannot change modes, owners, times and attributes of files, nor
 *    truncate them by their path, not even those that are granted: Landlock cannot tell them apart.
 *  - A stream that is inherited is the caller's own: what the function does to it, to its position or
 *    its flags, is done to the caller's. A terminal is opened once more, to print on; nothing else
 *    can be done to it.
 *  - Exit handlers of the caller do not run in the child, also if the function calls exit(). What
 *    the caller had buffered in stdout and stderr is not written twice; what the function prints is
 *    written when it ends.
 *
 * All functions may be called from any thread, and calls may be made from many threads at once. A
 * struct brig_caller may be used by several threads at the same time; all other objects by one. It can
 * also be used, and freed, by processes that are forked from the one that made it: by the workers of
 * a server. A call that is under way belongs to the process that began it: elsewhere, functions return
 * BRIG_E_STATE, and brig_call_free() leaves it alone. */
#ifndef BRIG_CALL_H
#define BRIG_CALL_H

#include <brig/brig.h>

#if defined(__GNUC__)
#define BRIG_NORETURN __attribute__((noreturn))
#else
#define BRIG_NORETURN
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Options ------------------------------------------------------------------------------ */

/* What a memory limit counts. */
enum brig_memory_kind {
    BRIG_MEMORY_ADDRESS_SPACE, /* what each process maps besides what its caller has mapped */
    BRIG_MEMORY_RSS            /* what all of them really use; needs a cgroup */
};

/* Always begin with brig_call_options_init(). Pointers are borrowed during the call they are given
 * to. The values in parentheses are the defaults. */
struct brig_call_options {
    size_t size;             /* of this struct; set by init */
    uint64_t timeout_ms;     /* wall clock (30000); 0: none */
    uint64_t cpu_timeout_ms; /* of all its processes (BRIG_CALL_SAME: as timeout_ms); 0: none */
    uint64_t memory_mb;      /* in units of 2^20 bytes (512); 0: none */
    uint64_t processes;  /* it may have at a time, threads included (BRIG_CALL_SAME: the policy's,
                              * else some hundreds); 0: as many as it likes */
    uint64_t grace_ms;   /* between TERM and KILL when a limit is reached (0: kill at once) */
    uint64_t max_result; /* bytes of the value (0: as many as the function's memory can hold) */
    uint64_t max_output; /* bytes of each captured stream, at which the call ends (1 MiB);
                              * 0: no limit */
    const char *const *fs_allow; /* absolute paths, read-write, with all below */
    size_t fs_allow_count;
    const char *const *fs_read_allow; /* absolute paths, read-only, with all below */
    size_t fs_read_allow_count;
    const int *keep_fds; /* fds of the caller that stay open in the child, under their numbers; at
                          * most BRIG_CALL_KEEP_MAX, none of them a directory */
    size_t keep_fd_count;
    enum brig_memory_kind memory;
    enum brig_network network;               /* BRIG_NET_HOST: as the caller has it (the default) */
    enum brig_on_unsupported on_unsupported; /* BRIG_UNSUPPORTED_FAIL */
    enum brig_stdio_kind stdio[3];           /* NULL, INHERIT or CAPTURE (NULL, INHERIT, INHERIT) */
    int namespaces;                          /* 1: the full jail (0) */
    int unix_sockets; /* 1: UNIX sockets also without namespaces, where only connected pairs are
                       * allowed otherwise, whatever the network (0) */
    int trace; /* 1: denied system calls are reported, also if the function does not report them, and
                * without namespaces also paths that are not granted; system calls with a path
                * take some 20 us longer (0) */
    int reserved; /* 0 */
};

/* For cpu_timeout_ms and processes: see there. */
#define BRIG_CALL_SAME UINT64_MAX

/* Sets all options to their defaults. `size` is that of *options. */
void brig_call_options_init(struct brig_call_options *options, size_t size);

/* ---- Results ------------------------------------------------------------------------------ */

/* The outcome is what was observed. If a function was refused something and does not report that,
 * the outcome is how it ended: returned, failed, exited or crashed. */
enum brig_call_outcome {
    BRIG_CALL_RETURNED,     /* value, length */
    BRIG_CALL_FAILED,       /* the function's own failure: class_name, message, backtrace */
    BRIG_CALL_TIMEOUT,      /* the wall clock */
    BRIG_CALL_CPU_TIMEOUT,  /* the time of the CPU */
    BRIG_CALL_MEMORY,       /* the kernel killed it for memory, or refused it some and it said so */
    BRIG_CALL_FILESYSTEM,   /* a path that is not granted: denial */
    BRIG_CALL_NETWORK,      /* an address that cannot be had in this jail: denial */
    BRIG_CALL_SYSCALL,      /* a system call that the filter refuses: denial */
    BRIG_CALL_PROCESSES,    /* one process too many */
    BRIG_CALL_OUTPUT,       /* more captured output, or a larger value, than allowed */
    BRIG_CALL_EXITED,       /* it ended the process instead of returning: exit_code */
    BRIG_CALL_CRASHED,      /* by a signal */
    BRIG_CALL_UNSUPPORTED,  /* this system cannot enforce what was asked; nothing ran: error */
    BRIG_CALL_SETUP_FAILED, /* the jail could not be built; nothing ran: error */
    BRIG_CALL_CANCELLED     /* brig_call_cancel() */
};

/* What was tried with a path or an address. */
enum brig_call_access {
    BRIG_CALL_ACCESS_UNKNOWN,
    BRIG_CALL_ACCESS_READ,
    BRIG_CALL_ACCESS_WRITE,
    BRIG_CALL_ACCESS_EXECUTE,
    BRIG_CALL_ACCESS_CONNECT,
    BRIG_CALL_ACCESS_BIND
};

/* Something the jail refused. */
struct brig_call_denial {
    enum brig_call_outcome kind; /* FILESYSTEM, NETWORK, SYSCALL or PROCESSES */
    enum brig_call_access access;
    int sys_errno;     /* what the function was answered */
    int traced;        /* 1: seen by the tracer, 0: reported by the function and checked */
    char subject[512]; /* the path, the address, the name of the system call; cut if longer */
    char rule[160];    /* why, in words: "not below any path of fs_allow" */
};

/* The result of a call. Strings and structs that the functions below return live as long as the
 * result. Strings are the function's: untrusted, NUL-terminated, and perhaps not UTF-8. */
struct brig_call_result;

/* Releases a result. Accepts NULL. */
void brig_call_result_free(struct brig_call_result *result);
/* How the call ended. */
enum brig_call_outcome brig_call_result_outcome(const struct brig_call_result *result);
/* An outcome as a word: "returned", "timeout", … */
const char *brig_call_outcome_name(enum brig_call_outcome outcome);
/* The value, page-aligned if large; NULL if there is none. Its bytes may be written to.
 * `ret_length` may be NULL. */
void *brig_call_result_value(const struct brig_call_result *result, size_t *ret_length);
/* The exit code of BRIG_CALL_EXITED; else -1. */
int brig_call_result_exit_code(const struct brig_call_result *result);
/* The signal that ended the function, also for timeouts; else 0. */
int brig_call_result_signal(const struct brig_call_result *result);
/* The errno of the function's failure, if it told one; else 0. */
int brig_call_result_errno(const struct brig_call_result *result);
/* The class name of the function's failure, or NULL. */
const char *brig_call_result_class_name(const struct brig_call_result *result);
/* The message of the function's failure, or NULL. */
const char *brig_call_result_message(const struct brig_call_result *result);
/* The backtrace of the function's failure, in lines, or NULL. */
const char *brig_call_result_backtrace(const struct brig_call_result *result);
/* The denial that is the outcome, or NULL. It is one of the list, too. */
const struct brig_call_denial *brig_call_result_denial(const struct brig_call_result *result);
/* How many denials were seen, of the first 16. */
size_t brig_call_result_denial_count(const struct brig_call_result *result);
/* One of the denials; NULL beyond the last. */
const struct brig_call_denial *brig_call_result_denial_at(const struct brig_call_result *result,
                                                          size_t index);
/* Captured output of stream 1 or 2: NUL-terminated beyond its length, "" if nothing was captured,
 * never NULL. *ret_truncated is 1 if there was more than the limit. Both pointers may be NULL. */
const char *brig_call_result_output(const struct brig_call_result *result, int stream,
                                    size_t *ret_length, int *ret_truncated);
/* What the call used. */
const struct brig_usage *brig_call_result_usage(const struct brig_call_result *result);
/* Why nothing ran (BRIG_CALL_UNSUPPORTED, BRIG_CALL_SETUP_FAILED); else its code is BRIG_OK. Never
 * NULL. */
const struct brig_error *brig_call_result_error(const struct brig_call_result *result);
/* How many restrictions were not enforced. */
size_t brig_call_result_unenforced_count(const struct brig_call_result *result);
/* One of them in a short sentence; NULL beyond the last. */
const char *brig_call_result_unenforced(const struct brig_call_result *result, size_t index);
/* Everything but value and captured output as one JSON object; bytes that are not UTF-8 are
 * replaced. Free *ret_text with brig_text_free(). */
int brig_call_result_json(const struct brig_call_result *result, char **ret_text,
                          struct brig_error *err);
/* One line for people: "the function took longer than 5000 ms". Returns the length, as snprintf. */
int brig_call_result_text(const struct brig_call_result *result, char *buffer, size_t size);

/* ---- Calling ------------------------------------------------------------------------------ */

/* Inside: the child's end of a call. It exists only there. */
struct brig_call_child;

/* What is called. To return a value, brig_call_return() or brig_call_reserve(); to fail,
 * brig_call_fail(). If it calls neither, returning 0 is an empty value, and another number is a
 * failure with this number as its message. */
typedef int (*brig_call_fn)(struct brig_call_child *child, void *argument);

/* Calls fn(child, argument) in a jail and waits for it. `policy` may be NULL: then it is the one
 * described at the top. With a policy the function has the full jail, unless brig_policy_disable()
 * switched BRIG_LAYER_NAMESPACES off; options about paths, network and limits are added to the
 * policy, and an option at its default leaves the policy's value. `options` may be NULL for the
 * defaults. Returns 0 if the function ran, however it ended; a negative code if nothing ran, with
 * the outcome BRIG_CALL_UNSUPPORTED or BRIG_CALL_SETUP_FAILED. Free *ret_result with
 * brig_call_result_free() in both cases; it is NULL only when memory is short. `ret_result` may be
 * NULL. */
int brig_call_run(const struct brig_policy *policy, const struct brig_call_options *options,
                  brig_call_fn fn, void *argument, struct brig_call_result **ret_result,
                  struct brig_error *err);

/* A policy and options that are checked once, for many calls, which are faster than
 * brig_call_run(). Paths are looked up when the caller is made: a grant is the file or directory
 * that exists then. With namespaces, the init process of a jail may end after its call has
 * returned; the next call, or brig_caller_free(), reaps it. */
struct brig_caller;
/* Makes a caller. Policy and options are copied, and either may be NULL. */
int brig_caller_new(const struct brig_policy *policy, const struct brig_call_options *options,
                    struct brig_caller **ret_caller, struct brig_error *err);
/* As brig_call_run(), with the caller's policy and options. */
int brig_caller_call(struct brig_caller *caller, brig_call_fn fn, void *argument,
                     struct brig_call_result **ret_result, struct brig_error *err);
/* How many restrictions its calls do not enforce. */
size_t brig_caller_unenforced_count(const struct brig_caller *caller);
/* One of them in a short sentence, valid as long as the caller; NULL beyond the last. */
const char *brig_caller_unenforced(const struct brig_caller *caller, size_t index);
/* Releases a caller; no call may be under way. Accepts NULL. */
void brig_caller_free(struct brig_caller *caller);

/* ---- Inside the function ------------------------------------------------------------------ */

/* The value: bytes are copied. May be called again; the last one counts. 0, or BRIG_E_INVALID if
 * they are more than the call may return (the outcome is then BRIG_CALL_OUTPUT), or
 * BRIG_E_NOMEM. */
int brig_call_return(struct brig_call_child *child, const void *bytes, size_t length);
/* Room for a value, to be written in place: nothing is copied on its way to the caller. The room is
 * zeroed. NULL where brig_call_return() fails. Its first `length` bytes are the value, or fewer
 * after brig_call_shrink(). */
void *brig_call_reserve(struct brig_call_child *child, size_t length);
/* Makes the value that brig_call_reserve() made room for shorter. */
int brig_call_shrink(struct brig_call_child *child, size_t length);

/* A failure. Begin with BRIG_CALL_FAILURE_INIT. All strings may be NULL; they are copied, and cut
 * at BRIG_CALL_TEXT_MAX bytes in all. If sys_errno is set, and path, address or syscall says what
 * was refused, the caller's side checks whether the jail was the reason, and only then the outcome
 * says so. */
struct brig_call_failure {
    size_t size;                  /* of this struct */
    const char *class_name;       /* of an exception */
    const char *message;          /* for people */
    const char *backtrace;        /* lines */
    const char *path;             /* as given to the system call that failed */
    const char *address;          /* "192.0.2.1:80" */
    const char *syscall;          /* its name */
    int sys_errno;                /* of the call that failed */
    enum brig_call_access access; /* what was tried */
    int out_of_memory;            /* 1: an allocation failed */
    int reserved;                 /* 0 */
};

/* A failure with nothing set. */
#define BRIG_CALL_FAILURE_INIT                                                                     \
    {                                                                                              \
        sizeof(struct brig_call_failure), NULL, NULL, NULL, NULL, NULL, NULL, 0,                   \
            BRIG_CALL_ACCESS_UNKNOWN, 0, 0                                                         \
    }

/* The most bytes that the texts of a failure may have together. */
#define BRIG_CALL_TEXT_MAX (256 * 1024)

/* Reports that the function failed. Returns -1, for `return brig_call_fail(…);`. */
int brig_call_fail(struct brig_call_child *child, const struct brig_call_failure *failure);
/* The same for an errno, with the path of the system call that failed, or NULL. */
int brig_call_fail_errno(struct brig_call_child *child, int sys_errno, const char *path,
                         enum brig_call_access access);

/* ---- Calls in steps ----------------------------------------------------------------------- */

/* For interpreters, which fork by their own means, and for event loops:
 *
 *     brig_call_begin(caller, &call, &err);
 *     pid = fork();                               by libc's fork or the interpreter's
 *     if (pid == 0) {
 *         child = brig_call_enter(call, 0);       confined from here on; never fails
 *         … brig_call_return(child, …) or brig_call_fail(child, …) …
 *         brig_call_leave(child);                 ends the process
 *     }
 *     brig_call_started(call, pid, &err);         at once, in the parent
 *     brig_call_wait(call, &err);                 or brig_call_fd() and brig_call_process()
 *     brig_call_finish(call, &result, &err);
 *     brig_call_free(call);
 *
 * Between fork and enter the child should do nothing it can do later. The thread that forked must
 * live until the call is over, as the child dies with it; or see BRIG_CALL_OUTLIVE. */
struct brig_call;

/* Makes everything that a call needs before the fork. The caller must live as long as *ret_call.
 * Free *ret_call with brig_call_free(). */
int brig_call_begin(struct brig_caller *caller, struct brig_call **ret_call,
                    struct brig_error *err);

/* The most fds that can stay open in the child. */
#define BRIG_CALL_KEEP_MAX 64

/* Keeps one more fd, from 3 on, open in the child, with the rules of keep_fds. May be called in the
 * child before brig_call_enter(), for fds that an interpreter opens after a fork. */
int brig_call_keep_fd(struct brig_call *call, int fd, struct brig_error *err);

/* Bits for brig_call_enter(). */
enum brig_call_enter_flag {
    BRIG_CALL_OUTLIVE =
        1 << 0 /* without namespaces: the child is not bound to the life of the thread
                                * that forked it, and so not to that of the caller, either */
};

/* In the forked child: confines it and returns its end of the call. If that fails, the parent is
 * told and the process ends. With namespaces it returns in a grandchild: fork handlers of libc run,
 * those of an interpreter do not. `flags` are bits of enum brig_call_enter_flag. */
struct brig_call_child *brig_call_enter(struct brig_call *call, unsigned flags);
/* Ends the process: buffered output is written, exit handlers of the caller do not run. */
BRIG_NORETURN void brig_call_leave(struct brig_call_child *child);

/* In the parent. A pid of -1 means that fork() failed; its reason is in errno. */
int brig_call_started(struct brig_call *call, pid_t pid, struct brig_error *err);
/* An fd that becomes readable when brig_call_process() has something to do. Owned by the call; -1
 * if there can be none. */
int brig_call_fd(struct brig_call *call);
/* Handles all pending events without blocking: 1 when the call is over, 0 when it still runs. */
int brig_call_process(struct brig_call *call, struct brig_error *err);
/* Blocks until the call is over. */
int brig_call_wait(struct brig_call *call, struct brig_error *err);
/* Blocks until the call is over, at most timeout_ms milliseconds; -1: without limit. 1 when the
 * call is over, 0 when it still runs. */
int brig_call_wait_ms(struct brig_call *call, int64_t timeout_ms, struct brig_error *err);
/* Ends the call: SIGTERM, the grace period, SIGKILL. It is over when brig_call_process() or
 * brig_call_wait() says so. */
int brig_call_cancel(struct brig_call *call, struct brig_error *err);
/* Moves the result out; free *ret_result with brig_call_result_free(). BRIG_E_STATE before the call
 * is over, and when the result was taken already. Returns 0 whenever there is a result, also if
 * nothing ran: the outcome says so. */
int brig_call_finish(struct brig_call *call, struct brig_call_result **ret_result,
                     struct brig_error *err);
/* Ends the call if it still runs, and releases everything. Accepts NULL. If the child was forked
 * and brig_call_started() was not called, because an exception came between, the child is ended and
 * reaped; one that has not reached brig_call_enter() yet ends there, and the caller has to reap
 * it. */
void brig_call_free(struct brig_call *call);

/* ---- Confining the running process -------------------------------------------------------- */

/* Confines the running process and all that it starts, permanently: no_new_privs, no capabilities,
 * resource limits, Landlock, the syscall filter. A running process cannot get namespaces, a view,
 * masks or limits of a cgroup: *ret_unenforced (may be NULL) lists the missing restrictions, a line
 * each, or is NULL if none is missing; free it with brig_text_free(). A policy of NULL is that of
 * brig_call_run(). Open fds stay open. BRIG_E_STATE if the process has threads. After a failure
 * some restrictions may apply: the program should exit. */
int brig_confine_self(const struct brig_policy *policy, char **ret_unenforced,
                      struct brig_error *err);

#ifdef __cplusplus
}
#endif
#endif
