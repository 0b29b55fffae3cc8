/* SPDX-License-Identifier: MIT */
/* A socket with a hostile jail at its other end: what it sends, who it is, and letting go of it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Since 6.16: whether a UNIX socket takes descriptors. */
#define GUARD_SO_PASSRIGHTS 83

/* Whether the kernel keeps descriptors out of messages to this listener and whom it accepts. The
 * builder has asked for it. */
bool guard_refuses_rights(int listener);
/* Prepares an accepted socket for guard_receive(). */
void guard_prepare(int fd);

enum guard_what {
    GUARD_NOTHING, /* there is nothing to read now */
    GUARD_MESSAGE,
    GUARD_END,    /* nor will there ever be: the socket can be closed */
    GUARD_RIGHTS, /* a message with descriptors: it is left where it is */
};
/* Receives one message; *ret_length is that of what was sent, which may be more than `size`. */
enum guard_what guard_receive(int fd, void *buffer, size_t size, size_t *ret_length);

/* Who has connected: its pid, and a pidfd of it, the caller's to close. -errno where that is gone. */
int guard_peer(int fd, pid_t *ret_pid, int *ret_pidfd);
/* Whether a process has not ended yet. */
bool guard_is_alive(int pidfd);
/* Whether two processes are in the same groups, in every hierarchy. */
bool guard_are_together(pid_t one, pid_t other);

/* Closes sockets in whose queues a jail may have left descriptors, up to GUARD_CLOSE_MAX. */
#define GUARD_CLOSE_MAX 64
void guard_close(const int *fds, size_t count);
