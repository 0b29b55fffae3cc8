/* SPDX-License-Identifier: MIT */
/* The http process's own jail: no files, no programs, no new sockets but those that are accepted. */
#pragma once

#include <stdint.h>

struct brig_error;

/* For good. Everything that is needed is open by now; `open_files` is how many there may be. */
int confine_http(uint64_t open_files, struct brig_error *err);
