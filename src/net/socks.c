/* SPDX-License-Identifier: MIT */
/* SOCKS5 (RFC 1928), the server's side. */
#include "net/socks.h"

#include <string.h>

#define VERSION 5
#define METHOD_NONE 0
#define METHOD_REFUSED 0xff
#define COMMAND_CONNECT 1
#define REQUEST_FIXED 4 /* version, command, a zero, the type of the address */

enum address_kind {
    KIND_V4 = 1,
    KIND_NAME = 3,
    KIND_V6 = 4,
};

enum socks_state socks_greeting_read(const uint8_t *bytes, size_t length, size_t *ret_consumed)
{
    if (length > 0 && bytes[0] != VERSION)
        return SOCKS_BAD;
    if (length < 2 || length - 2 < bytes[1])
        return SOCKS_NEED_MORE;
    if (!memchr(bytes + 2, METHOD_NONE, bytes[1]))
        return SOCKS_BAD;
    *ret_consumed = 2U + bytes[1];
    return SOCKS_DONE;
}

void socks_method(bool accepted, uint8_t answer[SOCKS_METHOD_SIZE])
{
    answer[0] = VERSION;
    answer[1] = accepted ? METHOD_NONE : METHOD_REFUSED;
}

static enum socks_state refuse(struct socks_request *request, enum socks_code code)
{
    request->code = code;
    return SOCKS_BAD;
}

/* Checks the fixed part, as far as it is present. */
static enum socks_code check_fixed(const uint8_t *bytes, size_t length)
{
    if (length > 0 && bytes[0] != VERSION)
        return SOCKS_FAILED;
    if (length > 1 && bytes[1] != COMMAND_CONNECT)
        return SOCKS_BAD_COMMAND;
    if (length > 2 && bytes[2] != 0)
        return SOCKS_FAILED;
    return SOCKS_OK;
}

/* The length of the address and the parts before it, or 0 for an unknown type. */
static size_t address_length(uint8_t kind, uint8_t first)
{
    switch (kind) {
    case KIND_V4:
        return 4;
    case KIND_V6:
        return 16;
    case KIND_NAME:
        return 1U + first;
    default:
        return 0;
    }
}

/* A name may be an address in text form, because some clients do not distinguish them. */
static bool read_name(const char *text, size_t length, struct socks_request *request)
{
    request->is_address = net_address_read(text, length, &request->address);
    return request->is_address || net_name_read(text, length, request->name);
}

static bool read_address(uint8_t kind, const uint8_t *bytes, struct socks_request *request)
{
    if (kind == KIND_NAME)
        return read_name((const char *)bytes + 1, bytes[0], request);
    request->is_address = true;
    request->address = kind == KIND_V6 ? net_address_v6(bytes) : net_address_v4(bytes);
    return true;
}

enum socks_state socks_request_read(const uint8_t *bytes, size_t length,
                                    struct socks_request *ret_request)
{
    struct socks_request *request = ret_request;
    *request = (struct socks_request){.code = check_fixed(bytes, length)};
    if (request->code != SOCKS_OK)
        return SOCKS_BAD;
    if (length <= REQUEST_FIXED)
        return SOCKS_NEED_MORE;
    const uint8_t kind = bytes[3], *address = bytes + REQUEST_FIXED;
    size_t size = address_length(kind, *address);
    if (size == 0)
        return refuse(request, SOCKS_BAD_ADDRESS);
    if (length < REQUEST_FIXED + size + 2)
        return SOCKS_NEED_MORE;
    if (!read_address(kind, address, request))
        return refuse(request, SOCKS_BAD_ADDRESS);
    request->port = (uint16_t)(address[size] << 8 | address[size + 1]);
    if (request->port == 0)
        return refuse(request, SOCKS_FAILED);
    request->length = REQUEST_FIXED + size + 2;
    return SOCKS_DONE;
}

void socks_reply(enum socks_code code, uint8_t reply[SOCKS_REPLY_SIZE])
{
    const uint8_t bytes[SOCKS_REPLY_SIZE] = {VERSION, (uint8_t)code, 0, KIND_V4};
    memcpy(reply, bytes, sizeof bytes);
}
