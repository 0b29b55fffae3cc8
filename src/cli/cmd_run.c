/* SPDX-License-Identifier: MIT */
/* `brig run`, and brig without a verb: runs a command, or a shell, in a jail. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <unistd.h>

#include <brig/brig.h>

#include "base/error.h"
#include "base/own.h"
#include "base/path.h"
#include "cli/command.h"
#include "cli/help.h"
#include "cli/identity.h"
#include "cli/message.h"
#include "cli/report.h"
#include "cli/result_file.h"
#include "cli/run_loop.h"
#include "cli/settings.h"
#include "cli/variables.h"
#include "cli/workdir.h"
#include "jail/cgroup.h"
#include "policy/policy.h"

static int run_run(const struct app *app, int argc, char **argv);

const struct command cmd_run = {
    .name = "run",
    .summary = "run a command in a jail (the default)",
    .usage = "[OPTIONS] [--] [CMD...]",
    .run = run_run,
};

static int find_cwd(char cwd[static PATH_LENGTH_MAX + 1], bool needed, struct brig_error *err)
{
    if (getcwd(cwd, PATH_LENGTH_MAX + 1))
        return 0;
    if (needed)
        return brig_fail(err, BRIG_E_SYSTEM, errno,
                         "cannot find out the working directory. Use -D to run without it");
    memcpy(cwd, "/", sizeof("/"));
    return 0;
}

/* Everything a policy is made of, in the order in which later rules win. */
static int build_policy(struct settings *settings, const struct settings_scan *scan,
                        const struct identity *identity, int argc, char **argv,
                        struct brig_error *err)
{
    int status = identity_apply(identity, settings->policy, err);
    if (status == 0 && scan->mode == BRIG_MODE_SEALED)
        status = variables_apply(settings->policy, err);
    bool held_back = false;
    if (status == 0 && !scan->nocwd)
        status = workdir_grant(settings, identity, &held_back, err);
    if (status == 0)
        status = settings_apply_all(settings, argc, argv, err);
    if (status == 0)
        status = workdir_choose(settings, identity, held_back, err);
    return status;
}

static int check_pass_fds(const struct settings *settings, struct brig_error *err)
{
    for (size_t i = 0; i < settings->pass_fd_count; i++)
        if (fcntl(settings->pass_fds[i].fd, F_GETFD) < 0)
            return brig_fail(err, BRIG_E_INVALID, 0, "--pass-fd: file descriptor %d is not open",
                             settings->pass_fds[i].fd);
    return 0;
}

/* From a login's session groups can be made only with systemd's help. That takes some milliseconds:
 * it is asked where limits were, not for the sake of defaults. If it fails, the engine says what is
 * missing. */
static void enter_scope(const struct brig_policy *policy)
{
    const unsigned grouped = 1U << BRIG_LIMIT_MEMORY_BYTES | 1U << BRIG_LIMIT_CPU_PERCENT |
                             1U << BRIG_LIMIT_PROCESSES | 1U << BRIG_LIMIT_IO_READ_BYTES |
                             1U << BRIG_LIMIT_IO_WRITE_BYTES;
    if (!(policy->limits_asked & grouped))
        return;
    struct cgroup_support support;
    cgroup_probe(false, &support);
    if (support.kind == CGROUP_NONE && support.ask_systemd)
        (void)cgroup_systemd_join(NULL);
}

/* With --output the streams pass through here. */
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

/* Starts the command and sees it through; *ret_result is always filled. */
static int run_job(const struct settings *settings, const char *const *argv, char **envp,
                   struct brig_result *ret_result, struct brig_error *err)
{
    const struct brig_policy *policy = settings->policy;
    struct brig_job *job = NULL;
    struct brig_command command = {
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
    struct run_loop loop = {.signal_fd = -1, .relays = relayed ? relays : NULL};
    int status = run_loop_init(&loop, err);
    if (status == 0 && relayed)
        status = open_relays(policy, relays, command.stdio, err);
    if (status == 0)
        status = brig_start(policy, &command, &job, err);
    for (int i = 1; i < 3; i++)
        if (command.stdio[i].kind == BRIG_STDIO_FD)
            (void)close(command.stdio[i].fd);
    if (status == 0)
        status = run_loop_run(&loop, job, policy->limits[BRIG_LIMIT_GRACE_MS], err);
    if (status == 0)
        status = brig_job_result(job, ret_result, err);
    brig_job_free(job);
    run_loop_done(&loop);
    if (status < 0)
        *ret_result =
            (struct brig_result){.outcome = BRIG_SETUP_FAILED, .exit_code = -1, .error = *err};
    if (relayed)
        close_relays(relays, ret_result);
    return status;
}

/* Root that acts for a user touches files the user names with that user's rights only; back to our
 * own with `user` false. */
static void act_as_user(const struct settings *settings, bool user)
{
    const struct brig_policy *policy = settings->policy;
    if (geteuid() != 0 || policy->host_uid == (uid_t)-1)
        return;
    if (user) { /* the group first: without uid 0 it could not be changed any more */
        (void)setfsgid(policy->host_gid);
        (void)setfsuid(policy->host_uid);
    } else {
        (void)setfsuid(geteuid());
        (void)setfsgid(getegid());
    }
}

/* The commonest stumble: a program that the caller's PATH has and the jail has not. */
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
    while (path && *path && !strchr(name, '/')) {
        size_t length = strcspn(path, ":");
        char file[PATH_MAX];
        (void)snprintf(file, sizeof file, "%.*s/%s", (int)length, path, name);
        if (path[0] == '/' && access(file, X_OK) == 0) {
            (void)brig_advise(err, err->code,
                              "Outside it is '%s': grant what it needs, as by -r '%.*s'", file,
                              (int)length, path);
            return;
        }
        path += length + (path[length] == ':');
    }
}

static int run_command(const struct settings *settings, const char *const *argv, char **envp,
                       struct brig_error *err)
{
    int status = check_pass_fds(settings, err);
    struct result_file file = {.fd = -1, .dir_fd = -1};
    if (status == 0 && settings->result) {
        act_as_user(settings, true);
        status = result_file_open(settings->result, &file, err);
        act_as_user(settings, false);
    }
    if (status < 0)
        return status;

    struct brig_result result = {0};
    struct brig_error run_error = {0};
    (void)run_job(settings, argv, envp, &result, &run_error); /* the result holds the error */
    if (result.outcome == BRIG_SETUP_FAILED && result.error.code == BRIG_E_NOT_FOUND)
        advise_not_found(argv[0], envp, &result.error);
    report_result(&result, settings->policy, settings->verbose);
    int exit_status = brig_result_status(&result);
    if (settings->result) {
        act_as_user(settings, true);
        status = result_file_write(&file, &result, err);
        act_as_user(settings, false);
    }
    brig_result_done(&result);
    result_file_done(&file);
    return status < 0 ? status : exit_status;
}

static int print_policy(const struct settings *settings, struct brig_error *err)
{
    autofree char *text = NULL;
    int status = policy_validate(settings->policy, err);
    if (status < 0)
        return status;
    status = brig_policy_explain(settings->policy, settings->json, &text, err);
    if (status < 0)
        return status;
    int failed = write_all(STDOUT_FILENO, text, strlen(text));
    if (failed < 0)
        return brig_fail(err, BRIG_E_SYSTEM, -failed, "cannot write to standard output");
    return 0;
}

/* The shell of the passwd file, else $SHELL, else what every system has. */
static const char *choose_shell(const struct identity *identity)
{
    const char *shell = identity->shell;
    if (!shell)
        shell = getenv("SHELL");
    return shell && shell[0] == '/' ? shell : "/bin/sh";
}

/* Returns the exit status, or a negative code and *err. */
static int run_scanned(const struct app *app, const struct settings_scan *scan, int argc,
                       char **argv, struct brig_error *err)
{
    char cwd[PATH_LENGTH_MAX + 1];
    int status = find_cwd(cwd, !scan->nocwd, err);
    if (status < 0)
        return status;
    struct settings settings;
    status = settings_init(&settings, scan->mode, cwd, err);
    if (status < 0)
        return status;

    struct identity identity;
    identity_find(&identity);
    const char *const shell[] = {choose_shell(&identity), NULL};
    const char *const *words =
        scan->command < argc ? (const char *const *)argv + scan->command : shell;
    status = build_policy(&settings, scan, &identity, argc, argv, err);
    if (status == 0)
        status = settings.dry_run ? print_policy(&settings, err)
                                  : run_command(&settings, words, app->envp, err);
    settings_done(&settings);
    return status;
}

static int run_run(const struct app *app, int argc, char **argv)
{
    struct brig_error err = {0};
    struct settings_scan scan;
    int status = settings_scan(argc, argv, &scan, &err);
    if (status == 0 && scan.help)
        return help_print();
    if (status == 0 && scan.version)
        return help_print_version();
    if (status == 0)
        status = run_scanned(app, &scan, argc, argv, &err);
    if (status < 0) {
        message_error("%s", err.message);
        return APP_FAILED;
    }
    return status;
}
