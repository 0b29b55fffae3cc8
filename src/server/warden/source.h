/* SPDX-License-Identifier: MIT */
/* Something the warden's loop waits for. */
#pragma once

#include <stdint.h>

struct warden_source {
    void (*ready)(void *owner, uint32_t events);
    void *owner;
    int fd;
};
