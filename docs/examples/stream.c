/* SPDX-License-Identifier: MIT */
/* Talk to a command while it runs: write its standard input, read its output as it comes, and end it
 * when enough was heard. One poll() waits for the pipe and for the job itself.
 *
 *     stream          the command ends by itself, after its input
 *     stream --cancel it is cancelled after the first line */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <brig/brig.h>

static const char script[] = "while read -r line; do echo \"heard: $line\"; done; echo end";

static int start(struct brig_job **ret_job)
{
    struct brig_error error = {0};
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    struct brig_command command = BRIG_COMMAND_INIT;
    command.argv = argv;
    command.stdio[0].kind = BRIG_STDIO_PIPE;
    command.stdio[1].kind = BRIG_STDIO_PIPE;
    command.stdio[2].kind = BRIG_STDIO_INHERIT;
    int code = brig_start(NULL, &command, ret_job, &error);
    if (code < 0)
        fprintf(stderr, "stream: %s\n", error.message);
    return code;
}

/* Prints what there is; 0 at the end of the file. */
static ssize_t relay(int fd)
{
    char bytes[4096];
    ssize_t count = read(fd, bytes, sizeof bytes);
    if (count > 0)
        (void)fwrite(bytes, 1, (size_t)count, stdout);
    return count;
}

/* Until the job is over and its output is read. Other fds of the program would stand beside. */
static int follow(struct brig_job *job, int cancel)
{
    int over = 0, reading = 1;
    while (!over || reading) {
        struct pollfd fds[2] = {
            {.fd = reading ? brig_job_stream(job, 1) : -1, .events = POLLIN},
            {.fd = over ? -1 : brig_job_fd(job), .events = POLLIN},
        };
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            return -1;
        if (fds[0].revents && relay(fds[0].fd) <= 0)
            reading = 0;
        if (fds[0].revents && cancel)
            (void)brig_job_cancel(job, NULL); /* an error if the job is over already */
        if (fds[1].revents && (over = brig_job_process(job, NULL)) < 0)
            return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const char input[] = "one\ntwo\n";
    int cancel = argc > 1 && strcmp(argv[1], "--cancel") == 0;
    struct brig_job *job = NULL;
    if (start(&job) < 0)
        return 125;

    /* A command that does not read makes a write fail with EPIPE, not end this program. Larger input
     * is written when poll() says so, as the command may wait for its output to be read first. */
    (void)signal(SIGPIPE, SIG_IGN);
    if (write(brig_job_stream(job, 0), input, strlen(input)) < 0)
        perror("stream");
    if (!cancel) /* else the command waits for more */
        (void)brig_job_close_stream(job, 0, NULL);

    struct brig_error error = {0};
    struct brig_result *result = NULL;
    int status = 125;
    if (follow(job, cancel) == 0 && brig_job_result(job, &result, &error) == 0) {
        status = brig_result_status(result);
        printf("%s, status %d\n", brig_outcome_name(brig_result_outcome(result)), status);
    }
    brig_result_free(result);
    brig_job_free(job);
    return status;
}
