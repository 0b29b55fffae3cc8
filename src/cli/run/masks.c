/* SPDX-License-Identifier: MIT */
/* The masks of a run. */
#include "cli/run/masks.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/identity.h"
#include "home/home.h"
#include "home/wire.h"
#include "jail/job/watch.h"
#include "jail/view/mask_names.h"
#include "policy/defaults.h"
#include "policy/policy.h"
#include "policy/startup.h"

/* ---- rules in their order ---- */

static void drop(const char **list, size_t count, size_t which)
{
    memmove(list + which, list + which + 1, (count - which - 1) * sizeof *list);
}

static void hide(struct masks *masks, const char *path, const char *origin)
{
    struct mask_rules *rules = &masks->rules;
    for (size_t i = rules->shown_count; i-- > 0;)
        if (path_is_beneath(path, rules->shown[i]))
            drop(rules->shown, rules->shown_count--, i);
    masks->origins[rules->hidden_count] = origin;
    rules->hidden[rules->hidden_count++] = path; /* a duplicate rule does no harm */
}

/* Removes the same rule and the rules that it matches; below a hidden directory it is an
 * exception. */
static void show(struct masks *masks, const char *path)
{
    struct mask_rules *rules = &masks->rules;
    for (size_t i = rules->hidden_count; i-- > 0;)
        if (path_is_beneath(path, rules->hidden[i]) ||
            policy_pattern_matches(path, rules->hidden[i])) {
            drop(masks->origins, rules->hidden_count, i);
            drop(rules->hidden, rules->hidden_count--, i);
        }
    rules->shown[rules->shown_count++] = path;
}

static size_t count_defaults(void)
{
    size_t count = 0;
    for (const char *mask = policy_default_masks; *mask; mask = policy_next_default(mask))
        count++;
    return count;
}

int masks_resolve(const struct settings *settings, struct masks *ret_masks, struct brig_error *err)
{
    size_t room = settings->mask_count + (settings->late_masks ? count_defaults() : 0) + 1;
    struct masks masks = {
        .rules = {.hidden = calloc(room, sizeof *masks.rules.hidden),
                  .shown = calloc(room, sizeof *masks.rules.shown)},
        .origins = calloc(room, sizeof *masks.origins),
    };
    if (!masks.rules.hidden || !masks.origins || !masks.rules.shown) {
        masks_done(&masks);
        return brig_fail_nomem(err);
    }
    for (const char *mask = policy_default_masks; settings->late_masks && *mask;
         mask = policy_next_default(mask))
        hide(&masks, mask, SETTINGS_BUILT_IN);
    for (size_t i = 0; i < settings->mask_count; i++)
        if (settings->masks[i].unmask)
            show(&masks, settings->masks[i].path);
        else
            hide(&masks, settings->masks[i].path, settings->masks[i].origin);
    *ret_masks = masks;
    return 0;
}

void masks_done(struct masks *masks)
{
    free(masks->rules.hidden);
    free(masks->rules.shown);
    free(masks->origins);
    for (size_t i = 0; i < masks->owned_count; i++)
        free(masks->owned[i]);
    free(masks->owned);
    *masks = (struct masks){0};
}

static int masks_add(struct masks *masks, const char *path, const char *origin,
                     struct brig_error *err)
{
    size_t count = masks->rules.hidden_count;
    char *copy = array_grow(&masks->rules.hidden, count) && array_grow(&masks->origins, count) &&
                         array_grow(&masks->owned, masks->owned_count)
                     ? strdup(path)
                     : NULL;
    if (!copy)
        return brig_fail_nomem(err);
    masks->owned[masks->owned_count++] = copy;
    masks->origins[count] = origin;
    masks->rules.hidden[count] = copy;
    masks->rules.hidden_count++;
    return 0;
}

/* ---- the paths that match ---- */

/* Resolves rules in a home directory, which need not exist. */
static int resolve(const char *home, const struct mask_rules *rules,
                   int (*visit)(void *, const struct mask_path *, struct brig_error *),
                   void *context, struct brig_error *err)
{
    char real[PATH_LENGTH_MAX + 1];
    autoclose int fd = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const struct mask_home where = {
        .fd = fd, .path = home, .real = path_resolve(home, real) ? real : NULL};
    const struct mask_visitor visitor = {.path = visit, .context = context};
    return fd < 0 ? 0 : mask_each(&where, rules, &visitor, err);
}

/* The absolute path; false if it is too long. */
static bool whole_path(const char *home, const struct mask_path *path,
                       char ret_whole[static PATH_LENGTH_MAX + 1])
{
    return str_fill(ret_whole, PATH_LENGTH_MAX + 1, path->outside ? "" : home,
                    path->outside ? "" : "/", path->path);
}

struct marking {
    struct settings *settings;
    const char *home;
};

static int mark_found(void *context, const struct mask_path *path, struct brig_error *err)
{
    const struct marking *marking = context;
    struct settings_mask *mask = &marking->settings->masks[path->rule];
    char whole[PATH_LENGTH_MAX + 1];
    struct stat info;
    (void)err;
    if (!mask->found && !path->linked && whole_path(marking->home, path, whole))
        mask->found = lstat(whole, &info) == 0;
    return 0;
}

int masks_mark_found(struct settings *settings, const char *home, struct brig_error *err)
{
    autofree const char **all = calloc(settings->mask_count + 1, sizeof *all);
    if (!all)
        return brig_fail_nomem(err);
    for (size_t i = 0; i < settings->mask_count; i++)
        all[i] = settings->masks[i].path;
    const struct mask_rules rules = {.hidden = all, .hidden_count = settings->mask_count};
    struct marking marking = {settings, home};
    return resolve(home, &rules, mark_found, &marking, err);
}

struct applying {
    const struct masks *masks;
    const struct mask_names *names;
};

static int apply_path(void *context, const struct mask_path *path, struct brig_error *err)
{
    const struct applying *applying = context;
    const char *origin = applying->masks->origins[path->rule];
    char whole[PATH_LENGTH_MAX + 1];
    return whole_path(applying->names->home, path, whole)
               ? mask_names_hide(applying->names, whole, origin ? origin : "masks", err)
               : 0;
}

int masks_apply(const struct masks *masks, const struct mask_names *names, struct brig_error *err)
{
    struct applying applying = {masks, names};
    return resolve(names->home, &masks->rules, apply_path, &applying, err);
}

/* ---- start-up files outside the home ---- */

struct startup_links {
    const struct mask_names *names;
    struct startup_rules rules;
};

/* Whether a file has lines that are hidden, or cannot be examined. */
static bool has_hidden_lines(const struct startup_links *links, const char *path)
{
    const struct startup_filter filter = {links->rules.items, links->rules.count};
    struct startup_text seen = {0};
    autostr struct str text = {0};
    struct stat info;
    autoclose int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))
        return false;
    bool hides = read_all(fd, STARTUP_FILE_MAX, &text) < 0 || text.length > STARTUP_FILE_MAX ||
                 startup_hide(&filter, 1, text.data, text.length, &seen, NULL) < 0 ||
                 seen.hidden > 0;
    startup_text_done(&seen);
    return hides;
}

static int hide_startup(void *context, const struct mask_path *path, struct brig_error *err)
{
    const struct startup_links *links = context;
    return path->outside && has_hidden_lines(links, path->path)
               ? mask_names_hide(links->names, path->path, "a start-up file", err)
               : 0;
}

int masks_apply_startup(const struct brig_policy *policy, const struct mask_names *names,
                        struct brig_error *err)
{
    const struct mask_rules rules = {.hidden = (const char **)(uintptr_t)startup_names,
                                     .hidden_count = startup_name_count};
    struct startup_links links = {.names = names};
    int status = startup_rules_init(policy, &links.rules, err);
    if (status == 0 && links.rules.count > 0)
        status = resolve(names->home, &rules, hide_startup, &links, err);
    startup_rules_done(&links.rules);
    return status;
}

static int add_linked(void *context, const struct mask_path *path, struct brig_error *err)
{
    struct masks *masks = context;
    return path->linked && !path->outside
               ? masks_add(masks, path->path, masks->origins[path->rule], err)
               : 0;
}

int masks_follow_links(struct masks *masks, const char *home, struct brig_error *err)
{
    const size_t count = masks->rules.hidden_count; /* the array grows meanwhile */
    autofree const char **hidden = calloc(count + 1, sizeof *hidden);
    if (!hidden)
        return brig_fail_nomem(err);
    memcpy(hidden, masks->rules.hidden, count * sizeof *hidden);
    struct mask_rules rules = masks->rules;
    rules.hidden = hidden;
    return resolve(home, &rules, add_linked, masks, err);
}

/* ---- changes of the jail ---- */

int masks_find_hidden(const struct settings *settings, const char *home,
                      struct masks_hidden *ret_hidden, struct brig_error *err)
{
    struct masks_hidden *hidden = ret_hidden;
    size_t count = 0;
    hidden->masks = (struct masks){0};
    if (!home || !path_resolve(home, hidden->home))
        hidden->home[0] = '\0';
    int status = masks_resolve(settings, &hidden->masks, err);
    if (status == 0 && hidden->home[0])
        status = masks_follow_links(&hidden->masks, hidden->home, err);
    hidden->paths[count++] = settings->storage;
    hidden->paths[count++] = settings->config_dir;
    for (size_t i = 0; i < settings->secret_count; i++)
        hidden->paths[count++] = settings->secrets[i].path;
    hidden->layer = (struct layer_masks){.home = hidden->home[0] ? hidden->home : NULL,
                                         .rules = &hidden->masks.rules,
                                         .paths = hidden->paths,
                                         .path_count = count};
    return status;
}

void masks_hidden_done(struct masks_hidden *hidden)
{
    masks_done(&hidden->masks);
}

/* ---- During the run ---- */

/* Short runs do not pay for the watch: the kernel takes some milliseconds to end it. */
#define BEGIN_MS 250
#define BLIND_MS 2000
/* A process that can create names in a granted directory could cause any number of masks. */
#define ADDED_MAX 512

void live_masks_init(struct live_masks *live, const struct settings *settings,
                     const struct identity *identity, struct masks *masks, struct mask_names *names)
{
    if (names->grant_count == 0 && settings->policy->view != BRIG_VIEW_HOST)
        return; /* no files of the host are visible */
    live->identity = identity;
    live->masks = *masks;
    live->names = *names;
    *masks = (struct masks){0};
    *names = (struct mask_names){0};
    settings->policy->mounts = &live->names.mounts; /* they have moved */
}

void live_masks_done(struct live_masks *live)
{
    if (!live->identity)
        return;
    if (live->watch.fd >= 0)
        mask_watch_done(&live->watch);
    own_close(&live->home);
    masks_done(&live->masks);
    mask_names_done(&live->names);
    *live = LIVE_MASKS_INIT;
}

void live_masks_start(struct live_masks *live, int lease)
{
    live->lease = lease;
    live->due_ms = clock_now_ms() + BEGIN_MS;
    live->grants = live->identity ? live->names.policy->grant_count : 0;
}

/* ---- searching ---- */

/* Only adds the mask to the policy, because the jail is entered with other ids. A failure must not
 * keep other files from being hidden. */
static int note_path(void *context, const struct mask_path *path, struct brig_error *err)
{
    struct live_masks *live = context;
    const struct mask_names *names = &live->names;
    char whole[PATH_LENGTH_MAX + 1];
    if (!whole_path(names->home, path, whole) || live->full)
        return 0;
    size_t before = names->policy->grant_count;
    int status = mask_names_hide(names, whole, "masks, while it ran", err);
    live->added += names->policy->grant_count - before;
    live->full = live->added >= ADDED_MAX || status < 0;
    live->added += status < 0; /* so that it is reported */
    return 0;
}

static void hide_noted(struct live_masks *live, struct brig_job *job)
{
    const struct brig_policy *policy = live->names.policy;
    bool was_full = live->full;
    for (; live->grants < policy->grant_count; live->grants++) {
        struct brig_error err = {0};
        if (job_hide(job, policy, policy->grants[live->grants].dest, &err) < 0)
            job_note(job, err.message);
    }
    if (was_full && live->added > 0)
        job_note(job,
                 "too many new files matched masks during the run: some of them are not hidden");
    live->added = was_full ? 0 : live->added; /* reported once */
}

/* Uses the ids of the user. */
static void look(struct live_masks *live)
{
    const struct mask_home home = {
        .fd = live->home, .path = live->names.home, .real = live->names.real_home};
    mask_watch_begin(&live->watch);
    if (live->home >= 0) /* otherwise nothing can be hidden in it */
        (void)mask_each(&home, &live->masks.rules,
                        &(struct mask_visitor){note_path, live, &live->watch}, NULL);
    mask_watch_end(&live->watch);
}

static void start(struct live_masks *live)
{
    if (live->due_ms == 0)
        return;
    live->due_ms = 0;
    live->home = open(live->names.home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)mask_watch_open(&live->watch); /* if it fails, everything is checked periodically */
}

static bool has_rule(const struct masks *masks, const char *path)
{
    for (size_t i = 0; i < masks->rules.hidden_count; i++)
        if (strcmp(masks->rules.hidden[i], path) == 0)
            return true;
    return false;
}

/* Reads the masks of a message; its first string is the home's path. */
static int add_rules(struct masks *masks, const struct home_message *message,
                     struct brig_error *err)
{
    const char *text = message->text, *end = text + message->head.length;
    int status = 0;
    text += strlen(text) + 1;
    for (size_t i = 0; i < message->head.mask_count && text < end && status == 0; i++) {
        if (mask_is_path(text) && !has_rule(masks, text))
            status = masks_add(masks, text, NULL, err);
        text += strlen(text) + 1;
    }
    return status;
}

/* Takes the masks that `brig mask` adds. False when the connection has ended. */
static bool take_masks(struct live_masks *live, struct brig_job *job)
{
    struct brig_error err = {0};
    autofree struct home_message *message = NULL;
    autoclose int done = -1; /* closed when everything is hidden */
    int taken = home_receive_masks(live->lease, &message, &done);
    if (taken <= 0)
        return taken == 0;
    if (add_rules(&live->masks, message, &err) < 0)
        job_note(job, err.message);
    identity_enter(live->identity);
    start(live);
    look(live);
    identity_leave(live->identity);
    hide_noted(live, job);
    return true;
}

/* ---- in the loop ---- */

static void shorten(int *timeout_ms, int wait_ms)
{
    if (*timeout_ms < 0 || wait_ms < *timeout_ms)
        *timeout_ms = wait_ms;
}

void live_masks_poll(const struct live_masks *live, struct pollfd fds[LIVE_MASKS_POLL],
                     int *timeout_ms)
{
    fds[0] = (struct pollfd){.fd = live->identity ? live->lease : -1, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = -1, .events = POLLIN};
    if (!live->identity)
        return;
    uint64_t now = clock_now_ms();
    if (live->due_ms != 0) {
        shorten(timeout_ms, now >= live->due_ms ? 0 : (int)(live->due_ms - now));
        return;
    }
    int wait_ms = mask_watch_wait_ms(&live->watch);
    if (wait_ms > 0)
        shorten(timeout_ms, wait_ms);
    else
        fds[1].fd = live->watch.fd;
    if (live->watch.blind)
        shorten(timeout_ms, BLIND_MS);
}

void live_masks_process(struct live_masks *live, struct brig_job *job,
                        const struct pollfd fds[LIVE_MASKS_POLL])
{
    if (!live->identity)
        return;
    if (fds[0].revents && !take_masks(live, job))
        live->lease = -1;
    uint64_t now = clock_now_ms();
    bool due = live->due_ms != 0 && now >= live->due_ms;
    bool stale = live->watch.blind && now - live->watch.looked_ms >= BLIND_MS;
    if (!due && !stale && !(fds[1].revents & POLLIN))
        return;
    identity_enter(live->identity);
    start(live);
    if (due || stale || mask_watch_has_news(&live->watch))
        look(live);
    identity_leave(live->identity);
    hide_noted(live, job);
}
