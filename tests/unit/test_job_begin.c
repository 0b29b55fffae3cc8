/* SPDX-License-Identifier: MIT */
/* Jails that are begun with before their policy is whole. */
#include "jail/job/begun.h"

#include <grp.h>
#include <sys/prctl.h>

#include "job_support.h"
#include "policy/policy.h"

#define NOBODY 65534
#define MANY 600 /* more than there are slots for at first */

static char directory[] = "/tmp/brig-begin-XXXXXX";

/* Whether there is a child of ours left, dead or alive. */
static bool has_children(void)
{
    return waitpid(-1, NULL, WNOHANG | __WALL) >= 0 || errno != ECHILD;
}

static void grant(struct brig_policy *policy, const char *dest)
{
    struct brig_error err = {0};
    if (brig_policy_grant(policy, BRIG_READ_ONLY, directory, dest, 0, &err) < 0)
        tap_bail("brig_policy_grant: %s", err.message);
}

/* Goes on with what was begun with; the command has our own streams. */
static int go_on(struct brig_job *begun, const struct brig_policy *policy, const char *script,
                 struct brig_result *ret_result)
{
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    const struct brig_command command = {.argv = argv,
                                         .stdio = {{.kind = BRIG_STDIO_INHERIT},
                                                   {.kind = BRIG_STDIO_INHERIT},
                                                   {.kind = BRIG_STDIO_INHERIT}}};
    struct brig_error err = {0};
    struct brig_job *job = NULL;
    int code = job_start_begun(begun, policy, &command, &job, &err);
    if (code < 0) {
        *ret_result = (struct brig_result){.outcome = BRIG_SETUP_FAILED, .error = err};
        return code;
    }
    return finish(job, ret_result);
}

static void test_abandoned(void)
{
    struct brig_policy *policy = new_policy();
    struct brig_job *begun = job_begin(policy, NULL);
    tap_ok(begun != NULL, "a jail is begun with");
    job_abandon(begun);
    tap_ok(!has_children(), "and nothing of it is left when it is abandoned");
    job_abandon(NULL);
    brig_policy_free(policy);
}

static void test_grants(void)
{
    struct brig_result result;
    struct brig_policy *policy = new_policy();
    struct brig_job *begun = job_begin(policy, NULL);
    tap_ok(begun != NULL, "a jail is begun with without grants");
    (void)go_on(begun, policy, "test ! -e /begun/there", &result);
    is_exit(&result, 0, "what is not granted is not there");
    brig_result_done(&result);
    begun = job_begin(policy, NULL);
    grant(policy, "/begun");
    (void)go_on(begun, policy, "test -e /begun/there && ! touch /begun/new 2>/dev/null", &result);
    is_exit(&result, 0, "what is granted afterwards is there, and read-only");
    brig_result_done(&result);
    (void)go_on(NULL, policy, "test -e /begun/there", &result);
    is_exit(&result, 0, "as it is in one that was not begun with");
    brig_result_done(&result);
    brig_policy_free(policy);
    tap_ok(!has_children(), "nothing is left of any");
}

static void test_many(void)
{
    struct brig_result result;
    struct brig_policy *policy = new_policy();
    struct brig_job *begun = job_begin(policy, NULL);
    for (int i = 0; i < MANY; i++) {
        char dest[32];
        (void)snprintf(dest, sizeof dest, "/begun/%d", i);
        grant(policy, dest);
    }
    (void)go_on(begun, policy, "test -e /begun/0/there -a -e /begun/599/there", &result);
    is_exit(&result, 0, "more grants than there was room for are all there");
    brig_result_done(&result);
    brig_policy_free(policy);
}

/* What is asked for needs more before the namespaces than is known then. */
static void test_refused(void)
{
    struct brig_policy *policy = new_policy();
    set_limit(policy, BRIG_LIMIT_MEMORY_BYTES, 64 << 20);
    tap_ok(job_begin(policy, NULL) == NULL,
           "a jail with a limit that takes a group is not begun with");
    brig_policy_free(policy);
    tap_ok(!has_children(), "nor is anything of it there");
}

/* Root has ids to take first. In a user namespace with no other id than root's there is nobody else to
 * be: false. */
static bool become_ordinary(void)
{
    if (geteuid() != 0)
        return true;
    struct brig_policy *policy = new_policy();
    tap_ok(job_begin(policy, NULL) == NULL, "root's are not begun with");
    brig_policy_free(policy);
    if (setgroups(0, NULL) < 0 && errno == EPERM)
        return false;
    if (setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0 ||
        prctl(PR_SET_DUMPABLE, 1) < 0)
        tap_bail("setresuid: %s", strerror(errno));
    return true;
}

int main(void)
{
    if (!become_ordinary())
        return tap_done();
    if (!mkdtemp(directory))
        tap_bail("mkdtemp: %s", strerror(errno));
    char file[64];
    (void)snprintf(file, sizeof file, "%s/there", directory);
    int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        tap_bail("open: %s", strerror(errno));
    (void)close(fd);
    struct brig_policy *policy = new_policy();
    struct brig_job *begun = job_begin(policy, NULL);
    bool possible = begun != NULL;
    job_abandon(begun);
    brig_policy_free(policy);
    if (possible) {
        test_abandoned();
        test_grants();
        test_many();
    } else {
        tap_skip("one CPU, a terminal, groups to map or no user namespaces", "a jail begun with");
    }
    test_refused();
    (void)unlink(file);
    (void)rmdir(directory);
    return tap_done();
}
