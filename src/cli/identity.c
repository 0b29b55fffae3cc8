/* SPDX-License-Identifier: MIT */
/* For whom brig acts, without the cost of the name service where the local files know. */
#include "identity.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "base/parse.h"
#include "base/path.h"

/* A longer file is left to the name service. */
#define IDENTITY_PASSWD_MAX 32768
#define IDENTITY_ROOT_NAME "brig"

/* Cuts the next field off *cursor at a colon; NULL when there is none left. */
static char *next_field(char **cursor)
{
    char *field = *cursor;
    if (!field)
        return NULL;
    char *colon = strchr(field, ':');
    if (colon)
        *colon = '\0';
    *cursor = colon ? colon + 1 : NULL;
    return field;
}

static bool parse_entry(char *line, struct identity_entry *ret_entry)
{
    enum { NAME, PASSWORD, UID, GID, COMMENT, HOME, SHELL, FIELDS };
    char *fields[FIELDS];
    for (int i = 0; i < FIELDS; i++) {
        fields[i] = next_field(&line);
        if (!fields[i])
            return false;
    }
    uint64_t uid = 0;
    uint64_t gid = 0;
    if (parse_uint(fields[UID], UINT32_MAX - 1, PARSE_ZERO_OK, &uid, NULL) < 0 ||
        parse_uint(fields[GID], UINT32_MAX - 1, PARSE_ZERO_OK, &gid, NULL) < 0)
        return false;
    *ret_entry = (struct identity_entry){
        .uid = (uid_t)uid,
        .gid = (gid_t)gid,
        .name = fields[NAME],
        .home = fields[HOME],
        .shell = fields[SHELL],
    };
    return true;
}

/* Whether the third field of a line is uid, before anything is copied. */
static bool line_is_for(const char *line, size_t length, const char *uid, size_t uid_length)
{
    const char *colon = memchr(line, ':', length);
    if (!colon)
        return false;
    size_t rest = length - (size_t)(colon + 1 - line);
    colon = memchr(colon + 1, ':', rest);
    if (!colon)
        return false;
    rest = length - (size_t)(colon + 1 - line);
    return rest > uid_length && memcmp(colon + 1, uid, uid_length) == 0 &&
           colon[1 + uid_length] == ':';
}

bool identity_find_entry(const char *text, size_t length, uid_t uid, char *line,
                         struct identity_entry *ret_entry)
{
    char wanted[16];
    int digits = snprintf(wanted, sizeof(wanted), "%u", uid);
    while (length > 0) {
        const char *newline = memchr(text, '\n', length);
        size_t size = newline ? (size_t)(newline - text) : length;
        if (size < IDENTITY_LINE_MAX && line_is_for(text, size, wanted, (size_t)digits)) {
            memcpy(line, text, size);
            line[size] = '\0';
            if (parse_entry(line, ret_entry))
                return true;
        }
        size_t step = newline ? size + 1 : size;
        text += step;
        length -= step;
    }
    return false;
}

static bool find_in_file(uid_t uid, char *line, struct identity_entry *ret_entry)
{
    autoclose int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    char text[IDENTITY_PASSWD_MAX];
    ssize_t size = read(fd, text, sizeof(text));
    return size > 0 && identity_find_entry(text, (size_t)size, uid, line, ret_entry);
}

static bool find_in_name_service(uid_t uid, char *line, struct identity_entry *ret_entry)
{
    struct passwd entry;
    struct passwd *found = NULL;
    if (getpwuid_r(uid, &entry, line, IDENTITY_LINE_MAX, &found) != 0 || !found)
        return false;
    *ret_entry = (struct identity_entry){
        .uid = entry.pw_uid,
        .gid = entry.pw_gid,
        .name = entry.pw_name,
        .home = entry.pw_dir,
        .shell = entry.pw_shell,
    };
    return true;
}

/* A number from an environment variable; (uid_t)-1 if it is not there or not a number. */
static unsigned id_from_environment(const char *name)
{
    const char *text = getenv(name);
    uint64_t id = 0;
    if (!text || parse_uint(text, UINT32_MAX - 1, PARSE_ZERO_OK, &id, NULL) < 0)
        return (unsigned)-1;
    return (unsigned)id;
}

/* The home inside is the real one's path, made empty. That must not be where programs live, which
 * is what the passwd file says of many system users. */
static bool home_is_usable(const char *home)
{
    static const char *const taken[] = {"/bin",  "/boot", "/dev",  "/etc", "/lib", "/lib64",
                                        "/proc", "/run",  "/sbin", "/sys", "/tmp", "/usr"};
    if (home[0] != '/' || home[1] == '\0' || strstr(home, "/.."))
        return false;
    for (size_t i = 0; i < ARRAY_LENGTH(taken); i++)
        if (path_is_beneath(taken[i], home))
            return false;
    return true;
}

static bool shell_is_usable(const char *shell)
{
    const char *slash = strrchr(shell, '/');
    return shell[0] == '/' && strcmp(slash, "/nologin") != 0 && strcmp(slash, "/false") != 0;
}

static void choose_home(struct identity *identity, const char *home)
{
    if (home && home_is_usable(home)) {
        identity->home = home;
        return;
    }
    (void)snprintf(identity->home_text, sizeof(identity->home_text), "/home/%.*s",
                   IDENTITY_LINE_MAX - 16, identity->name);
    identity->home = identity->home_text;
}

void identity_find(struct identity *ret_identity)
{
    struct identity *identity = ret_identity;
    identity->host_uid = (uid_t)-1;
    identity->host_gid = (gid_t)-1;
    identity->shell = NULL;

    uid_t uid = geteuid();
    unsigned sudo_uid = uid == 0 ? id_from_environment("SUDO_UID") : 0;
    bool behind_sudo = uid == 0 && sudo_uid != 0 && sudo_uid != (unsigned)-1;
    if (behind_sudo)
        uid = sudo_uid;

    struct identity_entry entry = {.uid = uid, .gid = (gid_t)-1};
    bool found = find_in_file(uid, identity->line, &entry) ||
                 find_in_name_service(uid, identity->line, &entry);
    if (behind_sudo) {
        identity->host_uid = uid;
        identity->host_gid = found ? entry.gid : id_from_environment("SUDO_GID");
        if (identity->host_gid == 0)
            identity->host_gid = (gid_t)-1; /* a jail has no part in root's group */
    }
    identity->host_home = entry.home;
    identity->name = uid == 0 || !found ? IDENTITY_ROOT_NAME : entry.name;
    choose_home(identity, uid == 0 ? NULL : entry.home);
    if (found && shell_is_usable(entry.shell))
        identity->shell = entry.shell;
}

int identity_apply(const struct identity *identity, struct brig_policy *policy,
                   struct brig_error *err)
{
    int status = brig_policy_identity(policy,
                                      &(struct brig_identity){
                                          .host_uid = identity->host_uid,
                                          .host_gid = identity->host_gid,
                                          .inside_uid = (uid_t)-1,
                                          .inside_gid = (gid_t)-1,
                                          .name = identity->name,
                                          .home = identity->home,
                                          .shell = identity->shell,
                                      },
                                      err);
    /* HOME, USER and LOGNAME follow from the identity. */
    if (status == 0 && identity->shell)
        status = brig_policy_setenv(policy, "SHELL", identity->shell, err);
    return status;
}
