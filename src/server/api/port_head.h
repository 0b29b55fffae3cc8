/* SPDX-License-Identifier: MIT */
/* The head of an HTTP answer that a program in a sandbox wrote, which may mean harm. Pure. */
#pragma once

#include <stddef.h>

struct str;

#define PORT_HEAD_MAX 32768

/* Reads the status line and the headers. Appends to `headers` (a list of base/str.h) the name and
 * the value in turn of each header that may be passed on: none about the connection or the length,
 * no cookies, which would be this server's. Returns the bytes of the head, 0 if it is incomplete, or
 * -1 if it is malformed, too long, or says that the body is encoded. */
long port_head_read(const char *bytes, size_t length, unsigned *ret_status, struct str *headers);
