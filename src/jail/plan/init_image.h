/* SPDX-License-Identifier: MIT */
/* The jail's init, which travels inside the library. */
#pragma once

#include <stddef.h>

#include <brig/brig.h>

/* An fd of the init program, to be executed with execveat(); the caller's to close. */
int init_image_open(struct brig_error *err);
/* The program itself, for who makes the file without libc. */
extern const unsigned char *const init_image;
extern const size_t init_image_size;
