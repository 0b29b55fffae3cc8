/* SPDX-License-Identifier: MIT */
/* The single attempts behind a probe report. Each runs in a forked process of its own and may do to
 * it whatever it likes; what it learned it leaves in the answer. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "jail/probe/probe.h"

struct probe_context {
    uid_t uid;
    gid_t gid;
    const char *directory; /* may be NULL */
};

/* Starts as all zero, which means: works. */
struct probe_answer {
    int error;      /* the errno of what failed; 0 if it worked */
    bool limited;   /* it worked, but less than it could */
    bool no_remedy; /* and there is nothing to do about it */
    char detail[PROBE_DETAIL_MAX];
};

/* ---- Shared by the attempts (probe.c) ---- */

/* Notes a failure: the errno, and "step: its text" as the detail. */
void probe_failed(struct probe_answer *answer, int error, const char *step);
void probe_note(struct probe_answer *answer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Makes a user namespace and those in `flags` for this process, itself mapped to itself. 0 or -1
 * with the failure noted. */
int probe_enter(const struct probe_context *context, int flags, struct probe_answer *answer);

/* As probe_enter() with a mount namespace, and a fresh tmpfs as the working directory. */
int probe_enter_scratch(const struct probe_context *context, int flags,
                        struct probe_answer *answer);

/* Writes a short text to a file that exists. 0 or -1 with errno. */
int probe_write(const char *path, const char *text);
/* Reads a number; -1 if the file is missing or holds none. */
long probe_read_number(const char *path);

/* A process that does nothing but carry a user namespace without maps, or -1. It is in the attempt's
 * process group and ends with it. */
pid_t probe_hold_userns(void);

/* Runs the function in one more forked process and returns its answer. */
void probe_in_child(void (*check)(const struct probe_context *, struct probe_answer *),
                    const struct probe_context *context, struct probe_answer *answer);

/* ---- Namespaces, mounts (probe_namespaces.c) ---- */
void check_userns(const struct probe_context *context, struct probe_answer *answer);
void check_ns_mount(const struct probe_context *context, struct probe_answer *answer);
void check_ns_pid(const struct probe_context *context, struct probe_answer *answer);
void check_ns_net(const struct probe_context *context, struct probe_answer *answer);
/* In probe_net.c. */
void check_door(const struct probe_context *context, struct probe_answer *answer);
void check_ns_ipc(const struct probe_context *context, struct probe_answer *answer);
void check_ns_uts(const struct probe_context *context, struct probe_answer *answer);
void check_ns_cgroup(const struct probe_context *context, struct probe_answer *answer);
void check_ns_time(const struct probe_context *context, struct probe_answer *answer);
void check_nested_limit(const struct probe_context *context, struct probe_answer *answer);
void check_mount_api(const struct probe_context *context, struct probe_answer *answer);
void check_mount_setattr(const struct probe_context *context, struct probe_answer *answer);
void check_tmpfs(const struct probe_context *context, struct probe_answer *answer);
void check_proc(const struct probe_context *context, struct probe_answer *answer);
void check_devpts(const struct probe_context *context, struct probe_answer *answer);
void check_pivot_root(const struct probe_context *context, struct probe_answer *answer);
void check_overlay_tmpfs(const struct probe_context *context, struct probe_answer *answer);
void check_overlay_directory(const struct probe_context *context, struct probe_answer *answer);
void check_idmapped(const struct probe_context *context, struct probe_answer *answer);

/* ---- Single system calls (probe_calls.c) ---- */
void check_landlock(const struct probe_context *context, struct probe_answer *answer);
void check_seccomp(const struct probe_context *context, struct probe_answer *answer);
void check_clone3(const struct probe_context *context, struct probe_answer *answer);
void check_pidfd(const struct probe_context *context, struct probe_answer *answer);
void check_openat2(const struct probe_context *context, struct probe_answer *answer);
void check_close_range(const struct probe_context *context, struct probe_answer *answer);
void check_memfd_exec(const struct probe_context *context, struct probe_answer *answer);

/* ---- How the system is set up (probe_system.c) ---- */
void check_userns_settings(const struct probe_context *context, struct probe_answer *answer);
void check_subids(const struct probe_context *context, struct probe_answer *answer);
void check_groups(const struct probe_context *context, struct probe_answer *answer);
void check_cgroup(const struct probe_context *context, struct probe_answer *answer);
void check_open_files(const struct probe_context *context, struct probe_answer *answer);
void check_fuse(const struct probe_context *context, struct probe_answer *answer);
void check_container(const struct probe_context *context, struct probe_answer *answer);
