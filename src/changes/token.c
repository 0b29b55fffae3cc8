/* SPDX-License-Identifier: MIT */
#include "changes/token.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/files.h"
#include "base/path.h"
#include "changes/layer/change.h"
#include "changes/layer/walk.h"
#include "git/item.h"

#define PART_BYTES 65536

void token_begin(struct token_maker *maker)
{
    sha256_begin(&maker->hash);
}

void token_add(struct token_maker *maker, const char *text)
{
    if (text)
        sha256_add(&maker->hash, text, strlen(text));
    sha256_add(&maker->hash, text ? "" : "\n", 1); /* NULL differs from "" */
}

struct token token_end(struct token_maker *maker)
{
    char hex[SHA256_HEX_LENGTH + 1];
    struct token token;
    sha256_end(&maker->hash, hex);
    memcpy(token.text, hex, TOKEN_LENGTH);
    token.text[TOKEN_LENGTH] = '\0';
    return token;
}

/* ---- files ---- */

/* Without permission to read, opening a file of a jail changes its ctime: see change_open_after(). */
static bool has_ctime(mode_t mode)
{
    return !S_ISDIR(mode) && (!S_ISREG(mode) || (mode & S_IRUSR));
}

/* The size and times of a directory change whenever something in it does. */
static void add_state(struct token_maker *maker, const struct stat *info)
{
    char text[192];
    struct ident ident = {0};
    if (info->st_mode)
        ident = ident_of(info);
    bool directory = S_ISDIR(ident.mode);
    (void)snprintf(text, sizeof text,
                   "%" PRIx32 " %" PRIx64 " %ju %ju %ju %" PRIu64 " %" PRId64 " %" PRId64,
                   ident.mode, ident.inode, (uintmax_t)(ident.mode ? info->st_uid : 0),
                   (uintmax_t)(ident.mode ? info->st_gid : 0),
                   (uintmax_t)(ident.mode ? info->st_rdev : 0), directory ? 0 : ident.size,
                   directory ? 0 : ident.mtime_ns, has_ctime(ident.mode) ? ident.ctime_ns : 0);
    token_add(maker, text);
}

static int add_entry(void *context, const struct walk_entry *entry, struct brig_error *err)
{
    (void)err;
    token_add(context, entry->path);
    add_state(context, &entry->info);
    return 0;
}

/* What is lost with a directory of the user. */
static void add_tree(struct token_maker *maker, const struct change *change)
{
    if (!S_ISDIR(change->before.st_mode) || S_ISDIR(change->after.st_mode))
        return;
    autoclose int dir = files_open_dir(change->lower_dir, change->name);
    if (dir < 0 || tree_walk(dir, "", add_entry, maker, NULL) < 0)
        token_add(maker, "unreadable");
}

/* False if there are more than TOKEN_CONTENTS_MAX bytes, or they cannot be read. */
static bool add_contents(struct token_maker *maker, const struct change *change)
{
    bool large = (uint64_t)change->after.st_size > TOKEN_CONTENTS_MAX;
    autoclose int fd = large ? -1 : change_open_after(change);
    autofree char *part = malloc(PART_BYTES);
    uint64_t total = 0;
    ssize_t got = -1;
    while (fd >= 0 && part && total <= TOKEN_CONTENTS_MAX) {
        got = read(fd, part, PART_BYTES);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        sha256_add(&maker->hash, part, (size_t)got);
        total += (uint64_t)got;
    }
    return got == 0;
}

struct token token_of_change(const struct change *change, const char *reason, bool contents)
{
    struct token_maker maker;
    char kind[32];
    token_begin(&maker);
    (void)snprintf(kind, sizeof kind, "%d %u", (int)change->kind, change->meta);
    token_add(&maker, kind);
    add_state(&maker, &change->before);
    add_state(&maker, &change->after);
    add_tree(&maker, change);
    token_add(&maker, reason);
    if (S_ISREG(change->after.st_mode) && (contents || !has_ctime(change->after.st_mode)) &&
        !add_contents(&maker, change))
        return (struct token){{0}};
    return token_end(&maker);
}

bool token_fits(const char *token, const struct change *change, const char *reason, bool active)
{
    if (!*token)
        return false;
    if (!active && strcmp(token_of_change(change, reason, false).text, token) == 0)
        return true;
    return strcmp(token_of_change(change, reason, true).text, token) == 0;
}

/* ---- git ---- */

struct token token_of_git(const struct git_item *item, const char *reason)
{
    const char *const texts[] = {item->top,      item->name,     item->old,
                                 item->new,      item->old_head, item->new_head,
                                 item->old_tree, item->new_tree, reason};
    struct token_maker maker;
    char kind[32];
    token_begin(&maker);
    (void)snprintf(kind, sizeof kind, "git %d", (int)item->kind);
    token_add(&maker, kind);
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
        token_add(&maker, texts[i]);
    return token_end(&maker);
}
