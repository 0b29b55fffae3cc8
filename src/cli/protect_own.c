/* SPDX-License-Identifier: MIT */
/* Protects what brig itself goes by. Who can write to it decides what the next jail is, and `initjail`
 * names a program that runs outside. The directories of configuration and storage are hidden (home.c),
 * but a file can be elsewhere: one that -C or `conf` names, one that a link in the directory leads to,
 * as where people keep their settings in a repository, a script or a program. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "base/path.h"
#include "cli/protect_parts.h"
#include "cli/settings.h"

#define HOPS_MAX 40 /* as the kernel follows */

/* brig's own directories, as they are spelt and, once that is asked for, as they really are; NULL where
 * there is none. */
struct hidden {
    const char *spelt[2];
    char *real[2];
    bool found;
};

static void hidden_done(struct hidden *hidden)
{
    free(hidden->real[0]);
    free(hidden->real[1]);
}

static bool is_in(const char *const directories[2], const char *path)
{
    for (size_t i = 0; i < 2; i++)
        if (directories[i] && path_is_beneath(directories[i], path))
            return true;
    return false;
}

static bool is_hidden(struct hidden *hidden, const char *path)
{
    for (size_t i = 0; i < ARRAY_LENGTH(hidden->spelt) && !hidden->found; i++)
        hidden->real[i] = hidden->spelt[i] ? realpath(hidden->spelt[i], NULL) : NULL;
    hidden->found = true;
    const char *const real[2] = {hidden->real[0], hidden->real[1]};
    return is_in(hidden->spelt, path) || is_in(real, path);
}

static int protect_in_roots(struct protect_scan *scan, const char *path, enum protect_hold hold,
                            struct brig_error *err)
{
    int status = 0;
    for (size_t i = 0; i < scan->root_count && status == 0; i++) {
        const char *root = scan->roots[i].path;
        if (!path_is_beneath(root, path) || path[strlen(root)] != '/')
            continue;
        const char *rest = path + strlen(root) + 1;
        status = protect_add_path(scan, root, rest, rest, hold, err);
    }
    return status;
}

static int protect_name(struct protect_scan *scan, struct hidden *hidden, const char *path,
                        enum protect_hold hold, struct brig_error *err)
{
    if (strstr(path, "/../") || is_hidden(hidden, path))
        return 0;
    return protect_in_roots(scan, path, hold, err);
}

/* What the link at a path leads to next, without links in the directories above it as far as they are
 * there; NULL if it is none. The caller frees it. */
static char *target_of(const char *path)
{
    char target[PATH_LENGTH_MAX + 1];
    ssize_t length = readlink(path, target, sizeof target - 1);
    autofree char *above = length > 0 ? strdup(path) : NULL;
    if (!above)
        return NULL;
    target[length] = '\0';
    *(strrchr(above, '/') + 1) = '\0';
    autofree char *real = realpath(above, NULL);
    char *next = NULL;
    return real && path_make_absolute(real, target, &next, NULL) == 0 ? next : NULL;
}

/* By its name, as links on the way could be replaced, by that of each link that it leads to, and as what
 * it is. What a link leads to and is missing could be made: it is held. */
static int protect_file(struct protect_scan *scan, struct hidden *hidden, const char *path,
                        struct brig_error *err)
{
    autofree char *real = realpath(path, NULL);
    autofree char *at = strdup(path);
    enum protect_hold hold = PROTECT_HOLD_NOT;
    int status = at ? 0 : brig_fail_nomem(err);
    for (int links = 0; status == 0 && at && links <= HOPS_MAX; links++) {
        status = protect_name(scan, hidden, at, hold, err);
        char *next = target_of(at);
        free(at);
        at = next;
        hold = real ? PROTECT_HOLD_NOT : PROTECT_HOLD_FILE; /* others read it meanwhile */
    }
    if (status < 0 || !real || strcmp(real, path) == 0)
        return status;
    return protect_name(scan, hidden, real, PROTECT_HOLD_NOT, err);
}

/* What a run has read. Right in brig's own directories, where nearly all is, links are looked at
 * anyway: here, and in home.c for jails. */
static int protect_read(struct protect_scan *scan, struct hidden *hidden, const char *path,
                        struct brig_error *err)
{
    for (size_t i = 0; i < ARRAY_LENGTH(hidden->spelt); i++) {
        size_t length = hidden->spelt[i] ? strlen(hidden->spelt[i]) : 0;
        if (length > 0 && path_is_beneath(hidden->spelt[i], path) && path[length] == '/' &&
            !strchr(path + length + 1, '/'))
            return 0;
    }
    return protect_file(scan, hidden, path, err);
}

/* Also those that this run has not read: another may. */
static int protect_links(struct protect_scan *scan, struct hidden *hidden, const char *directory,
                         struct brig_error *err)
{
    autodir DIR *dir = opendir(directory);
    const struct dirent *item;
    int status = 0;
    while (dir && status == 0 && (item = readdir(dir))) {
        char path[PATH_LENGTH_MAX + 1];
        if (item->d_type != DT_LNK && item->d_type != DT_UNKNOWN)
            continue;
        int length = snprintf(path, sizeof path, "%s/%s", directory, item->d_name);
        if (length > 0 && (size_t)length < sizeof path)
            status = protect_file(scan, hidden, path, err);
    }
    return status;
}

static int protect_programs(struct protect_scan *scan, struct hidden *hidden,
                            const struct settings_programs *programs, struct brig_error *err)
{
    int status = 0;
    for (size_t i = 0; i < programs->count && status == 0; i++)
        status = protect_read(scan, hidden, programs->items[i].path, err);
    return status;
}

int protect_own(struct protect_scan *scan, struct brig_error *err)
{
    const struct settings *settings = scan->settings;
    __attribute__((cleanup(hidden_done))) struct hidden hidden = {
        .spelt = {settings->config_dir, settings->storage},
    };
    int status = settings->config_dir ? protect_links(scan, &hidden, settings->config_dir, err) : 0;
    for (size_t i = 0; i < settings->source_count && status == 0; i++)
        status = protect_read(scan, &hidden, settings->sources[i], err);
    if (status == 0)
        status = protect_programs(scan, &hidden, &settings->scripts, err);
    return status < 0 ? status : protect_programs(scan, &hidden, &settings->initjails, err);
}
