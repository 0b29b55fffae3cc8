/* SPDX-License-Identifier: MIT */
/* Turns options into a policy by a table: one setter a row of options.h. */
#include "settings.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/parse.h"
#include "base/str.h"
#include "cli/options.h"
#include "cli/settings_parts.h"
#include "policy/policy.h"

#define PASS_FD_MIN 3
#define PASS_FD_NUMBER_MAX 255

static int set_view(struct settings *settings, const struct setter *setter, const char *value,
                    struct brig_error *err)
{
    (void)setter;
    int view = policy_view_parse(value);
    if (view < 0)
        return nearest_fail(value, policy_view_choices(), err);
    if (view == BRIG_VIEW_ROOT)
        return brig_fail(err, BRIG_E_INVALID, 0, "a root directory is given by --root DIR");
    return brig_policy_view(settings->policy, (enum brig_view)view, NULL, err);
}

static int set_seccomp(struct settings *settings, const struct setter *setter, const char *value,
                       struct brig_error *err)
{
    (void)setter;
    int profile = policy_seccomp_parse(value);
    if (profile < 0)
        return nearest_fail(value, policy_seccomp_choices(), err);
    return brig_policy_seccomp(settings->policy, (enum brig_seccomp)profile, err);
}

static int set_on_unsupported(struct settings *settings, const struct setter *setter,
                              const char *value, struct brig_error *err)
{
    (void)setter;
    int what = policy_on_unsupported_parse(value);
    if (what < 0)
        return nearest_fail(value, policy_on_unsupported_choices(), err);
    return brig_policy_on_unsupported(settings->policy, (enum brig_on_unsupported)what, err);
}

static int set_disable(struct settings *settings, const struct setter *setter, const char *value,
                       struct brig_error *err)
{
    (void)setter;
    int layer = policy_layer_parse(value);
    if (layer < 0)
        return nearest_fail(value, policy_layer_choices(), err);
    return brig_policy_disable(settings->policy, (unsigned)layer, err);
}

static int set_allow_nested(struct settings *settings, const struct setter *setter,
                            const char *value, struct brig_error *err)
{
    (void)setter;
    (void)value;
    return brig_policy_allow_nested(settings->policy, true, err);
}

static int set_trace_denials(struct settings *settings, const struct setter *setter,
                             const char *value, struct brig_error *err)
{
    (void)setter;
    (void)value;
    return brig_policy_trace(settings->policy, true, err);
}

/* How a limit is lifted. A zero would be as likely a mistake. */
static bool is_none(const char *value)
{
    return strcmp(value, "none") == 0;
}

static int set_duration(struct settings *settings, const struct setter *setter, const char *value,
                        struct brig_error *err)
{
    uint64_t ms = 0;
    int status = is_none(value) ? 0 : parse_duration(value, setter->flags, &ms, err);
    if (status < 0)
        return status;
    return brig_policy_limit(settings->policy, (enum brig_limit)setter->what, ms, err);
}

static int set_size(struct settings *settings, const struct setter *setter, const char *value,
                    struct brig_error *err)
{
    uint64_t bytes = 0;
    int status = is_none(value) ? 0 : parse_size(value, 0, &bytes, err);
    if (status < 0)
        return status;
    return brig_policy_limit(settings->policy, (enum brig_limit)setter->what, bytes, err);
}

static int set_number(struct settings *settings, const struct setter *setter, const char *value,
                      struct brig_error *err)
{
    uint64_t number = 0;
    int status = is_none(value) ? 0 : parse_uint(value, INT32_MAX, 0, &number, err);
    if (status < 0)
        return status;
    return brig_policy_limit(settings->policy, (enum brig_limit)setter->what, number, err);
}

static int set_percent(struct settings *settings, const struct setter *setter, const char *value,
                       struct brig_error *err)
{
    uint64_t percent = 0;
    int status =
        is_none(value) ? 0 : parse_percent(value, POLICY_CPU_PERCENT_MAX, 0, &percent, err);
    if (status < 0)
        return status;
    return brig_policy_limit(settings->policy, (enum brig_limit)setter->what, percent, err);
}

/* Whether a filter is for all that a pattern is for. */
static bool is_filtered(const struct brig_policy *policy, const char *pattern)
{
    for (size_t i = 0; i < policy->env_count; i++)
        if (policy->env[i].kind == POLICY_ENV_UNSET &&
            policy_pattern_matches(policy->env[i].name, pattern))
            return true;
    return false;
}

/* A pattern alone takes back the filter that is exactly the same, or shows a part of what a wider one
 * takes away. */
static int drop_filter(struct brig_policy *policy, const char *pattern, struct brig_error *err)
{
    size_t kept = 0;
    for (size_t i = 0; i < policy->env_count; i++) {
        struct policy_env *rule = &policy->env[i];
        if (rule->kind == POLICY_ENV_UNSET && strcmp(rule->name, pattern) == 0) {
            policy_env_done(rule);
        } else {
            policy->env[kept++] = *rule;
        }
    }
    if (kept == policy->env_count && is_filtered(policy, pattern))
        return brig_policy_setenv(policy, pattern, NULL, err);
    if (kept == policy->env_count)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "no earlier filter is exactly '%s'; name the variables to pass on",
                         str_shown(pattern).text);
    policy->env_count = kept;
    return 0;
}

static int set_variable(struct settings *settings, const struct setter *setter, const char *value,
                        struct brig_error *err)
{
    (void)setter;
    const char *equals = strchr(value, '=');
    if (strcspn(value, " \t") < strcspn(value, "="))
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' has a blank in the name; write NAME=VALUE",
                         str_shown(value).text);
    if (!equals && strchr(value, '*'))
        return drop_filter(settings->policy, value, err);
    if (!equals)
        return brig_policy_setenv(settings->policy, value, NULL, err);
    autofree char *name = strndup(value, (size_t)(equals - value));
    if (!name)
        return brig_fail_nomem(err);
    return brig_policy_setenv(settings->policy, name, equals + 1, err);
}

static int unset_variables(struct settings *settings, const struct setter *setter,
                           const char *value, struct brig_error *err)
{
    (void)setter;
    return brig_policy_unsetenv(settings->policy, value, err);
}

static int set_hostname(struct settings *settings, const struct setter *setter, const char *value,
                        struct brig_error *err)
{
    (void)setter;
    return brig_policy_hostname(settings->policy, value, err);
}

static int set_no_terminal(struct settings *settings, const struct setter *setter,
                           const char *value, struct brig_error *err)
{
    (void)setter;
    (void)value;
    return brig_policy_terminal(settings->policy, BRIG_TERMINAL_NONE, err);
}

static int set_pass_fd(struct settings *settings, const struct setter *setter, const char *value,
                       struct brig_error *err)
{
    (void)setter;
    uint64_t number = 0;
    int status = parse_uint(value, PASS_FD_NUMBER_MAX, PARSE_ZERO_OK, &number, err);
    if (status < 0)
        return status;
    if (number < PASS_FD_MIN)
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is always there; give %d to %d",
                         str_shown(value).text, PASS_FD_MIN, PASS_FD_NUMBER_MAX);
    for (size_t i = 0; i < settings->pass_fd_count; i++)
        if (settings->pass_fds[i].number == (int)number)
            return 0;
    if (settings->pass_fd_count == BRIG_PASS_FD_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is one too many; at most %d are passed",
                         str_shown(value).text, BRIG_PASS_FD_MAX);
    settings->pass_fds[settings->pass_fd_count++] =
        (struct brig_pass_fd){.fd = (int)number, .number = (int)number};
    return 0;
}

static int set_result(struct settings *settings, const struct setter *setter, const char *value,
                      struct brig_error *err)
{
    (void)setter;
    if (*value == '\0')
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "the value is empty; give a path or the number of a file descriptor");
    settings->result = value;
    return 0;
}

static int set_facts(struct settings *settings, const struct setter *setter, const char *value,
                     struct brig_error *err)
{
    (void)setter;
    (void)err;
    settings->facts = value;
    return 0;
}

enum {
    FLAG_NOCWD,
    FLAG_NO_PROTECT,
    FLAG_FOREIGN,
    FLAG_DRY_RUN,
    FLAG_PLAN,
    FLAG_JSON,
    FLAG_VERBOSE,
    FLAG_UNMOUNT,
};

static int set_flag(struct settings *settings, const struct setter *setter, const char *value,
                    struct brig_error *err)
{
    (void)value;
    (void)err;
    bool *const flags[] = {
        [FLAG_NOCWD] = &settings->nocwd,     [FLAG_DRY_RUN] = &settings->dry_run,
        [FLAG_JSON] = &settings->json,       [FLAG_VERBOSE] = &settings->verbose,
        [FLAG_UNMOUNT] = &settings->unmount, [FLAG_NO_PROTECT] = &settings->no_protect,
        [FLAG_PLAN] = &settings->plan,       [FLAG_FOREIGN] = &settings->foreign,
    };
    *flags[setter->what] = true;
    return 0;
}

static int set_protect(struct settings *settings, const struct setter *setter, const char *value,
                       struct brig_error *err)
{
    (void)setter;
    if (strcmp(value, "hold") != 0 && strcmp(value, "report") != 0 && strcmp(value, "off") != 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is not one of hold, report and off",
                         str_shown(value).text);
    settings->protect_report = strcmp(value, "report") == 0;
    settings->no_protect = strcmp(value, "off") == 0;
    return 0;
}

static int set_desktop(struct settings *settings, const struct setter *setter, const char *value,
                       struct brig_error *err)
{
    (void)value;
    autofree char *origin = NULL;
    int status = str_copy(settings->policy->origin, &origin, err);
    if (status < 0)
        return status;
    free(settings->desktop[setter->what]);
    settings->desktop[setter->what] = take_ptr(&origin);
    return 0;
}

static int refuse_complete(struct settings *settings, const struct setter *setter,
                           const char *value, struct brig_error *err)
{
    (void)settings;
    (void)setter;
    (void)value;
    return brig_fail(err, BRIG_E_INVALID, 0, "only possible as the first word");
}

/* For what settings_scan and the configuration's reader have dealt with. */
static int set_nothing(struct settings *settings, const struct setter *setter, const char *value,
                       struct brig_error *err)
{
    (void)settings;
    (void)setter;
    (void)value;
    (void)err;
    return 0;
}

const struct setter settings_setters[OPTION_COUNT_] = {
    [OPTION_MODE] = {set_nothing, 0, 0},
    [OPTION_JAIL] = {set_nothing, 0, 0},
    [OPTION_CONF] = {set_nothing, 0, 0},
    [OPTION_CONF_OPTIONAL] = {set_nothing, 0, 0},
    [OPTION_STORAGE] = {set_nothing, 0, 0},
    [OPTION_NO_DEFAULTS] = {set_nothing, 0, 0},
    [OPTION_COMMAND] = {settings_set_command, 0, 0},
    [OPTION_SCRIPT] = {settings_set_program, SETTINGS_SCRIPT, 0},
    [OPTION_SCRIPT_OPTIONAL] = {settings_set_program, SETTINGS_SCRIPT, BRIG_GRANT_OPTIONAL},
    [OPTION_INITJAIL] = {settings_set_program, SETTINGS_INITJAIL, 0},
    [OPTION_INITJAIL_OPTIONAL] = {settings_set_program, SETTINGS_INITJAIL, BRIG_GRANT_OPTIONAL},
    [OPTION_VIEW] = {set_view, 0, 0},
    [OPTION_ROOT] = {settings_set_root, 0, 0},
    [OPTION_NET] = {settings_set_net, 0, 0},
    [OPTION_ALLOW] = {settings_set_allow, 0, 0},
    [OPTION_DENY] = {settings_set_deny, 0, 0},
    [OPTION_PUBLISH] = {settings_set_publish, 0, 0},
    [OPTION_INJECT] = {settings_set_inject, 0, 0},
    [OPTION_PROXY_ENV] = {settings_set_proxy_env, 0, 0},
    [OPTION_NET_LOG] = {settings_set_net_log, 0, 0},
    [OPTION_SECCOMP] = {set_seccomp, 0, 0},
    [OPTION_ALLOW_NESTED] = {set_allow_nested, 0, 0},
    [OPTION_TRACE_DENIALS] = {set_trace_denials, 0, 0},
    [OPTION_ON_UNSUPPORTED] = {set_on_unsupported, 0, 0},
    [OPTION_DISABLE] = {set_disable, 0, 0},
    [OPTION_DIR] = {settings_set_grant, BRIG_READ_WRITE, 0},
    [OPTION_DIR_CREATE] = {settings_set_grant, BRIG_READ_WRITE, BRIG_GRANT_CREATE},
    [OPTION_DIR_OPTIONAL] = {settings_set_grant, BRIG_READ_WRITE, BRIG_GRANT_OPTIONAL},
    [OPTION_RDIR] = {settings_set_grant, BRIG_READ_ONLY, 0},
    [OPTION_RDIR_OPTIONAL] = {settings_set_grant, BRIG_READ_ONLY, BRIG_GRANT_OPTIONAL},
    [OPTION_MASK] = {settings_set_mask, BRIG_MASK, 0},
    [OPTION_MASK_OPTIONAL] = {settings_set_mask, BRIG_MASK, BRIG_GRANT_OPTIONAL},
    [OPTION_UNMASK] = {settings_set_unmask, 0, 0},
    [OPTION_DEVICE] = {settings_set_grant, BRIG_DEVICE, 0},
    [OPTION_DEVICE_OPTIONAL] = {settings_set_grant, BRIG_DEVICE, BRIG_GRANT_OPTIONAL},
    [OPTION_XDIR] = {settings_set_ungrant, 0, 0},
    [OPTION_NOCWD] = {set_flag, FLAG_NOCWD, 0},
    [OPTION_UNPROTECT] = {settings_set_unprotect, 0, 0},
    [OPTION_NO_PROTECT] = {set_flag, FLAG_NO_PROTECT, 0},
    [OPTION_PROTECT] = {set_protect, 0, 0},
    [OPTION_FOREIGN] = {set_flag, FLAG_FOREIGN, 0},
    [OPTION_X11] = {set_desktop, SETTINGS_X11, 0},
    [OPTION_WAYLAND] = {set_desktop, SETTINGS_WAYLAND, 0},
    [OPTION_AUDIO] = {set_desktop, SETTINGS_AUDIO, 0},
    [OPTION_SSH_AGENT] = {set_desktop, SETTINGS_SSH_AGENT, 0},
    [OPTION_DBUS] = {set_desktop, SETTINGS_DBUS, 0},
    [OPTION_TIMEOUT] = {set_duration, BRIG_LIMIT_WALL_MS, 0},
    [OPTION_CPU_TIME] = {set_duration, BRIG_LIMIT_CPU_MS, 0},
    [OPTION_GRACE] = {set_duration, BRIG_LIMIT_GRACE_MS, PARSE_ZERO_OK},
    [OPTION_MEMORY] = {set_size, BRIG_LIMIT_MEMORY_BYTES, 0},
    [OPTION_CPU] = {set_percent, BRIG_LIMIT_CPU_PERCENT, 0},
    [OPTION_PIDS] = {set_number, BRIG_LIMIT_PROCESSES, 0},
    [OPTION_DISK] = {set_size, BRIG_LIMIT_TMP_BYTES, 0},
    [OPTION_DISK_INODES] = {set_number, BRIG_LIMIT_TMP_INODES, 0},
    [OPTION_IO_READ] = {set_size, BRIG_LIMIT_IO_READ_BYTES, 0},
    [OPTION_IO_WRITE] = {set_size, BRIG_LIMIT_IO_WRITE_BYTES, 0},
    [OPTION_ADDRESS_SPACE] = {set_size, BRIG_LIMIT_ADDRESS_SPACE, 0},
    [OPTION_FILE_SIZE] = {set_size, BRIG_LIMIT_FILE_SIZE, 0},
    [OPTION_OPEN_FILES] = {set_number, BRIG_LIMIT_OPEN_FILES, 0},
    [OPTION_OUTPUT] = {set_size, BRIG_LIMIT_OUTPUT_BYTES, 0},
    [OPTION_INOTIFY] = {set_number, BRIG_LIMIT_INOTIFY_WATCHES, 0},
    [OPTION_NET_CONNECTIONS] = {set_number, BRIG_LIMIT_NET_CONNECTIONS, 0},
    [OPTION_NET_BYTES] = {set_size, BRIG_LIMIT_NET_BYTES, 0},
    [OPTION_NET_IDLE] = {set_duration, BRIG_LIMIT_NET_IDLE_MS, 0},
    [OPTION_SETENV] = {set_variable, 0, 0},
    [OPTION_UNSETENV] = {unset_variables, 0, 0},
    [OPTION_WORKDIR] = {settings_set_workdir, 0, 0},
    [OPTION_HOSTNAME] = {set_hostname, 0, 0},
    [OPTION_NO_TERMINAL] = {set_no_terminal, 0, 0},
    [OPTION_PASS_FD] = {set_pass_fd, 0, 0},
    [OPTION_RESULT] = {set_result, 0, 0},
    [OPTION_UNMOUNT] = {set_flag, FLAG_UNMOUNT, 0},
    [OPTION_INIT] = {set_nothing, 0, 0},
    [OPTION_PRINT_DEFAULTS] = {set_nothing, 0, 0},
    [OPTION_COMPLETE] = {refuse_complete, 0, 0},
    [OPTION_DRY_RUN] = {set_flag, FLAG_DRY_RUN, 0},
    [OPTION_PLAN] = {set_flag, FLAG_PLAN, 0},
    [OPTION_FACTS] = {set_facts, 0, 0},
    [OPTION_JSON] = {set_flag, FLAG_JSON, 0},
    [OPTION_VERBOSE] = {set_flag, FLAG_VERBOSE, 0},
    [OPTION_HELP] = {set_nothing, 0, 0},
    [OPTION_VERSION] = {set_nothing, 0, 0},
};

int settings_check_jail(const char *name, struct brig_error *err)
{
    size_t length = strlen(name);
    bool printable = true;
    for (const char *c = name; *c != '\0'; c++)
        printable = printable && (unsigned char)*c >= ' ' && *c != 0x7f;
    if (length < 1 || length > SETTINGS_JAIL_MAX || name[0] == '.' || strchr(name, '/') ||
        !printable)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'%s' cannot be the name of a jail: a name has 1 to %d characters, no "
                         "'/', and no '.' in front",
                         str_shown(name).text, SETTINGS_JAIL_MAX);
    return 0;
}

static int scan_mode(const char *value, struct settings_scan *scan, struct brig_error *err)
{
    int mode = policy_mode_parse(value);
    if (mode < 0)
        return brig_wrap(err, nearest_fail(value, policy_mode_choices(), err), "--mode");
    scan->mode = (enum brig_mode)mode;
    scan->mode_given = true;
    return 0;
}

static int scan_jail(const char *value, struct settings_scan *scan, struct brig_error *err)
{
    int status = settings_check_jail(value, err);
    if (status < 0)
        return brig_wrap(err, status, "--jail");
    scan->jail = value;
    return 0;
}

static int scan_option(const struct option_use *use, struct settings_scan *scan,
                       struct brig_error *err)
{
    enum option_id id = use->row->id;
    if (id == OPTION_MODE)
        return scan_mode(use->value, scan, err);
    if (id == OPTION_JAIL)
        return scan_jail(use->value, scan, err);
    if (id == OPTION_CONF || id == OPTION_CONF_OPTIONAL) {
        scan->conf = use->value;
        scan->conf_optional = id == OPTION_CONF_OPTIONAL;
    }
    if (id == OPTION_STORAGE)
        scan->storage = use->value;
    scan->no_defaults = scan->no_defaults || id == OPTION_NO_DEFAULTS;
    scan->help = scan->help || id == OPTION_HELP;
    scan->version = scan->version || id == OPTION_VERSION;
    scan->init = scan->init || id == OPTION_INIT;
    scan->print_defaults = scan->print_defaults || id == OPTION_PRINT_DEFAULTS;
    scan->nocwd = scan->nocwd || id == OPTION_NOCWD;
    return 0;
}

int settings_scan(int argc, char *const *argv, struct settings_scan *ret_scan,
                  struct brig_error *err)
{
    struct settings_scan scan = {0};
    struct options_cursor cursor = {.argc = argc, .argv = argv, .next = 1};
    struct option_use use;
    int status;
    while (!scan.help && !scan.version && (status = options_next(&cursor, &use, err)) != 0) {
        if (status > 0)
            status = scan_option(&use, &scan, err);
        if (status < 0)
            return status;
    }
    scan.command = cursor.next;
    *ret_scan = scan;
    return 0;
}

int settings_init(struct settings *settings, enum brig_mode mode, const char *cwd,
                  struct brig_error *err)
{
    *settings = (struct settings){
        .policy = brig_policy_new(mode),
        .cwd = cwd,
        .cwd_fd = -1,
        .home = "/",
        .config_dir = "/",
        .jail = SETTINGS_JAIL,
        .mode = mode,
    };
    if (!settings->policy)
        return brig_fail_nomem(err);
    int status = brig_policy_limit(settings->policy, BRIG_LIMIT_GRACE_MS, SETTINGS_GRACE_MS, err);
    if (status < 0)
        settings_done(settings);
    return status;
}

void settings_done(struct settings *settings)
{
    settings_masks_done(settings);
    settings_unprotect_done(settings);
    settings_net_done(settings);
    settings_programs_done(&settings->scripts);
    settings_programs_done(&settings->initjails);
    for (size_t i = 0; i < ARRAY_LENGTH(settings->desktop); i++)
        free(take_ptr(&settings->desktop[i]));
    free(take_ptr(&settings->command));
    free(take_ptr(&settings->script));
    free(take_ptr(&settings->script_path));
    brig_policy_free(take_ptr(&settings->policy));
}

int settings_apply(struct settings *settings, const struct option_use *use, struct brig_error *err)
{
    const struct setter *setter = &settings_setters[use->row->id];
    int status = setter->set(settings, setter, use->value, err);
    const char *dashes = settings->place == SETTINGS_COMMAND_LINE ? "--" : "";
    return status < 0 ? brig_wrap(err, status, "%s%s", dashes, use->row->long_name) : 0;
}

/* What no single option can know. */
static int check_together(const struct settings *settings, bool granted, bool command,
                          struct brig_error *err)
{
    if (settings->json && !settings->dry_run)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "--json goes with --dry-run, explain and why; for what became of a run "
                         "use --result FILE");
    if (settings->plan && !settings->dry_run)
        return brig_fail(err, BRIG_E_INVALID, 0, "--plan needs --dry-run, or use brig explain");
    if (settings->plan && settings->json)
        return brig_fail(err, BRIG_E_INVALID, 0, "--plan prints text only: leave out --json");
    if (settings->facts && !settings->plan)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "--facts needs --dry-run --plan: a run asks the kernel itself");
    if (settings->unmount && (granted || command))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "-u runs no command; it takes no other option than -j NAME");
    return 0;
}

int settings_apply_all(struct settings *settings, int argc, char *const *argv,
                       struct brig_error *err)
{
    int status = brig_policy_origin(settings->policy, SETTINGS_TYPED, err);
    if (status < 0)
        return status;
    settings->place = SETTINGS_COMMAND_LINE;
    struct options_cursor cursor = {.argc = argc, .argv = argv, .next = 1};
    struct option_use use;
    bool granted = false;
    while ((status = options_next(&cursor, &use, err)) > 0) {
        status = settings_apply(settings, &use, err);
        if (status < 0)
            return status;
        granted = granted || use.row->group == OPTION_GROUP_FILES;
    }
    return status < 0 ? status : check_together(settings, granted, cursor.next < argc, err);
}
