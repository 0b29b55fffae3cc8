/* SPDX-License-Identifier: MIT */
/* Query parameters. Each function answers the exchange itself where it returns false. */
#pragma once

#include <stdbool.h>

struct exchange;
struct str;

/* Whether all there are belong to the route. */
bool query_check(struct exchange *exchange);
/* ?encoding= of a stream. */
bool query_encoding(struct exchange *exchange, bool *ret_base64);
/* The filters of GET /executions, checked, as the history process reads them. */
bool query_list(struct exchange *exchange, struct str *out);
