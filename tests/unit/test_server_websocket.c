/* SPDX-License-Identifier: MIT */
/* WebSocket: the handshake and frames, whole, in pieces and wrong. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "server/http/websocket.h"
#include "tap.h"

#define MOST 70000

/* A frame as a client sends it. */
static void frame(struct str *out, unsigned first, const char *bytes, size_t length)
{
    static const unsigned char mask[] = {0x12, 0x00, 0xff, 0x80};
    autostr struct str plain = {0};
    websocket_write(&plain, WEBSOCKET_IS_TEXT, bytes, length);
    size_t head = plain.length - length;
    plain.data[0] = (char)first;
    plain.data[1] = (char)((unsigned char)plain.data[1] | 0x80);
    str_append_bytes(out, plain.data, head);
    str_append_bytes(out, (const char *)mask, sizeof mask);
    for (size_t i = 0; i < length; i++)
        str_append_char(out, (char)((unsigned char)bytes[i] ^ mask[i % 4]));
}

/* Takes all bytes in pieces of a size; returns the last event but MORE, after `count` of them. */
static enum websocket_event feed(struct websocket *websocket, const struct str *bytes, size_t piece,
                                 size_t *ret_count)
{
    enum websocket_event last = WEBSOCKET_MORE;
    *ret_count = 0;
    for (size_t at = 0; at < bytes->length;) {
        size_t length = bytes->length - at < piece ? bytes->length - at : piece, used;
        enum websocket_event event = websocket_take(websocket, bytes->data + at, length, &used);
        at += used;
        if (event != WEBSOCKET_MORE) {
            last = event;
            ++*ret_count;
        }
        if (event == WEBSOCKET_INVALID)
            break;
    }
    return last;
}

static void check_handshake(void)
{
    char accept[WEBSOCKET_ACCEPT_LENGTH + 1];
    tap_ok(websocket_accept("dGhlIHNhbXBsZSBub25jZQ==", accept), "a key is accepted");
    tap_is_str(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "with the answer of the standard's example");
    tap_ok(!websocket_accept("dGhlIHNhbXBsZSBub25jZQ=", accept), "one that is too short is not");
    tap_ok(!websocket_accept("dGhlIHNhbXBsZSBub25jZQ!=", accept), "nor one that is no base64");
    tap_ok(!websocket_accept("AAAAAAAAAAAAAAAAAAAAAAA=", accept), "nor another length of bytes");
}

static void check_messages(void)
{
    static const size_t lengths[] = {0, 1, 125, 126, 127, 65535, 65536, MOST};
    autofree char *text = malloc(MOST);
    memset(text, 'x', MOST);
    for (size_t i = 0; i < ARRAY_LENGTH(lengths); i++) {
        for (size_t piece = 1; piece < 100000; piece *= 13) {
            struct websocket websocket = {.most = MOST};
            autostr struct str bytes = {0};
            size_t count;
            frame(&bytes, 0x81, text, lengths[i]);
            enum websocket_event event = feed(&websocket, &bytes, piece, &count);
            tap_ok(event == WEBSOCKET_TEXT && count == 1 &&
                       websocket.message.length == lengths[i] &&
                       (lengths[i] == 0 || memcmp(websocket.message.data, text, lengths[i]) == 0),
                   "%zu bytes in pieces of %zu", lengths[i], piece);
            websocket_done(&websocket);
        }
    }
}

static void check_fragments(void)
{
    struct websocket websocket = {.most = 10};
    autostr struct str bytes = {0};
    size_t count;
    frame(&bytes, 0x01, "one", 3);
    frame(&bytes, 0x89, "p", 1); /* a ping may come between */
    frame(&bytes, 0x00, "two", 3);
    frame(&bytes, 0x80, "\xc3\xa9", 2);
    tap_is_int(feed(&websocket, &bytes, 5, &count), WEBSOCKET_TEXT, "parts are joined");
    tap_is_int(count, 2, "with the ping that came between");
    tap_is_str(websocket.message.data, "onetwo\xc3\xa9", "in order");
    tap_is_str(websocket.control.data, "p", "the ping's bytes are there");
    str_done(&bytes);
    frame(&bytes, 0x82, "\xff", 1);
    tap_is_int(feed(&websocket, &bytes, 5, &count), WEBSOCKET_BINARY, "then another message");
    str_done(&bytes);
    frame(&bytes, 0x8a, "", 0);
    tap_is_int(feed(&websocket, &bytes, 5, &count), WEBSOCKET_MORE, "a pong is no event");
    str_done(&bytes);
    frame(&bytes, 0x88, "\x0f\xa3gone", 6);
    tap_is_int(feed(&websocket, &bytes, 1, &count), WEBSOCKET_CLOSED, "the client closes");
    tap_is_int(websocket.code, 4003, "with its code");
    str_done(&bytes);
    frame(&bytes, 0x88, "", 0);
    tap_is_int(feed(&websocket, &bytes, 1, &count), WEBSOCKET_CLOSED, "or without one");
    tap_is_int(websocket.code, WEBSOCKET_NO_CODE, "which is told");
    websocket_done(&websocket);
}

static void check_refused(const char *bytes, size_t length, unsigned code, const char *why)
{
    struct websocket websocket = {.most = 10};
    autostr struct str text = {0};
    size_t count;
    str_append_bytes(&text, bytes, length);
    tap_is_int(feed(&websocket, &text, 3, &count), WEBSOCKET_INVALID, "refused: %s", why);
    tap_is_int(websocket.code, code, "with its code");
    websocket_done(&websocket);
}

static void check_frame_refused(unsigned first, const char *bytes, size_t length, unsigned code,
                                const char *why)
{
    autostr struct str text = {0};
    frame(&text, first, bytes, length);
    check_refused(text.data, text.length, code, why);
}

static void check_wrong(void)
{
    check_refused("\x81\x01x", 3, 1002, "no mask");
    check_frame_refused(0xc1, "x", 1, 1002, "an extension");
    check_frame_refused(0x83, "x", 1, 1002, "an unknown opcode");
    check_frame_refused(0x8b, "x", 1, 1002, "an unknown control opcode");
    check_frame_refused(0x80, "x", 1, 1002, "a continuation of nothing");
    check_frame_refused(0x09, "x", 1, 1002, "a ping in parts");
    check_frame_refused(0x81, "\xff", 1, 1007, "text that is no UTF-8");
    check_frame_refused(0x81, "12345678901", 11, 1009, "a message that is too large");
    check_frame_refused(0x88, "\x03", 1, 1002, "half a code");
    check_frame_refused(0x88, "\x03\xed", 2, 1002, "a code that is never sent");
    check_frame_refused(0x88, "\x03\xe8\xff", 3, 1007, "a reason that is no UTF-8");
    check_refused("\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0", 14, 1009,
                  "a length without end");
    check_refused("\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0", 14, 1009, "another one");
    check_refused("\x89\xfe\0\x7e\0\0\0\0", 8, 1002, "a long ping");
    autostr struct str twice = {0};
    frame(&twice, 0x01, "a", 1);
    frame(&twice, 0x01, "b", 1);
    check_refused(twice.data, twice.length, 1002, "a message in a message");
    str_done(&twice);
    frame(&twice, 0x01, "123456", 6);
    frame(&twice, 0x80, "123456", 6);
    check_refused(twice.data, twice.length, 1009, "parts that are too large together");
}

static void check_close(void)
{
    autostr struct str out = {0};
    char reason[200];
    memset(reason, 'r', sizeof reason - 1);
    reason[sizeof reason - 1] = '\0';
    reason[122] = '\xc3'; /* the cut is not within a character */
    reason[123] = '\xa9';
    websocket_write_close(&out, 4999, reason);
    tap_is_int(out.length, 2 + 2 + 122, "a long reason is cut");
    tap_ok((unsigned char)out.data[0] == 0x88 && (unsigned char)out.data[2] == 0x13 &&
               (unsigned char)out.data[3] == 0x87,
           "behind the code");
}

int main(void)
{
    check_handshake();
    check_messages();
    check_fragments();
    check_wrong();
    check_close();
    return tap_done();
}
