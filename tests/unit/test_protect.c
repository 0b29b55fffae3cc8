/* SPDX-License-Identifier: MIT */
/* Protected paths: which rules they become, and the placeholders of what is missing. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "cli/gitfile.h"
#include "cli/gitindex.h"
#include "cli/identity.h"
#include "cli/message.h"
#include "cli/placeholder.h"
#include "cli/placeholder_journal.h"
#include "cli/protect.h"
#include "cli/settings.h"
#include "cli/worktree.h"
#include "policy/policy.h"
#include "tap.h"

static char scratch[] = "/tmp/brig-protect.XXXXXX";

static bool exists(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0;
}

/* What is in the journal, up to its end. */
static size_t journal_size(void)
{
    autoclose int fd = open("journal/placeholders", O_RDONLY | O_CLOEXEC);
    size_t length = 0;
    autofree char *text = fd < 0 ? NULL : journal_read(fd, &length);
    return text ? length : 0;
}

/* ---- placeholders ---- */

static void begin(struct placeholders *placeholders)
{
    autoclose int journal = open("journal", O_PATH | O_DIRECTORY | O_CLOEXEC);
    placeholders_begin(placeholders, journal);
}

static int hold(struct placeholders *placeholders, const char *name, enum placeholder_kind kind)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/held", scratch);
    autoclose int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    size_t count = placeholders->count;
    if (placeholders_want(placeholders, dir, path, name, kind, NULL) < 0 ||
        placeholders_make(placeholders, NULL) < 0)
        return -1;
    return placeholders->count > count &&
           placeholders->items[count].state != PLACEHOLDER_IMPOSSIBLE;
}

static void test_placeholders(void)
{
    struct placeholders first, second;
    begin(&first);
    tap_ok(hold(&first, "d", PLACEHOLDER_DIRECTORY) == 1 && exists("held/d") &&
               hold(&first, "f", PLACEHOLDER_FILE) == 1 && exists("held/f") &&
               hold(&first, "s", PLACEHOLDER_SELF) == 1 && exists("held/s"),
           "what is missing is made");
    tap_ok(journal_size() > 0, "and written down");
    begin(&second);
    tap_ok(exists("held/d") && exists("held/f"), "a second run leaves it in place");
    tap_is_int(hold(&second, "d", PLACEHOLDER_DIRECTORY), 1, "and shares it");
    placeholders_done(&first);
    tap_ok(exists("held/d") && !exists("held/f") && !exists("held/s"),
           "when the first ends, what only it held is gone");
    placeholders_done(&second);
    tap_ok(!exists("held/d") && journal_size() == 0, "and the rest when the last ends");
}

/* What takes long about removing can be left to somebody else. */
static void test_removed(void)
{
    struct placeholders first, second;
    struct stat info;
    begin(&first);
    begin(&second);
    (void)hold(&first, "d", PLACEHOLDER_DIRECTORY);
    (void)hold(&first, "e", PLACEHOLDER_DIRECTORY);
    (void)hold(&second, "e", PLACEHOLDER_DIRECTORY);
    placeholders_remove(&first);
    tap_ok(!exists("held/d") && exists("held/e"), "names are gone before they are let go of");
    tap_is_int((int)first.removed_count, 1, "of what is gone an fd is left, of what stays none");
    tap_ok(first.removed_count == 1 && fstat(first.removed[0], &info) == 0 && info.st_nlink == 0,
           "it is that of the removed directory");
    int fd = first.removed_count == 1 ? first.removed[0] : -1;
    placeholders_remove(&first);
    tap_is_int((int)first.removed_count, 1, "removing again changes nothing");
    placeholders_done(&first);
    tap_ok(fcntl(fd, F_GETFD) < 0 && errno == EBADF, "who is not left them closes them");
    placeholders_done(&second);
    tap_ok(!exists("held/e"), "the last of two runs removes what both held");
    placeholders_begin(&first, -1); /* its journal is in memory: on another filesystem */
    (void)hold(&first, "d", PLACEHOLDER_DIRECTORY);
    placeholders_remove(&first);
    tap_ok(!exists("held/d") && first.removed_count == 0,
           "on a filesystem that nobody else keeps busy all is let go of at once");
    placeholders_done(&first);
}

/* The reason is kept for who asks again. */
static void test_failure(void)
{
    struct placeholders placeholders;
    struct brig_error once = {0}, again = {0};
    char path[PATH_MAX], name[NAME_MAX + 2];
    (void)snprintf(path, sizeof path, "%s/held", scratch);
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    begin(&placeholders);
    autoclose int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    (void)placeholders_want(&placeholders, dir, path, name, PLACEHOLDER_DIRECTORY, NULL);
    (void)placeholders_want(&placeholders, dir, path, "next", PLACEHOLDER_DIRECTORY, NULL);
    int status = placeholders_make(&placeholders, &once);
    tap_ok(status < 0 && strstr(once.message, "--unprotect"), "what cannot be held is named");
    tap_ok(placeholders_make(&placeholders, &again) == status &&
               strcmp(once.message, again.message) == 0,
           "and is told again to who asks again");
    placeholders_done(&placeholders);
    tap_ok(!exists("held/next"), "nothing is left of it");
}

static void test_used(void)
{
    struct placeholders placeholders;
    begin(&placeholders);
    (void)hold(&placeholders, "d", PLACEHOLDER_DIRECTORY);
    (void)hold(&placeholders, "e", PLACEHOLDER_DIRECTORY);
    (void)hold(&placeholders, "f", PLACEHOLDER_FILE);
    (void)hold(&placeholders, "s", PLACEHOLDER_SELF);
    (void)mkdir("held/d/used", 0700);
    (void)rename("held/e", "held/moved");
    (void)mkdir("held/e", 0700);
    for (int i = 0; i < 2; i++) {
        autofile FILE *file = fopen(i ? "held/f" : "held/s", "we");
        if (file)
            (void)fputs("mine\n", file);
    }
    placeholders_done(&placeholders);
    tap_ok(exists("held/d/used") && exists("held/f") && exists("held/s"),
           "what somebody has put something in stays");
    tap_ok(exists("held/e") && exists("held/moved"), "so does what took its place");
    tap_is_int((int)journal_size(), 0, "and is forgotten");
}

static void test_crash(void)
{
    pid_t child = fork();
    if (child == 0) {
        struct placeholders lost;
        begin(&lost);
        (void)hold(&lost, "crashed", PLACEHOLDER_DIRECTORY);
        _exit(0);
    }
    (void)waitpid(child, NULL, 0);
    tap_ok(exists("held/crashed"), "a crash leaves a placeholder");
    struct placeholders next;
    begin(&next);
    tap_ok(!exists("held/crashed"), "which the next run removes");
    placeholders_done(&next);
    placeholders_begin(&next, -1);
    tap_ok(hold(&next, "alone", PLACEHOLDER_DIRECTORY) == 1 && exists("held/alone"),
           "without a journal one is made all the same");
    placeholders_done(&next);
    tap_ok(!exists("held/alone"), "and removed at the end of the run");
}

static void test_journal_text(void)
{
    struct journal_record record;
    tap_ok(journal_parse("0 12 /a b", &record) && record.ino == 12 &&
               strcmp(record.path, "/a b") == 0,
           "a record is read");
    tap_ok(!journal_parse("0 12 a", &record) && !journal_parse("9 12 /a", &record) &&
               !journal_parse("", &record) && !journal_parse("0 x /a", &record),
           "a malformed one is not");
}

/* What a run leaves that dies while it makes its placeholders: they are announced, and have no inode. */
static void test_announced(void)
{
    autostr struct str text = {0};
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/held", scratch);
    (void)journal_format(&text, PLACEHOLDER_DIRECTORY, path, "made");
    (void)journal_format(&text, PLACEHOLDER_SELF, path, "half");
    (void)journal_format(&text, PLACEHOLDER_FILE, path, "never");
    (void)journal_format(&text, PLACEHOLDER_FILE, path, "somebodys");
    size_t found = journal_format(&text, PLACEHOLDER_DIRECTORY, path, "found");
    journal_settle(text.data + found, PLACEHOLDER_DIRECTORY, 0);
    (void)mkdir("held/made", 0755);
    (void)mkdir("held/found", 0755);
    autofile FILE *half = fopen("held/half", "we");
    autofile FILE *other = fopen("held/somebodys", "we");
    if (other)
        (void)fputs("text", other), (void)fflush(other);
    autofile FILE *journal = fopen("journal/placeholders", "we");
    if (journal)
        (void)fwrite(text.data, 1, text.length, journal), (void)fflush(journal);
    struct placeholders next;
    begin(&next);
    placeholders_done(&next);
    tap_ok(half && !exists("held/made") && !exists("held/half"), "what was announced is removed");
    tap_ok(exists("held/found") && exists("held/somebodys"), "and nothing else");
    tap_is_int((int)journal_size(), 0, "and then forgotten");
}

/* A run that dies when it has announced what it wants, and made nothing yet. */
static void announce_and_die(void)
{
    struct placeholders placeholders;
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/held", scratch);
    begin(&placeholders);
    int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    (void)placeholders_want(&placeholders, dir, path, "users", PLACEHOLDER_DIRECTORY, NULL);
    (void)placeholders_want(&placeholders, dir, path, "ours", PLACEHOLDER_DIRECTORY, NULL);
    placeholders_announce(&placeholders);
    _exit(placeholders.records_at < 0);
}

static void test_users(void)
{
    struct placeholders next;
    int status = -1;
    (void)mkdir("held/users", 0755);
    pid_t child = fork();
    if (child == 0)
        announce_and_die();
    (void)waitpid(child, &status, 0);
    (void)mkdir("held/ours", 0755); /* this far it has come */
    begin(&next);
    placeholders_done(&next);
    tap_ok(status == 0 && !exists("held/ours"), "what a dead run had made is removed");
    tap_ok(rmdir("held/users") == 0, "an empty directory that was there before it is not");
}

/* The end of the journal, in all positions to a part of it that is read. */
static void test_end(void)
{
    autoclose int journal = memfd_create("journal", MFD_CLOEXEC);
    static char bytes[8193];
    size_t wrong = 0;
    memset(bytes, 'x', sizeof bytes);
    for (size_t length = 4090; length < 4102; length++) {
        bytes[length - 1] = '\0'; /* ends a record */
        (void)!pwrite(journal, bytes, sizeof bytes, 0);
        bytes[length - 1] = 'x';
        (void)!pwrite(journal, "", 1, (off_t)length);
        wrong += journal_find_end(journal) != (off_t)length;
        wrong +=
            ftruncate(journal, (off_t)length) < 0 || journal_find_end(journal) != (off_t)length;
        wrong += ftruncate(journal, (off_t)length - 1) < 0 || journal_find_end(journal) != -1;
    }
    wrong += ftruncate(journal, 0) < 0 || journal_find_end(journal) != 0;
    wrong += pwrite(journal, "\0old", 4, 0) != 4 || journal_find_end(journal) != 0;
    tap_ok(wrong == 0, "the last record is found wherever it ends");
}

static void test_records(void)
{
    autostr struct str text = {0};
    struct journal_record record;
    size_t at = journal_format(&text, PLACEHOLDER_FILE, "/d", "n");
    size_t other = journal_format(&text, PLACEHOLDER_CLOSED, "/d", "m");
    tap_ok(journal_parse(text.data + other, &record) && record.ino == 0 &&
               record.kind == PLACEHOLDER_CLOSED && strcmp(record.path, "/d/m") == 0,
           "what is announced has no inode");
    journal_settle(text.data + at, PLACEHOLDER_FILE, UINT64_MAX);
    tap_ok(journal_parse(text.data + at, &record) && record.ino == UINT64_MAX &&
               record.kind == PLACEHOLDER_FILE && strcmp(record.path, "/d/n") == 0,
           "what is made has one");
    journal_settle(text.data + at, PLACEHOLDER_FILE, 0);
    tap_ok(!journal_parse(text.data + at, &record), "what was not made is no record");
}

/* Made by a thread, in memory that is being used meanwhile. */
static void test_beside(void)
{
    struct placeholders placeholders;
    begin(&placeholders);
    autoclose int fd = open("held", O_PATH | O_DIRECTORY | O_CLOEXEC);
    char name[16];
    int wanted = 0;
    for (int i = 0; i < 40; i++) {
        (void)snprintf(name, sizeof name, "beside-%d", i);
        wanted += placeholders_want(&placeholders, fd, "held", name, PLACEHOLDER_DIRECTORY, NULL);
    }
    placeholders_make_beside(&placeholders);
    placeholders_make_beside(&placeholders);
    for (int i = 0; i < 1000; i++)
        free(calloc(1, (size_t)i + 1));
    tap_ok(wanted == 0 && placeholders_make(&placeholders, NULL) == 0 &&
               placeholders_make(&placeholders, NULL) == 0 && !placeholders.making,
           "what a thread has begun with is waited for");
    tap_ok(exists("held/beside-0") && exists("held/beside-39"), "and there");
    tap_ok(journal_size() > 0, "and written down");
    placeholders_done(&placeholders);
    tap_ok(!exists("held/beside-0") && !exists("held/beside-39"), "and removed");
    begin(&placeholders);
    (void)placeholders_want(&placeholders, fd, "held", "beside", PLACEHOLDER_DIRECTORY, NULL);
    placeholders_make_beside(&placeholders);
    placeholders_done(&placeholders);
    tap_ok(!exists("held/beside"), "also where nobody asks for it");
    autoclose int nowhere = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct brig_error err = {0};
    begin(&placeholders);
    (void)placeholders_want(&placeholders, nowhere, "/proc/self", "a", PLACEHOLDER_DIRECTORY, NULL);
    placeholders_make_beside(&placeholders);
    int status = placeholders_make(&placeholders, &err);
    tap_ok(placeholders.items[0].state == PLACEHOLDER_IMPOSSIBLE || (status < 0 && err.code < 0),
           "a failure is told by who waits for it");
    placeholders_done(&placeholders);
}

static void test_closed(void)
{
    struct placeholders placeholders;
    begin(&placeholders);
    autoclose int fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
    tap_ok(
        placeholders_want(&placeholders, fd, "/proc/self", "a", PLACEHOLDER_DIRECTORY, NULL) == 0 &&
            placeholders_want(&placeholders, fd, "/proc/self", "a", PLACEHOLDER_FILE, NULL) == 0 &&
            placeholders.count == 1,
        "a name is wanted once");
    int status = placeholders_make(&placeholders, NULL);
    tap_ok(status < 0 || placeholders.items[0].state == PLACEHOLDER_IMPOSSIBLE,
           "where nobody can make anything it is impossible, or refused");
    tap_is_int(placeholders_make(&placeholders, NULL), status, "and settled once and for all");
    placeholders_done(&placeholders);
    tap_is_int((int)journal_size(), 0, "and nothing of it is kept");
}

static void test_failed(void)
{
    struct placeholders placeholders;
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/held/over", scratch);
    (void)mkdir("held/over", 0700);
    begin(&placeholders);
    autoclose int fd = open("held/over", O_PATH | O_DIRECTORY | O_CLOEXEC);
    (void)placeholders_want(&placeholders, fd, path, "a", PLACEHOLDER_DIRECTORY, NULL);
    (void)placeholders_want(&placeholders, fd, path, "b", PLACEHOLDER_DIRECTORY, NULL);
    (void)rmdir("held/over"); /* in what is gone nothing can be made, whoever tries */
    tap_ok(placeholders_make(&placeholders, NULL) < 0 && placeholders_make(&placeholders, NULL) < 0,
           "what cannot be held is an error, the second time too");
    placeholders_done(&placeholders);
    tap_is_int((int)journal_size(), 0, "and is forgotten");
}

/* ---- the index ---- */

/* Appends an entry; in version 4 `name` follows the first `kept` bytes of the last name. */
static void add_entry(struct str *index, int version, size_t hash_size, unsigned mode, size_t drop,
                      const char *name, size_t length)
{
    static const unsigned char zeros[80];
    size_t start = index->length;
    unsigned char bytes[4] = {0, 0, (unsigned char)(mode >> 8), (unsigned char)mode};
    unsigned char flags[2] = {(unsigned char)(length >> 8 & 0xf), (unsigned char)length};
    str_append_bytes(index, zeros, 24);
    str_append_bytes(index, bytes, 4);
    str_append_bytes(index, zeros, 12 + hash_size);
    str_append_bytes(index, flags, 2);
    if (version == 4 && drop > 127) /* two bytes, the first of which counts one more */
        str_append_char(index, (char)(0x80 | ((drop >> 7) - 1)));
    if (version == 4)
        str_append_char(index, (char)(drop & 127));
    str_append_bytes(index, name, strlen(name) + 1);
    while (version < 4 && (index->length - start) % 8 != 0)
        str_append_char(index, '\0');
}

static void begin_index(struct str *index, int version, int count)
{
    char header[12] = {'D', 'I', 'R', 'C', 0, 0, 0, (char)version, 0, 0, 0, (char)count};
    str_append_bytes(index, header, sizeof header);
}

static bool links_are(const struct str *index, size_t hash_size, const char *first,
                      const char *second)
{
    struct gitindex reader;
    const char *name = NULL;
    return gitindex_begin(&reader, index->data, index->length, hash_size) &&
           gitindex_next(&reader, &name) == 1 && strcmp(name, first) == 0 &&
           gitindex_next(&reader, &name) == 1 && strcmp(name, second) == 0 &&
           gitindex_next(&reader, &name) == 0;
}

static void test_index(void)
{
    char file[201], link[] = "libs/sub";
    memset(file, 'f', sizeof file - 1);
    file[sizeof file - 1] = '\0';
    for (int i = 0; i < 4; i++) {
        int version = i < 2 ? 2 : 4;
        size_t hash_size = i % 2 ? GITINDEX_SHA256 : GITINDEX_SHA1;
        size_t other = i % 2 ? GITINDEX_SHA1 : GITINDEX_SHA256;
        autostr struct str index = {0};
        begin_index(&index, version, 3);
        add_entry(&index, version, hash_size, 0100644, 0, file, 200);
        add_entry(&index, version, hash_size, 0160000, 200, link, 8);
        add_entry(&index, version, hash_size, 0160000, 3, version == 4 ? "two" : "libs/two", 8);
        str_append_bytes(&index, "TREE\0\0\0\1x", 9);
        str_append_bytes(&index, file, hash_size);
        tap_ok(links_are(&index, hash_size, "libs/sub", "libs/two"),
               "an index of version %d with hashes of %d bytes is read", version, (int)hash_size);
        tap_ok(!links_are(&index, other, "libs/sub", "libs/two"), "and not with others");
        index.length -= hash_size + 40;
        tap_ok(!links_are(&index, hash_size, "libs/sub", "libs/two"), "nor if it is cut off");
    }
}

/* ---- rules ---- */

static bool has_rule(const struct settings *settings, enum brig_access access, const char *rest)
{
    char dest[PATH_MAX];
    (void)snprintf(dest, sizeof dest, "%s/%s", scratch, rest);
    for (size_t i = 0; i < settings->policy->grant_count; i++)
        if (settings->policy->grants[i].access == access &&
            strcmp(settings->policy->grants[i].dest, dest) == 0)
            return true;
    return false;
}

/* The rules for the granted directory `name`, in --dry-run; -1 if they are refused. */
static int rules_for(const char *name, const char *unprotect, struct settings *ret_settings)
{
    static char cwd[PATH_MAX];
    static char *names[1];
    struct identity identity = {.host_uid = (uid_t)-1};
    struct protect protect;
    (void)snprintf(cwd, sizeof cwd, "%s/%s", scratch, name);
    names[0] = (char *)(uintptr_t)unprotect;
    *ret_settings = (struct settings){.policy = brig_policy_new(BRIG_MODE_SEALED),
                                      .cwd = cwd,
                                      .dry_run = true,
                                      .unprotect = names,
                                      .unprotect_count = unprotect ? 1 : 0};
    (void)brig_policy_grant(ret_settings->policy, BRIG_READ_WRITE, cwd, NULL, 0, NULL);
    int status = protect_apply(ret_settings, &identity, -1, &protect, NULL);
    protect_done(&protect);
    return status;
}

static void make_all(const char *const *paths, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (mkdir(paths[i], 0700) < 0)
            tap_diag("cannot make %s", paths[i]);
}

static void test_rules(void)
{
    static const char *const paths[] = {"p",
                                        "p/.git",
                                        "p/.git/hooks",
                                        "p/.git/modules",
                                        "p/.git/refs",
                                        "p/.git/objects",
                                        "p/.git/modules/a",
                                        "p/.git/modules/a/b",
                                        "p/.claude",
                                        "p/.claude/agents",
                                        "p/.git/worktrees",
                                        "p/.git/worktrees/w",
                                        "plain",
                                        "p/.git/modules/a/b/modules",
                                        "p/.git/modules/a/b/modules/c",
                                        "p/.git/modules/a/b/HEAD",
                                        "p/.git/modules/a/b/modules/c/HEAD"};
    make_all(paths, ARRAY_LENGTH(paths));
    struct settings settings;
    tap_is_int(rules_for("p", NULL, &settings), 0, "a project is looked at");
    tap_ok(has_rule(&settings, BRIG_PROTECT, "p/.git/hooks") &&
               has_rule(&settings, BRIG_PROTECT, "p/.git/config") &&
               has_rule(&settings, BRIG_PROTECT, "p/.git/commondir") &&
               has_rule(&settings, BRIG_PROTECT, "p/.vscode"),
           "hooks and settings are protected");
    tap_ok(has_rule(&settings, BRIG_PROTECT, "p/.git/modules/a/b/hooks") &&
               has_rule(&settings, BRIG_PROTECT, "p/.git/modules/a/b/modules/c/config"),
           "those of submodules too, however deep");
    tap_ok(has_rule(&settings, BRIG_PROTECT, "p/.git/worktrees/w/config.worktree"),
           "and those of worktrees");
    tap_ok(has_rule(&settings, BRIG_PROTECT, "p/.claude/settings.json") &&
               has_rule(&settings, BRIG_PROTECT, "p/.gemini") &&
               !has_rule(&settings, BRIG_PROTECT, "p/.claude") &&
               !has_rule(&settings, BRIG_PROTECT, "p/.zed"),
           "the first part that is missing is held, and nothing that need not be");
    tap_ok(!exists("p/.vscode") && !exists("p/.gemini"), "and nothing is made for --dry-run");
    brig_policy_free(settings.policy);
    tap_ok(rules_for("plain", NULL, &settings) == 0 &&
               has_rule(&settings, BRIG_PROTECT, "plain/.git"),
           "where there is no repository, its name is held");
    brig_policy_free(settings.policy);
}

static void test_exceptions(void)
{
    struct settings settings;
    tap_ok(rules_for("p", ".git/modules/a", &settings) == 0 &&
               !has_rule(&settings, BRIG_PROTECT, "p/.git/modules/a/b/hooks") &&
               has_rule(&settings, BRIG_PROTECT, "p/.git/hooks"),
           "what is unprotected has no rule, nor has what is below it");
    brig_policy_free(settings.policy);
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/p/.vscode", scratch);
    tap_ok(rules_for("p", path, &settings) == 0 && !has_rule(&settings, BRIG_PROTECT, "p/.vscode"),
           "it may be named by its path");
    brig_policy_free(settings.policy);
    static const char *const refused[] = {".vscode/tasks.json", ".git/hooks/a", ".gti",
                                          ".git/HEAD",          "..",           "src"};
    for (size_t i = 0; i < ARRAY_LENGTH(refused); i++) {
        tap_ok(rules_for("p", refused[i], &settings) < 0, "--unprotect %s is refused", refused[i]);
        brig_policy_free(settings.policy);
    }
}

static void test_users_rules(void)
{
    struct identity identity = {.host_uid = (uid_t)-1};
    struct protect protect;
    char cwd[PATH_MAX], git[PATH_MAX], other[PATH_MAX];
    (void)snprintf(cwd, sizeof cwd, "%s/p", scratch);
    (void)snprintf(git, sizeof git, "%s/p/.git", scratch);
    (void)snprintf(other, sizeof other, "%s/p/.vscode", scratch);
    struct settings settings = {
        .policy = brig_policy_new(BRIG_MODE_SEALED), .cwd = cwd, .dry_run = true};
    (void)brig_policy_grant(settings.policy, BRIG_READ_WRITE, cwd, NULL, 0, NULL);
    (void)brig_policy_grant(settings.policy, BRIG_READ_ONLY, git, NULL, 0, NULL);
    (void)brig_policy_grant(settings.policy, BRIG_MASK, other, NULL, 0, NULL);
    (void)brig_policy_grant(settings.policy, BRIG_READ_WRITE, cwd, "/elsewhere", 0, NULL);
    tap_ok(protect_apply(&settings, &identity, -1, &protect, NULL) == 0 &&
               !has_rule(&settings, BRIG_PROTECT, "p/.git/hooks") &&
               !has_rule(&settings, BRIG_PROTECT, "p/.vscode"),
           "where the user's own rules say something else, they stand");
    bool elsewhere = false;
    for (size_t i = 0; i < settings.policy->grant_count; i++)
        elsewhere |= strcmp(settings.policy->grants[i].dest, "/elsewhere/.git/hooks") == 0;
    tap_ok(elsewhere, "a directory that is granted twice is protected twice");
    protect_done(&protect);
    brig_policy_free(settings.policy);
}

static int remove_entry(const char *path, const struct stat *info, int flag, struct FTW *walk)
{
    (void)info, (void)flag, (void)walk;
    return remove(path);
}

int main(void)
{
    if (!mkdtemp(scratch) || chdir(scratch) < 0 || mkdir("journal", 0700) < 0 ||
        mkdir("held", 0700) < 0)
        return 1;
    test_placeholders();
    test_removed();
    test_failure();
    test_used();
    test_crash();
    test_announced();
    test_users();
    test_end();
    test_records();
    test_beside();
    test_closed();
    test_failed();
    test_journal_text();
    test_index();
    test_rules();
    test_exceptions();
    test_users_rules();
    (void)nftw(scratch, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    return tap_done();
}
