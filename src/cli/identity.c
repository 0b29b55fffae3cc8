/* SPDX-License-Identifier: MIT */
/* For whom brig acts: which user, with which home and shell. */
#include "identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/path.h"

#define IDENTITY_ROOT_NAME "brig"

/* A number from an environment variable; (uid_t)-1 if it is not there or not a number. */
static unsigned id_from_environment(const char *name)
{
    const char *text = getenv(name);
    uint64_t id = 0;
    if (!text || parse_uint(text, UINT32_MAX - 1, PARSE_ZERO_OK, &id, NULL) < 0)
        return (unsigned)-1;
    return (unsigned)id;
}

bool identity_can_use_home(const char *home)
{
    static const char *const taken[] = {"/bin",  "/boot", "/dev",  "/etc", "/lib", "/lib64",
                                        "/proc", "/run",  "/sbin", "/sys", "/tmp", "/usr"};
    if (home[0] != '/' || home[1] == '\0' || strstr(home, "/.."))
        return false;
    for (size_t i = 0; i < ARRAY_LENGTH(taken); i++)
        if (path_is_beneath(taken[i], home))
            return false;
    return true;
}

bool identity_can_use_shell(const char *shell)
{
    const char *slash = strrchr(shell, '/');
    return shell[0] == '/' && strcmp(slash, "/nologin") != 0 && strcmp(slash, "/false") != 0;
}

static void choose_home(struct identity *identity, const char *home)
{
    if (home && identity_can_use_home(home)) {
        identity->home = home;
        return;
    }
    (void)snprintf(identity->home_text, sizeof(identity->home_text), "/home/%.*s",
                   USERS_LINE_MAX - 16, identity->name);
    identity->home = identity->home_text;
}

void identity_find(struct identity *ret_identity)
{
    struct identity *identity = ret_identity;
    identity->host_uid = (uid_t)-1;
    identity->host_gid = (gid_t)-1;
    identity->shell = NULL;

    uid_t uid = geteuid();
    unsigned sudo_uid = uid == 0 ? id_from_environment("SUDO_UID") : 0;
    bool behind_sudo = uid == 0 && sudo_uid != 0 && sudo_uid != (unsigned)-1;
    if (behind_sudo)
        uid = sudo_uid;

    struct users_user entry = {.uid = uid, .gid = (gid_t)-1};
    bool found = users_find(uid, identity->line, &entry);
    if (behind_sudo) {
        identity->host_uid = uid;
        identity->host_gid = found ? entry.gid : id_from_environment("SUDO_GID");
        if (identity->host_gid == 0)
            identity->host_gid = (gid_t)-1; /* a jail has no part in root's group */
    }
    identity->host_home = entry.home;
    identity->name = uid == 0 || !found ? IDENTITY_ROOT_NAME : entry.name;
    choose_home(identity, uid == 0 ? NULL : entry.home);
    if (found && identity_can_use_shell(entry.shell))
        identity->shell = entry.shell;
}

int identity_apply(const struct identity *identity, struct brig_policy *policy,
                   struct brig_error *err)
{
    int status = brig_policy_identity(policy,
                                      &(struct brig_identity){
                                          .host_uid = identity->host_uid,
                                          .host_gid = identity->host_gid,
                                          .inside_uid = (uid_t)-1,
                                          .inside_gid = (gid_t)-1,
                                          .name = identity->name,
                                          .home = identity->home,
                                          .shell = identity->shell,
                                      },
                                      err);
    /* HOME, USER and LOGNAME follow from the identity. */
    if (status == 0 && identity->shell)
        status = brig_policy_setenv(policy, "SHELL", identity->shell, err);
    return status;
}

void identity_enter(const struct identity *identity)
{
    if (identity->host_uid == (uid_t)-1 || geteuid() != 0)
        return;
    /* The group first: without uid 0 it could not be changed any more. */
    if (identity->host_gid != (gid_t)-1)
        (void)setfsgid(identity->host_gid);
    (void)setfsuid(identity->host_uid);
}

void identity_leave(const struct identity *identity)
{
    if (identity->host_uid == (uid_t)-1 || geteuid() != 0)
        return;
    (void)setfsuid(geteuid());
    (void)setfsgid(getegid());
}
