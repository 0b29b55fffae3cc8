/* SPDX-License-Identifier: MIT */
/* More of the kernel's calls and files, and calls that name a group or a user of processes instead
 * of one. Arguments cannot work; files are opened and never written. */
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "more.h"

#define NICE_OF_GROUP 7

static int io_uring_rest(void)
{
    int answer = judge_reached("io_uring_enter", syscall(SYS_io_uring_enter, -1, 0, 0, 0, NULL, 0));
    return answer == THROUGH
               ? answer
               : judge_reached("io_uring_register", syscall(SYS_io_uring_register, -1, 0, NULL, 0));
}

static int add_key_to_user(void)
{
    return judge("add_key", syscall(SYS_add_key, "user", "brig-escape-left", "x", 1,
                                    KEY_SPEC_PROCESS_KEYRING));
}

static int move_pages_outsider(void)
{
    void *page = NULL;
    int status = 0;
    return judge("move_pages",
                 syscall(SYS_move_pages, arg_number("victim"), 1, &page, NULL, &status, 0));
}

static int affinity_of_outsider(void)
{
    cpu_set_t set;
    return judge("sched_getaffinity",
                 sched_getaffinity((pid_t)arg_number("victim"), sizeof(set), &set));
}

static int priority_of_outsider(void)
{
    int wanted = getpriority(PRIO_PROCESS, 0) + 1;
    return judge("setpriority", setpriority(PRIO_PROCESS, (id_t)arg_number("victim"), wanted));
}

/* The group brig was started in must not be the command's. */
static int priority_of_group(void)
{
    (void)judge("setpriority", setpriority(PRIO_PGRP, 0, NICE_OF_GROUP));
    wait_for_harness();
    return REFUSED;
}

/* The same with a signal; ours stops with it, and brig's time limit has to end that. */
static int signal_group(void)
{
    (void)kill(0, SIGSTOP);
    return REFUSED;
}

/* The allowed side would paste on a console: not tried. */
static int tioclinux_high_bits(void)
{
    char request[] = {3, 0};
    return has_arg("twin") ? NOT_HERE
                           : judge("TIOCLINUX", syscall(SYS_ioctl, STDERR_FILENO,
                                                        0xdead00000000UL | TIOCLINUX, request));
}

static int hardware_switches(void)
{
    static const char *const paths[] = {"/proc/mtrr", "/proc/scsi/scsi", "/proc/acpi/wakeup",
                                        "/proc/bus/pci/00/00.0", NULL};
    return open_any(paths, judge_writable);
}

static int memory_layout(void)
{
    static const char *const paths[] = {"/proc/slabinfo", "/proc/vmallocinfo", "/proc/pagetypeinfo",
                                        "/proc/sched_debug", NULL};
    return open_any(paths, judge_read);
}

static int key_users(void)
{
    return judge_read("/proc/key-users");
}

const struct attempt attempts_calls[] = {
    {"io-uring-rest", io_uring_rest},
    {"add-key", add_key_to_user},
    {"move-pages-outsider", move_pages_outsider},
    {"affinity-of-outsider", affinity_of_outsider},
    {"priority-of-outsider", priority_of_outsider},
    {"priority-of-group", priority_of_group},
    {"signal-group", signal_group},
    {"tioclinux-high-bits", tioclinux_high_bits},
    {"hardware-switches", hardware_switches},
    {"memory-layout", memory_layout},
    {"key-users", key_users},
    {NULL, NULL},
};
