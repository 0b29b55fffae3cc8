/* SPDX-License-Identifier: MIT */
/* Checks for configuration values with a special syntax. Pure. */
#include <libpq-fe.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/sha256.h"
#include "base/str.h"
#include "image/record.h"
#include "policy/net_address.h"
#include "policy/net_rules.h"
#include "server/config/config.h"
#include "server/config/config_keys.h"
#include "server/execution.h"

#define API_KEY_LENGTH_MIN 8
#define API_KEY_LENGTH_MAX 512
#define ALNUM "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

int config_check_path(const char *text, struct brig_error *err)
{
    autofree char *path = NULL;
    return path_normalise(text, 0, &path, err);
}

int config_check_backend(const char *text, struct brig_error *err)
{
    if (strcmp(text, "docker") != 0 && strcmp(text, "containerd") != 0)
        return 0; /* other values are checked against the choices */
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "'%s' is not used: brigd makes its jails itself, without a container engine. "
                     "Write auto or native, or leave it out",
                     text);
}

int config_check_api_key(const char *text, struct brig_error *err)
{
    size_t length = strlen(text);
    if (str_starts_with(text, CONFIG_HASH_PREFIX)) {
        const char *digits = text + strlen(CONFIG_HASH_PREFIX);
        if (strspn(digits, "0123456789abcdefABCDEF") != strlen(digits) ||
            strlen(digits) != SHA256_HEX_LENGTH)
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "a hashed key is sha256: and 64 hexadecimal digits, as "
                             "sha256sum(1) prints them");
        return 0;
    }
    if (length < API_KEY_LENGTH_MIN || length > API_KEY_LENGTH_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "a key has %d to %d characters, this one has %zu",
                         API_KEY_LENGTH_MIN, API_KEY_LENGTH_MAX, length);
    for (const char *c = text; *c; c++)
        if (*c <= ' ' || *c > '~')
            return brig_fail(
                err, BRIG_E_INVALID, 0,
                "a key has printable ASCII characters and no space, as it travels in a "
                "header");
    return 0;
}

int config_check_range(const char *text, struct brig_error *err)
{
    struct net_range range;
    return net_range_parse(text, strlen(text), &range, err);
}

int config_check_destination(const char *text, struct brig_error *err)
{
    struct net_rule rule;
    int result = net_rule_parse(text, false, &rule, err);
    if (result < 0 || rule.kind == NET_RULE_RANGE || rule.kind == NET_RULE_HOST)
        return result;
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "'%s' is neither an address or a range, such as 10.0.0.0/8:8080, nor "
                     "host:PORT",
                     str_shown(text).text);
}

/* Returns the part after http:// or https://, or "". */
static const char *host_of(const char *url)
{
    return str_starts_with(url, "https://")  ? url + 8
           : str_starts_with(url, "http://") ? url + 7
                                             : "";
}

int config_check_origin(const char *text, struct brig_error *err)
{
    const char *host = host_of(text);
    if (strcmp(text, "*") != 0 && (*host == '\0' || host[strspn(host, ALNUM ".-_[]:")] != '\0'))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'%s' is not an origin: https://HOST[:PORT] without a path, or *",
                         str_shown(text).text);
    return 0;
}

int config_check_log(const char *text, struct brig_error *err)
{
    if (strcmp(text, "-") == 0 || strcmp(text, "off") == 0)
        return 0;
    int result = config_check_path(text, err);
    return result < 0 ? brig_advise(err, result, "Or write - for standard error, or off") : 0;
}

int config_check_upstream(const char *text, struct brig_error *err)
{
    if (*host_of(text) == '\0' || strpbrk(text, " \t\r\n@?#"))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'%s' is not an upstream: https://HOST[:PORT][/PATH], without credentials",
                         str_shown(text).text);
    return 0;
}

int config_check_file_name(const char *text, struct brig_error *err)
{
    if (strchr(text, '/') || strcmp(text, ".") == 0 || strcmp(text, "..") == 0 ||
        strlen(text) > EXECUTION_NAME_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is not the name of a file, such as main.py",
                         str_shown(text).text);
    return 0;
}

int config_check_image(const char *text, struct brig_error *err)
{
    autofree char *name = strndup(text, strcspn(text, "@"));
    return name ? image_check_name(name, err) : brig_fail_nomem(err);
}

int config_check_word(const char *text, struct brig_error *err)
{
    if (text[0] == '\0' || text[strspn(text, ALNUM "._+-:*")] != '\0' ||
        strlen(text) > EXECUTION_NAME_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'%s' is not a name: letters, digits, and . _ + - : *",
                         str_shown(text).text);
    return 0;
}

int config_check_module(const char *text, struct brig_error *err)
{
    size_t length = strlen(text);
    bool dots = text[0] == '.' || strstr(text, "..") || (length > 0 && text[length - 1] == '.');
    if (length > 0 && length <= EXECUTION_NAME_MAX && !dots && strspn(text, ALNUM "_.") == length)
        return 0;
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "'%s' is not the name of a module, such as json or os.path",
                     str_shown(text).text);
}

/* ---- Connection strings ---- */

/* Prints key=value, quoted where libpq needs it. */
static void print_word(const PQconninfoOption *option, struct str *out)
{
    bool quoted = strpbrk(option->val, " '\\") || !*option->val;
    str_concat(out, out->length > 0 ? " " : "", option->keyword, quoted ? "='" : "=");
    for (const char *c = option->val; *c; c++) {
        if (*c == '\'' || *c == '\\')
            str_append_char(out, '\\');
        str_append_char(out, *c);
    }
    str_append(out, quoted ? "'" : "");
}

/* libpq's message is not shown, because it may contain parts of the string. */
int config_check_dsn(const char *text, struct brig_error *err)
{
    PQconninfoOption *options = PQconninfoParse(text, NULL);
    bool understood = options || strcmp(text, "none") == 0;
    PQconninfoFree(options);
    if (understood)
        return 0;
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "it is not a connection string. Write it as in "
                     "postgres://user@host/database or host=… dbname=…");
}

void config_dsn_print(const char *dsn, struct str *out)
{
    PQconninfoOption *options = PQconninfoParse(dsn, NULL);
    for (const PQconninfoOption *option = options; option && option->keyword; option++)
        if (option->val && option->dispchar[0] != '*') /* '*' marks passwords */
            print_word(option, out);
    PQconninfoFree(options);
}

bool config_dsn_is_plain(const char *dsn)
{
    return strstr(dsn, "sslmode=disable") != NULL;
}
