/* SPDX-License-Identifier: MIT */
/* Rows that the history process has not confirmed yet, and counters, in shared memory. */
#include "server/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"

#define ROWS_START ((off_t)64 << 10) /* rows follow the page */
#define PIECE ((uint64_t)1 << 20)    /* memory of confirmed rows is given back in such pieces */
_Static_assert(sizeof(struct journal_page) <= ROWS_START, "the page is before the rows");

/* Before the bytes of a row. */
struct head {
    uint64_t tag, type, length;
    int64_t added_ns;
};

/* ---- The page ---- */

int journal_create(int *ret_fd, int *ret_read_fd, struct brig_error *err)
{
    char path[64];
    autoclose int fd = memfd_create("brigd-journal", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, ROWS_START) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make the journal");
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    *ret_read_fd = open(path, O_RDONLY | O_CLOEXEC);
    if (*ret_read_fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open '%s'", path);
    *ret_fd = take_fd(&fd);
    return 0;
}

struct journal_page *journal_map(int fd, bool writable)
{
    void *page = mmap(NULL, sizeof(struct journal_page), PROT_READ | (writable ? PROT_WRITE : 0),
                      MAP_SHARED, fd, 0);
    return page == MAP_FAILED ? NULL : page;
}

void journal_unmap(struct journal_page *page)
{
    if (page)
        (void)munmap(page, sizeof *page);
}

static const struct journal_state *current(const struct journal_page *page)
{
    return &page->states[atomic_load(&page->sequence) & 1];
}

/* The writer changes the other state first, so a copy is whole if no change was completed since. */
void journal_read(const struct journal_page *page, struct journal_state *ret_state)
{
    uint64_t before;
    do {
        before = atomic_load(&page->sequence);
        memcpy(ret_state, &page->states[before & 1], sizeof *ret_state);
        atomic_thread_fence(memory_order_acquire);
    } while (atomic_load(&page->sequence) != before);
}

bool journal_is_full(const struct journal_page *page)
{
    const struct journal_state *state = current(page);
    return state->end - state->first > JOURNAL_BYTES_FULL && state->end > state->first;
}

/* ---- Changes ---- */

int journal_open(int fd, struct journal *ret_journal, struct brig_error *err)
{
    autoclose int own = -1, readable = -1;
    if (fd >= 0)
        own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    else if (journal_create(&own, &readable, err) < 0)
        return BRIG_E_SYSTEM;
    struct journal_page *page = own >= 0 ? journal_map(own, true) : NULL;
    if (!page)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open the journal");
    *ret_journal = (struct journal){.fd = take_fd(&own), .page = page};
    journal_again(ret_journal);
    return 0;
}

void journal_close(struct journal *journal)
{
    journal_unmap(take_ptr(&journal->page));
    own_close(&journal->fd);
}

struct journal_state *journal_begin(struct journal *journal)
{
    struct journal_page *page = journal->page;
    struct journal_state *next = &page->states[(atomic_load(&page->sequence) + 1) & 1];
    *next = *current(page);
    return next;
}

void journal_commit(struct journal *journal)
{
    atomic_fetch_add(&journal->page->sequence, 1);
}

static int write_at(int fd, const void *bytes, size_t length, uint64_t offset)
{
    for (size_t done = 0; done < length;) {
        ssize_t got = pwrite(fd, (const char *)bytes + done, length - done,
                             ROWS_START + (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return -1;
        done += (size_t)got;
    }
    return 0;
}

static bool read_at(int fd, void *bytes, size_t length, uint64_t offset)
{
    return pread(fd, bytes, length, ROWS_START + (off_t)offset) == (ssize_t)length;
}

int journal_add(struct journal *journal, struct journal_state *state, enum message_type type,
                const void *bytes, size_t length, struct brig_error *err)
{
    const struct head head = {
        .tag = state->tag + 1, .type = type, .length = length, .added_ns = clock_wall_ns()};
    if (write_at(journal->fd, &head, sizeof head, state->end) < 0 ||
        write_at(journal->fd, bytes, length, state->end + sizeof head) < 0)
        return brig_fail(err, BRIG_E_NOMEM, errno, "a row cannot be kept");
    state->end += sizeof head + length;
    state->tag++;
    state->rows++;
    if (state->oldest_ns == 0)
        state->oldest_ns = head.added_ns;
    return 0;
}

/* ---- Sending and forgetting ---- */

int journal_send(struct journal *journal, struct channel *history, struct brig_error *err)
{
    uint64_t end = current(journal->page)->end;
    while (journal->unsent < end && !channel_is_busy(history)) {
        struct head head;
        if (!read_at(journal->fd, &head, sizeof head, journal->unsent) ||
            head.length > MESSAGE_BYTES_MAX)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "a row cannot be read again");
        autofree char *bytes = malloc((size_t)head.length + 1);
        if (!bytes)
            return 0; /* later */
        if (!read_at(journal->fd, bytes, (size_t)head.length, journal->unsent + sizeof head))
            return brig_fail(err, BRIG_E_SYSTEM, errno, "a row cannot be read again");
        int result = channel_send(history, (enum message_type)head.type, head.tag, bytes,
                                  (size_t)head.length, err);
        if (result < 0)
            return result;
        journal->unsent += sizeof head + head.length;
    }
    return 0;
}

/* Gives memory back: all of it if no row is left, otherwise whole pieces before the first row. */
static void shrink(const struct journal *journal, uint64_t before, uint64_t first, bool empty)
{
    uint64_t from = before / PIECE * PIECE, to = first / PIECE * PIECE;
    if (empty)
        (void)!ftruncate(journal->fd, ROWS_START);
    else if (to > from)
        (void)fallocate(journal->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                        ROWS_START + (off_t)from, (off_t)(to - from));
}

/* Stops at the first row that was not sent: a larger tag is invalid. */
void journal_stored(struct journal *journal, uint64_t tag)
{
    struct journal_state *state = journal_begin(journal);
    uint64_t before = state->first;
    struct head head = {0};
    bool known = false;
    while (state->first < journal->unsent &&
           (known = read_at(journal->fd, &head, sizeof head, state->first)) && head.tag <= tag) {
        state->first += sizeof head + head.length;
        state->rows--;
    }
    if (state->first == before)
        return;
    if (state->first == journal->unsent)
        known = read_at(journal->fd, &head, sizeof head, state->first);
    bool empty = state->first == state->end;
    uint64_t reached = state->first;
    state->oldest_ns = empty || !known ? 0 : head.added_ns;
    if (empty) {
        state->first = state->end = 0;
        journal->unsent = 0;
    }
    journal_commit(journal);
    shrink(journal, before, reached, empty);
}

void journal_again(struct journal *journal)
{
    journal->unsent = current(journal->page)->first;
}

bool journal_is_empty(const struct journal *journal)
{
    return current(journal->page)->rows == 0;
}

bool journal_is_sent(const struct journal *journal)
{
    return journal->unsent == current(journal->page)->end;
}

uint64_t journal_last(const struct journal *journal)
{
    return current(journal->page)->tag;
}

uint64_t journal_bytes(const struct journal *journal)
{
    const struct journal_state *state = current(journal->page);
    return state->end - state->first;
}
