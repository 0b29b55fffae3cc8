/* SPDX-License-Identifier: MIT */
/* Ownership by the cleanup attribute: a local variable releases its resource at the end of its
 * scope. */
#pragma once

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void own_free(void *pointer)
{
    free(*(void **)pointer);
}

static inline void own_close(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

/* Closes a descriptor unless it is negative, and sets it to -1. */
static inline void close_fd(int *fd)
{
    own_close(fd);
    *fd = -1;
}

static inline void own_closedir(DIR **dir)
{
    if (*dir)
        (void)closedir(*dir);
}

static inline void own_fclose(FILE **file)
{
    if (*file)
        (void)fclose(*file);
}

#define autofree __attribute__((cleanup(own_free)))
#define autoclose __attribute__((cleanup(own_close)))
#define autodir __attribute__((cleanup(own_closedir)))
#define autofile __attribute__((cleanup(own_fclose)))

/* Moves the value out of the variable, whose cleanup then releases nothing. */
static inline int take_fd(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

#define take_ptr(pointer)                                                                          \
    __extension__({                                                                                \
        typeof(*(pointer)) taken_ = *(pointer);                                                    \
        *(pointer) = NULL;                                                                         \
        taken_;                                                                                    \
    })

#define ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* Makes room for one item after the `count` items of *array; false if memory is lacking. */
#define array_grow(array, count)                                                                   \
    __extension__({                                                                                \
        typeof(*(array)) grown_ = reallocarray(*(array), (count) + 1, sizeof **(array));           \
        if (grown_)                                                                                \
            *(array) = grown_;                                                                     \
        grown_ != NULL;                                                                            \
    })
