/* SPDX-License-Identifier: MIT */
/* Waiting for a message of one of brigd's processes. */
#pragma once

#include <poll.h>

#include "server/message.h"

/* As channel_receive(), but waits at most so long for each piece. 0: nothing came. */
static inline int channel_wait(struct channel *channel, int timeout_ms, struct message *ret_message)
{
    struct pollfd waiting = {.fd = channel_fd(channel), .events = POLLIN};
    int result = 0;
    while (result == 0 && poll(&waiting, 1, timeout_ms) > 0)
        result = channel_receive(channel, ret_message, NULL);
    return result;
}
