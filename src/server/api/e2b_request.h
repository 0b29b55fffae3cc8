/* SPDX-License-Identifier: MIT */
/* Reads what E2B's clients send, untrusted JSON, into a struct sandbox_request. Pure. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/sandbox.h"

struct server_config;

#define E2B_MESSAGE_MAX 256
/* Metadata of ours, which clients do not see: the template that was asked for. */
#define E2B_OWN_METADATA "e2b."
#define E2B_TEMPLATE_METADATA E2B_OWN_METADATA "template"

/* Fills in a SANDBOX_CREATE. Returns 0, or the HTTP status of an error with its message. */
unsigned e2b_read_create(const json_t *body, const struct server_config *config,
                         struct sandbox_request *ret, char message[E2B_MESSAGE_MAX]);
/* {"timeout": seconds}; without one *ret_ms stays as it is. */
bool e2b_read_timeout(const json_t *body, uint64_t *ret_ms, char message[E2B_MESSAGE_MAX]);
/* "name=value&…", with each name and value encoded twice; NULL is nothing. */
bool e2b_read_filter(const char *text, struct sandbox_request *ret);
/* The template that a sandbox was created from. */
const char *e2b_template_of(const struct sandbox_info *info);

/* Fill in SANDBOX_START, and the command of a selector: {"process": {"pid": 1}}. */
bool e2b_read_start(const json_t *body, struct sandbox_request *ret, char message[E2B_MESSAGE_MAX]);
bool e2b_read_selector(const json_t *body, struct sandbox_request *ret,
                       char message[E2B_MESSAGE_MAX]);
/* {"input": {"stdin" or "pty": base64}}. */
bool e2b_read_input(const json_t *body, struct sandbox_request *ret, char message[E2B_MESSAGE_MAX]);
/* "SIGNAL_SIGKILL", or its number. */
bool e2b_read_signal(const json_t *body, struct sandbox_request *ret,
                     char message[E2B_MESSAGE_MAX]);
/* Fill in SANDBOX_CONTEXT_RUN, with the id of the context or NULL, and SANDBOX_CONTEXT_CREATE. Without
 * a context the language is Python. */
bool e2b_read_code(const json_t *body, struct sandbox_request *ret, const char **ret_context,
                   char message[E2B_MESSAGE_MAX]);
bool e2b_read_context(const json_t *body, struct sandbox_request *ret,
                      char message[E2B_MESSAGE_MAX]);
/* {"pty": {"size": {"cols", "rows"}}}; without it nothing is set. */
bool e2b_read_size(const json_t *body, struct sandbox_request *ret, char message[E2B_MESSAGE_MAX]);
