/* SPDX-License-Identifier: MIT */
/* The addon's entry, and what its parts share. Nothing here decides anything: index.js has the names,
 * defaults and classes, libbrig the rules. */
#include "addon.h"

#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "policy.h"

/* ---- arguments ---- */

void args_read(struct args *args, napi_env env, napi_callback_info info)
{
    *args = (struct args){.env = env, .count = ARGS_MAX};
    if (napi_get_cb_info(env, info, &args->count, args->values, NULL, NULL) != napi_ok)
        args->failed = true;
}

void args_done(struct args *args)
{
    for (size_t i = 0; i < args->owned_count; i++)
        free(args->owned[i]);
    free(args->owned);
}

/* Sets the first failure, and throws unless N-API did. */
static void refuse(struct args *args, const char *message)
{
    bool pending = false;
    args->failed = true;
    (void)napi_is_exception_pending(args->env, &pending);
    if (!pending)
        (void)napi_throw_type_error(args->env, "ERR_INVALID_ARG_TYPE", message);
}

static void *allocate(struct args *args, size_t size)
{
    void **more = realloc(args->owned, (args->owned_count + 1) * sizeof *more);
    if (more)
        args->owned = more;
    void *memory = more ? calloc(1, size) : NULL;
    if (memory)
        args->owned[args->owned_count++] = memory;
    else
        refuse(args, "out of memory");
    return memory;
}

bool args_is_null(struct args *args, napi_value value)
{
    napi_valuetype type = napi_undefined;
    (void)napi_typeof(args->env, value, &type);
    return type == napi_undefined || type == napi_null;
}

const char *args_text(struct args *args, napi_value value)
{
    size_t length = 0;
    if (args->failed || args_is_null(args, value))
        return NULL;
    if (napi_get_value_string_utf8(args->env, value, NULL, 0, &length) != napi_ok) {
        refuse(args, "a string is expected");
        return NULL;
    }
    char *text = allocate(args, length + 1);
    if (!text)
        return NULL;
    (void)napi_get_value_string_utf8(args->env, value, text, length + 1, &length);
    if (strlen(text) != length) {
        refuse(args, "a string has a NUL character in it");
        return NULL;
    }
    return text;
}

const char *const *args_texts(struct args *args, napi_value value)
{
    uint32_t count = 0;
    if (args->failed || args_is_null(args, value))
        return NULL;
    if (napi_get_array_length(args->env, value, &count) != napi_ok) {
        refuse(args, "an array of strings is expected");
        return NULL;
    }
    const char **texts = allocate(args, ((size_t)count + 1) * sizeof *texts);
    for (uint32_t i = 0; texts && i < count; i++) {
        napi_value element;
        if (napi_get_element(args->env, value, i, &element) != napi_ok ||
            !(texts[i] = args_text(args, element))) {
            refuse(args, "an array of strings is expected");
            return NULL;
        }
    }
    return texts;
}

double args_number(struct args *args, napi_value value)
{
    double number = 0;
    if (!args->failed && napi_get_value_double(args->env, value, &number) != napi_ok)
        refuse(args, "a number is expected");
    return args->failed ? 0 : number;
}

uint64_t args_uint64(struct args *args, napi_value value)
{
    double number = args_number(args, value);
    if (!args->failed && !(number >= 0 && number <= 9007199254740991.0))
        refuse(args, "a number from 0 to 2^53-1 is expected");
    return args->failed ? 0 : (uint64_t)number;
}

const void *args_bytes(struct args *args, napi_value value, size_t *ret_length)
{
    void *bytes = NULL;
    if (!args->failed && napi_get_buffer_info(args->env, value, &bytes, ret_length) != napi_ok)
        refuse(args, "a Buffer is expected");
    return args->failed ? NULL : bytes ? bytes : "";
}

napi_value args_member(struct args *args, napi_value object, const char *name)
{
    napi_value value = NULL;
    if (args->failed || napi_get_named_property(args->env, object, name, &value) != napi_ok) {
        refuse(args, "an object is expected");
        return make_undefined(args->env);
    }
    return value;
}

void *args_external(struct args *args, napi_value value, const napi_type_tag *tag)
{
    bool matches = false;
    void *data = NULL;
    if (args->failed)
        return NULL;
    if (napi_check_object_type_tag(args->env, value, tag, &matches) != napi_ok || !matches ||
        napi_unwrap(args->env, value, &data) != napi_ok)
        refuse(args, "this is not one of brig's objects");
    return data;
}

/* ---- values ---- */

/* A wrapped object, as externals can have tags only in newer versions of Node. */
napi_value make_external(napi_env env, void *data, const napi_type_tag *tag, napi_finalize free)
{
    napi_value object;
    if (napi_create_object(env, &object) != napi_ok ||
        napi_type_tag_object(env, object, tag) != napi_ok ||
        napi_wrap(env, object, data, free, NULL, NULL) != napi_ok) {
        (void)napi_throw_error(env, NULL, "out of memory");
        return NULL;
    }
    return object;
}

napi_value make_undefined(napi_env env)
{
    napi_value value = NULL;
    (void)napi_get_undefined(env, &value);
    return value;
}

napi_value make_number(napi_env env, double number)
{
    napi_value value = NULL;
    (void)napi_create_double(env, number, &value);
    return value;
}

napi_value make_text(napi_env env, char *text)
{
    napi_value value = NULL;
    (void)napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &value);
    brig_text_free(text);
    return value;
}

napi_value make_error(napi_env env, const struct brig_error *err)
{
    napi_value message, error = NULL;
    const char *text = err->message[0] ? err->message : "libbrig failed without a message";
    (void)napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &message);
    (void)napi_create_error(env, NULL, message, &error);
    (void)napi_set_named_property(env, error, "brigCode", make_number(env, err->code));
    (void)napi_set_named_property(env, error, "sysErrno", make_number(env, err->sys_errno));
    return error;
}

bool throws(struct args *args, int code, const struct brig_error *err)
{
    if (code >= 0)
        return false;
    args->failed = true;
    (void)napi_throw(args->env, make_error(args->env, err));
    return true;
}

/* ---- the module ---- */

void define(napi_env env, napi_value exports, const struct function *functions, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        napi_value function;
        if (napi_create_function(env, functions[i].name, NAPI_AUTO_LENGTH, functions[i].callback,
                                 NULL, &function) == napi_ok)
            (void)napi_set_named_property(env, exports, functions[i].name, function);
    }
}

static napi_value version(napi_env env, napi_callback_info info)
{
    (void)info;
    napi_value value = NULL;
    (void)napi_create_string_utf8(env, brig_version(), NAPI_AUTO_LENGTH, &value);
    return value;
}

NAPI_MODULE_INIT()
{
    static const struct function functions[] = {{"version", version}};
    define(env, exports, functions, sizeof functions / sizeof functions[0]);
    policy_define(env, exports);
    job_define(env, exports);
    return exports;
}
