/* SPDX-License-Identifier: MIT */
/* The home that a holder keeps mounted. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/path.h"
#include "home/fuse.h"
#include "home/holder.h"
#include "home/mounts.h"
#include "home/overlay_startup.h"

/* Changes from an incompatible overlay are neither used nor deleted. */
static int find_changes(struct holder *holder, enum storage_layers layers,
                        struct holder_answer *answer, int *ret_changes, struct brig_error *err)
{
    autoclose int changes =
        storage_part(holder->storage, holder->name, "changes", &answer->created, err);
    const char *reason;
    if (changes < 0)
        return changes;
    autoclose int work = storage_work(changes, holder->name, err);
    if (work < 0)
        return work;
    if (storage_misfits(changes, work, layers, &reason)) {
        char name[STORAGE_NAME_MAX];
        int fresh = storage_set_aside(changes, name, err);
        if (fresh < 0)
            return fresh;
        (void)close(changes);
        changes = fresh;
        answer->created = true;
        const char *home = holder->masks.real;
        if (home && path_is_beneath(home, name))
            (void)overlay_masks_hide(&holder->masks, name + strlen(home) + 1, NULL);
        (void)snprintf(
            answer->notice, sizeof answer->notice,
            "the changes of the jail '%s' are set aside in '%.512s', and it has new ones: "
            "%s",
            holder->name, name, reason);
    }
    *ret_changes = take_fd(&changes);
    return 0;
}

static int refuse_mount(const char *point, const char *remedy, struct brig_error *err)
{
    (void)brig_fail(err, BRIG_E_SETUP, 0,
                    "the home directory cannot be copy-on-write, because '%s' is mounted below "
                    "it",
                    point);
    return brig_advise(err, BRIG_E_SETUP, "Unmount it, or %s, or use -m bare", remedy);
}

/* In a user namespace the kernel refuses an overlay over a directory that contains mounts. */
static int own_overlay(struct holder *holder, int home, pid_t asking, const char *label,
                       struct holder_answer *answer, struct brig_error *err)
{
    char point[4096];
    bool below = mounts_has_below(home, asking, point, sizeof point);
    enum storage_layers layers = below ? STORAGE_FUSE : STORAGE_KERNEL;
    const char *remedy = below ? fuse_remedy() : NULL;
    if (remedy)
        return refuse_mount(point, remedy, err);
    autoclose int changes = -1;
    int status = find_changes(holder, layers, answer, &changes, err);
    if (status < 0)
        return status;
    autoclose int work = storage_work(changes, holder->name, err);
    if (work < 0)
        return work;
    if (below) /* fuse-overlayfs must not be in the caller's session */
        (void)setsid();
    __attribute__((cleanup(storage_below_done))) struct storage_below frozen = {0};
    const struct mounts_upper upper = {changes, work, &frozen};
    status = storage_check_upper(changes, holder->name, err);
    if (status == 0)
        status = storage_open_below(holder->storage, holder->name, &frozen, err);
    if (status == 0)
        status = below ? mounts_fuse_overlay(home, &upper, holder->name, holder->lock, err)
                       : mounts_overlay(home, &upper, label, err);
    if (status < 0)
        return status;
    storage_mark(work, layers);
    return overlay_masks_mounted(&holder->masks, changes, answer->created, err);
}

/* Opens the home directory: the fd in the request, or the path that it names. */
static int open_home(const struct home_message *request, const struct holder_given *given,
                     int *ret_fd, struct brig_error *err)
{
    size_t at = 0;
    const char *path = holder_next_text(request, &at);
    int fd = given->fds[HOME_GIVEN_LOWER] >= 0
                 ? fcntl(given->fds[HOME_GIVEN_LOWER], F_DUPFD_CLOEXEC, 0)
             : path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                    : -1;
    if (fd < 0)
        return brig_fail(err, mounts_have_host() ? BRIG_E_SETUP : BRIG_E_STATE, errno,
                         "cannot open the home directory '%s'", path ? path : "");
    *ret_fd = fd;
    return 0;
}

int holder_take_points(struct holder_run *run, struct home_message *request, struct brig_error *err)
{
    size_t length = request->head.mount_points;
    if (length > request->head.length)
        return brig_fail(err, BRIG_E_INVALID, 0, "the mount points are fewer than was said");
    char *copy = malloc(length + 1);
    if (!copy)
        return brig_fail_nomem(err);
    request->head.length -= (uint32_t)length;
    memcpy(copy, request->text + request->head.length, length);
    copy[length] = 0;
    request->text[request->head.length] = 0;
    free(run->mount_points);
    run->mount_points = copy;
    run->mount_points_length = length;
    return 0;
}

struct point {
    enum mounts_part part;
    bool directory;
    const char *path;
};

/* The next mount point of a run; false at the end. */
static bool next_point(const struct holder_run *run, size_t *at, struct point *ret_point)
{
    while (*at < run->mount_points_length) {
        const char *text = run->mount_points + *at;
        *at += strlen(text) + 1;
        if (strlen(text) < 3 || !mask_is_path(text + 2))
            continue;
        *ret_point = (struct point){
            .part = text[0] == HOME_PLACE_TMP   ? MOUNTS_TMP
                    : text[0] == HOME_PLACE_SHM ? MOUNTS_SHM
                    : text[0] == HOME_PLACE_RUN ? MOUNTS_RUN
                    : run->has_overlay          ? MOUNTS_OVERLAY
                                                : MOUNTS_PRIVATE_HOME,
            .directory = text[1] == 'd',
            .path = text + 2,
        };
        return true;
    }
    return false;
}

int holder_pin(struct holder *holder, const struct holder_run *run, struct brig_error *err)
{
    struct point point;
    int status = 0;
    for (size_t at = 0; status == 0 && next_point(run, &at, &point);)
        status = pins_add(&holder->pins, point.part, point.path, point.directory, err);
    return status;
}

static bool is_needed(const void *context, const struct pins_item *item)
{
    const struct holder *holder = context;
    for (size_t i = 0; i < holder->run_count; i++) {
        struct point point;
        for (size_t at = 0; next_point(&holder->runs[i], &at, &point);)
            if (point.part == item->part && path_is_beneath(item->path, point.path))
                return true;
    }
    return false;
}

void holder_unpin(struct holder *holder)
{
    if (pins_drop(&holder->pins, is_needed, holder, holder->run_count == 0))
        overlay_masks_look(&holder->masks);
}

static int mount_overlay(struct holder *holder, const struct home_message *request, int home,
                         const struct holder_given *given, struct holder_answer *answer,
                         struct brig_error *err)
{
    const int *fds = given->fds;
    char label[HOME_NAME_MAX + 16];
    (void)snprintf(label, sizeof label, "brig-%s", holder->name);
    pins_forget(&holder->pins, MOUNTS_OVERLAY);
    mounts_drop_overlay(); /* also removes the remains of a failed attempt */
    int status = overlay_masks_begin(&holder->masks, home, request->text, err);
    if (status == 0)
        status = overlay_masks_add(&holder->masks, request, err);
    if (status < 0)
        return status;
    if (fds[HOME_GIVEN_STORE] < 0)
        return own_overlay(holder, home, given->from, label, answer, err);
    struct storage_below below = {0};
    while (below.count < STORAGE_BELOW_MAX && fds[HOME_GIVEN_BELOW + below.count] >= 0) {
        below.fds[below.count] = fds[HOME_GIVEN_BELOW + below.count];
        below.count++;
    }
    const struct mounts_upper upper = {fds[HOME_GIVEN_CHANGES], fds[HOME_GIVEN_WORK], &below};
    status = mounts_given_overlay(home, fds[HOME_GIVEN_STORE], &upper, label, err);
    return status < 0 ? status
                      : overlay_masks_mounted(&holder->masks, fds[HOME_GIVEN_CHANGES], false, err);
}

/* Notes which directory is below the overlay. It is the one that the run has seen, unless it was replaced just now. */
static int note_place(struct holder *holder, int home, const struct home_message *request,
                      struct brig_error *err)
{
    int status = place_of(home, &holder->place, err);
    return status < 0 || place_equal(&holder->place, &request->head.place)
               ? status
               : brig_fail(err, BRIG_E_SETUP, 0,
                           "'%s' was replaced by another directory meanwhile: start again",
                           request->text);
}

int holder_need_overlay(struct holder *holder, const struct home_message *request,
                        const struct holder_given *given, struct holder_answer *answer,
                        struct brig_error *err)
{
    bool alone = holder->run_count == 1;
    bool other = holder->has_overlay && !place_equal(&holder->place, &request->head.place);
    if (other && !alone)
        return brig_fail(err, BRIG_E_STATE, 0,
                         "'%s' was replaced by another directory, and a run of the jail has the "
                         "old one: end that first (see `brig list`)",
                         request->text);
    if (holder->has_overlay && !other) {
        (void)overlay_startup_show(&holder->masks, NULL); /* the user may have changed them */
        mounts_forget();
        bool plain = holder->masks.set_count == 1 && !holder->masks.covered;
        if (overlay_masks_have(&holder->masks, request) && (!alone || plain))
            return 0;
        answer->news = true;
        if (!alone) {
            int added = overlay_masks_add(&holder->masks, request, err);
            mounts_forget();
            return added;
        }
    }
    holder->has_overlay = false; /* remount it, without the masks of former runs */
    autoclose int home = -1;
    int status = open_home(request, given, &home, err);
    if (status == 0)
        status = note_place(holder, home, request, err);
    if (status == 0)
        status = mount_overlay(holder, request, home, given, answer, err);
    answer->news = true;
    holder->has_overlay = status == 0;
    return status;
}

/* Binds the directories for an overlay, for a later run, because nothing else of the host can be
 * mounted after the copy was detached. */
static void keep_for_overlay(const struct holder *holder, const struct home_message *request)
{
    char name[HOME_NAME_MAX + 16];
    (void)snprintf(name, sizeof name, "%s.changes", holder->name);
    autoclose int home = open(request->text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autoclose int changes = openat(holder->storage, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autoclose int above = changes < 0 ? openat(holder->storage, ".", O_PATH | O_CLOEXEC)
                                      : openat(changes, "..", O_PATH | O_CLOEXEC);
    if (home >= 0)
        (void)mounts_keep_home(home, NULL);
    if (above >= 0)
        (void)mounts_keep_store(above, NULL);
}

int holder_need_home(struct holder *holder, const struct home_message *request,
                     const struct holder_given *given, bool *ret_created, struct brig_error *err)
{
    if (holder->has_home)
        return 0;
    int status;
    if (given->fds[HOME_GIVEN_LOWER] >= 0) {
        status = mounts_given_home(given->fds[HOME_GIVEN_LOWER], err);
    } else {
        autoclose int home = storage_part(holder->storage, holder->name, "home", ret_created, err);
        status = home < 0 ? home : mounts_private_home(home, err);
        if (status == 0 && !holder->has_overlay)
            keep_for_overlay(holder, request);
    }
    holder->has_home = status == 0;
    return status;
}

/* ---- masks that are added during a run ---- */

/* Passes a mask on to a run; false if the run does not read it. */
static bool pass_on(int socket, const struct home_message *request, int done)
{
    const struct iovec part = {.iov_base = (void *)(uintptr_t)request,
                               .iov_len = sizeof request->head + request->head.length};
    return fdpass_send(socket, &part, 1, &done, done >= 0 ? 1 : 0, MSG_DONTWAIT) >= 0;
}

int holder_mask(struct holder *holder, const struct holder_run *asking,
                const struct home_message *request, const struct holder_given *given,
                uint32_t *ret_told, struct brig_error *err)
{
    int status = 0;
    if (holder->has_overlay)
        status = overlay_masks_add(&holder->masks, request, err);
    if (status == 0 && holder->has_overlay)
        overlay_masks_watch(&holder->masks);
    for (size_t i = 0; i < holder->run_count && status == 0; i++) {
        const struct holder_run *run = &holder->runs[i];
        if (run != asking && run->joined && pass_on(run->socket, request, given->fds[0]))
            ++*ret_told;
    }
    return status;
}
