/* SPDX-License-Identifier: MIT */
/* Start-up files: which lines are hidden, and how they come back. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/defaults.h"
#include "policy/policy.h"
#include "policy/startup.h"
#include "tap.h"

static struct brig_error err;
static struct startup_rules rules;
static struct startup_filter filter;

/* The default filters, and then what a user says. */
static void use_rules(const char *name, const char *value)
{
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_CASUAL);
    for (const char *text = policy_default_filters; *text; text = policy_next_default(text))
        if (brig_policy_unsetenv(policy, text, &err) < 0)
            tap_bail("%s", err.message);
    if (name && brig_policy_setenv(policy, name, value, &err) < 0)
        tap_bail("%s", err.message);
    startup_rules_done(&rules);
    if (startup_rules_init(policy, &rules, &err) < 0)
        tap_bail("%s", err.message);
    filter = (struct startup_filter){rules.items, rules.count};
    brig_policy_free(policy);
}

static struct str hidden(const char *text)
{
    struct startup_text made = {0};
    if (startup_hide(&filter, 1, text, strlen(text), &made, &err) < 0)
        tap_bail("%s", err.message);
    str_append_bytes(&made.text, "", 1);
    str_done(&made.names);
    return made.text;
}

static void hides(const char *name, const char *text)
{
    autostr struct str seen = hidden(text);
    tap_ok(!strstr(seen.data, "SECRET"), "hidden: %s", name);
    size_t lines = 0, now = 0;
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        lines++;
    for (const char *at = seen.data; (at = strchr(at, '\n')); at++)
        now++;
    tap_ok(lines == now, "%s: as many lines as before", name);
}

static void shows(const char *name, const char *text)
{
    autostr struct str seen = hidden(text);
    tap_ok(strcmp(seen.data, text) == 0, "shown: %s", name);
}

static void becomes(const char *name, const char *text, const char *wanted)
{
    autostr struct str seen = hidden(text);
    if (!tap_ok(strcmp(seen.data, wanted) == 0, "%s", name))
        tap_diag("%s", seen.data);
}

static void restores(const char *name, const char *user, const char *jail, const char *wanted)
{
    autostr struct str mine = {0}, theirs = {0}, made = {0};
    str_append(&mine, user);
    str_append(&theirs, jail);
    int result = startup_restore(&filter, 1, &mine, &theirs, &made, &err);
    str_append_bytes(&made, "", 1);
    tap_ok(wanted ? result == 1 && strcmp(made.data, wanted) == 0 : result == 0, "%s", name);
}

static void test_hidden(void)
{
    hides("an element of an array", "declare -A keys=([GITHUB_TOKEN]=SECRET [b]=c)\n");
    hides("Nushell", "$env.OPENAI_API_KEY = \"SECRET\"\n");
    shows("a test", "[ \"$GITHUB_TOKEN\" = x ] || a[$GITHUB_TOKEN]=1\n");
    hides("export", "export GITHUB_TOKEN=SECRET\n");
    hides("without export", "GITHUB_TOKEN=SECRET\nexport GITHUB_TOKEN\n");
    hides("without a newline", "export GITHUB_TOKEN=SECRET");
    hides("after another command", "cd /; export OPENAI_API_KEY='SECRET'\n");
    hides("two variables", "export A=1 OPENAI_KEY=SECRET\n");
    hides("in a comment", "# export GITHUB_TOKEN=SECRET\n");
    hides("an alias", "alias x='GITHUB_TOKEN=SECRET gh'\n");
    hides("an option", "alias x='tool --token=SECRET'\n");
    hides("lower case", "github_token=SECRET\n");
    hides("appended", "GITHUB_TOKEN+=SECRET\n");
    hides("an array element", "TOKENS[1]=x; MY_TOKEN[1]=SECRET\n");
    hides("a default", ": ${GITHUB_TOKEN:=SECRET}\n: \"${GITHUB_TOKEN:-SECRET}\"\n");
    hides("fish", "set -gx GITHUB_TOKEN SECRET\n");
    hides("csh", "setenv GITHUB_TOKEN SECRET\nset github_token = SECRET\n");
    hides("a quoted name", "export \"GITHUB_TOKEN\"=SECRET\n");
    hides("read and printf", "read A_KEY <<<SECRET\nprintf -v A_KEY SECRET\n");
    hides("PAM", "GITHUB_TOKEN DEFAULT=SECRET\n");
    hides("a URL", "export PIP_INDEX=https://me:SECRET@example.com/\n");
    hides("a URL with an equals sign", "export PIP_INDEX=https://me:x=SECRET@example.com/\n");
    hides("a URL in a command", "curl https://me:SECRET@example.com/\n");
    hides("after a carriage return", "export A=1\r\nexport GITHUB_TOKEN=SECRET\r\n");
}

static void test_statements(void)
{
    hides("continued", "export GITHUB_TOKEN=\\\nSECRET\nls\n");
    hides("continued twice", "export GITHUB_TOKEN=a\\\nSECRET\\\nSECRET\n");
    hides("quotes over lines", "export A_KEY=\"first\nSECRET\nSECRET\"\nls\n");
    hides("single quotes over lines", "export A_KEY='first\nSECRET'\nls\n");
    hides("a substitution over lines", "export A_KEY=$(cat <<EOF\nSECRET\nEOF\n)\nls\n");
    hides("an array over lines", "MY_KEYS=(a\n SECRET\n SECRET)\n");
    hides("never closed", "export A_KEY=\"a\nSECRET\nSECRET");
    hides("in a here-document", "cat <<EOF\ndon't\nEOF\nexport A_KEY=\"x\nSECRET\"\n");
    hides("after a quote in a comment", "# don't\nexport A_KEY='x\nSECRET'\n");
    hides("after an unknown quote", "it's\nexport A_KEY=SECRET\nls '\n");
    hides("in a quote that was not understood",
          "x=\"$(echo \"it's\")\"\nexport A_KEY='a\nSECRET'\n");
    autostr struct str deep = {0};
    for (int i = 0; i < 200; i++)
        str_append(&deep, "$(");
    str_append(&deep, "\nexport A_KEY='a\nSECRET'\n");
    hides("after too deep a nesting", deep.data);
}

static void test_shown(void)
{
    shows("other variables", "export EDITOR=vi\nPATH=$HOME/bin:$PATH\n");
    shows("a use", "if [ -n \"$GITHUB_TOKEN\" ]; then gh; fi\n[ -n \"${GITHUB_TOKEN:-}\" ]\n");
    shows("a URL without a password", "export A=https://example.com/a:b@c\n");
    shows("quotes over lines", "export A=\"x\ny\"\n");
    shows("an empty file", "");
    shows("no newline", "ls");
    use_rules("GITHUB_TOKEN", NULL);
    shows("a variable that is passed on", "export GITHUB_TOKEN=abc\n");
    hides("another one", "export GITHUB_TOKEN=abc\nexport GITLAB_TOKEN=SECRET\n");
    use_rules("GITHUB_TOKEN", "other");
    hides("a variable that has another value inside", "export GITHUB_TOKEN=SECRET\n");
    use_rules(NULL, NULL);
}

static void test_syntax(void)
{
    becomes("a line", "export A_KEY=x\n", ": # brig: hidden line 1, which sets A_KEY\n");
    becomes("a body of its own", "if x; then\n  export A_KEY=x\nfi\n",
            "if x; then\n  : # brig: hidden line 1, which sets A_KEY\nfi\n");
    becomes("a list", "[ -f x ] && export A_KEY=x\n",
            "[ -f x ] && : # brig: hidden line 1, which sets A_KEY\n");
    becomes("a group", "f() { export A_KEY=x; }\n",
            "f() { : ; } # brig: hidden line 1, which sets A_KEY\n");
    becomes("a case", "a) export A_KEY=x ;;\n",
            "a) : ;; # brig: hidden line 1, which sets A_KEY\n");
    becomes("one line", "if x; then export A_KEY=x; fi\n",
            "if x; then : ; fi # brig: hidden line 1, which sets A_KEY\n");
    becomes("a comment", "ls # A_KEY=x\n", "ls # brig: hidden line 1, which sets A_KEY\n");
    becomes("several", "A_KEY='x\ny'\nB_KEY=x",
            ": # brig: hidden line 1, which sets A_KEY\n: # brig: hidden line 2\n"
            ": # brig: hidden line 3, which sets B_KEY");
}

static void test_restored(void)
{
#define ONE ": # brig: hidden line 1, which sets A_KEY\n"
#define TWO ": # brig: hidden line 2, which sets B_KEY\n"
    const char *user = "a\nA_KEY=x\nb\nB_KEY=y";
    restores("unchanged", user, "a\n" ONE "b\n: # brig: hidden line 2, which sets B_KEY", user);
    restores("a line after a hidden one", user, "a\n" ONE "b\n" TWO "new\n",
             "a\nA_KEY=x\nb\nB_KEY=y\nnew\n");
    restores("lines around it are gone", user, ONE TWO, "A_KEY=x\nB_KEY=y\n");
    restores("a marker is gone", user, "a\n" ONE "b\n", NULL);
    restores("a marker is repeated", user, "a\n" ONE ONE TWO, NULL);
    restores("markers are exchanged", user, TWO ONE, NULL);
    restores("a marker was changed", user, "a\n " ONE "b\n" TWO, NULL);
    restores("an empty file", user, "", NULL);
    restores("nothing is hidden", "a\nb\n", "c\n", "c\n");
}

static void test_git(void)
{
#define USER "[user]\n\tname = Jo\n\temail = jo@example.com\n\tsigningkey = 0123\n"
    shows("settings of git",
          USER "[url \"ssh://git@example.com/\"]\n\tinsteadOf = https://example.com/\n"
               "[credential \"https://example.com\"]\n\thelper = !gh auth git-credential\n"
               "[alias]\n\tlg = log \\\n\t--graph\n");
    hides("a token in a URL", USER "[url \"https://SECRET@example.com/\"]\n\tinsteadOf = x\n");
    hides("a password in a URL", "; mine\n[remote \"a\"] url = ssh://me:SECRET@example.com/\n");
    hides("a token", USER "[github]\n\ttoken = SECRET\n");
    hides("a password", USER "[sendemail]\n\tsmtpPass=SECRET\n");
    hides("a header", USER "[http \"https://example.com\"]\n\textraHeader = \"A: SECRET\"\n");
    hides("a proxy", USER "[http]\n\tproxy = me:SECRET@proxy:3128\n");
    hides("a script", USER "[credential]\n\thelper = \"!echo password=SECRET\"\n");
    hides("a comment", USER "# token = SECRET\n#[url \"https://SECRET@example.com/\"]\n");
    hides("a continued line", USER "[github]\n\ttoken = x\\\nSECRET\\\nSECRET\n");
    hides("in a continued line", USER "[a]\n\tb = x \\\n https://me:SECRET@example.com\n");
    shows("a test of a shell", "[ -z \"$PS1\" ] && return\ntoken = x\n");
    becomes("a setting", "[github]\n\ttoken = x\n",
            "[github]\n\t# brig: hidden line 1, which sets token\n");
    becomes("a section", "[url \"https://x@y/\"]\n\tinsteadOf = z\n",
            "[brig-hidden \"1\"] # brig: hidden line 1, which has a URL with a password\n"
            "\tinsteadOf = z\n");
    becomes("both in one line", "[github] token = x\n",
            "[github] # brig: hidden line 1, which sets token\n");
    restores("a setting of git", "[github]\n\ttoken = x\n",
             "[a]\n[github]\n\t# brig: hidden line 1, which sets token\n\tb = c\n",
             "[a]\n[github]\n\ttoken = x\n\tb = c\n");
}

int main(void)
{
    use_rules(NULL, NULL);
    test_git();
    test_hidden();
    test_statements();
    test_shown();
    test_syntax();
    test_restored();
    startup_rules_done(&rules);
    return tap_done();
}
