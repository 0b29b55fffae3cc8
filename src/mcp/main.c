/* SPDX-License-Identifier: MIT */
/* brig-mcp: the server of `brig mcp`, and the first run of `brig mcp-wrap`.
 *
 * Theory of operation: brig executes it, with the caller's ids. It has no part of the engine: each
 * tool runs that brig, in one jail, in which the working directory is copy-on-write. It trusts that
 * brig, and the client as far as the client is the user's: it takes the user's confirmation of an
 * apply from it. It does not trust what a model asks for, nor what comes out of the jail. Both have
 * bounded sizes, names are resolved in the jail only, and what a run writes to standard error is kept
 * apart from brig's messages. One thread and one loop; at the end of standard input, or on a signal,
 * every run is ended and the jail is removed, unless it has changes that were not applied. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "mcp/learn.h"
#include "mcp/lines.h"
#include "mcp/session.h"

#define EXIT_FAILED 125
#define READ_BYTES 65536
#define END_MS 2500   /* how long runs have to end; the grace period of brig mcp is a second */
#define FLUSH_MS 1000 /* how long the client has to take the last answers */

enum { POLL_INPUT, POLL_OUTPUT, POLL_SIGNALS, POLL_CALLS };

/* Signals end the server as the end of the input does. */
static int watch_signals(void)
{
    sigset_t set;
    (void)signal(SIGPIPE, SIG_IGN);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Only messages may be written to the client: descriptor 1 becomes standard error. */
static int take_output(void)
{
    int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 16);
    return fd >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0 ? fd : -1;
}

/* Reads from the client; false at the end. */
static bool read_input(struct session *session, struct lines *lines)
{
    static char bytes[READ_BYTES];
    const char *line;
    size_t size;
    enum lines_result found;
    ssize_t length = read(STDIN_FILENO, bytes, sizeof bytes);
    if (length < 0)
        return errno == EINTR || errno == EAGAIN;
    lines_add(lines, bytes, (size_t)length);
    while ((found = lines_next(lines, &line, &size)) != LINES_NONE) {
        if (found == LINES_LINE)
            session_line(session, line, size);
        else
            session_long_line(session);
    }
    return length > 0 && !lines->buffer.failed;
}

/* Waits for events and handles those of calls and signals. */
static void turn(struct session *session, int signals, int timeout_ms, bool *ret_readable)
{
    struct pollfd fds[POLL_CALLS + CALLS_POLL];
    size_t waiting = output_waiting(&session->out);
    bool reads = !session->ending && waiting < OUTPUT_WAITING_MAX;
    fds[POLL_INPUT] = (struct pollfd){.fd = reads ? STDIN_FILENO : -1, .events = POLLIN};
    fds[POLL_OUTPUT] = (struct pollfd){.fd = session->out.failed ? -1 : session->out.fd,
                                       .events = waiting > 0 ? POLLOUT : 0};
    fds[POLL_SIGNALS] = (struct pollfd){.fd = signals, .events = POLLIN};
    size_t count = POLL_CALLS + calls_poll(session, fds + POLL_CALLS);
    int progress = calls_timeout(session);
    if (progress >= 0 && (timeout_ms < 0 || progress < timeout_ms))
        timeout_ms = progress;
    *ret_readable = false;
    if (poll(fds, count, timeout_ms) < 0)
        return;
    struct signalfd_siginfo info;
    if (fds[POLL_SIGNALS].revents && read(signals, &info, sizeof info) > 0)
        session->ending = true;
    if (fds[POLL_OUTPUT].revents & (POLLERR | POLLHUP))
        session->out.failed = true;
    calls_process(session, fds + POLL_CALLS);
    *ret_readable = fds[POLL_INPUT].revents != 0;
}

static void serve(struct session *session, int signals)
{
    struct lines lines = {0};
    while (!session->ending && !session->out.failed) {
        bool readable;
        calls_advance(session);
        output_flush(&session->out);
        turn(session, signals, -1, &readable);
        calls_report(session);
        if (readable && !read_input(session, &lines))
            session->ending = true;
    }
    lines_done(&lines);
}

/* Ends all runs. An apply is completed. */
static void end_calls(struct session *session, int signals)
{
    uint64_t until = clock_now_ms() + END_MS;
    bool killed = false, readable;
    session->ending = true;
    calls_cancel_all(session);
    for (calls_advance(session); session->calls; calls_advance(session)) {
        uint64_t now = clock_now_ms();
        if (now >= until && !killed) {
            calls_kill_all(session);
            killed = true;
        }
        output_flush(&session->out);
        turn(session, signals, killed ? -1 : (int)(until - now), &readable);
    }
    until = clock_now_ms() + FLUSH_MS;
    for (output_flush(&session->out);
         !session->out.failed && output_waiting(&session->out) > 0 && clock_now_ms() < until;
         output_flush(&session->out))
        (void)poll(&(struct pollfd){.fd = session->out.fd, .events = POLLOUT}, 1, FLUSH_MS);
}

/* brig rm refuses to remove a jail that has something the user has not decided about. */
static void remove_jail(const struct session *session)
{
    if (session->jail_kept || session->generation == 0)
        return;
    struct child child = CHILD_INIT;
    const char *const words[] = {session->brig, "rm", session->jail, NULL};
    child.captures[CHILD_OUTPUT].max = child.captures[CHILD_MESSAGES].max =
        child.captures[CHILD_ERRORS].max = READ_BYTES;
    if (child_start(&child, words, -1, false, NULL) < 0)
        return;
    struct pollfd fds[CHILD_POLL];
    do {
        child_poll(&child, fds);
        (void)poll(fds, CHILD_POLL, -1);
    } while (!child_process(&child, fds, NULL, NULL));
    autostr struct str said = {0};
    excerpt_print(&child.captures[CHILD_MESSAGES], &said);
    if (child.status != 0)
        (void)fprintf(stderr, "%sbrig: to look at it: brig review -j %s\n",
                      said.data && !said.failed ? said.data : "", session->jail);
    child_done(&child);
}

/* brig-mcp serve BRIG JAIL own|kept closed|open project|none TIMEOUT OPTION… */
static int serve_main(int argc, char **argv)
{
    enum { BRIG = 2, JAIL, OWN, WORLD, PROJECT, TIMEOUT, OPTIONS };
    if (argc < OPTIONS)
        return EXIT_FAILED;
    struct session session = {
        .brig = argv[BRIG],
        .jail = argv[JAIL],
        .jail_kept = strcmp(argv[OWN], "kept") == 0,
        .open_world = strcmp(argv[WORLD], "open") == 0,
        .has_project = strcmp(argv[PROJECT], "project") == 0,
        .timeout_max_s = strtoull(argv[TIMEOUT], NULL, 10),
        .run_options = (const char *const *)argv + OPTIONS,
        .out = {.fd = take_output()},
    };
    autoclose int signals = watch_signals();
    if (session.out.fd < 0 || signals < 0 || !tools_load(&session)) {
        (void)fprintf(stderr, "brig: cannot start the server: %s\n", strerror(errno));
        return EXIT_FAILED;
    }
    serve(&session, signals);
    end_calls(&session, signals);
    calls_free(&session);
    remove_jail(&session);
    json_decref(session.tools);
    output_done(&session.out);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "serve") == 0)
        return serve_main(argc, argv);
    if (argc > 1 && strcmp(argv[1], "learn") == 0)
        return learn_main(argc, argv);
    (void)fputs("brig-mcp is started by brig mcp, and is of no use by itself.\n", stderr);
    return EXIT_FAILED;
}
