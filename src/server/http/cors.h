/* SPDX-License-Identifier: MIT */
/* Web pages of other origins: refused by silence, unless `server.cors_origins` names them. */
#pragma once

#include <stdbool.h>

struct exchange;
struct MHD_Response;

void cors_add_headers(const struct exchange *exchange, struct MHD_Response *response);

/* Of the Host header: whether it can only mean this machine: an address, or localhost. A name that
 * a web page's owner has made point here is none. Pure. */
bool cors_host_is_own(const char *host);
