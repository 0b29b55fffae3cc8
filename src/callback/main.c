/* SPDX-License-Identifier: MIT */
/* brig-callback: sends one HTTP request, and prints its status.
 *
 * Theory of operation. brigd starts this program in a jail that reaches one destination. It reads the
 * request from standard input: lines "url URL", "method METHOD", "timeout MILLISECONDS" and
 * "header NAME: VALUE", an empty line, then the body to the end. It prints the status of the answer, or "0" and why there is none.
 * It follows no redirect, uses no proxy, reads no configuration and no environment, and throws the
 * answer away. The answer may come from an attacker; all it can do is in this jail. */
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/certificates.h"
#include "base/cleanup.h"
#include "base/str.h"

#define INPUT_MAX ((size_t)32 << 20)
#define ANSWER_MAX ((size_t)64 << 10) /* more is not read */

struct request {
    const char *url;
    const char *method; /* or NULL: POST */
    long timeout_ms;
    struct curl_slist *headers;
    const char *body;
    size_t body_length;
};

static bool read_all(struct str *input)
{
    char piece[16384];
    ssize_t length;
    while ((length = read(STDIN_FILENO, piece, sizeof piece)) != 0) {
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0 || input->length + (size_t)length > INPUT_MAX)
            return false;
        str_append_bytes(input, piece, (size_t)length);
    }
    str_append_char(input, '\0');
    return !input->failed;
}

static bool add_header(struct request *request, const char *line)
{
    struct curl_slist *headers = curl_slist_append(request->headers, line);
    if (headers)
        request->headers = headers;
    return headers != NULL;
}

/* Splits the input in place. */
static bool parse(struct str *input, struct request *request)
{
    char *line = input->data, *end = input->data + input->length - 1;
    for (char *next; (next = memchr(line, '\n', (size_t)(end - line))); line = next + 1) {
        *next = '\0';
        if (!*line) {
            request->body = next + 1;
            request->body_length = (size_t)(end - next - 1);
            return request->url != NULL;
        }
        if (str_starts_with(line, "url "))
            request->url = line + 4;
        else if (str_starts_with(line, "method "))
            request->method = line + 7;
        else if (str_starts_with(line, "timeout "))
            request->timeout_ms = strtol(line + 8, NULL, 10);
        else if (!str_starts_with(line, "header ") || !add_header(request, line + 7))
            return false;
    }
    return false;
}

static size_t drop_answer(char *bytes, size_t size, size_t count, void *data)
{
    size_t *left = data;
    (void)bytes;
    if (size * count > *left)
        return 0; /* ends the transfer; the status is known */
    *left -= size * count;
    return size * count;
}

static int send_request(CURL *curl, const struct request *request, long *ret_status, char *why)
{
    size_t left = ANSWER_MAX;
    int failed = 0;
    failed |= curl_easy_setopt(curl, CURLOPT_URL, request->url);
    failed |= curl_easy_setopt(curl, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    failed |= curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    failed |= curl_easy_setopt(curl, CURLOPT_PROXY, "");
    failed |= curl_easy_setopt(curl, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    failed |= curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    failed |= curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, request->timeout_ms);
    failed |= curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, request->timeout_ms);
    failed |= curl_easy_setopt(curl, CURLOPT_HTTPHEADER, request->headers);
    failed |= curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body);
    failed |= curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_length);
    failed |= curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, drop_answer);
    failed |= curl_easy_setopt(curl, CURLOPT_WRITEDATA, &left);
    failed |= curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
    if (request->method)
        failed |= curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request->method);
    const char *authorities = certificates_of_system();
    if (authorities) /* a static libcurl knows no place of its own */
        failed |= curl_easy_setopt(curl, CURLOPT_CAINFO, authorities);
    if (failed)
        return 1;
    CURLcode code = curl_easy_perform(curl);
    (void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, ret_status);
    if (code != CURLE_OK && code != CURLE_WRITE_ERROR && !*why)
        (void)snprintf(why, CURL_ERROR_SIZE, "%s", curl_easy_strerror(code));
    return code != CURLE_OK && code != CURLE_WRITE_ERROR;
}

int main(void)
{
    autostr struct str input = {0};
    struct request request = {.timeout_ms = 10000};
    char why[CURL_ERROR_SIZE] = "";
    long status = 0;
    if (!read_all(&input) || !parse(&input, &request)) {
        (void)puts("0 the request is malformed");
        return 1;
    }
    CURL *curl = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? curl_easy_init() : NULL;
    int failed = curl ? send_request(curl, &request, &status, why) : 1;
    if (failed)
        (void)printf("0 %s\n", *why ? why : "libcurl cannot be used");
    else
        (void)printf("%ld\n", status);
    curl_slist_free_all(request.headers);
    curl_easy_cleanup(curl);
    return failed;
}
