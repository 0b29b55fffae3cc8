/* SPDX-License-Identifier: MIT */
/* Finds out why this system refuses user namespaces. */
#include "jail/probe/userns.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/str.h"

const struct userns_gate userns_settings[USERNS_SETTINGS] = {
    {
        .setting = "user.max_user_namespaces",
        .file = "/proc/sys/user/max_user_namespaces",
        .closed_at = 0,
        .open = "65536",
        .root_too = true,
        .why = "User namespaces are switched off on this system (user.max_user_namespaces is 0)",
        .fix = "sudo sysctl -w user.max_user_namespaces=65536",
    },
    {
        /* A patch of Debian's. */
        .setting = "kernel.unprivileged_userns_clone",
        .file = "/proc/sys/kernel/unprivileged_userns_clone",
        .closed_at = 0,
        .open = "1",
        .why = "Unprivileged user namespaces are switched off on this system "
               "(kernel.unprivileged_userns_clone is 0)",
        .fix = "sudo sysctl -w kernel.unprivileged_userns_clone=1",
    },
    {
        /* A patch of Ubuntu's, since 23.10: the namespace is created, but has no capabilities. */
        .setting = "kernel.apparmor_restrict_unprivileged_userns",
        .file = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        .closed_at = 1,
        .open = "0",
        .apparmor = true,
        .why = "Unprivileged user namespaces are restricted on this system (AppArmor)",
        .fix = "give this program an AppArmor profile that allows userns, or for all programs: "
               "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
    },
};

static const struct userns_gate jail_gate = {
    .detail = "inside a jail",
    .why = "This is a jail of brig's, in which no other is made unless it has "
           "brig_policy_allow_nested()",
    .fix = "build the jail around it with BRIG_SECCOMP_DEV and brig_policy_allow_nested()",
};
static const struct userns_gate filter_gate = {
    .why = "User namespaces are refused by a syscall filter this process is under, as in many "
           "containers",
    .fix = "run outside the container, or give it a seccomp profile that allows unshare, clone and "
           "mount (docker, podman: --security-opt seccomp=unconfined)",
};
static const struct userns_gate profile_gate = {
    .why = "User namespaces are refused by the AppArmor profile of this process, as in many "
           "containers",
    .fix = "run outside the container, or start it without the profile that is in "
           "/proc/self/attr/current (docker, podman: --security-opt apparmor=unconfined)",
};
static const struct userns_gate unknown_gate = {
    .why = "User namespaces are not available here",
    .fix = "use a kernel with CONFIG_USER_NS, outside of any chroot",
};

/* Returns the text of a file, for the caller to free, or NULL. */
static char *read_text(const char *root, const char *file, size_t max)
{
    bool whole;
    char path[PATH_MAX];
    return str_fill(path, sizeof path, root, file) ? proc_read(path, max, &whole) : NULL;
}

static bool file_has(const char *root, const char *file, const char *words)
{
    autofree char *text = read_text(root, file, 8192);
    return text && strstr(text, words);
}

long userns_read_number(const char *root, const char *file)
{
    autofree char *text = read_text(root, file, 32);
    char *end = text;
    long number = text ? strtol(text, &end, 10) : -1;
    return end == text ? -1 : number;
}

/* "unconfined" is the label of a process without a profile. That of a process with a profile is the
 * name of the profile and its mode, which also can be: "brig (unconfined)". */
static bool has_apparmor_profile(const char *root)
{
    autofree char *label = read_text(root, "/proc/self/attr/apparmor/current", 4096);
    if (!label)
        label = read_text(root, "/proc/self/attr/current", 4096);
    return label && *label && strcmp(label, "unconfined") != 0 &&
           strcmp(label, "unconfined\n") != 0;
}

bool userns_refuses(const char *root, const struct userns_gate *setting)
{
    return userns_read_number(root, setting->file) == setting->closed_at &&
           !(setting->apparmor && has_apparmor_profile(root));
}

/* A jail is recognised by the name of its pid 1. This only selects the remedy. */
const struct userns_gate *userns_find_gate(const char *root, bool is_root)
{
    if (file_has(root, "/proc/1/comm", "brig-init"))
        return &jail_gate;
    for (size_t i = 0; i < USERNS_SETTINGS; i++) {
        const struct userns_gate *setting = &userns_settings[i];
        if ((setting->root_too || !is_root) && userns_refuses(root, setting))
            return setting;
    }
    if (file_has(root, "/proc/self/status", "Seccomp:\t2"))
        return &filter_gate;
    if (file_has(root, "/proc/self/attr/apparmor/current", "(enforce)"))
        return &profile_gate;
    return &unknown_gate;
}
