/* SPDX-License-Identifier: MIT */
/* Linked into programs that are compiled with -finstrument-functions: marks each function that is called in a file
 * that all processes of the program share, one byte per address. See bench/touched. */
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>

#include "jail/sys.h"

#define QUIET __attribute__((no_instrument_function))
#define MAP_BYTES (16 << 20) /* more than the largest program has */

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
static unsigned char *map;

void __cyg_profile_func_enter(void *function, void *caller) QUIET;
void __cyg_profile_func_exit(void *function, void *caller) QUIET;

/* No libc: init is linked without it. TOUCHED_DIR has a file for each program, named like it. */
QUIET __attribute__((constructor)) static void open_map(void)
{
    char program[512], path[1024];
    char *end = path;
    long length = SYS(readlinkat, AT_FDCWD, "/proc/self/exe", program, sizeof program - 1);
    if (length <= 0)
        return;
    program[length] = '\0';
    const char *name = program;
    for (const char *p = program; *p; p++)
        name = *p == '/' ? p + 1 : name;
    for (const char *p = TOUCHED_DIR "/"; *p; p++)
        *end++ = *p;
    while (*name)
        *end++ = *name++;
    *end = '\0';
    long fd = SYS(openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
    if (fd < 0)
        return;
    long address = SYS(mmap, NULL, MAP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (address > 0)
        map = (unsigned char *)(uintptr_t)address;
    (void)SYS(close, fd);
}

void __cyg_profile_func_enter(void *function, void *caller)
{
    (void)caller;
    uintptr_t offset = (uintptr_t)function - (uintptr_t)__ehdr_start;
    if (map && offset < MAP_BYTES)
        map[offset] = 1;
}

void __cyg_profile_func_exit(void *function, void *caller)
{
    (void)function;
    (void)caller;
}
