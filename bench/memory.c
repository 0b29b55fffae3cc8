/* SPDX-License-Identifier: MIT */
/* Holds many jails open at once and says what each costs beyond its command: the same number of
 * bare processes of the same command is measured first and taken off. */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define JAILS_MAX 20000
#define TARGET_KB 450.0
#define SECONDS_MAX 120 /* for all of it; what is held then is released and the run fails */
#define SETTLE_STEPS_MAX 40
#define SETTLE_STEP_NS 100000000
#define SETTLED_KB 512

enum field {
    FIELD_AVAILABLE,
    FIELD_SLAB,
    FIELD_PAGE_TABLES,
    FIELD_KERNEL_STACK,
    FIELD_PERCPU,
    FIELD_SHMEM,
    FIELD_ANON,
    FIELD_COUNT
};

static const char *const field_names[FIELD_COUNT] = {
    [FIELD_AVAILABLE] = "MemAvailable:", [FIELD_SLAB] = "Slab:",
    [FIELD_PAGE_TABLES] = "PageTables:", [FIELD_KERNEL_STACK] = "KernelStack:",
    [FIELD_PERCPU] = "Percpu:",          [FIELD_SHMEM] = "Shmem:",
    [FIELD_ANON] = "AnonPages:",
};

struct snapshot {
    double kb[FIELD_COUNT];
};

/* Per instance, in kB. */
struct cost {
    struct snapshot memory;
    double pss;
    unsigned pss_missing; /* processes whose smaps could not be read */
    double own_pss;       /* of this program, which holds the jobs */
    double seconds;
};

static void read_memory(struct snapshot *ret)
{
    char line[256];
    FILE *file = fopen("/proc/meminfo", "re");
    if (!file)
        bench_die("/proc/meminfo", strerror(errno));
    while (fgets(line, sizeof(line), file)) {
        for (size_t i = 0; i < FIELD_COUNT; i++)
            if (strncmp(line, field_names[i], strlen(field_names[i])) == 0)
                ret->kb[i] = strtod(line + strlen(field_names[i]), NULL);
    }
    (void)fclose(file);
}

/* Namespaces are torn down in the background: waits until the figures stand still. */
static void settle(struct snapshot *ret)
{
    const struct timespec step = {.tv_nsec = SETTLE_STEP_NS};
    double before = -1;
    unsigned calm = 0;
    for (unsigned i = 0; i < SETTLE_STEPS_MAX && calm < 5; i++) {
        (void)nanosleep(&step, NULL);
        read_memory(ret);
        double moved = ret->kb[FIELD_AVAILABLE] - before;
        calm = moved < SETTLED_KB && moved > -SETTLED_KB ? calm + 1 : 0;
        before = ret->kb[FIELD_AVAILABLE];
    }
}

/* The proportional set size in kB, or -1 where it cannot be read. */
static double read_pss(pid_t pid)
{
    char path[64], line[256];
    double pss = -1;
    (void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return -1;
    while (fgets(line, sizeof(line), file))
        if (strncmp(line, "Pss:", 4) == 0)
            pss = strtod(line + 4, NULL);
    (void)fclose(file);
    return pss;
}

static void add_pss(pid_t pid, struct cost *cost)
{
    double pss = read_pss(pid);
    if (pss < 0)
        cost->pss_missing++;
    else
        cost->pss += pss;
}

/* The children of pid; a kernel without CONFIG_PROC_CHILDREN has none to show. */
static void add_children_pss(pid_t pid, struct cost *cost)
{
    char path[64], line[256];
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *file = fopen(path, "re");
    if (!file) {
        cost->pss_missing++;
        return;
    }
    if (fgets(line, sizeof(line), file)) {
        char *end = line;
        for (long child = strtol(line, &end, 10); child > 0; child = strtol(end, &end, 10))
            add_pss((pid_t)child, cost);
    }
    (void)fclose(file);
}

struct memory_bench {
    unsigned count;
    const char *const *argv;
    const char *directory; /* granted read-only, or NULL */
    uint64_t deadline_ns;
};

static bool out_of_time(const struct memory_bench *bench)
{
    return bench_now_ns() > bench->deadline_ns;
}

static void finish_cost(const struct memory_bench *bench, const struct snapshot *before,
                        const struct snapshot *during, double own_before, struct cost *cost)
{
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        double delta = during->kb[i] - before->kb[i];
        cost->memory.kb[i] = (i == FIELD_AVAILABLE ? -delta : delta) / bench->count;
    }
    cost->pss /= bench->count;
    cost->own_pss = (read_pss(getpid()) - own_before) / bench->count;
}

static void hold_bare(const struct memory_bench *bench, struct cost *cost)
{
    static char *const envp[] = {NULL};
    struct snapshot before = {0}, during = {0};
    pid_t *pids = calloc(bench->count, sizeof(*pids));
    if (!pids)
        bench_die("calloc", strerror(errno));
    settle(&before);
    double own_before = read_pss(getpid());
    uint64_t begin = bench_now_ns();
    unsigned started = 0;
    int error = 0;
    while (started < bench->count && error == 0 && !out_of_time(bench)) {
        error = posix_spawn(&pids[started], bench->argv[0], NULL, NULL,
                            (char *const *)(uintptr_t)bench->argv, envp);
        started += error == 0;
    }
    cost->seconds = (double)(bench_now_ns() - begin) / 1e9;
    if (started == bench->count) {
        settle(&during);
        for (unsigned i = 0; i < started; i++)
            add_pss(pids[i], cost);
        finish_cost(bench, &before, &during, own_before, cost);
    }
    for (unsigned i = 0; i < started; i++)
        (void)kill(pids[i], SIGKILL);
    for (unsigned i = 0; i < started; i++)
        (void)waitpid(pids[i], NULL, 0);
    free(pids);
    if (started < bench->count)
        bench_die(bench->argv[0], error ? strerror(error) : "out of time");
}

static struct brig_policy *make_policy(const struct memory_bench *bench)
{
    struct brig_error err = {0};
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);
    if (!policy)
        bench_die("brig_policy_new", "out of memory");
    bench_must(brig_policy_on_unsupported(policy, BRIG_UNSUPPORTED_IGNORE, &err), "policy", &err);
    /* No time limit: a timer per jail is the caller's choice. RLIMIT_NPROC counts per user. */
    bench_must(brig_policy_limit(policy, BRIG_LIMIT_PROCESSES, 0, &err), "policy", &err);
    bench_must(brig_policy_limit(policy, BRIG_LIMIT_WALL_MS, 0, &err), "policy", &err);
    if (bench->directory)
        bench_must(brig_policy_grant(policy, BRIG_READ_ONLY, bench->directory, NULL, 0, &err),
                   "grant", &err);
    return policy;
}

static void hold_jails(const struct memory_bench *bench, struct cost *cost)
{
    struct snapshot before = {0}, during = {0};
    struct brig_error err = {0};
    struct brig_policy *policy = make_policy(bench);
    struct brig_command command = BRIG_COMMAND_INIT;
    command.argv = bench->argv;
    struct brig_job **jobs = calloc(bench->count, sizeof(struct brig_job *));
    if (!jobs)
        bench_die("calloc", strerror(errno));
    settle(&before);
    double own_before = read_pss(getpid());
    uint64_t begin = bench_now_ns();
    unsigned started = 0;
    int code = 0;
    while (started < bench->count && code == 0 && !out_of_time(bench)) {
        code = brig_start(policy, &command, &jobs[started], &err);
        started += code == 0;
    }
    cost->seconds = (double)(bench_now_ns() - begin) / 1e9;
    if (started == bench->count) {
        settle(&during);
        for (unsigned i = 0; i < started; i++) {
            add_pss(brig_job_pid(jobs[i]), cost);
            add_children_pss(brig_job_pid(jobs[i]), cost);
        }
        finish_cost(bench, &before, &during, own_before, cost);
    }
    for (unsigned i = 0; i < started; i++)
        brig_job_free(jobs[i]);
    free(jobs);
    brig_policy_free(policy);
    if (started < bench->count) {
        fprintf(stderr, "bench: %u of %u jails could be started\n", started, bench->count);
        bench_die("brig_start", code ? err.message : "out of time");
    }
}

/* Kernel and user memory of one instance, added up from what can be told apart: unlike MemAvailable
 * it does not move with what else happens on the machine. Where a process may not be looked at, all
 * anonymous pages stand for Pss. */
static double sum_kb(const struct cost *cost, bool pss_known)
{
    double sum = cost->own_pss;
    for (size_t i = FIELD_SLAB; i <= FIELD_SHMEM; i++)
        sum += cost->memory.kb[i];
    return sum + (pss_known ? cost->pss : cost->memory.kb[FIELD_ANON] - cost->own_pss);
}

static void report(const char *name, const struct cost *bare, const struct cost *jailed)
{
    static const char *const labels[FIELD_COUNT] = {
        [FIELD_AVAILABLE] = "all (MemAvailable)",
        [FIELD_SLAB] = "slab",
        [FIELD_PAGE_TABLES] = "page tables",
        [FIELD_KERNEL_STACK] = "kernel stacks",
        [FIELD_PERCPU] = "per-cpu",
        [FIELD_SHMEM] = "tmpfs",
        [FIELD_ANON] = "anonymous pages",
    };
    printf("\n%-24s %10s %10s %10s\n", name, "bare", "jailed", "jail's own");
    for (size_t i = 0; i < FIELD_COUNT; i++)
        printf("  %-22s %10.1f %10.1f %10.1f\n", labels[i], bare->memory.kb[i],
               jailed->memory.kb[i], jailed->memory.kb[i] - bare->memory.kb[i]);
    printf("  %-22s %10.1f %10.1f %10.1f", "Pss", bare->pss, jailed->pss, jailed->pss - bare->pss);
    if (jailed->pss_missing > 0)
        printf("  (%u processes could not be read)", jailed->pss_missing);
    printf("\n  %-22s %10.1f %10.1f %10.1f\n", "Pss of the caller", bare->own_pss, jailed->own_pss,
           jailed->own_pss - bare->own_pss);
    printf("  %-22s %10.2f %10.2f\n", "seconds to start all", bare->seconds, jailed->seconds);
}

/* Returns whether the target is met. */
static bool measure(const char *name, const struct memory_bench *bench)
{
    struct cost bare = {0}, jailed = {0};
    struct cost ignored = {0};
    /* Once at a tenth first, so that caches and slabs of the first use are not counted. */
    struct memory_bench small = *bench;
    small.count = bench->count / 10 + 1;
    hold_jails(&small, &ignored);
    hold_bare(bench, &bare);
    hold_jails(bench, &jailed);
    report(name, &bare, &jailed);
    bool pss_known = jailed.pss_missing == 0 && bare.pss_missing == 0;
    double own = sum_kb(&jailed, pss_known) - sum_kb(&bare, pss_known);
    /* What the machine has less of decides; the sum also counts what the kernel could reclaim, and
     * tables of file descriptors that are as large as the caller's. */
    double lost = jailed.memory.kb[FIELD_AVAILABLE] - bare.memory.kb[FIELD_AVAILABLE];
    bool met = lost <= TARGET_KB;
    printf("  %.0f kB a jail beyond its command by MemAvailable (target %.0f: %s), %.0f added up\n",
           lost, TARGET_KB, met ? "met" : "missed", own);
    return met;
}

static void raise_open_files(unsigned jails)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        bench_die("getrlimit", strerror(errno));
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        bench_die("setrlimit", strerror(errno));
    printf("jails:   %u at once, RLIMIT_NOFILE %llu\n", jails, (unsigned long long)limit.rlim_cur);
}

int main(int argc, char **argv)
{
    unsigned count = 1000;
    const char *probe = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-n") == 0 && i + 1 < argc)
            count = bench_count(argv[++i], JAILS_MAX);
        else if (argv[i][0] == '/')
            probe = argv[i];
        else
            bench_die("usage", "memory [-n JAILS] /PATH/OF/STATIC/PROBE");
    }
    if (!probe)
        bench_die("usage", "memory [-n JAILS] /PATH/OF/STATIC/PROBE");
    raise_open_files(count);

    char *directory = strdup(probe);
    if (!directory)
        bench_die("strdup", strerror(errno));
    *strrchr(directory, '/') = '\0';
    const char *const probe_argv[] = {probe, NULL};
    const char *const sleep_argv[] = {"/bin/sleep", "600", NULL};
    uint64_t deadline = bench_now_ns() + SECONDS_MAX * 1000000000ull;
    struct memory_bench probe_bench = {
        .count = count, .argv = probe_argv, .directory = directory, .deadline_ns = deadline};
    struct memory_bench sleep_bench = {.count = count, .argv = sleep_argv, .deadline_ns = deadline};

    bool met = measure("static pause (kB each)", &probe_bench);
    met = measure("/bin/sleep (kB each)", &sleep_bench) && met;
    free(directory);
    return met ? 0 : 1;
}
