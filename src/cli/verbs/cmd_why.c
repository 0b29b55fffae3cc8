/* SPDX-License-Identifier: MIT */
/* `brig why`: whether a path, a host or a variable would be accessible in a jail, and by which rule. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/json.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/help.h"
#include "cli/identity.h"
#include "cli/report.h"
#include "cli/run/setup.h"
#include "cli/verbs/why.h"
#include "policy/policy.h"

#define PORT_HTTPS 443
#define PORT_HTTP 80

/* The subject of a question. */
struct target {
    const char *host;
    size_t length;
    uint16_t port;
    bool is_address;
    struct net_address address;
    char name[NET_NAME_MAX + 1];
};

/* Parses "[SCHEME://]HOST[:PORT][/…]"; false if there is no host in it. */
static bool read_target(const char *word, struct target *ret)
{
    struct target target = {.port = str_starts_with(word, "http://") ? PORT_HTTP : PORT_HTTPS};
    const char *scheme = strstr(word, "://");
    const char *host = scheme ? scheme + 3 : word;
    size_t length = strcspn(host, "/?#");
    const char *port = memrchr(host, ':', length);
    const char *bracket = memchr(host, ']', length);
    bool alone = net_address_read(host, length, &target.address); /* IPv6 without brackets */
    if (port && !alone && (!bracket || port > bracket)) {
        char digits[8] = "";
        uint64_t number = 0;
        size_t count = (size_t)(host + length - port - 1);
        if (count >= sizeof digits)
            return false;
        memcpy(digits, port + 1, count);
        if (parse_uint(digits, UINT16_MAX, 0, &number, NULL) < 0)
            return false;
        target.port = (uint16_t)number;
        length = (size_t)(port - host);
    }
    if (host[0] == '[' && length > 2 && host[length - 1] == ']') {
        host++;
        length -= 2;
    }
    target.is_address = net_address_read(host, length, &target.address);
    if (!target.is_address && !net_name_read(host, length, target.name))
        return false;
    *ret = target;
    return true;
}

/* The rule as it was written, and its origin. */
static const struct policy_net_rule *find_written(const struct policy_net *net,
                                                  const struct net_rule *rule)
{
    char wanted[NET_RULE_TEXT_MAX], text[NET_RULE_TEXT_MAX];
    net_rule_print(rule, wanted);
    for (size_t i = 0; i < net->written_count; i++) {
        const struct policy_net_rule *written = &net->written[i];
        struct net_rules rules;
        bool found = false;
        net_rules_init(&rules);
        (void)(written->deny ? net_rules_deny(&rules, written->text, NULL)
                             : net_rules_allow(&rules, written->text, NULL));
        for (size_t k = 0; k < rules.count && !found; k++) {
            net_rule_print(&rules.items[k], text);
            found = rules.items[k].deny == rule->deny && strcmp(text, wanted) == 0;
        }
        net_rules_done(&rules);
        if (found)
            return written;
    }
    return NULL;
}

static void say_rule(const struct why *why, const struct net_verdict *verdict,
                     struct why_answer *answer)
{
    const struct policy_net *net = &why->setup->settings.policy->net;
    const struct policy_net_rule *written = verdict->rule ? find_written(net, verdict->rule) : NULL;
    if (written) {
        (void)snprintf(answer->rule, sizeof answer->rule, "%s %s", written->deny ? "deny" : "allow",
                       written->text);
        answer->origin = written->origin;
    }
    if (verdict->reason == NET_OK || (written && verdict->reason == NET_DENIED))
        return;
    size_t used = strlen(answer->rule);
    (void)snprintf(answer->rule + used, sizeof answer->rule - used, ": %s",
                   net_reason_text(verdict->reason));
}

/* A name that stands for a credential is reached in another way. */
static bool say_injected(const struct policy_net *net, const struct target *target,
                         struct why_answer *answer)
{
    for (size_t i = 0; i < net->inject_count; i++) {
        char url[POLICY_INJECT_URL_MAX];
        if (target->is_address || strcmp(net->inject[i].name, target->name) != 0)
            continue;
        policy_inject_url(&net->inject[i], url);
        answer->state = WHY_REACHABLE;
        answer->origin = net->inject[i].origin;
        (void)snprintf(answer->rule, sizeof answer->rule, "inject %s, at %s alone",
                       net->inject[i].name, url);
        return true;
    }
    return false;
}

/* Asks as the broker does; only the broker resolves names. */
static struct net_verdict judge(const struct brig_policy *policy, const struct target *target)
{
    struct net_verdict none = {.reason = NET_NO_RULE};
    struct net_rules rules;
    net_rules_init(&rules);
    int status = policy->network == BRIG_NET_OPEN ? net_rules_allow(&rules, "*", NULL) : 0;
    for (size_t i = 0; status == 0 && i < policy->net.rules.count; i++)
        status = net_rules_add(&rules, &policy->net.rules.items[i], NULL);
    struct net_verdict verdict = status < 0 ? none
                                 : target->is_address
                                     ? net_rules_address(&rules, &target->address, target->port)
                                     : net_rules_name(&rules, target->name, target->port);
    /* The rule is in memory that will be freed: find its equal in the policy, which lacks only the
     * `*` of open. */
    const struct net_rule *kept = NULL;
    size_t extra = policy->network == BRIG_NET_OPEN;
    if (verdict.rule && (size_t)(verdict.rule - rules.items) >= extra)
        kept = &policy->net.rules.items[(size_t)(verdict.rule - rules.items) - extra];
    verdict.rule = kept;
    net_rules_done(&rules);
    return verdict;
}

/* If the network was not set, an allow rule implied it. */
static const char *network_origin(const struct why *why)
{
    const struct settings *settings = &why->setup->settings;
    const struct policy_net *net = &settings->policy->net;
    bool implied = !settings->net_given && settings->policy->network == BRIG_NET_ALLOW;
    for (size_t i = 0; implied && i < net->written_count; i++)
        if (!net->written[i].deny)
            return net->written[i].origin;
    return why->network_origin;
}

/* Answers for the name of a host. */
static void why_host(const struct why *why, const char *name, struct why_answer *ret_answer)
{
    const struct brig_policy *policy = why->setup->settings.policy;
    struct target target;
    *ret_answer = (struct why_answer){
        .kind = WHY_HOST,
        .state = policy->network == BRIG_NET_HOST ? WHY_REACHABLE : WHY_UNREACHABLE,
        .origin = network_origin(why),
    };
    (void)snprintf(ret_answer->rule, sizeof ret_answer->rule, "net %s",
                   policy_network_word(policy));
    if (!policy_has_door(policy))
        return;
    if (!read_target(name, &target)) {
        (void)snprintf(ret_answer->rule, sizeof ret_answer->rule, "not a valid host name");
        return;
    }
    if (say_injected(&policy->net, &target, ret_answer))
        return;
    struct net_verdict verdict = judge(policy, &target);
    ret_answer->state = verdict.reason == NET_OK ? WHY_REACHABLE : WHY_UNREACHABLE;
    say_rule(why, &verdict, ret_answer);
    if (policy->net.ask && (verdict.reason == NET_NO_RULE || verdict.reason == NET_WRONG_PORT))
        (void)snprintf(ret_answer->rule, sizeof ret_answer->rule,
                       "net ask: a connection waits for brig allow");
}

/* ---- The verb ---- */

/* The exit status if nothing of what was asked about is accessible. */
#define EXIT_NOTHING 1
#define LABEL_WIDTH 14

/* A word is a path if it contains a slash, begins like a path, or exists as a file. */
static bool is_path(const char *word)
{
    struct stat info;
    if (strstr(word, "://"))
        return false;
    return strchr(word, '/') || word[0] == '.' || word[0] == '~' || lstat(word, &info) == 0;
}

static bool is_within_reach(enum why_state state)
{
    return state == WHY_WRITABLE || state == WHY_READ_ONLY || state == WHY_REACHABLE ||
           state == WHY_PASSED;
}

static void add_variable_text(struct str *out, const struct why_answer *answer)
{
    if (!answer->exists)
        str_appendf(out, "  %-*s%s\n", LABEL_WIDTH, "outside", "it is not set");
    if (answer->written)
        str_appendf(out, "  %-*s%s\n", LABEL_WIDTH, "passed on", answer->written);
    if (*answer->remedy)
        str_appendf(out, "  %-*s%s\n", LABEL_WIDTH, "to pass it on", answer->remedy);
}

static void add_text(struct str *out, const char *word, const struct why_answer *answer)
{
    bool path = answer->kind == WHY_PATH;
    str_appendf(out, "%s\n", str_shown(word).text);
    if (path && strcmp(answer->path, word) != 0)
        str_appendf(out, "  %-*s%s\n", LABEL_WIDTH, "is", str_shown(answer->path).text);
    str_appendf(out, "  %-*s%s  [%s]\n", LABEL_WIDTH, why_state_name(answer->state),
                str_shown(answer->rule).text, str_shown(answer->origin).text);
    if (answer->kind == WHY_VARIABLE) {
        add_variable_text(out, answer);
        return;
    }
    if (!path && !strpbrk(word, ".:") && strcmp(word, "host") != 0 &&
        strcmp(word, "localhost") != 0)
        str_appendf(out, "  %-*sa host name; for a file write ./%s\n", LABEL_WIDTH, "taken as",
                    str_shown(word).text);
    if (!path)
        return;
    if (!answer->exists && !answer->unknown && answer->state == WHY_WRITABLE)
        str_appendf(out, "  %-*s%s\n", LABEL_WIDTH, "exists", "not yet");
    str_appendf(out, "  %-*s%s\n", LABEL_WIDTH, "written", answer->written);
}

static void add_json(struct json *j, const char *word, const struct why_answer *answer)
{
    static const char *const kinds[] = {
        [WHY_PATH] = "path", [WHY_HOST] = "host", [WHY_VARIABLE] = "variable"};
    json_open_object(j, NULL);
    json_text(j, "asked", word);
    json_text(j, "kind", kinds[answer->kind]);
    json_text(j, "state", why_state_name(answer->state));
    if (answer->kind == WHY_PATH) {
        json_text(j, "path", answer->path);
        if (answer->unknown)
            json_nothing(j, "exists");
        else
            json_bool(j, "exists", answer->exists);
        json_bool(j, "readable", answer->readable);
        json_bool(j, "writable", answer->writable);
        json_text(j, "written", answer->written);
    } else if (answer->kind == WHY_HOST) {
        json_bool(j, "reachable", answer->state == WHY_REACHABLE);
    } else {
        json_bool(j, "passed", answer->state == WHY_PASSED);
        json_bool(j, "set", answer->exists);
        json_text(j, "remedy", *answer->remedy ? answer->remedy : NULL);
    }
    json_text(j, "rule", answer->rule);
    json_text(j, "origin", answer->origin);
    json_close_object(j);
}

struct answering {
    const struct why *why;
    struct str *out;
    struct json *json; /* NULL: text */
    bool reached;
};

static void answer(struct answering *answering, const char *word, const struct why_answer *answer)
{
    answering->reached = answering->reached || is_within_reach(answer->state);
    if (answering->json)
        add_json(answering->json, word, answer);
    else
        add_text(answering->out, word, answer);
}

/* A word can be a variable and a path or host: then there are two answers. */
static int answer_one(struct answering *answering, const char *word, struct brig_error *err)
{
    autofree char *path = NULL;
    struct why_answer found;
    bool variable = why_is_variable(answering->why, word);
    if (variable) {
        why_variable(answering->why, word, &found);
        answer(answering, word, &found);
    }
    if (!is_path(word)) {
        if (variable && why_is_only_variable(word))
            return 0;
        why_host(answering->why, word, &found);
        answer(answering, word, &found);
        return 0;
    }
    int status = path_make_absolute(answering->why->setup->cwd, word, &path, err);
    if (status < 0)
        return status;
    why_path(answering->why, path, &found);
    answer(answering, word, &found);
    return 0;
}

/* Returns the exit status, or a negative code. */
static int answer_all(const struct why *why, int count, char **words, struct str *out,
                      struct brig_error *err)
{
    const struct settings *settings = &why->setup->settings;
    const char *mode = policy_word(POLICY_MODE, settings->mode);
    const char *origin = settings->mode_origin ? settings->mode_origin : SETTINGS_BUILT_IN;
    struct json j;
    struct answering answering = {why, out, settings->json ? &j : NULL, false};
    json_init(&j, out);
    if (settings->json) {
        json_open_object(&j, NULL);
        json_text(&j, "mode", mode);
        json_text(&j, "mode_origin", origin);
        json_open_array(&j, "answers");
    } else {
        str_appendf(out, "%-*s  %s  [%s]\n", LABEL_WIDTH, "mode", mode, str_shown(origin).text);
    }
    for (int i = 0; i < count; i++) {
        int status = answer_one(&answering, words[i], err);
        if (status < 0)
            return status;
    }
    if (settings->json) {
        json_close_array(&j);
        json_close_object(&j);
        str_append_char(out, '\n');
    }
    return answering.reached ? 0 : EXIT_NOTHING;
}

static int ask(struct setup *setup, const struct settings_scan *scan, int argc, char **argv,
               struct brig_error *err)
{
    struct why why;
    autostr struct str out = {0};
    if (setup->settings.unmount)
        return brig_fail(err, BRIG_E_INVALID, 0, "-u tears down, and why does nothing");
    int status = policy_validate(setup->settings.policy, err);
    if (status < 0 || (status = why_init(&why, setup, scan, err)) < 0)
        return status;
    status = answer_all(&why, argc - scan->command, argv + scan->command, &out, err);
    why_done(&why);
    int printed = status < 0 ? status : message_print(&out, err);
    return printed < 0 ? printed : status;
}

/* In the home directory, where users often ask, a run would be refused because of its working
 * directory: the answer is for a run with -D. */
static void leave_out_cwd(struct settings_scan *scan)
{
    char cwd[PATH_LENGTH_MAX + 1];
    struct identity identity;
    if (scan->given[OPTION_NOCWD] || !getcwd(cwd, sizeof cwd))
        return;
    identity_find(&identity);
    if (!workdir_is_precious(cwd, &identity) && !workdir_is_foreign(cwd, &identity))
        return;
    scan->given[OPTION_NOCWD] = "";
    message_note("the working directory '%s' is not granted unless it is asked for: this is "
                 "what holds with -D",
                 str_shown(cwd).text);
}

static int run_why(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    struct settings_scan scan;
    struct setup setup;
    int status = settings_scan(argc, argv, &scan, err);
    if (status < 0)
        return status;
    if (scan.given[OPTION_HELP])
        return help_print_command(app->command, err);
    if (scan.command == argc)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "why needs a path, a host or a variable to ask about");
    leave_out_cwd(&scan);
    /* The words are not a command, for which there could be a file. */
    status = setup_make(&setup, &scan, scan.command, argv, true, err);
    if (status < 0)
        return status;
    status = ask(&setup, &scan, argc, argv, err);
    setup_done(&setup);
    return status;
}

const struct command cmd_why = {
    .name = "why",
    .summary = "tell whether a jail has a path, host or variable, and by which rule",
    .usage = "[OPTIONS] [--] PATH|HOST|NAME...",
    .words = COMMAND_WORDS_PATHS,
    .run = run_why,
};
