/* SPDX-License-Identifier: MIT */
/* The Connect protocol (connectrpc.com/docs/protocol), with JSON: frames of streams, and codes of
 * errors. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct str;

#define CONNECT_HEAD_BYTES 5
#define CONNECT_LAST 0x02 /* the last frame of a stream: {} or {"error": …} */

enum connect_code {
    CONNECT_CANCELED,
    CONNECT_UNKNOWN,
    CONNECT_INVALID_ARGUMENT,
    CONNECT_DEADLINE_EXCEEDED,
    CONNECT_NOT_FOUND,
    CONNECT_ALREADY_EXISTS,
    CONNECT_PERMISSION_DENIED,
    CONNECT_RESOURCE_EXHAUSTED,
    CONNECT_FAILED_PRECONDITION,
    CONNECT_UNIMPLEMENTED,
    CONNECT_INTERNAL,
    CONNECT_UNAVAILABLE,
    CONNECT_UNAUTHENTICATED,
    CONNECT_CODES_
};
struct connect_row {
    const char *name; /* "not_found" */
    unsigned status;  /* of an answer that is not a stream */
};
extern const struct connect_row connect_rows[CONNECT_CODES_];
/* The code for the HTTP status of an answer. */
enum connect_code connect_code_of(unsigned status);

/* Appends a frame. */
void connect_frame(struct str *out, unsigned flags, const void *bytes, size_t length);
/* Appends the last frame of a stream; `message` NULL: without an error. */
void connect_last_frame(struct str *out, enum connect_code code, const char *message);
/* Appends {"code", "message"}. */
void connect_error(struct str *out, enum connect_code code, const char *message);

/* Reads the frame at the beginning. Returns the bytes that it takes, 0 if it is incomplete, or -1 if
 * it is larger than `most`. */
long connect_read(const char *bytes, size_t length, size_t most, unsigned *ret_flags,
                  const char **ret_payload, size_t *ret_length);

/* "Connect-Timeout-Ms": at most ten digits. False if it is something else. */
bool connect_timeout(const char *text, unsigned long long *ret_ms);
