/* SPDX-License-Identifier: MIT */
/* What holds for one request, and whether it may be. For the executor and for the http process. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server/runtime.h"

struct brig_error;
struct execution_request;
struct server_config;

uint64_t jail_limit(const struct runtime *runtime, const struct execution_request *request,
                    enum execution_limit limit);
uint64_t jail_timeout_ms(const struct runtime *runtime, const struct execution_request *request);
const char *jail_file_name(const struct runtime *runtime);

/* Whether it keeps to what the runtime and the configuration allow. If not, the first thing that is
 * wrong: its field, and a sentence with the value and what is allowed. */
int jail_check_request(const struct server_config *config, const struct runtime *runtime,
                       const struct execution_request *request, const char **ret_field,
                       struct brig_error *err);

/* ---- workdir ---- */

/* The directory of the host that a request wants to work in. */

struct brig_error;
struct config_list;

/* Opens it if it lies below one of the roots and is not one that is never given away: -1 in *ret_fd on
 * failure. What was checked is what the fd is of, whatever happens to the names. */
int executor_open_workdir(const char *path, const struct config_list *roots, int *ret_fd,
                          struct brig_error *err);

/* Of a path without links: whether it is never given away, whatever the roots. Pure. */
bool executor_workdir_is_refused(const char *path);
