/* SPDX-License-Identifier: MIT */
/* Namespaces that are made before the run they are for. */
#include "jail/prepare/ready.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "jail/job/begun.h"
#include "jail/plan/plan.h"
#include "job_support.h"
#include "policy/policy.h"

#define NOBODY 65534
#define MUTATIONS 3000

static struct str describe(const struct brig_policy *policy)
{
    struct str shape = {0};
    struct plan plan;
    struct identity identity;
    struct brig_error err = {0};
    if (plan_begin(policy, PLAN_FULL, 0, &plan, &identity, &err) < 0)
        tap_bail("plan_begin: %s", err.message);
    if (!ready_describe(&plan, &shape))
        str_done(&shape);
    plan_done(&plan);
    return shape;
}

static bool are_equal(const struct str *a, const struct str *b)
{
    return a->length > 0 && a->length == b->length && memcmp(a->data, b->data, a->length) == 0;
}

static struct brig_policy *with_network(enum brig_network network)
{
    struct brig_policy *policy = new_policy();
    policy->network = network;
    return policy;
}

static void test_shapes(void)
{
    struct brig_policy *none = with_network(BRIG_NET_NONE), *open = with_network(BRIG_NET_OPEN);
    autostr struct str first = describe(open);
    autostr struct str again = describe(open);
    autostr struct str other = describe(none);
    tap_ok(are_equal(&first, &again), "the same policy has the same shape");
    tap_ok(!are_equal(&first, &other), "another network has another");
    struct brig_error err = {0};
    if (brig_policy_hostname(open, "elsewhere", &err) < 0)
        tap_bail("brig_policy_hostname: %s", err.message);
    autostr struct str named = describe(open);
    tap_ok(!are_equal(&first, &named), "so has another host name");
    struct rlimit before, less;
    if (getrlimit(RLIMIT_SIGPENDING, &before) < 0)
        tap_bail("getrlimit: %s", strerror(errno));
    less = (struct rlimit){.rlim_cur = before.rlim_cur / 2, .rlim_max = before.rlim_max};
    (void)setrlimit(RLIMIT_SIGPENDING, &less);
    autostr struct str limited = describe(none);
    (void)setrlimit(RLIMIT_SIGPENDING, &before);
    tap_ok(other.length == limited.length && !are_equal(&other, &limited),
           "and another limit that a user namespace keeps");
    none->allow_nested = true;
    autostr struct str nested = describe(none);
    tap_ok(nested.length == 0, "where a later namespace would be refused there is none");
    brig_policy_free(none);
    brig_policy_free(open);
}

static bool is_listening(const struct ready_set *set)
{
    for (size_t i = 0; i < set->socket_count; i++) {
        struct stat info;
        if (fstat(set->sockets[i].fd, &info) < 0 || !S_ISSOCK(info.st_mode))
            return false;
    }
    return set->socket_count > 0;
}

static bool differ(const struct ready_set *a, const struct ready_set *b)
{
    for (size_t i = 0; i < READY_NAMESPACES; i++) {
        struct stat one, other;
        if (fstat(a->namespaces[i], &one) < 0 || fstat(b->namespaces[i], &other) < 0 ||
            one.st_ino == other.st_ino)
            return false;
    }
    return true;
}

static void test_sets(void)
{
    struct brig_policy *open = with_network(BRIG_NET_OPEN);
    struct brig_policy *host = with_network(BRIG_NET_HOST);
    autostr struct str shape = describe(open);
    autostr struct str without = describe(host);
    struct ready_set first = READY_SET_NONE, second = READY_SET_NONE, bare = READY_SET_NONE;
    bool made = ready_make(shape.data, shape.length, &first) &&
                ready_make(shape.data, shape.length, &second);
    tap_ok(made, "a set is made, and another");
    tap_ok(made && differ(&first, &second), "which has nothing of the first");
    tap_ok(made && is_listening(&first), "the door's sockets come with it");
    tap_ok(ready_make(without.data, without.length, &bare) && bare.namespaces[READY_NET] < 0 &&
               bare.socket_count == 0 && bare.namespaces[READY_USER] >= 0,
           "with the host's network there is neither network nor door");
    tap_ok(waitpid(-1, NULL, WNOHANG | __WALL) < 0 && errno == ECHILD, "nobody is left of that");
    ready_set_done(&first);
    ready_set_done(&second);
    ready_set_done(&bare);
    brig_policy_free(open);
    brig_policy_free(host);
}

/* Only of its beginning, so that hardly any is a shape after all: each of those is made. */
static void test_nonsense(void)
{
    struct brig_policy *open = with_network(BRIG_NET_OPEN);
    autostr struct str shape = describe(open);
    struct ready_set set = READY_SET_NONE;
    size_t made = 0;
    for (size_t length = 0; length < shape.length; length++)
        made += ready_make(shape.data, length, &set);
    tap_ok(made == 0, "no part of a shape is one");
    autofree char *copy = malloc(shape.length);
    unsigned random = 7;
    for (unsigned i = 0; copy && i < MUTATIONS; i++) {
        memcpy(copy, shape.data, shape.length);
        for (int k = 0; k < 3; k++) {
            random = random * 1103515245 + 12345;
            copy[(random >> 8) % 64] = (char)(random >> 20);
        }
        if (ready_make(copy, shape.length, &set))
            ready_set_done(&set);
    }
    tap_ok(copy != NULL, "shapes that were tampered with are read to their end and no further");
    brig_policy_free(open);
}

/* What a jail takes its namespaces from. */
struct source {
    struct ready_set set;
    unsigned asked;
    bool broken; /* what it gives cannot be joined */
    char user[64];
};

static void ask(void *arg, const char *shape, size_t length)
{
    struct source *source = arg;
    source->asked++;
    if (!ready_make(shape, length, &source->set))
        tap_bail("no set was made");
    struct stat info = {0};
    (void)fstat(source->set.namespaces[READY_USER], &info);
    (void)snprintf(source->user, sizeof source->user, "user:[%lu]", (unsigned long)info.st_ino);
    if (source->broken) {
        (void)close(source->set.namespaces[READY_IPC]);
        source->set.namespaces[READY_IPC] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
}

static bool take(void *arg, struct ready_set *ret_set)
{
    struct source *source = arg;
    *ret_set = source->set;
    source->set = READY_SET_NONE;
    return true;
}

static bool run_from(struct source *source, const char *script)
{
    struct brig_policy *policy = with_network(BRIG_NET_NONE);
    const struct job_source from = {.ask = ask, .take = take, .arg = source};
    const char *const argv[] = {"/bin/sh", "-c", script, source->user, NULL};
    const struct brig_command command = {.argv = argv,
                                         .stdio = {{.kind = BRIG_STDIO_INHERIT},
                                                   {.kind = BRIG_STDIO_INHERIT},
                                                   {.kind = BRIG_STDIO_INHERIT}}};
    struct brig_error err = {0};
    struct brig_job *begun = job_begin(policy, &from), *job = NULL;
    struct brig_result result = {0};
    bool passed = begun && job_start_begun(begun, policy, &command, &job, &err) == 0 &&
                  finish(job, &result) == 0 && result.outcome == BRIG_EXITED &&
                  result.exit_code == 0;
    if (!passed)
        tap_diag("%s %d", err.message, result.exit_code);
    brig_result_done(&result);
    brig_policy_free(policy);
    return passed;
}

static void test_jails(void)
{
    struct source source = {.set = READY_SET_NONE};
    tap_ok(run_from(&source, "test \"$(readlink /proc/self/ns/user)\" = \"$0\"") &&
               source.asked == 1,
           "a jail is in the set that was given to it");
    struct source broken = {.set = READY_SET_NONE, .broken = true};
    tap_ok(run_from(&broken, "test \"$(readlink /proc/self/ns/user)\" != \"$0\"") &&
               broken.asked == 1,
           "where that cannot be joined it makes its own");
    struct source abandoned = {.set = READY_SET_NONE};
    struct brig_policy *policy = with_network(BRIG_NET_NONE);
    const struct job_source from = {.ask = ask, .take = take, .arg = &abandoned};
    job_abandon(job_begin(policy, &from));
    tap_ok(waitpid(-1, NULL, WNOHANG | __WALL) < 0 && errno == ECHILD,
           "of a jail that is abandoned nothing is left");
    brig_policy_free(policy);
}

/* Root makes its own. */
static bool become_ordinary(void)
{
    if (geteuid() != 0)
        return true;
    if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
        setresuid(NOBODY, NOBODY, NOBODY) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0) {
        tap_skip("cannot become an ordinary user here", "namespaces made ahead");
        return false;
    }
    return true;
}

/* Not where namespaces are refused, groups are mapped from outside, or the kernel does not redirect. */
static bool is_possible(void)
{
    struct brig_policy *open = with_network(BRIG_NET_OPEN);
    autostr struct str shape = describe(open);
    struct ready_set set = READY_SET_NONE;
    bool made = shape.length > 0 && ready_make(shape.data, shape.length, &set);
    ready_set_done(&set);
    struct brig_job *begun = job_begin(open, NULL);
    job_abandon(begun);
    brig_policy_free(open);
    return made && begun;
}

int main(void)
{
    if (!become_ordinary())
        return tap_done();
    if (is_possible()) {
        test_shapes();
        test_sets();
        test_nonsense();
        test_jails();
    } else {
        tap_skip("one CPU, a terminal, groups to map, no nf_tables or no user namespaces",
                 "namespaces made ahead");
    }
    return tap_done();
}
