/* SPDX-License-Identifier: MIT */
/* What holds for one request, and whether it may be. For jail.c. */
#pragma once

#include <stdint.h>

#include "server/runtime.h"

struct execution_request;
struct server_config;

uint64_t jail_limit(const struct server_config *config, const struct runtime *runtime,
                    const struct execution_request *request, enum execution_limit limit);
uint64_t jail_timeout_ms(const struct server_config *config, const struct runtime *runtime,
                         const struct execution_request *request);
const char *jail_file_name(const struct runtime *runtime);
