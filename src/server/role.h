/* SPDX-License-Identifier: MIT */
/* The main functions of brigd's processes. */
#pragma once

struct channel;
struct brig_error;
struct server_config;

/* What a role inherits; -1: nothing. */
struct role_fds {
    int listener; /* http: the listening socket */
    int journal;  /* executor: the journal; http: the same, to read; see journal.h */
};

/* Runs until MESSAGE_DRAIN, or until the supervisor is gone. The config is the role's copy, which
 * MESSAGE_CONFIG changes. Each role confines itself, and sends
 * MESSAGE_READY once it can serve. Peers arrive as MESSAGE_PEER on the control channel, again after
 * a peer was restarted. Returns 0 or a brig_code; the supervisor reports the error. */
typedef int role_main(struct server_config *config, struct channel *control,
                      const struct role_fds *fds, struct brig_error *err);

role_main http_main;
role_main executor_main;
role_main history_main;

/* The supervisor: starts the other processes and serves until SIGTERM or SIGINT. Returns 0, or a
 * brig_code if it could not start. */
int supervisor_run(struct server_config *config, struct brig_error *err);
