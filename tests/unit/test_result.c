/* SPDX-License-Identifier: MIT */
/* What a result says as a status, a word and JSON. */
#include <errno.h>
#include <signal.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "tap.h"

static void statuses(void)
{
    static const struct {
        enum brig_outcome outcome;
        int exit_code, signal, error, status;
        const char *name;
    } rows[] = {
        {BRIG_EXITED, 0, 0, 0, 0, "exited"},
        {BRIG_EXITED, 255, 0, 0, 255, "exited"},
        {BRIG_SIGNALLED, -1, SIGSEGV, 0, 139, "signalled"},
        {BRIG_TIMEOUT, -1, SIGKILL, 0, 124, "timeout"},
        {BRIG_TIMEOUT, 0, 0, 0, 124, "timeout"},
        {BRIG_CPU_TIMEOUT, -1, SIGXCPU, 0, 124, "cpu-timeout"},
        {BRIG_OOM, -1, SIGKILL, 0, 137, "oom"},
        {BRIG_OUTPUT_LIMIT, 0, 0, 0, 137, "output-limit"},
        {BRIG_DISK_LIMIT, 3, 0, 0, 3, "disk-limit"},
        {BRIG_PIDS_LIMIT, -1, SIGTERM, 0, 143, "pids-limit"},
        {BRIG_DENIED, -1, SIGSYS, 0, 128 + SIGSYS, "denied"},
        {BRIG_SETUP_FAILED, -1, 0, BRIG_E_SETUP, 125, "setup-failed"},
        {BRIG_SETUP_FAILED, -1, 0, BRIG_E_NOT_EXEC, 126, "setup-failed"},
        {BRIG_SETUP_FAILED, -1, 0, BRIG_E_NOT_FOUND, 127, "setup-failed"},
        {BRIG_CANCELLED, -1, 0, 0, 143, "cancelled"},
        {BRIG_CANCELLED, -1, SIGKILL, 0, 137, "cancelled"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct brig_result result = {
            .outcome = rows[i].outcome,
            .exit_code = rows[i].exit_code,
            .signal = rows[i].signal,
            .error.code = rows[i].error,
        };
        tap_is_int(brig_result_status(&result), rows[i].status, "%s(%d, %d, %d) is %d",
                   rows[i].name, rows[i].exit_code, rows[i].signal, rows[i].error, rows[i].status);
        tap_is_str(brig_outcome_name(rows[i].outcome), rows[i].name, "and is called so");
    }
    tap_is_str(brig_outcome_name((enum brig_outcome)11), "?", "what is no outcome has no name");
}

#define NO_NETWORK                                                                                 \
    "\"network\":{\"allowed\":0,\"denied\":0,\"failed\":0,\"bytes_in\":0,\"bytes_out\":0,"         \
    "\"events_dropped\":0,\"events\":[]},\"denials\":null,"

static void is_json(struct brig_result *result, const char *wanted, const char *name)
{
    struct brig_error err = {0};
    autofree char *text = NULL;
    tap_is_int(brig_result_json(result, &text, &err), 0, "JSON is written");
    tap_is_str(text, wanted, "%s", name);
}

static void as_json(void)
{
    struct brig_result *result = calloc(1, sizeof *result);
    if (!result)
        tap_bail("no memory");
    result->exit_code = 3;
    result->usage = (struct brig_usage){1, 2, 3, 4, 0, {6, 7}, 8, 9, 10, 11};
    result->out.truncated = true;
    is_json(result,
            "{\"outcome\":\"exited\",\"status\":3,\"exit_code\":3,\"signal\":null,"
            "\"signal_name\":null,\"usage\":{\"wall_us\":1,\"cpu_user_us\":2,\"cpu_sys_us\":3,"
            "\"peak_memory_bytes\":4,\"peak_pids\":null,\"oom_kills\":8,\"pids_refused\":9,"
            "\"cpu_throttled_us\":10,\"stuck_pid\":11,\"stdout_bytes\":6,\"stderr_bytes\":7},"
            "\"truncated\":{\"stdout\":true,\"stderr\":false},\"unenforced\":[],\"notices\":[]"
            "," NO_NETWORK "\"error\":null}\n",
            "an exit");
    *result = (struct brig_result){.outcome = BRIG_SIGNALLED, .exit_code = -1, .signal = SIGTERM};
    result->unenforced.count = 1;
    (void)snprintf(result->unenforced.text[0], sizeof result->unenforced.text[0], "a \"b\"");
    result->error = (struct brig_error){.code = BRIG_E_SETUP, .sys_errno = ENOENT, .message = "m"};
    is_json(result,
            "{\"outcome\":\"signalled\",\"status\":143,\"exit_code\":null,\"signal\":15,"
            "\"signal_name\":\"SIGTERM\",\"usage\":{\"wall_us\":0,\"cpu_user_us\":0,"
            "\"cpu_sys_us\":0,\"peak_memory_bytes\":null,\"peak_pids\":null,\"oom_kills\":0,"
            "\"pids_refused\":0,\"cpu_throttled_us\":0,\"stdout_bytes\":0,\"stderr_bytes\":0},"
            "\"truncated\":{\"stdout\":false,\"stderr\":false},"
            "\"unenforced\":[\"a \\\"b\\\"\"],\"notices\":[]," NO_NETWORK
            "\"error\":{\"code\":-5,\"errno\":2,"
            "\"message\":\"m\"}}\n",
            "a signal and an error");
    result->unenforced.count = BRIG_UNENFORCED_MAX;
    struct brig_error err;
    autofree char *full = NULL;
    autofree char *same = NULL;
    tap_is_int(brig_result_json(result, &full, &err), 0, "a full list is written");
    result->unenforced.count = BRIG_UNENFORCED_MAX + 1;
    tap_is_int(brig_result_json(result, &same, &err), 0, "a count past it");
    tap_is_str(same, full, "is not believed");
    free(result);
}

static void by_functions(void)
{
    struct brig_result *result = brig_result_new();
    if (!result)
        tap_bail("no memory");
    size_t length = 7;
    int truncated = 7;
    tap_ok(!brig_result_output(result, 1, &length, &truncated) && length == 0 && truncated == 0,
           "a new result has no output");
    result->out = (struct brig_capture){strdup("out"), 3, false};
    result->err = (struct brig_capture){strdup("er"), 2, true};
    tap_is_str(brig_result_output(result, 1, &length, &truncated), "out", "stream 1 is stdout");
    tap_ok(length == 3 && truncated == 0, "with its length, and whole");
    tap_is_str(brig_result_output(result, 2, &length, &truncated), "er", "stream 2 is stderr");
    tap_ok(length == 2 && truncated == 1, "with its length, and cut");
    tap_is_str(brig_result_output(result, 2, NULL, NULL), "er", "who does not ask is not told");
    tap_ok(!brig_result_output(result, 0, &length, NULL) && length == 0, "stream 0 is no output");
    tap_ok(!brig_result_output(result, 3, NULL, NULL), "nor is 3");
    brig_result_free(result);
    brig_result_free(NULL);
}

int main(void)
{
    statuses();
    as_json();
    by_functions();
    struct brig_result *result = calloc(1, sizeof *result);
    if (!result)
        tap_bail("no memory");
    result->out = (struct brig_capture){strdup("x"), 1, false};
    result->err = (struct brig_capture){strdup("y"), 1, false};
    brig_result_done(result);
    tap_ok(!result->out.data && !result->err.data && result->out.length == 0,
           "a result that is done owns nothing");
    brig_result_done(result);
    brig_result_done(NULL);
    tap_pass("it can be done twice, and NULL as well");
    tap_is_str(brig_version(), BRIG_VERSION, "the library is of the header's version");
    free(result);
    return tap_done();
}
