/* SPDX-License-Identifier: MIT */
/* A function for Node to end itself with: loaded by park_node.js. Node's own ends the threads one by one and
 * takes the engine apart first, for a millisecond, and the process is gone after that all the same. It has no
 * libc, so that it can be loaded into whatever Node is configured. */
#include <stdbool.h>
#include <stddef.h>

#include "jail/sys.h"

/* Of node_api.h, which need not be installed. */
typedef struct napi_env_ *napi_env;
typedef struct napi_value_ *napi_value;
typedef struct napi_callback_info_ *napi_callback_info;
typedef napi_value napi_callback(napi_env env, napi_callback_info info);
enum { NAPI_OK = 0 };
extern int napi_create_function(napi_env env, const char *name, size_t length,
                                napi_callback *function, void *data, napi_value *result);

static napi_value leave(napi_env env, napi_callback_info info)
{
    (void)env;
    (void)info;
    (void)SYS(exit_group, 0);
    return NULL; /* never */
}

#define EXPORTED __attribute__((visibility("default")))

napi_value napi_register_module_v1(napi_env env, napi_value exports);

EXPORTED napi_value napi_register_module_v1(napi_env env, napi_value exports)
{
    napi_value function;
    bool made = napi_create_function(env, "", 0, leave, NULL, &function) == NAPI_OK;
    return made ? function : exports;
}
