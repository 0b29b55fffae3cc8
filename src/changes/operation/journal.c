/* SPDX-License-Identifier: MIT */
/* Journals: a record is its length, the step, the path with a NUL, and the length again. */
#include "changes/operation/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"

#define LENGTH_BYTES sizeof(uint32_t)
#define RECORD_MIN (sizeof(struct step) + 1 + 2 * LENGTH_BYTES)

int journal_write(FILE *file, const struct step *step, struct brig_error *err)
{
    size_t path_bytes = strlen(step->path) + 1;
    if (path_bytes > PATH_LENGTH_MAX + 1)
        return brig_fail(err, BRIG_E_INVALID, ENAMETOOLONG, "cannot record a step");
    uint32_t length = (uint32_t)(sizeof *step + path_bytes + 2 * LENGTH_BYTES);
    struct step stored = *step;
    stored.path = NULL;
    if (fwrite(&length, LENGTH_BYTES, 1, file) != 1 ||
        fwrite(&stored, sizeof stored, 1, file) != 1 ||
        fwrite(step->path, path_bytes, 1, file) != 1 || fwrite(&length, LENGTH_BYTES, 1, file) != 1)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write the journal");
    return 0;
}

int journal_open(int dir, bool at_end, struct journal *ret_journal, struct brig_error *err)
{
    struct stat info;
    autoclose int fd = openat(dir, JOURNAL_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open the journal");
    ret_journal->at = at_end ? info.st_size : 0;
    ret_journal->size = info.st_size;
    ret_journal->fd = take_fd(&fd);
    return 0;
}

void journal_close(struct journal *journal)
{
    close_fd(&journal->fd);
}

static int fail_damaged(struct brig_error *err)
{
    return brig_fail(err, BRIG_E_SYSTEM, 0, "the journal is damaged");
}

/* Reads the record at journal->at and checks its form. Returns its length or a negative code. */
static int read_record(struct journal *journal, struct step *ret_step, struct brig_error *err)
{
    uint32_t length, last;
    ssize_t got = pread(journal->fd, journal->buffer, sizeof journal->buffer, journal->at);
    if (got < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read the journal");
    if ((size_t)got < RECORD_MIN)
        return fail_damaged(err);
    memcpy(&length, journal->buffer, LENGTH_BYTES);
    if (length < RECORD_MIN || length > (size_t)got)
        return fail_damaged(err);
    memcpy(&last, journal->buffer + length - LENGTH_BYTES, LENGTH_BYTES);
    if (last != length || journal->buffer[length - LENGTH_BYTES - 1] != '\0')
        return fail_damaged(err);
    memcpy(ret_step, journal->buffer + LENGTH_BYTES, sizeof *ret_step);
    ret_step->path = journal->buffer + LENGTH_BYTES + sizeof *ret_step;
    return (int)length;
}

int journal_next(struct journal *journal, struct step *ret_step, struct brig_error *err)
{
    if (journal->at >= journal->size)
        return 0;
    int length = read_record(journal, ret_step, err);
    if (length < 0)
        return length;
    journal->at += length;
    return 1;
}

int journal_previous(struct journal *journal, struct step *ret_step, struct brig_error *err)
{
    uint32_t length;
    if (journal->at <= 0)
        return 0;
    if (journal->at < (int64_t)RECORD_MIN ||
        pread(journal->fd, &length, LENGTH_BYTES, journal->at - (int64_t)LENGTH_BYTES) !=
            (ssize_t)LENGTH_BYTES ||
        length > journal->at)
        return fail_damaged(err);
    journal->at -= length;
    int status = read_record(journal, ret_step, err);
    return status < 0 ? status : 1;
}
