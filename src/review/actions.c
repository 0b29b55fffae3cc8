/* SPDX-License-Identifier: MIT */
/* Applying, discarding and undoing: collects the paths, asks, and runs the verb. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "review/view.h"

#define OPTIONS_MAX 5
#define OUTPUT_MAX ((size_t)1 << 20) /* bytes that are kept of what a verb prints */

void action_done(struct action *action)
{
    str_done(&action->items);
    str_done(&action->unflagged);
    str_done(&action->reason);
    str_done(&action->output);
    *action = (struct action){0};
}

static bool is_apply(const struct action *action)
{
    return strcmp(action->verb, "apply") == 0;
}

/* ---- running ---- */

static void start(struct view *view)
{
    struct action *action = &view->action;
    const char *options[OPTIONS_MAX + 1] = {NULL};
    struct brig_error err = {0};
    size_t count = 0;
    bool undo = action->items.length == 0;
    if (action->items.failed || action->unflagged.failed) {
        action_done(action);
        return view_say(view, STYLE_RISK, "out of memory");
    }
    if (!undo)
        options[count++] = "--shown";
    if (action->allow_risky)
        options[count++] = "--risky";
    if (action->conflict) {
        options[count++] = "--conflict";
        options[count++] = action->conflict;
    }
    if (undo)
        options[count++] = "--";
    view->acted = true;
    if (verb_start(view->verbs, action->verb, options, undo ? view->verbs->paths : NULL,
                   &action->items, &action->child, &err) < 0) {
        view_say(view, STYLE_RISK, err.message);
        action_done(action);
    }
}

/* The last line of a text, without its newline and the name of the program. */
static void take_last_line(struct str *text, struct str *line)
{
    while (text->length > 0 && text->data[text->length - 1] == '\n')
        text->data[--text->length] = '\0';
    const char *newline = text->length > 0 ? strrchr(text->data, '\n') : NULL;
    const char *last = newline ? newline + 1 : text->length > 0 ? text->data : "";
    str_append(line, last + (strncmp(last, "brig: ", 6) == 0 ? 6 : 0));
}

static void finish(struct view *view, int status)
{
    struct action *action = &view->action;
    autostr struct str line = {0};
    bool long_text =
        action->output.length > 0 && memchr(action->output.data, '\n', action->output.length - 1);
    if (status != 0 && long_text) {
        view_show_text(view, "Not everything was done", action->output.data, action->output.length);
    } else {
        take_last_line(&action->output, &line);
        if (line.length == 0)
            str_appendf(&line, "brig %s %s", action->verb, status == 0 ? "has ended" : "failed");
        view_say(view, status == 0 ? STYLE_ADDED : STYLE_RISK, line.failed ? "" : line.data);
    }
    action_done(action);
    view->stale = status != 0;
    view_reload(view);
}

void action_continue(struct view *view)
{
    struct action *action = &view->action;
    char part[4096];
    ssize_t got = read(action->child.output, part, sizeof part);
    if (got < 0 && errno == EINTR)
        return;
    if (got > 0) {
        if (action->output.length < OUTPUT_MAX)
            str_append_bytes(&action->output, part, (size_t)got);
        return;
    }
    finish(view, verb_wait(&action->child, &action->output));
}

/* ---- asking ---- */

static void ask_risky(struct view *view);
static void ask_many(struct view *view);

static void cancel(struct view *view)
{
    const char *verb = view->action.verb;
    action_done(&view->action);
    view_say(view, STYLE_PLAIN,
             strcmp(verb, "apply") == 0  ? "nothing was applied"
             : strcmp(verb, "undo") == 0 ? "nothing was undone"
                                         : "nothing was discarded");
}

/* The answer to a question with y/N. */
static void answer_yes(struct view *view, int key)
{
    if (key == 'y' || key == 'Y')
        start(view);
    else
        cancel(view);
}

static void answer_conflict(struct view *view, int key)
{
    static const struct {
        int key;
        const char *answer;
    } answers[] = {{'m', "mine"}, {'t', "theirs"}, {'g', "merge"}, {'s', "skip"}};
    for (size_t i = 0; i < ARRAY_LENGTH(answers); i++)
        if (answers[i].key == key) {
            view->action.conflict = answers[i].answer;
            return ask_risky(view);
        }
    cancel(view);
}

static void ask_conflict(struct view *view)
{
    struct action *action = &view->action;
    if (action->conflicts == 0)
        return ask_risky(view);
    view->question.length = 0;
    if (action->count == 1)
        str_append(&view->question, "Conflict");
    else
        str_appendf(&view->question, "%zu of %zu conflict", action->conflicts, action->count);
    str_append(&view->question, ": m mine, t theirs, g merge, s skip; other keys: cancel");
    view_ask(view, answer_conflict);
}

static void answer_risky(struct view *view, int key)
{
    struct action *action = &view->action;
    action->allow_risky = key == 'y' || key == 'Y';
    if (key == 'o' && action->count > action->risky) {
        struct str rest = action->unflagged;
        action->unflagged = action->items;
        action->items = rest;
        action->count -= action->risky;
        return start(view);
    }
    answer_yes(view, key);
}

static void ask_risky(struct view *view)
{
    struct action *action = &view->action;
    if (action->risky == 0)
        return ask_many(view);
    view->question.length = 0;
    if (action->count == 1)
        str_append(&view->question, "Apply it? y/N  Flagged: ");
    else if (action->risky == action->count)
        str_appendf(&view->question, "Apply all %zu flagged? y/N  ", action->count);
    else
        str_appendf(&view->question,
                    "%zu of %zu flagged: y apply all, o only the others, n nothing: ",
                    action->risky, action->count);
    str_append(&view->question, action->reason.data);
    view_ask(view, answer_risky);
}

static void ask_many(struct view *view)
{
    struct action *action = &view->action;
    if (action->count == 1 && action->one_by_one)
        return start(view);
    view->question.length = 0;
    str_appendf(&view->question, "%s %zu change%s? y/N", is_apply(action) ? "Apply" : "Discard",
                action->count, action->count == 1 ? "" : "s");
    view_ask(view, answer_yes);
}

/* ---- collecting ---- */

static void add_entry(struct view *view, const struct entry *entry)
{
    struct action *action = &view->action;
    entry_list_item(view->changes, entry, &action->items);
    action->count++;
    action->conflicts += entry->conflict != NULL;
    action->risky += entry->risk != NULL;
    if (!entry->risk)
        entry_list_item(view->changes, entry, &action->unflagged);
    else if (action->reason.length == 0)
        str_append(&action->reason, entry->risk);
}

static void collect_range(struct view *view, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (changes_shown(view->changes, &view->changes->entries[i]))
            add_entry(view, &view->changes->entries[i]);
}

static void collect_row(struct view *view)
{
    size_t from, to;
    const struct row *row = view_row(view);
    changes_range(view->changes, view->cursor, &from, &to);
    view->action.one_by_one = row->kind == ROW_ENTRY;
    collect_range(view, from, to);
    if (row->kind == ROW_ENTRY) {
        changes_inside(view->changes, row->entry, &from, &to);
        collect_range(view, from, to);
    }
}

static void collect_marked(struct view *view)
{
    const struct changes *changes = view->changes;
    const struct row *row = view_row(view);
    if (changes->marked > 0) {
        for (size_t i = 0; i < changes->count; i++)
            if (changes->entries[i].marked)
                add_entry(view, &changes->entries[i]);
        return;
    }
    if (row->kind == ROW_LAYER)
        return collect_row(view);
    size_t from, to;
    changes_directory(changes, row->entry, &from, &to);
    collect_range(view, from, to);
}

static bool is_busy(struct view *view)
{
    if (view->action.child.pid == 0)
        return false;
    view_say(view, STYLE_RISK, "the last operation is still running");
    return true;
}

void action_begin(struct view *view, const char *verb, enum action_scope scope)
{
    if (is_busy(view) || !view_row(view))
        return;
    action_done(&view->action);
    view->action.verb = verb;
    if (scope == ACTION_ROW)
        collect_row(view);
    else
        collect_marked(view);
    if (view->action.count == 0)
        action_done(&view->action);
    else if (is_apply(&view->action))
        ask_conflict(view);
    else
        ask_many(view);
}

/* ---- undo and hunks ---- */

void action_undo(struct view *view)
{
    if (is_busy(view))
        return;
    action_done(&view->action);
    view->action.verb = "undo";
    if (view->acted)
        return start(view);
    view->question.length = 0;
    str_append(&view->question, "Undo the last operation, which was not made here? y/N");
    view_ask(view, answer_yes);
}

void action_hunks(struct view *view)
{
    const struct row *row = view_row(view);
    static const char *const options[] = {"-p", "--", NULL};
    if (is_busy(view) || !row)
        return;
    const struct entry *entry = &view->changes->entries[row->entry];
    if (row->kind != ROW_ENTRY || entry->commits)
        return view_say(view, STYLE_PLAIN, "choose a file");
    autostr struct str paths = {0};
    entry_list_path(view->changes, entry, &paths);
    if (paths.failed)
        return;
    screen_leave();
    int status = verb_run_here(view->verbs, "apply", options, &paths);
    (void)printf("%s\nPress Enter to return to brig review. ", status == 0 ? "" : "Not applied.");
    (void)fflush(stdout);
    char c;
    while (read(STDIN_FILENO, &c, 1) == 1 && c != '\n')
        ;
    screen_return();
    view->acted = true;
    view_reload(view);
}
