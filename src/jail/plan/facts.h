/* SPDX-License-Identifier: MIT */
/* The facts that a plan depends on besides the policy and the files: the kernel's features and the
 * caller's ids. A run asks the kernel for them. A plan that is only printed takes them from here,
 * so that a file with recorded facts gives the same plan on every machine. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <brig/brig.h>

#define FACTS_GROUPS_MAX 1024
#define FACTS_PROC_MAX 256

struct facts {
    int landlock;                   /* its ABI, 0 if missing */
    bool namespaces;                /* user namespaces can be created */
    bool root;                      /* the caller can take any user id */
    gid_t groups[FACTS_GROUPS_MAX]; /* the caller's supplementary groups */
    size_t group_count;
    unsigned cgroup;     /* enum cgroup_resource bits that a new cgroup can limit; 0: no cgroup */
    bool cgroup_at_hand; /* cgroups can be created in the caller's cgroup */
    struct rlimit files; /* the caller's limit on open files */
    char proc[FACTS_PROC_MAX]; /* names in /proc, each between blanks; "": read /proc */
};

/* Asks the kernel. */
void facts_ask(struct facts *ret_facts);

/* Reads lines of "NAME VALUE…", exactly one for each of these names: landlock, namespaces, root,
 * groups, cgroup, cgroup-at-hand, files, proc. '#' starts a comment. */
int facts_parse(const char *text, struct facts *ret_facts, struct brig_error *err);

/* Returns whether /proc has an entry of this name. */
bool facts_has_proc(const struct facts *facts, const char *name);
