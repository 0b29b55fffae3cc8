/* SPDX-License-Identifier: MIT */
/* Turns the tables of src/jail/confine/seccomp_rules.h into BPF, as a C header, while brig is built.
 *
 *     gen-seccomp [--arch x86_64|aarch64]...   the header, for both architectures unless told
 *     gen-seccomp --doc                        docs/seccomp.md
 *
 * The kernel runs a new filter once for every syscall number to find those that are always allowed,
 * and compiles it, so the cost of installing it grows with the path to a verdict and with its
 * length. Numbers with equal verdicts are merged into ranges, and the ranges become the search tree
 * for which both together are least. Names and numbers come from libseccomp. Before anything is
 * printed, every program is run here against the tables, for every number and for telling
 * arguments. */

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jail/confine/seccomp_rules.h"

#define JUMP_MAX 255 /* a conditional jump has 8 bits for its distance */
#define NAME_BYTES 32
#define VERIFY_MAX 600 /* numbers run against the tables one by one */

struct architecture {
    const char *name;
    const char *macro;
    uint32_t audit;
    uint32_t libseccomp;
};

static const struct architecture architectures[] = {
    {"x86_64", "__x86_64__", AUDIT_ARCH_X86_64, SCMP_ARCH_X86_64},
    {"aarch64", "__aarch64__", AUDIT_ARCH_AARCH64, SCMP_ARCH_AARCH64},
};

struct variant {
    bool code;
    bool host;
    bool nested;
    bool alone;
    bool local; /* alone: with UNIX sockets */
};

static void __attribute__((format(printf, 1, 2), noreturn)) die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)fputs("gen-seccomp: ", stderr);
    (void)vfprintf(stderr, format, args);
    (void)fputc('\n', stderr);
    va_end(args);
    exit(1);
}

/* ---- Tables ------------------------------------------------------------------------------- */

#define ROWS_MAX SECCOMP_FIRST_UNKNOWN

struct row {
    const char *name;
    const struct seccomp_rule *rule;
    const char *reason;
};

/* A table of seccomp_rules.h with a row for each syscall, sorted by name. */
struct table {
    struct row rows[ROWS_MAX];
    size_t count;
};

#define TABLES(X)                                                                                  \
    X(floor)                                                                                       \
    X(dev)                                                                                         \
    X(code)                                                                                        \
    X(code_host)                                                                                   \
    X(code_nested)                                                                                 \
    X(nested) X(alone) X(alone_code) X(alone_shut) X(alone_shut_host) X(alone_shut_none)
#define DECLARE(name) static struct table table_##name;
TABLES(DECLARE)

/* The next word of a list of names in memory of its own, or NULL. */
static char *next_name(const char **names)
{
    size_t length = strcspn(*names, " ");
    if (length == 0)
        return NULL;
    char *name = strndup(*names, length);
    if (!name)
        die("out of memory");
    *names += length + ((*names)[length] == ' ');
    return name;
}

static int compare_rows(const void *left, const void *right)
{
    return strcmp(((const struct row *)left)->name, ((const struct row *)right)->name);
}

static void expand(struct table *table, const struct seccomp_group *groups, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *names = groups[i].names, *name;
        while ((name = next_name(&names))) {
            if (table->count == ROWS_MAX)
                die("more syscalls than there are numbers");
            table->rows[table->count++] = (struct row){name, groups[i].rule, groups[i].reason};
        }
    }
    qsort(table->rows, table->count, sizeof(table->rows[0]), compare_rows);
    for (size_t i = 1; i < table->count; i++)
        if (strcmp(table->rows[i - 1].name, table->rows[i].name) == 0)
            die("%s is twice in a table", table->rows[i].name);
}

static void expand_tables(void)
{
#define EXPAND(name)                                                                               \
    expand(&table_##name, seccomp_##name, sizeof(seccomp_##name) / sizeof(seccomp_##name[0]));
    TABLES(EXPAND)
}

/* The number of a name in a list whose first has the number `first`, or -1. */
static int find_number(const char *list, int first, const char *name)
{
    size_t length = strlen(name);
    for (int number = first; *list; number++) {
        size_t here = strcspn(list, " ");
        if (here == length && memcmp(list, name, length) == 0)
            return number;
        list += here + (list[here] == ' ');
    }
    return -1;
}

/* The name that the lists have for a number, to be freed, or NULL. */
static char *find_name(const char *list, int first, int number)
{
    char *name = number < first ? NULL : next_name(&list);
    for (; name && first < number; first++) {
        free(name);
        name = next_name(&list);
    }
    return name;
}

/* The number of a syscall, or -1 if the architecture does not have it. A name nobody knows is a
 * mistake in the table. */
static int resolve(const struct architecture *arch, const char *name)
{
    int own = find_number(seccomp_numbers, SECCOMP_NUMBERS_FIRST, name);
    int own_x86 = find_number(seccomp_numbers_x86_64, SECCOMP_NUMBERS_X86_64_FIRST, name);
    if (own < 0 && own_x86 >= 0) {
        if (arch->libseccomp != SCMP_ARCH_X86_64)
            return -1;
        own = own_x86;
    }
    int known = seccomp_syscall_resolve_name_arch(arch->libseccomp, name);
    if (known == __NR_SCMP_ERROR && own < 0)
        die("no syscall is called %s", name);
    if (known >= 0 && own >= 0 && known != own)
        die("%s: %d for libseccomp, %d here", name, known, own);
    if (own >= 0)
        return own;
    return known >= 0 ? known : -1;
}

/* A profile only adds to the floor. */
static void check_apart(const struct table *table)
{
    for (size_t i = 0; i < table->count; i++)
        if (bsearch(&table->rows[i], table_floor.rows, table_floor.count, sizeof(struct row),
                    compare_rows))
            die("%s is in the floor and in a profile", table->rows[i].name);
}

/* What each number below SECCOMP_FIRST_UNKNOWN gets. */
struct rules {
    const struct seccomp_rule *of[SECCOMP_FIRST_UNKNOWN];
};

static void apply_rows(struct rules *rules, const struct architecture *arch,
                       const struct table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct row *row = &table->rows[i];
        int number = resolve(arch, row->name);
        if (number >= SECCOMP_FIRST_UNKNOWN)
            die("%s has number %d: raise SECCOMP_FIRST_UNKNOWN", row->name, number);
        if (number >= 0)
            rules->of[number] = row->rule;
    }
}

/* To be freed; NULL if nobody has heard of the number. */
static char *name_of(const struct architecture *arch, int number)
{
    char *name = seccomp_syscall_resolve_num_arch(arch->libseccomp, number);
    if (!name)
        name = find_name(seccomp_numbers, SECCOMP_NUMBERS_FIRST, number);
    if (!name && arch->libseccomp == SCMP_ARCH_X86_64)
        name = find_name(seccomp_numbers_x86_64, SECCOMP_NUMBERS_X86_64_FIRST, number);
    return name;
}

static void collect_rules(struct rules *rules, const struct architecture *arch,
                          struct variant variant)
{
    for (int number = 0; number < SECCOMP_FIRST_UNKNOWN; number++) {
        rules->of[number] = variant.code ? &NOT_PERMITTED : &ALLOWED;
        char *name = name_of(arch, number);
        if (!name)
            rules->of[number] = &NOT_THERE;
        free(name);
    }
    apply_rows(rules, arch, &table_floor);
    if (variant.code)
        apply_rows(rules, arch, &table_code);
    else
        apply_rows(rules, arch, &table_dev);
    if (variant.code && variant.host)
        apply_rows(rules, arch, &table_code_host);
    if (variant.code && !variant.host && variant.nested)
        apply_rows(rules, arch, &table_code_nested);
    if (variant.nested)
        apply_rows(rules, arch, &table_nested);
    if (variant.alone)
        apply_rows(rules, arch, &table_alone);
    if (variant.alone && variant.code)
        apply_rows(rules, arch, &table_alone_code);
    bool shut = variant.alone && !variant.local;
    if (shut)
        apply_rows(rules, arch, &table_alone_shut);
    if (shut && variant.code)
        apply_rows(rules, arch, variant.host ? &table_alone_shut_host : &table_alone_shut_none);
}

/* ---- Emitting, from the end to the beginning ---------------------------------------------- */

/* Jumps in a filter only go forward. Written back to front, every target is already there when a
 * jump to it is written: code[0] is the last instruction of the program. A position is an index. */
struct program {
    struct sock_filter code[BPF_MAXINSNS];
    size_t count;
};

static size_t emit(struct program *program, uint32_t code, uint32_t k, size_t jt, size_t jf)
{
    if (program->count == BPF_MAXINSNS)
        die("the filter is too long");
    program->code[program->count] =
        (struct sock_filter){.code = (uint16_t)code, .jt = (uint8_t)jt, .jf = (uint8_t)jf, .k = k};
    return program->count++;
}

/* How far the next instruction would have to jump. */
static size_t distance(const struct program *program, size_t target)
{
    return program->count - 1 - target;
}

static uint32_t verdict_action(int verdict)
{
    return verdict ? SECCOMP_RET_ERRNO | (uint32_t)verdict : SECCOMP_RET_ALLOW;
}

/* A `return` of this verdict within reach: one that is there, or a new one. */
static size_t emit_verdict(struct program *program, int verdict)
{
    uint32_t action = verdict_action(verdict);
    /* Leave room: the jump is written a few instructions later than its target is chosen. */
    size_t reach = JUMP_MAX - 8;
    for (size_t i = 1; i <= program->count && i <= reach; i++) {
        const struct sock_filter *insn = &program->code[program->count - i];
        if (insn->code == (BPF_RET | BPF_K) && insn->k == action)
            return program->count - i;
    }
    return emit(program, BPF_RET | BPF_K, action, 0, 0);
}

/* Brings a target within reach of the next conditional jump: a copy of it if it is a `return`,
 * else a stepping stone. */
static size_t emit_nearer(struct program *program, size_t target)
{
    struct sock_filter insn = program->code[target];
    if (insn.code == (BPF_RET | BPF_K))
        return emit(program, insn.code, insn.k, 0, 0);
    return emit(program, BPF_JMP | BPF_JA, (uint32_t)distance(program, target), 0, 0);
}

static size_t emit_jump(struct program *program, uint32_t operation, uint32_t k, size_t yes,
                        size_t no)
{
    for (;;) {
        if (distance(program, yes) > JUMP_MAX)
            yes = emit_nearer(program, yes);
        else if (distance(program, no) > JUMP_MAX)
            no = emit_nearer(program, no);
        else
            break;
    }
    return emit(program, BPF_JMP | operation | BPF_K, k, distance(program, yes),
                distance(program, no));
}

static size_t emit_load(struct program *program, size_t offset)
{
    return emit(program, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

/* ---- Rules -------------------------------------------------------------------------------- */

static bool test_leaves(const struct seccomp_test *test, uint8_t arg)
{
    return test->kind != SECCOMP_TEST_MASKED && test->arg == arg;
}

/* Whether the argument is already loaded, on every way that leads to this test. */
static bool test_is_loaded(const struct seccomp_rule *rule, size_t clause, size_t test)
{
    uint8_t arg = rule->clauses[clause].tests[test].arg;
    if (test > 0)
        return test_leaves(&rule->clauses[clause].tests[test - 1], arg);
    if (clause == 0)
        return false;
    const struct seccomp_test *before = rule->clauses[clause - 1].tests;
    for (size_t i = 0; i < SECCOMP_TESTS_MAX && before[i].kind != SECCOMP_TEST_END; i++)
        if (!test_leaves(&before[i], arg))
            return false;
    return true;
}

static size_t emit_test(struct program *program, const struct seccomp_test *test, bool loaded,
                        size_t yes, size_t no)
{
    size_t start = 0;
    switch (test->kind) {
    case SECCOMP_TEST_ANY_BIT:
        start = emit_jump(program, BPF_JSET, test->mask, yes, no);
        break;
    case SECCOMP_TEST_MASKED:
        (void)emit_jump(program, BPF_JEQ, test->low, yes, no);
        start = emit(program, BPF_ALU | BPF_AND | BPF_K, test->mask, 0, 0);
        break;
    case SECCOMP_TEST_RANGE:
        if (test->low == test->high) {
            start = emit_jump(program, BPF_JEQ, test->low, yes, no);
        } else {
            size_t upper = emit_jump(program, BPF_JGT, test->high, no, yes);
            start = emit_jump(program, BPF_JGE, test->low, upper, no);
        }
        break;
    case SECCOMP_TEST_END:
        die("an empty clause");
    }
    if (loaded)
        return start;
    /* The low half: both architectures are little-endian. */
    return emit_load(program, offsetof(struct seccomp_data, args) + test->arg * sizeof(uint64_t));
}

static size_t emit_rule(struct program *program, const struct seccomp_rule *rule)
{
    size_t next = emit_verdict(program, rule->otherwise);
    for (size_t clause = rule->count; clause-- > 0;) {
        const struct seccomp_test *tests = rule->clauses[clause].tests;
        size_t count = 0;
        while (count < SECCOMP_TESTS_MAX && tests[count].kind != SECCOMP_TEST_END)
            count++;
        size_t yes = emit_verdict(program, rule->clauses[clause].verdict);
        for (size_t test = count; test-- > 0;)
            yes = emit_test(program, &tests[test], test_is_loaded(rule, clause, test), yes, next);
        next = yes;
    }
    return next;
}

/* ---- The search tree ---------------------------------------------------------------------- */

struct range {
    uint32_t first;
    uint32_t width; /* how many numbers; what the kernel will try is what counts */
    const struct seccomp_rule *rule;
    size_t position; /* of the rule's code; for plain verdicts it is found when needed */
};

#define RANGES_MAX (SECCOMP_FIRST_UNKNOWN + 1)

/* What having an instruction costs, in units of one instruction run for one number. Measured on
 * 6.18; anything from 8 to 65 gives nearly the same. */
#define INSTRUCTION_COST 20

/* How the ranges from `low` to `high` are told apart. */
struct node {
    uint32_t cost;
    size_t split;      /* the first range of the right half; 0: a chain */
    size_t background; /* of a chain: what holds for all but some single numbers */
};

struct tree {
    struct range ranges[RANGES_MAX];
    size_t count;
    struct node nodes[RANGES_MAX][RANGES_MAX]; /* [low][high] */
};

static void collect_ranges(struct tree *tree, const struct rules *rules)
{
    tree->count = 0;
    for (uint32_t number = 0; number <= SECCOMP_FIRST_UNKNOWN; number++) {
        const struct seccomp_rule *rule =
            number < SECCOMP_FIRST_UNKNOWN ? rules->of[number] : &NOT_THERE;
        if (tree->count > 0 && tree->ranges[tree->count - 1].rule == rule)
            tree->ranges[tree->count - 1].width++;
        else
            tree->ranges[tree->count++] = (struct range){.first = number, .width = 1, .rule = rule};
    }
}

/* The cost of asking for each number of low..high that is not like the background, one by one;
 * UINT32_MAX if one of those ranges has more than one number. */
static uint32_t chain_cost(const struct tree *tree, size_t low, size_t high, size_t background,
                           uint32_t width)
{
    uint32_t length = 0;
    for (size_t i = low; i <= high; i++) {
        if (tree->ranges[i].rule == tree->ranges[background].rule)
            continue;
        /* The last range has no end. */
        if (tree->ranges[i].width > 1 || i == tree->count - 1)
            return UINT32_MAX;
        length++;
    }
    return length * (width + INSTRUCTION_COST);
}

static struct node plan_node(const struct tree *tree, size_t low, size_t high)
{
    uint32_t width = 0;
    for (size_t i = low; i <= high; i++)
        width += tree->ranges[i].width;
    struct node best = {.cost = UINT32_MAX};
    for (size_t split = low + 1; split <= high; split++) {
        uint32_t cost = tree->nodes[low][split - 1].cost + tree->nodes[split][high].cost + width +
                        INSTRUCTION_COST;
        if (cost < best.cost)
            best = (struct node){.cost = cost, .split = split};
    }
    /* Neighbours differ, so one of the first two is the background if there is one. */
    for (size_t background = low; background <= low + 1; background++) {
        uint32_t cost = chain_cost(tree, low, high, background, width);
        if (cost < best.cost)
            best = (struct node){.cost = cost, .background = background};
    }
    return best;
}

/* The cheapest tree, by the textbook's dynamic programme. */
static void plan_tree(struct tree *tree)
{
    for (size_t i = 0; i < tree->count; i++)
        tree->nodes[i][i] = (struct node){0};
    for (size_t length = 2; length <= tree->count; length++)
        for (size_t low = 0; low + length <= tree->count; low++)
            tree->nodes[low][low + length - 1] = plan_node(tree, low, low + length - 1);
}

static size_t emit_leaf(struct program *program, const struct range *range)
{
    return range->rule->count ? range->position : emit_verdict(program, range->rule->otherwise);
}

static size_t emit_chain(struct program *program, const struct tree *tree, size_t low, size_t high,
                         const struct range *background)
{
    size_t next = emit_leaf(program, background);
    for (size_t i = high + 1; i-- > low;)
        if (tree->ranges[i].rule != background->rule)
            next = emit_jump(program, BPF_JEQ, tree->ranges[i].first,
                             emit_leaf(program, &tree->ranges[i]), next);
    return next;
}

static size_t emit_tree(struct program *program, const struct tree *tree, size_t low, size_t high)
{
    if (low == high)
        return emit_leaf(program, &tree->ranges[low]);
    const struct node *node = &tree->nodes[low][high];
    if (!node->split)
        return emit_chain(program, tree, low, high, &tree->ranges[node->background]);
    size_t right = emit_tree(program, tree, node->split, high);
    size_t left = emit_tree(program, tree, low, node->split - 1);
    return emit_jump(program, BPF_JGE, tree->ranges[node->split].first, right, left);
}

/* Each rule's code once; syscalls with the same rule share it. */
static void emit_rules(struct program *program, struct tree *tree)
{
    for (size_t i = 0; i < tree->count; i++) {
        struct range *range = &tree->ranges[i];
        size_t same = 0;
        while (tree->ranges[same].rule != range->rule)
            same++;
        if (range->rule->count)
            range->position =
                same < i ? tree->ranges[same].position : emit_rule(program, range->rule);
    }
}

static void reverse(struct program *program)
{
    for (size_t i = 0, j = program->count - 1; i < j; i++, j--) {
        struct sock_filter held = program->code[i];
        program->code[i] = program->code[j];
        program->code[j] = held;
    }
}

/* Instructions here run straight on: the last one written is the next one run. */
static void build_program(struct program *program, const struct architecture *arch,
                          const struct rules *rules)
{
    static struct tree tree;
    program->count = 0;
    collect_ranges(&tree, rules);
    plan_tree(&tree);
    emit_rules(program, &tree);
    size_t root = emit_tree(program, &tree, 0, tree.count - 1);
    if (root != program->count - 1)
        die("the tree does not begin where it was written last");
    size_t load = emit_load(program, offsetof(struct seccomp_data, nr));
    size_t foreign = emit_verdict(program, ENOSYS);
    (void)emit_jump(program, BPF_JEQ, arch->audit, load, foreign);
    (void)emit_load(program, offsetof(struct seccomp_data, arch));
    reverse(program);
}

/* ---- Proof -------------------------------------------------------------------------------- */

/* What the table says, without BPF. */
static int evaluate(const struct seccomp_rule *rule, const uint32_t *args)
{
    for (size_t i = 0; i < rule->count; i++) {
        bool holds = true;
        for (size_t j = 0; j < SECCOMP_TESTS_MAX; j++) {
            const struct seccomp_test *test = &rule->clauses[i].tests[j];
            uint32_t value = args[test->arg];
            if (test->kind == SECCOMP_TEST_ANY_BIT)
                holds = holds && (value & test->mask) != 0;
            else if (test->kind == SECCOMP_TEST_MASKED)
                holds = holds && (value & test->mask) == test->low;
            else if (test->kind == SECCOMP_TEST_RANGE)
                holds = holds && test->low <= value && value <= test->high;
        }
        if (holds)
            return rule->clauses[i].verdict;
    }
    return rule->otherwise;
}

/* What the kernel will do. */
static uint32_t run(const struct program *program, const struct seccomp_data *data)
{
    uint32_t accumulator = 0;
    for (size_t pc = 0; pc < program->count; pc++) {
        const struct sock_filter *insn = &program->code[pc];
        bool taken = false;
        switch (insn->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            memcpy(&accumulator, (const char *)data + insn->k, sizeof(accumulator));
            continue;
        case BPF_ALU | BPF_AND | BPF_K:
            accumulator &= insn->k;
            continue;
        case BPF_RET | BPF_K:
            return insn->k;
        case BPF_JMP | BPF_JA:
            pc += insn->k;
            continue;
        case BPF_JMP | BPF_JEQ | BPF_K:
            taken = accumulator == insn->k;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            taken = accumulator >= insn->k;
            break;
        case BPF_JMP | BPF_JGT | BPF_K:
            taken = accumulator > insn->k;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            taken = (accumulator & insn->k) != 0;
            break;
        default:
            die("instruction %zu is unknown", pc);
        }
        pc += taken ? insn->jt : insn->jf;
    }
    die("the filter has no end");
}

static void verify_call(const struct program *program, uint32_t audit, uint32_t number,
                        const uint32_t *args, int verdict)
{
    for (uint64_t above = 0; above < 2; above++) {
        struct seccomp_data data = {.nr = (int)number, .arch = audit};
        for (size_t i = 0; i < 6; i++)
            data.args[i] = args[i] | (above ? UINT64_C(0xdeadbeef) << 32 : 0);
        if (run(program, &data) != verdict_action(verdict))
            die("syscall %u (%#x, %#x, %#x, %#x): the filter and the table disagree", number,
                args[0], args[1], args[2], args[3]);
    }
}

/* Values of each argument at which some test of a rule changes its mind. */
struct samples {
    uint32_t values[6][256];
    size_t counts[6];
};

static void add_samples(struct samples *samples, const struct seccomp_test *test)
{
    const uint32_t telling[] = {
        test->mask,    ~test->mask, test->low | ~test->mask, test->mask & -test->mask, test->low,
        test->low - 1, test->high,  test->high + 1};
    for (size_t i = 0; i < sizeof(telling) / sizeof(telling[0]); i++) {
        if (samples->counts[test->arg] == sizeof(samples->values[0]) / sizeof(uint32_t))
            die("too many tests of one argument");
        samples->values[test->arg][samples->counts[test->arg]++] = telling[i];
    }
}

static void collect_samples(struct samples *samples, const struct seccomp_rule *rule)
{
    memset(samples, 0, sizeof(*samples));
    for (size_t i = 0; i < 6; i++)
        samples->values[i][samples->counts[i]++] = UINT32_MAX;
    for (size_t i = 0; i < rule->count; i++)
        for (size_t j = 0; j < SECCOMP_TESTS_MAX; j++)
            if (rule->clauses[i].tests[j].kind != SECCOMP_TEST_END)
                add_samples(samples, &rule->clauses[i].tests[j]);
}

/* Every combination of the first four arguments; no rule tests the others. */
static void verify_rule(const struct program *program, uint32_t audit, uint32_t number,
                        const struct seccomp_rule *rule)
{
    static struct samples s;
    collect_samples(&s, rule);
    if (s.counts[4] > 1 || s.counts[5] > 1)
        die("syscall %u: arguments 4 and 5 are not verified", number);
    for (size_t a = 0; a < s.counts[0]; a++)
        for (size_t b = 0; b < s.counts[1]; b++)
            for (size_t c = 0; c < s.counts[2]; c++)
                for (size_t d = 0; d < s.counts[3]; d++) {
                    const uint32_t args[6] = {s.values[0][a], s.values[1][b], s.values[2][c],
                                              s.values[3][d]};
                    verify_call(program, audit, number, args, evaluate(rule, args));
                }
}

static void verify_program(const struct program *program, const struct architecture *arch,
                           const struct rules *rules)
{
    static const uint32_t far[] = {0x40000000, 0x40000001, 0x7fffffff, 0x80000000, 0xffffffff};
    static const uint32_t foreign[] = {AUDIT_ARCH_I386, AUDIT_ARCH_ARM, 0, 0xffffffff};
    const uint32_t none[6] = {0};
    for (uint32_t number = 0; number < VERIFY_MAX; number++) {
        verify_rule(program, arch->audit, number,
                    number < SECCOMP_FIRST_UNKNOWN ? rules->of[number] : &NOT_THERE);
        for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
            verify_call(program, foreign[i], number, none, ENOSYS);
    }
    for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++)
        verify_call(program, arch->audit, far[i], none, ENOSYS);
}

/* ---- Output ------------------------------------------------------------------------------- */

/* Nobody is alone and nested. */
#define VARIANTS 16
#define FIRST_ALONE 8

static struct variant variant_of(size_t index)
{
    if (index >= FIRST_ALONE)
        return (struct variant){
            .code = index & 4, .host = index & 2, .local = index & 1, .alone = true};
    return (struct variant){.code = index & 4, .host = index & 2, .nested = index & 1};
}

static bool same_program(const struct program *a, const struct program *b)
{
    return a->count == b->count && memcmp(a->code, b->code, a->count * sizeof(a->code[0])) == 0;
}

static void print_program(const struct program *program, const char *arch, size_t index)
{
    printf("static const struct sock_filter seccomp_filter_%s_%zu[] = {\n", arch, index);
    for (size_t i = 0; i < program->count; i++)
        printf("    { 0x%02x, %u, %u, 0x%08x },\n", program->code[i].code, program->code[i].jt,
               program->code[i].jf, program->code[i].k);
    printf("};\n\n");
}

/* For words about what was denied. */
static void print_names(const struct architecture *arch)
{
    /* Texts, not pointers: see policy/defaults.h. */
    printf("};\nstatic const char seccomp_names[][%d] = {\n", NAME_BYTES);
    for (int number = 0; number < SECCOMP_FIRST_UNKNOWN; number++) {
        char *name = name_of(arch, number);
        if (name && strlen(name) >= NAME_BYTES)
            die("%s is longer than NAME_BYTES", name);
        if (name)
            printf("    [%d] = \"%s\",\n", number, name);
        free(name);
    }
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* The numbers of the syscalls that the tables name and both architectures have, sorted by name: what
 * can be said of a filter that is the same everywhere. */
static void print_common(const struct architecture *arch)
{
#define POINT(name) &table_##name,
    static const struct table *const tables[] = {TABLES(POINT)};
    const char *names[4 * SECCOMP_FIRST_UNKNOWN];
    size_t count = 0;
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        for (size_t k = 0; k < tables[i]->count; k++) {
            if (count == sizeof(names) / sizeof(names[0]))
                die("the tables have more rows than print_common() has room for");
            names[count++] = tables[i]->rows[k].name;
        }
    qsort(names, count, sizeof(names[0]), compare_names);
    printf("};\nstatic const short seccomp_common[] = {\n");
    for (size_t i = 0; i < count; i++)
        if ((i == 0 || strcmp(names[i - 1], names[i]) != 0) &&
            resolve(&architectures[0], names[i]) >= 0 && resolve(&architectures[1], names[i]) >= 0)
            printf("    %d, /* %s */\n", resolve(arch, names[i]), names[i]);
}

static void print_architecture(const struct architecture *arch)
{
    static struct program programs[VARIANTS];
    size_t same[VARIANTS];
    printf("#ifdef %s\n", arch->macro);
    for (size_t i = 0; i < VARIANTS; i++) {
        struct rules rules;
        collect_rules(&rules, arch, variant_of(i));
        build_program(&programs[i], arch, &rules);
        verify_program(&programs[i], arch, &rules);
        same[i] = 0;
        while (!same_program(&programs[same[i]], &programs[i]))
            same[i]++;
        if (same[i] == i)
            print_program(&programs[i], arch->name, i);
    }
    printf("/* [code][host network][nested]; the kernel only reads what the pointers name. */\n"
           "static const struct sock_fprog seccomp_programs[2][2][2] = {\n");
    for (size_t i = 0; i < FIRST_ALONE; i++)
        printf("    [%d][%d][%d] = { %zu,\n"
               "                  (struct sock_filter *)(uintptr_t)seccomp_filter_%s_%zu },\n",
               variant_of(i).code, variant_of(i).host, variant_of(i).nested, programs[i].count,
               arch->name, same[i]);
    printf("};\n/* [code][host network][UNIX sockets] */\n"
           "static const struct sock_fprog seccomp_programs_alone[2][2][2] = {\n");
    for (size_t i = FIRST_ALONE; i < VARIANTS; i++)
        printf("    [%d][%d][%d] = { %zu,\n"
               "                  (struct sock_filter *)(uintptr_t)seccomp_filter_%s_%zu },\n",
               variant_of(i).code, variant_of(i).host, variant_of(i).local, programs[i].count,
               arch->name, same[i]);
    print_names(arch);
    print_common(arch);
    printf("};\n#endif /* %s */\n\n", arch->macro);
}

static void print_header(bool *wanted)
{
    printf("/* Made by gen-seccomp from src/jail/confine/seccomp_rules.h. */\n"
           "#pragma once\n\n#include <linux/filter.h>\n#include <stdint.h>\n\n");
    for (size_t i = 0; i < sizeof(architectures) / sizeof(architectures[0]); i++)
        if (wanted[i])
            print_architecture(&architectures[i]);
}

static void print_table(const char *title, const char *text, const struct table *table)
{
    printf("\n## %s\n\n%s\n\n| syscall | verdict | reason |\n|---|---|---|\n", title, text);
    for (size_t i = 0; i < table->count; i++)
        printf("| `%s` | %s | %s |\n", table->rows[i].name, table->rows[i].rule->text,
               table->rows[i].reason);
}

static void print_doc(void)
{
    printf(
        "<!-- Made by `gen-seccomp --doc` from src/jail/confine/seccomp_rules.h; change it there. "
        "-->\n"
        "# The syscall profiles\n\n"
        "A program in a jail runs under one of two filters:\n\n"
        "- **`dev`** is for agents and build tools. It allows every syscall except those that\n"
        "  *In every profile* and *dev* deny or restrict.\n"
        "- **`code`** is for Python, Node, shells and their children. It allows only the syscalls\n"
        "  of *code* and those that *In every profile* allows. All others fail with EPERM.\n\n"
        "A filter never kills a process: a denied syscall fails with the errno in the table. It\n"
        "is ENOSYS where programs have a fallback. A syscall that is newer than these tables, or\n"
        "is made for another architecture (i386, x32, 32-bit ARM), fails with ENOSYS.\n\n"
        "`allow-nested` allows, in either profile, the syscalls that a program needs to build a\n"
        "sandbox of its own, and no others. With the network `none`, profile `code` allows only\n"
        "UNIX sockets.\n\n"
        "A filter has no rule for a syscall that its architecture lacks.\n\n"
        "After the first three tables, each table replaces rows of the same name in the tables\n"
        "above it, in the case that its title names.\n");
    print_table("In every profile", "Denied or restricted in both profiles.", &table_floor);
    print_table("dev", "Also restricted in `dev`. All other syscalls are allowed.", &table_dev);
    print_table("code", "Allowed in `code`. All other syscalls fail with EPERM.", &table_code);
    print_table("code with a network or loopback", "Replaces the rows above.", &table_code_host);
    print_table("code without network and allow-nested", "Replaces the row above.",
                &table_code_nested);
    print_table("allow-nested", "Replaces the rows above.", &table_nested);
    print_table("A function without namespaces",
                "Replaces the rows above, for `brig_call_run()` and `brig_confine_self()`.",
                &table_alone);
    print_table("code, a function without namespaces", "Replaces the rows above.",
                &table_alone_code);
    print_table("A function without namespaces and UNIX sockets",
                "Replaces the rows above, unless UNIX sockets are asked for (`unix_sockets`).",
                &table_alone_shut);
    print_table("code, a function without namespaces and UNIX sockets", "Replaces the row above.",
                &table_alone_shut_host);
    print_table("code, a function without namespaces, UNIX sockets and network",
                "Replaces the row above.", &table_alone_shut_none);
}

int main(int argc, char **argv)
{
    bool wanted[] = {true, true};
    bool doc = false, chosen = false;
    for (int i = 1; i < argc; i++) {
        size_t at = 0;
        if (strcmp(argv[i], "--doc") == 0) {
            doc = true;
            continue;
        }
        if (strcmp(argv[i], "--arch") != 0 || i + 1 == argc)
            die("usage: gen-seccomp [--arch x86_64|aarch64]... | --doc");
        while (at < 2 && strcmp(argv[i + 1], architectures[at].name) != 0)
            at++;
        if (at == 2)
            die("no architecture is called %s", argv[i + 1]);
        if (!chosen)
            wanted[0] = wanted[1] = false;
        chosen = wanted[at] = true;
        i++;
    }
    expand_tables();
    check_apart(&table_dev);
    check_apart(&table_code);
    if (doc)
        print_doc();
    else
        print_header(wanted);
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
