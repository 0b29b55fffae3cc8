/* SPDX-License-Identifier: MIT */
/* The pure parts of the guard: which refs, settings and URLs may leave a jail, what pointer files say, and which
 * names are protected; answers of git that are kept; and a directory that is exchanged. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <brig/brig.h>

#include "base/files.h"
#include "git/config.h"
#include "git/guard.h"
#include "git/pushed.h"
#include "git/repo.h"
#include "git/transfer.h"
#include "held/held.h"
#include "held/names.h"
#include "tap.h"

#define ID "0123456789abcdef0123456789abcdef01234567"

static void ref_names(void)
{
    static const struct {
        const char *name;
        bool safe;
    } rows[] = {
        {"refs/heads/main", true},
        {"refs/heads/feature/x-1.2", true},
        {"refs/tags/v1.0", true},
        {"refs/heads/f\xc3\xbc", true},
        {"refs/heads/", false},
        {"refs/heads/-x", false},
        {"refs/heads/a/-x", false},
        {"refs/heads/HEAD", false},
        {"refs/heads/a/HEAD", false},
        {"refs/heads/a..b", false},
        {"refs/heads/.x", false},
        {"refs/heads/x.", false},
        {"refs/heads/x.lock", false},
        {"refs/heads/a//b", false},
        {"refs/heads/a b", false},
        {"refs/heads/a\x1b[31m", false},
        {"refs/heads/a\xc2\x9b", false},
        {"refs/heads/a\xff", false},
        {"refs/heads/$(id)", false},
        {"refs/heads/a;b", false},
        {"refs/heads/@{x", false},
        {"refs/notes/commits", true},
        {"refs/remotes/origin/main", false},
        {"refs/brig/default/heads/x", false},
        {"HEAD", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        tap_ok(refs_is_safe(rows[i].name) == rows[i].safe, "%s is %s", rows[i].name,
               rows[i].safe ? "safe" : "not safe");
}

static void misleading_names(void)
{
    static const struct {
        const char *name;
        bool misleads;
    } rows[] = {
        {"refs/heads/main", false},
        {"refs/heads/abc", false}, /* git needs four digits */
        {"refs/heads/abcd", true},
        {"refs/heads/DEADBEEF", true},
        {"refs/heads/deadbeefx", false},
        {"refs/heads/" ID, true},
        {"refs/heads/" ID "0123456789abcdef01234567", true},
        {"refs/heads/" ID "0123456789abcdef012345678", false},
        {"refs/heads/fix/1234", false},
        {"refs/tags/2026", true},
        {"refs/tags/v2026", false},
        {"refs/heads/@", true},
        {"refs/heads/a@b", false},
        {"refs/heads/stash", true},
        {"refs/heads/stash/x", false},
        {"refs/heads/FETCH_HEAD", true},
        {"refs/heads/AHEAD", false},
        {"refs/heads/refs/heads/x", true},
        {"refs/heads/heads/main", true},
        {"refs/heads/tags/v1", true},
        {"refs/heads/remotes/origin/main", true},
        {"refs/heads/headstand/x", false},
        {"refs/heads/rtl\xe2\x80\xaegpj.exe", true},
        {"refs/heads/\xe2\x80\x8bmain", true},
        {"refs/tags/t\xf3\xa0\x81\xa1", true},
        {"refs/heads/f\xc3\xbc", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        tap_ok(refs_is_misleading(rows[i].name) == rows[i].misleads, "row %zu, %s, %s", i + 1,
               str_shown(rows[i].name).text, rows[i].misleads ? "misleads" : "does not");
}

static void alternates(void)
{
    autostr struct str text = {0};
    repo_alternates_outside("/run/brig/objects/p/.git/objects\n#x\n/run/brig/objectsx\n"
                            "/p/run/brig/objects/x\n/run/brig/objects/q",
                            &text);
    tap_ok(str_equal(text.data, "/p/.git/objects\n#x\n/run/brig/objectsx\n"
                                "/p/run/brig/objects/x\n/q"),
           "alternates of a jail are right outside without their prefix");
    tap_ok(repo_is_alternates("a/.git/objects/info/alternates") &&
               repo_is_alternates("objects/info/alternates") &&
               !repo_is_alternates("myobjects/info/alternates") &&
               !repo_is_alternates("objects/info/alternates2"),
           "a list of alternates is known by its path");
}

static void paths_of_remotes(void)
{
    static const struct {
        const char *url, *path;
    } rows[] = {
        {"/p/x.git", "/p/x.git"}, {"../x", "../x"},  {"x:y", NULL},           {"./x:y", "./x:y"},
        {"https://h/x", NULL},    {"git@h:x", NULL}, {"file:///p/x", "/p/x"}, {"", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        tap_ok(str_equal(pushed_path(rows[i].url), rows[i].path), "'%s' is %s path", rows[i].url,
               rows[i].path ? "a" : "no");
}

static void ref_lists(void)
{
    char text[] = ID " refs/heads/b\n" ID " refs/heads/a\nxyz refs/heads/c\n" ID " refs/heads/-d\n"
                     "\nnothing\n" ID " refs/heads/s symbolic\n" ID " refs/stash\n";
    struct refs refs = {0};
    if (refs_read(text, &refs, NULL) < 0)
        tap_fail("a list is read");
    tap_is_int((long)refs.count, 3, "what is safe is kept");
    tap_is_int((long)refs.skipped, 4, "the rest is counted");
    tap_ok(refs_find(&refs, "refs/heads/a") && strcmp(refs_find(&refs, "refs/heads/a"), ID) == 0,
           "a name is found");
    tap_ok(refs_get(&refs, "refs/heads/s")->symbolic && !refs_get(&refs, "refs/heads/a")->symbolic,
           "a symbolic ref is known");
    tap_ok(!refs_find(&refs, "refs/heads/c"), "and another is not");
    refs_done(&refs);
    tap_ok(!refs_find(&refs, "refs/heads/a"), "nor in an empty list");
    tap_ok(refs_is_id(ID) && !refs_is_id(ID "0") && !refs_is_id("") && !refs_is_id(ID " "),
           "the name of an object has 40 or 64 digits");
}

static void settings(void)
{
    static const struct {
        const char *key, *value;
        bool crosses;
    } rows[] = {
        {"remote.up.url", "https://example.com/x", false},
        {"remote.up.fetch", "+refs/heads/*:refs/remotes/up/*", false},
        {"branch.main.remote", "up", true},
        {"branch.main.remote", "../../evil", false},
        {"branch.main.merge", "refs/heads/main", true},
        {"branch.main.rebase", "true", true},
        {"branch.main.rebase", "!id", false},
        {"core.fsmonitor", "touch x", false},
        {"core.hookspath", "x", false},
        {"alias.st", "!id", false},
        {"include.path", "x", false},
        {"url.https://x.insteadof", "y", false},
        {"remote", "x", false},
        {"", "", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        tap_ok(config_may_cross(rows[i].key, rows[i].value) == rows[i].crosses, "%s = %s %s",
               rows[i].key, rows[i].value, rows[i].crosses ? "crosses" : "stays");
}

static void remotes(void)
{
    static const struct {
        const char *key, *value;
        bool named;
    } rows[] = {
        {"remote.up.url", "https://example.com/x", true},
        {"remote.up.url", "git@example.com:x/y.git", true},
        {"remote.up.url", "ssh://git@example.com/x", true},
        {"remote.up.url", "ext::sh -c id", false},
        {"remote.up.url", "ext::id", false},
        {"remote.up.url", "-oProxyCommand=id", false},
        {"remote.up.url", "ssh://-oProxyCommand=id/x", false},
        {"remote.up.url", "/home/user/private", false},
        {"remote.up.url", "file:///etc", false},
        {"remote.up.url", "../x", false},
        {"remote.up.url", "https://user:password@example.com/x", false},
        {"remote.up.url", "http://a:b@127.0.0.1:631/", false},
        {"remote.up.url", "https://token@example.com/x", false},
        {"remote.up.url", "ssh://git:password@example.com/x", false},
        {"remote.-x.url", "https://example.com/x", false},
        {"remote.up.fetch", "+refs/heads/*:refs/remotes/up/*", false},
        {"branch.up.url", "https://example.com/x", false},
        {"remote.url", "https://example.com/x", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        tap_ok(config_is_remote(rows[i].key, rows[i].value) == rows[i].named, "%s = %s %s",
               rows[i].key, rows[i].value, rows[i].named ? "is named" : "is not named");
}

static void texts(void)
{
    static const struct {
        const char *text, *without;
    } rows[] = {
        {"# url = https://me:SECRET@example.com/x\n", "# url = https://example.com/x\n"},
        {"a = https://a.example/ http://SECRET@b.example:1/x",
         "a = https://a.example/ http://b.example:1/x"},
        {"ssh://git:SECRET@x/ HTTPS://SECRET@y", "ssh://x/ HTTPS://y"},
        {"ssh://git@example.com/x https://example.com/a@b",
         "ssh://git@example.com/x https://example.com/a@b"},
        {"https://example.com/ # by me@example.com", "https://example.com/ # by me@example.com"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        autostr struct str made = {0};
        config_strip_text(rows[i].text, &made);
        tap_is_str(made.data ? made.data : "", rows[i].without, "URLs in text %zu", i);
    }
}

static void urls(void)
{
    static const struct {
        const char *url, *without; /* NULL: it has no credential */
    } rows[] = {
        {"https://user:token@example.com/x", "https://example.com/x"},
        {"https://token@example.com/x", "https://example.com/x"},
        {"http://a@b@example.com/x", "http://example.com/x"},
        {"ssh://git@example.com/x", NULL},
        {"ssh://git:secret@example.com/x", "ssh://example.com/x"},
        {"git@example.com:x", NULL},
        {"https://example.com/a@b", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct str out = {0};
        int found = config_strip_url(rows[i].url, &out);
        tap_ok(rows[i].without ? found == 1 && strcmp(out.data, rows[i].without) == 0 : found == 0,
               "'%s' %s", rows[i].url, rows[i].without ? "loses its credential" : "has none");
        str_done(&out);
    }
}

static void pointers(void)
{
    char path[REPO_POINTER_MAX];
    tap_ok(repo_parse_gitdir("gitdir: ../x\n", 13, path) && strcmp(path, "../x") == 0,
           "a .git file names a directory");
    tap_ok(!repo_parse_gitdir("gitdir:../x\n", 12, path),
           "without a blank it is not as git writes it");
    tap_ok(!repo_parse_gitdir("gitdir: a\nb\n", 12, path), "nor with two lines");
    tap_ok(!repo_parse_path("a\0b", 3, path), "nor with a NUL");
    tap_ok(!repo_parse_path("", 0, path) && !repo_parse_path("\n", 1, path), "nor empty");
    char longest[REPO_POINTER_MAX + 1];
    memset(longest, 'a', sizeof longest);
    tap_ok(repo_parse_path(longest, REPO_POINTER_MAX - 1, path) &&
               !repo_parse_path(longest, REPO_POINTER_MAX, path),
           "at most %d bytes", REPO_POINTER_MAX - 1);
}

static void protected_names(void)
{
    struct brig_error err = {0};
    const char *const some[] = {".vscode", "/p/.claude"};
    tap_ok(names_check(".vscode", NULL) == 0 && names_check(".claude", NULL) == 0 &&
               names_check(".git", NULL) == 0 && names_check("/any/path", NULL) == 0,
           "--unprotect takes a protected name, a directory above one, and a path");
    tap_ok(names_check(".vscod", &err) < 0 && strstr(err.message, ".vscod"),
           "a mistyped name is refused");
    tap_ok(names_check(".vscode/tasks.json", NULL) < 0, "as is a part of one");
    tap_ok(names_check(".git/config", &err) < 0 && strstr(err.message, "--unprotect .git"),
           "and a part of .git, with the remedy");
    tap_ok(names_is_excepted(some, 2, "/q", ".vscode") &&
               names_is_excepted(some, 2, "/p", ".claude/settings.json") &&
               !names_is_excepted(some, 2, "/q", ".claude/settings.json"),
           "exceptions are names or absolute paths");
}

#define MANY_FILES 1100

/* A run that was killed may have been of another version, with other names. */
static void existing_names(void)
{
    char dir[] = "/tmp/brig-test-guard-XXXXXX";
    int top = mkdtemp(dir) ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    struct held_root root;
    struct str text = {0};
    if (top < 0 || mkdirat(top, ".claude", 0700) < 0 || mkdirat(top, ".claude/hooks", 0700) < 0 ||
        mkdirat(top, ".git", 0700) < 0 || held_look(top, dir, &root, NULL) < 0)
        tap_bail("cannot make a directory");
    held_set_write(&root.existed, &text);
    tap_is_str(text.data, ":.git:.claude/hooks:", "the names that exist are written");
    struct held_set now;
    (void)close(openat(top, "caf\xc3\xa9", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    held_look_at(top, &now);
    tap_ok(memcmp(&now, &root.existed, sizeof now) == 0,
           "they are found beside a name that is not ASCII");
    (void)unlinkat(top, "caf\xc3\xa9", 0);
    for (int i = 0; i < MANY_FILES; i++)
        (void)close(
            openat(top, str_number((uint64_t)i).text, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    held_look_at(top, &now);
    tap_ok(memcmp(&now, &root.existed, sizeof now) == 0,
           "and in a directory with more files than are listed");
    for (int i = 0; i < MANY_FILES; i++)
        (void)unlinkat(top, str_number((uint64_t)i).text, 0);
    held_set_read(text.data, &root.existed);
    tap_ok(!held_has_new(&root), "and read");
    held_set_read(":.git:.gone-name:", &root.existed);
    tap_ok(held_has_new(&root), "a name that is not among them is new");
    held_set_read("400400", &root.existed); /* .claude/hooks and .git */
    tap_ok(!held_has_new(&root), "also those of an earlier version");
    held_set_read("400000", &root.existed);
    tap_ok(held_has_new(&root), "one by one");
    (void)unlinkat(top, ".claude/hooks", AT_REMOVEDIR);
    (void)unlinkat(top, ".claude", AT_REMOVEDIR);
    (void)unlinkat(top, ".git", AT_REMOVEDIR);
    (void)rmdir(dir);
    (void)close(top);
    held_root_done(&root);
    str_done(&text);
}

/* The state of a file that appears is longer than that of a missing one, here longer than all that is kept. */
static void answers(void)
{
    char dir[] = "/tmp/brig-test-guard-XXXXXX", path[128];
    int cache = mkdtemp(dir) ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    struct str states = {0}, answer = {0}, found = {0};
    if (cache < 0)
        tap_bail("cannot make a directory");
    memset(path, 'x', sizeof path);
    (void)snprintf(path, sizeof path, "%s/", dir);
    path[strlen(path)] = 'x';
    path[113] = '\0'; /* so that the file is as large as the memory that it is read into */
    files_add_state(&states, path);
    files_write_answer(cache, "name", &states, &answer);
    tap_ok(files_read_answer(cache, "name", &found) && found.length == 0, "an answer is kept");
    int fd = openat(cache, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    tap_ok(fd >= 0 && !files_read_answer(cache, "name", &found),
           "until a file that was missing appears");
    (void)unlinkat(cache, path, 0);
    (void)unlinkat(cache, "name", 0);
    (void)rmdir(dir);
    (void)close(fd);
    (void)close(cache);
    str_done(&states);
}

/* What git said about a file is used again as long as the file is the same; a file of the cache may be cut off. */
static void cut_answers(void)
{
    char path[] = "/tmp/guard-XXXXXX";
    struct str states = {0}, answer = {0}, text = {0};
    int cache = mkdtemp(path) ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (cache < 0)
        tap_bail("no directory");
    str_append(&answer, "x");
    files_add_state(&states, "/etc/passwd");
    files_add_state(&states, "/missing");
    files_write_answer(cache, "a", &states, &answer);
    str_done(&answer);
    tap_ok(files_read_answer(cache, "a", &answer) && strcmp(answer.data, "x") == 0,
           "an answer about the same files is found");
    str_done(&answer);
    size_t found = 0;
    if (!files_read(cache, "a", &text))
        tap_bail("no file");
    for (size_t length = 0; length < text.length - 1; length++) {
        (void)files_write(cache, "a", text.data, length, NULL);
        found += files_read_answer(cache, "a", &answer) && answer.length > 0;
    }
    tap_is_int(found, 0, "a file that is cut off anywhere has none");
    (void)unlinkat(cache, "a", 0);
    (void)close(cache);
    (void)rmdir(path);
    str_done(&states);
    str_done(&answer);
    str_done(&text);
}

/* As an ordinary program with a granted directory: whether it starts, after the rules for the
 * directory were made, and what it sees there. */
static int start_in(const char *dir, const char *exchange, struct brig_error *err)
{
    const char *const argv[] = {"/bin/sh", "-c", "exec test -e \"$1/mine\"", "sh", dir, NULL};
    const struct guard_options options = {
        .storage = -1, .jail = "test", .user = {(uid_t)-1, (gid_t)-1}};
    struct brig_command command = BRIG_COMMAND_INIT;
    command.argv = argv;
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_BARE);
    struct brig_result *result = NULL;
    struct guard *guard = NULL;
    struct str notes = {0};
    int status = policy ? brig_policy_grant(policy, BRIG_READ_WRITE, dir, NULL, 0, err) : -1;
    if (status == 0)
        status = brig_policy_network(policy, BRIG_NET_NONE, err);
    if (status == 0)
        status = guard_begin(policy, &options, &guard, &notes, err);
    if (status == 0 && exchange && renameat2(AT_FDCWD, dir, AT_FDCWD, exchange, RENAME_EXCHANGE))
        tap_bail("cannot exchange the directories");
    if (status == 0)
        status = brig_run(policy, &command, &result, err);
    if (status == 0)
        status = brig_result_status(result);
    brig_result_free(result);
    guard_free(guard);
    brig_policy_free(policy);
    str_done(&notes);
    return status;
}

/* The rules are for what was found in a directory, and not for one that takes its place. */
static void exchanged_directory(void)
{
    char top[] = "/tmp/brig-test-guard-XXXXXX", mine[64], dir[64], other[64];
    struct brig_error err = {0};
    if (!mkdtemp(top))
        tap_bail("cannot make a directory");
    (void)snprintf(dir, sizeof dir, "%s/dir", top);
    (void)snprintf(other, sizeof other, "%s/other", top);
    (void)snprintf(mine, sizeof mine, "%s/dir/mine", top);
    if (mkdir(dir, 0700) < 0 || mkdir(other, 0700) < 0 || mkdir(mine, 0700) < 0)
        tap_bail("cannot make directories");
    tap_is_int(start_in(dir, NULL, &err), 0, "a granted directory is seen");
    tap_is_int(start_in(dir, other, &err), BRIG_E_SETUP,
               "with another one in its place nothing starts");
    tap_ok(err.sys_errno == ESTALE && strstr(err.message, "changed while it was being granted"),
           "the error says why");
    tap_diag("%s", err.message);
    tap_is_int(start_in(dir, NULL, &err), 1, "later the other one can be granted");
    (void)snprintf(mine, sizeof mine, "%s/other/mine", top);
    if (rmdir(mine) < 0 || rmdir(other) < 0 || rmdir(dir) < 0 || rmdir(top) < 0)
        tap_fail("the directories have nothing else");
}

int main(void)
{
    exchanged_directory();
    answers();
    cut_answers();
    ref_names();
    misleading_names();
    alternates();
    paths_of_remotes();
    ref_lists();
    settings();
    remotes();
    urls();
    texts();
    pointers();
    protected_names();
    existing_names();
    return tap_done();
}
