/* SPDX-License-Identifier: MIT */
/* An fd that the executor's loop watches. */
#pragma once

#include <stdint.h>

struct executor_source {
    void (*ready)(void *owner, uint32_t events);
    void *owner;
    int fd;
};
