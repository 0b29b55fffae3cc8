/* SPDX-License-Identifier: MIT */
/* The page for browsers: see web.h. */
#include "server/http/web.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "server/http/http.h"

#include "server/web_files.h"

#define FOLDER "/web/"

static const struct embedded_file *find(const char *path)
{
    const char *name = strcmp(path, "/") == 0          ? "index.html"
                       : str_starts_with(path, FOLDER) ? path + strlen(FOLDER)
                                                       : NULL;
    for (size_t i = 0; name && i < ARRAY_LENGTH(embedded_files); i++)
        if (strcmp(embedded_files[i].name, name) == 0)
            return &embedded_files[i];
    return NULL;
}

bool web_has(const char *path)
{
    return find(path) != NULL;
}

static const char *type_of(const char *name)
{
    const char *dot = strrchr(name, '.');
    if (dot && strcmp(dot, ".js") == 0)
        return "text/javascript; charset=utf-8";
    if (dot && strcmp(dot, ".css") == 0)
        return "text/css; charset=utf-8";
    return "text/html; charset=utf-8";
}

void web_answer(struct exchange *exchange)
{
    const struct embedded_file *file = find(exchange->path);
    autostr struct str text = {0};
    if (!file || !exchange->http->config->server.web) {
        answer_error(exchange, ERROR_NOT_FOUND, "the page is switched off: server.web is false");
        return;
    }
    str_append_bytes(&text, (const char *)file->bytes, file->length);
    answer_text(exchange, MHD_HTTP_OK, type_of(file->name), &text);
}
