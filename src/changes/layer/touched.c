/* SPDX-License-Identifier: MIT */
#include "changes/layer/touched.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/files.h"
#include "base/str.h"

#define NAME "touched"
#define ENTRIES_MAX ((size_t)1 << 20) /* then the older half is dropped */
#define ENTRY_BYTES sizeof(struct touched_entry)

/* Reads the file; without the rest of an entry whose writer was killed. */
static void touched_read(int record, struct str *text)
{
    autoclose int fd = openat(record, NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        (void)read_all(fd, ENTRIES_MAX * ENTRY_BYTES, text);
    text->length -= text->length % ENTRY_BYTES;
}

int touched_add(int record, const struct touched_entry *items, size_t count, struct brig_error *err)
{
    struct stat info;
    autostr struct str text = {0};
    if (count == 0)
        return 0;
    autoclose int fd =
        openat(record, NAME, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || fstat(fd, &info) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write to the jail's record");
    size_t length = (size_t)info.st_size / ENTRY_BYTES * ENTRY_BYTES;
    if (length / ENTRY_BYTES + count <= ENTRIES_MAX) {
        int failed =
            ftruncate(fd, (off_t)length) < 0 ? -errno : write_all(fd, items, count * ENTRY_BYTES);
        return failed < 0
                   ? brig_fail(err, BRIG_E_SYSTEM, -failed, "cannot write to the jail's record")
                   : 0;
    }
    touched_read(record, &text);
    size_t dropped = text.length / ENTRY_BYTES / 2 * ENTRY_BYTES;
    size_t kept = count < ENTRIES_MAX / 2 ? count : ENTRIES_MAX / 2;
    str_append_bytes(&text, (const char *)(items + count - kept), kept * ENTRY_BYTES);
    return text.failed ? brig_fail_nomem(err)
                       : files_write(record, NAME, text.data + dropped, text.length - dropped, err);
}

static int compare_entries(const void *left, const void *right)
{
    const struct touched_entry *a = left, *b = right;
    if (a->inode != b->inode)
        return a->inode < b->inode ? -1 : 1;
    return a->to_ns < b->to_ns ? -1 : a->to_ns > b->to_ns;
}

void touched_done(struct touched *touched)
{
    free(take_ptr(&touched->items));
    touched->count = 0;
}

static void touched_load(struct touched *touched)
{
    struct str text = {0};
    touched->is_read = true;
    touched_read(touched->record, &text);
    touched->count = text.failed ? 0 : text.length / ENTRY_BYTES;
    touched->items = touched->count > 0 ? malloc(touched->count * ENTRY_BYTES) : NULL;
    if (touched->items)
        memcpy(touched->items, text.data, touched->count * ENTRY_BYTES);
    else
        touched->count = 0;
    str_done(&text);
    if (touched->count > 0)
        qsort(touched->items, touched->count, ENTRY_BYTES, compare_entries);
}

/* The first entry of a file. */
static size_t touched_first(const struct touched *touched, uint64_t inode)
{
    size_t low = 0, high = touched->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (touched->items[middle].inode < inode)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool touched_explains(struct touched *touched, uint64_t inode, int64_t since_ns, int64_t now_ns)
{
    int64_t known = since_ns;
    if (now_ns <= since_ns)
        return true;
    if (!touched->is_read)
        touched_load(touched);
    for (size_t i = touched_first(touched, inode);
         i < touched->count && touched->items[i].inode == inode; i++) {
        const struct touched_entry *entry = &touched->items[i];
        if (entry->from_ns <= since_ns || entry->from_ns == known)
            known = entry->to_ns;
    }
    return known == now_ns;
}

/* Directories have new times whenever something in them changes: that an undo has made this one is enough. */
static bool touched_is_made(struct touched *touched, uint64_t inode)
{
    if (!touched->is_read)
        touched_load(touched);
    for (size_t i = touched_first(touched, inode);
         i < touched->count && touched->items[i].inode == inode; i++)
        if (touched->items[i].from_ns == 0)
            return true;
    return false;
}

bool touched_is_copy(struct touched *touched, const struct ident *wanted, const struct stat *now)
{
    const struct ident found = ident_of(now);
    if (S_ISDIR(wanted->mode) && S_ISDIR(found.mode))
        return touched_is_made(touched, found.inode);
    return wanted->mode == found.mode && wanted->size == found.size &&
           wanted->mtime_ns == found.mtime_ns &&
           touched_explains(touched, found.inode, 0, found.ctime_ns);
}

bool touched_is_same(struct touched *touched, const struct ident *wanted, const struct stat *now)
{
    struct ident found = ident_of(now);
    int64_t now_ns = found.ctime_ns;
    found.ctime_ns = wanted->ctime_ns;
    return (ident_equal(wanted, &found) &&
            touched_explains(touched, found.inode, found.ctime_ns, now_ns)) ||
           touched_is_copy(touched, wanted, now);
}
