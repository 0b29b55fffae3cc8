/* SPDX-License-Identifier: MIT */
/* Finds out what this system can do for a jail by trying it, never by version numbers. */
#pragma once

#include <brig/brig.h>

enum probe_state {
    PROBE_OK,
    PROBE_LIMITED, /* a jail works without it, or with a part of it */
    PROBE_MISSING, /* a full jail needs it */
};

#define PROBE_ROWS_MAX 48
#define PROBE_DETAIL_MAX 128
#define PROBE_REMEDY_MAX 256

struct probe_row {
    const char *id;    /* stable, for programs: "userns" */
    const char *label; /* for people: "user namespaces" */
    enum probe_state state;
    char detail[PROBE_DETAIL_MAX]; /* what was found; may be empty */
    const char *meaning;           /* what it is needed for */
    char remedy[PROBE_REMEDY_MAX]; /* what to do; empty if ok, or if another row says it */
};

/* Plain data, nothing to release; id, label and meaning are static text. */
struct probe_report {
    size_t count;
    struct probe_row rows[PROBE_ROWS_MAX];
};

/* Tries everything, each attempt in a forked process that exits afterwards: nothing changes for the
 * caller. Takes some tens of milliseconds. A writable overlay is tried on a tmpfs and in
 * `directory` (may be NULL), where a directory is created and removed again. Must not be called
 * while other threads run: the attempts use more of libc than is allowed after a fork with
 * threads. */
void probe_run(const char *directory, struct probe_report *ret_report);

/* Returns the row of an id, or NULL. */
const struct probe_row *probe_find(const struct probe_report *report, const char *id);

const char *probe_state_name(enum probe_state state); /* "ok", "limited", "missing" */

/* Writes the reason why user namespaces are refused, as the last sentence of an error message:
 * "Unprivileged user namespaces are restricted on this system (AppArmor). Run `brig doctor`." Reads
 * a few files in /proc; thread-safe. */
void probe_userns_remedy(char *buffer, size_t size);
