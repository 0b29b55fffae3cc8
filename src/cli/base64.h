/* SPDX-License-Identifier: MIT */
/* Bytes as base64, for the credentials of HTTP. */
#pragma once

#include <stddef.h>

struct str;

/* Appends it, padded, on one line. */
void base64_append(struct str *out, const void *bytes, size_t length);
