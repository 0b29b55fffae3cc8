/* SPDX-License-Identifier: MIT */
/* The effective policy in words and as JSON. */
#include <inttypes.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "policy/policy.h"

#define LABEL_WIDTH 16
#define LIMIT_WIDTH 26
#define ACCESS_WIDTH 10
#define RULE_WIDTH 10

static const char *terminal_name(enum brig_terminal terminal)
{
    static const char *const names[] = {
        [BRIG_TERMINAL_AUTO] = "auto",
        [BRIG_TERMINAL_NONE] = "none",
    };
    return (size_t)terminal < ARRAY_LENGTH(names) ? names[terminal] : "?";
}

static const char *env_kind_name(enum policy_env_kind kind)
{
    static const char *const names[] = {
        [POLICY_ENV_SET] = "set",
        [POLICY_ENV_EXPOSE] = "expose",
        [POLICY_ENV_UNSET] = "unset",
    };
    return (size_t)kind < ARRAY_LENGTH(names) ? names[kind] : "?";
}

/* All layers, in the order of their bits. */
static const enum brig_layer layers[] = {
    BRIG_LAYER_LANDLOCK,   BRIG_LAYER_SECCOMP, BRIG_LAYER_CAPS,
    BRIG_LAYER_NAMESPACES, BRIG_LAYER_NESTED,
};

/* ---- The network --------------------------------------------------------------------------- */

static void text_row(struct str *out, const char *rule, const char *what, const char *origin)
{
    str_appendf(out, "  %-*s  %s  [%s]\n", RULE_WIDTH, rule, str_shown(what).text,
                str_shown(origin).text);
}

static void publish_text(const struct policy_publish *publish, char *text, size_t size)
{
    char address[NET_ADDRESS_TEXT_MAX];
    bool v6 = publish->address.family == NET_V6;
    net_address_print(&publish->address, address);
    (void)snprintf(text, size, "%s%s%s:%u:%u", v6 ? "[" : "", address, v6 ? "]" : "",
                   publish->host_port, publish->port);
}

static void inject_text(const struct policy_inject *inject, struct str *text)
{
    char url[POLICY_INJECT_URL_MAX];
    policy_inject_url(inject, url);
    str_appendf(text, "%s into %s", inject->header, inject->name);
    if (inject->upstream)
        str_appendf(text, " (%s)", inject->upstream);
    str_appendf(text, ", inside at %s", url);
    if (inject->variable)
        str_appendf(text, " ($%s)", inject->variable);
}

static void net_text(struct str *out, const struct policy_net *net)
{
    for (size_t i = 0; i < net->written_count; i++)
        text_row(out, net->written[i].deny ? "deny" : "allow", net->written[i].text,
                 net->written[i].origin);
    for (size_t i = 0; i < net->inject_count; i++) {
        autostr struct str text = {0};
        inject_text(&net->inject[i], &text);
        text_row(out, "inject", text.failed ? "?" : text.data, net->inject[i].origin);
    }
    for (size_t i = 0; i < net->publish_count; i++) {
        char text[NET_ADDRESS_TEXT_MAX + 32];
        publish_text(&net->publish[i], text, sizeof text);
        text_row(out, "publish", text, net->publish[i].origin);
    }
    if (net->proxy)
        text_row(out, "proxy", net->proxy, "the host's environment");
}

static void json_words(struct json *j, const char *key, char *const *words)
{
    json_open_array(j, key);
    for (size_t i = 0; words && words[i]; i++)
        json_text(j, NULL, words[i]);
    json_close_array(j);
}

static void json_inject(struct json *j, const struct policy_inject *inject)
{
    char url[POLICY_INJECT_URL_MAX];
    policy_inject_url(inject, url);
    json_open_object(j, NULL);
    json_text(j, "name", inject->name);
    json_text(j, "header", inject->header);
    json_text(j, "upstream", inject->upstream);
    json_text(j, "url", url);
    json_text(j, "variable", inject->variable);
    json_words(j, "methods", inject->methods);
    json_words(j, "paths", inject->paths);
    json_text(j, "origin", inject->origin);
    json_close_object(j);
}

static void net_json(struct json *j, const struct policy_net *net)
{
    json_open_array(j, "network_rules");
    for (size_t i = 0; i < net->written_count; i++) {
        json_open_object(j, NULL);
        json_text(j, "rule", net->written[i].deny ? "deny" : "allow");
        json_text(j, "destination", net->written[i].text);
        json_text(j, "origin", net->written[i].origin);
        json_close_object(j);
    }
    json_close_array(j);
    json_open_array(j, "publish");
    for (size_t i = 0; i < net->publish_count; i++) {
        char address[NET_ADDRESS_TEXT_MAX];
        net_address_print(&net->publish[i].address, address);
        json_open_object(j, NULL);
        json_text(j, "address", address);
        json_uint(j, "host_port", net->publish[i].host_port);
        json_uint(j, "port", net->publish[i].port);
        json_text(j, "origin", net->publish[i].origin);
        json_close_object(j);
    }
    json_close_array(j);
    json_open_array(j, "inject");
    for (size_t i = 0; i < net->inject_count; i++)
        json_inject(j, &net->inject[i]);
    json_close_array(j);
    json_text(j, "proxy", net->proxy);
}

/* ---- Text --------------------------------------------------------------------------------- */

/* The whole value on one line; str_shown() would cut it. */
static void show(struct str *out, const char *text)
{
    for (const char *p = text; *p; p++) {
        char one[2] = {*p, '\0'};
        str_append(out, str_shown(one).text);
    }
}

static void text_line(struct str *out, const char *label, const char *value)
{
    str_appendf(out, "%-*s", LABEL_WIDTH, label);
    show(out, value ? value : "(chosen at the start)");
    str_append_char(out, '\n');
}

static void text_id(struct str *out, const char *label, unsigned id)
{
    str_appendf(out, "%-*s", LABEL_WIDTH, label);
    if (id == (unsigned)-1)
        str_append(out, "(chosen at the start)\n");
    else
        str_appendf(out, "%u\n", id);
}

static void text_grant(struct str *out, const struct policy_grant *grant)
{
    str_appendf(out, "  %-*s  ", ACCESS_WIDTH, policy_word(POLICY_ACCESS, grant->access));
    show(out, grant->dest);
    if (!str_equal(grant->source, grant->dest)) {
        str_append(out, " from ");
        show(out, grant->source);
    }
    if (grant->flags & BRIG_GRANT_OPTIONAL)
        str_append(out, ", if it exists");
    if (grant->flags & BRIG_GRANT_CREATE)
        str_append(out, ", created if missing");
    str_append(out, "  [");
    show(out, grant->origin);
    str_append(out, "]\n");
}

static void text_private(struct str *out, const struct brig_policy *policy)
{
    if (policy->private_count > 0)
        str_append(out, "private\n");
    for (size_t i = 0; i < policy->private_count; i++) {
        const struct policy_private *private = &policy->privates[i];
        str_appendf(
            out, "  %-*s  ", ACCESS_WIDTH,
            policy_word(POLICY_ACCESS, private->read_only ? BRIG_READ_ONLY : BRIG_READ_WRITE));
        show(out, private->dest);
        str_append(out, private->kept ? ", kept  [" : "  [");
        show(out, private->origin);
        str_append(out, "]\n");
    }
}

static void text_env(struct str *out, const struct policy_env *env)
{
    str_appendf(out, "  %-*s  ", ACCESS_WIDTH, env_kind_name(env->kind));
    show(out, env->name);
    if (env->value) {
        str_append_char(out, '=');
        show(out, env->value);
    }
    str_append(out, "  [");
    show(out, env->origin);
    str_append(out, "]\n");
}

static void text_limits(struct str *out, const struct brig_policy *policy)
{
    str_append(out, "limits\n");
    for (size_t i = 0; i < BRIG_LIMIT_COUNT_; i++) {
        str_appendf(out, "  %-*s", LIMIT_WIDTH, policy_word(POLICY_LIMIT, (enum brig_limit)i));
        if (policy->limits[i] > 0)
            str_appendf(out, "%" PRIu64 "\n", policy->limits[i]);
        else
            str_append(out, "none\n");
    }
}

static void text_layers(struct str *out, const struct brig_policy *policy)
{
    if (!policy->disabled_layers)
        return;
    str_appendf(out, "%-*s", LABEL_WIDTH, "switched off");
    const char *separator = "";
    for (size_t i = 0; i < ARRAY_LENGTH(layers); i++) {
        if (!(policy->disabled_layers & layers[i]))
            continue;
        str_appendf(out, "%s%s", separator, policy_word(POLICY_LAYER, layers[i]));
        separator = ", ";
    }
    str_append_char(out, '\n');
}

static void explain_text(struct str *out, const struct brig_policy *policy)
{
    text_line(out, "mode", policy_word(POLICY_MODE, policy->mode));
    text_line(out, "view", policy_word(POLICY_VIEW, policy->view));
    if (policy->root_path)
        text_line(out, "root", policy->root_path);
    text_line(out, "network", policy_word(POLICY_NETWORK, policy->network));
    if (policy_has_door(policy))
        net_text(out, &policy->net);
    text_line(out, "seccomp", policy_word(POLICY_SECCOMP, policy->seccomp));
    text_line(out, "allow nested", policy->allow_nested ? "yes" : "no");
    if (policy->trace)
        text_line(out, "trace denials", "yes");
    text_line(out, "if unsupported", policy_word(POLICY_ON_UNSUPPORTED, policy->on_unsupported));
    text_layers(out, policy);
    text_line(out, "terminal", terminal_name(policy->terminal));
    text_line(out, "host name", policy->hostname);
    text_line(out, "working dir", policy->workdir);
    text_id(out, "uid outside", policy->host_uid);
    text_id(out, "gid outside", policy->host_gid);
    text_id(out, "uid inside", policy->inside_uid);
    text_id(out, "gid inside", policy->inside_gid);
    text_line(out, "user", policy->user_name);
    text_line(out, "home", policy->home);
    text_line(out, "shell", policy->shell);
    text_limits(out, policy);
    str_append(out, policy->grant_count > 0 ? "grants\n" : "grants          none\n");
    for (size_t i = 0; i < policy->grant_count; i++)
        text_grant(out, &policy->grants[i]);
    text_private(out, policy);
    str_append(out, policy->env_count > 0 ? "environment\n" : "environment     no rules\n");
    for (size_t i = 0; i < policy->env_count; i++)
        text_env(out, &policy->env[i]);
}

/* ---- JSON --------------------------------------------------------------------------------- */

static void json_id(struct json *j, const char *key, unsigned id)
{
    if (id == (unsigned)-1)
        json_nothing(j, key);
    else
        json_uint(j, key, id);
}

static void json_identity(struct json *j, const struct brig_policy *policy)
{
    json_open_object(j, "identity");
    json_id(j, "host_uid", policy->host_uid);
    json_id(j, "host_gid", policy->host_gid);
    json_id(j, "inside_uid", policy->inside_uid);
    json_id(j, "inside_gid", policy->inside_gid);
    json_text(j, "name", policy->user_name);
    json_text(j, "home", policy->home);
    json_text(j, "shell", policy->shell);
    json_close_object(j);
}

static void json_grants(struct json *j, const struct brig_policy *policy)
{
    json_open_array(j, "grants");
    for (size_t i = 0; i < policy->grant_count; i++) {
        const struct policy_grant *grant = &policy->grants[i];
        json_open_object(j, NULL);
        json_text(j, "access", policy_word(POLICY_ACCESS, grant->access));
        json_text(j, "source", grant->source);
        json_text(j, "dest", grant->dest);
        json_bool(j, "optional", grant->flags & BRIG_GRANT_OPTIONAL);
        json_bool(j, "create", grant->flags & BRIG_GRANT_CREATE);
        json_text(j, "origin", grant->origin);
        json_close_object(j);
    }
    json_close_array(j);
}

static void json_private(struct json *j, const struct brig_policy *policy)
{
    json_open_array(j, "private");
    for (size_t i = 0; i < policy->private_count; i++) {
        const struct policy_private *private = &policy->privates[i];
        json_open_object(j, NULL);
        json_text(
            j, "access",
            policy_word(POLICY_ACCESS, private->read_only ? BRIG_READ_ONLY : BRIG_READ_WRITE));
        json_text(j, "dest", private->dest);
        json_bool(j, "kept", private->kept);
        json_text(j, "origin", private->origin);
        json_close_object(j);
    }
    json_close_array(j);
}

static void json_environment(struct json *j, const struct brig_policy *policy)
{
    json_open_array(j, "environment");
    for (size_t i = 0; i < policy->env_count; i++) {
        const struct policy_env *env = &policy->env[i];
        json_open_object(j, NULL);
        json_text(j, "rule", env_kind_name(env->kind));
        json_text(j, "name", env->name);
        json_text(j, "value", env->value);
        json_text(j, "origin", env->origin);
        json_close_object(j);
    }
    json_close_array(j);
}

static void explain_json(struct str *out, const struct brig_policy *policy)
{
    struct json j;
    json_init(&j, out);
    json_open_object(&j, NULL);
    json_text(&j, "mode", policy_word(POLICY_MODE, policy->mode));
    json_text(&j, "view", policy_word(POLICY_VIEW, policy->view));
    json_text(&j, "root", policy->root_path);
    json_text(&j, "network", policy_word(POLICY_NETWORK, policy->network));
    net_json(&j, &policy->net);
    json_text(&j, "seccomp", policy_word(POLICY_SECCOMP, policy->seccomp));
    json_bool(&j, "allow_nested", policy->allow_nested);
    json_bool(&j, "trace_denials", policy->trace);
    json_text(&j, "on_unsupported", policy_word(POLICY_ON_UNSUPPORTED, policy->on_unsupported));
    json_open_array(&j, "disabled_layers");
    for (size_t i = 0; i < ARRAY_LENGTH(layers); i++)
        if (policy->disabled_layers & layers[i])
            json_text(&j, NULL, policy_word(POLICY_LAYER, layers[i]));
    json_close_array(&j);
    json_text(&j, "terminal", terminal_name(policy->terminal));
    json_text(&j, "hostname", policy->hostname);
    json_text(&j, "workdir", policy->workdir);
    json_identity(&j, policy);
    json_open_object(&j, "limits");
    for (size_t i = 0; i < BRIG_LIMIT_COUNT_; i++)
        json_uint(&j, policy_word(POLICY_LIMIT, (enum brig_limit)i), policy->limits[i]);
    json_close_object(&j);
    json_grants(&j, policy);
    json_private(&j, policy);
    json_environment(&j, policy);
    json_close_object(&j);
    str_append_char(out, '\n');
}

int brig_policy_explain(const struct brig_policy *policy, bool json, char **ret_text,
                        struct brig_error *err)
{
    autostr struct str out = {0};
    if (json)
        explain_json(&out, policy);
    else
        explain_text(&out, policy);
    return str_take(&out, ret_text, err);
}
