/* SPDX-License-Identifier: MIT */
#include "git/moved.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/record.h"
#include "git/side.h"
#include "git/take.h"

#define TOLD_MAX 3 /* new refs that are named */
#define LOST_MAX 8 /* with the others */
#define ID_SHOWN 7 /* digits of an object */

/* The entry that is read. */
struct moved_entry {
    int more; /* old values than new ones */
    char kind[16], name[PATH_LENGTH_MAX + 1], old[PATH_LENGTH_MAX + 1], new[PATH_LENGTH_MAX + 1];
};

struct reading {
    struct str *what;
    struct moved_entry entry;
    char tree[PATH_LENGTH_MAX + 1], top[PATH_LENGTH_MAX + 1]; /* of the entry; the shortest path */
    size_t repos, told, more;
    bool reversed;
};

/* "main" of refs/heads/main, but refs/notes/commits; an object in short. */
static void append_name(struct str *out, const char *name)
{
    const char *shown = refs_short_name(name);
    str_append_shown(out, shown, refs_is_id(name) ? ID_SHOWN : strlen(shown), "");
}

/* Begins one more of them; false: it is only counted. */
static bool moved_tell(struct reading *r, const char *text, size_t limit)
{
    if (r->told >= limit) {
        r->more++;
        return false;
    }
    str_concat(r->what, r->told++ > 0 ? ", " : "", text);
    return true;
}

/* Where it is, below the first of the working trees, if there are several repositories. */
static void tell_place(const struct reading *r)
{
    const char *below = path_below(r->top, r->tree);
    if (r->repos > 1 && below && *below)
        str_concat(r->what, " in ", str_shown(below).text);
}

static void tell_ref(struct reading *r)
{
    const struct moved_entry *e = &r->entry;
    bool moves = *e->old && *e->new;
    if (!moved_tell(r,
                    moves     ? "moved "
                    : *e->old ? "deleted "
                              : "made ",
                    *e->old ? LOST_MAX : TOLD_MAX))
        return;
    append_name(r->what, e->name);
    if (moves) {
        str_append(r->what, " from ");
        append_name(r->what, e->old);
        str_append(r->what, " to ");
        append_name(r->what, e->new);
    }
    tell_place(r);
}

static void end_entry(struct reading *r)
{
    static const char *const texts[][2] = {{"index", "changed the index"},
                                           {"stashes", "changed the stashes"},
                                           {"config", "set an upstream or a remote"}};
    struct moved_entry *e = &r->entry;
    bool moved = strcmp(e->old, e->new) != 0 || e->more != 0;
    for (size_t i = 0; i < ARRAY_LENGTH(texts) && moved; i++)
        if (strcmp(e->kind, texts[i][0]) == 0 && moved_tell(r, texts[i][1], LOST_MAX))
            tell_place(r);
    if (moved && strcmp(e->kind, "ref") == 0)
        tell_ref(r);
    if (moved && strcmp(e->kind, "head") == 0 && *e->old &&
        *e->new &&moved_tell(r, "switched to ", LOST_MAX)) {
        append_name(r->what, e->new);
        tell_place(r);
    }
    if (strcmp(e->kind, "placed") == 0 &&
        moved_tell(r, *e->new ? "made the repository " : "took away the repository ", LOST_MAX))
        str_append_shown(r->what, e->name, strlen(e->name), "");
    *e = (struct moved_entry){0};
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
    (void)str_fill(e->kind, sizeof e->kind, key);
    (void)str_fill(e->name, sizeof e->name, value);
    if (strcmp(key, "tree") == 0)
        (void)str_fill(r->tree, sizeof r->tree, value);
}

/* The working tree that contains the others. A record can be read once, so this one is a copy. */
static void find_top(struct reading *r, const struct str *text)
{
    autostr struct str copy = {0};
    struct record_place place = {0};
    const char *key, *value;
    str_append_bytes(&copy, text->data, text->length);
    while (!copy.failed && record_next(&copy, &place, &key, &value)) {
        r->repos += strcmp(key, "repo") == 0;
        if (strcmp(key, "tree") == 0 && (!*r->top || strlen(value) < strlen(r->top)))
            (void)str_fill(r->top, sizeof r->top, value);
    }
}

int moved_read(int dir, struct str *ret_what, struct brig_error *err)
{
    autofree struct reading *r = calloc(1, sizeof *r);
    autostr struct str text = {0};
    struct record_place place = {0};
    const char *key, *value;
    int status = r ? record_read(dir, GIT_RECORD, &text, err) : brig_fail_nomem(err);
    if (status <= 0)
        return status;
    r->what = ret_what;
    find_top(r, &text);
    while (record_next(&text, &place, &key, &value))
        take_line(r, key, value);
    end_entry(r);
    if (r->more > 0)
        str_appendf(ret_what, " and %zu more", r->more);
    return 1;
}
