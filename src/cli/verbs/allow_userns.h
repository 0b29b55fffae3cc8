/* SPDX-License-Identifier: MIT */
/* Lets brig create user namespaces where a setting of the system refuses them, and reverts that. For
 * `brig setup`, run by root. */
#pragma once

#include <stdbool.h>

#include <brig/brig.h>

struct str;

struct allow_userns {
    const char *root;    /* put before every path: "" except in tests */
    const char *program; /* the path of brig, which gets an AppArmor profile */
    const char *parser;  /* apparmor_parser */
    bool dry_run;        /* only says what it would do */
    struct str *out;     /* gets a line for each change, and the text of each new file */
};

/* Changes each setting that refuses user namespaces: a sysctl now and at each boot by a file in
 * /etc/sysctl.d; AppArmor's restriction by a profile in /etc/apparmor.d for brig, and for a brigd in
 * the same directory. /var/lib/brig/setup records what was there before. Returns the number of settings. */
int allow_userns_apply(const struct allow_userns *request, struct brig_error *err);

/* Undoes what the record says, except for files and values that were changed since. */
int allow_userns_revert(const struct allow_userns *request, struct brig_error *err);

/* Appends the command that a user types: "sudo brig setup", with the path of brig if sudo would not
 * find it. */
void allow_userns_command(const char *program, struct str *out);
