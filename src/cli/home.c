/* SPDX-License-Identifier: MIT */
/* The home of a run: joins the jail's holder and has its mounts in the policy. */
#include "cli/home.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/config_files.h"
#include "cli/identity.h"
#include "cli/initjail.h"
#include "cli/masks.h"
#include "cli/message.h"
#include "cli/settings.h"
#include "policy/policy.h"
#include "policy/policy_parts.h"

#define OWN_MAX 64

/* Directories of brig's, and what its parts link to: never visible in a jail. */
struct own {
    char *below[OWN_MAX]; /* the home directory, and relative to it */
    size_t below_count;
    char *elsewhere[OWN_MAX]; /* absolute */
    size_t elsewhere_count;
};

static void own_done(struct own *own)
{
    for (size_t i = 0; i < own->below_count; i++)
        free(own->below[i]);
    for (size_t i = 0; i < own->elsewhere_count; i++)
        free(own->elsewhere[i]);
}

static void add_text(char **list, size_t *count, const char *text)
{
    for (size_t i = 0; i < *count; i++)
        if (strcmp(list[i], text) == 0)
            return;
    if (*count < OWN_MAX && (list[*count] = strdup(text)))
        (*count)++;
}

/* Adds a path as it is spelt. */
static void add_path(struct own *own, const char *home, const char *path)
{
    if (strcmp(home, path) == 0)
        return;
    if (path_is_beneath(home, path))
        add_text(own->below, &own->below_count, path + strlen(home) + 1);
    else
        add_text(own->elsewhere, &own->elsewhere_count, path);
}

/* And as what it really is. */
static void add_directory(struct own *own, const char *home, const char *path)
{
    autofree char *real_home = realpath(home, NULL);
    autofree char *real = realpath(path, NULL);
    add_path(own, home, path);
    if (real && real_home)
        add_path(own, real_home, real);
}

static void find_own(const struct settings *settings, const char *home, struct own *own)
{
    add_directory(own, home, settings->config_dir);
    add_directory(own, home, settings->storage);
    /* And where the holders' sockets are. */
    char runtime[64];
    uid_t uid = settings->policy->host_uid != (uid_t)-1 ? settings->policy->host_uid : geteuid();
    (void)snprintf(runtime, sizeof runtime, "/tmp/brig-%u", uid);
    add_path(own, home, runtime);
    (void)snprintf(runtime, sizeof runtime, "/run/user/%u/brig", uid);
    add_path(own, home, runtime);
    /* Parts of any jail may be links to a disk elsewhere. */
    autodir DIR *dir = opendir(settings->storage);
    const struct dirent *item;
    while (dir && (item = readdir(dir))) {
        char path[PATH_LENGTH_MAX + 1];
        struct stat info;
        if (item->d_type != DT_LNK &&
            (item->d_type != DT_UNKNOWN ||
             fstatat(dirfd(dir), item->d_name, &info, AT_SYMLINK_NOFOLLOW) < 0 ||
             !S_ISLNK(info.st_mode)))
            continue;
        (void)snprintf(path, sizeof path, "%s/%s", settings->storage, item->d_name);
        autofree char *real = realpath(path, NULL);
        if (real)
            add_directory(own, home, real);
    }
}

/* What does not exist could be made inside of what is granted, and nothing could be mounted on it. */
static void make_own(const struct settings *settings, const struct identity *identity)
{
    const struct brig_policy *policy = settings->policy;
    const char *const directories[] = {settings->config_dir, settings->storage};
    for (size_t i = 0; i < ARRAY_LENGTH(directories); i++)
        for (size_t j = 0; j < policy->grant_count; j++) {
            const struct policy_grant *grant = &policy->grants[j];
            if (grant->access != BRIG_READ_WRITE || grant->fd >= 0 ||
                !path_is_beneath(grant->source, directories[i]))
                continue;
            autoclose int made = -1;
            identity_enter(identity);
            (void)config_make_directory(directories[i], &made, NULL);
            identity_leave(identity);
        }
}

/* What stands there instead, an empty directory, cannot be written to either. */
static int cover_own(const char *home, const struct own *own, struct brig_policy *policy,
                     struct brig_error *err)
{
    int status = brig_policy_origin(policy, "brig's own", err);
    for (size_t i = 0; i < own->below_count && status == 0; i++) {
        char path[PATH_LENGTH_MAX + 1];
        (void)snprintf(path, sizeof path, "%s/%s", home, own->below[i]);
        status = brig_policy_grant(policy, BRIG_MASK, path, NULL, BRIG_GRANT_OPTIONAL, err);
    }
    for (size_t i = 0; i < own->elsewhere_count && status == 0; i++)
        status =
            brig_policy_grant(policy, BRIG_MASK, own->elsewhere[i], NULL, BRIG_GRANT_OPTIONAL, err);
    return status;
}

static int mount_all(const struct home_mounts *mounts, const char *storage,
                     struct brig_policy *policy, struct brig_error *err)
{
    char runtime[64];
    (void)snprintf(runtime, sizeof runtime, "/run/user/%u", policy->inside_uid);
    const struct {
        int fd;
        const char *dest;
    } parts[] = {
        {mounts->home, policy->home}, {mounts->tmp, "/tmp"},  {mounts->var_tmp, "/var/tmp"},
        {mounts->shm, "/dev/shm"},    {mounts->run, runtime},
    };
    int status = brig_policy_origin(policy, "the jail's own", err);
    for (size_t i = 0; i < ARRAY_LENGTH(parts) && status == 0; i++)
        status = policy_mount(policy, parts[i].fd, storage, parts[i].dest, err);
    return status;
}

/* As whom the jail lives: root itself, and strict behind sudo, get an id that owns nothing. */
static int settle_identity(struct brig_policy *policy, const struct identity *identity,
                           uid_t *ret_owner, struct brig_error *err)
{
    const char *home = identity->host_home; /* root's own, too: it is not root's inside */
    uid_t owner = policy->host_uid != (uid_t)-1 ? policy->host_uid : geteuid();
    if (owner == 0 || (geteuid() == 0 && policy->mode == BRIG_MODE_STRICT))
        policy_be_stranger(policy, owner);
    if (policy->inside_uid == (uid_t)-1)
        policy->inside_uid = owner == 0 ? POLICY_INSIDE_UID : owner;
    *ret_owner = owner;
    autofree char *copy = NULL;
    int status = str_copy(home, &copy, err);
    if (status < 0)
        return status;
    policy_replace(&policy->home, &copy);
    if (!policy->workdir || strcmp(policy->workdir, identity->home) != 0)
        return 0;
    return brig_policy_workdir(policy, home, err);
}

static int limit_disk(const struct home_spec *spec, const struct home_mounts *mounts,
                      struct brig_policy *policy, struct brig_error *err)
{
    home_limit_disk(spec, mounts, policy->disk_lack);
    if (!policy->disk_lack[0] || policy->on_unsupported != BRIG_UNSUPPORTED_FAIL)
        return 0;
    (void)brig_fail(err, BRIG_E_UNSUPPORTED, 0, "the disk limit cannot be enforced here: %s",
                    policy->disk_lack);
    return brig_advise(err, BRIG_E_UNSUPPORTED,
                       "With --on-unsupported warn the run goes on without it");
}

static int join(const struct settings *settings, const char *home, uid_t owner,
                const struct masks *masks, const struct own *own, struct home_mounts *mounts,
                struct brig_error *err)
{
    struct brig_policy *policy = settings->policy;
    enum policy_home kind = policy_mode_row(policy->mode)->home;
    bool overlay = kind == POLICY_HOME_OVERLAY;
    const struct home_spec spec = {
        .name = settings->jail,
        .storage = settings->storage,
        .user_home = home,
        .uid = policy->host_uid != (uid_t)-1 ? policy->host_uid : owner,
        .gid = policy->host_gid != (gid_t)-1 ? policy->host_gid : getegid(),
        .owner = owner,
        .kind = kind,
        .masks = masks->hidden,
        .mask_count = overlay ? masks->hidden_count : 0,
        .shown = masks->shown,
        .shown_count = overlay ? masks->shown_count : 0,
        .own = (const char *const *)own->below,
        .own_count = overlay ? own->below_count : 0,
        .disk_bytes = policy->limits[BRIG_LIMIT_TMP_BYTES],
        .disk_inodes = policy->limits[BRIG_LIMIT_TMP_INODES],
    };
    int status = home_join(&spec, mounts, err);
    if (status == 0)
        status = limit_disk(&spec, mounts, policy, err);
    if (status == 0)
        status = mount_all(mounts, settings->storage, policy, err);
    if (status == 0 && mounts->stale)
        status = masks_apply_to_home(masks, home, policy, err);
    return status;
}

/* Remembers the mode of a jail that is new, as the user would. */
static void remember_jail(const struct settings *settings, const struct identity *identity)
{
    if (settings->jail_exists)
        return;
    bool for_user = geteuid() == 0 && identity->host_uid != (uid_t)-1;
    if (for_user) {
        (void)setfsgid(identity->host_gid);
        (void)setfsuid(identity->host_uid);
    }
    struct brig_error err = {0};
    autoclose int storage = open(settings->storage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (storage >= 0 && config_write_jail(storage, settings->jail, settings->mode, &err) < 0)
        message_warning("%s", err.message);
    if (for_user) {
        (void)setfsuid(geteuid());
        (void)setfsgid(getegid());
    }
}

void home_leave(const struct settings *settings, struct home_mounts *mounts)
{
    if (settings->script && mounts->tmp >= 0) /* the mount is gone, but its filesystem is not */
        (void)unlinkat(mounts->tmp, strrchr(settings->script_path, '/') + 1, 0);
    home_mounts_done(mounts);
}

/* What is hidden, in every mode: of the home directory, and of brig's own. */
static int hide(const struct settings *settings, const char *home, struct masks *ret_masks,
                struct own *own, struct brig_error *err)
{
    struct brig_policy *policy = settings->policy;
    int status = masks_resolve(settings, ret_masks, err);
    if (status == 0 && home)
        status = masks_apply_to_grants(ret_masks, home, policy, err);
    if (status < 0 || !home || (policy->grant_count == 0 && policy->view != BRIG_VIEW_HOST))
        return status;
    find_own(settings, home, own);
    return cover_own(home, own, policy, err);
}

int home_foresee(const struct settings *settings, const struct identity *identity,
                 struct brig_error *err)
{
    struct brig_policy *policy = settings->policy;
    const char *home = identity->host_home;
    enum policy_home kind = policy_mode_row(policy->mode)->home;
    __attribute__((cleanup(masks_done))) struct masks masks = {0};
    __attribute__((cleanup(own_done))) struct own own = {0};
    int status = hide(settings, home, &masks, &own, err);
    if (status < 0 || kind == POLICY_HOME_SCRATCH || !home)
        return status;
    uid_t owner;
    return settle_identity(policy, identity, &owner, err);
}

int home_enter(const struct settings *settings, const struct identity *identity,
               struct home_mounts *ret_mounts, struct brig_error *err)
{
    struct brig_policy *policy = settings->policy;
    const char *home = identity->host_home;
    __attribute__((cleanup(masks_done))) struct masks masks = {0};
    __attribute__((cleanup(own_done))) struct own own = {0};
    int status = hide(settings, home, &masks, &own, err);
    make_own(settings, identity);
    if (settings->script) /* in the jail's /tmp, where only the jail can read it */
        policy->file = (struct policy_file){
            .dest = settings->script_path,
            .data = settings->script,
            .length = settings->script_length,
            .mode = 0400,
        };
    if (status < 0 || policy_mode_row(policy->mode)->home == POLICY_HOME_SCRATCH)
        return status;
    if (!home)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "this user has no home directory; use -m sealed, which needs none");
    uid_t owner;
    struct home_mounts mounts = HOME_MOUNTS_INIT;
    status = settle_identity(policy, identity, &owner, err);
    if (status == 0)
        status = initjail_run(settings, identity, owner, err);
    if (status == 0)
        status = join(settings, home, owner, &masks, &own, &mounts, err);
    if (status < 0) {
        home_mounts_done(&mounts);
        return status;
    }
    remember_jail(settings, identity);
    *ret_mounts = mounts;
    return 0;
}
