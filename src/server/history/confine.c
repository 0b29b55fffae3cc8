/* SPDX-License-Identifier: MIT */
/* Confines the history process: an attacker who takes it over through a message reaches only the
 * history. */
#include "server/history/history.h"

#include <errno.h>
#include <libpq-fe.h>
#include <sched.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "server/config/config.h"
#include "server/confine.h"

#define OPEN_FILES 256

static int grant(struct brig_policy *policy, enum brig_access access, const char *path,
                 struct brig_error *err)
{
    return brig_policy_grant(policy, access, path, NULL, BRIG_GRANT_OPTIONAL, err);
}

/* Grants files that the connection string names: certificates and the password file. */
static int grant_named(struct brig_policy *policy, const char *dsn, struct brig_error *err)
{
    static const char *const names[] = {"passfile", "sslcert", "sslkey", "sslrootcert", "sslcrl"};
    PQconninfoOption *options = PQconninfoParse(dsn, NULL);
    int result = options ? 0 : brig_fail_nomem(err);
    for (const PQconninfoOption *option = options; option && option->keyword; option++)
        for (size_t i = 0; i < ARRAY_LENGTH(names) && result == 0; i++)
            if (strcmp(option->keyword, names[i]) == 0 && option->val && option->val[0] == '/')
                result = grant(policy, BRIG_READ_ONLY, option->val, err);
    PQconninfoFree(options);
    return result;
}

/* libpq resolves host names, and looks up the user's name. */
static int grant_postgres(struct brig_policy *policy, const char *dsn, const char *spool_dir,
                          struct brig_error *err)
{
    int result = brig_policy_view(policy, BRIG_VIEW_SYSTEM, NULL, err);
    if (result == 0)
        result = brig_policy_network(policy, BRIG_NET_HOST, err);
    if (result == 0) /* a server on this machine */
        result = brig_policy_unix_sockets(policy, 1, err);
    if (result == 0)
        result = grant(policy, BRIG_READ_ONLY, "/etc/passwd", err);
    if (result == 0)
        result = grant(policy, BRIG_READ_WRITE, spool_dir, err);
    return result == 0 ? grant_named(policy, dsn, err) : result;
}

static int grant_sqlite(struct brig_policy *policy, const char *path, struct brig_error *err)
{
    autofree char *directory = strndup(path, (size_t)(strrchr(path, '/') - path));
    int result =
        directory ? brig_policy_view(policy, BRIG_VIEW_EMPTY, NULL, err) : brig_fail_nomem(err);
    if (result == 0)
        result = brig_policy_network(policy, BRIG_NET_NONE, err);
    return result == 0 ? grant(policy, BRIG_READ_WRITE, directory[0] ? directory : "/", err)
                       : result;
}

/* Calls that the profile `dev` allows, and that only a jail needs. Sorted. */
static const int denied[] = {
    SCMP_SYS(accept),            /* there is no listening socket */
    SCMP_SYS(accept4),           /* */
    SCMP_SYS(chmod),             /* files are created with their final modes */
    SCMP_SYS(chown),             /* */
    SCMP_SYS(chroot),            /* */
    SCMP_SYS(execve),            /* nothing to execute */
    SCMP_SYS(execveat),          /* */
    SCMP_SYS(fork),              /* no other processes */
    SCMP_SYS(link),              /* */
    SCMP_SYS(linkat),            /* */
    SCMP_SYS(listen),            /* */
    SCMP_SYS(memfd_create),      /* */
    SCMP_SYS(mknod),             /* */
    SCMP_SYS(mknodat),           /* */
    SCMP_SYS(process_vm_readv),  /* */
    SCMP_SYS(process_vm_writev), /* */
    SCMP_SYS(ptrace),            /* */
    SCMP_SYS(setns),             /* */
    SCMP_SYS(symlink),           /* */
    SCMP_SYS(symlinkat),         /* */
    SCMP_SYS(unshare),           /* */
    SCMP_SYS(vfork),             /* */
};

static int add_rules(void *filter, const void *argument)
{
    const struct server_config *config = argument;
    int status = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(denied); i++)
        status |= seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), denied[i], 0);
    /* Allow threads but not processes. A filter cannot read the flags of clone3(), which are in
     * memory. */
    status |= seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    status |= seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                               SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
    if (config->database.store != STORE_POSTGRES) {
        status |= seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 0);
        status |= seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(connect), 0);
    }
    return status;
}

int confine_history(const struct server_config *config, struct brig_error *err)
{
    const struct confine_filter filter = {
        .otherwise = SCMP_ACT_ALLOW, .add_rules = add_rules, .argument = config};
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);
    if (!policy)
        return brig_fail_nomem(err);
    int result = config->database.store == STORE_POSTGRES
                     ? grant_postgres(policy, config->database.dsn, config->database.spool_dir, err)
                     : grant_sqlite(policy, config->database.path, err);
    if (result == 0)
        result = confine_process("history", policy, OPEN_FILES, &filter, err);
    brig_policy_free(policy);
    return result;
}
