/* SPDX-License-Identifier: MIT */
/* A function that may print on the caller's terminal may not do more to it: with the fd come requests
 * that stop its output, change its modes, or put the caller in the background. A filter of its own,
 * beside that of the profile, refuses them; it is only there where a stream is a terminal. */
#include <asm/ioctls.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "call/call.h"
#include "jail/sys.h"

/* Of the requests of terminals, all of which have this letter in their number: */
#define LETTER_MASK 0xff00U
#define LETTER 0x5400U
#define TCGETS2_REQUEST 0x802c542aU /* whose struct only the kernel has */
/* those that only ask, or are about the fd and not the terminal. Only the low half of a request is
 * looked at, as the kernel does. */
static const struct sock_filter guard[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_ioctl, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TCGETS, 14, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TCGETA, 13, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TCGETS2_REQUEST, 12, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TIOCGPGRP, 11, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TIOCGSID, 10, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TIOCOUTQ, 9, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TIOCGWINSZ, 8, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FIONREAD, 7, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FIONBIO, 6, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FIOCLEX, 5, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FIONCLEX, 4, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FIOASYNC, 3, 0),
    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, LETTER_MASK),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, LETTER, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

int terminal_guard(void)
{
    const struct sock_fprog program = {.len = ARRAY_LENGTH(guard),
                                       .filter = (struct sock_filter *)(uintptr_t)guard};
    long result = SYS(prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return (int)(result < 0 ? result : SYS(seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
}
