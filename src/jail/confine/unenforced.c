/* SPDX-License-Identifier: MIT */
/* The list of what was not enforced in a run. */
#include "jail/confine/unenforced.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "jail/confine/seccomp.h"

void unenforced_add(struct brig_unenforced *list, const char *format, ...)
{
    char text[sizeof list->text[0]];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->text[i], text) == 0)
            return;
    if (list->count == BRIG_UNENFORCED_MAX) {
        (void)snprintf(list->text[BRIG_UNENFORCED_MAX - 1], sizeof text, "and more");
        return;
    }
    memcpy(list->text[list->count++], text, strlen(text) + 1);
}

/* ---- notice ---- */

/* Questions of a syscall filter that has a listener. */

/* The kernel's structs may grow: they are 80 and 24 bytes in 6.1. */
#define NOTICE_ROOM 512

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
