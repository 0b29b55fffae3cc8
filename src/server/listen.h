/* SPDX-License-Identifier: MIT */
/* The socket that brigd listens on. */
#pragma once

#include <stdbool.h>

struct brig_error;

#define LISTEN_TEXT_MAX 160

/* Whether listen_open() would understand it. Pure. */
int listen_check(const char *where, struct brig_error *err);
/* Whether only processes of this machine reach it by TCP; false of a local socket. */
bool listen_is_loopback(int fd);
/* "127.0.0.1:8080", "[::1]:8080", ":8080" (every address), "localhost:8080" or "unix:/path"; or the one
 * that systemd has opened, if `env_fds` and `env_pid` (LISTEN_FDS and LISTEN_PID, may be NULL) say so.
 * *ret_text is a URL for people; *ret_public whether others than this machine can reach it. */
int listen_open(const char *where, const char *env_fds, const char *env_pid, int *ret_fd,
                char ret_text[LISTEN_TEXT_MAX], bool *ret_public, struct brig_error *err);
