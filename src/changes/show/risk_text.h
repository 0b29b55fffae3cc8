/* SPDX-License-Identifier: MIT */
/* Texts that a jail has written: does one contain a credential, and which parts of a package.json
 * execute something. Pure, without allocation; any bytes are accepted. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/sha256.h"

/* The bytes of a credential in a text. */
struct risk_token {
    const char *at;
    size_t length;
};

/* Finds the first credential at or after `from`: a private key, or a token in the form that a known
 * service gives them. False if there is none. */
bool risk_token_find(const char *text, size_t length, size_t from, struct risk_token *ret_token);

enum risk_package {
    RISK_PACKAGE_NONE,   /* nothing in it is executed */
    RISK_PACKAGE_SOME,   /* the hash is of everything in it that is */
    RISK_PACKAGE_UNSURE, /* it is not JSON, or not written as package.json files are */
};

/* Looks at the members of a package.json that a package manager executes or that decide what it
 * executes: scripts, bin, … The hash does not depend on white space. */
enum risk_package risk_package_scan(const char *text, size_t length,
                                    char ret_hash[SHA256_HEX_LENGTH + 1]);
