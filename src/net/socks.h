/* SPDX-License-Identifier: MIT */
/* SOCKS5 (RFC 1928), the server's side. The bytes come from a jail and are untrusted. Pure, no
 * allocation. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/net_address.h"

#define SOCKS_GREETING_MAX (2 + 255)
#define SOCKS_REQUEST_MAX (4 + 1 + 255 + 2)
#define SOCKS_REPLY_SIZE 10
#define SOCKS_METHOD_SIZE 2

enum socks_state {
    SOCKS_NEED_MORE,
    SOCKS_DONE,
    SOCKS_BAD, /* close it; for a request, after socks_reply() with the code that was set */
};

enum socks_code {
    SOCKS_OK = 0,
    SOCKS_FAILED = 1,
    SOCKS_NOT_ALLOWED = 2,
    SOCKS_NET_UNREACHABLE = 3,
    SOCKS_HOST_UNREACHABLE = 4,
    SOCKS_REFUSED = 5,
    SOCKS_TTL_EXPIRED = 6,
    SOCKS_BAD_COMMAND = 7,
    SOCKS_BAD_ADDRESS = 8,
};

/* Parses the client's greeting. SOCKS_DONE if the client accepts no authentication: answer with
 * socks_method(true). SOCKS_BAD otherwise: answer with socks_method(false). */
enum socks_state socks_greeting_read(const uint8_t *bytes, size_t length, size_t *ret_consumed);
void socks_method(bool accepted, uint8_t answer[SOCKS_METHOD_SIZE]);

struct socks_request {
    size_t length; /* bytes consumed */
    bool is_address;
    char name[NET_NAME_MAX + 1]; /* in the form of net_name_read() */
    struct net_address address;
    uint16_t port;
    enum socks_code code; /* SOCKS_BAD: what to reply */
};

/* Parses the request after the greeting; only CONNECT is supported. */
enum socks_state socks_request_read(const uint8_t *bytes, size_t length,
                                    struct socks_request *ret_request);
/* Writes a reply without a bound address, which clients ignore after CONNECT. */
void socks_reply(enum socks_code code, uint8_t reply[SOCKS_REPLY_SIZE]);
