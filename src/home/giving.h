/* SPDX-License-Identifier: MIT */
/* What root makes for another user is given away after it was made; another run may come between. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Whether a directory is this user's; waits a moment if it is still root's, and we are root. */
bool giving_await(int fd, uid_t uid);
