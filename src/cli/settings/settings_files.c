/* SPDX-License-Identifier: MIT */
/* Options about files: grants, masks and what paths are relative to. */
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/settings/settings.h"
#include "policy/defaults.h"
#include "policy/policy.h"

/* In files, brig expands "~", as the shell does on the command line. */
static bool is_home(const struct settings *settings, const char *path)
{
    return settings->place != SETTINGS_COMMAND_LINE && path[0] == '~' &&
           (path[1] == '/' || path[1] == '\0');
}

static int make_absolute(const struct settings *settings, const char *path, char **ret_path,
                         struct brig_error *err)
{
    if (!is_home(settings, path))
        return path_make_absolute(settings->place == SETTINGS_FILE ? settings->home : settings->cwd,
                                  path, ret_path, err);
    const char *rest = path + 1 + strspn(path + 1, "/");
    return path_make_absolute(settings->home, *rest ? rest : ".", ret_path, err);
}

/* ---- PATH[:DEST] ---- */

/* Whether an unescaped colon ends the path: in files only if an absolute path follows. */
static bool ends_path(const struct settings *settings, const char *text)
{
    return *text == ':' && (settings->place == SETTINGS_COMMAND_LINE || text[1] == '/' ||
                            is_home(settings, text + 1));
}

/* Takes one part of "PATH[:DEST]", removes its escapes and returns its end: a colon or the end of
 * the text. */
static const char *take_part(const struct settings *settings, const char *text, bool single,
                             struct str *ret_part)
{
    for (; *text != '\0' && (single || !ends_path(settings, text)); text++) {
        if (text[0] == '\\' && (text[1] == ':' || text[1] == '\\'))
            text++;
        str_append_char(ret_part, *text);
    }
    return text;
}

static int absolute_part(const struct settings *settings, const struct str *part, char **ret_path,
                         struct brig_error *err)
{
    return part->failed ? brig_fail_nomem(err) : make_absolute(settings, part->data, ret_path, err);
}

/* Takes the part after the colon of a value. */
static int take_dest(const struct settings *settings, const char *value, const char *text,
                     char **ret_dest, struct brig_error *err)
{
    autostr struct str part = {0};
    const char *end = take_part(settings, text, false, &part);
    if (*end != '\0')
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'%s' has more than one colon; write \\: for a colon in a name",
                         str_shown(value).text);
    if (end == text)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'%s' has nothing after the colon; write \\: for a colon in a name",
                         str_shown(value).text);
    return absolute_part(settings, &part, ret_dest, err);
}

int settings_split_path(const struct settings *settings, const char *value, bool single,
                        char **ret_path, char **ret_dest, struct brig_error *err)
{
    autofree char *path = NULL;
    autostr struct str part = {0};
    const char *rest = take_part(settings, value, single, &part);
    if (rest == value)
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' does not name a path",
                         str_shown(value).text);
    int status = absolute_part(settings, &part, &path, err);
    if (status < 0)
        return status;
    char *dest = NULL;
    if (*rest == ':' && (status = take_dest(settings, value, rest + 1, &dest, err)) < 0)
        return status;
    *ret_path = take_ptr(&path);
    *ret_dest = dest;
    return 0;
}

/* ---- Grants ---- */

int settings_grant(struct settings *settings, enum brig_access access, unsigned flags,
                   const char *value, struct brig_error *err)
{
    autofree char *path = NULL;
    autofree char *dest = NULL;
    bool single = access == BRIG_MASK || access == BRIG_DEVICE;
    int status = settings_split_path(settings, value, single, &path, &dest, err);
    if (status < 0)
        return status;
    if (strcmp(dest ? dest : path, settings->cwd) == 0)
        settings->cwd_settled = true;
    return brig_policy_grant(settings->policy, access, path, dest, flags, err);
}

int settings_ungrant(struct settings *settings, const char *value, struct brig_error *err)
{
    autofree char *path = NULL;
    autofree char *dest = NULL;
    int status = settings_split_path(settings, value, true, &path, &dest, err);
    if (status < 0)
        return status;
    size_t removed = 0;
    status = brig_policy_ungrant(settings->policy, path, &removed, err);
    if (status < 0)
        return status;
    /* Removing a rule that does not exist is probably a typing error, and then more is granted than
     * the user believes. In a file, it may be for commands of which not all grant the path. */
    bool is_cwd = strcmp(path, settings->cwd) == 0;
    if (removed == 0 && !is_cwd && settings->place == SETTINGS_COMMAND_LINE)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "no earlier rule is for exactly '%s'. See brig --dry-run, or use --mask",
                         str_shown(path).text);
    if (is_cwd)
        settings->cwd_settled = true;
    return 0;
}

int settings_root(struct settings *settings, const char *value, struct brig_error *err)
{
    autofree char *path = NULL;
    int status = make_absolute(settings, value, &path, err);
    free(take_ptr(&settings->image)); /* the last of --view, --root and --image counts */
    return status < 0 ? status : brig_policy_view(settings->policy, BRIG_VIEW_ROOT, path, err);
}

int settings_workdir(struct settings *settings, const char *value, struct brig_error *err)
{
    autofree char *path = NULL;
    int status = make_absolute(settings, value, &path, err);
    if (status < 0)
        return status;
    settings->workdir_given = true;
    return brig_policy_workdir(settings->policy, path, err);
}

/* ---- Masks ---- */

/* Whether a mask is for a path in the home directory, wherever that is in the jail. */
static bool is_home_mask(const struct settings *settings, const char *value)
{
    switch (settings->place) {
    case SETTINGS_COMMAND_LINE: /* as for a program that is typed here */
        return value[0] != '/' && !str_starts_with(value, "./") && !str_starts_with(value, "../");
    case SETTINGS_FILE:
        return value[0] != '/';
    case SETTINGS_PROJECT:
        return false;
    }
    return false;
}

/* Normalises a path in the home directory. A shell does not expand the "~" of --mask=~/x, and such
 * a mask would hide nothing, contrary to what the user believes. */
static int home_path(const struct settings *settings, const char *value, char **ret_path,
                     struct brig_error *err)
{
    bool spelt = is_home(settings, value) || str_starts_with(value, "~/");
    const char *path = spelt ? value + 1 : value;
    autofree char *rooted = NULL;
    autofree char *normal = NULL;
    int status = str_make(&rooted, err, "/", path);
    if (status == 0)
        status = path_normalise(rooted, 0, &normal, err);
    if (status < 0)
        return status;
    if (normal[1] == '\0')
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'%s' is the whole home directory; choose the mode bare or strict instead",
                         str_shown(value).text);
    return str_copy(normal + 1, ret_path, err);
}

static void mask_done(struct settings_mask *mask)
{
    if (mask->built_in)
        return;
    free((char *)(uintptr_t)mask->path);
    free((char *)(uintptr_t)mask->origin);
}

/* Removes an earlier rule for the same path, which has no effect any more. */
static void forget_mask(struct settings *settings, const char *path)
{
    size_t kept = 0;
    for (size_t i = 0; i < settings->mask_count; i++) {
        if (strcmp(settings->masks[i].path, path) == 0)
            mask_done(&settings->masks[i]);
        else
            settings->masks[kept++] = settings->masks[i];
    }
    settings->mask_count = kept;
}

static int append_mask(struct settings *settings, const struct settings_mask *mask,
                       struct brig_error *err)
{
    if (settings->mask_count == SETTINGS_MASKS_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "too many masks: at most %d are possible",
                         SETTINGS_MASKS_MAX);
    if (!array_grow(&settings->masks, settings->mask_count))
        return brig_fail_nomem(err);
    settings->masks[settings->mask_count++] = *mask;
    return 0;
}

static int add_mask(struct settings *settings, const char *value, bool unmask, unsigned flags,
                    struct brig_error *err)
{
    autofree char *path = NULL;
    autofree char *origin = NULL;
    int status = home_path(settings, value, &path, err);
    if (status == 0)
        status = str_copy(settings->policy->origin, &origin, err);
    if (status < 0)
        return status;
    forget_mask(settings, path);
    status = append_mask(settings,
                         &(struct settings_mask){.path = path,
                                                 .origin = origin,
                                                 .unmask = unmask,
                                                 .optional = flags & BRIG_GRANT_OPTIONAL,
                                                 .typed = settings->place == SETTINGS_COMMAND_LINE},
                         err);
    if (status == 0)
        path = origin = NULL; /* owned by the mask now */
    return status;
}

/* A pattern in the form of a path: it applies to the home directory, wherever that is in the jail.
 * Elsewhere it would be the name of one file, which does not exist, and hide nothing. */
static int add_pattern(struct settings *settings, const char *path, unsigned flags,
                       struct brig_error *err)
{
    const char *below = path_below(settings->home, path);
    if (below && *below)
        return add_mask(settings, below, false, flags, err);
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "'%s' is a pattern, which only the home directory can have. Name the file to "
                     "hide, or its directory",
                     str_shown(path).text);
}

int settings_mask(struct settings *settings, unsigned flags, const char *value,
                  struct brig_error *err)
{
    autofree char *path = NULL;
    struct stat info;
    if (is_home_mask(settings, value))
        return add_mask(settings, value, false, flags, err);
    int status = strpbrk(value, "*?[") ? make_absolute(settings, value, &path, err) : 0;
    if (status < 0)
        return status;
    return path && lstat(path, &info) < 0 ? add_pattern(settings, path, flags, err)
                                          : settings_grant(settings, BRIG_MASK, flags, value, err);
}

int settings_unmask(struct settings *settings, const char *value, struct brig_error *err)
{
    if (is_home_mask(settings, value))
        return add_mask(settings, value, true, 0, err);
    autofree char *path = NULL;
    int status = make_absolute(settings, value, &path, err);
    if (status < 0)
        return status;
    size_t dropped = policy_remove_grants(settings->policy, path, true);
    const char *below = path_below(settings->home, path);
    if (below && *below)
        return add_mask(settings, below, true, 0, err);
    if (dropped == 0 && settings->place == SETTINGS_COMMAND_LINE)
        return brig_fail(err, BRIG_E_INVALID, 0, "no earlier mask is for exactly '%s'",
                         str_shown(path).text);
    return 0;
}

int settings_hide_in_home(struct settings *settings, const char *path, struct brig_error *err)
{
    return add_mask(settings, path, false, BRIG_GRANT_OPTIONAL, err);
}

/* ---- Defaults ---- */

/* They come first and are distinct, so no search for duplicates is needed. */
static int add_default_masks(struct settings *settings, struct brig_error *err)
{
    int status = 0;
    for (const char *mask = policy_default_masks; *mask && status == 0;
         mask = policy_next_default(mask))
        status = append_mask(
            settings,
            &(struct settings_mask){
                .path = mask, .origin = SETTINGS_BUILT_IN, .optional = true, .built_in = true},
            err);
    return status;
}

/* Masks a path without links, unless it or one of its parents is masked. */
static int hide_real(struct brig_policy *policy, const char *real, struct brig_error *err)
{
    for (size_t i = 0; i < policy->grant_count; i++)
        if (policy->grants[i].access == BRIG_MASK && path_is_beneath(policy->grants[i].dest, real))
            return 0;
    return brig_policy_grant(policy, BRIG_MASK, real, NULL, BRIG_GRANT_OPTIONAL, err);
}

static int hide_snapshots_above(struct brig_policy *policy, const char *home,
                                struct brig_error *err)
{
    static const char *const names[] = {".zfs", ".snapshot", ".snapshots", ".snap"};
    int status = 0;
    for (size_t i = strlen(home); i-- > 0;)
        for (size_t j = 0; j < ARRAY_LENGTH(names) && home[i] == '/' && status == 0; j++) {
            char path[PATH_MAX];
            struct stat info;
            int length = snprintf(path, sizeof path, "%.*s%s", (int)i + 1, home, names[j]);
            if ((size_t)length < sizeof path && lstat(path, &info) == 0)
                status = hide_real(policy, path, err);
        }
    return status;
}

/* The home may be a directory of a larger filesystem, such as /home or /, whose snapshots contain a
 * copy of it. The mount point of that filesystem is a parent of the home's real path. */
static int hide_snapshots(const struct settings *settings, struct brig_error *err)
{
    const char *home = settings->home;
    char real[PATH_LENGTH_MAX + 1];
    int status = hide_snapshots_above(settings->policy, home, err);
    return status < 0 || !path_resolve(home, real) || strcmp(home, real) == 0
               ? status
               : hide_snapshots_above(settings->policy, real, err);
}

static bool has_directory(const char *path, const char *name)
{
    char below[PATH_MAX];
    struct stat info;
    return str_fill(below, sizeof below, path, "/", name) && stat(below, &info) == 0 &&
           S_ISDIR(info.st_mode);
}

/* The mailbox that shells and mail programs use: a file, or a Maildir directory. The variable may
 * contain anything. */
static int hide_mailbox(struct settings *settings, struct brig_error *err)
{
    const char *mail = getenv("MAIL");
    char real[PATH_LENGTH_MAX + 1];
    struct stat info;
    if (!mail || mail[0] != '/' || !path_resolve(mail, real) || stat(real, &info) < 0)
        return 0;
    bool is_mail = S_ISREG(info.st_mode) || (S_ISDIR(info.st_mode) && has_directory(real, "new") &&
                                             has_directory(real, "cur"));
    if (!is_mail)
        return 0;
    const char *below = path_below(settings->home, real);
    if (below && *below)
        return add_mask(settings, below, false, BRIG_GRANT_OPTIONAL, err);
    return hide_real(settings->policy, real, err);
}

int settings_hide_outside(struct settings *settings, struct brig_error *err)
{
    int status = brig_policy_origin(settings->policy, SETTINGS_BUILT_IN, err);
    if (status == 0)
        status = hide_snapshots(settings, err);
    /* Mask the real path; a directory that the caller cannot enter needs no mask. */
    char real[PATH_LENGTH_MAX + 1];
    for (const char *path = policy_default_spools; *path && status == 0;
         path = policy_next_default(path))
        if (access(path, X_OK) == 0 && path_resolve(path, real))
            status = hide_real(settings->policy, real, err);
    return status < 0 ? status : hide_mailbox(settings, err);
}

int settings_apply_defaults(struct settings *settings, struct brig_error *err)
{
    int status = brig_policy_origin(settings->policy, SETTINGS_BUILT_IN, err);
    if (status == 0)
        status = add_default_masks(settings, err);
    if (status == 0)
        status = settings_hide_outside(settings, err);
    for (const char *filter = policy_default_filters; *filter && status == 0;
         filter = policy_next_default(filter))
        status = brig_policy_unsetenv(settings->policy, filter, err);
    return status;
}

/* ---- exceptions from protection ---- */

/* A relative path is relative to the top of any granted directory, wherever the option is given. */
static int unprotect_path(const struct settings *settings, const char *value, char **ret_path,
                          struct brig_error *err)
{
    if (value[0] == '/' || is_home(settings, value))
        return make_absolute(settings, value, ret_path, err);
    autofree char *rooted = NULL;
    int status = str_make(&rooted, err, "/", value);
    if (status < 0)
        return status;
    if (path_normalise(rooted, 0, ret_path, NULL) < 0)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'%s' has '..' or a name in it that is too long; write a path "
                         "from the top of a granted directory, such as .vscode",
                         str_shown(value).text);
    memmove(*ret_path, *ret_path + 1, strlen(*ret_path));
    return 0;
}

int settings_unprotect(struct settings *settings, const char *value, struct brig_error *err)
{
    autofree char *path = NULL;
    int status = unprotect_path(settings, value, &path, err);
    if (status < 0)
        return status;
    if (path[0] == '\0' || strcmp(path, "/") == 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' does not name a path. See --no-protect",
                         str_shown(value).text);
    if (settings->unprotect_count == SETTINGS_UNPROTECT_MAX)
        return option_fail_too_many(value, SETTINGS_UNPROTECT_MAX, err);
    if (!array_grow(&settings->unprotect, settings->unprotect_count))
        return brig_fail_nomem(err);
    settings->unprotect[settings->unprotect_count++] = take_ptr(&path);
    return 0;
}

void settings_files_done(struct settings *settings)
{
    for (size_t i = 0; i < settings->mask_count; i++)
        mask_done(&settings->masks[i]);
    free(settings->masks);
    for (size_t i = 0; i < settings->unprotect_count; i++)
        free(settings->unprotect[i]);
    free(settings->unprotect);
}
