/* SPDX-License-Identifier: MIT */
/* The effective limits of a request, and whether it is permitted. Used by the executor and the http
 * process. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server/config/runtime.h"

struct brig_error;
struct execution_request;
struct server_config;

uint64_t jail_limit(const struct runtime *runtime, const struct execution_request *request,
                    enum execution_limit limit);
/* The limits of a stage that are in force; cpu_ms and output_bytes may be 0. */
struct execution_stage_limits jail_stage_limits(const struct runtime *runtime,
                                                const struct execution_request *request,
                                                enum execution_stage stage);

/* Checks that the request keeps to the limits of the runtime and the configuration. On failure the
 * error names the value and what is allowed, and *ret_field the field. */
int jail_check_request(const struct server_config *config, const struct runtime *runtime,
                       const struct execution_request *request, const char **ret_field,
                       struct brig_error *err);

/* ---- work_dir: the host directory of a request ---- */

struct brig_error;
struct config_list;

/* Opens the directory if it is below one of the roots and not on the list of refused directories.
 * The check is made on the opened fd, so renames cannot change its result. *ret_fd is -1 on
 * failure. */
int executor_open_workdir(const char *path, const struct config_list *roots, int *ret_fd,
                          struct brig_error *err);

/* Returns whether a path without symlinks is refused for any root. Pure. */
bool executor_workdir_is_refused(const char *path);
/* Refuses a runtime that cannot be a sandbox. Pure. */
int jail_check_sandbox(const struct runtime *runtime, struct brig_error *err);
/* The home of a sandbox has to be JAIL_HOMES and a name of small letters, digits, - and _. Pure. */
#define JAIL_HOMES "/home/"
bool jail_home_is_valid(const char *home);
/* Whether a request has nothing but what can come late: see JAIL_LATE. */
bool jail_fits_late(const struct runtime *runtime, const struct execution_request *request);
