/* SPDX-License-Identifier: MIT */
/* Reads zip archives in memory, which are untrusted: stored and deflated files of the central
 * directory. Nothing is allocated but what zlib needs for one file. No zip64, no encryption, no
 * archives in several parts. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The archive is borrowed. */
struct zip_reader {
    const unsigned char *bytes;
    size_t length;
    size_t at;   /* next entry of the directory */
    size_t left; /* entries */
};

struct zip_entry {
    const char *name; /* not terminated */
    size_t name_length;
    bool deflated;
    const unsigned char *data;
    size_t packed, size;
    uint32_t checksum;
};

/* Returns false if it is not a zip archive. */
bool zip_open(const void *bytes, size_t length, struct zip_reader *ret_zip);
/* Returns 1, 0 at the end, -1 if the archive is malformed or has what is not read here. */
int zip_next(struct zip_reader *zip, struct zip_entry *ret_entry);
/* Writes entry->size bytes. Returns false if the file is damaged. */
bool zip_extract(const struct zip_entry *entry, void *out);
