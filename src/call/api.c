/* SPDX-License-Identifier: MIT */
/* The public functions about calls and their results: thin, over what the library uses itself. */
#include <stdlib.h>

#include <brig/call.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "call/call.h"
#include "call/caller.h"
#include "call/result.h"

/* ---- calls ---- */

int brig_call_run(const struct brig_policy *policy, const struct brig_call_options *options,
                  brig_call_fn fn, void *argument, struct brig_call_result **ret_result,
                  struct brig_error *err)
{
    struct brig_call_result *made = calloc(1, sizeof *made);
    if (ret_result)
        *ret_result = made;
    if (!made)
        return brig_fail_nomem(err);
    int result = call_run(policy, options, fn, argument, made, err);
    if (!ret_result)
        brig_call_result_free(made);
    return result;
}

int brig_caller_call(struct brig_caller *caller, brig_call_fn fn, void *argument,
                     struct brig_call_result **ret_result, struct brig_error *err)
{
    struct brig_call_result *made = calloc(1, sizeof *made);
    if (ret_result)
        *ret_result = made;
    if (!made)
        return brig_fail_nomem(err);
    int result = caller_call(caller, fn, argument, made, err);
    if (!ret_result)
        brig_call_result_free(made);
    return result;
}

int brig_call_finish(struct brig_call *call, struct brig_call_result **ret_result,
                     struct brig_error *err)
{
    struct brig_call_result *made = calloc(1, sizeof *made);
    if (!made)
        return brig_fail_nomem(err);
    int result = call_finish(call, made, err);
    if (result < 0 && made->error.code == 0) { /* else the result says why nothing ran */
        free(made);
        return result;
    }
    *ret_result = made;
    return 0;
}

size_t brig_caller_unenforced_count(const struct brig_caller *caller)
{
    return caller->unenforced.count;
}

const char *brig_caller_unenforced(const struct brig_caller *caller, size_t index)
{
    return unenforced_line(&caller->unenforced, index);
}

int brig_confine_self(const struct brig_policy *policy, char **ret_unenforced,
                      struct brig_error *err)
{
    struct brig_unenforced list = {0};
    autostr struct str lines = {0};
    int result = confine_self(policy, &list, err);
    if (result < 0 || !ret_unenforced)
        return result;
    *ret_unenforced = NULL;
    for (size_t i = 0; i < list.count; i++)
        str_appendf(&lines, "%s\n", list.text[i]);
    return list.count > 0 ? str_take(&lines, ret_unenforced, err) : 0;
}

/* ---- results ---- */

void brig_call_result_free(struct brig_call_result *result)
{
    call_result_done(result);
    free(result);
}

enum brig_call_outcome brig_call_result_outcome(const struct brig_call_result *result)
{
    return result->outcome;
}

void *brig_call_result_value(const struct brig_call_result *result, size_t *ret_length)
{
    if (ret_length)
        *ret_length = result->length;
    return result->value;
}

int brig_call_result_exit_code(const struct brig_call_result *result)
{
    return result->exit_code;
}

int brig_call_result_signal(const struct brig_call_result *result)
{
    return result->signal;
}

int brig_call_result_errno(const struct brig_call_result *result)
{
    return result->sys_errno;
}

const char *brig_call_result_class_name(const struct brig_call_result *result)
{
    return result->class_name;
}

const char *brig_call_result_message(const struct brig_call_result *result)
{
    return result->message;
}

const char *brig_call_result_backtrace(const struct brig_call_result *result)
{
    return result->backtrace;
}

const struct brig_call_denial *brig_call_result_denial(const struct brig_call_result *result)
{
    return result->denial;
}

size_t brig_call_result_denial_count(const struct brig_call_result *result)
{
    return result->denial_count;
}

const struct brig_call_denial *brig_call_result_denial_at(const struct brig_call_result *result,
                                                          size_t index)
{
    return index < result->denial_count ? &result->denials[index] : NULL;
}

const char *brig_call_result_output(const struct brig_call_result *result, int stream,
                                    size_t *ret_length, int *ret_truncated)
{
    const struct brig_capture *capture = stream == 1   ? &result->out
                                         : stream == 2 ? &result->err
                                                       : NULL;
    return capture_text(capture, ret_length, ret_truncated);
}

const struct brig_usage *brig_call_result_usage(const struct brig_call_result *result)
{
    return &result->usage;
}

const struct brig_error *brig_call_result_error(const struct brig_call_result *result)
{
    return &result->error;
}

size_t brig_call_result_unenforced_count(const struct brig_call_result *result)
{
    return result->unenforced.count;
}

const char *brig_call_result_unenforced(const struct brig_call_result *result, size_t index)
{
    return unenforced_line(&result->unenforced, index);
}
