/* SPDX-License-Identifier: MIT */
/* Reviewed directories of a run. */
#include "cli/run/review.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "changes/layer/base.h"
#include "changes/layer/hidden.h"
#include "changes/layer/layer.h"
#include "changes/operation/operation.h"
#include "cli/identity.h"
#include "cli/report.h"
#include "cli/settings/config.h"
#include "cli/settings/settings.h"
#include "home/wire.h"
#include "jail/view/mask.h"
#include "jail/view/mask_names.h"
#include "policy/policy.h"

/* ---- which grants are reviewed ---- */

static bool is_writable(const struct policy_grant *grant)
{
    return grant->access == BRIG_READ_WRITE && grant->fd < 0 && !grant->own;
}

/* An option for the working directory covers every rule for it: of several, the last one counts. */
static bool mark_workdir(const struct settings *settings)
{
    bool found = false;
    for (size_t i = 0; i < settings->policy->grant_count; i++) {
        struct policy_grant *grant = &settings->policy->grants[i];
        if (is_writable(grant) && strcmp(grant->source, settings->cwd) == 0)
            found = grant->review = true;
    }
    return found;
}

static size_t count_marked(const struct brig_policy *policy)
{
    size_t count = 0;
    for (size_t i = 0; i < policy->grant_count; i++)
        count += policy->grants[i].review;
    return count;
}

/* One name of a reviewed directory on the host. */
struct alias {
    const struct brig_policy *policy;
    const struct policy_grant *reviewed;
    const char *root; /* without links */
};

/* Whether the jail would see a path of the host in a writable grant that is not reviewed, at another
 * path than the reviewed mount covers. */
static int refuse_alias(void *context, const char *path, struct brig_error *err)
{
    const struct alias *alias = context;
    for (size_t i = 0; i < alias->policy->grant_count; i++) {
        const struct policy_grant *grant = &alias->policy->grants[i];
        char real[PATH_LENGTH_MAX + 1], shown[PATH_LENGTH_MAX + 1];
        if (!is_writable(grant) || grant->review || !path_resolve(grant->source, real))
            continue;
        const char *rest = path_below(real, path);
        if (!rest ||
            !str_fill(shown, sizeof shown, strcmp(grant->dest, "/") == 0 ? "" : grant->dest,
                      *rest ? "/" : "", rest) ||
            strcmp(shown, alias->reviewed->dest) == 0)
            continue;
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'%s' is reviewed, but the command could write to it as '%s' [%s]. "
                         "Remove that grant, or grant less",
                         str_shown(alias->root).text, str_shown(shown).text, grant->origin);
    }
    return 0;
}

/* A directory that is granted by itself below a reviewed one stays a direct grant. */
static void note_direct(const struct alias *alias)
{
    for (size_t i = 0; i < alias->policy->grant_count; i++) {
        const struct policy_grant *grant = &alias->policy->grants[i];
        char real[PATH_LENGTH_MAX + 1];
        const char *rest = is_writable(grant) && !grant->review && path_resolve(grant->source, real)
                               ? path_below(alias->root, real)
                               : NULL;
        if (rest && *rest)
            message_note("'%s' is granted by itself [%s], so that it is not reviewed",
                         str_shown(grant->source).text, str_shown(grant->origin).text);
    }
}

static int check_grant(const struct settings *settings, const struct mask_names *names,
                       const struct policy_grant *grant, struct brig_error *err)
{
    char root[PATH_LENGTH_MAX + 1];
    struct stat info;
    if (!path_resolve(grant->source, root) || stat(root, &info) < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot review '%s' [%s]",
                         str_shown(grant->source).text, grant->origin);
    if (!S_ISDIR(info.st_mode))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "cannot review '%s', which is not a directory [%s]. Name its directory",
                         str_shown(grant->source).text, grant->origin);
    struct alias alias = {settings->policy, grant, root};
    int status = refuse_alias(&alias, root, err);
    if (status == 0)
        status = mask_names_each_alias(names, root, refuse_alias, &alias, err);
    if (status == 0 && !settings->dry_run)
        note_direct(&alias);
    return status;
}

int review_mark(struct settings *settings, struct brig_error *err)
{
    struct brig_policy *policy = settings->policy;
    bool wanted = settings->review != SETTINGS_REVIEW_OFF;
    bool found = wanted && mark_workdir(settings);
    size_t count = count_marked(policy);
    if (wanted && settings->review_typed && !found && count == 0)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "--review: the working directory is not granted for writing. Name another "
                         "directory with --review-dir");
    if (count == 0)
        return 0;
    if (settings->foreign)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "--review is not possible with --foreign: run brig as the owner");
    if (!settings->storage)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "--review needs a storage directory: --storage DIR");
    __attribute__((cleanup(mask_names_done))) struct mask_names names = {0};
    int status = mask_names_init(&names, policy, settings->home, err);
    for (size_t i = 0; i < policy->grant_count && status == 0; i++)
        if (policy->grants[i].review)
            status = check_grant(settings, &names, &policy->grants[i], err);
    return status;
}

/* ---- what is hidden, relative to the root ---- */

struct texts {
    char **items;
    size_t count;
    bool failed;
};

static void texts_done(struct texts *texts)
{
    for (size_t i = 0; i < texts->count; i++)
        free(texts->items[i]);
    free(texts->items);
}

/* Takes ownership of the text. */
static void texts_add(struct texts *texts, char *text)
{
    if (text && array_grow(&texts->items, texts->count))
        texts->items[texts->count++] = text;
    else
        texts->failed = true;
}

/* A path as a pattern that matches nothing else. */
static void append_literal(struct str *out, const char *path)
{
    for (; *path; path++)
        if (strchr("*?[", *path))
            str_appendf(out, "[%c]", *path);
        else
            str_append_char(out, *path);
}

static void texts_add_str(struct texts *texts, struct str *text)
{
    texts_add(texts, text->failed ? NULL : strdup(text->data ? text->data : ""));
    str_done(text);
}

/* Appends the rest of a pattern below the home, if its first names match those of `below`. */
static void add_rest(struct texts *texts, const char *rule, const char *below)
{
    while (*below) {
        char name[PATH_COMPONENT_MAX + 1], part[PATH_COMPONENT_MAX + 1];
        size_t length = strcspn(below, "/"), rule_length = strcspn(rule, "/");
        if (!rule[rule_length] || length >= sizeof name || rule_length >= sizeof part)
            return;
        (void)snprintf(name, sizeof name, "%.*s", (int)length, below);
        (void)snprintf(part, sizeof part, "%.*s", (int)rule_length, rule);
        if (strcmp(part, name) != 0 && fnmatch(part, name, FNM_NOESCAPE) != 0)
            return;
        below += length + (below[length] == '/');
        rule += rule_length + 1;
    }
    texts_add(texts, strdup(rule));
}

/* Adds a rule about the home as one about the root, which may be in the home or contain it. */
static void add_rule(struct texts *texts, const char *rule, const char *home, const char *root)
{
    const char *below = path_below(home, root), *above = path_below(root, home);
    if (below) {
        add_rest(texts, rule, below);
    } else if (above) {
        struct str text = {0};
        append_literal(&text, above);
        str_concat(&text, "/", rule);
        texts_add_str(texts, &text);
    }
}

/* The part of a path below a directory that has two spellings; NULL if it is not below it. */
static const char *rest_below(const char *directory, const char *real, const char *path)
{
    const char *rest = path_below(directory, path);
    if (!rest)
        rest = path_below(real, path);
    return rest && *rest ? rest : NULL;
}

/* The masks of the policy are paths of the host, also of files that do not exist yet. */
static void add_policy_masks(struct texts *texts, const struct brig_policy *policy,
                             const struct policy_grant *grant, const char *root)
{
    for (size_t i = 0; i < policy->grant_count; i++) {
        const struct policy_grant *mask = &policy->grants[i];
        const char *rest =
            mask->access == BRIG_MASK ? rest_below(grant->source, root, mask->dest) : NULL;
        if (!rest)
            continue;
        struct str text = {0};
        append_literal(&text, rest);
        texts_add_str(texts, &text);
    }
}

/* ---- joining ---- */

static bool is_mounted(const struct policy_grant *grant)
{
    return grant->access == BRIG_READ_WRITE || grant->access == BRIG_READ_ONLY ||
           grant->access == BRIG_DEVICE;
}

static bool is_in_other(const struct brig_policy *policy, const struct policy_grant *outer,
                        const struct policy_grant *inner)
{
    for (size_t i = 0; i < policy->grant_count; i++) {
        const struct policy_grant *other = &policy->grants[i];
        const char *in_outer = path_below(outer->dest, other->dest);
        const char *in_other = path_below(other->dest, inner->dest);
        if (is_mounted(other) && in_outer && *in_outer && in_other && *in_other)
            return true;
    }
    return false;
}

/* What the run mounts in the directory, such as a private git directory: the holder creates the
 * mount points in the upper directory, and keeps other runs from removing them. */
static int find_mount_points(const struct brig_policy *policy, const struct policy_grant *reviewed,
                             struct str *points, struct brig_error *err)
{
    for (size_t i = 0; i < policy->grant_count; i++) {
        const struct policy_grant *grant = &policy->grants[i];
        const char *rest = is_mounted(grant) ? path_below(reviewed->dest, grant->dest) : NULL;
        struct stat info;
        if (!rest || !*rest || is_in_other(policy, reviewed, grant) ||
            stat(grant->source, &info) < 0)
            continue;
        str_appendf(points, "%c%c%s", HOME_PLACE_HOME, S_ISDIR(info.st_mode) ? 'd' : 'f', rest);
        str_append_bytes(points, "", 1);
    }
    return points->failed ? brig_fail_nomem(err) : 0;
}

/* The user who owns the storage, and the ids of the jail. */
struct owners {
    uid_t owner, uid;
    gid_t gid;
};

/* Without a home of the jail, nothing has chosen the isolated uid of a jail of root. */
static struct owners choose_owners(struct brig_policy *policy, const struct identity *identity)
{
    uid_t owner = identity_uid(identity);
    if (owner == 0 && policy->host_uid == (uid_t)-1)
        policy_use_isolated_uid(policy, owner);
    return (struct owners){
        .owner = owner,
        .uid = policy->host_uid != (uid_t)-1 ? policy->host_uid : owner,
        .gid = policy->host_gid != (gid_t)-1 ? policy->host_gid : getegid(),
    };
}

int review_record_masks(const struct settings *settings, const struct identity *identity,
                        const char *layer, const struct home_spec *spec, struct brig_error *err)
{
    const struct mask_rules rules = {.hidden = (const char **)(uintptr_t)spec->masks,
                                     .hidden_count = spec->mask_count,
                                     .shown = (const char **)(uintptr_t)spec->shown,
                                     .shown_count = spec->shown_count};
    const struct hidden_startup startup = {.home = spec->user_home,
                                           .filter = {spec->filters, spec->filter_count}};
    identity_enter(identity);
    autoclose int record = record_open(settings->storage, settings->jail, err);
    int status = record < 0 ? record
                            : hidden_record(record, layer, &rules, spec->own, spec->own_count,
                                            &startup, err);
    identity_leave(identity);
    return status;
}

static int join_holder(const struct settings *settings, const struct identity *identity,
                       const struct owners *owners, const struct review_hidden *hidden,
                       const struct policy_grant *grant, struct review_root *root,
                       struct brig_error *err)
{
    __attribute__((cleanup(texts_done))) struct texts masks = {0}, shown = {0}, own = {0};
    autofree char *storage = NULL;
    autostr struct str points = {0};
    if (hidden->names) {
        const struct mask_rules *rules = hidden->rules;
        for (size_t i = 0; i < rules->hidden_count; i++)
            add_rule(&masks, rules->hidden[i], hidden->names->real_home, root->root);
        for (size_t i = 0; i < rules->shown_count; i++)
            add_rule(&shown, rules->shown[i], hidden->names->real_home, root->root);
    }
    add_policy_masks(&masks, settings->policy, grant, root->root);
    for (size_t i = 0; i < hidden->own_count; i++) {
        const char *rest = rest_below(grant->source, root->root, hidden->own[i]);
        if (rest)
            texts_add(&own, strdup(rest));
    }
    if (masks.failed || shown.failed || own.failed)
        return brig_fail_nomem(err);
    int status = find_mount_points(settings->policy, grant, &points, err);
    if (status == 0)
        status = str_make(&storage, err, settings->storage, "/", settings->jail, LAYER_REVIEW_PART);
    if (status < 0)
        return status;
    const struct home_spec spec = {
        .name = root->name,
        .storage = storage,
        .user_home = root->root,
        .place = root->place,
        .uid = owners->uid,
        .gid = owners->gid,
        .owner = owners->owner,
        .kind = POLICY_HOME_OVERLAY,
        .masks = (const char *const *)masks.items,
        .mask_count = masks.count,
        .shown = (const char *const *)shown.items,
        .shown_count = shown.count,
        .own = (const char *const *)own.items,
        .own_count = own.count,
        .mount_points = &points,
    };
    status = review_record_masks(settings, identity, root->name, &spec, err);
    return status < 0 ? status : home_join(&spec, &root->mounts, err);
}

/* Adds a layer and records what its changes are based on, before the run can read the files. Returns
 * the lock of the record: until the layer is mounted, nothing may be applied. */
static int begin_layer(const struct settings *settings, struct review_root *root,
                       struct brig_error *err)
{
    struct layer layer;
    autoclose int storage = -1;
    int status = config_make_directory(settings->storage, &storage, err);
    autoclose int record = status < 0 ? -1 : record_open(settings->storage, settings->jail, err);
    autoclose int lock = record < 0 ? -1 : record_lock(record, err);
    if (lock < 0)
        return status < 0 ? status : record < 0 ? record : lock;
    struct brig_error interrupted = {0};
    if (!layer_is_home(root->name) && operation_check_interrupted(record, &interrupted) < 0)
        message_warning("%s. Until then the files of it that the run changes are conflicts",
                        interrupted.message);
    if (!*root->name)
        status = layer_number(settings->storage, settings->jail, root->root, root->name, err);
    if (status == 0)
        status = layer_open(settings->storage, settings->jail, root->name, root->root, &layer, err);
    if (status < 0)
        return status;
    root->fresh = layer.upper_count == 0;
    root->earlier = base_has_start(&layer);
    status = layer_adopt(&layer, err);
    if (layer.replaced && status == 0)
        message_warning("'%s' is another directory than the jail's changes were made for: each of "
                        "them is a conflict, until all are applied or discarded",
                        str_shown(root->root).text);
    root->place = layer.place;
    root->run = status < 0 ? status : base_begin(&layer, err);
    layer_done(&layer);
    return root->run < 0 ? root->run : take_fd(&lock);
}

static struct review_root *add_root(struct review *review, const char *path, const char *name,
                                    struct brig_error *err)
{
    if (review->count == 0)
        review->began_ns = clock_files_ns();
    struct review_root *root = &review->roots[review->count];
    *root = (struct review_root){.run = -1, .mounts = HOME_MOUNTS_INIT};
    (void)snprintf(root->name, sizeof root->name, "%s", name);
    if (str_copy(path, &root->root, err) < 0)
        return NULL;
    review->count++;
    return root;
}

int review_begin_home(struct review *review, const struct settings *settings,
                      const struct identity *identity, const char *home, int *ret_lock,
                      struct brig_error *err)
{
    identity_enter(identity);
    struct review_root *root = add_root(review, home, LAYER_HOME, err);
    int lock = root ? begin_layer(settings, root, err) : BRIG_E_NOMEM;
    identity_leave(identity);
    if (lock >= 0)
        *ret_lock = lock;
    return lock < 0 ? lock : 0;
}

/* The mode of the mount is that of the upper directory, which is new. */
static void copy_mode(const struct review_root *root)
{
    struct stat info;
    if (stat(root->root, &info) == 0)
        (void)chmod(path_proc(root->mounts.home).text, info.st_mode & 07777);
}

static int join_root(const struct settings *settings, const struct identity *identity,
                     const struct owners *owners, const struct review_hidden *hidden,
                     const struct policy_grant *grant, struct review_root *root,
                     struct brig_error *err)
{
    identity_enter(identity);
    autoclose int lock = begin_layer(settings, root, err);
    identity_leave(identity);
    int status =
        lock < 0 ? lock : join_holder(settings, identity, owners, hidden, grant, root, err);
    if (status < 0)
        return brig_wrap(err, status, "--review of '%s'", str_shown(root->root).text);
    if (*root->mounts.notice)
        message_warning("'%s': %s", str_shown(root->root).text, root->mounts.notice);
    if (root->fresh)
        copy_mode(root);
    return 0;
}

static int mount_root(struct review *review, const struct settings *settings,
                      const struct identity *identity, const struct owners *owners,
                      const struct review_hidden *hidden, struct policy_grant *grant,
                      struct brig_error *err)
{
    char path[PATH_LENGTH_MAX + 1];
    identity_enter(identity);
    bool resolved = path_resolve(grant->source, path);
    identity_leave(identity);
    if (!resolved)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot review '%s'",
                         str_shown(grant->source).text);
    if (review->count == REVIEW_ROOTS_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "at most %d directories can be reviewed",
                         REVIEW_ROOTS_MAX - 1);
    struct review_root *root = add_root(review, path, "", err);
    int status =
        root ? join_root(settings, identity, owners, hidden, grant, root, err) : BRIG_E_NOMEM;
    if (status == 0)
        grant->fd = root->mounts.home;
    grant->checked = false;
    return status;
}

/* The rule that replaces a rule for the same path, or NULL. */
static const struct policy_grant *later_rule(const struct brig_policy *policy, size_t index)
{
    for (size_t i = index + 1; i < policy->grant_count; i++)
        if (policy->grants[i].review &&
            strcmp(policy->grants[i].dest, policy->grants[index].dest) == 0)
            return &policy->grants[i];
    return NULL;
}

int review_join(struct review *review, const struct settings *settings,
                const struct identity *identity, const struct review_hidden *hidden,
                struct brig_error *err)
{
    struct brig_policy *policy = settings->policy;
    if (count_marked(policy) == 0)
        return 0;
    const struct owners owners = choose_owners(policy, identity);
    if (owners.owner != owners.uid && owners.owner != 0)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "--review is not possible here, because the jail has a uid whose files "
                         "you could not read. Run brig without sudo, or use -m bare");
    int status = 0;
    for (size_t i = policy->grant_count; i-- > 0 && status == 0;) {
        struct policy_grant *grant = &policy->grants[i];
        const struct policy_grant *later = grant->review ? later_rule(policy, i) : NULL;
        if (later)
            grant->fd = later->fd; /* it is not mounted */
        else if (grant->review)
            status = mount_root(review, settings, identity, &owners, hidden, grant, err);
    }
    return status;
}

int review_foresee(struct review *review, const struct settings *settings, struct str *out,
                   struct brig_error *err)
{
    struct brig_policy *policy = settings->policy;
    if (count_marked(policy) == 0)
        return 0;
    review->stand_in = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (review->stand_in < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open '/'");
    str_append(out, "review:\n");
    for (size_t i = 0; i < policy->grant_count; i++) {
        struct policy_grant *grant = &policy->grants[i];
        if (!grant->review)
            continue;
        str_appendf(out, "  %s copy-on-write, changes in %s/%s" LAYER_REVIEW_PART "\n",
                    str_shown(grant->dest).text, settings->storage, settings->jail);
        grant->fd = review->stand_in;
        grant->checked = false;
    }
    return 0;
}

void review_done(struct review *review)
{
    for (size_t i = 0; i < review->count; i++) {
        own_close(&review->roots[i].run);
        home_mounts_done(&review->roots[i].mounts);
        free(review->roots[i].root);
    }
    own_close(&review->stand_in);
    *review = REVIEW_INIT;
}
