/* SPDX-License-Identifier: MIT */
/* `brig undo` and `brig log`: the operations of a jail. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/parse.h"
#include "base/str.h"
#include "changes/operation/operation.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/jails.h"
#include "cli/report.h"
#include "cli/verbs/layers.h"
#include "git/git.h"
#include "git/guard.h"

#define SKIPPED 1    /* the exit status if something was not undone */
#define TOLD_MAX 100 /* lines about files that have changed */
#define ID_MAX (UINT64_MAX / 2)
#define CHUNK ((size_t)64 << 10) /* bytes printed at a time */

/* Opens the record of the jail, also if it has no layers left; -1 if there is none. */
static int open_record(const struct verb_layers *layers, struct brig_error *err)
{
    return record_open(layers->setup.settings.storage, layers->setup.settings.jail, err);
}

/* ---- undo ---- */

struct undo_words {
    const char *jail;
    bool force, git;
    uint64_t id;
    int count;
    char **paths;
};

static int parse_undo(const struct app *app, int argc, char **argv, struct undo_words *words,
                      struct brig_error *err)
{
    const struct jails_word options[] = {
        {"--force", &words->force, NULL}, {"--git", &words->git, NULL}, {0}};
    int at = jails_parse_options(app, argc, argv, options, &words->jail, err);
    if (at > 0 && at < argc && parse_uint(argv[at], ID_MAX, 0, &words->id, NULL) == 0)
        at++;
    if (at > 0)
        at = jails_parse_paths(app, argc, argv, at, err);
    if (at < 0)
        return at;
    words->paths = argv + at;
    words->count = argc - at;
    return words->git && words->count > 0
               ? brig_fail(err, BRIG_E_INVALID, 0, "--git takes no paths")
               : 0;
}

static void report(void *context, const char *root, const char *path, const char *reason)
{
    uint64_t *count = context;
    autostr struct str shown = {0};
    verb_append_path(&shown, root, path);
    if ((*count)++ < TOLD_MAX)
        message_warning("not undone: %s: %s", shown.failed ? "" : shown.data, reason);
}

/* Resolves what was typed to absolute paths. A file need not exist any more. */
static int make_paths(const struct undo_words *words, const char **ret_paths,
                      struct brig_error *err)
{
    int status = 0;
    for (int i = 0; i < words->count && status == 0; i++) {
        char *path = NULL;
        status = verb_resolve_path(words->paths[i], &path, err);
        ret_paths[i] = path;
    }
    return status;
}

/* "operation 3 (apply src/main.c) was undone; brig undo 4 reverts that" */
static void tell_undone(int record, int storage, uint64_t undone, uint64_t id, const char *jail)
{
    autostr struct str notes = {0};
    struct operation_info old = {0}, new = {0};
    autostr struct str what = {0};
    if (operation_find(record, undone, &old, NULL) == 0 &&
        operation_find(record, id, &new, NULL) == 0)
        operation_append_name(&what, &old);
    message_note("%soperation %ju%s%s%s was undone; brig undo%s %ju reverts that",
                 new.id && !new.whole ? "a part of " : "", (uintmax_t)undone,
                 what.length > 0 ? " (" : "", what.length > 0 && !what.failed ? what.data : "",
                 what.length > 0 ? ")" : "", jails_option(jail).text, (uintmax_t)id);
    if (new.did[0]) {
        what.length = 0;
        str_append_shown(&what, new.did, strlen(new.did), "");
        message_note("git: %s", what.failed ? "" : what.data);
    } else if (old.has_git) {
        message_note("git stays as it is: brig undo%s %ju without paths reverts that too",
                     jails_option(jail).text, (uintmax_t)undone);
    }
    for (const char *root = NULL; new.whole && (root = str_list_next(&old.roots, root));)
        guard_tell_pending(storage, root, jails_option(jail).text, &notes);
    bool drops = strcmp(old.kind, OPERATION_DISCARD) == 0 && new.whole;
    struct brig_error why = {0};
    int back = drops ? guard_restore(storage, undone, &notes, &why) : 0;
    if (back > 0)
        message_note("git: the jail's branches are back");
    else if (back < 0)
        message_warning("git: the jail's branches are not back: %s", why.message);
    message_lines(&notes);
    operation_info_done(&old);
    operation_info_done(&new);
}

static int find_last(void *context, const struct operation_info *info, struct brig_error *err)
{
    (void)err;
    *(uint64_t *)context = info->id;
    return operation_counts(info) && operation_can_undo(info);
}

/* What was undone is the last operation in this directory. Tells about one that is later, or the rest of it. */
static void tell_newer(int record, uint64_t undone, const char *jail)
{
    uint64_t last = 0;
    if (operations_each(record, find_last, &last, NULL) > 0 && last >= undone)
        message_note("operation %ju changed something elsewhere: brig undo%s %ju", (uintmax_t)last,
                     jails_option(jail).text, (uintmax_t)last);
}

struct part {
    char run[OPERATION_RUN_MAX];
    uint64_t before; /* only older operations, so that it ends */
    uint64_t id;
};

static int find_part(void *context, const struct operation_info *info, struct brig_error *err)
{
    struct part *part = context;
    (void)err;
    if (info->id >= part->before || !operation_counts(info) || !operation_can_undo(info) ||
        strcmp(info->run, part->run) != 0)
        return 0;
    part->id = info->id;
    return 1;
}

/* The next operation of the run that the undone one is part of, or 0: --review=auto applies changes in several. */
static uint64_t next_part(int record, uint64_t undone)
{
    struct operation_info info;
    struct part part = {.before = undone};
    if (operation_find(record, undone, &info, NULL) < 0)
        return 0;
    (void)str_fill(part.run, sizeof part.run, info.run);
    operation_info_done(&info);
    return *part.run && operations_each(record, find_part, &part, NULL) > 0 ? part.id : 0;
}

/* The operations that were undone, and those that have undone them. */
struct parts {
    struct {
        uint64_t undone, id;
    } * items;
    size_t count;
};

/* A part could not be undone: the others come back. */
static void redo_parts(const struct verb_layers *layers, int record,
                       const struct operation_undo *how, const struct parts *parts)
{
    uint64_t undone, id;
    struct brig_error err = {0};
    int status = 0;
    for (size_t i = parts->count; i-- > 0 && status == 0;) {
        const struct operation_undo redo = {
            .id = parts->items[i].id, .jail = how->jail, .git = how->git};
        status = operation_undo(&layers->layers, record, &redo, &undone, &id, &err);
    }
    if (status < 0)
        message_warning("a part of the run stays undone: %s", err.message);
}

/* Undoes one operation, or without a number and paths all of its run, or none of them. */
static int undo_parts(const struct verb_layers *layers, int record, const struct undo_words *words,
                      struct operation_undo *how, struct parts *parts, struct brig_error *err)
{
    bool all = words->id == 0 && words->count == 0;
    int status = 0;
    do {
        uint64_t undone = 0, id = 0;
        status = array_grow(&parts->items, parts->count)
                     ? operation_undo(&layers->layers, record, how, &undone, &id, err)
                     : brig_fail_nomem(err);
        if (status < 0)
            break;
        parts->items[parts->count].undone = undone;
        parts->items[parts->count++].id = id;
        how->id = all ? next_part(record, undone) : 0;
    } while (how->id != 0);
    if (status < 0)
        redo_parts(layers, record, how, parts);
    return status;
}

static int undo(const struct verb_layers *layers, int record, const struct undo_words *words,
                struct brig_error *err)
{
    uint64_t told = 0;
    const char **paths = calloc((size_t)words->count + 1, sizeof *paths);
    const char *here = words->count == 0 && words->id == 0 ? verb_layers_here(layers) : NULL;
    int status = paths ? make_paths(words, paths, err) : brig_fail_nomem(err);
    struct git git = {0};
    autostr struct str notes = {0};
    autoclose int storage =
        jails_open_git(layers->setup.settings.storage, layers->setup.settings.jail);
    if (status == 0)
        status = git_find(&git, (const char *const *)environ, layers->setup.settings.policy,
                          GIT_USER_SELF, err);
    struct operation_undo how = {.id = words->id,
                                 .paths = words->count > 0 ? paths
                                          : here           ? &here
                                                           : NULL,
                                 .path_count = here ? 1 : (size_t)words->count,
                                 .here = here != NULL,
                                 .force = words->force,
                                 .only_git = words->git,
                                 .jail = layers->setup.settings.jail,
                                 .git = {&git, storage, &notes},
                                 .report = report,
                                 .context = &told};
    struct parts parts = {0};
    interrupt_begin(layers->setup.settings.jail);
    if (status == 0)
        status = undo_parts(layers, record, words, &how, &parts, err);
    interrupt_end();
    for (int i = 0; paths && i < words->count; i++)
        free((void *)(uintptr_t)paths[i]);
    free(paths);
    git_done(&git);
    message_lines(&notes);
    if (told > TOLD_MAX)
        message_warning("%ju more files were not undone", (uintmax_t)(told - TOLD_MAX));
    for (size_t i = 0; i < parts.count && status == 0; i++)
        tell_undone(record, storage, parts.items[i].undone, parts.items[i].id,
                    layers->setup.settings.jail);
    uint64_t first = parts.count > 0 ? parts.items[0].undone : 0;
    free(parts.items);
    if (status < 0)
        return status;
    if (here)
        tell_newer(record, first, layers->setup.settings.jail);
    return told > 0 ? SKIPPED : 0;
}

static int run_undo(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    struct undo_words words = {0};
    autofree struct verb_layers *layers = calloc(1, sizeof *layers);
    int status = layers ? parse_undo(app, argc, argv, &words, err) : brig_fail_nomem(err);
    if (status == 0)
        status = verb_layers_settled(layers, cmd_undo.name, words.jail, err);
    if (status < 0)
        return status;
    autoclose int record = open_record(layers, err);
    status = record < 0 ? record : 0;
    autoclose int lock = status < 0                 ? -1
                         : layers->layers.count > 0 ? layers_lock(&layers->layers, err)
                                                    : record_lock(record, err);
    if (status == 0 && lock < 0)
        status = lock;
    if (status == 0)
        status = undo(layers, record, &words, err);
    verb_layers_done(layers);
    return status;
}

/* ---- log ---- */

struct listing {
    struct str out;
    struct json json;
    struct jails_option jail;
    bool as_json;
    uint64_t id; /* 0: all */
    uint64_t count;
};

static void append_time(struct str *out, int64_t time_ns)
{
    struct tm local;
    char text[32] = "-";
    time_t seconds = (time_t)(time_ns / CLOCK_SECOND_NS);
    if (localtime_r(&seconds, &local))
        (void)strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
    str_append(out, text);
}

static void append_number(struct str *out, const char *before, uint64_t number, const char *after)
{
    str_concat(out, before, str_number(number).text, after);
}

static void list_line(struct str *out, const struct operation_info *info, const char *jail)
{
    str_append(out, "#");
    append_number(out, "", info->id, "  ");
    append_time(out, info->time_ns);
    str_concat(out, "  ", info->kind);
    if (info->has_steps)
        append_number(out, "  ", info->changes, info->changes == 1 ? " change" : " changes");
    if (info->skipped)
        append_number(out, ", ", info->skipped, " left out");
    if (info->text[0]) {
        str_append(out, "  ");
        str_append_shown(out, info->text, strlen(info->text), "");
    }
    if (info->did[0]) {
        str_append(out, "  (git: ");
        str_append_shown(out, info->did, strlen(info->did), "");
        str_append_char(out, ')');
    }
    bool hold = strcmp(info->kind, OPERATION_HOLD) == 0;
    if (info->undone_by)
        append_number(out, hold ? "  (kept by #" : "  (undone by #", info->undone_by, ")");
    else if (hold && info->files == OPERATION_LISTED && !info->has_steps)
        str_append(out, "  (discarded)");
    if (info->interrupted)
        str_concat(out, "  (interrupted: brig apply", jail, " --continue or --abort)");
    str_append_char(out, '\n');
}

static void list_json(struct json *json, const struct operation_info *info)
{
    json_open_object(json, NULL);
    json_uint(json, "id", info->id);
    json_text(json, "kind", info->kind);
    json_int(json, "time_ns", info->time_ns);
    if (info->end_ns)
        json_int(json, "end_ns", info->end_ns);
    json_text(json, "text", info->text);
    if (info->has_steps) {
        json_uint(json, "changes", info->changes);
        json_uint(json, "skipped", info->skipped);
    }
    json_text(json, "files", operation_effect_word(info->files));
    json_text(json, "git", operation_effect_word(info->git));
    if (info->did[0])
        json_text(json, "did", info->did);
    json_bool(json, "undoable", operation_can_undo(info));
    if (info->undoes)
        json_uint(json, "undoes", info->undoes);
    if (info->undone_by)
        json_uint(json, "undone_by", info->undone_by);
    json_bool(json, "interrupted", info->interrupted);
    if (info->fields) { /* it is JSON already */
        str_append(json->out, ",\"fields\":");
        str_append(json->out, info->fields);
    }
    json_close_object(json);
}

static int list_operation(void *context, const struct operation_info *info, struct brig_error *err)
{
    struct listing *listing = context;
    int status = 0;
    if (listing->id && listing->id != info->id)
        return 0;
    listing->count++;
    if (listing->as_json)
        list_json(&listing->json, info);
    else
        list_line(&listing->out, info, listing->jail.text);
    if (listing->out.length > CHUNK) {
        status = message_print(&listing->out, err);
        str_done(&listing->out);
    }
    return status;
}

static int parse_log(const struct app *app, int argc, char **argv, const char **jail,
                     struct listing *listing, struct brig_error *err)
{
    for (int at = 1; at < argc;) {
        if (jails_take_option(argc, argv, &at, jail))
            continue;
        if (strcmp(argv[at], "--json") == 0)
            listing->as_json = true;
        else if (listing->id || parse_uint(argv[at], ID_MAX, 0, &listing->id, NULL) < 0)
            return command_refuse(app, argc, argv, at, err);
        at++;
    }
    return 0;
}

static int list_all(struct listing *listing, int record, struct brig_error *err)
{
    json_init(&listing->json, &listing->out);
    if (listing->as_json)
        json_open_array(&listing->json, NULL);
    int status = operations_each(record, list_operation, listing, err);
    if (listing->as_json) {
        json_close_array(&listing->json);
        str_append_char(&listing->out, '\n');
    }
    if (status == 0 && listing->id && listing->count == 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "there is no operation %ju. See brig log%s",
                         (uintmax_t)listing->id, listing->jail.text);
    if (status == 0 && listing->count == 0 && !listing->as_json)
        message_note("the jail has no operations");
    return status < 0 || listing->out.length == 0 ? status : message_print(&listing->out, err);
}

/* A step of one operation. */
static int list_step(void *context, const char *root, const char *path, const char *what,
                     struct brig_error *err)
{
    struct str *out = context;
    int status = 0;
    str_concat(out, "  ", what, " ");
    verb_append_path(out, root, path);
    str_append_char(out, '\n');
    if (out->length > CHUNK) {
        status = message_print(out, err);
        str_done(out);
    }
    return status;
}

static int run_log(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    struct listing listing = {0};
    const char *jail = NULL;
    autofree struct verb_layers *layers = calloc(1, sizeof *layers);
    int status = layers ? parse_log(app, argc, argv, &jail, &listing, err) : brig_fail_nomem(err);
    if (status == 0)
        status = verb_layers_open(layers, cmd_log.name, jail, err);
    if (status < 0)
        return status;
    autoclose int record = open_record(layers, err);
    listing.jail = jails_option(layers->setup.settings.jail);
    status = record < 0 ? record : list_all(&listing, record, err);
    str_done(&listing.out);
    if (status == 0 && listing.id && !listing.as_json) {
        status = operation_steps(record, listing.id, list_step, &listing.out, err);
        if (status == 0 && listing.out.length > 0)
            status = message_print(&listing.out, err);
        str_done(&listing.out);
    }
    verb_layers_done(layers);
    return status;
}

const struct command cmd_undo = {
    .name = "undo",
    .summary = "revert the last operation, or the one with this number",
    .usage = "[-j NAME] [--force] [--git] [ID] [PATH...]",
    .words = COMMAND_WORDS_FILES,
    .run = run_undo,
};

const struct command cmd_log = {
    .name = "log",
    .summary = "list runs and what was applied, discarded and undone",
    .usage = "[-j NAME] [--json] [ID]",
    .words = COMMAND_WORDS_FILES,
    .run = run_log,
};
