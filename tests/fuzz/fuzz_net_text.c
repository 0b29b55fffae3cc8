/* SPDX-License-Identifier: MIT */
/* What of the network is read from texts of others: credentials as they are asked for, the host's
 * proxy, mirrors in configuration files, ports to publish, and what a broker tells. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "cli/credentials/inject.h"
#include "cli/identity.h"
#include "cli/network/mirrors.h"
#include "cli/network/net.h"
#include "cli/network/net_watch.h"
#include "cli/report.h"
#include "jail/net/door_events.h"
#include "net/broker_wire.h"
#include "policy/policy.h"

static void expect(bool condition)
{
    if (!condition)
        abort();
}

static void try_inject(const char *text)
{
    struct inject_spec spec;
    struct brig_error err = {0};
    char *value = NULL;
    if (inject_parse(text, 0, &spec, &err) < 0) {
        expect(err.message[0] != '\0');
        return;
    }
    expect(spec.name && spec.header && spec.where && (spec.form != INJECT_BASIC || spec.user));
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);
    expect(policy && inject_dress(&spec, "hush", &value, &err) == 0);
    (void)inject_add_to_policy(policy, &spec, value, &err);
    policy_free_secret(value);
    inject_done(&spec);
    brig_policy_free(policy);
}

static void try_proxy(const char *text)
{
    autofree char *proxy = NULL;
    autofree char *secret = NULL;
    if (net_proxy_parse(text, &proxy, &secret))
        expect(proxy && strrchr(proxy, ':'));
    autofree char *copy = strdup(text);
    const char *names[POLICY_NO_PROXY_MAX + 1];
    expect(copy && net_proxy_split_names(copy, names) <= POLICY_NO_PROXY_MAX);
}

static void try_mirrors(const char *text, size_t length)
{
    static const char *const keys[] = {"registry", NULL};
    char rule[MIRRORS_RULE_MAX];
    size_t at = 0, value = 0;
    while (mirrors_next_url(text, length, &at, rule))
        expect(at <= length && strlen(rule) < sizeof rule && strchr(rule, ':'));
    if (mirrors_find_key(text, strcspn(text, "\n"), keys, &value) >= 0)
        expect(value <= length);
}

static void try_publish(const char *text)
{
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);
    expect(policy != NULL);
    if (brig_policy_publish(policy, text, NULL) == 0)
        expect(policy->net.publish[0].port > 0 && policy->net.publish[0].host_port > 0);
    brig_policy_free(policy);
}

static void try_event(const uint8_t *data, size_t size)
{
    struct door_event event = {.head = {.version = DOOR_WIRE_VERSION, .type = DOOR_EVENT}};
    struct door_events events = {0};
    struct brig_net_event kept;
    size_t room = sizeof event - offsetof(struct door_event, verdict);
    memcpy(&event.verdict, data, size < room ? size : room);
    expect(!door_events_add(&events, data, size < sizeof event ? size : sizeof event - 1));
    if (door_events_add(&events, &event, sizeof event)) {
        autofree char *json = NULL;
        char line[NET_LINE_MAX];
        expect(door_events_take(&events, &kept) && brig_net_event_json(&kept, &json, NULL) == 0);
        net_watch_line(&kept, size % 2 == 0, line);
        expect(strlen(line) < sizeof line);
    }
    door_events_done(&events);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofree char *text = calloc(1, size + 1);
    expect(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    try_inject(text);
    try_proxy(text);
    try_mirrors(text, strlen(text));
    try_publish(text);
    try_event(data, size);
    return 0;
}
