/* SPDX-License-Identifier: MIT */
/* Turns options into a policy by a table: one setter a row of options.h. */
#include "settings.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/own.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/options.h"
#include "policy/policy.h"

#define PASS_FD_MIN 3
#define PASS_FD_NUMBER_MAX 255

struct setter {
    int (*set)(struct settings *settings, const struct setter *setter, const char *value,
               struct brig_error *err);
    int what;       /* an access or a limit */
    unsigned flags; /* of a grant */
};

/* Takes one part of "PATH[:DEST]" with its escapes resolved and returns where it stopped: at an
 * unescaped colon or at the end. */
static const char *take_part(const char *text, bool single, struct str *ret_part)
{
    for (; *text != '\0' && (single || *text != ':'); text++) {
        if (text[0] == '\\' && (text[1] == ':' || text[1] == '\\'))
            text++;
        str_append_char(ret_part, *text);
    }
    return text;
}

static int absolute_part(const char *cwd, const struct str *part, char **ret_path,
                         struct brig_error *err)
{
    return part->failed ? brig_fail_nomem(err) : path_make_absolute(cwd, part->data, ret_path, err);
}

/* What stands behind the colon of a value. */
static int take_dest(const char *cwd, const char *value, const char *text, char **ret_dest,
                     struct brig_error *err)
{
    autostr struct str part = {0};
    const char *end = take_part(text, false, &part);
    if (*end != '\0')
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'%s' has more than one colon; write \\: for a colon in a name",
                         str_shown(value).text);
    if (end == text)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'%s' has nothing after the colon; write \\: for a colon in a name",
                         str_shown(value).text);
    return absolute_part(cwd, &part, ret_dest, err);
}

int settings_split_path(const char *cwd, const char *value, bool single, char **ret_path,
                        char **ret_dest, struct brig_error *err)
{
    autofree char *path = NULL;
    autostr struct str part = {0};
    const char *rest = take_part(value, single, &part);
    if (rest == value)
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' names no path", str_shown(value).text);
    int status = absolute_part(cwd, &part, &path, err);
    if (status < 0)
        return status;
    char *dest = NULL;
    if (*rest == ':' && (status = take_dest(cwd, value, rest + 1, &dest, err)) < 0)
        return status;
    *ret_path = take_ptr(&path);
    *ret_dest = dest;
    return 0;
}

static int set_grant(struct settings *settings, const struct setter *setter, const char *value,
                     struct brig_error *err)
{
    autofree char *path = NULL;
    autofree char *dest = NULL;
    bool single = setter->what == BRIG_MASK || setter->what == BRIG_DEVICE;
    int status = settings_split_path(settings->cwd, value, single, &path, &dest, err);
    if (status < 0)
        return status;
    if (strcmp(dest ? dest : path, settings->cwd) == 0)
        settings->cwd_settled = true;
    return brig_policy_grant(settings->policy, (enum brig_access)setter->what, path, dest,
                             setter->flags, err);
}

static int set_ungrant(struct settings *settings, const struct setter *setter, const char *value,
                       struct brig_error *err)
{
    (void)setter;
    autofree char *path = NULL;
    autofree char *dest = NULL;
    int status = settings_split_path(settings->cwd, value, true, &path, &dest, err);
    if (status < 0)
        return status;
    size_t removed = 0;
    status = brig_policy_ungrant(settings->policy, path, &removed, err);
    if (status < 0)
        return status;
    /* A path that is not a rule is most likely a typing error, and then more is granted than
     * the caller believes. */
    bool is_cwd = strcmp(path, settings->cwd) == 0;
    if (removed == 0 && !is_cwd)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "no earlier rule is for exactly '%s'; see brig --dry-run, or use --mask",
                         str_shown(path).text);
    if (is_cwd)
        settings->cwd_settled = true;
    return 0;
}

static int bad_choice(const char *value, const char *choices, struct brig_error *err)
{
    return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is none of %s", str_shown(value).text, choices);
}

static int set_view(struct settings *settings, const struct setter *setter, const char *value,
                    struct brig_error *err)
{
    (void)setter;
    int view = policy_view_parse(value);
    if (view < 0)
        return bad_choice(value, policy_view_choices(), err);
    if (view == BRIG_VIEW_ROOT)
        return brig_fail(err, BRIG_E_INVALID, 0, "a root directory is given by --root DIR");
    return brig_policy_view(settings->policy, (enum brig_view)view, NULL, err);
}

static int set_root(struct settings *settings, const struct setter *setter, const char *value,
                    struct brig_error *err)
{
    (void)setter;
    autofree char *path = NULL;
    int status = path_make_absolute(settings->cwd, value, &path, err);
    if (status < 0)
        return status;
    return brig_policy_view(settings->policy, BRIG_VIEW_ROOT, path, err);
}

static int set_net(struct settings *settings, const struct setter *setter, const char *value,
                   struct brig_error *err)
{
    (void)setter;
    int network = policy_network_parse(value);
    if (network < 0)
        return bad_choice(value, policy_network_choices(), err);
    return brig_policy_network(settings->policy, (enum brig_network)network, err);
}

static int set_seccomp(struct settings *settings, const struct setter *setter, const char *value,
                       struct brig_error *err)
{
    (void)setter;
    int profile = policy_seccomp_parse(value);
    if (profile < 0)
        return bad_choice(value, policy_seccomp_choices(), err);
    return brig_policy_seccomp(settings->policy, (enum brig_seccomp)profile, err);
}

static int set_on_unsupported(struct settings *settings, const struct setter *setter,
                              const char *value, struct brig_error *err)
{
    (void)setter;
    int what = policy_on_unsupported_parse(value);
    if (what < 0)
        return bad_choice(value, policy_on_unsupported_choices(), err);
    return brig_policy_on_unsupported(settings->policy, (enum brig_on_unsupported)what, err);
}

static int set_disable(struct settings *settings, const struct setter *setter, const char *value,
                       struct brig_error *err)
{
    (void)setter;
    int layer = policy_layer_parse(value);
    if (layer < 0)
        return bad_choice(value, policy_layer_choices(), err);
    return brig_policy_disable(settings->policy, (unsigned)layer, err);
}

static int set_allow_nested(struct settings *settings, const struct setter *setter,
                            const char *value, struct brig_error *err)
{
    (void)setter;
    (void)value;
    return brig_policy_allow_nested(settings->policy, true, err);
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

static int set_variable(struct settings *settings, const struct setter *setter, const char *value,
                        struct brig_error *err)
{
    (void)setter;
    const char *equals = strchr(value, '=');
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

static int set_workdir(struct settings *settings, const struct setter *setter, const char *value,
                       struct brig_error *err)
{
    (void)setter;
    autofree char *path = NULL;
    int status = path_make_absolute(settings->cwd, value, &path, err);
    if (status < 0)
        return status;
    settings->workdir_given = true;
    return brig_policy_workdir(settings->policy, path, err);
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
        return brig_fail(err, BRIG_E_INVALID, 0, "'' is no file; give a path or an fd number");
    settings->result = value;
    return 0;
}

enum { FLAG_NOCWD, FLAG_DRY_RUN, FLAG_JSON, FLAG_VERBOSE };

static int set_flag(struct settings *settings, const struct setter *setter, const char *value,
                    struct brig_error *err)
{
    (void)value;
    (void)err;
    bool *const flags[] = {
        [FLAG_NOCWD] = &settings->nocwd,
        [FLAG_DRY_RUN] = &settings->dry_run,
        [FLAG_JSON] = &settings->json,
        [FLAG_VERBOSE] = &settings->verbose,
    };
    *flags[setter->what] = true;
    return 0;
}

/* For what settings_scan has dealt with. */
static int set_nothing(struct settings *settings, const struct setter *setter, const char *value,
                       struct brig_error *err)
{
    (void)settings;
    (void)setter;
    (void)value;
    (void)err;
    return 0;
}

static const struct setter setters[OPTION_COUNT_] = {
    [OPTION_MODE] = {set_nothing, 0, 0},
    [OPTION_VIEW] = {set_view, 0, 0},
    [OPTION_ROOT] = {set_root, 0, 0},
    [OPTION_NET] = {set_net, 0, 0},
    [OPTION_SECCOMP] = {set_seccomp, 0, 0},
    [OPTION_ALLOW_NESTED] = {set_allow_nested, 0, 0},
    [OPTION_ON_UNSUPPORTED] = {set_on_unsupported, 0, 0},
    [OPTION_DISABLE] = {set_disable, 0, 0},
    [OPTION_DIR] = {set_grant, BRIG_READ_WRITE, 0},
    [OPTION_DIR_CREATE] = {set_grant, BRIG_READ_WRITE, BRIG_GRANT_CREATE},
    [OPTION_DIR_OPTIONAL] = {set_grant, BRIG_READ_WRITE, BRIG_GRANT_OPTIONAL},
    [OPTION_RDIR] = {set_grant, BRIG_READ_ONLY, 0},
    [OPTION_RDIR_OPTIONAL] = {set_grant, BRIG_READ_ONLY, BRIG_GRANT_OPTIONAL},
    [OPTION_MASK] = {set_grant, BRIG_MASK, 0},
    [OPTION_MASK_OPTIONAL] = {set_grant, BRIG_MASK, BRIG_GRANT_OPTIONAL},
    [OPTION_DEVICE] = {set_grant, BRIG_DEVICE, 0},
    [OPTION_DEVICE_OPTIONAL] = {set_grant, BRIG_DEVICE, BRIG_GRANT_OPTIONAL},
    [OPTION_XDIR] = {set_ungrant, 0, 0},
    [OPTION_NOCWD] = {set_flag, FLAG_NOCWD, 0},
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
    [OPTION_SETENV] = {set_variable, 0, 0},
    [OPTION_UNSETENV] = {unset_variables, 0, 0},
    [OPTION_WORKDIR] = {set_workdir, 0, 0},
    [OPTION_HOSTNAME] = {set_hostname, 0, 0},
    [OPTION_NO_TERMINAL] = {set_no_terminal, 0, 0},
    [OPTION_PASS_FD] = {set_pass_fd, 0, 0},
    [OPTION_RESULT] = {set_result, 0, 0},
    [OPTION_DRY_RUN] = {set_flag, FLAG_DRY_RUN, 0},
    [OPTION_JSON] = {set_flag, FLAG_JSON, 0},
    [OPTION_VERBOSE] = {set_flag, FLAG_VERBOSE, 0},
    [OPTION_HELP] = {set_nothing, 0, 0},
    [OPTION_VERSION] = {set_nothing, 0, 0},
};

static int scan_mode(const char *value, struct settings_scan *scan, struct brig_error *err)
{
    int mode = policy_mode_parse(value);
    if (mode < 0)
        return brig_wrap(err, bad_choice(value, policy_mode_choices(), err), "--mode");
    scan->mode = (enum brig_mode)mode;
    return 0;
}

int settings_scan(int argc, char *const *argv, struct settings_scan *ret_scan,
                  struct brig_error *err)
{
    struct settings_scan scan = {.mode = BRIG_MODE_SEALED};
    struct options_cursor cursor = {.argc = argc, .argv = argv, .next = 1};
    struct option_use use;
    int status;
    while ((status = options_next(&cursor, &use, err)) > 0) {
        if (use.row->id == OPTION_MODE && (status = scan_mode(use.value, &scan, err)) < 0)
            return status;
        scan.help = scan.help || use.row->id == OPTION_HELP;
        scan.version = scan.version || use.row->id == OPTION_VERSION;
        scan.nocwd = scan.nocwd || use.row->id == OPTION_NOCWD;
        if (scan.help || scan.version)
            break;
    }
    if (status < 0)
        return status;
    scan.command = cursor.next;
    *ret_scan = scan;
    return 0;
}

int settings_init(struct settings *settings, enum brig_mode mode, const char *cwd,
                  struct brig_error *err)
{
    *settings = (struct settings){.cwd = cwd, .policy = brig_policy_new(mode)};
    if (!settings->policy)
        return brig_fail_nomem(err);
    int status = brig_policy_limit(settings->policy, BRIG_LIMIT_GRACE_MS, SETTINGS_GRACE_MS, err);
    if (status < 0)
        settings_done(settings);
    return status;
}

void settings_done(struct settings *settings)
{
    brig_policy_free(take_ptr(&settings->policy));
}

int settings_apply(struct settings *settings, const struct option_use *use, struct brig_error *err)
{
    const struct setter *setter = &setters[use->row->id];
    int status = setter->set(settings, setter, use->value, err);
    return status < 0 ? brig_wrap(err, status, "--%s", use->row->long_name) : 0;
}

int settings_apply_all(struct settings *settings, int argc, char *const *argv,
                       struct brig_error *err)
{
    int status = brig_policy_origin(settings->policy, "command line", err);
    if (status < 0)
        return status;
    struct options_cursor cursor = {.argc = argc, .argv = argv, .next = 1};
    struct option_use use;
    while ((status = options_next(&cursor, &use, err)) > 0) {
        status = settings_apply(settings, &use, err);
        if (status < 0)
            return status;
    }
    if (status == 0 && settings->json && !settings->dry_run)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "--json goes with --dry-run; for what became of a run use --result FILE");
    return status;
}
