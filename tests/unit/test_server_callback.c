/* SPDX-License-Identifier: MIT */
/* URLs of callbacks: which destination they have, and which are refused. */
#include "server/callback.h"

#include <string.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "server/config/config.h"
#include "tap.h"

static const struct config_list nothing,
    some = {.items = {"10.0.0.0/8:8080-8090", "host:9000", "[fd00::/8]:443"}, .count = 3};

static void takes(const char *url, const struct config_list *allow, const char *rule, bool tls)
{
    struct callback_target target = {0};
    struct brig_error err = {0};
    tap_is_int(callback_parse(url, allow, &target, &err), 0, "'%s' is taken: %s", url, err.message);
    tap_is_str(target.rule, rule, "and reaches %s", rule);
    tap_ok(target.tls == tls, "with%s TLS", tls ? "" : "out");
}

static void refuses(const char *url, const struct config_list *allow)
{
    struct callback_target target;
    struct brig_error err = {0};
    tap_is_int(callback_parse(url, allow, &target, &err), BRIG_E_INVALID, "'%s' is refused: %s",
               url, err.message);
}

static void test_taken(void)
{
    takes("http://example.com", &nothing, "example.com:80", false);
    takes("https://Example.COM./a?b=c", &nothing, "example.com:443", true);
    takes("https://example.com:8443/", &nothing, "example.com:8443", true);
    takes("http://example.com?x", &nothing, "example.com:80", false);
    takes("http://1.1.1.1:81/x", &nothing, "1.1.1.1:81", false);
    takes("https://[2606:4700::1111]/", &nothing, "[2606:4700::1111]:443", true);
    takes("http://10.1.2.3:8085/", &some, "10.1.2.3:8085", false);
    takes("http://host:9000/", &some, "host:9000", false);
    takes("https://[fd00::1]/", &some, "[fd00::1]:443", true);
}

static void test_refused(void)
{
    static const char *const urls[] = {
        "",
        "example.com",
        "ftp://example.com/",
        "HTTP://example.com/",
        "http://",
        "http:///x",
        "http://:80/",
        "http://a@example.com/",
        "http://a:b@example.com/",
        "http://example.com#x",
        "http://example.com/a b",
        "http://example.com/\n",
        "http://example.com\\@evil.example/",
        "http://example.com:0/",
        "http://example.com:65536/",
        "http://example.com:8a/",
        "http://example.com:080/",
        "http://[::1/",
        "http://[::1]x/",
        "http://[1.1.1.1]x/",
        "http://localhost/",
        "http://a.localhost/",
        "http://127.0.0.1/",
        "http://127.9.9.9/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://0.0.0.0/",
        "http://10.1.2.3/",
        "http://172.16.0.1/",
        "http://192.168.0.1/",
        "http://100.64.0.1/",
        "http://169.254.169.254/",
        "http://[fe80::1]/",
        "http://[fd00::1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://224.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://host/",
        "http://host:9001/",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(urls); i++)
        refuses(urls[i], &nothing);
    refuses("http://10.1.2.3:8091/", &some);
    refuses("http://11.1.2.3:10/../", &(struct config_list){.items = {"x y"}, .count = 1});
    refuses("http://host:9001/", &some);
    refuses("http://127.0.0.1:9000/", &some);
}

int main(void)
{
    test_taken();
    test_refused();
    return tap_done();
}
