/* SPDX-License-Identifier: MIT */
/* The process that people start as brigd: it keeps the others running. */
#pragma once

struct brig_error;
struct server_config;

/* Runs until it is told to stop (SIGTERM, SIGINT) and everything has ended. */
int supervisor_run(const struct server_config *config, struct brig_error *err);
