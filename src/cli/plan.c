/* SPDX-License-Identifier: MIT */
/* Prints the plan that a run would have, without starting anything. */
#include "cli/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/proc.h"
#include "base/str.h"
#include "base/write.h"
#include "cli/home.h"
#include "cli/identity.h"
#include "cli/script.h"
#include "cli/settings.h"
#include "cli/setup.h"
#include "jail/job/job.h"
#include "jail/plan/facts.h"
#include "policy/policy.h"

#define FACTS_FILE_MAX 65536

static int find_facts(const char *path, struct facts *ret_facts, struct brig_error *err)
{
    if (!path) {
        facts_ask(ret_facts);
        return 0;
    }
    bool whole = false;
    autofree char *text = proc_read(path, FACTS_FILE_MAX, &whole);
    if (!text)
        return brig_fail(err, BRIG_E_INVALID, errno, "--facts: cannot read '%s'",
                         str_shown(path).text);
    if (!whole)
        return brig_fail(err, BRIG_E_INVALID, 0, "--facts: '%s' has more than %d bytes",
                         str_shown(path).text, FACTS_FILE_MAX);
    int status = facts_parse(text, ret_facts, err);
    return status < 0 ? brig_wrap(err, status, "--facts %s", str_shown(path).text) : 0;
}

/* With --output the streams pass through pipes of ours. */
static int foresee(const struct settings *settings, const char *const *words, char **envp,
                   struct str *out, struct brig_error *err)
{
    const struct brig_policy *policy = settings->policy;
    bool relayed = policy->limits_asked & 1U << BRIG_LIMIT_OUTPUT_BYTES &&
                   policy->limits[BRIG_LIMIT_OUTPUT_BYTES] > 0;
    int ends[2] = {-1, -1};
    if (relayed && pipe2(ends, O_CLOEXEC) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a pipe");
    const struct brig_stdio through = {.kind = relayed ? BRIG_STDIO_FD : BRIG_STDIO_INHERIT,
                                       .fd = ends[1]};
    const struct brig_command command = {
        .argv = words,
        .envp = (const char *const *)envp,
        .stdio = {{.kind = BRIG_STDIO_INHERIT}, through, through},
        .pass_fds = settings->pass_fds,
        .pass_fd_count = settings->pass_fd_count,
    };
    int status = job_foresee(policy, &command, out, err);
    for (size_t i = 0; relayed && i < ARRAY_LENGTH(ends); i++)
        (void)close(ends[i]);
    return status;
}

int plan_show(struct setup *setup, const char *const *argv, char **envp, struct brig_error *err)
{
    struct settings *settings = &setup->settings;
    struct brig_policy *policy = settings->policy;
    struct facts facts;
    autostr struct str out = {0};
    autoclose int stand_in = -1;
    autofree const char *const *words = NULL;
    int status = find_facts(settings->facts, &facts, err);
    if (status < 0 || (status = policy_validate(policy, err)) < 0 ||
        (status = script_words(settings, argv, &words, err)) < 0)
        return status;
    policy->facts = &facts;
    policy->jail_name = settings->jail;
    policy->files_before = facts.files;
    status = home_foresee(settings, &setup->identity, &out, &stand_in, err);
    if (status == 0)
        status = foresee(settings, words, envp, &out, err);
    policy->facts = NULL; /* they are ours */
    if (status < 0)
        return status;
    if (out.failed)
        return brig_fail_nomem(err);
    int failed = write_all(STDOUT_FILENO, out.data, out.length);
    return failed < 0 ? brig_fail(err, BRIG_E_SYSTEM, -failed, "cannot write to standard output")
                      : 0;
}
