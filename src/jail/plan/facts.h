/* SPDX-License-Identifier: MIT */
/* What a plan depends on besides the policy and the files: what this kernel can do, and who asks. A
 * real run finds it out by itself. A plan that is only printed takes it from here, so that a file with
 * recorded facts gives the same plan on every machine. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <brig/brig.h>

#define FACTS_GROUPS_MAX 1024
#define FACTS_PROC_MAX 256

struct facts {
    int landlock;                   /* its ABI, 0 for none */
    bool namespaces;                /* user namespaces can be made */
    bool root;                      /* the caller can take any user id */
    gid_t groups[FACTS_GROUPS_MAX]; /* the caller's supplementary groups */
    size_t group_count;
    unsigned cgroup;     /* enum cgroup_resource that a new group can limit; 0: there is none */
    bool cgroup_at_hand; /* groups can be made in the caller's own */
    struct rlimit files; /* the caller's limit on open files */
    char proc
        [FACTS_PROC_MAX]; /* names in /proc, with a blank before and after each; "": look there */
};

/* Asks the kernel. */
void facts_ask(struct facts *ret_facts);

/* Reads lines of "NAME VALUE…", one for each of the names below and each once; '#' begins a comment:
 * landlock, namespaces, root, groups, cgroup, cgroup-at-hand, files, proc. */
int facts_parse(const char *text, struct facts *ret_facts, struct brig_error *err);

/* Whether /proc has this name, which is directly in it. */
bool facts_has_proc(const struct facts *facts, const char *name);
