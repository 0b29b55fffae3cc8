/* SPDX-License-Identifier: MIT */
/* `brig run`, and brig without a verb: runs a command, or a shell, in a jail. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/nearest.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/credentials/tokens.h"
#include "cli/help.h"
#include "cli/identity.h"
#include "cli/jails.h"
#include "cli/network/net.h"
#include "cli/out_path.h"
#include "cli/report.h"
#include "cli/run/home.h"
#include "cli/run/image.h"
#include "cli/run/masks.h"
#include "cli/run/program.h"
#include "cli/run/review.h"
#include "cli/run/run_loop.h"
#include "cli/run/setup.h"
#include "cli/settings/config.h"
#include "cli/settings/script.h"
#include "cli/settings/settings.h"
#include "jail/cgroup/cgroup.h"
#include "jail/job/result.h"
#include "policy/policy.h"

/* A project with many protected paths needs more than 1024 descriptors, the usual soft limit. */
#define FDS_WANTED 65536

static int check_pass_fds(const struct settings *settings, struct brig_error *err)
{
    for (size_t i = 0; i < settings->pass_fd_count; i++)
        if (!out_file_is_given(settings->pass_fds[i].fd))
            return brig_fail(err, BRIG_E_INVALID, 0, "--pass-fd: file descriptor %d is not open",
                             settings->pass_fds[i].fd);
    return 0;
}

/* systemd is asked only if the user has set limits, not for defaults. */
static void enter_scope(const struct brig_policy *policy)
{
    const unsigned grouped = 1U << BRIG_LIMIT_MEMORY_BYTES | 1U << BRIG_LIMIT_CPU_PERCENT |
                             1U << BRIG_LIMIT_PROCESSES | 1U << BRIG_LIMIT_CPU_MS |
                             1U << BRIG_LIMIT_IO_READ_BYTES | 1U << BRIG_LIMIT_IO_WRITE_BYTES;
    if (policy->limits_asked & grouped && cgroup_can_ask_systemd())
        run_loop_enter_scope();
}

/* With --output the streams pass through pipes of brig. */
static int open_relays(const struct brig_policy *policy, struct relay relays[RUN_LOOP_RELAYS],
                       struct brig_stdio stdio[3], struct brig_error *err)
{
    for (int i = 0; i < RUN_LOOP_RELAYS; i++) {
        int status = relay_open(&relays[i], i + 1, policy->limits[BRIG_LIMIT_OUTPUT_BYTES],
                                &stdio[i + 1].fd, err);
        if (status < 0)
            return status;
        stdio[i + 1].kind = BRIG_STDIO_FD;
    }
    return 0;
}

static void close_relays(struct relay relays[RUN_LOOP_RELAYS], struct brig_result *result)
{
    struct brig_capture *const captures[] = {&result->out, &result->err};
    for (int i = 0; i < RUN_LOOP_RELAYS; i++) {
        captures[i]->truncated = relay_was_cut(&relays[i]);
        result->usage.out_bytes[i] = relays[i].seen;
        relay_done(&relays[i]);
    }
}

/* Starts the command and waits for its end; *ret_result is always filled in. */
static void run_job(struct setup *setup, const char *const *argv, char **envp,
                    struct net_watch *net, struct ask *ask, struct brig_result *ret_result,
                    struct brig_error *err)
{
    const struct settings *settings = &setup->settings;
    const struct brig_policy *policy = settings->policy;
    struct brig_job *job = NULL;
    struct brig_command command = {
        .size = sizeof(struct brig_command),
        .argv = argv,
        .envp = (const char *const *)envp,
        .stdio = {{.kind = BRIG_STDIO_INHERIT},
                  {.kind = BRIG_STDIO_INHERIT},
                  {.kind = BRIG_STDIO_INHERIT}},
        .pass_fds = settings->pass_fds,
        .pass_fd_count = settings->pass_fd_count,
    };
    enter_scope(policy);
    struct relay relays[RUN_LOOP_RELAYS] = {{.from = -1}, {.from = -1}};
    bool relayed = policy->limits_asked & 1U << BRIG_LIMIT_OUTPUT_BYTES &&
                   policy->limits[BRIG_LIMIT_OUTPUT_BYTES] > 0;
    struct run_loop loop = {.signal_fd = -1,
                            .grace_ms = policy->limits[BRIG_LIMIT_GRACE_MS],
                            .relays = relayed ? relays : NULL,
                            .net = net,
                            .ask = ask->listener >= 0 ? ask : NULL,
                            .oauth = settings->oauth,
                            .masks = &setup->live,
                            .guard = setup->guard};
    int status = run_loop_init(&loop, err);
    if (status == 0 && relayed)
        status = open_relays(policy, relays, command.stdio, err);
    if (status == 0)
        status = brig_start(policy, &command, &job, err);
    policy_forget_secrets(settings->policy);
    for (int i = 1; i < 3; i++)
        if (command.stdio[i].kind == BRIG_STDIO_FD)
            (void)close(command.stdio[i].fd);
    live_masks_start(&setup->live, setup->lease);
    run_loop_finish(&loop, job, status, ret_result, err);
    if (relayed)
        close_relays(relays, ret_result);
}

/* Suggests a verb of brig if the name is close to one. */
static void advise_verb(const char *name, struct brig_error *err)
{
    struct nearest nearest;
    command_nearest(name, &nearest);
    (void)nearest_advise(&nearest, "brig ", err->code, err);
}

/* Cuts the path of a program to the directory that it needs: for a Node.js package the whole
 * package, else its directory. */
static void cut_to_directory(char *path)
{
    static const char modules[] = "/node_modules/";
    char *package = NULL;
    for (char *at = path; (at = strstr(at, modules)); at++)
        package = at + strlen(modules);
    char *end = package ? strchr(package, '/') : strrchr(path, '/');
    if (package && *package == '@' && end)
        end = strchr(end + 1, '/');
    if (end)
        *end = '\0';
}

/* A program may be a symbolic link: the directory that it leads to is needed as well. */
static void advise_grants(const char *file, struct brig_error *err)
{
    char real[PATH_MAX], link[PATH_MAX];
    (void)snprintf(link, sizeof link, "%s", file);
    *strrchr(link, '/') = '\0';
    bool leads = realpath(file, real) != NULL;
    if (leads)
        cut_to_directory(real);
    bool both = leads && strcmp(real, link) != 0;
    (void)brig_advise(err, err->code,
                      "Outside the jail it is '%s': grant the directories it needs, for example "
                      "with -r '%s'%s%s%s",
                      file, link, both ? " -r '" : "", both ? real : "", both ? "'" : "");
}

/* The most common mistake: a program that is in the caller's PATH, but not in the jail. */
static void advise_not_found(const char *name, char **envp, struct brig_error *err)
{
    const char *path = NULL;
    for (size_t i = 0; envp[i]; i++)
        if (strncmp(envp[i], "PATH=", 5) == 0)
            path = envp[i] + 5;
    if (strpbrk(name, " ;|&<>"))
        (void)brig_advise(err, err->code, "For a line of shell: brig sh -c '…'");
    else if (!strchr(name, '/') && access(name, F_OK) == 0)
        (void)brig_advise(err, err->code, "For the file here: ./%s", name);
    char file[PATH_LENGTH_MAX + 1];
    while (!strchr(name, '/') && path_next_program(&path, name, file))
        if (file[0] == '/' && access(file, X_OK) == 0) {
            advise_grants(file, err);
            return;
        }
    advise_verb(name, err);
}

static int run_command(struct setup *setup, const char *const *argv, char **envp,
                       struct brig_error *err)
{
    const struct settings *settings = &setup->settings;
    const struct identity *identity = &setup->identity;
    int status = check_pass_fds(settings, err);
    struct result_file file = {.fd = -1, .dir_fd = -1};
    if (status == 0 && settings->result) {
        identity_enter(identity);
        status = result_file_open(settings->result, settings->policy, identity, &file, err);
        identity_leave(identity);
    }
    struct net_watch net = NET_WATCH_INIT;
    if (status == 0)
        status = net_watch_init(&net, settings, identity, err);
    struct ask ask = ASK_INIT;
    if (status == 0)
        status = ask_init(&ask, settings, identity, err);
    if (status < 0) {
        ask_done(&ask);
        net_watch_done(&net);
        result_file_done(&file);
        return status;
    }

    if (settings->verbose || isatty(STDERR_FILENO))
        workdir_tell(settings, identity);
    struct brig_result result = {0};
    struct brig_error run_error = {0};
    review_auto_start(&setup->review, settings, identity);
    run_job(setup, argv, envp, &net, &ask, &result, &run_error);
    ask_done(&ask);
    net_watch_conclude(&net);
    net_watch_done(&net);
    if (result.outcome == BRIG_SETUP_FAILED && result.error.code == BRIG_E_NOT_FOUND)
        advise_not_found(argv[0], envp, &result.error);
    if (result.outcome == BRIG_SETUP_FAILED && settings->foreign &&
        result.error.sys_errno == EACCES)
        (void)brig_advise(&result.error, 0,
                          "If a directory above is closed to other users, use -m strict or sealed, "
                          "or run brig as the owner");
    report_result(&result, settings->policy, settings->verbose);
    report_nested(&result, argv[0]);
    int exit_status = brig_result_status(&result);
    setup->started = result.outcome != BRIG_SETUP_FAILED;
    setup_finish(setup, &result.notices);
    if (settings->result) {
        identity_enter(identity);
        status = result_file_write(&file, &result, err);
        identity_leave(identity);
        result_file_done(&file);
    }
    result_done(&result);
    return status < 0 ? status : exit_status;
}

static int print_policy(struct setup *setup, struct brig_error *err)
{
    struct settings *settings = &setup->settings;
    autostr struct str text = {0};
    int status = policy_validate(settings->policy, err);
    identity_enter(&setup->identity);
    if (status == 0 && settings->home)
        status = masks_mark_found(settings, settings->home, err);
    identity_leave(&setup->identity);
    if (status == 0)
        status = home_foresee(settings, &setup->identity, NULL, NULL, NULL, err);
    if (status == 0)
        status = settings_explain(settings, &text, err);
    return status < 0 ? status : message_print(&text, err);
}

/* The shell in the passwd file, else $SHELL, else /bin/sh. */
static const char *choose_shell(const struct identity *identity)
{
    const char *shell = identity->shell;
    if (!shell)
        shell = getenv("SHELL");
    return shell && shell[0] == '/' ? shell : "/bin/sh";
}

/* Returns the exit status, or a negative code and *err. */
static int run_setup(const struct app *app, struct setup *setup, const char *const *argv,
                     struct brig_error *err)
{
    const struct settings *settings = &setup->settings;
    const struct identity *identity = &setup->identity;
    const char *const own_shell[] = {choose_shell(identity), NULL};
    autofree const char **of_image = settings->image_used ? image_command(settings) : NULL;
    const char *const *shell = of_image ? of_image : own_shell;
    config_show_project(&setup->config, setup->cwd, identity, !settings->dry_run);
    config_show_jai(&setup->files, identity, !settings->dry_run);
    tokens_show_once(setup);
    if (!settings->dry_run)
        config_show_own_jails(&setup->config, identity);
    if (settings->plan)
        return plan_show(setup, argv[0] ? argv : shell, app->envp, err);
    if (settings->dry_run)
        return print_policy(setup, err);
    if (settings->unmount)
        return jails_unmount(settings->storage, settings->jail_given ? settings->jail : NULL,
                             identity, err);
    const char *const *words = NULL;
    struct program_words program = {0};
    struct home_mounts mounts = HOME_MOUNTS_INIT;
    settings->policy->jail_name = settings->jail;
    settings->policy->watch_nested = true;
    /* The command gets the original limit. */
    (void)fds_raise_limit(FDS_WANTED, &settings->policy->files_before);
    program_tell(settings, identity, true);
    int status = program_words(settings, argv[0] ? argv : shell, &program, err);
    if (status == 0)
        status = script_words(settings, program.words, &words, err);
    if (status == 0)
        status = home_enter(settings, identity, &setup->review, &mounts, &setup->live, err);
    setup->lease = mounts.lease;
    const struct run_checkpoint_what what = {.words = argv[0] ? argv : shell,
                                             .has_layers = setup->review.count > 0,
                                             .guard = setup->guard};
    if (status == 0)
        status = run_checkpoint_begin(&setup->checkpoint, settings, identity, &what, err);
    setup->review.run = setup->checkpoint.entry.info.run;
    if (status == 0)
        status = run_command(setup, words, app->envp, err);
    home_leave(settings, &mounts);
    if (status >= 0) /* when the layers are free: the review rewrites them */
        review_offer(&setup->review, settings, identity);
    free((void *)(uintptr_t)words);
    program_words_done(&program);
    return status;
}

/* Adds the grant of `brig cp`, for exactly the file that it has opened, whatever is at its path by
 * now. This comes after the guard, which would look for files to protect at that path. */
static int grant_copy(const struct app *app, struct brig_policy *policy, struct brig_error *err)
{
    if (!app->grant_at)
        return 0;
    int status = brig_policy_origin(policy, "brig cp", err);
    return status < 0
               ? status
               : policy_grant_fd(policy, app->grant_writable ? BRIG_READ_WRITE : BRIG_READ_ONLY,
                                 app->grant_fd, app->grant_at, err);
}

/* `brig --version -v`: options after --version are not parsed. */
static bool wants_more(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "-v") == 0 || strcmp(argv[i], "--verbose") == 0)
            return true;
    return false;
}

static int run_run(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    struct settings_scan scan;
    struct setup setup;
    int status = settings_scan(argc, argv, &scan, err);
    if (status < 0)
        return status;
    if (scan.given[OPTION_HELP])
        return help_print(err);
    if (scan.given[OPTION_VERSION])
        return help_print_version(wants_more(argc, argv), err);
    if (scan.given[OPTION_INIT])
        return cmd_init.run(app, 1, argv, err);
    if (scan.given[OPTION_PRINT_DEFAULTS])
        return defaults_print(err);
    status = setup_make(&setup, &scan, argc, argv, false, err);
    if (status < 0)
        return status;
    status = grant_copy(app, setup.settings.policy, err);
    if (status == 0)
        status = run_setup(app, &setup, (const char *const *)argv + scan.command, err);
    setup_done(&setup);
    return status;
}

const struct command cmd_run = {
    .name = "run",
    .summary = "run a command in a jail (the default)",
    .usage = "[OPTIONS] [--] [CMD...]",
    .words = COMMAND_WORDS_RUN,
    .run = run_run,
};
