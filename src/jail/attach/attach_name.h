/* SPDX-License-Identifier: MIT */
/* What the file in memory with the record of a run is called, and seen as in /proc/PID/fd. */
#pragma once

#define ENTRY_FILE "brig-run"
#define ENTRY_FILE_LINK "/memfd:" ENTRY_FILE " (deleted)"
