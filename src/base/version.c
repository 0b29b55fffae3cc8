/* SPDX-License-Identifier: MIT */
/* The version of the library. */
#include <brig/brig.h>

const char *brig_version(void)
{
    return BRIG_VERSION;
}

int brig_version_number(void)
{
    return BRIG_VERSION_NUMBER;
}
