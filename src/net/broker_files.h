/* SPDX-License-Identifier: MIT */
/* Which files a broker reads while it runs. */
#pragma once

#include "net/broker_config.h"

#define FILES_MAX 24

/* Paths, with NULL at the end; they live as long as the configuration, in whose arena some are. Not
 * all of them exist. */
void files_needed(struct broker_config *config, const char *files[FILES_MAX + 1]);

/* The file with the certificates that upstreams are checked with; NULL if there is none. */
const char *files_certificates(const struct broker_config *config);
