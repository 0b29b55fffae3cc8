/* SPDX-License-Identifier: MIT */
/* The first message of TLS, whole, in pieces, and wrong. */
#include "net/client_hello.h"

#include "base/cleanup.h"
#include "tap.h"

/* What OpenSSL 3 sends for www.example.com. */
static const uint8_t openssl_hello[] = {
    0x16, 0x03, 0x01, 0x01, 0x30, 0x01, 0x00, 0x01, 0x2c, 0x03, 0x03, 0x4d, 0x61, 0xaa, 0xb8, 0x44,
    0xbf, 0x00, 0xeb, 0x8d, 0x27, 0x83, 0x5f, 0x36, 0x5d, 0x77, 0xdf, 0xf3, 0x7b, 0xc6, 0x19, 0xc7,
    0x72, 0x1d, 0xa6, 0xa9, 0xfb, 0xad, 0x4f, 0x04, 0xad, 0x44, 0x98, 0x20, 0x2c, 0x70, 0x5c, 0xcd,
    0x33, 0x12, 0xeb, 0x8d, 0xb6, 0x81, 0xed, 0xe9, 0x80, 0xc1, 0x30, 0x16, 0x38, 0xd8, 0xd1, 0xf6,
    0xe9, 0x5a, 0x10, 0xb8, 0xc6, 0x4e, 0x48, 0x99, 0x59, 0x0d, 0x7d, 0xdb, 0x00, 0x24, 0x13, 0x02,
    0x13, 0x03, 0x13, 0x01, 0xc0, 0x2c, 0xc0, 0x30, 0xc0, 0x2b, 0xc0, 0x2f, 0xcc, 0xa9, 0xcc, 0xa8,
    0xc0, 0x24, 0xc0, 0x28, 0xc0, 0x23, 0xc0, 0x27, 0x00, 0x9f, 0x00, 0x9e, 0x00, 0x6b, 0x00, 0x67,
    0x00, 0xff, 0x01, 0x00, 0x00, 0xbf, 0x00, 0x00, 0x00, 0x14, 0x00, 0x12, 0x00, 0x00, 0x0f, 0x77,
    0x77, 0x77, 0x2e, 0x65, 0x78, 0x61, 0x6d, 0x70, 0x6c, 0x65, 0x2e, 0x63, 0x6f, 0x6d, 0x00, 0x0b,
    0x00, 0x04, 0x03, 0x00, 0x01, 0x02, 0x00, 0x0a, 0x00, 0x16, 0x00, 0x14, 0x00, 0x1d, 0x00, 0x17,
    0x00, 0x1e, 0x00, 0x19, 0x00, 0x18, 0x01, 0x00, 0x01, 0x01, 0x01, 0x02, 0x01, 0x03, 0x01, 0x04,
    0x00, 0x23, 0x00, 0x00, 0x00, 0x10, 0x00, 0x0e, 0x00, 0x0c, 0x02, 0x68, 0x32, 0x08, 0x68, 0x74,
    0x74, 0x70, 0x2f, 0x31, 0x2e, 0x31, 0x00, 0x16, 0x00, 0x00, 0x00, 0x17, 0x00, 0x00, 0x00, 0x0d,
    0x00, 0x2a, 0x00, 0x28, 0x04, 0x03, 0x05, 0x03, 0x06, 0x03, 0x08, 0x07, 0x08, 0x08, 0x08, 0x09,
    0x08, 0x0a, 0x08, 0x0b, 0x08, 0x04, 0x08, 0x05, 0x08, 0x06, 0x04, 0x01, 0x05, 0x01, 0x06, 0x01,
    0x03, 0x03, 0x03, 0x01, 0x03, 0x02, 0x04, 0x02, 0x05, 0x02, 0x06, 0x02, 0x00, 0x2b, 0x00, 0x05,
    0x04, 0x03, 0x04, 0x03, 0x03, 0x00, 0x2d, 0x00, 0x02, 0x01, 0x01, 0x00, 0x33, 0x00, 0x26, 0x00,
    0x24, 0x00, 0x1d, 0x00, 0x20, 0x59, 0x31, 0xb1, 0x0d, 0xae, 0xed, 0x98, 0xdd, 0x9b, 0xac, 0xf4,
    0xa0, 0xaf, 0x32, 0x38, 0xb0, 0x6e, 0x04, 0xba, 0x34, 0x3a, 0x7d, 0x80, 0xb8, 0x9b, 0x32, 0x00,
    0x3b, 0xd8, 0x79, 0xc3, 0x3d,
};

/* A hello in the making: the message without its header, then records. */
struct maker {
    uint8_t bytes[2 * CLIENT_HELLO_BYTES_MAX];
    size_t length;
};

static void put(struct maker *maker, const void *bytes, size_t length)
{
    memcpy(maker->bytes + maker->length, bytes, length);
    maker->length += length;
}

static void put8(struct maker *maker, unsigned value)
{
    maker->bytes[maker->length++] = (uint8_t)value;
}

static void put16(struct maker *maker, unsigned value)
{
    put8(maker, value >> 8);
    put8(maker, value & 0xff);
}

static void put_extension(struct maker *maker, unsigned type, const void *body, size_t length)
{
    put16(maker, type);
    put16(maker, (unsigned)length);
    put(maker, body, length);
}

static void put_name(struct maker *maker, const char *name, size_t length)
{
    put16(maker, 0);
    put16(maker, (unsigned)length + 5);
    put16(maker, (unsigned)length + 3);
    put8(maker, 0);
    put16(maker, (unsigned)length);
    put(maker, name, length);
}

/* Everything before the extensions. */
static void begin(struct maker *maker)
{
    static const uint8_t zeros[32] = {0};
    maker->length = 0;
    put16(maker, 0x0303);
    put(maker, zeros, 32);
    put8(maker, 32);
    put(maker, zeros, 32);
    put16(maker, 4);
    put(maker, "\x13\x01\x13\x02", 4);
    put(maker, "\x01\x00", 2);
}

/* The message with these extensions, in records of `part` bytes. */
static void finish(struct maker *records, const struct maker *extensions, size_t part)
{
    struct maker message;
    begin(&message);
    if (extensions) {
        put16(&message, (unsigned)extensions->length);
        put(&message, extensions->bytes, extensions->length);
    }
    struct maker whole = {.length = 0};
    put8(&whole, 1);
    put8(&whole, (unsigned)(message.length >> 16));
    put16(&whole, message.length & 0xffff);
    put(&whole, message.bytes, message.length);
    records->length = 0;
    for (size_t at = 0; at < whole.length; at += part) {
        size_t length = whole.length - at < part ? whole.length - at : part;
        put(records, "\x16\x03\x01", 3);
        put16(records, (unsigned)length);
        put(records, whole.bytes + at, length);
    }
}

static const char *state_name(enum client_hello_state state)
{
    static const char *const names[] = {"need more", "done", "not TLS", "bad"};
    return names[state];
}

/* What is said about a copy of just these bytes, whose end a sanitizer sees. */
static enum client_hello_state look(const void *bytes, size_t length, struct client_hello *hello)
{
    autofree uint8_t *copy = malloc(length ? length : 1);
    if (!copy)
        tap_bail("out of memory");
    memcpy(copy, bytes, length);
    return client_hello_read(copy, length, hello);
}

static void is_state(const void *bytes, size_t length, enum client_hello_state wanted,
                     const char *what)
{
    struct client_hello hello;
    enum client_hello_state state = look(bytes, length, &hello);
    tap_is_str(state_name(state), state_name(wanted), "%s: %s", what, state_name(wanted));
    tap_is_int(hello.reason != NULL, wanted == CLIENT_HELLO_BAD, "with a reason if it is bad");
}

static void test_whole(void)
{
    struct client_hello hello;
    tap_is_int(look(openssl_hello, sizeof openssl_hello, &hello), CLIENT_HELLO_DONE,
               "OpenSSL's hello is one");
    tap_is_str(hello.name, "www.example.com", "with its name");
    tap_ok(hello.has_name && !hello.ech, "and without ECH");
    size_t early = 0;
    for (size_t length = 0; length < sizeof openssl_hello; length++)
        early += look(openssl_hello, length, &hello) != CLIENT_HELLO_NEED_MORE;
    tap_is_int(early, 0, "with any byte missing, more is needed");
    uint8_t more[sizeof openssl_hello + 8];
    memcpy(more, openssl_hello, sizeof openssl_hello);
    memset(more + sizeof openssl_hello, 0x17, 8);
    tap_is_int(look(more, sizeof more, &hello), CLIENT_HELLO_DONE,
               "what the client sends behind it does not matter");
}

static void test_names(void)
{
    static const struct {
        const char *name;
        size_t length;
        enum client_hello_state state;
        const char *read;
    } rows[] = {
        {"example.com", 11, CLIENT_HELLO_DONE, "example.com"},
        {"EXAMPLE.Com", 11, CLIENT_HELLO_DONE, "example.com"},
        {"example.com.", 12, CLIENT_HELLO_DONE, "example.com"},
        {"", 0, CLIENT_HELLO_BAD, NULL},
        {"a\0b", 3, CLIENT_HELLO_BAD, NULL},
        {"example.com\0.evil.example", 25, CLIENT_HELLO_BAD, NULL},
        {"example.com evil.example", 24, CLIENT_HELLO_BAD, NULL},
        {"127.0.0.1", 9, CLIENT_HELLO_BAD, NULL},
        {"::1", 3, CLIENT_HELLO_BAD, NULL},
        {"b\xc3\xbc.example", 11, CLIENT_HELLO_BAD, NULL},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct maker extensions = {.length = 0}, records;
        struct client_hello hello;
        put_name(&extensions, rows[i].name, rows[i].length);
        finish(&records, &extensions, SIZE_MAX / 2);
        tap_is_int(look(records.bytes, records.length, &hello), rows[i].state, "name '%s': %s",
                   rows[i].name, state_name(rows[i].state));
        if (rows[i].read)
            tap_is_str(hello.name, rows[i].read, "and is read");
    }
}

static void test_extensions(void)
{
    struct maker extensions = {.length = 0}, records;
    struct client_hello hello;
    put_extension(&extensions, 0x1a1a, "", 0);
    finish(&records, &extensions, 16384);
    tap_is_int(look(records.bytes, records.length, &hello), CLIENT_HELLO_DONE,
               "a hello without a name is one");
    tap_ok(!hello.has_name && !hello.ech, "and has none");
    finish(&records, NULL, 16384);
    is_state(records.bytes, records.length, CLIENT_HELLO_DONE, "a hello without extensions");
    put_name(&extensions, "a.example", 9);
    put_extension(&extensions, 0xfe0d, "\x00grease", 7);
    finish(&records, &extensions, 16384);
    tap_is_int(look(records.bytes, records.length, &hello), CLIENT_HELLO_DONE,
               "ECH, or GREASE of it, is passed");
    tap_ok(hello.ech && strcmp(hello.name, "a.example") == 0, "with the outer name");
    put_name(&extensions, "b.example", 9);
    finish(&records, &extensions, 16384);
    is_state(records.bytes, records.length, CLIENT_HELLO_BAD, "two names");
}

static void test_bad_names(void)
{
    static const struct {
        const char *what, *body;
        size_t length;
    } rows[] = {
        {"an empty server_name", "", 0},
        {"an empty list", "\0\0", 2},
        {"a list of two", "\0\x0a\0\0\x02hi\0\0\x02ho", 12},
        {"a list longer than it is", "\0\x06\0\0\x02hi", 7},
        {"a list shorter than it is", "\0\x04\0\0\x02hi", 7},
        {"a name longer than the list", "\0\x05\0\0\x03hi", 7},
        {"a name of another type", "\0\x05\x01\0\x02hi", 7},
        {"something behind the list", "\0\x05\0\0\x02hi!", 8},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct maker extensions = {.length = 0}, records;
        put_extension(&extensions, 0, rows[i].body, rows[i].length);
        finish(&records, &extensions, 16384);
        is_state(records.bytes, records.length, CLIENT_HELLO_BAD, rows[i].what);
    }
    struct maker extensions = {.length = 0}, records;
    put_extension(&extensions, 0, "\0\x05\0\0\x02hi", 7);
    finish(&records, &extensions, 16384);
    is_state(records.bytes, records.length, CLIENT_HELLO_DONE, "the same without a fault");
}

static void test_bad_lengths(void)
{
    struct maker extensions = {.length = 0}, good, records;
    put_name(&extensions, "a.example", 9);
    finish(&good, &extensions, 16384);
    static const struct {
        const char *what;
        size_t at;
        int change;
    } rows[] = {
        {"another message", 5, 1},       {"a version of old", 9, -1},
        {"a long session id", 43, 1},    {"an odd number of ciphers", 77, 1},
        {"no ciphers", 77, -4},          {"more compressions", 82, 100},
        {"no compressions", 82, -1},     {"longer extensions", 85, 1},
        {"shorter extensions", 85, -1},  {"a longer extension", 89, 1},
        {"a shorter extension", 89, -1},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        records = good;
        records.bytes[rows[i].at] = (uint8_t)(records.bytes[rows[i].at] + rows[i].change);
        is_state(records.bytes, records.length, CLIENT_HELLO_BAD, rows[i].what);
    }
    is_state(good.bytes, good.length, CLIENT_HELLO_DONE, "the same without a fault");
    records = good;
    records.bytes[8]--;
    is_state(records.bytes, records.length, CLIENT_HELLO_BAD, "something behind it in its record");
    records.bytes[8] += 2;
    is_state(records.bytes, records.length, CLIENT_HELLO_NEED_MORE, "a byte more to come");
}

static void test_records(void)
{
    struct maker extensions = {.length = 0}, records;
    struct client_hello hello;
    put_name(&extensions, "a.example", 9);
    for (size_t part = 4; part < 64; part++) {
        finish(&records, &extensions, part);
        if (look(records.bytes, records.length, &hello) != CLIENT_HELLO_DONE)
            tap_fail("in records of %zu bytes", part);
        for (size_t length = 0; length < records.length; length++)
            if (look(records.bytes, length, &hello) != CLIENT_HELLO_NEED_MORE)
                tap_fail("in records of %zu bytes, %zu of them there", part, length);
    }
    tap_pass("records of any length, at any length, say the same");
    finish(&records, &extensions, 1);
    is_state(records.bytes, records.length, CLIENT_HELLO_BAD, "a record for each byte");
    finish(&records, &extensions, 40);
    records.bytes[45] = 21;
    is_state(records.bytes, records.length, CLIENT_HELLO_BAD, "an alert in between");
    finish(&records, &extensions, 40);
    records.bytes[46] = 2;
    is_state(records.bytes, records.length, CLIENT_HELLO_BAD, "another protocol in between");
    is_state("\x16\x03\x01\x00\x00", 5, CLIENT_HELLO_BAD, "an empty record");
    is_state("\x16\x03\x01\x40\x01", 5, CLIENT_HELLO_BAD, "a record too long");
    is_state("\x16\x03\x01\x40\x00", 5, CLIENT_HELLO_NEED_MORE, "one just long enough");
}

/* A message of this many bytes in all, of which most are one extension. */
static void make_long(struct maker *records, size_t length, size_t part)
{
    static const uint8_t padding[CLIENT_HELLO_MESSAGE_MAX] = {0};
    struct maker extensions = {.length = 0}, empty;
    put_name(&extensions, "a.example", 9);
    finish(&empty, &extensions, SIZE_MAX / 2);
    put_extension(&extensions, 21, padding, length - (empty.length - 5) - 4);
    finish(records, &extensions, part);
}

static void test_limits(void)
{
    struct maker records;
    make_long(&records, CLIENT_HELLO_MESSAGE_MAX, 16384);
    is_state(records.bytes, records.length, CLIENT_HELLO_DONE, "the longest hello");
    make_long(&records, CLIENT_HELLO_MESSAGE_MAX, 512);
    tap_is_int(records.length, CLIENT_HELLO_BYTES_MAX, "in as many records as there may be");
    is_state(records.bytes, records.length, CLIENT_HELLO_DONE, "it is still one");
    is_state(records.bytes, records.length - 1, CLIENT_HELLO_NEED_MORE, "but not sooner");
    make_long(&records, CLIENT_HELLO_MESSAGE_MAX, 511);
    is_state(records.bytes, records.length, CLIENT_HELLO_BAD, "in one record more");
    make_long(&records, CLIENT_HELLO_MESSAGE_MAX + 1, 16384);
    is_state(records.bytes, 9, CLIENT_HELLO_BAD, "one byte more, and its first nine say so");
}

static void test_not_tls(void)
{
    is_state("", 0, CLIENT_HELLO_NEED_MORE, "nothing");
    is_state("\x16", 1, CLIENT_HELLO_NEED_MORE, "a first byte that may be");
    is_state("G", 1, CLIENT_HELLO_NOT_TLS, "a first byte that is not");
    is_state("GET / HTTP/1.1\r\n", 16, CLIENT_HELLO_NOT_TLS, "HTTP");
    is_state("SSH-2.0-x\r\n", 11, CLIENT_HELLO_NOT_TLS, "SSH");
    is_state("\x80\x2e\x01\x03\x01", 5, CLIENT_HELLO_NOT_TLS, "SSL 2");
    is_state("\x16\xfe\xff", 3, CLIENT_HELLO_NOT_TLS, "DTLS");
    uint8_t alert[CLIENT_HELLO_ALERT_SIZE];
    client_hello_alert(CLIENT_HELLO_ALERT_UNRECOGNIZED_NAME, alert);
    tap_ok(memcmp(alert, "\x15\x03\x03\x00\x02\x02\x70", 7) == 0, "an alert is a fatal one");
}

int main(void)
{
    test_whole();
    test_names();
    test_extensions();
    test_bad_names();
    test_bad_lengths();
    test_records();
    test_limits();
    test_not_tls();
    return tap_done();
}
