/* SPDX-License-Identifier: MIT */
/* Masks that come while a jail runs. */
#include <string.h>
#include <sys/socket.h>

#include "home/holder_parts.h"

/* False if the run does not read what it is told. */
static bool pass_on(int socket, const struct home_message *request, int done)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {.iov_base = (void *)(uintptr_t)request,
                         .iov_len = sizeof request->head + request->head.length};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (done >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof done);
        memcpy(CMSG_DATA(&control.header), &done, sizeof done);
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

int holder_mask(struct holder *holder, const struct holder_run *asking,
                const struct home_message *request, const struct holder_given *given,
                uint32_t *ret_told, struct brig_error *err)
{
    int status = 0;
    if (holder->has_overlay)
        status = masking_extend(&holder->masking, request, err);
    if (status == 0 && holder->has_overlay)
        masking_watch(&holder->masking);
    for (size_t i = 0; i < holder->run_count && status == 0; i++) {
        const struct holder_run *run = &holder->runs[i];
        if (run != asking && run->joined && pass_on(run->socket, request, given->fds[0]))
            ++*ret_told;
    }
    return status;
}
