/* SPDX-License-Identifier: MIT */
/* URLs of callbacks, and messages about them and the queue. A URL that is taken without callback.allow never
 * names an address that is not public. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "policy/net_address.h"
#include "server/callback.h"
#include "server/config/config.h"
#include "server/history/queue.h"

static void expect(bool condition)
{
    if (!condition)
        abort();
}

static void check_url(const char *url)
{
    static const struct config_list nothing;
    struct callback_target target;
    struct net_address address;
    if (callback_parse(url, &nothing, &target, NULL) < 0)
        return;
    expect(str_starts_with(url, "http://") || str_starts_with(url, "https://"));
    expect(!strpbrk(url, " \t\r\n#\\") && target.port > 0 && *target.host && *target.rule);
    if (net_address_read(target.host, strlen(target.host), &address))
        expect(net_address_class(&address) == NET_PUBLIC);
    else
        expect(!net_name_is_localhost(target.host) && strcmp(target.host, NET_HOST_NAME) != 0);
    struct net_rule rule;
    expect(net_rule_parse(target.rule, false, &rule, NULL) == 0);
    expect(rule.kind == NET_RULE_NAME || rule.kind == NET_RULE_RANGE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofree char *text = calloc(1, size + 1);
    struct arena arena = {0};
    struct queue_entry *entries = NULL;
    struct queue_call call;
    size_t count = 0;
    if (!text || size > 65536)
        return 0;
    memcpy(text, data, size);
    check_url(text);
    (void)queue_entries_decode(data, size, &arena, &entries, &count, NULL);
    arena_done(&arena);
    if (queue_call_decode(data, size, &call, NULL) == 0)
        queue_call_done(&call);
    return 0;
}
