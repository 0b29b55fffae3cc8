/* SPDX-License-Identifier: MIT */
/* What the command line makes of credentials, proxies and events of the network. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/str.h"
#include "cli/credentials/inject.h"
#include "cli/identity.h"
#include "cli/network/mirrors.h"
#include "cli/network/net.h"
#include "cli/network/net_watch.h"
#include "cli/report.h"
#include "cli/settings/settings.h"
#include "policy/policy.h"
#include "tap.h"

static struct brig_error err;

static void refused(int result, const char *text, const char *name)
{
    tap_is_int(result, BRIG_E_INVALID, "'%s' is refused", name);
    tap_has_str(err.message, text, "because: %s", text);
    err = (struct brig_error){0};
}

/* ---- credentials ---- */

static void test_inject(void)
{
    struct inject_spec spec;
    tap_is_int(
        inject_parse("api.example.com  Authorization=bearer:env:KEY url=API upstream=http://x "
                     "methods=GET,POST path=/a path=/b strip=x,y ca=/c",
                     0, &spec, &err),
        0, "all its words");
    tap_is_str(spec.name, "api.example.com", "the name");
    tap_is_str(spec.header, "Authorization", "the header");
    tap_ok(spec.form == INJECT_BEARER && spec.source == INJECT_ENV, "form and source");
    tap_is_str(spec.where, "KEY", "and where");
    tap_ok(strcmp(spec.variable, "API") == 0 && strcmp(spec.upstream, "http://x") == 0 &&
               strcmp(spec.methods[1], "POST") == 0 && !spec.methods[2] &&
               strcmp(spec.paths[1], "/b") == 0 && strcmp(spec.strip[1], "y") == 0 &&
               strcmp(spec.ca, "/c") == 0,
           "and the rest");
    inject_done(&spec);
    tap_is_int(inject_parse("a.example h=basic:joe:cmd:pass show a b", 0, &spec, &err), 0,
               "a line of shell");
    tap_is_str(spec.where, "pass show a b", "is all that is left");
    tap_is_str(spec.user, "joe", "and has a user before it");
    inject_done(&spec);
    tap_is_int(inject_parse("@anthropic", 0, &spec, &err), 0, "a short form");
    tap_is_str(spec.name, "api.anthropic.com", "has a name");
    tap_is_str(spec.where, "ANTHROPIC_API_KEY", "and a variable");
    tap_is_str(spec.strip[0], "authorization", "and drops what could stand for it");
    inject_done(&spec);
    tap_is_int(inject_parse("@openai file:/run/key methods=GET", 0, &spec, &err), 0,
               "with a source of its own");
    tap_ok(spec.source == INJECT_FILE && strcmp(spec.where, "/run/key") == 0 &&
               spec.form == INJECT_BEARER && strcmp(spec.methods[0], "GET") == 0,
           "the rest stays");
    inject_done(&spec);
}

static void test_bad_inject(void)
{
    struct inject_spec spec;
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", "the value is empty"},
        {"   ", "the value is empty"},
        {"@nobody", "'@nobody'"},
        {"a.example", "lacks the header"},
        {"a.example header", "lacks the header"},
        {"a.example h=KEY", "where the secret comes from"},
        {"a.example h=env:", "where the secret comes from"},
        {"a.example h=basic:env", "where the secret comes from"},
        {"a.example h=env:K color=red", "'color'"},
        {"a.example h=env:K word", "'word'"},
        {"@openai pipe:x", "where the secret comes from"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        refused(inject_parse(rows[i].text, 0, &spec, &err), rows[i].why, rows[i].text);
}

/* The words of a line, each with a star before it if it is a program. */
static void words_are(const char *line, bool whole, const char *wanted)
{
    struct inject_words words = {.rest = line, .whole = whole};
    autostr struct str found = {0};
    while (inject_next_word(&words))
        str_appendf(&found, "%s%s%s", found.length ? " " : "", words.program ? "*" : "",
                    words.text);
    tap_is_str(found.data ? found.data : "", wanted, "the words of: %s", line);
}

static void test_words(void)
{
    words_are("", true, "");
    words_are("  \t", true, "");
    words_are("pass show a", true, "*pass show a");
    words_are("cat<~/a|head -n1;b&&c", true, "*cat ~/a *head -n1 *b *c");
    words_are("x $(get \"my key\") `old`", true, "*x $ *get my key *old");
    words_are("A=1 B='2 3' get k", true, "*A=1 *B=2 3 *get k");
    words_are("cat a\\ b 'c\\d' \"e\\\"f\"", true, "*cat a b c\\d e\"f");
    words_are("cat 'unfinished a", true, "*cat unfinished a");
    words_are("cat '' x\\", true, "*cat x\\");
    words_are("sh -c 'cat /a' --key=/b @/c", false, "*sh -c cat /a --key /b /c");
    char line[2 * PATH_LENGTH_MAX];
    memset(line, 'a', sizeof line);
    struct inject_words words = {.rest = line};
    line[PATH_LENGTH_MAX] = '\0';
    tap_ok(inject_next_word(&words) && strlen(words.text) == PATH_LENGTH_MAX,
           "a word as long as a path is taken");
    memcpy(line + PATH_LENGTH_MAX, "a b", sizeof "a b");
    words = (struct inject_words){.rest = line};
    tap_ok(inject_next_word(&words) && strcmp(words.text, "b") == 0, "a longer one is passed over");
}

/* A line that names so many files. */
static void names_files(const char *directory, int count, struct str *line)
{
    str_append(line, "a.example h=cmd:cat");
    for (int i = 0; i < count; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "%s/%d", directory, i);
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        if (fd < 0 || close(fd) < 0)
            tap_bail("cannot make a file");
        str_appendf(line, " %s", path);
    }
}

static int note_files(int count, size_t *ret_noted)
{
    char directory[] = "/tmp/test_cli_net.XXXXXX";
    autostr struct str line = {0};
    struct settings settings;
    struct inject_spec spec;
    const struct identity identity = {.host_uid = (uid_t)-1, .host_gid = (gid_t)-1};
    if (!mkdtemp(directory) || settings_init(&settings, BRIG_MODE_SEALED, "/", &err) < 0)
        tap_bail("cannot begin");
    names_files(directory, count, &line);
    if (inject_parse(line.data, 0, &spec, &err) < 0)
        tap_bail("%s", err.message);
    int status = inject_note_files(&settings, &spec, &identity, "test", &err);
    *ret_noted = settings.secret_count;
    inject_done(&spec);
    settings_done(&settings);
    for (int i = 0; i < count; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "%s/%d", directory, i);
        (void)unlink(path);
    }
    (void)rmdir(directory);
    return status;
}

static void test_files(void)
{
    size_t noted;
    tap_is_int(note_files(SETTINGS_SECRETS_MAX, &noted), 0, "the files that a command names");
    tap_is_int((int)noted, SETTINGS_SECRETS_MAX, "are noted once each, and not the program");
    refused(note_files(SETTINGS_SECRETS_MAX + 1, &noted), "too many files", "one more");
}

static char *value_of(const char *text, const char *secret)
{
    struct inject_spec spec;
    char *value = NULL;
    if (inject_parse(text, 0, &spec, &err) < 0 || inject_dress(&spec, secret, &value, &err) < 0)
        tap_bail("%s", err.message);
    inject_done(&spec);
    return value;
}

static void test_values(void)
{
    autofree char *plain = value_of("a.example h=env:K", "hush");
    autofree char *bearer = value_of("a.example h=bearer:env:K", "hush");
    autofree char *basic = value_of("a.example h=basic:Aladdin:env:K", "open sesame");
    tap_is_str(plain, "hush", "as it is");
    tap_is_str(bearer, "Bearer hush", "as a bearer's");
    tap_is_str(basic, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "as RFC 7617 has it");
    static const char *const rows[][2] = {
        {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        autostr struct str out = {0};
        base64_append(&out, rows[i][0], strlen(rows[i][0]));
        tap_is_str(out.data ? out.data : "", rows[i][1], "base64 of '%s'", rows[i][0]);
    }
}

static void secret_is(const char *text, const char *wanted, const struct identity *identity)
{
    struct inject_spec spec;
    char *secret = NULL;
    if (inject_parse(text, 0, &spec, &err) < 0)
        tap_bail("%s", err.message);
    tap_is_int(inject_read_secret(&spec, identity, &secret, &err), 0, "%s is read", text);
    tap_is_str(secret, wanted, "and is the secret");
    policy_free_secret(secret);
    inject_done(&spec);
}

static void no_secret(const char *text, const char *why, const struct identity *identity)
{
    struct inject_spec spec;
    char *secret = NULL;
    if (inject_parse(text, 0, &spec, &err) < 0)
        tap_bail("%s", err.message);
    refused(inject_read_secret(&spec, identity, &secret, &err), why, text);
    inject_done(&spec);
}

static void test_sources(void)
{
    const struct identity nobody = {.host_uid = (uid_t)-1, .host_gid = (gid_t)-1};
    char path[] = "/tmp/test_cli_net.XXXXXX", text[64];
    autoclose int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0 || write(fd, "in a file\r\n\n", 12) != 12)
        tap_bail("no file");
    (void)setenv("TEST_SECRET", "in a variable", 1);
    secret_is("a.example h=env:TEST_SECRET", "in a variable", &nobody);
    (void)snprintf(text, sizeof text, "a.example h=file:%s", path);
    secret_is(text, "in a file", &nobody);
    const struct identity at_home = {
        .host_uid = (uid_t)-1, .host_gid = (gid_t)-1, .host_home = "/tmp"};
    (void)snprintf(text, sizeof text, "a.example h=file:~/%s", path + strlen("/tmp/"));
    secret_is(text, "in a file", &at_home);
    secret_is("a.example h=cmd:printf 'of a %s' program", "of a program", &nobody);
    int pair[2];
    if (pipe2(pair, O_CLOEXEC) < 0 || write(pair[1], "from afar\n", 10) != 10)
        tap_bail("no pipe");
    (void)close(pair[1]);
    (void)snprintf(text, sizeof text, "a.example h=fd:%d", pair[0]);
    secret_is(text, "from afar", &nobody);
    tap_ok(fcntl(pair[0], F_GETFD) < 0, "whose descriptor is closed then");
    no_secret("a.example h=env:TEST_NO_SECRET", "'TEST_NO_SECRET' is not set", &nobody);
    no_secret("a.example h=file:/no/such/file", "'/no/such/file'", &nobody);
    no_secret("a.example h=fd:987", "not open", &nobody);
    no_secret("a.example h=cmd:echo hush; false", "failed", &nobody);
    no_secret("a.example h=cmd:true", "no secret", &nobody);
    no_secret("a.example h=cmd:head -c 5000 /dev/zero | tr '\\0' x", "no secret", &nobody);
    no_secret("a.example h=cmd:printf 'a\\0b'", "no secret", &nobody);
    (void)unlink(path);
}

/* ---- the host's proxy ---- */

static void test_proxy(void)
{
    static const struct {
        const char *url, *proxy, *secret;
    } rows[] = {
        {"http://proxy:3128", "proxy:3128", NULL},
        {"HTTP://proxy.example/", "proxy.example:80", NULL},
        {"proxy:8080", "proxy:8080", NULL},
        {"http://[::1]:8080", "[::1]:8080", NULL},
        {"http://[::1]", "[::1]:80", NULL},
        {"http://joe:p%40ss@proxy:1", "proxy:1", "Basic am9lOnBAc3M="},
        {"http://joe@proxy:1", "proxy:1", "Basic am9lOg=="},
        {"http://a@b:c@proxy:1", "proxy:1", "Basic YUBiOmM="},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        autofree char *proxy = NULL;
        autofree char *secret = NULL;
        tap_ok(net_proxy_parse(rows[i].url, &proxy, &secret), "%s is a proxy", rows[i].url);
        tap_is_str(proxy, rows[i].proxy, "at its place");
        tap_ok(str_equal(secret, rows[i].secret), "with its secret: %s", secret ? secret : "none");
    }
    static const char *const bad[] = {"https://proxy:1", "socks5://proxy:1", "", "http://",
                                      "http://joe@"};
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        char *proxy = NULL, *secret = NULL;
        tap_ok(!net_proxy_parse(bad[i], &proxy, &secret), "'%s' is none", bad[i]);
    }
    char list[] = "localhost, .internal.example,*.b.example,10.0.0.0/8,";
    const char *names[POLICY_NO_PROXY_MAX + 1];
    tap_is_int((long)net_proxy_split_names(list, names), 3, "names that go without");
    tap_is_str(names[1], "internal.example", "are without their dots");
    tap_is_str(names[2], "b.example", "and stars");
}

/* ---- mirrors ---- */

static void test_mirrors(void)
{
    const char text[] =
        "x http://a.example/simple, sparse+https://joe:pw@b.example:8443/i 'https://[::1]/' "
        "ftp://c.example file:///d https:// https://e.example";
    static const char *const wanted[] = {"a.example:80", "b.example:8443", "[::1]:443",
                                         "e.example:443"};
    char rule[MIRRORS_RULE_MAX];
    size_t at = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(wanted); i++) {
        tap_ok(mirrors_next_url(text, strlen(text), &at, rule), "there is one more");
        tap_is_str(rule, wanted[i], "and it is the right one");
    }
    tap_ok(!mirrors_next_url(text, strlen(text), &at, rule), "and no other");
    static const char *const keys[] = {"registry", "index-url", NULL};
    static const struct {
        const char *line;
        long value; /* or -1 */
    } rows[] = {{"registry=x", 9},
                {"@corp:registry = x", 16},
                {" \"registry\" = x", 13},
                {"Index-URL=x", 10},
                {"always-auth=true", -1},
                {"registry", -1},
                {"registry-x=y", -1},
                {"=", -1},
                {"", -1}};
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        size_t value = 0;
        int found = mirrors_find_key(rows[i].line, strlen(rows[i].line), keys, &value);
        tap_is_int(found >= 0 ? (long)value : -1, rows[i].value, "'%s'", rows[i].line);
    }
}

static void test_mirror_files(void)
{
    char home[] = "/tmp/brig-test-mirrors.XXXXXX", file[64];
    if (!mkdtemp(home))
        tap_bail("cannot make '%s'", home);
    (void)snprintf(file, sizeof file, "%s/.pip", home);
    (void)mkdir(file, 0755);
    (void)snprintf(file, sizeof file, "%s/.pip/pip.conf", home);
    FILE *out = fopen(file, "we");
    if (!out ||
        fputs("[global]\nindex-url = https://one.example/simple\nextra-index-url =\n"
              "    https://two.example/simple\n    https://three.example:8080/\n"
              "timeout = 60\nproxy = http://no.example:3128\n",
              out) < 0 ||
        fclose(out) != 0)
        tap_bail("cannot write '%s'", file);

    const struct identity self = {.host_uid = (uid_t)-1, .host_gid = (gid_t)-1};
    struct settings settings = {.policy = brig_policy_new(BRIG_MODE_SEALED), .home = home};
    settings.policy->net.rules.mirrors = NET_TOOL_PYPI;
    tap_is_int(mirrors_apply(&settings, &self, &err), 0, "a file with mirrors is read");
    /* The machine may have mirrors of its own in /etc or in variables. */
    const struct policy_net *net = &settings.policy->net;
    const char *found[8] = {NULL};
    size_t count = 0;
    for (size_t i = 0; i < net->written_count; i++)
        if (strcmp(net->written[i].origin, file) == 0 && count < ARRAY_LENGTH(found))
            found[count++] = net->written[i].text;
    tap_is_int((long)count, 3, "mirrors of a file are allowed, also in indented lines");
    tap_is_str(found[2], "three.example:8080", "with their port");
    brig_policy_free(settings.policy);
    (void)unlink(file);
    *strrchr(file, '/') = '\0';
    (void)rmdir(file);
    (void)rmdir(home);
}

/* ---- events ---- */

static struct brig_net_event refusal(const char *name, const char *address, unsigned port,
                                     const char *because)
{
    struct brig_net_event event = {
        .verdict = BRIG_NET_DENIED, .because = because, .via = "tcp", .port = port};
    (void)snprintf(event.name, sizeof event.name, "%s", name);
    (void)snprintf(event.address, sizeof event.address, "%s", address);
    return event;
}

static void line_is(const struct brig_net_event *event, const char *wanted)
{
    char line[NET_LINE_MAX];
    net_watch_line(event, false, line);
    tap_is_str(line, wanted, "what is said");
}

static void test_lines(void)
{
    struct brig_net_event event = refusal("evil.example", "", 0, "no-rule");
    line_is(&event, "blocked: evil.example; allow it with --allow evil.example");
    event = refusal("evil.example", "", 443, "no-rule");
    line_is(&event, "blocked: evil.example:443; allow it with --allow evil.example");
    event = refusal("good.example", "", 22, "port");
    line_is(&event, "blocked: good.example:22; allow it with --allow good.example:22");
    event = refusal("", "2001:db8::1", 22, "no-rule");
    line_is(&event, "blocked: [2001:db8::1]:22; allow it with --allow [2001:db8::1]:22");
    event = refusal("in.example", "10.0.0.1", 80, "address");
    (void)snprintf(event.detail, sizeof event.detail, "10.0.0.1 is private");
    line_is(&event,
            "blocked: in.example:80 (10.0.0.1 is private); allow it with --allow 10.0.0.1:80");
    event = refusal("bad.example", "", 0, "rule");
    (void)snprintf(event.rule, sizeof event.rule, "bad.example:*");
    line_is(&event, "blocked: bad.example (deny bad.example:*)");
    event = refusal("good.example", "", 443, "wrong-sni");
    line_is(&event, "blocked: good.example:443 (wrong-sni)");
    (void)snprintf(event.rule, sizeof event.rule, "good.example:443,80");
    line_is(&event, "blocked: good.example:443 (wrong-sni)");
    event.verdict = BRIG_NET_ALLOWED;
    line_is(&event, "");
    event = refusal("host", "", 80, "no-rule");
    line_is(&event, "blocked: host:80; allow it with --allow host:80");
    event = refusal("good.example", "", 22, "no-connection");
    event.verdict = BRIG_NET_FAILED;
    (void)snprintf(event.detail, sizeof event.detail, "cannot connect: Connection refused");
    line_is(&event, "failed: good.example:22 (cannot connect: Connection refused)");
    event.port = 0;
    line_is(&event, "");
    event = refusal("good.example", "", 443, "no-rule");
    event.verdict = BRIG_NET_WAITING;
    line_is(&event,
            "good.example:443 is waiting; in another terminal: brig allow good.example:443");
}

/* Where the network is open because nothing says otherwise, a public address alone would close
 * it. */
static void test_implied(void)
{
    char line[NET_LINE_MAX];
    struct brig_net_event event = refusal("near.example", "93.184.218.1", 80, "address");
    net_watch_line(&event, true, line);
    tap_is_str(line,
               "blocked: near.example:80 (93.184.218.1); allow it with --net open --allow "
               "93.184.218.1:80",
               "a public address needs --net open beside it");
    event = refusal("in.example", "10.0.0.1", 80, "address");
    net_watch_line(&event, true, line);
    tap_is_str(line, "blocked: in.example:80 (10.0.0.1); allow it with --allow 10.0.0.1:80",
               "a private one does not");
}

static void test_clean(void)
{
    static const struct {
        const char *text, *clean;
    } rows[] = {{" \"https://joe:pw@a.example/x\"\r", "https://a.example/x"},
                {"https://t@a.example|https://b.example,direct",
                 "https://a.example|https://b.example,direct"},
                {"http://a.example/@scope", "http://a.example/@scope"},
                {"://@", "://"},
                {"", ""}};
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        autostr struct str out = {0};
        mirrors_clean(rows[i].text, strlen(rows[i].text), &out);
        tap_is_str(out.data ? out.data : "", rows[i].clean, "without passwords: %s", rows[i].text);
    }
}

static void test_learning(void)
{
    struct net_watch watch = NET_WATCH_INIT;
    autostr struct str rules = {0};
    watch.learn = true;
    static const struct {
        const char *name, *address;
        unsigned port;
        enum brig_net_verdict verdict;
        const char *via;
    } rows[] = {
        {"b.example", "1.1.1.1", 443, BRIG_NET_ALLOWED, "tcp"},
        {"a.example", "1.1.1.2", 80, BRIG_NET_ALLOWED, "http-proxy"},
        {"b.example", "1.1.1.1", 22, BRIG_NET_ALLOWED, "tcp"},
        {"b.example", "1.1.1.3", 443, BRIG_NET_ALLOWED, "tcp"},
        {"", "2001:4860::1", 443, BRIG_NET_ALLOWED, "socks"},
        {"denied.example", "", 443, BRIG_NET_DENIED, "tcp"},
        {"ended.example", "1.1.1.4", 443, BRIG_NET_ENDED, "tcp"},
        {"key.example", "1.1.1.5", 443, BRIG_NET_ALLOWED, "inject"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct brig_net_event event = {.verdict = rows[i].verdict,
                                       .because = "rule",
                                       .via = rows[i].via,
                                       .port = rows[i].port};
        (void)snprintf(event.name, sizeof event.name, "%s", rows[i].name);
        (void)snprintf(event.address, sizeof event.address, "%s", rows[i].address);
        net_watch_event(&watch, &event, true);
    }
    net_watch_rules(&watch, &rules);
    tap_is_str(rules.data, "allow [2001:4860::1]:443\nallow a.example:80\nallow b.example:22,443\n",
               "each destination once, with its ports");
    net_watch_done(&watch);
}

int main(void)
{
    test_inject();
    test_bad_inject();
    test_words();
    test_files();
    test_values();
    test_sources();
    test_proxy();
    test_mirrors();
    test_mirror_files();
    test_lines();
    test_implied();
    test_clean();
    test_learning();
    return tap_done();
}
