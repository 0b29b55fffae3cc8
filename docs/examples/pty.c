/* SPDX-License-Identifier: MIT */
/* Run a command in a terminal of its own, type into it, and change its size. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <brig/brig.h>

static const char script[] = "echo \"at first $(stty size)\"; read -r line;"
                             "echo \"then $(stty size)\"; echo \"heard: $line\"";

/* Reads until the command has ended and all was read, which a terminal reports as EIO. */
static int relay(struct brig_job *job)
{
    struct brig_error error = {0};
    int terminal = brig_job_terminal(job), typed = 0, over = 0;
    for (;;) {
        struct pollfd fds[2] = {{.fd = terminal, .events = POLLIN},
                                {.fd = over ? -1 : brig_job_fd(job), .events = POLLIN}};
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            return -1;
        if (fds[1].revents && (over = brig_job_process(job, &error)) < 0)
            return -1;
        char bytes[4096];
        ssize_t count = fds[0].revents ? read(terminal, bytes, sizeof bytes) : 1;
        if (count <= 0) /* the rest of the job's end is waited for */
            return brig_job_wait(job, &error);
        if (!fds[0].revents)
            continue;
        (void)fwrite(bytes, 1, (size_t)count, stdout);
        if (!typed++) { /* the command is there */
            if (brig_job_resize(job, 40, 132, &error) < 0 || write(terminal, "hello\n", 6) != 6)
                return -1;
        }
    }
}

int main(void)
{
    struct brig_error error = {0};
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    struct brig_command command = BRIG_COMMAND_INIT;
    command.argv = argv;
    for (int i = 0; i < 3; i++)
        command.stdio[i].kind = BRIG_STDIO_PTY;

    struct brig_job *job = NULL;
    struct brig_result *result = NULL;
    int code = brig_start(NULL, &command, &job, &error);
    if (code < 0)
        fprintf(stderr, "pty: %s\n", error.message);
    int status = 125;
    if (code == 0 && relay(job) == 0 && brig_job_result(job, &result, &error) == 0)
        status = brig_result_status(result);
    brig_result_free(result);
    brig_job_free(job);
    return status;
}
