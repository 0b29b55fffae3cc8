/* SPDX-License-Identifier: MIT */
/* What Ctrl-C says while files are being changed. */
#pragma once

/* From here on, SIGINT and SIGTERM end the process with a line that names the commands which complete or revert the
 * operation of this jail; until interrupt_end(). */
void interrupt_begin(const char *jail);
void interrupt_end(void);
