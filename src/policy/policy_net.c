/* SPDX-License-Identifier: MIT */
/* The builders of a policy's network: allowed destinations, published ports, and credentials that
 * are added outside. */
#include "policy/policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/sized.h"
#include "base/str.h"

#define SITE_LENGTH_MAX 64

/* ---- Lifetime ----------------------------------------------------------------------------- */

void policy_free_secret(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

/* Copies a NULL-terminated list; NULL stays NULL. */
static char **own_words(struct arena *arena, const char *const *words)
{
    size_t count = 0;
    while (words && words[count])
        count++;
    char **copy = words ? arena_alloc(arena, (count + 1) * sizeof *copy) : NULL;
    for (size_t i = 0; copy && i < count; i++)
        copy[i] = arena_strdup(arena, words[i]);
    return copy;
}

static int copy_words(struct brig_policy *policy, const char *const *words, size_t max,
                      const char *what, char ***ret_words, struct brig_error *err)
{
    for (size_t count = 0; words && words[count]; count++)
        if (count == max)
            return brig_fail(err, BRIG_E_INVALID, 0, "too many %s: at most %zu are possible", what,
                             max);
    char **copy = own_words(&policy->arena, words);
    if (policy->arena.failed) {
        policy->arena.failed = 0;
        return brig_fail_nomem(err);
    }
    *ret_words = copy;
    return 0;
}

static void unshare_words(struct arena *arena, char ***words)
{
    *words = own_words(arena, (const char *const *)*words);
}

void policy_unshare_net(struct brig_policy *copy)
{
    struct arena *arena = &copy->arena;
    struct policy_net *net = &copy->net;
    policy_own(arena, &net->broker, &net->ca, &net->proxy, &net->proxy_secret);
    unshare_words(arena, &net->no_proxy);
    net->rules.items =
        policy_copy_items(arena, net->rules.items, &net->rules.count, sizeof *net->rules.items);
    net->written =
        policy_copy_items(arena, net->written, &net->written_count, sizeof *net->written);
    for (size_t i = 0; i < net->written_count; i++)
        policy_own(arena, &net->written[i].text, &net->written[i].origin);
    net->publish =
        policy_copy_items(arena, net->publish, &net->publish_count, sizeof *net->publish);
    for (size_t i = 0; i < net->publish_count; i++)
        policy_own(arena, &net->publish[i].origin);
    net->inject = policy_copy_items(arena, net->inject, &net->inject_count, sizeof *net->inject);
    for (size_t i = 0; i < net->inject_count; i++) {
        struct policy_inject *inject = &net->inject[i];
        policy_own(arena, &inject->name, &inject->header, &inject->secret, &inject->upstream,
                   &inject->variable, &inject->site, &inject->site_address, &inject->origin);
        unshare_words(arena, &inject->methods);
        unshare_words(arena, &inject->paths);
        unshare_words(arena, &inject->strip);
    }
}

/* ---- Rules -------------------------------------------------------------------------------- */

static int add_rule(struct brig_policy *policy, const char *text, bool deny, struct brig_error *err)
{
    struct policy_net *net = &policy->net;
    if (!text || !*text)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "no destination given: write a name, an address or a @preset");
    struct policy_net_rule rule = {.deny = deny};
    int rc;
    if ((rc = policy_text(policy, text, &rule.text, err)) < 0 ||
        (rc = policy_text(policy, policy->origin, &rule.origin, err)) < 0)
        return rc;
    if (!array_grow(&net->written, net->written_count))
        return brig_fail_nomem(err);
    rc = deny ? net_rules_deny(&net->rules, text, err) : net_rules_allow(&net->rules, text, err);
    if (rc < 0)
        return rc;
    net->written[net->written_count++] = rule;
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

/* "[ADDRESS:]HOSTPORT:PORT", or "PORT" for both; an IPv6 address is in brackets. */
static int parse_publish(const char *text, struct policy_publish *ret)
{
    static const uint8_t loopback[4] = {127, 0, 0, 1};
    const char *last = strrchr(text, ':');
    ret->address = net_address_v4(loopback);
    if (!last) {
        bool read = net_port_read(text, strlen(text), &ret->port);
        ret->host_port = ret->port;
        return read ? 0 : BRIG_E_INVALID;
    }
    if (!net_port_read(last + 1, strlen(last + 1), &ret->port))
        return BRIG_E_INVALID;
    const char *host = last;
    while (host > text && host[-1] != ':' && host[-1] != ']')
        host--;
    if (!net_port_read(host, (size_t)(last - host), &ret->host_port))
        return BRIG_E_INVALID;
    if (host == text)
        return 0;
    size_t length = (size_t)(host - 1 - text);
    if (text[0] == '[' && length > 2 && text[length - 1] == ']') {
        text++;
        length -= 2;
    } else if (memchr(text, ':', length)) {
        return BRIG_E_INVALID; /* without brackets the end of an IPv6 address is ambiguous */
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
    int rc = policy_text(policy, policy->origin, &publish.origin, err);
    if (rc < 0)
        return rc;
    if (!array_grow(&net->publish, net->publish_count))
        return brig_fail_nomem(err);
    net->publish[net->publish_count++] = publish;
    return 0;
}

/* ---- Proxies and the broker --------------------------------------------------------------- */

int brig_policy_proxy_env(struct brig_policy *policy, int on, struct brig_error *err)
{
    (void)err; /* a boolean cannot be invalid */
    policy->net.proxy_env = on;
    return 0;
}

int brig_policy_net_proxy(struct brig_policy *policy, const char *proxy, const char *secret,
                          const char *const *no_proxy, struct brig_error *err)
{
    const char *colon = proxy ? strrchr(proxy, ':') : NULL;
    uint16_t port = 0;
    if (!colon || colon == proxy || strpbrk(proxy, " \t\n/@") ||
        !net_port_read(colon + 1, strlen(colon + 1), &port))
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is not a proxy: write HOST:PORT",
                         str_shown(proxy ? proxy : "").text);
    for (size_t i = 0; no_proxy && no_proxy[i]; i++)
        if (!*no_proxy[i] || strpbrk(no_proxy[i], " \t\n"))
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "'%s' is not a valid name for which the proxy is not used",
                             str_shown(no_proxy[i]).text);
    char *copy = NULL, *secret_copy = NULL, **names = NULL;
    int rc;
    if ((rc = policy_text(policy, proxy, &copy, err)) < 0 ||
        (rc = copy_words(policy, no_proxy, POLICY_NO_PROXY_MAX, "names without a proxy", &names,
                         err)) < 0 ||
        (rc = policy_text(policy, secret, &secret_copy, err)) < 0)
        return rc;
    policy_wipe(policy->net.proxy_secret);
    policy->net.proxy = copy;
    policy->net.proxy_secret = secret_copy;
    policy->net.no_proxy = names;
    return 0;
}

int brig_policy_broker(struct brig_policy *policy, const char *path, struct brig_error *err)
{
    return policy_path(policy, "broker", path, PATH_KEEP_DOTDOT, &policy->net.broker, err);
}

/* ---- Credentials -------------------------------------------------------------------------- */

void policy_inject_url(const struct policy_inject *inject, char url[POLICY_INJECT_URL_MAX])
{
    (void)snprintf(url, POLICY_INJECT_URL_MAX, "http://" POLICY_INJECT_ADDRESS ":%u", inject->port);
}

/* Whether a text is a token of HTTP. */
static bool is_token(const char *text)
{
    static const char allowed[] = "!#$%&'*+-.^_`|~0123456789"
                                  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return text && *text && strspn(text, allowed) == strlen(text);
}

/* Servers read such a path differently, so it would restrict nothing. */
static bool is_ambiguous(const char *path)
{
    if (strpbrk(path, "\\;"))
        return true;
    for (const char *at = path; (at = strchr(at, '/')); at++) {
        size_t length = strcspn(at + 1, "/?");
        if ((length == 1 || length == 2) && memcmp(at + 1, "..", length) == 0)
            return true;
    }
    return false;
}

static int check_path(const char *path, const char *option, struct brig_error *err)
{
    if (path && is_ambiguous(path))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "%s '%s' has a '.' or '..' segment, a ';' or a backslash, which servers "
                         "read differently. Write the path it leads to",
                         option, str_shown(path).text);
    return 0;
}

static int check_words(const char *const *words, const char *what, bool paths,
                       struct brig_error *err)
{
    for (size_t i = 0; words && words[i]; i++) {
        bool good =
            paths ? words[i][0] == '/' && !strpbrk(words[i], " \t\r\n") : is_token(words[i]);
        if (!good)
            return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is not a valid %s",
                             str_shown(words[i]).text, what);
        int status = paths ? check_path(words[i], "path", err) : 0;
        if (status < 0)
            return status;
    }
    return 0;
}

/* No message contains the value. */
static int check_value(const char *header, const char *value, struct brig_error *err)
{
    size_t length = value ? strlen(value) : 0;
    if (length < 1 || length > POLICY_SECRET_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "the secret for '%s' is %s: 1 to %d bytes",
                         str_shown(header).text, length ? "too long" : "empty", POLICY_SECRET_MAX);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)value[i] < 0x20 || value[i] == 0x7f)
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "the secret for '%s' has a control character in it, which no header "
                             "can have",
                             str_shown(header).text);
    return 0;
}

static int check_upstream(const char *upstream, struct brig_error *err)
{
    if (!upstream)
        return 0;
    bool known = str_starts_with(upstream, "https://") || str_starts_with(upstream, "http://");
    if (!known || strpbrk(upstream, " \t\r\n@?#"))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'%s' is not an upstream: write https://HOST[:PORT][/PREFIX]",
                         str_shown(upstream).text);
    return check_path(strchr(strstr(upstream, "://") + 3, '/'), "the prefix of the upstream", err);
}

/* A site is written into /etc/hosts and into URLs. */
static int check_site(const char *site, struct brig_error *err)
{
    static const char end[] = ".localhost";
    char name[NET_NAME_MAX + 1];
    size_t length = site ? strlen(site) : 0;
    if (!site)
        return 0;
    if (length >= sizeof end && length <= SITE_LENGTH_MAX &&
        strcmp(site + length - strlen(end), end) == 0 &&
        net_name_parse(site, length, name, err) == 0)
        return 0;
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "'%s' is not a valid site: it is a name of at most %d characters that ends "
                     "with '%s'",
                     str_shown(site).text, SITE_LENGTH_MAX, end);
}

static int check_inject(const struct brig_policy *policy, const struct brig_inject *inject,
                        char ret_name[NET_NAME_MAX + 1], struct brig_error *err)
{
    int rc;
    if (policy->net.inject_count >= POLICY_INJECT_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "too many credentials: at most %d are injected",
                         POLICY_INJECT_MAX);
    if (!inject->name)
        return brig_fail(err, BRIG_E_INVALID, 0, "no name given to inject a credential for");
    if ((rc = net_name_parse(inject->name, strlen(inject->name), ret_name, err)) < 0)
        return rc;
    if (!is_token(inject->header))
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is not a valid header name",
                         str_shown(inject->header ? inject->header : "").text);
    if ((rc = check_value(inject->header, inject->value, err)) < 0 ||
        (rc = check_upstream(inject->upstream, err)) < 0 ||
        (rc = check_site(inject->site, err)) < 0 ||
        (rc = check_words(inject->methods, "method", false, err)) < 0 ||
        (rc = check_words(inject->paths, "path: it begins with '/'", true, err)) < 0)
        return rc;
    return check_words(inject->strip, "name of a header", false, err);
}

/* Programs with libcurl, such as git, find every name below .localhost at 127.0.0.1; others read /etc/hosts. So the first
 * site is there. */
static int choose_site_address(struct brig_policy *policy, const char *site, char **ret_address,
                               struct brig_error *err)
{
    char address[32] = "127.0.0.1";
    for (size_t i = 0; i < policy->net.inject_count; i++)
        if (policy->net.inject[i].site)
            (void)snprintf(address, sizeof address, "127.18.1.%zu", policy->net.inject_count);
    return policy_text(policy, site ? address : NULL, ret_address, err);
}

static int fill_inject(struct brig_policy *policy, const struct brig_inject *from, const char *name,
                       struct policy_inject *to, struct brig_error *err)
{
    const size_t max = POLICY_INJECT_WORDS_MAX;
    int rc;
    if ((rc = policy_text(policy, name, &to->name, err)) < 0 ||
        (rc = policy_text(policy, from->header, &to->header, err)) < 0 ||
        (rc = policy_text(policy, from->value, &to->secret, err)) < 0 ||
        (rc = policy_text(policy, from->upstream, &to->upstream, err)) < 0 ||
        (rc = policy_text(policy, from->variable, &to->variable, err)) < 0 ||
        (rc = policy_text(policy, from->site, &to->site, err)) < 0 ||
        (rc = choose_site_address(policy, from->site, &to->site_address, err)) < 0 ||
        (rc = policy_text(policy, policy->origin, &to->origin, err)) < 0 ||
        (rc = copy_words(policy, from->methods, max, "methods", &to->methods, err)) < 0 ||
        (rc = copy_words(policy, from->paths, max, "paths", &to->paths, err)) < 0)
        return rc;
    return copy_words(policy, from->strip, max, "headers", &to->strip, err);
}

int brig_policy_inject(struct brig_policy *policy, const struct brig_inject *given,
                       struct brig_error *err)
{
    struct brig_inject known = BRIG_INJECT_INIT;
    const struct brig_inject *inject = &known;
    if (given && sized_read(&known, sizeof known, given, "BRIG_INJECT_INIT", err) < 0)
        return brig_wrap(err, BRIG_E_INVALID, "struct brig_inject");
    struct policy_net *net = &policy->net;
    char name[NET_NAME_MAX + 1], url[POLICY_INJECT_URL_MAX];
    int rc = check_inject(policy, inject, name, err);
    if (rc < 0)
        return rc;
    if (!array_grow(&net->inject, net->inject_count))
        return brig_fail_nomem(err);
    struct policy_inject added = {.port = POLICY_INJECT_PORT + (unsigned)net->inject_count};
    rc = fill_inject(policy, inject, name, &added, err);
    if (rc == 0 && inject->variable) {
        autofree char *value = NULL;
        policy_inject_url(&added, url);
        rc = str_make(&value, err, url, inject->suffix ? inject->suffix : "");
        if (rc == 0)
            rc = brig_policy_setenv(policy, inject->variable, value, err);
    }
    if (rc == 0 && inject->ca)
        rc = policy_path(policy, "certificates", inject->ca, PATH_KEEP_DOTDOT, &net->ca, err);
    if (rc < 0) {
        policy_wipe(added.secret);
        return rc;
    }
    net->inject[net->inject_count++] = added;
    return 0;
}
