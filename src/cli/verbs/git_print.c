/* SPDX-License-Identifier: MIT */
#include "cli/verbs/git_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "git/range.h"

#define COMMITS_SHORT 20 /* listed of an item */
#define NS INT64_C(1000000000)
#define TIME_MAX_S (INT64_MAX / NS)

/* ---- text ---- */

static void append_shown(struct str *out, const char *text)
{
    if (text)
        str_append_shown(out, text, strlen(text), "");
}

static const char *name_of(const struct git_item *item)
{
    const char *name = item->kind == GIT_ITEM_WORKTREE ? item->new_head : item->name;
    if (str_starts_with(name, "refs/heads/") || str_starts_with(name, "refs/tags/"))
        return strchr(name + strlen("refs/"), '/') + 1;
    return name;
}

static const char *kind_of(const struct git_item *item)
{
    switch (item->kind) {
    case GIT_ITEM_REF:
        return str_starts_with(item->name, "refs/tags/") ? "tag" : "branch";
    case GIT_ITEM_WORKTREE:
        return "HEAD and index,";
    case GIT_ITEM_STASH:
        return "stash";
    case GIT_ITEM_CONFIG:
        return "setting";
    case GIT_ITEM_PLACED:
        return "new repository";
    }
    return "";
}

static bool is_listed(const struct git_printer *printer, const struct range_file *file)
{
    return printer->form == GIT_PRINT_FILES || file->reason;
}

static void print_commit(const struct git_printer *printer, const struct range_commit *commit)
{
    struct str *out = printer->out;
    if (*commit->id) {
        str_appendf(out, "      %.10s ", commit->id);
        append_shown(out, commit->subject);
        str_append(out, " (");
        append_shown(out, commit->author);
        str_append(out, ")\n");
    } else {
        str_append(out, "      staged\n");
    }
    for (size_t i = 0; i < commit->file_count; i++) {
        const struct range_file *file = &commit->files[i];
        if (!is_listed(printer, file))
            continue;
        str_append(out, "        ");
        str_append_char(out, file->letter);
        str_append(out, "  ");
        append_shown(out, file->path);
        str_concat(out, file->reason ? "  ! " : "", file->reason ? file->reason : "", "\n");
    }
    if (commit->more > 0)
        str_appendf(out, "        and %" PRIu64 " more files\n", commit->more);
}

static void print_text(const struct git_printer *printer, const struct git_item *item,
                       const struct range *range)
{
    struct str *out = printer->out;
    const struct range_mark *mark = range_stops(range);
    uint64_t listed = 0;
    str_concat(out, "  G  ", kind_of(item), " ");
    append_shown(out, name_of(item));
    str_append(out, "  ");
    if (!item->new && !item->new_tree)
        str_append(out, "is dropped");
    else
        str_append_count(out, range->total, "commit");
    if (mark) {
        str_append(out, "  ! ");
        range_append_mark(out, mark);
    }
    str_append_char(out, '\n');
    for (size_t i = 0; i < range->count; i++) {
        const struct range_commit *commit = &range->commits[i];
        if (*commit->id && printer->form == GIT_PRINT_SHORT && listed >= COMMITS_SHORT)
            continue;
        listed += *commit->id != '\0';
        print_commit(printer, commit);
    }
    if (range->total > listed)
        str_appendf(out, "      and %" PRIu64 " more commits\n", range->total - listed);
}

/* ---- JSON ---- */

static const char *class_name(enum range_class class)
{
    static const char *const names[] = {NULL, "when_run", "unasked", "not_judged"};
    return names[class];
}

static void json_commit(struct json *json, const struct range_commit *commit)
{
    json_open_object(json, NULL);
    json_text(json, "id", *commit->id ? commit->id : NULL);
    json_text(json, "author", commit->author);
    json_time(json, "time", commit->time < TIME_MAX_S ? commit->time * NS : 0);
    json_text(json, "subject", commit->subject);
    json_open_array(json, "files");
    for (size_t i = 0; i < commit->file_count; i++) {
        const struct range_file *file = &commit->files[i];
        json_open_object(json, NULL);
        json_text(json, "change", (char[]){file->letter, '\0'});
        json_text(json, "path", file->path);
        if (file->reason) {
            json_text(json, "risk", file->reason);
            json_text(json, "class", class_name(file->class));
        }
        json_close_object(json);
    }
    json_close_array(json);
    if (commit->more > 0)
        json_uint(json, "more", commit->more);
    json_close_object(json);
}

static void print_json(struct json *json, const char *root, const struct git_item *item,
                       const struct range *range)
{
    static const char *const kinds[] = {"ref", "worktree", "stash", "config", "placed"};
    const struct range_mark *mark = range_stops(range);
    autostr struct str risk = {0};
    json_open_object(json, NULL);
    json_text(json, "root", root);
    json_text(json, "repository", item->top);
    json_text(json, "kind", kinds[item->kind]);
    json_text(json, "name", item->kind == GIT_ITEM_WORKTREE ? item->new_head : item->name);
    json_text(json, "old", item->old);
    json_text(json, "new", item->new);
    if (item->kind == GIT_ITEM_WORKTREE) {
        json_text(json, "old_tree", item->old_tree);
        json_text(json, "new_tree", item->new_tree);
    }
    json_uint(json, "count", range->total);
    json_open_array(json, "commits");
    for (size_t i = 0; i < range->count; i++)
        json_commit(json, &range->commits[i]);
    json_close_array(json);
    if (mark) {
        range_append_mark(&risk, mark);
        json_text(json, "risk", risk.data);
        json_text(json, "class", class_name((enum range_class)(mark - range->first)));
    }
    json_close_object(json);
}

void git_print_item(struct git_printer *printer, const char *root, const struct git_item *item,
                    const struct range *range)
{
    printer->items++;
    printer->risky += range_stops(range) != NULL;
    if (printer->writer)
        print_json(printer->writer, root, item, range);
    else
        print_text(printer, item, range);
}
