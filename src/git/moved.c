/* SPDX-License-Identifier: MIT */
#include "git/moved.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/record.h"
#include "git/take.h"

#define TOLD_MAX 3 /* entries that are named */
#define ID_SHOWN 7 /* digits of an object */

/* The entry that is read. */
struct moved_entry {
    int more; /* old values than new ones */
    char kind[16], name[PATH_LENGTH_MAX + 1], old[PATH_LENGTH_MAX + 1], new[PATH_LENGTH_MAX + 1];
};

struct reading {
    struct str *what;
    struct moved_entry entry;
    size_t told, more;
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

/* Begins one more of them; false: it is only counted. */
static bool tell(struct reading *r, const char *text)
{
    if (r->told >= TOLD_MAX) {
        r->more++;
        return false;
    }
    str_concat(r->what, r->told++ > 0 ? ", " : "", text);
    return true;
}

static void tell_ref(struct reading *r)
{
    const struct moved_entry *e = &r->entry;
    bool moves = *e->old && *e->new;
    if (!tell(r, moves ? "moved " : *e->old ? "deleted " : "made "))
        return;
    append_name(r->what, e->name);
    if (!moves)
        return;
    str_append(r->what, " from ");
    append_name(r->what, e->old);
    str_append(r->what, " to ");
    append_name(r->what, e->new);
}

static void end_entry(struct reading *r)
{
    static const char *const texts[][2] = {{"index", "changed the index"},
                                           {"stashes", "changed the stashes"},
                                           {"config", "set an upstream or a remote"}};
    struct moved_entry *e = &r->entry;
    bool moved = strcmp(e->old, e->new) != 0 || e->more != 0;
    for (size_t i = 0; i < ARRAY_LENGTH(texts) && moved; i++)
        if (strcmp(e->kind, texts[i][0]) == 0)
            (void)tell(r, texts[i][1]);
    if (moved && strcmp(e->kind, "ref") == 0)
        tell_ref(r);
    if (moved && strcmp(e->kind, "head") == 0 && *e->old && *e->new &&tell(r, "switched to "))
        append_name(r->what, e->new);
    if (strcmp(e->kind, "placed") == 0 &&
        tell(r, *e->new ? "made the repository " : "took away the repository "))
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
    while (record_next(&text, &place, &key, &value))
        take_line(r, key, value);
    end_entry(r);
    if (r->more > 0)
        str_appendf(ret_what, " and %zu more", r->more);
    return 1;
}
