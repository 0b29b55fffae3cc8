/* SPDX-License-Identifier: MIT */
/* Questions of a syscall filter that has a listener. */
#include "jail/confine/notice.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/ioctl.h>

#include "jail/confine/seccomp.h"
#include "jail/sys.h"

/* The kernel's structs may grow; it says by how much. */
#define NOTICE_ROOM 512

bool notice_fits(void)
{
    struct seccomp_notif_sizes sizes = {0};
    return SYS(seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) == 0 &&
           sizes.seccomp_notif <= NOTICE_ROOM && sizes.seccomp_notif_resp <= NOTICE_ROOM;
}

int notice_answer(int listener, const struct sock_fprog *filter, int *ret_number)
{
    union {
        struct seccomp_notif message;
        char room[NOTICE_ROOM];
    } request = {.room = {0}};
    union {
        struct seccomp_notif_resp message;
        char room[NOTICE_ROOM];
    } reply = {.room = {0}};
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) < 0)
        return 0; /* who asked is dead, or was interrupted and asks again */
    const struct seccomp_data *data = &request.message.data;
    uint64_t args[6];
    memcpy(args, data->args, sizeof args);
    int verdict = seccomp_verdict(filter, data->nr, args);
    if (verdict == 0)
        verdict = ENOSYS; /* another architecture's */
    reply.message.id = request.message.id;
    reply.message.error = -verdict;
    *ret_number = data->nr;
    return ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &reply) < 0 ? 0 : verdict;
}
