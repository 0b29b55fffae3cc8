/* SPDX-License-Identifier: MIT */
/* What each of brigd's processes is given when it begins, and where it begins. */
#pragma once

struct channel;
struct brig_error;
struct server_config;

/* Runs until it is told to drain, or its keeper is gone. The config is shared, read-only; `listener` is
 * the front's listening socket. Each role confines itself, sends MESSAGE_READY once it can serve; peers
 * arrive as MESSAGE_PEER on the control channel, also anew, when one of them was restarted. Returns 0
 * or a brig_code; the keeper reports the error. */
typedef int role_main(const struct server_config *config, struct channel *control, int listener,
                      struct brig_error *err);

role_main front_main;
/* Called before the front's process becomes nobody: opens what only its owner may. */
int front_prepare(const struct server_config *config, struct brig_error *err);
role_main warden_main;
role_main recorder_main;
