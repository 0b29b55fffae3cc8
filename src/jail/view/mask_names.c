/* SPDX-License-Identifier: MIT */
/* The names under which a host file would be visible in a jail. */
#include "jail/view/mask_names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/mountinfo.h"
#include "base/path.h"
#include "base/str.h"
#include "policy/policy.h"

/* Returns the part of path below directory, starting with its slash; NULL if it is not below it. */
static const char *rest_below(const char *directory, const char *path)
{
    if (strcmp(directory, "/") == 0)
        return path[1] ? path : NULL;
    return path_is_beneath(directory, path) && path[strlen(directory)] ? path + strlen(directory)
                                                                       : NULL;
}

/* ---- mounts ---- */

static int read_mounts(struct mask_names *names, struct brig_error *err)
{
    if (mountinfo_read(0, &names->mounts) < 0)
        return errno == ENOMEM ? brig_fail_nomem(err) : 0;
    names->policy->mounts = &names->mounts; /* so that the table is read only once */
    return 0;
}

/* Returns the mount that a path is on; of several at one mount point, the last. */
static const struct mountinfo *mount_of(const struct mask_names *names, const char *path)
{
    const struct mountinfo *best = NULL;
    for (size_t i = 0; i < names->mounts.count; i++) {
        const struct mountinfo *mount = &names->mounts.mounts[i];
        if (path_is_beneath(mount->point, path) &&
            (!best || strlen(mount->point) >= strlen(best->point)))
            best = mount;
    }
    return best;
}

static bool same_device(const struct mountinfo *a, const struct mountinfo *b)
{
    return a->device_major == b->device_major && a->device_minor == b->device_minor;
}

static bool same_file(const char *a, const char *b)
{
    struct stat one, other;
    return lstat(a, &one) == 0 && lstat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

/* Joins a directory and a path below it; false if the result is too long. */
static bool join_path(const char *directory, const char *rest, char path[PATH_LENGTH_MAX + 1])
{
    return str_fill(path, PATH_LENGTH_MAX + 1,
                    strcmp(directory, "/") == 0 && *rest ? "" : directory, rest);
}

/* Returns the mount that a path is on, and the path in its filesystem; NULL if unknown. */
static const struct mountinfo *find_in_filesystem(const struct mask_names *names, const char *path,
                                                  char ret_inside[PATH_LENGTH_MAX + 1])
{
    const struct mountinfo *own = mount_of(names, path);
    const char *rest = !own                            ? NULL
                       : strcmp(own->point, path) == 0 ? ""
                                                       : rest_below(own->point, path);
    return rest && join_path(own->root, rest, ret_inside) ? own : NULL;
}

int mask_names_each_alias(const struct mask_names *names, const char *path, mask_names_visit visit,
                          void *context, struct brig_error *err)
{
    char inside[PATH_LENGTH_MAX + 1], alias[PATH_LENGTH_MAX + 1];
    const struct mountinfo *own = find_in_filesystem(names, path, inside);
    int status = 0;
    for (size_t i = 0; own && i < names->mounts.count && status == 0; i++) {
        const struct mountinfo *mount = &names->mounts.mounts[i];
        if (mount == own || !same_device(mount, own) || !path_is_beneath(mount->root, inside))
            continue;
        const char *shown = strcmp(mount->root, inside) == 0 ? "" : rest_below(mount->root, inside);
        if (shown && join_path(mount->point, shown, alias) && strcmp(alias, path) != 0 &&
            same_file(alias, path))
            status = visit(context, alias, err);
    }
    return status;
}

/* Returns whether the home has other names: it, or a part of it, is mounted elsewhere, or there are
 * mounts in it. */
static bool has_aliases(const struct mask_names *names)
{
    const char *home = names->real_home;
    char inside[PATH_LENGTH_MAX + 1];
    const struct mountinfo *own = find_in_filesystem(names, home, inside);
    for (size_t i = 0; own && i < names->mounts.count; i++) {
        const struct mountinfo *mount = &names->mounts.mounts[i];
        bool shows = same_device(mount, own) &&
                     (path_is_beneath(mount->root, inside) || path_is_beneath(inside, mount->root));
        if (mount != own && (shows || rest_below(home, mount->point)))
            return true;
    }
    return false;
}

/* ---- start and end ---- */

static int find_grants(struct mask_names *names, struct brig_error *err)
{
    const struct brig_policy *policy = names->policy;
    names->grants = calloc(policy->grant_count + 1, sizeof *names->grants);
    if (!names->grants)
        return brig_fail_nomem(err);
    for (size_t i = 0; i < policy->grant_count; i++) {
        const struct policy_grant *grant = &policy->grants[i];
        if (grant->access == BRIG_MASK || grant->access == BRIG_PROTECT || grant->fd >= 0 ||
            grant->own)
            continue;
        char real[PATH_LENGTH_MAX + 1];
        bool linked = path_resolve(grant->source, real) && strcmp(real, grant->source) != 0;
        struct mask_names_grant *known = &names->grants[names->grant_count++];
        *known = (struct mask_names_grant){.source = grant->source};
        if (linked && !(known->real = strdup(real)))
            return brig_fail_nomem(err);
    }
    return 0;
}

int mask_names_init(struct mask_names *names, struct brig_policy *policy, const char *home,
                    struct brig_error *err)
{
    bool kept = policy_mode_row(policy->mode)->home != POLICY_HOME_SCRATCH;
    *names = (struct mask_names){
        .policy = policy,
        .home = home,
        .home_shows = policy->view == BRIG_VIEW_HOST && !kept,
    };
    char real[PATH_LENGTH_MAX + 1];
    int status = str_copy(path_resolve(home, real) ? real : home, &names->real_home, err);
    if (status == 0)
        status = find_grants(names, err);
    if (status == 0 && (names->grant_count > 0 || policy->view == BRIG_VIEW_HOST))
        status = read_mounts(names, err);
    names->aliases = status == 0 && has_aliases(names);
    return status;
}

void mask_names_done(struct mask_names *names)
{
    for (size_t i = 0; i < names->grant_count; i++)
        free(names->grants[i].real);
    free(names->grants);
    if (names->policy)
        names->policy->mounts = NULL;
    if (names->mounts.text)
        mountinfo_done(&names->mounts);
    free(names->real_home);
    *names = (struct mask_names){0};
}

/* ---- hiding ---- */

struct concealing {
    const struct mask_names *names;
    const char *origin;
    bool secret; /* no other rule may show it, see mask_names_hide_secret() */
};

/* A later rule of the policy can show what an earlier mask hides: a secret needs a mask after
 * it. */
static bool is_masked(const struct brig_policy *policy, const char *path, bool secret)
{
    for (size_t i = policy->grant_count; i-- > 0;) {
        bool mask = policy->grants[i].access == BRIG_MASK;
        if ((mask || secret) && strcmp(policy->grants[i].dest, path) == 0)
            return mask;
    }
    return false;
}

static int add_mask(const struct concealing *hiding, const char *path, struct brig_error *err)
{
    struct brig_policy *policy = hiding->names->policy;
    if (is_masked(policy, path, hiding->secret))
        return 0;
    int status = brig_policy_origin(policy, hiding->origin, err);
    if (status < 0)
        return status;
    status = brig_policy_grant(policy, BRIG_MASK, path, NULL, BRIG_GRANT_OPTIONAL, err);
    return status == 0 || policy->grant_count < POLICY_GRANTS_MAX
               ? status
               : brig_advise(err, status, "Mask the directory that holds '%s' instead",
                             str_shown(path).text);
}

/* In the host tree only files that can hold a secret are hidden: a history file may be a link to
 * /dev/null, and a link to a system directory must not hide that directory. */
static bool is_worth_hiding(const char *path)
{
    static const char *const with_all[] = {"/usr", "/proc", "/sys", "/dev", "/nix/store"};
    static const char *const alone[] = {"/",      "/bin",   "/boot",  "/etc", "/home", "/lib",
                                        "/lib32", "/lib64", "/media", "/mnt", "/nix",  "/opt",
                                        "/root",  "/run",   "/sbin",  "/srv", "/tmp",  "/var"};
    struct stat info;
    if (lstat(path, &info) < 0)
        return false;
    if (!S_ISDIR(info.st_mode))
        return S_ISREG(info.st_mode) || S_ISLNK(info.st_mode);
    for (size_t i = 0; i < ARRAY_LENGTH(with_all); i++)
        if (path_is_beneath(with_all[i], path))
            return false;
    for (size_t i = 0; i < ARRAY_LENGTH(alone); i++)
        if (strcmp(alone[i], path) == 0)
            return false;
    return true;
}

static bool is_in_home(const struct mask_names *names, const char *path)
{
    return path_is_beneath(names->home, path) || path_is_beneath(names->real_home, path);
}

/* Hides the path itself, and its path inside the policy's root directory. */
static int hide_secret_name(const struct concealing *hiding, const char *path,
                            struct brig_error *err)
{
    const struct brig_policy *policy = hiding->names->policy;
    char root[PATH_LENGTH_MAX + 1];
    bool inside = policy->view == BRIG_VIEW_ROOT && path_resolve(policy->root_path, root);
    const char *rest = inside ? rest_below(root, path) : NULL;
    int status = add_mask(hiding, path, err);
    return status == 0 && rest ? add_mask(hiding, rest, err) : status;
}

/* Hides one name: inside each grant that contains it, otherwise in the host tree. */
static int hide_name(void *context, const char *path, struct brig_error *err)
{
    const struct concealing *hiding = context;
    const struct mask_names *names = hiding->names;
    struct brig_policy *policy = names->policy;
    bool granted = false;
    int status = 0;
    for (size_t i = 0; i < names->grant_count && status == 0; i++) {
        const struct mask_names_grant *grant = &names->grants[i];
        char name[PATH_LENGTH_MAX + 1];
        const char *rest = rest_below(grant->source, path);
        if (!rest && grant->real)
            rest = rest_below(grant->real, path);
        bool whole = strcmp(grant->source, path) == 0;
        granted = granted || rest || whole;
        if (rest && join_path(grant->source, rest, name))
            status = add_mask(hiding, name, err);
    }
    if (status == 0 && hiding->secret)
        return hide_secret_name(hiding, path, err);
    if (status < 0 || granted || policy->view != BRIG_VIEW_HOST ||
        (!names->home_shows && is_in_home(names, path)) || !is_worth_hiding(path))
        return status;
    return add_mask(hiding, path, err);
}

int mask_names_hide(const struct mask_names *names, const char *path, const char *origin,
                    struct brig_error *err)
{
    struct concealing hiding = {names, origin, false};
    char real[PATH_LENGTH_MAX + 1];
    int status = hide_name(&hiding, path, err);
    const char *rest = rest_below(names->home, path);
    bool moved = rest && strcmp(names->home, names->real_home) != 0 &&
                 join_path(names->real_home, rest, real);
    if (status == 0 && moved)
        status = hide_name(&hiding, real, err);
    if (status == 0 && (names->aliases || !rest))
        status = mask_names_each_alias(names, moved ? real : path, hide_name, &hiding, err);
    return status;
}

int mask_names_hide_secret(const struct mask_names *names, const char *path, const char *origin,
                           struct brig_error *err)
{
    struct concealing hiding = {names, origin, true};
    int status = hide_name(&hiding, path, err);
    return status < 0 ? status : mask_names_each_alias(names, path, hide_name, &hiding, err);
}

static bool is_mask_of(const struct policy_grant *grant, const char *origin)
{
    return grant->access == BRIG_MASK && strcmp(grant->origin, origin) == 0;
}

static bool is_granted(const struct mask_names *names, const char *path)
{
    for (size_t i = 0; i < names->grant_count; i++)
        if (rest_below(names->grants[i].source, path))
            return true;
    return false;
}

int mask_names_keep_masks(const struct mask_names *names, const char *origin,
                          struct brig_error *err)
{
    struct brig_policy *policy = names->policy;
    size_t count = policy->grant_count, kept = 0;
    int status = 0;
    for (size_t i = 0; i < count && status == 0; i++)
        if (is_mask_of(&policy->grants[i], origin))
            status = mask_names_hide(names, policy->grants[i].dest, origin, err);
    if (status < 0 || policy->view == BRIG_VIEW_HOST || policy->view == BRIG_VIEW_ROOT)
        return status;
    for (size_t i = 0; i < policy->grant_count; i++) {
        const struct policy_grant *grant = &policy->grants[i];
        if (!is_mask_of(grant, origin) || is_granted(names, grant->dest))
            policy->grants[kept++] = *grant;
    }
    policy->grant_count = kept;
    return 0;
}

/* Hides another mount of the home as a whole: a secret may be stored there later. */
static int hide_alias(void *context, const char *path, struct brig_error *err)
{
    const struct concealing *hiding = context;
    const struct mask_names *names = hiding->names;
    for (size_t i = 0; i < names->grant_count; i++)
        if (strcmp(names->grants[i].source, path) == 0)
            return 0;
    return is_in_home(names, path) ? 0 : add_mask(hiding, path, err);
}

int mask_names_hide_home(const struct mask_names *names, struct brig_error *err)
{
    struct concealing hiding = {names, "another mount of the home directory", false};
    if (!names->aliases || names->home_shows ||
        (names->policy->view != BRIG_VIEW_HOST && names->grant_count == 0))
        return 0;
    return mask_names_each_alias(names, names->real_home, hide_alias, &hiding, err);
}
