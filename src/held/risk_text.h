/* SPDX-License-Identifier: MIT */
/* What a jail has written, judged the same in a file and in a commit: the characters of a name, the target of a link, and the
 * contents: does a text contain a credential, which parts of a package.json execute something, and where do the packages of a
 * lock file come from. Pure, without allocation; any bytes are accepted. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/sha256.h"
#include "held/names.h"

#define RISK_TEXT_MAX ((size_t)64 << 10)   /* the part of a file that is searched for credentials */
#define RISK_PACKAGE_MAX ((size_t)1 << 20) /* a longer package.json is flagged without being read */
#define RISK_LOCK_MAX ((size_t)16 << 20)   /* the same of lock files */

#define RISK_OPTION "its name looks like an option"

/* What is unusual in the characters of a new name, or NULL. */
const char *risk_name_find(const char *path);

/* Judges a new link by its target: it leads out of the directory, or to a name that has a mark. `home` is as in
 * names_judge(). */
bool risk_link_judge(const char *path, const char *home, const char *target,
                     struct names_mark *ret_mark);

/* The beginning of a regular file, up to risk_content_max() bytes. */
struct risk_content {
    const char *data;
    size_t length;
    bool exists;
    bool cut; /* it is longer, or could not be read */
};
/* How much of a file of this name is looked at. */
size_t risk_content_max(const char *name);
/* Whether the version before is of interest for risk_content_find(), which finds nothing if it is not. */
bool risk_content_compares(const char *name, const struct risk_content *after);
/* Why the contents of a file need a look; NULL if they do not, or the version before has the same. */
const char *risk_content_find(const char *name, const struct risk_content *before,
                              const struct risk_content *after);

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
