/* SPDX-License-Identifier: MIT */
/* `brig enter`: a shell or a command in a running jail.
 *
 * Theory of operation: the run is found through its supervisor, and the engine starts another
 * command in its jail, under the same restrictions (jail/attach/attach.h). Processes of the jail
 * have our uid and can see our process in the jail before it executes the command. The engine keeps
 * them from reading its memory; in addition, secrets in our environment are wiped here before. */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/jails.h"
#include "cli/report.h"
#include "cli/run/run_loop.h"
#include "home/jails.h"
#include "jail/job/job.h"
#include "jail/sys.h"

/* How long to wait for the end of the run after the entered command was killed. */
#define END_PATIENCE_MS 1000
/* How long to look for a run that cannot be found yet. */
#define SOON_MS 300
#define AGAIN_MS 20

/* ---- which run ---- */

/* The parsed command line. */
struct wanted {
    const char *jail; /* or NULL */
    pid_t pid;        /* or 0 */
    const char *const *argv;
};

static int parse_pid(const char *text, pid_t *ret_pid, struct brig_error *err)
{
    uint64_t pid;
    int status = parse_uint(text, INT32_MAX, 0, &pid, err);
    if (status < 0)
        return brig_wrap(err, status, "--pid");
    *ret_pid = (pid_t)pid;
    return 0;
}

/* Returns the index of the first unknown word, 0 if there is none, or a negative code for a bad
 * value. */
static int parse_words(int argc, char **argv, struct wanted *ret_wanted, struct brig_error *err)
{
    int i = 1, status = 0;
    for (; i < argc && argv[i][0] == '-' && strcmp(argv[i], "--") != 0 && status == 0; i++) {
        if (strncmp(argv[i], "--pid=", 6) == 0)
            status = parse_pid(argv[i] + 6, &ret_wanted->pid, err);
        else if (strcmp(argv[i], "--pid") == 0 && i + 1 < argc)
            status = parse_pid(argv[++i], &ret_wanted->pid, err);
        else if (strcmp(argv[i], "--pid") == 0)
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "--pid needs the process number of a brig. See brig list");
        else
            return i;
    }
    if (status < 0)
        return status;
    if (ret_wanted->pid == 0 && i < argc && strcmp(argv[i], "--") != 0)
        ret_wanted->jail = argv[i++];
    if (ret_wanted->pid == 0 && !ret_wanted->jail)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "enter needs the name of a jail: brig enter JAIL. See brig list");
    i += i < argc && strcmp(argv[i], "--") == 0;
    ret_wanted->argv = (const char *const *)argv + i;
    return 0;
}

/* Chooses the newest of several runs; the others are printed. */
static void choose(struct runs *runs, const char *jail, struct attach *ret_entry)
{
    struct str others = {0};
    for (size_t i = 1; i < runs->count; i++)
        str_appendf(&others, " %d", runs->items[i].supervisor);
    if (runs->count > 1 && !others.failed)
        message_note("the jail '%s' has %zu runs; entering the newest, %d. For others use --pid:%s",
                     jail, runs->count, runs->items[0].supervisor, others.data);
    str_done(&others);
    *ret_entry = runs->items[0];
    runs->items[0] = ENTRY_INIT;
}

/* Returns 1 if there is one. */
static int find_by_name(const struct jails_place *place, const char *jail, struct attach *ret_entry,
                        struct brig_error *err)
{
    static struct runs runs; /* too large for the stack */
    int status = runs_find(place, jail, &runs, err);
    if (status < 0)
        return status;
    if (runs.count > 0) {
        choose(&runs, jail, ret_entry);
        status = 1;
    }
    runs_done(&runs);
    return status;
}

/* Finds a run by the name of a jail, or by the pid of a process: 1 if there is one. A number may
 * also be the name of a jail. */
static int find(const struct jails_place *place, const struct wanted *wanted,
                struct attach *ret_entry, struct brig_error *err)
{
    pid_t pid = wanted->pid;
    int status = wanted->jail ? find_by_name(place, wanted->jail, ret_entry, err) : 0;
    if (status != 0 || (wanted->jail && parse_pid(wanted->jail, &pid, NULL) < 0))
        return status;
    status = attach_find(pid, ret_entry, err);
    return status == 0 ? 1 : status;
}

static int say_none(const struct jails_place *place, const char *jail, struct brig_error *err)
{
    struct jail_info info;
    int known = jails_find(place->storage, jail, place->uid, &info, NULL);
    if (known <= 0)
        return jails_fail_unknown(place, cmd_enter.name, jail, err);
    if (info.state.pid_count > 0)
        return brig_fail(err, BRIG_E_STATE, 0,
                         "what runs in the jail '%s', process %d, cannot be entered. If root "
                         "started it: sudo brig enter %s",
                         jail, info.state.pids[0], jail);
    return brig_fail(err, BRIG_E_STATE, 0,
                     "nothing runs in the jail '%s'; to start a shell in it: brig -j %s", jail,
                     jail);
}

/* A run registers a moment after its command has started, so a new run may not be found at once. */
static int find_soon(const struct jails_place *place, const struct wanted *wanted,
                     struct attach *ret_entry, struct brig_error *err)
{
    for (int waited = 0;; waited += AGAIN_MS) {
        struct brig_error local = {0};
        int status = find(place, wanted, ret_entry, &local);
        if ((status != 0 && status != BRIG_E_NOT_FOUND) || waited >= SOON_MS) {
            *err = local;
            return status;
        }
        (void)nanosleep(&(struct timespec){.tv_nsec = AGAIN_MS * 1000000L}, NULL);
    }
}

/* Root examines its own runs as root. For runs of the user it acts for, it changes to that user,
 * because their data is controlled by the user. */
static int find_run(struct jails_place *place, const struct wanted *wanted,
                    struct attach *ret_entry, struct brig_error *err)
{
    int status = wanted->jail ? jails_check_name(wanted->jail, err) : 0;
    if (status < 0)
        return status;
    status = find_soon(place, wanted, ret_entry, err);
    bool other = status == 0 || status == BRIG_E_NOT_FOUND || status == BRIG_E_SYSTEM;
    if (other && geteuid() != place->uid) {
        status = jails_become_user(place, err);
        if (status == 0)
            status = find_soon(place, wanted, ret_entry, err);
    }
    return status == 0 ? say_none(place, wanted->jail, err) : status < 0 ? status : 0;
}

/* ---- the command ---- */

/* Wipes variables that the jail does not get, so that it cannot find them in our memory. The
 * variables that are still needed are not secret. */
static void wipe_environment(char **envp)
{
    for (; *envp; envp++)
        if (strncmp(*envp, "NO_COLOR=", strlen("NO_COLOR=")) != 0)
            explicit_bzero(*envp, strlen(*envp));
}

static void run_job(const struct attach *entry, const struct brig_command *command,
                    struct brig_result *ret_result, struct brig_error *err)
{
    struct brig_job *job = NULL;
    struct run_loop loop = {.signal_fd = -1,
                            .grace_ms = entry->record.policy->limits[BRIG_LIMIT_GRACE_MS]};
    int status = run_loop_init(&loop, err);
    if (status == 0)
        status = job_start(&(struct job_source){.attach = entry}, command, &job, err);
    run_loop_finish(&loop, job, status, ret_result, err);
}

static void report(const struct attach *entry, const struct brig_result *result, int init)
{
    struct pollfd ended = {.fd = init, .events = POLLIN};
    if (result->outcome == BRIG_SIGNALLED && result->signal == SIGKILL && init >= 0 &&
        poll(&ended, 1, END_PATIENCE_MS) > 0)
        message_note("the run of process %d has ended, and with it everything in its jail",
                     entry->supervisor);
    else
        report_result(result, entry->record.policy, false);
}

static int enter(const struct attach *entry, const char *const *argv, char **envp,
                 struct brig_error *err)
{
    struct brig_policy *policy = entry->record.policy;
    const char *const shell[] = {policy->shell ? policy->shell : "/bin/sh", NULL};
    char **filtered = NULL;
    policy->host_env = true;
    int status = policy_environment(policy, (const char *const *)envp, &filtered, err);
    if (status < 0)
        return status;
    /* A cgroup that systemd has delegated to an ordinary user can be joined only from a sibling
     * cgroup. */
    if (entry->record.facts.group.has_main && geteuid() != 0)
        run_loop_enter_scope();
    wipe_environment(envp);
    const struct brig_command command = {
        .size = sizeof(struct brig_command),
        .argv = argv[0] ? argv : shell,
        .envp = (const char *const *)filtered,
        .stdio = {{.kind = BRIG_STDIO_INHERIT},
                  {.kind = BRIG_STDIO_INHERIT},
                  {.kind = BRIG_STDIO_INHERIT}},
    };
    autoclose int init = (int)SYS(pidfd_open, entry->record.facts.init, 0);
    struct brig_result result = {0};
    run_job(entry, &command, &result, err); /* the result contains the error */
    free(filtered);
    report(entry, &result, init);
    status = brig_result_status(&result);
    result_done(&result);
    return status;
}

static int run_enter(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    struct wanted wanted = {0};
    struct jails_place place;
    struct attach entry = ENTRY_INIT;
    int status = parse_words(argc, argv, &wanted, err);
    if (status > 0)
        return command_refuse(app, argc, argv, status, err);
    (void)signal(SIGCHLD, SIG_IGN); /* see attach.h */
    if (status == 0)
        status = jails_place_find(&place, err);
    if (status == 0)
        status = find_run(&place, &wanted, &entry, err);
    if (status == 0)
        status = enter(&entry, wanted.argv, app->envp, err);
    attach_done(&entry);
    return status;
}

const struct command cmd_enter = {
    .name = "enter",
    .summary = "open a shell in a running jail",
    .usage = "JAIL|--pid PID [--] [CMD...]",
    .words = COMMAND_WORDS_JAIL_COMMAND,
    .run = run_enter,
};
