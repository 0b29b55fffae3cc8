/* SPDX-License-Identifier: MIT */
/* Theory of operation: the jail's first process.
 *
 * Init runs as pid 1 of the jail's pid namespace (or, without one, as a subreaper above the
 * command), with the jail's ids and one capability in the jail's user namespace. The command has no
 * capability, so it can neither trace nor read init. Init trusts only its socket to the supervisor.
 * It reaps, forwards signals on request, reports how the command stopped or ended, and exits; the
 * kernel then kills every process of the namespace. If the supervisor dies, the socket closes and
 * init ends the jail.
 *
 * Init is freestanding and as small as possible, because every jail has one. */
#include <stdbool.h>
#include <stddef.h>

#include <asm/signal.h>
#include <asm/stat.h>
#include <linux/fcntl.h>
#include <linux/poll.h>
#include <linux/prctl.h>
#include <linux/resource.h>
#include <linux/signalfd.h>
#include <linux/time_types.h>
#include <linux/wait.h>

#include "../sys.h"
#include "../wire.h"

#define ERR_EINTR 4
#define ERR_ECHILD 10

/* Wait statuses as encoded by wait(2). */
#define STATUS_STOPPED(status) (((status)&0xff) == 0x7f)
#define STATUS_STOPSIG(status) (((status) >> 8) & 0xff)

/* Compilers call memset() to zero structs; there is no libc to provide it. */
void *memset(void *memory, int byte, size_t size);
__attribute__((used)) void *memset(void *memory, int byte, size_t size)
{
    volatile char *at = memory;
    while (size-- > 0)
        *at++ = (char)byte;
    return memory;
}

enum mode {
    MODE_NAMESPACE = 'n',
    MODE_KEEPER = 'k', /* the same, but the jail outlives its command */
    MODE_SUBREAPER = 's',
    MODE_HOLDER = 'h',
    MODE_MAKER = 'm',
    MODE_MAKER_LOOPBACK = 'M',
};

/* The arguments of sendmsg on 64-bit machines; the system's headers for them need libc. */
struct part {
    void *base;
    unsigned long length;
};

struct message_header {
    void *name;
    unsigned name_length;
    struct part *parts;
    unsigned long part_count;
    void *control;
    unsigned long control_length;
    int flags;
};

static __attribute__((noreturn)) void leave(int code)
{
    for (;;)
        (void)SYS(exit_group, code);
}

static void report(int type, int a)
{
    struct wire_message message = {.type = type, .a = a};
    (void)SYS(sendto, WIRE_INIT_FD, &message, sizeof message, 0x4000 /* MSG_NOSIGNAL */, 0, 0);
}

static int parse_pid(const char *text)
{
    int value = 0;
    while (*text >= '0' && *text <= '9')
        value = value * 10 + (*text++ - '0');
    return value;
}

/* State of the jail. */
struct jail {
    int command; /* its pid, 0 for none */
    int signals; /* a signalfd for SIGCHLD */
    int mode;
    int status; /* the command's wait status, -1 while it runs */
};

/* Waits once; returns the pid or the error of wait4. */
static long wait_one(struct jail *jail, int options)
{
    int status = 0;
    long pid = SYS(wait4, -1, &status, __WALL | options, 0);
    if (pid > 0 && pid == jail->command) {
        if (STATUS_STOPPED(status))
            report(WIRE_STOPPED, STATUS_STOPSIG(status));
        else
            jail->status = status;
    }
    return pid;
}

/* Without a pid namespace no process dies with init: kill init's children until none are left.
 * Grandchildren become children of init, the subreaper, when their parents die. */
static void kill_children(struct jail *jail)
{
    char path[] = "/proc/thread-self/children";
    for (int round = 0; round < 10000; round++) {
        char text[4096];
        int fd = (int)SYS(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
        long length = fd < 0 ? 0 : SYS(read, fd, text, sizeof text - 1);
        if (fd >= 0)
            (void)SYS(close, fd);
        text[length > 0 ? length : 0] = 0;
        for (const char *at = text; *at >= '0' && *at <= '9';) {
            (void)SYS(kill, parse_pid(at), SIGKILL);
            while (*at >= '0' && *at <= '9')
                at++;
            while (*at == ' ')
                at++;
        }
        if (wait_one(jail, 0) == -ERR_ECHILD)
            return;
    }
}

/* With a pid namespace one kill() reaches all processes except init. Init reaps them, instead of
 * leaving that to the kernel at the end of the namespace, so that their resource usage is
 * counted. */
static void kill_namespace(struct jail *jail)
{
    bool told = false;
    while (SYS(kill, -1, SIGKILL) == 0) {
        long waited;
        while ((waited = wait_one(jail, WNOHANG)) > 0)
            ;
        if (waited < 0)
            continue;
        struct pollfd dying = {.fd = jail->signals, .events = POLLIN};
        struct __kernel_timespec patience = {.tv_sec = 1};
        struct signalfd_siginfo info;
        if (SYS(ppoll, &dying, 1, &patience, 0, 0) == 0 && !told) {
            report(WIRE_STUCK, 0); /* a process is in uninterruptible sleep */
            told = true;
        }
        (void)SYS(read, jail->signals, &info, sizeof info);
    }
}

static uint64_t to_us(const struct __kernel_old_timeval *time)
{
    return (uint64_t)time->tv_sec * 1000000 + (uint64_t)time->tv_usec;
}

/* Reports the command's wait status and the total resource usage, and exits. */
static __attribute__((noreturn)) void tell_end(const struct jail *jail)
{
    struct rusage usage = {0};
    (void)SYS(getrusage, RUSAGE_CHILDREN, &usage);
    struct wire_message message = {.type = WIRE_ENDED,
                                   .a = jail->status,
                                   .peak_kb = (uint32_t)usage.ru_maxrss,
                                   .user_us = to_us(&usage.ru_utime),
                                   .sys_us = to_us(&usage.ru_stime)};
    (void)SYS(sendto, WIRE_INIT_FD, &message, sizeof message, 0x4000 /* MSG_NOSIGNAL */, 0, 0);
    leave(0);
}

/* Kills all processes first. */
static __attribute__((noreturn)) void end_jail(struct jail *jail)
{
    if (jail->mode == MODE_SUBREAPER)
        kill_children(jail);
    else if (jail->mode == MODE_NAMESPACE || jail->mode == MODE_KEEPER)
        kill_namespace(jail);
    tell_end(jail);
}

/* Reaps all exited children; ends the jail if the command exited. */
static void reap(struct jail *jail)
{
    while (wait_one(jail, WNOHANG | WUNTRACED) > 0)
        ;
    if (jail->status == -1 || jail->mode == MODE_KEEPER)
        return;
    end_jail(jail);
}

/* Creates a network namespace in the current user namespace and sends its fd to the supervisor. */
static void make_network(int mode)
{
    if (SYS(unshare, 0x40000000 /* CLONE_NEWNET */) < 0)
        leave(125);
    if (mode == MODE_MAKER_LOOPBACK)
        (void)sys_loopback_up();
    long fd = SYS(openat, AT_FDCWD, "/proc/self/ns/net", O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        leave(125);
    struct wire_message message = {.type = WIRE_NETWORK};
    struct part part = {.base = &message, .length = sizeof message};
    struct {
        unsigned long length;
        int level, type;
        int fd, padding;
    } control = {.length = sizeof(unsigned long) + 3 * sizeof(int),
                 .level = 1 /* SOL_SOCKET */,
                 .type = 1 /* SCM_RIGHTS */,
                 .fd = (int)fd};
    struct message_header header = {
        .parts = &part, .part_count = 1, .control = &control, .control_length = sizeof control};
    if (SYS(sendmsg, WIRE_INIT_FD, &header, 0x4000 /* MSG_NOSIGNAL */) < 0)
        leave(0);
    (void)SYS(close, fd);
}

static void obey(struct jail *jail)
{
    struct wire_message message;
    long length = SYS(recvfrom, WIRE_INIT_FD, &message, sizeof message, 0, 0, 0);
    if (length == -ERR_EINTR)
        return;
    if (length != (long)sizeof message || message.type == WIRE_KILL)
        end_jail(jail);
    if (message.type == WIRE_NETWORK &&
        (jail->mode == MODE_MAKER || jail->mode == MODE_MAKER_LOOPBACK))
        make_network(jail->mode);
    if (message.type == WIRE_SIGNAL && jail->command > 0) {
        /* The command leads a process group; if it left the group, signal only the command. */
        if (SYS(kill, -jail->command, message.a) < 0)
            (void)SYS(kill, jail->command, message.a);
    }
}

static __attribute__((noreturn, used)) void init_main(long *stack)
{
    long argc = stack[0];
    const char **argv = (const char **)(stack + 1);
    if (argc < 3)
        leave(125);
    struct jail jail = {.command = parse_pid(argv[1]), .mode = argv[2][0], .status = -1};

    (void)SYS(prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
    (void)SYS(prctl, PR_SET_NAME, "brig-init", 0, 0, 0);

    /* All signals stay blocked, so that none can kill or interrupt init; SIGCHLD is read from a
     * signalfd. */
    unsigned long all = ~0UL, child = 1UL << (SIGCHLD - 1);
    (void)SYS(rt_sigprocmask, 0 /* SIG_BLOCK */, &all, 0, sizeof all);
    report(WIRE_STARTED, 0);
    if (jail.command > 0) {
        (void)SYS(write, WIRE_GATE_FD, "", 1); /* the command may start */
        (void)SYS(close, WIRE_GATE_FD);
    }
    long signals = SYS(signalfd4, -1, &child, sizeof child, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0)
        leave(125);
    jail.signals = (int)signals;
    if (jail.command > 0)
        reap(&jail);

    struct pollfd fds[2] = {{.fd = WIRE_INIT_FD, .events = POLLIN},
                            {.fd = (int)signals, .events = POLLIN}};
    for (;;) {
        long ready = SYS(ppoll, fds, jail.command > 0 ? 2 : 1, 0, 0, 0);
        if (ready < 0 && ready != -ERR_EINTR)
            end_jail(&jail);
        if (fds[1].revents) {
            struct signalfd_siginfo info;
            while (SYS(read, signals, &info, sizeof info) > 0)
                ;
            reap(&jail);
        }
        if (fds[0].revents)
            obey(&jail);
    }
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n\txor %ebp,%ebp\n\tmov %rsp,%rdi\n\tand $-16,%rsp\n\tcall "
        "init_main\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n_start:\n\tmov x29,#0\n\tmov x30,#0\n\tmov x0,sp\n\tb init_main\n");
#endif
