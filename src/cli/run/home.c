/* SPDX-License-Identifier: MIT */
/* The home of a run: joins the jail's holder and adds its mounts to the policy. */
#include "cli/run/home.h"

#include <errno.h>
#include <fcntl.h>
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
#include "cli/project.h"
#include "cli/report.h"
#include "cli/run/masks.h"
#include "cli/run/own_places.h"
#include "cli/run/review.h"
#include "cli/settings/config.h"
#include "cli/settings/script.h"
#include "cli/settings/settings.h"
#include "home/wire.h"
#include "jail/view/mask_names.h"
#include "policy/policy.h"
#include "policy/startup.h"

/* For a user without a home directory: no path is below it. */
#define NO_HOME "/nonexistent"

static uid_t jail_uid(const struct brig_policy *policy, uid_t owner)
{
    return policy->host_uid != (uid_t)-1 ? policy->host_uid : owner;
}

/* Hides the files that contain credentials. This comes last: of two rules for one path the later
 * wins. */
static int hide_secrets(const struct settings *settings, const struct mask_names *names,
                        struct brig_error *err)
{
    int status = 0;
    for (size_t i = 0; i < settings->secret_count && status == 0; i++) {
        const struct settings_secret *secret = &settings->secrets[i];
        status = grant_check_secret(names, secret, err);
        if (status == 0)
            status = mask_names_hide_secret(names, secret->path, secret->origin, err);
    }
    return status;
}

/* Moves the last rules before all grants: of two rules for one path the later wins, and a user who
 * grants /tmp or the home means it. */
static int put_first(struct brig_policy *policy, size_t count)
{
    size_t others = policy->grant_count - count;
    struct policy_grant *sorted = calloc(policy->grant_count, sizeof *sorted);
    if (!sorted)
        return BRIG_E_NOMEM;
    memcpy(sorted, policy->grants + others, count * sizeof *sorted);
    memcpy(sorted + count, policy->grants, others * sizeof *sorted);
    free(policy->grants);
    policy->grants = sorted;
    return 0;
}

/* Whether there is a directory to mount on: nothing is created in grants. */
static bool has_place(const struct brig_policy *policy, const char *dest)
{
    const struct policy_grant *best = NULL;
    for (size_t i = 0; i < policy->grant_count; i++) {
        const struct policy_grant *grant = &policy->grants[i];
        if ((grant->access == BRIG_READ_WRITE || grant->access == BRIG_READ_ONLY) &&
            grant->fd < 0 && path_is_beneath(grant->dest, dest) &&
            (!best || strlen(grant->dest) >= strlen(best->dest)))
            best = grant;
    }
    if (!best)
        return true;
    char path[PATH_LENGTH_MAX + 1];
    (void)snprintf(path, sizeof path, "%s%s", best->source, dest + strlen(best->dest));
    return access(path, F_OK) == 0;
}

/* In a view with its own root, /dev/shm is in /run. */
static int check_run(const struct brig_policy *policy, struct brig_error *err)
{
    for (size_t i = 0; i < policy->grant_count && policy->view != BRIG_VIEW_HOST; i++)
        if (strcmp(policy->grants[i].dest, "/run") == 0 && policy->grants[i].access != BRIG_MASK)
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "'/run' cannot be granted in the mode %s, as the jail's own /dev/shm "
                             "is in it: grant what you need below it, or use -m bare [%s]",
                             policy_word(POLICY_MODE, policy->mode), policy->grants[i].origin);
    return 0;
}

static void runtime_directory(const struct brig_policy *policy, char ret_path[64])
{
    (void)snprintf(ret_path, 64, "/run/user/%u", policy->inside_uid);
}

static int mount_all(const struct home_mounts *mounts, const char *home, const char *storage,
                     struct brig_policy *policy, struct brig_error *err)
{
    char runtime[64];
    runtime_directory(policy, runtime);
    const struct {
        int fd;
        const char *dest;
    } parts[] = {
        {mounts->home, home},      {mounts->tmp, "/tmp"},  {mounts->var_tmp, "/var/tmp"},
        {mounts->shm, "/dev/shm"}, {mounts->run, runtime},
    };
    int status = check_run(policy, err);
    if (status == 0)
        status = brig_policy_origin(policy, "the jail's own", err);
    size_t before = policy->grant_count;
    for (size_t i = 0; i < ARRAY_LENGTH(parts) && status == 0; i++)
        if (has_place(policy, parts[i].dest))
            status = policy_mount(policy, parts[i].fd, storage, parts[i].dest, err);
    if (status == 0 && put_first(policy, policy->grant_count - before) < 0)
        return brig_fail_nomem(err);
    return status;
}

/* Chooses the host uid of the jail: root itself, and strict mode under sudo, get an isolated
 * uid. */
static int settle_identity(struct brig_policy *policy, const struct identity *identity,
                           uid_t *ret_owner, struct brig_error *err)
{
    const char *home = identity->host_home; /* also root's: inside it is not root's */
    uid_t owner = jail_uid(policy, geteuid());
    if (owner == 0 || (geteuid() == 0 && policy->mode == BRIG_MODE_STRICT))
        policy_use_isolated_uid(policy, owner);
    if (policy->inside_uid == (uid_t)-1)
        policy->inside_uid = owner == 0 ? POLICY_INSIDE_UID : owner;
    *ret_owner = owner;
    int status = policy_text(policy, home, &policy->home, err);
    if (status < 0)
        return status;
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

/* What a run hides, and where. */
struct hidden {
    struct masks masks;
    struct own_places own;
    struct mask_names names;
};

static void hidden_done(struct hidden *hidden)
{
    masks_done(&hidden->masks);
    own_places_done(&hidden->own);
    mask_names_done(&hidden->names);
}

/* ---- mount points in directories that runs share ---- */

static bool is_mounted(const struct policy_grant *grant)
{
    return grant->access == BRIG_READ_WRITE || grant->access == BRIG_READ_ONLY ||
           grant->access == BRIG_DEVICE;
}

/* A grant inside another grant is mounted on a directory of the host. */
static bool is_in_other(const struct brig_policy *policy, const struct policy_grant *grant)
{
    for (size_t i = 0; i < policy->grant_count; i++) {
        const struct policy_grant *other = &policy->grants[i];
        if (is_mounted(other) && strcmp(other->dest, grant->dest) != 0 &&
            path_is_beneath(other->dest, grant->dest))
            return true;
    }
    return false;
}

/* Finds the mount points of grants, for the holder to pin them. */
static int find_mount_points(const struct brig_policy *policy, const char *home, struct str *points,
                             struct brig_error *err)
{
    char runtime[64];
    runtime_directory(policy, runtime);
    const struct {
        enum home_place place;
        const char *dest;
    } places[] = {{HOME_PLACE_HOME, home},
                  {HOME_PLACE_TMP, "/tmp"},
                  {HOME_PLACE_TMP, "/var/tmp"},
                  {HOME_PLACE_SHM, "/dev/shm"},
                  {HOME_PLACE_RUN, runtime}};
    for (size_t i = 0; i < policy->grant_count; i++) {
        const struct policy_grant *grant = &policy->grants[i];
        struct stat info;
        if (!is_mounted(grant) || is_in_other(policy, grant) || stat(grant->source, &info) < 0)
            continue;
        for (size_t j = 0; j < ARRAY_LENGTH(places); j++) {
            const char *dest = places[j].dest;
            if (strcmp(dest, grant->dest) == 0 || !path_is_beneath(dest, grant->dest))
                continue;
            str_appendf(points, "%c%c%s", places[j].place, S_ISDIR(info.st_mode) ? 'd' : 'f',
                        grant->dest + strlen(dest) + 1);
            str_append_bytes(points, "", 1);
        }
    }
    return points->failed ? brig_fail_nomem(err) : 0;
}

static int join(const struct settings *settings, const struct identity *identity,
                struct review *review, const struct hidden *hidden, uid_t owner,
                struct home_mounts *mounts, struct brig_error *err)
{
    const struct mask_names *names = &hidden->names;
    const struct mask_rules *rules = &hidden->masks.rules;
    const char *home = names->home;
    struct brig_policy *policy = settings->policy;
    enum policy_home kind = policy_mode_row(policy->mode)->home;
    bool overlay = kind == POLICY_HOME_OVERLAY;
    /* In a view with its own root, the path of the home is a directory; on the host it may contain
     * links. */
    const char *at = policy->view == BRIG_VIEW_HOST ? names->real_home : home;
    size_t own_count = 0;
    autofree const char **own = calloc(hidden->own.count + 1, sizeof *own);
    if (!own)
        return brig_fail_nomem(err);
    for (size_t i = 0; i < hidden->own.count; i++)
        if ((own[own_count] = path_below(home, hidden->own.paths[i])))
            own_count++;
    autostr struct str points = {0};
    __attribute__((cleanup(startup_rules_done))) struct startup_rules filters = {0};
    int status = find_mount_points(policy, at, &points, err);
    if (status == 0)
        status = startup_rules_init(policy, &filters, err);
    if (status < 0)
        return status;
    const struct home_spec spec = {
        .name = settings->jail,
        .storage = settings->storage,
        .user_home = home,
        .uid = jail_uid(policy, owner),
        .gid = policy->host_gid != (gid_t)-1 ? policy->host_gid : getegid(),
        .owner = owner,
        .kind = kind,
        .masks = rules->hidden,
        .mask_count = overlay ? rules->hidden_count : 0,
        .shown = rules->shown,
        .shown_count = overlay ? rules->shown_count : 0,
        .own = own,
        .own_count = overlay ? own_count : 0,
        .filters = filters.items,
        .filter_count = overlay ? filters.count : 0,
        .mount_points = &points,
        .disk_bytes = policy->limits[BRIG_LIMIT_TMP_BYTES],
        .disk_inodes = policy->limits[BRIG_LIMIT_TMP_INODES],
    };
    autoclose int lock = -1;
    if (overlay)
        status = review_begin_home(review, settings, identity, names->real_home, &lock, err);
    if (status == 0 && overlay)
        status = review_record_masks(settings, identity, LAYER_HOME, &spec, err);
    if (status == 0)
        status = home_join(&spec, mounts, err);
    if (status == 0)
        status = limit_disk(&spec, mounts, policy, err);
    if (status == 0)
        status = mount_all(mounts, at, settings->storage, policy, err);
    return status;
}

/* Records the mode of a new jail, with the ids of the user. */
static void remember_jail(const struct settings *settings, const struct identity *identity)
{
    if (settings->jail_exists)
        return;
    struct brig_error err = {0};
    identity_enter(identity);
    autoclose int storage = open(settings->storage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (storage >= 0 && settings->project)
        project_record(storage, settings->jail, settings->project);
    if (storage >= 0 && config_write_jail(storage, settings->jail, settings->mode,
                                          settings->project != NULL, &err) < 0)
        message_warning("%s", err.message);
    if (strcmp(settings->jail, SETTINGS_JAIL) == 0)
        config_note_default_jail(settings->storage);
    identity_leave(identity);
}

void home_leave(const struct settings *settings, struct home_mounts *mounts)
{
    if (mounts->lease < 0) /* the run has no holder */
        return;
    if (settings->script && mounts->tmp >= 0) /* the filesystem outlives the mount */
        (void)unlinkat(mounts->tmp, strrchr(settings->script_path, '/') + 1, 0);
    home_mounts_done(mounts);
}

/* If the jail's home is a copy of the real one, links in it lead to the same paths as outside; in
 * an empty home the directories of the grant's path are created. */
static int find_dest(const struct policy_grant *grant, const char *home, const char *real_home,
                     bool copied, char **ret_dest, struct brig_error *err)
{
    char real[PATH_LENGTH_MAX + 1];
    if (copied && path_resolve(grant->source, real))
        return str_copy(real, ret_dest, err);
    return str_make(ret_dest, err, real_home, grant->dest + strlen(home));
}

/* Moves the protected paths of a grant with it. */
static int move_protected(struct brig_policy *policy, const char *from, const char *to,
                          struct brig_error *err)
{
    int status = 0;
    for (size_t i = 0; i < policy->grant_count && status == 0; i++) {
        struct policy_grant *grant = &policy->grants[i];
        autofree char *dest = NULL;
        if ((grant->access != BRIG_PROTECT && !grant->own) || !path_is_beneath(from, grant->dest))
            continue;
        status = str_make(&dest, err, to, grant->dest + strlen(from));
        if (status == 0)
            status = policy_text(policy, dest, &grant->dest, err);
    }
    return status;
}

/* In the host's tree, mount points must be paths without links: grants in the home are moved to its
 * real path. */
static int settle_grants(struct brig_policy *policy, const char *home, struct brig_error *err)
{
    bool copied = policy_mode_row(policy->mode)->home == POLICY_HOME_OVERLAY;
    char real_home[PATH_LENGTH_MAX + 1];
    int status = 0;
    if (!home || policy->view != BRIG_VIEW_HOST || !path_resolve(home, real_home))
        return 0;
    for (size_t i = 0; i < policy->grant_count && status == 0; i++) {
        struct policy_grant *grant = &policy->grants[i];
        autofree char *dest = NULL;
        if (strcmp(grant->source, grant->dest) != 0 || !path_is_beneath(home, grant->dest) ||
            (grant->access != BRIG_READ_WRITE && grant->access != BRIG_READ_ONLY))
            continue;
        status = find_dest(grant, home, real_home, copied, &dest, err);
        if (status < 0 || strcmp(dest, grant->dest) == 0)
            continue;
        status = move_protected(policy, grant->dest, dest, err);
        if (status == 0)
            status = policy_text(policy, dest, &grant->dest, err);
    }
    return status;
}

/* Whether the jail sees any files of the host in which something could be hidden. The system
 * directories, which every view has, may contain the file of a credential. */
static bool shows_host(const struct settings *settings)
{
    const struct brig_policy *policy = settings->policy;
    return policy->grant_count > 0 || policy->view == BRIG_VIEW_HOST || settings->secret_count > 0;
}

/* Computes what is hidden, in every mode: in the home directory, and of brig's directories. */
static int hide(const struct settings *settings, const char *home, uid_t owner,
                struct hidden *hidden, struct brig_error *err)
{
    struct brig_policy *policy = settings->policy;
    int status = masks_resolve(settings, &hidden->masks, err);
    if (status == 0)
        status = settle_grants(policy, home, err);
    if (status < 0 || (!home && settings->secret_count == 0))
        return status;
    status = mask_names_init(&hidden->names, policy, home ? home : NO_HOME, err);
    if (status == 0)
        status = hide_secrets(settings, &hidden->names, err);
    if (status < 0 || !home)
        return status;
    status = mask_names_keep_masks(&hidden->names, SETTINGS_BUILT_IN, err);
    if (status == 0)
        status = grant_check(settings, &hidden->masks, &hidden->names, err);
    if (status == 0 && shows_host(settings)) {
        status = masks_apply(&hidden->masks, &hidden->names, err);
        if (status == 0)
            status = masks_apply_startup(policy, &hidden->names, err);
        if (status == 0)
            status = own_places_find(settings, home, owner, &hidden->own, err);
        if (status == 0)
            status = own_places_hide(&hidden->own, &hidden->names, err);
        if (status == 0)
            status = mask_names_hide_home(&hidden->names, err);
    }
    return status;
}

/* Uses the ids of the user: a path may be a link to anywhere. */
static int hide_as_user(const struct settings *settings, const struct identity *identity,
                        struct hidden *hidden, struct brig_error *err)
{
    identity_enter(identity);
    int status = hide(settings, identity->host_home, identity_uid(identity), hidden, err);
    identity_leave(identity);
    return status;
}

/* Mounts the reviewed directories, after the home: in it they have mount points. */
static int join_reviewed(struct review *review, const struct settings *settings,
                         const struct identity *identity, const struct hidden *hidden,
                         struct brig_error *err)
{
    const struct review_hidden here = {.rules = &hidden->masks.rules,
                                       .names = hidden->names.home ? &hidden->names : NULL,
                                       .own = hidden->own.paths,
                                       .own_count = hidden->own.count};
    return review_join(review, settings, identity, &here, err);
}

static int no_home(struct brig_error *err)
{
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "this user has no home directory; use -m sealed, which needs none");
}

/* ---- a plan that is printed ---- */

struct told {
    struct str *out;
    int home;
};

/* Most of the hundreds of masks are for files that do not exist. */
static int tell_hidden(void *context, const struct mask_path *path, struct brig_error *err)
{
    const struct told *told = context;
    struct stat info;
    (void)err;
    if (fstatat(told->home, path->path, &info, AT_SYMLINK_NOFOLLOW) == 0)
        str_appendf(told->out, "  hides %s%s\n", str_shown(path->path).text,
                    path->linked ? ", by a link" : "");
    return 0;
}

/* Prints the rules of the user. The built-in ones are hundreds, and always the same. */
static void tell_rules(struct str *out, const struct masks *masks)
{
    size_t built_in = 0;
    for (size_t i = 0; i < masks->rules.hidden_count; i++)
        if (masks->origins[i] && strcmp(masks->origins[i], SETTINGS_BUILT_IN) == 0)
            built_in++;
        else
            str_appendf(out, "  hides all that is %s\n", str_shown(masks->rules.hidden[i]).text);
    for (size_t i = 0; i < masks->rules.shown_count; i++)
        str_appendf(out, "  shows %s\n", str_shown(masks->rules.shown[i]).text);
    if (built_in > 0)
        str_appendf(out, "  hides what %zu built-in masks name\n", built_in);
}

/* Describes the overlay that the holder mounts, and the masks in it. */
static int tell_overlay(const struct settings *settings, const struct hidden *hidden,
                        struct str *out, struct brig_error *err)
{
    const struct masks *masks = &hidden->masks;
    const char *home = hidden->names.home;
    str_appendf(out, "  %s copy-on-write, changes in %s/%s.changes\n", home, settings->storage,
                settings->jail);
    for (size_t i = 0; i < hidden->own.count; i++)
        if (path_is_beneath(home, hidden->own.paths[i]))
            str_appendf(out, "  hides %s, brig's own\n", path_below(home, hidden->own.paths[i]));
    tell_rules(out, masks);
    autoclose int fd = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const struct mask_home where = {.fd = fd, .path = home, .real = hidden->names.real_home};
    struct told told = {.out = out, .home = fd};
    const struct mask_visitor visitor = {.path = tell_hidden, .context = &told};
    return fd < 0 ? 0 : mask_each(&where, &masks->rules, &visitor, err);
}

/* Provides an empty directory in place of all mounts of the holder. */
static int stand_in(const struct settings *settings, const struct hidden *hidden, struct str *out,
                    int *ret_stand_in, struct brig_error *err)
{
    struct brig_policy *policy = settings->policy;
    const struct mask_names *names = &hidden->names;
    autoclose int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open '/'");
    const struct home_mounts mounts = {.home = fd, .tmp = fd, .var_tmp = fd, .shm = fd, .run = fd};
    const char *at = policy->view == BRIG_VIEW_HOST ? names->real_home : names->home;
    str_appendf(out, "home:\n  of the jail %s, which keeps it and its private directories\n",
                settings->jail);
    int status = 0;
    if (policy_mode_row(policy->mode)->home == POLICY_HOME_OVERLAY)
        status = tell_overlay(settings, hidden, out, err);
    else
        str_appendf(out, "  empty at first, in %s/%s.home\n", settings->storage, settings->jail);
    if (status == 0)
        status = mount_all(&mounts, at, settings->storage, policy, err);
    *ret_stand_in = take_fd(&fd);
    return status;
}

int home_foresee(const struct settings *settings, const struct identity *identity,
                 struct review *review, struct str *plan, int *ret_stand_in, struct brig_error *err)
{
    struct brig_policy *policy = settings->policy;
    enum policy_home kind = policy_mode_row(policy->mode)->home;
    bool kept = kind != POLICY_HOME_SCRATCH;
    __attribute__((cleanup(hidden_done))) struct hidden hidden = {0};
    uid_t owner;
    if (plan && kept && !identity->host_home)
        return no_home(err);
    int status = 0;
    if (kept && identity->host_home)
        status = settle_identity(policy, identity, &owner, err);
    /* A run hides nothing if it sees no files of the host. */
    if (status == 0 && (!plan || kept || shows_host(settings)))
        status = hide_as_user(settings, identity, &hidden, err);
    if (status == 0 && plan)
        status = review_foresee(review, settings, plan, err);
    if (status < 0 || !plan)
        return status;
    policy->file = script_file(settings);
    return kept ? stand_in(settings, &hidden, plan, ret_stand_in, err) : 0;
}

int home_enter(const struct settings *settings, const struct identity *identity,
               struct review *review, struct home_mounts *ret_mounts, struct live_masks *live,
               struct brig_error *err)
{
    struct brig_policy *policy = settings->policy;
    bool kept = policy_mode_row(policy->mode)->home != POLICY_HOME_SCRATCH;
    __attribute__((cleanup(hidden_done))) struct hidden hidden = {0};
    uid_t owner = 0;
    if (kept && !identity->host_home)
        return no_home(err);
    int status = kept ? settle_identity(policy, identity, &owner, err) : 0;
    if (status == 0 && (kept || shows_host(settings)))
        status = hide_as_user(settings, identity, &hidden, err);
    policy->file = script_file(settings);
    if (status == 0 && !kept)
        status = join_reviewed(review, settings, identity, &hidden, err);
    if (status == 0 && !kept && identity->host_home)
        live_masks_init(live, settings, identity, &hidden.masks, &hidden.names);
    if (status < 0 || !kept)
        return status;
    struct home_mounts mounts = HOME_MOUNTS_INIT;
    status = initjail_run(settings, identity, err);
    if (status == 0)
        status = join(settings, identity, review, &hidden, owner, &mounts, err);
    if (status == 0)
        status = join_reviewed(review, settings, identity, &hidden, err);
    if (status < 0) {
        home_mounts_done(&mounts);
        return status;
    }
    live_masks_init(live, settings, identity, &hidden.masks, &hidden.names);
    remember_jail(settings, identity);
    if (*mounts.notice)
        message_warning("%s", mounts.notice);
    *ret_mounts = mounts;
    return 0;
}
