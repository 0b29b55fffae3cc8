/* SPDX-License-Identifier: MIT */
/* Shared by the verbs that manage jails: finds the jail, its runs and its file. */
#include "cli/jails.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/out_path.h"
#include "cli/project.h"
#include "cli/report.h"
#include "cli/settings/config.h"
#include "cli/settings/settings.h"
#include "git/guard.h"
#include "home/home.h"
#include "home/jails.h"
#include "policy/conf.h"
#include "policy/policy.h"

/* Finds the storage and the jail of a run without options, which files may set. */
static int find_storage(struct jails_place *place, struct brig_error *err)
{
    const struct settings_scan nothing = {.given[OPTION_NOCWD] = "", .of_verb = true};
    char cwd[PATH_LENGTH_MAX + 1];
    struct config_files files = {0};
    struct config config = {0};
    if (!getcwd(cwd, sizeof cwd))
        (void)snprintf(cwd, sizeof cwd, "/");
    int status = config_files_find(&files, &place->identity, cwd, err);
    if (status == 0)
        status = config_read(&files.world, &nothing, 0, NULL, &config, err);
    if (status == 0) {
        (void)snprintf(place->storage, sizeof place->storage, "%s", config.storage);
        (void)snprintf(place->jail, sizeof place->jail, "%s", config.jail);
        (void)snprintf(place->project, sizeof place->project, "%s",
                       config.project ? config.project : "");
        jails_set_here(config.jail);
    }
    config_done(&config);
    config_files_done(&files);
    return status;
}

int jails_place_find(struct jails_place *ret_place, struct brig_error *err)
{
    identity_find(&ret_place->identity);
    const struct identity *identity = &ret_place->identity;
    ret_place->uid = identity_uid(identity);
    ret_place->stranger = geteuid() == 0 ? policy_isolated_uid(ret_place->uid) : (uid_t)-1;
    return find_storage(ret_place, err);
}

static int offer(void *context, const struct jail_info *jail, struct brig_error *err)
{
    (void)err;
    nearest_offer(context, jail->name, strlen(jail->name));
    return 0;
}

int jails_fail_unknown(const struct jails_place *place, const char *verb, const char *name,
                       struct brig_error *err)
{
    struct nearest nearest;
    if (name[0] == '-')
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "brig %s has no option '%s', and there is no jail of that name. See brig "
                         "%s --help",
                         verb, str_shown(name).text, verb);
    nearest_begin(&nearest, name);
    identity_enter(&place->identity);
    (void)jails_each(place->storage, place->uid, false, offer, &nearest, NULL);
    identity_leave(&place->identity);
    (void)brig_fail(err, BRIG_E_INVALID, 0, "there is no jail '%s'", str_shown(name).text);
    return nearest.best[0] ? nearest_advise(&nearest, "", BRIG_E_INVALID, err)
                           : brig_advise(err, BRIG_E_INVALID, "See brig list");
}

int jails_become_user(struct jails_place *place, struct brig_error *err)
{
    place->stranger = (uid_t)-1;
    int failed = identity_become(&place->identity);
    return failed < 0 ? brig_fail(err, BRIG_E_SYSTEM, -failed, "cannot act as uid %u", place->uid)
                      : 0;
}

/* ---- -j ---- */

bool jails_take_option(int argc, char **argv, int *at, const char **ret_jail)
{
    const char *word = argv[*at];
    if (strcmp(word, "-j") == 0 || strcmp(word, "--jail") == 0) {
        if (*at + 1 >= argc)
            return false;
        *ret_jail = argv[++*at];
    } else if (str_starts_with(word, "--jail=")) {
        *ret_jail = word + strlen("--jail=");
    } else if (str_starts_with(word, "-j")) {
        *ret_jail = word + strlen("-j");
    } else {
        return false;
    }
    ++*at;
    return true;
}

/* Sets the option at argv[*at] and advances *at past it; false if it is none of them. */
static bool take_word(int argc, char **argv, int *at, const struct jails_word *options)
{
    const char *word = argv[*at];
    for (const struct jails_word *option = options; option->name; option++) {
        size_t length = strlen(option->name);
        if (!str_starts_with(word, option->name))
            continue;
        if (option->value && word[length] == '=')
            *option->value = word + length + 1;
        else if (word[length] || (option->value && *at + 1 >= argc))
            continue;
        else if (option->value)
            *option->value = argv[++*at];
        else
            *option->flag = true;
        ++*at;
        return true;
    }
    return false;
}

static bool is_option(const char *word)
{
    return word[0] == '-' && word[1];
}

int jails_parse_options(const struct app *app, int argc, char **argv,
                        const struct jails_word *options, const char **ret_jail,
                        struct brig_error *err)
{
    int at = 1;
    while (at < argc && is_option(argv[at]) && strcmp(argv[at], "--") != 0)
        if (!jails_take_option(argc, argv, &at, ret_jail) && !take_word(argc, argv, &at, options))
            return command_refuse(app, argc, argv, at, err);
    return at;
}

int jails_parse_paths(const struct app *app, int argc, char **argv, int at, struct brig_error *err)
{
    if (at < argc && strcmp(argv[at], "--") == 0)
        return at + 1;
    for (int i = at; i < argc; i++)
        if (is_option(argv[i]))
            return command_refuse(app, argc, argv, i, err);
    return at;
}

int jails_parse_words(const struct app *app, int argc, char **argv,
                      const struct jails_word *options, const char **ret_jail,
                      struct brig_error *err)
{
    int at = jails_parse_options(app, argc, argv, options, ret_jail, err);
    return at < 0 ? at : jails_parse_paths(app, argc, argv, at, err);
}

int jails_check(const struct jails_place *place, const char *verb, const char *name,
                struct brig_error *err)
{
    struct jail_info jail;
    int status = jails_check_name(name, err);
    if (status == 0)
        status = jails_find(place->storage, name, place->uid, &jail, err);
    return status != 0 ? status : jails_fail_unknown(place, verb, name, err);
}

int jails_each_part(const struct jails_place *place, const char *verb, const char *jail,
                    const char *part, jails_part_visit visit, void *context, struct brig_error *err)
{
    struct dirent **names = NULL;
    int status = jail ? jails_check(place, verb, jail, err) : 0;
    autoclose int storage =
        status < 0 ? -1 : open(place->storage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (status < 0 || storage < 0 || jail)
        return status < 0 || storage < 0 ? status : visit(context, storage, jail, err);
    int count = scandirat(storage, ".", &names, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char *end = strrchr(names[i]->d_name, '.');
        if (status >= 0 && end && end > names[i]->d_name && strcmp(end, part) == 0) {
            *end = '\0';
            status = visit(context, storage, names[i]->d_name, err);
        }
        free(names[i]);
    }
    free(names);
    return status;
}

int jails_open_part(int storage, const char *jail, const char *part, bool make)
{
    char name[PATH_COMPONENT_MAX + 1];
    (void)str_fill(name, sizeof name, jail, part);
    if (make)
        (void)mkdirat(storage, name, 0700);
    return openat(storage, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int jails_open_git(const char *storage, const char *jail)
{
    autoclose int dir = open(storage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dir < 0 ? -1 : jails_open_part(dir, jail, GUARD_PART, false);
}

/* ---- -u ---- */

struct unmounting {
    const char *storage;
    uid_t uid;
    int status;
};

static int unmount_one(struct unmounting *unmounting, const char *name, struct brig_error *err)
{
    struct home_state state;
    int status = jails_stop(unmounting->storage, name, unmounting->uid, &state, err);
    if (status != BRIG_E_STATE)
        return status;
    for (size_t i = 0; i < state.pid_count; i++)
        message_error("the jail '%s' is in use by process %d; end it, or: brig stop %s", name,
                      state.pids[i], name);
    unmounting->status = APP_FAILED;
    return 0;
}

static int visit(void *context, const struct jail_info *jail, struct brig_error *err)
{
    return jail->state.held ? unmount_one(context, jail->name, err) : 0;
}

int jails_unmount(const char *storage, const char *name, const struct identity *identity,
                  struct brig_error *err)
{
    uid_t user = identity_uid(identity);
    struct unmounting unmounting = {.storage = storage};
    /* Root's jails may have an isolated uid. */
    bool root = geteuid() == 0;
    const uid_t ids[] = {user, root ? policy_isolated_uid(user) : user};
    int status = 0;
    for (size_t i = 0; i < (root ? ARRAY_LENGTH(ids) : 1) && status >= 0; i++) {
        unmounting.uid = ids[i];
        status = name ? unmount_one(&unmounting, name, err)
                      : jails_each(storage, ids[i], false, visit, &unmounting, err);
    }
    return status < 0 ? status : unmounting.status;
}

/* ---- the mode ---- */

struct mode_found {
    char *buffer;
    size_t size;
};

static int take_directive(void *context, const struct conf_directive *directive,
                          struct brig_error *err)
{
    (void)err;
    const struct mode_found *found = context;
    if (strcmp(directive->name, "mode") == 0 && directive->value)
        (void)snprintf(found->buffer, found->size, "%s", directive->value);
    return 0;
}

void jails_mode(const char *storage, const char *name, char *buffer, size_t size)
{
    struct mode_found found = {buffer, size};
    const struct conf_hooks hooks = {.context = &found, .directive = take_directive};
    char file[PATH_COMPONENT_MAX + 1];
    char project[PATH_LENGTH_MAX + 1];
    bool unnamed = strcmp(name, SETTINGS_JAIL) == 0 || project_of(storage, name, project);
    (void)snprintf(buffer, size, "%s", unnamed ? "casual" : "-");
    (void)snprintf(file, sizeof file, "%s.jail", name);
    autoclose int dir = open(storage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autosource struct conf_source source = {0};
    if (dir >= 0 && conf_load(dir, storage, file, true, &source, NULL) == 1)
        (void)conf_read(&source, &hooks, NULL);
}

/* ---- Running jails ---- */

void runs_done(struct runs *runs)
{
    for (size_t i = 0; i < runs->count; i++)
        attach_done(&runs->items[i]);
    runs->count = 0;
}

/* Skips a run that cannot be entered: it may have ended, or belong to another user. */
static void add(struct runs *runs, pid_t pid, const char *jail, uid_t owner)
{
    struct attach entry;
    if (runs->count == RUNS_FOUND_MAX || attach_find(pid, &entry, NULL) < 0)
        return;
    if (strcmp(entry.record.jail, jail) == 0 && entry.record.facts.owner == owner)
        runs->items[runs->count++] = entry;
    else
        attach_done(&entry);
}

static int compare(const void *left, const void *right)
{
    const struct attach *a = left, *b = right;
    if (a->start_time != b->start_time)
        return a->start_time > b->start_time ? -1 : 1;
    return a->supervisor > b->supervisor ? -1 : a->supervisor < b->supervisor;
}

static int add_held(const struct jails_place *place, uid_t uid, const char *jail, struct runs *runs,
                    struct brig_error *err)
{
    struct home_state state;
    int status = jails_ask(place->storage, jail, uid, &state, err);
    for (size_t i = 0; i < state.pid_count && status == 0; i++)
        add(runs, state.pids[i], jail, place->uid);
    return status;
}

static void add_named(const struct jails_place *place, const char *jail, struct runs *runs)
{
    autodir DIR *dir = opendir("/proc");
    const struct dirent *item;
    uint64_t pid;
    while (dir && (item = readdir(dir)))
        if (parse_uint(item->d_name, INT32_MAX, 0, &pid, NULL) == 0 && (pid_t)pid != getpid())
            add(runs, (pid_t)pid, jail, place->uid);
}

int runs_find(const struct jails_place *place, const char *jail, struct runs *ret_runs,
              struct brig_error *err)
{
    ret_runs->count = 0;
    int status = add_held(place, place->uid, jail, ret_runs, err);
    if (status == 0 && place->stranger != (uid_t)-1)
        status = add_held(place, place->stranger, jail, ret_runs, err);
    if (status == 0 && ret_runs->count == 0)
        add_named(place, jail, ret_runs);
    if (status < 0)
        runs_done(ret_runs);
    else
        qsort(ret_runs->items, ret_runs->count, sizeof *ret_runs->items, compare);
    return status;
}

/* ---- NAME.jail, which the user may also edit ---- */

/* Appends a value with the quoting of a .conf or .jail file. */
static void quote(struct str *out, const char *value)
{
    for (const char *at = value; *at; at++) {
        bool end = at == value || at[1] == '\0';
        switch (*at) {
        case '\n':
            str_append(out, "\\n");
            break;
        case '\r':
            str_append(out, "\\r");
            break;
        case '\t':
            str_append(out, "\\t");
            break;
        case '\\': /* it is unquoted twice: for the syntax, and for variables */
            str_append(out, "\\\\\\\\");
            break;
        default:
            /* Blanks at the ends would be dropped, and a leading '=' would be taken for the
             * separator. */
            if (*at == '$' || (end && (*at == ' ' || *at == '=')))
                str_append_char(out, '\\');
            str_append_char(out, *at);
        }
    }
}

/* Whether a line, without its newline, continues in the next. */
static bool is_continued(const char *line, size_t length)
{
    size_t backslashes = 0;
    while (backslashes < length && line[length - 1 - backslashes] == '\\')
        backslashes++;
    return backslashes % 2 == 1;
}

static bool is_line(const char *line, size_t length, const char *name, const struct str *value)
{
    size_t name_length = strlen(name);
    return length == name_length + 1 + value->length && memcmp(line, name, name_length) == 0 &&
           line[name_length] == ' ' &&
           (value->length == 0 || memcmp(line + name_length + 1, value->data, value->length) == 0);
}

void jail_text_set_mask(struct str *out, const char *text, size_t length, const char *value,
                        bool unmask)
{
    struct str quoted = {0};
    quote(&quoted, value);
    bool continues = false;
    for (size_t at = 0; at < length && !quoted.failed;) {
        const char *line = text + at;
        const char *end = memchr(line, '\n', length - at);
        size_t size = end ? (size_t)(end - line) : length - at;
        at += size + 1;
        bool says = !continues && (is_line(line, size, "mask", &quoted) ||
                                   is_line(line, size, "unmask", &quoted));
        continues = is_continued(line, size);
        if (says)
            continue;
        str_append_bytes(out, line, size);
        str_append_char(out, '\n');
    }
    if (continues) /* the last line ends in a backslash */
        str_append_char(out, '\n');
    str_appendf(out, "%s %s\n", unmask ? "unmask" : "mask", quoted.failed ? "" : quoted.data);
    out->failed = out->failed || quoted.failed;
    str_done(&quoted);
}

/* Whether the line of a file decides about the rule of `line`: it is the same rule, or its name
 * without ports. */
static bool is_about(const char *text, size_t length, const char *line)
{
    const char *rule = strchr(line, ' ') + 1;
    size_t word = text[0] == 'a' ? strlen("allow ") : strlen("deny ");
    if (length <= word || (memcmp(text, "allow ", 6) != 0 && memcmp(text, "deny ", 5) != 0))
        return false;
    size_t size = length - word, name = strcspn(rule, ":");
    return (size == strlen(rule) && memcmp(text + word, rule, size) == 0) ||
           (size == name && memcmp(text + word, rule, size) == 0);
}

void jail_text_add_rule(struct str *out, const char *text, size_t length, const char *line)
{
    bool continues = false, net = false;
    for (size_t at = 0; at < length;) {
        const char *begin = text + at;
        const char *end = memchr(begin, '\n', length - at);
        size_t size = end ? (size_t)(end - begin) : length - at;
        at += size + 1;
        bool whole = !continues;
        continues = is_continued(begin, size);
        net = net || (whole && size > 4 && memcmp(begin, "net ", 4) == 0);
        if (whole && is_about(begin, size, line))
            continue;
        str_append_bytes(out, begin, size);
        str_append_char(out, '\n');
    }
    if (continues) /* the last line ends in a backslash */
        str_append_char(out, '\n');
    str_concat(out, net ? "" : "net ask\n", line, "\n");
}

/* A change of NAME.jail: masks, or a rule. */
struct jail_change {
    const char *const *paths;
    size_t count;
    bool unmask;
    const char *rule; /* NULL: the masks */
};

static void apply_change(struct str *text, const struct jail_change *wanted)
{
    for (size_t i = 0; i < (wanted->rule ? 1 : wanted->count); i++) {
        struct str changed = {.failed = text->failed};
        const char *data = text->data ? text->data : "";
        if (wanted->rule)
            jail_text_add_rule(&changed, data, text->length, wanted->rule);
        else
            jail_text_set_mask(&changed, data, text->length, wanted->paths[i], wanted->unmask);
        str_done(text);
        *text = changed;
    }
}

/* Replaces NAME.jail or, if it is a link, the file that it leads to. */
static int change(const char *path, const struct jail_change *wanted, struct brig_error *err)
{
    char real[PATH_LENGTH_MAX + 1];
    struct stat info;
    if (!path_resolve(path, real))
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot find '%s'", str_shown(path).text);
    autosource struct conf_source source = {0};
    int status = conf_load(AT_FDCWD, NULL, real, false, &source, err);
    if (status < 0)
        return status;
    autostr struct str text = {0};
    str_append_bytes(&text, source.text, source.length);
    apply_change(&text, wanted);
    if (text.failed)
        return brig_fail_nomem(err);
    mode_t mode = stat(real, &info) == 0 ? info.st_mode & 0777 : 0600;
    char *name = strrchr(real, '/');
    *name++ = '\0';
    autoclose int dir_fd = open(*real ? real : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    status = out_file_write(dir_fd, name, text.data, mode, true, err);
    return status < 0 ? status : 0;
}

int jail_file_set_masks(const char *storage, const char *name, const char *const *paths,
                        size_t count, bool unmask, struct brig_error *err)
{
    autoclose int dir = -1;
    autofree char *path = NULL;
    int status = config_make_directory(storage, &dir, err);
    if (status < 0)
        return status;
    if (flock(dir, LOCK_EX) < 0) /* until it is closed: another process may change it, too */
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot lock '%s'", str_shown(storage).text);
    status = config_write_jail(dir, name, BRIG_MODE_CASUAL, true, err);
    if (status == 0)
        status = str_make(&path, err, storage, "/", name, ".jail");
    const struct jail_change wanted = {.paths = paths, .count = count, .unmask = unmask};
    return status < 0 ? status : change(path, &wanted, err);
}

int jail_file_add_rule(const char *storage, const char *name, const char *line,
                       struct brig_error *err)
{
    autofree char *path = NULL;
    autoclose int dir = open(storage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || flock(dir, LOCK_EX) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot lock '%s'", str_shown(storage).text);
    const struct jail_change wanted = {.rule = line};
    int status = str_make(&path, err, storage, "/", name, ".jail");
    return status < 0 ? status : change(path, &wanted, err);
}
