/* SPDX-License-Identifier: MIT */
/* Builds an index and a working tree, runs `git add -p` on them, and reads the index. */
#include "changes/diff/hunks.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/files.h"
#include "base/path.h"
#include "base/process.h"
#include "base/str.h"
#include "changes/diff/import.h"
#include "changes/diff/plain.h"
#include "changes/diff/scratch.h"
#include "changes/layer/change.h"
#include "changes/layer/layer.h"
#include "changes/operation/step.h"
#include "git/git.h"

#define BEFORE_REF "refs/brig/before"
#define TREE "tree"

/* These come before everything a tree says: no attribute of it changes contents or hides a change. */
#define ATTRIBUTES                                                                                 \
    "* -text !eol -filter -ident !working-tree-encoding !diff !merge !whitespace -export-subst\n"

struct item {
    char *path, *mapped; /* in the layer, and for git */
    bool whole;          /* a line stands for each version */
    bool added;
    struct hunks_found found;
};

struct hunks {
    const struct git *git;
    struct scratch scratch;
    struct import import; /* of the user's versions */
    int tree;             /* the working tree, with the jail's versions */
    /* Everything is in one directory, which is named like the root: an editor that `git add -p` starts in
     * the working tree may obey files there. */
    struct str prefix;
    bool odd;           /* a path has characters that a terminal interprets */
    struct item *items; /* in the order of path_compare() of `path` */
    size_t count;
};

/* ---- beginning and end ---- */

int hunks_new(const struct git *git, int record, struct hunks **ret_hunks, struct brig_error *err)
{
    struct hunks *hunks = calloc(1, sizeof *hunks);
    if (!hunks)
        return brig_fail_nomem(err);
    *hunks = (struct hunks){.git = git, .scratch = SCRATCH_INIT, .tree = -1};
    int status = scratch_make(record, &hunks->scratch, err);
    if (status == 0)
        status =
            scratch_write(&hunks->scratch, "info/attributes", ATTRIBUTES, strlen(ATTRIBUTES), err);
    if (status == 0 &&
        (mkdirat(hunks->scratch.dir, TREE, 0700) < 0 ||
         (hunks->tree = openat(hunks->scratch.dir, TREE, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0))
        status = brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write to the jail's record");
    if (status == 0)
        status = import_begin(git, hunks->scratch.dir, BEFORE_REF, &hunks->import, err);
    if (status < 0)
        hunks_free(hunks);
    else
        *ret_hunks = hunks;
    return status;
}

void hunks_free(struct hunks *hunks)
{
    if (!hunks)
        return;
    import_abort(&hunks->import);
    for (size_t i = 0; i < hunks->count; i++) {
        free(hunks->items[i].path);
        free(hunks->items[i].mapped);
    }
    free(hunks->items);
    str_done(&hunks->prefix);
    close_fd(&hunks->tree);
    scratch_remove(&hunks->scratch);
    free(hunks);
}

/* ---- adding changes ---- */

/* One version of a file: its text, or a line that stands for it. */
struct version {
    mode_t mode; /* 0: there is no file */
    struct str text;
};

static bool is_offered(const struct change *change)
{
    mode_t before = change->before.st_mode, after = change->after.st_mode;
    if (change->unreadable || (before && !S_ISREG(before) && !S_ISLNK(before)) ||
        (after && !S_ISREG(after) && !S_ISLNK(after)))
        return false;
    if (change->kind == CHANGE_METADATA)
        return S_ISREG(after) && (before & S_IXUSR) != (after & S_IXUSR);
    return change->kind != CHANGE_TYPE;
}

static int read_version(int dir, const char *name, int fd, struct version *version,
                        struct brig_error *err)
{
    char target[PATH_LENGTH_MAX + 1];
    if (S_ISLNK(version->mode)) {
        ssize_t length = readlinkat(dir, name, target, sizeof target);
        str_append_bytes(&version->text, target, length > 0 ? (size_t)length : 0);
    } else if (fd < 0 || read_all(fd, HUNKS_FILE_MAX, &version->text) < 0) {
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read '%s'", str_shown(name).text);
    }
    return version->text.failed ? brig_fail_nomem(err) : 0;
}

static int read_versions(const struct change *change, struct version *before, struct version *after,
                         struct brig_error *err)
{
    autoclose int old = S_ISREG(before->mode) ? change_open_before(change) : -1;
    autoclose int new = S_ISREG(after->mode) ? change_open_after(change) : -1;
    int status = before->mode ? read_version(change->lower_dir, change->name, old, before, err) : 0;
    if (status == 0 && after->mode)
        status = read_version(change->upper_dir, change->name, new, after, err);
    return status;
}

static bool can_be_split(const struct version *version)
{
    const struct str *text = &version->text;
    return text->length == 0 ||
           (text->length <= HUNKS_FILE_MAX && !memchr(text->data, 0, text->length) &&
            plain_is_plain(text->data, text->length));
}

static void put_line(struct version *version, const char *owner, const struct stat *info)
{
    if (!version->mode)
        return;
    version->text.length = 0;
    str_appendf(&version->text, "%s %s of %jd bytes, which can only be taken whole\n", owner,
                S_ISLNK(version->mode) ? "link" : "file", (intmax_t)info->st_size);
}

/* Creates the directories of a path in the working tree. Returns an fd of the last. */
static int open_parent(const struct hunks *hunks, const char *path, const char **ret_name)
{
    char above[PATH_LENGTH_MAX + 1];
    const char *slash = strrchr(path, '/'); /* everything is below the prefix */
    (void)snprintf(above, sizeof above, "%.*s", (int)(slash - path), path);
    *ret_name = slash + 1;
    return files_make_path(hunks->tree, above) < 0 ? -1 : step_open_directory(hunks->tree, above);
}

/* Writes the jail's version to the working tree. */
static int put_after(const struct hunks *hunks, const char *mapped, const struct version *version,
                     struct brig_error *err)
{
    const char *name;
    const char *text = version->text.length > 0 ? version->text.data : "";
    autoclose int dir = open_parent(hunks, mapped, &name);
    if (dir >= 0 && S_ISLNK(version->mode) && symlinkat(text, dir, name) == 0)
        return 0;
    autoclose int fd =
        dir < 0 || S_ISLNK(version->mode)
            ? -1
            : openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || fchmod(fd, version->mode & S_IXUSR ? 0700 : 0600) < 0 ||
        write_all(fd, text, version->text.length) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write to the jail's record");
    return 0;
}

/* Adds the user's version to the tree that becomes the index. */
static int put_before(struct hunks *hunks, const char *path, const struct version *version,
                      struct brig_error *err)
{
    const char *text = version->text.length > 0 ? version->text.data : "";
    return import_text(&hunks->import, hunks->prefix.data, path, version->mode, text,
                       version->text.length, err);
}

static void make_prefix(struct hunks *hunks, const struct layer *layer)
{
    const char *name = strrchr(layer->root, '/');
    if (hunks->prefix.length == 0)
        import_append_mapped(&hunks->prefix, name && name[1] ? name + 1 : "root", S_IFDIR);
}

/* Git could not find a file if its path has become too long. */
static bool is_too_long(const char *mapped)
{
    size_t length = strlen(mapped);
    for (const char *at = mapped; *at; at += strspn(at, "/")) {
        size_t component = strcspn(at, "/");
        if (component > PATH_COMPONENT_MAX)
            return true;
        at += component;
    }
    return length > PATH_LENGTH_MAX;
}

/* Returns 1, or 0 if it cannot be offered. */
static int add_item(struct hunks *hunks, const struct change *change, struct brig_error *err)
{
    mode_t mode = change->after.st_mode ? change->after.st_mode : change->before.st_mode;
    autostr struct str mapped = {0};
    struct item item = {.added = !change->before.st_mode, .found.choice = HUNKS_NONE};
    make_prefix(hunks, change->layer);
    if (hunks->prefix.failed)
        return brig_fail_nomem(err);
    str_concat(&mapped, hunks->prefix.data, "/");
    import_append_mapped(&mapped, change->path, mode & S_IFMT);
    hunks->odd = hunks->odd || !plain_is_plain(change->path, strlen(change->path));
    if (mapped.failed || !array_grow(&hunks->items, hunks->count))
        return brig_fail_nomem(err);
    if (is_too_long(mapped.data))
        return 0;
    int status = str_copy(change->path, &item.path, err);
    if (status == 0 && (status = str_take(&mapped, &item.mapped, err)) < 0)
        free(item.path);
    if (status == 0)
        hunks->items[hunks->count++] = item;
    return status < 0 ? status : 1;
}

/* Puts lines in place of both versions. A link is offered as a file, as its text would be the target. */
static void make_whole(struct version *before, struct version *after, const struct change *change)
{
    put_line(before, "your", &change->before);
    put_line(after, "the jail's", &change->after);
    before->mode = before->mode ? S_IFREG | (before->mode & S_IXUSR) : 0;
    after->mode = after->mode ? S_IFREG | (after->mode & S_IXUSR) : 0;
}

static int put_versions(struct hunks *hunks, const struct change *change, struct version *before,
                        struct version *after, struct brig_error *err)
{
    int added = add_item(hunks, change, err);
    if (added <= 0)
        return added;
    struct item *item = &hunks->items[hunks->count - 1];
    item->whole = !can_be_split(before) || !can_be_split(after);
    if (item->whole)
        make_whole(before, after, change);
    int status = before->mode ? put_before(hunks, change->path, before, err) : 0;
    if (status == 0 && after->mode)
        status = put_after(hunks, item->mapped, after, err);
    return status;
}

int hunks_add(void *context, const struct change *change, struct brig_error *err)
{
    struct version before = {.mode = change->before.st_mode};
    struct version after = {.mode = change->after.st_mode};
    if (!is_offered(change))
        return 0;
    int status = read_versions(change, &before, &after, err);
    if (status == 0)
        status = put_versions(context, change, &before, &after, err);
    str_done(&before.text);
    str_done(&after.text);
    return status;
}

/* ---- git ---- */

#define WORDS_MAX 32

/* Settings of the user must not change what git finds in the working tree. */
static const char *const options[] = {"--git-dir=..",
                                      "--work-tree=.",
                                      "--literal-pathspecs",
                                      "-c",
                                      "core.fileMode=true",
                                      "-c",
                                      "core.symlinks=true",
                                      "-c",
                                      "core.ignoreCase=false",
                                      "-c",
                                      "core.autocrlf=false",
                                      "-c",
                                      "core.protectNTFS=false",
                                      "-c",
                                      "core.attributesFile=/dev/null"};

static void make_words(const struct hunks *hunks, const char *const *words,
                       const char *ret_words[WORDS_MAX])
{
    size_t count = 0;
    if (hunks->odd) {
        ret_words[count++] = "-c";
        ret_words[count++] = "core.quotePath=true";
    }
    for (size_t i = 0; i < ARRAY_LENGTH(options); i++)
        ret_words[count++] = options[i];
    while (*words && count < WORDS_MAX - 1)
        ret_words[count++] = *words++;
    ret_words[count] = NULL;
}

/* Runs git in the working tree. Returns 0 or a negative code. */
static int run(struct hunks *hunks, const char *const *words, struct git_call call,
               struct brig_error *err)
{
    const char *all[WORDS_MAX];
    autostr struct str says = {0};
    make_words(hunks, words, all);
    call.words = all;
    call.dir = hunks->tree;
    call.says = &says;
    int status = git_run(hunks->git, &call, err);
    if (status <= 0)
        return status;
    return brig_fail(err, BRIG_E_SYSTEM, 0, "git %s failed with status %d: %s", words[0], status,
                     str_shown(says.length > 0 ? says.data : "").text);
}

/* Makes the index: the user's versions, and a mark for each file that the jail has added. */
static int make_index(struct hunks *hunks, struct brig_error *err)
{
    static const char *const read_tree[] = {"read-tree", BEFORE_REF, NULL};
    static const char *const add[] = {
        "add", "-N", "-f", "--pathspec-from-file=-", "--pathspec-file-nul", NULL};
    autostr struct str added = {0};
    for (size_t i = 0; i < hunks->count; i++)
        if (hunks->items[i].added)
            str_list_add(&added, hunks->items[i].mapped);
    if (added.failed)
        return brig_fail_nomem(err);
    int status = run(hunks, read_tree, (struct git_call){0}, err);
    if (status == 0 && added.length > 0)
        status = run(hunks, add, (struct git_call){.input = &added}, err);
    return status;
}

static int ask(struct hunks *hunks, struct brig_error *err)
{
    static const char *const words[] = {"add", "-p", NULL};
    const char *all[WORDS_MAX];
    make_words(hunks, words, all);
    const struct git_call call = {.words = all, .dir = hunks->tree, .for_user = true};
    pid_t pid = git_start(hunks->git, &call,
                          (const int[3]){STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}, err);
    int status = pid < 0 ? pid : process_wait(pid);
    if (status == 128 + SIGINT)
        return brig_fail(err, BRIG_E_STATE, 0, "interrupted, so nothing was applied");
    return status <= 0 ? status
                       : brig_fail(err, BRIG_E_STATE, 0, "git add -p ended with status %d", status);
}

/* ---- results ---- */

static int compare_mapped(const void *left, const void *right)
{
    return strcmp(((const struct item *)left)->mapped, ((const struct item *)right)->mapped);
}

static int compare_paths(const void *left, const void *right)
{
    return path_compare(((const struct item *)left)->path, ((const struct item *)right)->path);
}

/* Reads the raw output of git: ":OLDMODE NEWMODE OLD NEW STATUS", and a path. */
struct reading {
    struct hunks *hunks;
    bool index; /* of the index against the user's versions, else of the index against the jail's */
    bool has_entry; /* the path of this entry follows: */
    struct hunks_found entry;
};

static bool read_entry(struct reading *reading, const char *text)
{
    unsigned mode;
    if (sscanf(text, ":%*o %o %*64[0-9a-f] %64[0-9a-f]", &mode, reading->entry.object) != 2)
        return false;
    reading->entry.mode = (mode_t)mode;
    reading->has_entry = true;
    return true;
}

static bool read_raw(void *data, const char *text, size_t length)
{
    struct reading *reading = data;
    (void)length;
    if (!reading->has_entry)
        return read_entry(reading, text);
    reading->has_entry = false;
    const struct item wanted = {.mapped = (char *)(uintptr_t)text};
    struct item *item = bsearch(&wanted, reading->hunks->items, reading->hunks->count,
                                sizeof wanted, compare_mapped);
    if (!item)
        return true;
    if (reading->index) {
        item->found = reading->entry;
        item->found.choice = HUNKS_ALL;
    } else if (item->found.choice == HUNKS_ALL) {
        item->found.choice = item->whole ? HUNKS_NONE : HUNKS_PART;
    }
    return true;
}

static int read_choices(struct hunks *hunks, struct brig_error *err)
{
    static const char *const refresh[] = {"update-index", "-q", "--refresh", NULL};
    static const char *const index[] = {"diff-index",   "--cached", "--ita-invisible-in-index",
                                        "--raw",        "-z",       "--no-abbrev",
                                        "--no-renames", BEFORE_REF, NULL};
    static const char *const files[] = {"diff-files",  "--raw",        "-z",
                                        "--no-abbrev", "--no-renames", NULL};
    struct reading reading = {.hunks = hunks, .index = true};
    if (hunks->count > 0)
        qsort(hunks->items, hunks->count, sizeof *hunks->items, compare_mapped);
    (void)run(hunks, refresh, (struct git_call){0}, NULL); /* fails if files differ */
    int status = run(hunks, index, (struct git_call){.each = read_raw, .data = &reading}, err);
    reading.index = false;
    if (status == 0)
        status = run(hunks, files, (struct git_call){.each = read_raw, .data = &reading}, err);
    if (hunks->count > 0)
        qsort(hunks->items, hunks->count, sizeof *hunks->items, compare_paths);
    return status;
}

int hunks_ask(struct hunks *hunks, struct brig_error *err)
{
    int status = import_end(&hunks->import, err);
    if (status == 0 && hunks->count == 0)
        return 0;
    if (status == 0)
        status = make_index(hunks, err);
    if (status == 0)
        status = ask(hunks, err);
    return status < 0 ? status : read_choices(hunks, err);
}

struct hunks_found hunks_find(const struct hunks *hunks, const char *path)
{
    const struct item wanted = {.path = (char *)(uintptr_t)path};
    const struct item *item = hunks->count == 0 ? NULL
                                                : bsearch(&wanted, hunks->items, hunks->count,
                                                          sizeof wanted, compare_paths);
    return item ? item->found : (struct hunks_found){.choice = HUNKS_NOT_ASKED};
}

int hunks_open(struct hunks *hunks, const struct hunks_found *found, struct brig_error *err)
{
    const char *const words[] = {"cat-file", "blob", found->object, NULL};
    autostr struct str out = {0};
    int status = run(hunks, words, (struct git_call){.out = &out}, err);
    return status < 0 ? status : files_in_memory(out.data, out.length, err);
}
