/* SPDX-License-Identifier: MIT */
/* `brig why`: whether a path or a host would be within reach in a jail, and by which rule. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/identity.h"
#include "cli/report.h"
#include "cli/setup.h"
#include "cli/why.h"
#include "policy/policy.h"

/* Nothing of what was asked for is within reach. */
#define EXIT_NOTHING 1
#define LABEL_WIDTH 14

/* A path has a slash, begins as one, or is there. */
static bool is_path(const char *word)
{
    struct stat info;
    if (strstr(word, "://"))
        return false;
    return strchr(word, '/') || word[0] == '.' || word[0] == '~' || lstat(word, &info) == 0;
}

static bool is_within_reach(enum why_state state)
{
    return state == WHY_WRITABLE || state == WHY_READ_ONLY || state == WHY_REACHABLE;
}

static void add_text(struct str *out, const char *word, const struct why_answer *answer)
{
    bool path = answer->written != NULL;
    str_appendf(out, "%s\n", str_shown(word).text);
    if (path && strcmp(answer->path, word) != 0)
        str_appendf(out, "  %-*s%s\n", LABEL_WIDTH, "is", str_shown(answer->path).text);
    str_appendf(out, "  %-*s%s  [%s]\n", LABEL_WIDTH, why_state_name(answer->state),
                str_shown(answer->rule).text, str_shown(answer->origin).text);
    if (!path)
        return;
    if (!answer->exists && !answer->unknown && answer->state == WHY_WRITABLE)
        str_appendf(out, "  %-*s%s\n", LABEL_WIDTH, "exists", "not yet");
    str_appendf(out, "  %-*s%s\n", LABEL_WIDTH, "written", answer->written);
}

static void add_json(struct json *j, const char *word, const struct why_answer *answer)
{
    bool path = answer->written != NULL;
    json_open_object(j, NULL);
    json_text(j, "asked", word);
    json_text(j, "kind", path ? "path" : "host");
    json_text(j, "state", why_state_name(answer->state));
    if (path) {
        json_text(j, "path", answer->path);
        if (answer->unknown)
            json_nothing(j, "exists");
        else
            json_bool(j, "exists", answer->exists);
        json_bool(j, "readable", answer->readable);
        json_bool(j, "writable", answer->writable);
        json_text(j, "written", answer->written);
    } else {
        json_bool(j, "reachable", answer->state == WHY_REACHABLE);
    }
    json_text(j, "rule", answer->rule);
    json_text(j, "origin", answer->origin);
    json_close_object(j);
}

static int answer_one(const struct why *why, const char *word, struct why_answer *ret_answer,
                      struct brig_error *err)
{
    autofree char *path = NULL;
    if (!is_path(word)) {
        why_host(why, word, ret_answer);
        return 0;
    }
    int status = path_make_absolute(why->setup->cwd, word, &path, err);
    if (status < 0)
        return status;
    why_path(why, path, ret_answer);
    return 0;
}

/* The exit status, or a negative code. */
static int answer_all(const struct why *why, int count, char **words, struct str *out,
                      struct brig_error *err)
{
    const struct settings *settings = &why->setup->settings;
    const char *mode = policy_word(POLICY_MODE, settings->mode);
    const char *origin = settings->mode_origin ? settings->mode_origin : SETTINGS_BUILT_IN;
    bool reached = false;
    struct json j;
    json_init(&j, out);
    if (settings->json) {
        json_open_object(&j, NULL);
        json_text(&j, "mode", mode);
        json_text(&j, "mode_origin", origin);
        json_open_array(&j, "answers");
    } else {
        str_appendf(out, "%-*s  %s  [%s]\n", LABEL_WIDTH, "mode", mode, str_shown(origin).text);
    }
    for (int i = 0; i < count; i++) {
        struct why_answer answer;
        int status = answer_one(why, words[i], &answer, err);
        if (status < 0)
            return status;
        reached = reached || is_within_reach(answer.state);
        if (settings->json)
            add_json(&j, words[i], &answer);
        else
            add_text(out, words[i], &answer);
    }
    if (settings->json) {
        json_close_array(&j);
        json_close_object(&j);
        str_append_char(out, '\n');
    }
    return reached ? 0 : EXIT_NOTHING;
}

static int ask(struct setup *setup, int argc, char **argv, int first, struct brig_error *err)
{
    struct why why;
    autostr struct str out = {0};
    if (setup->settings.unmount)
        return brig_fail(err, BRIG_E_INVALID, 0, "-u tears down, and why does nothing");
    int status = policy_validate(setup->settings.policy, err);
    if (status < 0 || (status = why_init(&why, setup, first, argv, err)) < 0)
        return status;
    status = answer_all(&why, argc - first, argv + first, &out, err);
    why_done(&why);
    if (status >= 0 && out.failed)
        return brig_fail_nomem(err);
    int failed = status < 0 ? 0 : write_all(STDOUT_FILENO, out.data, out.length);
    return failed < 0 ? brig_fail(err, BRIG_E_SYSTEM, -failed, "cannot write to standard output")
                      : status;
}

/* At home, where people ask, a run would be refused for its working directory: what one with -D could
 * do is told instead. */
static void leave_out_cwd(struct settings_scan *scan)
{
    char cwd[PATH_LENGTH_MAX + 1];
    struct identity identity;
    if (scan->nocwd || !getcwd(cwd, sizeof cwd))
        return;
    identity_find(&identity);
    scan->nocwd = workdir_is_precious(cwd, &identity) || workdir_is_foreign(cwd, &identity);
    if (scan->nocwd)
        message_note("the working directory '%s' is not granted unless it is asked for: this is "
                     "what holds with -D",
                     str_shown(cwd).text);
}

static int run_why(const struct app *app, int argc, char **argv)
{
    (void)app;
    struct brig_error err = {0};
    struct settings_scan scan;
    struct setup setup;
    int status = settings_scan(argc, argv, &scan, &err);
    if (status == 0 && scan.help)
        return help_print_command(&cmd_why);
    if (status == 0 && scan.command == argc)
        status = brig_fail(&err, BRIG_E_INVALID, 0, "why needs a path or a host to ask about");
    if (status == 0)
        leave_out_cwd(&scan);
    if (status == 0) /* the words are no command, for which there could be a file */
        status = setup_make(&setup, &scan, scan.command, argv, true, &err);
    if (status == 0) {
        status = ask(&setup, argc, argv, scan.command, &err);
        setup_done(&setup);
    }
    if (status >= 0)
        return status;
    message_error("%s", err.message);
    return APP_FAILED;
}

const struct command cmd_why = {
    .name = "why",
    .summary = "tell whether a path or host is within a jail's reach, and by which rule",
    .usage = "[OPTIONS] [--] PATH|HOST...",
    .words = COMMAND_WORDS_PATHS,
    .run = run_why,
};
