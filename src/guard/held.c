/* SPDX-License-Identifier: MIT */
#include "guard/held.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "base/path.h"
#include "base/tree.h"
#include "base/write.h"
#include "guard/copying.h"
#include "guard/names.h"
#include "guard/repo.h"

#define ITEMS_MAX 4096
#define ABOUT_MAX (3 * PATH_LENGTH_MAX)
#define CONTENT "content"
#define LINK "link"

/* Beside the table of names: a repository, where none was, and the parts of a bare one. */
static const struct names_row git_rows[] = {
    {".git", "git"},    {"HEAD", "git"}, {"config", "git"},    {"hooks", "git"},
    {"objects", "git"}, {"refs", "git"}, {"commondir", "git"},
};
enum { ROW_GIT, ROW_HEAD, ROW_CONFIG, ROW_HOOKS, ROW_OBJECTS, ROW_REFS, ROW_COMMONDIR };

static const struct names_row *row_of(size_t index)
{
    return index < names_count ? &names_rows[index] : &git_rows[index - names_count];
}
static size_t row_count(void)
{
    return names_count + ARRAY_LENGTH(git_rows);
}

static bool exists(int top, const char *path)
{
    struct stat info;
    return fstatat(top, path, &info, AT_SYMLINK_NOFOLLOW) == 0;
}

static uint64_t look(int top)
{
    uint64_t found = 0;
    for (size_t i = 0; i < row_count(); i++)
        if (exists(top, row_of(i)->path))
            found |= UINT64_C(1) << i;
    return found;
}

static bool has(uint64_t found, size_t git_row)
{
    return found & UINT64_C(1) << ((names_count + git_row) & 63);
}

int held_look(int top, const char *path, struct held_root *ret_root, struct brig_error *err)
{
    struct held_root root = {.top = fcntl(top, F_DUPFD_CLOEXEC, 3), .existed = look(top)};
    if (root.top < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot copy a file descriptor");
    int status = str_copy(path, &root.path, err);
    if (status < 0)
        (void)close(root.top);
    else
        *ret_root = root;
    return status;
}

bool held_has_new(const struct held_root *root)
{
    return look(root->top) & ~root->existed;
}

void held_root_done(struct held_root *root)
{
    if (root->top >= 0)
        (void)close(root->top);
    free(root->path);
    *root = (struct held_root){.top = -1};
}

/* ---- taking ---- */

/* Opens the directory of a path without following a link, and points to the last part of it. */
static int open_parent(int top, const char *path, const char **ret_name)
{
    const char *slash = strrchr(path, '/');
    *ret_name = slash ? slash + 1 : path;
    if (!slash)
        return openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char above[PATH_LENGTH_MAX + 1];
    (void)snprintf(above, sizeof above, "%.*s", (int)(slash - path), path);
    int fd = -1;
    return path_open_beneath(top, above, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &fd, NULL) < 0
               ? -1
               : fd;
}

/* Makes the next directory of the store. */
static int make_item(int store, char ret_number[16], struct brig_error *err)
{
    for (int i = 1; i <= ITEMS_MAX; i++) {
        (void)snprintf(ret_number, 16, "%d", i);
        if (mkdirat(store, ret_number, 0700) == 0) {
            int fd = openat(store, ret_number, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            return fd >= 0 ? fd
                           : brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open the jail's storage");
        }
        if (errno != EEXIST)
            break;
    }
    return brig_fail(err, BRIG_E_SYSTEM, errno,
                     "cannot hold back more files: see brig held and brig discard");
}

/* Copies: a hard link that the jail kept could change the file after it was looked at. */
static int copy_content(int from, const char *name, int to, struct brig_error *err)
{
    char target[PATH_LENGTH_MAX + 1];
    ssize_t length = readlinkat(from, name, target, sizeof target - 1);
    if (length > 0) {
        target[length] = '\0';
        return symlinkat(target, to, LINK) == 0
                   ? 1
                   : brig_fail(err, BRIG_E_SYSTEM, errno, "cannot copy a link");
    }
    int status = copying_file(from, name, to, CONTENT, err);
    if (status != 0)
        return status;
    return copying_tree(from, name, to, CONTENT, NULL, err);
}

static int write_about(int item, const struct held_root *root, const char *path, const char *why,
                       struct brig_error *err)
{
    autostr struct str text = {0};
    const char *const texts[] = {root->path, path, why};
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
        str_append_bytes(&text, texts[i], strlen(texts[i]) + 1);
    autoclose int fd = openat(item, "about", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int failed = fd < 0 ? -errno : text.failed ? -ENOMEM : write_all(fd, text.data, text.length);
    return failed < 0 ? brig_fail(err, BRIG_E_SYSTEM, -failed, "cannot write to the jail's storage")
                      : 0;
}

/* What cannot be copied, as it is too deep or too large: under another name nothing obeys it. */
static int rename_in_place(const struct held_root *root, int parent, const char *name,
                           const char *path, const char *why, struct str *notes,
                           struct brig_error *err)
{
    for (int i = 1; i <= ITEMS_MAX; i++) {
        char other[NAME_MAX + 1];
        (void)snprintf(other, sizeof other, "%s.held-%d", name, i);
        if (renameat2(parent, name, parent, other, RENAME_NOREPLACE) == 0) {
            str_appendf(notes,
                        "held back: %s, which %s would obey, is now %s: it could not be copied\n",
                        path, why, other);
            return 0;
        }
        if (errno != EEXIST)
            break;
    }
    return brig_fail(err, BRIG_E_SYSTEM, errno,
                     "'%s/%s', which %s would obey, can neither be copied nor renamed. Remove it",
                     str_shown(root->path).text, path, why);
}

static int take_one(const struct held_root *root, int store, const struct names_row *row,
                    struct str *notes, struct brig_error *err)
{
    char number[16];
    const char *name;
    char path[PATH_LENGTH_MAX + 1];
    (void)snprintf(path, sizeof path, "%s", row->path);
    autoclose int parent = open_parent(root->top, path, &name);
    if (parent < 0) { /* the directory is a link that leads elsewhere: the link is held back */
        path[strcspn(path, "/")] = '\0';
        parent = open_parent(root->top, path, &name);
    }
    autoclose int item = parent < 0 ? -1 : make_item(store, number, err);
    if (item < 0)
        return parent < 0 ? 0 : item;
    int status = copy_content(parent, name, item, err);
    if (status >= 0)
        status = write_about(item, root, path, row->why, err);
    if (status >= 0)
        status = tree_remove(parent, name, err);
    if (status < 0) {
        (void)tree_remove(store, number, NULL);
        return rename_in_place(root, parent, name, path, row->why, notes, err);
    }
    str_appendf(
        notes, "held back: %s, which %s would obey. brig held shows it, brig keep %s restores it\n",
        path, row->why, path);
    return 0;
}

int held_take(const struct held_root *root, int store, const struct held_rules *rules,
              struct str *notes, struct brig_error *err)
{
    uint64_t now = look(root->top), fresh = now & ~root->existed;
    /* In a repository these are names like any other. */
    autoclose int git = openat(root->top, ".git", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool in_repository = exists(root->top, ".git") && (git < 0 || !repo_is_empty(git));
    bool bare = !in_repository && has(now, ROW_HEAD) &&
                (has(now, ROW_COMMONDIR) || (has(now, ROW_OBJECTS) && has(now, ROW_REFS)));
    int status = 0;
    for (size_t i = 0; i < row_count(); i++) {
        const struct names_row *row = row_of(i);
        bool part_of_bare = i > names_count; /* all of git_rows but .git */
        if (!(fresh & UINT64_C(1) << i) || (part_of_bare && !bare) ||
            names_is_excepted(rules->unprotect, rules->unprotect_count, root->path, row->path))
            continue;
        if (rules->report_only || store < 0)
            str_appendf(notes, "new: %s, which %s would obey\n", row->path, row->why);
        else if (take_one(root, store, row, notes, err) < 0)
            status = err ? err->code : BRIG_E_SYSTEM; /* and the others are held back */
    }
    return status;
}

/* ---- the store ---- */

static void item_done(struct held_item *item)
{
    free(item->number);
    free(item->project);
    free(item->path);
    free(item->why);
}

static int read_item(int store, const char *number, struct held_item *ret_item,
                     struct brig_error *err)
{
    char text[ABOUT_MAX + 1], path[300];
    (void)snprintf(path, sizeof path, "%s/about", number);
    autoclose int fd = openat(store, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, ABOUT_MAX);
    if (length <= 0)
        return 0;
    text[length] = '\0';
    const char *project = text;
    const char *rest = project + strlen(project) + 1;
    const char *why = rest < text + length ? rest + strlen(rest) + 1 : rest;
    if (why >= text + length)
        return 0;
    struct held_item item = {0};
    int status = str_copy(number, &item.number, err);
    if (status == 0)
        status = str_copy(project, &item.project, err);
    if (status == 0)
        status = str_copy(rest, &item.path, err);
    if (status == 0)
        status = str_copy(why, &item.why, err);
    if (status < 0) {
        item_done(&item);
        return status;
    }
    *ret_item = item;
    return 1;
}

int held_list(int store, struct held_list *ret_list, struct brig_error *err)
{
    struct held_list list = {.items = calloc(ITEMS_MAX, sizeof *list.items)};
    autoclose int fd = openat(store, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    int status = list.items && dir
                     ? 0
                     : brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read the jail's storage");
    const struct dirent *item;
    if (dir)
        (void)take_fd(&fd);
    while (status >= 0 && list.count < ITEMS_MAX && (item = readdir(dir))) {
        if (item->d_name[0] == '.')
            continue;
        status = read_item(store, item->d_name, &list.items[list.count], err);
        list.count += status > 0;
    }
    if (status < 0)
        held_list_done(&list);
    else
        *ret_list = list;
    return status < 0 ? status : 0;
}

void held_list_done(struct held_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        item_done(&list->items[i]);
    free(list->items);
    *list = (struct held_list){0};
}

int held_open(int store, const struct held_item *item, struct brig_error *err)
{
    autoclose int at = openat(store, item->number, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int fd = at < 0 ? -1 : openat(at, CONTENT, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    return fd >= 0 ? fd
                   : brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open the copy of '%s'",
                               str_shown(item->path).text);
}

int held_restore(int store, const struct held_item *item, struct brig_error *err)
{
    const char *name;
    char target[PATH_LENGTH_MAX + 1];
    autoclose int top = open(item->project, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autoclose int at = openat(store, item->number, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (top < 0 || at < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open '%s'",
                         str_shown(item->project).text);
    char above[PATH_LENGTH_MAX + 1];
    const char *slash = strchr(item->path, '/');
    if (slash) { /* .claude */
        (void)snprintf(above, sizeof above, "%.*s", (int)(slash - item->path), item->path);
        (void)mkdirat(top, above, 0755);
    }
    autoclose int parent = open_parent(top, item->path, &name);
    if (parent < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open the directory of '%s'",
                         str_shown(item->path).text);
    if (exists(parent, name))
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s/%s' exists. Move it away first",
                         str_shown(item->project).text, str_shown(item->path).text);
    ssize_t length = readlinkat(at, LINK, target, sizeof target - 1);
    int status;
    if (length > 0) {
        target[length] = '\0';
        status = symlinkat(target, parent, name) == 0 ? 1 : BRIG_E_SYSTEM;
    } else if ((status = copying_file(at, CONTENT, parent, name, err)) == 0) {
        status = copying_tree(at, CONTENT, parent, name, NULL, err);
    }
    return status < 0 ? status : held_discard(store, item, err);
}

int held_discard(int store, const struct held_item *item, struct brig_error *err)
{
    return tree_remove(store, item->number, err);
}
