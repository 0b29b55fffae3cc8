/* SPDX-License-Identifier: MIT */
#include "git/seen.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/record.h"

#define SEEN "seen"

void seen_read(int folder, struct seen *ret_seen)
{
    autostr struct str record = {0};
    struct record_place at = {0};
    const char *key, *value;
    *ret_seen = (struct seen){.items = 1};
    if (record_read(folder, SEEN, &record, NULL) <= 0)
        return;
    while (record_next(&record, &at, &key, &value))
        if (strcmp(key, "signature") == 0)
            ret_seen->signature = strtoumax(value, NULL, 16);
        else if (strcmp(key, "items") == 0)
            ret_seen->items = record_number(value);
        else if (strcmp(key, "said") == 0)
            str_append(&ret_seen->said, value);
    if (at.damaged)
        ret_seen->signature = 0;
}

void seen_done(struct seen *seen)
{
    str_done(&seen->said);
}

/* An item: it has the values of base/ and of the jail. */
static void seen_add(struct str *record, uint64_t *items, const char *key, const char *name,
                     const char *old, const char *new)
{
    if (str_equal(old, new))
        return;
    record_add(record, key, name);
    record_add(record, "old", old);
    record_add(record, "new", new);
    ++*items;
}

static void seen_add_refs(struct str *record, uint64_t *items, const struct transfer *t)
{
    const struct side *inside = &t->inside, *base = &t->base;
    for (size_t i = 0; i < inside->refs.count; i++) {
        const struct ref *ref = &inside->refs.items[i];
        seen_add(record, items, "ref", ref->name, refs_find(&base->refs, ref->name), ref->id);
    }
    for (size_t i = 0; i < base->refs.count; i++) {
        const struct ref *ref = &base->refs.items[i];
        if (!refs_find(&inside->refs, ref->name))
            seen_add(record, items, "ref", ref->name, ref->id, NULL);
    }
    for (size_t i = 0; i < inside->stash_count; i++) {
        const struct side_stash *stash = &inside->stashes[i];
        if (side_find_stash(base, stash->id) < 0)
            seen_add(record, items, "stash", stash->text, NULL, stash->id);
    }
    for (size_t i = 0; i < base->stash_count; i++) {
        const struct side_stash *stash = &base->stashes[i];
        if (side_find_stash(inside, stash->id) < 0)
            seen_add(record, items, "stash", stash->text, stash->id, NULL);
    }
}

static int seen_put(const struct private_git *p, uint64_t signature, uint64_t items,
                    const struct str *found, const char *said, struct brig_error *err)
{
    autostr struct str record = {0};
    str_appendf(&record, "signature %" PRIx64 "\n", signature);
    record_add_number(&record, "items", items);
    if (found && found->length > 0)
        str_append(&record, found->data);
    record_add(&record, "said", said);
    return record_write(p->folder, SEEN, &record, false, err);
}

int seen_write(const struct transfer *t, uint64_t signature, const char *said,
               struct brig_error *err)
{
    autostr struct str found = {0};
    uint64_t items = 0;
    seen_add_refs(&found, &items, t);
    seen_add(&found, &items, "head", "HEAD", t->base.head, t->inside.head);
    if (t->unmerged || fetch_has_staged(t) || fetch_has_intents(t))
        seen_add(&found, &items, "index", "tree", t->base.tree,
                 t->unmerged ? "unmerged" : t->inside.staged);
    if (t->pending[0])
        seen_add(&found, &items, "pending", t->pending, NULL, t->pending);
    if (t->inside.refs.skipped > 0)
        record_add_number(&found, "skipped", t->inside.refs.skipped);
    return found.failed ? BRIG_E_SYSTEM : seen_put(t->p, signature, items, &found, said, err);
}

int seen_write_count(const struct private_git *p, uint64_t items, struct brig_error *err)
{
    return seen_put(p, private_sign(p), items, NULL, NULL, err);
}
