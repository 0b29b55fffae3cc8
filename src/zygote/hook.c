/* SPDX-License-Identifier: MIT */
/* Stops the interpreter when it opens the script. */
#undef _FILE_OFFSET_BITS /* otherwise fopen() is an alias of fopen64() */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jail/prepare/zygote_wire.h"
#include "zygote/zygote.h"

static char file[PATH_MAX];
static char modules[4096];

/* Copies a variable, and clears it in the environment and in the memory that /proc/self/environ
 * shows. */
static void take_variable(const char *name, char *buffer, size_t size)
{
    char *value = getenv(name);
    if (!value)
        return;
    if (buffer)
        (void)snprintf(buffer, size, "%s", value);
    memset(value - strlen(name) - 1, 0, strlen(name) + 1 + strlen(value));
}

/* Removes the cleared variables, which are empty strings now. */
static void drop_empty(void)
{
    char **to = environ;
    for (char **from = environ; *from; from++)
        if (**from)
            *to++ = *from;
    *to = NULL;
}

static __attribute__((constructor)) void begin(void)
{
    if (!getenv(ZYGOTE_FILE_VARIABLE))
        return;
    take_variable(ZYGOTE_FILE_VARIABLE, file, sizeof file);
    take_variable(ZYGOTE_MODULES_VARIABLE, modules, sizeof modules);
    take_variable("LD_PRELOAD", NULL, 0);
    take_variable("LD_BIND_NOW", NULL, 0);
    drop_empty();
}

typedef FILE *open_function(const char *path, const char *mode);

static FILE *open_or_wait(const char *name, const char *path, const char *mode)
{
    open_function *next = NULL;
    *(void **)&next = dlsym(RTLD_NEXT, name);
    if (!next)
        return NULL;
    if (!file[0] || !path || strcmp(path, file) != 0 || !python_is_here())
        return next(path, mode);
    char own[PATH_MAX];
    memcpy(own, file, sizeof own);
    file[0] = '\0'; /* only once, and not in the children */
    serve(own, modules);
    python_run(own);
}

#define EXPORTED __attribute__((visibility("default")))

EXPORTED FILE *fopen(const char *path, const char *mode) /* lint: cloexec because it is asked for */
{
    return open_or_wait("fopen", path, mode);
}

EXPORTED FILE *fopen64(const char *path, const char *mode)
{
    return open_or_wait("fopen64", path, mode);
}
