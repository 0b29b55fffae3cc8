/* SPDX-License-Identifier: MIT */
/* What the tests of calls share: short ways to call, and to see what is left. */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <brig/call.h>

#include "await.h"
#include "call/result.h"
#include "tap.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true /* their shadow memory is larger than any limit of address space */
#else
#define SANITIZED false
#endif

static inline struct brig_call_options new_options(bool namespaces)
{
    struct brig_call_options options;
    brig_call_options_init(&options, sizeof options);
    options.timeout_ms = (unsigned)await_ms();
    options.namespaces = namespaces;
    if (SANITIZED)
        options.memory_mb = 0;
    return options;
}

/* Calls, and says what went wrong with the jail itself, if anything. */
static inline int call(const struct brig_call_options *options, brig_call_fn fn, void *argument,
                       struct brig_call_result *ret_result)
{
    struct brig_error err = {0};
    int code = call_run(NULL, options, fn, argument, ret_result, &err);
    if (code < 0)
        tap_diag("brig_call: %s", err.message);
    return code;
}

__attribute__((format(printf, 3, 4))) static inline bool
has_outcome(const struct brig_call_result *result, enum brig_call_outcome wanted,
            const char *format, ...)
{
    char sentence[256], text[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    bool same = tap_is_str(brig_call_outcome_name(result->outcome), brig_call_outcome_name(wanted),
                           "%s", sentence);
    (void)brig_call_result_text(result, text, sizeof text);
    if (!same)
        tap_diag("%s; signal %d, exit code %d, message %s", text, result->signal, result->exit_code,
                 result->message ? result->message : "none");
    return same;
}

/* Calls, expects an outcome, and forgets the rest. */
#define expect(options, fn, argument, wanted, ...)                                                 \
    do {                                                                                           \
        struct brig_call_result result_;                                                           \
        (void)call(options, fn, argument, &result_);                                               \
        (void)has_outcome(&result_, wanted, __VA_ARGS__);                                          \
        call_result_done(&result_);                                                                \
    } while (0)

static inline size_t count_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    size_t count = 0;
    while (dir && readdir(dir))
        count++;
    if (dir)
        (void)closedir(dir);
    return count;
}
