/* SPDX-License-Identifier: MIT */
/* What a broker has to know of a policy. */
#include "jail/net/door_config.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "net/broker_wire.h"
#include "policy/policy.h"

static const struct {
    enum brig_limit limit;
    const char *word;
} limit_words[] = {
    {BRIG_LIMIT_NET_CONNECTIONS, "connections"},
    {BRIG_LIMIT_NET_BYTES, "bytes"},
    {BRIG_LIMIT_NET_IDLE_MS, "idle-ms"},
};

struct writer {
    struct str *text, *secrets;
    unsigned secret_count;
};

/* The number it is known by from now on. */
static unsigned add_secret(struct writer *writer, const char *secret)
{
    str_append_bytes(writer->secrets, secret, strlen(secret) + 1);
    return writer->secret_count++;
}

static void write_proxy(struct writer *writer, const struct policy_net *net)
{
    if (!net->proxy)
        return;
    str_appendf(writer->text, "proxy %s\n", net->proxy);
    if (net->proxy_secret)
        str_appendf(writer->text, "proxy-secret %u\n", add_secret(writer, net->proxy_secret));
    for (size_t i = 0; net->no_proxy && net->no_proxy[i]; i++)
        str_appendf(writer->text, "no-proxy %s\n", net->no_proxy[i]);
}

static void write_words(struct str *text, size_t index, const char *what, char *const *words)
{
    for (size_t i = 0; words && words[i]; i++)
        str_appendf(text, "inject %zu %s %s\n", index, what, words[i]);
}

static void write_inject(struct writer *writer, size_t index, const struct policy_inject *inject)
{
    str_appendf(writer->text, "inject %zu name %s\n", index, inject->name);
    if (inject->upstream)
        str_appendf(writer->text, "inject %zu upstream %s\n", index, inject->upstream);
    str_appendf(writer->text, "inject %zu header %s %u\n", index, inject->header,
                add_secret(writer, inject->secret));
    write_words(writer->text, index, "strip", inject->strip);
    write_words(writer->text, index, "method", inject->methods);
    write_words(writer->text, index, "path", inject->paths);
}

void door_write_config(const struct brig_policy *policy, uid_t uid, gid_t gid, struct str *text,
                       struct str *secrets)
{
    const struct policy_net *net = &policy->net;
    struct writer writer = {.text = text, .secrets = secrets};
    bool open = policy->network == BRIG_NET_OPEN;
    str_concat(text, DOOR_CONFIG_HEAD "\npolicy ", open ? "open" : "allow", "\n");
    if (uid != (uid_t)-1)
        str_appendf(text, "user %u %u\n", uid, gid);
    for (size_t i = 0; i < ARRAY_LENGTH(limit_words); i++)
        if (policy->limits[limit_words[i].limit] > 0)
            str_appendf(text, "limit %s %" PRIu64 "\n", limit_words[i].word,
                        policy->limits[limit_words[i].limit]);
    net_rules_write(&net->rules, text);
    write_proxy(&writer, net);
    if (net->ca)
        str_appendf(text, "ca %s\n", net->ca);
    for (size_t i = 0; i < net->inject_count; i++)
        write_inject(&writer, i, &net->inject[i]);
    for (size_t i = 0; i < net->publish_count; i++)
        str_appendf(text, "publish %zu %u\n", i, net->publish[i].port);
}
