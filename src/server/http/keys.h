/* SPDX-License-Identifier: MIT */
/* API keys: kept as hashes, compared so that the time it takes says nothing. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "server/config.h"

struct brig_error;

#define KEYS_HASH_BYTES 32
#define KEYS_DOMAIN_LENGTH 16 /* hexadecimal digits by which a key is known elsewhere */

struct keys {
    unsigned char hashes[CONFIG_LIST_MAX][KEYS_HASH_BYTES];
    size_t count; /* 0: everybody may */
};

/* Each is plain, or "sha256:" and 64 digits. */
int keys_init(struct keys *keys, const struct config_list *allowed, struct brig_error *err);
/* Whether it is one of them, and which; all are compared, whichever it is. */
bool keys_check(const struct keys *keys, const char *given, size_t length,
                char ret_domain[KEYS_DOMAIN_LENGTH + 1], size_t *ret_which);
