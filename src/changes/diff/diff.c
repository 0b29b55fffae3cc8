/* SPDX-License-Identifier: MIT */
/* Builds the two trees and runs git on them.
 *
 * One commit contains both trees: 0/N is the first version of layer N, 1/N the second. If several layers have
 * changes, 2 and 3 contain them all at the paths of their roots. */
#include "changes/diff/diff.h"

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
#include "changes/diff/drivers.h"
#include "changes/diff/import.h"
#include "changes/diff/notes.h"
#include "changes/diff/plain.h"
#include "changes/diff/scratch.h"
#include "changes/layer/base.h"
#include "changes/layer/change.h"
#include "changes/layer/layer.h"
#include "changes/layer/walk.h"
#include "changes/show/ignored_trees.h"
#include "changes/show/spool.h"
#include "git/git.h"

#define DIFF_REF "refs/brig/diff"
#define TOP_MAX 32
#define COPY_NAME "copy"
#define MARKER_LENGTH (PATH_COMPONENT_MAX + 1)

enum side { FIRST, SECOND };

struct diff {
    const struct git *git;
    struct diff_options options;
    struct scratch scratch;
    struct import import;
    bool escapes; /* contents are for a terminal */
    struct drivers *drivers;
    struct notes notes;
    const struct layer *layers[DIFF_LAYERS_MAX]; /* those that have changes */
    size_t layer_count, mapped;
    bool odd; /* a path has characters that a terminal interprets */
    /* of the layer that is being added */
    const struct layer *layer;
    struct ignored_trees trees; /* only noted */
    /* of two jails */
    enum side after; /* the side of the files of the jail that is being walked */
    bool jails;      /* unchanged contents are added, too: the other jail may have changed them */
    FILE *spool; /* paths that the first jail has changed, in order, or NULL; each after REPLACED or
                        CHANGED */
    char *spooled; /* the next path of the spool */
    size_t spooled_size;
    bool spool_ended;
    struct str replaced; /* a directory that the first jail has replaced, with everything in it */
};

enum { CHANGED = 'C', REPLACED = 'R' };

/* ---- beginning and end ---- */

/* An external diff tool gets the files as they are. */
static bool has_external_tool(const struct git *git, int dir)
{
    static const char *const words[] = {"config", "--get", "diff.external", NULL};
    autostr struct str out = {0};
    if (git_variable(git->environment, "GIT_EXTERNAL_DIFF"))
        return true;
    return git_run(
               git,
               &(struct git_call){.words = words, .git_dir = dir, .out = &out, .for_user = true},
               NULL) == 0;
}

int diff_new(const struct git *git, int record, const struct diff_options *options,
             struct diff **ret_diff, struct brig_error *err)
{
    struct diff *diff = calloc(1, sizeof *diff);
    if (!diff)
        return brig_fail_nomem(err);
    *diff = (struct diff){.git = git, .options = *options, .scratch = SCRATCH_INIT};
    int status = scratch_make(record, &diff->scratch, err);
    if (status == 0)
        status = spool_file(diff->scratch.dir, &diff->notes.file, err);
    if (status == 0)
        status = import_begin(git, diff->scratch.dir, DIFF_REF, &diff->import, err);
    if (status == 0)
        diff->escapes = options->terminal && options->form == DIFF_TEXT &&
                        !has_external_tool(git, diff->scratch.dir);
    if (status == 0 && diff->escapes)
        status = drivers_new(git, diff->scratch.dir, &diff->drivers, err);
    if (status < 0)
        diff_free(diff);
    else
        *ret_diff = diff;
    return status;
}

void diff_free(struct diff *diff)
{
    if (!diff)
        return;
    import_abort(&diff->import);
    drivers_free(diff->drivers);
    notes_done(&diff->notes);
    own_fclose(&diff->spool);
    free(diff->spooled);
    str_done(&diff->replaced);
    scratch_remove(&diff->scratch);
    free(diff);
}

size_t diff_layer_count(const struct diff *diff)
{
    return diff->layer_count;
}

size_t diff_mapped_count(const struct diff *diff)
{
    return diff->mapped;
}

/* ---- files ---- */

static void make_top(const struct diff *diff, enum side side, char ret_top[TOP_MAX])
{
    (void)snprintf(ret_top, TOP_MAX, "%d/%zu", (int)side, diff->layer_count - 1);
}

/* A file of a version: where it is and what it is. */
struct version {
    const char *path;
    int dir;
    const char *name;
    const struct stat *info;
    int fd;              /* of a regular file */
    const char *in_lieu; /* too large: text that differs where the files do, or NULL */
};

static int add_link(struct diff *diff, const char *top, const struct version *version,
                    struct brig_error *err)
{
    char target[PATH_LENGTH_MAX + 1];
    ssize_t length = readlinkat(version->dir, version->name, target, sizeof target);
    if (length < 0) {
        notes_add(&diff->notes, version->path, "link cannot be read");
        return 0;
    }
    return import_text(&diff->import, top, version->path, S_IFLNK, target, (size_t)length, err);
}

/* A binary file for git, and a note with the size. */
static int add_large(struct diff *diff, const char *top, const struct version *version,
                     struct brig_error *err)
{
    autostr struct str text = {0};
    str_append_char(&text, '\0');
    str_appendf(&text, "%s %ju %ju", version->in_lieu, (uintmax_t)version->info->st_size,
                (uintmax_t)version->info->st_ino);
    return text.failed ? brig_fail_nomem(err)
                       : import_text(&diff->import, top, version->path, S_IFREG, text.data,
                                     text.length, err);
}

/* Adds a regular file or a link; others are left out. */
static int add_version(struct diff *diff, enum side side, const struct version *version,
                       struct brig_error *err)
{
    char top[TOP_MAX];
    mode_t mode = version->info->st_mode;
    make_top(diff, side, top);
    if (!S_ISREG(mode) && !S_ISLNK(mode))
        return 0;
    if (version->in_lieu && diff->options.form == DIFF_PATCH)
        return 0; /* a note says so */
    if (import_maps(version->path, mode & S_IFMT)) {
        diff->mapped++;
        if (diff->options.form == DIFF_PATCH) {
            notes_add(&diff->notes, version->path, "not in the patch: git apply refuses this name");
            return 0;
        }
    }
    diff->odd = diff->odd || !plain_is_plain(version->path, strlen(version->path));
    diff->import.escaped = diff->escapes && !drivers_has(diff->drivers, version->path);
    if (S_ISLNK(mode))
        return add_link(diff, top, version, err);
    if (version->in_lieu)
        return add_large(diff, top, version, err);
    if (version->fd < 0) {
        notes_add(&diff->notes, version->path, "cannot be read");
        return 0;
    }
    return import_file(&diff->import, top, version->path, mode, version->fd, err);
}

static bool is_too_large(const struct diff *diff, const struct stat *info)
{
    off_t max = diff->options.form == DIFF_PATCH ? DIFF_PATCH_FILE_MAX : DIFF_FILE_MAX;
    return S_ISREG(info->st_mode) && info->st_size > max;
}

static int add_before(struct diff *diff, const struct change *change, bool large,
                      struct brig_error *err)
{
    bool regular = S_ISREG(change->before.st_mode);
    autoclose int fd = regular && !large ? change_open_before(change) : -1;
    bool same = change->kind == CHANGE_METADATA;
    const struct version version = {
        change->path, change->lower_dir,
        change->name, &change->before,
        fd,           large && regular ? (same ? "same" : "before") : NULL};
    return add_version(diff, !diff->after, &version, err);
}

static int add_after(struct diff *diff, const struct change *change, bool large,
                     struct brig_error *err)
{
    bool regular = S_ISREG(change->after.st_mode);
    autoclose int fd = regular && !large ? change_open_after(change) : -1;
    bool same = change->kind == CHANGE_METADATA;
    struct stat info = change->after;
    if (same) /* the same text in lieu of the contents */
        info.st_ino = change->before.st_ino;
    const struct version version = {
        change->path, change->upper_dir,
        change->name, &info,
        fd,           large && regular ? (same ? "same" : "after") : NULL};
    return add_version(diff, diff->after, &version, err);
}

/* ---- what the first of two jails has changed ---- */

/* Whether the second jail is being walked. */
static bool is_second(const struct diff *diff)
{
    return diff->jails && diff->after == SECOND;
}

static bool is_replaced(const struct change *change)
{
    return change->kind == CHANGE_TYPE && S_ISDIR(change->before.st_mode);
}

static int spool(struct diff *diff, const struct change *change, struct brig_error *err)
{
    char kind = is_replaced(change) ? REPLACED : CHANGED;
    if (fputc(kind, diff->spool) == EOF ||
        fwrite(change->path, 1, strlen(change->path) + 1, diff->spool) == 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write to the jail's record");
    return 0;
}

static void next_spooled(struct diff *diff)
{
    diff->spool_ended =
        diff->spool_ended || getdelim(&diff->spooled, &diff->spooled_size, '\0', diff->spool) < 0;
}

/* Whether the first jail has changed a path; asked for in order. */
static bool was_spooled(struct diff *diff, const char *path)
{
    int order = 1;
    while (!diff->spool_ended && (order = path_compare(diff->spooled + 1, path)) <= 0) {
        if (*diff->spooled == REPLACED) {
            diff->replaced.length = 0;
            str_append(&diff->replaced, diff->spooled + 1);
        }
        if (order == 0)
            return true; /* it stays the next one: the path may be asked for again */
        next_spooled(diff);
    }
    return diff->replaced.length > 0 && path_is_beneath(diff->replaced.data, path);
}

/* A file of a directory that the jail has replaced by something else. */
static int add_replaced(void *context, const struct walk_entry *entry, struct brig_error *err)
{
    struct diff *diff = context;
    bool large = is_too_large(diff, &entry->info);
    autoclose int fd = S_ISREG(entry->info.st_mode) && !large
                           ? change_open_user(diff->layer, entry->dir, entry->name, entry->path)
                           : -1;
    if (layer_hides(diff->layer, entry->path))
        return TREE_SKIP;
    if (is_second(diff) && was_spooled(diff, entry->path))
        return 0;
    if (large && diff->options.form == DIFF_PATCH)
        notes_add(&diff->notes, entry->path, "not in the patch: too large");
    const struct version version = {entry->path,  entry->dir, entry->name,
                                    &entry->info, fd,         large ? "before" : NULL};
    return add_version(diff, !diff->after, &version, err);
}

static int add_replaced_directory(struct diff *diff, const struct change *change,
                                  struct brig_error *err)
{
    autoclose int dir = files_open_dir(change->lower_dir, change->name);
    return dir < 0 ? 0 : tree_walk(dir, change->path, add_replaced, diff, err);
}

/* Whether git needs the contents: not if only the owner has changed, for example. */
static bool needs_contents(const struct diff *diff, const struct change *change)
{
    return diff->jails || change->kind != CHANGE_METADATA ||
           notes_git_mode(change->before.st_mode) != notes_git_mode(change->after.st_mode);
}

static void note_large(struct diff *diff, const struct change *change)
{
    char text[128];
    bool patch = diff->options.form == DIFF_PATCH;
    (void)snprintf(text, sizeof text, "%s: %jd bytes, was %jd",
                   patch ? "not in the patch: too large" : "too large to compare",
                   (intmax_t)change->after.st_size, (intmax_t)change->before.st_size);
    notes_add(&diff->notes, change->path, text);
}

static int add_versions(struct diff *diff, const struct change *change, bool before, bool after,
                        struct brig_error *err)
{
    bool large = is_too_large(diff, &change->before) || is_too_large(diff, &change->after);
    int status = 0;
    if (!needs_contents(diff, change))
        return 0;
    if (large)
        note_large(diff, change);
    if (before)
        status = add_before(diff, change, large, err);
    if (status == 0 && before && is_replaced(change))
        status = add_replaced_directory(diff, change, err);
    if (status == 0 && after)
        status = add_after(diff, change, large, err);
    return status;
}

/* ---- layers ---- */

/* The marker makes both trees exist. No file has such a long name, and git shows nothing, as it is
 * the same in both. */
static int begin_layer(struct diff *diff, struct brig_error *err)
{
    char marker[MARKER_LENGTH + 1], top[TOP_MAX];
    memset(marker, '-', MARKER_LENGTH);
    marker[MARKER_LENGTH] = '\0';
    if (diff->layer_count > 0 && diff->layers[diff->layer_count - 1] == diff->layer)
        return 0;
    if (diff->layer_count == DIFF_LAYERS_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "changes of too many directories");
    diff->layers[diff->layer_count++] = diff->layer;
    int status = 0;
    for (enum side side = FIRST; side <= SECOND && status == 0; side++) {
        make_top(diff, side, top);
        status = import_text(&diff->import, top, marker, S_IFREG, "", 0, err);
    }
    return status;
}

static int add_change(struct diff *diff, const struct change *change, struct brig_error *err)
{
    notes_add_change(&diff->notes, change);
    return change->unreadable ? 0 : add_versions(diff, change, true, true, err);
}

/* What is judged is what is shown: a process of a run may write to the file in between. */
static int add_chosen(struct diff *diff, const struct change *change, struct brig_error *err)
{
    struct change copy = *change;
    const char *reason = NULL;
    bool copied = diff->layer->running && S_ISREG(change->after.st_mode) &&
                  change->after.st_size <= DIFF_FILE_MAX;
    if (copied) {
        copy.copy_dir = diff->scratch.dir;
        copy.copy_name = COPY_NAME; /* without a copy it is not what was shown */
        (void)copying_file(change->upper_dir, change->name, copy.copy_dir, COPY_NAME, NULL);
    }
    int status = 0;
    if (diff->options.choose(diff->options.context, &copy, &reason))
        status = add_change(diff, &copy, err);
    else if (reason)
        notes_add(&diff->notes, change->path, reason);
    if (copied)
        (void)unlinkat(diff->scratch.dir, COPY_NAME, 0);
    return status;
}

static int visit(void *context, const struct change *change, struct brig_error *err)
{
    struct diff *diff = context;
    int status = begin_layer(diff, err);
    if (status < 0 || ignored_trees_at(&diff->trees, change))
        return status;
    return diff->options.choose ? add_chosen(diff, change, err) : add_change(diff, change, err);
}

static void note_trees(struct diff *diff)
{
    char text[256];
    for (size_t i = 0; i < diff->trees.count; i++) {
        const struct ignored_tree *tree = &diff->trees.items[i];
        (void)snprintf(text, sizeof text,
                       "%ju ignored file%s, %ju bytes; brig diff%s with this path shows them",
                       (uintmax_t)tree->files, tree->files == 1 ? "" : "s", (uintmax_t)tree->bytes,
                       record_option(diff->layer->record).text);
        notes_add(&diff->notes, tree->path, text);
    }
}

int diff_add(struct diff *diff, const struct layer *layer, const struct change_options *options,
             struct brig_error *err)
{
    struct change_options expanded = *options;
    expanded.expand = true;
    diff->layer = layer;
    diff->notes.root = layer->root;
    diff->after = SECOND;
    int status = diff->options.form == DIFF_PATCH
                     ? 0
                     : ignored_trees_find(layer, options->paths, options->path_count, diff->git,
                                          &diff->trees, err);
    if (status == 0)
        status = changes_walk(layer, &expanded, visit, diff, err);
    notes_end_directory(&diff->notes, NULL);
    note_trees(diff);
    ignored_trees_done(&diff->trees);
    return status;
}

/* ---- two jails ---- */

/* The first jail: its files against the user's, which are the second jail's unless that has changed
 * them. The second jail: its files replace those, and the user's are the first jail's unless that
 * has changed them. */
static int visit_jails(void *context, const struct change *change, struct brig_error *err)
{
    struct diff *diff = context;
    char top[TOP_MAX];
    int status = begin_layer(diff, err);
    if (status < 0)
        return status;
    notes_add_change(&diff->notes, change);
    if (!is_second(diff)) {
        status = spool(diff, change, err);
        return status < 0 || change->unreadable ? status
                                                : add_versions(diff, change, true, true, err);
    }
    bool both = was_spooled(diff, change->path);
    make_top(diff, SECOND, top);
    if (change->kind != CHANGE_ADDED || both)
        if (!S_ISDIR(change->before.st_mode) || !S_ISDIR(change->after.st_mode))
            status = import_delete(&diff->import, top, change->path, err);
    if (status < 0 || change->unreadable)
        return status;
    return add_versions(diff, change, !both, true, err);
}

static int walk_jail(struct diff *diff, const struct layer *layer, enum side after,
                     const struct change_options *options, struct brig_error *err)
{
    if (!layer)
        return 0;
    diff->notes.jail = layer->jail;
    diff->after = after;
    int status = changes_walk(layer, options, visit_jails, diff, err);
    notes_end_directory(&diff->notes, NULL);
    diff->notes.jail = NULL;
    return status;
}

int diff_add_jails(struct diff *diff, const struct layer *a, const struct layer *b,
                   const struct change_options *options, struct brig_error *err)
{
    struct change_options expanded = *options;
    expanded.expand = true;
    diff->layer = a ? a : b;
    diff->notes.root = diff->layer->root;
    diff->jails = true;
    diff->spool_ended = false;
    own_fclose(&diff->spool);
    diff->spool = NULL;
    int status = spool_file(diff->scratch.dir, &diff->spool, err);
    if (status == 0)
        status = walk_jail(diff, a, FIRST, &expanded, err);
    if (status == 0)
        status = spool_rewind(diff->spool, err);
    if (status < 0)
        return status;
    diff->replaced.length = 0;
    next_spooled(diff);
    return walk_jail(diff, b, SECOND, &expanded, err);
}

/* ---- showing ---- */

/* Copies the trees of all layers to the paths of their roots. */
static int join_layers(struct diff *diff, struct brig_error *err)
{
    for (size_t i = 0; i < diff->layer_count; i++) {
        for (int side = FIRST; side <= SECOND; side++) {
            char from[TOP_MAX];
            autostr struct str to = {0};
            (void)snprintf(from, sizeof from, "%d/%zu", side, i);
            str_append(&to, side == FIRST ? "2" : "3");
            import_append_mapped(&to, diff->layers[i]->root, S_IFDIR);
            if (to.failed)
                return brig_fail_nomem(err);
            int status = import_copy(&diff->import, from, to.data, err);
            if (status < 0)
                return status;
        }
    }
    return 0;
}

#define JOINED_BEFORE DIFF_REF ":2"
#define JOINED_AFTER DIFF_REF ":3"

static bool is_joined(const struct diff *diff)
{
    return diff->layer_count > 1 || diff->options.form == DIFF_NAMES;
}

static bool print_name(void *data, const char *text, size_t length)
{
    const struct diff *diff = data;
    autostr struct str absolute = {0}, line = {0};
    (void)length;
    str_concat(&absolute, "/", text);
    if (!absolute.failed)
        plain_append_name(&line, absolute.data);
    str_append_char(&line, '\n');
    return !line.failed && write_all(diff->options.output, line.data, line.length) == 0;
}

static int run_names(struct diff *diff, struct brig_error *err)
{
    static const char *const words[] = {"diff-tree",    "-r",          "-z",
                                        "--no-renames", "--name-only", JOINED_BEFORE,
                                        JOINED_AFTER,   "--",          NULL};
    const struct git_call call = {
        .words = words, .git_dir = diff->scratch.dir, .each = print_name, .data = diff};
    int status = git_run(diff->git, &call, err);
    return status <= 0
               ? status
               : brig_fail(err, BRIG_E_SYSTEM, 0, "git diff-tree failed with status %d", status);
}

#define WORDS_MAX 24

static void add_words(const char *words[WORDS_MAX], const char *const *more)
{
    size_t count = 0;
    while (words[count])
        count++;
    while (*more && count < WORDS_MAX - 1)
        words[count++] = *more++;
}

/* git starts the pager itself, if its output is a terminal. */
static void make_words(const struct diff *diff, const char *words[WORDS_MAX])
{
    static const char *const patch[] = {"diff-tree",
                                        "-r",
                                        "-p",
                                        "-M",
                                        "--binary",
                                        "--full-index",
                                        "--no-ext-diff",
                                        "--no-textconv",
                                        "--no-color",
                                        "--src-prefix=a/",
                                        "--dst-prefix=b/",
                                        "--no-relative",
                                        NULL};
    static const char *const no_pager[] = {"--no-pager", NULL};
    static const char *const quote[] = {"-c", "core.quotePath=true", NULL};
    static const char *const text[] = {"diff", "-M", "--patch", NULL};
    static const char *const stat[] = {"diff", "-M", "--stat", NULL};
    if (!diff->options.pager)
        add_words(words, no_pager);
    if (diff->options.terminal && diff->odd)
        add_words(words, quote);
    add_words(words, diff->options.form == DIFF_PATCH  ? patch
                     : diff->options.form == DIFF_STAT ? stat
                                                       : text);
    add_words(words,
              (const char *const[]){is_joined(diff) ? JOINED_BEFORE : DIFF_REF ":0/0",
                                    is_joined(diff) ? JOINED_AFTER : DIFF_REF ":1/0", "--", NULL});
}

static int run_git(struct diff *diff, struct brig_error *err)
{
    const char *words[WORDS_MAX] = {0};
    make_words(diff, words);
    const struct git_call call = {.words = words, .git_dir = diff->scratch.dir, .for_user = true};
    pid_t pid = git_start(diff->git, &call,
                          (const int[3]){STDIN_FILENO, diff->options.output, STDERR_FILENO}, err);
    if (pid < 0)
        return pid;
    int status = process_wait(pid);
    if (status == 0 || (status == 128 + SIGPIPE && diff->options.form != DIFF_PATCH))
        return 0;
    return brig_fail(err, BRIG_E_SYSTEM, 0, "git diff failed with status %d", status);
}

int diff_show(struct diff *diff, struct brig_error *err)
{
    bool names = diff->options.form == DIFF_NAMES;
    int status = is_joined(diff) ? join_layers(diff, err) : 0;
    if (status == 0)
        status = import_end(&diff->import, err);
    if (status == 0 && diff->layer_count > 0)
        status = names ? run_names(diff, err) : run_git(diff, err);
    return status < 0 || names ? status : notes_print(&diff->notes, diff->options.notes, err);
}
