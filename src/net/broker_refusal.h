/* SPDX-License-Identifier: MIT */
/* Saying no in the client's own protocol. */
#pragma once

#include "net/broker_connection.h"

/* An answer of HTTP/1.1, after which the connection is closed; its length. */
#define REFUSAL_TEXT_MAX 1024
size_t refusal_http(char text[REFUSAL_TEXT_MAX], unsigned status, const char *phrase,
                    const char *what, const char *why);

/* TLS gets an alert, HTTP a 403 with the reason. False if the protocol is not known. */
bool refusal_say(struct connection *connection, enum door_verdict verdict,
                 enum door_because because, const char *detail);
