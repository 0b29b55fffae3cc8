/* SPDX-License-Identifier: MIT */
/* From a command line to a complete policy. */
#include "cli/run/setup.h"

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
#include "base/str.h"
#include "changes/layer/layer.h"
#include "changes/operation/hold.h"
#include "cli/identity.h"
#include "cli/jails.h"
#include "cli/network/net.h"
#include "cli/project.h"
#include "cli/report.h"
#include "cli/run/image.h"
#include "cli/run/program.h"
#include "cli/run/review.h"
#include "cli/settings/script.h"
#include "cli/settings/settings.h"
#include "cli/settle.h"
#include "held/names.h"
#include "jail/job/result.h"
#include "policy/policy.h"

/* ---- The files that configure brig are read-only in granted directories ----
 *
 * A program that can write to them controls the next jail, and `initjail` names a program that runs
 * outside. The directories of configuration and storage are hidden (home.c), but a file can be
 * elsewhere: one that -C or `conf` names, a script, a program, or the target of a link in the
 * directory, for users who keep their settings in a repository. */

#define HOPS_MAX 40 /* the limit of the kernel */

static bool is_or_below(const char *directory, const char *path)
{
    char real[PATH_LENGTH_MAX + 1];
    return path_is_beneath(directory, path) ||
           (path_resolve(directory, real) && path_is_beneath(real, path));
}

/* Adds a rule for a path wherever a parent of it is a writable grant. The jail could create a
 * missing file, and brig would obey it. */
static int protect_path(const struct settings *settings, const char *path, bool missing,
                        struct brig_error *err)
{
    struct brig_policy *policy = settings->policy;
    size_t count = policy->grant_count;
    int status = 0;
    for (size_t i = 0; i < count && status == 0; i++) {
        const struct policy_grant *grant = &policy->grants[i];
        char source[PATH_LENGTH_MAX + 1], dest[PATH_LENGTH_MAX + 1];
        if (grant->access != BRIG_READ_WRITE || grant->fd >= 0 || grant->own || grant->review)
            continue;
        const char *rest = grant_rest(grant, path);
        if (!rest || names_is_excepted((const char *const *)settings->unprotect,
                                       settings->unprotect_count, grant->source, rest))
            continue;
        if (missing)
            return brig_fail(
                err, BRIG_E_INVALID, 0,
                "brig's configuration leads to '%s', which does not exist and which the "
                "command could create. Create it, or remove the link",
                str_shown(path).text);
        if (!str_fill(source, sizeof source, grant->source, "/", rest) ||
            !str_fill(dest, sizeof dest, grant->dest, "/", rest))
            return brig_fail(err, BRIG_E_SETUP, ENAMETOOLONG, "cannot protect '%s'",
                             str_shown(path).text);
        status = brig_policy_grant(policy, BRIG_PROTECT, source, dest, BRIG_GRANT_OPTIONAL, err);
    }
    return status;
}

static int protect_name(const struct settings *settings, const char *path, bool missing,
                        struct brig_error *err)
{
    if (is_or_below(settings->config_dir, path) || is_or_below(settings->storage, path))
        return 0;
    return protect_path(settings, path, missing, err);
}

/* Appends the next component of *rest to `at`, a path without links; false at the end. */
static bool take_name(const char **rest, char at[static PATH_LENGTH_MAX + 1])
{
    const char *name = *rest + strspn(*rest, "/");
    size_t length = strcspn(name, "/"), used = strlen(at);
    if (length == 0 || used + length + 2 > PATH_LENGTH_MAX + 1)
        return false;
    *rest = name + length;
    if (length == 2 && strncmp(name, "..", length) == 0)
        *(strrchr(at, '/') ? strrchr(at, '/') : at) = '\0';
    else if (length != 1 || *name != '.')
        (void)snprintf(at + used, PATH_LENGTH_MAX + 1 - used, "/%.*s", (int)length, name);
    return true;
}

/* Protects the file and every link on the path to it, each at its path without links: a program
 * that could replace one would decide what brig reads. */
static int protect_file(const struct settings *settings, const char *path, struct brig_error *err)
{
    char at[PATH_LENGTH_MAX + 1] = "", target[PATH_LENGTH_MAX + 1], left[PATH_LENGTH_MAX + 1];
    autofree char *way = strdup(path);
    const char *rest = way;
    int status = way ? 0 : brig_fail_nomem(err), links = 0;
    bool missing = false;
    while (status == 0 && links <= HOPS_MAX && take_name(&rest, at)) {
        ssize_t length = missing ? -1 : readlink(at, target, sizeof target - 1);
        missing = missing || (length < 0 && errno == ENOENT);
        if (length < 0)
            continue;
        target[length] = '\0';
        links++;
        status = protect_name(settings, at, false, err);
        if (status < 0 || !str_fill(left, sizeof left, target, "/", rest))
            return status;
        *(*target == '/' ? at : strrchr(at, '/')) = '\0';
        free(way);
        rest = way = strdup(left);
        status = way ? 0 : brig_fail_nomem(err);
    }
    return status < 0 ? status : protect_name(settings, at, missing && links > 0, err);
}

/* Protects a file that this run has read. Links directly in brig's directories, which contain most
 * files, are handled anyway. */
static int protect_read(const struct settings *settings, const char *path, struct brig_error *err)
{
    const char *const own[] = {path_below(settings->config_dir, path),
                               path_below(settings->storage, path)};
    for (size_t i = 0; i < ARRAY_LENGTH(own); i++)
        if (own[i] && *own[i] && !strchr(own[i], '/'))
            return 0;
    return protect_file(settings, path, err);
}

/* Also protects files that this run has not read: another run may. */
static int protect_links(const struct settings *settings, const char *directory,
                         struct brig_error *err)
{
    autodir DIR *dir = opendir(directory);
    const struct dirent *item;
    int status = protect_file(settings, directory, err);
    while (dir && status == 0 && (item = readdir(dir))) {
        char path[PATH_LENGTH_MAX + 1];
        if (item->d_type != DT_LNK && item->d_type != DT_UNKNOWN)
            continue;
        if (str_fill(path, sizeof path, directory, "/", item->d_name))
            status = protect_file(settings, path, err);
    }
    return status;
}

static int protect_programs(const struct settings *settings,
                            const struct settings_programs *programs, struct brig_error *err)
{
    int status = 0;
    for (size_t i = 0; i < programs->count && status == 0; i++)
        status = protect_read(settings, programs->items[i].path, err);
    return status;
}

static int own_files_protect(const struct settings *settings, struct brig_error *err)
{
    int status = protect_links(settings, settings->config_dir, err);
    if (status == 0)
        status = protect_links(settings, settings->storage, err);
    for (size_t i = 0; i < settings->source_count && status == 0; i++)
        status = protect_read(settings, settings->sources[i], err);
    if (status == 0)
        status = protect_programs(settings, &settings->scripts, err);
    return status < 0 ? status : protect_programs(settings, &settings->initjails, err);
}

/* Creates the missing directories of brig that the jail could create in its grants: a missing
 * directory cannot be hidden. */
static void own_directories_make(const struct settings *settings)
{
    const struct brig_policy *policy = settings->policy;
    const char *const directories[] = {settings->config_dir, settings->storage};
    for (size_t i = 0; i < ARRAY_LENGTH(directories); i++) {
        char above[PATH_LENGTH_MAX + 1], real[PATH_LENGTH_MAX + 1], path[PATH_LENGTH_MAX + 1];
        char *slash = str_fill(above, sizeof above, directories[i]) ? above : NULL;
        while (slash && !path_resolve(*above ? above : "/", real) && (slash = strrchr(above, '/')))
            *slash = '\0';
        const char *rest = directories[i] + strlen(above);
        if (!slash || !*rest || !str_fill(path, sizeof path, real[1] ? real : "", rest))
            continue;
        for (size_t j = 0; j < policy->grant_count; j++) {
            const struct policy_grant *grant = &policy->grants[j];
            autoclose int made = -1;
            if (grant->access == BRIG_READ_WRITE && grant->fd < 0 && grant_rest(grant, path))
                (void)config_make_directory(directories[i], &made, NULL);
        }
    }
}

/* ---- The policy ---- */

/* The directory is opened once and granted by its descriptor: another directory may be at its path
 * later. */
static int find_cwd(char cwd[static PATH_LENGTH_MAX + 1], int *ret_fd, bool needed,
                    struct brig_error *err)
{
    *ret_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (getcwd(cwd, PATH_LENGTH_MAX + 1))
        return 0;
    if (needed) {
        (void)brig_fail(err, BRIG_E_SYSTEM, errno, "cannot find out the working directory");
        return brig_advise(err, BRIG_E_SYSTEM,
                           "Go into one that exists, or use -D to run without it");
    }
    memcpy(cwd, "/", sizeof("/"));
    return 0;
}

/* A variable that was requested by name but is not set will not be set inside: it may be mistyped,
 * or not exported. In files such rules are for users who have the variable. */
static void warn_of_unset(const struct brig_policy *policy)
{
    for (size_t i = 0; i < policy->env_count; i++) {
        const struct policy_env *rule = &policy->env[i];
        if (rule->kind == POLICY_ENV_EXPOSE && strcmp(rule->origin, SETTINGS_TYPED) == 0 &&
            !strchr(rule->name, '*') && !getenv(rule->name))
            message_warning("--setenv %s: the variable is not set, so it is not passed on",
                            rule->name);
    }
}

/* Builds the whole policy, in the order in which later rules win. */
static int build_policy(struct setup *setup, int argc, char **argv, const char *command,
                        struct brig_error *err)
{
    struct settings *settings = &setup->settings;
    const struct config *config = &setup->config;
    const struct identity *identity = &setup->identity;
    int status = identity_apply(identity, settings->policy, err);
    if (status == 0)
        status = variables_apply(settings->policy, err);
    bool precious = !setup->files.project; /* else the directory has one */
    if (status == 0 && !config->nocwd && !precious && !workdir_is_foreign(setup->cwd, identity))
        status = workdir_grant(settings, err);
    if (status == 0)
        status = config_apply(config, &setup->files.world, settings, err);
    if (status == 0)
        status = settings_apply_all(settings, argc, argv, err);
    if (status == 0)
        warn_of_unset(settings->policy);
    if (status == 0 && !settings->unmount)
        status = image_apply(settings, identity, err);
    if (status == 0 && !settings->image)
        status = program_show(settings, identity, command, err);
    if (status == 0)
        status = config_apply_project(config, settings, err);
    if (status == 0)
        status = config_check_masks(settings, identity, err);
    if (status == 0 && !settings->unmount)
        status = net_apply(settings, identity, err);
    if (status == 0 && settings->desktop_asked && !settings->unmount)
        status = desktop_apply(settings, identity, err);
    if (status == 0)
        status = script_prepare(settings, identity, err);
    if (status == 0 && !settings->unmount)
        status = workdir_choose(settings, identity, precious, err);
    return status;
}

/* Prints each line of a message of the guard. */
static void tell(struct str *lines, struct brig_unenforced *notices)
{
    char *rest = lines->data;
    for (char *line; rest && (line = strsep(&rest, "\n"));) {
        if (!*line)
            continue;
        message_note("%s", line);
        if (notices)
            unenforced_add(notices, "%s", line);
    }
}

/* Opens a part of the jail in the storage directory; -1 if it does not exist and cannot be
 * created. */
static int open_part(const struct settings *settings, const char *part)
{
    autoclose int storage = -1;
    if (settings->dry_run || !settings->storage ||
        config_make_directory(settings->storage, &storage, NULL) < 0)
        return -1;
    if (settings->project)
        project_record(storage, settings->jail, settings->project);
    return jails_open_part(storage, settings->jail, part, true);
}

/* A home directory is not shown as the top of a repository, because it contains more than that. */
static bool may_show(void *arg, const char *path)
{
    return !workdir_is_precious(path, arg);
}

/* The ids for accessing the project's files: those of the user who called sudo or, with --foreign,
 * those of the directory's owner. */
static struct git_user project_owner(const struct setup *setup)
{
    const struct identity *identity = &setup->identity;
    struct stat info;
    if (identity->host_uid == (uid_t)-1 && geteuid() == 0 && setup->settings.foreign &&
        setup->cwd_fd >= 0 && fstat(setup->cwd_fd, &info) == 0 && info.st_uid != 0)
        return (struct git_user){info.st_uid, info.st_gid};
    return (struct git_user){identity->host_uid, identity->host_gid};
}

/* Whether the command can write to a directory of the host. */
static bool grants_writing(const struct brig_policy *policy)
{
    for (size_t i = 0; i < policy->grant_count; i++)
        if (policy->grants[i].access == BRIG_READ_WRITE)
            return true;
    return false;
}

static bool reviews(const struct brig_policy *policy)
{
    for (size_t i = 0; i < policy->grant_count; i++)
        if (policy->grants[i].review)
            return true;
    return false;
}

/* Protects repositories, and files that programs outside obey, in the grants. */
static int begin_guard(struct setup *setup, struct brig_error *err)
{
    const struct settings *settings = &setup->settings;
    const struct identity *identity = &setup->identity;
    const struct git_user owner = project_owner(setup);
    autostr struct str notes = {0};
    /* With --foreign, the owner of the project cannot access root's storage: `.git` is then
     * read-only. */
    bool foreign = owner.uid != identity->host_uid;
    autoclose int storage = foreign ? -1 : open_part(settings, GUARD_PART);
    autoclose int record = foreign ? -1 : open_part(settings, LAYER_RECORD_PART);
    const struct jails_option option = jails_option(settings->jail);
    const struct guard_options options = {
        .storage = storage,
        .keeper = {record < 0 ? NULL : hold_name, record},
        .jail = settings->jail,
        .option = option.text,
        .user = owner,
        .environment = (const char *const *)environ,
        .workdir = settings->cwd,
        .may_show = may_show,
        .may_show_arg = &setup->identity,
        .unprotect = (const char *const *)settings->unprotect,
        .unprotect_count = settings->unprotect_count,
        .off = settings->no_protect,
        .report_only = settings->protect_report,
        .review = reviews(settings->policy),
        .dry = settings->dry_run,
    };
    if (!settings->dry_run)
        own_directories_make(settings);
    int status = guard_begin(settings->policy, &options, &setup->guard, &notes, err);
    if (status == 0 && !settings->dry_run)
        tell(&notes, NULL);
    return status;
}

/* Ends killed runs, also those of other jails that could write where this one does. */
static int settle_before(const struct setup *setup, struct brig_error *err)
{
    const struct settings *settings = &setup->settings;
    autostr struct str places = {0}, notes = {0};
    for (size_t i = 0; i < settings->policy->grant_count; i++)
        if (settings->policy->grants[i].access == BRIG_READ_WRITE &&
            settings->policy->grants[i].source)
            str_list_add(&places, settings->policy->grants[i].source);
    const struct settle how = {.storage = settings->storage,
                               .jail = settings->jail,
                               .places = &places,
                               .user = {setup->identity.host_uid, setup->identity.host_gid}};
    int status = settings->storage ? settle(&how, &notes, err) : 0;
    tell(&notes, NULL);
    return status;
}

/* Adds protection, last and with the ids of the user: files in grants that must not be written. */
static int protect(struct setup *setup, struct brig_error *err)
{
    struct settings *settings = &setup->settings;
    settings->sources = setup->files.sources;
    settings->source_count = setup->files.source_count;
    identity_enter(&setup->identity);
    bool copies = policy_mode_row(settings->policy->mode)->home == POLICY_HOME_OVERLAY;
    bool settles = !settings->dry_run && (copies || grants_writing(settings->policy));
    int status = settles ? settle_before(setup, err) : 0;
    if (status == 0)
        status = review_mark(settings, err);
    if (status < 0 || !grants_writing(settings->policy)) {
        identity_leave(&setup->identity);
        return status;
    }
    status = begin_guard(setup, err);
    if (status == 0 && !settings->no_protect)
        status = own_files_protect(settings, err);
    identity_leave(&setup->identity);
    return status;
}

int setup_make(struct setup *setup, const struct settings_scan *scan, int argc, char **argv,
               bool dry, struct brig_error *err)
{
    *setup = (struct setup){.cwd_fd = -1,
                            .live = LIVE_MASKS_INIT,
                            .review = REVIEW_INIT,
                            .checkpoint = RUN_CHECKPOINT_INIT};
    int status = find_cwd(setup->cwd, &setup->cwd_fd, !scan->given[OPTION_NOCWD], err);
    if (status < 0)
        return status;
    identity_find(&setup->identity);
    status = config_files_find(&setup->files, &setup->identity, setup->cwd, err);
    if (status == 0)
        status = config_read(&setup->files.world, scan, argc, argv, &setup->config, err);
    if (status == 0)
        jails_set_here(setup->config.jail_here);
    if (status == 0)
        status = settings_init(&setup->settings, setup->config.mode, setup->cwd, err);
    setup->settings.dry_run = dry;
    setup->settings.cwd_fd = setup->cwd_fd;
    if (status == 0)
        status =
            build_policy(setup, argc, argv, scan->command < argc ? argv[scan->command] : NULL, err);
    if (status == 0 && !setup->settings.unmount)
        status = protect(setup, err);
    if (status < 0)
        setup_done(setup);
    return status;
}

void setup_finish(struct setup *setup, struct brig_unenforced *notices)
{
    autostr struct str notes = {0};
    bool ended = !setup->review.ended;
    live_masks_done(&setup->live);
    const struct run_checkpoint_outcome outcome = {
        .started = setup->started,
        .written = review_end(&setup->review, &setup->settings, &setup->identity)};
    if (ended)
        run_checkpoint_end(&setup->checkpoint, setup->guard, setup->settings.jail, &setup->identity,
                           &outcome, &notes);
    identity_enter(&setup->identity);
    guard_free(take_ptr(&setup->guard));
    identity_leave(&setup->identity);
    if (ended)
        review_tell(&setup->review, &setup->settings, &setup->identity, &notes);
    tell(&notes, notices);
}

void setup_done(struct setup *setup)
{
    setup_finish(setup, NULL);
    review_done(&setup->review);
    own_close(&setup->cwd_fd);
    settings_done(&setup->settings);
    config_done(&setup->config);
    config_files_done(&setup->files);
}
