/* SPDX-License-Identifier: MIT */
/* The builders of a policy's network: what may be reached, and what is published. */
#include "policy/policy_net.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/str.h"
#include "policy/policy.h"
#include "policy/policy_parts.h"

#define PORT_MAX 65535

/* ---- Lifetime ----------------------------------------------------------------------------- */

void policy_free_secret(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

void policy_free_words(char **words)
{
    for (size_t i = 0; words && words[i]; i++)
        free(words[i]);
    free((void *)words);
}

void policy_net_done(struct policy_net *net)
{
    net_rules_done(&net->rules);
    for (size_t i = 0; i < net->written_count; i++) {
        free(net->written[i].text);
        free(net->written[i].origin);
    }
    for (size_t i = 0; i < net->publish_count; i++)
        free(net->publish[i].origin);
    for (size_t i = 0; i < net->inject_count; i++)
        policy_inject_done(&net->inject[i]);
    free(net->written);
    free(net->publish);
    free(net->inject);
    free(net->broker);
    free(net->ca);
    free(net->proxy);
    policy_free_secret(net->proxy_secret);
    policy_free_words(net->no_proxy);
    *net = (struct policy_net){0};
}

/* A copy of a list that NULL ends; NULL stays NULL. */
int policy_copy_words(const char *const *words, size_t max, const char *what, char ***ret_words,
                      struct brig_error *err)
{
    size_t count = 0;
    *ret_words = NULL;
    if (!words)
        return 0;
    while (words[count])
        if (++count > max)
            return brig_fail(err, BRIG_E_INVALID, 0, "too many %s: at most %zu are possible", what,
                             max);
    char **copy = calloc(count + 1, sizeof *copy);
    if (!copy)
        return brig_fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        if (str_copy(words[i], &copy[i], err) < 0) {
            policy_free_words(copy);
            return BRIG_E_NOMEM;
        }
    *ret_words = copy;
    return 0;
}

static int copy_written(const struct policy_net *from, struct policy_net *to)
{
    to->written = from->written_count ? calloc(from->written_count, sizeof *to->written) : NULL;
    if (from->written_count && !to->written)
        return BRIG_E_NOMEM;
    for (size_t i = 0; i < from->written_count; i++) {
        struct policy_net_rule *copy = &to->written[to->written_count++];
        copy->deny = from->written[i].deny;
        if (str_copy(from->written[i].text, &copy->text, NULL) < 0 ||
            str_copy(from->written[i].origin, &copy->origin, NULL) < 0)
            return BRIG_E_NOMEM;
    }
    for (size_t i = 0; i < from->rules.count; i++)
        if (net_rules_add(&to->rules, &from->rules.items[i], NULL) < 0)
            return BRIG_E_NOMEM;
    to->rules.mirrors = from->rules.mirrors;
    return 0;
}

static int copy_publish(const struct policy_net *from, struct policy_net *to)
{
    to->publish = from->publish_count ? calloc(from->publish_count, sizeof *to->publish) : NULL;
    if (from->publish_count && !to->publish)
        return BRIG_E_NOMEM;
    for (size_t i = 0; i < from->publish_count; i++) {
        struct policy_publish *copy = &to->publish[to->publish_count++];
        *copy = from->publish[i];
        copy->origin = NULL;
        if (str_copy(from->publish[i].origin, &copy->origin, NULL) < 0)
            return BRIG_E_NOMEM;
    }
    return 0;
}

static int copy_inject(const struct policy_net *from, struct policy_net *to)
{
    to->inject = from->inject_count ? calloc(from->inject_count, sizeof *to->inject) : NULL;
    if (from->inject_count && !to->inject)
        return BRIG_E_NOMEM;
    for (size_t i = 0; i < from->inject_count; i++)
        if (policy_inject_copy(&from->inject[i], &to->inject[to->inject_count++]) < 0)
            return BRIG_E_NOMEM;
    return 0;
}

int policy_net_copy(const struct policy_net *from, struct policy_net *to)
{
    to->proxy_env = from->proxy_env;
    if (copy_written(from, to) < 0 || copy_publish(from, to) < 0 || copy_inject(from, to) < 0 ||
        str_copy(from->broker, &to->broker, NULL) < 0 || str_copy(from->ca, &to->ca, NULL) < 0 ||
        str_copy(from->proxy, &to->proxy, NULL) < 0 ||
        str_copy(from->proxy_secret, &to->proxy_secret, NULL) < 0 ||
        policy_copy_words((const char *const *)from->no_proxy, POLICY_NO_PROXY_MAX, "",
                          &to->no_proxy, NULL) < 0)
        return BRIG_E_NOMEM;
    return 0;
}

/* ---- Rules -------------------------------------------------------------------------------- */

static int add_rule(struct brig_policy *policy, const char *text, bool deny, struct brig_error *err)
{
    struct policy_net *net = &policy->net;
    if (!text || !*text)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "no destination given: write a name, an address or a @preset");
    autofree char *copy = NULL;
    autofree char *origin = NULL;
    int rc;
    if ((rc = str_copy(text, &copy, err)) < 0 || (rc = str_copy(policy->origin, &origin, err)) < 0)
        return rc;
    struct policy_net_rule *grown =
        reallocarray(net->written, net->written_count + 1, sizeof *net->written);
    if (!grown)
        return brig_fail_nomem(err);
    net->written = grown;
    rc = deny ? net_rules_deny(&net->rules, text, err) : net_rules_allow(&net->rules, text, err);
    if (rc < 0)
        return rc;
    net->written[net->written_count++] = (struct policy_net_rule){
        .deny = deny, .text = take_ptr(&copy), .origin = take_ptr(&origin)};
    return 0;
}

int brig_policy_allow(struct brig_policy *policy, const char *rule, struct brig_error *err)
{
    return add_rule(policy, rule, false, err);
}

int brig_policy_deny(struct brig_policy *policy, const char *rule, struct brig_error *err)
{
    return add_rule(policy, rule, true, err);
}

/* ---- Publishing --------------------------------------------------------------------------- */

static int parse_port(const char *text, size_t length, uint16_t *ret_port)
{
    char digits[6];
    uint64_t port = 0;
    if (length == 0 || length >= sizeof digits)
        return BRIG_E_INVALID;
    memcpy(digits, text, length);
    digits[length] = 0;
    if (parse_uint(digits, PORT_MAX, 0, &port, NULL) < 0)
        return BRIG_E_INVALID;
    *ret_port = (uint16_t)port;
    return 0;
}

/* "[ADDRESS:]HOSTPORT:PORT", or "PORT" for both; an IPv6 address is in brackets. */
static int parse_publish(const char *text, struct policy_publish *ret)
{
    static const uint8_t loopback[4] = {127, 0, 0, 1};
    const char *last = strrchr(text, ':');
    ret->address = net_address_v4(loopback);
    if (!last) {
        ret->host_port = 0;
        int rc = parse_port(text, strlen(text), &ret->port);
        ret->host_port = ret->port;
        return rc;
    }
    if (parse_port(last + 1, strlen(last + 1), &ret->port) < 0)
        return BRIG_E_INVALID;
    const char *host = last;
    while (host > text && host[-1] != ':' && host[-1] != ']')
        host--;
    if (parse_port(host, (size_t)(last - host), &ret->host_port) < 0)
        return BRIG_E_INVALID;
    if (host == text)
        return 0;
    size_t length = (size_t)(host - 1 - text);
    if (text[0] == '[' && length > 2 && text[length - 1] == ']') {
        text++;
        length -= 2;
    } else if (memchr(text, ':', length)) {
        return BRIG_E_INVALID; /* without brackets nobody knows where it ends */
    }
    return net_address_read(text, length, &ret->address) ? 0 : BRIG_E_INVALID;
}

int brig_policy_publish(struct brig_policy *policy, const char *what, struct brig_error *err)
{
    struct policy_net *net = &policy->net;
    struct policy_publish publish = {0};
    if (!what || parse_publish(what, &publish) < 0)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "cannot publish '%s': write [ADDRESS:]HOSTPORT:PORT, such as 8080:3000",
                         str_shown(what ? what : "").text);
    if (net->publish_count >= POLICY_PUBLISH_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "too many ports to publish: at most %d",
                         POLICY_PUBLISH_MAX);
    autofree char *origin = NULL;
    int rc = str_copy(policy->origin, &origin, err);
    if (rc < 0)
        return rc;
    struct policy_publish *grown =
        reallocarray(net->publish, net->publish_count + 1, sizeof *net->publish);
    if (!grown)
        return brig_fail_nomem(err);
    net->publish = grown;
    publish.origin = take_ptr(&origin);
    net->publish[net->publish_count++] = publish;
    return 0;
}

/* ---- Proxies and the broker --------------------------------------------------------------- */

int brig_policy_proxy_env(struct brig_policy *policy, bool on, struct brig_error *err)
{
    (void)err; /* nothing can be wrong with a truth value */
    policy->net.proxy_env = on;
    return 0;
}

int brig_policy_net_proxy(struct brig_policy *policy, const char *proxy, const char *secret,
                          const char *const *no_proxy, struct brig_error *err)
{
    const char *colon = proxy ? strrchr(proxy, ':') : NULL;
    uint16_t port = 0;
    if (!colon || colon == proxy || strpbrk(proxy, " \t\n/@") ||
        parse_port(colon + 1, strlen(colon + 1), &port) < 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is not a proxy: write HOST:PORT",
                         str_shown(proxy ? proxy : "").text);
    for (size_t i = 0; no_proxy && no_proxy[i]; i++)
        if (!*no_proxy[i] || strpbrk(no_proxy[i], " \t\n"))
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "'%s' is not a valid name for which the proxy is not used",
                             str_shown(no_proxy[i]).text);
    autofree char *copy = NULL;
    char *secret_copy = NULL;
    char **names = NULL;
    int rc;
    if ((rc = str_copy(proxy, &copy, err)) < 0 ||
        (rc = policy_copy_words(no_proxy, POLICY_NO_PROXY_MAX, "names without a proxy", &names,
                                err)) < 0)
        return rc;
    if ((rc = str_copy(secret, &secret_copy, err)) < 0) {
        policy_free_words(names);
        return rc;
    }
    policy_replace(&policy->net.proxy, &copy);
    policy_free_secret(policy->net.proxy_secret);
    policy->net.proxy_secret = secret_copy;
    policy_free_words(policy->net.no_proxy);
    policy->net.no_proxy = names;
    return 0;
}

int brig_policy_broker(struct brig_policy *policy, const char *path, struct brig_error *err)
{
    autofree char *copy = NULL;
    int rc = policy_path("broker", path, PATH_KEEP_DOTDOT, &copy, err);
    if (rc < 0)
        return rc;
    policy_replace(&policy->net.broker, &copy);
    return 0;
}
