/* SPDX-License-Identifier: MIT */
/* Standard input of a program that reads slowly: what waits has a limit, and so has its memory. */
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "server/executor/executor.h"
#include "server/executor/input.h"
#include "tap.h"

#define PIECE ((size_t)256 << 10)
#define ROUNDS 400 /* 100 MiB together */

/* Reads `length` bytes, and lets the input write what then has room. */
static bool read_some(struct executor_input *input, int end, size_t length)
{
    static char bytes[PIECE];
    while (length > 0) {
        ssize_t got = read(end, bytes, length);
        if (got <= 0)
            return false;
        length -= (size_t)got;
        input->source.ready(input->source.owner, EPOLLOUT);
    }
    return true;
}

int main(void)
{
    static char piece[PIECE], large[EXECUTION_INPUT_MAX + 1];
    struct executor executor = {.epoll = epoll_create1(EPOLL_CLOEXEC)};
    struct executor_input input = {.source = {.fd = -1}};
    autoclose int end = -1;
    size_t most = 0;
    int rounds = 0;
    tap_is_int(executor_input_start(&input, &executor, &end, NULL), 0, "there is a pipe");
    tap_ok(!executor_input_take(&input, large, sizeof large), "more than may wait is refused");
    tap_ok(executor_input_take(&input, piece, sizeof piece) &&
               executor_input_take(&input, piece, sizeof piece),
           "two pieces wait");
    /* One piece in, one out: it never becomes empty. */
    while (rounds < ROUNDS && executor_input_take(&input, piece, sizeof piece) &&
           read_some(&input, end, sizeof piece)) {
        most = input.waiting.capacity > most ? input.waiting.capacity : most;
        rounds++;
    }
    tap_is_int(rounds, ROUNDS, "a slow program gets any amount");
    tap_ok(most <= 4 * EXECUTION_INPUT_MAX, "its memory stays small: %zu bytes", most);
    executor_input_done(&input);
    (void)close(executor.epoll);
    return tap_done();
}
