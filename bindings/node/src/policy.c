/* SPDX-License-Identifier: MIT */
/* Policies: one function of the addon for each brig_policy_*() of libbrig, with the same arguments. */
#include "policy.h"

static const napi_type_tag POLICY_TAG = {0x6272696720706f6cULL, 0x6963790000000001ULL};

struct brig_policy *policy_of(struct args *args, napi_value value)
{
    return args_external(args, value, &POLICY_TAG);
}

static void finalize(napi_env env, void *data, void *hint)
{
    (void)env, (void)hint;
    brig_policy_free(data);
}

static napi_value wrap(napi_env env, struct brig_policy *policy, const char *message)
{
    if (!policy) {
        (void)napi_throw_error(env, NULL, message);
        return NULL;
    }
    napi_value value = make_external(env, policy, &POLICY_TAG, finalize);
    if (!value)
        brig_policy_free(policy);
    return value;
}

/* Each function below: read the arguments, call, throw or return. */
#define BEGIN                                                                                      \
    struct args args;                                                                              \
    struct brig_error err = {0};                                                                   \
    args_read(&args, env, info);                                                                   \
    struct brig_policy *policy = policy_of(&args, args.values[0])
#define END(call)                                                                                  \
    if (!args.failed)                                                                              \
        (void)throws(&args, (call), &err);                                                         \
    args_done(&args);                                                                              \
    return NULL

#define TEXT_SETTER(name)                                                                          \
    static napi_value name(napi_env env, napi_callback_info info)                                  \
    {                                                                                              \
        BEGIN;                                                                                     \
        const char *text = args_text(&args, args.values[1]);                                       \
        END(brig_policy_##name(policy, text, &err));                                               \
    }
#define NUMBER_SETTER(name, type)                                                                  \
    static napi_value name(napi_env env, napi_callback_info info)                                  \
    {                                                                                              \
        BEGIN;                                                                                     \
        type number = (type)args_number(&args, args.values[1]);                                    \
        END(brig_policy_##name(policy, number, &err));                                             \
    }

TEXT_SETTER(origin)
TEXT_SETTER(keep)
TEXT_SETTER(allow)
TEXT_SETTER(deny)
TEXT_SETTER(publish)
TEXT_SETTER(broker)
TEXT_SETTER(unsetenv)
TEXT_SETTER(workdir)
TEXT_SETTER(hostname)
NUMBER_SETTER(network, enum brig_network)
NUMBER_SETTER(proxy_env, int)
NUMBER_SETTER(seccomp, enum brig_seccomp)
NUMBER_SETTER(host_env, int)
NUMBER_SETTER(terminal, enum brig_terminal)
NUMBER_SETTER(allow_nested, int)
NUMBER_SETTER(unix_sockets, int)
NUMBER_SETTER(trace, int)
NUMBER_SETTER(on_unsupported, enum brig_on_unsupported)
NUMBER_SETTER(disable, unsigned)

static napi_value new_policy(napi_env env, napi_callback_info info)
{
    struct args args;
    args_read(&args, env, info);
    int mode = (int)args_number(&args, args.values[0]);
    args_done(&args);
    return args.failed ? NULL
                       : wrap(env, brig_policy_new((enum brig_mode)mode), "cannot make a policy");
}

static napi_value copy(napi_env env, napi_callback_info info)
{
    struct args args;
    args_read(&args, env, info);
    struct brig_policy *policy = policy_of(&args, args.values[0]);
    args_done(&args);
    return args.failed ? NULL : wrap(env, brig_policy_copy(policy), "cannot copy a policy");
}

static napi_value view(napi_env env, napi_callback_info info)
{
    BEGIN;
    enum brig_view which = (enum brig_view)args_number(&args, args.values[1]);
    const char *root = args_text(&args, args.values[2]);
    END(brig_policy_view(policy, which, root, &err));
}

static napi_value grant(napi_env env, napi_callback_info info)
{
    BEGIN;
    enum brig_access access = (enum brig_access)args_number(&args, args.values[1]);
    const char *source = args_text(&args, args.values[2]);
    const char *dest = args_text(&args, args.values[3]);
    unsigned flags = (unsigned)args_number(&args, args.values[4]);
    END(brig_policy_grant(policy, access, source, dest, flags, &err));
}

/* How many rules were taken back. */
static napi_value ungrant(napi_env env, napi_callback_info info)
{
    BEGIN;
    size_t removed = 0;
    const char *dest = args_text(&args, args.values[1]);
    if (!args.failed)
        (void)throws(&args, brig_policy_ungrant(policy, dest, &removed, &err), &err);
    args_done(&args);
    return args.failed ? NULL : make_number(env, (double)removed);
}

static napi_value private_(napi_env env, napi_callback_info info)
{
    BEGIN;
    enum brig_access access = (enum brig_access)args_number(&args, args.values[1]);
    const char *dest = args_text(&args, args.values[2]);
    END(brig_policy_private(policy, access, dest, &err));
}

static napi_value file(napi_env env, napi_callback_info info)
{
    BEGIN;
    size_t length = 0;
    const char *dest = args_text(&args, args.values[1]);
    const void *bytes = args_bytes(&args, args.values[2], &length);
    mode_t mode = (mode_t)args_uint64(&args, args.values[3]);
    END(brig_policy_file(policy, dest, bytes, length, mode, &err));
}

static uint32_t id_member(struct args *args, const char *name)
{
    napi_value value = args_member(args, args->values[1], name);
    return args->failed || args_is_null(args, value) ? BRIG_ID_CHOOSE
                                                     : (uint32_t)args_uint64(args, value);
}

static const char *text_member(struct args *args, const char *name)
{
    return args_text(args, args_member(args, args->values[1], name));
}

static const char *const *texts_member(struct args *args, const char *name)
{
    return args_texts(args, args_member(args, args->values[1], name));
}

static napi_value identity(napi_env env, napi_callback_info info)
{
    BEGIN;
    struct brig_identity identity = BRIG_IDENTITY_INIT;
    identity.host_uid = id_member(&args, "hostUid");
    identity.host_gid = id_member(&args, "hostGid");
    identity.inside_uid = id_member(&args, "insideUid");
    identity.inside_gid = id_member(&args, "insideGid");
    identity.name = text_member(&args, "name");
    identity.home = text_member(&args, "home");
    identity.shell = text_member(&args, "shell");
    END(brig_policy_identity(policy, &identity, &err));
}

static napi_value net_proxy(napi_env env, napi_callback_info info)
{
    BEGIN;
    const char *proxy = args_text(&args, args.values[1]);
    const char *secret = args_text(&args, args.values[2]);
    const char *const *no_proxy = args_texts(&args, args.values[3]);
    END(brig_policy_net_proxy(policy, proxy, secret, no_proxy, &err));
}

static napi_value inject(napi_env env, napi_callback_info info)
{
    BEGIN;
    struct brig_inject inject = BRIG_INJECT_INIT;
    inject.name = text_member(&args, "name");
    inject.header = text_member(&args, "header");
    inject.value = text_member(&args, "value");
    inject.upstream = text_member(&args, "upstream");
    inject.variable = text_member(&args, "variable");
    inject.suffix = text_member(&args, "suffix");
    inject.ca = text_member(&args, "ca");
    inject.site = text_member(&args, "site");
    inject.methods = texts_member(&args, "methods");
    inject.paths = texts_member(&args, "paths");
    inject.strip = texts_member(&args, "strip");
    END(brig_policy_inject(policy, &inject, &err));
}

static napi_value limit(napi_env env, napi_callback_info info)
{
    BEGIN;
    enum brig_limit which = (enum brig_limit)args_number(&args, args.values[1]);
    uint64_t value = args_uint64(&args, args.values[2]);
    END(brig_policy_limit(policy, which, value, &err));
}

static napi_value setenv_(napi_env env, napi_callback_info info)
{
    BEGIN;
    const char *name = args_text(&args, args.values[1]);
    const char *value = args_text(&args, args.values[2]);
    END(brig_policy_setenv(policy, name, value, &err));
}

static napi_value explain(napi_env env, napi_callback_info info)
{
    BEGIN;
    char *text = NULL;
    int json = (int)args_number(&args, args.values[1]);
    if (!args.failed)
        (void)throws(&args, brig_policy_explain(policy, json, &text, &err), &err);
    args_done(&args);
    return args.failed ? NULL : make_text(env, text);
}

void policy_define(napi_env env, napi_value exports)
{
    static const struct function functions[] = {
        {"policyNew", new_policy},
        {"policyCopy", copy},
        {"policyOrigin", origin},
        {"policyView", view},
        {"policyGrant", grant},
        {"policyUngrant", ungrant},
        {"policyPrivate", private_},
        {"policyFile", file},
        {"policyKeep", keep},
        {"policyIdentity", identity},
        {"policyNetwork", network},
        {"policyAllow", allow},
        {"policyDeny", deny},
        {"policyPublish", publish},
        {"policyProxyEnv", proxy_env},
        {"policyNetProxy", net_proxy},
        {"policyBroker", broker},
        {"policyInject", inject},
        {"policySeccomp", seccomp},
        {"policyLimit", limit},
        {"policySetenv", setenv_},
        {"policyUnsetenv", unsetenv},
        {"policyHostEnv", host_env},
        {"policyTerminal", terminal},
        {"policyWorkdir", workdir},
        {"policyHostname", hostname},
        {"policyAllowNested", allow_nested},
        {"policyUnixSockets", unix_sockets},
        {"policyTrace", trace},
        {"policyOnUnsupported", on_unsupported},
        {"policyDisable", disable},
        {"policyExplain", explain},
    };
    define(env, exports, functions, sizeof functions / sizeof functions[0]);
}
