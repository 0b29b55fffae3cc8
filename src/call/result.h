/* SPDX-License-Identifier: MIT */
/* What became of a call, as the library sees it; to others it is opaque. */
#pragma once

#include <brig/call.h>

#include "jail/job/result.h"

/* How many denials of a call are kept: the first ones seen. */
#define BRIG_CALL_DENIALS_MAX 16

/* Wants call_result_done(). Strings are the function's: untrusted, NUL-terminated, and perhaps
 * not UTF-8. */
struct brig_call_result {
    void *value; /* the result's own, writable, page-aligned if large; NULL if there is none */
    size_t length;
    enum brig_call_outcome outcome;
    int exit_code;    /* BRIG_CALL_EXITED; else -1 */
    int signal;       /* that ended it, also for timeouts; else 0 */
    int sys_errno;    /* of its failure, if it told; else 0 */
    char *class_name; /* of its failure, or NULL; likewise: */
    char *message;
    char *backtrace;                 /* lines */
    struct brig_call_denial *denial; /* the one that is the outcome, or NULL; in the list: */
    struct brig_call_denial *denials;
    size_t denial_count; /* at most BRIG_CALL_DENIALS_MAX */
    struct brig_capture out;
    struct brig_capture err;
    struct brig_usage usage;
    struct brig_unenforced unenforced;
    struct brig_error error; /* BRIG_CALL_UNSUPPORTED and BRIG_CALL_SETUP_FAILED */
    size_t mapped;           /* the bytes mapped for the value; 0: it is on the heap */
};

/* Releases what a result owns. The struct itself is the caller's, and may be used again. */
void call_result_done(struct brig_call_result *result);

/* The public functions of the same names, for a result that the caller owns: always filled, and wants
 * call_result_done(). */
int call_run(const struct brig_policy *policy, const struct brig_call_options *options,
             brig_call_fn fn, void *argument, struct brig_call_result *ret_result,
             struct brig_error *err);
int caller_call(struct brig_caller *caller, brig_call_fn fn, void *argument,
                struct brig_call_result *ret_result, struct brig_error *err);
int call_finish(struct brig_call *call, struct brig_call_result *ret_result,
                struct brig_error *err);
/* As brig_confine_self(), with a list. */
int confine_self(const struct brig_policy *policy, struct brig_unenforced *ret_unenforced,
                 struct brig_error *err);
