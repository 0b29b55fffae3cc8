/* SPDX-License-Identifier: MIT */
/* System calls without libc, for code that runs between clone and exec in a borrowed address space,
 * and for the jail's init. Each returns the kernel's value; an error is -errno. */
#pragma once

#include <asm/unistd.h>
#include <stddef.h>
#include <stdint.h>

/* These numbers are the same on every architecture; old headers lack some of them. */
#ifndef __NR_clone3
#define __NR_clone3 435
#endif
#ifndef __NR_close_range
#define __NR_close_range 436
#endif
#ifndef __NR_pidfd_open
#define __NR_pidfd_open 434
#endif
#ifndef __NR_openat2
#define __NR_openat2 437
#endif
#ifndef __NR_mount_setattr
#define __NR_mount_setattr 442
#endif
#ifndef __NR_landlock_create_ruleset
#define __NR_landlock_create_ruleset 444
#define __NR_landlock_add_rule 445
#define __NR_landlock_restrict_self 446
#endif

/* P_PIDFD of waitid(), which glibc defines since 2.36. */
#define SYS_WAIT_PIDFD 3

#if defined(__x86_64__)
static inline long sys_call6(long number, long a, long b, long c, long d, long e, long f)
{
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
static inline long sys_call6(long number, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory", "cc");
    return x0;
}
#else
#error "brig knows the system calls of x86_64 and aarch64"
#endif

#define SYS_PICK_(n0, n1, n2, n3, n4, n5, n6, name, ...) name
#define SYS0_(n) sys_call6(n, 0, 0, 0, 0, 0, 0)
#define SYS1_(n, a) sys_call6(n, (long)(a), 0, 0, 0, 0, 0)
#define SYS2_(n, a, b) sys_call6(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define SYS3_(n, a, b, c) sys_call6(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define SYS4_(n, a, b, c, d) sys_call6(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define SYS5_(n, a, b, c, d, e)                                                                    \
    sys_call6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define SYS6_(n, a, b, c, d, e, f)                                                                 \
    sys_call6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
/* SYS(openat, dir, path, flags, mode) makes the system call of that name. */
#define SYS(name, ...)                                                                             \
    SYS_PICK_(0, ##__VA_ARGS__, SYS6_, SYS5_, SYS4_, SYS3_, SYS2_, SYS1_, SYS0_)                   \
    (__NR_##name, ##__VA_ARGS__)

/* Brings up the loopback interface of a fresh network namespace. */
static inline int sys_loopback_up(void)
{
    /* struct ifreq: a name of 16 bytes, then a union whose first member here is the flags. */
    struct {
        char name[16];
        short flags;
        char rest[22];
    } request = {.name = "lo", .flags = 0x1 | 0x40 /* IFF_UP | IFF_RUNNING */};
    long fd = SYS(socket, 1 /* AF_UNIX */, 2 | 02000000 /* SOCK_DGRAM | SOCK_CLOEXEC */, 0);
    if (fd < 0)
        return (int)fd;
    long result = SYS(ioctl, fd, 0x8914 /* SIOCSIFFLAGS */, &request);
    (void)SYS(close, fd);
    return (int)result;
}
