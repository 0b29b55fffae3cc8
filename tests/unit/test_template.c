/* SPDX-License-Identifier: MIT */
/* Runs of a template with a policy of their own: what fits, what each has for itself, and that it sees
 * what a jail that was built from scratch sees. */
#include "jail/job/job.h"
#include "jail/prepare/template.h"

#include <sys/prctl.h>
#include <sys/stat.h>

#include "job_support.h"
#include "policy/policy.h"

#define FIRST_ID (1800000000U + (unsigned)getpid() % 10000 * 64) /* of this process alone */
#define ID_COUNT 16U

static const char *const shell[] = {"sh", "/workspace/main.sh", NULL};

/* As brigd has them; `uid` is of a range, as root. */
static struct brig_policy *policy_of(const char *code, uid_t uid)
{
    struct brig_policy *policy = new_policy();
    struct brig_error err = {0};
    const struct brig_identity identity = {.size = sizeof(struct brig_identity),
                                           .host_uid = geteuid() == 0 ? uid : (uid_t)-1,
                                           .host_gid = geteuid() == 0 ? (gid_t)uid : (gid_t)-1,
                                           .inside_uid = 65534,
                                           .inside_gid = 65534,
                                           .name = "sandbox"};
    int result = brig_policy_identity(policy, &identity, &err);
    policy->stranger = geteuid() == 0;
    if (result == 0)
        result = brig_policy_private(policy, BRIG_READ_ONLY, "/workspace", &err);
    if (result == 0)
        result = brig_policy_file(policy, "/workspace/main.sh", code, strlen(code), 0444, &err);
    if (result == 0)
        result = brig_policy_workdir(policy, "/workspace", &err);
    if (result == 0)
        result = brig_policy_on_unsupported(policy, BRIG_UNSUPPORTED_WARN, &err);
    if (result < 0)
        tap_bail("a policy: %s", err.message);
    return policy;
}

static struct brig_template *new_template(const struct brig_policy *policy)
{
    struct brig_template *template = NULL;
    struct brig_error err = {0};
    const struct template_ids ids = {.first = FIRST_ID, .count = geteuid() == 0 ? ID_COUNT + 1 : 0};
    if (template_new(policy, PLAN_NESTED, &ids, &template, &err) < 0)
        tap_bail("template_new: %s", err.message);
    return template;
}

static struct brig_template *common_template(void)
{
    struct brig_policy *policy = policy_of("exit 99\n", FIRST_ID);
    struct brig_template *template = new_template(policy);
    brig_policy_free(policy);
    return template;
}

/* With this input, or none if it is negative. */
static struct brig_job *start_reading(struct brig_template *template,
                                      const struct brig_policy *policy, int input)
{
    struct brig_job *job = NULL;
    struct brig_error err = {0};
    const struct brig_command command = {
        .size = sizeof(struct brig_command),
        .argv = shell,
        .stdio = {{.kind = input < 0 ? BRIG_STDIO_BYTES : BRIG_STDIO_FD, .fd = input},
                  {.kind = BRIG_STDIO_CAPTURE},
                  {.kind = BRIG_STDIO_CAPTURE}}};
    const struct job_source source = {.policy = policy, .template = template};
    if (job_start(&source, &command, &job, &err) < 0)
        tap_diag("job_start: %s", err.message);
    return job;
}

static struct brig_job *start_prepared(struct brig_template *template,
                                       const struct brig_policy *policy)
{
    return start_reading(template, policy, -1);
}

static void run_code(struct brig_template *template, const char *code, uid_t uid,
                     struct brig_result *ret_result)
{
    struct brig_policy *policy = policy_of(code, uid);
    (void)finish(start_prepared(template, policy), ret_result);
    brig_policy_free(policy);
}

static void test_own(void)
{
    struct brig_template *template = common_template();
    struct brig_policy *policy = policy_of("echo $WORD; ulimit -n; exit 7", FIRST_ID + 1);
    struct brig_result result;
    (void)brig_policy_setenv(policy, "WORD", "mine", NULL);
    set_limit(policy, BRIG_LIMIT_OPEN_FILES, 77);
    (void)finish(start_prepared(template, policy), &result);
    is_exit(&result, 7, "a run has its own code");
    tap_is_str(result.out.data, "mine\n77\n", "its own environment and limits");
    result_done(&result);
    brig_policy_free(policy);
    policy = policy_of("sleep 100", FIRST_ID + 1);
    set_limit(policy, BRIG_LIMIT_WALL_MS, 100);
    (void)finish(start_prepared(template, policy), &result);
    is_outcome(&result, BRIG_TIMEOUT, "and its own time");
    result_done(&result);
    brig_policy_free(policy);
    run_code(template, "", FIRST_ID + 1, &result);
    is_exit(&result, 0, "its code may be empty");
    result_done(&result);
    brig_template_free(template);
}

/* Two that live at the same time, by what the kernel calls their namespaces. */
#define NAMES                                                                                      \
    "for n in user mnt pid net ipc uts; do readlink /proc/self/ns/$n; done; "                      \
    "ls -A /tmp /dev/shm; echo x >/tmp/left; echo x >/dev/shm/left; read -r line; exit 0"

static void test_nothing_shared(void)
{
    struct brig_template *template = common_template();
    struct brig_policy *policies[2];
    struct brig_job *jobs[2];
    struct brig_result results[2];
    int ends[2]; /* both run until it is closed */
    if (pipe2(ends, O_CLOEXEC) < 0)
        tap_bail("pipe2: %s", strerror(errno));
    for (unsigned i = 0; i < 2; i++) {
        policies[i] = policy_of(NAMES, FIRST_ID + i);
        jobs[i] = start_reading(template, policies[i], ends[0]);
    }
    (void)close(ends[0]);
    (void)close(ends[1]);
    for (int i = 0; i < 2; i++) {
        (void)finish(jobs[i], &results[i]);
        is_exit(&results[i], 0, "one of two at a time");
        brig_policy_free(policies[i]);
    }
    char *save[2], *line[2];
    for (int i = 0; i < 2; i++)
        line[i] = strtok_r(results[i].out.data, "\n", &save[i]);
    int count = 0;
    for (; line[0] && line[1] && line[0][0] != '/'; count++) {
        tap_ok(strcmp(line[0], line[1]) != 0, "a namespace of its own: %s", line[0]);
        for (int i = 0; i < 2; i++)
            line[i] = strtok_r(NULL, "\n", &save[i]);
    }
    tap_is_int(count, 6, "all that were looked for");
    tap_ok(results[1].out.length > 0 && !strstr(save[1], "left"), "and empty directories");
    for (int i = 0; i < 2; i++)
        result_done(&results[i]);
    brig_template_free(template);
}

/* What a command can see of itself. Of mounts that lie on each other only the last can be seen; and a
 * tmpfs names who mounted it. */
#define LOOK                                                                                       \
    "cat /proc/self/limits /proc/self/cgroup; "                                                    \
    "grep -v -E '^(Pid|Tgid|Ngid|PPid|NStgid|NSpid|NSpgid|NSsid|Vm|Rss|.*ctxt|Threads|Cpus|Mems|"  \
    "Speculation)' /proc/self/status; ls -l /proc/self/fd | sed 's/.* \\([0-9]*\\) -> /\\1 "       \
    "/;s/:.*//'; "                                                                                 \
    "awk '{ last[$5] = $0 } END { for (i in last) print last[i] }' /proc/self/mountinfo | "        \
    "cut -d' ' -f4- | sed 's/,[ug]id=[0-9]*//g' | sort; "                                          \
    "env | sort; umask; pwd; id; hostname; echo $0; "                                              \
    "cat /proc/sys/user/max_user_namespaces /proc/net/dev; "                                       \
    "ls -la / /tmp /workspace /dev | grep -v ' proc$' | sed 's/[A-Z][a-z][a-z] .*[0-9]:[0-9]*//'"

static void test_same(void)
{
    struct brig_template *template = common_template();
    struct brig_policy *policy = policy_of(LOOK, FIRST_ID + 2);
    struct brig_result prepared, plain;
    (void)finish(start_prepared(template, policy), &prepared);
    const struct brig_command command = {.size = sizeof(struct brig_command),
                                         .argv = shell,
                                         .stdio = {{.kind = BRIG_STDIO_BYTES},
                                                   {.kind = BRIG_STDIO_CAPTURE},
                                                   {.kind = BRIG_STDIO_CAPTURE}}};
    tap_is_int(run(policy, &command, &plain), 0, "the same, from scratch");
    tap_ok(prepared.out.length > 1000, "there is something to compare");
    is_same_text(prepared.out.data, plain.out.data, "a command sees no difference");
    tap_is_str(prepared.err.data, plain.err.data, "nor has it another complaint");
    result_done(&prepared);
    result_done(&plain);
    brig_policy_free(policy);
    brig_template_free(template);
}

/* As whom its processes are on the host, and that ours is as it was. */
static void test_ids(void)
{
    if (geteuid() != 0) /* who cannot give ids */
        return;
    struct brig_template *template = common_template();
    struct brig_policy *policy = policy_of("echo; sleep 100", FIRST_ID + 5);
    struct brig_job *job = start_prepared(template, policy);
    struct brig_result result;
    struct stat info = {0};
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", brig_job_pid(job),
                   brig_job_pid(job));
    char text[64] = "";
    FILE *file = fopen(path, "re");
    if (!file || !fgets(text, sizeof text, file))
        tap_diag("no children: %s", path);
    if (file)
        (void)fclose(file);
    (void)snprintf(path, sizeof path, "/proc/%ld", strtol(text, NULL, 10));
    tap_is_int(stat(path, &info), 0, "its command is there");
    tap_is_int((long)info.st_uid, (long)(FIRST_ID + 5), "as the host id of its policy");
    tap_is_int(getuid(), 0, "we are who we were");
    tap_is_int(prctl(PR_GET_DUMPABLE), 1, "and as dumpable");
    (void)brig_job_cancel(job, NULL);
    (void)finish(job, &result);
    result_done(&result);
    brig_policy_free(policy);
    brig_template_free(template);
}

#define MIB ((uint64_t)1 << 20)
#define EAT "x=$(head -c %dM /dev/zero | tr '\\0' x); echo ${#x}"

static void eat(struct brig_template *template, int mebibytes, uint64_t limit_mib,
                struct brig_result *ret_result)
{
    char code[128];
    (void)snprintf(code, sizeof code, EAT, mebibytes);
    struct brig_policy *policy = policy_of(code, FIRST_ID + 7);
    set_limit(policy, BRIG_LIMIT_MEMORY_BYTES, limit_mib * MIB);
    (void)finish(start_prepared(template, policy), ret_result);
    brig_policy_free(policy);
}

/* Each run has a group of its own. */
static void test_group(void)
{
    struct cgroup_support support;
    cgroup_probe(false, &support);
    if (support.kind == CGROUP_NONE)
        return;
    struct brig_policy *policy = policy_of("x", FIRST_ID);
    set_limit(policy, BRIG_LIMIT_MEMORY_BYTES, 100 * MIB);
    struct brig_template *template = new_template(policy);
    struct brig_result result;
    eat(template, 20, 100, &result);
    is_exit(&result, 0, "a run with a group of its own");
    uint64_t peak = result.usage.peak_memory_bytes;
    result_done(&result);
    eat(template, 1, 100, &result);
    is_exit(&result, 0, "and a second one");
    tap_ok(peak > 20 * MIB && result.usage.peak_memory_bytes < peak / 2, "nobody was in it before");
    result_done(&result);
    eat(template, 40, 16, &result);
    tap_ok(result.outcome != BRIG_EXITED || result.exit_code != 0, "who wants less has less");
    tap_ok(result.usage.oom_kills > 0, "in a group of its own");
    result_done(&result);
    brig_template_free(template);
    brig_policy_free(policy);
}

/* Whoever has made its memory undumpable finds it so. */
static void test_undumpable(void)
{
    struct brig_template *template = common_template();
    struct brig_result result;
    tap_is_int(prctl(PR_SET_DUMPABLE, 0), 0, "a caller that cannot be dumped");
    if (geteuid() == 0) { /* else it cannot write the maps of its jail */
        run_code(template, "echo it runs", FIRST_ID + 6, &result);
        tap_is_str(result.out.data, "it runs\n", "has runs all the same");
        result_done(&result);
    }
    tap_is_int(prctl(PR_GET_DUMPABLE), 0, "and stays as it is");
    (void)prctl(PR_SET_DUMPABLE, 1);
    brig_template_free(template);
}

static bool fits_with(const struct brig_template *template, struct brig_policy *policy)
{
    bool fits = template_fits(template, policy);
    brig_policy_free(policy);
    return fits;
}

static void test_fits(void)
{
    struct brig_template *template = common_template();
    struct brig_policy *policy = policy_of("other", FIRST_ID + 3);
    set_limit(policy, BRIG_LIMIT_PROCESSES, 9);
    (void)brig_policy_setenv(policy, "A", "b", NULL);
    tap_ok(fits_with(template, policy), "another code, environment and limit fit");
    policy = policy_of("other", FIRST_ID);
    set_limit(policy, BRIG_LIMIT_TMP_BYTES, 12345);
    tap_ok(!fits_with(template, policy), "not another size of the private directories");
    policy = policy_of("other", FIRST_ID);
    (void)brig_policy_file(policy, "/workspace/more", "x", 1, 0444, NULL);
    tap_ok(!fits_with(template, policy), "nor one more file");
    policy = policy_of("other", FIRST_ID);
    (void)brig_policy_private(policy, BRIG_READ_WRITE, "/output", NULL);
    tap_ok(!fits_with(template, policy), "nor one more directory");
    policy = policy_of("other", FIRST_ID);
    (void)brig_policy_grant(policy, BRIG_READ_ONLY, "/tmp", NULL, 0, NULL);
    tap_ok(!fits_with(template, policy), "nor a grant");
    policy = policy_of("other", FIRST_ID);
    (void)brig_policy_network(policy, BRIG_NET_HOST, NULL);
    tap_ok(!fits_with(template, policy), "nor another network");
    policy = policy_of("other", FIRST_ID);
    (void)brig_policy_seccomp(policy, BRIG_SECCOMP_DEV, NULL);
    tap_ok(!fits_with(template, policy), "nor another filter");
    if (geteuid() == 0) {
        tap_ok(!fits_with(template, policy_of("other", FIRST_ID + ID_COUNT + 1)),
               "nor an id out of its range");
        tap_ok(!fits_with(template, policy_of("other", FIRST_ID - 1)), "below it either");
    }
    policy = policy_of("other", FIRST_ID);
    set_limit(policy, BRIG_LIMIT_TMP_BYTES, 12345);
    tap_ok(!start_prepared(template, policy), "what does not fit is not started");
    brig_policy_free(policy);
    brig_template_free(template);
}

/* A root directory that is replaced. */
static void test_is_current(void)
{
    char root[] = "/tmp/brig-template-XXXXXX", old[64];
    static const char *const places[] = {"tmp", "proc", "dev", "run", "workspace", "etc", "var"};
    struct brig_policy *policy = policy_of("x", FIRST_ID);
    if (!mkdtemp(root))
        tap_bail("mkdtemp: %s", strerror(errno));
    (void)snprintf(old, sizeof old, "%s.old", root);
    (void)chmod(root, 0755);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "%s/%s", root, places[i]);
        (void)mkdir(path, 0755);
    }
    (void)brig_policy_view(policy, BRIG_VIEW_ROOT, root, NULL);
    struct brig_template *template = new_template(policy);
    tap_ok(template_is_current(template), "what is mounted is what is there");
    tap_is_int(rename(root, old), 0, "until that is put aside");
    tap_ok(!template_is_current(template), "which is noticed");
    (void)mkdir(root, 0755);
    tap_ok(!template_is_current(template), "also if there is something else in its place");
    brig_template_free(template);
    brig_policy_free(policy);
    (void)rmdir(root);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char path[128];
        (void)snprintf(path, sizeof path, "%s/%s", old, places[i]);
        (void)rmdir(path);
    }
    (void)rmdir(old);
}

int main(void)
{
    test_own();
    test_nothing_shared();
    test_same();
    test_ids();
    test_group();
    test_undumpable();
    test_fits();
    test_is_current();
    return tap_done();
}
