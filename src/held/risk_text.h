/* SPDX-License-Identifier: MIT */
/* Texts that a jail has written: does one contain a credential, which parts of a package.json execute
 * something, and where the packages of a lock file come from. Pure, without allocation; any bytes are accepted. */
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

/* Whether a file of this name lists the packages that a package manager downloads, with their
 * addresses. */
bool risk_is_lock(const char *name);

/* Finds the next place in a lock file that packages come from, at or after `from`: the host of a URL,
 * of a site with many owners also the owner and the name, or a replacement in a go.mod. */
bool risk_source_find(const char *text, size_t length, size_t from, struct risk_token *ret_source);

/* Whether it is one of the registries that package managers use if they are told nothing else. */
bool risk_source_is_usual(const struct risk_token *source);

enum risk_package {
    RISK_PACKAGE_NONE,   /* it has no such part */
    RISK_PACKAGE_SOME,   /* the hash is of the whole part */
    RISK_PACKAGE_UNSURE, /* it is not JSON, or not written as package.json files are */
};

enum risk_package_part {
    RISK_PACKAGE_SCRIPTS, /* what a package manager executes, or what decides that: scripts, bin, … */
    RISK_PACKAGE_DEPENDENCIES, /* dependencies that are a URL, a path or a repository */
};

/* Looks at one part of a package.json. The hash does not depend on white space. */
enum risk_package risk_package_scan(const char *text, size_t length, enum risk_package_part part,
                                    char ret_hash[SHA256_HEX_LENGTH + 1]);
