/* SPDX-License-Identifier: MIT */
/* Puts scripts together and the shell before the command. */
#include "script.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "cli/identity.h"
#include "cli/settings.h"
#include "policy/conf.h"
#include "policy/policy.h"

#define autosource __attribute__((cleanup(conf_source_done)))

/* Functions of a script can be run like programs, where the shell is bash. */
#define SOURCE_AND_RUN                                                                             \
    ". '%s'; if declare -F \"$0\" >/dev/null 2>&1; then \"$0\" \"$@\"; else exec \"$0\" \"$@\"; "  \
    "fi"

static int append_script(const struct settings_program *program, struct str *text,
                         struct brig_error *err)
{
    autosource struct conf_source source = {0};
    int status = conf_load(AT_FDCWD, NULL, program->path, program->optional, &source, err);
    if (status <= 0)
        return status;
    str_append_bytes(text, source.text, source.length);
    str_append_char(text, '\n');
    if (text->length > SCRIPT_LENGTH_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "all scripts together are larger than %zu MiB",
                         SCRIPT_LENGTH_MAX >> 20);
    return 1;
}

/* All of them: 1, or 0 if none is there. */
static int read_scripts(const struct settings *settings, struct str *text, struct brig_error *err)
{
    int found = 0;
    for (size_t i = 0; i < settings->scripts.count; i++) {
        const struct settings_program *program = &settings->scripts.items[i];
        int status = append_script(program, text, err);
        if (status < 0)
            return brig_wrap(err, status, "script (%s)", str_shown(program->origin).text);
        found = found || status > 0;
    }
    return found;
}

/* A rule before all others, which therefore win. */
static int set_first(struct brig_policy *policy, const char *name, const char *value,
                     struct brig_error *err)
{
    int status = brig_policy_setenv(policy, name, value, err);
    if (status < 0)
        return status;
    struct policy_env rule = policy->env[policy->env_count - 1];
    memmove(&policy->env[1], &policy->env[0], (policy->env_count - 1) * sizeof rule);
    policy->env[0] = rule;
    return 0;
}

/* Whether the jail's /tmp is the host's. */
static bool has_host_tmp(const struct brig_policy *policy)
{
    for (size_t i = 0; i < policy->grant_count; i++)
        if (strcmp(policy->grants[i].dest, "/tmp") == 0 ||
            strcmp(policy->grants[i].dest, "/var/tmp") == 0)
            return true;
    return false;
}

/* Runs of one jail share its /tmp, so each has a name that nobody can have taken before. Where /tmp is
 * not the jail's, the script would be left on the host. */
static int choose_path(const struct settings *settings, char **ret_path, struct brig_error *err)
{
    uint64_t number = 0; /* what is not run is the same each time */
    if (!settings->dry_run && getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "no random numbers");
    autostr struct str path = {0};
    str_appendf(&path, "%s/.brig-script.%016" PRIx64,
                has_host_tmp(settings->policy) ? "/run" : "/tmp", number);
    return str_take(&path, ret_path, err);
}

/* What a script is there for, unless somebody has other plans with it. */
static int source_it(struct settings *settings, const char *path, struct brig_error *err)
{
    if (settings->command)
        return 0;
    autostr struct str line = {0};
    str_appendf(&line, SOURCE_AND_RUN, path);
    return str_take(&line, &settings->command, err);
}

int script_prepare(struct settings *settings, const struct identity *identity,
                   struct brig_error *err)
{
    autostr struct str body = {0};
    identity_enter(identity);
    int status = read_scripts(settings, &body, err);
    identity_leave(identity);
    if (status <= 0)
        return status;
    autofree char *path = NULL;
    status = choose_path(settings, &path, err);
    if (status < 0)
        return status;
    /* The first thing a script does is to remove itself. */
    autostr struct str text = {0};
    str_appendf(&text,
                "[ -n \"${BRIG_KEEP_SCRIPT-}${JAI_KEEP_SCRIPT-}\" ] || rm -f '%s' 2>/dev/null\n",
                path);
    str_append_bytes(&text, body.data, body.length);
    size_t length = text.length;
    autofree char *script = NULL;
    status = brig_policy_origin(settings->policy, "script", err);
    if (status == 0)
        status = str_take(&text, &script, err);
    if (status == 0)
        status = set_first(settings->policy, "JAI_SCRIPT", path, err);
    if (status == 0)
        status = set_first(settings->policy, "BRIG_SCRIPT", path, err);
    if (status == 0)
        status = source_it(settings, path, err);
    if (status < 0)
        return status;
    settings->script = take_ptr(&script);
    settings->script_length = length;
    settings->script_path = take_ptr(&path);
    return 0;
}

int script_words(const struct settings *settings, const char *const *words,
                 const char *const **ret_words, struct brig_error *err)
{
    size_t count = 0;
    while (words[count])
        count++;
    const char **all = calloc(count + 4, sizeof *all); /* with "BASH -c LINE" and the end */
    if (!all)
        return brig_fail_nomem(err);
    size_t next = 0;
    if (settings->command && settings->command[0] != '\0') {
        all[next++] = access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh";
        all[next++] = "-c";
        all[next++] = settings->command;
    }
    memcpy(&all[next], words, count * sizeof *all);
    *ret_words = all;
    return 0;
}
