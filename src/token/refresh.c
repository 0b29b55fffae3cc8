/* SPDX-License-Identifier: MIT */
/* Asks an OAuth server for a new token (RFC 6749, 6). */
#include <curl/curl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/certificates.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "token/token.h"

#define ANSWER_MAX ((size_t)256 << 10)
#define TIMEOUT_S 30L

static size_t take_answer(char *bytes, size_t size, size_t count, void *data)
{
    struct str *answer = data;
    if (answer->length + size * count > ANSWER_MAX)
        return 0;
    str_append_bytes(answer, bytes, size * count);
    return answer->failed ? 0 : size * count;
}

static void wipe_str(struct str *text)
{
    if (text->data)
        explicit_bzero(text->data, text->capacity);
    str_done(text);
}

/* ---- The request ---- */

static char *make_json(const struct token *token, const struct token_facts *facts)
{
    json_t *root = json_pack("{ss, ss, ss, ss*, ss*}", "grant_type", "refresh_token",
                             "refresh_token", token->refresh, "client_id", facts->client,
                             "client_secret", facts->secret, "scope", facts->scope);
    char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    return text;
}

static void add_field(CURL *curl, struct str *form, const char *name, const char *value)
{
    char *escaped = value ? curl_easy_escape(curl, value, 0) : NULL;
    if (escaped) {
        str_concat(form, form->length > 0 ? "&" : "", name, "=", escaped);
        explicit_bzero(escaped, strlen(escaped));
    }
    curl_free(escaped);
}

static char *make_form(CURL *curl, const struct token *token, const struct token_facts *facts)
{
    struct str form = {0};
    char *text = NULL;
    str_reserve(&form, (size_t)16 << 10);
    add_field(curl, &form, "grant_type", "refresh_token");
    add_field(curl, &form, "refresh_token", token->refresh);
    add_field(curl, &form, "client_id", facts->client);
    add_field(curl, &form, "client_secret", facts->secret);
    add_field(curl, &form, "scope", facts->scope);
    (void)str_take(&form, &text, NULL);
    return text;
}

static CURLcode post(CURL *curl, const struct token_facts *facts, const char *body,
                     struct curl_slist *headers, struct str *answer, long *ret_status)
{
    (void)curl_easy_setopt(curl, CURLOPT_URL, facts->endpoint);
    (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    (void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_answer);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
    (void)curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    (void)curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    (void)curl_easy_setopt(curl, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    (void)curl_easy_setopt(curl, CURLOPT_TIMEOUT, TIMEOUT_S);
    (void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    const char *authorities = facts->ca ? facts->ca : certificates_of_system();
    if (authorities)
        (void)curl_easy_setopt(curl, CURLOPT_CAINFO, authorities);
    CURLcode result = curl_easy_perform(curl);
    (void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, ret_status);
    return result;
}

/* ---- The answer ---- */

static bool is_token(const char *text)
{
    size_t length = text ? strlen(text) : 0;
    for (size_t i = 0; i < length; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return false;
    return length > 0 && length <= TOKEN_TEXT_MAX;
}

static int take_token(const json_t *root, struct token *token, struct brig_error *err)
{
    const char *access = json_string_value(json_object_get(root, "access_token"));
    const char *refresh = json_string_value(json_object_get(root, "refresh_token"));
    const json_t *lifetime = json_object_get(root, "expires_in");
    char *new_access = NULL, *new_refresh = NULL;
    if (!is_token(access) || (refresh && !is_token(refresh)))
        return brig_fail(err, BRIG_E_SYSTEM, 0, "the log-in server's answer has no token");
    int status = str_copy(access, &new_access, err);
    if (status == 0)
        status = str_copy(refresh ? refresh : token->refresh, &new_refresh, err);
    if (status < 0)
        return status;
    struct token renewed = {.access = new_access,
                            .refresh = new_refresh,
                            .account = take_ptr(&token->account),
                            .serial = token->serial + 1};
    renewed.expires = json_is_integer(lifetime) ? (int64_t)time(NULL) + json_integer_value(lifetime)
                                                : token_jwt_expires(access);
    token_done(token);
    *token = renewed;
    return 0;
}

static int read_answer(const struct str *answer, long http_status, struct token *token,
                       struct brig_error *err)
{
    json_t *root =
        json_loadb(answer->data ? answer->data : "", answer->length, JSON_REJECT_DUPLICATES, NULL);
    int status;
    if (http_status >= 400 && http_status < 500)
        status = brig_fail(err, BRIG_E_STATE, 0,
                           "the log-in server refused to refresh the token (HTTP status %ld)",
                           http_status);
    else if (http_status != 200)
        status = brig_fail(err, BRIG_E_SYSTEM, 0, "the log-in server failed (HTTP status %ld)",
                           http_status);
    else
        status = take_token(root, token, err);
    json_decref(root);
    return status;
}

int token_refresh(struct token *token, const struct token_facts *facts, struct brig_error *err)
{
    bool json = !facts->format || strcmp(facts->format, "form") != 0;
    if (!token->refresh || !facts->endpoint || !facts->client)
        return brig_fail(err, BRIG_E_STATE, 0, "the token has expired and cannot be refreshed");
    CURL *curl = curl_easy_init();
    char *body = !curl ? NULL : json ? make_json(token, facts) : make_form(curl, token, facts);
    struct curl_slist *headers =
        curl_slist_append(NULL, json ? "Content-Type: application/json"
                                     : "Content-Type: application/x-www-form-urlencoded");
    struct str answer = {0};
    long http_status = 0;
    int status = curl && body && headers ? 0 : brig_fail_nomem(err);
    str_reserve(&answer, ANSWER_MAX);
    CURLcode result = status == 0 ? post(curl, facts, body, headers, &answer, &http_status) : 0;
    if (status == 0 && result != CURLE_OK)
        status = brig_fail(err, BRIG_E_SYSTEM, 0, "cannot reach the log-in server: %s",
                           curl_easy_strerror(result));
    if (status == 0)
        status = read_answer(&answer, http_status, token, err);
    if (body)
        explicit_bzero(body, strlen(body));
    free(body);
    wipe_str(&answer);
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    return status;
}
