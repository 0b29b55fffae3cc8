/* SPDX-License-Identifier: MIT */
/* Files that are held back: what they keep, where the record or the storage is of no use, and kills at each system call. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/process.h"
#include "base/str.h"
#include "changes/end.h"
#include "changes/operation/collect.h"
#include "changes/operation/hold.h"
#include "changes/operation/operation.h"
#include "held/held.h"
#include "held/names.h"
#include "kill_support.h"
#include "tap.h"

/* ---- a filesystem that cannot rename without replacing, if `plain` is set ---- */

static bool plain;

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    if (plain && flags) {
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}

/* ---- a project and a record ---- */

static char place[] = "/dev/shm/brig-hold-XXXXXX"; /* in memory, for speed */
static char project[64];                           /* elsewhere for the test with two filesystems */
static int record = -1;
static struct held_root root = {.top = -1};
static struct str notes, where; /* a line for `about` of an earlier version */

/* Runs a shell script in the temporary directory. */
static int shell_status(const char *script)
{
    pid_t pid = fork();
    if (pid == 0) {
        if (chdir(place) == 0 && setenv("P", project, 1) == 0 && setenv("W", place, 1) == 0 &&
            setenv("WHERE", where.data ? where.data : "", 1) == 0)
            (void)execl("/bin/sh", "sh", "-ec", script, (char *)NULL);
        _exit(127);
    }
    return process_wait(pid);
}

static void shell(const char *script)
{
    if (shell_status(script) != 0)
        tap_bail("failed: %s", script);
}

/* A new, empty project and storage: the run begins. */
static void begin(void)
{
    char path[128];
    struct brig_error err = {0};
    close_fd(&record);
    held_root_done(&root);
    plain = false;
    shell("chmod -R u+rwX \"$P\" before after 2>/dev/null || :; rm -rf \"$P\" x.* before after "
          "other; mkdir "
          "\"$P\" x.record");
    (void)snprintf(path, sizeof path, "%s/x.record", place);
    record = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autoclose int top = open(project, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (record < 0 || held_look(top, project, &root, &err) < 0)
        tap_bail("cannot begin: %s", err.message);
}

/* The run ends. */
static void take(void)
{
    static const struct held_rules rules;
    const struct held_keeper keeper = {hold_name, record};
    str_done(&notes);
    (void)held_take(&root, &keeper, &rules, &notes);
}

static bool has_note(const char *text)
{
    return notes.data && strstr(notes.data, text);
}

static struct hold_list list;

static size_t count(void)
{
    struct brig_error err = {0};
    hold_list_done(&list);
    if (holds_settle(record, &err) < 0)
        tap_diag("settle: %s", err.message);
    if (holds_list(record, &list, &err) < 0)
        tap_diag("list: %s", err.message);
    return list.count;
}

static const struct hold *find(const char *path)
{
    const struct hold *found = NULL;
    for (size_t i = 0; i < list.count; i++)
        if (strcmp(list.items[i].path, path) == 0 && (!found || found->id < list.items[i].id))
            found = &list.items[i];
    return found;
}

static int keep(const char *path, const char *to, struct brig_error *err)
{
    (void)count();
    const struct hold *hold = find(path);
    *err = (struct brig_error){0};
    return hold ? hold_keep(record, hold, to, err) : BRIG_E_NOT_FOUND;
}

static void keep_all(void)
{
    struct brig_error err;
    char path[64];
    while (count() > 0) {
        (void)snprintf(path, sizeof path, "%s", list.items[0].path);
        if (keep(path, NULL, &err) < 0)
            tap_bail("keep %s: %s", path, err.message);
    }
}

/* ---- what survives ---- */

/* Every name with its mode, time, target, attributes and contents. A test as an ordinary user cannot look into all. */
#define LISTING(dir)                                                                               \
    "(cd " dir "; find . -mindepth 1 ! -type d -printf '%P %y %m %T@ %l %n\\n' | sort; "           \
    "find . -mindepth 1 -type d -printf '%P %y %m %T@\\n' | sort; "                                \
    "find . -type f -exec sha1sum {} + | sort)"

#define FILES                                                                                      \
    "cd \"$P\"; mkdir -p .vscode/d/e .vscode/shut .idea; echo tasks >.vscode/tasks.json; "         \
    "echo b >.vscode/d/e/b; ln -s ../.. .vscode/d/up; ln -s /etc .mcp.json; chmod 600 "            \
    ".vscode/d/e/b; "                                                                              \
    "echo x >.envrc; chmod 755 .envrc; truncate -s 3M .vscode/hole; echo x >.vscode/shut/x; "      \
    "touch -d '2001-02-03 04:05:06.789' .envrc .vscode/d/e/b; touch -h -d 2002-02-03 .mcp.json; "  \
    "chmod 2750 .vscode/d/e; chmod 500 .vscode/d; touch -d 2003-03-03 .vscode/shut .vscode/d "     \
    ".vscode; chmod 700 .idea"

static const char *const with_attributes[] = {".envrc", ".vscode/d", ".vscode/d/e/b"};

/* Sets them, or returns how many are there. */
static int attributes(bool set)
{
    char path[128], value[8];
    int found = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(with_attributes); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", project, with_attributes[i]);
        if (set)
            (void)setxattr(path, "user.test", "value", 5, 0);
        found += getxattr(path, "user.test", value, sizeof value) == 5;
    }
    return found;
}

static void keeps_attributes(const char *sentence)
{
    begin();
    shell(FILES);
    int marked = attributes(true); /* none on some filesystems */
    shell("touch -d 2003-03-03 \"$P/.vscode/d\"");
    shell(LISTING("\"$P\"") " >before; chmod 000 \"$P/.vscode/shut\"");
    take();
    tap_ok(shell_status("ls -A \"$P\" | grep -q . && exit 1 || exit 0") == 0,
           "%s: all is held back", sentence);
    tap_is_int((int)count(), 4, "four names");
    const struct hold *hold = find(".vscode");
    tap_ok(hold && S_ISDIR(hold->mode) && hold->files == 5 &&
               hold->bytes == 6 + 2 + 2 + 3 * 1024 * 1024,
           "with the files of a directory");
    keep_all();
    tap_is_int(
        shell_status(
            "[ \"$(stat -c %a \"$P/.vscode/shut\")\" = 0 ] && chmod 755 \"$P/.vscode/shut\""),
        0, "a closed directory is closed again");
    tap_is_int(shell_status(LISTING("\"$P\"") " >after; diff before after >&2"), 0,
               "modes, times, attributes and contents are as before");
    tap_is_int(attributes(false), marked, "with extended attributes");
    tap_is_int(shell_status("ls -A \"$P\" | grep brig && exit 1 || exit 0"), 0,
               "nothing else is there");
}

/* ---- parents ---- */

static void meets_links(void)
{
    struct brig_error err;
    begin();
    shell("cd \"$P\"; mkdir real; echo x >real/settings.json; ln -s real .claude; mkdir .jj other; "
          "ln -s ../other .jj/repo; echo x >other/config.toml");
    take();
    tap_is_int(shell_status("cd \"$P\"; [ ! -L .claude ] && [ ! -L .jj/repo ] && [ ! -e .jj ] && [ "
                            "-e real/settings.json ]"),
               0, "a link above a name is held back, and not what it leads to");
    (void)count();
    tap_ok(find(".claude") && S_ISLNK(find(".claude")->mode), "as a link");
    begin();
    shell("cd \"$P\"; mkdir .claude; echo x >.claude/settings.json");
    take();
    shell("cd \"$P\"; rmdir .claude; mkdir ../other; ln -s ../other .claude");
    tap_is_int(keep(".claude/settings.json", NULL, &err), BRIG_E_SYSTEM,
               "keep does not follow a link above the name");
    tap_is_int(shell_status("[ ! -e other/settings.json ]"), 0, "nothing is written through it");
    shell("rm \"$P/.claude\"");
    tap_is_int(keep(".claude/settings.json", NULL, &err), 0, "without it keep makes the directory");
    tap_is_int(shell_status("[ -e \"$P/.claude/settings.json\" ]"), 0, "and the file is there");
}

static void meets_other_projects(void)
{
    struct brig_error err;
    begin();
    shell("echo x >\"$P/.envrc\"");
    take();
    shell("mv \"$P\" other; ln -s other \"$P\"");
    tap_is_int(keep(".envrc", NULL, &err), BRIG_E_STATE,
               "keep does not follow a link to the project");
    shell("rm \"$P\"; mkdir \"$P\"");
    tap_is_int(keep(".envrc", NULL, &err), BRIG_E_STATE, "nor takes another directory for it");
    tap_ok(strstr(err.message, "brig keep --to"), "and says what to do");
    char other[64];
    (void)snprintf(other, sizeof other, "%s/other", place);
    tap_is_int(keep(".envrc", other, &err), 0, "but takes one that is named");
    tap_is_int(shell_status("[ -e other/.envrc ] && [ ! -e \"$P/.envrc\" ]"), 0,
               "and writes there");
    begin();
    shell("echo x >\"$P/.envrc\"");
    take();
    shell("echo mine >\"$P/.envrc\"");
    tap_is_int(keep(".envrc", NULL, &err), BRIG_E_INVALID, "a file of this name stays");
    tap_is_int(shell_status("[ \"$(cat \"$P/.envrc\")\" = mine ]"), 0, "as it is");
}

/* ---- the record and the storage ---- */

static void meets_other_operations(void)
{
    struct brig_error err;
    begin();
    shell("mkdir -p x.record/operations/7/objects; cd x.record/operations/7; touch journal ready; "
          "printf 'version 1\\nkind apply\\ntime 1\\n' >info; echo x >\"$P/.envrc\"");
    tap_is_int((int)operation_interrupted(record), 7, "an operation was interrupted");
    autoclose int lock = record_lock(record, &err);
    take();
    tap_ok(lock >= 0 && has_note("held back: .envrc"),
           "and another one goes on: a file is held back");
    close_fd(&lock);
    tap_is_int((int)count(), 1, "it is listed");
    tap_is_int(keep(".envrc", NULL, &err), BRIG_E_STATE, "keep waits for the interrupted one");
    tap_ok(strstr(err.message, "operation 7 was interrupted"), "and names it");
    shell("rm -r x.record/operations/7");
    tap_is_int(keep(".envrc", NULL, &err), 0, "then it works");
}

static void collects(void)
{
    struct collected collected;
    begin();
    shell("echo x >\"$P/.envrc\"; echo x >\"$P/.mcp.json\"");
    take();
    tap_is_int(collect_operations(record, INT64_MAX, false, &collected, NULL), 0, "gc");
    tap_is_int((int)collected.operations, 0, "leaves what nobody has decided about");
    (void)count();
    tap_is_int(hold_discard(record, find(".mcp.json"), NULL), 0, "one is discarded");
    keep_all();
    tap_is_int(collect_operations(record, INT64_MAX, false, &collected, NULL), 0, "gc");
    tap_is_int((int)collected.operations, 3, "removes what was kept or discarded");
}

/* With another limit: of bytes, or of files. */
static void meets_full_storage(const char *options, const char *fill, bool begun,
                               const char *sentence)
{
    struct brig_error err;
    if (geteuid() != 0) {
        tap_skip("only root can mount", "%s", sentence);
        return;
    }
    begin();
    pid_t pid = fork();
    if (pid == 0) {
        char path[128];
        (void)snprintf(path, sizeof path, "%s/x.record", place);
        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("tmpfs", path, "tmpfs", 0, options) < 0)
            _exit(5);
        (void)close(record);
        record = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        shell(fill);
        shell("head -c 200000 /dev/urandom >\"$P/.envrc\"; cp \"$P/.envrc\" other");
        take();
        if (shell_status("[ ! -e \"$P/.envrc\" ] && cmp \"$P\"/.envrc.held-* other") != 0)
            _exit(1);
        if (!has_note(begun ? "The next run, or brig held, stores it" : "Remove it"))
            _exit(2);
        if (count() != 0)
            _exit(3);
        shell("rm -rf x.record/fill*");
        if (begun &&
            (count() != 1 || shell_status("[ -z \"$(ls -A \"$P\")\" ]") != 0 ||
             keep(".envrc", NULL, &err) < 0 || shell_status("cmp \"$P/.envrc\" other") != 0))
            _exit(4);
        _exit(0);
    }
    tap_is_int(process_wait(pid), 0, "%s", sentence);
}

/* ---- kills ---- */

#define SMALL                                                                                      \
    "cd \"$P\"; mkdir -p .vscode/d; echo t >.vscode/t; echo u >.vscode/d/u; chmod 500 .vscode/d; " \
    "ln -s a .mcp.json; echo x >.envrc; chmod 700 .envrc; rm -rf \"$W/before\"; cp -a . "          \
    "\"$W/before\""

/* Nothing is under a name that is executed, each is there once, and keep brings all back. */
static bool is_complete(void)
{
    take(); /* by the next run */
    if (shell_status("[ -z \"$(ls -A \"$P\" | grep -v '\\.held-')\" ]") != 0)
        return false;
    if (count() != 3 || shell_status("[ -z \"$(ls -A \"$P\")\" ]") != 0)
        return false;
    keep_all();
    return shell_status(LISTING("\"$P\"") " >one; " LISTING("before") " >two; diff one two >&2") ==
           0;
}

static void kills(const char *sentence, void (*prepare)(void), void (*act)(void),
                  bool (*check)(void))
{
    int bad = 0, killed = 0, rounds = tap_rounds(10, 100000);
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
    tap_is_int(bad, 0, "nothing is lost, and nothing is left that would be executed");
}

static void prepare_take(void)
{
    begin();
    shell(SMALL);
}

static void prepare_keep(void)
{
    prepare_take();
    take();
}

static void keep_one(void)
{
    struct brig_error err;
    if (keep(".vscode", NULL, &err) < 0)
        tap_bail("keep: %s", err.message);
}

/* An interrupted keep is reverted or completed, as an undo is. */
static bool is_kept_or_held(void)
{
    struct brig_error err = {0};
    uint64_t id;
    if (operation_recover(NULL, record, NULL, getpid() % 2, NULL, NULL, &id, &err) < 0) {
        tap_diag("recover: %s", err.message);
        return false;
    }
    keep_all();
    return shell_status(LISTING("\"$P\"") " >one; " LISTING("before") " >two; diff one two >&2") ==
           0;
}

static void discard_one(void)
{
    (void)count();
    if (!find(".vscode") || hold_discard(record, find(".vscode"), NULL) < 0)
        tap_bail("discard");
}

/* It is held as a whole or not at all. */
static bool is_whole(void)
{
    if (count() == 2)
        return !find(".vscode");
    keep_all();
    return shell_status(LISTING("\"$P\"") " >one; " LISTING("before") " >two; diff one two >&2") ==
           0;
}

/* ---- the store of earlier versions ---- */

#define OLD                                                                                        \
    "mkdir -p x.held/1 x.held/2/content/d x.held/3 x.held/10; cd x.held; echo x >1/content; "      \
    "chmod 755 1/content; echo t >2/content/t; echo u >2/content/d/u; echo part >3/content; "      \
    "ln -s a 10/content; "                                                                         \
    "about() { printf '%s|%s|%s|%s|%s|' \"$P\" \"$@\" | tr '|' '\\0'; }; "                         \
    "about .envrc direnv 0 '' >1/about; touch -d 2020-01-01 1/about; "                             \
    "about .vscode 'Visual Studio Code' 2 \"$WHERE\" >2/about; "                                   \
    "about .mcp.json 'agents that use MCP' 0 '' >10/about"

static void prepare_old(void)
{
    struct place at;
    begin();
    str_done(&where);
    if (place_of(root.top, &at, NULL) == 0)
        place_add(&where, &at);
    shell(OLD);
    shell("rm -rf before; mkdir before; cp -a x.held/1/content before/.envrc; cp -a "
          "x.held/2/content before/.vscode; "
          "cp -a x.held/10/content before/.mcp.json");
}

static void convert(void)
{
    (void)count();
}

static bool is_converted(void)
{
    if (count() != 3 || shell_status("[ ! -e x.held ]") != 0)
        return false;
    const struct hold *old = find(".envrc"), *directory = find(".vscode");
    bool good = old && directory && directory->special == 2 && directory->files == 2 &&
                directory->place.inode && !old->place.inode &&
                strcmp(directory->program, "Visual Studio Code") == 0 &&
                strcmp(old->project, project) == 0;
    keep_all();
    return good &&
           shell_status(LISTING("\"$P\"") " >one; " LISTING("before") " >two; diff one two >&2") ==
               0;
}

int main(void)
{
    if (!mkdtemp(place) || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        tap_bail("cannot make '%s'", place);
    (void)snprintf(project, sizeof project, "%s/project", place);
    keeps_attributes("on one filesystem");
    plain = true;
    begin();
    shell(SMALL);
    plain = true;
    tap_ok(is_complete(), "without RENAME_NOREPLACE it is the same");
    meets_links();
    meets_other_projects();
    meets_other_operations();
    collects();
    meets_full_storage("size=1m", "head -c 900K /dev/zero >x.record/fill", true,
                       "a full storage: stored when there is space");
    meets_full_storage("nr_inodes=4",
                       "touch x.record/fill1 x.record/fill2 x.record/fill3 2>/dev/null || :", false,
                       "a storage in which nothing can be created");
    kills("holding back", prepare_take, take, is_complete);
    kills("keep", prepare_keep, keep_one, is_kept_or_held);
    kills("discard", prepare_keep, discard_one, is_whole);
    prepare_old();
    tap_ok(is_converted(), "what an earlier version has held back is converted");
    kills("a conversion", prepare_old, convert, is_converted);
    struct stat here, far;
    (void)snprintf(project, sizeof project, "/tmp/brig-hold-%d", getpid());
    if (stat(place, &here) == 0 && stat("/tmp", &far) == 0 && here.st_dev != far.st_dev) {
        keeps_attributes("on two filesystems");
        kills("keep on two filesystems", prepare_keep, keep_one, is_kept_or_held);
    }
    shell("chmod -R u+rwX . \"$P\"; rm -rf \"$P\"");
    (void)snprintf(project, sizeof project, "%s", place);
    shell("rm -rf \"$P\"");
    return tap_done();
}
