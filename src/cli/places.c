/* SPDX-License-Identifier: MIT */
/* What lies where in a jail that is not made. The order is the engine's (src/jail/view*.c): of several
 * places above a path the longest counts, and of equals the last. */
#include "cli/places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/options.h"
#include "cli/setup.h"
#include "jail/view/view.h"
#include "policy/policy.h"

/* What is being filled. */
struct filling {
    const struct setup *setup;
    const struct brig_policy *policy;
    struct places *places;
    char view_origin[64];
    const char *view_by;
};

static void place_done(struct place *place)
{
    free(place->dest);
    free(place->host);
    free(place->rule);
    free(place->origin);
}

void places_done(struct places *places)
{
    for (size_t i = 0; i < places->count; i++)
        place_done(&places->items[i]);
    free(places->items);
    *places = (struct places){0};
}

const char *places_rest(const char *directory, const char *path)
{
    const char *rest = strcmp(directory, "/") == 0 ? path : path + strlen(directory);
    return rest + strspn(rest, "/");
}

/* In a root of the jail's own these are symbolic links. */
static const struct {
    const char *alias, *real;
} aliases[] = {{"/dev/shm", "/run/shm"}, {"/var/run", "/run"}, {"/var/tmp", "/tmp"}};

static char *without_alias(bool frame, const char *dest)
{
    char *text = NULL;
    for (size_t i = 0; frame && i < ARRAY_LENGTH(aliases); i++)
        if (path_is_beneath(aliases[i].alias, dest))
            return asprintf(&text, "%s%s", aliases[i].real, dest + strlen(aliases[i].alias)) < 0
                       ? NULL
                       : text;
    return strdup(dest);
}

/* Texts are copied; a failure shows as a missing one. */
static int add(struct filling *f, struct place like, const char *dest, const char *host,
               const char *rule, const char *origin, struct brig_error *err)
{
    struct places *places = f->places;
    struct place *grown = reallocarray(places->items, places->count + 1, sizeof *grown);
    if (!grown)
        return brig_fail_nomem(err);
    places->items = grown;
    like.dest = without_alias(f->places->frame, dest);
    like.host = host ? strdup(host) : NULL;
    like.rule = strdup(rule);
    like.origin = strdup(origin);
    grown[places->count++] = like;
    return like.dest && like.rule && like.origin && (!host || like.host) ? 0 : brig_fail_nomem(err);
}

/* ---- who said it ---- */

static bool is_typed(int argc, char *const *argv, enum option_id id)
{
    struct options_cursor cursor = {.argc = argc, .argv = argv, .next = 1};
    struct option_use use;
    while (options_next(&cursor, &use, NULL) > 0)
        if (use.row->id == id)
            return true;
    return false;
}

const char *places_origin_of(const struct setup *setup, int argc, char *const *argv, int id,
                             char *buffer, size_t size)
{
    const struct config *config = &setup->config;
    if (is_typed(argc, argv, (enum option_id)id))
        return SETTINGS_TYPED;
    for (size_t i = config->line_count; i > 0; i--)
        if ((int)config->lines[i - 1].row->id == id)
            return config->lines[i - 1].origin;
    (void)snprintf(buffer, size, "mode %s", policy_word(POLICY_MODE, setup->settings.mode));
    return buffer;
}

/* ---- the view ---- */

static int add_system(struct filling *f, struct brig_error *err)
{
    bool shown, content;
    int status = 0;
    const char *path;
    for (size_t i = 0;
         status == 0 && (path = view_system_row(i, f->policy->network, &shown, &content)); i++) {
        struct stat info;
        if (!shown || lstat(path, &info) < 0)
            continue;
        struct place like = {.kind = PLACE_HOST, .link = !content && path_depth(path) == 1};
        status = add(f, like, path, path, "view system", f->view_by, err);
    }
    static const char *const made[] = {"/etc/passwd", "/etc/group", "/etc/hosts"};
    for (size_t i = 0; i < ARRAY_LENGTH(made) && status == 0; i++)
        status = add(f, (struct place){.kind = PLACE_MADE}, made[i], NULL, "made for the jail",
                     f->view_by, err);
    return status;
}

/* Over what is there, or in a root of ours; nsswitch.conf is a copy there, and else the host's. */
static bool is_made_for_door(const struct filling *f, const char *path, bool copied)
{
    const struct brig_policy *policy = f->policy;
    const char *root = policy->view == BRIG_VIEW_ROOT ? policy->root_path : "";
    char host[PATH_LENGTH_MAX + 64];
    struct stat info;
    (void)snprintf(host, sizeof host, "%s%s", root, path);
    bool there = lstat(host, &info) == 0;
    return f->places->frame ? there || !copied : there && !copied;
}

/* The files that say how names are found, where the jail has its own: see view_door.c. */
static int add_door(struct filling *f, struct brig_error *err)
{
    static const struct {
        const char *path;
        bool copied;
    } rows[] = {{"/etc/resolv.conf", false}, {"/etc/hosts", false}, {"/etc/nsswitch.conf", true}};
    int status = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(rows) && status == 0; i++)
        if (is_made_for_door(f, rows[i].path, rows[i].copied))
            status = add(f, (struct place){.kind = PLACE_MADE}, rows[i].path, NULL,
                         "made for the network door", f->view_by, err);
    return status;
}

static int add_view(struct filling *f, struct brig_error *err)
{
    const struct brig_policy *policy = f->policy;
    char rule[64];
    (void)snprintf(rule, sizeof rule, "view %s", policy_word(POLICY_VIEW, policy->view));
    const char *host = policy->view == BRIG_VIEW_ROOT ? policy->root_path : "/";
    int status = add(f, (struct place){.kind = f->places->frame ? PLACE_FRAME : PLACE_HOST}, "/",
                     f->places->frame ? NULL : host, rule, f->view_by, err);
    if (status == 0)
        status = add(f, (struct place){.kind = PLACE_DEVICES}, "/dev", NULL, "the jail's /dev",
                     SETTINGS_BUILT_IN, err);
    if (status == 0)
        status = add(
            f, (struct place){.kind = PLACE_PROC, .writable = policy->seccomp == BRIG_SECCOMP_DEV},
            "/proc", "/proc", "the jail's /proc", SETTINGS_BUILT_IN, err);
    if (status == 0 && policy->view == BRIG_VIEW_SYSTEM)
        status = add_system(f, err);
    return status == 0 && policy_has_door(policy) ? add_door(f, err) : status;
}

/* ---- private directories ---- */

static bool is_on_host(const struct brig_policy *policy, const char *path)
{
    char full[PATH_LENGTH_MAX + 1];
    const char *root = policy->view == BRIG_VIEW_ROOT ? policy->root_path : "";
    (void)snprintf(full, sizeof full, "%s%s", root, path);
    return access(full, F_OK) == 0;
}

static int add_private(struct filling *f, struct brig_error *err)
{
    const char *home = f->policy->home;
    const struct {
        const char *dest;
        bool wanted;
    } rows[] = {
        {"/tmp", true},
        {"/var/tmp", !f->places->frame && is_on_host(f->policy, "/var/tmp")},
        {"/run", f->places->frame || is_on_host(f->policy, "/run")},
        {"/run/shm", f->places->frame},
        {"/dev/shm", !f->places->frame && is_on_host(f->policy, "/dev/shm")},
        {home ? home : "/", f->places->frame && home && home[1] != '\0'},
    };
    int status = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(rows) && status == 0; i++)
        if (rows[i].wanted)
            status = add(f, (struct place){.kind = PLACE_SCRATCH, .writable = true}, rows[i].dest,
                         NULL, "private", SETTINGS_BUILT_IN, err);
    return status;
}

/* What the jail's holder has. */
static int add_kept(struct filling *f, struct brig_error *err)
{
    const struct settings *settings = &f->setup->settings;
    enum policy_home kind = policy_mode_row(f->policy->mode)->home;
    bool overlay = kind == POLICY_HOME_OVERLAY;
    if (kind == POLICY_HOME_SCRATCH)
        return 0;
    char mode[64], runtime[64], host[PATH_LENGTH_MAX + 1];
    (void)snprintf(mode, sizeof mode, "mode %s", policy_word(POLICY_MODE, f->policy->mode));
    (void)snprintf(runtime, sizeof runtime, "/run/user/%u", f->policy->inside_uid);
    (void)snprintf(host, sizeof host, "%s/%s.%s", settings->storage, settings->jail,
                   overlay ? "changes" : "home");
    const char *const dests[] = {"/tmp", "/var/tmp", "/dev/shm", runtime};
    int status =
        add(f,
            (struct place){
                .kind = overlay ? PLACE_OVERLAY : PLACE_HOME, .writable = true, .given = true},
            f->policy->home, host, overlay ? "home copied on writing" : "home of the jail's own",
            mode, err);
    for (size_t i = 0; i < ARRAY_LENGTH(dests) && status == 0; i++)
        status = add(f, (struct place){.kind = PLACE_KEPT, .writable = true}, dests[i], NULL,
                     "the jail's own", mode, err);
    return status;
}

/* ---- rules ---- */

/* A mask hides its path, and what the host has there wherever else that is granted. */
static int add_mask(struct filling *f, const struct policy_grant *mask, struct brig_error *err)
{
    char rule[PATH_LENGTH_MAX + 64];
    (void)snprintf(rule, sizeof rule, "mask %s", mask->dest);
    int status =
        add(f, (struct place){.kind = PLACE_MASK}, mask->dest, NULL, rule, mask->origin, err);
    for (size_t i = 0; i < f->policy->grant_count && status == 0; i++) {
        const struct policy_grant *grant = &f->policy->grants[i];
        char dest[PATH_LENGTH_MAX + 1];
        if (grant->access == BRIG_MASK || strcmp(grant->source, grant->dest) == 0 ||
            !path_is_beneath(grant->source, mask->dest) || strcmp(grant->source, mask->dest) == 0)
            continue;
        int length = snprintf(dest, sizeof dest, "%s/%s", grant->dest,
                              places_rest(grant->source, mask->dest));
        if (length > 0 && (size_t)length < sizeof dest)
            status =
                add(f, (struct place){.kind = PLACE_MASK}, dest, NULL, rule, mask->origin, err);
    }
    return status;
}

static int add_grant(struct filling *f, const struct policy_grant *grant, struct brig_error *err)
{
    struct stat info;
    char rule[PATH_LENGTH_MAX + 64];
    bool there = lstat(grant->source, &info) == 0;
    (void)snprintf(rule, sizeof rule, "%s %s", policy_word(POLICY_ACCESS, grant->access),
                   grant->dest);
    switch (grant->access) {
    case BRIG_MASK:
        return add_mask(f, grant, err);
    case BRIG_PROTECT:
        return there ? add(f, (struct place){.kind = PLACE_HOST, .given = true}, grant->dest,
                           grant->source, rule, grant->origin, err)
                     : 0;
    case BRIG_READ_ONLY:
    case BRIG_READ_WRITE:
    case BRIG_DEVICE:
        break;
    }
    if (!there && !(grant->flags & BRIG_GRANT_CREATE))
        return 0;
    if (grant->own)
        return add(f,
                   (struct place){.kind = PLACE_KEPT, .writable = grant->access == BRIG_READ_WRITE},
                   grant->dest, NULL, rule, grant->origin, err);
    return add(f,
               (struct place){
                   .kind = PLACE_HOST, .writable = grant->access != BRIG_READ_ONLY, .given = true},
               grant->dest, grant->source, rule, grant->origin, err);
}

int places_find(const struct setup *setup, int argc, char *const *argv, struct places *ret_places,
                struct brig_error *err)
{
    const struct brig_policy *policy = setup->settings.policy;
    struct places places = {
        .frame = policy->view == BRIG_VIEW_SYSTEM || policy->view == BRIG_VIEW_EMPTY,
    };
    struct filling f = {
        .setup = setup,
        .policy = policy,
        .places = &places,
    };
    f.view_by = places_origin_of(setup, argc, argv,
                                 policy->view == BRIG_VIEW_ROOT ? OPTION_ROOT : OPTION_VIEW,
                                 f.view_origin, sizeof f.view_origin);
    int status = add_view(&f, err);
    if (status == 0)
        status = add_private(&f, err);
    if (status == 0)
        status = add_kept(&f, err);
    for (size_t i = 0; i < policy->grant_count && status == 0; i++)
        status = add_grant(&f, &policy->grants[i], err);
    if (status < 0)
        places_done(&places);
    else
        *ret_places = places;
    return status;
}

/* ---- asking ---- */

const char *places_link(const struct places *places, const char *path)
{
    for (size_t i = 0; places->frame && i < ARRAY_LENGTH(aliases); i++)
        if (strcmp(aliases[i].alias, path) == 0)
            return aliases[i].real;
    return NULL;
}

/* The place of a path, with the masks or without them. */
static const struct place *longest(const struct places *places, const char *path, bool masks)
{
    const struct place *best = &places->items[0];
    for (size_t i = 1; i < places->count; i++) {
        const struct place *place = &places->items[i];
        if (path_is_beneath(place->dest, path) && strlen(place->dest) >= strlen(best->dest) &&
            (masks || place->kind != PLACE_MASK))
            best = place;
    }
    return best;
}

/* A mask is laid only on what is there, and not in what is private and empty anyway. */
static bool is_laid(const struct places *places, const struct place *mask)
{
    const struct place *below = longest(places, mask->dest, false);
    char path[PATH_LENGTH_MAX + 1];
    struct stat info;
    if (below->kind == PLACE_SCRATCH)
        return false;
    if (below->kind == PLACE_HOST)
        (void)snprintf(path, sizeof path, "%s/%s", below->host,
                       places_rest(below->dest, mask->dest));
    else
        (void)snprintf(path, sizeof path, "%s", mask->dest);
    return lstat(path, &info) == 0;
}

const struct place *places_of(const struct places *places, const char *path)
{
    const struct place *best = &places->items[0];
    for (size_t i = 1; i < places->count; i++) {
        const struct place *place = &places->items[i];
        if (path_is_beneath(place->dest, path) && strlen(place->dest) >= strlen(best->dest) &&
            (place->kind != PLACE_MASK || is_laid(places, place)))
            best = place;
    }
    return best;
}
