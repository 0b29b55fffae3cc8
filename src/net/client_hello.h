/* SPDX-License-Identifier: MIT */
/* The first message of TLS: which server is meant. The bytes come from a jail and may be anything.
 * Pure, no allocation. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/net_address.h"

#define CLIENT_HELLO_MESSAGE_MAX 16384 /* bytes of the message; a longer one is bad */
#define CLIENT_HELLO_RECORDS_MAX 32    /* it may be split into so many records */
/* With so many bytes of a connection, the answer is never CLIENT_HELLO_NEED_MORE. */
#define CLIENT_HELLO_BYTES_MAX (CLIENT_HELLO_MESSAGE_MAX + CLIENT_HELLO_RECORDS_MAX * 5)

enum client_hello_state {
    CLIENT_HELLO_NEED_MORE,
    CLIENT_HELLO_DONE,
    CLIENT_HELLO_NOT_TLS, /* the first bytes say so */
    CLIENT_HELLO_BAD,     /* TLS, but nothing a server should be shown */
};

struct client_hello {
    bool has_name;               /* server_name was given */
    bool ech;                    /* encrypted_client_hello was given; GREASE looks the same */
    char name[NET_NAME_MAX + 1]; /* as net_name_read() gives it */
    const char *reason;          /* CLIENT_HELLO_BAD: why; a constant */
};

/* Looks at all bytes of a connection up to now, from the first. *ret_hello is set in every case. */
enum client_hello_state client_hello_read(const uint8_t *bytes, size_t length,
                                          struct client_hello *ret_hello);

/* The record with a fatal alert, for a client that is refused before a server spoke. */
#define CLIENT_HELLO_ALERT_SIZE 7
enum client_hello_alert {
    CLIENT_HELLO_ALERT_ACCESS_DENIED = 49,
    CLIENT_HELLO_ALERT_DECODE_ERROR = 50,
    CLIENT_HELLO_ALERT_UNRECOGNIZED_NAME = 112,
};
void client_hello_alert(enum client_hello_alert alert, uint8_t record[CLIENT_HELLO_ALERT_SIZE]);
