/* SPDX-License-Identifier: MIT */
/* Looking at a process by its directory in /proc, which stays that process's when its pid is given
 * to another. In entry_find.c. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#define ENTRY_STATUS_MAX 16384

/* A file of it, NUL-terminated and cut where the buffer ends: its length, or -errno. */
ssize_t attach_proc_read(int process, const char *name, char *buffer, size_t size);
/* What follows a key in the text of its status, or NULL. */
const char *attach_proc_line(const char *status, const char *key);
/* Whether the namespace at "ns/…" is our own: 1 or 0, or -errno. */
int attach_proc_same_namespace(int process, const char *path);
