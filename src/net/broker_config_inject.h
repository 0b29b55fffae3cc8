/* SPDX-License-Identifier: MIT */
/* The lines of a broker's configuration about credentials. Part of broker_config.c. */
#pragma once

#include "net/broker_config.h"

/* HOST[:PORT], of an address of IPv6 with a port [ADDRESS]:PORT. */
int config_read_host(const char *text, uint16_t default_port, struct config_host *ret_host,
                     struct brig_error *err);
int config_read_secret(struct broker_config *config, const char *text, unsigned *ret_index,
                       struct brig_error *err);

/* One line, as words that end with NULL. */
int config_inject_read(struct broker_config *config, char **words, struct brig_error *err);
/* What was left out, and what does not fit together. */
int config_inject_finish(struct broker_config *config, struct brig_error *err);
