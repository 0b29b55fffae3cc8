/* SPDX-License-Identifier: MIT */
/* From a command line to a complete policy. */
#include "cli/setup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "cli/desktop.h"
#include "cli/message.h"
#include "cli/net.h"
#include "cli/script.h"
#include "cli/variables.h"
#include "cli/workdir.h"
#include "jail/job/begun.h"
#include "policy/policy.h"

static int find_cwd(char cwd[static PATH_LENGTH_MAX + 1], bool needed, struct brig_error *err)
{
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

/* Last of all, with the user's rights: what must not be written in what is granted. */
static int protect(struct setup *setup, struct brig_error *err)
{
    struct settings *settings = &setup->settings;
    settings->sources = setup->files.sources;
    settings->source_count = setup->files.source_count;
    identity_enter(&setup->identity);
    autoclose int storage = -1;
    if (protect_is_wanted(settings) && !settings->dry_run && settings->storage)
        (void)config_make_directory(settings->storage, &storage, NULL);
    int status = protect_apply(settings, &setup->identity, storage, &setup->protect, err);
    identity_leave(&setup->identity);
    return status;
}

int setup_make(struct setup *setup, const struct settings_scan *scan, int argc, char **argv,
               bool dry, struct brig_error *err)
{
    *setup = (struct setup){.protect = PROTECT_INIT, .live = LIVE_MASKS_INIT};
    int status = find_cwd(setup->cwd, !scan->nocwd, err);
    if (status < 0)
        return status;
    identity_find(&setup->identity);
    status = config_files_find(&setup->files, &setup->identity, setup->cwd, err);
    if (status == 0)
        status = config_read(&setup->files.world, scan, argc, argv, &setup->config, err);
    if (status == 0)
        status = settings_init(&setup->settings, setup->config.mode, setup->cwd, err);
    setup->settings.dry_run = dry;
    if (status == 0)
        status = build_policy(setup, argc, argv, err);
    if (status == 0 && !setup->settings.unmount)
        status = protect(setup, err);
    if (status < 0)
        setup_done(setup);
    return status;
}

void setup_tidy(struct setup *setup)
{
    identity_enter(&setup->identity);
    protect_tidy(&setup->protect);
    identity_leave(&setup->identity);
    live_masks_done(&setup->live);
}

void setup_done(struct setup *setup)
{
    job_abandon(take_ptr(&setup->begun));
    setup_tidy(setup);
    protect_done(&setup->protect);
    settings_done(&setup->settings);
    config_done(&setup->config);
    config_files_done(&setup->files);
}
