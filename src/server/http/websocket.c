/* SPDX-License-Identifier: MIT */
/* WebSocket frames: see websocket.h. */
#include "server/http/websocket.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <string.h>

#include "base/encode.h"

#define GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11" /* of the protocol */
#define KEY_LENGTH 24
#define KEY_BYTES 16
#define SHA1_BYTES 20
#define CONTROL_MAX 125

enum { CONTINUATION = 0, TEXT = 1, BINARY = 2, CLOSE = 8, PING = 9, PONG = 10 };

/* ---- the handshake ---- */

bool websocket_accept(const char *key, char ret_accept[WEBSOCKET_ACCEPT_LENGTH + 1])
{
    char decoded[KEY_LENGTH / 4 * 3], joined[KEY_LENGTH + sizeof GUID];
    unsigned char digest[SHA1_BYTES];
    size_t length;
    if (strlen(key) != KEY_LENGTH || !base64_decode(key, KEY_LENGTH, decoded, &length) ||
        length != KEY_BYTES)
        return false;
    (void)snprintf(joined, sizeof joined, "%s%s", key, GUID);
    if (gnutls_hash_fast(GNUTLS_DIG_SHA1, joined, strlen(joined), digest) < 0)
        return false;
    autostr struct str text = {0};
    base64_append(&text, digest, sizeof digest);
    if (text.failed || text.length != WEBSOCKET_ACCEPT_LENGTH)
        return false;
    memcpy(ret_accept, text.data, WEBSOCKET_ACCEPT_LENGTH + 1);
    return true;
}

/* ---- reading ---- */

void websocket_done(struct websocket *websocket)
{
    str_done(&websocket->message);
    str_done(&websocket->control);
}

static enum websocket_event refuse(struct websocket *websocket, enum websocket_code code)
{
    websocket->code = code;
    return WEBSOCKET_INVALID;
}

static bool is_control(unsigned opcode)
{
    return opcode >= CLOSE;
}

/* The bytes of the length and the mask after the first two bytes. */
static size_t head_length(const struct websocket *websocket)
{
    unsigned length = websocket->head[1] & 0x7f;
    return 2 + (length == 126 ? 2U : length == 127 ? 8U : 0U) + 4;
}

static uint64_t payload_length(const struct websocket *websocket)
{
    unsigned length = websocket->head[1] & 0x7f;
    size_t bytes = length == 126 ? 2 : length == 127 ? 8 : 0;
    uint64_t value = 0;
    if (bytes == 0)
        return length;
    for (size_t i = 0; i < bytes; i++)
        value = value << 8 | websocket->head[2 + i];
    return value;
}

/* A complete head: what the frame is, and whether it may come now. */
static enum websocket_event begin_frame(struct websocket *websocket)
{
    unsigned first = websocket->head[0], opcode = first & 0x0f;
    websocket->is_final = first & 0x80;
    websocket->opcode = opcode;
    websocket->left = payload_length(websocket);
    websocket->masked = 0;
    websocket->in_payload = true;
    if (is_control(opcode)) {
        bool known = opcode == CLOSE || opcode == PING || opcode == PONG;
        if (!known || !websocket->is_final || websocket->left > CONTROL_MAX)
            return refuse(websocket, WEBSOCKET_PROTOCOL_ERROR);
        str_done(&websocket->control);
        return WEBSOCKET_MORE;
    }
    bool continues = opcode == CONTINUATION;
    if (opcode > BINARY || continues != (websocket->first_opcode != 0))
        return refuse(websocket, WEBSOCKET_PROTOCOL_ERROR);
    if (!continues) {
        websocket->first_opcode = opcode;
        str_done(&websocket->message);
    }
    if (websocket->left > websocket->most - websocket->message.length)
        return refuse(websocket, WEBSOCKET_TOO_LARGE);
    return WEBSOCKET_MORE;
}

static enum websocket_event take_head(struct websocket *websocket, const unsigned char *bytes,
                                      size_t length, size_t *used)
{
    while (*used < length && websocket->head_length < websocket->head_needed) {
        websocket->head[websocket->head_length++] = bytes[(*used)++];
        if (websocket->head_length != 2)
            continue;
        /* No extension was agreed on, and a client has to mask. */
        if (websocket->head[0] & 0x70 || !(websocket->head[1] & 0x80))
            return refuse(websocket, WEBSOCKET_PROTOCOL_ERROR);
        websocket->head_needed = head_length(websocket);
    }
    return websocket->head_length < websocket->head_needed ? WEBSOCKET_MORE
                                                           : begin_frame(websocket);
}

static void take_payload(struct websocket *websocket, const unsigned char *bytes, size_t length,
                         size_t *used)
{
    struct str *to = is_control(websocket->opcode) ? &websocket->control : &websocket->message;
    const unsigned char *mask = websocket->head + websocket->head_needed - 4;
    size_t count = length - *used < websocket->left ? length - *used : (size_t)websocket->left;
    size_t begin = to->length;
    str_append_bytes(to, (const char *)bytes + *used, count);
    for (size_t i = 0; !to->failed && i < count; i++)
        to->data[begin + i] =
            (char)((unsigned char)to->data[begin + i] ^ mask[(websocket->masked + i) % 4]);
    websocket->masked += count;
    websocket->left -= count;
    *used += count;
}

static bool code_is_allowed(unsigned code)
{
    return (code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006) ||
           (code >= 3000 && code <= 4999);
}

static enum websocket_event take_close(struct websocket *websocket)
{
    const struct str *control = &websocket->control;
    const unsigned char *bytes = (const unsigned char *)control->data;
    if (control->length == 0) {
        websocket->code = WEBSOCKET_NO_CODE;
        return WEBSOCKET_CLOSED;
    }
    unsigned code = control->length >= 2 ? (unsigned)bytes[0] << 8 | bytes[1] : 0;
    if (!code_is_allowed(code))
        return refuse(websocket, WEBSOCKET_PROTOCOL_ERROR);
    if (!utf8_is_valid(bytes + 2, control->length - 2))
        return refuse(websocket, WEBSOCKET_NOT_TEXT);
    websocket->code = (enum websocket_code)code;
    return WEBSOCKET_CLOSED;
}

static enum websocket_event end_frame(struct websocket *websocket)
{
    websocket->head_length = 0;
    websocket->in_payload = false;
    if (websocket->message.failed || websocket->control.failed)
        return refuse(websocket, WEBSOCKET_TOO_LARGE);
    if (websocket->opcode == CLOSE)
        return take_close(websocket);
    if (is_control(websocket->opcode))
        return websocket->opcode == PING ? WEBSOCKET_PING : WEBSOCKET_MORE;
    if (!websocket->is_final)
        return WEBSOCKET_MORE;
    bool text = websocket->first_opcode == TEXT;
    websocket->first_opcode = 0;
    if (text && !utf8_is_valid(websocket->message.data, websocket->message.length))
        return refuse(websocket, WEBSOCKET_NOT_TEXT);
    return text ? WEBSOCKET_TEXT : WEBSOCKET_BINARY;
}

enum websocket_event websocket_take(struct websocket *websocket, const void *bytes, size_t length,
                                    size_t *ret_used)
{
    enum websocket_event event = WEBSOCKET_MORE;
    *ret_used = 0;
    do {
        if (!websocket->in_payload) {
            if (websocket->head_length == 0)
                websocket->head_needed = 2;
            event = take_head(websocket, bytes, length, ret_used);
        }
        if (event == WEBSOCKET_MORE && websocket->in_payload) {
            take_payload(websocket, bytes, length, ret_used);
            if (websocket->left == 0)
                event = end_frame(websocket);
        }
    } while (event == WEBSOCKET_MORE && *ret_used < length);
    return event;
}

/* ---- writing ---- */

static void write_frame(struct str *out, unsigned opcode, const void *bytes, size_t length)
{
    str_append_char(out, (char)(0x80 | opcode));
    size_t more = length < 126 ? 0 : length <= UINT16_MAX ? 2 : 8;
    str_append_char(out, (char)(more == 0 ? length : more == 2 ? 126 : 127));
    for (size_t i = more; i > 0; i--)
        str_append_char(out, (char)((uint64_t)length >> (8 * (i - 1)) & 0xff));
    str_append_bytes(out, bytes, length);
}

void websocket_write(struct str *out, enum websocket_opcode opcode, const void *bytes,
                     size_t length)
{
    write_frame(out, opcode, bytes, length);
}

void websocket_write_close(struct str *out, unsigned code, const char *reason)
{
    char bytes[CONTROL_MAX];
    size_t length = strnlen(reason, sizeof bytes - 2);
    while (length > 0 && !utf8_is_valid(reason, length))
        length--;
    bytes[0] = (char)(code >> 8);
    bytes[1] = (char)(code & 0xff);
    memcpy(bytes + 2, reason, length);
    write_frame(out, CLOSE, bytes, length + 2);
}
