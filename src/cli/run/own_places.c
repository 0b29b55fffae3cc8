/* SPDX-License-Identifier: MIT */
/* Finds and hides the directories of brig. */
#include "cli/run/own_places.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "cli/identity.h"
#include "cli/settings/settings.h"
#include "home/storage.h"
#include "jail/view/mask_names.h"
#include "policy/policy.h"

#define ASIDES_MAX 1000 /* the limit of storage_set_aside() */
#define OWN_ORIGIN "brig's own"

void own_places_done(struct own_places *own)
{
    for (size_t i = 0; i < own->count; i++)
        free(own->paths[i]);
    free(own->paths);
}

/* Adds a path as it is spelt. */
static void add_path(struct own_places *own, const char *path)
{
    char text[PATH_LENGTH_MAX + 1];
    const char *rest = path_below(own->home, path);
    if (!rest)
        rest = path_below(own->real_home, path);
    if (rest && !*rest)
        return;
    bool fits =
        str_fill(text, sizeof text, rest ? own->home : path, rest ? "/" : "", rest ? rest : "");
    for (size_t i = 0; i < own->count && fits; i++)
        if (strcmp(own->paths[i], text) == 0)
            return;
    char *copy = fits && array_grow(&own->paths, own->count) ? strdup(text) : NULL;
    if (copy)
        own->paths[own->count++] = copy;
    else
        own->failed = true;
}

/* Adds a path as it is spelt, and its real path. */
static void add_directory(struct own_places *own, const char *path)
{
    char real[PATH_LENGTH_MAX + 1];
    add_path(own, path);
    if (path_resolve(path, real))
        add_path(own, real);
}

/* The path, if the home directory is at another place. */
static const char *own_at(const struct own_places *own, size_t i, const char *home,
                          char path[static PATH_LENGTH_MAX + 1])
{
    const char *rest = path_below(own->home, own->paths[i]);
    return rest && str_fill(path, PATH_LENGTH_MAX + 1, home, "/", rest) ? path : own->paths[i];
}

/* Adds the files beside changes that a link leads to: see storage_set_aside() and
 * storage_work(). */
static void add_beside(struct own_places *own, const char *real, const char *part)
{
    char path[PATH_LENGTH_MAX + 1];
    const char *end = strrchr(part, '.');
    int above = (int)(strrchr(real, '/') - real);
    if (!end || strcmp(end, ".changes") != 0)
        return;
    (void)snprintf(path, sizeof path, "%.*s/%.*s.work", above, real, (int)(end - part), part);
    add_path(own, path);
    bool there = true; /* one more than exist: this run may create it */
    for (int i = 1; i <= ASIDES_MAX && there; i++) {
        if (!str_fill(path, sizeof path, real, ".aside-", str_number((uint64_t)i).text))
            break;
        there = access(path, F_OK) == 0;
        /* In the home, the holder hides the files that it creates. */
        if (there || (!path_is_beneath(own->home, path) && !path_is_beneath(own->real_home, path)))
            add_path(own, path);
    }
}

/* Adds the directories of the sockets of holders, and of runs that ask. */
static void add_sockets(struct own_places *own, uid_t uid)
{
    char path[PATH_LENGTH_MAX + 1];
    for (unsigned i = 0; i < SOCKETS_PLACES; i++)
        if (sockets_name(i, uid, NULL, path)) /* the storage is another of brig's places */
            add_path(own, path);
}

int own_places_find(const struct settings *settings, const char *home, uid_t owner,
                    struct own_places *own, struct brig_error *err)
{
    own->home = home;
    if (!path_resolve(home, own->real_home))
        (void)str_fill(own->real_home, sizeof own->real_home, home);
    add_directory(own, settings->config_dir);
    add_directory(own, settings->storage);
    add_sockets(own, settings->policy->host_uid != (uid_t)-1 ? settings->policy->host_uid : owner);
    add_sockets(own, owner);
    /* Parts of any jail may be links to another disk. */
    autodir DIR *dir = opendir(settings->storage);
    const struct dirent *item;
    while (dir && (item = readdir(dir))) {
        char path[PATH_LENGTH_MAX + 1], real[PATH_LENGTH_MAX + 1];
        struct stat info;
        if (fstatat(dirfd(dir), item->d_name, &info, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISLNK(info.st_mode))
            continue;
        /* A directory of another user, such as /etc, may contain any links; it is refused later. */
        if (!str_fill(path, sizeof path, settings->storage, "/", item->d_name) ||
            !path_resolve(path, real) || path_is_beneath("/proc", real) ||
            path_is_beneath("/dev", real))
            continue;
        add_directory(own, real);
        add_beside(own, real, item->d_name);
    }
    return own->failed ? brig_fail(err, BRIG_E_SETUP, 0, "cannot hide all of brig's directories")
                       : 0;
}

int own_places_hide(const struct own_places *own, const struct mask_names *names,
                    struct brig_error *err)
{
    struct brig_policy *policy = names->policy;
    const char *home = policy->view == BRIG_VIEW_HOST ? names->real_home : names->home;
    char path[PATH_LENGTH_MAX + 1];
    int status = 0;
    for (size_t i = 0; i < own->count && status == 0; i++)
        status = grant_check_own(names, own_at(own, i, names->real_home, path), err);
    if (status == 0)
        status = brig_policy_origin(policy, OWN_ORIGIN, err);
    for (size_t i = 0; i < own->count && status == 0; i++) {
        const char *place = own_at(own, i, home, path);
        status = brig_policy_grant(policy, BRIG_MASK, place, NULL, BRIG_GRANT_OPTIONAL, err);
        if (status == 0)
            status = mask_names_hide(names, place, OWN_ORIGIN, err);
    }
    return status;
}
