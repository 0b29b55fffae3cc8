/* SPDX-License-Identifier: MIT */
/* The full-screen view: what it shows and what it is doing. One loop (view.c) waits for keys,
 * signals and the output of verbs; keys.c and actions.c change this struct, draw.c shows it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "review/changes.h"
#include "review/pane.h"
#include "review/screen.h"
#include "review/verbs.h"

enum view_mode {
    VIEW_LIST,
    VIEW_SEARCH, /* a text is being typed */
    VIEW_ASK,    /* a question waits for one key */
    VIEW_TEXT,   /* help, or a long message, until a key */
};

/* An apply, discard or undo: what the user has chosen, then what is being done. */
struct action {
    const char *verb;     /* NULL: none */
    struct str items;     /* see entry_list_item(); of an undo: empty */
    struct str unflagged; /* of these, the ones without a risk */
    struct str reason;    /* of the first risk or conflict */
    size_t count, risky, conflicts;
    bool one_by_one; /* chosen in the list, not as a directory or by marks */
    bool allow_risky;
    const char *conflict; /* the answer, or NULL */
    struct verb_child child;
    struct str output;
};

struct view {
    const struct verbs *verbs;
    struct changes *changes;

    /* The next list, while `brig status` is running. */
    struct changes *incoming;
    struct changes_reader reader;
    struct verb_child status;
    bool broken; /* its text was not understood */

    size_t cursor, top; /* rows */
    enum view_mode mode;
    bool in_diff; /* keys go to the diff, not to the list */
    int list_height, diff_height;

    struct pane diff;
    struct verb_child diff_child;
    uint64_t diff_at; /* when to start it, of clock_now_ms(); 0: not wanted */
    bool stale;       /* the file has changed since the list was read */

    struct pane text; /* of VIEW_TEXT */
    const char *title;

    struct str search, search_before;
    size_t search_from;

    struct str message; /* in the last line, until the next key */
    enum screen_style message_style;

    struct str question;
    void (*answer)(struct view *view, int key);
    struct action action;
    bool acted; /* something was applied or discarded here, so undo means that */

    bool quit;
    int failed; /* the exit status, if the changes cannot be read */
    struct str error;
};

/* view.c */
void view_say(struct view *view, enum screen_style style, const char *text);
void view_show_text(struct view *view, const char *title, const char *text, size_t length);
/* Starts `brig status`; the list is replaced when it ends. */
void view_reload(struct view *view);
/* Moves the cursor; the diff follows soon. */
void view_move_to(struct view *view, size_t row);
const struct row *view_row(const struct view *view); /* NULL if the list is empty */
/* Runs the view; returns the exit status. False if the terminal cannot show it. */
bool view_run(const struct verbs *verbs, int *ret_status);

/* draw.c */
void view_draw(struct view *view);

/* keys.c */
void view_key(struct view *view, int key);
void view_ask(struct view *view, void (*answer)(struct view *view, int key));

/* actions.c */
enum action_scope { ACTION_ROW, ACTION_MARKED };
void action_begin(struct view *view, const char *verb, enum action_scope scope);
void action_undo(struct view *view);
void action_hunks(struct view *view);
/* Reads the output of the verb, or ends the action. */
void action_continue(struct view *view);
void action_done(struct action *action);
