/* SPDX-License-Identifier: MIT */
/* brig once more: as a jail's holder, and as who makes namespaces for it. */
#pragma once

/* In a child: executes `program`, which is brig, under this name, with an empty environment, the socket as fd 3
 * and no other fd. */
__attribute__((noreturn)) void self_execute(int program, int socket, const char *name);
