/* SPDX-License-Identifier: MIT */
/* Parses the body of POST /execute, untrusted JSON, into a struct execution_request. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "server/execution.h"
#include "server/http/fields.h"

struct config_list;
struct runtime;
struct server_config;

/* `roots` are the directories that may contain work_dir. The caller fills in id, request_id,
 * client, domain, stream and events; *ret_runtime is the runtime that `language` names. On failure
 * returns false with the fault filled in, and there is nothing to release. */
bool request_read(const char *text, size_t length, const struct server_config *config,
                  const struct config_list *roots, struct execution_request *ret,
                  const struct runtime **ret_runtime, struct request_fault *fault);

extern const struct field request_fields[];
extern const size_t request_field_count;
