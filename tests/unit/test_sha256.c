/* SPDX-License-Identifier: MIT */
/* SHA-256: the examples of FIPS 180-4, and parts of every length. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/sha256.h"
#include "tap.h"

static void test_examples(void)
{
    static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    char text[SHA256_HEX_LENGTH + 1];
    sha256_hex("", 0, text);
    tap_is_str(text, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
               "no bytes");
    sha256_hex("abc", 3, text);
    tap_is_str(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
               "one block");
    sha256_hex(two_blocks, strlen(two_blocks), text);
    tap_is_str(text, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
               "two blocks");
    autofree char *many = malloc(1000000);
    memset(many, 'a', 1000000);
    sha256_hex(many, 1000000, text);
    tap_is_str(text, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0",
               "a million bytes");
}

static void test_parts(void)
{
    unsigned char bytes[200];
    unsigned wrong = 0;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)i;
    for (size_t length = 0; length <= sizeof bytes; length++) {
        for (size_t part = 1; part <= sizeof bytes; part += 7) {
            struct sha256 hash;
            char whole[SHA256_HEX_LENGTH + 1], parts[SHA256_HEX_LENGTH + 1];
            sha256_hex(bytes, length, whole);
            sha256_begin(&hash);
            for (size_t at = 0; at < length; at += part)
                sha256_add(&hash, bytes + at, length - at < part ? length - at : part);
            sha256_end(&hash, parts);
            wrong += strcmp(whole, parts) != 0;
        }
    }
    tap_is_int(wrong, 0, "parts of every length give the hash of the whole");
}

/* RFC 4231. */
static void test_hmac(void)
{
    static const struct {
        const char *key, *text, *digest;
    } cases[] = {
        {"Jefe", "what do ya want for nothing?",
         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        {NULL, "Test Using Larger Than Block-Size Key - Hash Key First",
         "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
    };
    unsigned char large[131], digest[SHA256_BYTES];
    memset(large, 0xaa, sizeof large);
    for (size_t i = 0; i < 2; i++) {
        char text[SHA256_HEX_LENGTH + 1] = "";
        const void *key = cases[i].key ? (const void *)cases[i].key : large;
        hmac_sha256(key, cases[i].key ? strlen(cases[i].key) : sizeof large, cases[i].text,
                    strlen(cases[i].text), digest);
        for (size_t k = 0; k < sizeof digest; k++)
            (void)snprintf(text + 2 * k, 3, "%02x", digest[k]);
        tap_is_str(text, cases[i].digest, "HMAC with a key of %s", i ? "131 bytes" : "4 bytes");
    }
}

int main(void)
{
    test_examples();
    test_parts();
    test_hmac();
    return tap_done();
}
