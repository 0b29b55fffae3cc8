/* SPDX-License-Identifier: MIT */
/* Grants sockets of the desktop session, which the environment names, one by one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/host_command.h"
#include "cli/identity.h"
#include "cli/report.h"
#include "cli/run/setup.h"
#include "cli/settings/options.h"
#include "cli/settings/settings.h"

/* The grant that is being made. */
struct grant {
    struct settings *settings;
    const struct identity *identity;
    const char *option; /* the option, such as "x11" */
};

/* ---- helpers ---- */

static int get_variable(const struct grant *grant, const char *name, const char **ret_value,
                        struct brig_error *err)
{
    const char *value = getenv(name);
    if (!value || *value == '\0')
        return brig_fail(err, BRIG_E_INVALID, 0, "--%s: %s is not set", grant->option, name);
    *ret_value = value;
    return 0;
}

/* Checked with the ids of the user, also if root acts for the user. */
static bool is_there(const struct grant *grant, const char *path, mode_t kind)
{
    struct stat info;
    identity_enter(grant->identity);
    bool found = stat(path, &info) == 0 && (info.st_mode & S_IFMT) == kind;
    identity_leave(grant->identity);
    return found;
}

static int expose(const struct grant *grant, const char *variable, struct brig_error *err)
{
    return brig_policy_setenv(grant->settings->policy, variable, NULL, err);
}

/* Grants one socket at its path, and sets the variable that names it. */
static int grant_socket(const struct grant *grant, const char *variable, const char *path,
                        struct brig_error *err)
{
    if (path[0] != '/' || !is_there(grant, path, S_IFSOCK))
        return brig_fail(err, BRIG_E_INVALID, 0, "--%s: %s names '%s', which is not a socket",
                         grant->option, variable, str_shown(path).text);
    int status = brig_policy_grant(grant->settings->policy, BRIG_READ_WRITE, path, NULL, 0, err);
    return status < 0 ? status : expose(grant, variable, err);
}

static int runtime_path(const struct grant *grant, const char *name,
                        char ret_path[PATH_LENGTH_MAX + 1], struct brig_error *err)
{
    const char *directory = "";
    int status = name[0] == '/' ? 0 : get_variable(grant, "XDG_RUNTIME_DIR", &directory, err);
    if (status < 0)
        return status;
    int length = snprintf(ret_path, PATH_LENGTH_MAX + 1, "%s%s%s", directory,
                          name[0] == '/' ? "" : "/", name);
    return length > PATH_LENGTH_MAX ? brig_fail(err, BRIG_E_INVALID, 0, "--%s: '%s' is too long",
                                                grant->option, str_shown(name).text)
                                    : 0;
}

/* ---- X11 ---- */

/* Finds the digits of N in "[unix]:N[.SCREEN]". */
static int display_number(const char *display, size_t *ret_length, const char **ret_number)
{
    const char *colon = strrchr(display, ':');
    size_t host = colon ? (size_t)(colon - display) : 0;
    if (!colon || (host > 0 && !(host >= 4 && strncmp(colon - 4, "unix", 4) == 0 &&
                                 (host == 4 || colon[-5] == '/'))))
        return -1;
    *ret_number = colon + 1;
    *ret_length = strspn(colon + 1, "0123456789");
    const char *end = colon + 1 + *ret_length;
    return *ret_length > 0 && *ret_length < 6 && (*end == '\0' || *end == '.') ? 0 : -1;
}

/* Programs use ~/.Xauthority unless a variable names another file. */
static int grant_authority(const struct grant *grant, struct brig_error *err)
{
    char path[PATH_LENGTH_MAX + 1];
    const char *named = getenv("XAUTHORITY");
    bool given = named && *named != '\0';
    const char *home = grant->identity->host_home;
    int length = snprintf(path, sizeof path, "%s%s",
                          given  ? named
                          : home ? home
                                 : "",
                          given ? "" : "/.Xauthority");
    bool there = length > 0 && (size_t)length < sizeof path && path[0] == '/' &&
                 is_there(grant, path, S_IFREG);
    if (given && !there)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "--%s: XAUTHORITY names '%s', which does not exist", grant->option,
                         str_shown(named).text);
    if (!there)
        return 0; /* a display that needs no key */
    int status = brig_policy_grant(grant->settings->policy, BRIG_READ_ONLY, path, NULL, 0, err);
    return status < 0 ? status
                      : brig_policy_setenv(grant->settings->policy, "XAUTHORITY", path, err);
}

static int open_x11(const struct grant *grant, struct brig_error *err)
{
    const char *display, *number;
    size_t length;
    int status = get_variable(grant, "DISPLAY", &display, err);
    if (status < 0)
        return status;
    if (display_number(display, &length, &number) < 0)
        return brig_fail(
            err, BRIG_E_INVALID, 0,
            "--%s: DISPLAY is '%s', which is not a display of this machine, such as :0",
            grant->option, str_shown(display).text);
    char path[64];
    (void)snprintf(path, sizeof path, "/tmp/.X11-unix/X%.*s", (int)length, number);
    status = grant_socket(grant, "DISPLAY", path, err);
    return status < 0 ? status : grant_authority(grant, err);
}

/* ---- the others ---- */

static int open_wayland(const struct grant *grant, struct brig_error *err)
{
    const char *display;
    char path[PATH_LENGTH_MAX + 1];
    int status = get_variable(grant, "WAYLAND_DISPLAY", &display, err);
    if (status == 0)
        status = runtime_path(grant, display, path, err);
    if (status == 0)
        status = grant_socket(grant, "WAYLAND_DISPLAY", path, err);
    return status < 0 ? status : expose(grant, "XDG_RUNTIME_DIR", err);
}

/* The path of PulseAudio's socket in PULSE_SERVER, "[unix:]/path", or NULL. */
static const char *pulse_server(void)
{
    const char *value = getenv("PULSE_SERVER");
    if (value && strncmp(value, "unix:", 5) == 0)
        value += 5;
    return value && value[0] == '/' ? value : NULL;
}

static int open_audio(const struct grant *grant, struct brig_error *err)
{
    const char *pulse = pulse_server(), *remote = getenv("PIPEWIRE_REMOTE");
    const char *const names[] = {pulse ? pulse : "pulse/native",
                                 remote && *remote ? remote : "pipewire-0"};
    size_t found = 0;
    for (size_t i = 0; i < 2; i++) {
        char path[PATH_LENGTH_MAX + 1];
        if (names[i][0] != '/' && names[1 - i][0] == '/' && !getenv("XDG_RUNTIME_DIR"))
            continue; /* the other one is enough */
        int status = runtime_path(grant, names[i], path, err);
        if (status == 0 && is_there(grant, path, S_IFSOCK)) {
            status =
                brig_policy_grant(grant->settings->policy, BRIG_READ_WRITE, path, NULL, 0, err);
            found++;
        }
        if (status < 0)
            return status;
    }
    if (found == 0)
        return brig_fail(
            err, BRIG_E_INVALID, 0, "--%s: neither %s nor %s exists in XDG_RUNTIME_DIR '%s'",
            grant->option, names[0], names[1],
            str_shown(getenv("XDG_RUNTIME_DIR") ? getenv("XDG_RUNTIME_DIR") : "").text);
    int status = expose(grant, "PULSE_SERVER", err);
    if (status == 0)
        status = expose(grant, "PIPEWIRE_REMOTE", err);
    return status < 0 ? status : expose(grant, "XDG_RUNTIME_DIR", err);
}

static int open_ssh_agent(const struct grant *grant, struct brig_error *err)
{
    const char *path;
    int status = get_variable(grant, "SSH_AUTH_SOCK", &path, err);
    return status < 0 ? status : grant_socket(grant, "SSH_AUTH_SOCK", path, err);
}

/* ---- GnuPG ---- */

/* GNUPGHOME in the jail: outside the user's home, so that it is the same in every mode. */
#define GNUPG_INSIDE "/run/brig-gnupg"

/* Where /run/user/UID exists, gpg looks for the socket there and not in its home. A file with this
 * content in place of the socket leads it to the real one. */
static const char gnupg_line[] =
    "chmod 700 " GNUPG_INSIDE " 2>/dev/null; _f=$(gpgconf --list-dirs agent-socket 2>/dev/null)\n"
    "[ -S " GNUPG_INSIDE "/S.gpg-agent ] && case $_f in ''|" GNUPG_INSIDE "/*) ;; *)\n"
    "  (umask 077; mkdir -p \"${_f%/*}\"; rm -f \"$_f\"\n"
    "  printf '%%Assuan%%\\nsocket=" GNUPG_INSIDE "/S.gpg-agent\\n' >\"$_f\") 2>/dev/null;; esac\n"
    "unset _f\n";

/* Grants a file of the user's GnuPG directory, if it exists. */
static int grant_gnupg(const struct grant *grant, const char *home, const char *name, bool *found,
                       struct brig_error *err)
{
    char path[PATH_LENGTH_MAX + 1], dest[sizeof GNUPG_INSIDE + 64];
    if (!str_fill(path, sizeof path, home, "/", name) || !is_there(grant, path, S_IFREG))
        return 0;
    (void)snprintf(dest, sizeof dest, GNUPG_INSIDE "/%s", name);
    *found = true;
    return brig_policy_grant(grant->settings->policy, BRIG_READ_ONLY, path, dest, 0, err);
}

static int grant_public_keys(const struct grant *grant, const char *home, struct brig_error *err)
{
    bool keys = false, other = false;
    int status = grant_gnupg(grant, home, "pubring.kbx", &keys, err);
    if (status == 0)
        status = grant_gnupg(grant, home, "pubring.gpg", &keys, err);
    if (status == 0)
        status = grant_gnupg(grant, home, "gpg.conf", &other, err);
    if (status == 0 && !keys)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "--%s: '%s' has neither pubring.kbx nor pubring.gpg; keys of keyboxd "
                         "cannot be granted",
                         grant->option, str_shown(home).text);
    return status;
}

/* Asks GnuPG for its directory and its restricted socket, and starts the agent. */
static int open_gpg_agent(const struct grant *grant, struct brig_error *err)
{
    struct brig_policy *policy = grant->settings->policy;
    autofree char *socket = NULL;
    autofree char *home = NULL;
    int status =
        host_command("gpgconf --launch gpg-agent && gpgconf --list-dirs agent-extra-socket",
                     grant->identity, &socket, err);
    if (status == 0)
        status = host_command("gpgconf --list-dirs homedir", grant->identity, &home, err);
    if (status < 0)
        return brig_wrap(err, status, "--%s", grant->option);
    if (!is_there(grant, socket, S_IFSOCK))
        return brig_fail(err, BRIG_E_INVALID, 0, "--%s: GnuPG's agent has no socket '%s'",
                         grant->option, str_shown(socket).text);
    status = brig_policy_private(policy, BRIG_READ_WRITE, GNUPG_INSIDE, err);
    if (status == 0)
        status =
            brig_policy_grant(policy, BRIG_READ_WRITE, socket, GNUPG_INSIDE "/S.gpg-agent", 0, err);
    if (status == 0)
        status = grant_public_keys(grant, home, err);
    if (grant->settings->prelude_count < SETTINGS_PRELUDES_MAX)
        grant->settings->preludes[grant->settings->prelude_count++].text = gnupg_line;
    return status < 0 ? status : brig_policy_setenv(policy, "GNUPGHOME", GNUPG_INSIDE, err);
}

/* Extracts the first path of "unix:path=PATH[,key=value…][;address…]", with %XX escapes. */
static bool bus_path(const char *address, char ret_path[PATH_LENGTH_MAX + 1])
{
    static const char prefix[] = "unix:path=";
    const char *at = strstr(address, prefix);
    if (!at || (at != address && at[-1] != ';'))
        return false;
    size_t length = 0;
    for (at += sizeof prefix - 1; *at && *at != ',' && *at != ';'; at++) {
        char digits[3] = "";
        char c = *at;
        if (c == '%' && at[1] && at[2]) {
            memcpy(digits, at + 1, 2);
            c = (char)strtol(digits, NULL, 16);
            at += 2;
        }
        if (length >= PATH_LENGTH_MAX || c == '\0')
            return false;
        ret_path[length++] = c;
    }
    ret_path[length] = '\0';
    return true;
}

static int open_dbus(const struct grant *grant, struct brig_error *err)
{
    const char *address;
    char path[PATH_LENGTH_MAX + 1];
    int status = get_variable(grant, "DBUS_SESSION_BUS_ADDRESS", &address, err);
    if (status < 0)
        return status;
    if (!bus_path(address, path))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "--%s: DBUS_SESSION_BUS_ADDRESS is '%s', which has no unix:path= that "
                         "could be let in",
                         grant->option, str_shown(address).text);
    return grant_socket(grant, "DBUS_SESSION_BUS_ADDRESS", path, err);
}

/* ---- all of them ---- */

static const struct {
    enum option_id option;
    int (*open)(const struct grant *grant, struct brig_error *err);
    const char *opens;
} rows[] = {
    [SETTINGS_X11] = {OPTION_X11, open_x11,
                      "the X display: any program on it can be watched and typed into"},
    [SETTINGS_WAYLAND] = {OPTION_WAYLAND, open_wayland,
                          "the Wayland display: windows can be opened, and the clipboard read "
                          "while one of them has the focus"},
    [SETTINGS_AUDIO] = {OPTION_AUDIO, open_audio,
                        "sound: what is played and the microphone can be listened to"},
    [SETTINGS_SSH_AGENT] = {OPTION_SSH_AGENT, open_ssh_agent,
                            "the SSH agent: one can log in with its keys wherever they open, "
                            "though not read them"},
    [SETTINGS_GPG_AGENT] = {OPTION_GPG_AGENT, open_gpg_agent,
                            "GnuPG's agent: one can sign and decrypt with your keys, though not "
                            "read them"},
    [SETTINGS_DBUS] = {OPTION_DBUS, open_dbus,
                       "the session bus: one can start programs outside, and so do everything "
                       "you can"},
};

int desktop_apply(struct settings *settings, const struct identity *identity,
                  struct brig_error *err)
{
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        if (!settings->desktop[i])
            continue;
        struct grant grant = {settings, identity, option_rows[rows[i].option].long_name};
        int status = brig_policy_origin(settings->policy, settings->desktop[i], err);
        if (status == 0)
            status = rows[i].open(&grant, err);
        if (status < 0)
            return status;
        message_note("--%s opens %s", grant.option, rows[i].opens);
    }
    return 0;
}
