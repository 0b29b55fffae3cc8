/* SPDX-License-Identifier: MIT */
/* The command line: argv in, options and a policy out. */
#include <string.h>

#include "base/cleanup.h"
#include "cli/settings/options.h"
#include "cli/settings/settings.h"
#include "policy/policy.h"
#include "tap.h"

#define HOME "/home/u"
#define CWD HOME "/project"
#define WORDS(...) ((char *[]){(char[]){"brig"}, __VA_ARGS__, NULL})
#define W(text) ((char[]){text})

static int count_words(char **argv)
{
    int count = 0;
    while (argv[count])
        count++;
    return count;
}

/* Reads all options and shows them as "id=value id …| rest", or as "error: …". */
static const char *read_all(char **argv, char *text, size_t size)
{
    struct options_cursor cursor = {.argc = count_words(argv), .argv = argv, .next = 1};
    struct option_use use;
    struct brig_error err = {0};
    size_t used = 0;
    text[0] = '\0';
    int status;
    while ((status = options_next(&cursor, &use, &err)) > 0)
        used += (size_t)snprintf(text + used, size - used, "%s%s%s ", use.row->long_name,
                                 use.value ? "=" : "", use.value ? use.value : "");
    if (status < 0) {
        (void)snprintf(text, size, "error: %s", err.message);
        return text;
    }
    used += (size_t)snprintf(text + used, size - used, "|");
    for (int i = cursor.next; i < cursor.argc; i++)
        used += (size_t)snprintf(text + used, size - used, " %s", argv[i]);
    return text;
}

static void test_syntax(void)
{
    char t[1024];
    tap_is_str(read_all(WORDS(W("ls"), W("-D")), t, sizeof(t)), "| ls -D",
               "the first word that is no option starts the command");
    tap_is_str(read_all(WORDS(W("-D"), W("--"), W("-x")), t, sizeof(t)), "nocwd | -x",
               "-- ends the options");
    tap_is_str(read_all(WORDS(W("--"), W("--"), W("a")), t, sizeof(t)), "| -- a",
               "only the first -- does");
    tap_is_str(read_all(WORDS(W("-Dv"), W("a")), t, sizeof(t)), "nocwd verbose | a",
               "short options can be joined");
    tap_is_str(read_all(WORDS(W("-Dd/x"), W("a")), t, sizeof(t)), "nocwd dir=/x | a",
               "a value may follow its letter in a cluster");
    tap_is_str(read_all(WORDS(W("-vd"), W("/x"), W("a")), t, sizeof(t)), "verbose dir=/x | a",
               "or be the next word");
    tap_is_str(read_all(WORDS(W("--dir=/x=y"), W("a")), t, sizeof(t)), "dir=/x=y | a",
               "a long option's value follows the first =");
    tap_is_str(read_all(WORDS(W("--dir"), W("-x"), W("a")), t, sizeof(t)), "dir=-x | a",
               "the next word is the value even if it begins with a dash");
    tap_is_str(read_all(WORDS(W("--dir"), W("--"), W("a")), t, sizeof(t)),
               "error: --dir needs a value: --dir PATH[:DEST]",
               "but for --, which ends the options");
    tap_is_str(read_all(WORDS(W("--dir=--"), W("a")), t, sizeof(t)), "dir=-- | a",
               "unless it is put in the same word");
    tap_is_str(read_all(WORDS(W("--setenv=")), t, sizeof(t)), "setenv= |", "a value may be empty");
    tap_is_str(read_all(WORDS(W("--dir?=/x"), W("--dir!"), W("/y")), t, sizeof(t)),
               "dir?=/x dir!=/y |", "the forms with ? and ! are options of their own");
    tap_is_str(read_all(WORDS(W("")), t, sizeof(t)), "| ", "an empty word is a command's");
}

static void test_syntax_errors(void)
{
    char t[1024];
    tap_has_str(read_all(WORDS(W("--nope=1")), t, sizeof(t)), "unknown option '--nope'",
                "an unknown long option is refused by name");
    tap_has_str(read_all(WORDS(W("-Dq")), t, sizeof(t)), "unknown option '-q'",
                "an unknown letter is refused by name");
    tap_has_str(read_all(WORDS(W("--time")), t, sizeof(t)), "unknown option '--time'",
                "there are no abbreviations");
    tap_has_str(read_all(WORDS(W("--timeout")), t, sizeof(t)), "--timeout needs a value",
                "a missing value is refused");
    tap_has_str(read_all(WORDS(W("-d")), t, sizeof(t)), "--dir needs a value", "also of a letter");
    tap_has_str(read_all(WORDS(W("--nocwd=yes")), t, sizeof(t)), "takes no value",
                "a value too many is refused");
    tap_has_str(read_all(WORDS(W("-")), t, sizeof(t)), "'-' is not an option",
                "a lone dash is refused");
}

static bool has_setter(const struct option_row *row)
{
    struct brig_error err = {0};
    struct settings settings;
    const struct option_use use = {.row = row, .value = row->metavar ? "" : NULL};
    if (settings_init(&settings, BRIG_MODE_SEALED, "/", &err) < 0)
        tap_bail("%s", err.message);
    (void)settings_apply(&settings, &use, &err);
    settings_done(&settings);
    return !strstr(err.message, "not implemented");
}

static void test_table(void)
{
    for (int i = 0; i < OPTION_COUNT_; i++) {
        const struct option_row *row = &option_rows[i];
        bool same = option_find_long(row->long_name, strlen(row->long_name)) == row &&
                    (!row->short_name || option_find_short(row->short_name) == row);
        bool valued = (row->metavar != NULL) == (row->kind != OPTION_KIND_NONE);
        size_t length = strlen(row->help);
        tap_ok(same && valued && has_setter(row) && length > 0 && row->help[length - 1] != '.',
               "--%s is unique, has a setter and a help line without a full stop", row->long_name);
    }
    tap_ok(!option_find_long("", 0) && !option_find_short('\0') && !option_find_long("di", 2),
           "nothing is found under no name or half a name");
}

/* The whole way: a policy, or the message. */
static const char *apply(char **argv, struct settings *settings)
{
    static char message[BRIG_MESSAGE_MAX];
    struct brig_error err = {0};
    struct settings_scan scan;
    int argc = count_words(argv);
    int status = settings_scan(argc, argv, &scan, &err);
    if (status == 0)
        status = settings_init(settings, scan.mode, CWD, &err);
    if (status == 0) {
        settings->home = HOME;
        settings->config_dir = HOME "/.config/brig";
        status = settings_apply_all(settings, argc, argv, &err);
        if (status < 0)
            settings_done(settings);
    }
    (void)snprintf(message, sizeof(message), "%s", err.message);
    return status < 0 ? message : NULL;
}

static void test_grants(void)
{
    struct settings s;
    if (tap_is_str(apply(WORDS(W("-d"), W("a\\:b:/c"), W("-r../up"), W("--mask=./.env"),
                               W("--dir!=new"), W("--dir?"), W("/opt")),
                         &s),
                   NULL, "grants of all kinds are taken")) {
        const struct policy_grant *g = s.policy->grants;
        tap_is_int(s.policy->grant_count, 5, "each is a rule");
        tap_is_str(g[0].source, CWD "/a:b", "an escaped colon is part of the name");
        tap_is_str(g[0].dest, "/c", "what follows the bare colon is the destination");
        tap_is_str(g[1].source, "/home/u/up", "a relative path begins at the working directory");
        tap_ok(g[1].access == BRIG_READ_ONLY, "-r is read-only");
        tap_ok(g[2].access == BRIG_MASK && strcmp(g[2].dest, CWD "/.env") == 0,
               "a mask is made absolute");
        tap_is_int(g[3].flags, BRIG_GRANT_CREATE, "--dir! creates");
        tap_is_int(g[4].flags, BRIG_GRANT_OPTIONAL, "--dir? is optional");
        tap_is_str(g[0].origin, "command line", "a rule knows where it came from");
        tap_ok(!s.cwd_settled, "none of them was about the working directory");
        settings_done(&s);
    }
    tap_has_str(apply(WORDS(W("-d"), W("a:b:c")), &s), "more than one colon", "two colons");
    tap_has_str(apply(WORDS(W("-d"), W("a:")), &s), "nothing after the colon", "an empty end");
    tap_has_str(apply(WORDS(W("-d"), W(":b")), &s), "does not name a path", "an empty start");
    tap_has_str(apply(WORDS(W("-d"), W("")), &s), "--dir: ", "nothing at all, and which option");
    tap_has_str(apply(WORDS(W("-x"), W("nope")), &s), "no earlier rule",
                "taking back what was never granted is refused");
    if (tap_is_str(apply(WORDS(W("-d/a"), W("-x/a"), W("-r.")), &s), NULL,
                   "a grant is taken back")) {
        tap_is_int(s.policy->grant_count, 1, "and is gone");
        tap_ok(s.cwd_settled, "a rule for the working directory is noticed");
        settings_done(&s);
    }
    if (tap_is_str(apply(WORDS(W("--mask"), W("./a:b")), &s), NULL, "a mask has no destination")) {
        tap_is_str(s.policy->grants[0].dest, CWD "/a:b", "so its colons are its own");
        settings_done(&s);
    }
}

static void test_values(void)
{
    struct settings s;
    /* Named, as the settings point into it. */
    char **argv =
        WORDS(W("--timeout=1.5s"), W("--file-size"), W("2M"), W("--net=host"), W("--seccomp"),
              W("dev"), W("--view=host"), W("--setenv=A=b=c"), W("--unsetenv=AWS_*"),
              W("--pass-fd=9"), W("--pass-fd=9"), W("--disable=caps"), W("--disable"), W("seccomp"),
              W("-v"), W("--on-unsupported=warn"), W("--result=r.json"));
    if (tap_is_str(apply(argv, &s), NULL, "values of all kinds are taken")) {
        const struct brig_policy *p = s.policy;
        tap_is_int(p->limits[BRIG_LIMIT_WALL_MS], 1500, "a duration");
        tap_is_int(p->limits[BRIG_LIMIT_FILE_SIZE], 2 << 20, "a size");
        tap_is_int(p->limits[BRIG_LIMIT_GRACE_MS], SETTINGS_GRACE_MS, "the grace has a default");
        tap_ok(p->network == BRIG_NET_HOST && p->seccomp == BRIG_SECCOMP_DEV &&
                   p->view == BRIG_VIEW_HOST && p->on_unsupported == BRIG_UNSUPPORTED_WARN,
               "choices");
        tap_is_str(p->env[0].value, "b=c", "a variable's value may hold =");
        tap_ok(p->disabled_layers == (BRIG_LAYER_CAPS | BRIG_LAYER_SECCOMP), "layers add up");
        tap_ok(s.pass_fd_count == 1 && s.pass_fds[0].number == 9, "an fd is passed once");
        tap_ok(s.verbose && strcmp(s.result, "r.json") == 0, "what is not policy is kept apart");
        settings_done(&s);
    }
    tap_has_str(apply(WORDS(W("--mode=open")), &s), "--mode: 'open' is not one of", "a wrong mode");
    tap_has_str(apply(WORDS(W("--mode=open"), W("--mode=strict")), &s), "'open' is not one of",
                "a wrong mode before a right one");
    tap_has_str(apply(WORDS(W("--net=x")), &s),
                "--net: 'x' is not one of none, loopback, allow, ask, open, host or learn",
                "a wrong choice is answered with the right ones");
    tap_has_str(apply(WORDS(W("--view=root")), &s), "--root DIR", "the view root needs --root");
    tap_has_str(apply(WORDS(W("--timeout=soon")), &s), "--timeout: ", "a wrong duration");
    tap_has_str(apply(WORDS(W("--pass-fd=2")), &s), "give 3 to 255", "an fd that is always there");
    tap_has_str(apply(WORDS(W("--pass-fd=256")), &s), "--pass-fd: ", "an fd out of range");
    tap_has_str(apply(WORDS(W("--json")), &s), "--dry-run", "--json alone says what it needs");
    tap_has_str(apply(WORDS(W("--result=")), &s), "--result: ", "a result needs a place");
}

static void test_scan(void)
{
    struct settings_scan scan;
    char **argv = WORDS(W("-D"), W("--mode"), W("sealed"), W("--help"), W("--nope"));
    tap_is_int(settings_scan(count_words(argv), argv, &scan, NULL), 0,
               "help is found before an error behind it");
    tap_ok(scan.given[OPTION_HELP] && scan.given[OPTION_NOCWD] && !scan.given[OPTION_VERSION],
           "with what stood before it");
    argv = WORDS(W("-v"), W("--"), W("--version"));
    tap_is_int(settings_scan(count_words(argv), argv, &scan, NULL), 0,
               "a command may have options");
    tap_ok(!scan.given[OPTION_VERSION] && scan.command == 3, "which are its own");
}

/* As many as allowed, and one more. */
static void test_pass_fd_limit(void)
{
    char words[BRIG_PASS_FD_MAX + 1][32];
    char *argv[BRIG_PASS_FD_MAX + 3] = {W("brig")};
    for (int i = 0; i <= BRIG_PASS_FD_MAX; i++) {
        (void)snprintf(words[i], sizeof(words[i]), "--pass-fd=%d", 3 + i);
        argv[1 + i] = words[i];
    }
    struct settings s;
    tap_has_str(apply(argv, &s), "exceeds the limit of",
                "one more fd than can be passed is refused");
    argv[BRIG_PASS_FD_MAX + 1] = NULL;
    if (tap_is_str(apply(argv, &s), NULL, "as many as can be are taken"))
        settings_done(&s);
}

int main(void)
{
    test_syntax();
    test_syntax_errors();
    test_table();
    test_grants();
    test_values();
    test_scan();
    test_pass_fd_limit();
    return tap_done();
}
