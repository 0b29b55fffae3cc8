/* SPDX-License-Identifier: MIT */
/* Lets brig create user namespaces where a setting of the system refuses them, and reverts that.
 *
 * The record has a line for each change, written before the change is made:
 *     sysctl NAME OLD NEW
 *     file SHA256 PATH
 *     profile SHA256 PATH    a file that is also loaded into the kernel
 * It is read backwards: the oldest value of a sysctl is the one that is restored. */
#include "cli/verbs/allow_userns.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/path.h"
#include "base/process.h"
#include "base/sha256.h"
#include "base/str.h"
#include "cli/apparmor_profile.h" /* generated from apparmor/profile.in */
#include "cli/out_path.h"
#include "jail/probe/userns.h"

#define RECORD "/var/lib/brig/setup"
#define FILE_MAX 65536
#define FILE_MODE 0644
#define DIRECTORY_MODE 0755

/* ---- files ---- */

static int fill_path(const struct allow_userns *request, const char *path, char *ret_path,
                     struct brig_error *err)
{
    return str_fill(ret_path, PATH_LENGTH_MAX + 1, request->root, path)
               ? 0
               : brig_fail(err, BRIG_E_INVALID, 0, "'%s' is too long", str_shown(path).text);
}

/* The text of a file, for the caller to free; NULL with errno. */
static char *read_file(const struct allow_userns *request, const char *path)
{
    bool whole = false;
    char full[PATH_LENGTH_MAX + 1];
    return fill_path(request, path, full, NULL) == 0 ? proc_read(full, FILE_MAX, &whole) : NULL;
}

static int write_file(const struct allow_userns *request, const char *path, const char *text,
                      struct brig_error *err)
{
    char full[PATH_LENGTH_MAX + 1];
    int status = fill_path(request, path, full, err);
    if (status < 0)
        return status;
    char *name = strrchr(full, '/');
    status = path_make_directories(full, (size_t)(name - full), DIRECTORY_MODE, err);
    if (status < 0)
        return status;
    *name++ = '\0';
    autoclose int dir_fd = open(full, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "open '%s'", full);
    status = out_file_write(dir_fd, name, text, FILE_MODE, true, err);
    return status < 0 ? brig_wrap(err, status, "%s", full) : 0;
}

/* Files of /proc/sys cannot be replaced by a rename. */
static int write_value(const struct allow_userns *request, const char *path, const char *value,
                       struct brig_error *err)
{
    char full[PATH_LENGTH_MAX + 1];
    int status = fill_path(request, path, full, err);
    if (status < 0)
        return status;
    autoclose int fd = open(full, O_WRONLY | O_TRUNC | O_CLOEXEC);
    int failed = fd < 0 ? -errno : write_all(fd, value, strlen(value));
    return failed < 0
               ? brig_fail(err, BRIG_E_SYSTEM, -failed, "cannot write %s to '%s'", value, full)
               : 0;
}

/* Adds a line to the record. */
static int add_record(const struct allow_userns *request, const char *line, struct brig_error *err)
{
    autostr struct str text = {0};
    autofree char *before = read_file(request, RECORD);
    str_concat(&text, before ? before : "", line, "\n");
    return text.failed ? brig_fail_nomem(err) : write_file(request, RECORD, text.data, err);
}

/* Says what a new file contains, and creates it unless nothing is to be changed. */
static int add_file(const struct allow_userns *request, const char *kind, const char *path,
                    const char *text, struct brig_error *err)
{
    char hash[SHA256_HEX_LENGTH + 1];
    autostr struct str line = {0};
    str_appendf(request->out, "write %s:\n", path);
    for (const char *at = text, *end; (end = strchr(at, '\n')); at = end + 1)
        str_appendf(request->out, "    %.*s\n", (int)(end - at), at);
    if (request->dry_run)
        return 0;
    sha256_hex(text, strlen(text), hash);
    str_concat(&line, kind, " ", hash, " ", path);
    if (line.failed)
        return brig_fail_nomem(err);
    int status = add_record(request, line.data, err);
    return status < 0 ? status : write_file(request, path, text, err);
}

/* ---- sysctls ---- */

static int open_sysctl(const struct allow_userns *request, const struct userns_gate *gate,
                       struct brig_error *err)
{
    autostr struct str path = {0}, text = {0}, line = {0};
    str_concat(&path, "/etc/sysctl.d/60-brig-", gate->setting, ".conf");
    str_concat(&text,
               "# Written by brig setup, for user namespaces; brig setup --revert removes it.\n",
               gate->setting, " = ", gate->open, "\n");
    str_appendf(&line, "sysctl %s %ld %s", gate->setting, gate->closed_at, gate->open);
    if (path.failed || text.failed || line.failed)
        return brig_fail_nomem(err);
    int status = add_file(request, "file", path.data, text.data, err);
    if (status < 0)
        return status;
    str_appendf(request->out, "set %s from %ld to %s\n", gate->setting, gate->closed_at,
                gate->open);
    if (request->dry_run)
        return 0;
    status = add_record(request, line.data, err);
    return status < 0 ? status : write_value(request, gate->file, gate->open, err);
}

/* ---- AppArmor ---- */

/* Runs apparmor_parser with a verb and a file. */
static int run_parser(const struct allow_userns *request, const char *verb, const char *path,
                      struct brig_error *err)
{
    char full[PATH_LENGTH_MAX + 1];
    char *const words[] = {(char *)(uintptr_t)request->parser, (char *)(uintptr_t)verb, full, NULL};
    int status = fill_path(request, path, full, err);
    if (status < 0)
        return status;
    str_appendf(request->out, "run %s %s %s\n", request->parser, verb, path);
    if (request->dry_run)
        return 0;
    pid_t pid = fork();
    if (pid == 0) {
        (void)execv(request->parser, words);
        _exit(127);
    }
    status = process_wait(pid);
    return status == 0 ? 0
                       : brig_fail(err, BRIG_E_SYSTEM, 0, "%s %s %s failed (exit status %d)",
                                   request->parser, verb, full, status);
}

/* Characters that mean nothing in a rule of AppArmor's. */
static bool is_plain(const char *path)
{
    return path[strspn(path,
                       "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._+-")] ==
           '\0';
}

/* Whether only root can replace a file: it and all directories above it are root's. */
static bool is_roots(const char *path)
{
    char part[PATH_LENGTH_MAX + 1];
    struct stat status;
    if (!str_fill(part, sizeof part, path))
        return false;
    for (char *slash; (slash = strrchr(part, '/')); *slash = '\0')
        if (lstat(part, &status) < 0 || status.st_uid != 0 || (status.st_mode & 022))
            return false;
    return true;
}

static void make_profile(struct str *text, const char *name, const char *program)
{
    const char *at = (const char *)apparmor_profile;
    const char *end = at + sizeof apparmor_profile;
    while (at < end) {
        const char *mark = memchr(at, '@', (size_t)(end - at));
        str_append_bytes(text, at, (size_t)((mark ? mark : end) - at));
        if (!mark)
            return;
        bool is_name = str_starts_with(mark, "@name@");
        str_append(text, is_name ? name : program);
        at = mark + strlen("@name@");
    }
}

/* A profile of the same text, which a package may have brought, is only loaded. */
static int add_profile(const struct allow_userns *request, const char *name, const char *program,
                       struct brig_error *err)
{
    autostr struct str text = {0}, path = {0};
    str_concat(&path, "/etc/apparmor.d/", name);
    make_profile(&text, name, program);
    if (path.failed || text.failed)
        return brig_fail_nomem(err);
    autofree char *before = read_file(request, path.data);
    if (before && strcmp(before, text.data) != 0)
        return brig_fail(
            err, BRIG_E_STATE, 0,
            "'%s' exists, and is not the profile for '%s'. Move it away, and try again", path.data,
            program);
    if (!is_roots(program))
        str_appendf(
            request->out,
            "note: users other than root can replace %s, and their programs can then create "
            "user namespaces\n",
            program);
    int status = before ? 0 : add_file(request, "profile", path.data, text.data, err);
    return status < 0 ? status : run_parser(request, "--replace", path.data, err);
}

static int open_apparmor(const struct allow_userns *request, struct brig_error *err)
{
    autofree char *abi = read_file(request, "/etc/apparmor.d/abi/4.0");
    const char *slash = strrchr(request->program, '/');
    char server[PATH_LENGTH_MAX + 1];
    if (!abi || access(request->parser, X_OK) < 0)
        return brig_fail(
            err, BRIG_E_UNSUPPORTED, 0,
            "AppArmor restricts user namespaces, but AppArmor 4 is not installed: %s is "
            "missing. Install the package apparmor",
            abi ? request->parser : "/etc/apparmor.d/abi/4.0");
    if (!is_plain(request->program))
        return brig_fail(
            err, BRIG_E_INVALID, 0,
            "the path '%s' cannot be written in an AppArmor profile. Install brig in another "
            "directory",
            str_shown(request->program).text);
    int status = add_profile(request, "brig", request->program, err);
    (void)snprintf(server, sizeof server, "%.*s/brigd", (int)(slash - request->program),
                   request->program);
    return status < 0 || access(server, X_OK) < 0 ? status
                                                  : add_profile(request, "brigd", server, err);
}

int allow_userns_apply(const struct allow_userns *request, struct brig_error *err)
{
    int count = 0;
    for (size_t i = 0; i < USERNS_SETTINGS; i++) {
        const struct userns_gate *gate = &userns_settings[i];
        if (!userns_refuses(request->root, gate))
            continue;
        int status = gate->apparmor ? open_apparmor(request, err) : open_sysctl(request, gate, err);
        if (status < 0)
            return status;
        count++;
    }
    return count;
}

/* ---- revert ---- */

static int revert_sysctl(const struct allow_userns *request, char *words, struct brig_error *err)
{
    const char *name = strsep(&words, " "), *old = strsep(&words, " "), *new = words;
    for (size_t i = 0; i < USERNS_SETTINGS && old && new; i++) {
        const struct userns_gate *gate = &userns_settings[i];
        if (strcmp(gate->setting, name) != 0)
            continue;
        if (userns_read_number(request->root, gate->file) != strtol(new, NULL, 10)) {
            str_appendf(request->out, "leave %s: it is not %s any more\n", name, new);
            return 0;
        }
        str_appendf(request->out, "set %s from %s to %s\n", name, new, old);
        return request->dry_run ? 0 : write_value(request, gate->file, old, err);
    }
    return 0;
}

static int revert_file(const struct allow_userns *request, char *words, bool loaded,
                       struct brig_error *err)
{
    const char *wanted = strsep(&words, " "), *path = words;
    char hash[SHA256_HEX_LENGTH + 1], full[PATH_LENGTH_MAX + 1];
    autofree char *text = path ? read_file(request, path) : NULL;
    if (!text)
        return 0;
    sha256_hex(text, strlen(text), hash);
    if (strcmp(hash, wanted) != 0) {
        str_appendf(request->out, "leave %s: it was changed\n", path);
        return 0;
    }
    int status = loaded ? run_parser(request, "--remove", path, err) : 0;
    if (status == 0)
        status = fill_path(request, path, full, err);
    if (status < 0)
        return status;
    str_appendf(request->out, "remove %s\n", path);
    if (request->dry_run || unlink(full) == 0)
        return 0;
    return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot remove '%s'", full);
}

static int revert_line(const struct allow_userns *request, char *line, struct brig_error *err)
{
    const char *kind = strsep(&line, " ");
    if (line && strcmp(kind, "sysctl") == 0)
        return revert_sysctl(request, line, err);
    if (line && (strcmp(kind, "file") == 0 || strcmp(kind, "profile") == 0))
        return revert_file(request, line, kind[0] == 'p', err);
    return 0;
}

int allow_userns_revert(const struct allow_userns *request, struct brig_error *err)
{
    char full[PATH_LENGTH_MAX + 1];
    autofree char *record = read_file(request, RECORD);
    int status = fill_path(request, RECORD, full, err);
    if (!record)
        return brig_fail(err, BRIG_E_STATE, 0, "nothing to revert: there is no '%s'", full);
    /* Backwards; each line is cut off once it is done. */
    while (status == 0 && *record) {
        char *line = strrchr(record, '\n');
        if (line && line[1] == '\0') {
            *line = '\0';
            continue;
        }
        status = revert_line(request, line ? line + 1 : record, err);
        *(line ? line : record) = '\0';
    }
    if (status < 0)
        return status;
    str_appendf(request->out, "remove " RECORD "\n");
    if (!request->dry_run && unlink(full) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot remove '%s'", full);
    return 0;
}

void allow_userns_command(const char *program, struct str *out)
{
    /* Directories in which sudo looks for programs. */
    static const char *const found[] = {"/usr/bin/brig", "/usr/local/bin/brig"};
    bool short_name = false;
    for (size_t i = 0; i < ARRAY_LENGTH(found); i++)
        short_name = short_name || strcmp(program, found[i]) == 0;
    str_append(out, "sudo ");
    str_append_word(out, short_name ? "brig" : program);
    str_append(out, " setup");
}
