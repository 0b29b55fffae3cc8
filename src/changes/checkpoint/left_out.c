/* SPDX-License-Identifier: MIT */
/* Describes what a checkpoint does not contain. */
#include "changes/checkpoint/left_out.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/manifest.h"

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
    case MANIFEST_MASKED:
        break;
    }
    return "";
}

void left_out_add(struct left_out *left_out, const struct manifest_entry *entry)
{
    bool is_large = entry->kind == MANIFEST_IGNORED;
    struct str *text = is_large ? &left_out->large : &left_out->others;
    uint64_t *count = is_large ? &left_out->large_count : &left_out->other_count;
    if (entry->kind == MANIFEST_MASKED || (*count)++ >= LEFT_OUT_SHOWN)
        return;
    if (text->length > 0)
        str_append(text, ", ");
    str_append_shown(text, entry->path, strlen(entry->path), "");
    str_append(text, S_ISDIR(entry->ident.mode) ? "/ (" : " (");
    if (is_large)
        str_append(text, str_size(entry->ident.size).text);
    else
        str_append(text, reason(entry->kind));
    str_append(text, ")");
}

static void tell(const struct str *names, uint64_t count, const char *advice, struct str *text)
{
    if (count == 0)
        return;
    str_concat(text, "left out: ", names->data);
    if (count > LEFT_OUT_SHOWN)
        str_concat(text, " and ", str_number(count - LEFT_OUT_SHOWN).text, " more");
    str_concat(text, advice, "\n");
}

void left_out_tell(const struct left_out *left_out, struct str *text)
{
    tell(&left_out->large, left_out->large_count,
         "; raise --checkpoint-size to include ignored files of this size", text);
    tell(&left_out->others, left_out->other_count, "", text);
}

void left_out_done(struct left_out *left_out)
{
    str_done(&left_out->large);
    str_done(&left_out->others);
    *left_out = (struct left_out){0};
}
