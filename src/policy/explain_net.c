/* SPDX-License-Identifier: MIT */
/* The network of a policy in words and as JSON. */
#include <stdio.h>

#include "base/json.h"
#include "base/str.h"
#include "policy/policy.h"

#define RULE_WIDTH 10

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

void policy_explain_net(struct str *out, const struct policy_net *net)
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

void policy_explain_net_json(struct json *j, const struct policy_net *net)
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
