/* SPDX-License-Identifier: MIT */
#include "git/seen.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/record.h"

#define SEEN "seen"
#define SEEN_LOOK_MAX ((size_t)4 << 20) /* of more, git is asked again */

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
        else if (strcmp(key, "look") == 0)
            str_append(&ret_seen->look, value);
    if (at.damaged)
        ret_seen->signature = 0;
}

void seen_forget(int folder)
{
    (void)unlinkat(folder, SEEN, 0);
}

void seen_done(struct seen *seen)
{
    str_done(&seen->said);
    str_done(&seen->look);
}

/* How many things differ from base/. */
static uint64_t seen_count(const struct transfer *t)
{
    const struct side *inside = &t->inside, *base = &t->base;
    uint64_t items = strcmp(inside->head, base->head) != 0;
    items += t->unmerged || fetch_has_staged(t) || fetch_has_intents(t);
    items += t->pending[0] != '\0';
    for (size_t i = 0; i < inside->refs.count; i++)
        items += fetch_is_new(t, &inside->refs.items[i]);
    for (size_t i = 0; i < base->refs.count; i++)
        items += !refs_find(&inside->refs, base->refs.items[i].name);
    for (size_t i = 0; i < inside->stash_count; i++)
        items += side_find_stash(base, inside->stashes[i].id) < 0;
    for (size_t i = 0; i < base->stash_count; i++)
        items += side_find_stash(inside, base->stashes[i].id) < 0;
    return items;
}

static int seen_put(const struct private_git *p, uint64_t signature, uint64_t items,
                    const struct str *look, const char *said, struct brig_error *err)
{
    autostr struct str record = {0};
    str_appendf(&record, "signature %" PRIx64 "\n", signature);
    record_add_number(&record, "items", items);
    record_add(&record, "said", said);
    if (look && look->length > 0 && look->length <= SEEN_LOOK_MAX)
        record_add(&record, "look", look->data);
    return record_write(p->folder, SEEN, &record, false, err);
}

int seen_write(const struct transfer *t, const char *said, struct brig_error *err)
{
    return seen_put(t->p, t->signature, seen_count(t), &t->look, said, err);
}

int seen_update(const struct transfer *t, struct brig_error *err)
{
    __attribute__((cleanup(seen_done))) struct seen before;
    seen_read(t->p->folder, &before);
    return before.signature == t->signature && before.look.length > 0
               ? 0
               : seen_write(t, before.said.data, err);
}

int seen_write_count(const struct private_git *p, uint64_t items, struct brig_error *err)
{
    return seen_put(p, private_sign(p), items, NULL, NULL, err);
}
