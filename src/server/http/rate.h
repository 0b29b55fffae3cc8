/* SPDX-License-Identifier: MIT */
/* How often a client may ask: a token bucket for each address, in a table that cannot grow. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct brig_error;
struct net_address;
struct rate;

/* `per_second` of 0: no limit. A bucket holds `burst`, of 0: as many as come in a second. */
int rate_new(uint64_t per_second, uint64_t burst, struct rate **ret_rate, struct brig_error *err);
void rate_free(struct rate *rate); /* accepts NULL */

/* Whether it may; if not, *ret_wait_ms is how long until it may. A network of IPv6 (/64) is one
 * client. Where the table is full, the client that has been quiet for longest is forgotten. */
bool rate_take(struct rate *rate, const struct net_address *client, uint64_t now_us,
               uint64_t *ret_wait_ms);
