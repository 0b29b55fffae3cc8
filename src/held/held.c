/* SPDX-License-Identifier: MIT */
#include "held/held.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/files.h"
#include "base/path.h"
#include "held/names.h"

#define LISTED_MAX 1024 /* entries of a directory that are compared with the held names */

/* ---- which names exist ---- */

static void held_set_add(struct held_set *set, size_t index)
{
    if (index < HELD_NAMES_MAX)
        set->words[index / 64] |= UINT64_C(1) << (index % 64);
}

bool held_set_has(const struct held_set *set, size_t index)
{
    return index < HELD_NAMES_MAX && (set->words[index / 64] & UINT64_C(1) << (index % 64));
}

/* Whether a name has ASCII letters only: others may be the same as these where case does not count. */
static bool held_is_ascii(const char *name)
{
    for (; *name; name++)
        if ((unsigned char)*name >= 0x80)
            return false;
    return true;
}

/* Finds the held names that may exist, by one listing of the directory instead of a question for each. False if that does
 * not tell: it is unreadable or large, or has names that are compared by other rules. */
static bool held_list_candidates(int top, struct held_set *ret_set)
{
    autodir DIR *dir = files_list(top, ".");
    size_t count = 0;
    *ret_set = (struct held_set){0};
    if (!dir)
        return false;
    for (const struct dirent *item; (item = files_next(dir));) {
        size_t i = 0, length = strlen(item->d_name);
        if (++count > LISTED_MAX || !held_is_ascii(item->d_name))
            return false;
        for (struct names_held_name at = {0}; names_next_held(&at); i++)
            if (strncasecmp(at.path, item->d_name, length) == 0 &&
                (!at.path[length] || at.path[length] == '/'))
                held_set_add(ret_set, i);
    }
    return true;
}

void held_look_at(int top, struct held_set *ret_set)
{
    struct held_set candidates;
    size_t i = 0;
    bool listed = held_list_candidates(top, &candidates);
    *ret_set = (struct held_set){0};
    for (struct names_held_name at = {0}; names_next_held(&at); i++)
        if ((!listed || held_set_has(&candidates, i)) && files_exists(top, at.path))
            held_set_add(ret_set, i);
}

void held_set_write(const struct held_set *set, struct str *text)
{
    size_t i = 0;
    for (struct names_held_name at = {0}; names_next_held(&at); i++)
        if (held_set_has(set, i))
            str_concat(text, ":", at.path);
    str_append(text, ":");
}

/* The names of brig 0.2, of which the bits were written as a hexadecimal number. */
static const char *const held_old_names[] = {
    ".envrc",
    ".vscode",
    ".idea",
    ".zed",
    ".devcontainer",
    ".devcontainer.json",
    ".husky",
    ".mcp.json",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude/hooks",
    ".codex",
    ".cursor",
    ".gemini",
    ".qwen",
    ".opencode",
    "opencode.json",
    ".windsurf",
    ".roo",
    ".aider.conf.yml",
    ".hg/hgrc",
    ".brig.conf",
    ".git",
    "HEAD",
    "config",
    "hooks",
    "objects",
    "refs",
    "commondir",
};

/* Whether a text of held_set_write() has a name. */
static bool held_text_has(const char *text, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = text; (at = strstr(at, name)); at++)
        if (at > text && at[-1] == ':' && at[length] == ':')
            return true;
    return false;
}

void held_set_read(const char *text, struct held_set *ret_set)
{
    size_t i = 0;
    uint64_t old = text[0] == ':' ? 0 : strtoumax(text, NULL, 16);
    *ret_set = (struct held_set){0};
    for (struct names_held_name at = {0}; names_next_held(&at); i++) {
        bool had = held_text_has(text, at.path);
        for (size_t k = 0; k < ARRAY_LENGTH(held_old_names); k++)
            had = had || (old >> k & 1 && strcmp(held_old_names[k], at.path) == 0);
        if (had)
            held_set_add(ret_set, i);
    }
}

void held_set_keep(struct held_set *set, const char *text)
{
    struct held_set other;
    held_set_read(text, &other);
    for (size_t i = 0; i < ARRAY_LENGTH(set->words); i++)
        set->words[i] &= other.words[i];
}

int held_look(int top, const char *path, struct held_root *ret_root, struct brig_error *err)
{
    struct held_root root = {.top = fcntl(top, F_DUPFD_CLOEXEC, 3)};
    if (root.top < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot copy a file descriptor");
    held_look_at(top, &root.existed);
    int status = str_copy(path, &root.path, err);
    if (status < 0)
        (void)close(root.top);
    else
        *ret_root = root;
    return status;
}

bool held_has_new(const struct held_root *root)
{
    struct held_set now;
    held_look_at(root->top, &now);
    for (size_t i = 0; i < ARRAY_LENGTH(now.words); i++)
        if (now.words[i] & ~root->existed.words[i])
            return true;
    return false;
}

void held_root_done(struct held_root *root)
{
    if (root->top >= 0)
        (void)close(root->top);
    free(root->path);
    *root = (struct held_root){.top = -1};
}

/* ---- which of them are held back ---- */

/* Makes the directories of held names accessible again: a run could hide what is in them from this search by their modes. */
static void held_open_parents(const struct held_root *root)
{
    size_t i = 0;
    for (struct names_held_name at = {0}; names_next_held(&at); i++) {
        const char *slash = strchr(at.path, '/');
        char name[NAME_MAX + 1];
        struct stat info;
        if (!slash || held_set_has(&root->existed, i) || (size_t)(slash - at.path) > NAME_MAX)
            continue;
        (void)snprintf(name, sizeof name, "%.*s", (int)(slash - at.path), at.path);
        autoclose int dir = openat(root->top, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (dir >= 0 && fstat(dir, &info) == 0 && (info.st_mode & 0700) != 0700)
            (void)chmod(path_proc(dir).text, (info.st_mode & 07777) | 0700);
    }
}

/* Whether git takes the directory for a bare repository. In a repository these are ordinary names. */
static bool held_is_bare(const struct held_root *root, bool is_new_git)
{
    autoclose int git = files_open_dir(root->top, ".git");
    bool in_repository =
        files_exists(root->top, ".git") && !is_new_git && (git < 0 || files_exists(git, "HEAD"));
    return !in_repository && files_exists(root->top, "HEAD") &&
           (files_exists(root->top, "commondir") ||
            (files_exists(root->top, "objects") && files_exists(root->top, "refs")));
}

/* Whether a `.git` that was not there at the start is the mount point of another run. */
static bool held_is_mounted(const struct held_root *root)
{
    autoclose int git = files_open_dir(root->top, ".git");
    return git >= 0 && files_is_mount_point(git);
}

/* ---- holding back ---- */

static int held_take_name(const struct held_root *root, const struct held_keeper *keeper,
                          const struct held_rules *rules, const struct names_held_name *held,
                          struct str *notes)
{
    struct brig_error failure = {0};
    if (rules->report_only || !keeper->hold) {
        str_appendf(notes, "new: %s, which %s would execute\n", held->path, held->row->program);
        return 0;
    }
    int status = keeper->hold(keeper->record, root, held, notes, &failure);
    if (status < 0)
        str_appendf(notes,
                    "'%s/%s', which %s would execute, could not be held back: %s. Remove it\n",
                    str_shown(root->path).text, held->path, held->row->program, failure.message);
    return status;
}

int held_take(const struct held_root *root, const struct held_keeper *keeper,
              const struct held_rules *rules, struct str *notes)
{
    size_t i = 0;
    int status = 0;
    struct held_set now, fresh = {0};
    bool is_new_git = false;
    held_open_parents(root);
    held_look_at(root->top, &now);
    for (struct names_held_name at = {0}; names_next_held(&at); i++) {
        bool git = at.row->held == NAMES_HELD_NEW && strcmp(at.path, ".git") == 0;
        if (!held_set_has(&now, i) || held_set_has(&root->existed, i) ||
            (git && held_is_mounted(root)))
            continue;
        held_set_add(&fresh, i);
        is_new_git = is_new_git || git;
    }
    bool bare = held_is_bare(root, is_new_git);
    i = 0;
    for (struct names_held_name at = {0}; names_next_held(&at); i++) {
        if (!held_set_has(&fresh, i) || (at.row->held == NAMES_HELD_BARE && !bare) ||
            names_is_excepted(rules->unprotect, rules->unprotect_count, root->path, at.path))
            continue;
        int taken = held_take_name(root, keeper, rules, &at, notes);
        status = status < 0 ? status : taken; /* the others are still held back */
    }
    return status;
}
