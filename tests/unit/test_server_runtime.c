/* SPDX-License-Identifier: MIT */
/* The pure parts of the executor: how a runtime is called, patterns, what is refused. */
#include "server/config/runtime.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "server/config/config.h"
#include "server/environment.h"
#include "server/executor/jail.h"
#include "server/executor/jail_check.h"
#include "server/executor/returned.h"
#include "tap.h"

static const struct runtime *built_in(const char *name)
{
    for (size_t i = 0; i < runtime_table_count; i++)
        if (strcmp(runtime_table[i].name, name) == 0)
            return &runtime_table[i];
    tap_bail("no runtime %s", name);
}

static void is_command(const struct runtime *runtime, enum execution_stage stage,
                       const char *expected, const char *name)
{
    struct arena arena = {0};
    const char *args[] = {"a", "b c"}, *compile_args[] = {"-g"};
    struct execution_file files[] = {{.name = "lib/more.c"}, {.name = "more.h"}};
    const struct execution_request request = {.args = args,
                                              .arg_count = 2,
                                              .compile_args = compile_args,
                                              .compile_arg_count = 1,
                                              .files = files,
                                              .file_count = 2};
    autostr struct str text = {0};
    const char **argv = runtime_command(runtime, stage, &request, 256, &arena);
    for (size_t i = 0; argv && argv[i]; i++)
        str_appendf(&text, "[%s]", argv[i]);
    tap_is_str(text.data, expected, "%s", name);
    arena_done(&arena);
}

static void test_command(void)
{
    is_command(built_in("python"), STAGE_RUN, "[python3][-u][-B][/workspace/main.py][a][b c]",
               "python");
    is_command(built_in("node"), STAGE_RUN,
               "[node][--max-old-space-size=256][/workspace/main.js][a][b c]",
               "node has the memory of its limit");
    is_command(built_in("bash"), STAGE_RUN, "[bash][/workspace/main.sh][a][b c]", "a shell");
    is_command(built_in("claude"), STAGE_RUN,
               "[claude][-p][--dangerously-skip-permissions][a][b c]", "an agent");
    struct runtime own = {
        .compile = {"cc", "-DX='y'", "{file}"}, .argv = {"/tmp/a b"}, .file_name = "m.c"};
    is_command(&own, STAGE_COMPILE, "[cc][-DX='y'][/workspace/m.c][-g]", "a compile stage");
    is_command(&own, STAGE_RUN, "[/tmp/a b][a][b c]", "and the run stage after it");
    is_command(built_in("c"), STAGE_COMPILE,
               "[gcc][-O2][-std=gnu17][-o][/tmp/program][/workspace/main.c]"
               "[/workspace/lib/more.c][-lm][-g]",
               "C compiles all sources");
}

static void test_available(void)
{
    char reason[RUNTIME_REASON_MAX];
    tap_ok(runtime_is_available(built_in("bash"), reason), "every system has a shell");
    struct runtime runtime = {.argv = {"no-such"}, .package = "pack", .origin = "x:1"};
    tap_ok(!runtime_is_available(&runtime, reason), "but not everything");
    tap_has_str(reason, "'no-such' is not in /usr/bin:/bin:/usr/local/bin: install pack",
                "which is said with the remedy");
    runtime = *built_in("bash");
    runtime.disabled = true;
    tap_ok(!runtime_is_available(&runtime, reason), "nor what is disabled");
    runtime = *built_in("bash");
    runtime.root = "/no/such/root";
    tap_ok(!runtime_is_available(&runtime, reason), "nor what has no root");
    tap_has_str(reason, "'/no/such/root' cannot be opened", "which is named");
    runtime.root = "/usr";
    tap_ok(!runtime_is_available(&runtime, reason), "nor one with nothing to mount on");
    tap_has_str(reason, "mkdir -p '/usr/workspace'", "with the remedy");
}

static void test_variables(void)
{
    static const char *const good[] = {"A", "_x", "GREETING", "PATHS", "HOMEPAGE", "DEBUG"};
    static const char *const bad[] = {"",
                                      "1A",
                                      "A B",
                                      "A=B",
                                      "LD_PRELOAD",
                                      "PATH",
                                      "HOME",
                                      "PYTHONPATH",
                                      "NODE_OPTIONS",
                                      "BASH_ENV",
                                      "ENV",
                                      "PERL5OPT",
                                      "RUBYOPT",
                                      "HTTPS_PROXY",
                                      "https_proxy",
                                      "ANTHROPIC_API_KEY",
                                      "CLAUDE_CONFIG_DIR"};
    for (size_t i = 0; i < ARRAY_LENGTH(good); i++)
        tap_ok(environment_takes(good[i]), "'%s' may come with a request", good[i]);
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++)
        tap_ok(!environment_takes(bad[i]), "'%s' may not", bad[i]);
}

static void test_allow(void)
{
    static const char *const good[] = {
        "example.com",  "*.example.com",     "a-b.example:8443", "xn--bcher-kva.example",
        "example.com.", "*.example.com.:80", "a_b.example.com"};
    static const char *const bad[] = {"",
                                      "*",
                                      "host:22",
                                      "localhost",
                                      "127.0.0.1",
                                      "10.0.0.0/8",
                                      "[::1]:80",
                                      "0x7f.1",
                                      "2130706433",
                                      "@npm",
                                      "example.com:",
                                      "example.com:1x",
                                      "a.b:123456",
                                      "example.com..",
                                      ".",
                                      "a b.c",
                                      "127.1",
                                      "*.*.com",
                                      "example.com/tls"};
    for (size_t i = 0; i < ARRAY_LENGTH(good); i++)
        tap_ok(executor_allow_is_plain(good[i]), "'%s' is a name", good[i]);
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++)
        tap_ok(!executor_allow_is_plain(bad[i]), "'%s' is none", bad[i]);
}

static void test_glob(void)
{
    static const struct {
        const char *pattern, *path;
        bool matches;
    } rows[] = {
        {"*.txt", "a.txt", true},
        {"*.txt", "a/b.txt", false},
        {"**/*.txt", "a/b.txt", true},
        {"**/*.txt", "b.txt", true},
        {"**", "a/b/c", true},
        {"a/**", "a/b/c", true},
        {"a/**", "b/c", false},
        {"a/**/z", "a/z", true},
        {"a/**/z", "a/x/y/z", true},
        {"a/**/z", "a/x/y", false},
        {"a?c", "abc", true},
        {"a?c", "a/c", false},
        {"", "a", false},
        {"a", "a", true},
        {"a", "a/b", false},
        {"a/b", "a", false},
        {"*a*b*", "xxaxxbxx", true},
        {"*a*b*", "xxbxxaxx", false},
        {"**/**/x", "x", true},
        {"x/**", "x", true},
        {"*/x", "x", false},
        {"**/a/**/a/b", "a/a/a/b", true},
        {"[a-c]x", "bx", true},
        {"[a-c]x", "dx", false},
        {"[!a-c]x", "dx", true},
        {"[!a-c]x", "bx", false},
        {"*.[ch]", "a.h", true},
        {"*.[ch]", "a.o", false},
        {"[", "[", true},
        {"a[", "a[", true},
        {"[]]", "]", true},
        {"[-a]", "-", true},
        {"*[0-9]", "x7", true},
        {"[!]]", "]", false},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        tap_ok(executor_glob_matches(rows[i].pattern, rows[i].path) == rows[i].matches,
               "'%s' %s '%s'", rows[i].pattern, rows[i].matches ? "matches" : "does not match",
               rows[i].path);
    char pattern[256], path[256];
    for (size_t i = 0; i < 254; i++) {
        pattern[i] = "*a"[i % 2];
        path[i] = 'a';
    }
    pattern[254] = 'b';
    path[254] = pattern[255] = path[255] = '\0';
    tap_ok(!executor_glob_matches(pattern, path), "many stars take no longer");
}

static void test_refused(void)
{
    static const char *const bad[] = {"/",         "/etc",
                                      "/etc/x",    "/var/lib",
                                      "/root",     "/home/u/.ssh",
                                      "/a/.aws/b", "/a/.gnupg",
                                      "/.claude",  "/home/u/.claude/projects",
                                      "/proc/self"};
    static const char *const good[] = {"/srv/work", "/home/u/project", "/a/.sshd",
                                       "/a/ssh",    "/varnish",        "/a/.claude-notes"};
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++)
        tap_ok(executor_workdir_is_refused(bad[i]), "'%s' is never given away", bad[i]);
    for (size_t i = 0; i < ARRAY_LENGTH(good); i++)
        tap_ok(!executor_workdir_is_refused(good[i]), "'%s' may be", good[i]);
}

static void opens(const char *path, const struct config_list *roots, const char *message,
                  const char *name)
{
    struct brig_error err = {0};
    autoclose int fd = -1;
    int result = executor_open_workdir(path, roots, &fd, &err);
    if (!message) {
        tap_ok(result == 0 && fd >= 0, "%s", name);
        return;
    }
    tap_ok(result < 0 && fd < 0, "%s", name);
    tap_has_str(err.message, message, "with the reason");
}

static void test_workdir(void)
{
    char top[] = "/tmp/brig-workdir-XXXXXX", path[128], target[128];
    if (!mkdtemp(top))
        tap_bail("mkdtemp");
    static const char *const dirs[] = {"in",           "in/deep", "in/home",
                                       "in/home/.ssh", "out",     "in/.aws"};
    for (size_t i = 0; i < ARRAY_LENGTH(dirs); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", top, dirs[i]);
        (void)mkdir(path, 0700);
    }
    (void)snprintf(path, sizeof path, "%s/in/to-out", top);
    (void)snprintf(target, sizeof target, "%s/out", top);
    (void)!symlink(target, path);
    (void)snprintf(path, sizeof path, "%s/in/to-deep", top);
    (void)!symlink("deep", path);
    (void)snprintf(path, sizeof path, "%s/in/to-etc", top);
    (void)!symlink("../../../etc", path);
    char root[128];
    (void)snprintf(root, sizeof root, "%s/in", top);
    struct config_list none = {0}, roots = {.items = {root}, .count = 1};
    const struct {
        const char *name, *message, *what;
    } rows[] = {
        {"in/deep", NULL, "a directory below a root is opened"},
        {"in/to-deep", NULL, "so is one through a link that stays below"},
        {"out", "is not below", "one beside it is not"},
        {"in/../out", "work_dir", "nor by way of its parent"},
        {"in/to-out", "cannot be opened below", "nor by a link"},
        {"in/to-etc", "cannot be opened below", "wherever it leads"},
        {"in/home", "has .ssh in it", "nor somebody's home"},
        {"in/home/.ssh", "never given", "nor what is in it"},
        {"in/.aws", "never given", "nor other credentials"},
        {"in/missing", "cannot be opened below", "nor what is not there"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", top, rows[i].name);
        opens(path, &roots, rows[i].message, rows[i].what);
    }
    (void)snprintf(path, sizeof path, "%s/in/deep", top);
    opens(path, &none, "there is none", "and without roots there is nothing");
    opens("relative", &roots, "work_dir", "a relative one is none");
    static const char *const all[] = {"in/to-out",    "in/to-deep", "in/to-etc", "in/.aws",
                                      "in/home/.ssh", "in/home",    "in/deep",   "in",
                                      "out",          "."};
    for (size_t i = 0; i < ARRAY_LENGTH(all); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", top, all[i]);
        if (unlink(path) < 0)
            (void)rmdir(i + 1 == ARRAY_LENGTH(all) ? top : path);
    }
}

int main(void)
{
    test_command();
    test_available();
    test_variables();
    test_allow();
    test_glob();
    test_refused();
    test_workdir();
    return tap_done();
}
