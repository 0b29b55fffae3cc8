/* SPDX-License-Identifier: MIT */
/* Builds the body of POST /execute. */

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/parse.h"
#include "base/str.h"
#include "client/client.h"

#define MEMORY_MB_MAX 1048576

int request_add(struct request_list *list, const char *item, const char *what,
                struct brig_error *err)
{
    if (list->count == REQUEST_ITEMS_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "more than %d of %s", REQUEST_ITEMS_MAX, what);
    list->items[list->count++] = item;
    return 0;
}

static int read_input(const char *path, struct str *out, struct brig_error *err)
{
    bool standard = strcmp(path, "-") == 0;
    const char *name = standard ? "standard input" : path;
    autoclose int file = standard ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (!standard && file < 0)
        return brig_fail(err, BRIG_E_INVALID, errno, "'%s'", str_shown(path).text);
    int failed = read_all(standard ? STDIN_FILENO : file, REQUEST_INPUT_MAX, out);
    if (failed < 0)
        return brig_fail(err, BRIG_E_SYSTEM, -failed, "read '%s'", str_shown(name).text);
    if (out->length > REQUEST_INPUT_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' has more than %zu MiB", str_shown(name).text,
                         REQUEST_INPUT_MAX >> 20);
    return 0;
}

static json_t *as_base64(const struct str *bytes)
{
    autostr struct str text = {0};
    base64_append(&text, bytes->data, bytes->length);
    if (text.failed)
        return NULL;
    return json_pack("{s:s, s:s}", "content", text.data ? text.data : "", "encoding", "base64");
}

/* ---- Fields ---- */

static int add_code(const struct request *request, json_t *body, struct brig_error *err)
{
    autostr struct str code = {0};
    if (request->code)
        str_append(&code, request->code);
    int result = request->code ? 0 : read_input(request->code_file, &code, err);
    if (result < 0)
        return result;
    json_t *text = json_stringn(code.data ? code.data : "", code.length);
    if (!text)
        return brig_fail(err, BRIG_E_INVALID, 0, "the code is not UTF-8");
    return json_object_set_new(body, "code", text) < 0 ? brig_fail_nomem(err) : 0;
}

static int add_texts(json_t *body, const char *name, const struct request_list *list,
                     struct brig_error *err)
{
    if (list->count == 0)
        return 0;
    json_t *array = json_array();
    for (size_t i = 0; i < list->count; i++) {
        json_t *text = json_string(list->items[i]);
        if (!text) {
            json_decref(array);
            return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is not UTF-8",
                             str_shown(list->items[i]).text);
        }
        (void)json_array_append_new(array, text);
    }
    return json_object_set_new(body, name, array) < 0 ? brig_fail_nomem(err) : 0;
}

static int add_env(const struct request *request, json_t *body, struct brig_error *err)
{
    if (request->env.count == 0)
        return 0;
    json_t *object = json_object();
    int result = json_object_set_new(body, "env", object) < 0 ? brig_fail_nomem(err) : 0;
    for (size_t i = 0; i < request->env.count && result == 0; i++) {
        const char *equals = strchr(request->env.items[i], '=');
        if (!equals || equals == request->env.items[i])
            return brig_fail(err, BRIG_E_INVALID, 0, "--env '%s': write it as NAME=VALUE",
                             str_shown(request->env.items[i]).text);
        autofree char *name =
            strndup(request->env.items[i], (size_t)(equals - request->env.items[i]));
        if (!name || json_object_set_new(object, name, json_string(equals + 1)) < 0)
            result = brig_fail(err, BRIG_E_INVALID, 0, "--env '%s' is not UTF-8",
                               str_shown(request->env.items[i]).text);
    }
    return result;
}

/* PATH or NAME=PATH; the default name is the last component of the path. */
static int add_file(json_t *object, const char *item, struct brig_error *err)
{
    autostr struct str bytes = {0};
    const char *equals = strchr(item, '='), *path = equals ? equals + 1 : item;
    const char *slash = strrchr(path, '/');
    autofree char *name =
        equals ? strndup(item, (size_t)(equals - item)) : strdup(slash ? slash + 1 : path);
    if (!name)
        return brig_fail_nomem(err);
    int result = read_input(path, &bytes, err);
    if (result == 0 && json_object_set_new(object, name, as_base64(&bytes)) < 0)
        result = brig_fail(err, BRIG_E_INVALID, 0, "--file '%s': the name is not UTF-8",
                           str_shown(item).text);
    return result < 0 ? brig_wrap(err, result, "--file") : 0;
}

static int add_files(const struct request *request, json_t *body, struct brig_error *err)
{
    int result = 0;
    if (request->files.count == 0)
        return 0;
    json_t *object = json_object();
    if (json_object_set_new(body, "files", object) < 0)
        return brig_fail_nomem(err);
    for (size_t i = 0; i < request->files.count && result == 0; i++)
        result = add_file(object, request->files.items[i], err);
    return result;
}

static int add_memory(const struct request *request, json_t *body, struct brig_error *err)
{
    uint64_t megabytes = 0;
    if (!request->memory)
        return 0;
    int result = parse_uint(request->memory, MEMORY_MB_MAX, 0, &megabytes, err);
    if (result < 0)
        return brig_wrap(err, result, "--memory, in MiB");
    json_t *limits = json_pack("{s:I}", "memory_mb", (json_int_t)megabytes);
    return json_object_set_new(body, "limits", limits) < 0 ? brig_fail_nomem(err) : 0;
}

static int add_network(const struct request *request, json_t *body, struct brig_error *err)
{
    if (!request->network && request->allow.count == 0)
        return 0;
    json_t *network = json_pack("{s:b}", "enabled", 1);
    int result = network ? add_texts(network, "allow", &request->allow, err) : brig_fail_nomem(err);
    json_t *permissions = json_pack("{s:o}", "network", network);
    if (json_object_set_new(body, "permissions", permissions) < 0 && result == 0)
        result = brig_fail_nomem(err);
    return result;
}

static int add_stdin(const struct request *request, json_t *body, struct brig_error *err)
{
    autostr struct str bytes = {0};
    if (!request->stdin_wanted)
        return 0;
    int result = read_input("-", &bytes, err);
    if (result == 0 && json_object_set_new(body, "stdin", as_base64(&bytes)) < 0)
        result = brig_fail_nomem(err);
    return result;
}

static int add_text(json_t *body, const char *name, const char *text, struct brig_error *err)
{
    if (!text || json_object_set_new(body, name, json_string(text)) == 0)
        return 0;
    return brig_fail(err, BRIG_E_INVALID, 0, "%s '%s' is not UTF-8", name, str_shown(text).text);
}

static int add_priority(const struct request *request, json_t *body, struct brig_error *err)
{
    if (!request->priority)
        return 0;
    char *end = NULL;
    long priority = strtol(request->priority, &end, 10);
    if (end == request->priority || *end)
        return brig_fail(err, BRIG_E_INVALID, 0, "--priority '%s' is not a number from -10 to 10",
                         str_shown(request->priority).text);
    json_t *number = json_integer(priority);
    return json_object_set_new(body, "priority", number) < 0 ? brig_fail_nomem(err) : 0;
}

static int add_callback(const struct request *request, json_t *body, struct brig_error *err)
{
    if (!request->callback)
        return 0;
    json_t *callback = json_object();
    int result = json_object_set_new(body, "callback", callback) < 0
                     ? brig_fail_nomem(err)
                     : add_text(callback, "url", request->callback, err);
    return result < 0 ? result : add_text(callback, "secret", request->secret, err);
}

static int fill(const struct request *request, json_t *body, struct brig_error *err)
{
    int (*const parts[])(const struct request *, json_t *,
                         struct brig_error *) = {add_code, add_memory, add_network,  add_stdin,
                                                 add_env,  add_files,  add_priority, add_callback};
    const struct {
        const char *name, *text;
    } texts[] = {{"language", request->language},
                 {"timeout", request->timeout},
                 {"work_dir", request->work_dir}};
    int result = 0;
    for (size_t i = 0; result == 0 && i < ARRAY_LENGTH(texts); i++)
        result = add_text(body, texts[i].name, texts[i].text, err);
    for (size_t i = 0; result == 0 && i < ARRAY_LENGTH(parts); i++)
        result = parts[i](request, body, err);
    if (result == 0)
        result = add_texts(body, "args", &request->args, err);
    return result == 0 ? add_texts(body, "return_files", &request->returns, err) : result;
}

int request_body(const struct request *request, char **ret_text, struct brig_error *err)
{
    json_t *body = json_object();
    int result = body ? fill(request, body, err) : brig_fail_nomem(err);
    if (result == 0) {
        *ret_text = json_dumps(body, JSON_COMPACT);
        if (!*ret_text)
            result = brig_fail_nomem(err);
    }
    json_decref(body);
    return result;
}
