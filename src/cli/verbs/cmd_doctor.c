/* SPDX-License-Identifier: MIT */
/* brig doctor: what this system supports for a jail, and the remedies for what it does not. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/credentials/tokens.h"
#include "cli/identity.h"
#include "cli/network/net.h"
#include "cli/remedy.h"
#include "cli/report.h"
#include "cli/verbs/allow_userns.h"
#include "jail/job/job.h"
#include "jail/job/result.h"
#include "jail/probe/probe.h"
#include "jail/probe/userns.h"
#include "policy/defaults.h"

#define STATUS_NO_FULL_JAIL 1

/* Which fallback a jail needed. */
enum rung {
    RUNG_FULL,
    RUNG_LANDLOCK,
    RUNG_LIMITS,
    RUNG_NONE,
};

static const struct {
    const char *name;
    const char *verdict;
} rungs[] = {
    [RUNG_FULL] = {"full", "A full jail works."},
    [RUNG_LANDLOCK] = {"landlock",
                       "No full jail works. With --on-unsupported warn a command runs under "
                       "Landlock and seccomp."},
    [RUNG_LIMITS] = {"limits", "No full jail works. With --on-unsupported warn a command runs "
                               "with limits only."},
    [RUNG_NONE] = {"none", "No jail works."},
};

struct verdict {
    enum rung rung;
    struct brig_unenforced unenforced; /* of the best run that succeeded */
    char error[BRIG_MESSAGE_MAX];      /* why the full jail failed; may be empty */
};

/* Runs a program that does nothing in a sealed jail. True if it ran and exited with 0. */
static bool try_jail(enum brig_on_unsupported on_unsupported, struct verdict *verdict)
{
    const char *program = access("/bin/true", X_OK) == 0 ? "/bin/true" : "/usr/bin/true";
    const char *const argv[] = {program, NULL};
    struct brig_command command = {.size = sizeof(struct brig_command), .argv = argv};
    struct brig_result result = {0};
    struct brig_error err = {0};
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);
    if (!policy)
        return false;
    bool worked = brig_policy_on_unsupported(policy, on_unsupported, &err) == 0;
    if (worked) {
        worked = job_run(policy, &command, &result, &err) == 0 && result.outcome == BRIG_EXITED &&
                 result.exit_code == 0;
        verdict->unenforced = result.unenforced;
        if (!worked && err.message[0] == '\0')
            (void)snprintf(err.message, sizeof err.message, "%s in the jail: %s", program,
                           brig_outcome_name(result.outcome));
        result_done(&result);
    }
    brig_policy_free(policy);
    char *advice = strstr(err.message, " Run `brig doctor`");
    if (advice)
        *advice = '\0'; /* the user is doing that already */
    if (!worked && verdict->error[0] == '\0')
        (void)snprintf(verdict->error, sizeof verdict->error, "%s", err.message);
    return worked;
}

/* The broker is a separate program, which this program looks for. */
static void add_broker(struct probe_report *report)
{
    char path[PATH_MAX + 64];
    bool found = net_find_broker(path, sizeof path);
    if (report->count == PROBE_ROWS_MAX)
        return;
    struct probe_row *row = &report->rows[report->count++];
    *row = (struct probe_row){.id = "broker",
                              .label = "network broker",
                              .state = found ? PROBE_OK : PROBE_LIMITED,
                              .meaning = "--net allow and open"};
    (void)snprintf(row->detail, sizeof row->detail, "%s", path);
    if (!found)
        (void)snprintf(row->remedy, sizeof row->remedy,
                       "build it with `make` in the source tree, or `make install`");
}

/* brig has a command for what the library explains with sysctls and profiles. */
static void name_setup(struct probe_report *report)
{
    char program[PATH_LENGTH_MAX + 1];
    autostr struct str command = {0};
    const struct userns_gate *gate = userns_find_gate("", geteuid() == 0);
    if (!gate->setting || !path_resolve("/proc/self/exe", program))
        return;
    allow_userns_command(program, &command);
    for (size_t i = 0; i < report->count && !command.failed; i++) {
        struct probe_row *row = &report->rows[i];
        if (strcmp(row->remedy, gate->fix) == 0 && command.length < sizeof row->remedy)
            (void)snprintf(row->remedy, sizeof row->remedy, "%s", command.data);
    }
}

static struct verdict decide(const struct probe_report *report)
{
    struct verdict verdict = {.rung = RUNG_FULL};
    if (try_jail(BRIG_UNSUPPORTED_FAIL, &verdict))
        return verdict;
    verdict.rung = RUNG_NONE;
    if (try_jail(BRIG_UNSUPPORTED_WARN, &verdict)) {
        const struct probe_row *landlock = probe_find(report, "landlock");
        bool has_landlock = landlock && strncmp(landlock->detail, "ABI", 3) == 0;
        verdict.rung = has_landlock ? RUNG_LANDLOCK : RUNG_LIMITS;
    }
    return verdict;
}

/* ---- tokens ---- */

static void add_token_text(void *context, const struct token *token)
{
    struct str *out = context;
    str_append(out, "Token: ");
    tokens_append_line(out, token);
    str_append_char(out, '\n');
}

static void add_token_json(void *context, const struct token *token)
{
    struct json *json = context;
    json_open_object(json, NULL);
    json_text(json, "kind", token->kind);
    json_text(json, "where", token->where);
    json_text(json, "names", token->names);
    json_text(json, "state", token->state);
    json_text(json, "remedy", token->remedy);
    json_close_object(json);
}

/* Searches with the default filters: what a configuration adds is for its jails. */
static void find_tokens(tokens_tell tell, void *context)
{
    char cwd[PATH_LENGTH_MAX + 1];
    struct identity identity;
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_CASUAL);
    int status = policy && getcwd(cwd, sizeof cwd) ? 0 : BRIG_E_SYSTEM;
    identity_find(&identity);
    for (const char *filter = policy_default_filters; status == 0 && *filter;
         filter = policy_next_default(filter))
        status = brig_policy_unsetenv(policy, filter, NULL);
    if (status == 0)
        tokens_find(&(struct tokens_query){.identity = &identity,
                                           .policy = policy,
                                           .cwd = cwd,
                                           .startup = true,
                                           .project = true,
                                           .siblings = true,
                                           .remotes = true,
                                           .tell = tell,
                                           .context = context});
    brig_policy_free(policy);
}

/* ---- Text ---- */

static const char *mark_of(enum probe_state state)
{
    return state == PROBE_MISSING ? "MISSING" : probe_state_name(state);
}

static void print_text(const struct probe_report *report, const struct verdict *verdict,
                       struct str *out)
{
    int width = 0;
    for (size_t i = 0; i < report->count; i++)
        if ((int)strlen(report->rows[i].label) > width)
            width = (int)strlen(report->rows[i].label);
    for (size_t i = 0; i < report->count; i++) {
        const struct probe_row *row = &report->rows[i];
        str_appendf(out, "%-8s %-*s  %s", mark_of(row->state), width, row->label, row->meaning);
        if (row->detail[0])
            str_appendf(out, " (%s)", row->detail);
        str_append_char(out, '\n');
        if (row->remedy[0])
            str_appendf(out, "%-8s %-*s  -> %s\n", "", width, "", row->remedy);
    }
    str_append_char(out, '\n');
    find_tokens(add_token_text, out);
    if (verdict->error[0])
        str_appendf(out, "The attempt: %s\n", verdict->error);
    for (size_t i = 0; i < verdict->unenforced.count; i++)
        str_appendf(out, "Not enforced: %s\n", verdict->unenforced.text[i]);
    str_appendf(out, "%s\n", rungs[verdict->rung].verdict);
}

/* ---- JSON ---- */

static void print_json(const struct probe_report *report, const struct verdict *verdict,
                       struct str *out)
{
    struct json json;
    json_init(&json, out);
    json_open_object(&json, NULL);
    json_bool(&json, "full_jail", verdict->rung == RUNG_FULL);
    json_text(&json, "rung", rungs[verdict->rung].name);
    json_text(&json, "error", verdict->error[0] ? verdict->error : NULL);
    json_open_array(&json, "unenforced");
    for (size_t i = 0; i < verdict->unenforced.count; i++)
        json_text(&json, NULL, verdict->unenforced.text[i]);
    json_close_array(&json);
    json_open_array(&json, "checks");
    for (size_t i = 0; i < report->count; i++) {
        const struct probe_row *row = &report->rows[i];
        json_open_object(&json, NULL);
        json_text(&json, "id", row->id);
        json_text(&json, "label", row->label);
        json_text(&json, "state", probe_state_name(row->state));
        json_text(&json, "detail", row->detail);
        json_text(&json, "meaning", row->meaning);
        json_text(&json, "remedy", row->remedy[0] ? row->remedy : NULL);
        json_close_object(&json);
    }
    json_close_array(&json);
    json_open_array(&json, "tokens");
    find_tokens(add_token_json, &json);
    json_close_array(&json);
    json_close_object(&json);
    str_append_char(out, '\n');
}

static int doctor_run(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
    int known = json ? 2 : 1;
    if (argc > known)
        return command_refuse(app, argc, argv, known, err);
    autofree struct probe_report *report = calloc(1, sizeof *report);
    autostr struct str out = {0};
    if (!report)
        return brig_fail_nomem(err);
    probe_run(getenv("HOME"), report);
    add_broker(report);
    name_setup(report);
    struct verdict verdict = decide(report);
    if (json)
        print_json(report, &verdict, &out);
    else
        print_text(report, &verdict, &out);
    remedy_translate(&out);
    int status = message_print(&out, err);
    return status == 0 && verdict.rung != RUNG_FULL ? STATUS_NO_FULL_JAIL : status;
}

const struct command cmd_doctor = {
    .name = "doctor",
    .summary = "check what this system can enforce, and say how to fix the rest",
    .usage = "[--json]",
    .run = doctor_run,
};
