/* SPDX-License-Identifier: MIT */
/* Grants the working directory and decides where the command starts. */
#include "workdir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/identity.h"
#include "cli/message.h"
#include "cli/settings.h"
#include "policy/policy.h"

/* No home lies deeper; a loop of mounts cannot keep the walk going. */
#define WORKDIR_DEPTH_MAX 64

static bool same_directory(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Whether `directory` is home or one of its parents, by identity: links and bind mounts spell the
 * same directory in many ways. */
static bool holds_home(const struct stat *directory, const char *home)
{
    char path[PATH_LENGTH_MAX + 1];
    int length = snprintf(path, sizeof(path), "%s", home);
    if (length <= 0 || (size_t)length >= sizeof(path))
        return false;
    struct stat last = {0};
    for (int depth = 0; depth < WORKDIR_DEPTH_MAX; depth++) {
        struct stat here;
        if (stat(path, &here) < 0)
            return false;
        if (same_directory(&here, directory))
            return true;
        if (depth > 0 && same_directory(&here, &last))
            return false;
        last = here;
        if ((size_t)length + sizeof("/..") > sizeof(path))
            return false;
        memcpy(path + length, "/..", sizeof("/.."));
        length += (int)sizeof("/..") - 1;
    }
    return false;
}

/* Directories that belong to the system or to everybody: with everything below them, or alone. */
static bool is_of_system(const char *cwd)
{
    static const char *const with_all[] = {"/etc",  "/usr",  "/bin", "/sbin", "/lib",
                                           "/boot", "/proc", "/sys", "/dev",  "/run"};
    static const char *const alone[] = {"/var", "/var/lib", "/var/tmp", "/tmp",
                                        "/opt", "/srv",     "/mnt",     "/media"};
    for (size_t i = 0; i < ARRAY_LENGTH(with_all); i++)
        if (path_is_beneath(with_all[i], cwd))
            return true;
    for (size_t i = 0; i < ARRAY_LENGTH(alone); i++)
        if (strcmp(alone[i], cwd) == 0)
            return true;
    return false;
}

/* The user for whom brig acts. */
static uid_t acting_user(const struct identity *identity)
{
    return identity->host_uid != (uid_t)-1 ? identity->host_uid : geteuid();
}

struct home_search {
    const char *path;
    const struct stat *here;
    char parent[PATH_LENGTH_MAX + 1]; /* of the home before: most homes are in one directory */
};

static bool is_home_of(const struct users_user *user, void *arg)
{
    struct home_search *search = arg;
    struct stat home;
    const char *slash = strrchr(user->home, '/');
    if (user->home[0] != '/' || stat(user->home, &home) < 0 || !S_ISDIR(home.st_mode))
        return false;
    if (same_directory(&home, search->here) || path_is_beneath(search->path, user->home))
        return true;
    size_t length = (size_t)(slash - user->home);
    if (length == 0 || length >= sizeof search->parent ||
        (strncmp(search->parent, user->home, length) == 0 && !search->parent[length]))
        return false;
    memcpy(search->parent, user->home, length);
    search->parent[length] = 0;
    return holds_home(search->here, search->parent);
}

/* Whether a directory is or holds the home of anyone in /etc/passwd. One's own directories hold no
 * other user's home, so that most runs need not look; but /home is root's. */
static bool holds_any_home(const char *path, const struct stat *here,
                           const struct identity *identity)
{
    uid_t user = acting_user(identity);
    struct home_search search = {.path = path, .here = here};
    return (user == 0 || here->st_uid != user) && users_any(is_home_of, &search);
}

bool workdir_is_precious(const char *path, const struct identity *identity)
{
    struct stat here;
    if (strcmp(path, "/") == 0 || is_of_system(path) || stat(path, &here) < 0)
        return true;
    if (identity->host_home && holds_home(&here, identity->host_home))
        return true;
    const char *home = getenv("HOME");
    bool other =
        home && home[0] == '/' && !(identity->host_home && strcmp(home, identity->host_home) == 0);
    if ((other && holds_home(&here, home)) || holds_any_home(path, &here, identity))
        return true;
    /* Where no home exists the walk has not come past the root. */
    struct stat root;
    return !identity->host_home && stat("/", &root) == 0 && same_directory(&here, &root);
}

/* An id that a user namespace does not map looks like this one, and is root's most often. */
#define WORKDIR_UNMAPPED_UID 65534

/* The directory on the way to the path, or itself, that belongs to another user, if root acts for
 * itself; its length, or 0. Whoever owns it decides what the path leads to. */
static size_t find_foreign(const char *path, const struct identity *identity, uid_t *ret_owner)
{
    char part[PATH_LENGTH_MAX + 1];
    size_t length = strlen(path);
    if (acting_user(identity) != 0 || length >= sizeof part)
        return 0;
    memcpy(part, path, length + 1);
    for (; length > 0; length--) {
        struct stat info;
        if (part[length] && part[length] != '/')
            continue;
        part[length] = 0;
        if (stat(part, &info) == 0 && info.st_uid != 0 && info.st_uid != WORKDIR_UNMAPPED_UID) {
            *ret_owner = info.st_uid;
            return length;
        }
    }
    return 0;
}

bool workdir_is_foreign(const char *path, const struct identity *identity)
{
    uid_t owner;
    return find_foreign(path, identity, &owner) > 0;
}

static int refuse_foreign(const char *cwd, const struct identity *identity, struct brig_error *err)
{
    uid_t owner = 0;
    size_t length = find_foreign(cwd, identity, &owner);
    char line[USERS_LINE_MAX], name[USERS_LINE_MAX];
    struct users_user user;
    if (users_find(owner, line, &user))
        (void)snprintf(name, sizeof name, "%s", str_shown(user.name).text);
    else
        (void)snprintf(name, sizeof name, "uid %u", (unsigned)owner);
    struct str_shown shown = str_shown(cwd);
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "you are root, and the working directory '%s' %s another user, %s, so it is "
                     "not granted. Run brig as that user, or use -D to run without the directory, "
                     "or --foreign to grant it",
                     shown.text, cwd[length] ? "is in a directory of" : "belongs to", name);
}

static int grant_cwd(struct settings *settings, struct brig_error *err)
{
    int status = settings->cwd_fd >= 0 ? policy_grant_fd(settings->policy, BRIG_READ_WRITE,
                                                         settings->cwd_fd, settings->cwd, err)
                                       : brig_policy_grant(settings->policy, BRIG_READ_WRITE,
                                                           settings->cwd, NULL, 0, err);
    return status < 0 ? brig_advise(err, status, "Use -D to run without the working directory") : 0;
}

int workdir_grant(struct settings *settings, const struct identity *identity, bool *ret_held_back,
                  struct brig_error *err)
{
    if (workdir_is_precious(settings->cwd, identity) ||
        workdir_is_foreign(settings->cwd, identity)) {
        *ret_held_back = true;
        return 0;
    }
    int status = brig_policy_origin(settings->policy, WORKDIR_ORIGIN, err);
    if (status < 0)
        return status;
    *ret_held_back = false;
    return grant_cwd(settings, err);
}

void workdir_tell(const struct settings *settings, const struct identity *identity)
{
    const struct brig_policy *policy = settings->policy;
    uid_t user = acting_user(identity);
    struct stat info;
    if (user == 0 || stat(settings->cwd, &info) < 0 || info.st_uid == user)
        return;
    for (size_t i = 0; i < policy->grant_count; i++)
        if (policy->grants[i].access == BRIG_READ_WRITE &&
            strcmp(policy->grants[i].source, settings->cwd) == 0) {
            message_note("the working directory '%s' belongs to another user (uid %u); it is "
                         "granted, with your own permissions. Use -D to run without it",
                         str_shown(settings->cwd).text, (unsigned)info.st_uid);
            return;
        }
}

/* Whether the jail shows the working directory at its own path: the most specific rule decides, and
 * of several for one place the last. */
static bool shows_cwd(const struct settings *settings)
{
    const struct brig_policy *policy = settings->policy;
    const struct policy_grant *best = NULL;
    for (size_t i = 0; i < policy->grant_count; i++) {
        const struct policy_grant *grant = &policy->grants[i];
        if (path_is_beneath(grant->dest, settings->cwd) &&
            (!best || path_depth(grant->dest) >= path_depth(best->dest)))
            best = grant;
    }
    return best && best->access != BRIG_MASK && strcmp(best->source, best->dest) == 0;
}

/* Where the command starts. */
static int choose_start(struct settings *settings, const struct identity *identity,
                        struct brig_error *err)
{
    if (settings->workdir_given)
        return 0;
    if (shows_cwd(settings))
        return brig_policy_workdir(settings->policy, settings->cwd, err);
    /* Only in a root of the jail's own is there a home for sure; else the engine chooses. */
    enum brig_view view = settings->policy->view;
    bool has_home = (view == BRIG_VIEW_SYSTEM || view == BRIG_VIEW_EMPTY) &&
                    !(settings->policy->disabled_layers & BRIG_LAYER_NAMESPACES);
    return has_home ? brig_policy_workdir(settings->policy, identity->home, err) : 0;
}

int workdir_choose(struct settings *settings, const struct identity *identity, bool held_back,
                   struct brig_error *err)
{
    if (held_back && !settings->nocwd && !settings->cwd_settled) {
        struct str_shown cwd = str_shown(settings->cwd);
        if (strcmp(settings->cwd, "/") == 0)
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "the working directory is '/', which is never granted. Go into a "
                             "project, or use -D to run without it, with --view host to read it");
        bool precious = workdir_is_precious(settings->cwd, identity);
        if (!precious && !settings->foreign)
            return refuse_foreign(settings->cwd, identity, err);
        if (!precious) {
            int status = brig_policy_origin(settings->policy, WORKDIR_ORIGIN, err);
            if (status == 0)
                status = grant_cwd(settings, err);
            return status < 0 ? status : choose_start(settings, identity, err);
        }
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "the working directory '%s' is a home directory, contains one, or belongs "
                         "to the system, so it is not granted. Change to a project, or use -D to "
                         "run without it, or -d '%s' to grant it anyway",
                         cwd.text, cwd.text);
    }
    return choose_start(settings, identity, err);
}
