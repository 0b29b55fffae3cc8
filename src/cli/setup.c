/* SPDX-License-Identifier: MIT */
/* From a command line to a complete policy. */
#include "cli/setup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "cli/desktop.h"
#include "cli/identity.h"
#include "cli/net.h"
#include "cli/own_files.h"
#include "cli/report.h"
#include "cli/script.h"
#include "jail/confine/unenforced.h"
#include "policy/policy.h"

/* The directory is opened once and granted by this descriptor: another one may be at its path later. */
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

/* A variable that was asked for by name and is not set is not set inside either: it may be mistyped, or
 * not exported. In files such rules are for whoever has the variable. */
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

/* Everything a policy is made of, in the order in which later rules win. */
static int build_policy(struct setup *setup, int argc, char **argv, struct brig_error *err)
{
    struct settings *settings = &setup->settings;
    const struct config *config = &setup->config;
    const struct identity *identity = &setup->identity;
    int status = identity_apply(identity, settings->policy, err);
    if (status == 0)
        status = variables_apply(settings->policy, err);
    bool held_back = false;
    if (status == 0 && !config->nocwd)
        status = workdir_grant(settings, identity, &held_back, err);
    if (status == 0)
        status = config_apply(config, &setup->files.world, settings, err);
    if (status == 0)
        status = settings_apply_all(settings, argc, argv, err);
    if (status == 0)
        warn_of_unset(settings->policy);
    if (status == 0)
        status = config_apply_project(config, settings, err);
    if (status == 0)
        status = config_check_masks(settings, identity, err);
    if (status == 0 && !settings->unmount)
        status = net_apply(settings, identity, err);
    if (status == 0)
        status = script_prepare(settings, identity, err);
    if (status == 0 && !settings->unmount)
        status = desktop_apply(settings, identity, err);
    if (status == 0 && !settings->unmount)
        status = workdir_choose(settings, identity, held_back, err);
    return status;
}

/* Prints each line of a text of the guard's. */
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

/* Opens NAME.KIND in the storage directory; -1 if there is none and none can be made. */
static int open_part(const struct settings *settings, const char *kind)
{
    autoclose int storage = -1;
    autofree char *name = NULL;
    if (settings->dry_run || !settings->storage ||
        config_make_directory(settings->storage, &storage, NULL) < 0)
        return -1;
    if (asprintf(&name, "%s.%s", settings->jail, kind) < 0) {
        name = NULL;
        return -1;
    }
    (void)mkdirat(storage, name, 0700);
    return openat(storage, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* A home directory is not shown as the top of a repository: it contains more than that. */
static bool may_show(void *arg, const char *path)
{
    return !workdir_is_precious(path, arg);
}

/* With whose ids the project's files are used: those of the user behind sudo, or, with --foreign, those of the
 * directory's owner. */
static struct git_user project_owner(const struct setup *setup)
{
    const struct identity *identity = &setup->identity;
    struct stat info;
    if (identity->host_uid == (uid_t)-1 && geteuid() == 0 && setup->settings.foreign &&
        setup->cwd_fd >= 0 && fstat(setup->cwd_fd, &info) == 0 && info.st_uid != 0)
        return (struct git_user){info.st_uid, info.st_gid};
    return (struct git_user){identity->host_uid, identity->host_gid};
}

/* Last of all, with the user's rights: what must not be written in what is granted. */
static int protect(struct setup *setup, struct brig_error *err)
{
    struct settings *settings = &setup->settings;
    const struct identity *identity = &setup->identity;
    const struct git_user owner = project_owner(setup);
    autostr struct str notes = {0};
    settings->sources = setup->files.sources;
    settings->source_count = setup->files.source_count;
    identity_enter(identity);
    /* With --foreign the owner of the project cannot reach root's storage: `.git` is read-only then. */
    bool foreign = owner.uid != identity->host_uid;
    autoclose int storage = foreign ? -1 : open_part(settings, "git");
    autoclose int held = foreign ? -1 : open_part(settings, "held");
    const struct guard_options options = {
        .storage = storage,
        .held = held,
        .jail = settings->jail,
        .user = owner,
        .environment = (const char *const *)environ,
        .workdir = settings->cwd,
        .may_show = may_show,
        .may_show_arg = &setup->identity,
        .unprotect = (const char *const *)settings->unprotect,
        .unprotect_count = settings->unprotect_count,
        .off = settings->no_protect,
        .report_only = settings->protect_report,
        .dry = settings->dry_run,
    };
    int status = guard_begin(settings->policy, &options, &setup->guard, &notes, err);
    if (status == 0 && !settings->no_protect)
        status = own_files_protect(settings, err);
    identity_leave(identity);
    if (status == 0 && !settings->dry_run)
        tell(&notes, NULL);
    return status;
}

int setup_make(struct setup *setup, const struct settings_scan *scan, int argc, char **argv,
               bool dry, struct brig_error *err)
{
    *setup = (struct setup){.cwd_fd = -1, .live = LIVE_MASKS_INIT};
    int status = find_cwd(setup->cwd, &setup->cwd_fd, !scan->nocwd, err);
    if (status < 0)
        return status;
    identity_find(&setup->identity);
    status = config_files_find(&setup->files, &setup->identity, setup->cwd, err);
    if (status == 0)
        status = config_read(&setup->files.world, scan, argc, argv, &setup->config, err);
    if (status == 0)
        status = settings_init(&setup->settings, setup->config.mode, setup->cwd, err);
    setup->settings.dry_run = dry;
    setup->settings.cwd_fd = setup->cwd_fd;
    if (status == 0)
        status = build_policy(setup, argc, argv, err);
    if (status == 0 && !setup->settings.unmount)
        status = protect(setup, err);
    if (status < 0)
        setup_done(setup);
    return status;
}

void setup_finish(struct setup *setup, struct brig_unenforced *notices)
{
    live_masks_done(&setup->live);
    if (!setup->guard)
        return;
    autostr struct str notes = {0};
    struct brig_error err = {0};
    identity_enter(&setup->identity);
    if (guard_finish(setup->guard, &notes, &err) < 0)
        message_warning("%s", err.message);
    guard_free(take_ptr(&setup->guard));
    identity_leave(&setup->identity);
    tell(&notes, notices);
}

void setup_done(struct setup *setup)
{
    setup_finish(setup, NULL);
    if (setup->cwd_fd >= 0)
        (void)close(take_fd(&setup->cwd_fd));
    settings_done(&setup->settings);
    config_done(&setup->config);
    config_files_done(&setup->files);
}
