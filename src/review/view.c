/* SPDX-License-Identifier: MIT */
#include "review/view.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fds.h"
#include "review/shown.h"

#define READ_BYTES 65536
#define DIFF_DELAY_MS 40 /* the cursor rests this long before a diff is made */

static void set_text(struct str *to, const char *text)
{
    to->length = 0;
    str_append(to, text);
}

void view_say(struct view *view, enum screen_style style, const char *text)
{
    set_text(&view->message, text);
    view->message_style = style;
}

void view_show_text(struct view *view, const char *title, const char *text, size_t length)
{
    pane_clear(&view->text);
    (void)pane_append(&view->text, text, length);
    view->title = title;
    view->mode = VIEW_TEXT;
}

/* ---- the list ---- */

const struct row *view_row(const struct view *view)
{
    const struct changes *changes = view->changes;
    return changes && view->cursor < changes->row_count ? &changes->rows[view->cursor] : NULL;
}

void view_move_to(struct view *view, size_t row)
{
    view->cursor = row;
    view->diff_at = clock_now_ms() + DIFF_DELAY_MS;
}

void view_reload(struct view *view)
{
    struct brig_error err = {0};
    static const char *const options[] = {"--json", "--grouped", "--", NULL};
    if (view->incoming)
        return;
    view->incoming = calloc(1, sizeof *view->incoming);
    if (!view->incoming)
        return view_say(view, STYLE_RISK, "out of memory");
    view->broken = false;
    changes_reader_init(&view->reader, view->incoming);
    view->incoming->only_flagged = view->changes && view->changes->only_flagged;
    if (verb_start(view->verbs, "status", options, view->verbs->paths, NULL, &view->status, &err) <
        0) {
        free(take_ptr(&view->incoming));
        view_say(view, STYLE_RISK, err.message);
    }
}

static void drop_incoming(struct view *view)
{
    changes_reader_done(&view->reader);
    if (view->incoming)
        changes_done(view->incoming);
    free(take_ptr(&view->incoming));
}

/* Marks in the new list what was marked in the old one and has not changed since. */
static void keep_marks(const struct changes *from, struct changes *to)
{
    for (size_t i = 0; i < from->count && from->marked > 0; i++) {
        const struct entry *entry = &from->entries[i];
        const struct entry *found =
            entry->marked ? changes_find(to, from->layers[entry->layer].root, entry->path) : NULL;
        if (found && entry_is_same(entry, found))
            changes_mark(to, (size_t)(found - to->entries), true);
    }
}

/* Replaces the list, and keeps the cursor where it was. */
static void take_incoming(struct view *view)
{
    struct changes *old = view->changes, *new = view->incoming;
    const struct row *row = view_row(view);
    size_t to = 0;
    if (row && new->row_count > 0) {
        const struct entry *entry = &old->entries[row->entry];
        to = changes_find_row(new, old->layers[entry->layer].root, entry->path);
        if (row->kind != ROW_ENTRY && to > 0 && new->rows[to - 1].kind != ROW_ENTRY)
            to--;
    } else if (new->row_count > 0) {
        while (to + 1 < new->row_count &&new->rows[to].kind != ROW_ENTRY)
            to++;
    }
    if (old) {
        keep_marks(old, new);
        changes_done(old);
        free(old);
    }
    view->changes = take_ptr(&view->incoming);
    changes_reader_done(&view->reader);
    view_move_to(view, to);
}

static void warn_about_state(struct view *view)
{
    char text[192];
    const char *jail = view->changes->jail && *view->changes->jail ? view->changes->jail : NULL;
    if (view->changes->interrupted > 0 && view->message.length == 0) {
        (void)snprintf(
            text, sizeof text,
            "operation %ju was interrupted: run brig apply%s%.80s --continue, or --abort",
            (uintmax_t)view->changes->interrupted, jail ? " -j " : "", jail ? jail : "");
        view_say(view, STYLE_RISK, text);
    }
}

static void finish_status(struct view *view)
{
    autostr struct str errors = {0};
    int status = verb_wait(&view->status, &errors);
    if (status == 0 && !view->broken && changes_finish(&view->reader)) {
        take_incoming(view);
        warn_about_state(view);
        return;
    }
    drop_incoming(view);
    if (errors.length == 0)
        str_append(&errors, "the list of changes that brig status has printed is incomplete\n");
    if (!view->changes) {
        view->quit = true;
        view->failed = status > 0 ? status : 125;
        str_append_bytes(&view->error, errors.data, errors.length);
    } else {
        view_show_text(view, "brig status failed", errors.data, errors.length);
    }
}

static void read_status(struct view *view)
{
    char part[READ_BYTES];
    ssize_t got = read(view->status.output, part, sizeof part);
    if (got > 0)
        view->broken = view->broken || !changes_reader_feed(&view->reader, part, (size_t)got);
    else if (got == 0 || errno != EINTR)
        finish_status(view);
}

/* ---- the diff ---- */

/* For a layer or a directory: what it contains. */
static void show_summary(struct view *view, const struct row *row)
{
    size_t from, to, count = 0, flagged = 0, conflicts = 0;
    uint64_t bytes = 0;
    changes_range(view->changes, view->cursor, &from, &to);
    for (size_t i = from; i < to; i++) {
        const struct entry *entry = &view->changes->entries[i];
        if (!changes_shown(view->changes, entry))
            continue;
        count++;
        flagged += entry->risk != NULL;
        conflicts += entry->conflict != NULL;
        bytes += entry_size(entry);
    }
    autostr struct str text = {0};
    str_appendf(&text, "%s: %zu change%s, size %s\n",
                row->kind == ROW_LAYER ? "all" : "in and below", count, count == 1 ? "" : "s",
                size_text(bytes).text);
    if (flagged > 0)
        str_appendf(&text, "! %zu flagged\n", flagged);
    if (conflicts > 0)
        str_appendf(&text, "C %zu in conflict with your own changes\n", conflicts);
    str_append(&text, "\na applies all of them, d discards them, space marks them.\n");
    if (!text.failed)
        (void)pane_append(&view->diff, text.data, text.length);
}

static void start_diff(struct view *view)
{
    struct brig_error err = {0};
    verb_cancel(&view->diff_child);
    pane_clear(&view->diff);
    view->diff_at = 0;
    view->stale = false;
    const struct row *row = view_row(view);
    if (!row)
        return;
    if (row->kind != ROW_ENTRY)
        return show_summary(view, row);
    const struct entry *entry = &view->changes->entries[row->entry];
    if (entry->commits)
        (void)pane_append(&view->diff, entry->commits, strlen(entry->commits));
    else if (verb_start_diff(view->verbs, view->changes, entry, &view->diff_child, &err) < 0)
        (void)pane_append(&view->diff, err.message, strlen(err.message));
}

static void finish_diff(struct view *view)
{
    autostr struct str errors = {0};
    int status = verb_wait(&view->diff_child, &errors);
    static const char none[] = "no difference in contents\n";
    view->stale = status == VERB_CHANGED;
    if (errors.length > 0)
        (void)pane_append(&view->diff, errors.data, errors.length);
    else if (view->diff.text.length == 0 && status == 0)
        (void)pane_append(&view->diff, none, sizeof none - 1);
}

static void read_diff(struct view *view)
{
    char part[READ_BYTES];
    ssize_t got = read(view->diff_child.output, part, sizeof part);
    if (got > 0) {
        if (!pane_append(&view->diff, part, (size_t)got))
            verb_cancel(&view->diff_child);
    } else if (got == 0 || errno != EINTR) {
        finish_diff(view);
    }
}

/* ---- the loop ---- */

enum { POLL_KEYS, POLL_SIGNALS, POLL_STATUS, POLL_DIFF, POLL_ACTION, POLL_COUNT };

static int child_output(const struct verb_child *child)
{
    return child->pid > 0 ? child->output : -1;
}

/* Returns the number of a signal that ends the program, or 0. */
static int take_signal(struct view *view)
{
    int number = screen_take_signal();
    if (number == SIGINT && view->mode != VIEW_LIST) {
        view_key(view, SCREEN_ESCAPE);
        return 0;
    }
    return number;
}

static void take_keys(struct view *view, short events)
{
    int key;
    bool any = false;
    while (!view->quit && (key = screen_key())) {
        view_key(view, key);
        any = true;
    }
    /* The terminal is gone. */
    if (!any && (events & (POLLHUP | POLLERR | POLLNVAL)))
        view->quit = true;
}

static int diff_timeout(const struct view *view)
{
    if (view->diff_at == 0)
        return -1;
    uint64_t now = clock_now_ms();
    return view->diff_at > now ? (int)(view->diff_at - now) : 0;
}

/* Waits for events and handles them. Returns the number of a signal that ends the program, or 0. */
static int step(struct view *view)
{
    struct pollfd fds[POLL_COUNT] = {
        [POLL_KEYS] = {STDIN_FILENO, POLLIN, 0},
        [POLL_SIGNALS] = {screen_signals(), POLLIN, 0},
        [POLL_STATUS] = {child_output(&view->status), POLLIN, 0},
        [POLL_DIFF] = {child_output(&view->diff_child), POLLIN, 0},
        [POLL_ACTION] = {child_output(&view->action.child), POLLIN, 0},
    };
    if (poll(fds, POLL_COUNT, diff_timeout(view)) < 0)
        return errno == EINTR ? 0 : SIGTERM;
    int number = fds[POLL_SIGNALS].revents ? take_signal(view) : 0;
    if (fds[POLL_STATUS].revents)
        read_status(view);
    if (fds[POLL_DIFF].revents)
        read_diff(view);
    if (fds[POLL_ACTION].revents)
        action_continue(view);
    if (fds[POLL_KEYS].revents)
        take_keys(view, fds[POLL_KEYS].revents);
    /* Not while a question is open or the list is being replaced: the row may be another. */
    if (view->diff_at && clock_now_ms() >= view->diff_at)
        start_diff(view);
    return number;
}

static void view_done(struct view *view)
{
    verb_cancel(&view->status);
    verb_cancel(&view->diff_child);
    drop_incoming(view);
    if (view->changes)
        changes_done(view->changes);
    free(view->changes);
    pane_done(&view->diff);
    pane_done(&view->text);
    str_done(&view->search);
    str_done(&view->search_before);
    str_done(&view->message);
    str_done(&view->question);
    str_done(&view->error);
    action_done(&view->action);
}

/* An apply or discard that is under way is not interrupted. */
static void wait_for_action(struct view *view)
{
    if (view->action.child.pid == 0)
        return;
    (void)fprintf(stderr, "brig: waiting for brig %s\n", view->action.verb);
    while (view->action.child.pid > 0)
        action_continue(view);
}

bool view_run(const struct verbs *verbs, int *ret_status)
{
    struct view view = {.verbs = verbs};
    if (!screen_open())
        return false;
    int number = 0;
    view_reload(&view);
    while (!view.quit && number == 0) {
        view_draw(&view);
        number = step(&view);
    }
    screen_close();
    if (number == 0)
        wait_for_action(&view);
    if (view.error.length > 0) {
        autostr struct str shown = {0};
        str_append_shown(&shown, view.error.data, view.error.length, "\n");
        (void)fputs(shown.failed ? "" : shown.data, stderr);
    }
    *ret_status = number > 0 ? 128 + number : view.failed;
    view_done(&view);
    return true;
}
