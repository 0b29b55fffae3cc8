/* SPDX-License-Identifier: MIT */
/* `brig stop`: ends what runs in a jail, and lets go of its mounts. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "cli/command.h"
#include "cli/jails.h"
#include "cli/message.h"
#include "home/jails.h"

/* A brig that is asked to end gives its command a grace; longer than any sensible one it is not
 * waited for. */
#define PATIENCE_MS 10000
#define STEP_MS 20

static void signal_all(const struct home_state *state, int signal)
{
    for (size_t i = 0; i < state->pid_count; i++)
        (void)kill(state->pids[i], signal);
}

static int stop_jail(const char *storage, const char *name, uid_t uid, struct brig_error *err)
{
    struct home_state state;
    int status = home_ask(storage, name, uid, &state, err);
    if (status < 0)
        return status;
    signal_all(&state, SIGTERM);
    for (int waited = 0; state.held; waited += STEP_MS) {
        status = home_stop(storage, name, uid, &state, err);
        if (status != BRIG_E_STATE)
            return status;
        if (waited == PATIENCE_MS) /* with brig the jail dies */
            signal_all(&state, SIGKILL);
        if (waited > 2 * PATIENCE_MS)
            return status;
        (void)nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000L}, NULL);
    }
    return 0;
}

static int check(const struct jails_place *place, const char *name, struct brig_error *err)
{
    struct jail_info jail;
    int status = jails_check_name(name, err);
    if (status == 0)
        status = jails_find(place->storage, name, place->uid, &jail, err);
    return status != 0
               ? status
               : brig_fail(err, BRIG_E_INVALID, 0, "there is no jail '%s'; see brig list", name);
}

/* What a user's holder says is signalled with the user's rights alone. */
static int stop_all(struct jails_place *place, int count, char **names, struct brig_error *err)
{
    int status = 0;
    for (int i = 0; i < count && status >= 0; i++)
        status = check(place, names[i], err);
    for (int i = 0; i < count && status >= 0 && place->stranger != (uid_t)-1; i++)
        status = stop_jail(place->storage, names[i], place->stranger, err);
    if (status >= 0)
        status = jails_become_user(place, err);
    for (int i = 0; i < count && status >= 0; i++)
        status = stop_jail(place->storage, names[i], place->uid, err);
    return status;
}

static int run_stop(const struct app *app, int argc, char **argv)
{
    (void)app;
    struct brig_error err = {0};
    struct jails_place place;
    if (argc < 2) {
        message_error("stop needs the name of a jail: brig stop JAIL…; see brig list");
        return APP_FAILED;
    }
    int status = jails_place_find(&place, &err);
    if (status == 0)
        status = stop_all(&place, argc - 1, argv + 1, &err);
    if (status < 0)
        message_error("%s", err.message);
    return status < 0 ? APP_FAILED : 0;
}

const struct command cmd_stop = {
    .name = "stop",
    .summary = "end what runs in a jail",
    .usage = "JAIL...",
    .words = COMMAND_WORDS_JAILS,
    .run = run_stop,
};
