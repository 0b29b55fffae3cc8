/* SPDX-License-Identifier: MIT */
/* Switches and windows of the kernel in /proc, /sys and /dev. Opening is enough
 * to know: nothing is ever written. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "attempt.h"

#define SWITCH(function, ...)                                                                      \
    static int function(void)                                                                      \
    {                                                                                              \
        return open_any((const char *const[]){__VA_ARGS__, NULL}, judge_writable);                 \
    }
#define WINDOW(function, ...)                                                                      \
    static int function(void)                                                                      \
    {                                                                                              \
        return open_any((const char *const[]){__VA_ARGS__, NULL}, judge_read);                     \
    }

/* Reading from these can hang a machine. */
#define PEEPHOLE(function, ...)                                                                    \
    static int function(void)                                                                      \
    {                                                                                              \
        return open_any((const char *const[]){__VA_ARGS__, NULL}, judge_readable);                 \
    }

SWITCH(core_pattern, "/proc/sys/kernel/core_pattern")
SWITCH(modprobe_path, "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hotplug",
       "/proc/sys/kernel/poweroff_cmd")
SWITCH(sysctl_kernel, "/proc/sys/kernel/randomize_va_space", "/proc/sys/kernel/panic",
       "/proc/sys/kernel/dmesg_restrict", "/proc/sys/kernel/pid_max")
SWITCH(sysctl_vm, "/proc/sys/vm/overcommit_memory", "/proc/sys/vm/drop_caches",
       "/proc/sys/vm/panic_on_oom")
SWITCH(sysctl_fs, "/proc/sys/fs/suid_dumpable", "/proc/sys/fs/protected_symlinks",
       "/proc/sys/fs/file-max")
SWITCH(sysctl_net, "/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv4/ping_group_range")
SWITCH(binfmt, "/proc/sys/fs/binfmt_misc/register", "/proc/sys/fs/binfmt_misc/status")
SWITCH(sysrq, "/proc/sysrq-trigger", "/proc/sys/kernel/sysrq")
SWITCH(irq, "/proc/irq/default_smp_affinity", "/proc/irq/0/smp_affinity")
SWITCH(uevent_helper, "/sys/kernel/uevent_helper")
SWITCH(sysfs_power, "/sys/power/state", "/sys/power/disk", "/sys/kernel/mm/ksm/run",
       "/sys/kernel/mm/transparent_hugepage/enabled")
SWITCH(sysfs_debug, "/sys/kernel/debug/sched/debug", "/sys/kernel/security/lockdown",
       "/sys/kernel/tracing/trace", "/sys/kernel/tracing/tracing_on", "/sys/kernel/debug/tracing")
SWITCH(oom_of_init, "/proc/1/oom_score_adj", "/proc/1/oom_adj")
SWITCH(vcs, "/dev/vcs", "/dev/vcsa", "/dev/tty0", "/dev/tty1", "/dev/console", "/dev/ttyS0")
SWITCH(dev_kmsg, "/dev/kmsg")
SWITCH(dev_net_tun, "/dev/net/tun", "/dev/vhost-net", "/dev/vsock", "/dev/kvm", "/dev/fuse",
       "/dev/loop-control", "/dev/uinput")
WINDOW(kcore, "/proc/kcore")
WINDOW(timer_list, "/proc/timer_list")
WINDOW(kpage, "/proc/kpagecount", "/proc/kpageflags", "/proc/kpagecgroup")
PEEPHOLE(mem, "/dev/mem", "/dev/kmem", "/dev/port", "/proc/kmem")

/* A reader would take lines away from the host's own reader: opening tells as
 * much. */
static int kmsg(void)
{
    int fd = open("/proc/kmsg", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return judge("/proc/kmsg", fd);
}

static int release_agent(void)
{
    if (!has_arg("release_agent"))
        return has_arg("twin") ? NOT_HERE : REFUSED;
    return judge_writable(arg("release_agent"));
}

static int cgroup_move(void)
{
    if (!has_arg("cgroup_procs"))
        return has_arg("twin") ? NOT_HERE : REFUSED;
    return judge_writable(arg("cgroup_procs"));
}

static int cgroup_make(void)
{
    if (!has_arg("cgroup_procs"))
        return has_arg("twin") ? NOT_HERE : REFUSED;
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s", arg("cgroup_procs"));
    char *slash = strrchr(path, '/');
    (void)snprintf(slash, sizeof(path) - (size_t)(slash - path), "/brig-escape");
    int answer = judge(path, mkdir(path, 0755));
    if (answer == THROUGH)
        (void)rmdir(path);
    return answer;
}

/* Some machines keep their disk from root too: there the allowed side shows nothing. */
static int if_root_may(int answer)
{
    return answer == REFUSED && has_arg("twin") ? NOT_HERE : answer;
}

/* The disk the host lives on, as a node of /dev or as one of our own making. */
static int disk_node(void)
{
    if (!has_arg("disk_path"))
        return has_arg("twin") ? NOT_HERE : REFUSED;
    return if_root_may(judge_readable(arg("disk_path")));
}

static int open_made_node(mode_t type, dev_t device)
{
    char path[1024];
    (void)snprintf(path, sizeof(path), "%s/node", has_arg("twin") ? arg("twin_dir") : "/tmp");
    (void)unlink(path);
    if (mknod(path, type | 0600, device) < 0)
        return judge("mknod", -1);
    int answer = judge_readable(path);
    (void)unlink(path);
    return answer;
}

static int disk_make_node(void)
{
    return if_root_may(open_made_node(S_IFBLK, (dev_t)arg_number("disk")));
}

static int kmsg_make_node(void)
{
    return open_made_node(S_IFCHR, makedev(1, 11));
}

/* Addresses of the kernel's symbols are zeroes for the unprivileged. */
static int kernel_addresses(void)
{
    FILE *file = fopen("/proc/kallsyms", "re");
    char line[256];
    int answer = file ? REFUSED : has_arg("twin") ? NOT_HERE : REFUSED;
    while (file && answer == REFUSED && fgets(line, sizeof(line), file)) {
        unsigned long address = 0;
        if (sscanf(line, "%lx", &address) == 1 && address > 0xffff000000000000UL) {
            say("%s", line);
            answer = THROUGH;
        }
    }
    if (file)
        (void)fclose(file);
    return answer;
}

const struct attempt attempts_procfs[] = {
    {"core-pattern", core_pattern},
    {"modprobe-path", modprobe_path},
    {"sysctl-kernel", sysctl_kernel},
    {"sysctl-vm", sysctl_vm},
    {"sysctl-fs", sysctl_fs},
    {"sysctl-net", sysctl_net},
    {"binfmt", binfmt},
    {"sysrq", sysrq},
    {"irq", irq},
    {"uevent-helper", uevent_helper},
    {"sysfs-power", sysfs_power},
    {"sysfs-debug", sysfs_debug},
    {"oom-of-init", oom_of_init},
    {"consoles", vcs},
    {"dev-kmsg", dev_kmsg},
    {"dev-special", dev_net_tun},
    {"kcore", kcore},
    {"timer-list", timer_list},
    {"page-counts", kpage},
    {"dev-mem", mem},
    {"kmsg", kmsg},
    {"release-agent", release_agent},
    {"cgroup-move", cgroup_move},
    {"cgroup-make", cgroup_make},
    {"disk-node", disk_node},
    {"disk-make-node", disk_make_node},
    {"kmsg-make-node", kmsg_make_node},
    {"kernel-addresses", kernel_addresses},
    {NULL, NULL},
};
