/* SPDX-License-Identifier: MIT */
/* The end of a run that wrote to layers: what it has written, in one line. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/path.h"
#include "base/process.h"
#include "base/str.h"
#include "changes/diff/merge.h"
#include "changes/inventory.h"
#include "changes/layer/base.h"
#include "changes/layer/change.h"
#include "changes/layer/upper.h"
#include "changes/operation/operation.h"
#include "cli/command.h"
#include "cli/identity.h"
#include "cli/jails.h"
#include "cli/report.h"
#include "cli/run/masks.h"
#include "cli/run/review.h"
#include "cli/settings/profile.h"
#include "cli/settings/settings.h"

/* Of a large home the base is completed later: that walks through all its changes. */
#define HOME_ENTRIES_MAX 2000
/* A home may have any number of changes of earlier runs. The search for those of this run takes at
 * most this part of the time that the run took, or as long as this number of entries. */
#define SEARCH_PART 20
#define SEARCH_ENTRIES 1000

/* ---- whether the run has written anything ---- */

struct search {
    int64_t since_ns;
    uint64_t until_ms; /* 0: no limit */
    size_t entries;
    bool found;
};

static int look_at(void *context, const struct upper_entry *entry, struct brig_error *err)
{
    struct search *search = context;
    (void)err;
    search->found = clock_ns(entry->upper.st_ctim) >= search->since_ns;
    bool late = ++search->entries % SEARCH_ENTRIES == 0 && search->until_ms != 0 &&
                clock_now_ms() >= search->until_ms;
    return search->found || late ? UPPER_STOP : 0;
}

/* The walk reads no file, and does not look at the user's. */
static bool has_written(const struct review *review, const struct review_root *root,
                        const struct layer *layer)
{
    uint64_t took_ms = (uint64_t)(clock_files_ns() - review->began_ns) / 1000000;
    struct search search = {
        .since_ns = review->began_ns,
        .until_ms = layer_is_home(root->name) ? clock_now_ms() + took_ms / SEARCH_PART : 0};
    (void)upper_walk(layer, false, look_at, &search, NULL);
    return search.found;
}

/* ---- the bases ---- */

/* Returns whether the run has written to the layer. */
static bool end_layer(const struct review *review, const struct settings *settings,
                      struct review_root *root)
{
    struct layer layer;
    struct brig_error err = {0};
    autoclose int record = record_open(settings->storage, settings->jail, &err);
    autoclose int lock = record < 0 ? -1 : record_lock(record, &err);
    if (lock < 0 ||
        layer_open(settings->storage, settings->jail, root->name, root->root, &layer, &err) < 0)
        return false; /* the next run does it */
    bool home = layer_is_home(root->name), written = has_written(review, root, &layer);
    int status =
        written || !home || root->earlier
            ? base_end(&layer, take_fd(&root->run), home ? HOME_ENTRIES_MAX : SIZE_MAX, &err)
            : base_cancel(&layer, take_fd(&root->run));
    if (status == 0 && !home)
        status = merge_save_bases(&layer, &err);
    if (status < 0)
        message_warning("%s", err.message);
    layer_done(&layer);
    return written;
}

/* Drops copies of the run that change nothing, as long as they are equal to the user's files. The next operation on the
 * layer does it, too, if there is a reason why it is not possible now. */
static void tidy_layer(const struct settings *settings, const struct review_root *root)
{
    struct layer layer;
    autoclose int record = record_open(settings->storage, settings->jail, NULL);
    autoclose int lock = record < 0 ? -1 : record_lock(record, NULL);
    if (lock < 0 ||
        layer_open(settings->storage, settings->jail, root->name, root->root, &layer, NULL) < 0)
        return;
    if (!base_has_start(&layer))
        (void)changes_tidy(&layer, NULL);
    layer_done(&layer);
}

/* ---- layers ---- */

static void keep_wanted(struct layers *layers, const struct review *review, const bool *wanted)
{
    size_t kept = 0;
    for (size_t i = 0; i < layers->count; i++) {
        bool keep = false;
        for (size_t j = 0; j < review->count; j++)
            keep = keep || ((wanted ? wanted[j] : !layer_is_home(review->roots[j].name)) &&
                            strcmp(review->roots[j].name, layers->items[i].name) == 0);
        if (keep)
            layers->items[kept++] = layers->items[i];
        else
            layer_done(&layers->items[i]);
    }
    layers->count = kept;
}

int review_layers_open(const struct review *review, const bool *wanted,
                       const struct settings *settings, const struct identity *identity,
                       struct review_layers *layers, struct brig_error *err)
{
    layers->layers.count = 0;
    int status = masks_find_hidden(settings, identity->host_home, &layers->hidden, err);
    if (status == 0)
        status = layers_open(settings->storage, settings->jail, layers->hidden.layer.home,
                             &layers->hidden.layer, &layers->layers, err);
    if (status == 0)
        keep_wanted(&layers->layers, review, wanted);
    else
        review_layers_done(layers);
    return status;
}

void review_layers_done(struct review_layers *layers)
{
    layers_done(&layers->layers);
    masks_hidden_done(&layers->hidden);
}

/* ---- the line ---- */

static int append_line(const struct review *review, const struct settings *settings,
                       const struct identity *identity, const bool *written, struct str *notes,
                       struct brig_error *err)
{
    autofree struct review_layers *layers = calloc(1, sizeof *layers);
    autostr struct str state = {0};
    size_t before = notes->length;
    if (!layers)
        return brig_fail_nomem(err);
    int status = profile_list_state(&state, err);
    if (status == 0)
        status = review_layers_open(review, written, settings, identity, layers, err);
    if (status < 0)
        return status;
    status = inventory_line(&layers->layers, review->began_ns, &state, notes, err);
    if (notes->length > before)
        str_concat(notes, jails_option(settings->jail).text, "\n");
    review_layers_done(layers);
    return status;
}

bool review_end(struct review *review, const struct settings *settings,
                const struct identity *identity)
{
    bool any = false;
    if (review->ended)
        return false;
    review->ended = true;
    review_auto_stop(review);
    identity_enter(identity);
    for (size_t i = 0; i < review->count; i++) {
        struct review_root *root = &review->roots[i];
        root->written = root->run >= 0 && end_layer(review, settings, root);
        any = any || root->written;
        if (layer_is_home(root->name))
            continue;
        review->wrote = review->wrote || root->written;
        home_mounts_done(&root->mounts); /* the layer can be rewritten now */
        if (root->written)
            tidy_layer(settings, root);
    }
    identity_leave(identity);
    return any;
}

void review_tell(const struct review *review, const struct settings *settings,
                 const struct identity *identity, struct str *notes)
{
    bool written[REVIEW_ROOTS_MAX + 1] = {false}, any = false;
    bool automatic = settings->review == SETTINGS_REVIEW_AUTO;
    struct brig_error err = {0};
    if (automatic)
        review_auto_finish(review, settings, identity, notes);
    for (size_t i = 0; i < review->count; i++) {
        const struct review_root *root = &review->roots[i];
        written[i] = root->written && (!automatic || layer_is_home(root->name));
        any = any || written[i];
    }
    identity_enter(identity);
    if (any && append_line(review, settings, identity, written, notes, &err) < 0)
        message_warning("%s", err.message);
    identity_leave(identity);
}

/* ---- the offer ---- */

/* Whether a reviewed directory of the run has changes. */
static bool has_left(const struct review *review, const struct settings *settings,
                     const struct identity *identity)
{
    static const struct change_options quick = {.quick = true};
    autofree struct review_layers *layers = calloc(1, sizeof *layers);
    bool left = false;
    if (!layers || review_layers_open(review, NULL, settings, identity, layers, NULL) < 0)
        return false;
    for (size_t i = 0; i < layers->layers.count && !left; i++)
        left =
            changes_walk(&layers->layers.items[i], &quick, change_stop, NULL, NULL) == CHANGE_STOP;
    review_layers_done(layers);
    return left;
}

bool review_has_reviewed(const struct review *review)
{
    for (size_t i = 0; i < review->count; i++)
        if (!layer_is_home(review->roots[i].name))
            return true;
    return false;
}

/* Waits until a line was typed. False: Ctrl-C, or another signal that ends programs, which the run has blocked. Ctrl-Z
 * stops brig meanwhile. */
static bool await_line(void)
{
    static const int ending[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
    sigset_t ends, stops;
    (void)sigemptyset(&ends);
    (void)sigemptyset(&stops);
    (void)sigaddset(&stops, SIGTSTP);
    for (size_t i = 0; i < ARRAY_LENGTH(ending); i++)
        (void)sigaddset(&ends, ending[i]);
    autoclose int signals = signalfd(-1, &ends, SFD_CLOEXEC);
    struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                           {.fd = signals, .events = POLLIN}};
    (void)sigprocmask(SIG_UNBLOCK, &stops, NULL);
    int ready = 0;
    do
        ready = poll(fds, ARRAY_LENGTH(fds), -1);
    while (ready < 0 && errno == EINTR);
    return signals >= 0 && ready > 0 && fds[1].revents == 0;
}

/* What was typed for the command must not be taken for an answer, and the end of a long answer not for
 * a command by the shell. */
static bool ask(const char *question)
{
    char answer[16], more[16];
    (void)tcflush(STDIN_FILENO, TCIFLUSH);
    if (write_all(STDERR_FILENO, question, strlen(question)) < 0)
        return false;
    ssize_t length = await_line() ? read(STDIN_FILENO, answer, sizeof answer) : -1;
    bool ended = length <= 0 || answer[length - 1] == '\n';
    while (!ended) {
        ssize_t read_more = read(STDIN_FILENO, more, sizeof more);
        ended = read_more <= 0 || more[read_more - 1] == '\n';
    }
    if (length <= 0)
        (void)write_all(STDERR_FILENO, "\n", 1);
    return length > 0 && (answer[0] == 'y' || answer[0] == 'Y');
}

/* A job in the background would be stopped by the question. */
static bool can_ask(void)
{
    return isatty(STDIN_FILENO) && isatty(STDERR_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

void review_offer(const struct review *review, const struct settings *settings,
                  const struct identity *identity)
{
    if (!review_has_reviewed(review) || !can_ask() || !command_find("review"))
        return;
    identity_enter(identity);
    bool left = has_left(review, settings, identity);
    identity_leave(identity);
    if (!left || !ask(review->wrote ? "brig: look at the changes now? [y/N] "
                                    : "brig: changes of earlier runs are not applied yet; look at "
                                      "them now? [y/N] "))
        return;
    const char *const words[] = {"brig", "review", "-j", settings->jail, NULL};
    pid_t pid = fork();
    if (pid == 0) {
        sigset_t none;
        (void)sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        (void)execv("/proc/self/exe", (char *const *)(uintptr_t)words);
        _exit(APP_FAILED);
    }
    (void)process_wait(pid);
}
