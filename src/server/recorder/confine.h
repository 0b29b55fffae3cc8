/* SPDX-License-Identifier: MIT */
/* The recorder's own jail. */
#pragma once

struct brig_error;
struct server_config;

/* From here on: the spool, the directory of SQLite, and the network only for PostgreSQL. To be called
 * when all is open, and before there are threads. */
int confine_recorder(const struct server_config *config, struct brig_error *err);
