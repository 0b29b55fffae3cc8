/* SPDX-License-Identifier: MIT */
/* The access log for the http process, which cannot open files. */
#pragma once

struct brig_error;
struct channel;
struct server_config;

/* Opens it anew, after a rotation, and hands it over; nothing where it is no file. */
int supervisor_log_send(const struct server_config *config, struct channel *http,
                        struct brig_error *err);
