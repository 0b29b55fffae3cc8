/* SPDX-License-Identifier: MIT */
/* What holds for one request, and whether it may be. For the executor and for the http process. Pure. */
#pragma once

#include <stdint.h>

#include "server/runtime.h"

struct brig_error;
struct execution_request;
struct server_config;

uint64_t jail_limit(const struct server_config *config, const struct runtime *runtime,
                    const struct execution_request *request, enum execution_limit limit);
uint64_t jail_timeout_ms(const struct server_config *config, const struct runtime *runtime,
                         const struct execution_request *request);
const char *jail_file_name(const struct runtime *runtime);

/* Whether it keeps to what the runtime and the configuration allow. If not, the first thing that is
 * wrong: its field, and a sentence with the value and what is allowed. */
int jail_check_request(const struct server_config *config, const struct runtime *runtime,
                       const struct execution_request *request, const char **ret_field,
                       struct brig_error *err);
