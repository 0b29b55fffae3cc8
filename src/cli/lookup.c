/* SPDX-License-Identifier: MIT */
/* Looks a path up in a jail that is not made: name by name, following the links that the jail would
 * follow, and asks the kernel what the owner and mode of what is found allow. */
#include "cli/lookup.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/why.h"

#define LINKS_MAX 40 /* the kernel's own limit */

static bool look(struct lookup *node, const char *directory, const char *rest, bool follow)
{
    int length =
        snprintf(node->host, sizeof node->host, "%s%s%s", directory, *rest ? "/" : "", rest);
    if (length < 0 || (size_t)length >= sizeof node->host)
        return false;
    return fstatat(AT_FDCWD, node->host, &node->info, follow ? 0 : AT_SYMLINK_NOFOLLOW) == 0;
}

static bool is_whiteout(const struct stat *info)
{
    return S_ISCHR(info->st_mode) && info->st_rdev == makedev(0, 0);
}

/* Whether the changes hide everything of the home at a path: a directory above it was replaced. */
static bool is_replaced(const char *changes, const char *rest)
{
    for (size_t length = strcspn(rest, "/"); rest[length];
         length += 1 + strcspn(rest + length + 1, "/")) {
        char path[PATH_LENGTH_MAX + 1], value[2];
        struct stat info;
        (void)snprintf(path, sizeof path, "%s/%.*s", changes, (int)length, rest);
        if (lstat(path, &info) < 0)
            return false;
        if (!S_ISDIR(info.st_mode) ||
            (lgetxattr(path, "user.overlay.opaque", value, sizeof value) == 1 && value[0] == 'y'))
            return true;
    }
    return false;
}

static void look_in_overlay(const struct why *why, struct lookup *node, const char *rest)
{
    if (look(node, node->place->host, rest, false)) {
        node->changed = true;
        node->kind = is_whiteout(&node->info) ? LOOKUP_DELETED : LOOKUP_FOUND;
        if (*rest || node->kind == LOOKUP_DELETED)
            return;
    }
    node->changed = false;
    node->mask = mask_find(&why->masks.rules, rest);
    bool found =
        !is_replaced(node->place->host, rest) && look(node, node->place->dest, rest, !*rest);
    node->kind = found ? node->mask >= 0 ? LOOKUP_HIDDEN : LOOKUP_FOUND : LOOKUP_MISSING;
}

void lookup_node(const struct why *why, const char *path, struct lookup *node)
{
    *node = (struct lookup){.place = places_of(&why->places, path), .kind = LOOKUP_UNKNOWN};
    const char *rest = places_rest(node->place->dest, path);
    switch (node->place->kind) {
    case PLACE_HOST:
        node->kind = look(node, strcmp(node->place->host, "/") == 0 ? "" : node->place->host, rest,
                          !*rest && !node->place->link)
                         ? LOOKUP_FOUND
                         : LOOKUP_MISSING;
        break;
    case PLACE_HOME:
        node->kind = look(node, node->place->host, rest, !*rest) ? LOOKUP_FOUND : LOOKUP_MISSING;
        break;
    case PLACE_OVERLAY:
        look_in_overlay(why, node, rest);
        break;
    case PLACE_FRAME:
    case PLACE_MADE:
    case PLACE_DEVICES:
    case PLACE_PROC:
    case PLACE_SCRATCH:
    case PLACE_KEPT:
    case PLACE_MASK:
        break;
    }
}

/* ---- walking ---- */

/* Whether nothing below it is to be looked at. */
static bool ends_walk(const struct lookup *node)
{
    return node->kind == LOOKUP_HIDDEN || node->place->kind == PLACE_MASK;
}

/* Puts the target of a link before the rest of a path. */
static bool put_before(const struct lookup *node, char *rest, size_t size)
{
    char target[PATH_LENGTH_MAX + 1], joined[PATH_LENGTH_MAX + 1];
    ssize_t length = readlink(node->host, target, sizeof target - 1);
    if (length <= 0)
        return false;
    target[length] = '\0';
    int used = snprintf(joined, sizeof joined, "%s/%s", target, rest);
    if (used < 0 || (size_t)used >= size)
        return false;
    memcpy(rest, joined, (size_t)used + 1);
    return true;
}

/* One name further; false if there is no more. */
static bool take_name(char *rest, char name[PATH_COMPONENT_MAX + 2])
{
    char *at = rest + strspn(rest, "/");
    size_t length = strcspn(at, "/");
    (void)snprintf(name, PATH_COMPONENT_MAX + 2, "%.*s", (int)length, at);
    memmove(rest, at + length, strlen(at + length) + 1);
    return length > 0;
}

void lookup_walk(const struct why *why, const char *path, char done[PATH_LENGTH_MAX + 1],
                 struct lookup *node)
{
    char rest[PATH_LENGTH_MAX + 1], name[PATH_COMPONENT_MAX + 2];
    size_t used = 0;
    int links = 0;
    (void)snprintf(rest, sizeof rest, "%s", path);
    done[0] = '\0';
    while (take_name(rest, name)) {
        if (strcmp(name, ".") == 0)
            continue;
        size_t before = used;
        if (strcmp(name, "..") == 0) {
            while (used > 0 && done[--used] != '/')
                ;
            done[used] = '\0';
            continue;
        }
        int length = snprintf(done + used, PATH_LENGTH_MAX + 1 - used, "/%s", name);
        if (length < 0 || used + (size_t)length > PATH_LENGTH_MAX)
            break;
        used += (size_t)length;
        const char *real = places_link(&why->places, done);
        if (real)
            used = (size_t)snprintf(done, PATH_LENGTH_MAX + 1, "%s", real);
        lookup_node(why, done, node);
        if (ends_walk(node)) {
            (void)snprintf(done + used, PATH_LENGTH_MAX + 1 - used, "%s", rest);
            return;
        }
        if (node->kind == LOOKUP_FOUND && S_ISLNK(node->info.st_mode) && links++ < LINKS_MAX &&
            put_before(node, rest, sizeof rest)) {
            used = rest[0] == '/' ? 0 : before;
            done[used] = '\0';
        }
    }
    if (used == 0)
        (void)snprintf(done, PATH_LENGTH_MAX + 1, "/");
    lookup_node(why, done, node);
}

/* ---- what owner and mode allow ---- */

/* As whom the jail comes to a place. Where it has an id of its own, what is given to it seems to be
 * its own. */
static void whose(const struct why *why, const struct lookup *node, uid_t *ret_uid, gid_t *ret_gid)
{
    struct stat info;
    const struct place *place = node->place;
    const char *root = place->kind == PLACE_OVERLAY ? place->dest : place->host;
    bool owner = why->stranger && place->given && !node->changed && stat(root, &info) == 0;
    *ret_uid = owner ? info.st_uid : why->uid;
    *ret_gid = owner ? info.st_gid : why->gid;
}

/* With the rights of somebody else only root can ask. */
bool lookup_may(const struct why *why, const struct lookup *node, int how)
{
    const struct place *place = node->place;
    const char *base = place->kind == PLACE_OVERLAY && !node->changed ? place->dest : place->host;
    autoclose int fd = open(base, O_PATH | O_CLOEXEC);
    const char *rest = places_rest(base, node->host);
    uid_t uid;
    gid_t gid;
    whose(why, node, &uid, &gid);
    bool other = geteuid() == 0;
    if (other) {
        (void)setfsgid(gid);
        (void)setfsuid(uid);
    }
    long result = fd < 0  ? -1
                  : *rest ? syscall(SYS_faccessat2, fd, rest, how, AT_EACCESS)
                          : syscall(SYS_faccessat2, fd, "", how, AT_EACCESS | AT_EMPTY_PATH);
    if (other) {
        (void)setfsuid(geteuid());
        (void)setfsgid(getegid());
    }
    return result == 0;
}

bool lookup_by_group_only(const struct why *why, const struct lookup *node)
{
    unsigned needed = S_ISDIR(node->info.st_mode) ? 1 : 4;
    unsigned mode = node->info.st_mode;
    return !node->place->given && node->info.st_uid != why->uid && node->info.st_gid != why->gid &&
           !(mode & needed) && (mode >> 3 & needed);
}

bool lookup_can_be_made(const struct why *why, const char *path, const struct place *place)
{
    char above[PATH_LENGTH_MAX + 1];
    (void)snprintf(above, sizeof above, "%s", path);
    while (strcmp(above, place->dest) != 0) {
        char *slash = strrchr(above, '/');
        if (!slash)
            return false;
        slash[slash == above] = '\0';
        struct lookup node;
        lookup_node(why, above, &node);
        if (node.kind == LOOKUP_FOUND)
            return S_ISDIR(node.info.st_mode) && lookup_may(why, &node, W_OK | X_OK);
    }
    return true;
}
