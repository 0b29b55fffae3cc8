/* SPDX-License-Identifier: MIT */
/* Why user namespaces are refused, and what brig setup does about it, with directories that stand for /proc, /etc and
 * /var of other systems, such as Ubuntu's. */
#include "cli/verbs/allow_userns.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/path.h"
#include "base/str.h"
#include "base/tree.h"
#include "jail/probe/userns.h"
#include "tap.h"

#define MAX "/proc/sys/user/max_user_namespaces"
#define CLONE "/proc/sys/kernel/unprivileged_userns_clone"
#define APPARMOR "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
#define LABEL "/proc/self/attr/apparmor/current"
#define RECORD "/var/lib/brig/setup"

static char base[] = "/var/tmp/brig-userns-test.XXXXXX";
static char root[PATH_MAX], program[PATH_MAX], parser[PATH_MAX];
static unsigned systems;

static const char *path_in(const char *path)
{
    static char full[PATH_MAX];
    (void)str_fill(full, sizeof full, root, path);
    return full;
}

static void put_at(const char *path, const char *text, mode_t mode)
{
    if (path_make_directories(path, (size_t)(strrchr(path, '/') - path), 0755, NULL) < 0)
        tap_bail("cannot make the directory of a file");
    autoclose int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    if (fd < 0 || write_all(fd, text, strlen(text)) < 0)
        tap_bail("cannot write a file");
}

static void put(const char *path, const char *text)
{
    put_at(path_in(path), text, 0644);
}

static char *get(const char *path)
{
    bool whole;
    return proc_read(path_in(path), 65536, &whole);
}

static bool has_file(const char *path)
{
    return access(path_in(path), F_OK) == 0;
}

/* A new system, on which nothing refuses user namespaces, with AppArmor 4. */
static void begin_system(void)
{
    (void)snprintf(root, sizeof root, "%s/%u", base, ++systems);
    put(MAX, "127000\n");
    put(CLONE, "1\n");
    put("/proc/1/comm", "systemd\n");
    put("/proc/self/status", "Name:\tbrig\nSeccomp:\t0\n");
    put("/etc/apparmor.d/abi/4.0", "query {label {}}\n");
}

/* Ubuntu 24.04 as it is installed. */
static void begin_ubuntu(void)
{
    begin_system();
    put(APPARMOR, "1\n");
    put(LABEL, "unconfined\n");
}

/* ---- why ---- */

static const char *setting_of(bool is_root)
{
    return userns_find_gate(root, is_root)->setting;
}

static void test_settings(void)
{
    begin_system();
    tap_is_str(setting_of(false), NULL, "a system that allows them has no such setting");
    put(CLONE, "0\n");
    tap_is_str(setting_of(false), "kernel.unprivileged_userns_clone", "Debian's sysctl is found");
    tap_is_str(setting_of(true), NULL, "it does not concern root");
    put(MAX, "0\n");
    tap_is_str(setting_of(false), "user.max_user_namespaces", "the kernel's sysctl comes first");
    tap_is_str(setting_of(true), "user.max_user_namespaces", "it concerns root, too");
}

static void test_ubuntu(void)
{
    begin_ubuntu();
    tap_is_str(setting_of(false), "kernel.apparmor_restrict_unprivileged_userns",
               "Ubuntu's restriction is found");
    tap_is_str(setting_of(true), NULL, "it does not concern root");
    put(LABEL, "brig (unconfined)\n");
    tap_is_str(setting_of(false), NULL, "nor a program with a profile");
    (void)unlink(path_in(LABEL));
    put("/proc/self/attr/current", "brig (unconfined)\n");
    tap_is_str(setting_of(false), NULL, "nor where only the older name has the label");
    put(APPARMOR, "0\n");
    put("/proc/self/attr/current", "unconfined\n");
    tap_is_str(setting_of(false), NULL, "nor anybody where it is switched off");
}

static void test_others(void)
{
    begin_system();
    put(LABEL, "docker-default (enforce)\n");
    tap_has_str(userns_find_gate(root, false)->fix, "apparmor=unconfined",
                "the profile of a container is named");
    put("/proc/self/status", "Name:\tbrig\nSeccomp:\t2\n");
    tap_has_str(userns_find_gate(root, false)->fix, "seccomp=unconfined",
                "a syscall filter comes before it");
    put("/proc/1/comm", "brig-init\n");
    tap_is_str(userns_find_gate(root, false)->detail, "inside a jail", "and a jail before both");
}

/* ---- setup ---- */

static struct str out;

static int apply(bool dry_run, struct brig_error *err)
{
    str_done(&out);
    out = (struct str){0};
    *err = (struct brig_error){0};
    return allow_userns_apply(
        &(struct allow_userns){
            .root = root, .program = program, .parser = parser, .dry_run = dry_run, .out = &out},
        err);
}

static int revert(struct brig_error *err)
{
    str_done(&out);
    out = (struct str){0};
    *err = (struct brig_error){0};
    return allow_userns_revert(
        &(struct allow_userns){.root = root, .program = program, .parser = parser, .out = &out},
        err);
}

static void is_text(const char *path, const char *wanted, const char *sentence)
{
    autofree char *text = get(path);
    tap_is_str(text, wanted, "%s", sentence);
}

static void has_text(const char *path, const char *part, const char *sentence)
{
    autofree char *text = get(path);
    tap_has_str(text, part, "%s", sentence);
}

static void test_nothing(void)
{
    struct brig_error err;
    begin_system();
    tap_is_int(apply(false, &err), 0, "where nothing refuses, nothing is changed");
    tap_ok(!has_file(RECORD), "and nothing is recorded");
    tap_is_int(revert(&err), BRIG_E_STATE, "then there is nothing to revert");
}

static void test_sysctl(void)
{
    struct brig_error err;
    const char *file = "/etc/sysctl.d/60-brig-kernel.unprivileged_userns_clone.conf";
    begin_system();
    put(CLONE, "0\n");
    put(MAX, "0\n");
    tap_is_int(apply(true, &err), 2, "a dry run names both settings");
    tap_has_str(out.data, "set user.max_user_namespaces from 0 to 65536", "with their values");
    tap_has_str(out.data, file, "and the files");
    is_text(MAX, "0\n", "it changes no setting");
    tap_ok(!has_file(file) && !has_file(RECORD), "and writes no file");
    tap_is_int(apply(false, &err), 2, "both settings are changed");
    is_text(MAX, "65536", "now");
    is_text(CLONE, "1", "both of them");
    has_text(file, "\nkernel.unprivileged_userns_clone = 1\n", "and at each boot");
    tap_is_int(apply(false, &err), 0, "a second time nothing is left to do");
    tap_is_int(revert(&err), 0, "it is reverted");
    is_text(MAX, "0", "one value is what it was");
    is_text(CLONE, "0", "and the other");
    tap_ok(!has_file(file) && !has_file(RECORD), "the files are gone");
}

static void test_profile(void)
{
    struct brig_error err;
    autostr struct str line = {0};
    begin_ubuntu();
    tap_is_int(apply(false, &err), 1, "on Ubuntu a profile is written");
    str_appendf(&line, "\nprofile brig %s flags=(unconfined) {\n  userns,\n", program);
    has_text("/etc/apparmor.d/brig", line.data, "it allows this program to create namespaces");
    has_text("/etc/apparmor.d/brig", "\nabi <abi/4.0>,\n", "with the rules of AppArmor 4");
    has_text("/etc/apparmor.d/brigd", "\nprofile brigd ", "the server beside it has one, too");
    has_text("/loaded", "--replace", "they are loaded");
    tap_has_str(out.data, "\n      userns,\n", "brig says what it has written");
    is_text(APPARMOR, "1\n", "the restriction of other programs stays");
    tap_is_int(revert(&err), 0, "it is reverted");
    has_text("/loaded", "--remove", "the profiles are unloaded");
    tap_ok(!has_file("/etc/apparmor.d/brig") && !has_file("/etc/apparmor.d/brigd"), "and removed");
}

/* What others have written or changed is never lost. */
static void test_others_files(void)
{
    struct brig_error err;
    begin_ubuntu();
    put("/etc/apparmor.d/brig", "profile brig /opt/brig {}\n");
    tap_is_int(apply(false, &err), BRIG_E_STATE, "another profile of that name is not replaced");
    tap_has_str(err.message, "Move it away", "the message says what to do");
    is_text("/etc/apparmor.d/brig", "profile brig /opt/brig {}\n", "it is as it was");
    (void)unlink(path_in("/etc/apparmor.d/brig"));
    tap_is_int(apply(false, &err), 1, "without it setup works");
    put("/etc/apparmor.d/brig", "changed\n");
    tap_is_int(revert(&err), 0, "a revert works after a file was changed");
    tap_has_str(out.data, "leave /etc/apparmor.d/brig: it was changed", "which it leaves alone");
    is_text("/etc/apparmor.d/brig", "changed\n", "as it is");

    begin_ubuntu();
    tap_is_int(apply(false, &err), 1, "a profile is written");
    (void)unlink(path_in(RECORD));
    tap_is_int(apply(false, &err), 1, "one that a package has brought is loaded");
    tap_ok(!has_file(RECORD), "and not recorded: a revert would not remove it");
}

static void test_failures(void)
{
    struct brig_error err;
    char plain[PATH_MAX];
    begin_ubuntu();
    (void)unlink(path_in("/etc/apparmor.d/abi/4.0"));
    tap_is_int(apply(false, &err), BRIG_E_UNSUPPORTED, "AppArmor 3 is not enough");
    tap_has_str(err.message, "abi/4.0 is missing", "the message says what is missing");
    begin_ubuntu();
    put("/fail", "");
    tap_is_int(apply(false, &err), BRIG_E_SYSTEM, "a parser that fails is an error");
    tap_has_str(err.message, "--replace", "which names the command");
    (void)unlink(path_in("/fail"));
    tap_is_int(revert(&err), 0, "what was done until then can be reverted");
    tap_ok(!has_file("/etc/apparmor.d/brig"), "no file is left");
    memcpy(plain, program, sizeof plain);
    (void)str_fill(program, sizeof program, "/opt/a{b}/brig");
    tap_is_int(apply(false, &err), BRIG_E_INVALID, "a path with characters of rules is refused");
    memcpy(program, plain, sizeof plain);
}

static void is_command(const char *path, const char *wanted)
{
    autostr struct str command = {0};
    allow_userns_command(path, &command);
    tap_is_str(command.data, wanted, "%s", wanted);
}

int main(void)
{
    char server[PATH_MAX];
    if (!mkdtemp(base))
        tap_bail("mkdtemp failed");
    (void)str_fill(program, sizeof program, base, "/bin/brig");
    (void)str_fill(server, sizeof server, base, "/bin/brigd");
    (void)str_fill(parser, sizeof parser, base, "/parser");
    put_at(program, "", 0755);
    put_at(server, "", 0755);
    /* It says what it was called with in the root of its file, and fails if it is told to. */
    put_at(
        parser,
        "#!/bin/sh\nroot=${2%/etc/*}\necho \"$1\" >> \"$root/loaded\"\ntest ! -e \"$root/fail\"\n",
        0755);
    test_settings();
    test_ubuntu();
    test_others();
    test_nothing();
    test_sysctl();
    test_profile();
    test_others_files();
    test_failures();
    is_command("/usr/bin/brig", "sudo brig setup");
    is_command("/home/me/a b/brig", "sudo '/home/me/a b/brig' setup");
    str_done(&out);
    tap_ok(tree_remove(AT_FDCWD, base, NULL) == 0, "the directory is removed");
    return tap_done();
}
