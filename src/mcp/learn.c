/* SPDX-License-Identifier: MIT */
/* The first run of `brig mcp-wrap`: passes the client's messages on to the server in the jail, and
 * keeps the destinations that it has connected to.
 *
 * Clients also start a server only to see whether it works, or to list its tools. Rules of such a run
 * would be too narrow, so a run counts when the client has called a tool. */
#include "mcp/learn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/process.h"
#include "base/str.h"

#define EXIT_FAILED 125
#define RULES_FD 3 /* as in the command line */
#define FDS_ABOVE 16
#define READ_BYTES 65536
#define RULES_BYTES ((size_t)1 << 20)
#define CALL_METHOD "\"tools/call\""

/* A text is found also where it is divided between two reads. */
struct search {
    char last[sizeof CALL_METHOD];
    size_t length;
    bool found;
};

static void search_add(struct search *search, const char *bytes, size_t length)
{
    autostr struct str text = {0};
    if (search->found)
        return;
    str_append_bytes(&text, search->last, search->length);
    str_append_bytes(&text, bytes, length);
    if (text.failed || !text.data)
        return;
    search->found = memmem(text.data, text.length, CALL_METHOD, strlen(CALL_METHOD)) != NULL;
    search->length = text.length < sizeof search->last ? text.length : sizeof search->last;
    memcpy(search->last, text.data + text.length - search->length, search->length);
}

/* ---- The server ---- */

struct server {
    pid_t pid;
    int pid_fd;
    int input;
    int rules; /* a file in memory */
};

static int start(struct server *server, char **words)
{
    int ends[2];
    server->rules = memfd_create("rules", MFD_CLOEXEC);
    if (server->rules < 0 || pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    autoclose int end = fcntl(ends[0], F_DUPFD_CLOEXEC, FDS_ABOVE);
    autoclose int rules = fcntl(server->rules, F_DUPFD_CLOEXEC, FDS_ABOVE);
    (void)close(ends[0]);
    server->input = ends[1];
    server->pid = end < 0 || rules < 0 ? -1 : fork();
    if (server->pid == 0) {
        sigset_t none;
        (void)sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        (void)signal(SIGPIPE, SIG_DFL);
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (dup2(end, STDIN_FILENO) >= 0 && dup2(rules, RULES_FD) >= 0)
            (void)execv(words[0], words);
        _exit(EXIT_FAILED);
    }
    server->pid_fd = server->pid < 0 ? -1 : (int)syscall(SYS_pidfd_open, server->pid, 0);
    return server->pid_fd < 0 ? -1 : 0;
}

/* Passes on what the client sends; at its end, or if the server has closed its input, no more. */
static void pass_on(struct server *server, struct search *search, bool *ended)
{
    static char bytes[READ_BYTES];
    ssize_t length = read(STDIN_FILENO, bytes, sizeof bytes);
    if (length < 0 && errno == EINTR)
        return;
    if (length > 0)
        search_add(search, bytes, (size_t)length);
    if (length <= 0 || write_all(server->input, bytes, (size_t)length) < 0) {
        close_fd(&server->input);
        *ended = true;
    }
}

static int run(struct server *server, int signals, struct search *search)
{
    bool ended = false;
    for (;;) {
        struct pollfd fds[] = {{.fd = ended ? -1 : STDIN_FILENO, .events = POLLIN},
                               {.fd = signals, .events = POLLIN},
                               {.fd = server->pid_fd, .events = POLLIN}};
        if (poll(fds, ARRAY_LENGTH(fds), -1) < 0 && errno != EINTR)
            return EXIT_FAILED;
        struct signalfd_siginfo info;
        if (fds[1].revents && read(signals, &info, sizeof info) > 0)
            (void)kill(server->pid, (int)info.ssi_signo);
        if (fds[0].revents)
            pass_on(server, search, &ended);
        if (fds[2].revents)
            break;
    }
    int status = process_wait(server->pid);
    return status < 0 ? EXIT_FAILED : status;
}

/* ---- The rules ---- */

/* Writes a new file and renames it. */
static bool write_file(const char *path, const struct str *text)
{
    autofree char *temporary = NULL;
    if (str_make(&temporary, NULL, path, ".new") < 0)
        return false;
    autoclose int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd >= 0 && write_all(fd, text->data, text->length) == 0 && rename(temporary, path) == 0;
}

static void keep(const char *path, const char *header, int rules)
{
    autostr struct str text = {0}, learned = {0};
    if (lseek(rules, 0, SEEK_SET) != 0 || read_all(rules, RULES_BYTES, &learned) < 0 ||
        learned.length == 0) {
        (void)fputs("brig: nothing was learned, because the server did not start\n", stderr);
        return;
    }
    str_concat(&text, header, learned.data);
    if (text.failed || learned.failed || !write_file(path, &text)) {
        (void)fprintf(stderr, "brig: cannot write '%s': %s\n", path, strerror(errno));
        return;
    }
    (void)fprintf(stderr, "brig: the next runs are limited to these rules; edit them in %s\n",
                  path);
}

int learn_main(int argc, char **argv)
{
    enum { BRIG = 2, FILE_PATH, HEADER, WORDS };
    struct server server = {.pid = -1, .pid_fd = -1, .input = -1, .rules = -1};
    struct search search = {0};
    sigset_t set;
    if (argc <= WORDS)
        return EXIT_FAILED;
    (void)signal(SIGPIPE, SIG_IGN);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    autoclose int signals = signalfd(-1, &set, SFD_CLOEXEC);
    const char *header = argv[HEADER];
    argv[WORDS - 1] = argv[BRIG];
    if (signals < 0 || start(&server, argv + WORDS - 1) < 0) {
        (void)fprintf(stderr, "brig: cannot start '%s': %s\n", argv[BRIG], strerror(errno));
        return EXIT_FAILED;
    }
    int status = run(&server, signals, &search);
    if (search.found)
        keep(argv[FILE_PATH], header, server.rules);
    else
        (void)fputs("brig: no tool was called, so this run does not count; the next one learns\n",
                    stderr);
    close_fd(&server.rules);
    close_fd(&server.input);
    close_fd(&server.pid_fd);
    return status;
}
