/* SPDX-License-Identifier: MIT */
/* The socket that brigd listens on. */
#pragma once

#include <stdbool.h>

struct brig_error;

#define LISTEN_TEXT_MAX 160

/* Returns whether listen_open() accepts `where`. Pure. */
int listen_check(const char *where, struct brig_error *err);
/* Returns whether the socket is TCP; false for a UNIX socket. */
bool listen_is_tcp(int fd);
/* Returns whether LISTEN_FDS and LISTEN_PID (may be NULL) say that systemd passed one socket. */
bool listen_is_given(const char *env_fds, const char *env_pid);
/* Opens "127.0.0.1:8080", "[::1]:8080", ":8080" (every address), "localhost:8080" or "unix:/path".
 * If systemd passed a socket, takes that. *ret_text is a URL for messages; *ret_public is whether other machines can reach
 * it. */
int listen_open(const char *where, const char *env_fds, const char *env_pid, int *ret_fd,
                char ret_text[LISTEN_TEXT_MAX], bool *ret_public, struct brig_error *err);
