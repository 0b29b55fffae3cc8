/* SPDX-License-Identifier: MIT */
/* `brig stop`: ends the runs in a jail, and unmounts its directories. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/jails.h"
#include "cli/report.h"
#include "home/jails.h"

/* A brig that gets SIGTERM gives its command a grace period. This is longer than any sensible
 * one. */
#define PATIENCE_MS 10000
#define STEP_MS 20
#define EARLY_MS 5000   /* for a run that has only just begun */
#define SILENCE_MS 1000 /* an interactive shell ignores SIGTERM: then say what we wait for */

static void pause_step(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000L}, NULL);
}

/* Returns a process that we may not signal, or 0. */
static pid_t signal_all(const struct home_state *state, int signal)
{
    pid_t refused = 0;
    for (size_t i = 0; i < state->pid_count; i++)
        if (kill(state->pids[i], signal) < 0 && errno == EPERM)
            refused = state->pids[i];
    return refused;
}

static int stop_jail(const char *storage, const char *name, uid_t uid, struct brig_error *err)
{
    struct home_state state;
    int status = jails_ask(storage, name, uid, &state, err);
    if (status < 0)
        return status;
    pid_t refused = signal_all(&state, SIGTERM);
    if (refused) {
        (void)brig_fail(err, BRIG_E_STATE, EPERM, "cannot end process %d in the jail '%s'", refused,
                        name);
        return brig_advise(err, BRIG_E_STATE, "If root started it: sudo brig stop %s", name);
    }
    for (int waited = 0; state.held; waited += STEP_MS) {
        status = jails_stop(storage, name, uid, &state, err);
        if (status != BRIG_E_STATE)
            return status;
        if (waited == SILENCE_MS && state.pid_count > 0)
            message_note("waiting for process %d in the jail '%s', for %d seconds at most",
                         state.pids[0], name, PATIENCE_MS / 1000);
        if (waited == PATIENCE_MS) /* when brig dies, the jail dies */
            (void)signal_all(&state, SIGKILL);
        if (waited > 2 * PATIENCE_MS)
            return status;
        pause_step();
    }
    return 0;
}

static bool is_held(const struct home_state *state, pid_t pid)
{
    for (size_t i = 0; i < state->pid_count; i++)
        if (state->pids[i] == pid)
            return true;
    return false;
}

static bool is_found(const struct runs *runs, pid_t pid)
{
    for (size_t i = 0; i < runs->count; i++)
        if (runs->items[i].supervisor == pid)
            return true;
    return false;
}

static bool is_of_root(pid_t pid)
{
    char path[32], status[ENTRY_STATUS_MAX];
    (void)snprintf(path, sizeof path, "/proc/%d", pid);
    autoclose int process = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (process < 0 || attach_proc_read(process, "status", status, sizeof status) < 0)
        return false;
    const char *uids = attach_proc_line(status, "Uid:");
    return uids && strncmp(uids, "\t0\t0\t0\t0\n", 9) == 0;
}

/* Whether the holder names a process of root that does not say yet that it is in the jail: brig does
 * so a moment after the command has begun. */
static bool is_one_early(const struct home_state *state, const struct runs *runs)
{
    for (size_t i = 0; i < state->pid_count; i++)
        if (!is_found(runs, state->pids[i]) && is_of_root(state->pids[i]))
            return true;
    return false;
}

static void end_run(const struct attach *run)
{
    (void)kill(run->supervisor, SIGTERM);
    for (int waited = 0; waited <= PATIENCE_MS && attach_is_alive(run); waited += STEP_MS)
        pause_step();
    if (attach_is_alive(run))
        (void)kill(run->supervisor, SIGKILL);
}

/* Root's own runs in a user's jail, which the user cannot signal. The user's holder could name any
 * process, so it must be a run of root that itself says that it is in this jail. */
static int end_own(const struct jails_place *place, const char *name, struct brig_error *err)
{
    static struct runs runs; /* too large for the stack */
    for (int waited = 0;; waited += STEP_MS) {
        struct home_state state;
        int status = jails_ask(place->storage, name, place->uid, &state, err);
        if (status == 0 && state.pid_count > 0)
            status = runs_find(place, name, &runs, err);
        if (status < 0 || state.pid_count == 0)
            return status;
        for (size_t i = 0; i < runs.count; i++)
            if (is_held(&state, runs.items[i].supervisor))
                end_run(&runs.items[i]);
        bool again = is_one_early(&state, &runs) && waited < EARLY_MS;
        runs_done(&runs);
        if (!again)
            return 0;
        pause_step();
    }
}

/* Processes that a user's holder names are signalled with the ids of that user only. */
static int stop_all(struct jails_place *place, int count, char **names, struct brig_error *err)
{
    int status = 0;
    for (int i = 0; i < count && status >= 0; i++)
        status = jails_check(place, cmd_stop.name, names[i], err);
    for (int i = 0; i < count && status >= 0 && place->stranger != (uid_t)-1; i++)
        if ((status = stop_jail(place->storage, names[i], place->stranger, err)) >= 0)
            status = end_own(place, names[i], err);
    if (status >= 0)
        status = jails_become_user(place, err);
    for (int i = 0; i < count && status >= 0; i++)
        status = stop_jail(place->storage, names[i], place->uid, err);
    return status;
}

static int run_stop(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    (void)app;
    struct jails_place place;
    if (argc < 2)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "stop needs the name of a jail: brig stop JAIL…. See brig list");
    int status = jails_place_find(&place, err);
    return status < 0 ? status : stop_all(&place, argc - 1, argv + 1, err);
}

const struct command cmd_stop = {
    .name = "stop",
    .summary = "end the processes in a jail",
    .usage = "JAIL...",
    .words = COMMAND_WORDS_JAILS,
    .run = run_stop,
};
