/* SPDX-License-Identifier: MIT */
/* Whether a request may be: the front has looked at it, and the front may be anybody's by now. */
#include "server/warden/jail_check.h"

#include <ctype.h>
#include <string.h>

#include "base/error.h"
#include "base/own.h"
#include "base/str.h"
#include "server/config.h"
#include "server/warden/jail.h"

uint64_t jail_limit(const struct server_config *config, const struct runtime *runtime,
                    const struct execution_request *request, enum execution_limit limit)
{
    return request->limits[limit] ? request->limits[limit] : runtime_limit(runtime, config, limit);
}

uint64_t jail_timeout_ms(const struct server_config *config, const struct runtime *runtime,
                         const struct execution_request *request)
{
    return request->timeout_ms ? request->timeout_ms : runtime_timeout_ms(runtime, config);
}

const char *jail_file_name(const struct runtime *runtime)
{
    return runtime->file_name ? runtime->file_name : "code";
}

static int check_limits(const struct server_config *config, const struct runtime *runtime,
                        const struct execution_request *request, struct brig_error *err)
{
    static const char *const names[EXECUTION_LIMITS_] = {
        [EXECUTION_MEMORY_MB] = "memory_mb",
        [EXECUTION_PIDS] = "pids_limit",
        [EXECUTION_DISK_MB] = "disk_mb",
        [EXECUTION_CPU_PERCENT] = "cpu_percent",
    };
    for (int i = 0; i < EXECUTION_LIMITS_; i++) {
        uint64_t most = runtime_max_limit(runtime, config, (enum execution_limit)i);
        if (request->limits[i] > most)
            return brig_fail(err, BRIG_E_INVALID, 0, "limits.%s is %llu: at most %llu for %s",
                             names[i], (unsigned long long)request->limits[i],
                             (unsigned long long)most, runtime->name);
    }
    uint64_t most = runtime_max_timeout_ms(runtime, config);
    if (request->timeout_ms > most)
        return brig_fail(err, BRIG_E_INVALID, 0, "timeout is %llu ms: at most %llu ms for %s",
                         (unsigned long long)request->timeout_ms, (unsigned long long)most,
                         runtime->name);
    return 0;
}

bool warden_allow_is_plain(const char *rule)
{
    const char *name = str_starts_with(rule, "*.") ? rule + 2 : rule;
    size_t length = strcspn(name, ":");
    const char *port = name[length] ? name + length + 1 : NULL;
    bool dotted = false, lettered = false;
    if (length == 0 || length > 253 || (port && (!*port || strlen(port) > 5)))
        return false;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)name[i];
        if (!isalnum(c) && c != '-' && c != '.')
            return false;
        dotted = dotted || c == '.';
    }
    /* No name of the public internet ends in a number; an address does, in whatever notation. */
    for (size_t i = length; i-- > 0 && name[i] != '.';)
        lettered = lettered || isalpha((unsigned char)name[i]);
    bool hexadecimal = strncasecmp(name, "0x", 2) == 0;
    return dotted && lettered && !hexadecimal &&
           (!port || strspn(port, "0123456789") == strlen(port));
}

static int check_network(const struct server_config *config, const struct runtime *runtime,
                         const struct execution_request *request, struct brig_error *err)
{
    if (!request->network)
        return 0;
    for (size_t i = 0; i < request->allow_count; i++)
        if (!warden_allow_is_plain(request->allow[i]))
            return brig_fail(
                err, BRIG_E_INVALID, 0,
                "permissions.network.allow '%s' is no name: NAME or *.NAME, with :PORT "
                "if it is another than 443 or 80",
                str_shown(request->allow[i]).text);
    if (request->allow_count == 0 && !config->sandbox.allow_network)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "permissions.network.enabled without a list is not permitted on this "
                         "server: name the destinations in permissions.network.allow");
    if (request->allow_count > 0 && runtime->agent && !config->sandbox.allow_network)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "permissions.network.allow: %s reaches its own destinations alone on this "
                         "server",
                         runtime->name);
    return 0;
}

static int check_names(const struct runtime *runtime, const struct execution_request *request,
                       struct brig_error *err)
{
    for (size_t i = 0; i < request->env_count; i++)
        if (!runtime_takes_variable(request->env[i].name))
            return brig_fail(err, BRIG_E_INVALID, 0, "env '%s' cannot be set by a request",
                             str_shown(request->env[i].name).text);
    for (size_t i = 0; i < request->file_count; i++) {
        const char *name = request->files[i].name;
        if (!execution_file_name_is_valid(name))
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "files '%s' is no relative name without '.' and '..'",
                             str_shown(name).text);
        if (runtime->input == RUNTIME_FILE && strcmp(name, jail_file_name(runtime)) == 0)
            return brig_fail(err, BRIG_E_INVALID, 0, "files '%s' is where the code is", name);
    }
    return 0;
}

static int check_workdir(const struct runtime *runtime, const struct execution_request *request,
                         struct brig_error *err)
{
    if (!request->work_dir)
        return 0;
    if (!runtime->agent)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "work_dir is for agents: send %s its files in `files`", runtime->name);
    if (request->file_count > 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "files and work_dir exclude each other");
    return 0;
}

int warden_jail_check(const struct jail_ground *ground, const struct runtime *runtime,
                      const struct execution_request *request, struct brig_error *err)
{
    char reason[RUNTIME_REASON_MAX];
    int result = check_limits(ground->config, runtime, request, err);
    if (result == 0)
        result = check_network(ground->config, runtime, request, err);
    if (result == 0)
        result = check_names(runtime, request, err);
    if (result == 0)
        result = check_workdir(runtime, request, err);
    if (result < 0)
        return result;
    if (request->code.length > EXECUTION_CODE_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "code is %zu bytes: at most %zu",
                         request->code.length, EXECUTION_CODE_MAX);
    if (runtime->input == RUNTIME_STDIN && request->stdin_bytes.length > 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "stdin: %s reads the code there", runtime->name);
    if (!runtime_is_available(runtime, reason))
        return brig_fail(err, BRIG_E_NOT_FOUND, 0, "%s is not available: %s", runtime->name,
                         reason);
    return 0;
}
