/* SPDX-License-Identifier: MIT */
/* Whether what is granted is what its name says. */
#include "cli/grant_check.h"

#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/masks.h"
#include "cli/path_aliases.h"
#include "cli/settings.h"
#include "cli/workdir.h"
#include "policy/policy.h"

/* The rest of a path below a directory, "" for itself, or NULL. */
static const char *rest_in(const char *directory, const char *path)
{
    if (!path_is_beneath(directory, path))
        return NULL;
    path += strlen(directory);
    return path + strspn(path, "/");
}

static const char *mask_of(const struct masks *masks, const char *rest)
{
    int found = rest && *rest ? masks_find(masks, rest) : -1;
    return found < 0 ? NULL : masks->hidden[found];
}

static int check_link(const struct path_aliases_grant *grant, const struct masks *masks,
                      const struct path_aliases *path_aliases, struct brig_error *err)
{
    const char *rest = rest_in(path_aliases->real_home, grant->real);
    const char *said = rest_in(path_aliases->home, grant->source);
    if (!said)
        said = rest_in(path_aliases->real_home, grant->source);
    if (rest && said && strcmp(rest, said) == 0)
        return 0; /* the link is above the home */
    bool is_home = path_is_beneath(grant->real, path_aliases->real_home);
    if (!is_home && !mask_of(masks, rest))
        return 0;
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "'%s' is a symbolic link to '%s', which is %s, so it is not granted. Remove "
                     "the link, or grant its target by name",
                     str_shown(grant->source).text, str_shown(grant->real).text,
                     is_home ? "or holds the home directory" : "masked");
}

static int check_cwd(const struct settings *settings, const struct masks *masks,
                     const struct path_aliases *path_aliases, struct brig_error *err)
{
    const struct brig_policy *policy = settings->policy;
    const char *mask = mask_of(masks, rest_in(path_aliases->real_home, settings->cwd));
    for (size_t i = 0; i < policy->grant_count && mask && !settings->cwd_settled; i++) {
        const struct policy_grant *grant = &policy->grants[i];
        if (strcmp(grant->source, settings->cwd) != 0 || strcmp(grant->origin, WORKDIR_ORIGIN) != 0)
            continue;
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "the working directory '%s' is masked (%s), so it is not granted. Go into "
                         "a project, or use -D to run without it, or -d '%s' to grant it anyway",
                         str_shown(settings->cwd).text, mask, str_shown(settings->cwd).text);
    }
    return 0;
}

int grant_check(const struct settings *settings, const struct masks *masks,
                const struct path_aliases *path_aliases, struct brig_error *err)
{
    int status = check_cwd(settings, masks, path_aliases, err);
    for (size_t i = 0; i < path_aliases->grant_count && status == 0; i++)
        if (path_aliases->grants[i].real)
            status = check_link(&path_aliases->grants[i], masks, path_aliases, err);
    return status;
}

int grant_check_own(const struct path_aliases *path_aliases, const char *directory,
                    struct brig_error *err)
{
    for (size_t i = 0; i < path_aliases->grant_count; i++) {
        const struct path_aliases_grant *grant = &path_aliases->grants[i];
        if (path_is_beneath(directory, grant->real ? grant->real : grant->source))
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "'%s' is in '%s', which is brig's own and never granted. Use -D if "
                             "it is the working directory, and brig cp for the files of a jail",
                             str_shown(grant->source).text, str_shown(directory).text);
    }
    return 0;
}

int grant_check_secret(const struct path_aliases *path_aliases,
                       const struct settings_secret *secret, struct brig_error *err)
{
    for (size_t i = 0; i < path_aliases->grant_count; i++) {
        const char *source = path_aliases->grants[i].source;
        struct stat info;
        if (stat(source, &info) == 0 && info.st_dev == secret->dev && info.st_ino == secret->ino)
            return brig_fail(
                err, BRIG_E_INVALID, 0,
                "'%s' cannot be granted: an injected credential comes from it, so it is "
                "hidden in the jail. Remove the grant, or the inject rule [%s]",
                str_shown(source).text, str_shown(secret->origin).text);
    }
    return 0;
}
