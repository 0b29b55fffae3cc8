/* SPDX-License-Identifier: MIT */
/* The changes of a layer for people: order, renames, ignored files, and the line at the end of a
 * run. With upper directories made by hand. */
#include "changes/inventory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "changes/layer/layer.h"
#include "changes/show/renames.h"
#include "changes_support.h"
#include "git/git.h"
#include "git/item.h"
#include "tap.h"

static struct git git;

/* ---- making trees ---- */

static void put_link(const char *place, const char *path, const char *target)
{
    if (symlink(target, join(place, path)) < 0)
        tap_bail("cannot make '%s'", path);
}

static void put_whiteout(const char *path)
{
    put(upper, path, ""); /* makes its directory */
    if (unlink(join(upper, path)) < 0)
        tap_bail("cannot remove '%s'", path);
    make_whiteout(upper, path);
}

static void run_git(const char *const *words)
{
    autoclose int dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autostr struct str says = {0};
    if (git_run(&git, &(struct git_call){.words = words, .dir = dir, .says = &says}, NULL) != 0)
        tap_bail("git %s: %s", words[0], says.data ? says.data : "");
}
#define GIT(...) run_git((const char *const[]){__VA_ARGS__, NULL})

/* ---- listing ---- */

static int list_item(void *context, const struct inventory_item *item, struct brig_error *err)
{
    static const char letters[] = "DTMPA";
    struct str *out = context;
    (void)err;
    str_appendf(out, "%c %s", letters[item->kind], item->path);
    if (item->target_before || item->target_after)
        str_concat(out, " ", item->target_before ? item->target_before : "", ">",
                   item->target_after ? item->target_after : "");
    if (item->renamed_from)
        str_concat(out, " from ", item->renamed_from);
    if (item->risk)
        str_concat(out, " !", item->risk);
    str_append(out, item->ignored ? " ignored\n" : "\n");
    return 0;
}

static int list_group(void *context, const struct inventory_group *group, struct brig_error *err)
{
    (void)err;
    str_appendf(context, "I %s%s %ju %ju%s%s\n", group->path, group->whole ? "/**" : "",
                (uintmax_t)group->files, (uintmax_t)group->bytes, group->risk ? " !" : "",
                group->risk ? group->risk : "");
    return 0;
}

static struct inventory_counts expect(const char *wanted, const char *sentence)
{
    struct layers layers;
    struct inventory *inventory = NULL;
    struct brig_error err = {0};
    struct inventory_counts counts = {0};
    autostr struct str out = {0};
    if (layers_open(storage, "x", NULL, NULL, &layers, &err) < 0 || layers.count != 1)
        tap_bail("%s", err.message);
    int result = inventory_make(&layers.items[0], &(struct inventory_options){.git = &git},
                                &inventory, &err);
    if (result == 0)
        result = inventory_each(inventory, list_item, &out, &err);
    if (result == 0)
        result = inventory_each_group(inventory, list_group, &out, &err);
    tap_is_int(result, 0, "%s: no error %s", sentence, err.message);
    tap_is_str(out.data ? out.data : "", wanted, "%s", sentence);
    if (inventory)
        counts = *inventory_counts(inventory);
    inventory_free(inventory);
    layers_done(&layers);
    return counts;
}

/* ---- tests ---- */

static void sorts_by_kind(void)
{
    begin_trees();
    expect("", "nothing has changed");
    put(root, "a-modified", "one");
    put(upper, "a-modified", "two");
    put(root, "b-deleted", "b");
    put_whiteout("b-deleted");
    put(root, "c-type", "c");
    put_link(upper, "c-type", "c");
    put_link(root, "d-link", "old");
    put_link(upper, "d-link", "new");
    put(root, "e-mode", "e");
    put(upper, "e-mode", "e");
    char path[256];
    (void)snprintf(path, sizeof path, "%s/e-mode", upper);
    (void)chmod(path, 0600);
    put(upper, "A-added", "12345");
    put(upper, "Makefile", "all:");
    struct inventory_counts counts = expect("D b-deleted\n"
                                            "T c-type >c\n"
                                            "M a-modified\n"
                                            "M d-link old>new\n"
                                            "P e-mode\n"
                                            "A A-added\n"
                                            "A Makefile !runs when you build or test\n",
                                            "deletions and type changes come first");
    tap_is_int(counts.kinds[CHANGE_DELETED], 1, "one deleted");
    tap_is_int(counts.kinds[CHANGE_MODIFIED], 2, "two modified");
    tap_is_int(counts.kinds[CHANGE_ADDED], 2, "two added");
    tap_is_int(counts.risky, 1, "one flagged");
    tap_is_int(counts.bytes, 3 + 5 + 4, "bytes of added and modified files");
}

static void finds_renames(void)
{
    begin_trees();
    put(root, "old", "the contents");
    put(root, "other", "THE CONTENTS");
    put(root, "empty", "");
    put(root, "dir/in/one", "first");
    put(root, "dir/in/two", "second");
    put_whiteout("old");
    put_whiteout("other");
    put_whiteout("empty");
    put_whiteout("dir");
    put(upper, "a/new", "the contents");
    put(upper, "a/copy", "the contents");
    put(upper, "moved/one", "first");
    put(upper, "moved/two", "Second");
    put(upper, "nothing", "");
    expect("D dir\nD empty\nD old\nD other\n"
           "A a\nA a/copy from old\nA a/new\n"
           "A moved\nA moved/one from dir/in/one\nA moved/two\nA nothing\n",
           "an added file with the contents of a deleted one was renamed");
}

static void bounds_renames(void)
{
    begin_trees();
    char path[64], text[32];
    for (int i = 0; i < RENAMES_MAX + 10; i++) {
        (void)snprintf(path, sizeof path, "gone/%05d", i);
        (void)snprintf(text, sizeof text, "text %d", i);
        put(root, path, text);
    }
    put_whiteout("gone");
    put(upper, "first", "text 0");
    (void)snprintf(text, sizeof text, "text %d", RENAMES_MAX + 9);
    put(upper, "last", text);
    expect("D gone\nA first from gone/00000\nA last\n", "the number of candidates is bounded");
}

static void groups_ignored_files(void)
{
    begin_trees();
    GIT("init", "-q", ".");
    put(root, ".gitignore", "*.o\nbuild/\n/node_modules\n!keep.o\n");
    put(root, "src/a.c", "c");
    put(root, "node_modules/old/x.js", "x");
    put(upper, "src/a.o", "12");
    put(upper, "src/b.o", "345");
    put(upper, "src/keep.o", "6");
    put(upper, "src/deep/c.o", "7");
    put(upper, "src/z.o", "8");
    put(upper, "build/x/y", "90");
    put(upper, "build/z", "1");
    put(upper, "node_modules/new/y.js", "y");
    put(upper, "node_modules/old/z.js", "z");
    put(upper, "top.o", "t");
    put(upper, "plain", "p");
    put(upper, ":!magic", "m");
    /* Rules of the jail's own do not count. */
    put(upper, "sub/.gitignore", "*\n");
    put(upper, "sub/file", "f");
    struct inventory_counts counts =
        expect("A :!magic\n"
               "A build ignored\nA build/x ignored\nA build/x/y ignored\nA build/z ignored\n"
               "A node_modules/new ignored\n"
               "A node_modules/new/y.js !code of an installed package ignored\n"
               "A node_modules/old/z.js !code of an installed package ignored\n"
               "A plain\n"
               "A src/a.o ignored\nA src/b.o ignored\nA src/deep\nA src/deep/c.o ignored\n"
               "A src/keep.o\nA src/z.o ignored\n"
               "A sub\nA sub/.gitignore\nA sub/file\n"
               "A top.o ignored\n"
               "I build/** 2 3\n"
               "I node_modules/** 2 2 !code of an installed package\n"
               "I src/deep/c.o 1 1\n"
               "I src 3 6\n"
               "I top.o 1 1\n",
               "ignored files are grouped by directory");
    tap_is_int(counts.ignored, 9, "and counted");
}

/* What the user's index has is not ignored, also where the file is missing outside. */
static void tracked_files_are_not_ignored(void)
{
    begin_trees();
    GIT("init", "-q", ".");
    put(root, ".gitignore", "*.o\ndist/\n");
    put(root, "t.o", "t");
    put(root, "dist/deep/kept", "k");
    GIT("add", "-f", "t.o", "dist/deep/kept");
    (void)unlink(join(root, "t.o"));
    (void)unlink(join(root, "dist/deep/kept"));
    put(upper, "t.o", "T");
    put(upper, "u.o", "u");
    put(upper, "dist/deep/kept", "K");
    put(upper, "dist/deep/new", "n");
    put(upper, "dist/other/new", "n");
    expect("A dist/deep/kept\nA dist/deep/new ignored\n"
           "A dist/other ignored\nA dist/other/new ignored\nA t.o\nA u.o ignored\n"
           "I dist/deep/new 1 1\nI dist/other/** 1 1\nI u.o 1 1\n",
           "tracked files are listed");
}

static void survives_what_git_refuses(void)
{
    begin_trees();
    GIT("init", "-q", ".");
    put(root, ".gitignore", "*.o\n");
    GIT("update-index", "--add", "--cacheinfo",
        "160000,0123456789012345678901234567890123456789,mod");
    put(root, "mod/file", "m");
    put_link(root, "lnk", "elsewhere");
    put(upper, "a.o", "a");
    put(upper, "lnk/x.o", "l");
    put(upper, "mod/b.o", "b");
    put(upper, "mod/c.o", "c");
    put(upper, "z.o", "z");
    expect("T lnk elsewhere>\n"
           "A a.o ignored\nA lnk/x.o\nA mod/b.o\nA mod/c.o\nA z.o ignored\n"
           "I  2 2\n",
           "paths in a submodule and below a link are not asked about");
}

static void knows_no_repository(void)
{
    begin_trees();
    put(upper, "a.o", "a");
    put(upper, ".gitignore", "*\n");
    expect("A .gitignore\nA a.o\n", "without a repository nothing is ignored");
}

static void expect_line(int64_t since_ns, const char *wanted, const char *sentence)
{
    struct layers layers;
    struct brig_error err = {0};
    autostr struct str out = {0};
    if (layers_open(storage, "x", NULL, NULL, &layers, &err) < 0)
        tap_bail("%s", err.message);
    tap_is_int(inventory_line(&layers, since_ns, NULL, &out, &err), 0, "%s: no error %s", sentence,
               err.message);
    tap_is_str(out.data ? out.data : "", wanted, "%s", sentence);
    layers_done(&layers);
}

static void writes_a_line(void)
{
    char wanted[512];
    begin_trees();
    expect_line(0, "", "no line if nothing has changed");
    put(root, "modified", "one");
    put(upper, "modified", "other");
    put(upper, "new/file", "x");
    put(upper, "Makefile", "x");
    put(root, "gone/1", "1");
    put(root, "gone/2", "2");
    put_whiteout("gone");
    (void)snprintf(wanted, sizeof wanted,
                   "5 files changed in %s, 2 new, 2 deleted, 1 flagged; see brig status", root);
    expect_line(0, wanted, "files are counted, directories are not");
    int64_t now_ns = clock_wall_ns();
    expect_line(now_ns + 60 * CLOCK_SECOND_NS, "", "files that were changed before do not count");
    expect_line(now_ns - 3600 * CLOCK_SECOND_NS, wanted, "files that were changed since do");
}

/* ---- tokens ---- */

static int find_token(void *context, const struct inventory_item *item, struct brig_error *err)
{
    struct inventory_item *found = context;
    (void)err;
    if (strcmp(item->path, found->path) == 0) {
        found->token = item->token;
        found->risk = item->risk ? "some" : NULL;
    }
    return 0;
}

/* The item of a path, with its token. */
static struct inventory_item item_of(const char *path, bool running)
{
    struct layers layers;
    struct inventory *inventory = NULL;
    struct brig_error err = {0};
    struct inventory_item found = {.path = path};
    if (layers_open(storage, "x", NULL, NULL, &layers, &err) < 0 || layers.count != 1)
        tap_bail("%s", err.message);
    layers.items[0].running = running;
    if (inventory_make(&layers.items[0], &(struct inventory_options){.tokens = true}, &inventory,
                       &err) < 0 ||
        inventory_each(inventory, find_token, &found, &err) < 0)
        tap_bail("%s", err.message);
    inventory_free(inventory);
    layers_done(&layers);
    return found;
}

static struct token token_of(const char *path, bool running)
{
    return item_of(path, running).token;
}

static bool same(struct token a, struct token b)
{
    return a.text[0] && strcmp(a.text, b.text) == 0;
}

static void has_tokens(void)
{
    begin_trees();
    put(root, "file", "before");
    put(upper, "file", "after");
    put(upper, "new/one", "1");
    put(root, "gone/in/file", "f");
    put_whiteout("gone");
    struct token file = token_of("file", false), new = token_of("new", false);
    struct token gone = token_of("gone", false);
    tap_is_int((int)strlen(file.text), TOKEN_LENGTH, "a token has 32 digits");
    tap_ok(same(file, token_of("file", false)), "it stays the same");
    put(upper, "file", "other");
    tap_ok(!same(file, token_of("file", false)), "it differs if the jail writes to the file");
    file = token_of("file", false);
    put(root, "file", "yours");
    tap_ok(!same(file, token_of("file", false)), "it differs if the user does");
    put(upper, "new/two", "2");
    tap_ok(same(new, token_of("new", false)), "a directory is another item than what is in it");
    tap_ok(same(gone, token_of("gone", false)), "a deleted directory");
    put(root, "gone/in/more", "m");
    tap_ok(!same(gone, token_of("gone", false)), "has all that would be lost");
}

/* A file that a process has mapped changes without a new time. */
static void has_contents_while_running(void)
{
    begin_trees();
    put(upper, "mapped", "harmless");
    int fd = open(join(upper, "mapped"), O_RDWR | O_CLOEXEC);
    char *bytes = mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || bytes == MAP_FAILED)
        tap_bail("cannot map a file");
    bytes[0] = 'h'; /* the time of the first write through the mapping */
    struct token before, again, other, last;
    struct stat first, now;
    do { /* the kernel may write the page back meanwhile: then the next write gives a new time */
        if (fstat(fd, &first) < 0)
            tap_bail("cannot look at a file");
        before = token_of("mapped", true);
        again = token_of("mapped", true);
        bytes[0] = 'H';
        other = token_of("mapped", true);
        bytes[0] = 'h';
        last = token_of("mapped", true);
        if (fstat(fd, &now) < 0)
            tap_bail("cannot look at a file");
    } while (clock_ns(now.st_ctim) != clock_ns(first.st_ctim));
    tap_ok(same(before, again), "the token of a mapped file stays the same");
    tap_ok(!same(before, other), "until it is written to");
    tap_ok(same(before, last), "a token has the contents");
    (void)munmap(bytes, 8);
    if (ftruncate(fd, (off_t)TOKEN_CONTENTS_MAX) < 0)
        tap_bail("cannot make a large file");
    tap_ok(token_of("mapped", true).text[0] != '\0', "a file of 16 MiB has a token");
    if (ftruncate(fd, (off_t)TOKEN_CONTENTS_MAX + 1) < 0)
        tap_bail("cannot make a larger file");
    (void)close(fd);
    struct inventory_item item = item_of("mapped", true);
    tap_is_str(item.token.text, "", "a larger one has none while a run is active");
    tap_ok(item.risk, "and is flagged");
    item = item_of("mapped", false);
    tap_ok(item.token.text[0] && !item.risk, "afterwards it has one");
}

/* Programs' state in the home: neither names nor conflicts are of interest, but what something executes is listed. */
static void folds_state(void)
{
    struct layers layers;
    struct inventory *inventory = NULL;
    struct brig_error err = {0};
    autostr struct str state = {0};
    str_list_add(&state, ".claude");
    str_list_add(&state, ".cache");
    begin_trees();
    put(upper, ".cache/x/y", "1");
    put(upper, ".cached", "2");
    put(upper, ".claude/projects/-home-x/log", "3");
    put(upper, ".claude/settings.json", "{}");
    put(upper, "-odd", "4");
    put(upper, ".claude/old", "5");
    struct stat jails, yours;
    do {
        put(root, ".claude/old", "newer");
        if (stat(join(upper, ".claude/old"), &jails) < 0 ||
            stat(join(root, ".claude/old"), &yours) < 0)
            tap_bail("cannot look at a file");
    } while (clock_ns(yours.st_ctim) <= clock_ns(jails.st_ctim)); /* the kernel's clock ticks */
    for (int home = 1; home >= 0; home--) {
        if (layers_open(storage, "x", NULL, NULL, &layers, &err) < 0 || layers.count != 1)
            tap_bail("%s", err.message);
        (void)str_fill(layers.items[0].name, LAYER_NAME_MAX, home ? LAYER_HOME : "1");
        const struct inventory_options options = {.state = &state};
        if (inventory_make(&layers.items[0], &options, &inventory, &err) < 0)
            tap_bail("%s", err.message);
        const struct inventory_counts *counts = inventory_counts(inventory);
        tap_is_int(counts->state, home ? 3 : 0, "files of state in the home");
        tap_is_int(counts->risky, home ? 2 : 4, "settings are flagged, and names elsewhere");
        tap_is_int(counts->conflicts, home ? 0 : 1, "state has no conflicts");
        inventory_free(inventory);
        layers_done(&layers);
    }
}

static void has_items_of_git(void)
{
    const struct git_item item = {.kind = GIT_ITEM_CONFIG,
                                  .top = "/p",
                                  .name = "branch.main.merge",
                                  .old = "refs/heads/main",
                                  .new = "refs/heads/x"};
    const char *const *parts[] = {&item.top, &item.name, &item.old, &item.new};
    struct brig_error err = {0};
    struct inventory_git judged;
    if (inventory_judge_git(&item, &judged, &err) < 0)
        tap_bail("%s", err.message);
    tap_ok(strcmp(judged.item.path, item.name) == 0 && !judged.item.risk &&
               strcmp(judged.item.token.text, token_of_git(&item, NULL).text) == 0,
           "an item of git has a name and a token");
    tap_is_int((long)strlen(judged.item.token.text), TOKEN_LENGTH, "as files have");
    for (size_t i = 0; i < ARRAY_LENGTH(parts); i++) {
        struct git_item other = item;
        *(const char **)((char *)&other + ((const char *)parts[i] - (const char *)&item)) = "z";
        tap_ok(strcmp(token_of_git(&other, NULL).text, judged.item.token.text) != 0,
               "it depends on %s", *parts[i]);
    }
    tap_ok(strcmp(token_of_git(&item, "x").text, judged.item.token.text) != 0, "and on the mark");
    inventory_git_done(&judged);
}

int main(void)
{
    name_trees("inventory");
    const char *const environment[] = {"PATH=/usr/bin:/bin", "HOME=/nonexistent", NULL};
    if (git_find(&git, environment, NULL, (struct git_user){-1U, -1U}, NULL) < 0 || !git.program)
        tap_bail("git is not installed");
    sorts_by_kind();
    finds_renames();
    bounds_renames();
    groups_ignored_files();
    tracked_files_are_not_ignored();
    survives_what_git_refuses();
    knows_no_repository();
    writes_a_line();
    has_tokens();
    has_contents_while_running();
    folds_state();
    has_items_of_git();
    git_done(&git);
    remove_trees();
    return tap_done();
}
