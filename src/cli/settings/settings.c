/* SPDX-License-Identifier: MIT */
/* Turns options into a policy, with one setter per row of options.h. */
#include "cli/settings/settings.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/credentials/oauth.h"
#include "cli/run/image.h"
#include "cli/settings/options.h"
#include "policy/layers.h"
#include "policy/policy.h"

#define PASS_FD_MIN 3
#define PASS_FD_NUMBER_MAX 255
#define NET_LEARN "learn"
#define NET_ASK "ask"

/* How an option is applied: by one of the functions. */
struct setter {
    int (*set)(struct settings *settings, const char *value, struct brig_error *err);
    int (*set_by_row)(struct settings *settings, const struct setter *setter, const char *value,
                      struct brig_error *err);
    int (*policy_text)(struct brig_policy *policy, const char *value, struct brig_error *err);
    int (*policy_on)(struct brig_policy *policy, int on, struct brig_error *err);
    /* For set_by_row: */
    unsigned what;  /* an access, a limit, a vocabulary, or an offset in struct settings */
    unsigned flags; /* of a grant; or the format of a limit */
};

/* ---- Choices and flags ---- */

static int set_choice(struct settings *settings, const struct setter *setter, const char *value,
                      struct brig_error *err)
{
    struct brig_policy *policy = settings->policy;
    int chosen = policy_word_value(setter->what, value);
    if (chosen < 0)
        return nearest_fail(value, policy_choices(setter->what), err);
    if (setter->what == POLICY_SECCOMP)
        return brig_policy_seccomp(policy, (enum brig_seccomp)chosen, err);
    if (setter->what == POLICY_ON_UNSUPPORTED)
        return brig_policy_on_unsupported(policy, (enum brig_on_unsupported)chosen, err);
    if (setter->what == POLICY_LAYER)
        return brig_policy_disable(policy, (unsigned)chosen, err);
    free(take_ptr(&settings->image)); /* the last of --view, --root and --image counts */
    if (chosen == BRIG_VIEW_ROOT)
        return brig_fail(err, BRIG_E_INVALID, 0, "a root directory is given by --root DIR");
    if (chosen == VIEW_LAYERS)
        return brig_fail(err, BRIG_E_INVALID, 0, "an image is given by --image NAME");
    return brig_policy_view(policy, (enum brig_view)chosen, NULL, err);
}

static int set_flag(struct settings *settings, const struct setter *setter, const char *value,
                    struct brig_error *err)
{
    (void)value;
    (void)err;
    *(bool *)((char *)settings + setter->what) = true;
    return 0;
}

static int set_desktop(struct settings *settings, const struct setter *setter, const char *value,
                       struct brig_error *err)
{
    (void)value;
    free(take_ptr(&settings->desktop[setter->what]));
    settings->desktop_asked = true;
    return str_copy(settings->policy->origin, &settings->desktop[setter->what], err);
}

static int set_protect(struct settings *settings, const char *value, struct brig_error *err)
{
    if (strcmp(value, "hold") != 0 && strcmp(value, "report") != 0 && strcmp(value, "off") != 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is not one of hold, report and off",
                         str_shown(value).text);
    settings->protect_report = strcmp(value, "report") == 0;
    settings->no_protect = strcmp(value, "off") == 0;
    return 0;
}

/* A project's file can ask for a review, but not weaken what the user has chosen. */
static int set_review(struct settings *settings, const char *value, struct brig_error *err)
{
    static const char *const words[] = {[SETTINGS_REVIEW_OFF] = "off",
                                        [SETTINGS_REVIEW_ON] = "on",
                                        [SETTINGS_REVIEW_AUTO] = "auto"};
    size_t chosen = SETTINGS_REVIEW_ON;
    if (value && *value)
        for (chosen = 0; chosen < ARRAY_LENGTH(words) && strcmp(words[chosen], value) != 0;)
            chosen++;
    if (chosen == ARRAY_LENGTH(words))
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is not one of on, auto and off",
                         str_shown(value).text);
    if (settings->place == SETTINGS_PROJECT &&
        (settings->review_typed || settings->review != SETTINGS_REVIEW_OFF))
        return 0;
    settings->review = (enum settings_review)chosen;
    settings->review_typed = settings->place == SETTINGS_COMMAND_LINE;
    return 0;
}

/* What the options about checkpoints ask for. */
enum { CHECKPOINT_NONE, CHECKPOINT_REQUIRED, CHECKPOINT_IF_POSSIBLE };

static int set_checkpoint(struct settings *settings, const struct setter *setter, const char *value,
                          struct brig_error *err)
{
    (void)value;
    (void)err;
    settings->checkpoint = setter->what != CHECKPOINT_NONE;
    settings->checkpoint_optional = setter->what == CHECKPOINT_IF_POSSIBLE;
    return 0;
}

static int set_checkpoint_size(struct settings *settings, const char *value, struct brig_error *err)
{
    return parse_size(value, 0, &settings->checkpoint_bytes, err);
}

static int set_no_terminal(struct settings *settings, const char *value, struct brig_error *err)
{
    (void)value;
    return brig_policy_terminal(settings->policy, BRIG_TERMINAL_NONE, err);
}

/* ---- Limits ---- */

enum limit_form { DURATION, SIZE, COUNT, PERCENT };

/* "none" removes a limit. A zero is probably a mistake, except for the grace. */
static int set_limit(struct settings *settings, const struct setter *setter, const char *value,
                     struct brig_error *err)
{
    uint64_t number = 0;
    int status = 0;
    if (strcmp(value, "none") == 0)
        return brig_policy_limit(settings->policy, (enum brig_limit)setter->what, 0, err);
    switch ((enum limit_form)setter->flags) {
    case DURATION:
        status = parse_duration(value, setter->what == BRIG_LIMIT_GRACE_MS ? PARSE_ZERO_OK : 0,
                                &number, err);
        break;
    case SIZE:
        status = parse_size(value, 0, &number, err);
        break;
    case COUNT:
        status = parse_uint(value, INT32_MAX, 0, &number, err);
        break;
    case PERCENT:
        status = parse_percent(value, POLICY_CPU_PERCENT_MAX, 0, &number, err);
        break;
    }
    return status < 0
               ? status
               : brig_policy_limit(settings->policy, (enum brig_limit)setter->what, number, err);
}

/* ---- Environment ---- */

/* Whether a filter covers everything that a pattern matches. */
static bool is_filtered(const struct brig_policy *policy, const char *pattern)
{
    for (size_t i = 0; i < policy->env_count; i++)
        if (policy->env[i].kind == POLICY_ENV_UNSET &&
            policy_pattern_matches(policy->env[i].name, pattern))
            return true;
    return false;
}

/* A pattern without a value removes the identical filter, or exposes a part of what a wider filter
 * removes. */
static int drop_filter(struct brig_policy *policy, const char *pattern, struct brig_error *err)
{
    size_t kept = 0;
    for (size_t i = 0; i < policy->env_count; i++) {
        const struct policy_env *rule = &policy->env[i];
        if (rule->kind != POLICY_ENV_UNSET || strcmp(rule->name, pattern) != 0)
            policy->env[kept++] = *rule;
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

static int set_variable(struct settings *settings, const char *value, struct brig_error *err)
{
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

/* ---- Network ---- */

/* Sets a complete network policy by the name that an earlier executor used. */
static int set_alias(struct settings *settings, const struct net_policy_alias *alias,
                     struct brig_error *err)
{
    int status = alias->rule ? brig_policy_allow(settings->policy, alias->rule, err) : 0;
    if (status < 0)
        return status;
    return brig_policy_network(settings->policy,
                               (enum brig_network)policy_word_value(POLICY_NETWORK, alias->network),
                               err);
}

static int set_net(struct settings *settings, const char *value, struct brig_error *err)
{
    int network = policy_word_value(POLICY_NETWORK, value);
    const struct net_policy_alias *alias = net_policy_alias_find(value);
    bool learn = strcmp(value, NET_LEARN) == 0, ask = strcmp(value, NET_ASK) == 0;
    if (network < 0 && !alias && !learn && !ask)
        return nearest_fail(value, "none, loopback, allow, ask, open, host or " NET_LEARN, err);
    settings->net_given = true;
    settings->net_learn = learn;
    settings->policy->net.ask = ask;
    if (alias)
        return set_alias(settings, alias, err);
    if (learn || ask)
        network = learn ? BRIG_NET_OPEN : BRIG_NET_ALLOW;
    return brig_policy_network(settings->policy, (enum brig_network)network, err);
}

static int set_allow(struct settings *settings, const char *value, struct brig_error *err)
{
    int status = brig_policy_allow(settings->policy, value, err);
    if (status < 0 || settings->place != SETTINGS_COMMAND_LINE)
        return status;
    free(take_ptr(&settings->allow_typed));
    return str_copy(value, &settings->allow_typed, err);
}

static int set_inject(struct settings *settings, const struct setter *setter, const char *value,
                      struct brig_error *err)
{
    if (settings->inject_count == SETTINGS_INJECTS_MAX)
        return option_fail_too_many(value, SETTINGS_INJECTS_MAX, err);
    struct settings_inject *added = &settings->injects[settings->inject_count++];
    added->optional = setter->what == OPTION_INJECT_OPTIONAL;
    int status = str_copy(value, &added->text, err);
    return status < 0 ? status : str_copy(settings->policy->origin, &added->origin, err);
}

static int refuse_empty(struct brig_error *err)
{
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "the value is empty; give a path or the number of a file descriptor");
}

/* In a file, a relative path is relative to the home directory, as other paths are. */
static int set_net_log(struct settings *settings, const char *value, struct brig_error *err)
{
    if (*value == '\0')
        return refuse_empty(err);
    bool number = value[strspn(value, "0123456789")] == '\0' || strncmp(value, "fd:", 3) == 0;
    bool below = settings->place == SETTINGS_FILE && value[0] != '/' && !number;
    free(take_ptr(&settings->net_log));
    return str_make(&settings->net_log, err, below ? settings->home : "", below ? "/" : "", value);
}

static int set_net_rules(struct settings *settings, const char *value, struct brig_error *err)
{
    free(take_ptr(&settings->net_rules));
    return str_copy(value, &settings->net_rules, err);
}

/* ---- Programs in addition to the command: scripts, initjail and the shell command ---- */

/* Programs of the command line come before those of files, in the order given. */
static int set_program(struct settings *settings, const struct setter *setter, const char *value,
                       struct brig_error *err)
{
    bool typed = settings->place == SETTINGS_COMMAND_LINE;
    struct settings_programs *programs =
        setter->what == OPTION_SCRIPT ? &settings->scripts : &settings->initjails;
    autofree char *path = NULL;
    autofree char *origin = NULL;
    if (*value == '\0')
        return brig_fail(err, BRIG_E_INVALID, 0, "the value is empty; give the path of a file");
    bool tilde = !typed && str_starts_with(value, "~/");
    const char *base = tilde ? settings->home : typed ? settings->cwd : settings->config_dir;
    int status = path_make_absolute(base, tilde ? value + 2 : value, &path, err);
    if (status == 0)
        status = str_copy(settings->policy->origin, &origin, err);
    if (status < 0)
        return status;
    size_t at = 0;
    for (size_t i = 0; i < programs->count; i++) {
        at += !typed || programs->items[i].typed;
        if (strcmp(programs->items[i].path, path) == 0)
            return 0;
    }
    if (programs->count == SETTINGS_PROGRAMS_MAX)
        return option_fail_too_many(path, SETTINGS_PROGRAMS_MAX, err);
    if (!array_grow(&programs->items, programs->count))
        return brig_fail_nomem(err);
    struct settings_program *item = &programs->items[at];
    memmove(item + 1, item, (programs->count++ - at) * sizeof *item);
    *item = (struct settings_program){.path = take_ptr(&path),
                                      .optional = setter->flags & BRIG_GRANT_OPTIONAL,
                                      .typed = typed,
                                      .origin = take_ptr(&origin)};
    return 0;
}

/* ---- The run ---- */

static int set_pass_fd(struct settings *settings, const char *value, struct brig_error *err)
{
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
        return option_fail_too_many(value, BRIG_PASS_FD_MAX, err);
    settings->pass_fds[settings->pass_fd_count++] =
        (struct brig_pass_fd){.fd = (int)number, .number = (int)number};
    return 0;
}

/* Stores a text unchanged. */
static int set_text(struct settings *settings, const struct setter *setter, const char *value,
                    struct brig_error *err)
{
    char **text = (char **)((char *)settings + setter->what);
    free(take_ptr(text));
    return str_copy(value, text, err);
}

static int set_result(struct settings *settings, const struct setter *setter, const char *value,
                      struct brig_error *err)
{
    return *value == '\0' ? refuse_empty(err) : set_text(settings, setter, value, err);
}

static int refuse_complete(struct settings *settings, const char *value, struct brig_error *err)
{
    (void)settings;
    (void)value;
    return brig_fail(err, BRIG_E_INVALID, 0, "only possible as the first word");
}

static int set_grant(struct settings *settings, const struct setter *setter, const char *value,
                     struct brig_error *err)
{
    return settings_grant(settings, (enum brig_access)setter->what, setter->flags, value, err);
}

static int set_review_dir(struct settings *settings, const char *value, struct brig_error *err)
{
    int status = settings_grant(settings, BRIG_READ_WRITE, 0, value, err);
    if (status == 0)
        settings->policy->grants[settings->policy->grant_count - 1].review = true;
    return status;
}

static int set_mask(struct settings *settings, const struct setter *setter, const char *value,
                    struct brig_error *err)
{
    return settings_mask(settings, setter->flags, value, err);
}

#define FLAG(field)                                                                                \
    {                                                                                              \
        .set_by_row = set_flag, .what = offsetof(struct settings, field)                           \
    }
#define LIMIT(limit, form)                                                                         \
    {                                                                                              \
        .set_by_row = set_limit, .what = BRIG_LIMIT_##limit, .flags = form                         \
    }
#define GRANT(function, what_, flags_)                                                             \
    {                                                                                              \
        .set_by_row = function, .what = what_, .flags = flags_                                     \
    }

/* Options without a row are handled by settings_scan() and the reader of the configuration. */
static const struct setter setters[OPTION_COUNT_] = {
    [OPTION_COMMAND] = {.set_by_row = set_text, .what = offsetof(struct settings, command)},
    [OPTION_SCRIPT] = GRANT(set_program, OPTION_SCRIPT, 0),
    [OPTION_SCRIPT_OPTIONAL] = GRANT(set_program, OPTION_SCRIPT, BRIG_GRANT_OPTIONAL),
    [OPTION_INITJAIL] = GRANT(set_program, OPTION_INITJAIL, 0),
    [OPTION_INITJAIL_OPTIONAL] = GRANT(set_program, OPTION_INITJAIL, BRIG_GRANT_OPTIONAL),
    [OPTION_VIEW] = {.set_by_row = set_choice, .what = POLICY_VIEW},
    [OPTION_ROOT] = {.set = settings_root},
    [OPTION_IMAGE] = {.set_by_row = set_result, .what = offsetof(struct settings, image)},
    [OPTION_NET] = {.set = set_net},
    [OPTION_ALLOW] = {.set = set_allow},
    [OPTION_DENY] = {.policy_text = brig_policy_deny},
    [OPTION_PUBLISH] = {.policy_text = brig_policy_publish},
    [OPTION_INJECT] = {.set_by_row = set_inject, .what = OPTION_INJECT},
    [OPTION_INJECT_OPTIONAL] = {.set_by_row = set_inject, .what = OPTION_INJECT_OPTIONAL},
    [OPTION_PROXY_ENV] = {.policy_on = brig_policy_proxy_env},
    [OPTION_NET_LOG] = {.set = set_net_log},
    [OPTION_NET_RULES] = {.set = set_net_rules},
    [OPTION_SECCOMP] = {.set_by_row = set_choice, .what = POLICY_SECCOMP},
    [OPTION_ALLOW_NESTED] = {.policy_on = brig_policy_allow_nested},
    [OPTION_TRACE_DENIALS] = {.policy_on = brig_policy_trace},
    [OPTION_ON_UNSUPPORTED] = {.set_by_row = set_choice, .what = POLICY_ON_UNSUPPORTED},
    [OPTION_DISABLE] = {.set_by_row = set_choice, .what = POLICY_LAYER},
    [OPTION_DIR] = GRANT(set_grant, BRIG_READ_WRITE, 0),
    [OPTION_DIR_CREATE] = GRANT(set_grant, BRIG_READ_WRITE, BRIG_GRANT_CREATE),
    [OPTION_DIR_OPTIONAL] = GRANT(set_grant, BRIG_READ_WRITE, BRIG_GRANT_OPTIONAL),
    [OPTION_RDIR] = GRANT(set_grant, BRIG_READ_ONLY, 0),
    [OPTION_RDIR_OPTIONAL] = GRANT(set_grant, BRIG_READ_ONLY, BRIG_GRANT_OPTIONAL),
    [OPTION_REVIEW] = {.set = set_review},
    [OPTION_REVIEW_DIR] = {.set = set_review_dir},
    [OPTION_MASK] = GRANT(set_mask, BRIG_MASK, 0),
    [OPTION_MASK_OPTIONAL] = GRANT(set_mask, BRIG_MASK, BRIG_GRANT_OPTIONAL),
    [OPTION_UNMASK] = {.set = settings_unmask},
    [OPTION_DEVICE] = GRANT(set_grant, BRIG_DEVICE, 0),
    [OPTION_DEVICE_OPTIONAL] = GRANT(set_grant, BRIG_DEVICE, BRIG_GRANT_OPTIONAL),
    [OPTION_XDIR] = {.set = settings_ungrant},
    [OPTION_NOCWD] = FLAG(nocwd),
    [OPTION_UNPROTECT] = {.set = settings_unprotect},
    [OPTION_NO_PROTECT] = FLAG(no_protect),
    [OPTION_PROTECT] = {.set = set_protect},
    [OPTION_FOREIGN] = FLAG(foreign),
    [OPTION_CHECKPOINT] = {.set_by_row = set_checkpoint, .what = CHECKPOINT_REQUIRED},
    [OPTION_CHECKPOINT_OPTIONAL] = {.set_by_row = set_checkpoint, .what = CHECKPOINT_IF_POSSIBLE},
    [OPTION_CHECKPOINT_SIZE] = {.set = set_checkpoint_size},
    [OPTION_NO_CHECKPOINT] = {.set_by_row = set_checkpoint, .what = CHECKPOINT_NONE},
    [OPTION_X11] = {.set_by_row = set_desktop, .what = SETTINGS_X11},
    [OPTION_WAYLAND] = {.set_by_row = set_desktop, .what = SETTINGS_WAYLAND},
    [OPTION_AUDIO] = {.set_by_row = set_desktop, .what = SETTINGS_AUDIO},
    [OPTION_SSH_AGENT] = {.set_by_row = set_desktop, .what = SETTINGS_SSH_AGENT},
    [OPTION_GPG_AGENT] = {.set_by_row = set_desktop, .what = SETTINGS_GPG_AGENT},
    [OPTION_DBUS] = {.set_by_row = set_desktop, .what = SETTINGS_DBUS},
    [OPTION_TIMEOUT] = LIMIT(WALL_MS, DURATION),
    [OPTION_CPU_TIME] = LIMIT(CPU_MS, DURATION),
    [OPTION_GRACE] = LIMIT(GRACE_MS, DURATION),
    [OPTION_MEMORY] = LIMIT(MEMORY_BYTES, SIZE),
    [OPTION_CPU] = LIMIT(CPU_PERCENT, PERCENT),
    [OPTION_PIDS] = LIMIT(PROCESSES, COUNT),
    [OPTION_DISK] = LIMIT(TMP_BYTES, SIZE),
    [OPTION_DISK_INODES] = LIMIT(TMP_INODES, COUNT),
    [OPTION_IO_READ] = LIMIT(IO_READ_BYTES, SIZE),
    [OPTION_IO_WRITE] = LIMIT(IO_WRITE_BYTES, SIZE),
    [OPTION_ADDRESS_SPACE] = LIMIT(ADDRESS_SPACE, SIZE),
    [OPTION_FILE_SIZE] = LIMIT(FILE_SIZE, SIZE),
    [OPTION_OPEN_FILES] = LIMIT(OPEN_FILES, COUNT),
    [OPTION_OUTPUT] = LIMIT(OUTPUT_BYTES, SIZE),
    [OPTION_INOTIFY] = LIMIT(INOTIFY_WATCHES, COUNT),
    [OPTION_NET_CONNECTIONS] = LIMIT(NET_CONNECTIONS, COUNT),
    [OPTION_NET_BYTES] = LIMIT(NET_BYTES, SIZE),
    [OPTION_NET_IDLE] = LIMIT(NET_IDLE_MS, DURATION),
    [OPTION_SETENV] = {.set = set_variable},
    [OPTION_UNSETENV] = {.policy_text = brig_policy_unsetenv},
    [OPTION_WORKDIR] = {.set = settings_workdir},
    [OPTION_HOSTNAME] = {.policy_text = brig_policy_hostname},
    [OPTION_NO_TERMINAL] = {.set = set_no_terminal},
    [OPTION_PASS_FD] = {.set = set_pass_fd},
    [OPTION_RESULT] = {.set_by_row = set_result, .what = offsetof(struct settings, result)},
    [OPTION_UNMOUNT] = FLAG(unmount),
    [OPTION_COMPLETE] = {.set = refuse_complete},
    [OPTION_DRY_RUN] = FLAG(dry_run),
    [OPTION_PLAN] = FLAG(plan),
    [OPTION_FACTS] = {.set_by_row = set_text, .what = offsetof(struct settings, facts)},
    [OPTION_JSON] = FLAG(json),
    [OPTION_VERBOSE] = FLAG(verbose),
};

#undef FLAG
#undef LIMIT
#undef GRANT

/* ---- The whole ---- */

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

int settings_scan(int argc, char *const *argv, struct settings_scan *ret_scan,
                  struct brig_error *err)
{
    struct settings_scan scan = {0};
    struct options_cursor cursor = {.argc = argc, .argv = argv, .next = 1};
    struct option_use use;
    int status = 0, mode = 0;
    const char **given = scan.given;
    while (!given[OPTION_HELP] && !given[OPTION_VERSION] &&
           (status = options_next(&cursor, &use, err)) > 0) {
        given[use.row->id] = use.value ? use.value : "";
        if (use.row->id == OPTION_CONF) /* the last of the two counts */
            given[OPTION_CONF_OPTIONAL] = NULL;
        else if (use.row->id == OPTION_CONF_OPTIONAL)
            given[OPTION_CONF] = NULL;
        else if (use.row->id == OPTION_MODE &&
                 (mode = policy_word_value(POLICY_MODE, use.value)) < 0)
            return brig_wrap(err, nearest_fail(use.value, policy_choices(POLICY_MODE), err),
                             "--mode");
        else if (use.row->id == OPTION_JAIL && (status = settings_check_jail(use.value, err)) < 0)
            return brig_wrap(err, status, "--jail");
    }
    if (status < 0)
        return status;
    scan.mode = (enum brig_mode)mode;
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
    (void)brig_policy_host_env(settings->policy, true, NULL);
    int status = brig_policy_limit(settings->policy, BRIG_LIMIT_GRACE_MS, SETTINGS_GRACE_MS, err);
    if (status < 0)
        settings_done(settings);
    return status;
}

static void programs_done(struct settings_programs *programs)
{
    for (size_t i = 0; i < programs->count; i++) {
        free(programs->items[i].path);
        free(programs->items[i].origin);
    }
    free(programs->items);
    *programs = (struct settings_programs){0};
}

void settings_done(struct settings *settings)
{
    settings_files_done(settings);
    image_release(settings);
    programs_done(&settings->scripts);
    programs_done(&settings->initjails);
    oauth_free(settings->oauth);
    free(settings->account_file);
    for (size_t i = 0; i < settings->inject_count; i++) {
        free(settings->injects[i].text);
        free(settings->injects[i].origin);
    }
    for (size_t i = 0; i < settings->secret_count; i++) {
        free(settings->secrets[i].path);
        free(settings->secrets[i].origin);
    }
    for (size_t i = 0; i < ARRAY_LENGTH(settings->desktop); i++)
        free(settings->desktop[i]);
    free(settings->allow_typed);
    free(settings->net_log);
    free(settings->net_rules);
    free(settings->command);
    free(settings->result);
    free(settings->facts);
    free(settings->script);
    free(settings->script_path);
    brig_policy_free(settings->policy);
    *settings = (struct settings){.cwd_fd = -1};
}

int settings_apply(struct settings *settings, const struct option_use *use, struct brig_error *err)
{
    const struct setter *setter = &setters[use->row->id];
    const char *dashes = settings->place == SETTINGS_COMMAND_LINE ? "--" : "";
    int status = setter->set           ? setter->set(settings, use->value, err)
                 : setter->set_by_row  ? setter->set_by_row(settings, setter, use->value, err)
                 : setter->policy_text ? setter->policy_text(settings->policy, use->value, err)
                 : setter->policy_on   ? setter->policy_on(settings->policy, true, err)
                                       : 0;
    return status < 0 ? brig_wrap(err, status, "%s%s", dashes, use->row->long_name) : 0;
}

/* Checks that involve several options. */
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
