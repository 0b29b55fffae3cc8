/* SPDX-License-Identifier: MIT */
/* Paths that a view of the host hides in addition to the policy's masks: other procfs instances,
 * sockets, and files that only groups which could not be dropped can access. */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/mountinfo.h"
#include "base/path.h"
#include "jail/job/result.h"
#include "jail/view/view_build.h"

/* Maximum number of sockets hidden one by one in a host view. Each adds some 70 microseconds to a
 * start. */
#define SOCKET_MASKS_MAX 4096
#define SOCKET_PATH_MAX 108 /* bytes of sun_path */

/* Other procfs instances, such as that of a chroot, would show the host's processes. */
static void add_foreign_proc_masks(struct view *view, struct view_entries *entries)
{
    __attribute__((cleanup(mountinfo_done))) struct mountinfo_table own = {0};
    const struct mountinfo_table *table = view->policy->mounts;
    if (!table && mountinfo_read(0, &own) == 0)
        table = &own;
    for (size_t i = 0; table && i < table->count; i++) {
        const struct mountinfo *mount = &table->mounts[i];
        if (strcmp(mount->type, "proc") == 0 && strcmp(mount->point, "/proc") != 0 &&
            strncmp(mount->point, "/proc/", 6) != 0)
            (void)view_add_entry(view, entries, ENTRY_MASK,
                                 arena_strdup(&view->plan->arena, mount->point));
    }
}

static bool is_granted(const struct view *view, const char *path)
{
    for (size_t i = 0; i < view->policy->grant_count; i++) {
        const struct policy_grant *grant = &view->policy->grants[i];
        if (grant->access != BRIG_MASK && path_is_beneath(grant->dest, path))
            return true;
    }
    return false;
}

/* A read-only mount does not prevent connecting to a socket on it: existing sockets are hidden.
 * Landlock denies new ones from ABI 9 on; on older kernels the result says so. */
static void add_socket_masks(struct view *view, struct view_entries *entries)
{
    bool whole; /* the whole file was read */
    autofree char *text = proc_read("/proc/net/unix", SIZE_MAX, &whole);
    const char *rest = text, *from;
    size_t count = 0;
    /* From slash to slash: sockets without a path are skipped. */
    while (rest && (from = strchr(rest, '/')) && count < SOCKET_MASKS_MAX) {
        char path[SOCKET_PATH_MAX + 1];
        struct stat info;
        rest = strchr(from, '\n');
        size_t length = rest ? (size_t)(rest++ - from) : strlen(from);
        if (length > SOCKET_PATH_MAX)
            continue;
        memcpy(path, from, length);
        path[length] = '\0';
        if (view_place_of(view, path)->host == NULL || strncmp(path, "/proc/", 6) == 0 ||
            is_granted(view, path) || lstat(path, &info) < 0 || !S_ISSOCK(info.st_mode))
            continue;
        (void)view_add_entry(view, entries, ENTRY_MASK, arena_strdup(&view->plan->arena, path));
        count++;
    }
    if (count == SOCKET_MASKS_MAX)
        unenforced_add(&view->plan->unenforced,
                       "the host has more than %d sockets outside /run and /tmp: the others are "
                       "not hidden",
                       SOCKET_MASKS_MAX - 1);
    if (view->abi < LANDLOCK_ABI_UNIX_SOCKETS)
        unenforced_add(&view->plan->unenforced,
                       "sockets of the host outside /run and /tmp, made later or bound by a "
                       "relative path, can be connected to (Landlock ABI %d, needs %d)",
                       view->abi, LANDLOCK_ABI_UNIX_SOCKETS);
}

static bool only_by_group(const struct jail_identity *identity, const struct stat *info)
{
    unsigned other = info->st_mode & 5, group = (info->st_mode >> 3) & 5;
    unsigned needed = S_ISDIR(info->st_mode) ? 1 : 4;
    if (info->st_uid == identity->host_uid || (other & needed) || !(group & needed))
        return false;
    for (size_t i = 0; i < identity->group_count; i++)
        if (info->st_gid == identity->groups[i])
            return true;
    return false;
}

/* Supplementary groups that could not be dropped still grant access: hide the files in the usual
 * directories that are accessible through them. */
static void add_group_masks(struct view *view, struct view_entries *entries)
{
    static const char *const corridors[] = {"/",        "/etc",     "/home",      "/media",
                                            "/mnt",     "/opt",     "/srv",       "/var",
                                            "/var/lib", "/var/log", "/var/cache", "/var/spool"};
    for (size_t i = 0; i < ARRAY_LENGTH(corridors); i++) {
        autodir DIR *dir = opendir(corridors[i]);
        const struct dirent *item;
        while (dir && (item = readdir(dir))) {
            struct stat info;
            if (item->d_name[0] == '.' ||
                fstatat(dirfd(dir), item->d_name, &info, AT_SYMLINK_NOFOLLOW) < 0 ||
                !only_by_group(view->identity, &info))
                continue;
            (void)view_add_entry(view, entries, ENTRY_MASK,
                                 arena_concat(&view->plan->arena,
                                              corridors[i][1] ? corridors[i] : "", "/",
                                              item->d_name));
        }
    }
}

void view_add_hidden(struct view *view, struct view_entries *entries)
{
    add_foreign_proc_masks(view, entries);
    add_socket_masks(view, entries);
    if (view->identity->groups_stay)
        add_group_masks(view, entries);
}
