/* SPDX-License-Identifier: MIT */
/* The effective policy as text and as JSON. The same functions write both: a value has a label in
 * the text and a key in the JSON. */

#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "policy/policy.h"

#define LABEL_WIDTH 16
#define LIMIT_WIDTH 26
#define RULE_WIDTH 10
#define CHOSEN "(chosen at the start)"

struct out {
    struct str *text;
    struct json *json; /* NULL: text */
};

/* ---- Single values ------------------------------------------------------------------------- */

/* Prints the whole value on one line; str_shown() would truncate it. */
static void show(struct str *out, const char *text)
{
    for (const char *p = text; *p; p++) {
        char one[2] = {*p, '\0'};
        str_append(out, str_shown(one).text);
    }
}

static void say(struct out *out, const char *label, const char *key, const char *value)
{
    if (out->json) {
        json_text(out->json, key, value);
        return;
    }
    str_appendf(out->text, "%-*s", LABEL_WIDTH, label);
    show(out->text, value ? value : CHOSEN);
    str_append_char(out->text, '\n');
}

/* In the text only if the value is set. */
static void say_given(struct out *out, const char *label, const char *key, const char *value)
{
    if (out->json || value)
        say(out, label, key, value);
}

static void say_id(struct out *out, const char *label, const char *key, unsigned id)
{
    if (out->json && id != (unsigned)-1)
        json_uint(out->json, key, id);
    else
        say(out, label, key, id == (unsigned)-1 ? NULL : str_number(id).text);
}

static void say_bool(struct out *out, const char *label, const char *key, bool value)
{
    if (out->json)
        json_bool(out->json, key, value);
    else
        say(out, label, key, value ? "yes" : "no");
}

/* ---- Lists --------------------------------------------------------------------------------- */

static void open_list(struct out *out, const char *key)
{
    if (out->json)
        json_open_array(out->json, key);
}

static void close_list(struct out *out)
{
    if (out->json)
        json_close_array(out->json);
}

/* Begins a row. True for JSON: the caller adds the other values of the object. For text, the caller
 * builds a string for end_row(). */
static bool begin_row(struct out *out, const char *key, const char *rule)
{
    if (!out->json)
        return false;
    json_open_object(out->json, NULL);
    json_text(out->json, key, rule);
    return true;
}

static void end_row(struct out *out, const char *rule, const struct str *text, const char *origin)
{
    if (out->json) {
        json_text(out->json, "origin", origin);
        json_close_object(out->json);
        return;
    }
    str_appendf(out->text, "  %-*s  ", RULE_WIDTH, rule);
    show(out->text, text->failed || !text->data ? "?" : text->data);
    str_append(out->text, "  [");
    show(out->text, origin);
    str_append(out->text, "]\n");
}

/* ---- The network --------------------------------------------------------------------------- */

static void say_rule(struct out *out, const struct policy_net_rule *rule)
{
    autostr struct str text = {0};
    const char *verb = rule->deny ? "deny" : "allow";
    if (begin_row(out, "rule", verb))
        json_text(out->json, "destination", rule->text);
    else
        str_append(&text, rule->text);
    end_row(out, verb, &text, rule->origin);
}

static void json_words(struct json *j, const char *key, char *const *words)
{
    json_open_array(j, key);
    for (size_t i = 0; words && words[i]; i++)
        json_text(j, NULL, words[i]);
    json_close_array(j);
}

static void say_inject(struct out *out, const struct policy_inject *inject)
{
    autostr struct str text = {0};
    char url[POLICY_INJECT_URL_MAX];
    policy_inject_url(inject, url);
    if (begin_row(out, "name", inject->name)) {
        json_text(out->json, "header", inject->header);
        json_text(out->json, "upstream", inject->upstream);
        json_text(out->json, "url", url);
        json_text(out->json, "variable", inject->variable);
        json_words(out->json, "methods", inject->methods);
        json_words(out->json, "paths", inject->paths);
    } else {
        str_appendf(&text, "%s into %s", inject->header, inject->name);
        if (inject->upstream)
            str_appendf(&text, " (%s)", inject->upstream);
        str_appendf(&text, ", inside at %s", url);
        if (inject->variable)
            str_appendf(&text, " ($%s)", inject->variable);
    }
    end_row(out, "inject", &text, inject->origin);
}

static void say_publish(struct out *out, const struct policy_publish *publish)
{
    autostr struct str text = {0};
    char address[NET_ADDRESS_TEXT_MAX];
    net_address_print(&publish->address, address);
    if (begin_row(out, "address", address)) {
        json_uint(out->json, "host_port", publish->host_port);
        json_uint(out->json, "port", publish->port);
    } else {
        str_appendf(&text, publish->address.family == NET_V6 ? "[%s]:%u:%u" : "%s:%u:%u", address,
                    publish->host_port, publish->port);
    }
    end_row(out, "publish", &text, publish->origin);
}

static void say_net(struct out *out, const struct policy_net *net)
{
    open_list(out, "network_rules");
    for (size_t i = 0; i < net->written_count; i++)
        say_rule(out, &net->written[i]);
    close_list(out);
    open_list(out, "inject");
    for (size_t i = 0; i < net->inject_count; i++)
        say_inject(out, &net->inject[i]);
    close_list(out);
    open_list(out, "publish");
    for (size_t i = 0; i < net->publish_count; i++)
        say_publish(out, &net->publish[i]);
    close_list(out);
    if (out->json)
        json_text(out->json, "proxy", net->proxy);
    else if (net->proxy)
        end_row(out, "proxy", &(struct str){.data = net->proxy}, "the host's environment");
}

/* ---- Files and the environment -------------------------------------------------------------- */

static void say_grant(struct out *out, const struct policy_grant *grant)
{
    autostr struct str text = {0};
    const char *access = policy_word(POLICY_ACCESS, grant->access);
    bool optional = grant->flags & BRIG_GRANT_OPTIONAL, create = grant->flags & BRIG_GRANT_CREATE;
    if (begin_row(out, "access", access)) {
        json_text(out->json, "source", grant->source);
        json_text(out->json, "dest", grant->dest);
        json_bool(out->json, "optional", optional);
        json_bool(out->json, "create", create);
        if (grant->review)
            json_bool(out->json, "review", true);
    } else {
        bool other = !str_equal(grant->source, grant->dest);
        str_concat(&text, grant->dest, other ? " from " : "", other ? grant->source : "",
                   optional ? ", if it exists" : "", create ? ", created if missing" : "",
                   grant->review ? ", copy-on-write until you apply the changes" : "");
    }
    end_row(out, access, &text, grant->origin);
}

static void say_private(struct out *out, const struct policy_private *private)
{
    autostr struct str text = {0};
    const char *access =
        policy_word(POLICY_ACCESS, private->read_only ? BRIG_READ_ONLY : BRIG_READ_WRITE);
    if (begin_row(out, "access", access)) {
        json_text(out->json, "dest", private->dest);
        json_bool(out->json, "kept", private->kept);
    } else {
        str_concat(&text, private->dest, private->kept ? ", kept" : "");
    }
    end_row(out, access, &text, private->origin);
}

static void say_env(struct out *out, const struct policy_env *env)
{
    static const char *const kinds[] = {
        [POLICY_ENV_SET] = "set",
        [POLICY_ENV_EXPOSE] = "expose",
        [POLICY_ENV_UNSET] = "unset",
    };
    autostr struct str text = {0};
    const char *kind = kinds[env->kind];
    if (begin_row(out, "rule", kind)) {
        json_text(out->json, "name", env->name);
        json_text(out->json, "value", env->value);
    } else {
        str_concat(&text, env->name, env->value ? "=" : "", env->value ? env->value : "");
    }
    end_row(out, kind, &text, env->origin);
}

/* The default filters are about a hundred, and always the same. */
static bool is_built_in(const struct policy_env *env)
{
    return env->kind == POLICY_ENV_UNSET && strcmp(env->origin, POLICY_BUILT_IN) == 0;
}

static void say_built_in(struct out *out, size_t count)
{
    autostr struct str text = {0};
    str_appendf(&text, "%zu patterns that are built in", count);
    end_row(out, "unset", &text, POLICY_BUILT_IN);
}

static void say_lists(struct out *out, const struct brig_policy *policy)
{
    if (!out->json)
        str_append(out->text, policy->grant_count > 0 ? "grants\n" : "grants          none\n");
    open_list(out, "grants");
    for (size_t i = 0; i < policy->grant_count; i++)
        say_grant(out, &policy->grants[i]);
    close_list(out);
    if (!out->json && policy->private_count > 0)
        str_append(out->text, "private\n");
    open_list(out, "private");
    for (size_t i = 0; i < policy->private_count; i++)
        say_private(out, &policy->privates[i]);
    close_list(out);
    if (!out->json)
        str_append(out->text,
                   policy->env_count > 0 ? "environment\n" : "environment     no rules\n");
    open_list(out, "environment");
    size_t built_in = 0;
    for (size_t i = 0; i < policy->env_count; i++) {
        bool counted = !out->json && is_built_in(&policy->env[i]);
        built_in += counted;
        if (!counted)
            say_env(out, &policy->env[i]);
    }
    if (built_in > 0)
        say_built_in(out, built_in);
    close_list(out);
}

/* ---- The whole ------------------------------------------------------------------------------ */

static void say_layers(struct out *out, unsigned disabled)
{
    autostr struct str text = {0};
    open_list(out, "disabled_layers");
    for (unsigned layer = 1; layer <= disabled; layer <<= 1) {
        if (!(disabled & layer))
            continue;
        const char *word = policy_word(POLICY_LAYER, (int)layer);
        if (out->json)
            json_text(out->json, NULL, word);
        else
            str_concat(&text, text.length > 0 ? ", " : "", word);
    }
    close_list(out);
    if (text.length > 0)
        say(out, "switched off", NULL, text.data);
}

static void say_identity(struct out *out, const struct brig_policy *policy)
{
    if (out->json)
        json_open_object(out->json, "identity");
    say_id(out, "uid outside", "host_uid", policy->host_uid);
    say_id(out, "gid outside", "host_gid", policy->host_gid);
    say_id(out, "uid inside", "inside_uid", policy->inside_uid);
    say_id(out, "gid inside", "inside_gid", policy->inside_gid);
    say(out, "user", "name", policy->user_name);
    say(out, "home", "home", policy->home);
    say(out, "shell", "shell", policy->shell);
    if (out->json)
        json_close_object(out->json);
}

static void say_limits(struct out *out, const struct brig_policy *policy)
{
    if (out->json)
        json_open_object(out->json, "limits");
    else
        str_append(out->text, "limits\n");
    for (size_t i = 0; i < BRIG_LIMIT_COUNT_; i++) {
        const char *name = policy_word(POLICY_LIMIT, (int)i);
        uint64_t value = policy->limits[i];
        if (out->json)
            json_uint(out->json, name, value);
        else
            str_appendf(out->text, "  %-*s%s\n", LIMIT_WIDTH, name,
                        value > 0 ? str_number(value).text : "none");
    }
    if (out->json)
        json_close_object(out->json);
}

static void explain(struct out *out, const struct brig_policy *policy)
{
    const char *terminal = policy->terminal == BRIG_TERMINAL_AUTO ? "auto" : "none";
    say(out, "mode", "mode", policy_word(POLICY_MODE, policy->mode));
    say(out, "view", "view", policy_word(POLICY_VIEW, policy->view));
    say_given(out, "root", "root", policy->root_path);
    for (size_t i = 0; !out->json && i < policy->layer_count; i++)
        say(out, "layer", "layer", policy->layers[i]);
    if (out->json && policy->layer_count > 0) {
        json_open_array(out->json, "layers");
        for (size_t i = 0; i < policy->layer_count; i++)
            json_text(out->json, NULL, policy->layers[i]);
        json_close_array(out->json);
    }
    say(out, "network", "network", policy_network_word(policy));
    if (out->json || policy_has_door(policy))
        say_net(out, &policy->net);
    say(out, "seccomp", "seccomp", policy_word(POLICY_SECCOMP, policy->seccomp));
    say_bool(out, "allow nested", "allow_nested", policy->allow_nested);
    if (out->json || policy->trace)
        say_bool(out, "trace denials", "trace_denials", policy->trace);
    say(out, "if unsupported", "on_unsupported",
        policy_word(POLICY_ON_UNSUPPORTED, policy->on_unsupported));
    say_layers(out, policy->disabled_layers);
    say(out, "terminal", "terminal", terminal);
    say(out, "host name", "hostname", policy->hostname);
    say(out, "working dir", "workdir", policy->workdir);
    say_identity(out, policy);
    say_limits(out, policy);
    say_lists(out, policy);
}

int brig_policy_explain(const struct brig_policy *policy, int json, char **ret_text,
                        struct brig_error *err)
{
    autostr struct str text = {0};
    struct json writer;
    struct out out = {.text = &text, .json = json ? &writer : NULL};
    if (json) {
        json_init(&writer, &text);
        json_open_object(&writer, NULL);
    }
    explain(&out, policy);
    if (json) {
        json_close_object(&writer);
        str_append_char(&text, '\n');
    }
    return str_take(&text, ret_text, err);
}
