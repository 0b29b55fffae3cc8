/* SPDX-License-Identifier: MIT */
/* Structs that a program fills and that begin with their size. */
#include "base/sized.h"

#include <string.h>

#include <brig/brig.h>

#include "base/error.h"

/* A larger size is that of a struct that was never initialised. */
#define SIZE_MAX_SANE 4096

int sized_read(void *ret, size_t known, const void *given, const char *init, struct brig_error *err)
{
    size_t size = 0;
    memcpy(&size, given, sizeof size);
    if (size <= sizeof size || size > SIZE_MAX_SANE)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "its member size is %zu, which no version has. Begin with %s", size, init);
    const char *bytes = given;
    for (size_t i = known; i < size; i++)
        if (bytes[i] != 0)
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "a member is set that this library does not know: the library is "
                             "older than the program (see %s)",
                             init);
    memset(ret, 0, known);
    memcpy(ret, given, size < known ? size : known);
    memcpy(ret, &known, sizeof known);
    return 0;
}
