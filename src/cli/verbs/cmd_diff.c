/* SPDX-License-Identifier: MIT */
/* `brig diff`: what a jail has changed in its copies of the user's files, or how two jails differ. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "changes/diff/diff.h"
#include "changes/diff/plain.h"
#include "changes/layer/change.h"
#include "changes/show/ignored_trees.h"
#include "cli/command.h"
#include "cli/jails.h"
#include "cli/out_path.h"
#include "cli/report.h"
#include "cli/verbs/git_print.h"
#include "cli/verbs/layers.h"
#include "cli/verbs/layers_git.h"
#include "cli/verbs/selection.h"
#include "git/git.h"

#define JAILS_MAX 2
#define CHANGED 1 /* the exit status if an item is not what was shown */

struct asking {
    const char *jail;              /* NULL: the one of this directory */
    const char *others[JAILS_MAX]; /* --jails */
    bool jails, stat, names, no_pager, shown;
    const char *patch; /* the file, or NULL */
    int path_count;
    char **paths;
};

/* ---- the command line ---- */

static int parse_option(const struct app *app, struct asking *asking, int argc, char **argv,
                        int *at, struct brig_error *err)
{
    const char *word = argv[*at];
    if (jails_take_option(argc, argv, at, &asking->jail))
        return 0;
    if (strcmp(word, "--stat") == 0) {
        asking->stat = true;
    } else if (strcmp(word, "--name-only") == 0) {
        asking->names = true;
    } else if (strcmp(word, "--no-pager") == 0) {
        asking->no_pager = true;
    } else if (strcmp(word, "--shown") == 0) {
        asking->shown = true;
    } else if (strcmp(word, "--patch") == 0 && *at + 1 < argc) {
        asking->patch = argv[++*at];
    } else if (str_starts_with(word, "--patch=")) {
        asking->patch = word + strlen("--patch=");
    } else if (strcmp(word, "--jails") == 0 && *at + JAILS_MAX < argc) {
        asking->jails = true;
        for (int i = 0; i < JAILS_MAX; i++)
            asking->others[i] = argv[++*at];
    } else {
        return command_refuse(app, argc, argv, *at, err);
    }
    ++*at;
    return 0;
}

/* Moves the paths to the beginning of argv. */
static int parse(const struct app *app, int argc, char **argv, struct asking *asking,
                 struct brig_error *err)
{
    asking->paths = argv;
    for (int at = 1; at < argc;) {
        if (strcmp(argv[at], "--") == 0) {
            for (at++; at < argc; at++)
                asking->paths[asking->path_count++] = argv[at];
        } else if (argv[at][0] != '-') {
            asking->paths[asking->path_count++] = argv[at++];
        } else {
            int status = parse_option(app, asking, argc, argv, &at, err);
            if (status < 0)
                return status;
        }
    }
    if (asking->stat + asking->names + (asking->patch != NULL) > 1)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "choose one of --stat, --name-only and --patch. See brig diff --help");
    if (asking->shown && (asking->jails || asking->names || asking->path_count > 0))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "--shown takes neither paths nor --jails nor --name-only");
    if (asking->jails && asking->jail)
        return brig_fail(err, BRIG_E_INVALID, 0, "--jails names both jails: leave out -j");
    return 0;
}

/* ---- the layers ---- */

/* One jail, or two that are compared. */
struct jails {
    struct verb_layers layers[JAILS_MAX];
    struct selections selections[JAILS_MAX]; /* the paths that were given */
    size_t count;
};

static struct change_options options_of(const struct jails *jails, size_t side, size_t index)
{
    const struct selection *selection = &jails->selections[side].items[index];
    return (struct change_options){
        .paths = selection->paths, .path_count = selection->path_count, .expand = true};
}

static void tell_running(const struct verb_layers *layers)
{
    for (size_t i = 0; i < layers->layers.count; i++) {
        if (!layers->layers.items[i].running)
            continue;
        message_note("the jail '%s' is running: its files may change meanwhile",
                     layers->layers.items[i].jail);
        return;
    }
}

/* ---- --name-only ---- */

struct names {
    const struct layer *layer;
    struct ignored_trees trees; /* one line for each */
    struct str out;
    struct str directory; /* an added or deleted directory, unless something is found in it */
};

static void append_name(struct str *out, const char *root, const char *path)
{
    autostr struct str whole = {0};
    str_concat(&whole, strcmp(root, "/") == 0 ? "" : root, "/", path);
    plain_append_name(out, whole.failed ? path : whole.data);
    str_append_char(out, '\n');
}

static void end_directory(struct names *names, const char *next)
{
    struct str *directory = &names->directory;
    if (directory->length > 0 && !(next && path_is_beneath(directory->data, next)))
        append_name(&names->out, names->layer->root, directory->data);
    directory->length = 0;
}

static int print_name(void *context, const struct change *change, struct brig_error *err)
{
    struct names *names = context;
    end_directory(names, change->path);
    struct ignored_tree *tree = ignored_trees_at(&names->trees, change);
    if (tree && tree->seen++ > 0)
        return 0;
    if (tree) {
        autostr struct str path = {0};
        str_concat(&path, tree->path, "/");
        append_name(&names->out, names->layer->root, path.failed ? tree->path : path.data);
    } else if (S_ISDIR(change->before.st_mode | change->after.st_mode) &&
               change->kind != CHANGE_METADATA && change->kind != CHANGE_TYPE)
        str_append(&names->directory, change->path);
    else
        append_name(&names->out, names->layer->root, change->path);
    int status = names->out.length >= 65536 ? message_print(&names->out, err) : 0;
    if (names->out.length >= 65536)
        names->out.length = 0;
    return status;
}

static int print_names(const struct jails *jails, struct brig_error *err)
{
    const struct layers *layers = &jails->layers[0].layers;
    struct git git = {0}; /* without one, nothing is ignored */
    int status = git_find_own(&git, err);
    for (size_t i = 0; i < layers->count && status == 0; i++) {
        struct names names = {.layer = &layers->items[i]};
        const struct change_options options = options_of(jails, 0, i);
        if (selection_is_empty(&jails->selections[0], i))
            continue;
        status = ignored_trees_find(names.layer, options.paths, options.path_count, &git,
                                    &names.trees, err);
        if (status == 0)
            status = changes_walk(names.layer, &options, print_name, &names, err);
        end_directory(&names, NULL);
        ignored_trees_done(&names.trees);
        if (status == 0)
            status = message_print(&names.out, err);
        str_done(&names.out);
        str_done(&names.directory);
    }
    git_done(&git);
    return status;
}

/* ---- the patch ---- */

/* The file of --patch: it is written beside its final name, and renamed when it is complete. */
struct patch_file {
    struct out_path path;
    int fd;
    char temporary[64]; /* its name until then; "": the file is written directly */
};

static int patch_open(const struct asking *asking, const struct identity *identity,
                      struct patch_file *file, struct brig_error *err)
{
    char cwd[PATH_LENGTH_MAX + 1];
    autofree char *absolute = NULL;
    struct stat info;
    *file = (struct patch_file){.path = OUT_PATH_INIT, .fd = -1};
    if (strcmp(asking->patch, "-") == 0 && isatty(STDOUT_FILENO))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "a patch is not for a terminal, which could obey what is in it. Name a "
                         "file, or leave out --patch");
    if (strcmp(asking->patch, "-") == 0) {
        file->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
        return file->fd < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno, "--patch -") : 0;
    }
    int status =
        path_make_absolute(getcwd(cwd, sizeof cwd) ? cwd : "/", asking->patch, &absolute, err);
    if (status == 0)
        status = out_path_find(absolute, identity, &file->path, err);
    if (status < 0)
        return status;
    if (file->path.fd >= 0 && fstat(file->path.fd, &info) == 0 && !S_ISREG(info.st_mode)) {
        file->fd = open(path_proc(file->path.fd).text, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    } else {
        (void)snprintf(file->temporary, sizeof file->temporary, ".brig-patch.%d", (int)getpid());
        file->fd = openat(file->path.dir_fd, file->temporary,
                          O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    }
    return file->fd < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write '%s'",
                                    str_shown(asking->patch).text)
                        : 0;
}

static int patch_close(const struct asking *asking, struct patch_file *file, int status,
                       struct brig_error *err)
{
    if (file->temporary[0] && status == 0 &&
        renameat(file->path.dir_fd, file->temporary, file->path.dir_fd, file->path.name) < 0)
        status = brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write '%s'",
                           str_shown(asking->patch).text);
    if (file->temporary[0] && status < 0 && file->fd >= 0)
        (void)unlinkat(file->path.dir_fd, file->temporary, 0);
    close_fd(&file->fd);
    out_path_done(&file->path);
    return status;
}

/* ---- with git ---- */

static int find_git(struct git *git, struct brig_error *err)
{
    int status = git_find_own(git, err);
    if (status == 0 && !git->program)
        status = brig_fail(err, BRIG_E_STATE, 0,
                           "brig diff needs git, which is not installed. Try --name-only");
    return status;
}

/* Ctrl-C is for the pager. */
static int show(const struct asking *asking, struct diff *diff, struct brig_error *err)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before[2];
    (void)sigaction(SIGINT, &ignore, &before[0]);
    (void)sigaction(SIGQUIT, &ignore, &before[1]);
    int status = diff_show(diff, err);
    (void)sigaction(SIGINT, &before[0], NULL);
    (void)sigaction(SIGQUIT, &before[1], NULL);
    if (status == 0 && diff_layer_count(diff) == 0)
        message_note("no changes");
    if (status == 0 && asking->patch && diff_layer_count(diff) > 1)
        message_note("the patch has changes of several directories: apply it in /");
    if (status == 0 && !asking->patch && diff_mapped_count(diff) > 0)
        message_note("a name with '%%' at its end, such as '.git%%', is shown for one that git "
                     "refuses");
    return status;
}

/* What was done in git follows the files. */
static int show_git(const struct asking *asking, const struct jails *jails, struct brig_error *err)
{
    const struct verb_layers *layers = &jails->layers[0];
    autostr struct str out = {0};
    struct git_printer printer = {.form = GIT_PRINT_FILES, .out = &out};
    bool wanted[LAYERS_MAX] = {false};
    if (asking->patch || asking->names || jails->count > 1)
        return 0;
    for (size_t i = 0; i < layers->layers.count; i++)
        wanted[i] = selection_has_root(&jails->selections[0], i);
    int status =
        layers_list_git(&layers->layers, wanted, layers->setup.settings.storage, &printer, err);
    str_done(&printer.listed);
    return status < 0 || out.length == 0 ? status : message_print(&out, err);
}

static const struct layer *find_root(const struct verb_layers *layers, const char *root)
{
    for (size_t i = 0; i < layers->layers.count; i++)
        if (strcmp(layers->layers.items[i].root, root) == 0)
            return &layers->layers.items[i];
    return NULL;
}

static int add_layer(const struct jails *jails, size_t side, size_t index, struct diff *diff,
                     struct brig_error *err)
{
    const struct layer *layer = &jails->layers[side].layers.items[index];
    const struct change_options options = options_of(jails, side, index);
    if (selection_is_empty(&jails->selections[side], index))
        return 0;
    if (jails->count == 1)
        return diff_add(diff, layer, &options, err);
    const struct layer *other = find_root(&jails->layers[!side], layer->root);
    if (side == 1 && other)
        return 0; /* added with the first jail */
    return diff_add_jails(diff, side == 0 ? layer : other, side == 0 ? other : layer, &options,
                          err);
}

/* Of the items of --shown. */
struct choosing {
    struct jails *jails;
    bool changed; /* one is not what was shown */
};

static int choose(void *context, const struct change *change, const char **ret_reason)
{
    struct choosing *choosing = context;
    const struct layers *layers = &choosing->jails->layers[0].layers;
    bool chosen = selection_has(&choosing->jails->selections[0],
                                (size_t)(change->layer - layers->items), change, ret_reason);
    choosing->changed = choosing->changed || *ret_reason;
    return chosen;
}

/* `record` has the temporary files of git. */
static int run_diff(const struct asking *asking, struct jails *jails, int record,
                    struct brig_error *err)
{
    struct choosing choosing = {.jails = jails};
    struct git git = {0};
    struct diff *diff = NULL;
    struct patch_file file = {.fd = -1, .path = OUT_PATH_INIT};
    int status = find_git(&git, err);
    if (status == 0 && asking->patch)
        status = patch_open(asking, &jails->layers[0].setup.identity, &file, err);
    struct diff_options options = {.form = asking->patch   ? DIFF_PATCH
                                           : asking->stat  ? DIFF_STAT
                                           : asking->names ? DIFF_NAMES
                                                           : DIFF_TEXT,
                                   .pager = !asking->no_pager,
                                   .terminal = isatty(STDOUT_FILENO),
                                   .output = asking->patch ? file.fd : STDOUT_FILENO,
                                   .notes = asking->patch ? STDERR_FILENO : STDOUT_FILENO,
                                   .choose = asking->shown ? choose : NULL,
                                   .context = &choosing};
    if (status == 0)
        status = diff_new(&git, record, &options, &diff, err);
    for (size_t side = 0; side < jails->count; side++)
        for (size_t i = 0; i < jails->layers[side].layers.count && status >= 0; i++)
            status = add_layer(jails, side, i, diff, err);
    if (status >= 0)
        status = show(asking, diff, err);
    diff_free(diff);
    if (asking->patch)
        status = patch_close(asking, &file, status, err);
    git_done(&git);
    bool gone = asking->shown && selections_unmatched(&jails->selections[0]);
    return status < 0 ? status : choosing.changed || gone ? CHANGED : 0;
}

/* ---- the verb ---- */

/* Opens the layers of a jail. If this changed the ids to those of the user, git reads the
 * configuration of that user. */
static int open_layers(struct verb_layers *layers, const char *jail, struct brig_error *err)
{
    uid_t before = geteuid();
    int status = verb_layers_open(layers, cmd_diff.name, jail, err);
    if (status == 0 && geteuid() != before) {
        (void)unsetenv("XDG_CONFIG_HOME");
        (void)setenv("HOME", layers->hidden.home[0] ? layers->hidden.home : "/", 1);
    }
    if (status == 0)
        tell_running(layers);
    return status;
}

/* Without paths, limits it to the reviewed directory that the working directory is in, which is returned. */
static const char *limit(struct asking *asking, const struct verb_layers *layers)
{
    const char *here = asking->path_count == 0 && !asking->shown ? verb_layers_here(layers) : NULL;
    if (here) {
        asking->paths[0] = (char *)(uintptr_t)here;
        asking->path_count = 1;
    }
    return here;
}

static void tell_unseen(const struct asking *asking, const struct jails *jails, const char *here)
{
    if (!asking->jails)
        verb_tell_elsewhere(&jails->layers[0], here, cmd_diff.name);
    else if (here && jails->layers[0].layers.count + jails->layers[1].layers.count > 2)
        message_note("only '%s' was compared; name other directories to compare those",
                     str_shown(here).text);
}

static int make_selections(const struct asking *asking, struct jails *jails,
                           struct verb_layers *const both[JAILS_MAX], struct brig_error *err)
{
    struct git git = {0}; /* an ignored directory is no item of a diff */
    if (asking->shown)
        return selections_read_shown(&jails->selections[0], both[0], &git, err);
    if (asking->jails)
        return selections_make_both(jails->selections, both, asking->path_count, asking->paths,
                                    err);
    return selections_make(&jails->selections[0], both[0], true, asking->path_count, asking->paths,
                           err);
}

static int diff_jails(struct asking *asking, struct jails *jails, struct brig_error *err)
{
    const char *here = NULL;
    int record = -1;
    for (size_t side = 0; side < jails->count; side++) {
        here = here ? here : limit(asking, &jails->layers[side]);
        if (record < 0 && jails->layers[side].layers.count > 0)
            record = jails->layers[side].layers.items[0].record;
    }
    if (record < 0 && asking->jails)
        message_note("neither jail has changes");
    else if (record < 0)
        message_note("the jail '%s' has no changes", jails->layers[0].setup.settings.jail);
    if (record < 0)
        return 0;
    struct verb_layers *const both[] = {&jails->layers[0], &jails->layers[1]};
    int status = make_selections(asking, jails, both, err);
    if (status == 0)
        status = asking->names && !asking->jails ? print_names(jails, err)
                                                 : run_diff(asking, jails, record, err);
    int shown = status >= 0 ? show_git(asking, jails, err) : 0;
    if (shown < 0)
        status = shown;
    if (status >= 0)
        tell_unseen(asking, jails, here);
    for (size_t side = 0; side < jails->count; side++)
        selections_done(&jails->selections[side]);
    return status;
}

static int run(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    struct asking asking = {0};
    autofree struct jails *jails = calloc(1, sizeof *jails);
    int status = jails ? parse(app, argc, argv, &asking, err) : brig_fail_nomem(err);
    size_t wanted = asking.jails ? JAILS_MAX : 1;
    while (status == 0 && jails->count < wanted) {
        const char *jail = asking.jails ? asking.others[jails->count] : asking.jail;
        status = open_layers(&jails->layers[jails->count], jail, err);
        jails->count += status == 0;
    }
    if (status == 0)
        status = diff_jails(&asking, jails, err);
    while (jails && jails->count > 0)
        verb_layers_done(&jails->layers[--jails->count]);
    return status;
}

const struct command cmd_diff = {
    .name = "diff",
    .summary = "show what a jail has changed in its copies of your files",
    .usage = "[-j NAME] [--stat|--name-only|--patch FILE] [--jails A B] [--no-pager] [--shown] "
             "[PATH...]",
    .words = COMMAND_WORDS_FILES,
    .run = run,
};
