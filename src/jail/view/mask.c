/* SPDX-License-Identifier: MIT */
/* The mask resolver. */
#include "jail/view/mask.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "jail/sys.h"
#include "jail/view/mask_watch.h"

#define DEPTH_MAX 32 /* of an exception below a hidden directory, and of a pattern */
#define PATH_SIZE (PATH_LENGTH_MAX + 1)
#define WILDCARDS "*?["
#define LINKS_MAX 40 /* the kernel's limit */

/* ---- text ---- */

bool mask_is_path(const char *path)
{
    return *path && *path != '/' && strcmp(path, "..") != 0 && strncmp(path, "../", 3) != 0 &&
           !strstr(path, "/../") && !strstr(path, "//") &&
           strlen(path) < PATH_SIZE - PATH_COMPONENT_MAX - 1;
}

static bool lies_below(const char *parent, const char *path)
{
    return path_is_beneath(parent, path) && path[strlen(parent)];
}

/* Returns whether a pattern matches a path or a directory above it. */
static bool covers(const char *pattern, const char *path)
{
    static const char special[] = WILDCARDS "\\";
    char part[PATH_SIZE];
    if (*pattern != *path && !strchr(special, *pattern))
        return false; /* most rules, and brig status asks for every file of a tree */
    if (!strpbrk(pattern, special))
        return path_is_beneath(pattern, path);
    for (size_t length = 1; length < PATH_SIZE; length++) {
        if (path[length] == '/' || path[length] == '\0') {
            memcpy(part, path, length);
            part[length] = '\0';
            if (strcmp(pattern, part) == 0 || fnmatch(pattern, part, FNM_PATHNAME) == 0)
                return true;
        }
        if (path[length] == '\0')
            break;
    }
    return false;
}

int mask_find(const struct mask_rules *rules, const char *path)
{
    for (size_t i = 0; i < rules->shown_count; i++)
        if (path_is_beneath(rules->shown[i], path) || path_is_beneath(path, rules->shown[i]))
            return -1;
    for (size_t i = 0; i < rules->hidden_count && *path != '\0'; i++)
        if (covers(rules->hidden[i], path))
            return (int)i;
    return -1;
}

/* Fills a buffer of PATH_SIZE with "above/name"; false if there is no room. */
static bool join(char *path, const char *above, const char *name)
{
    int length = snprintf(path, PATH_SIZE, "%s%s%s", above, *above && *name ? "/" : "", name);
    return length >= 0 && length < PATH_SIZE;
}

/* ---- links ----
 *
 * Names are resolved one by one, starting at the descriptor of the home: a process that has the
 * home only as a detached mount cannot let the kernel resolve its absolute links. */

struct walk {
    const struct mask_home *home;
    char done[PATH_SIZE]; /* without links, relative to the home */
    char rest[PATH_SIZE];
    int links;
    bool outside; /* `rest` is an absolute path that is not in the home */
};

/* Inserts text before the unresolved part of the path; false if there is no room. */
static bool put_before(struct walk *walk, const char *text)
{
    char all[PATH_SIZE];
    if (!join(all, text, walk->rest))
        return false;
    memcpy(walk->rest, all, strlen(all) + 1);
    return true;
}

static bool go_up(struct walk *walk)
{
    char *slash = strrchr(walk->done, '/');
    if (slash || *walk->done) {
        *(slash ? slash : walk->done) = 0;
        return true;
    }
    char above[PATH_SIZE];
    walk->outside = true;
    return join(above, walk->home->real ? walk->home->real : walk->home->path, "..") &&
           put_before(walk, above);
}

static bool follow(struct walk *walk, const char *target)
{
    if (++walk->links > LINKS_MAX)
        return false;
    if (*target != '/')
        return put_before(walk, target);
    const char *inside = path_below(walk->home->path, target);
    if (!inside && walk->home->real)
        inside = path_below(walk->home->real, target);
    walk->outside = !inside;
    walk->done[0] = 0;
    return put_before(walk, inside ? inside : target);
}

/* Resolves the next name of `rest`; returns false if the walk cannot continue. */
static bool step(struct walk *walk, bool last)
{
    char name[PATH_COMPONENT_MAX + 1], path[PATH_SIZE], target[PATH_SIZE];
    const char *start = walk->rest + strspn(walk->rest, "/");
    size_t length = strcspn(start, "/");
    if (length > PATH_COMPONENT_MAX)
        return false;
    memcpy(name, start, length);
    name[length] = 0;
    const char *after = start + length + strspn(start + length, "/");
    memmove(walk->rest, after, strlen(after) + 1);
    if (length == 0 || strcmp(name, ".") == 0)
        return true;
    if (strcmp(name, "..") == 0)
        return go_up(walk);
    if (!join(path, walk->done, name))
        return false;
    ssize_t size =
        last || *walk->rest ? readlinkat(walk->home->fd, path, target, sizeof target - 1) : -1;
    if (size >= 0) {
        target[size] = 0;
        return follow(walk, target);
    }
    memcpy(walk->done, path, strlen(path) + 1);
    return true;
}

/* Resolves the links of an absolute path; a missing last name is kept. */
static bool make_real(const char *path, char ret_path[PATH_SIZE])
{
    if (path_resolve(path, ret_path))
        return true;
    char above[PATH_SIZE], real[PATH_SIZE];
    const char *name = strrchr(path, '/');
    (void)snprintf(above, sizeof above, "%.*s", (int)(name - path), path);
    return strcmp(name, "/..") != 0 && path_resolve(*above ? above : "/", real) &&
           str_fill(ret_path, PATH_SIZE, strcmp(real, "/") == 0 ? "" : real, name);
}

static enum mask_link leave_home(const struct walk *walk, char ret_path[PATH_SIZE])
{
    char real[PATH_SIZE];
    if (!make_real(walk->rest, real))
        return MASK_LINK_NOWHERE;
    const char *own = walk->home->real ? walk->home->real : walk->home->path;
    const char *inside = path_below(own, real);
    if (!inside && path_is_beneath(real, own))
        return MASK_LINK_NOWHERE;
    memcpy(ret_path, inside ? inside : real, strlen(inside ? inside : real) + 1);
    return !inside ? MASK_LINK_OUTSIDE : *inside ? MASK_LINK_INSIDE : MASK_LINK_NOWHERE;
}

enum mask_link mask_follow_links(const struct mask_home *home, const char *path, bool last,
                                 char ret_path[PATH_SIZE])
{
    struct walk walk = {.home = home};
    if (strlen(path) >= sizeof walk.rest)
        return MASK_LINK_NOWHERE;
    memcpy(walk.rest, path, strlen(path) + 1);
    while (*walk.rest && !walk.outside)
        if (!step(&walk, last))
            return MASK_LINK_NOWHERE;
    if (walk.outside)
        return leave_home(&walk, ret_path);
    memcpy(ret_path, walk.done, strlen(walk.done) + 1);
    return walk.links == 0 ? MASK_LINK_NONE : *walk.done ? MASK_LINK_INSIDE : MASK_LINK_NOWHERE;
}

/* Returns whether the path contains no symlink: one system call suffices for most rules. */
static bool has_no_links(const struct mask_home *home, const char *path)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
    long fd = SYS(openat2, home->fd, path, &how, sizeof how);
    if (fd >= 0)
        (void)close((int)fd);
    return fd >= 0 || fd == -ENOENT || fd == -ENOTDIR;
}

/* ---- one path ---- */

struct resolving {
    const struct mask_home *home;
    const struct mask_rules *rules;
    const struct mask_visitor *visitor;
};

/* A new name in this directory, relative to the home or absolute, can change the result. `name` may
 * have wildcards. */
static void note_directory(const struct resolving *resolving, const char *directory,
                           const char *name)
{
    struct mask_watch *watch = resolving->visitor->watch;
    if (watch && watch->fd >= 0)
        mask_watch_add(watch, resolving->home->fd, directory, name);
}

/* Notes every directory of a path, because each can be created or replaced. For a path outside the
 * home only its parent directory is noted. */
static void note_way(const struct resolving *resolving, const char *path)
{
    char directory[PATH_SIZE], name[PATH_COMPONENT_MAX + 1];
    const char *start = *path == '/' ? strrchr(path, '/') + 1 : path;
    while (*start) {
        size_t length = strcspn(start, "/"), above = (size_t)(start - path);
        (void)snprintf(directory, sizeof directory, "%.*s", (int)(above - (above > 1)), path);
        (void)snprintf(name, sizeof name, "%.*s", (int)length, start);
        note_directory(resolving, directory, name);
        start += length + (start[length] == '/');
    }
}

static int tell(const struct resolving *resolving, size_t rule, const char *path,
                enum mask_link link, struct brig_error *err)
{
    if (link == MASK_LINK_NOWHERE || strlen(path) >= PATH_SIZE - PATH_COMPONENT_MAX - 1)
        return 0;
    const struct mask_path found = {
        .path = path,
        .rule = rule,
        .outside = link == MASK_LINK_OUTSIDE,
        .linked = link != MASK_LINK_NONE,
    };
    note_way(resolving, path);
    return resolving->visitor->path(resolving->visitor->context, &found, err);
}

/* Reports the path, its resolved path, and its target if it is a symlink. */
static int tell_all(const struct resolving *resolving, size_t rule, const char *path,
                    struct brig_error *err)
{
    char real[PATH_SIZE], target[PATH_SIZE];
    int status = tell(resolving, rule, path, MASK_LINK_NONE, err);
    if (status < 0 || has_no_links(resolving->home, path))
        return status;
    enum mask_link way = mask_follow_links(resolving->home, path, false, real);
    if (way != MASK_LINK_NONE)
        status = tell(resolving, rule, real, way, err);
    enum mask_link end = mask_follow_links(resolving->home, path, true, target);
    if (status == 0 && end != MASK_LINK_NONE && (end != way || strcmp(real, target) != 0))
        status = tell(resolving, rule, target, end, err);
    return status;
}

/* Lists the names in a directory of the home, each ended by a NUL. */
static int list(const struct resolving *resolving, const char *directory, struct str *names,
                struct brig_error *err)
{
    int fd = openat(resolving->home->fd, *directory ? directory : ".",
                    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *item;
    while (dir && (item = readdir(dir)))
        if (strcmp(item->d_name, ".") != 0 && strcmp(item->d_name, "..") != 0)
            str_append_bytes(names, item->d_name, strlen(item->d_name) + 1);
    return names->failed ? brig_fail_nomem(err) : 0;
}

static int hide_path(const struct resolving *resolving, size_t rule, const char *path, int depth,
                     struct brig_error *err);

/* Hides all entries of a directory except the exceptions below it. */
static int hide_entries(const struct resolving *resolving, size_t rule, const char *path, int depth,
                        struct brig_error *err)
{
    autostr struct str names = {0};
    note_way(resolving, path); /* before reading: a name may be created meanwhile */
    note_directory(resolving, path, "*");
    int status = list(resolving, path, &names, err);
    for (size_t at = 0; at < names.length && status == 0; at += strlen(names.data + at) + 1) {
        char child[PATH_SIZE];
        if (join(child, path, names.data + at))
            status = hide_path(resolving, rule, child, depth + 1, err);
    }
    return status;
}

static int hide_path(const struct resolving *resolving, size_t rule, const char *path, int depth,
                     struct brig_error *err)
{
    const struct mask_rules *rules = resolving->rules;
    if (!mask_is_path(path))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "a mask is a path relative to the home directory, but '%s' is not", path);
    bool has_shown = false;
    for (size_t i = 0; i < rules->shown_count; i++) {
        if (path_is_beneath(rules->shown[i], path))
            return 0;
        has_shown = has_shown || lies_below(path, rules->shown[i]);
    }
    return has_shown && depth < DEPTH_MAX ? hide_entries(resolving, rule, path, depth, err)
                                          : tell_all(resolving, rule, path, err);
}

/* ---- patterns ---- */

static int expand(const struct resolving *resolving, size_t rule, const char *above,
                  const char *pattern, int depth, struct brig_error *err);

/* Expands the names of a directory that match one component of a pattern. */
static int expand_names(const struct resolving *resolving, size_t rule, const char *above,
                        const char *part, const char *rest, int depth, struct brig_error *err)
{
    autostr struct str names = {0};
    note_way(resolving, above); /* before reading: a name may be created meanwhile */
    note_directory(resolving, above, part);
    int status = list(resolving, above, &names, err);
    for (size_t at = 0; at < names.length && status == 0; at += strlen(names.data + at) + 1) {
        char path[PATH_SIZE];
        if (fnmatch(part, names.data + at, 0) == 0 && join(path, above, names.data + at))
            status = expand(resolving, rule, path, rest, depth + 1, err);
    }
    return status;
}

/* Expands a pattern below a directory, component by component. */
static int expand(const struct resolving *resolving, size_t rule, const char *above,
                  const char *pattern, int depth, struct brig_error *err)
{
    char fixed[PATH_SIZE], path[PATH_SIZE], part[PATH_COMPONENT_MAX + 1];
    size_t length = strcspn(pattern, WILDCARDS); /* up to the component with the first wildcard */
    if (pattern[length])
        while (length > 0 && pattern[length - 1] != '/')
            length--;
    const char *wild = pattern + length;
    (void)snprintf(fixed, sizeof fixed, "%.*s", (int)(*wild && length > 0 ? length - 1 : length),
                   pattern);
    if (!join(path, above, fixed) || depth > DEPTH_MAX)
        return 0;
    if (!*wild)
        return hide_path(resolving, rule, path, 0, err);
    size_t size = strcspn(wild, "/");
    if (size >= sizeof part)
        return 0;
    memcpy(part, wild, size);
    part[size] = 0;
    return expand_names(resolving, rule, path, part, wild + size + (wild[size] == '/'), depth, err);
}

int mask_each(const struct mask_home *home, const struct mask_rules *rules,
              const struct mask_visitor *visitor, struct brig_error *err)
{
    const struct resolving resolving = {.home = home, .rules = rules, .visitor = visitor};
    int status = 0;
    for (size_t i = 0; i < rules->hidden_count && status == 0; i++)
        status = expand(&resolving, i, "", rules->hidden[i], 0, err);
    return status;
}
