/* SPDX-License-Identifier: MIT */
/* The store of brig 0.1 and 0.2: NAME.held/N has `content`, and `about`, texts with a NUL each: the project, the path in it,
 * what would execute it, the number of special files that were left out, and the place of the project, which 0.1 did not
 * write. Without `about` it was not complete, and the file is still in the project. */
#include "changes/operation/hold_old.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/tree.h"
#include "changes/layer/names_list.h"
#include "changes/operation/operation_files.h"

#define STORE_END ".held"
#define PENDING_PREFIX "held-"
#define ABOUT "about"
#define CONTENT "content"
#define ABOUT_TEXTS 5

/* Reads `about`; false if it is not complete. The project is a text of `about`. */
static bool read_about(int item, struct str *about, struct hold *ret_hold)
{
    static const char key[] = PLACE_KEY " ";
    char place[64];
    struct stat info;
    if (fstatat(item, ABOUT, &info, AT_SYMLINK_NOFOLLOW) < 0 || !files_read(item, ABOUT, about))
        return false;
    struct hold hold = {.time_ns = info.st_mtim.tv_sec * CLOCK_SECOND_NS + info.st_mtim.tv_nsec};
    const char *texts[ABOUT_TEXTS] = {0}, *at = NULL;
    for (size_t i = 0; i < ABOUT_TEXTS && (at = str_list_next(about, at)); i++)
        texts[i] = at;
    if (!texts[3])
        return false;
    hold.project = (char *)(uintptr_t)texts[0];
    (void)str_fill(hold.path, sizeof hold.path, texts[1]);
    (void)str_fill(hold.program, sizeof hold.program, texts[2]);
    hold.special = strtoull(texts[3], NULL, 10);
    if (texts[4] && str_starts_with(texts[4], key)) {
        (void)snprintf(place, sizeof place, "%.*s", (int)strcspn(texts[4] + strlen(key), "\n"),
                       texts[4] + strlen(key));
        (void)place_read(place, &hold.place);
    }
    *ret_hold = hold;
    return true;
}

/* Its copy is complete before its content is removed, and it has a number before the rest is. */
static int convert_item(int record, int item, const char *number, struct brig_error *err)
{
    autostr struct str about = {0};
    struct hold hold;
    struct hold_pending pending = HOLD_PENDING_INIT;
    char name[OPERATION_RUN_MAX];
    if (!read_about(item, &about, &hold))
        return 0;
    (void)str_fill(name, sizeof name, PENDING_PREFIX, number);
    int status = hold_open_pending(record, name, &pending, err);
    if (status == 0 && files_exists(item, CONTENT)) {
        hold_pending_done(&pending);
        pending = HOLD_PENDING_INIT;
        (void)str_fill(pending.name, sizeof pending.name, name);
        status = hold_begin(record, &hold, &pending, err);
        status = status < 0 ? status : 1;
    }
    if (status > 0) {
        pending.links = true;
        pending.operation->info.special = hold.special;
        status = hold_complete(&pending, item, CONTENT, err);
    }
    hold_pending_done(&pending);
    return status;
}

int hold_convert(int record, struct brig_error *err)
{
    struct names_list names = {0};
    char jail[LAYER_JAIL_MAX], store_name[LAYER_JAIL_MAX + 16];
    record_jail(record, jail);
    (void)snprintf(store_name, sizeof store_name, "../%s" STORE_END, jail);
    autoclose int store = *jail ? files_open_dir(record, store_name) : -1;
    if (store < 0)
        return 0;
    autoclose int lock = record_lock(record, err);
    int status = lock < 0 ? lock : names_list_read(store, &names, err);
    for (size_t i = 0; i < names.count && status == 0; i++) {
        autoclose int item = files_open_dir(store, names.items[i]);
        if (item >= 0)
            status = convert_item(record, item, names.items[i], err);
        if (status == 0)
            status = tree_remove(store, names.items[i], err);
    }
    names_list_done(&names);
    if (status == 0)
        (void)unlinkat(record, store_name, AT_REMOVEDIR);
    return status < 0 ? brig_wrap(err, status, "cannot convert what an earlier version held back")
                      : 0;
}
