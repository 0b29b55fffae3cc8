/* SPDX-License-Identifier: MIT */
#include "held/held.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
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
#include "base/tree.h"
#include "held/names.h"

#define ITEMS_MAX 4096
#define LISTED_MAX 1024   /* entries of a directory that are compared with the held names */
#define CONTENT "content" /* in the directory of an item, beside `about` */

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

int held_find(const struct held_root *root, const struct held_rules *rules, held_each each,
              void *context)
{
    size_t i = 0;
    int status = 0;
    struct held_set now, fresh = {0};
    bool is_new_git = false;
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
        int found = each(context, root, &at);
        status = status < 0 ? status : found; /* the others are still held back */
    }
    return status;
}

/* ---- holding back ---- */

/* Opens the parent directory of a path without following a link, and points to the last
 * component. */
static int open_parent(int top, const char *path, const char **ret_name)
{
    const char *slash = strrchr(path, '/');
    *ret_name = slash ? slash + 1 : path;
    if (!slash)
        return files_open_dir(top, ".");
    char above[PATH_LENGTH_MAX + 1];
    (void)snprintf(above, sizeof above, "%.*s", (int)(slash - path), path);
    int fd = -1;
    return path_open_beneath(top, above, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &fd, NULL) < 0
               ? -1
               : fd;
}

/* Creates the next numbered directory in the store. */
static int make_item(int store, char ret_number[16], struct brig_error *err)
{
    int i = 1;
    do {
        (void)snprintf(ret_number, 16, "%d", i);
        if (mkdirat(store, ret_number, 0700) == 0) {
            int fd = -1;
            int status = files_make_dir(store, ret_number, &fd, err);
            return status < 0 ? status : fd;
        }
    } while (errno == EEXIST && ++i <= ITEMS_MAX);
    return brig_fail(err, BRIG_E_SYSTEM, errno,
                     "cannot hold back more files: see brig held and brig discard");
}

static int write_about(int item, const struct held_root *root, const char *path, const char *why,
                       size_t left_out, struct brig_error *err)
{
    autostr struct str text = {0}, line = {0};
    const struct str_number number = str_number(left_out);
    char resolved[PATH_LENGTH_MAX + 1];
    struct place place;
    int status = place_of(root->top, &place, err);
    if (status < 0)
        return status;
    place_add(&line, &place);
    const char *project = path_of_fd(root->top, resolved) ? resolved : root->path;
    const char *const texts[] = {project, path, why, number.text, line.data ? line.data : ""};
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
        str_list_add(&text, texts[i]);
    return text.failed ? brig_fail_nomem(err)
                       : files_write(item, "about", text.data, text.length, err);
}

/* Appends a name, and its directory unless that is the working directory; then returns true. */
static bool note_name(struct str *notes, const char *kind, const struct held_root *root,
                      const char *path, const char *why)
{
    char cwd[PATH_LENGTH_MAX + 1];
    bool here = getcwd(cwd, sizeof cwd) && strcmp(cwd, root->path) == 0;
    str_concat(notes, kind, ": ", path);
    if (!here) {
        str_append(notes, " in ");
        str_append_shown(notes, root->path, strlen(root->path), "");
    }
    str_concat(notes, ", which ", why, " would execute");
    return here;
}

/* Generates an unused name that no program obeys. */
static int name_other(const char *name, char ret_other[NAME_MAX + 1], struct brig_error *err)
{
    char prefix[NAME_MAX + 1];
    (void)snprintf(prefix, sizeof prefix, "%s.held-", name);
    return files_random_name(prefix, ret_other, NAME_MAX + 1, err);
}

/* Renames a file so that no program obeys it. That needs no space, but write permission for the
 * directory, which a jail may have removed. */
static int rename_in_place(int parent, const char *name, char ret_other[NAME_MAX + 1],
                           struct brig_error *err)
{
    struct stat info;
    int status = name_other(name, ret_other, err);
    if (status < 0)
        return status;
    int failed = path_rename_new(parent, name, parent, ret_other);
    if (failed == -EACCES && fstat(parent, &info) == 0 &&
        fchmod(parent, (info.st_mode & 07777) | 0700) == 0)
        failed = path_rename_new(parent, name, parent, ret_other);
    return failed < 0 ? brig_fail(err, BRIG_E_SYSTEM, -failed, "cannot rename it") : 0;
}

static void note_held(const struct held_root *root, const char *path, const char *why,
                      size_t left_out, struct str *notes)
{
    bool here = note_name(notes, "held back", root, path, why);
    if (left_out > 0)
        str_appendf(notes, "; FIFOs, sockets and devices in it were deleted (%zu)", left_out);
    if (here)
        str_concat(notes, ". brig held shows it, brig keep ", path, " restores it\n");
    else
        str_append(notes, ". See brig held\n");
}

/* The type of a special file; NULL for a file, a directory or a link. */
static const char *kind_without_content(mode_t mode)
{
    return S_ISFIFO(mode)                   ? "a FIFO"
           : S_ISSOCK(mode)                 ? "a socket"
           : S_ISCHR(mode) || S_ISBLK(mode) ? "a device"
                                            : NULL;
}

/* Copies the file and removes it: a rename is not enough, because the jail may have kept a hard
 * link and could change the file after it was inspected. */
static int move_to_store(const struct held_root *root, int parent, const char *name,
                         const char *path, const char *why, int store, size_t *ret_left_out,
                         struct brig_error *err)
{
    char number[16];
    autoclose int item = make_item(store, number, err);
    if (item < 0)
        return item;
    int status = copying_all(parent, name, item, CONTENT, ret_left_out, err);
    if (status == 0)
        status = brig_fail(err, BRIG_E_SYSTEM, 0, "'%s' was replaced", path);
    if (status > 0)
        status = write_about(item, root, path, why, *ret_left_out, err);
    if (status == 0)
        status = tree_remove(parent, name, err);
    if (status < 0)
        (void)tree_remove(store, number, NULL);
    return status;
}

static int take_one(const struct held_root *root, int store, const struct names_held_name *held,
                    struct str *notes, struct brig_error *err)
{
    const char *name, *why = held->row->program;
    char path[PATH_LENGTH_MAX + 1], other[NAME_MAX + 1];
    struct stat info;
    struct brig_error copying = {0};
    size_t left_out = 0;
    (void)snprintf(path, sizeof path, "%s", held->path);
    autoclose int parent = open_parent(root->top, path, &name);
    if (parent < 0) { /* a parent is a link: the link itself is held back */
        path[strcspn(path, "/")] = '\0';
        parent = open_parent(root->top, path, &name);
    }
    if (parent < 0 || fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return 0; /* it was reached by a link that is held back already */
    int status = rename_in_place(parent, name, other, err);
    if (status < 0)
        return status;
    const char *kind = kind_without_content(info.st_mode);
    if (kind && tree_remove(parent, other, NULL) == 0) {
        (void)note_name(notes, "deleted", root, path, why);
        str_concat(notes, ": it was ", kind, ", which has no content to hold back\n");
    } else if (!kind &&
               move_to_store(root, parent, other, path, why, store, &left_out, &copying) == 0) {
        note_held(root, path, why, left_out, notes);
    } else {
        (void)note_name(notes, "held back", root, path, why);
        str_concat(notes, ", is now ", other, ": ", copying.message, "\n");
    }
    return 0;
}

struct held_taking {
    int store;
    const struct held_rules *rules;
    struct str *notes;
};

static int held_take_each(void *context, const struct held_root *root,
                          const struct names_held_name *held)
{
    const struct held_taking *taking = context;
    struct brig_error failure = {0};
    if (taking->rules->report_only || taking->store < 0) {
        str_appendf(taking->notes, "new: %s, which %s would execute\n", held->path,
                    held->row->program);
        return 0;
    }
    int status = take_one(root, taking->store, held, taking->notes, &failure);
    if (status < 0)
        str_appendf(taking->notes,
                    "'%s/%s', which %s would execute, could not be held back: %s. Remove it\n",
                    str_shown(root->path).text, held->path, held->row->program, failure.message);
    return status;
}

int held_take(const struct held_root *root, int store, const struct held_rules *rules,
              struct str *notes)
{
    struct held_taking taking = {store, rules, notes};
    return held_find(root, rules, held_take_each, &taking);
}

/* ---- the store ---- */

static int compare_entries(const FTSENT **left, const FTSENT **right)
{
    return strcmp((*left)->fts_name, (*right)->fts_name);
}

int held_walk(int directory, held_visit visit, void *context, struct brig_error *err)
{
    struct path_proc top = path_proc(directory);
    char *const paths[] = {top.text, NULL};
    FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, compare_entries);
    if (!walk)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read the jail's storage");
    for (const FTSENT *entry; (entry = fts_read(walk));)
        if (entry->fts_info == FTS_F || entry->fts_info == FTS_SL)
            visit(context, entry->fts_path + strlen(top.text) + 1, entry->fts_statp);
    (void)fts_close(walk);
    return 0;
}

static void count_file(void *context, const char *path, const struct stat *info)
{
    struct held_item *item = context;
    (void)path;
    item->files++;
    item->bytes += S_ISREG(info->st_mode) ? (uint64_t)info->st_size : 0;
}

static void item_done(struct held_item *item)
{
    free(item->jail);
    free(item->place);
    free(item->project);
    free(item->path);
    free(item->why);
}

static bool measure(int storage, struct held_item *item)
{
    struct stat info;
    autoclose int fd = held_open(storage, item, "", NULL);
    if (fd < 0 || fstat(fd, &info) < 0)
        return false;
    item->mode = info.st_mode;
    if (S_ISDIR(info.st_mode))
        return held_walk(fd, count_file, item, NULL) == 0;
    item->bytes = (uint64_t)info.st_size;
    return true;
}

/* The line of place_add(); an item of an earlier version has none. */
static void held_read_place(const char *line, struct place *ret_place)
{
    static const char key[] = PLACE_KEY " ";
    char value[64];
    if (str_starts_with(line, key) && str_fill(value, sizeof value, line + strlen(key))) {
        value[strcspn(value, "\n")] = '\0';
        (void)place_read(value, ret_place);
    }
}

/* Returns 1, or 0 if it is incomplete. */
static int read_item(int storage, const char *jail, const char *number, struct held_item *ret_item)
{
    autostr struct str text = {0};
    autofree char *about = NULL;
    char *left_out = NULL;
    struct stat info;
    struct held_item item = {0};
    char **const texts[] = {&item.project, &item.path, &item.why, &left_out};
    bool complete = str_copy(jail, &item.jail, NULL) == 0 &&
                    str_make(&item.place, NULL, jail, HELD_PART "/", number) == 0 &&
                    str_make(&about, NULL, item.place, "/about") == 0 &&
                    fstatat(storage, about, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
                    files_read(storage, about, &text);
    const char *at = NULL;
    for (size_t i = 0; i < ARRAY_LENGTH(texts) && complete; i++)
        complete = (at = str_list_next(&text, at)) && (*texts[i] = strdup(at));
    complete = complete && measure(storage, &item);
    if (complete) {
        item.time = info.st_mtim; /* it is never written again */
        item.left_out = strtoul(left_out, NULL, 10);
        at = str_list_next(&text, at);
        if (at)
            held_read_place(at, &item.at);
        *ret_item = item;
    } else {
        item_done(&item);
    }
    free(left_out);
    return complete;
}

int held_list(int storage, const char *jail, struct held_list *list, struct brig_error *err)
{
    autofree char *part = NULL;
    int status = str_make(&part, err, jail, HELD_PART);
    if (status < 0)
        return status;
    autodir DIR *dir = files_list(storage, part);
    if (!dir)
        return errno == ENOENT
                   ? 0
                   : brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read the jail's storage");
    for (const struct dirent *entry; (entry = files_next(dir));) {
        if (!array_grow(&list->items, list->count))
            return brig_fail_nomem(err);
        list->count += (size_t)read_item(storage, jail, entry->d_name, &list->items[list->count]);
    }
    return 0;
}

void held_list_done(struct held_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        item_done(&list->items[i]);
    free(list->items);
    *list = (struct held_list){0};
}

int held_open(int storage, const struct held_item *item, const char *below, struct brig_error *err)
{
    autofree char *path = NULL;
    int fd = -1;
    int status = str_make(&path, err, item->place, "/" CONTENT, *below ? "/" : "", below);
    if (status == 0)
        status = path_open_beneath(storage, path, O_PATH | O_NOFOLLOW, 0, &fd, err);
    return status < 0 ? status : fd;
}

/* Opens the directory for an item in its project, and creates it if it is below the top, such as
 * .claude. `to` is another directory for the project, or -1. */
static int open_target(const struct held_item *item, int to, const char **ret_name,
                       struct brig_error *err)
{
    autoclose int top =
        to >= 0 ? fcntl(to, F_DUPFD_CLOEXEC, 3) : place_open(item->project, &item->at, err);
    if (top < 0 && to < 0)
        return brig_advise(err, top, "If you have moved the project: brig keep --to DIRECTORY");
    const char *slash = strchr(item->path, '/');
    if (top >= 0 && slash) {
        char above[PATH_LENGTH_MAX + 1];
        (void)snprintf(above, sizeof above, "%.*s", (int)(slash - item->path), item->path);
        (void)mkdirat(top, above, 0755);
    }
    autoclose int parent = top < 0 ? -1 : open_parent(top, item->path, ret_name);
    if (parent < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open the directory of '%s'",
                         item->path);
    if (files_exists(parent, *ret_name))
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' exists. Move it away first", item->path);
    return take_fd(&parent);
}

int held_restore(int storage, const struct held_item *item, int to, struct brig_error *err)
{
    const char *name;
    char other[NAME_MAX + 1];
    size_t left_out;
    autoclose int parent = open_target(item, to, &name, err);
    if (parent < 0)
        return parent;
    autoclose int at = files_open_dir(storage, item->place);
    int status = at < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read the jail's storage")
                        : name_other(name, other, err);
    if (status < 0)
        return status;
    status = copying_all(at, CONTENT, parent, other, &left_out, err);
    if (status == 0)
        status = brig_fail(err, BRIG_E_SYSTEM, 0, "the copy of '%s' is gone", item->path);
    int failed = status > 0 ? path_rename_new(parent, other, parent, name) : 0;
    if (failed < 0)
        status = brig_fail(err, BRIG_E_SYSTEM, -failed, "cannot restore '%s'", item->path);
    if (status < 0) {
        (void)tree_remove(parent, other, NULL);
        return status;
    }
    (void)held_discard(storage, item, NULL); /* restored, even if the copy cannot be removed */
    return 0;
}

int held_discard(int storage, const struct held_item *item, struct brig_error *err)
{
    return tree_remove(storage, item->place, err);
}
