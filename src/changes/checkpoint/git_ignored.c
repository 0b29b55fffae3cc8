/* SPDX-License-Identifier: MIT */
/* Asks git what it ignores. */
#include "changes/checkpoint/git_ignored.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/manifest.h"
#include "base/path.h"
#include "changes/layer/walk.h"
#include "git/repo.h"

/* The list of one repository. */
struct list {
    char *prefix; /* the path of its directory in the tree */
    struct str text;
    const char **paths; /* sorted; relative to the directory */
    size_t count;
};

struct git_ignored {
    const struct git *git;
    struct list *lists; /* each directory is in the one before */
    size_t count;
};

struct git_ignored *git_ignored_new(const struct git *git)
{
    struct git_ignored *ignored = calloc(1, sizeof *ignored);
    if (ignored)
        ignored->git = git;
    return ignored;
}

static void list_done(struct list *list)
{
    free(list->prefix);
    str_done(&list->text);
    free(list->paths);
}

void git_ignored_free(struct git_ignored *ignored)
{
    if (!ignored)
        return;
    while (ignored->count > 0)
        list_done(&ignored->lists[--ignored->count]);
    free(ignored->lists);
    free(ignored);
}

/* A directory has a trailing slash, which is dropped. */
static bool keep_path(void *data, const char *text, size_t length)
{
    struct list *list = data;
    if (length > 0 && text[length - 1] == '/')
        length--;
    str_append_bytes(&list->text, text, length);
    str_append_bytes(&list->text, "", 1);
    list->count++;
    return !list->text.failed;
}

static int sort_paths(struct list *list, struct brig_error *err)
{
    list->paths = calloc(list->count + 1, sizeof *list->paths);
    if (!list->paths || list->text.failed)
        return brig_fail_nomem(err);
    const char *at = NULL;
    for (size_t i = 0; i < list->count; i++)
        list->paths[i] = at = str_list_next(&list->text, at);
    if (list->count > 1)
        qsort(list->paths, list->count, sizeof *list->paths, path_compare_items);
    return 0;
}

int git_ignored_enter(struct git_ignored *ignored, int dir, const char *path,
                      struct brig_error *err)
{
    static const char *const words[] = {"ls-files",    "-o", "-i", "--exclude-standard",
                                        "--directory", "-z", NULL};
    struct list list = {0};
    const struct git_call call = {.words = words, .dir = dir, .each = keep_path, .data = &list};
    int status = str_copy(path, &list.prefix, err);
    if (status == 0)
        status = git_run(ignored->git, &call, err);
    if (status > 0) { /* in no repository, or in one of another user: everything counts */
        list.count = 0;
        list.text.length = 0;
        status = 0;
    }
    if (status == 0)
        status = sort_paths(&list, err);
    if (status == 0 && !array_grow(&ignored->lists, ignored->count))
        status = brig_fail_nomem(err);
    if (status == 0)
        ignored->lists[ignored->count++] = list;
    else
        list_done(&list);
    return status;
}

/* The part of a path below a directory, or NULL. */
static const char *part_below(const char *prefix, const char *path)
{
    size_t length = strlen(prefix);
    if (length == 0)
        return path;
    return strncmp(prefix, path, length) == 0 && path[length] == '/' ? path + length + 1 : NULL;
}

void git_ignored_leave(struct git_ignored *ignored, const char *path)
{
    while (ignored->count > 0 && !part_below(ignored->lists[ignored->count - 1].prefix, path))
        list_done(&ignored->lists[--ignored->count]);
}

bool git_ignored_has(const struct git_ignored *ignored, const char *path)
{
    if (ignored->count == 0)
        return false;
    const struct list *list = &ignored->lists[ignored->count - 1];
    const char *part = part_below(list->prefix, path);
    return part &&
           bsearch(&part, list->paths, list->count, sizeof *list->paths, path_compare_items);
}

int git_ignored_measure(int dir, const char *name, uint64_t *ret_bytes, struct str *ret_sample,
                        struct brig_error *err)
{
    struct walk *walk = NULL;
    struct walk_entry entry;
    uint64_t bytes = 0;
    int status = walk_open(dir, name, &walk, err);
    while (status == 0 && (status = walk_next(walk, &entry, err)) > 0) {
        status = 0;
        if (S_ISREG(entry.info.st_mode)) {
            bytes += (uint64_t)entry.info.st_size;
            if (entry.info.st_size > 0 && ret_sample->length == 0)
                str_append(ret_sample, entry.path);
        }
        /* A directory that cannot be read counts as empty. */
        if (S_ISDIR(entry.info.st_mode) && (status = walk_enter(walk, err)) > 0)
            status = 0;
    }
    walk_close(walk);
    if (status == 0)
        *ret_bytes = bytes;
    return status;
}

/* ---- what git would open ---- */

int git_ignored_can_ask(int dir, struct brig_error *err)
{
    struct walk *walk = NULL;
    struct walk_entry entry;
    bool sound = true;
    int status = walk_open(dir, NULL, &walk, err);
    while (sound && status >= 0 && (status = walk_next(walk, &entry, err)) > 0) {
        mode_t mode = entry.info.st_mode;
        if (S_ISDIR(mode) && strcmp(entry.name, ".git") != 0)
            status = walk_enter(walk, err);
        sound = strcmp(entry.name, ".gitignore") != 0 || S_ISREG(mode) || S_ISLNK(mode) ||
                S_ISDIR(mode);
    }
    walk_close(walk);
    return status < 0 ? status : sound;
}

bool git_ignored_is_sound(int dir, uid_t owner)
{
    static const char *const names[] = {"HEAD", "config", "index", "info/exclude"};
    struct repo repo = REPO_INIT;
    bool sound = repo_find(dir, owner, &repo, NULL) >= 0 &&
                 (repo.kind == REPO_DIRECTORY || repo.kind == REPO_FILE);
    for (size_t i = 0; i < ARRAY_LENGTH(names) && sound; i++) {
        struct stat info;
        if (fstatat(repo.git_dir, names[i], &info, AT_SYMLINK_NOFOLLOW) == 0)
            sound = S_ISREG(info.st_mode);
    }
    repo_done(&repo);
    return sound;
}

void git_ignored_states(int dir, uid_t owner, char ret_hash[SHA256_HEX_LENGTH + 1])
{
    static const char *const names[] = {"index", "info/exclude", "config"};
    autostr struct str states = {0};
    struct repo repo = REPO_INIT;
    if (repo_find(dir, owner, &repo, NULL) >= 0 && repo.git_dir >= 0)
        for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
            struct stat info = {0};
            (void)fstatat(repo.git_dir, names[i], &info, AT_SYMLINK_NOFOLLOW);
            const struct ident ident = ident_of(&info);
            str_append_bytes(&states, &ident, sizeof ident);
        }
    repo_done(&repo);
    sha256_hex(states.data ? states.data : "", states.length, ret_hash);
}
