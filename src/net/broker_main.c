/* SPDX-License-Identifier: MIT */
/* brig-broker: the network door of one jail.
 *
 * Theory of operation. A jail has a network namespace with only a loopback device. The job creates
 * sockets in it (a name server, a listener to which every connection is redirected) and passes them
 * to this process, outside: accept() on such a socket returns a connection from the jail, and
 * connect() on a new socket goes out to the host's network. The broker decides which connections it
 * joins.
 *
 * It runs as the user of the jail, or as a configured user, never as root. It trusts only the job's
 * messages (broker_wire.h): bytes from the jail are read by parsers that allocate nothing; bytes
 * from the network are only relayed, except for answers of resolvers, of the host's proxy and of
 * the upstream of a credential.
 *
 * Before it serves anything, it drops what it does not need (broker_confine.c): files, processes,
 * capabilities, most system calls. It cannot drop the network; broker_upstream.c decides where it
 * connects to, and applies the rules to the very address that it connects to.
 *
 * It has one thread and one loop, keeps no state on disk, prints nothing, and ends when the job
 * does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/error.h"
#include "net/broker.h"
#include "net/broker_confine.h"

static int prepare(struct broker *broker, struct brig_error *err)
{
    const char *files[CONFINE_FILES_MAX + 1];
    const struct broker_config *config = &broker->config;
    int status = broker_start(broker, DOOR_CONTROL_FD, err);
    if (status == 0)
        status = confine_user(config->has_user, config->uid, config->gid, err);
    if (status < 0)
        return status;
    confine_files(&broker->config, files);
    return confine(CONFINE_BROKER, files, err);
}

static int serve(struct brig_error *err)
{
    struct broker *broker = calloc(1, sizeof *broker);
    if (!broker)
        return brig_fail_nomem(err);
    broker_init(broker);
    int status = prepare(broker, err);
    if (status == 0)
        status = broker_serve(broker, err);
    if (status < 0)
        broker_fail(DOOR_CONTROL_FD, err);
    broker_done(broker);
    free(broker);
    return status;
}

int main(int argc, char **argv)
{
    struct brig_error err = {0};
    const char *role = argc == 2 ? argv[1] : "";
    (void)prctl(PR_SET_NAME, "brig-broker"); /* execveat() of a descriptor set it to a number */
    confine_early(DOOR_CONTROL_FD);
    if (strcmp(role, DOOR_ROLE_BROKER) == 0)
        return serve(&err) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
    if (strcmp(role, DOOR_ROLE_CONNECTOR) == 0)
        return connector_run(DOOR_CONTROL_FD, &err) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
    (void)fputs("brig-broker is started by brig, and is of no use by itself.\n", stderr);
    return 2;
}
