/* SPDX-License-Identifier: MIT */
/* Putting a failed step into words: what was being done, why it failed, what to do about it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "jail/confine/unenforced.h"
#include "jail/plan/plan.h"
#include "jail/probe/probe.h"

static const struct {
    int step;
    const char *what;
} command_steps[] = {
    {PLAN_STEP_IDS, "take the jail's user and group id"},
    {PLAN_STEP_JOIN, "join the namespaces that are there already"},
    {PLAN_STEP_CGROUP, "join the group that has the jail's limits"},
    {PLAN_STEP_CLONE, "make the jail's namespaces"},
    {PLAN_STEP_LOOPBACK, "bring the loopback interface up"},
    {PLAN_STEP_DOOR, "make the sockets of the network door"},
    {PLAN_STEP_COMMAND, "start the command's process"},
    {PLAN_STEP_INIT, "execute the jail's init"},
    {PLAN_STEP_SESSION, "start a session for the command"},
    {PLAN_STEP_FDS, "hand over the command's file descriptors"},
    {PLAN_STEP_RLIMIT, "set a resource limit"},
    {PLAN_STEP_CAPS, "drop capabilities"},
    {PLAN_STEP_NO_NEW_PRIVS, "set no_new_privs"},
    {PLAN_STEP_LANDLOCK, "apply Landlock"},
    {PLAN_STEP_SECCOMP, "install the syscall filter"},
    {PLAN_STEP_TRACE, "hand over the listener of the syscall filter"},
};

static int explain_exec(const struct plan *plan, int sys_errno, struct brig_error *err)
{
    const char *name = plan->argv[0];
    if (sys_errno == ENOENT || sys_errno == ENOTDIR) {
        (void)brig_fail(err, BRIG_E_NOT_FOUND, 0, "'%s' was not found in the jail", name);
        if (strchr(name, '/'))
            return brig_advise(
                err, BRIG_E_NOT_FOUND,
                "If it exists outside, grant it or its directory (and, for a script, "
                "its interpreter)");
        return brig_advise(err, BRIG_E_NOT_FOUND, "The jail's PATH was searched");
    }
    return brig_fail(err, BRIG_E_NOT_EXEC, sys_errno, "cannot execute '%s' in the jail", name);
}

/* Whether a failure says that this system cannot make such jails, rather than this one jail. */
static bool is_unsupported(const struct plan *plan, int step, int sys_errno)
{
    bool refused = sys_errno == EPERM || sys_errno == EACCES || sys_errno == ENOSYS;
    if (step == PLAN_STEP_CLONE)
        return refused || sys_errno == ENOSPC || sys_errno == EUSERS || sys_errno == EINVAL;
    if (step == PLAN_STEP_LOOPBACK)
        return refused || sys_errno == ENODEV;
    if (step == PLAN_STEP_SECCOMP || step == PLAN_STEP_LANDLOCK)
        return refused || sys_errno == EINVAL || sys_errno == EOPNOTSUPP;
    if (step < 0 || (size_t)step >= plan->step_count)
        return false;
    switch (plan->steps[step].op) {
    case PLAN_WRITE:
    case PLAN_SETGROUPS:
    case PLAN_HOSTNAME:
    case PLAN_PRIVATE:
    case PLAN_TMPFS:
    case PLAN_PROC:
    case PLAN_DEVPTS:
    case PLAN_ROOT:
    case PLAN_PIVOT:
    case PLAN_DETACH:
        return refused || sys_errno == ENODEV || sys_errno == EROFS;
    case PLAN_TREE:
    case PLAN_PREPARED:
    case PLAN_SUBTREE:
    case PLAN_ATTR:
    case PLAN_DEVICE:
    case PLAN_ATTACH:
        return sys_errno == ENOSYS;
    case PLAN_OPEN_ROOT:
    case PLAN_OPEN:
    case PLAN_MKDIR:
    case PLAN_MKFILE:
    case PLAN_MKPATH:
    case PLAN_SYMLINK:
    case PLAN_KEEP:
    case PLAN_LATE:
    case PLAN_LISTEN:
    case PLAN_PTY:
        return false;
    }
    return false;
}

static const char *step_text(const struct plan *plan, int step)
{
    for (size_t i = 0; i < sizeof command_steps / sizeof command_steps[0]; i++)
        if (command_steps[i].step == step)
            return command_steps[i].what;
    if (step >= 0 && (size_t)step < plan->step_count)
        return plan->steps[step].what;
    return "build the jail";
}

/* Of who enters a jail no namespaces are asked, but a process in its group and its pid namespace. */
static int explain_entering(int sys_errno, struct brig_error *err)
{
    if (sys_errno == ENOMEM) /* what a pid namespace says whose first process is gone */
        return brig_fail(err, BRIG_E_STATE, 0, "the run has just ended");
    (void)brig_fail(err, BRIG_E_SETUP, sys_errno,
                    "cannot start a process in the group that has the run's limits");
    return brig_advise(err, BRIG_E_SETUP,
                       "Enter it from the session it was started in, or as root");
}

int plan_explain_failure(const struct plan *plan, int step, int sys_errno, struct brig_error *err)
{
    if (step == PLAN_STEP_EXEC)
        return explain_exec(plan, sys_errno, err);
    if (step == PLAN_STEP_WORKDIR) {
        (void)brig_fail(err, BRIG_E_SETUP, sys_errno, "cannot enter '%s' in the jail",
                        plan->workdir);
        return brig_advise(err, BRIG_E_SETUP,
                           "Grant it with --dir, or choose another with --workdir");
    }
    if (step == PLAN_STEP_CLONE && plan->enters)
        return explain_entering(sys_errno, err);
    int code = is_unsupported(plan, step, sys_errno) ? BRIG_E_UNSUPPORTED : BRIG_E_SETUP;
    (void)brig_fail(err, code, sys_errno, "cannot %s", step_text(plan, step));
    if (sys_errno == ESTALE)
        return brig_advise(err, code, "It was replaced while the jail was being built; try again");
    if (sys_errno == ELOOP)
        return brig_advise(err, code,
                           "A symbolic link in a writable directory is never followed; "
                           "name what it points to");
    if (step >= 0 && (size_t)step < plan->step_count && plan->steps[step].hint)
        return brig_advise(err, code, "%s", plan->steps[step].hint);
    if (step == PLAN_STEP_SECCOMP || step == PLAN_STEP_LANDLOCK || sys_errno == ENOSYS)
        return brig_advise(err, code,
                           "This kernel, or a filter around us, lacks it. Run `brig doctor`");
    if (code == BRIG_E_UNSUPPORTED) {
        char remedy[512];
        probe_userns_remedy(remedy, sizeof remedy);
        return brig_advise(err, code, "%s", remedy);
    }
    return code;
}

void plan_note_soft_failure(struct plan *plan, int step, int sys_errno)
{
    char text[ERROR_TEXT_MAX];
    if (step == PLAN_STEP_KEYRING &&
        sys_errno != ENOSYS) /* without keyrings there is none to leave */
        unenforced_add(&plan->unenforced, "the session keyring stays the caller's (%s)",
                       error_text(sys_errno, text));
    if (step == PLAN_STEP_REDIRECT)
        unenforced_add(&plan->unenforced,
                       "nf_tables cannot be used (%s): only the usual ports go through the door",
                       error_text(sys_errno, text));
    if (step == PLAN_STEP_TRACE)
        unenforced_add(&plan->unenforced, "refused system calls are not listed (%s)",
                       error_text(sys_errno, text));
    if (step == PLAN_STEP_ROUTES)
        unenforced_add(&plan->unenforced, "only names go through the door, no addresses (%s)",
                       error_text(sys_errno, text));
    if (step < 0 || (size_t)step >= plan->step_count || !plan->steps[step].hint)
        return; /* without a hint nothing was lost */
    unenforced_add(&plan->unenforced, "%s (%s)", plan->steps[step].hint,
                   error_text(sys_errno, text));
}
