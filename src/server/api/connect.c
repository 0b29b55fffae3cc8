/* SPDX-License-Identifier: MIT */
/* Frames and errors of the Connect protocol. */
#include "server/api/connect.h"

#include <stdint.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

#define TIMEOUT_DIGITS_MAX 10

const struct connect_row connect_rows[CONNECT_CODES_] = {
    [CONNECT_CANCELED] = {"canceled", 499},
    [CONNECT_UNKNOWN] = {"unknown", 500},
    [CONNECT_INVALID_ARGUMENT] = {"invalid_argument", 400},
    [CONNECT_DEADLINE_EXCEEDED] = {"deadline_exceeded", 504},
    [CONNECT_NOT_FOUND] = {"not_found", 404},
    [CONNECT_ALREADY_EXISTS] = {"already_exists", 409},
    [CONNECT_PERMISSION_DENIED] = {"permission_denied", 403},
    [CONNECT_RESOURCE_EXHAUSTED] = {"resource_exhausted", 429},
    [CONNECT_FAILED_PRECONDITION] = {"failed_precondition", 400},
    [CONNECT_UNIMPLEMENTED] = {"unimplemented", 501},
    [CONNECT_INTERNAL] = {"internal", 500},
    [CONNECT_UNAVAILABLE] = {"unavailable", 503},
    [CONNECT_UNAUTHENTICATED] = {"unauthenticated", 401},
};

enum connect_code connect_code_of(unsigned status)
{
    static const struct {
        unsigned status;
        enum connect_code code;
    } rows[] = {
        {400, CONNECT_INVALID_ARGUMENT},   {401, CONNECT_UNAUTHENTICATED},
        {403, CONNECT_PERMISSION_DENIED},  {404, CONNECT_NOT_FOUND},
        {405, CONNECT_UNIMPLEMENTED},      {409, CONNECT_ALREADY_EXISTS},
        {413, CONNECT_RESOURCE_EXHAUSTED}, {415, CONNECT_INVALID_ARGUMENT},
        {429, CONNECT_RESOURCE_EXHAUSTED}, {500, CONNECT_INTERNAL},
        {501, CONNECT_UNIMPLEMENTED},      {502, CONNECT_UNAVAILABLE},
        {503, CONNECT_UNAVAILABLE},        {504, CONNECT_DEADLINE_EXCEEDED},
        {507, CONNECT_RESOURCE_EXHAUSTED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].status == status)
            return rows[i].code;
    return CONNECT_UNKNOWN;
}

void connect_frame(struct str *out, unsigned flags, const void *bytes, size_t length)
{
    const unsigned char head[CONNECT_HEAD_BYTES] = {
        (unsigned char)flags, (unsigned char)(length >> 24), (unsigned char)(length >> 16),
        (unsigned char)(length >> 8), (unsigned char)length};
    if (length > UINT32_MAX) {
        out->failed = true;
        return;
    }
    str_append_bytes(out, head, sizeof head);
    str_append_bytes(out, bytes, length);
}

void connect_error(struct str *out, enum connect_code code, const char *message)
{
    struct json j;
    json_init(&j, out);
    json_open_object(&j, NULL);
    json_text(&j, "code", connect_rows[code].name);
    json_text(&j, "message", message);
    json_close_object(&j);
}

void connect_last_frame(struct str *out, enum connect_code code, const char *message)
{
    autostr struct str payload = {0};
    str_append(&payload, message ? "{\"error\":" : "{");
    if (message)
        connect_error(&payload, code, message);
    str_append_char(&payload, '}');
    out->failed |= payload.failed;
    if (!payload.failed)
        connect_frame(out, CONNECT_LAST, payload.data, payload.length);
}

long connect_read(const char *bytes, size_t length, size_t most, unsigned *ret_flags,
                  const char **ret_payload, size_t *ret_length)
{
    if (length < CONNECT_HEAD_BYTES)
        return 0;
    size_t size = 0;
    for (size_t i = 1; i < CONNECT_HEAD_BYTES; i++)
        size = size << 8 | (unsigned char)bytes[i];
    if (size > most)
        return -1;
    if (size > length - CONNECT_HEAD_BYTES)
        return 0;
    *ret_flags = (unsigned char)bytes[0];
    *ret_payload = bytes + CONNECT_HEAD_BYTES;
    *ret_length = size;
    return (long)(CONNECT_HEAD_BYTES + size);
}

bool connect_timeout(const char *text, unsigned long long *ret_ms)
{
    size_t digits = strspn(text, "0123456789");
    unsigned long long value = 0;
    if (digits == 0 || digits > TIMEOUT_DIGITS_MAX || text[digits])
        return false;
    for (size_t i = 0; i < digits; i++)
        value = value * 10 + (unsigned long long)(text[i] - '0');
    *ret_ms = value;
    return true;
}
