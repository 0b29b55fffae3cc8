/* SPDX-License-Identifier: MIT */
/* brig-broker: the network door of one jail.
 *
 * Theory of operation. A jail has a network namespace with nothing in it but loopback. The job makes
 * sockets in there (a name server, a place where every connection is redirected to) and passes them
 * here, outside: accept() on such a socket yields a connection whose one end is in the jail, and
 * connect() on a new one goes out to the world. Between the two the broker decides.
 *
 * It runs as the user whose jail it is, or as the one it is told to be, never as root. It trusts the
 * job's messages (door_wire.h), and nothing that comes over any other socket: neither the jail's bytes,
 * read by parsers that allocate nothing, nor the world's, which are only passed on but for answers of
 * resolvers, of the host's proxy and of the upstream of a credential.
 *
 * Before it serves anything, it gives up what it does not need (broker_confine.c): files, processes,
 * capabilities, most system calls. It cannot give up the network; what it connects to is decided in
 * upstream_start() and below, and the address connected to is the one the rules were asked about.
 *
 * It has one thread and one loop, keeps no state on disk, prints nothing, and ends when the job does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/error.h"
#include "net/broker_confine.h"
#include "net/broker_connector.h"
#include "net/broker_control.h"
#include "net/broker_files.h"

static int prepare(struct broker *broker, struct brig_error *err)
{
    const char *files[FILES_MAX + 1];
    int status = control_wait_config(broker, DOOR_CONTROL_FD, err);
    if (status == 0)
        status = confine_user(broker->config.has_user, broker->config.uid, broker->config.gid, err);
    if (status < 0)
        return status;
    files_needed(&broker->config, files);
    status = confine(CONFINE_BROKER, files, err);
    return status < 0 ? status : control_start(broker, DOOR_CONTROL_FD, err);
}

static int serve(struct brig_error *err)
{
    struct broker *broker = calloc(1, sizeof *broker);
    if (!broker)
        return brig_fail_nomem(err);
    broker_init(broker);
    int status = prepare(broker, err);
    if (status < 0)
        control_fail(DOOR_CONTROL_FD, err);
    else
        loop_run(&broker->loop);
    broker_done(broker);
    secrets_done(&broker->secrets);
    free(broker);
    return status;
}

static int connect_inside(struct brig_error *err)
{
    return connector_run(DOOR_CONTROL_FD, err);
}

static const struct role {
    const char *name;
    int (*run)(struct brig_error *err);
} roles[] = {
    {DOOR_ROLE_BROKER, serve},
    {DOOR_ROLE_CONNECTOR, connect_inside},
};

int main(int argc, char **argv)
{
    struct brig_error err = {0};
    (void)prctl(PR_SET_NAME, "brig-broker"); /* it is executed by the number of a descriptor */
    confine_early(DOOR_CONTROL_FD);
    for (size_t i = 0; argc == 2 && i < sizeof roles / sizeof *roles; i++)
        if (strcmp(argv[1], roles[i].name) == 0)
            return roles[i].run(&err) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
    (void)fputs("brig-broker is started by brig, and is of no use by itself.\n", stderr);
    return 2;
}
