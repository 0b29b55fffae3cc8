/* SPDX-License-Identifier: MIT */
/* `brig import jai`: offers the files of a former user of jai. Its configuration is converted, and
 * its jails are copied. Nothing of jai's is changed, and no file of brig is replaced. All of it
 * happens with the ids of the user. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/process.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/identity.h"
#include "cli/out_path.h"
#include "cli/report.h"
#include "cli/settings/config.h"
#include "cli/settings/import.h"
#include "cli/settings/settings.h"
#include "git/outside_path.h"
#include "home/jails.h"
#include "policy/conf.h"

#define JAI_DIR ".jai"
#define ITEMS_MAX 1024
#define PARTIAL ".import-partial" /* a copy that is not complete */

enum item_kind {
    ITEM_CONF,   /* converted, to the configuration directory */
    ITEM_SCRIPT, /* copied, to the same */
    ITEM_JAIL,   /* NAME.jail: converted, to the storage */
    ITEM_FILES,  /* NAME.home, NAME.changes: copied, to the storage */
};

struct item {
    enum item_kind kind;
    char name[PATH_COMPONENT_MAX + 1];
    bool exists;    /* brig has this file already */
    bool elsewhere; /* a link, or not the type it should have */
};

struct import {
    char from[PATH_LENGTH_MAX + 1];    /* jai's configuration */
    char storage[PATH_LENGTH_MAX + 1]; /* where jai keeps its jails */
    const char *home;
    struct config_files files;
    struct item *items;
    size_t count;
    bool dry_run, yes;
    int from_fd, storage_fd; /* jai's */
    int to_fd, jails_fd;     /* brig's; -1 until something is written */
};

/* ---- What there is ---- */

static const char *target_of(const struct import *import, const struct item *item)
{
    return item->kind == ITEM_CONF || item->kind == ITEM_SCRIPT ? import->files.dir
                                                                : import->files.storage;
}

static bool is_there(const char *directory, const char *name)
{
    char path[PATH_LENGTH_MAX + 1];
    struct stat info;
    return str_fill(path, sizeof path, directory, "/", name) && lstat(path, &info) == 0;
}

static void add_item(struct import *import, enum item_kind kind, const char *name)
{
    for (size_t i = 0; i < import->count; i++)
        if (strcmp(import->items[i].name, name) == 0)
            return;
    if (import->count == ITEMS_MAX || strlen(name) > PATH_COMPONENT_MAX)
        return;
    struct item *item = &import->items[import->count++];
    item->kind = kind;
    (void)str_fill(item->name, sizeof item->name, name);
    item->exists = is_there(target_of(import, item), name);
}

/* A script is a file beside the configuration. */
static void add_script(void *context, const char *name)
{
    struct import *import = context;
    struct stat info;
    if (fstatat(import->from_fd, name, &info, 0) == 0 && S_ISREG(info.st_mode))
        add_item(import, ITEM_SCRIPT, name);
}

/* The last `storage` of default.conf decides; relative to the home directory. */
static void take_storage(void *context, const char *value)
{
    struct import *import = context;
    bool absolute = value[0] == '/';
    if (value[0] == '\0')
        (void)str_fill(import->storage, sizeof import->storage, import->from);
    else
        (void)str_fill(import->storage, sizeof import->storage, absolute ? "" : import->home,
                       absolute ? "" : "/", value);
}

static int load(int dir_fd, const char *dir, const char *name, struct conf_source *ret_source,
                struct brig_error *err)
{
    char path[PATH_COMPONENT_MAX + 3];
    (void)str_fill(path, sizeof path, "./", name); /* without an ending added to it */
    return conf_load(dir_fd, dir, path, false, ret_source, err);
}

/* Finds what a file of the configuration names. */
static int scan_conf(struct import *import, const char *name, struct brig_error *err)
{
    autosource struct conf_source source = {0};
    const struct import_hooks hooks = {import, add_script, take_storage};
    int status = load(import->from_fd, import->from, name, &source, err);
    if (status > 0)
        import_scan(source.text, &hooks);
    return status < 0 ? status : 0;
}

static bool is_conf(const char *name)
{
    return (name[0] != '.' && str_ends_with(name, ".conf")) || strcmp(name, ".defaults") == 0 ||
           strcmp(name, ".jairc") == 0;
}

static int find_conf(struct import *import, struct brig_error *err)
{
    autoclose int fd = openat(import->from_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir DIR *list = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    int status = 0;
    if (!list)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read '%s'", import->from);
    (void)take_fd(&fd);
    while (status == 0 && (entry = readdir(list))) {
        if (!is_conf(entry->d_name))
            continue;
        bool script = strcmp(entry->d_name, ".jairc") == 0;
        add_item(import, script ? ITEM_SCRIPT : ITEM_CONF, entry->d_name);
        status = script ? 0 : scan_conf(import, entry->d_name, err);
    }
    return status;
}

/* Files of a jail are in jai's storage: a link leads to files that the jail never had. */
static void mark_elsewhere(struct import *import, const char *file)
{
    struct stat info;
    for (size_t i = 0; i < import->count; i++) {
        struct item *item = &import->items[i];
        if (strcmp(item->name, file) == 0)
            item->elsewhere =
                fstatat(import->storage_fd, file, &info, AT_SYMLINK_NOFOLLOW) < 0 ||
                (info.st_mode & S_IFMT) != (item->kind == ITEM_JAIL ? S_IFREG : S_IFDIR);
    }
}

/* A jail is one that has a name for brig: NAME.jail, NAME.home or NAME.changes. */
static void add_jail_file(struct import *import, const char *file)
{
    char name[HOME_NAME_MAX + 1];
    const char *dot = strrchr(file, '.');
    size_t length = dot ? (size_t)(dot - file) : 0;
    bool settings = dot && strcmp(dot, ".jail") == 0;
    if (length == 0 || length >= sizeof name ||
        (!settings && strcmp(dot, ".home") != 0 && strcmp(dot, ".changes") != 0))
        return;
    (void)snprintf(name, sizeof name, "%.*s", (int)length, file);
    if (jails_check_name(name, NULL) < 0)
        return;
    add_item(import, settings ? ITEM_JAIL : ITEM_FILES, file);
    mark_elsewhere(import, file);
}

static int find_jails(struct import *import, struct brig_error *err)
{
    import->storage_fd = open(import->storage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (import->storage_fd < 0 && errno == ENOENT)
        return 0;
    autodir DIR *list = import->storage_fd < 0 ? NULL : opendir(import->storage);
    const struct dirent *entry;
    if (!list)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read jai's storage '%s'",
                         str_shown(import->storage).text);
    while ((entry = readdir(list)))
        add_jail_file(import, entry->d_name);
    return 0;
}

/* All or nothing: the parts of a jail belong together. */
static void skip_parts(struct import *import)
{
    for (size_t i = 0; i < import->count; i++) {
        struct item *item = &import->items[i];
        size_t stem = (size_t)(strrchr(item->name, '.') - item->name);
        bool of_jail = item->kind == ITEM_JAIL || item->kind == ITEM_FILES;
        for (size_t k = 0; of_jail && k < import->count; k++) {
            const struct item *other = &import->items[k];
            bool same = (other->kind == ITEM_JAIL || other->kind == ITEM_FILES) &&
                        strncmp(other->name, item->name, stem + 1) == 0 &&
                        strrchr(other->name, '.') == other->name + stem;
            item->exists = item->exists || (same && is_there(import->files.storage, other->name));
            item->elsewhere = item->elsewhere || (same && other->elsewhere);
        }
    }
}

static int by_name(const void *one, const void *other)
{
    const struct item *a = one, *b = other;
    return a->kind != b->kind ? (int)a->kind - (int)b->kind : strcmp(a->name, b->name);
}

static int find_all(struct import *import, struct brig_error *err)
{
    import->from_fd = open(import->from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (import->from_fd < 0) {
        int code = brig_fail(err, errno == ENOENT ? BRIG_E_INVALID : BRIG_E_SYSTEM, errno,
                             "there are no files of jai in '%s'", str_shown(import->from).text);
        return brig_advise(err, code,
                           "If they are elsewhere, name the directory: brig import jai --from DIR");
    }
    (void)str_fill(import->storage, sizeof import->storage, import->from);
    int status = find_conf(import, err);
    /* default.conf decides where the jails are, whatever other files say. */
    if (status == 0 && faccessat(import->from_fd, "default.conf", R_OK, 0) == 0) {
        (void)str_fill(import->storage, sizeof import->storage, import->from);
        status = scan_conf(import, "default.conf", err);
    }
    if (status == 0)
        status = find_jails(import, err);
    skip_parts(import);
    qsort(import->items, import->count, sizeof *import->items, by_name);
    return status;
}

/* Loads the file of an item: that of a jail is in jai's storage. */
static int load_item(const struct import *import, const struct item *item,
                     struct conf_source *ret_source, struct brig_error *err)
{
    bool jail = item->kind == ITEM_JAIL;
    return load(jail ? import->storage_fd : import->from_fd, jail ? import->storage : import->from,
                item->name, ret_source, err);
}

/* ---- What is printed before ---- */

static int append_conf_notes(const struct import *import, const struct item *item, struct str *out,
                             struct brig_error *err)
{
    autosource struct conf_source source = {0};
    autostr struct str text = {0};
    autostr struct str notes = {0};
    int status = load_item(import, item, &source, err);
    if (status < 0)
        return status;
    import_convert(source.text, import->from, &text, &notes);
    for (char *line = notes.data, *end; line && *line != '\0'; line = end + 1) {
        end = strchr(line, '\n');
        str_appendf(out, "      line %.*s\n", (int)(end - line), line);
    }
    return 0;
}

/* Prints what would be done; *ret_count is the number of files to import. */
static int show(const struct import *import, size_t *ret_count, struct brig_error *err)
{
    autostr struct str out = {0};
    int status = 0;
    str_appendf(&out, "Files of jai in %s:\n", str_shown(import->from).text);
    *ret_count = 0;
    for (size_t i = 0; i < import->count && status == 0; i++) {
        const struct item *item = &import->items[i];
        const char *to = target_of(import, item);
        if (item->exists) {
            str_appendf(&out, "  %s: not imported, because brig has one in %s\n",
                        str_shown(item->name).text, str_shown(to).text);
            continue;
        }
        if (item->elsewhere) {
            str_appendf(&out,
                        "  %s: not imported, because a part of its jail is a link or not of the "
                        "usual type\n",
                        str_shown(item->name).text);
            continue;
        }
        (*ret_count)++;
        str_appendf(&out, "  %s -> %s\n", str_shown(item->name).text, str_shown(to).text);
        if (item->kind == ITEM_CONF || item->kind == ITEM_JAIL)
            status = append_conf_notes(import, item, &out, err);
    }
    if (import->count == 0)
        str_append(&out, "  none\n");
    return status < 0 ? status : message_print(&out, err);
}

static bool user_agrees(void)
{
    char answer[16] = "";
    static const char question[] = "Import them? Nothing of jai's is changed. [y/N] ";
    (void)!write(STDOUT_FILENO, question, sizeof question - 1);
    ssize_t length = read(STDIN_FILENO, answer, sizeof answer - 1);
    return length > 0 && (answer[0] == 'y' || answer[0] == 'Y');
}

/* ---- The import ---- */

static int write_conf(const struct import *import, const struct item *item, struct brig_error *err)
{
    autosource struct conf_source source = {0};
    autostr struct str text = {0};
    autostr struct str notes = {0};
    int status = load_item(import, item, &source, err);
    if (status < 0)
        return status;
    if (item->kind == ITEM_SCRIPT)
        str_append_bytes(&text, source.text, source.length);
    else
        import_convert(source.text, import->from, &text, &notes);
    if (text.failed)
        return brig_fail_nomem(err);
    struct stat info = {0};
    (void)fstatat(import->from_fd, item->name, &info, 0);
    mode_t mode = item->kind == ITEM_SCRIPT && (info.st_mode & 0100) ? 0700 : 0600;
    status = out_file_write(item->kind == ITEM_JAIL ? import->jails_fd : import->to_fd, item->name,
                            text.data ? text.data : "", mode, false, err);
    return status < 0 ? status : 0;
}

/* Executes cp in the directory that is to be copied. `path` is PATH without directories in which a
 * jail could have put a program. */
static __attribute__((noreturn)) void execute_cp(int from, const char *to, const char *path)
{
    if (fchdir(from) == 0 && setenv("PATH", *path ? path : "/usr/bin:/bin", 1) == 0)
        (void)execlp("cp", "cp", "-a", "--reflink=auto", "-T", "--", ".", to, (char *)NULL);
    _exit(127);
}

/* Copies a tree with cp, which keeps links, whiteouts, times and attributes, and moves it to its
 * name when it is complete. */
static int copy_files(const struct import *import, const struct item *item, struct brig_error *err)
{
    autofree char *path = NULL;
    char partial[PATH_COMPONENT_MAX + sizeof PARTIAL + 1], to[PATH_LENGTH_MAX + 1];
    if (!str_fill(partial, sizeof partial, item->name, PARTIAL) ||
        !str_fill(to, sizeof to, import->files.storage, "/", partial))
        return brig_fail(err, BRIG_E_INVALID, 0, "the path of '%s' is too long", item->name);
    if (outside_path((const char *const *)environ, NULL, &path, err) < 0)
        return BRIG_E_NOMEM;
    autoclose int from =
        openat(import->storage_fd, item->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (from < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open '%s/%s'",
                         str_shown(import->storage).text, item->name);
    pid_t child = fork();
    if (child == 0)
        execute_cp(from, to, path);
    if (process_wait(child) != 0)
        return brig_fail(err, BRIG_E_SYSTEM, 0,
                         "cannot copy '%s/%s'; what was copied is in '%s', which can be deleted",
                         str_shown(import->storage).text, item->name, str_shown(to).text);
    if (path_rename_new(import->jails_fd, partial, import->jails_fd, item->name) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot rename '%s'", str_shown(to).text);
    return 0;
}

static int import_all(struct import *import, struct brig_error *err)
{
    int status = config_make_directory(import->files.dir, &import->to_fd, err);
    if (status == 0)
        status = config_make_directory(import->files.storage, &import->jails_fd, err);
    /* Settings of a jail come after the rest: brig lists jails by them. */
    for (int settings = 0; settings < 2; settings++)
        for (size_t i = 0; i < import->count && status == 0; i++) {
            const struct item *item = &import->items[i];
            if (item->exists || item->elsewhere || (item->kind == ITEM_JAIL) != settings)
                continue;
            status = item->kind == ITEM_FILES ? copy_files(import, item, err)
                                              : write_conf(import, item, err);
            if (status == 0)
                message_note("imported %s", item->name);
        }
    return status;
}

static int run_import(struct import *import, struct brig_error *err)
{
    size_t count = 0;
    int status = find_all(import, err);
    if (status == 0)
        status = show(import, &count, err);
    if (status < 0 || import->dry_run)
        return status;
    if (count == 0) {
        message_note("there is nothing to import");
        return 0;
    }
    if (!import->yes && !isatty(STDIN_FILENO))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "nothing was imported, because there is no terminal to ask at: add --yes");
    if (!import->yes && !user_agrees()) {
        message_note("nothing was imported");
        return 1;
    }
    status = import_all(import, err);
    if (status == 0 && is_there(import->files.storage, SETTINGS_JAIL ".jail"))
        message_note("in brig each project has a jail of its own. To use jai's jail 'default' in "
                     "all of them, write 'jail default' in '%s/default.conf'",
                     str_shown(import->files.dir).text);
    return status;
}

/* ---- The command line ---- */

static int take_options(struct import *import, const struct app *app, int argc, char **argv,
                        const char **ret_from, struct brig_error *err)
{
    if (argc < 2 || strcmp(argv[1], "jai") != 0)
        return argc < 2 || argv[1][0] == '-'
                   ? brig_fail(err, BRIG_E_INVALID, 0,
                               "say what to import: brig import jai [--dry-run]")
                   : brig_fail(err, BRIG_E_INVALID, 0,
                               "cannot import from '%s'; brig knows the files of jai: brig import "
                               "jai [--dry-run]",
                               str_shown(argv[1]).text);
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--dry-run") == 0)
            import->dry_run = true;
        else if (strcmp(argv[i], "--yes") == 0)
            import->yes = true;
        else if (strcmp(argv[i], "--from") == 0 && i + 1 < argc)
            *ret_from = argv[++i];
        else
            return command_refuse(app, argc, argv, i, err);
    }
    return 0;
}

/* Finds jai's directory: that of --from, or ~/.jai. */
static int find_from(struct import *import, const char *from, const char *cwd,
                     struct brig_error *err)
{
    autofree char *path = NULL;
    if (!from && import->files.named && !getenv("BRIG_CONFIG_DIR"))
        return brig_fail(err, BRIG_E_STATE, 0,
                         "JAI_CONFIG_DIR is set, so brig uses the files in '%s' as they are. To "
                         "import them: env -u JAI_CONFIG_DIR brig import jai --from '%s'",
                         str_shown(import->files.dir).text, str_shown(import->files.dir).text);
    int status = from ? path_make_absolute(cwd, from, &path, err)
                      : str_make(&path, err, import->home, "/" JAI_DIR);
    if (status < 0)
        return status;
    if (strcmp(path, import->files.dir) == 0 || strcmp(path, import->files.storage) == 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is brig's own directory",
                         str_shown(path).text);
    return str_fill(import->from, sizeof import->from, path)
               ? 0
               : brig_fail(err, BRIG_E_INVALID, 0, "'%s' is too long", str_shown(path).text);
}

static int run(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    struct import import = {.from_fd = -1, .storage_fd = -1, .to_fd = -1, .jails_fd = -1};
    struct identity identity;
    const char *from = NULL;
    char cwd[PATH_LENGTH_MAX + 1] = "/";
    int status = take_options(&import, app, argc, argv, &from, err);
    if (status < 0)
        return status;
    (void)!getcwd(cwd, sizeof cwd);
    identity_find(&identity);
    status = config_files_find(&import.files, &identity, cwd, err);
    import.home = import.files.home;
    import.items = calloc(ITEMS_MAX, sizeof *import.items);
    if (status == 0 && !import.items)
        status = brig_fail_nomem(err);
    int failed = status == 0 ? identity_become(&identity) : 0;
    if (failed < 0)
        status =
            brig_fail(err, BRIG_E_SYSTEM, -failed, "cannot act as uid %u", identity_uid(&identity));
    if (status == 0)
        status = find_from(&import, from, cwd, err);
    if (status == 0)
        status = run_import(&import, err);
    const int fds[] = {import.from_fd, import.storage_fd, import.to_fd, import.jails_fd};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
    free(import.items);
    config_files_done(&import.files);
    return status;
}

const struct command cmd_import = {
    .name = "import",
    .summary = "convert the configuration and jails of jai",
    .usage = "jai [--from DIR] [--dry-run] [--yes]",
    .run = run,
};
