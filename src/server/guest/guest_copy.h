/* SPDX-License-Identifier: MIT */
/* Copies the files of a sandbox to its fork: "send DIRECTORY…" in the one writes a stream to its standard
 * output, and "receive" in the other reads it from its standard input. */
#pragma once

/* Both return the exit code: 0 if everything was copied. */
int guest_send(const char *const *directories);
int guest_receive(void);
