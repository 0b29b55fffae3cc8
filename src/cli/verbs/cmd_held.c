/* SPDX-License-Identifier: MIT */
/* `brig held` and `brig keep`: files that a run has created, that a program outside would execute,
 * and that brig therefore keeps in the jail's storage. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "changes/operation/copy.h"
#include "changes/operation/hold.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/jails.h"
#include "cli/report.h"
#include "cli/settle.h"
#include "cli/verbs/held.h"
#include "git/git.h"

#define OLD_PART ".held"  /* where earlier versions kept what they held back */
#define PART_BYTES 65536  /* bytes printed at a time */
#define CHARACTER_BYTES 4 /* the maximum in UTF-8 */

enum action { SHOW, KEEP, DISCARD };

struct asking {
    enum action action;
    const char *jail; /* NULL: all */
    const char *to;   /* keep: a directory to be used as the project, or NULL */
    int storage;
    struct hold_list list;
    struct str out;
};

/* The jail of an earlier version may have no record yet. */
static int open_record(int storage, const char *jail)
{
    char old[LAYER_JAIL_MAX + sizeof OLD_PART];
    (void)str_fill(old, sizeof old, jail, OLD_PART);
    return jails_open_part(storage, jail, LAYER_RECORD_PART,
                           faccessat(storage, old, F_OK, AT_SYMLINK_NOFOLLOW) == 0);
}

static int list_jail(void *context, int storage, const char *jail, struct brig_error *err)
{
    struct brig_error failure = {0};
    autoclose int record = open_record(storage, jail);
    if (record < 0)
        return 0;
    if (holds_settle(record, &failure) < 0)
        message_warning("a file that is held back stays in its project under another name: %s",
                        failure.message);
    return holds_list(record, context, err);
}

/* Makes the record, by which the jail is found. */
static int meet_old_jail(void *context, int storage, const char *jail, struct brig_error *err)
{
    (void)context;
    (void)err;
    autoclose int record = open_record(storage, jail);
    return 0;
}

int held_count(int storage, const char *jail, size_t *ret_count, struct brig_error *err)
{
    struct hold_list list = {0};
    int status = list_jail(&list, storage, jail, err);
    *ret_count = list.count;
    hold_list_done(&list);
    return status;
}

static int compare_times(const struct hold *a, const struct hold *b)
{
    int64_t one = a->time_ns, other = b->time_ns;
    return one != other ? (one > other) - (one < other) : (a->id > b->id) - (a->id < b->id);
}

/* Sorts by project, then oldest first. */
static int compare_items(const void *left, const void *right)
{
    const struct hold *a = left, *b = right;
    int order = strcmp(a->project, b->project);
    if (order == 0)
        order = compare_times(a, b);
    return order != 0 ? order : strcmp(a->path, b->path);
}

/* ---- finding an item ---- */

/* Whether a path leads to the project of an item, which may have been moved: then the item gets its new path. */
static bool is_project(struct hold *item, const char *path)
{
    struct place now;
    char resolved[PATH_LENGTH_MAX + 1], *copy = NULL;
    if (strcmp(path, item->project) == 0)
        return true;
    autoclose int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || place_of(fd, &now, NULL) < 0 || !path_of_fd(fd, resolved))
        return false;
    if (strcmp(resolved, item->project) == 0)
        return true;
    if (!item->place.inode || !place_equal(&item->place, &now) ||
        str_copy(resolved, &copy, NULL) < 0)
        return false;
    free(item->project);
    item->project = copy;
    return true;
}

/* If an absolute path leads to an item, through any links, returns the part below the item, "" for
 * the item itself. Otherwise NULL. */
static const char *match(struct hold *item, char *path)
{
    size_t length = strlen(item->path);
    for (char *slash = path; (slash = strchr(slash, '/')); slash++) {
        const char *rest = slash + 1;
        if (strncmp(rest, item->path, length) != 0 || (rest[length] && rest[length] != '/'))
            continue;
        *slash = '\0';
        bool same = is_project(item, *path ? path : "/");
        *slash = '/';
        if (same)
            return rest + length + (rest[length] == '/');
    }
    return NULL;
}

/* ---- printing ---- */

static void append_path(struct str *out, const struct hold *item, const char *below)
{
    const char *const texts[] = {item->project, "/", item->path, *below ? "/" : "", below};
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
        str_append_shown(out, texts[i], strlen(texts[i]), "");
}

static void append_target(struct str *out, int dir, const char *name)
{
    char target[PATH_LENGTH_MAX + 1];
    ssize_t length = readlinkat(dir, name, target, sizeof target);
    str_append_shown(out, target, length > 0 ? (size_t)length : 0, "");
}

/* "12 bytes", "directory, 2 files, 40 bytes" or "link to a". */
static void append_kind(struct str *out, const struct hold *item)
{
    if (S_ISLNK(item->mode)) {
        str_append(out, "link to ");
        str_append_shown(out, item->target, strlen(item->target), "");
        return;
    }
    if (S_ISDIR(item->mode)) {
        str_append(out, "directory, ");
        str_append_count(out, item->files, "file");
        str_append(out, ", ");
    }
    str_append_count(out, item->bytes, "byte");
    if (item->special > 0) {
        str_append(out, ", ");
        str_append_count(out, item->special, "special file");
        str_append(out, " left out");
    }
}

static void list_item(struct asking *asking, const struct hold *item)
{
    struct str *out = &asking->out;
    struct tm local;
    char time[32] = "-";
    time_t seconds = (time_t)(item->time_ns / CLOCK_SECOND_NS);
    if (localtime_r(&seconds, &local))
        (void)strftime(time, sizeof time, "%Y-%m-%d %H:%M:%S", &local);
    str_append_shown(out, item->jail, strlen(item->jail), "");
    str_concat(out, " #", str_number(item->id).text, "  ", time, "  ");
    append_path(out, item, "");
    str_append(out, "  ");
    append_kind(out, item);
    str_concat(out, "  (", item->program, ")\n");
}

/* Files may contain escape sequences for a terminal: there, control characters are escaped. */
static int print_content(int fd, struct brig_error *err)
{
    bool escape = isatty(STDOUT_FILENO);
    char part[PART_BYTES];
    size_t have = 0;
    for (ssize_t got = 1; got > 0;) {
        got = read(fd, part + have, sizeof part - have);
        if (got < 0)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read the copy");
        have += (size_t)got;
        size_t used = have;
        for (size_t i = 1; i < CHARACTER_BYTES && i <= have && got > 0; i++)
            if (utf8_is_beginning((const unsigned char *)part + have - i, i))
                used = have - i; /* the character continues in the next part */
        autostr struct str out = {0};
        if (escape)
            str_append_shown(&out, part, used, "\n\t\\");
        else
            str_append_bytes(&out, part, used);
        int status = message_print(&out, err);
        if (status < 0)
            return status;
        memmove(part, part + used, have - used);
        have -= used;
    }
    return 0;
}

struct showing {
    struct asking *asking;
    const struct hold *item;
    char path[PATH_LENGTH_MAX + 1]; /* in the project */
    bool found;
};

static void list_file(const struct showing *showing, const struct hold_file *file)
{
    struct str *out = &showing->asking->out;
    append_path(out, showing->item, file->path + strlen(showing->item->path) + 1);
    str_append(out, "  ");
    if (S_ISLNK(file->mode)) {
        str_append(out, "link to ");
        append_target(out, file->dir, file->name);
    } else {
        str_append_count(out, file->bytes, "byte");
    }
    str_append_char(out, '\n');
}

/* Prints the contents of a file, the files of a directory, or the target of a link. */
static int show_file(void *context, const struct hold_file *file, struct brig_error *err)
{
    struct showing *showing = context;
    if (!path_is_beneath(showing->path, file->path))
        return 0;
    showing->found = true;
    bool is_part = strcmp(showing->path, file->path) != 0;
    if (is_part && !S_ISDIR(file->mode))
        list_file(showing, file);
    if (!is_part && S_ISLNK(file->mode)) {
        append_target(&showing->asking->out, file->dir, file->name);
        str_append_char(&showing->asking->out, '\n');
    }
    if (is_part || !S_ISREG(file->mode))
        return 0;
    autoclose int fd = copy_open(file->dir, file->name, true);
    return fd < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open the copy of '%s'",
                              str_shown(file->path).text)
                  : print_content(fd, err);
}

static int show(struct asking *asking, const struct hold *item, const char *below,
                struct brig_error *err)
{
    struct showing showing = {.asking = asking, .item = item};
    autoclose int record = open_record(asking->storage, item->jail);
    (void)str_fill(showing.path, sizeof showing.path, item->path, *below ? "/" : "", below);
    int status = hold_each(record, item, show_file, &showing, err);
    return status < 0 || showing.found
               ? status
               : brig_fail(err, BRIG_E_INVALID, 0,
                           "'%s' in '%s/%s' is not held back. See brig held", str_shown(below).text,
                           str_shown(item->project).text, item->path);
}

/* Appends git's hash of the contents of a file, for comparisons. */
static int append_hash(void *context, const struct hold_file *file, struct brig_error *err)
{
    struct git git;
    autostr struct str out = {0};
    autoclose int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autoclose int fd = copy_open(file->dir, file->name, true);
    static const char *const words[] = {"hash-object", "--no-filters", "--stdin", NULL};
    (void)err;
    if (git_find_own(&git, NULL) < 0)
        return 0;
    if (git.program && here >= 0 && fd >= 0 &&
        git_run(&git, &(struct git_call){.words = words, .dir = here, .input_fd = fd, .out = &out},
                NULL) == 0 &&
        out.length > 0)
        str_appendf(context, ", git object %.*s", (int)strcspn(out.data, "\n"), out.data);
    git_done(&git);
    return 0;
}

/* ---- the verbs ---- */

static int keep_item(struct asking *asking, const struct hold *item, struct brig_error *err)
{
    autostr struct str kind = {0}; /* determined while it is still in the storage */
    autoclose int record = open_record(asking->storage, item->jail);
    append_kind(&kind, item);
    if (S_ISREG(item->mode))
        (void)hold_each(record, item, append_hash, &kind, NULL);
    interrupt_begin(item->jail);
    int status = hold_keep(record, item, asking->to, err);
    interrupt_end();
    if (status < 0)
        return status;
    struct hold placed = *item;
    if (asking->to)
        placed.project = (char *)(uintptr_t)asking->to;
    str_append(&asking->out, "restored ");
    append_path(&asking->out, &placed, "");
    str_concat(&asking->out, ": ", kind.failed ? "" : kind.data, "\n");
    return 0;
}

/* The newest version of a path or, with `below`, of a directory that contains it. */
static const struct hold *find_newest(const struct asking *asking, char *path, const char **below,
                                      size_t *ret_versions)
{
    const struct hold *newest = NULL;
    *ret_versions = 0;
    for (size_t i = 0; i < asking->list.count; i++) {
        struct hold *item = &asking->list.items[i];
        const char *rest = match(item, path);
        if (!rest || (*rest && !below))
            continue;
        ++*ret_versions;
        if (newest && compare_times(newest, item) > 0)
            continue;
        newest = item;
        if (below)
            *below = rest;
    }
    return newest;
}

static int discard_one(const struct asking *asking, const struct hold *item, struct brig_error *err)
{
    autoclose int record = open_record(asking->storage, item->jail);
    return hold_discard(record, item, err);
}

/* Deletes all versions of a path. */
static int discard(struct asking *asking, char *path, const struct hold *newest, size_t versions,
                   struct brig_error *err)
{
    for (size_t i = 0; i < asking->list.count; i++) {
        struct hold *item = &asking->list.items[i];
        const char *rest = match(item, path);
        int status = rest && !*rest ? discard_one(asking, item, err) : 0;
        if (status < 0)
            return status;
    }
    str_append(&asking->out, "deleted ");
    append_path(&asking->out, newest, "");
    str_append(&asking->out, ": ");
    str_append_count(&asking->out, versions, "version");
    str_append_char(&asking->out, '\n');
    return 0;
}

static int treat(struct asking *asking, const char *given, struct brig_error *err)
{
    char cwd[PATH_LENGTH_MAX + 1];
    autofree char *path = NULL;
    const char *below = "";
    size_t versions;
    int status = path_make_absolute(getcwd(cwd, sizeof cwd) ? cwd : "/", given, &path, err);
    if (status < 0)
        return status;
    const struct hold *newest = find_newest(asking, path, NULL, &versions);
    if (!newest)
        newest = find_newest(asking, path, &below, &versions);
    if (newest && *below && asking->action == KEEP)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'%s' is part of '%s', which is held back as a whole: keep that",
                         str_shown(given).text, str_shown(newest->path).text);
    if (!newest)
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is not held back. See brig held",
                         str_shown(given).text);
    status =
        asking->action == SHOW ? show(asking, newest, below, err) : keep_item(asking, newest, err);
    if (status == 0 && versions > 1 && asking->action == KEEP)
        message_note("%zu older version%s held back; see brig held", versions - 1,
                     versions == 2 ? " stays" : "s stay");
    else if (status == 0 && versions > 1)
        message_note("this is the newest of %zu versions; see brig held", versions);
    return status;
}

/* Prints the output so far. After keep and discard have done their work, a failure to print is
 * ignored. */
static int flush(struct asking *asking, struct brig_error *err)
{
    int status = message_print(&asking->out, asking->action == SHOW ? err : NULL);
    str_done(&asking->out);
    return asking->action == SHOW ? status : 0;
}

static int open_list(struct asking *asking, const char *verb, struct brig_error *err)
{
    struct jails_place place;
    int status = jails_place_find(&place, err);
    if (status == 0)
        status = jails_become_user(&place, err);
    if (status == 0 && asking->action != SHOW)
        status = settle_here(place.storage, asking->jail, err);
    if (status == 0)
        status = jails_each_part(&place, verb, asking->jail, OLD_PART, meet_old_jail, NULL, err);
    if (status == 0)
        status = jails_each_part(&place, verb, asking->jail, LAYER_RECORD_PART, list_jail,
                                 &asking->list, err);
    if (status < 0)
        return status;
    asking->storage = open(place.storage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (asking->list.count > 0)
        qsort(asking->list.items, asking->list.count, sizeof *asking->list.items, compare_items);
    return 0;
}

static int run_all(struct asking *asking, const char *verb, int count, char **paths,
                   struct brig_error *err)
{
    int status = open_list(asking, verb, err);
    if (status < 0)
        return status;
    for (size_t i = 0; i < asking->list.count && count == 0; i++)
        list_item(asking, &asking->list.items[i]);
    if (count == 0 && asking->list.count == 0)
        message_note("nothing is held back");
    status = flush(asking, err);
    for (int i = 0; i < count && status == 0; i++) {
        status = treat(asking, paths[i], err);
        if (status == 0)
            status = flush(asking, err);
    }
    return status;
}

/* Deletes one path, if it is held back. */
static int discard_word(struct asking *asking, const char *word, bool *ret_done,
                        struct brig_error *err)
{
    char cwd[PATH_LENGTH_MAX + 1];
    autofree char *path = NULL;
    size_t versions;
    int status = path_make_absolute(getcwd(cwd, sizeof cwd) ? cwd : "/", word, &path, err);
    const struct hold *newest = status < 0 ? NULL : find_newest(asking, path, NULL, &versions);
    *ret_done = newest != NULL;
    return newest ? discard(asking, path, newest, versions, err) : status;
}

int held_discard_words(const char *jail, int count, char **words, bool *ret_done,
                       struct brig_error *err)
{
    struct asking asking = {.action = DISCARD, .jail = jail, .storage = -1};
    int status = open_list(&asking, cmd_discard.name, err);
    for (int i = 0; i < count && status == 0; i++)
        status = discard_word(&asking, words[i], &ret_done[i], err);
    (void)flush(&asking, NULL);
    hold_list_done(&asking.list);
    own_close(&asking.storage);
    return status;
}

int held_discard_all(const char *jail, const char *within, struct brig_error *err)
{
    struct asking asking = {.action = DISCARD, .jail = jail, .storage = -1};
    bool any = false;
    int status = open_list(&asking, cmd_discard.name, err);
    for (size_t i = 0; i < asking.list.count && status == 0; i++) {
        const struct hold *item = &asking.list.items[i];
        if (within && !path_is_beneath(within, item->project))
            continue;
        status = discard_one(&asking, item, err);
        str_append(&asking.out, "deleted ");
        append_path(&asking.out, item, "");
        str_append_char(&asking.out, '\n');
        any = true;
    }
    (void)flush(&asking, NULL);
    hold_list_done(&asking.list);
    own_close(&asking.storage);
    return status < 0 ? status : any;
}

/* Both verbs. */
static int run(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    const char *verb = app->command->name;
    enum action action = app->command == &cmd_keep ? KEEP : SHOW;
    struct asking asking = {.action = action, .storage = -1};
    const struct jails_word options[] = {{action == KEEP ? "--to" : NULL, NULL, &asking.to}, {0}};
    int first = jails_parse_words(app, argc, argv, options, &asking.jail, err);
    if (first < 0)
        return first;
    if (action != SHOW && first >= argc)
        return brig_fail(err, BRIG_E_INVALID, 0, "%s needs a path: brig %s PATH…. See brig held",
                         verb, verb);
    int status = run_all(&asking, verb, argc - first, argv + first, err);
    hold_list_done(&asking.list);
    str_done(&asking.out);
    own_close(&asking.storage);
    return status;
}

const struct command cmd_held = {
    .name = "held",
    .summary = "list files that were held back, or print one",
    .usage = "[-j NAME] [PATH...]",
    .words = COMMAND_WORDS_FILES,
    .run = run,
};

const struct command cmd_keep = {
    .name = "keep",
    .summary = "restore a file that was held back",
    .usage = "[-j NAME] [--to DIR] PATH...",
    .words = COMMAND_WORDS_FILES,
    .run = run,
};
