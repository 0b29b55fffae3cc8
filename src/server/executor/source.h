/* SPDX-License-Identifier: MIT */
/* Something the executor's loop waits for. */
#pragma once

#include <stdint.h>

struct executor_source {
    void (*ready)(void *owner, uint32_t events);
    void *owner;
    int fd;
};
