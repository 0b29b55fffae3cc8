/* SPDX-License-Identifier: MIT */
/* The jail's init, which travels inside the library. */
#pragma once

#include <brig/brig.h>

/* An fd of the init program, to be executed with execveat(); the caller's to close. */
int init_image_open(struct brig_error *err);
