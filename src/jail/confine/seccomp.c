/* SPDX-License-Identifier: MIT */
/* Selects the filter for a policy from those made by tools/gen-seccomp, and answers user
 * notifications. */

#include "seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/cleanup.h"
#include "seccomp_filters.h"

const struct sock_fprog *seccomp_program(enum brig_seccomp profile, enum brig_network network,
                                         bool nested)
{
    /* Unknown values get the narrower filter. */
    bool inet = network == BRIG_NET_HOST || network == BRIG_NET_ALLOW || network == BRIG_NET_OPEN ||
                network == BRIG_NET_LOOPBACK;
    return &seccomp_programs[profile != BRIG_SECCOMP_DEV][inet][nested];
}

const struct sock_fprog *seccomp_program_alone(enum brig_seccomp profile, enum brig_network network,
                                               bool unix_sockets)
{
    bool host = network == BRIG_NET_HOST;
    return &seccomp_programs_alone[profile != BRIG_SECCOMP_DEV][host][unix_sockets];
}

#if defined(__x86_64__)
#define AUDIT_ARCH_OWN AUDIT_ARCH_X86_64
#else
#define AUDIT_ARCH_OWN AUDIT_ARCH_AARCH64
#endif

static bool jumps(const struct sock_filter *insn, uint32_t value)
{
    switch (BPF_OP(insn->code)) {
    case BPF_JEQ:
        return value == insn->k;
    case BPF_JGE:
        return value >= insn->k;
    case BPF_JGT:
        return value > insn->k;
    default: /* BPF_JSET; the generator uses no other */
        return (value & insn->k) != 0;
    }
}

/* Interprets the few instructions that the generator uses, as the kernel does. */
static uint32_t run(const struct sock_fprog *program, const struct seccomp_data *data)
{
    uint32_t value = 0;
    for (size_t pc = 0; pc < program->len; pc++) {
        const struct sock_filter *insn = &program->filter[pc];
        if (insn->code == (BPF_RET | BPF_K))
            return insn->k;
        if (insn->code == (BPF_LD | BPF_W | BPF_ABS))
            memcpy(&value, (const char *)data + insn->k, sizeof value);
        else if (insn->code == (BPF_ALU | BPF_AND | BPF_K))
            value &= insn->k;
        else if (insn->code == (BPF_JMP | BPF_JA))
            pc += insn->k;
        else
            pc += jumps(insn, value) ? insn->jt : insn->jf;
    }
    return SECCOMP_RET_KILL_PROCESS;
}

int seccomp_verdict(const struct sock_fprog *program, int number, const uint64_t *args)
{
    struct seccomp_data data = {.nr = number, .arch = AUDIT_ARCH_OWN};
    memcpy(data.args, args, sizeof data.args);
    uint32_t action = run(program, &data);
    return action == SECCOMP_RET_ALLOW ? 0 : (int)(action & SECCOMP_RET_DATA);
}

const char *seccomp_name(int number)
{
    bool known = number >= 0 && (size_t)number < ARRAY_LENGTH(seccomp_names);
    return known && *seccomp_names[number] ? seccomp_names[number] : NULL;
}

int seccomp_number(const char *name)
{
    for (size_t i = 0; i < ARRAY_LENGTH(seccomp_names); i++)
        if (*name && strcmp(seccomp_names[i], name) == 0)
            return (int)i;
    return -1;
}

int seccomp_common_number(size_t index)
{
    return index < ARRAY_LENGTH(seccomp_common) ? seccomp_common[index] : -1;
}

/* ---- seccomp user notification ---- */

/* The kernel's structs may grow: they are 80 and 24 bytes in 6.1. */
#define NOTICE_ROOM 512

bool notice_receive(int listener, const struct sock_fprog *filter, struct notice *ret)
{
    union {
        struct seccomp_notif message;
        char room[NOTICE_ROOM];
    } request = {.room = {0}};
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) < 0)
        return false; /* the caller was killed, or was interrupted and will notify again */
    const struct seccomp_data *data = &request.message.data;
    *ret = (struct notice){.id = request.message.id,
                           .pid = (pid_t)request.message.pid,
                           .number = data->nr,
                           .verdict = ENOSYS}; /* a call of another architecture */
    memcpy(ret->args, data->args, sizeof ret->args);
    if (data->arch == AUDIT_ARCH_OWN)
        ret->verdict = seccomp_verdict(filter, data->nr, ret->args);
    return true;
}

bool notice_reply(int listener, const struct notice *notice)
{
    union {
        struct seccomp_notif_resp message;
        char room[NOTICE_ROOM];
    } reply = {.room = {0}};
    reply.message.id = notice->id;
    reply.message.error = -notice->verdict;
    if (notice->verdict == 0)
        reply.message.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    return ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &reply) == 0;
}

int notice_answer(int listener, const struct sock_fprog *filter, int *ret_number)
{
    struct notice notice;
    if (!notice_receive(listener, filter, &notice))
        return 0;
    if (notice.verdict == 0) /* not asked for: refuse what is not understood */
        notice.verdict = ENOSYS;
    *ret_number = notice.number;
    return notice_reply(listener, &notice) ? notice.verdict : 0;
}
