/* SPDX-License-Identifier: MIT */
/* WebSocket (RFC 6455), the server's side: the key of the handshake, and frames. Pure; who calls it
 * reads and writes the socket. No extensions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define WEBSOCKET_ACCEPT_LENGTH 28
/* "Sec-WebSocket-Accept" for the client's "Sec-WebSocket-Key". Returns false if the key is not the
 * base64 of 16 bytes. */
bool websocket_accept(const char *key, char ret_accept[WEBSOCKET_ACCEPT_LENGTH + 1]);

/* Codes of a close frame; 4000 to 4999 are for the protocol above. */
enum websocket_code {
    WEBSOCKET_NORMAL = 1000,
    WEBSOCKET_GOING_AWAY = 1001,
    WEBSOCKET_PROTOCOL_ERROR = 1002,
    WEBSOCKET_NO_CODE = 1005, /* the client's close frame has none; never sent */
    WEBSOCKET_NOT_TEXT = 1007,
    WEBSOCKET_TOO_LARGE = 1009,
};

enum websocket_event {
    WEBSOCKET_MORE,    /* more bytes are needed */
    WEBSOCKET_TEXT,    /* a whole message, valid UTF-8 */
    WEBSOCKET_BINARY,  /* a whole message */
    WEBSOCKET_PING,    /* answer with websocket_write(WEBSOCKET_PONG) and the same bytes */
    WEBSOCKET_CLOSED,  /* the client closes: answer with `code` unless it was closed before */
    WEBSOCKET_INVALID, /* close with `code`; take no more bytes */
};

/* Reads frames. Zero it, and set `most`. */
struct websocket {
    size_t most;        /* length of a message */
    struct str message; /* the message so far; after an event its bytes, until the next call */
    struct str control; /* WEBSOCKET_PING: its bytes */
    enum websocket_code code;
    /* The frame in progress. */
    unsigned char head[14];
    size_t head_length, head_needed;
    uint64_t left, masked;         /* bytes of it that are missing; bytes of it so far */
    unsigned opcode, first_opcode; /* first_opcode: of the message in progress, 0: none */
    bool is_final, in_payload;
};
void websocket_done(struct websocket *websocket);

/* Takes bytes until there is an event; *ret_used are those that were taken. Call it again with the
 * others. */
enum websocket_event websocket_take(struct websocket *websocket, const void *bytes, size_t length,
                                    size_t *ret_used);

enum websocket_opcode { WEBSOCKET_IS_TEXT = 1, WEBSOCKET_IS_BINARY = 2, WEBSOCKET_PONG = 10 };
/* Appends one frame. */
void websocket_write(struct str *out, enum websocket_opcode opcode, const void *bytes,
                     size_t length);
/* Appends a close frame; the reason is cut after 123 bytes. */
void websocket_write_close(struct str *out, unsigned code, const char *reason);
