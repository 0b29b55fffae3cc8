/* SPDX-License-Identifier: MIT */
/* What a run means to the process that asks for it: threads, many runs, templates, and that the
 * caller itself is none the wiser. */
#include <pthread.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "job_support.h"

/* ---- Many --------------------------------------------------------------------------------- */

#define THREADS 8
#define RUNS_PER_THREAD 20

static const struct brig_policy *shared_policy; /* only read: a policy may serve many runs */

static void *many_runs(void *argument)
{
    uintptr_t thread = (uintptr_t)argument, good = 0;
    for (unsigned i = 0; i < RUNS_PER_THREAD; i++) {
        char script[64], wanted[32];
        struct brig_result result;
        struct brig_policy *policy = brig_policy_copy(shared_policy);
        struct shell shell;
        (void)snprintf(script, sizeof(script), "echo %u-%u; exit %u", (unsigned)thread, i, i);
        (void)snprintf(wanted, sizeof(wanted), "%u-%u\n", (unsigned)thread, i);
        shell_init(&shell, script);
        if (policy && job_run(policy, &shell.command, &result, NULL) == 0) {
            good += result.outcome == BRIG_EXITED && result.exit_code == (int)i &&
                    result.out.data && strcmp(result.out.data, wanted) == 0;
            result_done(&result);
        }
        brig_policy_free(policy);
    }
    return (void *)good;
}

static void test_threads(void)
{
    struct brig_policy *policy = new_policy();
    pthread_t threads[THREADS];
    shared_policy = policy;
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, many_runs, (void *)i) != 0)
            tap_bail("pthread_create");
    uintptr_t good = 0;
    for (size_t i = 0; i < THREADS; i++) {
        void *answer;
        (void)pthread_join(threads[i], &answer);
        good += (uintptr_t)answer;
    }
    tap_is_int(good, THREADS * RUNS_PER_THREAD, "%d threads, %d runs each, all as they should be",
               THREADS, RUNS_PER_THREAD);
    brig_policy_free(policy);
}

static void *start_in_thread(void *argument)
{
    struct shell shell;
    shell_init(&shell, "sleep 0.5; exit 5");
    *(struct brig_job **)argument = start(shared_policy, &shell.command);
    return NULL;
}

/* A parent-death signal is about the thread that cloned, not about its process. */
static void test_thread_that_ends(void)
{
    struct brig_policy *policy = new_policy();
    struct brig_job *job = NULL;
    struct brig_result result;
    pthread_t thread;
    shared_policy = policy;
    if (pthread_create(&thread, NULL, start_in_thread, &job) != 0)
        tap_bail("pthread_create");
    (void)pthread_join(thread, NULL);
    (void)finish(job, &result);
    is_exit(&result, 5, "a job survives the end of the thread that started it");
    result_done(&result);
    brig_policy_free(policy);
}

static void test_policy_reuse(void)
{
    int good = 0;
    struct brig_policy *policy = new_policy();
    struct brig_job *jobs[10];
    for (int i = 0; i < 20; i++) {
        struct brig_result result;
        (void)run_shell(policy, "echo x >/tmp/x; ls /tmp", &result);
        good +=
            result.outcome == BRIG_EXITED && result.out.data && strcmp(result.out.data, "x\n") == 0;
        result_done(&result);
    }
    tap_is_int(good, 20, "one policy serves twenty runs, each with a /tmp of its own");
    good = 0;
    for (int i = 0; i < 10; i++) {
        struct shell shell;
        shell_init(&shell, "echo together");
        jobs[i] = start(policy, &shell.command);
    }
    brig_policy_free(policy); /* a started job does not need it any more */
    for (int i = 0; i < 10; i++) {
        struct brig_result result;
        (void)finish(jobs[i], &result);
        good += result.outcome == BRIG_EXITED && result.out.length == 9;
        result_done(&result);
    }
    tap_is_int(good, 10, "ten jobs at once, whose policy is freed while they run");
}

/* Root of a user namespace has no groups to make, which is listed as limits that are weaker. */
static size_t confine_missing(const struct brig_result *result)
{
    size_t count = 0;
    for (size_t i = 0; i < result->unenforced.count; i++)
        count += strncmp(result->unenforced.text[i], "limit ", 6) != 0;
    return count;
}

static void test_template(void)
{
    struct brig_error err = {0};
    struct brig_policy *policy = new_policy();
    struct brig_template *template_ = NULL;
    struct brig_result result;
    struct brig_job *jobs[3] = {NULL};
    struct shell shell;
    set_limit(policy, BRIG_LIMIT_WALL_MS, (uint64_t)await_ms());
    if (!tap_is_int(brig_template_new(policy, &template_, &err), 0, "a template is made"))
        tap_bail("brig_template_new: %s", err.message);
    brig_policy_free(policy);

    shell_init(&shell, "test ! -e /tmp/x && test ! -e /dev/shm/x && echo x >/tmp/x &&"
                       " echo x >/dev/shm/x && exit 6");
    for (int i = 0; i < 3; i++)
        if (brig_template_start(template_, &shell.command, &jobs[i], &err) < 0)
            tap_diag("brig_template_start: %s", err.message);
    for (int i = 0; i < 3; i++) {
        (void)finish(jobs[i], &result);
        is_exit(&result, 6, "a jail from a template has fresh private directories");
        tap_is_int(confine_missing(&result) > 0 && geteuid() == 0, 0,
                   "and everything is enforced in it");
        result_done(&result);
    }
    const char *const missing[] = {"/no/such/program", NULL};
    const struct brig_command nothing = {.size = sizeof(struct brig_command), .argv = missing};
    struct brig_job *job = NULL;
    tap_is_int(brig_template_start(template_, &nothing, &job, &err), BRIG_E_NOT_FOUND,
               "a missing program is told by a template as well");
    shell_init(&shell, "echo out; kill -9 $$");
    tap_is_int(brig_template_start(template_, &shell.command, &job, &err), 0,
               "the template still works after that");
    (void)finish(job, &result);
    tap_is_int(result.signal, SIGKILL, "and tells of signals");
    result_done(&result);

    /* The template goes first, the job ends well. */
    shell_init(&shell, "sleep 0.2; exit 3");
    tap_is_int(brig_template_start(template_, &shell.command, &job, &err), 0, "a last job");
    brig_template_free(template_);
    (void)finish(job, &result);
    is_exit(&result, 3, "a job outlives its template");
    result_done(&result);
}

/* ---- The caller --------------------------------------------------------------------------- */

struct caller_state {
    /* Of each signal; libc leaves garbage beyond the mask's 64 bits. */
    void (*handlers[65])(int);
    int handler_flags[65];
    uint64_t handler_masks[65];
    sigset_t mask;
    mode_t umask_;
    char cwd[4096];
    struct rlimit limits[RLIM_NLIMITS];
    struct itimerval timer;
    int dumpable, death_signal, subreaper, no_new_privs, fsuid;
    uid_t uids[3];
    gid_t gids[3], groups[256];
    int group_count;
    char name[16];
};

static void caller_state_read(struct caller_state *ret)
{
    memset(ret, 0, sizeof(*ret));
    for (int i = 1; i <= 64; i++) {
        struct sigaction action = {0};
        (void)sigaction(i, NULL, &action);
        ret->handlers[i] = action.sa_handler;
        ret->handler_flags[i] = action.sa_flags;
        memcpy(&ret->handler_masks[i], &action.sa_mask, sizeof(uint64_t));
    }
    (void)sigprocmask(SIG_SETMASK, NULL, &ret->mask);
    ret->umask_ = umask(0);
    (void)umask(ret->umask_);
    if (!getcwd(ret->cwd, sizeof(ret->cwd)))
        tap_bail("getcwd: %s", strerror(errno));
    for (int i = 0; i < RLIM_NLIMITS; i++)
        (void)getrlimit((__rlimit_resource_t)i, &ret->limits[i]);
    (void)getitimer(ITIMER_REAL, &ret->timer);
    ret->dumpable = prctl(PR_GET_DUMPABLE);
    (void)prctl(PR_GET_PDEATHSIG, &ret->death_signal);
    (void)prctl(PR_GET_CHILD_SUBREAPER, &ret->subreaper);
    ret->no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
    ret->fsuid = setfsuid((uid_t)-1);
    (void)getresuid(&ret->uids[0], &ret->uids[1], &ret->uids[2]);
    (void)getresgid(&ret->gids[0], &ret->gids[1], &ret->gids[2]);
    ret->group_count = getgroups(256, ret->groups);
    (void)prctl(PR_GET_NAME, ret->name);
}

static void caller_same(const char *name)
{
    static struct caller_state before, after;
    struct brig_policy *policy = new_policy();
    struct brig_result result;
    const char *const missing[] = {"/no/such/program", NULL};
    const struct brig_command nothing = {.size = sizeof(struct brig_command), .argv = missing};
    set_limit(policy, BRIG_LIMIT_WALL_MS, (uint64_t)await_ms());
    set_limit(policy, BRIG_LIMIT_GRACE_MS, 0);
    set_limit(policy, BRIG_LIMIT_OPEN_FILES, 32);
    caller_state_read(&before);
    (void)run_shell(policy, "exit 3", &result);
    is_exit(&result, 3, name);
    result_done(&result);
    set_limit(policy, BRIG_LIMIT_WALL_MS, 300);
    (void)run_shell(policy, "sleep 60", &result);
    is_outcome(&result, BRIG_TIMEOUT, "its timeout works too");
    result_done(&result);
    tap_is_int(job_run(policy, &nothing, &result, NULL), BRIG_E_NOT_FOUND, "so do its failures");
    result_done(&result);
    caller_state_read(&after);
    tap_ok(memcmp(&before.handlers, &after.handlers, sizeof(before.handlers)) == 0,
           "%s: no signal disposition changed", name);
    tap_ok(memcmp(&before.mask, &after.mask, sizeof(before.mask)) == 0, "%s: nor the signal mask",
           name);
    tap_ok(memcmp(&before.limits, &after.limits, sizeof(before.limits)) == 0,
           "%s: nor a resource limit", name);
    tap_is_int(after.umask_, before.umask_, "%s: nor the umask", name);
    tap_is_str(after.cwd, before.cwd, "%s: nor the working directory", name);
    tap_is_int(after.dumpable, before.dumpable, "%s: nor whether it can be dumped", name);
    tap_ok(memcmp(&before, &after, sizeof(before)) == 0, "%s: nor ids, groups, name, timers", name);
    tap_ok(no_children(), "%s: no child is left", name);
    brig_policy_free(policy);
}

static void test_caller(void)
{
    caller_same("a plain caller");

    struct sigaction old, ignore = {.sa_handler = SIG_IGN};
    (void)sigaction(SIGCHLD, &ignore, &old);
    caller_same("a caller that ignores SIGCHLD");
    struct sigaction no_wait = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT};
    (void)sigaction(SIGCHLD, &no_wait, NULL);
    caller_same("a caller that waits for no child");
    (void)sigaction(SIGCHLD, &old, NULL);

    sigset_t all, mask;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &mask);
    caller_same("a caller that blocks every signal");
    struct brig_policy *policy = new_policy();
    struct brig_result result;
    (void)run_shell(policy, "kill -TERM $$; exit 5", &result);
    is_outcome(&result, BRIG_SIGNALLED, "its jail does not begin with them blocked");
    result_done(&result);
    (void)sigprocmask(SIG_SETMASK, &mask, NULL);

    mode_t old_umask = umask(0777);
    caller_same("a caller with the strictest umask");
    (void)run_shell(policy, "umask 022; echo x >/tmp/x && cat /tmp/x && mkdir /var/tmp/d", &result);
    is_exit(&result, 0, "its jail has usable private directories all the same");
    (void)umask(old_umask);
    result_done(&result);
    brig_policy_free(policy);
}

static void test_other_children(void)
{
    struct brig_policy *policy = new_policy();
    struct brig_result result;
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(42);
    (void)run_shell(policy, "true", &result);
    tap_ok(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 42,
           "a child of the caller is left for the caller to reap");
    result_done(&result);
    brig_policy_free(policy);
}

/* Runs `body` in a forked copy of this program; the number it returns is the answer. */
static int in_fork(int (*body)(void))
{
    int status = 0;
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid < 0)
        tap_bail("fork: %s", strerror(errno));
    if (pid == 0)
        _exit(body());
    if (waitpid(pid, &status, 0) != pid)
        tap_bail("waitpid: %s", strerror(errno));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run_without_stdio(void)
{
    struct brig_result result;
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);
    struct shell shell;
    (void)close(0);
    (void)close(1);
    (void)close(2);
    shell_init(&shell, "cat; echo out; echo err >&2; exit 9");
    shell.command.stdio[0] =
        (struct brig_stdio){.kind = BRIG_STDIO_BYTES, .bytes = "in\n", .length = 3};
    if (job_run(policy, &shell.command, &result, NULL) < 0)
        return 1;
    return result.exit_code == 9 && result.out.data && result.err.data &&
                   strcmp(result.out.data, "in\nout\n") == 0 &&
                   strcmp(result.err.data, "err\n") == 0
               ? 0
               : 2;
}

/* With every small number of free fds: a run works or says why not, and leaks nothing. */
static int run_with_few_fds(void)
{
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);
    bool worked = false, failed = false;
    struct rlimit limit;
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    for (rlim_t room = 0; room <= 60; room++) {
        struct brig_error err = {0};
        struct brig_result result;
        struct shell shell;
        int before = open_fds();
        limit.rlim_cur = 3 + room;
        if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
            return 1;
        shell_init(&shell, "exit 3");
        int code = job_run(policy, &shell.command, &result, &err);
        limit.rlim_cur = limit.rlim_max < 1024 ? limit.rlim_max : 1024;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
        worked = worked || (code == 0 && result.exit_code == 3);
        failed = failed || code < 0;
        if (code < 0 && err.message[0] == '\0')
            return 2;
        result_done(&result);
        if (open_fds() != before)
            return 3;
        if (!no_children())
            return 4;
    }
    brig_policy_free(policy);
    return worked && failed ? 0 : 5;
}

static int kill_leash_fd;

static int start_and_die(void)
{
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);
    struct brig_job *job = NULL;
    struct shell shell;
    const struct brig_pass_fd pass = {kill_leash_fd, 7};
    shell_init(&shell, "trap '' TERM HUP; echo >&7; setsid sleep 60 & sleep 60");
    shell.command.pass_fds = &pass;
    shell.command.pass_fd_count = 1;
    if (brig_start(policy, &shell.command, &job, NULL) < 0)
        return 1;
    (void)kill(getpid(), SIGKILL);
    return 2;
}

static void test_hard_callers(void)
{
    tap_is_int(in_fork(run_without_stdio), 0, "a caller without fds 0 to 2 is served");
    tap_is_int(in_fork(run_with_few_fds), 0, "a caller short of fds is told, and loses none");

    struct leash leash;
    struct shell shell;
    shell_init(&shell, "");
    leash_init(&leash, &shell.command);
    kill_leash_fd = leash.write_fd;
    tap_is_int(in_fork(start_and_die), 128 + SIGKILL, "a caller is killed while its jail runs");
    tap_ok(leash_ends(&leash), "its jail dies with it");
}

static const struct job_test tests[] = {
    {"threads", test_threads},
    {"a thread that ends", test_thread_that_ends},
    {"policy reuse", test_policy_reuse},
    {"template", test_template},
    {"caller", test_caller},
    {"other children", test_other_children},
    {"hard callers", test_hard_callers},
};

int main(int argc, char **argv)
{
    return job_main(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
