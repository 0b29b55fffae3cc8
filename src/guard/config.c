/* SPDX-License-Identifier: MIT */
#include "guard/config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "guard/files.h"

#define CONFIG_COPY "config.copy"
#define CONFIG_MAX ((off_t)4 << 20)

/* ---- pure ---- */

int config_strip_url(const char *url, struct str *ret_url)
{
    const char *scheme = strstr(url, "://");
    if (!scheme)
        return 0;
    const char *host = scheme + 3;
    const char *at = NULL;
    for (const char *c = host; *c && *c != '/' && *c != '?' && *c != '#'; c++)
        if (*c == '@')
            at = c;
    if (!at)
        return 0;
    bool web = strncasecmp(url, "http", 4) == 0;
    bool password = memchr(host, ':', (size_t)(at - host)) != NULL;
    if (!web && !password) /* ssh://git@host: a login name is no secret */
        return 0;
    str_append_bytes(ret_url, url, (size_t)(host - url));
    str_append(ret_url, at + 1);
    return 1;
}

/* The last part of a key, which is what it sets. */
static const char *variable_of(const char *key)
{
    const char *dot = strrchr(key, '.');
    return dot ? dot + 1 : key;
}

static bool begins(const char *key, const char *section)
{
    return strncasecmp(key, section, strlen(section)) == 0;
}

/* A name for a remote or a branch that cannot be mistaken for an option or a path elsewhere. */
static bool is_plain_name(const char *name, size_t length)
{
    if (length == 0 || length > 200 || name[0] == '-' || name[0] == '.' || name[0] == '/')
        return false;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)name[i];
        if (!isalnum(c) && !strchr("._-/+@#", c))
            return false;
        if (c == '.' && i + 1 < length && name[i + 1] == '.')
            return false;
    }
    return true;
}

static bool is_plain_text(const char *value)
{
    for (const char *c = value; *c; c++)
        if ((unsigned char)*c <= ' ' || *c == 0x7f || *c == '"' || *c == '\\')
            return false;
    return *value && *value != '-' && strlen(value) < 2000;
}

/* https, http, ssh, git, and host:path; never a program (ext::) or a path of the host. */
static bool is_remote_url(const char *url)
{
    static const char *const schemes[] = {"https://", "http://", "ssh://", "git://"};
    if (!is_plain_text(url) || strstr(url, "::"))
        return false;
    for (size_t i = 0; i < ARRAY_LENGTH(schemes); i++)
        if (str_starts_with(url, schemes[i]))
            return url[strlen(schemes[i])] != '-' && url[strlen(schemes[i])] != '\0';
    const char *colon = strchr(url, ':'), *slash = strchr(url, '/');
    return colon && colon > url && colon[1] && (!slash || slash > colon) && !strstr(url, "://");
}

/* "+refs/heads/…:refs/remotes/NAME/…" */
static bool is_fetch_of(const char *value, const char *name, size_t length)
{
    const char *colon = strchr(value, ':');
    static const char remotes[] = "refs/remotes/";
    if (!is_plain_text(value) || !colon || strchr(colon + 1, ':') ||
        !str_starts_with(value + (value[0] == '+'), "refs/") || strstr(value, ".."))
        return false;
    const char *to = colon + 1;
    return str_starts_with(to, remotes) && strncmp(to + sizeof remotes - 1, name, length) == 0 &&
           to[sizeof remotes - 1 + length] == '/';
}

bool config_may_cross(const char *key, const char *value)
{
    const char *variable = variable_of(key);
    const char *name = strchr(key, '.');
    if (!name || variable <= name + 1)
        return false;
    name++;
    size_t length = (size_t)(variable - 1 - name);
    if (!is_plain_name(name, length))
        return false;
    if (begins(key, "remote."))
        return (strcmp(variable, "url") == 0 && is_remote_url(value)) ||
               (strcmp(variable, "fetch") == 0 && is_fetch_of(value, name, length));
    if (!begins(key, "branch."))
        return false;
    if (strcmp(variable, "remote") == 0)
        return strcmp(value, ".") == 0 || is_plain_name(value, strlen(value));
    if (strcmp(variable, "merge") == 0)
        return str_starts_with(value, "refs/") && is_plain_name(value, strlen(value));
    return strcmp(variable, "rebase") == 0 &&
           (strcmp(value, "true") == 0 || strcmp(value, "false") == 0);
}

/* ---- what goes in ---- */

/* Settings that name a place outside, or a program that would only fail inside. */
static bool is_of_outside(const char *key)
{
    return strcasecmp(key, "core.worktree") == 0 || strcasecmp(key, "core.fsmonitor") == 0;
}

static bool is_secret(const char *key, const char *value, struct str *scratch)
{
    const char *variable = variable_of(key);
    if (strcasecmp(variable, "proxy") == 0 && value && strchr(value, '@'))
        return true;
    if (begins(key, "http.") && strcasecmp(variable, "extraheader") == 0)
        return true;
    if (begins(key, "remote.") && strcasecmp(variable, "pushurl") == 0)
        return true;
    /* url.BASE.insteadOf: BASE may contain a token. */
    return begins(key, "url.") && config_strip_url(key + 4, scratch) > 0;
}

static int change(const struct git *git, int folder, const char *key, const char *value,
                  struct brig_error *err)
{
    const char *const unset[] = {"config", "--file", CONFIG_COPY, "--unset-all", key, NULL};
    const char *const set[] = {"config", "--file", CONFIG_COPY, "--replace-all", key, value, NULL};
    int status = git_run(git,
                         &(struct git_call){
                             .words = value ? set : unset,
                             .dir = folder,
                         },
                         err);
    /* 5: the key is not there any more, as it was listed twice. */
    return status < 0 || status == 0 || status == 5
               ? (status < 0 ? status : 0)
               : brig_fail(err, BRIG_E_SETUP, 0, "git cannot change '%s' in a copy of the config",
                           str_shown(key).text);
}

static int sanitise_one(const struct git *git, int folder, const char *key, const char *value,
                        struct str *notes, struct brig_error *err)
{
    autostr struct str url = {0};
    if (is_of_outside(key))
        return change(git, folder, key, NULL, err);
    if (is_secret(key, value, &url)) {
        str_appendf(notes, "%s is not visible in the jail, because it may contain a credential\n",
                    begins(key, "url.") ? "a setting url.*.insteadOf" : str_shown(key).text);
        return change(git, folder, key, NULL, err);
    }
    if (!value || config_strip_url(value, &url) == 0)
        return 0;
    str_appendf(notes,
                "the credential in %s is not visible in the jail; to use it there, see --inject\n",
                str_shown(key).text);
    return url.failed ? brig_fail_nomem(err) : change(git, folder, key, url.data, err);
}

static int append_copy(int folder, struct str *text, struct brig_error *err)
{
    autoclose int fd = openat(folder, CONFIG_COPY, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read the copy of the config");
    char *to = info.st_size > 0 ? str_extend(text, (size_t)info.st_size) : NULL;
    if (info.st_size > 0 && (!to || pread(fd, to, (size_t)info.st_size, 0) != info.st_size))
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read the copy of the config");
    return 0;
}

int config_sanitise(const struct git *git, int dir, const char *name, int folder,
                    struct str *ret_answer, struct brig_error *err)
{
    static const char *const list[] = {"config", "--file", CONFIG_COPY, "--no-includes",
                                       "-z",     "--list", NULL};
    struct stat info;
    autostr struct str text = {0};
    if (fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && info.st_size > CONFIG_MAX)
        return brig_fail(err, BRIG_E_SETUP, 0, "the git config is larger than %d MiB",
                         (int)(CONFIG_MAX >> 20));
    int status = copying_file(dir, name, folder, CONFIG_COPY, err);
    if (status > 0)
        status = git_run(git, &(struct git_call){.words = list, .dir = folder, .out = &text}, err);
    if (status > 0)
        status = brig_fail(err, BRIG_E_SETUP, 0, "git cannot read the repository's config");
    /* "key\nvalue\0", or "key\0" for a value that is merely present. */
    for (char *at = text.data; status == 0 && at && at < text.data + text.length;) {
        char *next = at + strlen(at) + 1;
        char *value = strchr(at, '\n');
        if (value)
            *value++ = '\0';
        status = sanitise_one(git, folder, at, value, ret_answer, err);
        at = next;
    }
    str_append_bytes(ret_answer, "", 1);
    if (status == 0)
        status = append_copy(folder, ret_answer, err);
    (void)unlinkat(folder, CONFIG_COPY, 0);
    return status == 0 && ret_answer->failed ? brig_fail_nomem(err) : status;
}

/* ---- what comes out ---- */

/* The value of the pair at `at`, "key\nvalue\0", with the key ended by a NUL; "" if there is none. */
static const char *split(char *at)
{
    char *value = strchr(at, '\n');
    if (!value)
        return "";
    *value = '\0';
    return value + 1;
}

static bool has_pair(const struct str *list, const char *key, const char *value)
{
    size_t length = strlen(key);
    for (const char *at = list->data; at && at < list->data + list->length; at += strlen(at) + 1)
        if (strncmp(at, key, length) == 0 && at[length] == '\n' &&
            strcmp(at + length + 1, value) == 0)
            return true;
    return false;
}

/* Whether a list of settings has one whose name begins so. */
static bool has_section(const struct str *list, const char *section, size_t length)
{
    for (const char *at = list->data; at && at < list->data + list->length; at += strlen(at) + 1)
        if (strncmp(at, section, length) == 0)
            return true;
    return false;
}

static bool has_key(const struct str *list, const char *key)
{
    size_t length = strlen(key);
    for (const char *at = list->data; at && at < list->data + list->length; at += strlen(at) + 1)
        if (strncmp(at, key, length) == 0 && (at[length] == '\n' || !at[length]))
            return true;
    return false;
}

/* Whether the rest of a section lets a setting cross: "remote.NAME.x" if the URL of a new remote crosses, "branch.NAME.x"
 * if its remote exists outside or crosses. `taken` are the sections of URLs and remotes that cross. */
static bool fits(const struct str *before, const struct str *taken, const char *key,
                 const char *value)
{
    size_t length = (size_t)(variable_of(key) - key);
    if (begins(key, "remote."))
        return !has_section(before, key, length) &&
               (strcmp(variable_of(key), "url") == 0 || has_section(taken, key, length));
    if (has_key(before, key)) /* an upstream that the user has set stays */
        return false;
    if (strcmp(variable_of(key), "remote") != 0)
        return has_section(before, key, length) || has_section(taken, key, length);
    autostr struct str remote = {0};
    str_concat(&remote, "remote.", value, ".url");
    return strcmp(value, ".") == 0 ||
           (!remote.failed && (has_key(before, remote.data) || has_key(taken, remote.data)));
}

static int take_over(const struct git *git, const struct git_call *call, const char *key,
                     const char *value, struct brig_error *err)
{
    bool remote = begins(key, "remote.");
    const char *const add[] = {"config", "--add", key, value, NULL};
    const char *const set[] = {"config", "--replace-all", key, value, NULL};
    struct git_call own = *call;
    own.words = remote ? add : set;
    int status = git_run(git, &own, err);
    return status > 0 ? brig_fail(err, BRIG_E_SYSTEM, 0, "git cannot set '%s'", str_shown(key).text)
                      : status;
}

int config_cross(const struct git *git, const struct git_sealed *sealed, int base,
                 const struct git_call *call, struct str *notes, struct brig_error *err)
{
    static const char script[] =
        "git config --file " GIT_SEALED_DIR "/config --no-includes -z --list";
    static const char *const list[] = {"config", "--file", "config", "--no-includes",
                                       "-z",     "--list", NULL};
    autostr struct str inside = {0};
    autostr struct str before = {0};
    autostr struct str taken = {0};
    size_t left = 0;
    int status = git_run_sealed(git, sealed, script, &inside, err);
    if (status != 0) /* a config that git cannot read has nothing to take over */
        return status < 0 ? status : 0;
    status = git_run(git, &(struct git_call){.words = list, .dir = base, .out = &before}, err);
    if (status < 0)
        return status;
    status = 0;
    for (char *at = inside.data; status == 0 && at && at < inside.data + inside.length;) {
        char *next = at + strlen(at) + 1;
        const char *value = split(at);
        bool known = has_pair(&before, at, value);
        bool crosses = !known && config_may_cross(at, value) && fits(&before, &taken, at, value);
        if (crosses)
            status = take_over(git, call, at, value, err);
        if (crosses)
            str_append_bytes(&taken, at, strlen(at) + 1);
        left += !crosses && !known;
        at = next;
    }
    if (status == 0 && taken.failed)
        status = brig_fail_nomem(err);
    if (left > 0)
        str_appendf(notes,
                    "git: %zu changed setting%s of the jail's git config %s not taken over\n", left,
                    left == 1 ? "" : "s", left == 1 ? "was" : "were");
    return status;
}
