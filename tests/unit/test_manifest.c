/* SPDX-License-Identifier: MIT */
/* Manifests: what is written comes back, damage is found, and lists of earlier versions are read. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/files.h"
#include "base/manifest.h"
#include "base/path.h"
#include "tap.h"

#define MANY 3000 /* entries: several blocks */
#define NAME "list"
#define OBJECT "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"

static char place[] = "/tmp/brig-manifest-XXXXXX";
static int dir;

/* ---- entries of all kinds ---- */

static const struct manifest_text headers[] = {
    {"root", "/a dir\nwith 100%"}, {"since", "-1"}, {"empty", ""}, {NULL, NULL}};

/* The Nth entry; `path` has room for it. */
static struct manifest_entry make(int n, char path[PATH_LENGTH_MAX + 1])
{
    static const enum manifest_kind kinds[] = {MANIFEST_PRESENT, MANIFEST_SINCE, MANIFEST_IGNORED,
                                               MANIFEST_MASKED, MANIFEST_RESTLESS};
    static const char *const contents[] = {"", OBJECT, "@clone-1", "abc", "ABCD"};
    (void)snprintf(path, PATH_LENGTH_MAX + 1, "d%04d/\xff name\n%d", n, n);
    struct manifest_entry entry = {.path = path,
                                   .kind = kinds[n % (int)ARRAY_LENGTH(kinds)],
                                   .covers = n % 3 == 0,
                                   .has_owner = n % 2 == 0,
                                   .ident = {.mode = 0100644,
                                             .inode = UINT64_MAX - (uint64_t)n,
                                             .size = (uint64_t)n << 40,
                                             .mtime_ns = -n,
                                             .ctime_ns = INT64_MAX - n}};
    if (entry.has_owner) {
        entry.uid = (uid_t)-2;
        entry.gid = (gid_t)n;
    }
    if (n % 4 == 0)
        entry.applied = (struct ident){.ctime_ns = n + 1};
    (void)snprintf(entry.content, sizeof entry.content, "%s",
                   contents[n / 2 % (int)ARRAY_LENGTH(contents)]);
    return entry;
}

static bool same_ident(const struct ident *a, const struct ident *b)
{
    return a->mode == b->mode && a->inode == b->inode && a->size == b->size &&
           a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

static bool is_entry(const struct manifest_entry *entry, int n)
{
    char path[PATH_LENGTH_MAX + 1];
    const struct manifest_entry made = make(n, path);
    return entry->path && strcmp(entry->path, made.path) == 0 && entry->kind == made.kind &&
           entry->covers == made.covers && entry->has_owner == made.has_owner &&
           entry->uid == made.uid && entry->gid == made.gid &&
           same_ident(&entry->ident, &made.ident) && same_ident(&entry->applied, &made.applied) &&
           strcmp(entry->content, made.content) == 0;
}

static void write_many(int count)
{
    char path[PATH_LENGTH_MAX + 1];
    struct brig_error err = {0};
    automanifest struct manifest_writer writer = {0};
    int status = manifest_create(dir, NAME, headers, &writer, &err);
    for (int i = 0; i < count && status == 0; i++) {
        const struct manifest_entry entry = make(i, path);
        status = manifest_write(&writer, &entry, &err);
    }
    if (status == 0)
        status = manifest_finish(&writer, false, &err);
    if (status < 0)
        tap_bail("%s", err.message);
}

static struct manifest *reopen(void)
{
    struct manifest *manifest = NULL;
    struct brig_error err = {0};
    if (manifest_open(dir, NAME, &manifest, &err) < 0)
        tap_bail("%s", err.message);
    return manifest;
}

static void all_comes_back(void)
{
    static const int counts[] = {0, 1, MANY};
    for (size_t i = 0; i < ARRAY_LENGTH(counts); i++) {
        write_many(counts[i]);
        struct manifest *manifest = reopen();
        int right = 0, status;
        while ((status = manifest_next(manifest, NULL)) > 0)
            right += is_entry(manifest_entry(manifest), right);
        tap_ok(status == 0 && right == counts[i] && !manifest_entry(manifest)->path &&
                   manifest_next(manifest, NULL) == 0,
               "%d entries come back", counts[i]);
        if (i == 0)
            tap_ok(strcmp(manifest_header(manifest, "root"), headers[0].value) == 0 &&
                       strcmp(manifest_header(manifest, "since"), "-1") == 0 &&
                       strcmp(manifest_header(manifest, "empty"), "") == 0 &&
                       strcmp(manifest_header(manifest, "none"), "") == 0,
                   "and the headers");
        manifest_close(manifest);
    }
}

static void a_path_is_found(void)
{
    char path[PATH_LENGTH_MAX + 1];
    struct manifest *manifest = reopen();
    int right = 0;
    for (int i = 0; i < MANY; i += 7) {
        (void)make(i, path);
        right += manifest_find(manifest, path, NULL) == 1 && is_entry(manifest_entry(manifest), i);
        right += manifest_find(manifest, path, NULL) == 1; /* once more */
        *strrchr(path, '\n') = '\0';                       /* before the next one */
        right += manifest_find(manifest, path, NULL) == 1;
    }
    tap_is_int(right, 2 * (MANY / 7 + 1), "each path is found beside a walk, another one is not");
    tap_is_int(manifest_find(manifest, "z", NULL), 0, "a path after the last one is not found");
    manifest_close(manifest);
}

static void a_position_is_gone_back_to(void)
{
    static int64_t positions[MANY];
    struct manifest *manifest = reopen();
    int right = 0;
    for (int i = 0; i < MANY && manifest_next(manifest, NULL) > 0; i++)
        positions[i] = manifest_tell(manifest);
    for (int i = MANY; i-- > 0;)
        right += manifest_seek(manifest, positions[i], NULL) == 0 &&
                 manifest_next(manifest, NULL) == 1 && is_entry(manifest_entry(manifest), i);
    tap_is_int(right, MANY, "an entry is gone back to by its position");
    tap_ok(manifest_seek(manifest, 0, NULL) == 0 && manifest_next(manifest, NULL) == 1 &&
               is_entry(manifest_entry(manifest), 0),
           "and the first one");
    manifest_close(manifest);
}

static void limits(void)
{
    char path[PATH_LENGTH_MAX + 2], long_name[MANIFEST_NAME_MAX + 1];
    struct brig_error err = {0};
    automanifest struct manifest_writer writer = {0};
    memset(path, 'x', sizeof path - 1);
    memset(long_name, 'x', sizeof long_name - 1);
    path[sizeof path - 1] = long_name[sizeof long_name - 1] = '\0';
    tap_ok(manifest_create(dir, long_name, headers, &writer, &err) < 0, "a name can be too long");
    int status = manifest_create(dir, NAME, headers, &writer, NULL);
    struct manifest_entry entry = {.path = path, .kind = MANIFEST_PRESENT};
    tap_ok(status == 0 && manifest_write(&writer, &entry, &err) < 0, "and a path");
    path[PATH_LENGTH_MAX] = '\0';
    for (int i = 0; i < 40 && status == 0; i++)
        status = manifest_write(&writer, &entry, NULL);
    tap_ok(status == 0 && manifest_finish(&writer, true, NULL) == 0, "the longest path is written");
    struct manifest *manifest = reopen();
    int count = 0;
    while (manifest_next(manifest, NULL) > 0)
        count += strcmp(manifest_entry(manifest)->path, path) == 0;
    tap_is_int(count, 40, "and read");
    manifest_close(manifest);
}

static void nothing_is_left_of_what_is_abandoned(void)
{
    write_many(1);
    struct manifest_writer writer = {0};
    (void)manifest_create(dir, NAME, headers, &writer, NULL);
    tap_ok(files_exists(dir, NAME ".new"), "a list that is being written has another name");
    manifest_abandon(&writer);
    struct manifest *manifest = reopen();
    tap_ok(!files_exists(dir, NAME ".new") && manifest_next(manifest, NULL) == 1,
           "if it is abandoned the old one stays");
    manifest_close(manifest);
    tap_is_int(manifest_open(dir, "none", &manifest, NULL), BRIG_E_NOT_FOUND,
               "a missing one is told");
}

/* ---- damage ---- */

/* Reads all: the number of entries, or a code. */
static int read_all_entries(struct brig_error *err)
{
    struct manifest *manifest = NULL;
    int count = 0, status = manifest_open(dir, NAME, &manifest, err);
    while (status >= 0 && (status = manifest_next(manifest, err)) > 0)
        count++;
    manifest_close(manifest);
    return status < 0 ? status : count;
}

static void damage_is_found(void)
{
    write_many(MANY);
    autostr struct str text = {0};
    int unseen = 0, tried = 0;
    if (!files_read(dir, NAME, &text))
        tap_bail("cannot read");
    for (size_t at = 0; at < text.length; at += 997, tried++) {
        text.data[at] ^= 16;
        (void)files_write(dir, NAME, text.data, text.length, NULL);
        unseen += read_all_entries(NULL) != BRIG_E_SYSTEM;
        text.data[at] ^= 16;
    }
    tap_is_int(unseen, 0, "each of %d changed bits is found", tried);
    unseen = tried = 0;
    for (size_t length = 0; length < text.length; length += 1009, tried++) {
        (void)files_write(dir, NAME, text.data, length, NULL);
        unseen += read_all_entries(NULL) != BRIG_E_SYSTEM;
    }
    (void)files_write(dir, NAME, text.data, text.length - 1, NULL);
    unseen += read_all_entries(NULL) != BRIG_E_SYSTEM;
    tap_is_int(unseen, 0, "and that the end is missing, at %d places", tried + 1);
    (void)files_write(dir, NAME, text.data, text.length, NULL);
    tap_is_int(read_all_entries(NULL), MANY, "without damage all are read");
}

/* ---- earlier versions ---- */

/* LAYER.base of 0.1 and 0.2. */
static void write_old_base(void)
{
    const struct {
        uint16_t kind, covers;
        uint32_t path_length;
        struct ident lower, applied;
    } one = {.covers = 1, .path_length = 1, .lower = {.mode = 040755, .inode = 5}},
      other = {.kind = 1,
               .path_length = 3,
               .lower = {.ctime_ns = 7},
               .applied = {.mode = 0100600, .inode = 9, .size = 1, .mtime_ns = -2, .ctime_ns = 3}};
    autostr struct str text = {0};
    str_append(&text, "brigbas2");
    str_append_bytes(&text, (const char *)&(int64_t){-1}, sizeof(int64_t));
    str_append_bytes(&text, (const char *)&one, sizeof one);
    str_append(&text, "d");
    str_append_bytes(&text, (const char *)&other, sizeof other);
    str_append(&text, "d/e");
    (void)files_write(dir, NAME, text.data, text.length, NULL);
}

static void a_base_of_an_earlier_version_is_read(void)
{
    write_old_base();
    struct manifest *manifest = reopen();
    const struct manifest_entry *entry = manifest_entry(manifest);
    tap_ok(strcmp(manifest_header(manifest, "since"), "-1") == 0,
           "the time of an old base is read");
    tap_ok(manifest_next(manifest, NULL) == 1 && strcmp(entry->path, "d") == 0 && entry->covers &&
               entry->kind == MANIFEST_PRESENT && entry->ident.mode == 040755 &&
               entry->ident.inode == 5 && entry->applied.mode == 0 && !entry->has_owner,
           "and its records");
    tap_ok(manifest_next(manifest, NULL) == 1 && strcmp(entry->path, "d/e") == 0 &&
               entry->kind == MANIFEST_SINCE && entry->ident.ctime_ns == 7 &&
               entry->applied.mode == 0100600 && entry->applied.mtime_ns == -2 &&
               manifest_next(manifest, NULL) == 0,
           "of both kinds");
    manifest_close(manifest);
}

#define OLD_HEADERS "version=1\0root=/p\0time=12\0\0"
#define OLD_ENTRIES                                                                                \
    "41ed 5 0 -1 7fffffffffffffff 3e8 3e8 - d\0"                                                   \
    "81a4 6 1 2 3 0 0 -" OBJECT " d/a b\0"                                                         \
    "81a4 7 ffff 2 3 0 0 i d/big\0\0"

static void a_list_of_an_earlier_version_is_read(void)
{
    static const char old[] = OLD_HEADERS OLD_ENTRIES;
    (void)files_write(dir, NAME, old, sizeof old - 1, NULL);
    struct manifest *manifest = reopen();
    const struct manifest_entry *entry = manifest_entry(manifest);
    tap_ok(strcmp(manifest_header(manifest, "root"), "/p") == 0 &&
               strcmp(manifest_header(manifest, "time"), "12") == 0,
           "the headers of an old list are read");
    tap_ok(manifest_next(manifest, NULL) == 1 && strcmp(entry->path, "d") == 0 &&
               entry->ident.mtime_ns == -1 && entry->ident.ctime_ns == INT64_MAX &&
               entry->has_owner && entry->uid == 1000 && entry->gid == 1000 && !*entry->content,
           "and its entries: a directory");
    tap_ok(manifest_next(manifest, NULL) == 1 && strcmp(entry->path, "d/a b") == 0 &&
               strcmp(entry->content, OBJECT) == 0 && entry->kind == MANIFEST_PRESENT,
           "a file with contents");
    tap_ok(manifest_next(manifest, NULL) == 1 && entry->kind == MANIFEST_IGNORED &&
               entry->ident.size == 0xffff && manifest_next(manifest, NULL) == 0,
           "and one that was left out");
    manifest_close(manifest);
    autostr struct str text = {0};
    tap_ok(files_read(dir, NAME, &text) && text.length == sizeof old - 1 &&
               memcmp(text.data, old, text.length) == 0 && !files_exists(dir, NAME ".new"),
           "reading does not change an old list");
    int unseen = 0;
    for (size_t length = 0; length < sizeof old - 1; length++) {
        (void)files_write(dir, NAME, old, length, NULL);
        unseen += read_all_entries(NULL) != BRIG_E_SYSTEM;
    }
    tap_is_int(unseen, 0, "an incomplete old list is damaged");
    (void)files_write(dir, NAME, "something else", 14, NULL);
    tap_is_int(read_all_entries(NULL), BRIG_E_SYSTEM, "and so is what no version has written");
}

int main(void)
{
    if (!mkdtemp(place) || (dir = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        tap_bail("%s: %s", place, strerror(errno));
    all_comes_back();
    a_path_is_found();
    a_position_is_gone_back_to();
    limits();
    nothing_is_left_of_what_is_abandoned();
    damage_is_found();
    a_base_of_an_earlier_version_is_read();
    a_list_of_an_earlier_version_is_read();
    (void)unlinkat(dir, NAME, 0);
    (void)rmdir(place);
    return tap_done();
}
