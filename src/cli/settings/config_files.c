/* SPDX-License-Identifier: MIT */
/* The files of the configuration: found, read and written with the ids of the jail's user. */
#include "cli/settings/config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/identity.h"
#include "cli/out_path.h"
#include "cli/project.h"
#include "cli/report.h"
#include "cli/settings/settings.h"
#include "policy/conf.h"
#include "policy/policy.h"

/* ---- Directories ---- */

/* An environment variable that contains an absolute path, else NULL. The XDG specification requires
 * that relative paths are ignored. */
static const char *absolute_variable(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] == '/' ? value : NULL;
}

static int xdg_directory(const char *variable, const char *home, const char *below, char **ret_path,
                         struct brig_error *err)
{
    const char *base = absolute_variable(variable);
    autofree char *path = NULL;
    int status =
        str_make(&path, err, base ? base : home, base ? "" : "/", base ? "" : below, "/brig");
    if (status == 0)
        status = path_normalise(path, PATH_KEEP_DOTDOT, ret_path, err);
    return status < 0 ? brig_wrap(err, status, "environment variable %s", variable) : 0;
}

/* A directory for both configuration and jails, if the environment names one. */
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

/* Every user who can write to the directory decides what jails may do. */
static int check_owner(int fd, const char *dir, const struct identity *identity,
                       struct brig_error *err)
{
    struct stat info;
    if (fstat(fd, &info) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot look at '%s'", str_shown(dir).text);
    if (info.st_uid != identity_uid(identity) && info.st_uid != 0)
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

/* Opens the directory: 1 and its fd, or 0 if it does not exist. It also counts as missing below a
 * home that the user may not enter, as root of a user namespace, unless the environment names
 * it. */
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

/* The prefix "./" keeps conf_load() from adding ".conf"; messages show the name without it. */
static int load_exact(int dir_fd, const char *dir, const char *name, bool optional,
                      struct conf_source *ret_source, struct brig_error *err)
{
    autofree char *path = NULL;
    autofree char *shown = NULL;
    int status = str_make(&path, err, "./", name);
    if (status == 0)
        status = str_make(&shown, err, dir, "/", name);
    if (status == 0)
        status = conf_load(dir_fd, dir, path, optional, ret_source, err);
    struct stat info;
    /* A dangling link was meant to be a file: ignoring it would allow more. */
    if (status == 0 && fstatat(dir_fd, path, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISLNK(info.st_mode))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'%s' is a symbolic link to a file that does not exist. Restore the file, "
                         "or remove the link",
                         str_shown(shown).text);
    if (status <= 0)
        return status;
    free(ret_source->name);
    ret_source->name = take_ptr(&shown);
    return status;
}

static int load_in(struct config_files *files, const char *dir, const char *name, bool exact,
                   bool optional, struct conf_source *ret_source, struct brig_error *err)
{
    if (!dir)
        return conf_load(AT_FDCWD, NULL, name, optional, ret_source, err);
    autoclose int fd = -1;
    int status = open_directory(dir, files, &fd, err);
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
    if (!array_grow(&files->sources, files->source_count))
        return brig_fail_nomem(err);
    files->sources[files->source_count++] = take_ptr(&path);
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

/* The file is untrusted: a symbolic link in its place could expose any file. */
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
    int status = conf_load(AT_FDCWD, NULL, path_proc(fd).text, false, ret_source, err);
    if (status <= 0)
        return status;
    free(take_ptr(&ret_source->name));
    status = str_make(&ret_source->name, err, cwd, "/", CONFIG_PROJECT_FILE);
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

static bool on_of_project(void *context, const char *storage, const char *jail,
                          char project[static PATH_LENGTH_MAX + 1])
{
    const struct config_files *files = context;
    identity_enter(files->identity);
    bool found = project_of(storage, jail, project);
    identity_leave(files->identity);
    return found;
}

static const char *on_variable(void *context, const char *name)
{
    (void)context;
    return getenv(name);
}

static bool on_is_program(void *context, const char *path)
{
    const struct config_files *files = context;
    struct stat info;
    identity_enter(files->identity);
    bool found = stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
    identity_leave(files->identity);
    return found;
}

int config_files_find(struct config_files *files, const struct identity *identity, const char *cwd,
                      struct brig_error *err)
{
    files->identity = identity;
    int status = path_normalise(real_home(identity), PATH_KEEP_DOTDOT, &files->home, err);
    if (status == 0)
        status = find_directories(files, cwd, err);
    if (status == 0)
        status = project_find(cwd, identity, &files->project, err);
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
        .is_program = on_is_program,
        .load = on_load,
        .project = files->project,
        .of_project = on_of_project,
        .load_project = on_project,
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
    free(files->project);
    *files = (struct config_files){0};
}

/* ---- Writing ---- */

int config_write_jail(int dir_fd, const char *name, enum brig_mode mode, bool of_project,
                      struct brig_error *err)
{
    autofree char *file = NULL;
    autofree char *text = NULL;
    bool unnamed = of_project || strcmp(name, SETTINGS_JAIL) == 0;
    int status = str_make(&file, err, name, ".jail");
    /* In the file of a jail that is used without a name, the mode would silently override the mode of every .conf
     * file. */
    if (status == 0)
        status = str_make(
            &text, err,
            "# What holds for this jail, whichever .conf file is in use; see brig.conf(5).\n",
            unnamed ? "# mode " : "mode ",
            policy_word(POLICY_MODE, unnamed ? BRIG_MODE_CASUAL : mode), "\n");
    if (status == 0)
        status = out_file_write(dir_fd, file, text, 0600, false, err);
    return status < 0 ? status : 0;
}

int config_make_directory(const char *path, int *ret_fd, struct brig_error *err)
{
    int status = path_make_directories(path, strlen(path), 0700, err);
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

static bool exists(const char *dir, const char *name)
{
    char path[PATH_LENGTH_MAX + 1];
    struct stat info;
    return str_fill(path, sizeof path, dir, "/", name) && lstat(path, &info) == 0;
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
                             "--%s: '%s' is relative to the home directory, where it does not "
                             "exist; for the file in the working directory write ./%s",
                             mask->unmask ? "unmask" : "mask", str_shown(mask->path).text,
                             str_shown(mask->path).text);
    }
    return 0;
}

/* ---- Messages that are shown once: the contents of a project's file, and that files of jai are
 * not read ---- */

#define PROJECTS_DIR ".projects" /* in the storage: messages that were shown */
#define JAI_DIR ".jai"           /* in the home directory */
#define JAI_NOTE "jai"           /* in PROJECTS_DIR, where names of projects have 16 digits */
#define OWN_JAILS_NOTE "jails"   /* the same */
#define SHOWN_LINES_MAX 50
#define SHOWN_LINE_MAX 200 /* bytes of each line */

/* A file name for a project's message, derived from a hash: if two projects collide, their messages
 * are only shown again in turn. */
static void project_name(const char *cwd, char name[static 32])
{
    (void)snprintf(name, 32, "%016" PRIx64, project_hash(cwd));
}

/* Whether exactly this text was recorded under the name. */
static bool is_noted(const char *storage, const char *name, const char *note)
{
    char path[PATH_LENGTH_MAX + 1];
    autostr struct str seen = {0};
    autoclose int fd = str_fill(path, sizeof path, storage, "/" PROJECTS_DIR "/", name)
                           ? open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
                           : -1;
    return fd >= 0 && read_all(fd, strlen(note) + 1, &seen) == 0 && str_equal(seen.data, note);
}

static void remember_note(const char *storage, const char *name, const char *note)
{
    char path[PATH_LENGTH_MAX + 1];
    autoclose int fd = -1;
    if (str_fill(path, sizeof path, storage, "/" PROJECTS_DIR) &&
        config_make_directory(path, &fd, NULL) == 0)
        (void)out_file_write(fd, name, note, 0600, true, NULL);
}

/* Whether the message has to be shown; with `remember` records that it was. */
static bool is_news(const char *storage, const char *name, const char *note,
                    const struct identity *identity, bool remember)
{
    identity_enter(identity);
    bool noted = is_noted(storage, name, note);
    if (!noted && remember)
        remember_note(storage, name, note);
    identity_leave(identity);
    return !noted;
}

static void show_lines(const char *text)
{
    size_t shown = 0;
    while (*text && shown <= SHOWN_LINES_MAX) {
        const char *word = text + strspn(text, " \t\r");
        size_t length = strcspn(word, "\n");
        if (length > 0 && *word != '#' && shown++ < SHOWN_LINES_MAX)
            message_note("    %.*s", (int)(length < SHOWN_LINE_MAX ? length : SHOWN_LINE_MAX),
                         word);
        text = word + length + (word[length] == '\n');
    }
    if (shown > SHOWN_LINES_MAX)
        message_note("    and more");
}

void config_show_project(const struct config *config, const char *cwd,
                         const struct identity *identity, bool remember)
{
    if (!config->project_text)
        return;
    char name[32];
    autofree char *note = NULL;
    project_name(cwd, name);
    if (str_make(&note, NULL, cwd, "\n", config->project_text) < 0 ||
        !is_news(config->storage, name, note, identity, remember))
        return;
    message_note("'%s/%s' narrows what is allowed; it is shown when it is new or has changed:",
                 str_shown(cwd).text, CONFIG_PROJECT_FILE);
    show_lines(config->project_text);
}

bool config_is_new_project(const struct config *config, const char *cwd,
                           const struct identity *identity)
{
    char name[32];
    autofree char *key = NULL;
    if (str_make(&key, NULL, "tokens ", cwd) < 0)
        return false;
    project_name(key, name);
    return is_news(config->storage, name, key, identity, true);
}

void config_show_jai(const struct config_files *files, const struct identity *identity,
                     bool remember)
{
    static const char note[] = "brig has said that it does not read ~/" JAI_DIR ".\n";
    char path[PATH_LENGTH_MAX + 1];
    struct stat info;
    if (files->named || files->source_count > 0 ||
        !str_fill(path, sizeof path, files->home, "/" JAI_DIR))
        return;
    identity_enter(identity);
    bool exists = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    identity_leave(identity);
    if (!exists || !is_news(files->storage, JAI_NOTE, note, identity, remember))
        return;
    message_note("'%s' is not read: it is jai's configuration. To use it: brig import jai, or set "
                 "JAI_CONFIG_DIR='%s'",
                 str_shown(path).text, str_shown(path).text);
}

bool config_is_new_profile(const char *storage, const char *cwd, const char *name, const char *text,
                           const struct identity *identity, bool remember)
{
    autofree char *key = NULL;
    autofree char *note = NULL;
    char file[32];
    if (str_make(&key, NULL, cwd, "\n", name) < 0 || str_make(&note, NULL, key, "\n", text) < 0)
        return false;
    project_name(key, file);
    return is_news(storage, file, note, identity, remember);
}

static const char own_jails_note[] = "brig has said that each project has a jail of its own.\n";

void config_note_default_jail(const char *storage)
{
    remember_note(storage, OWN_JAILS_NOTE, own_jails_note);
}

void config_show_own_jails(const struct config *config, const struct identity *identity)
{
    if (!config->project || config->mode == BRIG_MODE_SEALED)
        return;
    identity_enter(identity);
    bool had = exists(config->storage, SETTINGS_JAIL ".jail");
    identity_leave(identity);
    if (!had || !is_news(config->storage, OWN_JAILS_NOTE, own_jails_note, identity, true))
        return;
    message_note(
        "each project now has a jail of its own; here it is '%s'. Your jail '" SETTINGS_JAIL
        "' is still there: brig -j " SETTINGS_JAIL
        ". To use it in all projects, write 'jail " SETTINGS_JAIL "' in '%s/default.conf'",
        config->jail, str_shown(config->dir).text);
}
