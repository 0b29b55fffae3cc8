/* SPDX-License-Identifier: MIT */
/* What brig 0.1 and 0.2 have recorded about a layer: a run that goes on with it, and an apply, are killed at their system
 * calls. Those of checkpoints are in test_checkpoint_kill. */
#include <sys/prctl.h>

#include "base/str.h"
#include "changes/layer/base.h"
#include "changes/layer/change.h"
#include "changes/layer/layer.h"
#include "changes/operation/apply.h"
#include "changes/operation/operation.h"
#include "changes_support.h"
#include "downgrade.h"
#include "kill_support.h"

static struct layers layers;

static void reopen(void)
{
    struct brig_error err = {0};
    layers_done(&layers);
    if (layers_open(storage, "x", NULL, NULL, &layers, &err) < 0 || layers.count != 1)
        tap_bail("no layer: %s", err.message);
}

/* ---- what is recorded ---- */

static int list_change(void *context, const struct change *change, struct brig_error *err)
{
    (void)err;
    str_concat(context, change->path, change->conflict ? " conflict, " : ", ");
    return 0;
}

static const char *changes(void)
{
    static struct str text;
    const struct change_options options = {0};
    str_done(&text);
    reopen();
    (void)changes_walk(&layers.items[0], &options, list_change, &text, NULL);
    return text.data ? text.data : "";
}

/* A run has ended, and another one was killed; the user has edited b and d meanwhile. */
static void prepare(void)
{
    struct brig_error err = {0};
    begin_trees();
    for (const char *name = "abcd"; *name; name++)
        put(root, (const char[]){*name, '\0'}, "old");
    make_dir(root, "gone");
    put(root, "gone/x", "old");
    make_dir(root, "gone/deep");
    put(root, "gone/deep/y", "old");
    struct layer layer = open_layer();
    int run = base_begin(&layer, &err);
    put(upper, "a", "jail");
    put(upper, "b", "jail");
    make_whiteout(upper, "gone");
    put(root, "b", "mine");
    if (run < 0 || base_end(&layer, run, SIZE_MAX, &err) < 0)
        tap_bail("%s", err.message);
    downgrade_base(layer.record, "1.base");
    run = base_begin(&layer, &err);
    put(upper, "c", "jail");
    put(upper, "d", "jail");
    put(root, "d", "mine");
    downgrade_base(layer.record, "1.start");
    close_fd(&run);
    layer_done(&layer);
}

#define CHANGES "a, b conflict, c, d conflict, gone, "

/* ---- runs ---- */

static void one_more_run(void)
{
    struct brig_error err = {0};
    struct layer layer = open_layer();
    int run = base_begin(&layer, &err);
    if (run < 0 || base_end(&layer, run, SIZE_MAX, &err) < 0)
        tap_bail("%s", err.message);
    layer_done(&layer);
}

static bool is_known(void)
{
    bool good = strcmp(changes(), CHANGES) == 0;
    one_more_run();
    if (!good || strcmp(changes(), CHANGES) != 0)
        tap_diag("%s", changes());
    return good && strcmp(changes(), CHANGES) == 0;
}

/* ---- apply ---- */

static int choose(void *context, const struct change *change, enum apply_choice *choice,
                  const char **reason, struct brig_error *err)
{
    (void)context;
    (void)reason;
    (void)err;
    *choice = change->conflict ? APPLY_SKIP : APPLY_TAKE;
    return 0;
}

static void apply(void)
{
    struct brig_error err = {0};
    struct operation *operation = NULL;
    const struct apply_options options = {.choose = choose};
    reopen();
    autoclose int lock = layers_lock(&layers, &err);
    int status = lock < 0 ? lock
                          : operation_begin(&layers, layers.items[0].record, OPERATION_APPLY,
                                            &operation, &err);
    if (status == 0)
        status = apply_plan(operation, &layers.items[0], &options, &err);
    if (status == 0)
        status = operation_run(operation, NULL, NULL, &err);
    operation_free(operation);
    if (status < 0)
        tap_bail("apply: %s", err.message);
}

/* Whether the files outside are those of before or after it. */
static bool is_root(bool applied)
{
    char text[8] = "";
    autoclose int fd = open(join(root, "a"), O_RDONLY | O_CLOEXEC);
    bool same = fd >= 0 && read(fd, text, sizeof text - 1) > 0 &&
                strcmp(text, applied ? "jail" : "old") == 0;
    return same && (access(join(root, "gone/deep/y"), F_OK) == 0) != applied;
}

static bool is_applied_or_not(void)
{
    static bool revert;
    struct brig_error err = {0};
    uint64_t id;
    revert = !revert;
    reopen();
    autoclose int lock = layers_lock(&layers, &err);
    if (lock < 0 || operation_recover(&layers, layers.items[0].record, NULL, revert, NULL, NULL,
                                      &id, &err) < 0) {
        tap_diag("recover: %s", err.message);
        return false;
    }
    close_fd(&lock);
    bool before = is_root(false) && strcmp(changes(), CHANGES) == 0;
    bool after = is_root(true) && strcmp(changes(), "b conflict, d conflict, ") == 0;
    if (!before && !after)
        tap_diag("%s", changes());
    apply();
    return (before || after) && is_root(true) && strcmp(changes(), "b conflict, d conflict, ") == 0;
}

static void kills(const char *sentence, void (*act)(void), bool (*check)(void))
{
    int bad = 0, killed = 0, rounds = tap_rounds(12, 100000);
    prepare();
    long calls = run_until(0, act), step = stride(calls, rounds);
    for (long n = 1 + getpid() % step; n <= calls; n += step) {
        prepare();
        killed += run_until(n, act) == 0;
        if (!check()) {
            tap_diag("killed at system call %ld of %ld", n, calls);
            bad++;
        }
    }
    tap_diag("%d kills, %ld system calls", killed, calls);
    tap_ok(killed > 0, "%s is killed", sentence);
    tap_is_int(bad, 0, "nothing that an earlier version has recorded is lost");
}

int main(void)
{
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    name_trees("upgrade");
    prepare();
    tap_is_str(changes(), CHANGES, "the lists of an earlier version are read");
    kills("the next run", one_more_run, is_known);
    kills("an apply", apply, is_applied_or_not);
    layers_done(&layers);
    remove_trees();
    return tap_done();
}
