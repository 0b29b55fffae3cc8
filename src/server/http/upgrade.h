/* SPDX-License-Identifier: MIT */
/* WebSocket connections: an exchange whose connection becomes one. The connection stays suspended in
 * libmicrohttpd, this file uses its socket, and the exchange lasts until that is closed. Nothing blocks:
 * what the client does not take is kept, up to a limit. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct exchange;
struct http;

/* What a client may leave unread; one that leaves more is disconnected. A protocol that has much to
 * send waits for `taken`. */
#define UPGRADE_UNREAD_MAX ((size_t)4 << 20)
/* Nothing is read from a client while it leaves so much unread or so much waits for the executor, nor
 * after so many messages until the next tick: then TCP makes the client wait. */
#define UPGRADE_PAUSE_BYTES ((size_t)1 << 20)
#define UPGRADE_MESSAGES_MAX 1000
/* A longer text is refused; see also upgrade_limit(). */
#define UPGRADE_TEXT_MAX ((size_t)32 << 20)

/* What the protocol above does. All functions may call those below. */
struct upgrade_protocol {
    void (*opened)(struct exchange *exchange);
    /* The client has sent a text; valid UTF-8, not ended by NUL. */
    void (*text)(struct exchange *exchange, const char *bytes, size_t length);
    void (*taken)(struct exchange *exchange); /* everything was sent */
    void (*tick)(struct exchange *exchange);  /* about four times a second */
};

/* Checks the head of the request; answers it with an error, or opens the connection. */
void upgrade_begin(struct exchange *exchange, const struct upgrade_protocol *protocol);
/* Sets the length of texts that are taken from now on. */
void upgrade_limit(struct exchange *exchange, size_t most);
/* Says how many bytes the protocol keeps of what it was sent; they count as memory of the server. */
void upgrade_hold(struct exchange *exchange, size_t bytes);
/* Sends a text, unless the connection is being closed. */
void upgrade_text(struct exchange *exchange, const char *bytes, size_t length);
/* Closes the connection, after what was sent before it; at most once. A run that the exchange waits
 * for is ended. */
void upgrade_close(struct exchange *exchange, unsigned code, const char *reason);

/* ---- For the loop and daemon.c ---- */

/* The socket with this number is ready. */
void upgrade_ready(struct http *http, uint64_t number, uint32_t events);
void upgrade_tick(struct exchange *exchange);
void upgrade_free(struct exchange *exchange);
