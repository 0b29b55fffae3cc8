/* SPDX-License-Identifier: MIT */
/* The broker's configuration: what is understood, and what is said of what is not. */
#include <brig/brig.h>

#include "net/broker_config.h"
#include "tap.h"

static int read_config(struct broker_config *config, const char *lines, struct brig_error *err)
{
    char text[8192];
    (void)snprintf(text, sizeof text, DOOR_CONFIG_HEAD "\n%s", lines);
    return broker_config_read(config, text, strlen(text), err);
}

static void check_refused(const char *lines, const char *named)
{
    struct broker_config config;
    struct brig_error err = {0};
    tap_is_int(read_config(&config, lines, &err), BRIG_E_INVALID, "'%s' is refused", lines);
    tap_has_str(err.message, named, "and the message names it");
    broker_config_done(&config);
}

static void test_everything(void)
{
    struct broker_config config;
    struct brig_error err = {0};
    int status = read_config(&config,
                             "policy allow\n"
                             "allow example.com:443\n"
                             "allow pypi.org:443 @pypi\n"
                             "deny evil.example.com\n"
                             "user 1000 1001\n"
                             "resolver 127.0.0.53\n"
                             "resolver [::1]:5353\n"
                             "proxy proxy.corp:3128\n"
                             "proxy-secret 2\n"
                             "no-proxy corp\n"
                             "ca /etc/own.pem\n"
                             "limit connections 7\n"
                             "limit bytes 0\n"
                             "limit idle-ms 1000\n"
                             "inject 0 name api.example.org\n"
                             "inject 0 header Authorization 0\n"
                             "inject 1 name other.example.org\n"
                             "inject 1 upstream http://10.0.0.1:8080/base/\n"
                             "inject 1 header X-Api-Key 1\n"
                             "inject 1 strip X-Org\n"
                             "inject 1 method POST\n"
                             "inject 1 path /v1/\n"
                             "publish 1 3000\n",
                             &err);
    tap_is_int(status, 0, "a configuration with every line is understood");
    tap_is_str(err.message, "", "without a message");
    tap_ok(!config.open && config.has_user && config.uid == 1000 && config.gid == 1001,
           "policy and user are read");
    tap_is_int(config.resolver_count, 2, "both resolvers are");
    tap_is_int(config.resolvers[0].port, 53, "the first with the usual port");
    tap_ok(config.resolvers[1].address.family == NET_V6 && config.resolvers[1].port == 5353,
           "the second, of IPv6, with its own");
    tap_is_str(config.proxy.name, "proxy.corp", "the proxy has its name");
    tap_is_int(config.proxy.port, 3128, "and its port");
    tap_is_int(config.limits[CONFIG_LIMIT_CONNECTIONS], 7, "a limit is read");
    tap_is_int(config.limits[CONFIG_LIMIT_NAMES], DOOR_NAMES_ALLOW, "another has its default");
    tap_is_int(config.inject_count, 2, "there are two injects");
    tap_ok(config.injects[0].tls && config.injects[0].upstream.port == 443,
           "without an upstream it is https");
    tap_is_str(config.injects[0].upstream.name, "api.example.org", "of the name itself");
    tap_ok(!config.injects[1].tls && config.injects[1].upstream.is_address,
           "the other's is an address");
    tap_is_str(config.injects[1].prefix, "/base", "with a prefix without its last slash");
    tap_is_int(config.publish[1], 3000, "a published port has its number");
    tap_is_int(config.secret_count, 3, "it says how many secrets it needs");
    tap_is_int(net_rules_name(&config.rules, "api.example.org", 443).reason, NET_DENIED,
               "a name with a credential is denied otherwise");
    const char *detail;
    tap_ok(broker_config_because(&config, "api.example.org", NET_DENIED, &detail) ==
                   DOOR_BECAUSE_INJECTED &&
               broker_config_because(&config, "example.com", NET_DENIED, &detail) ==
                   DOOR_BECAUSE_RULE,
           "and found as such");
    tap_ok(config.watches_names, "so names are watched for");
    tap_ok(!broker_config_is_proxied(&config, "git.corp") &&
               !broker_config_is_proxied(&config, "corp") &&
               broker_config_is_proxied(&config, "notcorp"),
           "what goes past the proxy is the name and what is below it");
    broker_config_done(&config);
}

static void test_open(void)
{
    struct broker_config config;
    tap_is_int(read_config(&config, "policy open\n", NULL), 0, "an open policy is understood");
    tap_is_int(net_rules_name(&config.rules, "any.example", 22).reason, NET_OK,
               "it allows every name");
    tap_is_int(config.limits[CONFIG_LIMIT_NAMES], DOOR_NAMES_MAX, "as many as there can be");
    tap_ok(!config.watches_names, "and looks at none");
    broker_config_done(&config);
}

static void test_hosts(void)
{
    struct broker_config config;
    tap_is_int(read_config(&config, "resolver ::1\nproxy [fd00::1]:3128\n", NULL), 0,
               "an IPv6 address needs brackets only before a port");
    tap_ok(config.resolvers[0].address.family == NET_V6 && config.resolvers[0].port == 53,
           "without a port it has the usual one");
    tap_ok(config.proxy.is_address && config.proxy.port == 3128, "with a port it has that");
    broker_config_done(&config);
}

static void test_head(void)
{
    struct broker_config config;
    struct brig_error err = {0};
    tap_is_int(broker_config_read(&config, "", 0, &err), BRIG_E_INVALID, "nothing is refused");
    broker_config_done(&config);
    tap_is_int(broker_config_read(&config, "brig-door 2\n", 12, &err), BRIG_E_INVALID,
               "another version is");
    broker_config_done(&config);
    tap_is_int(broker_config_read(&config, "brig-door 1\n\0policy open\n", 24, &err),
               BRIG_E_INVALID, "a NUL is");
    broker_config_done(&config);
}

int main(void)
{
    test_everything();
    test_open();
    test_hosts();
    test_head();
    check_refused("policy maybe\n", "maybe");
    check_refused("allow bad_rule:x\n", "bad_rule:x");
    check_refused("frobnicate\n", "frobnicate");
    check_refused("user 1\n", "user 1");
    check_refused("user 1 4294967295\n", "4294967295");
    check_refused("resolver example.com\n", "example.com");
    check_refused("resolver 127.0.0.1:99999\n", "99999");
    check_refused("proxy proxy.corp\n", "proxy.corp");
    check_refused("proxy proxy.corp:0\n", "proxy.corp:0");
    check_refused("proxy [::1]\n", "[::1]");
    check_refused("proxy [::1\n", "[::1");
    check_refused("proxy user@proxy.corp:1\n", "user@");
    check_refused("limit connections 0\n", "limit connections 0");
    check_refused("limit connections 16385\n", "16385");
    check_refused("limit names 65537\n", "65537");
    check_refused("limit speed 1\n", "speed");
    check_refused("inject 32 name a.example\n", "32");
    check_refused("inject 0 name a.example\ninject 0 upstream ftp://a.example\n", "ftp://");
    check_refused("inject 0 name a.example\ninject 0 upstream https://a.example/x/../..\n",
                  "/x/../..");
    check_refused("inject 0 name a.example\ninject 0 path /a%252e\n", "/a%252e");
    check_refused("inject 1 name a.example\n", "inject 0");
    check_refused("inject 0 frob a\n", "frob");
    check_refused("publish 0 65536\n", "65536");
    check_refused("publish 64 80\n", "64");
    return tap_done();
}
