/* SPDX-License-Identifier: MIT */
/* The streams and fds of a command, checked and opened. */
#include "jail/job/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/path.h"
#include "base/sized.h"
#include "jail/job/job.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

void streams_done(struct streams *streams)
{
    for (int i = 0; i < 3; i++)
        close_fd(&streams->owned[i]);
    close_fd(&streams->pty_master);
    close_fd(&streams->pty_slave);
}

/* ---- checks ---- */

static int check_stdio(const struct brig_stdio *stdio, int number, struct brig_error *err)
{
    switch (stdio->kind) {
    case BRIG_STDIO_NULL:
        return 0;
    case BRIG_STDIO_INHERIT:
    case BRIG_STDIO_PIPE:
    case BRIG_STDIO_PTY:
        return 0;
    case BRIG_STDIO_FD:
        if (fcntl(stdio->fd, F_GETFD) < 0)
            return brig_fail(err, BRIG_E_INVALID, errno, "fd %d for stdio %d", stdio->fd, number);
        return 0;
    case BRIG_STDIO_CAPTURE:
        if (number == 0)
            return brig_fail(err, BRIG_E_INVALID, 0, "standard input cannot be captured");
        return 0;
    case BRIG_STDIO_BYTES:
        if (number != 0)
            return brig_fail(err, BRIG_E_INVALID, 0, "only standard input can be given as bytes");
        if (!stdio->bytes && stdio->length > 0)
            return brig_fail(err, BRIG_E_INVALID, 0, "the %zu bytes of standard input are NULL",
                             stdio->length);
        return 0;
    case BRIG_STDIO_STDOUT:
        if (number != 2)
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "only standard error can go where standard output does");
        return 0;
    }
    return brig_fail(err, BRIG_E_INVALID, 0, "unknown kind %d for stdio %d", (int)stdio->kind,
                     number);
}

/* Through a directory fd the command could reach everything below and above it. */
static bool is_way_out(int fd)
{
    struct stat info;
    return fstat(fd, &info) == 0 && (S_ISDIR(info.st_mode) || (fcntl(fd, F_GETFL) & O_PATH));
}

static int check_command(const struct brig_command *command, struct brig_error *err)
{
    if (!command->argv || !command->argv[0] || !command->argv[0][0])
        return brig_fail(err, BRIG_E_INVALID, 0, "no command to run");
    for (int i = 0; i < 3; i++) {
        int result = check_stdio(&command->stdio[i], i, err);
        if (result < 0)
            return result;
    }
    if (command->pass_fd_count > BRIG_PASS_FD_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "%zu fds to pass, at most %d",
                         command->pass_fd_count, BRIG_PASS_FD_MAX);
    if (!command->pass_fds && command->pass_fd_count > 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "pass_fds is NULL, and pass_fd_count is %zu",
                         command->pass_fd_count);
    for (size_t i = 0; i < command->pass_fd_count; i++) {
        const struct brig_pass_fd *pass = &command->pass_fds[i];
        if (pass->number < 3 || pass->number > 255)
            return brig_fail(err, BRIG_E_INVALID, 0, "fd number %d in the jail: 3 to 255",
                             pass->number);
        if (fcntl(pass->fd, F_GETFD) < 0)
            return brig_fail(err, BRIG_E_INVALID, errno, "fd %d to pass", pass->fd);
        if (is_way_out(pass->fd))
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "fd %d to pass is a directory or a bare path, from which the host "
                             "could be reached. Grant the directory instead",
                             pass->fd);
        for (size_t k = 0; k < i; k++)
            if (command->pass_fds[k].number == pass->number)
                return brig_fail(err, BRIG_E_INVALID, 0, "fd number %d in the jail given twice",
                                 pass->number);
    }
    return 0;
}

int streams_read(const struct brig_command *command, struct brig_command *ret_command,
                 struct brig_error *err)
{
    if (!command)
        return brig_fail(err, BRIG_E_INVALID, 0, "no command to run");
    if (sized_read(ret_command, sizeof *ret_command, command, "BRIG_COMMAND_INIT", err) < 0)
        return brig_wrap(err, BRIG_E_INVALID, "struct brig_command");
    return check_command(ret_command, err);
}

/* ---- streams ---- */

/* A memfd with the bytes, opened read-only: it needs no process to feed it and cannot cause
 * SIGPIPE. */
static int make_input(struct brig_error *err)
{
    int made = memfd_create("brig-stdin", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (made < 0 && errno == EINVAL) /* before 6.3 */
        made = memfd_create("brig-stdin", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return made < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make standard input") : made;
}

static int open_input(int fd, struct brig_error *err)
{
    int reader = open(path_proc(fd).text, O_RDONLY | O_CLOEXEC);
    return reader < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open standard input") : reader;
}

int streams_fill_input(int fd, const void *bytes, size_t length, struct brig_error *err)
{
    int result = write_all(fd, bytes, length);
    if (result < 0)
        return brig_fail(err, BRIG_E_SYSTEM, -result, "cannot fill standard input");
    /* Without seals the command could reopen the memfd for writing and store data beyond its disk
     * limit. */
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot seal standard input");
    return 0;
}

/* Late input is filled by job_release(). */
static int open_bytes(struct brig_job *job, const struct brig_policy *policy,
                      const struct brig_stdio *stdio, struct brig_error *err)
{
    autoclose int fd = make_input(err);
    if (fd < 0)
        return fd;
    if (!policy->late_input) {
        int result = streams_fill_input(fd, stdio->bytes, stdio->length, err);
        if (result < 0)
            return result;
    }
    int reader = open_input(fd, err);
    if (reader >= 0 && policy->late_input)
        job->late_input = fds_keep_high(take_fd(&fd));
    return reader;
}

/* A pipe whose other end the caller uses. */
static int open_pipe(struct brig_job *job, int number, struct brig_error *err)
{
    int pair[2];
    if (pipe2(pair, O_CLOEXEC) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a pipe");
    bool input = number == 0;
    job->streams[number] = fds_keep_high(pair[input ? 1 : 0]);
    return pair[input ? 0 : 1];
}

int streams_open(struct brig_job *job, const struct brig_policy *policy,
                 const struct brig_stdio *stdio, int number, struct streams *streams,
                 struct brig_error *err)
{
    int fd = PLAN_FD_NULL, result = 0;
    switch (stdio->kind) {
    case BRIG_STDIO_NULL:
        break;
    case BRIG_STDIO_INHERIT:
        fd = fcntl(number, F_GETFD) < 0 ? PLAN_FD_NULL : number;
        break;
    case BRIG_STDIO_FD:
        fd = stdio->fd;
        break;
    case BRIG_STDIO_CAPTURE:
        result = capture_open(&job->captures[number - 1], policy->limits[BRIG_LIMIT_OUTPUT_BYTES],
                              &fd, err);
        streams->owned[number] = result < 0 ? -1 : fd;
        if (result == 0 && policy->limits[BRIG_LIMIT_OUTPUT_BYTES] == 0)
            job->captures[number - 1].limit = UINT64_MAX;
        break;
    case BRIG_STDIO_PIPE:
        fd = result = open_pipe(job, number, err);
        streams->owned[number] = fd;
        break;
    case BRIG_STDIO_PTY:
        fd = PLAN_FD_PTY;
        break;
    case BRIG_STDIO_STDOUT:
        fd = streams->fds[1]; /* opened before this one, and owned there */
        break;
    case BRIG_STDIO_BYTES:
        fd = result = open_bytes(job, policy, stdio, err);
        streams->owned[number] = fd;
        break;
    }
    if (result < 0)
        return result;
    if (fd >= 0 && streams->owned[number] < 0 && is_way_out(fd))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "fd %d is a directory or a bare path, which a jail cannot have as stdio",
                         number);
    if (fd >= 0 && isatty(fd)) {
        /* A host terminal is never passed in: even as stderr only, it could be reopened for
         * input. */
        if (streams->terminal < 0)
            streams->terminal = fd;
        fd = policy->terminal == BRIG_TERMINAL_AUTO ? PLAN_FD_PTY : PLAN_FD_NULL;
    }
    streams->fds[number] = fd;
    return 0;
}

/* Opens a pty of the host, for a jail without namespaces. */
int streams_open_pty(struct streams *streams, struct brig_error *err)
{
    streams->pty_master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (streams->pty_master < 0 || unlockpt(streams->pty_master) < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot make a terminal for the command");
    streams->pty_slave = ioctl(streams->pty_master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (streams->pty_slave < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot open the command's terminal");
    struct winsize size = PLAN_PTY_SIZE;
    if (streams->terminal < 0 || ioctl(streams->terminal, TIOCGWINSZ, &size) == 0)
        (void)ioctl(streams->pty_slave, TIOCSWINSZ, &size);
    return 0;
}

bool streams_want_pty(const struct streams *streams)
{
    return streams->fds[0] == PLAN_FD_PTY || streams->fds[1] == PLAN_FD_PTY ||
           streams->fds[2] == PLAN_FD_PTY;
}

/* ---- capture ---- */

#define CHUNK_BYTES 65536
/* One call reads at most this many chunks, so that a flood of output cannot block the caller's
 * loop. */
#define ROUNDS_MAX 32

int capture_open(struct capture *capture, uint64_t limit, int *ret_write, struct brig_error *err)
{
    int pair[2];
    if (pipe2(pair, O_CLOEXEC) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a pipe");
    (void)fcntl(pair[0], F_SETFL, O_NONBLOCK);
    *capture = (struct capture){.fd = pair[0], .limit = limit};
    *ret_write = pair[1];
    return 0;
}

static bool make_room(struct capture *capture, size_t more)
{
    size_t needed = capture->length + more + 1, room = capture->room ? capture->room : 4096;
    while (room < needed)
        room *= 2;
    char *grown = room > capture->room ? realloc(capture->data, room) : capture->data;
    if (!grown)
        return false;
    capture->data = grown;
    capture->room = room;
    return true;
}

/* The caller sets the limit, which may exceed the maximum of a struct str. */
static void keep(struct capture *capture, const char *bytes, size_t count)
{
    uint64_t left = capture->limit - capture->length;
    size_t fits = left < count ? (size_t)left : count;
    capture->seen += count;
    if (fits > 0 && !make_room(capture, fits))
        fits = 0;
    if (fits > 0) {
        memcpy(capture->data + capture->length, bytes, fits);
        capture->length += fits;
        capture->data[capture->length] = '\0';
    }
    if (fits < count)
        capture->truncated = true;
}

int capture_read(struct capture *capture)
{
    char chunk[CHUNK_BYTES];
    for (int round = 0; round < ROUNDS_MAX; round++) {
        ssize_t count = read(capture->fd, chunk, sizeof chunk);
        if (count > 0) {
            keep(capture, chunk, (size_t)count);
            continue;
        }
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0 && errno == EAGAIN)
            return 0;
        return 1;
    }
    return 0;
}

void capture_take(struct capture *capture, struct brig_capture *ret)
{
    *ret = (struct brig_capture){
        .data = capture->data, .length = capture->length, .truncated = capture->truncated};
    capture->data = NULL;
    capture->length = capture->room = 0;
}

void capture_done(struct capture *capture)
{
    close_fd(&capture->fd);
    free(capture->data);
    *capture = (struct capture){.fd = -1};
}

/* ---- the caller's ends ---- */

int brig_job_stream(const struct brig_job *job, int stream)
{
    return stream >= 0 && stream < 3 ? job->streams[stream] : -1;
}

int brig_job_close_stream(struct brig_job *job, int stream, struct brig_error *err)
{
    if (brig_job_stream(job, stream) < 0)
        return brig_fail(err, BRIG_E_STATE, 0, "stdio %d of the job is not an open pipe", stream);
    close_fd(&job->streams[stream]);
    return 0;
}

int brig_job_resize(struct brig_job *job, unsigned rows, unsigned columns, struct brig_error *err)
{
    const struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns};
    if (rows < 1 || rows > USHRT_MAX || columns < 1 || columns > USHRT_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "a terminal of %u by %u", rows, columns);
    if (job->terminal < 0)
        return brig_fail(err, BRIG_E_STATE, 0, "the job has no terminal");
    if (ioctl(job->terminal, TIOCSWINSZ, &size) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot resize the terminal");
    return 0;
}
