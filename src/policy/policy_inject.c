/* SPDX-License-Identifier: MIT */
/* The credentials of a policy, which are added to requests outside the jail. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "policy/policy.h"
#include "policy/policy_parts.h"

void policy_inject_done(struct policy_inject *inject)
{
    free(inject->name);
    free(inject->header);
    policy_free_secret(inject->secret);
    free(inject->upstream);
    free(inject->variable);
    policy_free_words(inject->methods);
    policy_free_words(inject->paths);
    policy_free_words(inject->strip);
    free(inject->origin);
}

int policy_inject_copy(const struct policy_inject *from, struct policy_inject *to)
{
    to->port = from->port;
    if (str_copy(from->name, &to->name, NULL) < 0 ||
        str_copy(from->header, &to->header, NULL) < 0 ||
        str_copy(from->secret, &to->secret, NULL) < 0 ||
        str_copy(from->upstream, &to->upstream, NULL) < 0 ||
        str_copy(from->variable, &to->variable, NULL) < 0 ||
        str_copy(from->origin, &to->origin, NULL) < 0)
        return BRIG_E_NOMEM;
    const size_t max = POLICY_INJECT_WORDS_MAX;
    if (policy_copy_words((const char *const *)from->methods, max, "", &to->methods, NULL) < 0 ||
        policy_copy_words((const char *const *)from->paths, max, "", &to->paths, NULL) < 0 ||
        policy_copy_words((const char *const *)from->strip, max, "", &to->strip, NULL) < 0)
        return BRIG_E_NOMEM;
    return 0;
}

void policy_inject_url(size_t index, char url[POLICY_INJECT_URL_MAX])
{
    (void)snprintf(url, POLICY_INJECT_URL_MAX, "http://" POLICY_INJECT_ADDRESS ":%zu",
                   POLICY_INJECT_PORT + index);
}

void policy_inject_url_of(const struct policy_inject *inject, char url[POLICY_INJECT_URL_MAX])
{
    (void)snprintf(url, POLICY_INJECT_URL_MAX, "http://" POLICY_INJECT_ADDRESS ":%u", inject->port);
}

/* What HTTP calls a token. */
static bool is_token(const char *text)
{
    static const char allowed[] = "!#$%&'*+-.^_`|~0123456789"
                                  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return text && *text && strspn(text, allowed) == strlen(text);
}

/* Servers read such a path differently, so that it bounds nothing. */
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

/* The value itself is in no message. */
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

static int check_inject(const struct brig_policy *policy, const struct brig_inject *inject,
                        char ret_name[NET_NAME_MAX + 1], struct brig_error *err)
{
    int rc;
    if (policy->net.inject_count >= POLICY_INJECT_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "too many credentials: at most %d are injected",
                         POLICY_INJECT_MAX);
    if (!inject || !inject->name)
        return brig_fail(err, BRIG_E_INVALID, 0, "no name given to inject a credential for");
    if ((rc = net_name_parse(inject->name, strlen(inject->name), ret_name, err)) < 0)
        return rc;
    if (!is_token(inject->header))
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is not a valid header name",
                         str_shown(inject->header ? inject->header : "").text);
    if ((rc = check_value(inject->header, inject->value, err)) < 0 ||
        (rc = check_upstream(inject->upstream, err)) < 0 ||
        (rc = check_words(inject->methods, "method", false, err)) < 0 ||
        (rc = check_words(inject->paths, "path: it begins with '/'", true, err)) < 0)
        return rc;
    return check_words(inject->strip, "name of a header", false, err);
}

static int fill_inject(const struct brig_policy *policy, const struct brig_inject *from,
                       const char *name, struct policy_inject *to, struct brig_error *err)
{
    const size_t max = POLICY_INJECT_WORDS_MAX;
    int rc;
    if ((rc = str_copy(name, &to->name, err)) < 0 ||
        (rc = str_copy(from->header, &to->header, err)) < 0 ||
        (rc = str_copy(from->value, &to->secret, err)) < 0 ||
        (rc = str_copy(from->upstream, &to->upstream, err)) < 0 ||
        (rc = str_copy(from->variable, &to->variable, err)) < 0 ||
        (rc = str_copy(policy->origin, &to->origin, err)) < 0 ||
        (rc = policy_copy_words(from->methods, max, "methods", &to->methods, err)) < 0 ||
        (rc = policy_copy_words(from->paths, max, "paths", &to->paths, err)) < 0)
        return rc;
    return policy_copy_words(from->strip, max, "headers", &to->strip, err);
}

int brig_policy_inject(struct brig_policy *policy, const struct brig_inject *inject,
                       struct brig_error *err)
{
    struct policy_net *net = &policy->net;
    char name[NET_NAME_MAX + 1], url[POLICY_INJECT_URL_MAX];
    int rc = check_inject(policy, inject, name, err);
    if (rc < 0)
        return rc;
    struct policy_inject *grown =
        reallocarray(net->inject, net->inject_count + 1, sizeof *net->inject);
    if (!grown)
        return brig_fail_nomem(err);
    net->inject = grown;
    struct policy_inject added = {.port = POLICY_INJECT_PORT + (unsigned)net->inject_count};
    rc = fill_inject(policy, inject, name, &added, err);
    if (rc == 0 && inject->variable) {
        autostr struct str value = {0};
        policy_inject_url(net->inject_count, url);
        str_append(&value, url);
        str_append(&value, inject->suffix ? inject->suffix : "");
        rc = value.failed ? brig_fail_nomem(err)
                          : brig_policy_setenv(policy, inject->variable, value.data, err);
    }
    autofree char *ca = NULL;
    if (rc == 0 && inject->ca)
        rc = policy_path("certificates", inject->ca, PATH_KEEP_DOTDOT, &ca, err);
    if (rc < 0) {
        policy_inject_done(&added);
        return rc;
    }
    if (ca)
        policy_replace(&net->ca, &ca);
    net->inject[net->inject_count++] = added;
    return 0;
}

void policy_forget_secrets(struct brig_policy *policy)
{
    struct policy_net *net = &policy->net;
    for (size_t i = 0; i < net->inject_count; i++)
        explicit_bzero(net->inject[i].secret, strlen(net->inject[i].secret));
    if (net->proxy_secret)
        explicit_bzero(net->proxy_secret, strlen(net->proxy_secret));
}
