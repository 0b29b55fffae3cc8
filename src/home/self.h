/* SPDX-License-Identifier: MIT */
/* Executing brig again, as the holder of a jail. */
#pragma once

/* In a child: executes `program`, which is brig, under this name, with an empty environment, the socket as fd 3
 * and no other fd. */
__attribute__((noreturn)) void self_execute(int program, int socket, const char *name);
