/* SPDX-License-Identifier: MIT */
/* Finds out why this system refuses user namespaces, from its settings. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* A reason. */
struct userns_gate {
    const char *setting; /* the name of a sysctl, or NULL if the reason is not one */
    const char *file;    /* where its value is: "/proc/sys/…" */
    long closed_at;      /* the value that refuses */
    const char *open;    /* a value that allows */
    bool root_too;       /* it also refuses root */
    bool apparmor;       /* it refuses only processes without an AppArmor profile */
    const char *detail;  /* a reason that is no setting, in a few words; may be NULL */
    const char *why;     /* ends an error message */
    const char *fix;     /* what doctor says */
};

/* The settings, the most certain one first. */
#define USERNS_SETTINGS 3
extern const struct userns_gate userns_settings[USERNS_SETTINGS];

/* In the following `root` is put before /proc: "" except in tests. Reads a few files; thread-safe. */

/* Whether a setting refuses them to this process, which must not be root's unless root_too. */
bool userns_refuses(const char *root, const struct userns_gate *setting);

/* The reason why they are refused, if they are. Never NULL. */
const struct userns_gate *userns_find_gate(const char *root, bool is_root);

/* The number in a file, or -1. */
long userns_read_number(const char *root, const char *file);
