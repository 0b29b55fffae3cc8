/* SPDX-License-Identifier: MIT */
/* Answers questions about paths in a jail that is not running: the plan of a run says what is
 * mounted where, and the rest is read from the host's files. */
#include "cli/verbs/why.h"

#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "cli/identity.h"
#include "cli/run/home.h"
#include "cli/run/setup.h"
#include "cli/settings/options.h"
#include "jail/job/job.h"
#include "policy/policy.h"

#define LINKS_MAX 40 /* the limit of the kernel */
#define NOWHERE "nowhere: read-only"

const char *why_state_name(enum why_state state)
{
    static const char *const names[] = {
        [WHY_WRITABLE] = "writable",       [WHY_READ_ONLY] = "read-only",
        [WHY_HIDDEN] = "hidden",           [WHY_MISSING] = "missing",
        [WHY_FORBIDDEN] = "forbidden",     [WHY_REACHABLE] = "reachable",
        [WHY_UNREACHABLE] = "unreachable", [WHY_PASSED] = "passed on",
        [WHY_WITHHELD] = "not passed on",
    };
    return names[state];
}

/* ---- the run in question ---- */

/* The origin of a setting that is not a rule of the policy: "command line", file:line, or "mode
 * NAME". */
static const char *origin_of(const struct setup *setup, const struct settings_scan *scan,
                             enum option_id id, char buffer[64])
{
    const struct config *config = &setup->config;
    if (scan->given[id])
        return SETTINGS_TYPED;
    for (size_t i = config->line_count; i > 0; i--)
        if (config->lines[i - 1].row->id == id)
            return config->lines[i - 1].origin;
    (void)snprintf(buffer, 64, "mode %s", policy_word(POLICY_MODE, setup->settings.mode));
    return buffer;
}

/* Determines the mounts that a run would have. */
static int foresee(struct why *why, struct setup *setup, struct brig_error *err)
{
    const struct settings *settings = &setup->settings;
    struct brig_policy *policy = settings->policy;
    autostr struct str words = {0};
    facts_ask(&why->facts);
    policy->facts = &why->facts;
    int status =
        home_foresee(settings, &setup->identity, &setup->review, &words, &why->stand_in, err);
    if (status == 0)
        status = job_foresee_effects(policy, &why->effects, err);
    policy->facts = NULL;
    if (status == 0 && why->effects.mount_count == 0)
        status =
            brig_fail(err, BRIG_E_UNSUPPORTED, 0,
                      "a jail without namespaces has the host's own files: only `brig explain` "
                      "can say what it may do");
    enum policy_home kind = policy_mode_row(policy->mode)->home;
    if (kind != POLICY_HOME_SCRATCH)
        (void)str_fill(why->home, sizeof why->home, settings->storage, "/", settings->jail,
                       kind == POLICY_HOME_OVERLAY ? ".changes" : ".home");
    return status;
}

int why_init(struct why *why, struct setup *setup, const struct settings_scan *scan,
             struct brig_error *err)
{
    const struct brig_policy *policy = setup->settings.policy;
    *why = (struct why){.setup = setup, .stand_in = -1};
    int status = masks_resolve(&setup->settings, &why->masks, err);
    identity_enter(&setup->identity);
    if (status == 0 && setup->identity.host_home)
        status = masks_follow_links(&why->masks, setup->identity.host_home, err);
    identity_leave(&setup->identity);
    if (status == 0)
        status = foresee(why, setup, err);
    if (status < 0) {
        why_done(why);
        return status;
    }
    bool alone = policy->host_uid == (uid_t)-1 && geteuid() == 0;
    why->stranger = policy->stranger || alone;
    why->uid = alone                           ? policy_isolated_uid(0)
               : policy->host_uid != (uid_t)-1 ? policy->host_uid
                                               : geteuid();
    why->gid = alone                           ? policy_isolated_uid(0)
               : policy->host_gid != (gid_t)-1 ? policy->host_gid
                                               : getegid();
    why->network_origin = origin_of(setup, scan, OPTION_NET, why->network_text);
    why->view_origin = origin_of(
        setup, scan, policy->view == BRIG_VIEW_ROOT ? OPTION_ROOT : OPTION_VIEW, why->view_text);
    (void)snprintf(why->mode_text, sizeof why->mode_text, "mode %s",
                   policy_word(POLICY_MODE, policy->mode));
    if (geteuid() == 0)
        (void)setgroups(0, NULL);
    return 0;
}

void why_done(struct why *why)
{
    effects_done(&why->effects);
    masks_done(&why->masks);
    own_close(&why->stand_in);
}

/* ---- the file at a path ---- */

enum tree {
    TREE_OURS,     /* a filesystem of the jail: contains only what the plan creates */
    TREE_HOST,     /* files of the host */
    TREE_PROC,     /* /proc */
    TREE_SCRATCH,  /* empty, and deleted after the run */
    TREE_KEPT,     /* the same, kept as long as the holder */
    TREE_HOME,     /* a private home of the jail */
    TREE_OVERLAY,  /* the user's home, copy-on-write */
    TREE_REVIEWED, /* a directory of the user, copy-on-write; its changes are not looked at */
    TREE_MASK,     /* an empty file or directory over a path */
};

/* The rule for its paths (NULL: depends on the path), whether the mode made that rule, and where
 * writes go. */
static const struct {
    const char *rule;
    bool by_mode;
    const char *written;
} trees[] = {
    [TREE_OURS] = {NULL, false, NOWHERE},
    [TREE_HOST] = {NULL, false, "the real file"},
    [TREE_PROC] = {"the jail's /proc", false, "the jail's own processes"},
    [TREE_SCRATCH] = {"private", false, "private memory, gone with the run"},
    [TREE_KEPT] = {"the jail's own", true, "the jail's own, kept as its /tmp is"},
    [TREE_HOME] = {"home of the jail's own", true, "kept in the jail's home"},
    [TREE_OVERLAY] = {"home, copy-on-write", true, "stored in the changes of the jail"},
    [TREE_REVIEWED] = {NULL, false, "stored in the changes of the jail, until you apply them"},
    [TREE_MASK] = {NULL, false, NOWHERE},
};

enum found {
    FOUND_FILE,    /* a file of the host, or one that the plan creates */
    FOUND_NOTHING, /* nothing */
    FOUND_HIDDEN,  /* hidden by a mask of the home directory */
    FOUND_UNKNOWN, /* cannot be known */
};

struct node {
    const struct effects_mount *mount;
    enum tree tree;
    enum found found;
    const struct effects_object *object; /* TREE_OURS: what the plan creates there */
    char base[PATH_LENGTH_MAX + 1];      /* on the host: the root of the tree, */
    char host[PATH_LENGTH_MAX + 1];      /* and the file, or where it would be */
    bool changed;                        /* it is in the upper directory */
    struct stat info;                    /* of FOUND_FILE on the host */
    int mask;                            /* FOUND_HIDDEN: the index of the rule */
};

static bool exists(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0;
}

/* The last reviewed grant at a path, or NULL. */
static const struct policy_grant *reviewed_at(const struct why *why, const char *path)
{
    const struct brig_policy *policy = why->setup->settings.policy;
    for (size_t i = policy->grant_count; i-- > 0;)
        if (policy->grants[i].review && strcmp(policy->grants[i].dest, path) == 0)
            return &policy->grants[i];
    return NULL;
}

/* A part of the private filesystem: an empty read-only one is a mask. */
static enum tree tree_of_part(const struct why *why, const struct effects_mount *mount)
{
    const struct effects_object *object =
        effects_object_at(&why->effects, mount->tree.filesystem, mount->tree.path);
    bool content = object && object->kind == EFFECTS_FILE && object->length > 0;
    return content ? TREE_OURS : effects_is_read_only(mount) ? TREE_MASK : TREE_SCRATCH;
}

static enum tree tree_of(const struct why *why, const struct effects_mount *mount)
{
    const struct brig_policy *policy = why->setup->settings.policy;
    switch (mount->tree.kind) {
    case EFFECTS_TMPFS:
        return *mount->tree.path ? tree_of_part(why, mount) : TREE_OURS;
    case EFFECTS_PROC:
        return TREE_PROC;
    case EFFECTS_HOST:
    case EFFECTS_MAPPED:
        return TREE_HOST;
    case EFFECTS_GIVEN:
        break;
    case EFFECTS_DEVPTS:
    case EFFECTS_MQUEUE:
    case EFFECTS_LAYERS:
    case EFFECTS_NOTHING:
        return TREE_OURS;
    }
    if (reviewed_at(why, mount->path))
        return TREE_REVIEWED;
    char real[PATH_LENGTH_MAX + 1];
    bool home = strcmp(mount->path, policy->home) == 0 ||
                (path_resolve(policy->home, real) && strcmp(mount->path, real) == 0);
    return !home                                                        ? TREE_KEPT
           : policy_mode_row(policy->mode)->home == POLICY_HOME_OVERLAY ? TREE_OVERLAY
                                                                        : TREE_HOME;
}

static bool look(struct node *node, const char *base, const char *rest, bool follow)
{
    (void)str_fill(node->base, sizeof node->base, *base ? base : "/");
    bool fits = str_fill(node->host, sizeof node->host, strcmp(base, "/") == 0 ? "" : base,
                         *rest || !base[1] ? "/" : "", rest);
    return fits &&
           fstatat(AT_FDCWD, node->host, &node->info, follow ? 0 : AT_SYMLINK_NOFOLLOW) == 0;
}

/* Whether the changes hide everything of the home at a path, because a parent was replaced. */
static bool is_replaced(const char *changes, const char *rest)
{
    for (size_t length = strcspn(rest, "/"); rest[length];
         length += 1 + strcspn(rest + length + 1, "/")) {
        char path[PATH_LENGTH_MAX + 1], value[2];
        struct stat info;
        (void)snprintf(path, sizeof path, "%s/%.*s", changes, (int)length, rest);
        if (lstat(path, &info) < 0)
            return false;
        if (!S_ISDIR(info.st_mode) ||
            (lgetxattr(path, "user.overlay.opaque", value, sizeof value) == 1 && value[0] == 'y'))
            return true;
    }
    return false;
}

static enum found look_in_overlay(const struct why *why, struct node *node, const char *rest)
{
    if (look(node, why->home, rest, false)) {
        node->changed = true;
        bool deleted = S_ISCHR(node->info.st_mode) && node->info.st_rdev == makedev(0, 0);
        if (*rest || deleted)
            return deleted ? FOUND_NOTHING : FOUND_FILE;
    }
    node->changed = false;
    node->mask = mask_find(&why->masks.rules, rest);
    bool found = !is_replaced(why->home, rest) && look(node, node->mount->path, rest, !*rest);
    return !found ? FOUND_NOTHING : node->mask >= 0 ? FOUND_HIDDEN : FOUND_FILE;
}

/* Finds the file at a path without links, except for the last component. */
static void find_node(const struct why *why, const char *path, struct node *node)
{
    char inside[PATH_LENGTH_MAX + 1];
    *node = (struct node){.mount = effects_mount_of(&why->effects, path), .found = FOUND_UNKNOWN};
    const struct effects_tree *tree = &node->mount->tree;
    const char *rest = path_below(node->mount->path, path);
    node->tree = tree_of(why, node->mount);
    (void)str_fill(inside, sizeof inside, tree->path, *tree->path && *rest ? "/" : "", rest);
    switch (node->tree) {
    case TREE_HOST:
        node->found =
            look(node, *tree->path ? tree->path : "/", rest, !*rest) ? FOUND_FILE : FOUND_NOTHING;
        break;
    case TREE_HOME:
        node->found = look(node, why->home, rest, !*rest) ? FOUND_FILE : FOUND_NOTHING;
        break;
    case TREE_OVERLAY:
        node->found = look_in_overlay(why, node, rest);
        break;
    case TREE_REVIEWED:
        node->found = look(node, reviewed_at(why, node->mount->path)->source, rest, !*rest)
                          ? FOUND_FILE
                          : FOUND_NOTHING;
        break;
    case TREE_OURS:
        node->object = effects_object_at(&why->effects, tree->filesystem, inside);
        node->found = node->object || !*rest ? FOUND_FILE : FOUND_NOTHING;
        break;
    case TREE_PROC:
    case TREE_SCRATCH:
    case TREE_KEPT:
    case TREE_MASK:
        break;
    }
}

/* ---- walking ---- */

/* Reads the target of a link; false if it is not a link. */
static bool read_link(const struct node *node, char target[PATH_LENGTH_MAX + 1])
{
    if (node->object && node->object->kind == EFFECTS_LINK)
        return str_fill(target, PATH_LENGTH_MAX + 1, node->object->data);
    if (node->tree == TREE_OURS || node->found != FOUND_FILE || !S_ISLNK(node->info.st_mode))
        return false;
    ssize_t length = readlink(node->host, target, PATH_LENGTH_MAX);
    target[length > 0 ? length : 0] = '\0';
    return length > 0;
}

/* Takes the next component; false at the end. */
static bool take_name(char *rest, char name[PATH_COMPONENT_MAX + 2])
{
    char *at = rest + strspn(rest, "/");
    size_t length = strcspn(at, "/");
    (void)snprintf(name, PATH_COMPONENT_MAX + 2, "%.*s", (int)length, at);
    memmove(rest, at + length, strlen(at + length) + 1);
    return length > 0;
}

static bool ends_walk(const struct node *node)
{
    return node->found == FOUND_HIDDEN || node->tree == TREE_MASK;
}

/* Resolves a path component by component and follows the links that the jail would follow; `done`
 * is the result. After a hidden component the remaining path is appended unchanged. */
static void walk(const struct why *why, const char *path, char done[PATH_LENGTH_MAX + 1],
                 struct node *node)
{
    char rest[PATH_LENGTH_MAX + 1], name[PATH_COMPONENT_MAX + 2];
    char target[PATH_LENGTH_MAX + 1], joined[PATH_LENGTH_MAX + 1];
    size_t used = 0;
    int links = 0;
    (void)snprintf(rest, sizeof rest, "%s", path);
    done[0] = '\0';
    while (take_name(rest, name)) {
        size_t before = used;
        if (strcmp(name, ".") == 0)
            continue;
        if (strcmp(name, "..") == 0) {
            while (used > 0 && done[--used] != '/')
                ;
            done[used] = '\0';
            continue;
        }
        int length = snprintf(done + used, PATH_LENGTH_MAX + 1 - used, "/%s", name);
        if (length < 0 || used + (size_t)length > PATH_LENGTH_MAX)
            break;
        used += (size_t)length;
        find_node(why, done, node);
        if (ends_walk(node)) {
            (void)snprintf(done + used, PATH_LENGTH_MAX + 1 - used, "%s", rest);
            return;
        }
        if (links < LINKS_MAX && read_link(node, target) &&
            str_fill(joined, sizeof joined, target, "/", rest)) {
            links++;
            memcpy(rest, joined, strlen(joined) + 1);
            used = rest[0] == '/' ? 0 : before;
            done[used] = '\0';
        }
    }
    if (used == 0)
        (void)snprintf(done, PATH_LENGTH_MAX + 1, "/");
    find_node(why, done, node);
}

/* ---- the rule ---- */

/* In a view with its own root, /var/tmp and two other directories are links: the mount is at their
 * target. */
static bool is_at(const struct why *why, const char *dest, const char *path)
{
    char done[PATH_LENGTH_MAX + 1];
    struct node node;
    if (strcmp(dest, path) == 0)
        return true;
    if (!path_is_beneath("/var", dest) && !path_is_beneath("/dev", dest))
        return false;
    walk(why, dest, done, &node);
    return strcmp(done, path) == 0;
}

/* The last grant at a path, or NULL. */
static const struct policy_grant *grant_at(const struct why *why, const char *path)
{
    const struct brig_policy *policy = why->setup->settings.policy;
    for (size_t i = policy->grant_count; i-- > 0;)
        if (policy->grants[i].access != BRIG_MASK && is_at(why, policy->grants[i].dest, path))
            return &policy->grants[i];
    return NULL;
}

/* The mask of a path: of its name, or of the grant that is there under another name. */
static const struct policy_grant *mask_at(const struct why *why, const char *path)
{
    const struct brig_policy *policy = why->setup->settings.policy;
    const struct policy_grant *above = NULL;
    for (size_t i = 0; i < policy->grant_count; i++)
        if (policy->grants[i].access == BRIG_MASK && is_at(why, policy->grants[i].dest, path))
            return &policy->grants[i];
        else if (policy->grants[i].access != BRIG_MASK &&
                 path_is_beneath(policy->grants[i].dest, path))
            above = &policy->grants[i];
    for (size_t i = 0; i < policy->grant_count && above; i++) {
        char source[PATH_LENGTH_MAX + 1];
        if (policy->grants[i].access == BRIG_MASK &&
            str_fill(source, sizeof source, above->source, path + strlen(above->dest)) &&
            strcmp(source, policy->grants[i].dest) == 0)
            return &policy->grants[i];
    }
    return NULL;
}

/* The grant that a mount of the host belongs to: files in it may be mounted on themselves. NULL for
 * the view. */
static const struct policy_grant *grant_of(const struct why *why, const struct effects_mount *mount)
{
    char path[PATH_LENGTH_MAX + 1];
    (void)str_fill(path, sizeof path, mount->path);
    while (mount->tree.kind == EFFECTS_HOST || mount->tree.kind == EFFECTS_MAPPED) {
        const struct policy_grant *grant = grant_at(why, mount->path);
        char *slash = strrchr(path, '/');
        if (grant || slash == path || !slash)
            return grant;
        *slash = '\0';
        mount = effects_mount_of(&why->effects, path);
        (void)str_fill(path, sizeof path, mount->path);
    }
    return NULL;
}

static void name_rule(struct why_answer *answer, const char *origin, const char *first,
                      const char *second)
{
    (void)str_fill(answer->rule, sizeof answer->rule, first, second);
    answer->origin = origin;
}

static void name_mask(const struct why *why, const struct node *node, struct why_answer *answer)
{
    const struct policy_grant *mask = mask_at(why, node->mount->path);
    struct stat info;
    bool proc = path_is_beneath("/proc", node->mount->path);
    bool socket = lstat(node->mount->path, &info) == 0 && S_ISSOCK(info.st_mode);
    if (mask)
        name_rule(answer, mask->origin, "mask ", mask->dest);
    else
        name_rule(answer, SETTINGS_BUILT_IN,
                  proc     ? "the jail's /proc"
                  : socket ? "sockets of the host"
                           : "mask ",
                  proc || socket ? "" : node->mount->path);
}

static bool is_of_door(const char *path)
{
    return strcmp(path, "/etc/resolv.conf") == 0 || strcmp(path, "/etc/hosts") == 0;
}

static void name_rule_of(const struct why *why, const struct node *node, struct why_answer *answer)
{
    const struct brig_policy *policy = why->setup->settings.policy;
    const struct policy_grant *grant = node->tree == TREE_REVIEWED
                                           ? reviewed_at(why, node->mount->path)
                                       : node->tree == TREE_KEPT ? grant_at(why, node->mount->path)
                                                                 : grant_of(why, node->mount);
    bool made = node->object && node->object->kind == EFFECTS_FILE;
    bool own = node->tree != TREE_KEPT || !grant || !grant->own;
    if (node->tree == TREE_MASK)
        name_mask(why, node, answer);
    else if (trees[node->tree].rule && own)
        name_rule(answer, trees[node->tree].by_mode ? why->mode_text : SETTINGS_BUILT_IN,
                  trees[node->tree].rule, "");
    else if (grant) {
        name_rule(answer, grant->origin, policy_word(POLICY_ACCESS, grant->access), " ");
        (void)strncat(answer->rule, grant->dest, sizeof answer->rule - strlen(answer->rule) - 1);
    } else if (path_is_beneath("/dev", answer->path))
        name_rule(answer, SETTINGS_BUILT_IN, "the jail's /dev", "");
    else if (made)
        name_rule(answer, why->view_origin, "made for the ",
                  policy_has_door(policy) && is_of_door(answer->path) ? "network door" : "jail");
    else
        name_rule(answer, why->view_origin, "view ", policy_word(POLICY_VIEW, policy->view));
}

/* ---- permissions ---- */

static bool is_given(const struct why *why, const struct node *node)
{
    return node->tree != TREE_HOST || grant_of(why, node->mount);
}

/* Only root can check with the ids of another user. If the jail has an isolated uid, it appears to
 * own id-mapped trees. */
static bool may(const struct why *why, const struct node *node, int how)
{
    struct stat info;
    autoclose int fd = open(node->base, O_PATH | O_CLOEXEC);
    const char *rest = path_below(node->base, node->host);
    bool mapped = node->mount->tree.kind != EFFECTS_HOST && !node->changed;
    bool owner = why->stranger && mapped && fd >= 0 && fstat(fd, &info) == 0;
    bool other = geteuid() == 0;
    if (other) {
        (void)setfsgid(owner ? info.st_gid : why->gid);
        (void)setfsuid(owner ? info.st_uid : why->uid);
    }
    long result = fd < 0  ? -1
                  : *rest ? syscall(SYS_faccessat2, fd, rest, how, AT_EACCESS)
                          : syscall(SYS_faccessat2, fd, "", how, AT_EACCESS | AT_EMPTY_PATH);
    if (other) {
        (void)setfsuid(geteuid());
        (void)setfsgid(getegid());
    }
    return result == 0;
}

/* Files that only the caller's groups may access are not accessible in the jail: it does not have
 * these groups, or the files are hidden. */
static bool is_by_group_only(const struct why *why, const struct node *node)
{
    unsigned needed = S_ISDIR(node->info.st_mode) ? 1 : 4;
    unsigned mode = node->info.st_mode;
    return !is_given(why, node) && node->info.st_uid != why->uid && node->info.st_gid != why->gid &&
           !(mode & needed) && (mode >> 3 & needed);
}

/* Whether a missing file could be created: decided by its nearest existing parent. A home that does
 * not exist yet will belong to the jail. */
static bool can_be_made(const struct why *why, const char *path, const char *top)
{
    char above[PATH_LENGTH_MAX + 1];
    (void)str_fill(above, sizeof above, path);
    while (strcmp(above, top) != 0) {
        char *slash = strrchr(above, '/');
        if (!slash)
            return false;
        slash[slash == above] = '\0';
        struct node node;
        find_node(why, above, &node);
        if (node.found == FOUND_FILE)
            return S_ISDIR(node.info.st_mode) && may(why, &node, W_OK | X_OK);
    }
    return true;
}

/* ---- answers ---- */

static void say(struct why_answer *answer, enum why_state state, const char *written)
{
    answer->state = state;
    answer->written = written;
    answer->readable = state == WHY_READ_ONLY || (state == WHY_WRITABLE && answer->exists);
    answer->writable = state == WHY_WRITABLE;
}

static const char *written_to(const struct node *node)
{
    const char *dest = node->mount->path;
    bool tmp = strcmp(dest, "/tmp") == 0;
    if (effects_is_read_only(node->mount))
        return NOWHERE;
    if (node->tree == TREE_HOST && S_ISCHR(node->info.st_mode))
        return "the device";
    if (node->tree == TREE_KEPT && (tmp || strcmp(dest, "/var/tmp") == 0))
        return "the jail's /tmp";
    if (node->tree == TREE_SCRATCH && tmp)
        return "the jail's /tmp, gone with the run";
    return trees[node->tree].written;
}

static void answer_file(const struct why *why, const struct node *node, struct why_answer *answer)
{
    const char *written = written_to(node);
    answer->exists = true;
    if (node->tree == TREE_OURS) {
        say(answer, WHY_READ_ONLY, NOWHERE);
        return;
    }
    if (S_ISSOCK(node->info.st_mode) && !is_given(why, node)) {
        name_rule(answer, SETTINGS_BUILT_IN, "sockets of the host", "");
        say(answer, WHY_HIDDEN, NOWHERE);
        return;
    }
    bool readable = may(why, node, R_OK) && !is_by_group_only(why, node);
    bool open_to_write = strcmp(written, NOWHERE) != 0;
    bool writable = open_to_write && may(why, node, W_OK);
    say(answer,
        writable   ? WHY_WRITABLE
        : readable ? WHY_READ_ONLY
                   : WHY_FORBIDDEN,
        writable || !open_to_write ? written : "nowhere: its owner and mode do not allow it");
    answer->readable = readable;
}

/* The host has a file there that the jail does not see, though it may create its own. */
static void say_hidden(struct why_answer *answer, const char *written)
{
    say(answer, WHY_HIDDEN, written);
    answer->writable = strcmp(written, NOWHERE) != 0;
}

static void answer_nothing(const struct why *why, const struct node *node,
                           struct why_answer *answer)
{
    const char *top = node->mount->path, *written = written_to(node);
    bool writable = strcmp(written, NOWHERE) != 0 && can_be_made(why, answer->path, top);
    answer->exists = node->tree == TREE_HOME && strcmp(answer->path, top) == 0;
    if (answer->exists) /* as soon as the jail has been created */
        say(answer, WHY_WRITABLE, written);
    else if (node->tree == TREE_OURS && !path_is_beneath("/dev", answer->path))
        say_hidden(answer, NOWHERE); /* not in the view */
    else if (node->tree == TREE_HOME && exists(answer->path))
        say_hidden(answer, written);
    else
        say(answer, writable ? WHY_WRITABLE : WHY_MISSING, writable ? written : NOWHERE);
}

/* Of a process, only that it belongs to the jail is known. */
static void answer_proc(const struct node *node, struct why_answer *answer)
{
    const char *rest = path_below("/proc", answer->path);
    answer->unknown = *rest && (strchr("0123456789", *rest) || strncmp(rest, "self", 4) == 0);
    answer->exists = answer->unknown || access(answer->path, F_OK) == 0;
    bool writable = answer->unknown && !effects_is_read_only(node->mount);
    say(answer,
        writable         ? WHY_WRITABLE
        : answer->exists ? WHY_READ_ONLY
                         : WHY_MISSING,
        writable ? written_to(node) : NOWHERE);
}

static void answer_unknown(const struct node *node, struct why_answer *answer)
{
    bool top = strcmp(node->mount->path, answer->path) == 0;
    answer->exists = top;
    if (node->tree == TREE_PROC) {
        answer_proc(node, answer);
        return;
    }
    if (node->tree == TREE_MASK) {
        say(answer, WHY_HIDDEN, NOWHERE);
        return;
    }
    answer->unknown = !top && node->tree == TREE_KEPT;
    if (!top && exists(answer->path))
        say_hidden(answer, written_to(node));
    else
        say(answer, WHY_WRITABLE, written_to(node));
}

void why_path(const struct why *why, const char *path, struct why_answer *ret_answer)
{
    struct node node = {0};
    *ret_answer = (struct why_answer){0};
    walk(why, path, ret_answer->path, &node);
    name_rule_of(why, &node, ret_answer);
    switch (node.found) {
    case FOUND_FILE:
        answer_file(why, &node, ret_answer);
        break;
    case FOUND_NOTHING:
        answer_nothing(why, &node, ret_answer);
        break;
    case FOUND_HIDDEN:
        name_rule(ret_answer, why->masks.origins[node.mask], "mask ",
                  why->masks.rules.hidden[node.mask]);
        say_hidden(ret_answer, "stored in the changes of the jail; the hidden file stays as it is");
        break;
    case FOUND_UNKNOWN:
        answer_unknown(&node, ret_answer);
        break;
    }
}
