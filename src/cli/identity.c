/* SPDX-License-Identifier: MIT */
/* The user for whom brig acts: home, shell and working directory. Also checks that a grant is the
 * file that its name suggests. */
#include "cli/identity.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/report.h"
#include "cli/run/masks.h"
#include "cli/settings/settings.h"
#include "image/images.h"
#include "jail/view/mask_names.h"
#include "policy/policy.h"

#define IDENTITY_ROOT_NAME "brig"

/* A number from an environment variable; (uid_t)-1 if it is missing or malformed. */
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

uid_t identity_uid(const struct identity *identity)
{
    return identity->host_uid != (uid_t)-1 ? identity->host_uid : geteuid();
}

int identity_become(const struct identity *identity)
{
    uid_t uid = identity_uid(identity);
    gid_t gid = identity->host_gid;
    if (uid == geteuid())
        return 0;
    if (gid == (gid_t)-1)
        return -EINVAL;
    if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
        return -errno;
    /* Otherwise root owns /proc/self with the id maps, and no jail can be started. */
    return prctl(PR_SET_DUMPABLE, 1) < 0 ? -errno : 0;
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
            identity->host_gid = (gid_t)-1; /* a jail does not get root's group */
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
                                          .size = sizeof(struct brig_identity),
                                          .host_uid = identity->host_uid,
                                          .host_gid = identity->host_gid,
                                          .inside_uid = (uid_t)-1,
                                          .inside_gid = (gid_t)-1,
                                          .name = identity->name,
                                          .home = identity->home,
                                          .shell = identity->shell,
                                      },
                                      err);
    /* HOME, USER and LOGNAME are derived from the identity. */
    if (status == 0 && identity->shell)
        status = brig_policy_setenv(policy, "SHELL", identity->shell, err);
    return status;
}

void identity_enter(const struct identity *identity)
{
    if (identity->host_uid == (uid_t)-1 || geteuid() != 0)
        return;
    /* The group first: it cannot be changed after the uid. */
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

/* ---- Variables that set default limits in every mode, with the names that operators of executors
 * already use. Options override them. ---- */

static const struct variable {
    const char *name;
    enum brig_limit limit;
    uint64_t factor; /* from the variable's unit to the limit's */
    uint64_t max;
    unsigned flags; /* for parse_uint() */
} variables[] = {
    {"EXECUTOR_MEMORY_LIMIT_MB", BRIG_LIMIT_MEMORY_BYTES, 1 << 20, PARSE_SIZE_MAX >> 20, 0},
    {"EXECUTOR_CPU_LIMIT_PERCENT", BRIG_LIMIT_CPU_PERCENT, 1, POLICY_CPU_PERCENT_MAX, 0},
    {"SANDBOX_KILL_GRACE_MS", BRIG_LIMIT_GRACE_MS, 1, PARSE_DURATION_MS_MAX, PARSE_ZERO_OK},
};

int variables_apply(struct brig_policy *policy, struct brig_error *err)
{
    for (size_t i = 0; i < ARRAY_LENGTH(variables); i++) {
        const struct variable *row = &variables[i];
        const char *text = getenv(row->name);
        if (!text)
            continue;
        uint64_t value = 0;
        int status = parse_uint(text, row->max, row->flags, &value, err);
        unsigned asked = policy->limits_asked;
        if (status == 0)
            status = brig_policy_limit(policy, row->limit, value * row->factor, err);
        policy->limits_asked = asked; /* it remains a default, not a request */
        if (status < 0)
            return brig_wrap(err, status, "environment variable %s", row->name);
    }
    return 0;
}

/* ---- The working directory ---- */

/* No home is deeper; this also bounds the walk in a loop of mounts. */
#define WORKDIR_DEPTH_MAX 64

static bool same_directory(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Whether `directory` is the home or one of its parents, by device and inode: links and bind mounts
 * give a directory many paths. */
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

/* Whether a directory belongs to the system or to all users: some with everything below them, some
 * alone. */
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

struct home_search {
    const char *path;
    const struct stat *here;
};

static bool is_home_of(const struct users_user *user, void *arg)
{
    const struct home_search *search = arg;
    struct stat home;
    return user->home[0] == '/' && stat(user->home, &home) == 0 && S_ISDIR(home.st_mode) &&
           (path_is_beneath(search->path, user->home) || holds_home(search->here, user->home));
}

/* Whether a directory is or contains the home of any user in /etc/passwd. The user's own
 * directories contain no other home, so most runs need no search; but /home belongs to root. */
static bool holds_any_home(const char *path, const struct stat *here,
                           const struct identity *identity)
{
    uid_t user = identity_uid(identity);
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
    /* Without a home, the directory has not been compared with the root yet. */
    struct stat root;
    return !identity->host_home && stat("/", &root) == 0 && same_directory(&here, &root);
}

/* The uid of files whose owner is not mapped into the user namespace; usually the owner is root. */
#define WORKDIR_UNMAPPED_UID 65534

/* Finds the directory on the path, or at its end, that belongs to another user, if root acts for
 * itself; returns its length, or 0. Its owner decides what the path leads to. */
static size_t find_foreign(const char *path, const struct identity *identity, uid_t *ret_owner)
{
    char part[PATH_LENGTH_MAX + 1];
    size_t length = strlen(path);
    if (identity_uid(identity) != 0 || length >= sizeof part)
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

int workdir_grant(struct settings *settings, struct brig_error *err)
{
    struct brig_policy *policy = settings->policy;
    int status = brig_policy_origin(policy, WORKDIR_ORIGIN, err);
    if (status < 0)
        return status;
    status = settings->cwd_fd >= 0
                 ? policy_grant_fd(policy, BRIG_READ_WRITE, settings->cwd_fd, settings->cwd, err)
                 : brig_policy_grant(policy, BRIG_READ_WRITE, settings->cwd, NULL, 0, err);
    return status < 0 ? brig_advise(err, status, "Use -D to run without the working directory") : 0;
}

void workdir_tell(const struct settings *settings, const struct identity *identity)
{
    const struct brig_policy *policy = settings->policy;
    uid_t user = identity_uid(identity);
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

/* Whether the jail shows the working directory at its own path. */
static bool shows_cwd(const struct settings *settings)
{
    const struct policy_grant *rule = policy_rule_of(settings->policy, settings->cwd);
    return rule && rule->access != BRIG_MASK && strcmp(rule->source, rule->dest) == 0;
}

/* Chooses the directory in which the command starts. */
static int choose_start(struct settings *settings, const struct identity *identity,
                        struct brig_error *err)
{
    if (settings->workdir_given)
        return 0;
    if (shows_cwd(settings))
        return brig_policy_workdir(settings->policy, settings->cwd, err);
    const struct image *image = settings->image_used;
    if (image && image->record.workdir)
        return brig_policy_workdir(settings->policy, image->record.workdir, err);
    /* Only a view with its own root certainly has a home; otherwise the engine chooses. */
    enum brig_view view = settings->policy->view;
    bool has_home = view != BRIG_VIEW_HOST && view != BRIG_VIEW_ROOT &&
                    !(settings->policy->disabled_layers & BRIG_LAYER_NAMESPACES);
    return has_home ? brig_policy_workdir(settings->policy, identity->home, err) : 0;
}

static int refuse_precious(const char *path, struct brig_error *err)
{
    struct str_shown cwd = str_shown(path);
    if (strcmp(path, "/") == 0)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "the working directory is '/', which is never granted. Change to a "
                         "project directory, or use -D to run without it");
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "the working directory '%s' is %s, so it is not granted. Change to a "
                     "project directory, or use -D to run without it, or -d '%s' to grant it "
                     "anyway",
                     cwd.text,
                     is_of_system(path) ? "a system directory" : "a home directory or contains one",
                     cwd.text);
}

int workdir_choose(struct settings *settings, const struct identity *identity, bool precious,
                   struct brig_error *err)
{
    bool asked = !settings->nocwd && !settings->cwd_settled;
    int status = 0;
    if (asked && precious)
        return refuse_precious(settings->cwd, err);
    if (asked && workdir_is_foreign(settings->cwd, identity))
        status = settings->foreign ? workdir_grant(settings, err)
                                   : refuse_foreign(settings->cwd, identity, err);
    return status < 0 ? status : choose_start(settings, identity, err);
}

/* ---- Whether a grant is the file that its name suggests ---- */

static const char *mask_of(const struct masks *masks, const char *rest)
{
    int found = rest && *rest ? mask_find(&masks->rules, rest) : -1;
    return found < 0 ? NULL : masks->rules.hidden[found];
}

static int check_link(const struct mask_names_grant *grant, const struct masks *masks,
                      const struct mask_names *names, struct brig_error *err)
{
    const char *rest = path_below(names->real_home, grant->real);
    const char *said = path_below(names->home, grant->source);
    if (!said)
        said = path_below(names->real_home, grant->source);
    if (rest && said && strcmp(rest, said) == 0)
        return 0; /* the link is above the home */
    bool is_home = path_is_beneath(grant->real, names->real_home);
    if (!is_home && !mask_of(masks, rest))
        return 0;
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "'%s' is a symbolic link to '%s', which is %s, so it is not granted. Remove "
                     "the link, or grant its target by name",
                     str_shown(grant->source).text, str_shown(grant->real).text,
                     is_home ? "or holds the home directory" : "masked");
}

static int check_cwd(const struct settings *settings, const struct masks *masks,
                     const struct mask_names *names, struct brig_error *err)
{
    const struct brig_policy *policy = settings->policy;
    const char *mask = mask_of(masks, path_below(names->real_home, settings->cwd));
    for (size_t i = 0; i < policy->grant_count && mask && !settings->cwd_settled; i++) {
        const struct policy_grant *grant = &policy->grants[i];
        if (strcmp(grant->source, settings->cwd) != 0 || strcmp(grant->origin, WORKDIR_ORIGIN) != 0)
            continue;
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "the working directory '%s' is masked (%s), so it is not granted. Go into "
                         "a project, or use -D to run without it, or -d '%s' to grant it anyway",
                         str_shown(settings->cwd).text, mask, str_shown(settings->cwd).text);
    }
    return 0;
}

int grant_check(const struct settings *settings, const struct masks *masks,
                const struct mask_names *names, struct brig_error *err)
{
    if (settings->policy->grant_count == 0)
        return 0;
    int status = check_cwd(settings, masks, names, err);
    for (size_t i = 0; i < names->grant_count && status == 0; i++)
        if (names->grants[i].real)
            status = check_link(&names->grants[i], masks, names, err);
    return status;
}

const char *grant_rest(const struct policy_grant *grant, const char *path)
{
    char above[PATH_LENGTH_MAX + 1], *slash;
    struct stat granted, here;
    if (stat(grant->source, &granted) < 0 || !str_fill(above, sizeof above, path))
        return NULL;
    while ((slash = strrchr(above, '/'))) {
        *slash = '\0';
        if (stat(*above ? above : "/", &here) == 0 && same_directory(&here, &granted))
            return path + (slash - above) + 1;
    }
    return NULL;
}

int grant_check_own(const struct mask_names *names, const char *directory, struct brig_error *err)
{
    for (size_t i = 0; i < names->grant_count; i++) {
        const struct mask_names_grant *grant = &names->grants[i];
        if (path_is_beneath(directory, grant->real ? grant->real : grant->source))
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "'%s' is in '%s', which is brig's own and never granted. Use -D if "
                             "it is the working directory, and brig cp for the files of a jail",
                             str_shown(grant->source).text, str_shown(directory).text);
    }
    return 0;
}

int grant_check_secret(const struct mask_names *names, const struct settings_secret *secret,
                       struct brig_error *err)
{
    for (size_t i = 0; i < names->grant_count; i++) {
        const char *source = names->grants[i].source;
        struct stat info;
        if (stat(source, &info) == 0 && info.st_dev == secret->dev && info.st_ino == secret->ino)
            return brig_fail(
                err, BRIG_E_INVALID, 0,
                "'%s' cannot be granted: an injected credential comes from it, so it is "
                "hidden in the jail. Remove the grant, or the inject rule [%s]",
                str_shown(source).text, str_shown(secret->origin).text);
    }
    return 0;
}
