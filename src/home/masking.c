/* SPDX-License-Identifier: MIT */
/* The masks that are in force in a jail's home. */
#include "home/masking.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "home/mounts.h"
#include "home/names.h"

#define REFRESH_MS 2000
/* Between two looks: who can make names in the home must not keep us busy. */
#define PAUSE_MS 10
#define PAUSE_LOOKS 10 /* and no less than so many times what a look takes */
#define PAUSE_MAX_MS 500

/* ---- sets ---- */

static void set_done(struct masking_set *set)
{
    free(set->message);
    free(set->texts);
    str_done(&set->places);
    *set = (struct masking_set){0};
}

/* The strings of a message, after the first, which is the home's path. */
static int read_texts(struct masking_set *set, struct brig_error *err)
{
    const struct home_request *head = &set->message->head;
    const char *text = set->message->text, *end = text + head->length;
    size_t count = 0, wanted = (size_t)head->mask_count + head->shown_count + head->own_count;
    if (wanted > HOME_RULES_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "the masks are too many: at most %d",
                         HOME_RULES_MAX);
    set->texts = calloc(wanted + 1, sizeof *set->texts);
    if (!set->texts)
        return brig_fail_nomem(err);
    for (text += strlen(text) + 1; text < end && count < wanted; text += strlen(text) + 1)
        set->texts[count++] = text;
    if (count != wanted)
        return brig_fail(err, BRIG_E_INVALID, 0, "the masks are fewer than was said");
    set->rules = (struct hide_rules){
        .hidden = set->texts,
        .hidden_count = head->mask_count,
        .shown = set->texts + head->mask_count,
        .shown_count = head->shown_count,
        .own = set->texts + head->mask_count + head->shown_count,
        .own_count = head->own_count,
    };
    return 0;
}

static int set_init(struct masking_set *set, const struct home_message *message,
                    struct brig_error *err)
{
    size_t size = sizeof message->head + message->head.length + 1;
    *set = (struct masking_set){.message = malloc(size)};
    if (!set->message)
        return brig_fail_nomem(err);
    memcpy((void *)set->message, message, size);
    return read_texts(set, err);
}

const struct masking_set *masking_find(const struct masking *masking,
                                       const struct home_message *message)
{
    const struct home_request *head = &message->head;
    for (size_t i = 0; i < masking->set_count; i++) {
        const struct home_message *known = masking->sets[i].message;
        if (head->mask_count == known->head.mask_count &&
            head->shown_count == known->head.shown_count &&
            head->own_count == known->head.own_count && head->length == known->head.length &&
            memcmp(known->text, message->text, head->length) == 0)
            return &masking->sets[i];
    }
    return NULL;
}

/* ---- putting them into effect ---- */

struct effect {
    struct masking *masking;
    struct masking_set *set;
};

static int note_place(struct masking_set *set, const char *path, struct brig_error *err)
{
    if (str_list_has(&set->places, path))
        return 0;
    size_t size = strlen(path) + 1;
    if (set->places.length + size > HOME_PLACES_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "the masks lead to too many places by symbolic links: more than %d bytes "
                         "of paths. Mask the directories that hold them",
                         HOME_PLACES_MAX);
    str_append_bytes(&set->places, path, size);
    return set->places.failed ? brig_fail_nomem(err) : 0;
}

/* In the layer, and by a mount where that has no effect any more. */
static int hide_in_home(struct masking *masking, const struct hide_place *place,
                        struct brig_error *err)
{
    const char *path = place->path;
    if (place->missing && !masking->live && strchr(path, '/'))
        return 0; /* its directory will be watched for */
    int hidden = mounts_mask(masking->home.fd, path, err);
    if (hidden < 0 || !masking->live || (hidden && !mounts_has_copy(masking->changes, path)))
        return hidden < 0 ? hidden : 0;
    int covered = mounts_cover(masking->home.fd, masking->changes, path, err);
    masking->covered = masking->covered || covered > 0;
    return covered < 0 ? covered : 0;
}

static int hide_place(void *context, const struct hide_place *place, struct brig_error *err)
{
    const struct effect *effect = context;
    struct masking *masking = effect->masking;
    bool looking = masking->looking; /* then what fails must not keep the rest from being hidden */
    int status = place->linked ? note_place(effect->set, place->path, err) : 0;
    if (masking->on_place && (status == 0 || looking))
        status = masking->on_place(masking->context, place, err);
    if ((status == 0 || looking) && !place->outside && masking->hides)
        status = hide_in_home(masking, place, err);
    return looking ? 0 : status;
}

static int apply(struct masking *masking, struct masking_set *set, const struct hide_rules *rules,
                 struct brig_error *err)
{
    struct effect effect = {masking, set};
    struct links_home home = masking->home;
    home.ignore = set->plain;
    int status = hide_each(&home, rules, hide_place, &effect, err);
    for (size_t i = 0; i < rules->own_count && status >= 0 && masking->hides; i++)
        if (hide_is_path(rules->own[i]))
            status = mounts_mask_own(masking->home.fd, rules->own[i], err);
    return status < 0 ? status : 0;
}

/* The place for another set; NULL if there is none left. */
static struct masking_set *free_set(struct masking *masking, struct brig_error *err)
{
    if (masking->set_count < MASKING_SETS_MAX)
        return &masking->sets[masking->set_count];
    (void)brig_fail(err, BRIG_E_STATE, 0,
                    "the runs in this jail have %d different sets of masks, and more are not "
                    "possible: end some of them first",
                    MASKING_SETS_MAX);
    return NULL;
}

static int add_set(struct masking *masking, const struct home_message *message, bool plain,
                   const struct masking_set **ret_set, struct brig_error *err)
{
    struct masking_set *place = free_set(masking, err);
    if (!place)
        return BRIG_E_STATE;
    struct masking_set set;
    int status = set_init(&set, message, err);
    set.plain = plain;
    if (status == 0)
        status = apply(masking, &set, &set.rules, err);
    if (status < 0) {
        set_done(&set);
        return status;
    }
    *place = set;
    masking->set_count++;
    *ret_set = place;
    return 0;
}

int masking_add(struct masking *masking, const struct home_message *message,
                const struct masking_set **ret_set, struct brig_error *err)
{
    return add_set(masking, message, false, ret_set, err);
}

int masking_add_plain(struct masking *masking, const struct home_message *message,
                      struct brig_error *err)
{
    const struct masking_set *set;
    return add_set(masking, message, true, &set, err);
}

static struct masking_set *find_extra(struct masking *masking)
{
    for (size_t i = 0; i < masking->set_count; i++)
        if (masking->sets[i].extra)
            return &masking->sets[i];
    return NULL;
}

static bool has_mask(const struct masking_set *set, const char *mask)
{
    for (size_t i = 0; i < set->rules.hidden_count; i++)
        if (strcmp(set->rules.hidden[i], mask) == 0)
            return true;
    return false;
}

/* Appends the masks of a message to those of another, which has nothing else; false if there is no
 * room. */
static bool append_masks(struct home_message *to, const struct masking_set *known,
                         const struct masking_set *more)
{
    for (size_t i = 0; i < more->rules.hidden_count; i++) {
        const char *mask = more->rules.hidden[i];
        if (!mask || has_mask(known, mask))
            continue;
        size_t size = strlen(mask) + 1;
        if (to->head.length + size > HOME_TEXT_MAX || to->head.mask_count == HOME_RULES_MAX)
            return false;
        memcpy(to->text + to->head.length, mask, size);
        to->head.length += (uint32_t)size;
        to->head.mask_count++;
    }
    return true;
}

/* Puts a set in the place of another, once it has taken effect. */
static int replace_set(struct masking *masking, struct masking_set *old, struct masking_set *with,
                       struct brig_error *err)
{
    int status = apply(masking, with, &with->rules, err);
    if (status < 0)
        return status;
    set_done(old);
    *old = *with;
    *with = (struct masking_set){0};
    return 0;
}

int masking_extend(struct masking *masking, const struct home_message *message,
                   struct brig_error *err)
{
    struct masking_set *extra = find_extra(masking);
    const struct masking_set *added;
    if (!extra) {
        int status = masking_add(masking, message, &added, err);
        if (status == 0)
            masking->sets[masking->set_count - 1].extra = true;
        return status;
    }
    autofree struct home_message *all = malloc(sizeof *all);
    __attribute__((cleanup(set_done))) struct masking_set more = {0}, joined = {0};
    if (!all)
        return brig_fail_nomem(err);
    memcpy((void *)all, extra->message, sizeof all->head + extra->message->head.length);
    int status = set_init(&more, message, err);
    if (status == 0 && !append_masks(all, extra, &more))
        status = brig_fail(err, BRIG_E_INVALID, 0, "the masks are too many: more than %d bytes",
                           HOME_TEXT_MAX);
    if (status == 0)
        status = set_init(&joined, all, err);
    joined.extra = true;
    return status < 0 ? status : replace_set(masking, extra, &joined, err);
}

void masking_look(struct masking *masking)
{
    uint64_t began = clock_now_ms();
    masking->looking = true;
    for (size_t i = 0; i < masking->set_count; i++)
        (void)apply(masking, &masking->sets[i], &masking->sets[i].rules, NULL);
    masking->looking = false;
    masking->looked = clock_now_ms();
    uint64_t pause = (masking->looked - began) * PAUSE_LOOKS;
    masking->next_look = masking->looked + (pause < PAUSE_MS       ? PAUSE_MS
                                            : pause > PAUSE_MAX_MS ? PAUSE_MAX_MS
                                                                   : pause);
}

int masking_wait_ms(const struct masking *masking)
{
    uint64_t now = clock_now_ms();
    return now < masking->next_look ? (int)(masking->next_look - now) : 0;
}

void masking_refresh(struct masking *masking)
{
    if (clock_now_ms() - masking->looked >= REFRESH_MS)
        masking_look(masking);
}

/* ---- beginning and end ---- */

int masking_begin(struct masking *masking, int home, const char *path, bool hides,
                  struct brig_error *err)
{
    masking_end(masking);
    masking->home.fd = fcntl(home, F_DUPFD_CLOEXEC, 0);
    masking->path = strdup(path);
    masking->real = realpath(path, NULL);
    masking->hides = hides;
    if (masking->home.fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot keep the home directory open");
    if (!masking->path)
        return brig_fail_nomem(err);
    masking->home.path = masking->path;
    masking->home.real = masking->real;
    return 0;
}

/* What a run has copied up. */
struct copies {
    const struct masking *masking;
    struct names top; /* of the changes */
};

static int cover_copy(void *context, const struct hide_place *place, struct brig_error *err)
{
    const struct copies *copies = context;
    const struct masking *masking = copies->masking;
    if (!names_may_have(&copies->top, place->path))
        return 0;
    int covered = mounts_has_copy(masking->changes, place->path)
                      ? mounts_cover(masking->home.fd, masking->changes, place->path, err)
                      : 0;
    return covered < 0 ? covered : 0;
}

/* What earlier runs have changed of the home's lies above the layer of masks. */
static int cover_copies(struct masking *masking, const struct masking_set *set,
                        struct brig_error *err)
{
    struct links_home home = masking->home;
    home.ignore = true; /* where links lead is known */
    struct copies copies = {.masking = masking};
    names_read(&copies.top, masking->changes);
    if (copies.top.empty)
        return 0;
    struct hide_rules rules = set->rules;
    rules.only = &copies.top;
    int status = hide_each(&home, &rules, cover_copy, &copies, err);
    for (size_t at = 0; at < set->places.length && status == 0;
         at += strlen(set->places.data + at) + 1) {
        const struct hide_place place = {.path = set->places.data + at};
        status = place.path[0] == '/' ? 0 : cover_copy(&copies, &place, err);
    }
    return status;
}

int masking_mounted(struct masking *masking, int changes, bool created, struct brig_error *err)
{
    masking->changes = fcntl(changes, F_DUPFD_CLOEXEC, 0);
    masking->live = true;
    int status = 0;
    for (size_t i = 0; i < masking->set_count && status == 0 && !created; i++)
        status = cover_copies(masking, &masking->sets[i], err);
    return status;
}

void masking_end(struct masking *masking)
{
    const int fds[] = {masking->home.fd, masking->changes, masking->inotify};
    for (size_t i = 0; i < ARRAY_LENGTH(fds); i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
    for (size_t i = 0; i < masking->set_count; i++)
        set_done(&masking->sets[i]);
    for (size_t i = 0; i < masking->watch_count; i++)
        free(masking->watches[i].directory);
    free(masking->watches);
    free(masking->path);
    free(masking->real);
    *masking = MASKING_INIT;
}
