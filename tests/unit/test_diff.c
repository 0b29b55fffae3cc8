/* SPDX-License-Identifier: MIT */
/* Diffs, patches, chosen hunks and merges, with upper directories made by hand. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/str.h"
#include "changes/diff/diff.h"
#include "changes/diff/hunks.h"
#include "changes/diff/import.h"
#include "changes/diff/merge.h"
#include "changes/diff/plain.h"
#include "changes/diff/scratch.h"
#include "changes/layer/base.h"
#include "changes/layer/change.h"
#include "changes/layer/layer.h"
#include "changes_support.h"
#include "git/git.h"
#include "tap.h"

static struct git git;

/* ---- text for a terminal ---- */

static void expect_plain(const char *bytes, const char *wanted, const char *sentence)
{
    autostr struct str out = {0};
    size_t used = plain_append(&out, bytes, strlen(bytes), true);
    tap_is_int((int)used, (int)strlen(bytes), "%s: everything is used", sentence);
    tap_is_str(out.data ? out.data : "", wanted, "%s", sentence);
}

static void test_plain(void)
{
    expect_plain("a\tb\r\nc", "a\tb\r\nc", "tabs and line ends stay");
    expect_plain("\033[8mx\a", "<U+001B>[8mx<U+0007>", "control characters become visible");
    expect_plain("\302\233x", "<U+009B>x", "C1 control characters too");
    expect_plain("\233x\344", "<U+9B>x\344", "and bytes that are such characters elsewhere");
    expect_plain("\342\200\256x", "<U+202E>x", "and those that change the direction of text");
    expect_plain("\303\244\342\202\254", "\303\244\342\202\254", "other characters stay");
    expect_plain("a\rb\r\nc\r", "a<U+000D>b\r\nc\r",
                 "a carriage return stays only at the end of a line");
    expect_plain("<U+001B> <<U+ <U", "<<U+001B> <<<U+ <U", "the visible form is escaped itself");
    tap_ok(plain_is_plain("\303\244<U+", 5), "ordinary text is plain");
    tap_ok(!plain_is_plain("a\033", 2), "text with escapes is not");
    tap_ok(plain_is_binary("a\0b", 3) && !plain_is_binary("ab", 2), "a NUL makes a file binary");
}

/* Split at each place, the result is the same. */
static void test_plain_parts(void)
{
    static const char text[] = "a\302\233<U+\342\200\256<U\033z";
    autostr struct str whole = {0};
    (void)plain_append(&whole, text, sizeof text - 1, true);
    bool same = true;
    for (size_t cut = 0; cut < sizeof text; cut++) {
        autostr struct str out = {0};
        size_t used = plain_append(&out, text, cut, false);
        (void)plain_append(&out, text + used, sizeof text - 1 - used, true);
        same = same && out.length == whole.length && memcmp(out.data, whole.data, out.length) == 0;
    }
    tap_ok(same, "a text in two parts is escaped as in one");
}

/* ---- names ---- */

static void expect_mapped(const char *path, mode_t type, const char *wanted)
{
    autostr struct str out = {0};
    import_append_mapped(&out, path, type);
    tap_is_str(out.data, wanted, "'%s' is '%s' for git", path, wanted);
    tap_ok(import_maps(path, type) == (strcmp(path, wanted) != 0), "and it is known to differ");
}

static void test_names(void)
{
    expect_mapped("a/.git/config", S_IFREG, "a/.git%/config");
    expect_mapped(".GiT", S_IFREG, ".GiT%");
    expect_mapped("a/.git%/.git", S_IFREG, "a/.git%%/.git%");
    expect_mapped("a/.gitignore", S_IFREG, "a/.gitignore");
    expect_mapped(".gitmodules", S_IFREG, ".gitmodules");
    expect_mapped(".gitmodules", S_IFLNK, ".gitmodules%");
    expect_mapped(".gitmodules/x", S_IFLNK, ".gitmodules/x");
    expect_mapped(".gitmodules%", S_IFREG, ".gitmodules%%");
}

/* ---- diffs ---- */

/* Reads what was written to a file in `top`. */
static void read_output(const char *name, struct str *out)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", top, name);
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read_all(fd, 1 << 20, out) < 0)
        tap_bail("cannot read '%s'", path);
}

static int open_output(const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", top, name);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        tap_bail("cannot write '%s'", path);
    return fd;
}

static void show(const struct layer *layer, enum diff_form form, bool terminal, struct str *out,
                 struct str *notes)
{
    struct brig_error err = {0};
    struct diff *diff = NULL;
    autoclose int output = open_output("output");
    autoclose int note = open_output("notes");
    const struct diff_options options = {
        .form = form, .terminal = terminal, .output = output, .notes = note};
    if (diff_new(&git, layer->record, &options, &diff, &err) < 0 ||
        diff_add(diff, layer, &(struct change_options){0}, &err) < 0 || diff_show(diff, &err) < 0)
        tap_bail("%s", err.message);
    diff_free(diff);
    read_output("output", out);
    read_output("notes", notes);
}

static void has(const struct str *out, const char *text, const char *sentence)
{
    if (!tap_ok(out->data && strstr(out->data, text), "%s", sentence))
        tap_diag("'%s' is not in: %s", text, out->data ? out->data : "");
}

static void test_text(void)
{
    begin_trees();
    put(root, "mod", "a\nb\nc\n");
    put(upper, "mod", "a\nB\nc\n");
    put(upper, "esc", "\033[8mhidden\n");
    put(upper, "a\nb\"c\377", "odd\n");
    put_bytes(root, "bin", "a\0b", 3);
    put_bytes(upper, "bin", "a\0c", 3);
    make_dir(upper, "empty");
    make_dir(upper, "nested");
    make_dir(upper, "nested/.git");
    put(upper, "nested/.git/config", "conf\n");
    make_dir(root, "gone");
    put(root, "gone/file", "was here\n");
    make_whiteout(upper, "gone");
    struct layer layer = open_layer();
    autostr struct str out = {0}, notes = {0}, plain = {0}, more = {0};
    show(&layer, DIFF_TEXT, true, &out, &notes);
    has(&out, "-b\n+B\n", "a modified file is a diff");
    has(&out, "+<U+001B>[8mhidden\n", "contents are escaped for a terminal");
    has(&out, "a\\nb\\\"c\\377", "names are quoted by git");
    has(&out, "Binary files a/bin and b/bin differ", "a binary file is a line");
    has(&out, "b/nested/.git%/config", "a name that git refuses is shown with a %");
    has(&out, "deleted file mode 100644", "a deleted directory is expanded");
    has(&notes, "/empty: directory added\n", "an empty directory is a note");
    show(&layer, DIFF_TEXT, false, &plain, &more);
    has(&plain, "+\033[8mhidden\n", "contents are exact if the output is no terminal");
    layer_done(&layer);
}

static void test_large(void)
{
    char path[512];
    begin_trees();
    for (int i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", i == 0 ? root : upper, "large");
        autoclose int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        off_t size = DIFF_FILE_MAX + i;
        if (fd < 0 || ftruncate(fd, size) < 0 || pwrite(fd, i == 0 ? "a" : "b", 1, 9) != 1)
            tap_bail("cannot write '%s'", path);
    }
    struct layer layer = open_layer();
    autostr struct str out = {0}, notes = {0};
    show(&layer, DIFF_TEXT, false, &out, &notes);
    has(&out, "Binary files a/large and b/large differ", "a file above the limit is a line");
    has(&notes, "too large to compare: 67108865 bytes, was 67108864", "and a note");
    layer_done(&layer);
}

static bool has_scratch(const struct layer *layer)
{
    int fd = openat(layer->record, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir DIR *list = fdopendir(fd);
    for (const struct dirent *item; list && (item = readdir(list));)
        if (str_starts_with(item->d_name, "scratch."))
            return true;
    return false;
}

static void test_scratch(void)
{
    begin_trees();
    struct layer layer = open_layer();
    struct scratch first, second;
    tap_is_int(scratch_make(layer.record, &first, NULL), 0, "a repository is made");
    tap_is_int(scratch_make(layer.record, &second, NULL), 0, "and a second one");
    tap_ok(faccessat(first.dir, "HEAD", F_OK, 0) == 0, "which leaves the first alone");
    scratch_remove(&second);
    (void)close(first.dir); /* as if its command had been killed */
    tap_is_int(scratch_make(layer.record, &second, NULL), 0, "after a command was killed");
    struct stat info;
    tap_ok(fstatat(layer.record, first.name, &info, 0) < 0, "the next removes what it left");
    scratch_remove(&second);
    tap_ok(!has_scratch(&layer), "nothing remains");
    layer_done(&layer);
}

/* ---- hunks ---- */

/* Standard input of the test is replaced by the answers, and its output goes to a file. */
static int ask(struct hunks *hunks, const char *answers, struct brig_error *err)
{
    char path[256];
    put(top, "answers", answers);
    (void)snprintf(path, sizeof path, "%s/answers", top);
    int in = open(path, O_RDONLY | O_CLOEXEC), out = open_output("asked");
    int saved_in = fcntl(0, F_DUPFD_CLOEXEC, 3), saved_out = fcntl(1, F_DUPFD_CLOEXEC, 3);
    if (dup2(in, 0) < 0 || dup2(out, 1) < 0)
        tap_bail("cannot redirect");
    int status = hunks_ask(hunks, err);
    (void)dup2(saved_in, 0);
    (void)dup2(saved_out, 1);
    (void)close(in);
    (void)close(out);
    (void)close(saved_in);
    (void)close(saved_out);
    return status;
}

static struct hunks *choose(const struct layer *layer, const char *answers)
{
    struct brig_error err = {0};
    struct hunks *hunks = NULL;
    if (hunks_new(&git, layer->record, &hunks, &err) < 0 ||
        changes_walk(layer, &(struct change_options){.expand = true}, hunks_add, hunks, &err) < 0 ||
        ask(hunks, answers, &err) < 0)
        tap_bail("%s", err.message);
    return hunks;
}

static void expect_content(struct hunks *hunks, const char *path, const char *wanted)
{
    struct brig_error err = {0};
    autostr struct str out = {0};
    const struct hunks_found found = hunks_find(hunks, path);
    tap_is_int((int)found.choice, HUNKS_PART, "a part of '%s' was chosen", path);
    autoclose int fd = hunks_open(hunks, &found, &err);
    if (fd < 0 || read_all(fd, 65536, &out) < 0)
        tap_bail("%s", err.message);
    tap_is_str(out.data, wanted, "with this content");
}

static void expect_choice(const struct hunks *hunks, const char *path, enum hunks_choice wanted)
{
    tap_is_int((int)hunks_find(hunks, path).choice, (int)wanted, "the choice for '%s'", path);
}

static void make_hunks(void)
{
    begin_trees();
    put(root, "a", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n");
    put(upper, "a", "one\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\ntwelve\n");
    put_bytes(root, "b", "a\0b", 3);
    put_bytes(upper, "b", "a\0c", 3);
    put(root, "c", "deleted\n");
    make_whiteout(upper, "c");
    put(upper, "d", "added\n");
    put(root, "e", "kept\n");
    put(upper, "e", "refused\n");
    make_dir(upper, "f");
    put(upper, "g", "\033[8mhidden\n");
    /* attributes of the tree must not hide or change anything */
    put(upper, ".gitattributes", "* -diff filter=evil\n*.x binary\n");
    put(root, "h.x", "old\n");
    put(upper, "h.x", "new\n");
}

static void test_hunks(void)
{
    make_hunks();
    struct layer layer = open_layer();
    /* .gitattributes; the two hunks of a; b; c; d; e; g; h.x */
    struct hunks *hunks = choose(&layer, "n\ny\nn\ny\ny\ny\nn\ny\ny\n");
    autostr struct str asked = {0};
    read_output("asked", &asked);
    has(&asked, "+the jail's file of 3 bytes, which can only be taken whole",
        "a binary file is offered whole");
    tap_ok(asked.data && !strchr(asked.data, '\033'), "no escape sequence of a file is shown");
    has(&asked, "+new\n", "attributes of the tree do not hide a diff");
    has(&asked, "+++ b/root/a\n", "the directory of the root is in the paths");
    expect_choice(hunks, ".gitattributes", HUNKS_NONE);
    expect_content(hunks, "a", "one\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n");
    expect_choice(hunks, "b", HUNKS_ALL);
    expect_choice(hunks, "c", HUNKS_ALL);
    expect_choice(hunks, "d", HUNKS_ALL);
    expect_choice(hunks, "e", HUNKS_NONE);
    expect_choice(hunks, "f", HUNKS_NOT_ASKED);
    expect_choice(hunks, "g", HUNKS_ALL);
    expect_choice(hunks, "h.x", HUNKS_ALL);
    hunks_free(hunks);
    hunks = choose(&layer, "q\n");
    expect_choice(hunks, "a", HUNKS_NONE);
    expect_choice(hunks, "c", HUNKS_NONE);
    expect_choice(hunks, "d", HUNKS_NONE);
    hunks_free(hunks);
    tap_ok(!has_scratch(&layer), "nothing remains");
    layer_done(&layer);
}

/* The longest names, which become longer for git, and names that look like options and patterns. */
static void test_hunk_names(void)
{
    char longest[PATH_COMPONENT_MAX + 1];
    static const char *const names[] = {"-p", "a b\n\"c", ":!x", "*", "\377"};
    begin_trees();
    memset(longest, '%', PATH_COMPONENT_MAX);
    memcpy(longest, ".git", 4);
    longest[PATH_COMPONENT_MAX] = '\0';
    put(upper, longest, "longest\n");
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        put(upper, names[i], "new\n");
    make_dir(upper, "x");
    make_dir(upper, "x/.git");
    put(upper, "x/.git/config", "conf\n");
    struct layer layer = open_layer();
    struct hunks *hunks = choose(&layer, "y\ny\ny\ny\ny\ny\n");
    expect_choice(hunks, longest, HUNKS_NOT_ASKED);
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        expect_choice(hunks, names[i], HUNKS_ALL);
    expect_choice(hunks, "x/.git/config", HUNKS_ALL);
    hunks_free(hunks);
    autostr struct str out = {0}, notes = {0};
    show(&layer, DIFF_TEXT, false, &out, &notes);
    has(&out, "+longest", "a diff shows the longest name");
    layer_done(&layer);
}

static void test_hunk_modes(void)
{
    char path[512];
    begin_trees();
    put(root, "m", "1\n");
    put(upper, "m", "2\n");
    (void)snprintf(path, sizeof path, "%s/m", upper);
    if (chmod(path, 0755) < 0)
        tap_bail("chmod");
    struct layer layer = open_layer();
    struct hunks *hunks = choose(&layer, "n\ny\n"); /* not the mode, but the content */
    expect_content(hunks, "m", "2\n");
    tap_is_int((int)hunks_find(hunks, "m").mode, S_IFREG | 0644, "with the user's mode");
    hunks_free(hunks);
    hunks = choose(&layer, "y\nn\n");
    expect_content(hunks, "m", "1\n");
    tap_is_int((int)hunks_find(hunks, "m").mode, S_IFREG | 0755, "with the jail's mode");
    hunks_free(hunks);
    layer_done(&layer);
}

/* ---- merges ---- */

static enum merge_outcome merge(const struct layer *layer, const char *base, size_t length,
                                const char *mine, const char *theirs, struct str *out)
{
    struct brig_error err = {0};
    enum merge_outcome outcome = MERGE_IMPOSSIBLE;
    autoclose int merged = -1;
    int base_fd = open_output("base"), mine_fd = open_output("mine"),
        their_fd = open_output("theirs");
    if (write_all(base_fd, base, length) < 0 || write_all(mine_fd, mine, strlen(mine)) < 0 ||
        write_all(their_fd, theirs, strlen(theirs)) < 0 ||
        merge_files(&git, layer->record, base_fd, mine_fd, their_fd, &outcome, &merged, &err) < 0)
        tap_bail("merge: %s", err.message);
    if (merged >= 0)
        (void)read_all(merged, 65536, out);
    (void)close(base_fd);
    (void)close(mine_fd);
    (void)close(their_fd);
    return outcome;
}

static void test_merge(void)
{
    begin_trees();
    struct layer layer = open_layer();
    autostr struct str clean = {0}, conflict = {0}, none = {0};
    tap_is_int((int)merge(&layer, "a\nb\nc\nd\n", 8, "A\nb\nc\nd\n", "a\nb\nc\nD\n", &clean),
               MERGE_CLEAN, "changes in different places merge");
    tap_is_str(clean.data, "A\nb\nc\nD\n", "into one file");
    tap_is_int((int)merge(&layer, "a\n", 2, "mine\n", "theirs\n", &conflict), MERGE_CONFLICTS,
               "changes in the same place conflict");
    has(&conflict, "<<<<<<< yours\nmine\n", "with markers");
    has(&conflict, "theirs\n>>>>>>> jail\n", "for both");
    tap_is_int((int)merge(&layer, "a\0\n", 3, "b\n", "c\n", &none), MERGE_IMPOSSIBLE,
               "a binary file is not merged");
    layer_done(&layer);
}

static void test_merge_limit(void)
{
    begin_trees();
    struct layer layer = open_layer();
    autofree char *text = malloc(MERGE_FILE_MAX + 1);
    memset(text, 'x', MERGE_FILE_MAX + 1);
    autostr struct str at = {0}, past = {0};
    tap_is_int((int)merge(&layer, text, MERGE_FILE_MAX, "b\n", "b\n", &at), MERGE_CLEAN,
               "a file at the limit is merged");
    tap_is_int((int)merge(&layer, text, MERGE_FILE_MAX + 1, "b\n", "b\n", &past), MERGE_IMPOSSIBLE,
               "a file past the limit is not");
    layer_done(&layer);
}

static int open_base(void *context, const struct change *change, struct brig_error *err)
{
    (void)err;
    if (strcmp(change->path, "f") == 0)
        *(int *)context = merge_open_base(change);
    return 0;
}

static int find_base(const struct layer *layer)
{
    int fd = -1;
    (void)changes_walk(layer, &(struct change_options){0}, open_base, &fd, NULL);
    return fd;
}

static void test_bases(void)
{
    char path[512];
    struct stat info;
    begin_trees();
    put(root, "f", "base\n");
    struct layer layer = open_layer();
    int running = base_begin(&layer, NULL);
    put(upper, "f", "jail\n");
    tap_ok(running >= 0 && base_end(&layer, running, 1000, NULL) == 0, "a run has ended");
    tap_is_int(merge_save_bases(&layer, NULL), 0, "the user's files are copied");
    put(root, "f", "the user's edit\n");
    autostr struct str text = {0};
    autoclose int fd = find_base(&layer);
    tap_ok(fd >= 0 && read_all(fd, 100, &text) == 0, "the copy is found after an edit");
    tap_is_str(text.data ? text.data : "", "base\n", "with the old content");
    tap_is_int(merge_save_bases(&layer, NULL), 0, "after another run");
    autoclose int again = find_base(&layer);
    tap_ok(again >= 0, "it is still there");
    (void)snprintf(path, sizeof path, "%s/f", upper);
    if (unlink(path) < 0)
        tap_bail("unlink");
    tap_is_int(merge_save_bases(&layer, NULL), 0, "when the change is gone");
    (void)snprintf(path, sizeof path, "%s/x.record/1.bases", storage);
    tap_ok(stat(path, &info) == 0 && S_ISDIR(info.st_mode), "the directory stays");
    autodir DIR *list = opendir(path);
    int count = 0;
    for (const struct dirent *item; list && (item = readdir(list));)
        count += item->d_name[0] != '.';
    tap_is_int(count, 0, "and is empty");
    layer_done(&layer);
}

int main(void)
{
    name_trees("diff");
    (void)setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1);
    (void)setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
    test_plain();
    test_plain_parts();
    test_names();
    if (git_find(&git, (const char *const *)environ, NULL, (struct git_user){-1U, -1U}, NULL) < 0 ||
        !git.program) {
        tap_skip("git is not installed", "diffs");
        return tap_done();
    }
    test_text();
    test_large();
    test_scratch();
    test_hunks();
    test_hunk_names();
    test_hunk_modes();
    test_merge();
    test_merge_limit();
    test_bases();
    git_done(&git);
    remove_trees();
    return tap_done();
}
