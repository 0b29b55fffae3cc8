/* SPDX-License-Identifier: MIT */
/* The masks that are in force in a jail's home. */
#include "home/masking.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/own.h"
#include "home/mounts.h"
#include "home/names.h"

#define EVENTS (IN_CREATE | IN_MOVED_TO | IN_ONLYDIR)
#define PART_MAX 256
#define REFRESH_MS 2000
#define READS_MAX 128 /* of events, at a time: more than the kernel keeps */
#define PAUSE_MS 10   /* between two looks: who can make names in the home must not keep us busy */
#define DEPTH_MAX 32

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

static bool has_place(const struct str *places, const char *path)
{
    for (size_t at = 0; at < places->length; at += strlen(places->data + at) + 1)
        if (strcmp(places->data + at, path) == 0)
            return true;
    return false;
}

static int note_place(struct masking_set *set, const char *path, struct brig_error *err)
{
    if (has_place(&set->places, path))
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

static int hide_place(void *context, const struct hide_place *place, struct brig_error *err)
{
    const struct effect *effect = context;
    const struct masking *masking = effect->masking;
    int status = place->linked ? note_place(effect->set, place->path, err) : 0;
    if (status < 0 || place->outside || !masking->hides)
        return status;
    if (place->missing && !masking->live && strchr(place->path, '/'))
        return 0; /* its directory will be watched for */
    int hidden = mounts_mask(masking->home.fd, place->path, err);
    if (hidden < 0 || !masking->live || (hidden && !mounts_has_copy(masking->changes, place->path)))
        return hidden < 0 ? hidden : 0;
    return mounts_cover(masking->home.fd, masking->changes, place->path, err);
}

static int apply(struct masking *masking, struct masking_set *set, const struct hide_rules *rules,
                 struct brig_error *err)
{
    struct effect effect = {masking, set};
    int status = hide_each(&masking->home, rules, hide_place, &effect, err);
    for (size_t i = 0; i < rules->own_count && status >= 0 && masking->hides; i++)
        if (hide_is_path(rules->own[i]))
            status = mounts_mask_own(masking->home.fd, rules->own[i], err);
    return status < 0 ? status : 0;
}

int masking_add(struct masking *masking, const struct home_message *message,
                const struct masking_set **ret_set, struct brig_error *err)
{
    if (masking->set_count == MASKING_SETS_MAX)
        return brig_fail(err, BRIG_E_STATE, 0,
                         "the runs in this jail have %d different sets of masks, and more are not "
                         "possible: end some of them first",
                         MASKING_SETS_MAX);
    struct masking_set set;
    int status = set_init(&set, message, err);
    if (status == 0)
        status = apply(masking, &set, &set.rules, err);
    if (status < 0) {
        set_done(&set);
        return status;
    }
    masking->sets[masking->set_count] = set;
    *ret_set = &masking->sets[masking->set_count++];
    return 0;
}

static void look_again(struct masking *masking)
{
    for (size_t i = 0; i < masking->set_count; i++)
        (void)apply(masking, &masking->sets[i], &masking->sets[i].rules, NULL);
    masking->looked = clock_now_ms();
}

void masking_refresh(struct masking *masking)
{
    if (clock_now_ms() - masking->looked >= REFRESH_MS)
        look_again(masking);
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
    return mounts_has_copy(masking->changes, place->path)
               ? mounts_cover(masking->home.fd, masking->changes, place->path, err)
               : 0;
}

/* What earlier runs have changed of the home's lies above the layer of masks. */
static int cover_copies(struct masking *masking, const struct masking_set *set,
                        struct brig_error *err)
{
    struct links_home home = masking->home;
    home.ignore = true; /* where links lead is known */
    struct copies copies = {.masking = masking};
    names_read(&copies.top, masking->changes);
    int status = hide_each(&home, &set->rules, cover_copy, &copies, err);
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
    free(masking->path);
    free(masking->real);
    *masking = MASKING_INIT;
}

/* ---- watching ---- */

static bool is_watched(const struct masking *masking, const char *directory)
{
    for (size_t i = 0; i < masking->watch_count; i++)
        if (strcmp(masking->watches[i].directory, directory) == 0)
            return true;
    return false;
}

/* Whether the directory is there; it is watched then, or everything is looked at now and then. */
static bool watch_directory(struct masking *masking, const char *directory)
{
    char path[64];
    if (is_watched(masking, directory))
        return true;
    autoclose int fd =
        openat(masking->home.fd, *directory ? directory : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return false;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    char *copy = masking->watch_count < MASKING_WATCHES_MAX ? strdup(directory) : NULL;
    int descriptor = copy ? inotify_add_watch(masking->inotify, path, EVENTS) : -1;
    if (descriptor < 0) {
        free(copy);
        masking->blind = true;
        return true;
    }
    masking->watches[masking->watch_count++] =
        (struct masking_watch){.descriptor = descriptor, .directory = copy};
    return true;
}

static bool is_wild(const char *part)
{
    return strpbrk(part, "*?[") != NULL;
}

struct part {
    char text[PART_MAX];
    const char *rest; /* NULL: it was the last */
};

static struct part next_part(const char *pattern)
{
    struct part part = {0};
    size_t length = strcspn(pattern, "/");
    (void)snprintf(part.text, sizeof part.text, "%.*s", (int)length, pattern);
    part.rest = pattern[length] ? pattern + length + 1 : NULL;
    return part;
}

static void watch_below(struct masking *masking, const char *directory, const char *pattern,
                        int depth);

static void watch_matches(struct masking *masking, const char *directory, const struct part *part,
                          int depth)
{
    int fd =
        openat(masking->home.fd, *directory ? directory : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *item;
    while (dir && (item = readdir(dir))) {
        char path[LINKS_PATH_MAX];
        if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0 ||
            fnmatch(part->text, item->d_name, 0) != 0)
            continue;
        int length =
            snprintf(path, sizeof path, "%s%s%s", directory, *directory ? "/" : "", item->d_name);
        if (length > 0 && (size_t)length < sizeof path)
            watch_below(masking, path, part->rest, depth + 1);
    }
}

/* Every directory on the way to what a pattern stands for: it can be made, or replaced. */
static void watch_below(struct masking *masking, const char *directory, const char *pattern,
                        int depth)
{
    if (depth > DEPTH_MAX || !watch_directory(masking, directory))
        return;
    const struct part part = next_part(pattern);
    if (!part.rest)
        return;
    if (is_wild(part.text)) {
        watch_matches(masking, directory, &part, depth);
        return;
    }
    char path[LINKS_PATH_MAX];
    int length = snprintf(path, sizeof path, "%s%s%s", directory, *directory ? "/" : "", part.text);
    if (length > 0 && (size_t)length < sizeof path)
        watch_below(masking, path, part.rest, depth + 1);
}

static void watch_set(struct masking *masking, const struct masking_set *set)
{
    for (size_t i = 0; i < set->rules.hidden_count; i++)
        watch_below(masking, "", set->rules.hidden[i], 0);
    for (size_t i = 0; i < set->rules.shown_count; i++) /* beside it all is hidden */
        watch_below(masking, "", set->rules.shown[i], 0);
    for (size_t at = 0; at < set->places.length; at += strlen(set->places.data + at) + 1)
        if (set->places.data[at] != '/')
            watch_below(masking, "", set->places.data + at, 0);
}

void masking_watch(struct masking *masking)
{
    if (masking->inotify < 0)
        masking->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    masking->blind = masking->inotify < 0;
    for (size_t i = 0; i < masking->set_count && masking->inotify >= 0; i++)
        watch_set(masking, &masking->sets[i]);
    look_again(masking);
}

/* ---- events ---- */

/* Whether a path is on the way to what a pattern stands for, or is it, or lies in it. */
static bool concerns(const char *pattern, const char *path)
{
    while (pattern && path) {
        const struct part wanted = next_part(pattern), is = next_part(path);
        if (strcmp(wanted.text, is.text) != 0 && fnmatch(wanted.text, is.text, 0) != 0)
            return false;
        pattern = wanted.rest;
        path = is.rest;
    }
    return true;
}

static bool is_about_set(const struct masking_set *set, const char *path)
{
    for (size_t i = 0; i < set->rules.hidden_count; i++)
        if (concerns(set->rules.hidden[i], path))
            return true;
    for (size_t at = 0; at < set->places.length; at += strlen(set->places.data + at) + 1)
        if (concerns(set->places.data + at, path))
            return true;
    return false;
}

static void forget_watch(struct masking *masking, size_t which)
{
    free(masking->watches[which].directory);
    masking->watches[which] = masking->watches[--masking->watch_count];
}

/* A directory that was replaced is another one to watch, and so is all below it. */
static void forget_below(struct masking *masking, const char *path)
{
    for (size_t i = masking->watch_count; i-- > 0;) {
        const char *directory = masking->watches[i].directory;
        size_t length = strlen(path);
        if (strncmp(directory, path, length) == 0 &&
            (!directory[length] || directory[length] == '/'))
            forget_watch(masking, i);
    }
}

/* Whether a new name may be about masks. One directory may be known by several names. */
static bool is_about_masks(struct masking *masking, const struct inotify_event *event)
{
    bool about = event->mask & IN_Q_OVERFLOW;
    for (size_t w = masking->watch_count; w-- > 0 && event->len > 0;) {
        char path[LINKS_PATH_MAX + PART_MAX];
        const char *directory = masking->watches[w].directory;
        if (masking->watches[w].descriptor != event->wd)
            continue;
        (void)snprintf(path, sizeof path, "%s%s%s", directory, *directory ? "/" : "", event->name);
        for (size_t s = 0; s < masking->set_count; s++)
            about = about || is_about_set(&masking->sets[s], path);
        forget_below(masking, path);
        w = w < masking->watch_count ? w : masking->watch_count;
    }
    return about;
}

static void forget_gone(struct masking *masking, int descriptor)
{
    for (size_t i = masking->watch_count; i-- > 0;)
        if (masking->watches[i].descriptor == descriptor)
            forget_watch(masking, i);
}

/* Reads some events; false if there are no more. */
static bool read_events(struct masking *masking, bool *about)
{
    _Alignas(struct inotify_event) char buffer[8192];
    ssize_t length = read(masking->inotify, buffer, sizeof buffer);
    for (char *at = buffer; length > 0 && at < buffer + length;) {
        const struct inotify_event *event = (const struct inotify_event *)(const void *)at;
        at += sizeof *event + event->len;
        if (event->mask & IN_IGNORED)
            forget_gone(masking, event->wd);
        *about = is_about_masks(masking, event) || *about;
    }
    return length > 0;
}

/* All there are: while nobody was in the jail none were read, and who joins now must not be served
 * before. Who makes more all the time has everything looked at instead. */
void masking_process(struct masking *masking)
{
    uint64_t since = clock_now_ms() - masking->looked;
    if (since < PAUSE_MS)
        (void)nanosleep(&(struct timespec){.tv_nsec = (long)(PAUSE_MS - since) * 1000000}, NULL);
    bool about = false;
    int reads = 0;
    while (reads < READS_MAX && read_events(masking, &about))
        reads++;
    if (about || reads == READS_MAX)
        masking_watch(masking);
}
