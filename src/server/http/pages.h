/* SPDX-License-Identifier: MIT */
/* Routes that the http process answers by itself. */
#pragma once

struct exchange;

void pages_health(struct exchange *exchange);
void pages_metrics(struct exchange *exchange);
void pages_runtimes(struct exchange *exchange);
void pages_openapi(struct exchange *exchange);
