/* SPDX-License-Identifier: MIT */
/* Where each of brigd's processes begins, and what it is given. */
#pragma once

struct channel;
struct brig_error;
struct server_config;

/* Runs until it is told to drain, or its supervisor is gone. The config is shared, read-only; `listener` is
 * the http process's listening socket. Each role confines itself, sends MESSAGE_READY once it can serve; peers
 * arrive as MESSAGE_PEER on the control channel, also anew, when one of them was restarted. Returns 0
 * or a brig_code; the supervisor reports the error. */
typedef int role_main(const struct server_config *config, struct channel *control, int listener,
                      struct brig_error *err);

role_main http_main;
role_main executor_main;
role_main history_main;

/* The supervisor: starts the others and serves until SIGTERM or SIGINT. Returns 0, or a brig_code if it
 * could not begin. */
int supervisor_run(const struct server_config *config, struct brig_error *err);
