/* SPDX-License-Identifier: MIT */
/* What a result says as a status, a word and JSON. */
#include <errno.h>
#include <signal.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "jail/job/result.h"
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
            "\"truncated\":{\"stdout\":true,\"stderr\":false},\"inside_jail\":false,"
            "\"unenforced\":[],\"notices\":[]"
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
            "\"inside_jail\":false,\"unenforced\":[\"a \\\"b\\\"\"],\"notices\":[]," NO_NETWORK
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

static struct brig_result *new_result(void)
{
    struct brig_result *result = calloc(1, sizeof *result);
    if (!result)
        tap_bail("no memory");
    return result;
}

static void outputs(void)
{
    struct brig_result *result = new_result();
    size_t length = 7;
    int truncated = 7;
    tap_is_str(brig_result_output(result, 1, &length, &truncated), "",
               "no output is an empty text");
    tap_ok(length == 0 && truncated == 0, "without length, and whole");
    result->out = (struct brig_capture){strdup("out"), 3, false};
    result->err = (struct brig_capture){strdup("er"), 2, true};
    tap_is_str(brig_result_output(result, 1, &length, &truncated), "out", "stream 1 is stdout");
    tap_ok(length == 3 && truncated == 0, "with its length, and whole");
    tap_is_str(brig_result_output(result, 2, &length, &truncated), "er", "stream 2 is stderr");
    tap_ok(length == 2 && truncated == 1, "with its length, and cut");
    tap_is_str(brig_result_output(result, 2, NULL, NULL), "er", "who does not ask is not told");
    tap_is_str(brig_result_output(result, 0, &length, NULL), "", "stream 0 is no output");
    tap_is_str(brig_result_output(result, 3, NULL, NULL), "", "nor is 3");
    tap_is_int((long)length, 0, "and has no length");
    brig_result_free(result);
    brig_result_free(NULL);
}

static void getters(void)
{
    struct brig_result *result = new_result();
    *result =
        (struct brig_result){.outcome = BRIG_TIMEOUT,
                             .exit_code = -1,
                             .signal = 9,
                             .usage.wall_us = 12,
                             .error.code = BRIG_E_SETUP,
                             .net.count = 2,
                             .net.totals.denied = 3,
                             .inside_jail = true,
                             .denials = {.traced = true, .count = 1, .items[0].name = "ptrace"}};
    unenforced_add(&result->unenforced, "one");
    unenforced_add(&result->unenforced, "two");
    unenforced_add(&result->notices, "three");
    result->net.events = calloc(2, sizeof *result->net.events);
    result->net.events[1].port = 443;
    tap_ok(brig_result_outcome(result) == BRIG_TIMEOUT && brig_result_exit_code(result) == -1 &&
               brig_result_signal(result) == 9 && brig_result_usage(result)->wall_us == 12,
           "the end is told");
    tap_is_int(brig_result_error(result)->code, BRIG_E_SETUP, "and its reason");
    tap_is_int((long)brig_result_unenforced_count(result), 2, "two lines are not enforced,");
    tap_is_str(brig_result_unenforced(result, 1), "two", "the second,");
    tap_ok(!brig_result_unenforced(result, 2), "and no third");
    tap_ok(brig_result_notice_count(result) == 1 && !brig_result_notice(result, 1), "one notice");
    tap_is_str(brig_result_notice(result, 0), "three", "which can be read");
    tap_ok(brig_result_traced(result) && brig_result_denial_count(result) == 1, "a denial");
    tap_is_str(brig_result_denial(result, 0)->name, "ptrace", "has a name");
    tap_ok(!brig_result_denial(result, 1), "there is no second");
    tap_is_int((long)brig_result_net_count(result), 2, "two events");
    tap_is_int(brig_result_net_event(result, 1)->port, 443, "the second of which has a port");
    tap_ok(!brig_result_net_event(result, 2), "no third");
    tap_is_int((long)brig_result_net_totals(result)->denied, 3, "the totals are those of all");
    tap_is_int(brig_result_inside_jail(result), 1, "it ran in a jail");
    brig_result_free(result);
}

static void versions(void)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%d.%d.%d", BRIG_VERSION_MAJOR, BRIG_VERSION_MINOR,
                   BRIG_VERSION_PATCH);
    tap_is_str(brig_version(), text, "the version is that of its parts");
    tap_is_int(brig_version_number(), BRIG_VERSION_NUMBER, "as a number too");
}

int main(void)
{
    statuses();
    as_json();
    outputs();
    getters();
    versions();
    struct brig_result *result = calloc(1, sizeof *result);
    if (!result)
        tap_bail("no memory");
    result->out = (struct brig_capture){strdup("x"), 1, false};
    result->err = (struct brig_capture){strdup("y"), 1, false};
    result_done(result);
    tap_ok(!result->out.data && !result->err.data && result->out.length == 0,
           "a result that is done owns nothing");
    result_done(result);
    result_done(NULL);
    tap_pass("it can be done twice, and NULL as well");
    tap_is_str(brig_version(), BRIG_VERSION, "the library is of the header's version");
    free(result);
    return tap_done();
}
