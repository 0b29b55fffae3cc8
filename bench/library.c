/* SPDX-License-Identifier: MIT */
/* Times a jail started through the library against bare vfork+exec, in one process, interleaved;
 * with --phases also where the time goes, by clock and by leaving one layer out at a time. */
#include <errno.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define ROUNDS_MAX 100000

/* Stamps taken during one run of a job. */
enum phase {
    PHASE_START,  /* the call that returns once the command runs */
    PHASE_WAIT,   /* until the job is over */
    PHASE_FINISH, /* taking the result and releasing the job */
    PHASE_COUNT
};

static const char *const phase_names[PHASE_COUNT] = {
    [PHASE_START] = "start: plan, clone, build, exec",
    [PHASE_WAIT] = "wait: the command itself, exit, reap",
    [PHASE_FINISH] = "finish: result and release",
};

enum kind {
    KIND_VFORK,
    KIND_SPAWN,
    KIND_SCRATCH,
    KIND_TEMPLATE,
};

struct variant {
    const char *name;
    enum kind kind;
    double target; /* at most this many times vfork+exec; 0: none */
    /* What differs from the sealed preset, for the rows of --phases. */
    unsigned without; /* enum brig_layer */
    bool host_network;
    struct brig_policy *policy;
    struct brig_template *template_;
    uint64_t *total_ns;
    uint64_t *phase_ns[PHASE_COUNT];
};

static struct variant main_variants[] = {
    {.name = "bare vfork+exec", .kind = KIND_VFORK},
    {.name = "bare posix_spawn", .kind = KIND_SPAWN},
    {.name = "brig from scratch", .kind = KIND_SCRATCH, .target = 4.5},
    {.name = "brig with a template", .kind = KIND_TEMPLATE, .target = 2.5},
};

/* The first row is what the others are compared with. */
static struct variant phase_variants[] = {
    {.name = "everything", .kind = KIND_SCRATCH},
    {.name = "no network namespace", .kind = KIND_SCRATCH, .host_network = true},
    {.name = "no Landlock", .kind = KIND_SCRATCH, .without = BRIG_LAYER_LANDLOCK},
    {.name = "no seccomp", .kind = KIND_SCRATCH, .without = BRIG_LAYER_SECCOMP},
    {.name = "no dropping of capabilities", .kind = KIND_SCRATCH, .without = BRIG_LAYER_CAPS},
    {.name = "no guard of nested namespaces", .kind = KIND_SCRATCH, .without = BRIG_LAYER_NESTED},
    {.name = "no namespaces, no mounts", .kind = KIND_SCRATCH, .without = BRIG_LAYER_NAMESPACES},
};

struct options {
    unsigned rounds;
    unsigned warmup;
    bool phases;
    const char *program;
};

static const char *const environment[] = {"PATH=/usr/bin:/bin", "LANG=C", NULL};

static void wait_for(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            bench_die("waitpid", strerror(errno));
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        bench_die("the bare command", "did not exit with 0");
}

static void run_bare(enum kind kind, const char *program)
{
    char *const argv[] = {(char *)(uintptr_t)program, NULL};
    char *const *envp = (char *const *)(uintptr_t)environment;
    pid_t pid;
    if (kind == KIND_SPAWN) {
        int error = posix_spawn(&pid, program, NULL, NULL, argv, envp);
        if (error != 0)
            bench_die(program, strerror(error));
    } else {
        pid = vfork();
        if (pid < 0)
            bench_die("vfork", strerror(errno));
        if (pid == 0) {
            (void)execve(program, argv, envp);
            _exit(127);
        }
    }
    wait_for(pid);
}

static void run_job(const struct variant *variant, const char *program, uint64_t *ret_phases)
{
    struct brig_error err = {0};
    struct brig_result *result = NULL;
    struct brig_job *job = NULL;
    const char *const argv[] = {program, NULL};
    struct brig_command command = BRIG_COMMAND_INIT;
    command.argv = argv;
    command.envp = environment;

    uint64_t begin = bench_now_ns();
    if (variant->kind == KIND_TEMPLATE)
        bench_must(brig_template_start(variant->template_, &command, &job, &err), variant->name,
                   &err);
    else
        bench_must(brig_start(variant->policy, &command, &job, &err), variant->name, &err);
    uint64_t started = bench_now_ns();
    bench_must(brig_job_wait(job, &err), variant->name, &err);
    uint64_t ended = bench_now_ns();
    bench_must(brig_job_result(job, &result, &err), variant->name, &err);
    brig_job_free(job);
    uint64_t finished = bench_now_ns();

    if (brig_result_status(result) != 0)
        bench_die(variant->name, brig_outcome_name(brig_result_outcome(result)));
    brig_result_free(result);
    ret_phases[PHASE_START] = started - begin;
    ret_phases[PHASE_WAIT] = ended - started;
    ret_phases[PHASE_FINISH] = finished - ended;
}

static void prepare(struct variant *variant, unsigned rounds)
{
    struct brig_error err = {0};
    variant->total_ns = calloc(rounds, sizeof(uint64_t));
    for (size_t i = 0; i < PHASE_COUNT; i++) {
        variant->phase_ns[i] = calloc(rounds, sizeof(uint64_t));
        if (!variant->phase_ns[i] || !variant->total_ns)
            bench_die("calloc", strerror(errno));
    }
    if (variant->kind != KIND_SCRATCH && variant->kind != KIND_TEMPLATE)
        return;
    variant->policy = brig_policy_new(BRIG_MODE_SEALED);
    if (!variant->policy)
        bench_die("brig_policy_new", "out of memory");
    /* An ordinary user's supplementary groups cannot always be dropped; that is not measured. */
    bench_must(brig_policy_on_unsupported(variant->policy, BRIG_UNSUPPORTED_IGNORE, &err),
               variant->name, &err);
    if (variant->without)
        bench_must(brig_policy_disable(variant->policy, variant->without, &err), variant->name,
                   &err);
    if (variant->host_network)
        bench_must(brig_policy_network(variant->policy, BRIG_NET_HOST, &err), variant->name, &err);
    if (variant->kind == KIND_TEMPLATE)
        bench_must(brig_template_new(variant->policy, &variant->template_, &err), variant->name,
                   &err);
}

static void release(struct variant *variant)
{
    brig_template_free(variant->template_);
    brig_policy_free(variant->policy);
    free(variant->total_ns);
    for (size_t i = 0; i < PHASE_COUNT; i++)
        free(variant->phase_ns[i]);
}

static void run_one(struct variant *variant, const struct options *options, unsigned round)
{
    uint64_t phases[PHASE_COUNT] = {0};
    uint64_t begin = bench_now_ns();
    if (variant->kind == KIND_VFORK || variant->kind == KIND_SPAWN)
        run_bare(variant->kind, options->program);
    else
        run_job(variant, options->program, phases);
    uint64_t spent = bench_now_ns() - begin;
    if (round < options->warmup)
        return;
    variant->total_ns[round - options->warmup] = spent;
    for (size_t i = 0; i < PHASE_COUNT; i++)
        variant->phase_ns[i][round - options->warmup] = phases[i];
}

static void run_rounds(struct variant *variants, size_t count, const struct options *options)
{
    size_t order[16];
    uint64_t random = bench_now_ns() | 1;
    for (size_t i = 0; i < count; i++) {
        order[i] = i;
        prepare(&variants[i], options->rounds);
    }
    for (unsigned round = 0; round < options->warmup + options->rounds; round++) {
        bench_shuffle(order, count, &random);
        for (size_t i = 0; i < count; i++)
            run_one(&variants[order[i]], options, round);
    }
    for (size_t i = 0; i < count; i++) {
        qsort(variants[i].total_ns, options->rounds, sizeof(uint64_t), bench_compare);
        for (size_t phase = 0; phase < PHASE_COUNT; phase++)
            qsort(variants[i].phase_ns[phase], options->rounds, sizeof(uint64_t), bench_compare);
    }
}

static void report_main(const struct options *options)
{
    double bare = bench_percentile_us(main_variants[0].total_ns, options->rounds, 50);
    printf("%-24s %8s %8s %8s %8s\n", "in process (us)", "min", "p50", "p99", "x vfork");
    for (size_t i = 0; i < sizeof(main_variants) / sizeof(main_variants[0]); i++) {
        const struct variant *variant = &main_variants[i];
        double p50 = bench_percentile_us(variant->total_ns, options->rounds, 50);
        printf("%-24s %8.0f %8.0f %8.0f %8.2f", variant->name,
               (double)variant->total_ns[0] / 1000.0, p50,
               bench_percentile_us(variant->total_ns, options->rounds, 99), p50 / bare);
        if (variant->target > 0)
            printf("  (target %.1f: %s)", variant->target,
                   p50 / bare <= variant->target ? "met" : "missed");
        putchar('\n');
    }
    if (!options->phases)
        return;
    for (size_t i = 0; i < sizeof(main_variants) / sizeof(main_variants[0]); i++) {
        const struct variant *variant = &main_variants[i];
        if (variant->kind != KIND_SCRATCH && variant->kind != KIND_TEMPLATE)
            continue;
        printf("\n%s, by clock (us, p50)\n", variant->name);
        for (size_t phase = 0; phase < PHASE_COUNT; phase++)
            printf("  %-40s %8.0f\n", phase_names[phase],
                   bench_percentile_us(variant->phase_ns[phase], options->rounds, 50));
    }
}

static void report_phases(const struct options *options)
{
    double whole = bench_percentile_us(phase_variants[0].total_ns, options->rounds, 50);
    printf("\n%-32s %8s %8s %10s\n", "from scratch, one part left out", "min", "p50", "its share");
    for (size_t i = 0; i < sizeof(phase_variants) / sizeof(phase_variants[0]); i++) {
        const struct variant *variant = &phase_variants[i];
        double p50 = bench_percentile_us(variant->total_ns, options->rounds, 50);
        printf("%-32s %8.0f %8.0f", variant->name, (double)variant->total_ns[0] / 1000.0, p50);
        if (i > 0)
            printf(" %10.0f", whole - p50);
        putchar('\n');
    }
}

static void parse_options(int argc, char **argv, struct options *ret)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--phases") == 0)
            ret->phases = true;
        else if (strcmp(argv[i], "-n") == 0 && i + 1 < argc)
            ret->rounds = bench_count(argv[++i], ROUNDS_MAX);
        else if (strcmp(argv[i], "-w") == 0 && i + 1 < argc)
            ret->warmup = bench_count(argv[++i], ROUNDS_MAX);
        else if (argv[i][0] == '/')
            ret->program = argv[i];
        else
            bench_die("usage", "library [--phases] [-n ROUNDS] [-w WARMUP] [/PROGRAM]");
    }
}

int main(int argc, char **argv)
{
    struct options options = {.rounds = 300, .warmup = 10, .program = "/bin/true"};
    const size_t main_count = sizeof(main_variants) / sizeof(main_variants[0]);
    const size_t phase_count = sizeof(phase_variants) / sizeof(phase_variants[0]);
    parse_options(argc, argv, &options);
    printf("rounds:  %u, random order in each, %s, libbrig %s\n", options.rounds, options.program,
           brig_version());
    run_rounds(main_variants, main_count, &options);
    report_main(&options);
    if (options.phases) {
        run_rounds(phase_variants, phase_count, &options);
        report_phases(&options);
    }
    for (size_t i = 0; i < main_count; i++)
        release(&main_variants[i]);
    for (size_t i = 0; i < phase_count; i++)
        release(&phase_variants[i]);
    return 0;
}
