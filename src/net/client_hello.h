/* SPDX-License-Identifier: MIT */
/* Reads the server name from the first message of TLS. The bytes come from a jail and are
 * untrusted. Pure, no allocation. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/net_address.h"

#define CLIENT_HELLO_MESSAGE_MAX 16384 /* bytes of the message; a longer one is CLIENT_HELLO_BAD */
#define CLIENT_HELLO_RECORDS_MAX 32    /* the number of records it may be split into */
/* With this many bytes of a connection, the result is never CLIENT_HELLO_NEED_MORE. */
#define CLIENT_HELLO_BYTES_MAX (CLIENT_HELLO_MESSAGE_MAX + CLIENT_HELLO_RECORDS_MAX * 5)

enum client_hello_state {
    CLIENT_HELLO_NEED_MORE,
    CLIENT_HELLO_DONE,
    CLIENT_HELLO_NOT_TLS, /* the first bytes are not those of TLS */
    CLIENT_HELLO_BAD,     /* TLS, but malformed: not to be passed to a server */
};

struct client_hello {
    bool has_name;               /* it has the extension server_name */
    bool ech;                    /* it has encrypted_client_hello; GREASE looks the same */
    char name[NET_NAME_MAX + 1]; /* in the form of net_name_read() */
    const char *reason;          /* CLIENT_HELLO_BAD: why; a constant */
};

/* Parses all bytes of a connection so far. *ret_hello is set in every case. */
enum client_hello_state client_hello_read(const uint8_t *bytes, size_t length,
                                          struct client_hello *ret_hello);

/* Writes a record with a fatal alert, for a client that is refused before a server has answered. */
#define CLIENT_HELLO_ALERT_SIZE 7
enum client_hello_alert {
    CLIENT_HELLO_ALERT_ACCESS_DENIED = 49,
    CLIENT_HELLO_ALERT_DECODE_ERROR = 50,
    CLIENT_HELLO_ALERT_UNRECOGNIZED_NAME = 112,
};
void client_hello_alert(enum client_hello_alert alert, uint8_t record[CLIENT_HELLO_ALERT_SIZE]);
