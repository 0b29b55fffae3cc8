/* SPDX-License-Identifier: MIT */
/* The host's own HTTP proxy. */
#include "cli/net_proxy.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/str.h"
#include "cli/message.h"
#include "policy/policy.h"

#define SCHEME "http://"

static void append_decoded(struct str *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        int high = text[i] == '%' && i + 2 < length ? hex_value(text[i + 1]) : -1;
        int low = high >= 0 ? hex_value(text[i + 2]) : -1;
        if (low >= 0)
            i += 2;
        str_append_char(out, low >= 0 ? (char)(high << 4 | low) : text[i]);
    }
}

static bool make_secret(const char *user, size_t length, char **ret_secret)
{
    autostr struct str plain = {0};
    autostr struct str secret = {0};
    append_decoded(&plain, user, length);
    if (!memchr(user, ':', length))
        str_append_char(&plain, ':');
    str_append(&secret, "Basic ");
    base64_append(&secret, plain.data, plain.length);
    bool good = !plain.failed && str_take(&secret, ret_secret, NULL) == 0;
    if (plain.data)
        explicit_bzero(plain.data, plain.length);
    return good;
}

bool net_proxy_parse(const char *url, char **ret_proxy, char **ret_secret)
{
    if (strncasecmp(url, SCHEME, strlen(SCHEME)) == 0)
        url += strlen(SCHEME);
    else if (strstr(url, "://"))
        return false;
    size_t length = strcspn(url, "/?#");
    const char *at = memrchr(url, '@', length);
    const char *host = at ? at + 1 : url;
    length -= (size_t)(host - url);
    if (length == 0)
        return false;
    autostr struct str proxy = {0};
    str_append_bytes(&proxy, host, length);
    bool bracketed = host[0] == '[' && host[length - 1] == ']';
    if (bracketed || !memchr(host, ':', length))
        str_append(&proxy, ":80");
    *ret_secret = NULL;
    if (at && !make_secret(url, (size_t)(at - url), ret_secret))
        return false;
    if (str_take(&proxy, ret_proxy, NULL) < 0) {
        policy_free_secret(take_ptr(ret_secret));
        return false;
    }
    return true;
}

static const char *first_of(const char *const *names, const char **ret_name)
{
    for (; *names; names++) {
        const char *value = getenv(*names);
        *ret_name = *names;
        if (value && *value)
            return value;
    }
    return NULL;
}

size_t net_proxy_split_names(char *text, const char *names[POLICY_NO_PROXY_MAX + 1])
{
    size_t count = 0;
    char *rest = text;
    for (char *word; (word = strsep(&rest, ", ")) && count < POLICY_NO_PROXY_MAX;) {
        char name[NET_NAME_MAX + 1];
        word += strspn(word, "*.");
        if (net_name_read(word, strlen(word), name))
            names[count++] = word;
    }
    names[count] = NULL;
    return count;
}

int net_proxy_apply(struct brig_policy *policy, struct brig_error *err)
{
    static const char *const proxy_names[] = {
        "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "http_proxy", "HTTP_PROXY", NULL};
    static const char *const no_proxy_names[] = {"no_proxy", "NO_PROXY", NULL};
    const char *name = NULL, *ignored = NULL;
    const char *url = first_of(proxy_names, &name);
    const char *without = first_of(no_proxy_names, &ignored);
    if (!url || (without && strcmp(without, "*") == 0))
        return 0;
    autofree char *proxy = NULL;
    char *secret = NULL;
    if (!net_proxy_parse(url, &proxy, &secret)) {
        message_warning("%s does not name an HTTP proxy; connections go out without it", name);
        return 0;
    }
    autofree char *copy = strdup(without ? without : "");
    const char *names[POLICY_NO_PROXY_MAX + 1] = {NULL};
    if (copy)
        (void)net_proxy_split_names(copy, names);
    int status =
        copy ? brig_policy_net_proxy(policy, proxy, secret, names, err) : brig_fail_nomem(err);
    policy_free_secret(secret);
    return status < 0 ? brig_wrap(err, status, "%s", name) : 0;
}
