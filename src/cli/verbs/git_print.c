/* SPDX-License-Identifier: MIT */
#include "cli/verbs/git_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "changes/inventory.h"

#define COMMITS_SHORT 20 /* listed of an item */
#define NS INT64_C(1000000000)
#define TIME_MAX_S (INT64_MAX / NS)

/* ---- text ---- */

static void append_shown(struct str *out, const char *text)
{
    if (text)
        str_append_shown(out, text, strlen(text), "");
}

static const char *short_name(const char *name)
{
    bool shortens = str_starts_with(name, "refs/heads/") || str_starts_with(name, "refs/tags/");
    return shortens ? strchr(name + strlen("refs/"), '/') + 1 : name;
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
        str_concat(out, file->reason ? "  ! " : "", file->reason ? file->reason : "",
                   file->reason ? names_class_words(file->class) : "", "\n");
    }
    if (commit->more > 0)
        str_appendf(out, "        and %" PRIu64 " more files\n", commit->more);
}

/* "is dropped", the number of commits, or the value of a setting. */
static void append_what(struct str *out, const struct inventory_item *item)
{
    const struct git_item *git = item->git;
    if (git->kind == GIT_ITEM_PLACED)
        str_append(out, "is created");
    else if (!git->new && !git->new_tree)
        str_append(out, "is dropped");
    else if (git->kind == GIT_ITEM_CONFIG) {
        append_shown(out, git->old ? git->old : "not set");
        str_append(out, " → ");
        append_shown(out, git->new);
    } else
        str_append_count(out, item->range->total, "commit");
}

static void print_text(struct git_printer *printer, const struct inventory_item *item)
{
    struct str *out = printer->out;
    const struct range *range = item->range;
    uint64_t listed = 0, again = 0;
    str_concat(out, "  G  ", kind_of(item->git), " ");
    append_shown(out, short_name(item->path));
    str_append(out, "  ");
    append_what(out, item);
    if (item->risk)
        str_concat(out, "  ! ", item->risk, names_class_words(item->class));
    str_append_char(out, '\n');
    for (size_t i = 0; i < range->count; i++) {
        const struct range_commit *commit = &range->commits[i];
        if (*commit->id && str_list_has(&printer->listed, commit->id)) {
            again++;
            continue;
        }
        if (*commit->id && printer->form == GIT_PRINT_SHORT && listed >= COMMITS_SHORT)
            continue;
        listed += *commit->id != '\0';
        if (*commit->id)
            str_list_add(&printer->listed, commit->id);
        print_commit(printer, commit);
    }
    if (again > 0)
        str_appendf(out, "      %s%" PRIu64 " that %s above\n", listed > 0 ? "and " : "", again,
                    again == 1 ? "is" : "are");
    if (range->total > listed + again)
        str_appendf(out, "      and %" PRIu64 " more commits\n", range->total - listed - again);
}

/* ---- JSON ---- */

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
            json_text(json, "class", names_class_name(file->class));
        }
        json_close_object(json);
    }
    json_close_array(json);
    if (commit->more > 0)
        json_uint(json, "more", commit->more);
    json_close_object(json);
}

static void print_json(struct json *json, const char *root, const struct inventory_item *item)
{
    static const char *const kinds[] = {"ref", "worktree", "stash", "config", "repository"};
    const struct git_item *git = item->git;
    json_open_object(json, NULL);
    json_text(json, "root", root);
    json_text(json, "repository", git->top);
    json_text(json, "kind", kinds[git->kind]);
    json_text(json, "name", item->path);
    json_text(json, "old", git->old);
    json_text(json, "new", git->new);
    if (git->kind == GIT_ITEM_WORKTREE) {
        json_text(json, "old_head", git->old_head);
        json_text(json, "old_tree", git->old_tree);
        json_text(json, "new_tree", git->new_tree);
    }
    json_text(json, "token", item->token.text);
    json_uint(json, "count", item->range->total);
    json_open_array(json, "commits");
    for (size_t i = 0; i < item->range->count; i++)
        json_commit(json, &item->range->commits[i]);
    json_close_array(json);
    if (item->risk) {
        json_text(json, "risk", item->risk);
        json_text(json, "class", names_class_name(item->class));
    }
    json_close_object(json);
}

void git_print_item(struct git_printer *printer, const char *root,
                    const struct inventory_item *item)
{
    printer->items++;
    printer->risky += item->risk != NULL;
    if (printer->writer)
        print_json(printer->writer, root, item);
    else
        print_text(printer, item);
}
