/* SPDX-License-Identifier: MIT */
/* Refused system calls, listed: the same errno as ever, counted by name; who goes on asking is slowed
 * down and holds nobody up. The program in the jail is this one, with the name of a part. */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "jail/confine/denials.h"
#include "jail/confine/seccomp.h"
#include "jail/job/result.h"
#include "job_support.h"

#define THREADS 8
#define THREAD_CALLS 50
#define SIGNALLED_CALLS 300
#define FREE_QUESTIONS 1000 /* before the first pause */

/* ---- In the jail -------------------------------------------------------------------------- */

static bool is_refused(long number, int sys_errno)
{
    errno = 0;
    return syscall(number, 0, 0, 0, 0, 0, 0) == -1 && errno == sys_errno;
}

static int part_calls(void)
{
    bool fine = getppid() >= 0; /* allowed */
    for (int i = 0; i < 3; i++)
        fine = is_refused(SYS_ptrace, EPERM) && fine;
    fine = is_refused(SYS_mount, EPERM) && fine;
    fine = is_refused(SYS_io_uring_setup, ENOSYS) && fine;
    return fine ? 0 : 1;
}

static void *call_often(void *fine)
{
    for (int i = 0; i < THREAD_CALLS; i++)
        if (!is_refused(SYS_chroot, EPERM))
            *(bool *)fine = false;
    return NULL;
}

static int part_threads(void)
{
    pthread_t threads[THREADS];
    bool fine[THREADS];
    for (int i = 0; i < THREADS; i++) {
        fine[i] = true;
        if (pthread_create(&threads[i], NULL, call_often, &fine[i]) != 0)
            return 2;
    }
    int wrong = 0;
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
        wrong += !fine[i];
    }
    return wrong;
}

static void ignore_alarm(int signal)
{
    (void)signal;
}

static int part_signals(void)
{
    struct sigaction action = {.sa_handler = ignore_alarm, .sa_flags = SA_RESTART};
    struct itimerval often = {.it_interval = {.tv_usec = 300}, .it_value = {.tv_usec = 300}};
    if (sigaction(SIGALRM, &action, NULL) < 0 || setitimer(ITIMER_REAL, &often, NULL) < 0)
        return 2;
    for (int i = 0; i < SIGNALLED_CALLS; i++)
        if (!is_refused(SYS_chroot, EPERM))
            return 1;
    return 0;
}

static int part_loop(void)
{
    for (;;)
        if (!is_refused(SYS_chroot, EPERM))
            return 1;
}

/* Children that are killed while they ask. */
static int part_dying(void)
{
    for (int i = 0; i < 50; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(part_loop());
        (void)kill(child, SIGKILL);
        (void)waitpid(child, NULL, 0);
    }
    return part_calls();
}

static int part_descriptors(void)
{
    for (int fd = 3; fd < 256; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            return 1;
    return 0;
}

static const struct {
    const char *name;
    int (*run)(void);
} parts[] = {
    {"calls", part_calls}, {"threads", part_threads}, {"signals", part_signals},
    {"loop", part_loop},   {"dying", part_dying},     {"descriptors", part_descriptors},
};

/* ---- Outside ------------------------------------------------------------------------------ */

/* A copy of this program in /tmp: as root it is id-mapped, which not every filesystem with the built
 * programs supports. */
static char probe[] = "/tmp/brig-denials-XXXXXX";

static void copy_self(void)
{
    int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int to = mkostemp(probe, O_CLOEXEC);
    struct stat info;
    bool done = from >= 0 && to >= 0 && fstat(from, &info) == 0 && fchmod(to, 0755) == 0;
    for (off_t at = 0; done && at < info.st_size;)
        done = sendfile(to, from, &at, (size_t)(info.st_size - at)) > 0;
    if (!done)
        tap_bail("cannot copy this program: %s", strerror(errno));
    (void)close(from);
    (void)close(to);
}

static struct brig_policy *probe_policy(bool trace)
{
    struct brig_policy *policy = new_policy();
    struct brig_error err = {0};
    if (brig_policy_grant(policy, BRIG_READ_ONLY, probe, "/opt/probe", 0, &err) < 0 ||
        brig_policy_trace(policy, trace, &err) < 0)
        tap_bail("the policy: %s", err.message);
    return policy;
}

static void run_part(const struct brig_policy *policy, const char *part, struct brig_result *ret)
{
    const char *argv[] = {"/opt/probe", "part", part, NULL};
    struct brig_command command = {.size = sizeof(struct brig_command), .argv = argv};
    command.stdio[2].kind = BRIG_STDIO_CAPTURE;
    (void)run(policy, &command, ret);
}

static void is_count(const struct brig_result *result, const char *name, uint64_t count)
{
    uint64_t seen = 0;
    int sys_errno = EPERM;
    for (size_t i = 0; i < result->denials.count; i++)
        if (strcmp(result->denials.items[i].name, name) == 0) {
            seen += result->denials.items[i].count;
            sys_errno = result->denials.items[i].sys_errno;
        }
    tap_ok(seen == count && sys_errno == EPERM, "%s: EPERM, %llu times (%llu seen)", name,
           (unsigned long long)count, (unsigned long long)seen);
}

static void test_counts(void)
{
    int before = open_fds();
    struct brig_result result;
    struct brig_policy *policy = probe_policy(false);
    run_part(policy, "calls", &result);
    is_exit(&result, 0, "without tracing calls are refused");
    tap_ok(!result.denials.traced && result.denials.count == 0, "and nothing is said of it");
    result_done(&result);
    brig_policy_free(policy);

    policy = probe_policy(true);
    run_part(policy, "calls", &result);
    is_exit(&result, 0, "with it they are refused in the same way");
    tap_ok(result.denials.traced, "and listed");
    is_count(&result, "ptrace", 3);
    is_count(&result, "mount", 1);
    tap_is_int((int)result.denials.total, 5, "and one call that the kernel may lack");
    char *text = NULL;
    tap_is_int(brig_result_json(&result, &text, NULL), 0, "they are in the JSON");
    tap_has_str(text, "\"name\":\"ptrace\",\"errno\":1,\"count\":3", "by name");
    free(text);
    result_done(&result);

    (void)run_shell(policy, "exit 3", &result);
    is_exit(&result, 3, "an ordinary command");
    tap_ok(result.denials.traced && result.denials.total == 0, "is refused nothing");
    result_done(&result);
    run_part(policy, "descriptors", &result);
    is_exit(&result, 0, "the listener is not in the jail");
    result_done(&result);
    brig_policy_free(policy);
    tap_is_int(open_fds(), before, "no descriptor is left");
}

static void test_many_at_once(void)
{
    struct brig_policy *policy = probe_policy(true);
    struct brig_result result;
    run_part(policy, "threads", &result);
    is_exit(&result, 0, "threads that ask at the same time");
    is_count(&result, "chroot", (uint64_t)THREADS * THREAD_CALLS);
    result_done(&result);
    run_part(policy, "signals", &result);
    is_exit(&result, 0, "a program with many signals gets its answers");
    tap_ok(result.denials.total >= SIGNALLED_CALLS, "and each is counted");
    result_done(&result);
    run_part(policy, "dying", &result);
    is_exit(&result, 0, "those who die over a question hold nobody up");
    is_count(&result, "ptrace", 3);
    result_done(&result);
    brig_policy_free(policy);
}

static void test_loop(void)
{
    struct brig_policy *policy = probe_policy(true);
    struct brig_result result;
    set_limit(policy, BRIG_LIMIT_WALL_MS, 3000);
    set_limit(policy, BRIG_LIMIT_GRACE_MS, 200);
    uint64_t begin = await_now_ms();
    run_part(policy, "loop", &result);
    /* 32 in each pause of 10 ms: the longer it took, the more may have come. */
    uint64_t most = FREE_QUESTIONS + 64 + (await_now_ms() - begin) / 10 * 32;
    is_outcome(&result, BRIG_TIMEOUT, "a program that asks for ever ends when its time is over");
    tap_ok(result.denials.total > 0, "its questions are answered");
    tap_ok(result.denials.total <= most, "%llu questions, at most %llu",
           (unsigned long long)result.denials.total, (unsigned long long)most);
    result_done(&result);
    brig_policy_free(policy);
}

static void test_unserved(void)
{
    struct brig_policy *policy = probe_policy(true);
    const char *argv[] = {"/opt/probe", "part", "loop", NULL};
    struct brig_command command = {.size = sizeof(struct brig_command), .argv = argv};
    struct brig_job *job = start(policy, &command);
    tap_ok(job != NULL, "a job that nobody serves");
    brig_job_free(job);
    tap_ok(no_children(), "can be freed all the same");
    brig_policy_free(policy);
}

static void test_other_jails(void)
{
    struct brig_policy *policy = probe_policy(true);
    struct brig_result result;
    struct brig_error err = {0};
    struct brig_template *template = NULL;
    const char *argv[] = {"/opt/probe", "part", "calls", NULL};
    struct brig_command command = {.size = sizeof(struct brig_command), .argv = argv};
    tap_is_int(brig_template_new(policy, &template, &err), 0, "a template is made");
    struct brig_job *job = NULL;
    for (int i = 0; i < 2; i++) {
        tap_is_int(brig_template_start(template, &command, &job, &err), 0, "a run of it");
        (void)finish(job, &result);
        is_exit(&result, 0, "is refused what is refused");
        is_count(&result, "ptrace", 3);
        result_done(&result);
    }
    brig_template_free(template);
    tap_is_int(brig_policy_disable(policy, BRIG_LAYER_SECCOMP, &err), 0, "without a filter");
    (void)run_shell(policy, "exit 0", &result);
    tap_ok(!result.denials.traced, "there is nothing to list");
    result_done(&result);
    brig_policy_free(policy);
}

static void test_bounds(void)
{
    struct brig_denials seen = {0};
    for (int i = 0; i < BRIG_DENIALS_MAX + 2; i++)
        denials_note(&seen, seccomp_number("acct") - i, EPERM);
    tap_is_int((int)seen.count, BRIG_DENIALS_MAX, "so many kinds are listed");
    tap_is_int((int)seen.total, BRIG_DENIALS_MAX + 2, "and all are counted");
    denials_note(&seen, seccomp_number("acct"), EPERM);
    tap_is_int((int)seen.items[0].count, 2, "one that is listed already is counted there");
    tap_is_int((int)denials_pause_us(1000), 0, "1000 questions are free");
    tap_is_int((int)denials_pause_us(1001), 10000, "then there are pauses");
    tap_is_int((int)denials_pause_us(100001), 250000, "and long ones for who never ends");
}

static const struct job_test tests[] = {
    {"bounds", test_bounds}, {"counts", test_counts},     {"many at once", test_many_at_once},
    {"a loop", test_loop},   {"unserved", test_unserved}, {"other jails", test_other_jails},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 3 && i < sizeof parts / sizeof parts[0]; i++)
        if (strcmp(argv[1], "part") == 0 && strcmp(argv[2], parts[i].name) == 0)
            _exit(parts[i].run()); /* a leak checker would trace us, and be refused */
    copy_self();
    int status = job_main(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
    (void)unlink(probe);
    return status;
}
