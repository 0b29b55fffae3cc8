/* SPDX-License-Identifier: MIT */
/* The environment a command gets, and the patterns that name variables. */
#include "base/cleanup.h"
#include "policy/defaults.h"
#include "policy/policy.h"
#include "tap.h"

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static struct brig_error err;

static struct brig_policy *fresh(void)
{
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);
    if (!policy)
        tap_bail("no policy");
    (void)brig_policy_host_env(policy, true, NULL);
    return policy;
}

static char **made(const struct brig_policy *policy, const char *const *envp)
{
    char **env = NULL;
    if (policy_environment(policy, envp, &env, &err) < 0)
        tap_bail("%s", err.message);
    return env;
}

static const char *value(char **env, const char *name)
{
    size_t length = strlen(name);
    for (; *env; env++)
        if (strncmp(*env, name, length) == 0 && (*env)[length] == '=')
            return *env + length + 1;
    return NULL;
}

static size_t count(char **env)
{
    size_t n = 0;
    while (env[n])
        n++;
    return n;
}

static void patterns(void)
{
    static const struct {
        const char *pattern, *text;
        bool match;
    } rows[] = {
        {"", "", true},
        {"", "a", false},
        {"a", "a", true},
        {"a", "ab", false},
        {"ab", "a", false},
        {"*", "", true},
        {"*", "abc", true},
        {"**", "abc", true},
        {"a*", "a", true},
        {"a*", "abc", true},
        {"*c", "abc", true},
        {"*c", "abd", false},
        {"a*c", "abbc", true},
        {"a*b*c", "aXbYc", true},
        {"a*b*c", "aXcYb", false},
        {"*ab", "aab", true},
        {"*aab", "aaaab", true},
        {"LC_*", "LC_ALL", true},
        {"LC_*", "LCX", false},
        {"\\*", "*", true},
        {"\\*", "a", false},
        {"a\\*b", "a*b", true},
        {"a\\*b", "axb", false},
        {"\\\\", "\\", true},
        {"\\", "\\", true},
        {"\\", "a", false},
        {"\\a", "a", true},
        {"?", "a", false},
        {"[a]", "a", false},
        {"*\\**", "x*y", true},
        {"*\\**", "xy", false},
        {"*_KEY", "A_KEY_KEY", true},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        tap_ok(policy_pattern_matches(rows[i].pattern, rows[i].text) == rows[i].match,
               "'%s' %s '%s'", rows[i].pattern, rows[i].match ? "matches" : "does not match",
               rows[i].text);
    char long_text[4001];
    memset(long_text, 'a', sizeof long_text - 1);
    long_text[4000] = '\0';
    tap_ok(!policy_pattern_matches("*a*a*a*a*a*a*a*a*a*a*b", long_text),
           "many stars on a long text come to an end");
}

static void sealed_keeps_little(void)
{
    static const char *const envp[] = {
        "PATH=/opt/bin",  "HOME=/home/u", "LC_ALL=C",           "TERM=xterm",
        "AWS_KEY=secret", "LD_PRELOAD=x", "SSH_AUTH_SOCK=/s",   "TMPDIR=/home/u/tmp",
        "malformed",      "=x",           "LANG=de_DE.UTF-8",   "LANG=C.UTF-8",
        "USER=u",         "TZ=",          "XDG_RUNTIME_DIR=/r", NULL,
    };
    struct brig_policy *p = fresh();
    autofree char **env = made(p, envp);
    tap_is_str(value(env, "PATH"), "/opt/bin", "PATH passes");
    tap_is_str(value(env, "LC_ALL"), "C", "LC_* passes");
    tap_is_str(value(env, "TERM"), "xterm", "TERM passes");
    tap_is_str(value(env, "TZ"), "", "an empty value passes");
    tap_is_str(value(env, "LANG"), "C.UTF-8", "of a name given twice the last value counts");
    tap_is_str(value(env, "HOME"), "/home/brig", "HOME is the jail's");
    tap_is_str(value(env, "TMPDIR"), "/tmp", "TMPDIR is the jail's");
    tap_ok(!value(env, "AWS_KEY") && !value(env, "LD_PRELOAD") && !value(env, "SSH_AUTH_SOCK") &&
               !value(env, "USER") && !value(env, "XDG_RUNTIME_DIR"),
           "the rest does not");
    tap_is_int(count(env), 7, "nothing else is there");
    brig_policy_free(p);
}

static void empty_gets_defaults(void)
{
    struct brig_policy *p = fresh();
    autofree char **env = made(p, NULL);
    tap_is_str(value(env, "PATH"), DEFAULT_PATH, "PATH has a default");
    tap_is_int(count(env), 3, "beside it HOME and TMPDIR");
    const struct brig_identity id = {
        sizeof(struct brig_identity), 1, 1, 1, 1, "agent", "/home/agent", NULL};
    brig_policy_identity(p, &id, &err);
    autofree char **named = made(p, (const char *const[]){"USER=u", NULL});
    tap_is_str(value(named, "HOME"), "/home/agent", "HOME is the identity's");
    tap_is_str(value(named, "USER"), "agent", "USER is the identity's");
    tap_is_str(value(named, "LOGNAME"), "agent", "LOGNAME too");
    const struct brig_identity homeless = {
        sizeof(struct brig_identity), 1, 1, 1, 1, "agent", NULL, NULL};
    brig_policy_identity(p, &homeless, &err);
    autofree char **chosen = made(p, NULL);
    tap_is_str(value(chosen, "HOME"), "/home/agent", "a home not named follows from the user");
    brig_policy_free(p);
}

static void rules_apply_in_order(void)
{
    static const char *const envp[] = {"API_KEY=k", "API_URL=u", "LANG=C", "PATH=/p", NULL};
    struct brig_policy *p = fresh();
    brig_policy_setenv(p, "A", "1", &err);
    brig_policy_setenv(p, "A", "2", &err);
    brig_policy_setenv(p, "API_KEY", NULL, &err);
    brig_policy_setenv(p, "API_URL", NULL, &err);
    brig_policy_setenv(p, "ABSENT", NULL, &err);
    brig_policy_unsetenv(p, "API_*", &err);
    brig_policy_setenv(p, "API_KEY", NULL, &err);
    brig_policy_setenv(p, "TMPDIR", "/w", &err);
    brig_policy_setenv(p, "GONE", "x", &err);
    brig_policy_unsetenv(p, "GONE", &err);
    autofree char **env = made(p, envp);
    tap_is_str(value(env, "A"), "2", "the last value set counts");
    tap_is_str(value(env, "API_KEY"), "k", "exposed after a pattern, a name passes");
    tap_ok(!value(env, "API_URL"), "exposed before it, it does not");
    tap_ok(!value(env, "ABSENT"), "what the caller has not cannot be exposed");
    tap_is_str(value(env, "TMPDIR"), "/w", "a rule wins over the jail's own");
    tap_ok(!value(env, "GONE"), "what was set can be removed");
    brig_policy_unsetenv(p, "*", &err);
    brig_policy_setenv(p, "ONLY", "x=y", &err);
    autofree char **one = made(p, envp);
    tap_is_int(count(one), 1, "a lone star removes all before it");
    tap_is_str(one[0], "ONLY=x=y", "and what follows stays");
    brig_policy_free(p);
}

static void keeps_to_the_limit(void)
{
    const size_t most = 8192;
    struct brig_policy *p = fresh();
    autofree const char **envp = calloc(most + 2, sizeof *envp);
    if (!envp)
        tap_bail("no memory");
    for (size_t i = 0; i < most; i++)
        envp[i] = "LC_X=1";
    autofree char **env = made(p, envp);
    tap_is_str(value(env, "LC_X"), "1", "as many variables as allowed are read");
    envp[most] = "LC_X=2";
    char **none = NULL;
    tap_is_int(policy_environment(p, envp, &none, &err), BRIG_E_INVALID, "one more is refused");
    tap_has_str(err.message, "at most 8192", "saying how many are");
    tap_ok(!none, "and nothing is returned");
    brig_policy_free(p);
}

static bool is_filtered(const char *variable)
{
    const char *equals = strchr(variable, '=');
    for (const char *filter = policy_default_filters; *filter; filter = policy_next_default(filter))
        if (policy_filter_matches(filter, variable, (size_t)(equals - variable), equals + 1))
            return true;
    return false;
}

static void default_filters(void)
{
    static const char *const secret[] = {
        "SSHPASS=x",
        "BW_SESSION=x",
        "DOCKER_AUTH_CONFIG=x",
        "npm_config__auth=x",
        "npm_config__authToken=x",
        "npm_config_//registry.npmjs.org/:_authToken=x",
        "my_api_key=x",
        "KEY=x",
        "OPENAI_KEYS=x",
        "STRIPE_KEY_LIVE=x",
        "STRIPE_KEY_TEST=x",
        "DEPLOY_KEYS=x",
        "TLS_KEY_PEM=x",
        "SERVICE_KEY_PRODUCTION=x",
        "PIP_KEYRING=x",
        "OPENAI_API_KEY_2=x",
        "FOO_KEY=x",
        "OPENAI_KEY=x",
        "STRIPE_KEY=x",
        "stripe_key=x",
        "ACCOUNT_KEY=x",
        "SESSION_KEY=x",
        "SESSION_COOKIE_VALUE=x",
        "CI_JWT_V2=x",
        "BEARER=x",
        "MYSQL_PASS=x",
        "REGISTRY_AUTH=x",
        "DB_CREDS_JSON=x",
        "AZURE_STORAGE_CONNECTION_STRING=x",
        "WALLET_MNEMONIC=x",
        "SENTRY_DSN=x",
        "SENTRYDSN=x",
        "STRIPE_SK_LIVE=x",
        "RESTIC_PASSWORD_COMMAND=x",
        "RESTIC_PASSWORD_FILE=x",
        "BORG_PASSCOMMAND=x",
        "github_token=x",
        "GITHUB_TOKEN_RO=x",
        "Client_Secret=x",
        "PGPASSWORD=x",
        "MYSQL_PWD=x",
        "GIT_ASKPASS=x",
        "GOOGLE_APPLICATION_CREDENTIALS=x",
        "AWS_PROFILE=x",
        "SSH_AUTH_SOCK=x",
        "XAUTHORITY=x",
        "SLACK_WEBHOOK_URL=x",
        "BB_AUTH_STRING=x",
        "DATABASE_URL=x",
        "MONGODB_URI=x",
        "HTTPS_PROXY=http://me:pw@proxy:3128",
        "http_proxy=HTTP://me:pw@proxy:3128/",
        "PIP_INDEX_URL=https://me:pw@pypi.example/simple",
        "PIP_EXTRA_INDEX_URL=https://pypi.org/simple https://me:pw@pypi.example/simple",
        "GOPROXY=https://me:pw@go.example,direct",
        "SOMETHING=see postgresql+asyncpg://u:p@h:5432/db",
        "CLONE_FROM=https://ghp_0123456789@github.com/x/y",
    };
    static const char *const plain[] = {
        "AUTHOR=x",
        "GIT_AUTHOR_NAME=x",
        "GIT_AUTHOR_EMAIL=me@example.org",
        "GIT_COMMITTER_NAME=x",
        "npm_config_init_author_name=x",
        "TOKENIZERS_PARALLELISM=false",
        "MAX_THINKING_TOKENS=1000",
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS=1000",
        "PATH=/bin",
        "PWD=/",
        "OLDPWD=/",
        "HOME=/",
        "TERM=xterm",
        "LS_COLORS=x",
        "LD_LIBRARY_PATH=x",
        "DESKTOP_SESSION=x",
        "XDG_SESSION_TYPE=x",
        "DBUS_X=x",
        "EDITOR=vi",
        "LESSKEY=x",
        "MONKEY=x",
        "MONKEYS=x",
        "KEYBOARD=x",
        "KEYTIMEOUT=x",
        "XKB_DEFAULT_LAYOUT=x",
        "GTK_KEY_THEME=x",
        "GIT_CONFIG_KEY_0=safe.directory",
        "KEYBOARD_KEY_TIMEOUT=x",
        "PASSENGER_APP_ENV=x",
        "COMPOSER_HOME=x",
        "PYTHONPATH=x",
        "CARGO_HOME=x",
        "GOPATH=x",
        "GOPROXY=https://proxy.golang.org,direct",
        "HTTPS_PROXY=http://proxy:3128",
        "NO_PROXY=localhost,10.0.0.0/8",
        "PIP_INDEX_URL=https://pypi.example:8443/simple",
        "GIT_REMOTE=ssh://git@github.com:22/x/y",
        "SCP=git@github.com:x/y.git",
        "SCOPED=https://registry.example/@scope/a:b@c",
        "IMAGE=docker://registry:5000/x@sha256:0123",
        "URL=https://example.org/?q=a:b@c",
        "TIMES=10:30@home",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(secret); i++)
        tap_ok(is_filtered(secret[i]), "%s is not passed on", secret[i]);
    for (size_t i = 0; i < ARRAY_LENGTH(plain); i++)
        tap_ok(!is_filtered(plain[i]), "%s is", plain[i]);
}

static void filters_by_value(void)
{
    static const char *const envp[] = {"HTTPS_PROXY=http://u:p@h:1", "OTHER=http://h:1", NULL};
    struct brig_policy *p = brig_policy_new(BRIG_MODE_CASUAL);
    brig_policy_unsetenv(p, "*://*:*@*", &err);
    brig_policy_unsetenv(p, "oTHe*", &err);
    autofree char **env = made(p, envp);
    tap_ok(!value(env, "HTTPS_PROXY"), "a value with a password in an address is removed");
    tap_ok(!value(env, "OTHER"), "a name in whatever case is, too");
    brig_policy_setenv(p, "HTTPS_PROXY", NULL, &err);
    autofree char **again = made(p, envp);
    tap_is_str(value(again, "HTTPS_PROXY"), "http://u:p@h:1", "unless it is asked for by name");
    brig_policy_free(p);
}

/* Without brig_policy_host_env() nothing is left out silently. */
static void test_given(void)
{
    static const char *const env[] = {"LANG=C", "SHOWN=1", NULL};
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);
    char **made_env = NULL;
    tap_is_int(policy_environment(policy, env, &made_env, &err), BRIG_E_INVALID,
               "a variable that the mode does not pass on is refused");
    tap_has_str(err.message, "'SHOWN'", "the message names it");
    tap_has_str(err.message, "brig_policy_setenv()", "and what to do");
    static const char *const unnamed[][2] = {{"LANG", NULL}, {"=C", NULL}};
    for (size_t i = 0; i < ARRAY_LENGTH(unnamed); i++) {
        err = (struct brig_error){0};
        tap_is_int(policy_environment(policy, unnamed[i], &made_env, &err), BRIG_E_INVALID,
                   "'%s' is not a variable", unnamed[i][0]);
        tap_has_str(err.message, unnamed[i][0], "the message names it");
    }
    (void)brig_policy_setenv(policy, "SHOWN", NULL, &err);
    made_env = made(policy, env);
    tap_is_str(value(made_env, "SHOWN"), "1", "one that a rule names is passed on");
    free(made_env);
    brig_policy_free(policy);
    policy = brig_policy_new(BRIG_MODE_SEALED);
    (void)brig_policy_setenv(policy, "*", NULL, &err);
    made_env = made(policy, env);
    tap_is_str(value(made_env, "SHOWN"), "1", "as all are if the rule is *");
    free(made_env);
    brig_policy_free(policy);
    policy = brig_policy_new(BRIG_MODE_STRICT);
    made_env = made(policy, env);
    tap_is_str(value(made_env, "SHOWN"), "1", "other modes pass on all");
    free(made_env);
    brig_policy_free(policy);
}

int main(void)
{
    test_given();
    patterns();
    default_filters();
    filters_by_value();
    sealed_keeps_little();
    empty_gets_defaults();
    rules_apply_in_order();
    keeps_to_the_limit();
    return tap_done();
}
