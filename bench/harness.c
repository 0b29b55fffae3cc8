/* SPDX-License-Identifier: MIT */
/* Times start to exit of several launchers, interleaved in random order, from outside: what a shell
 * or a server that spawns the launcher would wait for. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LAUNCHERS_MAX 32
#define ROUNDS_MAX 100000
#define SEPARATOR "::"

struct launcher {
    const char *name;
    const char *directory; /* where it runs; NULL: here */
    char *before;          /* a program that is run before it each time, and not timed; or NULL */
    char **argv;
    uint64_t *samples_ns;
    unsigned failures;
};

struct bench {
    struct launcher launchers[LAUNCHERS_MAX];
    size_t count;
    unsigned rounds;
    unsigned warmup;
    unsigned pause_ms; /* before each run */
    uint64_t random;   /* xorshift state: the order only has to be unrelated to the machine */
};

static const char *clean_env[] = {"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG=C",
                                  "HOME=/tmp", NULL};
enum { CLEAN_ENV_HOME = 2 };

static void die(const char *what)
{
    fprintf(stderr, "harness: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t next_random(struct bench *bench)
{
    uint64_t x = bench->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return bench->random = x;
}

/* Runs a program with 0-2 on /dev/null. Returns its time, 0 when it failed. */
static uint64_t run_program(char **argv, const posix_spawn_file_actions_t *actions)
{
    pid_t pid;
    int status;
    struct rusage usage;
    uint64_t start = now_ns();
    int error =
        posix_spawn(&pid, argv[0], actions, NULL, argv, (char *const *)(uintptr_t)clean_env);
    if (error != 0) {
        errno = error;
        die(argv[0]);
    }
    while (wait4(pid, &status, 0, &usage) < 0) {
        if (errno != EINTR)
            die("wait4");
    }
    uint64_t spent = now_ns() - start;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? spent : 0;
}

/* Until the kernel has cleared away what the run before has left. */
static void pause_for(unsigned ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    while (ms > 0 && nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

/* One run of one launcher. Returns its time, 0 when it failed. */
static uint64_t run_once(const struct launcher *launcher, unsigned pause_ms,
                         const posix_spawn_file_actions_t *actions)
{
    char *before[] = {launcher->before, NULL};
    if (launcher->directory && chdir(launcher->directory) < 0)
        die(launcher->directory);
    if (launcher->before && run_program(before, actions) == 0)
        return 0;
    pause_for(pause_ms);
    return run_program(launcher->argv, actions);
}

static void run_rounds(struct bench *bench)
{
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions) != 0)
        die("posix_spawn_file_actions_init");
    for (int fd = 0; fd < 3; fd++)
        if (posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", fd ? O_WRONLY : O_RDONLY,
                                             0) != 0)
            die("posix_spawn_file_actions_addopen");

    size_t order[LAUNCHERS_MAX];
    for (size_t i = 0; i < bench->count; i++)
        order[i] = i;
    for (unsigned round = 0; round < bench->warmup + bench->rounds; round++) {
        for (size_t i = bench->count - 1; i > 0; i--) {
            size_t j = (size_t)(next_random(bench) % (i + 1));
            size_t other = order[i];
            order[i] = order[j];
            order[j] = other;
        }
        for (size_t i = 0; i < bench->count; i++) {
            struct launcher *launcher = &bench->launchers[order[i]];
            uint64_t spent = run_once(launcher, bench->pause_ms, &actions);
            if (spent == 0)
                launcher->failures++;
            if (round >= bench->warmup)
                launcher->samples_ns[round - bench->warmup] = spent;
        }
    }
    (void)posix_spawn_file_actions_destroy(&actions);
}

static int compare_ns(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

/* The value below which `percent` of the sorted samples lie (nearest rank). */
static double percentile_us(const struct launcher *launcher, unsigned rounds, unsigned percent)
{
    size_t rank = ((size_t)rounds * percent + 99) / 100;
    return (double)launcher->samples_ns[rank > 0 ? rank - 1 : 0] / 1000.0;
}

static const struct launcher *find(const struct bench *bench, const char *name)
{
    for (size_t i = 0; i < bench->count; i++)
        if (strcmp(bench->launchers[i].name, name) == 0 && bench->launchers[i].failures == 0)
            return &bench->launchers[i];
    return NULL;
}

static void print_ratio(double p50, const struct launcher *reference, unsigned rounds)
{
    if (reference)
        printf(" %8.2f", p50 / percentile_us(reference, rounds, 50));
    else
        printf(" %8s", "-");
}

static void report(struct bench *bench)
{
    for (size_t i = 0; i < bench->count; i++)
        qsort(bench->launchers[i].samples_ns, bench->rounds, sizeof(uint64_t), compare_ns);
    const struct launcher *bare = find(bench, "bare");
    const struct launcher *bwrap = find(bench, "bwrap");
    printf("%-22s %9s %9s %9s %8s %8s\n", "launcher (us)", "min", "p50", "p99", "x bare",
           "x bwrap");
    for (size_t i = 0; i < bench->count; i++) {
        const struct launcher *launcher = &bench->launchers[i];
        if (launcher->failures > 0) {
            printf("%-22s failed in %u of %u runs; no figures\n", launcher->name,
                   launcher->failures, bench->rounds + bench->warmup);
            continue;
        }
        double p50 = percentile_us(launcher, bench->rounds, 50);
        printf("%-22s %9.0f %9.0f %9.0f", launcher->name, (double)launcher->samples_ns[0] / 1000.0,
               p50, percentile_us(launcher, bench->rounds, 99));
        print_ratio(p50, bare, bench->rounds);
        print_ratio(p50, bwrap, bench->rounds);
        putchar('\n');
    }
}

static void usage(void)
{
    fprintf(stderr,
            "usage: harness [-n ROUNDS] [-w WARMUP] [-p PAUSE_MS] [-H HOME] LAUNCHER [" SEPARATOR
            " LAUNCHER]...\n"
            "LAUNCHER: NAME [dir=DIRECTORY] [before=PROGRAM] PROGRAM [ARG...]\n");
    exit(2);
}

/* Takes what follows `key` in the next word, if it begins with that. */
static char *take_value(char ***words, const char *key)
{
    size_t length = strlen(key);
    if (!**words || strncmp(**words, key, length) != 0)
        return NULL;
    return *(*words)++ + length;
}

/* Splits the words into launchers, each ended by the separator or the end. */
static void parse_launchers(struct bench *bench, char **words)
{
    while (*words) {
        if (bench->count == LAUNCHERS_MAX || !words[1] || strcmp(words[0], SEPARATOR) == 0 ||
            strcmp(words[1], SEPARATOR) == 0)
            usage();
        struct launcher *launcher = &bench->launchers[bench->count++];
        launcher->name = *words++;
        launcher->directory = take_value(&words, "dir=");
        launcher->before = take_value(&words, "before=");
        if (!*words)
            usage();
        launcher->argv = words;
        launcher->samples_ns = calloc(bench->rounds, sizeof(uint64_t));
        if (!launcher->samples_ns)
            die("calloc");
        while (*words && strcmp(*words, SEPARATOR) != 0)
            words++;
        if (*words)
            *words++ = NULL;
    }
}

static unsigned parse_count(const char *text)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (*text == '\0' || *end != '\0' || value > ROUNDS_MAX)
        usage();
    return (unsigned)value;
}

int main(int argc, char **argv)
{
    struct bench bench = {.rounds = 300, .warmup = 5, .random = now_ns() | 1};
    int option;
    const char *home = NULL;
    while ((option = getopt(argc, argv, "+n:w:p:H:")) != -1) {
        if (option == 'n')
            bench.rounds = parse_count(optarg);
        else if (option == 'w')
            bench.warmup = parse_count(optarg);
        else if (option == 'p')
            bench.pause_ms = parse_count(optarg);
        else if (option == 'H')
            home = optarg;
        else
            usage();
    }
    if (bench.rounds == 0)
        usage();
    char variable[PATH_MAX];
    if (home) {
        (void)snprintf(variable, sizeof variable, "HOME=%s", home);
        clean_env[CLEAN_ENV_HOME] = variable;
    }
    parse_launchers(&bench, argv + optind);
    if (bench.count == 0)
        usage();
    run_rounds(&bench);
    report(&bench);
    bool failed = false;
    for (size_t i = 0; i < bench.count; i++) {
        failed = failed || bench.launchers[i].failures > 0;
        free(bench.launchers[i].samples_ns);
    }
    return failed ? 1 : 0;
}
