/* SPDX-License-Identifier: MIT */
/* Drawing the view. Only the rows on the screen are looked at. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "review/view.h"

#define WIDE_COLUMNS 100 /* from here on list and diff are side by side */
#define STACKED_LINES 12 /* from here on they are one above the other; else one is shown */
#define HINT_LINES 8     /* from here on there is a line with keys */
#define LIST_COLUMNS_MIN 40
#define LIST_COLUMNS_MAX 72
#define LIST_LINES_MIN 5
#define SIZE_COLUMNS 6
#define SIZE_FROM_WIDTH 30 /* a narrower list has no sizes */
#define NAME_COLUMN 4

struct box {
    int y, x, height, width;
};

static void write_text(struct box box, enum screen_style style, const char *text)
{
    struct screen_text where = {.y = box.y, .x = box.x, .width = box.width, .style = style};
    screen_write(&where, text, strlen(text));
}

static void write_str(struct box box, enum screen_style style, const struct str *text)
{
    write_text(box, style, text->data && !text->failed ? text->data : "");
}

/* ---- the list ---- */

static enum screen_style letter_style(char letter)
{
    switch (letter) {
    case 'A':
    case 'R':
        return STYLE_ADDED;
    case 'D':
        return STYLE_REMOVED;
    case 'T':
    case 'M':
    case 'm':
        return STYLE_CHANGED;
    default:
        return STYLE_PLAIN;
    }
}

static void draw_name(struct box box, const struct entry *entry, bool selected)
{
    bool directory = entry_is_directory(entry);
    autostr struct str name = {0};
    str_concat(&name, entry->name > 0 ? "  " : "", entry->path + entry->name, directory ? "/" : "");
    bool sizes = box.width >= SIZE_FROM_WIDTH;
    struct screen_text where = {.y = box.y,
                                .x = box.x + NAME_COLUMN,
                                .width = box.width - NAME_COLUMN - (sizes ? SIZE_COLUMNS : 0),
                                .style = entry->ignored ? STYLE_FAINT : STYLE_PLAIN,
                                .selected = selected};
    screen_write(&where, name.failed ? "" : name.data, name.failed ? 0 : name.length);
    if (!sizes)
        return;
    char size[16] = "";
    bool shown = (!directory && !entry->commits) || entry->bytes > 0;
    (void)snprintf(size, sizeof size, "%*s", SIZE_COLUMNS,
                   shown ? size_text(entry_size(entry)).text : "");
    where.x += where.width;
    where.width = SIZE_COLUMNS;
    where.style = STYLE_FAINT;
    screen_write(&where, size, strlen(size));
}

static void draw_entry(struct box box, const struct entry *entry, bool selected)
{
    char letter = entry_letter(entry);
    struct screen_text where = {.y = box.y, .x = box.x, .width = 1, .selected = selected};
    where.style = STYLE_STRONG;
    screen_write(&where, entry->marked ? "*" : " ", 1);
    where.x++;
    where.style = letter_style(letter);
    screen_write(&where, &letter, 1);
    where.x++;
    where.width = 2;
    bool conflict = entry->conflict != NULL, risk = entry->risk != NULL;
    where.style = conflict ? STYLE_CONFLICT : STYLE_RISK;
    screen_write(&where, conflict ? "C " : risk ? "! " : entry->unreadable ? "? " : "  ", 2);
    if (conflict && risk) {
        where.x++;
        where.width = 1;
        where.style = STYLE_RISK;
        screen_write(&where, "!", 1);
    }
    draw_name(box, entry, selected);
}

static void draw_group(const struct view *view, struct box box, const struct row *row,
                       bool selected)
{
    const struct entry *entry = &view->changes->entries[row->entry];
    const struct review_layer *layer = &view->changes->layers[entry->layer];
    autostr struct str text = {0};
    if (row->kind == ROW_LAYER)
        str_concat(&text, layer->home ? "home " : "", layer->root);
    else
        str_append_bytes(&text, entry->path, entry->name);
    int indent = row->kind == ROW_LAYER ? 0 : NAME_COLUMN;
    struct screen_text where = {.y = box.y, .x = box.x, .width = indent, .selected = selected};
    screen_write(&where, "", 0);
    where.x += indent;
    where.style = row->kind == ROW_LAYER ? STYLE_STRONG : STYLE_DIRECTORY;
    bool counts = box.width >= SIZE_FROM_WIDTH;
    where.width = box.width - indent - (counts ? SIZE_COLUMNS + 2 : 0);
    screen_write(&where, text.failed ? "" : text.data, text.failed ? 0 : text.length);
    if (!counts)
        return;
    char count[16];
    (void)snprintf(count, sizeof count, "%*u", SIZE_COLUMNS + 2, row->count);
    where.x += where.width;
    where.width = SIZE_COLUMNS + 2;
    where.style = STYLE_FAINT;
    screen_write(&where, count, strlen(count));
}

/* Scrolls such that the cursor is on the screen. */
static void place_cursor(struct view *view, size_t height)
{
    size_t count = view->changes ? view->changes->row_count : 0;
    if (view->cursor >= count)
        view->cursor = count > 0 ? count - 1 : 0;
    /* After a jump there is something above and below the cursor. */
    size_t row = view->cursor, margin = height / 3;
    if (row < view->top)
        view->top = view->top - row > 1 ? row - (margin < row ? margin : row) : row;
    else if (height > 0 && row >= view->top + height)
        view->top = row - (row > view->top + height ? height - 1 - margin : height - 1);
    if (count <= height)
        view->top = 0;
    else if (view->top > count - height)
        view->top = count - height;
}

static void draw_list(struct view *view, struct box box)
{
    view->list_height = box.height;
    place_cursor(view, box.height > 0 ? (size_t)box.height : 0);
    const struct changes *changes = view->changes;
    if (!changes || changes->row_count == 0) {
        const char *text = !changes                ? "Reading the changes..."
                           : changes->only_flagged ? "No flagged changes. f shows all."
                                                   : "No changes.";
        write_text(box, STYLE_FAINT, text);
        return;
    }
    for (int i = 0; i < box.height && view->top + (size_t)i < changes->row_count; i++) {
        size_t at = view->top + (size_t)i;
        const struct row *row = &changes->rows[at];
        struct box line = {box.y + i, box.x, 1, box.width};
        if (row->kind == ROW_ENTRY)
            draw_entry(line, &changes->entries[row->entry], at == view->cursor);
        else
            draw_group(view, line, row, at == view->cursor);
    }
}

/* ---- texts ---- */

static enum screen_style diff_style(const char *line, size_t length)
{
    static const struct {
        const char *prefix;
        enum screen_style style;
    } rows[] = {
        {"+++", STYLE_STRONG},   {"---", STYLE_STRONG},       {"@@", STYLE_HUNK},
        {"+", STYLE_ADDED},      {"-", STYLE_REMOVED},        {"diff ", STYLE_STRONG},
        {"index ", STYLE_FAINT}, {"new ", STYLE_FAINT},       {"deleted ", STYLE_FAINT},
        {"old ", STYLE_FAINT},   {"similarity", STYLE_FAINT}, {"rename ", STYLE_FAINT},
        {"! ", STYLE_RISK},      {"C ", STYLE_CONFLICT},      {"Binary ", STYLE_CHANGED},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        size_t size = strlen(rows[i].prefix);
        if (length >= size && memcmp(line, rows[i].prefix, size) == 0)
            return rows[i].style;
    }
    return STYLE_PLAIN;
}

static void draw_pane(const struct pane *pane, struct box box, bool is_diff)
{
    for (int i = 0; i < box.height && pane->top + (size_t)i < pane->count; i++) {
        size_t length;
        const char *line = pane_line(pane, pane->top + (size_t)i, &length);
        struct screen_text where = {.y = box.y + i,
                                    .x = box.x,
                                    .width = box.width,
                                    .skip = pane->left,
                                    .style = is_diff ? diff_style(line, length) : STYLE_PLAIN,
                                    .tabs = true};
        screen_write(&where, line, length);
    }
}

static void draw_diff_head(const struct view *view, struct box box)
{
    const struct row *row = view_row(view);
    autostr struct str text = {0};
    const char *path = row ? view->changes->entries[row->entry].path : "";
    const char *busy = view->diff_child.pid > 0 || view->diff_at ? " ..." : "";
    if (row && row->kind == ROW_ENTRY)
        str_concat(&text, path, busy);
    else if (row && row->kind == ROW_DIRECTORY)
        str_append_bytes(&text, path, view->changes->entries[row->entry].name);
    if (view->stale)
        str_append(&text, "  ! it has changed since the list was read: r reads it again");
    if (view->diff.top > 0)
        str_appendf(&text, "  (line %zu of %zu)", view->diff.top + 1, view->diff.count);
    if (view->diff.cut)
        str_append(&text, "  (cut: see brig diff)");
    write_str(box, view->in_diff ? STYLE_FOCUS : STYLE_HEAD, &text);
}

static void draw_diff(struct view *view, struct box box)
{
    draw_diff_head(view, box);
    box.y++;
    box.height--;
    view->diff_height = box.height;
    draw_pane(&view->diff, box, true);
}

/* ---- lines above and below ---- */

static void append_count(struct str *text, size_t count, const char *what)
{
    if (count > 0)
        str_appendf(text, ", %zu %s", count, what);
}

static void draw_title(const struct view *view, struct box box)
{
    autostr struct str text = {0};
    const struct changes *changes = view->changes;
    str_append(&text, " brig review");
    if (changes) {
        str_concat(&text, "  ", changes->jail ? changes->jail : "");
        str_appendf(&text, "  %zu change%s", changes->count, changes->count == 1 ? "" : "s");
        append_count(&text, changes->flagged, "flagged");
        append_count(&text, changes->conflicts, "in conflict");
        append_count(&text, changes->marked, "marked");
        str_append(&text, changes->only_flagged ? "  [flagged only]" : "");
        str_append(&text, changes->running ? "  [jail is running]" : "");
        if (changes->state > 0)
            str_appendf(&text, "  " CHANGES_STATE, (uintmax_t)changes->state);
    }
    if (view->incoming && view->incoming->count > 0)
        str_appendf(&text, "  reading %zu...", view->incoming->count);
    write_str(box, STYLE_BAR, &text);
}

/* What is known about the change under the cursor. */
static enum screen_style describe_row(const struct view *view, struct str *text)
{
    const struct row *row = view_row(view);
    if (!row || row->kind != ROW_ENTRY)
        return STYLE_PLAIN;
    const struct entry *entry = &view->changes->entries[row->entry];
    if (entry->conflict)
        str_concat(text, "C ", entry->conflict, entry->risk ? "  " : "");
    if (entry->risk)
        str_concat(text, "! ", entry->risk);
    if (entry->unreadable)
        str_concat(text, text->length > 0 ? "  ? " : "? ", entry->unreadable);
    if (text->length > 0)
        return entry->conflict ? STYLE_CONFLICT : STYLE_RISK;
    entry_describe(entry, text);
    return STYLE_PLAIN;
}

static void draw_status(const struct view *view, struct box box)
{
    autostr struct str text = {0};
    enum screen_style style = STYLE_STRONG;
    if (view->mode == VIEW_ASK) {
        return write_str(box, STYLE_STRONG, &view->question);
    } else if (view->mode == VIEW_SEARCH) {
        str_concat(&text, "/", view->search.length > 0 ? view->search.data : "", "_");
    } else if (view->message.length > 0) {
        return write_str(box, view->message_style, &view->message);
    } else if (view->action.child.pid > 0) {
        str_concat(&text, "brig ", view->action.verb, " is running...");
    } else {
        style = describe_row(view, &text);
    }
    write_str(box, style, &text);
}

static void draw_hints(const struct view *view, struct box box)
{
    static const char *const hints[] = {
        " ? help",  "  q quit",   "  a apply",  "  d discard", "  p hunks",   "  space mark",
        "  u undo", "  / search", "  Tab diff", "  f flagged", "  r refresh",
    };
    autostr struct str text = {0};
    for (size_t i = 0; i < ARRAY_LENGTH(hints); i++)
        if (text.length + strlen(hints[i]) <= (size_t)box.width)
            str_append(&text, hints[i]);
    if (view->mode == VIEW_TEXT)
        write_text(box, STYLE_BAR, " any key returns, arrows scroll");
    else
        write_str(box, STYLE_BAR, &text);
}

/* ---- the whole ---- */

static void draw_list_head(const struct view *view, struct box box)
{
    write_text(box, view->in_diff ? STYLE_HEAD : STYLE_FOCUS, "Changes");
}

static void draw_side_by_side(struct view *view, struct box box)
{
    int width = box.width * 2 / 5;
    width = width < LIST_COLUMNS_MIN ? LIST_COLUMNS_MIN : width;
    width = width > LIST_COLUMNS_MAX ? LIST_COLUMNS_MAX : width;
    draw_list_head(view, (struct box){box.y, box.x, 1, width});
    draw_list(view, (struct box){box.y + 1, box.x, box.height - 1, width});
    screen_line_down(box.y, width, box.height);
    draw_diff(view, (struct box){box.y, width + 2, box.height, box.width - width - 2});
}

static void draw_stacked(struct view *view, struct box box)
{
    int height = box.height * 2 / 5;
    height = height < LIST_LINES_MIN ? LIST_LINES_MIN : height;
    draw_list(view, (struct box){box.y, box.x, height, box.width});
    draw_diff(view, (struct box){box.y + height, box.x, box.height - height, box.width});
}

static void draw_body(struct view *view, struct box box)
{
    if (view->mode == VIEW_TEXT) {
        write_text(box, STYLE_FOCUS, view->title);
        view->diff_height = box.height - 1;
        draw_pane(&view->text, (struct box){box.y + 1, box.x, box.height - 1, box.width}, false);
    } else if (box.width >= WIDE_COLUMNS && box.height > 2) {
        draw_side_by_side(view, box);
    } else if (box.height >= STACKED_LINES) {
        draw_stacked(view, box);
    } else if (view->in_diff) {
        draw_diff(view, box);
    } else {
        draw_list(view, box);
    }
}

void view_draw(struct view *view)
{
    int height = screen_height(), width = screen_width();
    bool hints = height >= HINT_LINES;
    screen_begin();
    draw_title(view, (struct box){0, 0, 1, width});
    draw_body(view, (struct box){1, 0, height - 2 - hints, width});
    if (height > 1)
        draw_status(view, (struct box){height - 1 - hints, 0, 1, width});
    if (hints)
        draw_hints(view, (struct box){height - 1, 0, 1, width});
    screen_finish();
}
