/* SPDX-License-Identifier: MIT */
/* What each key does. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "base/encode.h"
#include "review/view.h"

#define SEARCH_MAX 200     /* bytes */
#define SIDEWAYS_COLUMNS 8 /* for the left and right arrows */

static const char help[] =
    "Up Down j k        move                      Tab    to the diff and back\n"
    "PgUp PgDn g G      by pages, first, last     < >    scroll the diff\n"
    "Left Right         in the diff: sideways     Enter  to the diff\n"
    "\n"
    "a  apply the change to your files            space  mark, also a whole directory\n"
    "d  discard it                                A      apply all marked changes,\n"
    "p  choose parts of it (hunks)                       else the directory\n"
    "u  undo the last operation                   D      discard them\n"
    "\n"
    "c  to the commits, stashes and staged files (G): the same keys move them\n"
    "/  search; n N next and previous             f      only flagged changes\n"
    "r  read the changes again                    q      quit\n"
    "\n"
    "Letters: D deleted, T type changed, M modified, m only mode, owner or\n"
    "attributes, A added, R added under a new name.\n"
    "!  flagged: it would run, or harm, outside the jail. The reason is in the\n"
    "   line at the bottom. Applying it asks.\n"
    "C  conflict: the file has also changed outside. Applying it asks: keep mine\n"
    "   (your file stays), theirs (the jail's), merge both, or skip.\n"
    "?  cannot be examined or applied; the reason is in the line at the bottom.\n"
    "\n"
    "On a directory, also a new one (A), a and d mean everything in and below it.\n"
    "Applied and discarded changes can be undone: see also brig log.\n";

void view_ask(struct view *view, void (*answer)(struct view *view, int key))
{
    view->answer = answer;
    view->mode = VIEW_ASK;
}

/* ---- moving ---- */

static void move_by(struct view *view, long by)
{
    size_t count = view->changes ? view->changes->row_count : 0;
    if (count == 0)
        return;
    size_t to = view->cursor;
    if (by < 0)
        to -= (size_t)-by < to ? (size_t)-by : to;
    else
        to = (size_t)by < count - 1 - to ? to + (size_t)by : count - 1;
    if (to != view->cursor)
        view_move_to(view, to);
}

/* By how many lines a key moves in a part of the screen of this height; 0 if it is another key. */
static long lines_of_key(int key, int height)
{
    long page = height > 2 ? height - 1 : 1;
    switch (key) {
    case SCREEN_UP:
    case 'k':
        return -1;
    case SCREEN_DOWN:
    case 'j':
        return 1;
    case SCREEN_PAGE_UP:
        return -page;
    case SCREEN_PAGE_DOWN:
        return page;
    case SCREEN_HOME:
    case 'g':
        return -LONG_MAX;
    case SCREEN_END:
    case 'G':
        return LONG_MAX;
    default:
        return 0;
    }
}

/* Keys that move in a text; false if it is another key. */
static bool scroll_key(struct pane *pane, int key, int height)
{
    long by = lines_of_key(key, height);
    if (by != 0)
        pane_scroll(pane, by, height > 1 ? (size_t)height : 1);
    else if (key == SCREEN_LEFT)
        pane->left -= pane->left < SIDEWAYS_COLUMNS ? pane->left : SIDEWAYS_COLUMNS;
    else if (key == SCREEN_RIGHT)
        pane->left += SIDEWAYS_COLUMNS;
    return by != 0 || key == SCREEN_LEFT || key == SCREEN_RIGHT;
}

static bool list_move_key(struct view *view, int key)
{
    long by = lines_of_key(key, view->list_height);
    if (by != 0)
        move_by(view, by);
    return by != 0;
}

/* ---- searching ---- */

static void search_again(struct view *view, bool backwards)
{
    bool found = false;
    if (view->search.length == 0 || !view->changes)
        return;
    if (view->in_diff) {
        found = pane_search(&view->diff, view->search.data, backwards);
    } else {
        size_t row = changes_search(view->changes, view->cursor, view->search.data, backwards);
        found = row != SIZE_MAX;
        if (found)
            view_move_to(view, row);
    }
    if (!found)
        view_say(view, STYLE_RISK, "not found");
}

/* Moves to the first match while the text is being typed. */
static void search_typed(struct view *view)
{
    size_t count = view->changes ? view->changes->row_count : 0;
    if (view->in_diff || count == 0 || view->search.length == 0)
        return;
    size_t before = (view->search_from + count - 1) % count;
    size_t row = changes_search(view->changes, before, view->search.data, false);
    if (row != SIZE_MAX)
        view_move_to(view, row);
}

static void begin_search(struct view *view)
{
    if (!view->changes)
        return;
    view->search_before.length = 0;
    str_append_bytes(&view->search_before, view->search.data, view->search.length);
    view->search.length = 0;
    view->search_from = view->cursor;
    view->mode = VIEW_SEARCH;
}

static void end_search(struct view *view, bool accepted)
{
    view->mode = VIEW_LIST;
    if (view->search.length == 0 || !accepted) {
        view->search.length = 0;
        str_append_bytes(&view->search, view->search_before.data, view->search_before.length);
        if (!accepted)
            view_move_to(view, view->search_from);
        return;
    }
    if (view->in_diff
            ? !pane_search(&view->diff, view->search.data, false)
            : changes_search(view->changes, view->cursor, view->search.data, false) == SIZE_MAX)
        view_say(view, STYLE_RISK, "not found");
}

static void search_key(struct view *view, int key)
{
    struct str *text = &view->search;
    char bytes[8];
    if (key == SCREEN_ENTER || key == SCREEN_ESCAPE)
        return end_search(view, key == SCREEN_ENTER);
    if (key == SCREEN_BACKSPACE) {
        if (text->length > 0) {
            text->length = utf8_cut(text->data, text->length - 1);
            text->data[text->length] = '\0';
        }
    } else if (key >= ' ' && key < KEY_OF_SCREEN && text->length < SEARCH_MAX) {
        int length = snprintf(bytes, sizeof bytes, "%lc", (wint_t)key);
        if (length > 0)
            str_append(text, bytes);
    }
    search_typed(view);
}

/* ---- other keys ---- */

/* Whether all entries of a range that the filter shows are marked. */
static bool all_marked(const struct changes *changes, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (!changes->entries[i].marked && changes_shown(changes, &changes->entries[i]))
            return false;
    return true;
}

static void mark_range(struct changes *changes, size_t from, size_t to, bool marked)
{
    for (size_t i = from; i < to; i++)
        if (changes_shown(changes, &changes->entries[i]))
            changes_mark(changes, i, marked);
}

static void toggle_marks(struct view *view)
{
    size_t from, to, inside_from = 0, inside_to = 0;
    const struct row *row = view_row(view);
    if (!row)
        return;
    changes_range(view->changes, view->cursor, &from, &to);
    if (row->kind == ROW_ENTRY)
        changes_inside(view->changes, row->entry, &inside_from, &inside_to);
    bool marked =
        !all_marked(view->changes, from, to) || !all_marked(view->changes, inside_from, inside_to);
    mark_range(view->changes, from, to, marked);
    mark_range(view->changes, inside_from, inside_to, marked);
    move_by(view, 1);
}

static void toggle_filter(struct view *view)
{
    struct changes *changes = view->changes;
    const struct row *row = view_row(view);
    if (!changes)
        return;
    const struct entry *entry = row ? &changes->entries[row->entry] : NULL;
    if (!changes_filter(changes, !changes->only_flagged))
        return view_say(view, STYLE_RISK, "out of memory");
    view_move_to(view,
                 entry && changes->row_count > 0
                     ? changes_find_row(changes, changes->layers[entry->layer].root, entry->path)
                     : 0);
}

static void move_to_commits(struct view *view)
{
    const struct changes *changes = view->changes;
    for (size_t i = 0; changes && i < changes->row_count; i++)
        if (changes->entries[changes->rows[i].entry].commits)
            return view_move_to(view, i);
    view_say(view, STYLE_PLAIN, "nothing was done in git");
}

static void command_key(struct view *view, int key)
{
    switch (key) {
    case 'q':
        view->quit = true;
        break;
    case '?':
    case 'h':
        view_show_text(view, "Keys", help, sizeof help - 1);
        break;
    case '\t':
    case SCREEN_ENTER:
        view->in_diff = !view->in_diff;
        break;
    case ' ':
        toggle_marks(view);
        break;
    case 'a':
    case 'd':
        action_begin(view, key == 'a' ? "apply" : "discard", ACTION_ROW);
        break;
    case 'A':
    case 'D':
        action_begin(view, key == 'A' ? "apply" : "discard", ACTION_MARKED);
        break;
    case 'p':
        action_hunks(view);
        break;
    case 'u':
        action_undo(view);
        break;
    case 'c':
        move_to_commits(view);
        break;
    case '/':
        begin_search(view);
        break;
    case 'n':
    case 'N':
        search_again(view, key == 'N');
        break;
    case 'f':
        toggle_filter(view);
        break;
    case 'r':
        view_reload(view);
        break;
    case '<':
    case '>':
        pane_scroll(&view->diff, key == '<' ? -view->diff_height / 2 : view->diff_height / 2,
                    view->diff_height > 1 ? (size_t)view->diff_height : 1);
        break;
    case 'l' & 0x1f:
        screen_redraw();
        break;
    default:
        break;
    }
}

static void text_key(struct view *view, int key)
{
    if (key != SCREEN_OTHER && !scroll_key(&view->text, key, view->diff_height))
        view->mode = VIEW_LIST;
}

void view_key(struct view *view, int key)
{
    switch (view->mode) {
    case VIEW_TEXT:
        return text_key(view, key);
    case VIEW_SEARCH:
        return search_key(view, key);
    case VIEW_ASK:
        if (key != SCREEN_OTHER) {
            view->mode = VIEW_LIST;
            view->answer(view, key);
        }
        return;
    case VIEW_LIST:
        break;
    }
    if (key != SCREEN_OTHER)
        view->message.length = 0;
    if (key == SCREEN_ESCAPE)
        view->in_diff = false;
    else if (view->in_diff ? !scroll_key(&view->diff, key, view->diff_height)
                           : !list_move_key(view, key))
        command_key(view, key);
}
