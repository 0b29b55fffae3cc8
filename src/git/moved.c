/* SPDX-License-Identifier: MIT */
#include "git/moved.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/files.h"
#include "base/path.h"
#include "base/record.h"
#include "git/take.h"

#define TOLD_MAX 3 /* refs and commands that are named */
#define ID_SHOWN 7 /* digits of an object */

enum moved_kind {
    MOVED_OTHER,
    MOVED_REF,
    MOVED_HEAD,
    MOVED_INDEX,
    MOVED_STASHES,
    MOVED_CONFIG,
    MOVED_PLACED
};

/* The entry that is read. */
struct moved_entry {
    enum moved_kind kind;
    int more; /* old values than new ones */
    char name[PATH_LENGTH_MAX + 1], old[PATH_LENGTH_MAX + 1], new[PATH_LENGTH_MAX + 1];
};

struct reading {
    struct moved *moved;
    struct moved_entry entry;
    char tree[PATH_LENGTH_MAX + 1], head[PATH_LENGTH_MAX + 1];
    size_t trees, told, commands, more;
    bool reversed;
};

/* "main" of refs/heads/main; an object in short. */
static void append_name(struct str *out, const char *name)
{
    bool is_ref = str_starts_with(name, "refs/");
    const char *rest = is_ref ? strchr(name + strlen("refs/"), '/') : NULL;
    const char *shown = rest ? rest + 1 : name;
    size_t length = strlen(shown);
    str_append_shown(out, shown, !is_ref && length > ID_SHOWN ? ID_SHOWN : length, "");
}

/* The same as a word for a shell. */
static void append_word(struct str *out, const char *name)
{
    autostr struct str text = {0};
    append_name(&text, name);
    str_append_word(out, text.data ? text.data : "");
}

/* Whether one more of them is told. */
static bool is_told(struct str *out, size_t *count, const char *between)
{
    if (*count >= TOLD_MAX)
        return false;
    if ((*count)++ > 0)
        str_append(out, between);
    return true;
}

static bool begin_command(struct reading *r, const char *words)
{
    struct str *out = &r->moved->commands;
    if (!is_told(out, &r->commands, " && "))
        return false;
    str_append(out, "git ");
    if (r->trees > 1) {
        str_append(out, "-C ");
        str_append_word(out, r->tree);
        str_append_char(out, ' ');
    }
    str_append(out, words);
    return true;
}

/* The command that brings a ref back. */
static void tell_command(struct reading *r, bool is_tag)
{
    const struct moved_entry *e = &r->entry;
    struct str *out = &r->moved->commands;
    bool current = strcmp(e->name, r->head) == 0;
    bool moves = *e->old && *e->new;
    if (current && !moves)
        return;
    /* Of the current branch: `reset --keep` would want the times of files in the index. */
    const char *words = is_tag ? "tag " : "branch ";
    if (!begin_command(r, current ? "switch -C " : words))
        return;
    if (moves && !current)
        str_append(out, "-f ");
    else if (!*e->old)
        str_append(out, is_tag ? "-d " : "-D ");
    append_word(out, e->name);
    if (!*e->old)
        return;
    str_append_char(out, ' ');
    append_word(out, e->old);
}

static void tell_ref(struct reading *r)
{
    struct str *what = &r->moved->what;
    const struct moved_entry *e = &r->entry;
    if (!is_told(what, &r->told, ", ")) {
        r->more++;
        return;
    }
    if (*e->old && *e->new) {
        str_append(what, "moved ");
        append_name(what, e->name);
        str_append(what, " from ");
        append_name(what, e->old);
        str_append(what, " to ");
        append_name(what, e->new);
    } else {
        str_append(what, *e->old ? "deleted " : "made ");
        append_name(what, e->name);
    }
    tell_command(r, str_starts_with(e->name, "refs/tags/"));
}

static void tell_head(struct reading *r)
{
    const struct moved_entry *e = &r->entry;
    if (!*e->old || !*e->new || !is_told(&r->moved->what, &r->told, ", "))
        return;
    str_append(&r->moved->what, "switched to ");
    append_name(&r->moved->what, e->new);
    if (begin_command(r, str_starts_with(e->old, "refs/") ? "switch " : "switch --detach "))
        append_word(&r->moved->commands, e->old);
}

static void tell_entry(struct reading *r, const char *what)
{
    if (is_told(&r->moved->what, &r->told, ", "))
        str_append(&r->moved->what, what);
}

static void tell_placed(struct reading *r)
{
    autostr struct str text = {0};
    str_concat(&text, *r->entry.new ? "made the repository " : "took away the repository ",
               r->entry.name);
    tell_entry(r, text.failed ? "" : str_shown(text.data).text);
}

static void end_entry(struct reading *r)
{
    if (strcmp(r->entry.old, r->entry.new) != 0 || r->entry.more != 0)
        switch (r->entry.kind) {
        case MOVED_OTHER:
            break;
        case MOVED_INDEX:
            tell_entry(r, "changed the index");
            break;
        case MOVED_REF:
            tell_ref(r);
            break;
        case MOVED_HEAD:
            tell_head(r);
            break;
        case MOVED_STASHES:
            tell_entry(r, "changed the stashes");
            break;
        case MOVED_CONFIG:
            tell_entry(r, "set an upstream or a remote");
            break;
        case MOVED_PLACED:
            tell_placed(r);
            break;
        }
    r->entry.kind = MOVED_OTHER;
    r->entry.old[0] = r->entry.new[0] = '\0';
    r->entry.more = 0;
}

/* What is checked out outside now. */
static void read_head(struct reading *r, const char *git_dir)
{
    autoclose int dir = open(git_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autostr struct str text = {0};
    if (dir >= 0 && files_read(dir, "HEAD", &text) && text.data &&
        str_starts_with(text.data, "ref: "))
        (void)snprintf(r->head, sizeof r->head, "%.*s", (int)strcspn(text.data + 5, "\n"),
                       text.data + 5);
}

static void take_line(struct reading *r, const char *key, const char *value)
{
    struct moved_entry *e = &r->entry;
    if (strcmp(key, "old") == 0 || strcmp(key, "new") == 0) {
        bool is_old = (*key == 'o') != r->reversed;
        char *to = is_old ? e->old : e->new;
        if (!*to)
            (void)str_fill(to, sizeof e->old, value); /* the first of several */
        e->more += is_old ? 1 : -1;
        return;
    }
    end_entry(r);
    r->reversed = r->reversed || strcmp(key, "reversed") == 0;
    if (strcmp(key, "ref") == 0)
        e->kind = MOVED_REF;
    else if (strcmp(key, "head") == 0)
        e->kind = MOVED_HEAD;
    else if (strcmp(key, "index") == 0)
        e->kind = MOVED_INDEX;
    else if (strcmp(key, "stashes") == 0)
        e->kind = MOVED_STASHES;
    else if (strcmp(key, "config") == 0)
        e->kind = MOVED_CONFIG;
    else if (strcmp(key, "placed") == 0)
        e->kind = MOVED_PLACED;
    (void)str_fill(e->name, sizeof e->name, value);
    if (strcmp(key, "tree") == 0) {
        r->head[0] = '\0';
        (void)str_fill(r->tree, sizeof r->tree, value);
    } else if (strcmp(key, "gitdir") == 0) {
        read_head(r, value);
    }
}

int moved_read(int dir, struct moved *ret_moved, struct brig_error *err)
{
    struct moved moved = {0};
    autofree struct reading *r = calloc(1, sizeof *r);
    autostr struct str text = {0};
    struct record_place place = {0};
    const char *key, *value;
    int status = r ? record_read(dir, GIT_RECORD, &text, err) : brig_fail_nomem(err);
    if (status <= 0)
        return status;
    r->moved = &moved;
    for (const char *at = text.data; at && (at = strstr(at, "\ntree ")); at++)
        r->trees++;
    while (record_next(&text, &place, &key, &value))
        take_line(r, key, value);
    end_entry(r);
    if (r->more > 0)
        str_appendf(&moved.what, " and %zu more", r->more);
    *ret_moved = moved;
    return 1;
}

void moved_done(struct moved *moved)
{
    str_done(&moved->what);
    str_done(&moved->commands);
}
