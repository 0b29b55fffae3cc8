/* SPDX-License-Identifier: MIT */
/* The files of the configuration that brig writes and the scripts it puts together. */
#include "cli/settings/config.h"

#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/str.h"
#include "cli/identity.h"
#include "cli/out_path.h"
#include "cli/report.h"
#include "cli/settings/options.h"
#include "cli/settings/script.h"
#include "cli/settings/settings.h"
#include "policy/policy.h"
#include "tap.h"

static char scratch[] = "/tmp/brig-test-config.XXXXXX";
static const struct identity self = {
    .host_uid = (uid_t)-1, .host_gid = (gid_t)-1, .name = (char[]){"u"}};

static const char *content(int dir_fd, const char *name)
{
    static char text[4096];
    autoclose int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    text[length > 0 ? length : 0] = '\0';
    return fd < 0 ? "none" : text;
}

static void put(const char *name, const char *text)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", scratch, name);
    autoclose int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    tap_ok(fd >= 0 && write_all(fd, text, strlen(text)) == 0, "%s is there", name);
}

static void test_writing(void)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/a/b/store", scratch);
    autoclose int fd = -1;
    tap_is_int(config_make_directory(path, &fd, NULL), 0, "a directory is made with its parents");
    struct stat info;
    tap_ok(stat(path, &info) == 0 && (info.st_mode & 0777) == 0700, "for its user alone");
    tap_is_int(config_write_jail(fd, "work", BRIG_MODE_BARE, false, NULL), 0,
               "a jail gets its file");
    tap_has_str(content(fd, "work.jail"), "\nmode bare\n", "which remembers the mode");
    tap_ok(fstatat(fd, "work.jail", &info, 0) == 0 && (info.st_mode & 0777) == 0600, "in private");
    tap_is_int(config_write_jail(fd, "work", BRIG_MODE_CASUAL, false, NULL), 0, "a second time");
    tap_has_str(content(fd, "work.jail"), "\nmode bare\n", "it is left as it is");
    tap_is_int(config_write_jail(fd, "default", BRIG_MODE_STRICT, false, NULL), 0,
               "the default jail");
    tap_has_str(content(fd, "default.jail"), "\n# mode casual\n", "leaves the mode to .conf files");
    tap_is_int(config_write_jail(fd, "p-1", BRIG_MODE_STRICT, true, NULL), 0, "that of a project");
    tap_has_str(content(fd, "p-1.jail"), "\n# mode casual\n", "does so too");
    tap_is_int(out_file_write(fd, "x", "1", 0600, false, NULL), 1, "a new file is told from");
    tap_is_int(out_file_write(fd, "x", "2", 0600, false, NULL), 0, "an old one");
    tap_is_str(content(fd, "x"), "1", "which is not replaced");
    tap_is_int(out_file_write(fd, "x", "3", 0600, true, NULL), 1, "unless that is wanted");
    tap_is_str(content(fd, "x"), "3", "and then it is");
    tap_is_int(out_file_write(-1, "x", "2", 0600, false, NULL), BRIG_E_SYSTEM,
               "and no place is an error");
}

static void test_masks(void)
{
    char home[256];
    (void)snprintf(home, sizeof home, "%s/home", scratch);
    struct brig_error err = {0};
    struct settings s;
    tap_is_int(mkdir(home, 0700), 0, "a home");
    put("here", "x");
    put("home/both", "x");
    put("both", "x");
    const struct {
        char *word;
        int status;
    } rows[] = {
        {(char[]){"--mask=here"}, BRIG_E_INVALID},
        {(char[]){"--mask=both"}, 0},
        {(char[]){"--mask=neither"}, 0},
        {(char[]){"--mask=her?"}, 0},
        {(char[]){"--unmask=here"}, BRIG_E_INVALID},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        char *argv[] = {(char[]){"brig"}, rows[i].word, NULL};
        err = (struct brig_error){0};
        if (settings_init(&s, BRIG_MODE_CASUAL, scratch, &err) < 0)
            continue;
        s.home = home;
        int status = settings_apply_all(&s, 2, argv, &err);
        tap_is_int(status < 0 ? status : config_check_masks(&s, &self, &err), rows[i].status,
                   "%s is %s", rows[i].word, rows[i].status ? "refused" : "taken");
        settings_done(&s);
    }
    tap_has_str(err.message, "write ./here", "with the way to say it");
}

static void test_scripts(void)
{
    struct settings s;
    struct brig_error err = {0};
    put("one", "echo one\n");
    put("two", "echo two");
    char *argv[] = {(char[]){"brig"}, (char[]){"--script=two"}, (char[]){"--script?=none"},
                    (char[]){"--script=one"}, NULL};
    const char *const words[] = {"ls", "-l", NULL};
    const char *const *all = NULL;
    if (settings_init(&s, BRIG_MODE_CASUAL, scratch, &err) < 0)
        return;
    tap_is_int(script_prepare(&s, &self, &err), 0, "without scripts");
    tap_ok(!s.script && !s.command, "there is nothing to read");
    tap_ok(script_words(&s, words, &all, &err) == 0 && strcmp(all[0], "ls") == 0 && !all[2],
           "and the command is run as it is");
    free((void *)(uintptr_t)take_ptr(&all));
    tap_is_int(settings_apply_all(&s, 4, argv, &err), 0, "scripts are taken");
    tap_is_int(brig_policy_unsetenv(s.policy, "*", &err), 0, "with an empty environment");
    tap_is_int(script_prepare(&s, &self, &err), 0, "and read");
    tap_has_str(s.script, "\necho two\necho one\n", "in their order");
    tap_is_int(s.script_length, strlen(s.script), "whole");
    tap_has_str(s.script, s.script_path, "they remove themselves");
    tap_is_str(s.policy->env[0].name, "BRIG_SCRIPT", "the variable is weaker than all rules");
    tap_ok(script_words(&s, words, &all, &err) == 0 && strcmp(all[1], "-c") == 0 &&
               strstr(all[2], s.script_path) && strcmp(all[3], "ls") == 0 && !all[5],
           "and a shell reads them");
    free((void *)(uintptr_t)take_ptr(&all));
    settings_done(&s);
    if (settings_init(&s, BRIG_MODE_CASUAL, scratch, &err) < 0)
        return;
    char *missing[] = {(char[]){"brig"}, (char[]){"--script=none"}, NULL};
    tap_is_int(settings_apply_all(&s, 2, missing, &err), 0, "a script that is missing");
    tap_ok(script_prepare(&s, &self, &err) < 0, "is an error");
    tap_has_str(err.message, "script (command line): ", "that says who wants it");
    settings_done(&s);
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *at)
{
    (void)info;
    (void)type;
    (void)at;
    return remove(path);
}

int main(void)
{
    if (!mkdtemp(scratch))
        return 1;
    test_writing();
    test_masks();
    test_scripts();
    (void)nftw(scratch, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    return tap_done();
}
