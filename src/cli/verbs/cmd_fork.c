/* SPDX-License-Identifier: MIT */
/* `brig fork`: makes a second jail on the state of another. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/str.h"
#include "changes/layer/fork.h"
#include "changes/operation/operation.h"
#include "cli/command.h"
#include "cli/jails.h"
#include "cli/report.h"
#include "cli/settings/settings.h"
#include "cli/verbs/layers.h"
#include "home/jails.h"
#include "policy/policy.h"

static int check_new(const struct jails_place *place, const char *name, struct brig_error *err)
{
    struct jail_info info;
    int found = settings_check_jail(name, err);
    if (found == 0)
        found = jails_find(place->storage, name, place->uid, &info, err);
    if (found <= 0)
        return found;
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "there is a jail '%s' already. Choose another name, or remove it: brig rm %s",
                     str_shown(name).text, str_shown(name).text);
}

/* The mode of a jail that is used without a name need not be in its file. */
static int record_mode(const struct settings *settings, const char *to, struct brig_error *err)
{
    autofree char *file = NULL;
    autofree char *line = NULL;
    if (settings->mode_origin)
        return 0;
    int status = str_make(&file, err, to, ".jail");
    if (status == 0)
        status = str_make(&line, err, "mode ", policy_word(POLICY_MODE, settings->mode), "\n");
    if (status < 0)
        return status;
    autoclose int storage = open(settings->storage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autoclose int fd =
        openat(storage, file, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 || write_all(fd, line, strlen(line)) < 0
               ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write '%s'", str_shown(file).text)
               : 0;
}

/* No run may be active: a copy would have the state of a moment in the middle of something. */
static int fork_open(struct verb_layers *v, const char *from, const char *to,
                     struct brig_error *err)
{
    const char *storage = v->setup.settings.storage;
    autoclose int record = record_open(storage, from, err);
    if (record < 0)
        return record;
    int status = operation_check_interrupted(record, err);
    if (status < 0)
        return status;
    autoclose int lock =
        v->layers.count > 0 ? layers_lock(&v->layers, err) : record_lock(record, err);
    status = lock < 0 ? lock : jails_unuse(storage, from, geteuid(), err);
    if (status >= 0)
        status = fork_jail(storage, &v->layers, from, to, err);
    return status < 0 ? status : record_mode(&v->setup.settings, to, err);
}

static int run_fork(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    struct jails_place place;
    if (argc > 1 && argv[1][0] == '-')
        return command_refuse(app, argc, argv, 1, err);
    if (argc != 3)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "fork needs the name of a jail and a new name: brig fork JAIL NEW");
    const char *from = argv[1], *to = argv[2];
    autofree struct verb_layers *v = calloc(1, sizeof *v);
    if (!v)
        return brig_fail_nomem(err);
    int status = verb_layers_open(v, cmd_fork.name, from, err);
    if (status < 0)
        return status;
    status = jails_place_find(&place, err);
    if (status == 0)
        status = check_new(&place, to, err);
    if (status == 0) {
        status = fork_open(v, from, to, err);
        if (status < 0) /* nothing of it is of use */
            (void)jails_remove(place.storage, to, place.uid, NULL);
    }
    verb_layers_done(v);
    if (status == 0)
        message_note("the jail '%s' has the state of '%s'; see brig status -j %s", to, from, to);
    return status;
}

const struct command cmd_fork = {
    .name = "fork",
    .summary = "make a second jail on the state of another",
    .usage = "JAIL NEW",
    .words = COMMAND_WORDS_JAILS,
    .run = run_fork,
};
