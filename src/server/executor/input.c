/* SPDX-License-Identifier: MIT */
/* Standard input that arrives while a program runs. */
#include "server/executor/input.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "server/executor/executor.h"

static void close_pipe(struct executor_input *input)
{
    if (input->watching)
        executor_unwatch(input->executor, &input->source);
    input->watching = false;
    if (input->source.fd >= 0)
        (void)close(take_fd(&input->source.fd));
}

/* The loop calls this again when the program takes more. */
void executor_input_feed(struct executor_input *input)
{
    struct str *waiting = &input->waiting;
    while (input->source.fd >= 0 && input->sent < waiting->length) {
        ssize_t done =
            write(input->source.fd, waiting->data + input->sent, waiting->length - input->sent);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0 && errno != EAGAIN) { /* the program has closed its end */
            input->closed = true;
            close_pipe(input);
        }
        if (done <= 0)
            break;
        input->sent += (size_t)done;
    }
    bool wants = input->source.fd >= 0 && input->sent < waiting->length;
    if (input->last && !wants) {
        input->closed = true;
        close_pipe(input);
    }
    if (input->closed || (input->source.fd >= 0 && !wants)) {
        str_done(waiting);
        input->sent = 0;
    }
    if (wants && !input->watching) {
        input->watching = executor_watch(input->executor, &input->source, EPOLLOUT, NULL) == 0;
    } else if (!wants && input->watching) {
        executor_unwatch(input->executor, &input->source);
        input->watching = false;
    }
}

static void input_ready(void *owner, uint32_t events)
{
    (void)events;
    executor_input_feed(owner);
}

int executor_input_open(struct executor_input *input, struct executor *executor, int fd,
                        struct brig_error *err)
{
    input->executor = executor;
    input->source = (struct executor_source){input_ready, input, fds_keep_high(fd)};
    if (input->source.fd < 0 || fcntl(input->source.fd, F_SETFL, O_NONBLOCK) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open standard input");
    return 0;
}

int executor_input_start(struct executor_input *input, struct executor *executor, int *ret_end,
                         struct brig_error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a pipe for the input");
    autoclose int theirs = ends[0];
    int result = executor_input_open(input, executor, ends[1], err);
    if (result < 0)
        return result;
    executor_input_feed(input);
    *ret_end = take_fd(&theirs);
    return 0;
}

bool executor_input_take(struct executor_input *input, const void *bytes, size_t length)
{
    if (input->closed)
        return true;
    if (input->waiting.length - input->sent + length > EXECUTION_INPUT_MAX)
        return false;
    str_drop_done(&input->waiting, &input->sent);
    str_append_bytes(&input->waiting, bytes, length);
    if (input->waiting.failed)
        return false;
    executor_input_feed(input);
    return true;
}

void executor_input_done(struct executor_input *input)
{
    close_pipe(input);
    str_done(&input->waiting);
    input->sent = 0;
}
