/* SPDX-License-Identifier: MIT */
#include "mcp/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/process.h"

#define FDS_ABOVE 16 /* above the numbers that a child uses */
#define READ_BYTES 65536
#define EXIT_FAILED 125

/* ---- Starting ---- */

/* Moves a descriptor to a number that no child uses. */
static int move_up(int fd)
{
    int moved = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, FDS_ABOVE);
    close_fd(&fd);
    return moved;
}

/* The end that is read does not block; the other does, as programs expect. */
static int open_stream(int *ret_read, int *ret_write)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    *ret_read = move_up(ends[0]);
    *ret_write = move_up(ends[1]);
    if (*ret_read < 0 || *ret_write < 0)
        return -1;
    return fcntl(*ret_read, F_SETFL, O_NONBLOCK);
}

/* In the new process. */
static void become(const char *const *words, int input, const int ends[CHILD_STREAMS_], int result,
                   bool dies)
{
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    if (dies)
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setsid(); /* without a terminal it cannot ask, and Ctrl-C does not reach it */
    const int fds[][2] = {{input, STDIN_FILENO},
                          {ends[CHILD_OUTPUT], STDOUT_FILENO},
                          {ends[CHILD_MESSAGES], STDERR_FILENO},
                          {ends[CHILD_ERRORS], CHILD_ERRORS_FD},
                          {result, CHILD_RESULT_FD}};
    for (size_t i = 0; i < ARRAY_LENGTH(fds); i++)
        if (dup2(fds[i][0], fds[i][1]) < 0)
            _exit(EXIT_FAILED);
    (void)execv(words[0], (char **)(uintptr_t)words);
    _exit(EXIT_FAILED);
}

int child_start(struct child *child, const char *const *words, int input, bool dies,
                struct brig_error *err)
{
    int ends[CHILD_STREAMS_] = {-1, -1, -1};
    int status = 0;
    for (int i = 0; i < CHILD_STREAMS_ && status == 0; i++)
        status = open_stream(&child->streams[i], &ends[i]);
    child->result = move_up(memfd_create("result", MFD_CLOEXEC));
    autoclose int in = input >= 0 ? fcntl(input, F_DUPFD_CLOEXEC, FDS_ABOVE)
                                  : move_up(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (status < 0 || child->result < 0 || in < 0)
        status = brig_fail(err, BRIG_E_SYSTEM, errno, "cannot create a pipe");
    if (status == 0) {
        child->pid = fork();
        if (child->pid == 0)
            become(words, in, ends, child->result, dies);
        child->pid_fd = child->pid < 0 ? -1 : (int)syscall(SYS_pidfd_open, child->pid, 0);
        if (child->pid_fd < 0)
            status = brig_fail(err, BRIG_E_SYSTEM, errno, "cannot start '%s'", words[0]);
    }
    for (int i = 0; i < CHILD_STREAMS_; i++)
        close_fd(&ends[i]);
    if (status < 0)
        child_done(child);
    return status < 0 ? status : 0;
}

int child_input(const char *bytes, size_t length)
{
    autoclose int fd = memfd_create("input", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || write_all(fd, bytes, length) < 0 || lseek(fd, 0, SEEK_SET) != 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        return -1;
    return take_fd(&fd);
}

/* ---- Until its end ---- */

void child_poll(const struct child *child, struct pollfd fds[static CHILD_POLL])
{
    for (int i = 0; i < CHILD_STREAMS_; i++)
        fds[i] = (struct pollfd){.fd = child->streams[i], .events = POLLIN};
    fds[CHILD_STREAMS_] = (struct pollfd){.fd = child->pid_fd, .events = POLLIN};
}

/* Reads once, or with `all` until nothing is left. */
static void read_stream(struct child *child, enum child_stream stream, bool all, child_seen seen,
                        void *context)
{
    char bytes[READ_BYTES];
    do {
        ssize_t length = read(child->streams[stream], bytes, sizeof bytes);
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0 && errno == EAGAIN)
            return;
        if (length <= 0) {
            close_fd(&child->streams[stream]);
            return;
        }
        excerpt_add(&child->captures[stream], bytes, (size_t)length);
        if (seen && stream != CHILD_MESSAGES)
            seen(context, bytes, (size_t)length);
    } while (all);
}

bool child_process(struct child *child, const struct pollfd fds[static CHILD_POLL], child_seen seen,
                   void *context)
{
    bool ended = fds[CHILD_STREAMS_].revents != 0;
    if (ended) {
        child->status = process_wait(child->pid);
        child->pid = 0;
        close_fd(&child->pid_fd);
    }
    for (int i = 0; i < CHILD_STREAMS_; i++)
        if (child->streams[i] >= 0 && (ended || fds[i].revents))
            read_stream(child, (enum child_stream)i, ended, seen, context);
    return ended;
}

void child_cancel(const struct child *child)
{
    /* Two signals end a run; two equal ones could become one. */
    if (child->pid > 0) {
        (void)kill(child->pid, SIGTERM);
        (void)kill(child->pid, SIGINT);
    }
}

void child_kill(const struct child *child)
{
    if (child->pid > 0)
        (void)kill(child->pid, SIGKILL);
}

void child_done(struct child *child)
{
    child_kill(child);
    (void)process_wait(child->pid);
    close_fd(&child->pid_fd);
    close_fd(&child->result);
    for (int i = 0; i < CHILD_STREAMS_; i++) {
        close_fd(&child->streams[i]);
        excerpt_done(&child->captures[i]);
    }
    *child = CHILD_INIT;
}
