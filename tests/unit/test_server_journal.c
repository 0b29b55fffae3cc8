/* SPDX-License-Identifier: MIT */
/* The journal: rows that outlive the executor, and counters that agree with them. */
#include "server/journal.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tap.h"

static struct channel *ours, *theirs;

static uint64_t next_tag(void)
{
    automessage struct message message = {.fd = -1};
    int got = channel_receive(theirs, &message, NULL);
    while (got == 0 && channel_wants_write(ours) && channel_flush(ours, NULL) == 0)
        got = channel_receive(theirs, &message, NULL);
    return got == 1 ? message.tag : 0;
}

static void add(struct journal *journal, enum message_type type, const char *text)
{
    struct journal_state *state = journal_begin(journal);
    if (journal_add(journal, state, type, text, strlen(text), NULL) == 0)
        journal_commit(journal);
}

static void connect_both(void)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0 ||
        channel_new(&ends[0], &ours, NULL) < 0 || channel_new(&ends[1], &theirs, NULL) < 0)
        tap_bail("no channel");
}

static void rows(void)
{
    struct journal journal = JOURNAL_NONE;
    connect_both();
    tap_is_int(journal_open(-1, &journal, NULL), 0, "a journal is made");
    tap_ok(journal_is_empty(&journal), "it begins empty");
    for (int i = 0; i < 3; i++)
        add(&journal, MESSAGE_BEGIN, "abc");
    journal_stored(&journal, 3);
    tap_ok(!journal_is_empty(&journal), "what was never sent cannot be safe");
    (void)journal_send(&journal, ours, NULL);
    tap_is_int((long)next_tag(), 1, "all is sent");
    tap_is_int((long)next_tag(), 2, "in order");
    tap_is_int((long)next_tag(), 3, "once");
    tap_is_int((long)next_tag(), 0, "and no more");
    uint64_t bytes = journal_bytes(&journal);
    journal_stored(&journal, 2);
    tap_is_int((long)journal_bytes(&journal), (long)bytes / 3, "what is safe is let go");
    journal_again(&journal);
    add(&journal, MESSAGE_END, "x");
    (void)journal_send(&journal, ours, NULL);
    tap_is_int((long)next_tag(), 3, "the rest is sent again");
    tap_is_int((long)next_tag(), 4, "with what is new");
    journal_stored(&journal, 99);
    tap_ok(journal_is_empty(&journal) && journal_bytes(&journal) == 0, "until all is safe");
    channel_free(theirs);
    add(&journal, MESSAGE_END, "x");
    tap_ok(journal_send(&journal, ours, NULL) < 0, "a history process that is gone is noticed");
    tap_ok(!journal_is_empty(&journal), "and the row is kept");
    channel_free(ours);
    journal_close(&journal);
}

/* Adds rows and counts them until it is killed. */
static void write_for_ever(int fd)
{
    struct journal journal = JOURNAL_NONE;
    if (journal_open(fd, &journal, NULL) < 0)
        _exit(1);
    for (;;) {
        struct journal_state *state = journal_begin(&journal);
        if (journal_add(&journal, state, MESSAGE_BEGIN, "row", 3, NULL) < 0)
            _exit(1);
        state->counters.languages[1].running++;
        state->counters.languages[2].statuses[EXECUTION_OK] += 2;
        journal_commit(&journal);
    }
}

static void killed(void)
{
    static struct journal_state state;
    int fd = -1, read_fd = -1;
    bool agree = true, grows = true;
    uint64_t before = 0;
    tap_is_int(journal_create(&fd, &read_fd, NULL), 0, "a journal for several processes");
    struct journal_page *page = journal_map(read_fd, false);
    tap_ok(page && !journal_map(read_fd, true), "a reader cannot write");
    for (int round = 0; round < 20 && page; round++) {
        pid_t pid = fork();
        if (pid == 0)
            write_for_ever(fd);
        do
            journal_read(page, &state);
        while (state.rows < before + 50 && waitpid(pid, NULL, WNOHANG) == 0);
        for (int i = 0; i < 20; i++, journal_read(page, &state))
            agree = agree && state.counters.languages[1].running == state.rows &&
                    state.counters.languages[2].statuses[EXECUTION_OK] == 2 * state.rows;
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        journal_read(page, &state);
        agree =
            agree && state.counters.languages[1].running == state.rows && state.tag == state.rows;
        grows = grows && state.rows > before;
        before = state.rows;
    }
    tap_ok(grows, "a writer that is killed is followed by another");
    tap_ok(agree, "rows and counters agree at any time");
    journal_unmap(page);
    (void)close(fd);
    (void)close(read_fd);
}

static void memory(void)
{
    static char row[1 << 20];
    struct journal journal = JOURNAL_NONE;
    struct stat info = {0};
    connect_both();
    (void)journal_open(-1, &journal, NULL);
    memset(row, 'x', sizeof row - 1);
    tap_ok(!journal_is_full(journal.page), "a journal has room");
    while (!journal_is_full(journal.page) && info.st_size < (1 << 28)) {
        add(&journal, MESSAGE_END, row);
        (void)fstat(journal.fd, &info);
    }
    tap_ok(journal_is_full(journal.page) && info.st_size < (140 << 20), "until it is full");
    for (uint64_t tag = 1; tag <= 100; tag++) {
        (void)journal_send(&journal, ours, NULL);
        while (next_tag() > 0)
            ;
        journal_stored(&journal, tag);
    }
    (void)fstat(journal.fd, &info);
    tap_ok(info.st_blocks * 512 < (40 << 20), "memory of stored rows is given back");
    journal_close(&journal);
    channel_free(ours);
    channel_free(theirs);
}

int main(void)
{
    rows();
    killed();
    memory();
    return tap_done();
}
