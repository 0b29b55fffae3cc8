/* SPDX-License-Identifier: MIT */
/* Judge0's dialect of the API, version 1.13: the handlers of the routes below /judge0. A submission is
 * an execution of the queue, and its token is the execution's id. */
#pragma once

#include <stdbool.h>

#define JUDGE0_VERSION "1.13.1"

struct dialect;
struct exchange;

/* 401 without a body; {"error":…} for the others. */
extern const struct dialect judge0_dialect;
/* Whether the path is below /judge0; a slash at its end is removed, as Rails does. */
bool judge0_takes_path(char *path);

/* judge0.c */
void judge0_create(struct exchange *exchange);
void judge0_get(struct exchange *exchange);
void judge0_create_batch(struct exchange *exchange);
void judge0_get_batch(struct exchange *exchange);
void judge0_list(struct exchange *exchange);
void judge0_delete(struct exchange *exchange);
void judge0_statistics(struct exchange *exchange);

/* judge0_pages.c */
void judge0_languages(struct exchange *exchange);
void judge0_all_languages(struct exchange *exchange);
void judge0_language(struct exchange *exchange);
void judge0_statuses(struct exchange *exchange);
void judge0_config_info(struct exchange *exchange);
void judge0_about(struct exchange *exchange);
void judge0_version(struct exchange *exchange);
void judge0_license(struct exchange *exchange);
void judge0_isolate(struct exchange *exchange);
void judge0_system_info(struct exchange *exchange);
void judge0_workers(struct exchange *exchange);
void judge0_authenticate(struct exchange *exchange);
void judge0_authorize(struct exchange *exchange);

/* {"status":404,"error":"Not Found"}, as Rails answers. */
void judge0_answer_missing(struct exchange *exchange);
/* A status without a body. */
void judge0_answer_nothing(struct exchange *exchange, unsigned status);
/* {"error":…} */
void judge0_answer_error(struct exchange *exchange, unsigned status, const char *text);
/* X-Auth-User names the API key of the request; without keys nobody is authorized. False: the exchange
 * is answered with 403. */
bool judge0_check_authorized(struct exchange *exchange);
