/* SPDX-License-Identifier: MIT */
/* Reads the server name from the first message of TLS (RFC 8446; RFC 6066 for the name).
 *
 * The message may be split into several records. It is reassembled, and parsed when it is
 * complete. */
#include "net/client_hello.h"

#include <string.h>

#define RECORD_HEADER 5
#define RECORD_MAX 16384
#define RECORD_HANDSHAKE 22
#define MESSAGE_HEADER 4
#define MESSAGE_CLIENT_HELLO 1
#define VERSION_MAJOR 3
#define RANDOM_SIZE 32
#define SESSION_ID_MAX 32
#define EXTENSION_SERVER_NAME 0
#define EXTENSION_ECH 0xfe0d
#define EXTENSION_ESNI 0xffce /* the predecessor of ECH */
#define NAME_TYPE_HOST 0

/* ---- Parsing a complete message ----------------------------------------------------------- */

struct reader {
    const uint8_t *at;
    size_t left;
};

static unsigned get16(const uint8_t *bytes)
{
    return (unsigned)bytes[0] << 8 | bytes[1];
}

static bool take(struct reader *reader, size_t length, struct reader *ret_part)
{
    if (length > reader->left)
        return false;
    *ret_part = (struct reader){.at = reader->at, .left = length};
    reader->at += length;
    reader->left -= length;
    return true;
}

static bool take16(struct reader *reader, unsigned *ret_value)
{
    struct reader part;
    if (!take(reader, 2, &part))
        return false;
    *ret_value = get16(part.at);
    return true;
}

/* Takes a part that is preceded by its length, in one byte or two. */
static bool take_vector8(struct reader *reader, struct reader *ret_part)
{
    struct reader length;
    return take(reader, 1, &length) && take(reader, *length.at, ret_part);
}

static bool take_vector16(struct reader *reader, struct reader *ret_part)
{
    unsigned length;
    return take16(reader, &length) && take(reader, length, ret_part);
}

/* Exactly one name is allowed: with two, the server could choose either. */
static const char *read_server_name(struct reader extension, struct client_hello *hello)
{
    struct reader list, type, name;
    if (hello->has_name)
        return "the server is named twice";
    if (!take_vector16(&extension, &list) || extension.left > 0 || !take(&list, 1, &type) ||
        !take_vector16(&list, &name) || list.left > 0 || *type.at != NAME_TYPE_HOST)
        return "the server's name is malformed";
    if (!net_name_read((const char *)name.at, name.left, hello->name))
        return "the server's name is not a host name";
    hello->has_name = true;
    return NULL;
}

static const char *read_extensions(struct reader extensions, struct client_hello *hello)
{
    while (extensions.left > 0) {
        unsigned type;
        struct reader body;
        if (!take16(&extensions, &type) || !take_vector16(&extensions, &body))
            return "an extension is cut short";
        if (type == EXTENSION_ECH || type == EXTENSION_ESNI)
            hello->ech = true;
        if (type != EXTENSION_SERVER_NAME)
            continue;
        const char *reason = read_server_name(body, hello);
        if (reason)
            return reason;
    }
    return NULL;
}

/* NULL, or the reason why it is bad. */
static const char *read_message(struct reader message, struct client_hello *hello)
{
    struct reader skipped, session, ciphers, compressions, extensions;
    if (!take(&message, 2 + RANDOM_SIZE, &skipped) || !take_vector8(&message, &session) ||
        !take_vector16(&message, &ciphers) || !take_vector8(&message, &compressions))
        return "the hello is cut short";
    if (skipped.at[0] != VERSION_MAJOR || session.left > SESSION_ID_MAX || ciphers.left == 0 ||
        ciphers.left % 2 != 0 || compressions.left == 0)
        return "the hello is malformed";
    if (message.left == 0)
        return NULL; /* no extensions, as in old versions */
    if (!take_vector16(&message, &extensions) || message.left > 0)
        return "the extensions are not as long as they say";
    return read_extensions(extensions, hello);
}

/* ---- Reassembling ------------------------------------------------------------------------- */

/* The message so far. */
struct gathered {
    size_t have;
    size_t length; /* of the whole message with its header; 0: unknown */
    uint8_t message[CLIENT_HELLO_MESSAGE_MAX];
};

static const char *gather(struct gathered *gathered, const uint8_t *part, size_t length)
{
    const uint8_t *header = gathered->message;
    if (length > sizeof gathered->message - gathered->have)
        return "the hello is too long";
    memcpy(gathered->message + gathered->have, part, length);
    gathered->have += length;
    if (gathered->have > 0 && header[0] != MESSAGE_CLIENT_HELLO)
        return "it begins with another message than a hello";
    if (gathered->have < MESSAGE_HEADER)
        return NULL;
    gathered->length =
        MESSAGE_HEADER + ((size_t)header[1] << 16 | (size_t)header[2] << 8 | header[3]);
    return gathered->length > sizeof gathered->message ? "the hello is too long" : NULL;
}

/* Checks the header of a record, as far as it is present. */
static const char *check_record(const uint8_t *bytes, size_t length)
{
    if (bytes[0] != RECORD_HANDSHAKE || (length > 1 && bytes[1] != VERSION_MAJOR))
        return "something else is between the parts of the hello";
    if (length < RECORD_HEADER)
        return NULL;
    size_t payload = get16(bytes + 3);
    return payload == 0 || payload > RECORD_MAX ? "a record is empty or too long" : NULL;
}

/* Iterates over the records; NULL, or the reason why they are bad. */
static const char *walk(const uint8_t *bytes, size_t length, struct gathered *gathered)
{
    size_t at = 0;
    for (unsigned records = 0; at < length; records++) {
        if (records == CLIENT_HELLO_RECORDS_MAX)
            return "the hello is in too many records";
        const char *reason = check_record(bytes + at, length - at);
        if (reason || length - at < RECORD_HEADER)
            return reason;
        size_t payload = get16(bytes + at + 3), there = length - at - RECORD_HEADER;
        bool whole = payload <= there;
        reason = gather(gathered, bytes + at + RECORD_HEADER, whole ? payload : there);
        if (reason)
            return reason;
        /* A server could parse the excess bytes, which we would not inspect. */
        size_t promised = gathered->have + (whole ? 0 : payload - there);
        if (gathered->length > 0 && promised > gathered->length)
            return "something follows the hello in its record";
        if (!whole || gathered->have == gathered->length)
            return NULL;
        at += RECORD_HEADER + payload;
    }
    return NULL;
}

enum client_hello_state client_hello_read(const uint8_t *bytes, size_t length,
                                          struct client_hello *ret_hello)
{
    *ret_hello = (struct client_hello){0};
    if (length == 0)
        return CLIENT_HELLO_NEED_MORE;
    if (bytes[0] != RECORD_HANDSHAKE || (length > 1 && bytes[1] != VERSION_MAJOR))
        return CLIENT_HELLO_NOT_TLS;
    struct gathered gathered;
    gathered.have = gathered.length = 0;
    const char *reason = walk(bytes, length, &gathered);
    if (!reason && (gathered.length == 0 || gathered.have < gathered.length))
        return CLIENT_HELLO_NEED_MORE;
    if (!reason)
        reason = read_message((struct reader){.at = gathered.message + MESSAGE_HEADER,
                                              .left = gathered.length - MESSAGE_HEADER},
                              ret_hello);
    ret_hello->reason = reason;
    return reason ? CLIENT_HELLO_BAD : CLIENT_HELLO_DONE;
}

void client_hello_alert(enum client_hello_alert alert, uint8_t record[CLIENT_HELLO_ALERT_SIZE])
{
    const uint8_t bytes[CLIENT_HELLO_ALERT_SIZE] = {21, VERSION_MAJOR, 3, 0, 2, 2, (uint8_t)alert};
    memcpy(record, bytes, sizeof bytes);
}
