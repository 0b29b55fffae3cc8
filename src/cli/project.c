/* SPDX-License-Identifier: MIT */
/* The project of a directory, and the jail of a project. */
#include "cli/project.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "cli/identity.h"
#include "cli/out_path.h"

#define NAME_SHOWN 40 /* bytes of the directory's name in the name of the jail */
#define FILE_END ".project"

/* Whether a directory has a `.git` of this owner, of the user or of root. Another user who can write
 * to a directory above could otherwise make several projects one, with one jail. */
static bool has_git(const char *directory, uid_t owner, const struct identity *identity)
{
    char path[PATH_LENGTH_MAX + 1];
    struct stat info;
    return str_fill(path, sizeof path, directory, "/.git") && lstat(path, &info) == 0 &&
           (info.st_uid == owner || info.st_uid == identity_uid(identity) || info.st_uid == 0);
}

/* Shortens the path to the nearest directory with a `.git`; false if there is none that may be
 * granted by itself. */
static bool find_top(char *path, const struct identity *identity)
{
    struct stat start;
    if (stat(path, &start) < 0)
        return false;
    while (!has_git(path, start.st_uid, identity)) {
        char *slash = strrchr(path, '/');
        if (!slash || slash == path)
            return false;
        *slash = '\0';
    }
    return !workdir_is_precious(path, identity);
}

int project_find(const char *directory, const struct identity *identity, char **ret_path,
                 struct brig_error *err)
{
    char top[PATH_LENGTH_MAX + 1];
    *ret_path = NULL;
    if (workdir_is_precious(directory, identity) || !str_fill(top, sizeof top, directory))
        return 0;
    identity_enter(identity);
    bool found = find_top(top, identity);
    identity_leave(identity);
    return str_copy(found ? top : directory, ret_path, err);
}

static char plain(char c)
{
    bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '-' || c == '_' || c == '.';
    return ok ? c : '_';
}

uint64_t project_hash(const char *path)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (const char *c = path; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    return hash;
}

void project_jail(const char *path, unsigned number, char name[static PROJECT_JAIL_MAX])
{
    uint64_t hash = project_hash(path);
    const char *last = strrchr(path, '/');
    last = last ? last + 1 : path;
    last += strspn(last, ".-"); /* a name does not begin like an option or a hidden file */
    size_t length = 0;
    for (; length < NAME_SHOWN && last[length]; length++)
        name[length] = plain(last[length]);
    (void)snprintf(name + length, PROJECT_JAIL_MAX - length, "%s%08" PRIx32 "%s%s",
                   length > 0 ? "-" : "", (uint32_t)(hash ^ hash >> 32), number > 1 ? "-" : "",
                   number > 1 ? str_number(number).text : "");
}

void project_record(int storage, const char *jail, const char *path)
{
    char name[PROJECT_JAIL_MAX + sizeof FILE_END];
    if (str_fill(name, sizeof name, jail, FILE_END) && faccessat(storage, name, F_OK, 0) < 0)
        (void)out_file_write(storage, name, path, 0600, false, NULL);
}

bool project_of(const char *storage, const char *jail, char path[static PATH_LENGTH_MAX + 1])
{
    char file[PATH_LENGTH_MAX + 1];
    autoclose int fd = str_fill(file, sizeof file, storage, "/", jail, FILE_END)
                           ? open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
                           : -1;
    ssize_t length = fd < 0 ? -1 : read(fd, path, PATH_LENGTH_MAX);
    path[length > 0 ? length : 0] = '\0';
    return path[0] == '/';
}
