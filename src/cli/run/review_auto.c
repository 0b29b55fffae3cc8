/* SPDX-License-Identifier: MIT */
/* --review=auto: applies changes without a risk or a conflict, in a process of its own. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/process.h"
#include "base/str.h"
#include "changes/layer/change.h"
#include "changes/layer/upper.h"
#include "changes/operation/apply.h"
#include "changes/operation/apply_git.h"
#include "changes/operation/operation.h"
#include "changes/show/risk.h"
#include "cli/identity.h"
#include "cli/jails.h"
#include "cli/report.h"
#include "cli/run/review.h"
#include "git/guard.h"
#include "jail/sys.h"

#define QUIET_NS INT64_C(1000000000)
#define ROUND_MS 300
#define PART_BYTES 4096
#define ROUND_PART 10 /* a walk takes at most this part of the time */

/* What became of the changes. */
struct outcome {
    uint64_t applied, held;
};

/* ---- applying ---- */

static int choose(void *context, const struct change *change, enum apply_choice *ret_choice,
                  const char **ret_reason, struct brig_error *err)
{
    struct outcome *outcome = context;
    const char *reason = change->conflict ? change->conflict : risk_find(change);
    (void)err;
    *ret_choice = reason ? APPLY_SKIP : APPLY_TAKE;
    *ret_reason = reason;
    outcome->held += reason != NULL;
    return 0;
}

/* The jail may have changed the file since it was judged. */
static const char *check(void *context, const struct change *change)
{
    struct outcome *outcome = context;
    const char *reason = risk_find(change);
    outcome->held += reason != NULL;
    return reason;
}

static void tell(void *context, const struct change *change, enum apply_choice choice,
                 const char *reason)
{
    struct outcome *outcome = context;
    (void)change;
    (void)reason;
    outcome->applied += choice == APPLY_TAKE;
}

/* A file was changed outside meanwhile. */
static void report(void *context, const char *root, const char *path, const char *reason)
{
    struct outcome *outcome = context;
    (void)root;
    (void)path;
    (void)reason;
    outcome->held++;
    outcome->applied -= outcome->applied > 0;
}

/* With the lock of the record. While a run is active, nothing of git is taken: `git` is NULL. */
static int apply(const struct review *review, const struct layers *layers, bool live,
                 const struct operation_git *git, struct outcome *outcome, struct brig_error *err)
{
    const struct apply_options options = {.live = live,
                                          .choose = choose,
                                          .check = live ? check : NULL,
                                          .tell = tell,
                                          .context = outcome};
    struct operation *operation = NULL;
    struct hand_over *hand_over = NULL;
    int status = operation_begin(layers, layers->items[0].record, OPERATION_APPLY, &operation, err);
    for (size_t i = 0; i < layers->count && status == 0; i++)
        status = apply_plan(operation, &layers->items[i], &options, err);
    if (status == 0 && git)
        status = apply_git_plan(operation, layers, NULL, &(struct apply_git){.git = *git},
                                &hand_over, err);
    if (status == 0) {
        operation_describe(operation, "--review=auto");
        operation_is_part(operation, review->run);
    }
    if (status == 0)
        status = operation_run(operation, report, outcome, err);
    if (status == 0 && hand_over)
        (void)hand_over_end(hand_over, operation_moves_git(operation), git->notes);
    hand_over_free(hand_over);
    operation_free(operation);
    return status;
}

/* Opens the reviewed layers of the run: the number of them, or a code. */
static int open_layers(const struct review *review, const struct settings *settings,
                       const struct identity *identity, struct review_layers *layers,
                       struct brig_error *err)
{
    int status = review_layers_open(review, NULL, settings, identity, layers, err);
    return status < 0 ? status : (int)layers->layers.count;
}

/* ---- during the run ---- */

struct quiet {
    int64_t newest_ns;  /* when something in the upper directories last changed */
    int64_t applied_ns; /* the same, at the last attempt */
};

static int look_at(void *context, const struct upper_entry *entry, struct brig_error *err)
{
    struct quiet *quiet = context;
    int64_t ns = clock_ns(entry->upper.st_ctim);
    (void)err;
    quiet->newest_ns = ns > quiet->newest_ns ? ns : quiet->newest_ns;
    return 0;
}

/* Whether there is something new, and nothing was written for a second. */
static bool is_quiet(const struct layers *layers, struct quiet *quiet)
{
    for (size_t i = 0; i < layers->count; i++)
        (void)upper_walk(&layers->items[i], false, look_at, quiet, NULL);
    return quiet->newest_ns > quiet->applied_ns && clock_wall_ns() - quiet->newest_ns >= QUIET_NS;
}

static void apply_if_quiet(const struct review *review, const struct settings *settings,
                           const struct identity *identity, struct review_layers *layers,
                           struct quiet *quiet)
{
    struct outcome outcome = {0};
    int count = open_layers(review, settings, identity, layers, NULL);
    if (count > 0 && is_quiet(&layers->layers, quiet)) {
        autoclose int lock = record_lock(layers->layers.items[0].record, NULL);
        if (lock >= 0)
            (void)apply(review, &layers->layers, true, NULL, &outcome, NULL);
        quiet->applied_ns = quiet->newest_ns;
    }
    if (count >= 0)
        review_layers_done(layers);
}

/* Keeps only the standard streams and one more descriptor: the others hold locks of the run. */
static int keep_only(int fd)
{
    int kept = dup3(fd, 3, O_CLOEXEC);
    if (fd == 3)
        kept = 3;
    (void)SYS(close_range, 4, ~0U, 0);
    return kept;
}

static __attribute__((noreturn)) void apply_until_end(const struct review *review,
                                                      const struct settings *settings,
                                                      const struct identity *identity, int end)
{
    struct review_layers *layers = calloc(1, sizeof *layers);
    struct quiet quiet = {.applied_ns = review->began_ns};
    int wait_ms = ROUND_MS;
    sigset_t all; /* Ctrl-C is for the command */
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, NULL);
    end = keep_only(end);
    if (!layers || end < 0 || identity_become(identity) < 0)
        _exit(1);
    for (;;) {
        struct pollfd ended = {.fd = end, .events = POLLIN};
        if (poll(&ended, 1, wait_ms) != 0)
            _exit(0);
        uint64_t before = clock_now_ms();
        apply_if_quiet(review, settings, identity, layers, &quiet);
        uint64_t took = (clock_now_ms() - before) * ROUND_PART;
        wait_ms = took > ROUND_MS ? (int)took : ROUND_MS;
    }
}

void review_auto_start(struct review *review, const struct settings *settings,
                       const struct identity *identity)
{
    int ends[2];
    if (!review_has_reviewed(review) || settings->review != SETTINGS_REVIEW_AUTO ||
        pipe2(ends, O_CLOEXEC) < 0)
        return;
    review->applier = fork();
    if (review->applier == 0) {
        (void)close(ends[1]);
        apply_until_end(review, settings, identity, ends[0]);
    }
    (void)close(ends[0]);
    review->applier_end = ends[1];
}

void review_auto_stop(struct review *review)
{
    own_close(&review->applier_end);
    review->applier_end = -1;
    (void)process_wait(review->applier);
    review->applier = 0;
}

/* ---- after the run ---- */

/* If another run has the layer mounted, its upper directory is left alone. */
static int apply_rest(const struct review *review, const struct settings *settings,
                      const struct identity *identity, struct str *notes, struct outcome *outcome,
                      struct brig_error *err)
{
    autofree struct review_layers *layers = calloc(1, sizeof *layers);
    struct git git = {0};
    if (!layers)
        return brig_fail_nomem(err);
    int status = open_layers(review, settings, identity, layers, err);
    if (status <= 0)
        return status;
    struct brig_error why = {0};
    autoclose int storage = jails_open_git(settings->storage, settings->jail);
    autoclose int lock = layers_lock(&layers->layers, &why);
    bool live = lock == BRIG_E_STATE;
    if (live)
        lock = record_lock(layers->layers.items[0].record, &why);
    status = lock < 0 ? brig_fail(err, lock, 0, "%s", why.message)
                      : git_find(&git, (const char *const *)environ, settings->policy,
                                 GIT_USER_SELF, err);
    const struct operation_git with = {.git = &git, .storage = storage, .notes = notes};
    if (status == 0)
        status = apply(review, &layers->layers, live, live ? NULL : &with, outcome, err);
    git_done(&git);
    review_layers_done(layers);
    return status;
}

/* Sends the outcome, and then messages about git. */
static __attribute__((noreturn)) void apply_in_child(const struct review *review,
                                                     const struct settings *settings,
                                                     const struct identity *identity, int out)
{
    struct outcome outcome = {0};
    struct brig_error err = {0};
    autostr struct str notes = {0};
    out = keep_only(out);
    if (identity_become(identity) < 0)
        _exit(1);
    if (apply_rest(review, settings, identity, &notes, &outcome, &err) < 0) {
        message_warning("--review=auto: %s", err.message);
        outcome.held++;
    }
    if (write_all(out, (const char *)&outcome, sizeof outcome) < 0)
        _exit(1);
    _exit(write_all(out, notes.data, notes.length) < 0);
}

void review_auto_finish(const struct review *review, const struct settings *settings,
                        const struct identity *identity, struct str *notes)
{
    struct outcome outcome = {0};
    int ends[2];
    if (review->count == 0 || pipe2(ends, O_CLOEXEC) < 0)
        return;
    autoclose int ours = ends[0];
    autoclose int theirs = ends[1];
    pid_t pid = fork();
    if (pid == 0)
        apply_in_child(review, settings, identity, theirs);
    close_fd(&theirs);
    ssize_t length = pid < 0 ? -1 : read(ours, &outcome, sizeof outcome);
    char part[PART_BYTES];
    for (ssize_t more; length > 0 && (more = read(ours, part, sizeof part)) > 0;)
        str_append_bytes(notes, part, (size_t)more);
    (void)process_wait(pid);
    if (length != (ssize_t)sizeof outcome)
        message_warning("--review=auto: not everything was applied; see brig status%s",
                        jails_option(settings->jail).text);
    else if (outcome.held > 0)
        str_appendf(notes,
                    "%ju change%s not applied, because of a risk or a conflict; see brig "
                    "status%s\n",
                    (uintmax_t)outcome.held, outcome.held == 1 ? " was" : "s were",
                    jails_option(settings->jail).text);
}
