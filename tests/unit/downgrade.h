/* SPDX-License-Identifier: MIT */
/* Writes lists of files as brig 0.1 and 0.2 did, from those of this version: what they name is there, unlike in a fixture. */
#pragma once

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/manifest.h"
#include "base/path.h"
#include "base/str.h"
#include "tap.h"

static inline struct manifest *downgrade_open(int dir, const char *name)
{
    struct manifest *manifest = NULL;
    struct brig_error err = {0};
    if (manifest_open(dir, name, &manifest, &err) < 0)
        tap_bail("%s: %s", name, err.message);
    return manifest;
}

static inline void downgrade_write(int dir, const char *name, struct str *text)
{
    if (text->failed || files_write(dir, name, text->data, text->length, NULL) < 0)
        tap_bail("cannot write '%s'", name);
    str_done(text);
}

/* LAYER.base or LAYER.start: a time, and records of numbers, each with its path. */
static inline void downgrade_base(int dir, const char *name)
{
    struct str text = {0};
    struct manifest *manifest = downgrade_open(dir, name);
    int64_t since = strtoll(manifest_header(manifest, "since"), NULL, 10);
    str_append(&text, "brigbas2");
    str_append_bytes(&text, &since, sizeof since);
    while (manifest_next(manifest, NULL) > 0) {
        const struct manifest_entry *entry = manifest_entry(manifest);
        struct {
            uint16_t kind, covers;
            uint32_t path_length;
            struct ident lower, applied;
        } old = {.kind = entry->kind == MANIFEST_SINCE,
                 .covers = entry->covers,
                 .path_length = (uint32_t)strlen(entry->path),
                 .lower = entry->ident,
                 .applied = entry->applied};
        str_append_bytes(&text, &old, sizeof old);
        str_append(&text, entry->path);
    }
    manifest_close(manifest);
    downgrade_write(dir, name, &text);
}

static inline void downgrade_number(struct str *text, uint64_t number)
{
    bool negative = (int64_t)number < 0;
    str_appendf(text, "%s%" PRIx64 " ", negative ? "-" : "", negative ? -number : number);
}

/* A list of a checkpoint: texts with a NUL each. The root itself had no entry. */
static inline void downgrade_list(int dir, const char *name)
{
    static const char *const headers[] = {"root",  "only",   "git",  "limit",
                                          "masks", "states", "time", "ref"};
    struct str text = {0};
    struct manifest *manifest = downgrade_open(dir, name);
    str_list_add(&text, "version=1");
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        char line[PATH_LENGTH_MAX];
        (void)snprintf(line, sizeof line, "%s=%s", headers[i],
                       manifest_header(manifest, headers[i]));
        bool empty = strcmp(headers[i], "only") == 0 && *manifest_header(manifest, "git");
        if (*manifest_header(manifest, headers[i]) || empty)
            str_list_add(&text, line);
    }
    str_list_add(&text, "");
    while (manifest_next(manifest, NULL) > 0) {
        const struct manifest_entry *entry = manifest_entry(manifest);
        const uint64_t numbers[] = {entry->ident.mode,
                                    entry->ident.inode,
                                    entry->ident.size,
                                    (uint64_t)entry->ident.mtime_ns,
                                    (uint64_t)entry->ident.ctime_ns,
                                    entry->uid,
                                    entry->gid};
        if (!*entry->path)
            continue;
        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
            downgrade_number(&text, numbers[i]);
        str_append_char(&text, (char)entry->kind);
        str_concat(&text, entry->content, " ", entry->path);
        str_append_bytes(&text, "", 1);
    }
    str_list_add(&text, "");
    manifest_close(manifest);
    downgrade_write(dir, name, &text);
}

/* The info of an operation. */
static inline void downgrade_info(int dir, const char *kind, const char *what)
{
    struct str text = {0};
    char line[256];
    (void)snprintf(line, sizeof line, "kind=%s", kind);
    str_list_add(&text, line);
    (void)snprintf(line, sizeof line, "text=%s", what);
    str_list_add(&text, line);
    str_list_add(&text, "time=1795132407807861495");
    str_list_add(&text, "end=1795132407807861495");
    downgrade_write(dir, "info", &text);
}
