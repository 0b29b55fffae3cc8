/* SPDX-License-Identifier: MIT */
/* What this system can do for a jail, found out by doing it: never by version numbers. */
#pragma once

#include <brig/brig.h>

enum probe_state {
    PROBE_OK,
    PROBE_LIMITED, /* a jail works without it, or with less of it */
    PROBE_MISSING, /* a full jail needs it */
};

#define PROBE_ROWS_MAX 48
#define PROBE_DETAIL_MAX 128
#define PROBE_REMEDY_MAX 256

struct probe_row {
    const char *id;    /* stable, for programs: "userns" */
    const char *label; /* for people: "user namespaces" */
    enum probe_state state;
    char detail[PROBE_DETAIL_MAX]; /* what was seen; may be empty */
    const char *meaning;           /* what it is good for */
    char remedy[PROBE_REMEDY_MAX]; /* the one thing to do; empty if ok, or said in another row */
};

/* Plain data, nothing to release; id, label and meaning are static text. */
struct probe_report {
    size_t count;
    struct probe_row rows[PROBE_ROWS_MAX];
};

/* Tries everything, each attempt in a forked process of its own that ends with it: nothing of the
 * caller changes. Takes some tens of milliseconds. `directory` (may be NULL) is where a writable
 * overlay is tried besides a tmpfs; a directory is made below it and removed again. Must not be
 * called while other threads run: the attempts use more of libc than a fork among threads allows. */
void probe_run(const char *directory, struct probe_report *ret_report);

/* The row of an id, or NULL. */
const struct probe_row *probe_find(const struct probe_report *report, const char *id);

const char *probe_state_name(enum probe_state state); /* "ok", "limited", "missing" */

/* Why user namespaces are refused, as the one sentence to end an error message with: "Unprivileged
 * user namespaces are restricted on this system (AppArmor). Run `brig doctor`." Reads a few files
 * below /proc; safe among threads. */
void probe_userns_remedy(char *buffer, size_t size);
