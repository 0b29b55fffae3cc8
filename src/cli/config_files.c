/* SPDX-License-Identifier: MIT */
/* The files of the configuration: found, read and written as the user the jail is for. */
#include "config_files.h"

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
#include "base/str.h"
#include "base/write.h"
#include "cli/identity.h"
#include "cli/settings.h"
#include "policy/conf.h"
#include "policy/policy.h"

#define autosource __attribute__((cleanup(conf_source_done)))

/* ---- Directories ---- */

/* An environment variable that names an absolute path, else NULL. The XDG specification wants others
 * ignored. */
static const char *absolute_variable(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] == '/' ? value : NULL;
}

static int xdg_directory(const char *variable, const char *home, const char *below, char **ret_path,
                         struct brig_error *err)
{
    const char *base = absolute_variable(variable);
    autostr struct str path = {0};
    str_concat(&path, base ? base : home, base ? "" : "/", base ? "" : below, "/brig");
    if (path.failed)
        return brig_fail_nomem(err);
    int status = path_normalise(path.data, PATH_KEEP_DOTDOT, ret_path, err);
    return status < 0 ? brig_wrap(err, status, "environment variable %s", variable) : 0;
}

/* A directory that holds configuration and jails alike, if the environment names one. */
static const char *own_directory(const char **ret_variable)
{
    static const char *const names[] = {"BRIG_CONFIG_DIR", "JAI_CONFIG_DIR"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        const char *value = getenv(names[i]);
        *ret_variable = names[i];
        if (value && *value != '\0')
            return value;
    }
    return NULL;
}

static int find_directories(struct config_files *files, const char *cwd, struct brig_error *err)
{
    const char *variable = NULL;
    const char *own = own_directory(&variable);
    if (!own) {
        int status = xdg_directory("XDG_CONFIG_HOME", files->home, ".config", &files->dir, err);
        return status < 0 ? status
                          : xdg_directory("XDG_DATA_HOME", files->home, ".local/share",
                                          &files->storage, err);
    }
    files->named = true;
    int status = path_make_absolute(cwd, own, &files->dir, err);
    if (status < 0)
        return brig_wrap(err, status, "environment variable %s", variable);
    return str_copy(files->dir, &files->storage, err);
}

static const char *real_home(const struct identity *identity)
{
    if (identity->host_home && identity->host_home[0] == '/')
        return identity->host_home;
    const char *home = absolute_variable("HOME");
    return home ? home : "/";
}

/* ---- Reading ---- */

/* Who can write there decides what the jail is. */
static int check_owner(int fd, const char *dir, const struct identity *identity,
                       struct brig_error *err)
{
    struct stat info;
    if (fstat(fd, &info) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot look at '%s'", str_shown(dir).text);
    uid_t user = identity->host_uid != (uid_t)-1 ? identity->host_uid : geteuid();
    if (info.st_uid != user && info.st_uid != 0)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "the configuration directory '%s' belongs to another user (uid %u), so it "
                         "is not read. Set BRIG_CONFIG_DIR to a directory of yours",
                         str_shown(dir).text, (unsigned)info.st_uid);
    if (info.st_mode & S_IWOTH)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "every user can write to the configuration directory '%s', so it is not "
                         "read. Try: chmod o-w",
                         str_shown(dir).text);
    return 0;
}

/* The directory: 1 and its fd, or 0 if there is none. Below a home that its user may not enter, as
 * root of a user namespace, there is none either, unless the environment names it. */
static int open_directory(const char *dir, const struct config_files *files, int *ret_fd,
                          struct brig_error *err)
{
    autoclose int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && (errno == ENOENT || (errno == EACCES && !files->named)))
        return 0;
    if (fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open the directory '%s'",
                         str_shown(dir).text);
    *ret_fd = take_fd(&fd);
    return 1;
}

/* A name with a slash in it is not completed by conf_load(); messages show it without. */
static int load_exact(int dir_fd, const char *dir, const char *name, bool optional,
                      struct conf_source *ret_source, struct brig_error *err)
{
    autostr struct str path = {0};
    autostr struct str shown = {0};
    str_concat(&path, "./", name);
    str_concat(&shown, dir, "/", name);
    if (path.failed || shown.failed)
        return brig_fail_nomem(err);
    int status = conf_load(dir_fd, dir, path.data, optional, ret_source, err);
    struct stat info;
    /* Somebody meant there to be one: to go without would be to allow more. */
    if (status == 0 && fstatat(dir_fd, path.data, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISLNK(info.st_mode))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'%s' is a symbolic link to a file that does not exist. Restore the file, "
                         "or remove the link",
                         str_shown(shown.data).text);
    if (status <= 0)
        return status;
    free(ret_source->name);
    ret_source->name = take_ptr(&shown.data);
    return status;
}

static int load_in(struct config_files *files, const char *dir, const char *name, bool exact,
                   bool optional, struct conf_source *ret_source, struct brig_error *err)
{
    if (!dir)
        return conf_load(AT_FDCWD, NULL, name, optional, ret_source, err);
    autoclose int fd = -1;
    bool missing = files->dir_missing && dir == files->world.dir;
    int status = missing ? 0 : open_directory(dir, files, &fd, err);
    if (status == 0 && dir == files->world.dir)
        files->dir_missing = true; /* and is not looked for again */
    if (status < 0 || (status == 0 && optional))
        return status;
    if (status == 0)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "no such configuration file: %s (the directory %s does not exist)",
                         str_shown(name).text, str_shown(dir).text);
    autosource struct conf_source source = {0};
    status = exact ? load_exact(fd, dir, name, optional, &source, err)
                   : conf_load(fd, dir, name, optional, &source, err);
    if (status <= 0)
        return status;
    status = check_owner(fd, dir, files->identity, err);
    if (status < 0)
        return status;
    *ret_source = source;
    source = (struct conf_source){0};
    return 1;
}

static int remember_source(struct config_files *files, const char *name, struct brig_error *err)
{
    autofree char *path = NULL;
    int status = path_make_absolute(files->world.cwd, name, &path, err);
    for (size_t i = 0; i < files->source_count && status == 0; i++)
        if (strcmp(files->sources[i], path) == 0)
            return 0;
    if (status < 0)
        return status;
    char **grown = reallocarray(files->sources, files->source_count + 1, sizeof *grown);
    if (!grown)
        return brig_fail_nomem(err);
    files->sources = grown;
    grown[files->source_count++] = take_ptr(&path);
    return 0;
}

static int on_load(void *context, const char *dir, const char *name, bool exact, bool optional,
                   struct conf_source *ret_source, struct brig_error *err)
{
    struct config_files *files = context;
    identity_enter(files->identity);
    int status = load_in(files, dir, name, exact, optional, ret_source, err);
    identity_leave(files->identity);
    int remembered = status > 0 ? remember_source(files, ret_source->name, err) : 0;
    if (remembered < 0)
        conf_source_done(ret_source);
    return remembered < 0 ? remembered : status;
}

/* The file is somebody else's text: a link in its place could show any file. */
static int load_project(const char *cwd, struct conf_source *ret_source, struct brig_error *err)
{
    autoclose int fd = open(CONFIG_PROJECT_FILE, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) < 0)
        return errno == ENOENT ? 0
                               : brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open '%s/%s'",
                                           str_shown(cwd).text, CONFIG_PROJECT_FILE);
    if (!S_ISREG(info.st_mode))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'%s/%s' is not a regular file: only such are read as configuration",
                         str_shown(cwd).text, CONFIG_PROJECT_FILE);
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int status = conf_load(AT_FDCWD, NULL, path, false, ret_source, err);
    if (status <= 0)
        return status;
    autostr struct str shown = {0};
    str_concat(&shown, cwd, "/", CONFIG_PROJECT_FILE);
    free(ret_source->name);
    ret_source->name = NULL;
    status = str_take(&shown, &ret_source->name, err);
    return status < 0 ? status : 1;
}

static int on_project(void *context, struct conf_source *ret_source, struct brig_error *err)
{
    const struct config_files *files = context;
    identity_enter(files->identity);
    int status = load_project(files->world.cwd, ret_source, err);
    identity_leave(files->identity);
    return status;
}

static const char *on_variable(void *context, const char *name)
{
    (void)context;
    return getenv(name);
}

int config_files_find(struct config_files *files, const struct identity *identity, const char *cwd,
                      struct brig_error *err)
{
    files->identity = identity;
    int status = path_normalise(real_home(identity), PATH_KEEP_DOTDOT, &files->home, err);
    if (status == 0)
        status = find_directories(files, cwd, err);
    if (status < 0)
        return status;
    files->world = (struct config_world){
        .context = files,
        .cwd = cwd,
        .home = files->home,
        .user = identity->name,
        .dir = files->dir,
        .storage = files->storage,
        .variable = on_variable,
        .load = on_load,
        .project = on_project,
    };
    return 0;
}

void config_files_done(struct config_files *files)
{
    for (size_t i = 0; i < files->source_count; i++)
        free(files->sources[i]);
    free(files->sources);
    free(files->dir);
    free(files->storage);
    free(files->home);
    *files = (struct config_files){0};
}

/* ---- Writing ---- */

static int write_text(int fd, const char *name, const char *text, struct brig_error *err)
{
    int failed = write_all(fd, text, strlen(text));
    return failed < 0
               ? brig_fail(err, BRIG_E_SYSTEM, -failed, "cannot write '%s'", str_shown(name).text)
               : 0;
}

/* Where the filesystem cannot rename without replacing, a second name is given instead. */
static int publish(int dir_fd, const char *from, const char *to)
{
    if (renameat2(dir_fd, from, dir_fd, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    return linkat(dir_fd, from, dir_fd, to, 0);
}

int config_write_new(int dir_fd, const char *name, const char *text, struct brig_error *err)
{
    char temporary[PATH_COMPONENT_MAX + 1];
    (void)snprintf(temporary, sizeof temporary, ".brig-new.%d", (int)getpid());
    (void)unlinkat(dir_fd, temporary, 0); /* of one that died, with our number */
    autoclose int fd =
        openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write '%s'", str_shown(name).text);
    int status = write_text(fd, name, text, err);
    if (status == 0 && publish(dir_fd, temporary, name) == 0)
        status = 1;
    else if (status == 0 && errno != EEXIST)
        status = brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write '%s'", str_shown(name).text);
    (void)unlinkat(dir_fd, temporary, 0);
    return status;
}

int config_write_jail(int dir_fd, const char *name, enum brig_mode mode, struct brig_error *err)
{
    autostr struct str file = {0};
    autostr struct str text = {0};
    bool is_default = strcmp(name, SETTINGS_JAIL) == 0;
    str_appendf(&file, "%s.jail", name);
    str_append(&text,
               "# What holds for this jail, whichever .conf file is in use; see brig.conf(5).\n");
    /* Written out for the default jail it would silently undo the mode of every .conf file. */
    str_appendf(&text, "%smode %s\n", is_default ? "# " : "",
                policy_mode_name(is_default ? BRIG_MODE_CASUAL : mode));
    if (file.failed || text.failed)
        return brig_fail_nomem(err);
    int status = config_write_new(dir_fd, file.data, text.data, err);
    return status < 0 ? status : 0;
}

static int make_parents(char *path, struct brig_error *err)
{
    for (char *at = path + 1;; at++) {
        char kept = *at;
        if (kept != '/' && kept != '\0')
            continue;
        *at = '\0';
        int failed = mkdir(path, 0700) < 0 && errno != EEXIST ? errno : 0;
        if (failed)
            return brig_fail(err, BRIG_E_SYSTEM, failed, "cannot create the directory '%s'",
                             str_shown(path).text);
        *at = kept;
        if (kept == '\0')
            return 0;
    }
}

int config_make_directory(const char *path, int *ret_fd, struct brig_error *err)
{
    autofree char *copy = NULL;
    int status = str_copy(path, &copy, err);
    if (status == 0)
        status = make_parents(copy, err);
    if (status < 0)
        return status;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open the directory '%s'",
                         str_shown(path).text);
    *ret_fd = fd;
    return 0;
}

/* ---- Masks ---- */

static bool exists(const char *dir, const char *path)
{
    autostr struct str full = {0};
    str_appendf(&full, "%s/%s", dir, path);
    struct stat info;
    return !full.failed && fstatat(AT_FDCWD, full.data, &info, AT_SYMLINK_NOFOLLOW) == 0;
}

int config_check_masks(const struct settings *settings, const struct identity *identity,
                       struct brig_error *err)
{
    for (size_t i = 0; i < settings->mask_count; i++) {
        const struct settings_mask *mask = &settings->masks[i];
        if (!mask->typed || strpbrk(mask->path, "*?"))
            continue;
        identity_enter(identity);
        bool meant_here = !exists(settings->home, mask->path) && exists(settings->cwd, mask->path);
        identity_leave(identity);
        if (meant_here)
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "--%s: '%s' begins at the home directory, where it does not exist; "
                             "for the one here write ./%s",
                             mask->unmask ? "unmask" : "mask", str_shown(mask->path).text,
                             str_shown(mask->path).text);
    }
    return 0;
}
