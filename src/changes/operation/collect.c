/* SPDX-License-Identifier: MIT */
#include "changes/operation/collect.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/files.h"
#include "base/str.h"
#include "base/tree.h"
#include "changes/operation/operation_files.h"

struct ids {
    uint64_t *items;
    size_t count;
};

struct collecting {
    int64_t before_ns;
    struct ids needed; /* by operations that stay */
    struct ids old;
};

static int add(struct ids *ids, uint64_t id, struct brig_error *err)
{
    if (!array_grow(&ids->items, ids->count))
        return brig_fail_nomem(err);
    ids->items[ids->count++] = id;
    return 0;
}

static bool has(const struct ids *ids, uint64_t id)
{
    for (size_t i = 0; i < ids->count; i++)
        if (ids->items[i] == id)
            return true;
    return false;
}

/* The newest comes first: an undo before the operation that it has undone. */
static int judge(void *context, const struct operation_info *info, struct brig_error *err)
{
    struct collecting *collecting = context;
    if (!info->interrupted && info->end_ns != 0 && info->end_ns < collecting->before_ns &&
        !operation_is_undecided(info) && !has(&collecting->needed, info->id))
        return add(&collecting->old, info->id, err);
    return info->undoes != 0 ? add(&collecting->needed, info->undoes, err) : 0;
}

int collect_operations(int record, int64_t before_ns, bool dry, struct collected *ret_collected,
                       struct brig_error *err)
{
    struct collecting collecting = {.before_ns = before_ns};
    int status = operations_each(record, judge, &collecting, err);
    autoclose int operations = status < 0 ? status : operations_open(record, err);
    status = operations < 0 ? operations : 0;
    *ret_collected = (struct collected){0};
    for (size_t i = 0; i < collecting.old.count && status == 0; i++) {
        const struct str_number name = str_number(collecting.old.items[i]);
        autoclose int dir = files_open_dir(operations, name.text);
        ret_collected->operations++;
        ret_collected->bytes += dir < 0 ? 0 : tree_size(dir);
        status = dry ? 0 : tree_remove(operations, name.text, err);
    }
    free(collecting.needed.items);
    free(collecting.old.items);
    return status;
}
