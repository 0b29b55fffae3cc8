/* SPDX-License-Identifier: MIT */
/* The access log for the front, which cannot open files. */
#pragma once

struct brig_error;
struct channel;
struct server_config;

/* Opens it anew, after a rotation, and hands it over; nothing where it is no file. */
int keeper_log_send(const struct server_config *config, struct channel *front,
                    struct brig_error *err);
