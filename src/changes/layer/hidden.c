/* SPDX-License-Identifier: MIT */
#include "changes/layer/hidden.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/files.h"
#include "base/sha256.h"
#include "base/str.h"
#include "jail/view/mask.h"

#define PART ".hidden"
#define PART_MAX 64
#define SET_BYTES_MAX ((size_t)4 << 20)
#define HIDE 'h'
#define SHOW 's'
#define FILTER 'f'
#define LINKED 'l' /* the target of a link at the place of a start-up file */

struct set {
    struct str text; /* each rule with a letter before it, and a NUL */
    struct mask_rules rules;
    const char **filters;
};

struct hidden {
    struct set *sets;
    size_t count;
    struct startup_filter *filters;
    size_t filter_count;
};

/* ---- writing ---- */

static void add_all(struct str *text, char letter, const char *const *paths, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        str_append_char(text, letter);
        str_append_bytes(text, paths[i], strlen(paths[i]) + 1);
    }
}

static int add_linked(void *context, const struct mask_path *path, struct brig_error *err)
{
    (void)err;
    if (path->linked && !path->outside)
        add_all(context, LINKED, &path->path, 1);
    return 0;
}

/* Adds the filters, and where the start-up files are if they are links. */
static int add_startup(struct str *text, const struct hidden_startup *startup,
                       struct brig_error *err)
{
    char real[PATH_LENGTH_MAX + 1];
    if (startup->filter.count == 0)
        return 0;
    add_all(text, FILTER, startup->filter.rules, startup->filter.count);
    autoclose int fd = open(startup->home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const struct mask_home home = {
        .fd = fd, .path = startup->home, .real = path_resolve(startup->home, real) ? real : NULL};
    const struct mask_rules names = {.hidden = (const char **)(uintptr_t)startup_names,
                                     .hidden_count = startup_name_count};
    const struct mask_visitor visitor = {.path = add_linked, .context = text};
    return fd < 0 ? 0 : mask_each(&home, &names, &visitor, err);
}

static int fail_writing(struct brig_error *err)
{
    return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot record the masks in the jail's record");
}

static int write_set(int dir, const char *name, const struct str *text, struct brig_error *err)
{
    autoclose int fd =
        openat(dir, ".new", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    int failed = fd < 0 ? -errno : write_all(fd, text->data, text->length);
    if (failed == 0 && renameat(dir, ".new", dir, name) < 0)
        failed = -errno;
    errno = -failed;
    return failed < 0 ? fail_writing(err) : 0;
}

int hidden_record(int record, const char *layer, const struct mask_rules *rules,
                  const char *const *own, size_t own_count, const struct hidden_startup *startup,
                  struct brig_error *err)
{
    autostr struct str text = {0};
    char part[PART_MAX], name[SHA256_HEX_LENGTH + 1];
    add_all(&text, HIDE, rules->hidden, rules->hidden_count);
    add_all(&text, HIDE, own, own_count);
    add_all(&text, SHOW, rules->shown, rules->shown_count);
    int status = add_startup(&text, startup, err);
    if (status < 0 || text.failed)
        return status < 0 ? status : brig_fail_nomem(err);
    if (text.length == 0)
        return 0;
    sha256_hex(text.data, text.length, name);
    (void)snprintf(part, sizeof part, "%s" PART, layer);
    if (mkdirat(record, part, 0700) < 0 && errno != EEXIST)
        return fail_writing(err);
    autoclose int dir = files_open_dir(record, part);
    if (dir < 0)
        return fail_writing(err);
    return files_exists(dir, name) ? 0 : write_set(dir, name, &text, err);
}

/* ---- reading ---- */

static void set_done(struct set *set)
{
    str_done(&set->text);
    free(set->rules.hidden);
    free(set->rules.shown);
    free(set->filters);
}

static int read_set(int dir, const char *name, struct set *set, size_t *ret_filters,
                    struct brig_error *err)
{
    size_t count = 0;
    autoclose int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    int failed = fd < 0 ? -errno : read_all(fd, SET_BYTES_MAX, &set->text);
    if (failed < 0)
        return brig_fail(err, BRIG_E_SYSTEM, -failed, "cannot read the masks in the jail's record");
    for (const char *at = NULL; (at = str_list_next(&set->text, at));)
        count++;
    set->rules.hidden = calloc(count + 1, sizeof *set->rules.hidden);
    set->rules.shown = calloc(count + 1, sizeof *set->rules.shown);
    set->filters = calloc(count + 1, sizeof *set->filters);
    if (!set->rules.hidden || !set->rules.shown || !set->filters)
        return brig_fail_nomem(err);
    size_t filters = 0;
    for (const char *at = NULL; (at = str_list_next(&set->text, at));) {
        if (*at == HIDE)
            set->rules.hidden[set->rules.hidden_count++] = at + 1;
        else if (*at == SHOW)
            set->rules.shown[set->rules.shown_count++] = at + 1;
        else if (*at == FILTER)
            set->filters[filters++] = at + 1;
    }
    *ret_filters = filters;
    return 0;
}

int hidden_read(int record, const char *layer, struct hidden **ret_hidden, struct brig_error *err)
{
    char part[PART_MAX];
    (void)snprintf(part, sizeof part, "%s" PART, layer);
    struct hidden *hidden = calloc(1, sizeof *hidden);
    autodir DIR *dir = files_list(record, part);
    int status = hidden ? 0 : brig_fail_nomem(err);
    for (const struct dirent *item; status == 0 && dir && (item = readdir(dir));) {
        if (item->d_name[0] == '.')
            continue;
        if (!array_grow(&hidden->sets, hidden->count) ||
            !array_grow(&hidden->filters, hidden->filter_count)) {
            status = brig_fail_nomem(err);
            break;
        }
        struct set *set = &hidden->sets[hidden->count++];
        size_t filters = 0;
        *set = (struct set){0};
        status = read_set(dirfd(dir), item->d_name, set, &filters, err);
        if (status == 0 && filters > 0)
            hidden->filters[hidden->filter_count++] =
                (struct startup_filter){set->filters, filters};
    }
    if (status < 0)
        hidden_free(hidden);
    else
        *ret_hidden = hidden;
    return status;
}

void hidden_free(struct hidden *hidden)
{
    if (!hidden)
        return;
    for (size_t i = 0; i < hidden->count; i++)
        set_done(&hidden->sets[i]);
    free(hidden->sets);
    free(hidden->filters);
    free(hidden);
}

bool hidden_has(const struct hidden *hidden, const char *path)
{
    for (size_t i = 0; i < hidden->count; i++)
        if (mask_find(&hidden->sets[i].rules, path) >= 0)
            return true;
    return false;
}

bool hidden_is_startup(const struct hidden *hidden, const char *path)
{
    if (hidden->filter_count == 0)
        return false;
    for (size_t i = 0; i < startup_name_count; i++)
        if (fnmatch(startup_names[i], path, FNM_PATHNAME) == 0)
            return true;
    for (size_t i = 0; i < hidden->count; i++)
        for (const char *at = NULL; (at = str_list_next(&hidden->sets[i].text, at));)
            if (*at == LINKED && strcmp(at + 1, path) == 0)
                return true;
    return false;
}

const struct startup_filter *hidden_filters(const struct hidden *hidden, size_t *ret_count)
{
    *ret_count = hidden->filter_count;
    return hidden->filters;
}
