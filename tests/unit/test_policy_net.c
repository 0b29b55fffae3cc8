/* SPDX-License-Identifier: MIT */
/* The network of a policy: rules, ports to publish, credentials, and what is said of them. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "jail/net/door_broker.h"
#include "policy/policy.h"
#include "tap.h"

static struct brig_error err;

static struct brig_policy *fresh(void)
{
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);
    if (!policy)
        tap_bail("no memory");
    return policy;
}

static void refused(int result, const char *text, const char *name)
{
    tap_is_int(result, BRIG_E_INVALID, "%s is refused", name);
    tap_has_str(err.message, text, "because: %s", text);
    err = (struct brig_error){0};
}

static void test_rules(void)
{
    struct brig_policy *p = fresh();
    tap_is_int(brig_policy_allow(p, "Example.COM", &err), 0, "a name is allowed");
    tap_is_int(brig_policy_allow(p, "@pypi", &err), 0, "so is a preset");
    tap_is_int(brig_policy_deny(p, "10.0.0.0/8", &err), 0, "and a range denied");
    tap_is_int((long)p->net.written_count, 3, "three rules as they were written");
    tap_ok(p->net.rules.count > 3, "of which the preset is more than one");
    refused(brig_policy_allow(p, "", &err), "no destination", "nothing");
    refused(brig_policy_allow(p, NULL, &err), "no destination", "no text");
    refused(brig_policy_allow(p, "http://example.com", &err), "example.com", "a URL");
    refused(brig_policy_deny(p, "a b", &err), "a b", "a blank");
    tap_is_int((long)p->net.written_count, 3, "what was refused is not kept");
    brig_policy_free(p);
}

static void test_publish(void)
{
    struct brig_policy *p = fresh();
    static const struct {
        const char *text;
        const char *address;
        unsigned host_port, port;
    } rows[] = {
        {"8080:3000", "127.0.0.1", 8080, 3000},   {"3000", "127.0.0.1", 3000, 3000},
        {"0.0.0.0:80:3000", "0.0.0.0", 80, 3000}, {"[::1]:8080:3000", "::1", 8080, 3000},
        {"65535:1", "127.0.0.1", 65535, 1},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        tap_is_int(brig_policy_publish(p, rows[i].text, &err), 0, "'%s' is taken", rows[i].text);
        const struct policy_publish *publish = &p->net.publish[i];
        char address[NET_ADDRESS_TEXT_MAX];
        net_address_print(&publish->address, address);
        tap_is_str(address, rows[i].address, "at its address");
        tap_ok(publish->host_port == rows[i].host_port && publish->port == rows[i].port,
               "and its ports");
    }
    static const char *const bad[] = {"",          "x",       "8080:",    ":3000",   "0:3000",
                                      "8080:0",    "65536:1", "1:65536",  "a:1:2",   "::1:1:2",
                                      "1.2.3.4:5", "1:2:3:4", "[::1:1:2", "8080:+1", "-1:2"};
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++)
        refused(brig_policy_publish(p, bad[i], &err), "HOSTPORT:PORT", bad[i]);
    refused(brig_policy_publish(p, NULL, &err), "HOSTPORT:PORT", "nothing at all");
    for (size_t i = p->net.publish_count; i < POLICY_PUBLISH_MAX; i++)
        (void)brig_policy_publish(p, "1:1", &err);
    tap_is_int((long)p->net.publish_count, POLICY_PUBLISH_MAX, "as many as are possible");
    refused(brig_policy_publish(p, "1:1", &err), "too many", "one more");
    brig_policy_free(p);
}

static const char *const some_methods[] = {"GET", "POST", NULL};
static const char *const some_paths[] = {"/v1/", NULL};

static struct brig_inject credential(void)
{
    return (struct brig_inject){.size = sizeof(struct brig_inject),
                                .name = "api.example.com",
                                .header = "authorization",
                                .value = "Bearer hush",
                                .variable = "API_URL",
                                .suffix = "/v1",
                                .methods = some_methods,
                                .paths = some_paths};
}

static void test_bad_inject(void)
{
    struct brig_policy *p = fresh();
    struct brig_inject inject = credential();
    inject.name = "10.0.0.1";
    refused(brig_policy_inject(p, &inject, &err), "10.0.0.1", "an address for a name");
    inject = credential();
    inject.header = "a b";
    refused(brig_policy_inject(p, &inject, &err), "'a b'", "a header with a blank");
    inject = credential();
    inject.value = "";
    refused(brig_policy_inject(p, &inject, &err), "empty", "an empty secret");
    inject.value = "a\nsecret";
    refused(brig_policy_inject(p, &inject, &err), "control character", "a newline in a secret");
    tap_is_int((long)p->net.inject_count, 0, "nothing was added");
    char long_value[POLICY_SECRET_MAX + 2];
    memset(long_value, 'x', sizeof long_value);
    long_value[POLICY_SECRET_MAX + 1] = '\0';
    inject.value = long_value;
    refused(brig_policy_inject(p, &inject, &err), "too long", "a secret beyond the limit");
    tap_ok(!strstr(err.message, "xxxx"), "no message has it");
    long_value[POLICY_SECRET_MAX] = '\0';
    tap_is_int(brig_policy_inject(p, &inject, &err), 0, "one at the limit is taken");
    inject = credential();
    inject.upstream = "ftp://x";
    refused(brig_policy_inject(p, &inject, &err), "ftp://x", "an upstream that is no URL of HTTP");
    inject.upstream = "https://user@x";
    refused(brig_policy_inject(p, &inject, &err), "user@x", "an upstream with a user");
    inject = credential();
    static const char *const bad_paths[] = {"v1", NULL};
    inject.paths = bad_paths;
    refused(brig_policy_inject(p, &inject, &err), "'v1'", "a path without '/'");
    static const char *const ambiguous[] = {"/v1/../v2", "/..", "/./v1", "/a/.", "/a;b", "/a\\"};
    for (size_t i = 0; i < sizeof ambiguous / sizeof *ambiguous; i++) {
        const char *const paths[] = {"/good", ambiguous[i], NULL};
        inject.paths = paths;
        refused(brig_policy_inject(p, &inject, &err), "servers read differently",
                "a path servers read differently");
    }
    inject = credential();
    inject.upstream = "https://x/base/../other";
    refused(brig_policy_inject(p, &inject, &err), "/base/../other",
            "such a prefix of the upstream");
    inject.upstream = "https://x/a.b/..c/.../";
    tap_is_int(brig_policy_inject(p, &inject, &err), 0, "dots in a name are taken");
    brig_policy_free(p);
}

static void test_inject(void)
{
    struct brig_policy *p = fresh();
    struct brig_inject inject = credential();
    tap_is_int(brig_policy_inject(p, &inject, &err), 0, "a credential is taken");
    tap_is_str(p->env[p->env_count - 1].name, "API_URL", "its variable is set");
    tap_is_str(p->env[p->env_count - 1].value, "http://127.18.0.1:8001/v1", "to where it is");
    brig_policy_network(p, BRIG_NET_ALLOW, &err);
    autofree char *text = NULL;
    autofree char *json = NULL;
    brig_policy_explain(p, false, &text, &err);
    brig_policy_explain(p, true, &json, &err);
    tap_has_str(text,
                "inject      authorization into api.example.com, inside at "
                "http://127.18.0.1:8001 ($API_URL)",
                "it is explained");
    tap_ok(!strstr(text, "hush") && !strstr(json, "hush"), "without its secret");
    struct brig_policy *copy = brig_policy_copy(p);
    brig_policy_free(p);
    tap_is_str(copy->net.inject[0].secret, "Bearer hush", "a copy has its own");
    tap_is_str(copy->net.inject[0].methods[1], "POST", "and its own words");
    policy_forget_secrets(copy);
    tap_is_str(copy->net.inject[0].secret, "", "and can forget it");
    for (size_t i = 1; i < POLICY_INJECT_MAX; i++)
        (void)brig_policy_inject(copy, &inject, &err);
    refused(brig_policy_inject(copy, &inject, &err), "too many", "one credential too many");
    brig_policy_free(copy);
}

static void test_validation(void)
{
    struct brig_policy *p = fresh();
    brig_policy_publish(p, "1:1", &err);
    refused(policy_validate(p, &err), "BRIG_NET_ALLOW", "publishing without a network");
    brig_policy_network(p, BRIG_NET_HOST, &err);
    refused(policy_validate(p, &err), "listens on the host", "publishing with the host's");
    brig_policy_network(p, BRIG_NET_ALLOW, &err);
    tap_is_int(policy_validate(p, &err), 0, "behind a door it is possible");
    brig_policy_free(p);
    p = fresh();
    struct brig_inject inject = credential();
    brig_policy_inject(p, &inject, &err);
    refused(policy_validate(p, &err), "inject a credential", "a credential without a network");
    brig_policy_network(p, BRIG_NET_OPEN, &err);
    tap_is_int(policy_validate(p, &err), 0, "behind a door it is possible");
    brig_policy_free(p);
    p = fresh();
    brig_policy_proxy_env(p, true, &err);
    refused(policy_validate(p, &err), "no proxy", "a proxy without a network");
    brig_policy_free(p);
}

static void test_host_proxy(void)
{
    struct brig_policy *p = fresh();
    static const char *const without[] = {"internal.example", NULL};
    tap_is_int(brig_policy_net_proxy(p, "proxy.example:3128", "Basic hush", without, &err), 0,
               "a proxy of the host's");
    refused(brig_policy_net_proxy(p, "http://proxy:80", NULL, NULL, &err), "HOST:PORT", "a URL");
    refused(brig_policy_net_proxy(p, "proxy", NULL, NULL, &err), "HOST:PORT", "no port");
    refused(brig_policy_net_proxy(p, ":80", NULL, NULL, &err), "HOST:PORT", "no host");
    tap_is_str(p->net.proxy, "proxy.example:3128", "is as it was");
    brig_policy_free(p);
}

static bool has(char *const *env, const char *text)
{
    for (; *env; env++)
        if (strcmp(*env, text) == 0)
            return true;
    return false;
}

static bool has_name(char *const *env, const char *name)
{
    for (; *env; env++)
        if (strncmp(*env, name, strlen(name)) == 0 && (*env)[strlen(name)] == '=')
            return true;
    return false;
}

static void test_environment(void)
{
    const char *const caller[] = {"HTTP_PROXY=http://outside:1", "no_proxy=x", "TERM=t", NULL};
    struct brig_policy *p = brig_policy_new(BRIG_MODE_BARE);
    autofree char **plain = NULL;
    autofree char **behind = NULL;
    autofree char **proxied = NULL;
    autofree char **chosen = NULL;
    brig_policy_network(p, BRIG_NET_HOST, &err);
    policy_environment(p, caller, &plain, &err);
    tap_ok(has(plain, "HTTP_PROXY=http://outside:1"),
           "with the host's network its proxy is passed");
    brig_policy_network(p, BRIG_NET_OPEN, &err);
    policy_environment(p, caller, &behind, &err);
    tap_ok(!has_name(behind, "HTTP_PROXY") && !has_name(behind, "no_proxy") &&
               has(behind, "TERM=t"),
           "behind a door it is not");
    brig_policy_proxy_env(p, true, &err);
    policy_environment(p, caller, &proxied, &err);
    tap_ok(has(proxied, "HTTP_PROXY=http://198.18.0.3:3128") &&
               has(proxied, "all_proxy=socks5h://198.18.0.3:1080") && has_name(proxied, "NO_PROXY"),
           "if asked for, the door's own is");
    brig_policy_setenv(p, "HTTP_PROXY", "mine", &err);
    policy_environment(p, caller, &chosen, &err);
    tap_ok(has(chosen, "HTTP_PROXY=mine"), "what is set by a rule wins");
    brig_policy_free(p);
}

static void test_config(void)
{
    struct brig_policy *p = fresh();
    static const char *const strip[] = {"x-api-key", NULL};
    static const char *const without[] = {"internal.example", NULL};
    struct brig_inject inject = credential();
    inject.strip = strip;
    inject.upstream = "https://gateway.example";
    brig_policy_network(p, BRIG_NET_ALLOW, &err);
    brig_policy_allow(p, "good.example:22", &err);
    brig_policy_deny(p, "evil.example", &err);
    brig_policy_limit(p, BRIG_LIMIT_NET_CONNECTIONS, 7, &err);
    brig_policy_net_proxy(p, "proxy.example:3128", "Basic hush", without, &err);
    brig_policy_inject(p, &inject, &err);
    brig_policy_publish(p, "8080:3000", &err);
    autostr struct str text = {0};
    autostr struct str secrets = {0};
    door_write_config(p, 1000, 1001, &text, &secrets);
    tap_is_str(text.data,
               "brig-door 1\npolicy allow\nuser 1000 1001\nlimit connections 7\n"
               "allow good.example:22\ndeny evil.example:*\nproxy proxy.example:3128\n"
               "proxy-secret 0\nno-proxy internal.example\ninject 0 name api.example.com\n"
               "inject 0 upstream https://gateway.example\ninject 0 header authorization 1\n"
               "inject 0 strip x-api-key\ninject 0 method GET\ninject 0 method POST\n"
               "inject 0 path /v1/\npublish 0 3000\n",
               "what the broker is told");
    tap_ok(secrets.length == sizeof "Basic hush\0Bearer hush" &&
               memcmp(secrets.data, "Basic hush\0Bearer hush", secrets.length) == 0,
           "and its secrets, apart");
    brig_policy_network(p, BRIG_NET_OPEN, &err);
    autostr struct str open = {0};
    autostr struct str more = {0};
    door_write_config(p, (uid_t)-1, (gid_t)-1, &open, &more);
    tap_ok(str_starts_with(open.data, "brig-door 1\npolicy open\nlimit"),
           "where it stays who it is, no user is named");
    brig_policy_free(p);
}

int main(void)
{
    test_rules();
    test_publish();
    test_bad_inject();
    test_inject();
    test_validation();
    test_host_proxy();
    test_environment();
    test_config();
    return tap_done();
}
