/* SPDX-License-Identifier: MIT */
/* The broker's own jail. */
#include "net/broker_confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "net/broker_filter.h"

/* The newest the headers of the oldest distribution do not know. */
#define LL_TRUNCATE (1ull << 14)
#define LL_IOCTL_DEV (1ull << 15)
#define LL_NET_BIND_TCP (1ull << 0)
#define LL_SCOPE_ALL 3ull /* abstract sockets, signals */

#define CAPABILITIES_MAX 64

/* The kernel's struct landlock_ruleset_attr; how much of it there is depends on the ABI. */
struct ruleset {
    uint64_t handled_fs;
    uint64_t handled_net; /* ABI 4 */
    uint64_t scoped;      /* ABI 6 */
};

void confine_early(int last_fd)
{
    (void)prctl(PR_SET_DUMPABLE, 0);
    (void)syscall(SYS_close_range, (unsigned)last_fd + 1, ~0u, 0u);
    (void)setsid();
    /* For who has no capability it cannot be done, and does not matter: no_new_privs. */
    for (unsigned long i = 0; i < CAPABILITIES_MAX; i++)
        if (prctl(PR_CAPBSET_DROP, i, 0, 0, 0) < 0)
            break; /* not permitted, or the last there is */
    /* What is typed at the user's terminal is for the jail; the broker ends when the job does. */
    static const int ignored[] = {SIGPIPE, SIGINT, SIGQUIT, SIGHUP, SIGTSTP, SIGTTOU, SIGTTIN};
    for (size_t i = 0; i < ARRAY_LENGTH(ignored); i++)
        (void)signal(ignored[i], SIG_IGN);
}

int confine_user(bool has_user, uid_t uid, gid_t gid, struct brig_error *err)
{
    if (geteuid() != 0)
        return 0;
    if (!has_user)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "the broker was started as root without a user to change to");
    if (uid == 0)
        return 0; /* of a user namespace that has nobody else */
    if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "the broker cannot become uid %u, gid %u", uid,
                         gid);
    (void)prctl(PR_SET_DUMPABLE, 0);
    return 0;
}

/* ---- Capabilities and limits ---- */

static int drop_capabilities(struct brig_error *err)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct none[2] = {{0}, {0}};
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (syscall(SYS_capset, &header, none) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "the broker cannot drop its capabilities");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "the broker cannot set no_new_privs");
    return 0;
}

static int lower_limits(struct brig_error *err)
{
    static const int resources[] = {RLIMIT_CORE, RLIMIT_NPROC, RLIMIT_FSIZE};
    const struct rlimit none = {0, 0};
    for (size_t i = 0; i < ARRAY_LENGTH(resources); i++)
        if (setrlimit((__rlimit_resource_t)resources[i], &none) < 0)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "the broker cannot lower its limits");
    return 0;
}

/* ---- Landlock ---- */

static struct ruleset ruleset_at(long abi)
{
    struct ruleset ruleset = {.handled_fs = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1};
    if (abi >= 2)
        ruleset.handled_fs |= LANDLOCK_ACCESS_FS_REFER;
    if (abi >= 3)
        ruleset.handled_fs |= LL_TRUNCATE;
    if (abi >= 4)
        ruleset.handled_net = LL_NET_BIND_TCP;
    if (abi >= 5)
        ruleset.handled_fs |= LL_IOCTL_DEV;
    if (abi >= 6)
        ruleset.scoped = LL_SCOPE_ALL;
    return ruleset;
}

static size_t ruleset_size(long abi)
{
    if (abi >= 6)
        return sizeof(struct ruleset);
    return abi >= 4 ? offsetof(struct ruleset, scoped) : offsetof(struct ruleset, handled_net);
}

static void allow_reading(int ruleset, const char *path)
{
    autoclose int fd = open(path, O_PATH | O_CLOEXEC);
    const struct landlock_path_beneath_attr rule = {.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE,
                                                    .parent_fd = fd};
    if (fd >= 0)
        (void)syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

static int raise_landlock(const char *const *files, struct brig_error *err)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (abi < 1)
        return 0; /* this kernel has none: the filter below stays */
    const struct ruleset attr = ruleset_at(abi);
    autoclose int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, ruleset_size(abi), 0);
    if (ruleset < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "the broker cannot make Landlock rules");
    for (; *files; files++)
        allow_reading(ruleset, *files);
    if (syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "the broker cannot restrict itself");
    return 0;
}

int confine(enum confine_role role, const char *const *files, struct brig_error *err)
{
    int status = drop_capabilities(err);
    if (status == 0)
        status = lower_limits(err);
    if (status == 0)
        status = raise_landlock(files, err);
    return status < 0 ? status : filter_install(role, err);
}
