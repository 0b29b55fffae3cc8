/* SPDX-License-Identifier: MIT */
/* Describes what a checkpoint does not contain. */
#include "changes/checkpoint/left_out.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/manifest.h"
#include "changes/checkpoint/checkpoint.h"

static const char *reason(enum manifest_kind kind)
{
    switch (kind) {
    case MANIFEST_TYPE:
        return "not a file, link or directory";
    case MANIFEST_UNREADABLE:
        return "unreadable";
    case MANIFEST_DEEP:
        return "too deep";
    case MANIFEST_RESTLESS:
        return "changed while it was read";
    case MANIFEST_PRESENT:
    case MANIFEST_SINCE:
    case MANIFEST_IGNORED:
    case MANIFEST_LARGE:
    case MANIFEST_HOLES:
    case MANIFEST_MASKED:
        break;
    }
    return "";
}

static struct left_out_list *list_of(struct left_out *left_out, enum manifest_kind kind)
{
    switch (kind) {
    case MANIFEST_IGNORED:
        return &left_out->ignored;
    case MANIFEST_LARGE:
        return &left_out->large;
    case MANIFEST_HOLES:
        return &left_out->holes;
    case MANIFEST_TYPE:
    case MANIFEST_UNREADABLE:
    case MANIFEST_DEEP:
    case MANIFEST_RESTLESS:
        return &left_out->others;
    case MANIFEST_PRESENT:
    case MANIFEST_SINCE:
    case MANIFEST_MASKED:
        break;
    }
    return NULL;
}

void left_out_add(struct left_out *left_out, const struct manifest_entry *entry)
{
    struct left_out_list *list = list_of(left_out, entry->kind);
    if (!list || list->count++ >= LEFT_OUT_SHOWN)
        return;
    struct str *text = &list->names;
    if (text->length > 0)
        str_append(text, ", ");
    str_append_shown(text, entry->path, strlen(entry->path), "");
    str_append(text, S_ISDIR(entry->ident.mode) ? "/ (" : " (");
    if (list != &left_out->others)
        str_append(text, str_size(entry->ident.size).text);
    else
        str_append(text, reason(entry->kind));
    str_append(text, ")");
}

static void left_out_tell_list(const struct left_out_list *list, const char *advice,
                               struct str *text)
{
    if (list->count == 0)
        return;
    str_concat(text, "left out: ", list->names.data);
    if (list->count > LEFT_OUT_SHOWN)
        str_concat(text, " and ", str_number(list->count - LEFT_OUT_SHOWN).text, " more");
    str_concat(text, advice, "\n");
}

void left_out_tell(const struct left_out *left_out, uint64_t most_bytes, struct str *text)
{
    autostr struct str large = {0}, holes = {0};
    str_concat(&large, "; more than ", str_size(most_bytes).text,
               " would be read: --checkpoint does that");
    str_concat(&holes, "; more than ", str_size(CHECKPOINT_HOLE_BYTES).text,
               " of holes would be stored");
    left_out_tell_list(&left_out->large, large.data, text);
    left_out_tell_list(&left_out->holes, holes.data, text);
    left_out_tell_list(&left_out->ignored,
                       "; raise --checkpoint-size to include ignored files of this size", text);
    left_out_tell_list(&left_out->others, "", text);
}

void left_out_done(struct left_out *left_out)
{
    str_done(&left_out->large.names);
    str_done(&left_out->holes.names);
    str_done(&left_out->ignored.names);
    str_done(&left_out->others.names);
    *left_out = (struct left_out){0};
}
