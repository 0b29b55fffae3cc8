/* SPDX-License-Identifier: MIT */
/* What can be said of what is behind a path, and of hosts. */
#include "cli/why.h"

#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "cli/home.h"
#include "cli/identity.h"
#include "cli/lookup.h"
#include "cli/options.h"
#include "cli/setup.h"
#include "policy/policy.h"

const char *why_state_name(enum why_state state)
{
    static const char *const names[] = {
        [WHY_WRITABLE] = "writable",       [WHY_READ_ONLY] = "read-only",
        [WHY_HIDDEN] = "hidden",           [WHY_MISSING] = "missing",
        [WHY_FORBIDDEN] = "forbidden",     [WHY_REACHABLE] = "reachable",
        [WHY_UNREACHABLE] = "unreachable",
    };
    return names[state];
}

int why_init(struct why *why, struct setup *setup, int argc, char *const *argv,
             struct brig_error *err)
{
    const struct brig_policy *policy = setup->settings.policy;
    *why = (struct why){.setup = setup};
    int status = masks_resolve(&setup->settings, &why->masks, err);
    identity_enter(&setup->identity);
    if (status == 0 && setup->identity.host_home)
        status = masks_follow_links(&why->masks, setup->identity.host_home, err);
    identity_leave(&setup->identity);
    if (status == 0)
        status = home_foresee(&setup->settings, &setup->identity, NULL, NULL, err);
    if (status == 0)
        status = places_find(setup, argc, argv, &why->places, err);
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
    why->network_origin = places_origin_of(setup, argc, argv, OPTION_NET, why->network_text,
                                           sizeof why->network_text);
    if (geteuid() == 0)
        (void)setgroups(0, NULL);
    return 0;
}

void why_done(struct why *why)
{
    places_done(&why->places);
    masks_done(&why->masks);
}

/* ---- answers ---- */

static void say(struct why_answer *answer, enum why_state state, const char *written)
{
    answer->state = state;
    answer->written = written;
    answer->readable = state == WHY_READ_ONLY || (state == WHY_WRITABLE && answer->exists);
    answer->writable = state == WHY_WRITABLE;
}

#define NOWHERE "nowhere: read-only"

static const char *written_to(const struct place *place)
{
    if (!place->writable)
        return NOWHERE;
    switch (place->kind) {
    case PLACE_HOST:
        return "the real file";
    case PLACE_OVERLAY:
        return "kept in the jail's changes";
    case PLACE_HOME:
        return "kept in the jail's home";
    case PLACE_KEPT:
        return strcmp(place->dest, "/tmp") == 0 || strcmp(place->dest, "/var/tmp") == 0
                   ? "the jail's /tmp"
                   : "the jail's own, kept as its /tmp is";
    case PLACE_SCRATCH:
        return strcmp(place->dest, "/tmp") == 0 ? "the jail's /tmp, gone with the run"
                                                : "private memory, gone with the run";
    case PLACE_PROC:
        return "the jail's own processes";
    case PLACE_FRAME:
    case PLACE_MADE:
    case PLACE_DEVICES:
    case PLACE_MASK:
        break;
    }
    return NOWHERE;
}

static void answer_found(const struct why *why, const struct lookup *node,
                         struct why_answer *answer)
{
    const struct place *place = node->place;
    const char *written = written_to(place);
    answer->exists = true;
    bool readable = lookup_may(why, node, R_OK) && !lookup_by_group_only(why, node);
    bool writable = place->writable && lookup_may(why, node, W_OK);
    if (S_ISSOCK(node->info.st_mode) && place->kind == PLACE_HOST && !place->given) {
        (void)snprintf(answer->rule, sizeof answer->rule, "sockets of the host");
        answer->origin = SETTINGS_BUILT_IN;
        say(answer, WHY_HIDDEN, NOWHERE);
        return;
    }
    say(answer,
        writable   ? WHY_WRITABLE
        : readable ? WHY_READ_ONLY
                   : WHY_FORBIDDEN,
        writable           ? written
        : !place->writable ? NOWHERE
                           : "nowhere: its owner and mode do not allow it");
    answer->readable = readable;
}

/* Something of the host's is there that the jail has not, though it may make one of its own. */
static void say_hidden(struct why_answer *answer, const char *written)
{
    say(answer, WHY_HIDDEN, written);
    answer->writable = strcmp(written, NOWHERE) != 0;
}

static bool is_covered(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0;
}

static void answer_missing(const struct why *why, const struct lookup *node,
                           struct why_answer *answer)
{
    const struct place *place = node->place;
    bool writable = place->writable && lookup_can_be_made(why, answer->path, place);
    answer->exists = place->kind == PLACE_HOME && strcmp(answer->path, place->dest) == 0;
    if (answer->exists) /* as soon as the jail is made */
        say(answer, WHY_WRITABLE, written_to(place));
    else if (place->kind == PLACE_FRAME)
        say_hidden(answer, NOWHERE); /* the view has it not */
    else if (place->kind == PLACE_HOME && is_covered(answer->path))
        say_hidden(answer, written_to(place));
    else
        say(answer, writable ? WHY_WRITABLE : WHY_MISSING, writable ? written_to(place) : NOWHERE);
}

static bool is_device(const char *path)
{
    static const char *const names[] = {"null", "zero",  "full",   "random", "urandom", "tty",
                                        "fd",   "stdin", "stdout", "stderr", "ptmx",    "pts"};
    const char *rest = places_rest("/dev", path);
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (strcmp(rest, names[i]) == 0)
            return true;
    return *rest == '\0';
}

static bool is_hidden_in_proc(const char *path)
{
    static const char *const names[] = {"/proc/keys", "/proc/key-users", "/proc/kcore",
                                        "/proc/timer_list"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (strcmp(path, names[i]) == 0)
            return true;
    return false;
}

/* Of a process no more can be told than that it is one of the jail's. */
static void answer_proc(const struct place *place, struct why_answer *answer)
{
    const char *rest = places_rest(place->dest, answer->path);
    bool of_process = strchr("0123456789", *rest) || strncmp(rest, "self", 4) == 0;
    answer->unknown = *rest && of_process;
    answer->exists = answer->unknown || access(answer->path, F_OK) == 0;
    if (is_hidden_in_proc(answer->path))
        say(answer, WHY_HIDDEN, NOWHERE);
    else if (answer->exists)
        say(answer, answer->unknown && place->writable ? WHY_WRITABLE : WHY_READ_ONLY,
            answer->unknown ? written_to(place) : NOWHERE);
    else
        say(answer, WHY_MISSING, NOWHERE);
}

static void answer_unknown(const struct why *why, const struct lookup *node,
                           struct why_answer *answer)
{
    const struct place *place = node->place;
    bool root = strcmp(place->dest, answer->path) == 0;
    switch (place->kind) {
    case PLACE_FRAME:
        answer_missing(why, node, answer);
        break;
    case PLACE_MADE:
        answer->exists = true;
        say(answer, WHY_READ_ONLY, NOWHERE);
        break;
    case PLACE_DEVICES:
        answer->exists = is_device(answer->path);
        say(answer, answer->exists ? root ? WHY_READ_ONLY : WHY_WRITABLE : WHY_MISSING,
            root || !answer->exists ? NOWHERE : "the device");
        break;
    case PLACE_PROC:
        answer_proc(place, answer);
        break;
    case PLACE_SCRATCH:
    case PLACE_KEPT:
        answer->exists = root;
        answer->unknown = !root && place->kind == PLACE_KEPT;
        if (!root && is_covered(answer->path))
            say_hidden(answer, written_to(place));
        else
            say(answer, WHY_WRITABLE, written_to(place));
        break;
    case PLACE_MASK:
        answer->exists = root;
        say(answer, WHY_HIDDEN, NOWHERE);
        break;
    case PLACE_HOST:
    case PLACE_HOME:
    case PLACE_OVERLAY:
        break;
    }
}

void why_path(const struct why *why, const char *path, struct why_answer *ret_answer)
{
    struct lookup node = {0};
    *ret_answer = (struct why_answer){0};
    lookup_walk(why, path, ret_answer->path, &node);
    (void)snprintf(ret_answer->rule, sizeof ret_answer->rule, "%s", node.place->rule);
    ret_answer->origin = node.place->origin;
    switch (node.kind) {
    case LOOKUP_FOUND:
        answer_found(why, &node, ret_answer);
        break;
    case LOOKUP_MISSING:
    case LOOKUP_DELETED:
        answer_missing(why, &node, ret_answer);
        break;
    case LOOKUP_HIDDEN:
        (void)snprintf(ret_answer->rule, sizeof ret_answer->rule, "mask %s",
                       why->masks.rules.hidden[node.mask]);
        ret_answer->origin = why->masks.origins[node.mask];
        say_hidden(ret_answer, "kept in the jail's changes; what is hidden stays as it is");
        break;
    case LOOKUP_UNKNOWN:
        answer_unknown(why, &node, ret_answer);
        break;
    }
}
