/* SPDX-License-Identifier: MIT */
/* `brig rm`: removes a jail with everything it keeps. */
#include <string.h>

#include "base/error.h"
#include "cli/command.h"
#include "cli/jails.h"
#include "cli/message.h"
#include "home/jails.h"

static int remove_jail(const struct jails_place *place, const char *name, struct brig_error *err)
{
    int status = jails_check_name(name, err);
    if (status < 0)
        return status;
    struct jail_info jail;
    int found = jails_find(place->storage, name, place->uid, &jail, err);
    if (found <= 0)
        return found < 0 ? found : jails_fail_unknown(place, cmd_rm.name, name, err);
    status = jails_remove(place->storage, name, place->uid, err);
    return status == BRIG_E_STATE ? brig_advise(err, status, "End that first: brig stop %s", name)
                                  : status;
}

static int run_rm(const struct app *app, int argc, char **argv)
{
    (void)app;
    struct brig_error err = {0};
    struct jails_place place;
    if (argc < 2) {
        message_error("rm needs the name of a jail: brig rm JAIL…. See brig list");
        return APP_FAILED;
    }
    struct home_state state;
    int status = jails_place_find(&place, &err);
    for (int i = 1; i < argc && status == 0 && place.stranger != (uid_t)-1; i++)
        status = home_stop(place.storage, argv[i], place.stranger, &state, &err);
    if (status == 0)
        status = jails_become_user(&place, &err);
    for (int i = 1; i < argc && status == 0; i++)
        status = remove_jail(&place, argv[i], &err);
    if (status < 0)
        message_error("%s", err.message);
    return status < 0 ? APP_FAILED : 0;
}

const struct command cmd_rm = {
    .name = "rm",
    .summary = "remove a jail with all it keeps",
    .usage = "JAIL...",
    .words = COMMAND_WORDS_JAILS,
    .run = run_rm,
};
