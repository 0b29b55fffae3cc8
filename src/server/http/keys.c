/* SPDX-License-Identifier: MIT */
/* API keys. */
#include "server/http/keys.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hex.h"
#include "base/str.h"

#define PREFIX "sha256:"

static bool read_hash(const char *text, unsigned char hash[KEYS_HASH_BYTES])
{
    if (strlen(text) != (size_t)2 * KEYS_HASH_BYTES)
        return false;
    for (size_t i = 0; i < KEYS_HASH_BYTES; i++) {
        int high = hex_value(text[2 * i]), low = hex_value(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        hash[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

static bool make_hash(const char *text, size_t length, unsigned char hash[KEYS_HASH_BYTES])
{
    return gnutls_hash_fast(GNUTLS_DIG_SHA256, text, length, hash) == 0;
}

int keys_init(struct keys *keys, const struct config_list *allowed, struct brig_error *err)
{
    keys->count = 0;
    for (size_t i = 0; i < allowed->count; i++) {
        const char *text = allowed->items[i];
        if (str_starts_with(text, PREFIX)) {
            if (!read_hash(text + sizeof PREFIX - 1, keys->hashes[i]))
                return brig_fail(err, BRIG_E_INVALID, 0,
                                 "security.allowed_keys: entry %zu begins with " PREFIX
                                 ", which 64 hexadecimal digits have to follow",
                                 i + 1);
        } else if (!*text) {
            return brig_fail(err, BRIG_E_INVALID, 0, "security.allowed_keys: entry %zu is empty",
                             i + 1);
        } else if (!make_hash(text, strlen(text), keys->hashes[i])) {
            return brig_fail(err, BRIG_E_SYSTEM, 0, "SHA-256 does not work here");
        }
        keys->count++;
    }
    return 0;
}

bool keys_check(const struct keys *keys, const char *given, size_t length,
                char ret_domain[KEYS_DOMAIN_LENGTH + 1], size_t *ret_which)
{
    unsigned char hash[KEYS_HASH_BYTES];
    unsigned found = 0;
    size_t which = 0; /* counted from 1 */
    ret_domain[0] = '\0';
    if (!make_hash(given, length, hash))
        return false;
    for (size_t i = 0; i < keys->count; i++) {
        volatile unsigned char differs = 0;
        for (size_t k = 0; k < KEYS_HASH_BYTES; k++)
            differs |= hash[k] ^ keys->hashes[i][k];
        found |= differs == 0;
        which += (differs == 0) * (i + 1 - which); /* the last one that is equal */
    }
    for (size_t i = 0; found && i < KEYS_DOMAIN_LENGTH / 2; i++)
        (void)snprintf(ret_domain + 2 * i, 3, "%02x", hash[i]);
    *ret_which = found ? which - 1 : 0;
    return found;
}
