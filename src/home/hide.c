/* SPDX-License-Identifier: MIT */
/* What of a home directory is hidden in a jail: rules into whiteouts. */
#include "home/hide.h"

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/own.h"
#include "home/mounts.h"

#define HIDE_DEPTH_MAX 32 /* of a shown path below a hidden one */
#define PATH_SIZE 4096

static bool is_plain_relative(const char *path)
{
    return *path && *path != '/' && strcmp(path, "..") != 0 && strncmp(path, "../", 3) != 0 &&
           !strstr(path, "/../") && !strstr(path, "//") && strlen(path) < PATH_SIZE - 256;
}

static bool is_below(const char *parent, const char *path)
{
    size_t length = strlen(parent);
    return strncmp(path, parent, length) == 0 && path[length] == '/';
}

static int hide_path(int home, const struct hide_rules *rules, const char *path, int depth,
                     struct brig_error *err);

/* All but what is shown below it; what is made there later shows, too. */
static int hide_entries(int home, const struct hide_rules *rules, const char *path, int depth,
                        struct brig_error *err)
{
    int fd = openat(home, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    autodir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    int status = 0;
    const struct dirent *item;
    while (dir && status == 0 && (item = readdir(dir))) {
        char child[PATH_SIZE];
        if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0)
            continue;
        (void)snprintf(child, sizeof child, "%s/%s", path, item->d_name);
        status = hide_path(home, rules, child, depth + 1, err);
    }
    return status;
}

static int hide_path(int home, const struct hide_rules *rules, const char *path, int depth,
                     struct brig_error *err)
{
    if (!is_plain_relative(path))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "a mask is a path relative to the home directory, but '%s' is not", path);
    bool has_shown = false;
    for (size_t i = 0; i < rules->shown_count; i++) {
        if (strcmp(rules->shown[i], path) == 0 || is_below(rules->shown[i], path))
            return 0;
        has_shown = has_shown || is_below(path, rules->shown[i]);
    }
    return has_shown && depth < HIDE_DEPTH_MAX ? hide_entries(home, rules, path, depth, err)
                                               : mounts_mask(home, path, false, err);
}

static int hide_pattern(int home, const struct hide_rules *rules, const char *pattern,
                        struct brig_error *err)
{
    if (!strpbrk(pattern, "*?["))
        return hide_path(home, rules, pattern, 0, err);
    char home_path[64], full[PATH_SIZE + 64];
    int length = snprintf(home_path, sizeof home_path, "/proc/self/fd/%d/", home);
    (void)snprintf(full, sizeof full, "%s%s", home_path, pattern);
    glob_t found = {0};
    int status = 0;
    if (glob(full, GLOB_NOSORT | GLOB_PERIOD, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc && status == 0; i++) {
            const char *path = found.gl_pathv[i] + length;
            const char *last = strrchr(path, '/');
            last = last ? last + 1 : path;
            if (strcmp(last, ".") != 0 && strcmp(last, "..") != 0)
                status = hide_path(home, rules, path, 0, err);
        }
    globfree(&found);
    return status;
}

int hide_apply(int home, const struct hide_rules *rules, struct brig_error *err)
{
    int status = 0;
    for (size_t i = 0; i < rules->hidden_count && status == 0; i++)
        status = hide_pattern(home, rules, rules->hidden[i], err);
    for (size_t i = 0; i < rules->own_count && status == 0; i++)
        status = is_plain_relative(rules->own[i]) ? mounts_mask(home, rules->own[i], true, err) : 0;
    return status;
}
