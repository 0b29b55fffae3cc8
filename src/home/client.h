/* SPDX-License-Identifier: MIT */
/* How a run and other commands talk to a jail's holder: see wire.h. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/str.h"
#include "home/wire.h"

/* A string of a request. */
void talk_add_text(struct str *text, const char *string);
/* Sends a request, whose version and length are filled in here, with some fds. */
int talk_send(int socket, struct home_request head, const struct str *text, const int *fds,
              size_t fd_count, struct brig_error *err);
/* The answer. */
int talk_receive(int socket, struct home_reply *ret_reply, int fds[HOME_FD_COUNT],
                 struct brig_error *err);
/* A connected socket, -ENOENT if there is no holder, or a code. */
int talk_connect(const char *storage, const char *name, uid_t uid, struct brig_error *err);
/* Whether to ask again, after a pause: a holder that is not needed ends, also while it is asked. */
bool talk_again(const struct brig_error *err, unsigned *attempts);
/* The process at the other end. */
pid_t talk_peer(int socket);
/* Whether a process is in a namespace of process ids below ours, as everything in a jail is; or is gone, or
 * cannot be seen. */
bool talk_is_nested(pid_t pid);

/* ---- giving ---- */

/* Root creates a directory for another user and then chowns it; another run may look between the two.
 *
 * Whether a directory belongs to this user; as root, waits a moment if it still belongs to root. */
bool giving_await(int fd, uid_t uid);

/* ---- self ---- */

/* Executing brig again, as the holder of a jail. */

/* In a child: executes `program`, a descriptor of brig, under this name, with an empty environment, the socket
 * as fd 3 and no other descriptor. */
__attribute__((noreturn)) void self_execute(int program, int socket, const char *name);
