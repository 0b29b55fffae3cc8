/* SPDX-License-Identifier: MIT */
/* Checks requests. The http process calls this to report the wrong field. The executor calls it
 * again, because the http process may be compromised. */
#include "server/executor/jail_check.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "server/config/config.h"
#include "server/environment.h"
#include "server/executor/jail.h"

uint64_t jail_limit(const struct runtime *runtime, const struct execution_request *request,
                    enum execution_limit limit)
{
    return request->limits[limit] ? request->limits[limit] : runtime->limits[limit];
}

struct execution_stage_limits jail_stage_limits(const struct runtime *runtime,
                                                const struct execution_request *request,
                                                enum execution_stage stage)
{
    struct execution_stage_limits limits = request->compile;
    if (stage == STAGE_RUN)
        limits = (struct execution_stage_limits){
            .timeout_ms = request->timeout_ms,
            .cpu_ms = request->cpu_ms,
            .memory_mb = request->limits[EXECUTION_MEMORY_MB],
            .output_bytes = request->output_bytes,
        };
    if (limits.timeout_ms == 0)
        limits.timeout_ms = runtime->timeout_ms;
    if (limits.memory_mb == 0)
        limits.memory_mb = runtime->limits[EXECUTION_MEMORY_MB];
    return limits;
}

#define MEBIBYTE ((uint64_t)1 << 20)
#define PAGE 4096 /* space in disk_mb for a file of one byte */

/* The arguments of a check. */
struct asked {
    const struct server_config *config;
    const struct runtime *runtime;
    const struct execution_request *request;
    const char **field; /* a check may set a more precise field */
    struct brig_error *err;
};

/* ---- limits ---- */

static int check_limits(const struct asked *asked)
{
    static const struct {
        const char *name;
        uint64_t least;
    } rows[EXECUTION_LIMITS_] = {
        [EXECUTION_MEMORY_MB] = {"limits.memory_mb", EXECUTION_MEMORY_MB_MIN},
        [EXECUTION_PIDS] = {"limits.pids_limit", 1},
        [EXECUTION_DISK_MB] = {"limits.disk_mb", 1},
        [EXECUTION_CPU_PERCENT] = {"limits.cpu_percent", 1},
    };
    for (int i = 0; i < EXECUTION_LIMITS_; i++) {
        uint64_t value = asked->request->limits[i];
        uint64_t most = asked->runtime->max_limits[i];
        if (value == 0 || (value >= rows[i].least && value <= most))
            continue;
        *asked->field = rows[i].name;
        return brig_fail(asked->err, BRIG_E_INVALID, 0,
                         "%s is %llu, %llu to %llu are allowed for %s", rows[i].name,
                         (unsigned long long)value, (unsigned long long)rows[i].least,
                         (unsigned long long)most, asked->runtime->name);
    }
    return 0;
}

static int check_time(const struct asked *asked, const char *name, uint64_t value_ms)
{
    uint64_t most = asked->runtime->max_timeout_ms;
    if (value_ms <= most)
        return 0;
    *asked->field = name;
    return brig_fail(asked->err, BRIG_E_INVALID, 0,
                     "%s is %.12gs, at most %.12gs are allowed for %s", name,
                     (double)value_ms / 1000, (double)most / 1000, asked->runtime->name);
}

static int check_timeout(const struct asked *asked)
{
    return check_time(asked, "timeout", asked->request->timeout_ms);
}

static int check_stages(const struct asked *asked)
{
    const struct execution_request *request = asked->request;
    uint64_t memory_mb = request->compile.memory_mb;
    uint64_t most_mb = asked->runtime->max_limits[EXECUTION_MEMORY_MB];
    int result = check_time(asked, "run.cpu_time", request->cpu_ms);
    if (result == 0)
        result = check_time(asked, "compile.timeout", request->compile.timeout_ms);
    if (result == 0)
        result = check_time(asked, "compile.cpu_time", request->compile.cpu_ms);
    if (result < 0 || memory_mb == 0 ||
        (memory_mb >= EXECUTION_MEMORY_MB_MIN && memory_mb <= most_mb))
        return result;
    *asked->field = "compile.memory_mb";
    return brig_fail(asked->err, BRIG_E_INVALID, 0,
                     "compile.memory_mb is %llu, %d to %llu are allowed for %s",
                     (unsigned long long)memory_mb, EXECUTION_MEMORY_MB_MIN,
                     (unsigned long long)most_mb, asked->runtime->name);
}

/* ---- the network ---- */

/* The length without port and without the trailing dot of the root domain. */
static size_t name_length(const char *name)
{
    size_t length = strcspn(name, ":");
    return length > 1 && name[length - 1] == '.' ? length - 1 : length;
}

bool executor_allow_is_plain(const char *rule)
{
    const char *name = str_starts_with(rule, "*.") ? rule + 2 : rule;
    size_t length = name_length(name), all = strcspn(name, ":");
    const char *port = name[all] ? name + all + 1 : NULL;
    bool dotted = false, lettered = false;
    if (length == 0 || length > 253 || (port && (!*port || strlen(port) > 5)))
        return false;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)name[i];
        if (!isalnum(c) && c != '-' && c != '_' && (c != '.' || name[i + 1] == '.'))
            return false;
        dotted = dotted || c == '.';
    }
    /* No public host name ends in a numeric label; addresses do, in any notation. */
    for (size_t i = length; i-- > 0 && name[i] != '.';)
        lettered = lettered || isalpha((unsigned char)name[i]);
    bool hexadecimal = strncasecmp(name, "0x", 2) == 0;
    return dotted && lettered && !hexadecimal &&
           (!port || strspn(port, "0123456789") == strlen(port));
}

/* "*" is allowed if the operator allows the network without a list. */
static bool is_permitted_star(const struct asked *asked, size_t which)
{
    return asked->config->sandbox.allow_network && strcmp(asked->request->allow[which], "*") == 0;
}

static int check_allow(const struct asked *asked)
{
    const struct execution_request *request = asked->request;
    for (size_t i = 0; i < request->allow_count; i++)
        if (!executor_allow_is_plain(request->allow[i]) && !is_permitted_star(asked, i))
            return brig_fail(asked->err, BRIG_E_INVALID, 0,
                             "'%s' is not a host name: write NAME or *.NAME, with a dot in it, and "
                             ":PORT for ports other than 443 and 80",
                             str_shown(request->allow[i]).text);
    return 0;
}

/* An agent's runtime has destinations that a request need not ask for. */
static int check_network(const struct asked *asked)
{
    const struct execution_request *request = asked->request;
    if (asked->config->sandbox.allow_network)
        return 0;
    if (request->allow_count > 0 && asked->runtime->agent)
        return brig_fail(asked->err, BRIG_E_INVALID, 0,
                         "'%s' is not permitted: %s reaches only its own destinations on this "
                         "server",
                         str_shown(request->allow[0]).text, asked->runtime->name);
    if (!request->network || request->allow_count > 0)
        return 0;
    if (asked->runtime->agent)
        return brig_fail(asked->err, BRIG_E_INVALID, 0,
                         "the whole network is not permitted: %s reaches its own destinations "
                         "without asking; leave out permissions.network",
                         asked->runtime->name);
    return brig_fail(asked->err, BRIG_E_INVALID, 0,
                     "the whole network is not permitted: name hosts in allow, or let the operator "
                     "set sandbox.allow_network");
}

/* A program that runs an image has no door to the network. */
static int check_backend(const struct asked *asked)
{
    const struct runtime *runtime = asked->runtime;
    if (runtime->backend == BACKEND_BRIG || !asked->request->network)
        return 0;
    return brig_fail(asked->err, BRIG_E_INVALID, 0,
                     "the network is not permitted: %s is run by %s. Leave out "
                     "permissions.network, or use a runtime with backend: brig",
                     runtime->name, runtime_backend_names[runtime->backend]);
}

/* ---- arguments and variables ---- */

static int check_env(const struct asked *asked)
{
    const struct execution_request *request = asked->request;
    for (size_t i = 0; i < request->env_count; i++)
        if (!environment_takes(request->env[i].name))
            return brig_fail(asked->err, BRIG_E_INVALID, 0, "env '%s' cannot be set by a request",
                             str_shown(request->env[i].name).text);
    return 0;
}

static int check_words(const struct asked *asked)
{
    const struct execution_request *request = asked->request;
    size_t bytes = 0;
    for (size_t i = 0; i < request->arg_count; i++)
        bytes += strlen(request->args[i]) + 1;
    for (size_t i = 0; i < request->compile_arg_count; i++)
        bytes += strlen(request->compile_args[i]) + 1;
    for (size_t i = 0; i < request->env_count; i++)
        bytes += strlen(request->env[i].name) + strlen(request->env[i].value) + 2;
    if (bytes <= EXECUTION_WORDS_MAX)
        return 0;
    return brig_fail(asked->err, BRIG_E_INVALID, 0,
                     "args and env have %zu bytes together, at most %zu are allowed: send long "
                     "values in files or stdin",
                     bytes, EXECUTION_WORDS_MAX);
}

/* ---- files ---- */

/* Returns whether `other` would be below `name`. */
static bool is_parent(const char *name, const char *other)
{
    size_t length = strlen(name);
    return strncmp(name, other, length) == 0 && other[length] == '/';
}

static int check_against(const struct asked *asked, const char *name, const char *other)
{
    if (!is_parent(name, other) && !is_parent(other, name))
        return 0;
    return brig_fail(asked->err, BRIG_E_INVALID, 0,
                     "files '%s' and '%s' cannot both be: one would be a directory",
                     str_shown(name).text, str_shown(other).text);
}

static int check_file(const struct asked *asked, size_t which)
{
    const struct execution_file *files = asked->request->files;
    const char *name = files[which].name;
    const char *main = runtime_file_name(asked->runtime, asked->request);
    bool has_code = asked->runtime->input == RUNTIME_FILE;
    if (!execution_file_name_is_valid(name))
        return brig_fail(asked->err, BRIG_E_INVALID, 0,
                         "files '%s' is not a relative path without '.' and '..'",
                         str_shown(name).text);
    if (has_code && strcmp(name, main) == 0)
        return brig_fail(asked->err, BRIG_E_INVALID, 0, "files '%s' is where the code is", name);
    int result = has_code ? check_against(asked, name, main) : 0;
    for (size_t i = 0; result == 0 && i < which; i++)
        result = check_against(asked, name, files[i].name);
    return result;
}

static uint64_t pages(const struct execution_bytes *bytes)
{
    return (bytes->length + PAGE - 1) / PAGE;
}

static int check_room(const struct asked *asked)
{
    const struct execution_request *request = asked->request;
    uint64_t disk_mb = jail_limit(asked->runtime, request, EXECUTION_DISK_MB);
    uint64_t used = asked->runtime->input == RUNTIME_FILE ? pages(&request->code) : 0;
    for (size_t i = 0; i < request->file_count; i++)
        used += pages(&request->files[i].content);
    if (used * PAGE <= disk_mb * MEBIBYTE)
        return 0;
    return brig_fail(asked->err, BRIG_E_INVALID, 0,
                     "files and code take %llu bytes, and limits.disk_mb is %llu",
                     (unsigned long long)used * PAGE, (unsigned long long)disk_mb);
}

static int check_files(const struct asked *asked)
{
    const char *main = runtime_file_name(asked->runtime, asked->request);
    int result = 0;
    if (!execution_file_name_is_valid(main)) {
        *asked->field = "main";
        return brig_fail(asked->err, BRIG_E_INVALID, 0,
                         "main '%s' is not a relative path without '.' and '..'",
                         str_shown(main).text);
    }
    for (size_t i = 0; result == 0 && i < asked->request->file_count; i++)
        result = check_file(asked, i);
    return result == 0 ? check_room(asked) : result;
}

static int check_workdir(const struct asked *asked)
{
    const struct runtime *runtime = asked->runtime;
    const char *path = asked->request->work_dir;
    if (!path)
        return 0;
    if (!runtime->agent)
        return brig_fail(asked->err, BRIG_E_INVALID, 0,
                         "work_dir '%s': that is for agents; send %s its files in `files`",
                         str_shown(path).text, runtime->name);
    if (runtime->input == RUNTIME_FILE)
        return brig_fail(asked->err, BRIG_E_INVALID, 0,
                         "work_dir '%s': %s has its code in a file there", str_shown(path).text,
                         runtime->name);
    if (asked->request->file_count > 0)
        return brig_fail(asked->err, BRIG_E_INVALID, 0, "files and work_dir exclude each other");
    return 0;
}

/* ---- input ---- */

static int check_code(const struct asked *asked)
{
    size_t length = asked->request->code.length;
    if (length <= EXECUTION_CODE_MAX)
        return 0;
    return brig_fail(asked->err, BRIG_E_INVALID, 0, "code is %zu bytes, at most %zu are allowed",
                     length, EXECUTION_CODE_MAX);
}

static int check_stdin(const struct asked *asked)
{
    if (asked->runtime->input != RUNTIME_STDIN || asked->request->stdin_bytes.length == 0)
        return 0;
    return brig_fail(asked->err, BRIG_E_INVALID, 0, "stdin: %s reads the code there",
                     asked->runtime->name);
}

/* ---- the whole request ---- */

int jail_check_request(const struct server_config *config, const struct runtime *runtime,
                       const struct execution_request *request, const char **ret_field,
                       struct brig_error *err)
{
    static const struct {
        const char *field;
        int (*check)(const struct asked *asked);
    } rows[] = {
        {"limits", check_limits},
        {"timeout", check_timeout},
        {"compile", check_stages},
        {"permissions.network.allow", check_allow},
        {"permissions.network", check_network},
        {"permissions.network", check_backend},
        {"env", check_env},
        {"args", check_words},
        {"work_dir", check_workdir},
        {"files", check_files},
        {"code", check_code},
        {"stdin", check_stdin},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        const char *field = rows[i].field;
        const struct asked asked = {config, runtime, request, &field, err};
        int result = rows[i].check(&asked);
        if (result == 0)
            continue;
        *ret_field = field;
        return result;
    }
    return 0;
}

int executor_jail_check(const struct jail_ground *ground, const struct runtime *runtime,
                        const struct execution_request *request, const char **ret_field,
                        struct brig_error *err)
{
    char reason[RUNTIME_REASON_MAX];
    int result = jail_check_request(ground->config, runtime, request, ret_field, err);
    if (result < 0)
        return result;
    if (runtime_is_available(runtime, reason))
        return 0;
    *ret_field = "language";
    return brig_fail(err, BRIG_E_NOT_FOUND, 0, "%s is not available: %s", runtime->name, reason);
}

/* ---- work_dir ---- */

/* The host directory that a request wants to use is opened once, below a root that the operator
 * configured. Checks are made on the opened directory. */

static const char *const refused_trees[] = {"/etc", "/var",  "/root", "/proc", "/sys",
                                            "/dev", "/boot", "/run",  "/usr"};
static const char *const refused_names[] = {".ssh", ".aws", ".gnupg", ".claude"};
/* A directory with one of these entries is a home directory. */
static const char *const private_entries[] = {".ssh", ".aws", ".gnupg",
                                              ".claude/.credentials.json"};

bool executor_workdir_is_refused(const char *path)
{
    if (strcmp(path, "/") == 0)
        return true;
    for (size_t i = 0; i < ARRAY_LENGTH(refused_trees); i++)
        if (path_is_beneath(refused_trees[i], path))
            return true;
    for (const char *part = path; part; part = strchr(part, '/')) {
        part += *part == '/';
        for (size_t i = 0; i < ARRAY_LENGTH(refused_names); i++)
            if (strncmp(part, refused_names[i], strlen(refused_names[i])) == 0 &&
                strchr("/", part[strlen(refused_names[i])]))
                return true;
    }
    return false;
}

/* The kernel's name for the opened directory. */
static int name_of(int fd, char path[PATH_LENGTH_MAX + 1], struct brig_error *err)
{
    return path_of_fd(fd, path)
               ? 0
               : brig_fail(err, BRIG_E_SYSTEM, errno, "cannot find out what work_dir is");
}

static int judge(int fd, const char *wanted, struct brig_error *err)
{
    char path[PATH_LENGTH_MAX + 1];
    int result = name_of(fd, path, err);
    if (result < 0)
        return result;
    if (executor_workdir_is_refused(path))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "work_dir '%s' is a directory that is never given "
                         "to a run",
                         str_shown(wanted).text);
    for (size_t i = 0; i < ARRAY_LENGTH(private_entries); i++)
        if (faccessat(fd, private_entries[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "work_dir '%s' has %s in it, which is never given to a run: name a "
                             "directory without",
                             str_shown(wanted).text, private_entries[i]);
    return 0;
}

/* Opens the path below one root. Returns 1 and the fd, or 0 if the path is not below it. */
static int open_below(const char *root, const char *path, int *ret_fd, struct brig_error *err)
{
    autofree char *normal = NULL;
    if (path_normalise(root, 0, &normal, NULL) < 0 || !path_is_beneath(normal, path))
        return 0;
    autoclose int top = open(normal, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (top < 0)
        return brig_fail(err, BRIG_E_INVALID, errno, "the root '%s' of work_dir", normal);
    const char *rest = path + strlen(normal);
    while (*rest == '/')
        rest++;
    int result = path_open_beneath(top, *rest ? rest : ".", O_PATH | O_DIRECTORY, 0, ret_fd, err);
    if (result < 0)
        return brig_fail(err, BRIG_E_INVALID, err ? err->sys_errno : 0,
                         "work_dir '%s' cannot be opened below '%s'", str_shown(path).text, normal);
    return 1;
}

int executor_open_workdir(const char *path, const struct config_list *roots, int *ret_fd,
                          struct brig_error *err)
{
    autofree char *normal = NULL;
    autoclose int fd = -1;
    int result = path_normalise(path, 0, &normal, err);
    if (result < 0)
        return brig_wrap(err, BRIG_E_INVALID, "work_dir");
    for (size_t i = 0; i < roots->count; i++) {
        result = open_below(roots->items[i], normal, &fd, err);
        if (result < 0 || (result > 0 && (result = judge(fd, normal, err)) < 0))
            return result;
        if (fd < 0)
            continue;
        *ret_fd = take_fd(&fd);
        return 0;
    }
    return brig_fail(
        err, BRIG_E_INVALID, 0,
        "work_dir '%s' is not below a directory of sandbox.allowed_workdir_roots, or of "
        "the key's own workdir_roots (%s)",
        str_shown(normal).text, roots->count ? "see --print-config" : "there is none");
}

int jail_check_sandbox(const struct runtime *runtime, struct brig_error *err)
{
    if (runtime->agent)
        return brig_fail(err, BRIG_E_INVALID, 0, "%s is an agent, which cannot be a sandbox",
                         runtime->name);
    if (runtime->backend != BACKEND_BRIG)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "%s is run by %s, which cannot be a sandbox: use a runtime with backend: "
                         "brig",
                         runtime->name, runtime_backend_names[runtime->backend]);
    return 0;
}

bool jail_home_is_valid(const char *home)
{
    const char *name = home + strlen(JAIL_HOMES);
    return str_starts_with(home, JAIL_HOMES) && *name >= 'a' && *name <= 'z' &&
           strlen(name) <= 32 && !name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-")];
}

bool jail_fits_late(const struct runtime *runtime, const struct execution_request *request)
{
    const char *name = runtime->file_name ? runtime->file_name : "code";
    for (int i = 0; i < EXECUTION_LIMITS_; i++)
        if (request->limits[i])
            return false;
    return request->arg_count == 0 && request->env_count == 0 && request->file_count == 0 &&
           !request->network && !request->work_dir && request->cpu_ms == 0 &&
           request->stack_kb == 0 && request->file_kb == 0 && !request->interactive &&
           strcmp(runtime_file_name(runtime, request), name) == 0;
}
