/* SPDX-License-Identifier: MIT */
/* The walk of changes and what they are based on, with upper directories made by hand. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "await.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/path.h"
#include "base/str.h"
#include "changes/layer/base.h"
#include "changes/layer/change.h"
#include "changes/layer/layer.h"
#include "changes_support.h"
#include "jail/view/mask.h"
#include "tap.h"

/* ---- making trees ---- */

static void remove_file(const char *place, const char *path)
{
    if (unlink(join(place, path)) < 0)
        tap_bail("cannot remove '%s'", path);
}

/* ---- listing ---- */

static int list_change(void *context, const struct change *change, struct brig_error *err)
{
    static const char letters[] = "DTMPA";
    (void)err;
    str_appendf(context, "%c %s%s%s%s%s%s", letters[change->kind], change->path,
                change->meta & CHANGE_MODE ? " mode" : "", change->meta & CHANGE_ACL ? " acl" : "",
                change->meta & CHANGE_XATTRS ? " xattrs" : "", change->conflict ? " conflict" : "",
                change->unreadable ? " unreadable" : "");
    if (change->files > 0)
        str_appendf(context, " %ju", (uintmax_t)change->files);
    str_append(context, "\n");
    return 0;
}

static void expect_in(const struct layer *layer, const struct change_options *options,
                      const char *wanted, const char *sentence)
{
    autostr struct str out = {0};
    struct brig_error err = {0};
    int status = changes_walk(layer, options, list_change, &out, &err);
    tap_is_int(status, 0, "%s: no error %s", sentence, err.message);
    tap_is_str(out.data ? out.data : "", wanted, "%s", sentence);
}

static void expect(const char *wanted, const char *sentence)
{
    struct layer layer = open_layer();
    expect_in(&layer, &(struct change_options){0}, wanted, sentence);
    layer_done(&layer);
}

/* ---- tests ---- */

static void test_kinds(void)
{
    begin_trees();
    expect("", "an empty upper directory has no changes");
    static const char *const files[] = {"same", "changed", "gone", "mode", "becomes-dir", "attr"};
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++)
        put(root, files[i], files[i]);
    make_dir(root, "dir");
    put(root, "dir/a", "a");
    make_dir(root, "dir/deep");
    put(root, "dir/deep/b", "b");
    make_dir(root, "replaced");
    put(root, "replaced/old", "old");
    put(root, "replaced/kept", "kept");
    make_dir(root, "becomes-file");
    put(root, "becomes-file/x", "x");
    put(upper, "same", "same");
    put(upper, "changed", "CHANGED");
    make_whiteout(upper, "gone");
    make_whiteout(upper, "never-was");
    make_whiteout(upper, "dir");
    put(upper, "mode", "mode");
    put(upper, "attr", "attr");
    make_dir(upper, "becomes-dir");
    put(upper, "becomes-file", "f");
    make_opaque(upper, "replaced");
    put(upper, "replaced/kept", "kept");
    put(upper, "replaced/new", "new");
    make_dir(upper, "made");
    put(upper, "made/file", "file");
    char path[256];
    (void)snprintf(path, sizeof path, "%s/mode", upper);
    (void)chmod(path, 0755);
    (void)snprintf(path, sizeof path, "%s/attr", upper);
    (void)setxattr(path, "user.mine", "1", 1, 0);
    (void)snprintf(path, sizeof path, "%s/link", upper);
    if (symlink("nowhere", path) < 0)
        tap_bail("symlink");
    expect("P attr xattrs\nT becomes-dir\nT becomes-file 1\nM changed\nD dir 2\nD gone\nA link\nA "
           "made\nA made/file\nP mode mode\nA replaced/new\nD replaced/old\n",
           "every kind of change is found, in order");
    struct layer layer = open_layer();
    expect_in(&layer, &(struct change_options){.expand = true},
              "P attr xattrs\nT becomes-dir\nT becomes-file 1\nM changed\nD dir\nD dir/a\nD "
              "dir/deep\nD dir/deep/b\nD gone\nA link\nA made\nA made/file\nP mode mode\nA "
              "replaced/new\nD replaced/old\n",
              "a deleted directory is expanded on request");
    static const char *const some[] = {"dir/deep", "made", "zzz"};
    expect_in(&layer, &(struct change_options){.paths = some, .path_count = 3},
              "D dir/deep 1\nA made\nA made/file\n", "only some paths");
    layer_done(&layer);
}

static void test_masks(void)
{
    begin_trees();
    make_dir(root, ".ssh");
    put(root, ".ssh/id", "secret");
    make_dir(root, ".config");
    make_dir(root, ".config/gh");
    put(root, ".config/gh/token", "secret");
    put(root, ".config/other", "other");
    make_dir(root, "cfg");
    put(root, "cfg/token", "secret");
    const char *hidden[] = {".ssh", ".config/gh", "cfg/token"};
    const struct mask_rules rules = {.hidden = hidden, .hidden_count = ARRAY_LENGTH(hidden)};
    struct layer layer = open_layer();
    layer.masks = (struct layer_masks){.home = root, .rules = &rules};
    make_opaque(upper, ".ssh");
    put(upper, ".ssh/authorized_keys", "planted");
    make_whiteout(upper, ".config");
    put(upper, "cfg", "a file");
    expect_in(&layer, &(struct change_options){0}, "D .config/other\nT cfg unreadable\n",
              "what is hidden is never a change, and keeps its directories");
    layer.masks = (struct layer_masks){0};
    expect_in(&layer, &(struct change_options){0},
              "D .config 2\nA .ssh/authorized_keys\nD .ssh/id\nT cfg 1\n",
              "without masks the same changes are all there");
    layer_done(&layer);
}

static void test_replaced(void)
{
    begin_trees();
    make_dir(root, "d");
    make_dir(root, "d/deep");
    make_dir(root, "d/deep/er");
    put(root, "d/deep/old", "old");
    put(root, "d/deep/er/old", "old");
    make_opaque(upper, "d");
    make_dir(upper, "d/deep");
    make_dir(upper, "d/deep/er");
    put(upper, "d/deep/er/new", "new");
    expect("A d/deep/er/new\nD d/deep/er/old\nD d/deep/old\n",
           "directories in a replaced one hide the user's as well");
}

/* A jail on overlayfs can set what only fuse-overlayfs takes for a mark. */
static void test_forged_marks(void)
{
    char path[PATH_LENGTH_MAX + 1];
    begin_trees();
    make_dir(root, "d");
    put(root, "d/old", "old");
    make_dir(upper, "d");
    put(upper, "d/new", "new");
    (void)snprintf(path, sizeof path, "%s/d", upper);
    tap_is_int(setxattr(path, "user.fuseoverlayfs.opaque", "y", 1, 0), 0,
               "a jail sets an attribute");
    expect("A d/new\n", "which deletes nothing");
    put(upper, "d/.wh..wh..opq", "");
    expect("A d/.wh..wh..opq\nA d/new\n", "nor does a name");
}

/* A jail on overlayfs sets an ACL, which is an extended attribute for the kernel. */
static void test_acl(void)
{
    /* The version, then tag, permissions and id of: owner, user 0, group, mask, others. */
    static const unsigned char acl[] = {
        2, 0, 0,   0,   1,   0,   6,  0, 255, 255, 255, 255, 2,   0,   4,
        0, 0, 0,   0,   0,   4,   0,  4, 0,   255, 255, 255, 255, 16,  0,
        4, 0, 255, 255, 255, 255, 32, 0, 4,   0,   255, 255, 255, 255,
    };
    char path[PATH_LENGTH_MAX + 1];
    begin_trees();
    put(root, "a", "a");
    put(upper, "a", "a");
    (void)snprintf(path, sizeof path, "%s/a", upper);
    if (setxattr(path, "system.posix_acl_access", acl, sizeof acl, 0) < 0) {
        tap_skip("the filesystem has no ACLs", "an ACL is not just an attribute");
        return;
    }
    expect("P a acl\n", "an ACL is not just an attribute");
    (void)setxattr(path, "user.mine", "1", 1, 0);
    expect("P a acl xattrs\n", "and both are told");
}

static void test_base(void)
{
    begin_trees();
    put(root, "a", "a");
    put(root, "b", "b");
    put(root, "c", "c");
    put(root, "d", "d");
    struct layer layer = open_layer();
    struct brig_error err = {0};
    int run = base_begin(&layer, &err);
    tap_ok(run >= 0, "a run begins %s", err.message);
    tap_ok(base_has_run(layer.record, "1"), "and is seen");
    int other = base_begin(&layer, &err);
    tap_ok(other >= 0, "a second one begins beside it");
    put(upper, "a", "A");
    put(upper, "b", "B");
    put(upper, "c", "C");
    put(upper, "new", "new");
    make_whiteout(upper, "d");
    put(root, "b", "edited"); /* by the user */
    remove_file(root, "c");
    put(root, "new", "also new");
    put(root, "d", "edited");
    const char *wanted = "M a\nM b conflict\nA c conflict\nD d conflict\nM new conflict\n";
    expect_in(&layer, &(struct change_options){0}, wanted, "conflicts during a run");
    tap_is_int(base_end(&layer, run, SIZE_MAX, &err), 0, "the first run ends");
    tap_ok(base_has_run(layer.record, "1"), "the second one goes on");
    tap_is_int(base_end(&layer, other, SIZE_MAX, &err), 0, "and ends");
    tap_ok(!base_has_run(layer.record, "1"), "no run is left");
    expect_in(&layer, &(struct change_options){0}, wanted, "conflicts after it");
    run = base_begin(&layer, &err);
    put(upper, "late", "late");
    put(root, "late", "edited");
    (void)close(run); /* it is killed */
    expect_in(&layer, &(struct change_options){0},
              "M a\nM b conflict\nA c conflict\nD d conflict\nM late conflict\nM new conflict\n",
              "conflicts of two runs");
    run = base_begin(&layer, &err);
    tap_ok(run >= 0, "the next run completes the base of the killed one");
    expect_in(&layer, &(struct change_options){0},
              "M a\nM b conflict\nA c conflict\nD d conflict\nM late conflict\nM new conflict\n",
              "and nothing is forgotten");
    (void)base_end(&layer, run, SIZE_MAX, NULL);
    layer_done(&layer);
}

/* A run deletes one directory and replaces another; the user changes files in both meanwhile or later. */
static void test_covered(void)
{
    begin_trees();
    make_dir(root, "gone");
    put(root, "gone/a", "a");
    make_dir(root, "gone/deep");
    put(root, "gone/deep/b", "b");
    make_dir(root, "replaced");
    put(root, "replaced/a", "a");
    put(root, "replaced/b", "b");
    make_dir(root, "untouched");
    put(root, "untouched/a", "a");
    struct layer layer = open_layer();
    struct brig_error err = {0};
    int run = base_begin(&layer, &err);
    make_whiteout(upper, "gone");
    make_whiteout(upper, "untouched");
    make_opaque(upper, "replaced");
    put(upper, "replaced/new", "new");
    tap_is_int(base_end(&layer, run, SIZE_MAX, &err), 0, "a run that deletes directories ends");
    const struct change_options expand = {.expand = true};
    expect_in(&layer, &(struct change_options){0},
              "D gone 2\nD replaced/a\nD replaced/b\nA replaced/new\nD untouched 1\n",
              "nothing has changed outside");
    put(root, "gone/deep/b", "edited");
    put(root, "gone/later", "created");
    put(root, "replaced/b", "edited");
    put(root, "replaced/later", "created");
    const char *wanted = "D gone conflict 3\nD replaced/a\nD replaced/b conflict\nD replaced/later "
                         "conflict\nA replaced/new\nD untouched 1\n";
    expect_in(&layer, &(struct change_options){0}, wanted,
              "files that were edited or created in a deleted directory are conflicts");
    expect_in(&layer, &expand,
              "D gone\nD gone/a\nD gone/deep\nD gone/deep/b conflict\nD gone/later conflict\nD "
              "replaced/a\nD replaced/b conflict\nD replaced/later conflict\nA replaced/new\nD "
              "untouched\nD untouched/a\n",
              "one by one");
    run = base_begin(&layer, &err);
    expect_in(&layer, &(struct change_options){0}, wanted, "the same during the next run");
    tap_is_int(base_end(&layer, run, SIZE_MAX, &err), 0, "which ends");
    expect_in(&layer, &(struct change_options){0}, wanted, "and after it");
    layer_done(&layer);
}

/* The clock of file times advances in steps: waits until it is past now. */
static void await_clock_step(void)
{
    int64_t now = clock_wall_ns();
    tap_ok(await(clock_files_ns() > now), "the clock of files goes on");
}

/* The same in a home, of which only the time of the run is known. */
static void test_covered_home(void)
{
    begin_trees();
    char home_upper[192];
    (void)snprintf(home_upper, sizeof home_upper, "%s/x.changes", storage);
    if (mkdir(home_upper, 0700) < 0)
        tap_bail("cannot make '%s'", home_upper);
    make_dir(root, "gone");
    put(root, "gone/a", "a");
    put(root, "gone/b", "b");
    struct layer layer;
    struct brig_error err = {0};
    if (layer_open(storage, "x", LAYER_HOME, root, &layer, &err) < 0)
        tap_bail("%s", err.message);
    await_clock_step();
    int run = base_begin(&layer, &err);
    make_whiteout(home_upper, "gone");
    tap_is_int(base_end(&layer, run, SIZE_MAX, &err), 0, "a run in a home ends");
    expect_in(&layer, &(struct change_options){0}, "D gone 2\n", "a home: nothing has changed");
    await_clock_step();
    put(root, "gone/b", "edited");
    expect_in(&layer, &(struct change_options){0}, "D gone conflict 2\n",
              "a home: a file in a deleted directory was edited");
    layer_done(&layer);
}

/* What the user does in a directory that the jail has deleted or replaced. */
static void test_base_directories(void)
{
    static const char *const dirs[] = {"gone", "gone/sub", "file", "opaque", "quiet", "still"};
    begin_trees();
    for (size_t i = 0; i < ARRAY_LENGTH(dirs); i++) {
        char path[64];
        make_dir(root, dirs[i]);
        (void)snprintf(path, sizeof path, "%s/f", dirs[i]);
        put(root, path, "f");
    }
    struct layer layer = open_layer();
    int run = base_begin(&layer, NULL);
    make_whiteout(upper, "gone");
    make_whiteout(upper, "quiet");
    put(upper, "file", "f");
    put(upper, "new", "new");
    put(upper, "still", "f");
    make_opaque(upper, "opaque");
    put(upper, "opaque/own", "own");
    const char *unchanged = "T file 1\nD gone 2\nD opaque/f\nA opaque/own\nD quiet 1\nT still 1\n";
    remove_file(upper, "new");
    expect_in(&layer, &(struct change_options){0}, unchanged, "directories are deleted");
    put(upper, "new", "new");
    put(root, "gone/sub/f", "edited"); /* by the user */
    put(root, "file/mine", "mine");
    put(root, "opaque/mine", "mine");
    make_dir(root, "new");
    const char *wanted = "T file conflict 2\nD gone conflict 2\nT new conflict\nD opaque/f\n"
                         "D opaque/mine conflict\nA opaque/own\nD quiet 1\nT still 1\n";
    expect_in(&layer, &(struct change_options){0}, wanted, "the user has changed some since");
    (void)base_end(&layer, run, SIZE_MAX, NULL);
    expect_in(&layer, &(struct change_options){0}, wanted, "the same after the run");
    expect_in(&layer, &(struct change_options){.expand = true},
              "T file conflict 2\nD gone\nD gone/f\nD gone/sub\nD gone/sub/f conflict\n"
              "T new conflict\nD opaque/f\nD opaque/mine conflict\nA opaque/own\n"
              "D quiet\nD quiet/f\nT still 1\n",
              "each file in a deleted directory");
    run = base_begin(&layer, NULL);
    expect_in(&layer, &(struct change_options){0}, wanted, "during the next one");
    (void)base_end(&layer, run, SIZE_MAX, NULL);
    expect_in(&layer, &(struct change_options){0}, wanted, "and after it");
    struct base_change forgotten = {.path = (char *)(uintptr_t) "gone", .how = BASE_FORGET};
    tap_is_int(base_update(&layer, &forgotten, 1, NULL, NULL), 0, "a record is removed");
    remove_file(upper, "gone");
    run = base_begin(&layer, NULL);
    make_whiteout(upper, "gone");
    (void)base_end(&layer, run, SIZE_MAX, NULL);
    expect_in(&layer,
              &(struct change_options){.paths = (const char *const[]){"gone"}, .path_count = 1},
              "D gone 2\n", "with those below it: a new run is based on the files as they are");
    layer_done(&layer);
}

struct taken {
    struct base_change changes[8];
    size_t count;
};

static int take_applied(void *context, const struct change *change, struct brig_error *err)
{
    struct taken *taken = context;
    (void)err;
    taken->changes[taken->count++] =
        (struct base_change){.path = strdup(change->path),
                             .how = BASE_SET,
                             .record = {.lower = change->base.lower, .applied = change->upper}};
    return 0;
}

static void test_applied(void)
{
    begin_trees();
    put(root, "a", "a");
    put(root, "b", "b");
    struct layer layer = open_layer();
    int run = base_begin(&layer, NULL);
    put(upper, "a", "A");
    put(upper, "b", "B");
    struct taken taken = {0};
    (void)changes_walk(&layer, &(struct change_options){0}, take_applied, &taken, NULL);
    tap_is_int(base_update(&layer, taken.changes, taken.count, NULL, NULL), 0,
               "records are replaced");
    expect_in(&layer, &(struct change_options){0}, "", "an applied file is not a change");
    put(upper, "b", "B again");
    expect_in(&layer, &(struct change_options){0}, "M b\n", "until it changes again");
    for (size_t i = 0; i < taken.count; i++) {
        taken.changes[i].how = BASE_FORGET;
    }
    tap_is_int(base_update(&layer, taken.changes, taken.count, NULL, NULL), 0,
               "records are removed");
    expect_in(&layer, &(struct change_options){0}, "M a\nM b\n", "then both are changes");
    for (size_t i = 0; i < taken.count; i++)
        free(taken.changes[i].path);
    (void)base_end(&layer, run, SIZE_MAX, NULL);
    layer_done(&layer);
}

static void test_stack(void)
{
    begin_trees();
    char second[160];
    (void)snprintf(second, sizeof second, "%s/below", top);
    make_dir(top, "below");
    make_dir(root, "dir");
    put(root, "dir/lower", "x");
    put(root, "dir/both", "x");
    make_dir(second, "dir");
    put(second, "dir/both", "yy");
    put(second, "dir/second", "2");
    put(second, "deleted-again", "2");
    make_dir(upper, "dir");
    put(upper, "dir/first", "1");
    put(upper, "dir/second", "3");
    make_whiteout(upper, "deleted-again");
    struct layer layer = open_layer();
    layer.uppers[layer.upper_count++] = open(second, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    expect_in(&layer, &(struct change_options){0}, "M dir/both\nA dir/first\nA dir/second\n",
              "a layer with two upper directories");
    layer_done(&layer);
}

static void test_hostile(void)
{
    begin_trees();
    int at = open(upper, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < 300 && at >= 0; i++) {
        int next =
            mkdirat(at, "d", 0755) == 0 ? openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        (void)close(at);
        at = next;
    }
    (void)close(at);
    char path[512];
    (void)snprintf(path, sizeof path, "%s/fifo", upper);
    (void)mkfifo(path, 0600);
    make_dir(upper, "locked");
    put(upper, "locked/file", "x");
    (void)snprintf(path, sizeof path, "%s/locked/file", upper);
    (void)chmod(path, 0);
    (void)snprintf(path, sizeof path, "%s/locked", upper);
    (void)chmod(path, 0);
    (void)snprintf(path, sizeof path, "%s/out", upper);
    if (symlink("/etc", path) < 0)
        tap_bail("symlink");
    struct layer layer = open_layer();
    autostr struct str out = {0};
    tap_is_int(changes_walk(&layer, &(struct change_options){0}, list_change, &out, NULL), 0,
               "a hostile tree is walked to its end");
    tap_ok(strstr(out.data, " unreadable\n"), "what is too deep is reported");
    tap_ok(strstr(out.data, "A fifo\n") && strstr(out.data, "A locked/file\n") &&
               strstr(out.data, "A out\n") && !strstr(out.data, "out/"),
           "files without permissions are found, links are not followed");
    struct stat info;
    (void)snprintf(path, sizeof path, "%s/locked", upper);
    tap_ok(stat(path, &info) == 0 && (info.st_mode & 07777) == 0, "modes are restored");
    (void)chmod(path, 0700);
    layer_done(&layer);
}

static void test_compare(void)
{
    static const char *const order[] = {"a", "a/b", "a/b/c", "a.b", "ab", "b"};
    bool right = true;
    for (size_t i = 0; i + 1 < ARRAY_LENGTH(order); i++)
        right = right && path_compare(order[i], order[i + 1]) < 0 &&
                path_compare(order[i + 1], order[i]) > 0;
    tap_ok(right && path_compare("a/b", "a/b") == 0, "a directory is followed by what is in it");
}

int main(void)
{
    name_trees("changes");
    test_compare();
    test_kinds();
    test_masks();
    test_replaced();
    test_forged_marks();
    test_acl();
    test_base();
    test_base_directories();
    test_covered();
    test_covered_home();
    test_applied();
    test_stack();
    test_hostile();
    remove_trees();
    return tap_done();
}
