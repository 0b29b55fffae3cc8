/* SPDX-License-Identifier: MIT */
#include "changes/show/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "changes/inventory.h"

/* The texts of an item, in the order in which they are written. */
#define TEXTS 7
static void list_texts(struct inventory_item *item, const char **ret_texts[static TEXTS])
{
    const char **const texts[TEXTS] = {
        &item->path,     &item->target_before, &item->target_after, &item->renamed_from,
        &item->conflict, &item->risk,          &item->unreadable};
    memcpy(ret_texts, texts, sizeof texts);
}

/* What precedes the texts, which are terminated by NULs. */
struct head {
    struct inventory_item item; /* its pointers only tell whether there is a text */
    uint32_t length;            /* of all texts */
};

int spool_file(int dir, FILE **ret_file, struct brig_error *err)
{
    autoclose int fd = dir < 0 ? -1 : openat(dir, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    if (fd < 0)
        fd = open("/var/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w+e");
    if (!file)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot create a temporary file");
    (void)take_fd(&fd);
    *ret_file = file;
    return 0;
}

int spool_rewind(FILE *file, struct brig_error *err)
{
    return fflush(file) != 0 || fseeko(file, 0, SEEK_SET) != 0
               ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write a temporary file")
               : 0;
}

int spool_write(FILE *file, const struct inventory_item *item, struct brig_error *err)
{
    struct head head;
    const char **texts[TEXTS];
    memset(&head, 0, sizeof head);
    head.item = *item;
    list_texts(&head.item, texts);
    for (size_t i = 0; i < TEXTS; i++)
        head.length += *texts[i] ? (uint32_t)strlen(*texts[i]) + 1 : 0;
    bool written = fwrite(&head, sizeof head, 1, file) == 1;
    for (size_t i = 0; i < TEXTS && written; i++)
        written = !*texts[i] || fwrite(*texts[i], strlen(*texts[i]) + 1, 1, file) == 1;
    return written ? 0 : brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write a temporary file");
}

int spool_read(struct spool *spool, struct inventory_item *ret_item, struct brig_error *err)
{
    struct head head;
    const char **texts[TEXTS];
    if (fread(&head, sizeof head, 1, spool->file) != 1)
        return ferror(spool->file)
                   ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read a temporary file")
                   : 0;
    spool->text.length = 0;
    char *at = str_extend(&spool->text, head.length);
    if (!at)
        return brig_fail_nomem(err);
    if (fread(at, head.length, 1, spool->file) != 1)
        return brig_fail(err, BRIG_E_SYSTEM, EIO, "cannot read a temporary file");
    list_texts(&head.item, texts);
    for (size_t i = 0; i < TEXTS; i++) {
        if (!*texts[i])
            continue;
        *texts[i] = at;
        at += strlen(at) + 1;
    }
    *ret_item = head.item;
    return 1;
}
