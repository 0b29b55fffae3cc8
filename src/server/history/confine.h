/* SPDX-License-Identifier: MIT */
/* The history process's own jail. */
#pragma once

struct brig_error;
struct server_config;

/* From here on: the spool, the directory of SQLite, and the network only for PostgreSQL. To be called
 * when all is open, and before there are threads. */
int confine_history(const struct server_config *config, struct brig_error *err);
