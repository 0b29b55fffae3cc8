/* SPDX-License-Identifier: MIT */
/* What the parts of the addon share: reading JavaScript's arguments, and throwing what libbrig says. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <node_api.h>

#include <brig/brig.h>

#define ARGS_MAX 10

/* The arguments of one call. Memory that readers allocate is released by args_done(). */
struct args {
    napi_env env;
    size_t count;
    napi_value values[ARGS_MAX];
    bool failed; /* an exception is pending */
    void **owned;
    size_t owned_count;
};

/* Values left out are undefined. */
void args_read(struct args *args, napi_env env, napi_callback_info info);
void args_done(struct args *args);

/* Readers. Those of pointers return memory that lives until args_done(). On failure they throw, set
 * args->failed and return 0 or NULL; a text that is null or undefined is NULL without a failure. */
const char *args_text(struct args *args, napi_value value);
const char *const *args_texts(struct args *args, napi_value value);
double args_number(struct args *args, napi_value value);
uint64_t args_uint64(struct args *args, napi_value value);
const void *args_bytes(struct args *args, napi_value value, size_t *ret_length);
napi_value args_member(struct args *args, napi_value object, const char *name);
bool args_is_null(struct args *args, napi_value value);
/* An external that was made with this tag. */
void *args_external(struct args *args, napi_value value, const napi_type_tag *tag);

/* An external with a tag; NULL with an exception pending if there can be none. */
napi_value make_external(napi_env env, void *data, const napi_type_tag *tag, napi_finalize free);

/* A value of the library as one of JavaScript's. */
napi_value make_undefined(napi_env env);
napi_value make_number(napi_env env, double number);
/* Frees the text. */
napi_value make_text(napi_env env, char *text);
/* An Error with `brigCode` and `sysErrno`; index.js makes one of its classes of it. */
napi_value make_error(napi_env env, const struct brig_error *err);
/* Throws it if the code is negative; whether it did. */
bool throws(struct args *args, int code, const struct brig_error *err);

struct function {
    const char *name;
    napi_callback callback;
};
void define(napi_env env, napi_value exports, const struct function *functions, size_t count);
