/* SPDX-License-Identifier: MIT */
/* SOCKS5 as a client speaks it. */
#include "net/socks.h"

#include "base/cleanup.h"
#include "tap.h"

static void test_greetings(void)
{
    static const struct {
        const char *what, *bytes;
        size_t length;
        enum socks_state state;
        size_t consumed;
    } rows[] = {
        {"nothing", "", 0, SOCKS_NEED_MORE, 0},
        {"a version", "\x05", 1, SOCKS_NEED_MORE, 0},
        {"half a list", "\x05\x02\x02", 3, SOCKS_NEED_MORE, 0},
        {"no password needed", "\x05\x01\x00", 3, SOCKS_DONE, 3},
        {"or one", "\x05\x02\x02\x00\x05", 5, SOCKS_DONE, 4},
        {"only with a password", "\x05\x01\x02", 3, SOCKS_BAD, 0},
        {"no way at all", "\x05\x00", 2, SOCKS_BAD, 0},
        {"SOCKS4", "\x04\x01", 2, SOCKS_BAD, 0},
        {"HTTP", "CONNECT", 7, SOCKS_BAD, 0},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        size_t consumed = 0;
        tap_is_int(socks_greeting_read((const uint8_t *)rows[i].bytes, rows[i].length, &consumed),
                   rows[i].state, "greeting: %s", rows[i].what);
        tap_is_int(consumed, rows[i].consumed, "of so many bytes");
    }
    uint8_t answer[SOCKS_METHOD_SIZE];
    socks_method(true, answer);
    tap_ok(answer[0] == 5 && answer[1] == 0, "it is taken");
    socks_method(false, answer);
    tap_ok(answer[0] == 5 && answer[1] == 0xff, "or not");
}

static void test_requests(void)
{
    static const struct {
        const char *what, *bytes;
        size_t length;
        const char *to; /* NULL: bad */
        enum socks_code code;
    } rows[] = {
        {"an address", "\x05\x01\x00\x01\x0a\x01\x02\x03\x01\xbb", 10, "10.1.2.3", SOCKS_OK},
        {"a name",
         "\x05\x01\x00\x03\x09"
         "A.example\x01\xbb",
         16, "a.example", SOCKS_OK},
        {"an address in letters",
         "\x05\x01\x00\x03\x09"
         "127.0.0.1\x01\xbb",
         16, "127.0.0.1", SOCKS_OK},
        {"IPv6", "\x05\x01\x00\x04\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x01\xbb", 22,
         "2001:db8::1", SOCKS_OK},
        {"IPv4 in IPv6", "\x05\x01\x00\x04\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\x01\x02\x03\x01\xbb", 22,
         "10.1.2.3", SOCKS_OK},
        {"to listen", "\x05\x02\x00\x01\x0a\x01\x02\x03\x01\xbb", 10, NULL, SOCKS_BAD_COMMAND},
        {"UDP", "\x05\x03\x00\x01\x0a\x01\x02\x03\x01\xbb", 10, NULL, SOCKS_BAD_COMMAND},
        {"another version", "\x04\x01\x00\x01\x0a\x01\x02\x03\x01\xbb", 10, NULL, SOCKS_FAILED},
        {"no zero", "\x05\x01\x01\x01\x0a\x01\x02\x03\x01\xbb", 10, NULL, SOCKS_FAILED},
        {"another kind", "\x05\x01\x00\x02\x0a\x01\x02\x03\x01\xbb", 10, NULL, SOCKS_BAD_ADDRESS},
        {"an empty name", "\x05\x01\x00\x03\x00\x01\xbb", 7, NULL, SOCKS_BAD_ADDRESS},
        {"a NUL in a name",
         "\x05\x01\x00\x03\x09"
         "a\0example\x01\xbb",
         16, NULL, SOCKS_BAD_ADDRESS},
        {"a name of blanks",
         "\x05\x01\x00\x03\x02"
         "  \x01\xbb",
         9, NULL, SOCKS_BAD_ADDRESS},
        {"port 0", "\x05\x01\x00\x01\x0a\x01\x02\x03\x00\x00", 10, NULL, SOCKS_FAILED},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct socks_request request;
        const uint8_t *bytes = (const uint8_t *)rows[i].bytes;
        tap_is_int(socks_request_read(bytes, rows[i].length, &request),
                   rows[i].to ? SOCKS_DONE : SOCKS_BAD, "request: %s", rows[i].what);
        tap_is_int(request.code, rows[i].code, "with its code");
        if (!rows[i].to)
            continue;
        char text[NET_ADDRESS_TEXT_MAX] = "";
        if (request.is_address)
            net_address_print(&request.address, text);
        tap_is_str(request.is_address ? text : request.name, rows[i].to, "to there");
        tap_ok(request.port == 443 && request.length == rows[i].length, "on its port");
        size_t early = 0;
        for (size_t length = 0; length < rows[i].length; length++)
            early += socks_request_read(bytes, length, &request) != SOCKS_NEED_MORE;
        tap_is_int(early, 0, "with any byte missing, more is needed");
    }
}

static void test_limits(void)
{
    uint8_t bytes[SOCKS_REQUEST_MAX] = {5, 1, 0, 3, 255};
    struct socks_request request;
    memset(bytes + 5, 'a', 257);
    tap_is_int(socks_request_read(bytes, sizeof bytes, &request), SOCKS_BAD,
               "a name of 255 bytes is none");
    bytes[4] = NET_NAME_MAX;
    for (size_t i = 63; i < NET_NAME_MAX; i += 64)
        bytes[5 + i] = '.';
    tap_is_int(socks_request_read(bytes, 5 + NET_NAME_MAX + 2, &request), SOCKS_DONE,
               "one of 253 is");
    tap_is_int(strlen(request.name), NET_NAME_MAX, "and read whole");
    uint8_t reply[SOCKS_REPLY_SIZE];
    socks_reply(SOCKS_NOT_ALLOWED, reply);
    tap_ok(memcmp(reply, "\x05\x02\x00\x01\0\0\0\0\0\0", 10) == 0, "the reply says why");
}

int main(void)
{
    test_greetings();
    test_requests();
    test_limits();
    return tap_done();
}
