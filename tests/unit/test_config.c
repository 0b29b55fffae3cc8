/* SPDX-License-Identifier: MIT */
/* The chain of configuration: which files are read, who wins, and what mistakes are called. */
#include "cli/settings/config.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "cli/settings/options.h"
#include "cli/settings/settings.h"
#include "policy/conf.h"
#include "policy/defaults.h"
#include "policy/policy.h"
#include "tap.h"

#define HOME "/home/u"
#define CWD HOME "/project"
#define DIR "/cfg"
#define STORE "/store"

/* A filesystem: "/dir/name" and what is in it, ended by NULL. */
struct file {
    const char *path;
    const char *text;
};

struct world_files {
    const struct file *files;
};

static int find_file(const struct world_files *in, const char *path, struct conf_source *ret_source)
{
    for (size_t i = 0; in->files[i].path; i++) {
        if (strcmp(in->files[i].path, path) != 0)
            continue;
        *ret_source = (struct conf_source){
            .name = strdup(path),
            .text = strdup(in->files[i].text),
            .length = strlen(in->files[i].text),
            .ino = i + 1,
        };
        return 1;
    }
    return 0;
}

static int on_test_load(void *context, const char *dir, const char *name, bool exact, bool optional,
                        struct conf_source *ret_source, struct brig_error *err)
{
    char path[256];
    const char *rest = str_starts_with(name, "./") ? name + 2 : name;
    (void)snprintf(path, sizeof path, "%s/%s", dir ? dir : CWD, rest);
    int found = find_file(context, path, ret_source);
    if (!found && !exact) {
        strncat(path, ".conf", sizeof path - strlen(path) - 1);
        found = find_file(context, path, ret_source);
    }
    return found || optional
               ? found
               : brig_fail(err, BRIG_E_INVALID, 0, "no such configuration file: %s", name);
}

static int on_test_project(void *context, struct conf_source *ret_source, struct brig_error *err)
{
    (void)err;
    return find_file(context, CWD "/.brig.conf", ret_source);
}

static const char *on_test_variable(void *context, const char *name)
{
    (void)context;
    return strcmp(name, "OUTER") == 0 ? "outer" : strcmp(name, "A") == 0 ? "env" : NULL;
}

/* A whole run of the chain. */
struct chain {
    struct config config;
    struct settings settings;
    char message[BRIG_MESSAGE_MAX];
};

#define WORDS(...) ((char *[]){(char[]){"brig"}, __VA_ARGS__, NULL})
#define W(text) ((char[]){text})
#define NONE W("cmd")
#define FILES(...) ((struct file[]){__VA_ARGS__, {0}})

static void chain_done(struct chain *chain)
{
    settings_done(&chain->settings);
    config_done(&chain->config);
}

static bool on_test_of_project(void *context, const char *storage, const char *jail,
                               char project[static PATH_LENGTH_MAX + 1])
{
    (void)context;
    (void)storage;
    (void)snprintf(project, PATH_LENGTH_MAX + 1, "/of/project");
    return strcmp(jail, "of-project") == 0;
}

/* NULL if all went well, else the message; then nothing is to be released. */
static const char *run_chain(struct chain *chain, const struct file *files, char **argv)
{
    *chain = (struct chain){0};
    struct world_files in = {files};
    const struct config_world world = {
        .context = &in,
        .cwd = CWD,
        .home = HOME,
        .user = "u",
        .dir = DIR,
        .storage = STORE,
        .variable = on_test_variable,
        .load = on_test_load,
        .load_project = on_test_project,
        .of_project = on_test_of_project,
    };
    struct brig_error err = {0};
    struct settings_scan scan;
    int argc = 0;
    while (argv[argc])
        argc++;
    int status = settings_scan(argc, argv, &scan, &err);
    if (status == 0)
        status = config_read(&world, &scan, argc, argv, &chain->config, &err);
    if (status == 0)
        status = settings_init(&chain->settings, chain->config.mode, CWD, &err);
    if (status == 0 && !chain->config.nocwd)
        status = brig_policy_grant(chain->settings.policy, BRIG_READ_WRITE, CWD, NULL, 0, &err);
    if (status == 0)
        status = config_apply(&chain->config, &world, &chain->settings, &err);
    if (status == 0)
        status = settings_apply_all(&chain->settings, argc, argv, &err);
    if (status == 0)
        status = config_apply_project(&chain->config, &chain->settings, &err);
    if (status == 0)
        return NULL;
    (void)snprintf(chain->message, sizeof chain->message, "%s", err.message);
    chain_done(chain);
    return chain->message;
}

/* The last rule for a destination as "access [origin]". */
static const char *rule(const struct chain *chain, const char *dest)
{
    static char text[256];
    (void)snprintf(text, sizeof text, "none");
    for (size_t i = 0; i < chain->settings.policy->grant_count; i++) {
        const struct policy_grant *grant = &chain->settings.policy->grants[i];
        if (strcmp(grant->dest, dest) == 0)
            (void)snprintf(text, sizeof text, "%s [%s]", policy_word(POLICY_ACCESS, grant->access),
                           grant->origin);
    }
    return text;
}

/* What the command would find under a name, where the caller has this environment. */
static const char *variable_inside(const struct chain *chain, const char *name)
{
    static char text[256];
    static const char *const envp[] = {"A=env",         "MY_TOKEN=t", "SSH_AUTH_SOCK=s",
                                       "AWS_REGION=eu", "EDITOR=vi",  NULL};
    char **env = NULL;
    text[0] = '\0';
    if (policy_environment(chain->settings.policy, envp, &env, NULL) < 0)
        return "failed";
    for (size_t i = 0; env[i]; i++)
        if (config_assigned(env[i], name))
            (void)snprintf(text, sizeof text, "%s", config_assigned(env[i], name));
    free(env);
    return text;
}

/* The last word on a path in the home directory. */
static const char *mask_of(const struct chain *chain, const char *path)
{
    const char *found = "none";
    for (size_t i = 0; i < chain->settings.mask_count; i++)
        if (strcmp(chain->settings.masks[i].path, path) == 0)
            found = chain->settings.masks[i].unmask ? "unmask" : "mask";
    return found;
}

static void test_choice(void)
{
    struct chain c;
    const struct file *files =
        FILES({DIR "/default.conf", "setenv F=default"}, {DIR "/cmd.conf", "setenv F=cmd"},
              {DIR "/other.conf", "setenv F=other"}, {CWD "/here.conf", "setenv F=here"});
    if (tap_is_str(run_chain(&c, files, WORDS(NONE)), NULL, "a command may have a file")) {
        tap_is_str(variable_inside(&c, "F"), "cmd", "which is read for it");
        chain_done(&c);
    }
    if (tap_is_str(run_chain(&c, files, WORDS(W("/bin/cmd"))), NULL, "a path is no plain name")) {
        tap_is_str(variable_inside(&c, "F"), "default", "so default.conf is read");
        chain_done(&c);
    }
    if (tap_is_str(run_chain(&c, files, WORDS(W("-Cother"), NONE)), NULL, "-C chooses")) {
        tap_is_str(variable_inside(&c, "F"), "other", "with or without .conf");
        chain_done(&c);
    }
    if (tap_is_str(run_chain(&c, files, WORDS(W("-C./here.conf"), NONE)), NULL, "with a slash")) {
        tap_is_str(variable_inside(&c, "F"), "here", "it begins at the working directory");
        chain_done(&c);
    }
    tap_has_str(run_chain(&c, files, WORDS(W("-Cnope"), NONE)),
                "--conf: no such configuration file: nope", "a missing one is an error");
    if (tap_is_str(run_chain(&c, files, WORDS(W("--conf?=nope"), NONE)), NULL, "unless optional")) {
        tap_is_str(variable_inside(&c, "F"), "cmd", "and then it is as if nothing was said");
        chain_done(&c);
    }
    if (tap_is_str(run_chain(&c, FILES({0}), WORDS(NONE)), NULL, "no file is needed")) {
        tap_ok(c.config.mode == BRIG_MODE_CASUAL, "the mode is then casual");
        tap_is_str(c.settings.jail, "default", "the jail's name default");
        tap_is_str(c.settings.storage, STORE, "and the storage where it is by default");
        tap_ok(!c.settings.mode_origin && !c.settings.jail_exists && !c.settings.jail_given,
               "which nobody has asked for");
        chain_done(&c);
    }
}

static void test_mode(void)
{
    struct chain c;
    const struct file *files = FILES({DIR "/default.conf", "mode bare\njail work\n"},
                                     {STORE "/strict.jail", "mode strict\n"});
    if (tap_is_str(run_chain(&c, files, WORDS(NONE)), NULL, "a file may choose jail and mode")) {
        tap_ok(c.config.mode == BRIG_MODE_BARE && strcmp(c.settings.jail, "work") == 0,
               "both hold");
        tap_is_str(c.settings.mode_origin, DIR "/default.conf:1", "and say where they come from");
        chain_done(&c);
    }
    if (tap_is_str(run_chain(&c, files, WORDS(W("-jstrict"), NONE)), NULL, "-j wins over jail")) {
        tap_ok(c.config.mode == BRIG_MODE_STRICT, "and its .jail over the .conf");
        tap_ok(c.settings.jail_exists && c.settings.jail_given, "which is there");
        chain_done(&c);
    }
    if (tap_is_str(run_chain(&c, files, WORDS(W("-jstrict"), W("-mcasual"), NONE)), NULL, "-m")) {
        tap_ok(c.config.mode == BRIG_MODE_CASUAL, "wins over both");
        tap_is_str(c.settings.mode_origin, "command line", "and says so");
        chain_done(&c);
    }
    if (tap_is_str(run_chain(&c, FILES({0}), WORDS(W("-jnew"), NONE)), NULL, "a new jail")) {
        tap_ok(c.config.mode == BRIG_MODE_STRICT, "is strict unless told");
        chain_done(&c);
    }
}

static void test_precedence(void)
{
    struct chain c;
    const struct file *files =
        FILES({DIR "/default.conf", "rdir a\ndir b\nsetenv F=conf\nrdir " CWD "\nmemory 1G\n"},
              {STORE "/default.jail", "dir a\nsetenv F=jail\nmask x\n"});
    if (tap_is_str(run_chain(&c, files, WORDS(W("-r" HOME "/b"), W("--unmask=x"), NONE)), NULL,
                   "rules of all sources are taken")) {
        tap_is_str(rule(&c, HOME "/a"), "read-write [" STORE "/default.jail:1]",
                   "the .jail wins over the .conf");
        tap_is_str(rule(&c, HOME "/b"), "read-only [command line]", "the command line over both");
        tap_is_str(rule(&c, CWD), "read-only [" DIR "/default.conf:4]",
                   "and a file over what is granted by itself");
        tap_is_str(variable_inside(&c, "F"), "jail", "variables likewise");
        tap_is_str(mask_of(&c, "x"), "unmask", "and masks");
        tap_is_int(c.settings.policy->limits[BRIG_LIMIT_MEMORY_BYTES], 1 << 30, "and limits");
        chain_done(&c);
    }
    if (tap_is_str(
            run_chain(&c, FILES({DIR "/default.conf", "dir a\nrdir a\nxdir never\n"}), WORDS(NONE)),
            NULL, "a file may take back what it never granted")) {
        tap_is_str(rule(&c, HOME "/a"), "read-only [" DIR "/default.conf:2]",
                   "in one file the later line wins");
        chain_done(&c);
    }
}

static void test_paths(void)
{
    struct chain c;
    const struct file *files =
        FILES({DIR "/default.conf",
               "dir a:b\nrdir c:/d\ndir ~/e\ndir ${OUTER}/f\nmask /abs\nmask rel/x\n"
               "mask ./dot\nunmask " HOME "/rel/x/y\nscript s\nscript? ~/t\nscript s\n"
               "initjail init.sh\nstorage data\nworkdir w\n"});
    char **argv = WORDS(W("--script=one"), W("-dg"), W("--mask=h"), W("--mask=./i"), NONE);
    if (tap_is_str(run_chain(&c, files, argv), NULL, "paths of all kinds are taken")) {
        tap_has_str(rule(&c, HOME "/a:b"), "read-write", "in a file a colon is part of a name");
        tap_has_str(rule(&c, "/d"), "read-only", "unless an absolute path follows");
        tap_has_str(rule(&c, HOME "/e"), "read-write", "~ is the home directory");
        tap_has_str(rule(&c, HOME "/outer/f"), "read-write", "variables are expanded");
        tap_has_str(rule(&c, CWD "/g"), "read-write", "what is typed begins here");
        tap_has_str(rule(&c, "/abs"), "mask", "an absolute mask is what it is");
        tap_is_str(mask_of(&c, "rel/x"), "mask", "a relative one is in the home directory");
        tap_is_str(mask_of(&c, "dot"), "mask", "in a file also with a dot");
        tap_is_str(mask_of(&c, "rel/x/y"), "unmask", "what is absolute can be shown again there");
        tap_is_str(mask_of(&c, "h"), "mask", "as is one that is typed");
        tap_has_str(rule(&c, CWD "/i"), "mask", "unless it begins with ./");
        tap_is_int(c.settings.scripts.count, 3, "a script is read once");
        tap_is_str(c.settings.scripts.items[0].path, CWD "/one", "what is typed comes first");
        tap_is_str(c.settings.scripts.items[1].path, DIR "/s", "those of files begin there");
        tap_is_str(c.settings.scripts.items[2].path, HOME "/t", "or at home");
        tap_is_str(c.settings.initjails.items[0].path, DIR "/init.sh", "programs likewise");
        tap_is_str(c.settings.storage, HOME "/data", "the storage of a file begins at home");
        tap_is_str(c.settings.policy->workdir, HOME "/w", "as does the working directory");
        chain_done(&c);
    }
    if (tap_is_str(run_chain(&c, files, WORDS(W("--storage=s"), NONE)), NULL, "--storage")) {
        tap_is_str(c.settings.storage, CWD "/s", "begins here");
        chain_done(&c);
    }
    if (tap_is_str(run_chain(&c, files, WORDS(W("--storage="), NONE)), NULL, "an empty one")) {
        tap_is_str(c.settings.storage, STORE, "means the default");
        chain_done(&c);
    }
}

static void test_variables(void)
{
    struct chain c;
    const struct file *files = FILES(
        {DIR "/default.conf", "setenv B=${BRIG_USER}/${JAI_MODE}/${BRIG_JAIL}/${JAI_CONFIG_DIR}\n"
                              "setenv C=${A}\nsetenv A=set\nsetenv D=${A}\nunsetenv A\n"
                              "setenv E=${A}\nsetenv G=${NOTHING}|${HOME}|${T}\n"});
    if (tap_is_str(run_chain(&c, files, WORDS(W("--setenv=T=typed"), NONE)), NULL, "variables")) {
        tap_is_str(variable_inside(&c, "B"), "u/casual/default/" DIR, "the jail's own are known");
        tap_is_str(variable_inside(&c, "C"), "env", "the environment is");
        tap_is_str(variable_inside(&c, "D"), "set", "what was set so far comes first");
        tap_is_str(variable_inside(&c, "E"), "env", "until it is taken back");
        tap_is_str(variable_inside(&c, "G"), "|" HOME "|typed", "nothing is empty, typed is known");
        tap_is_str(variable_inside(&c, "BRIG_MODE"), "casual", "inside they are there as well");
        tap_is_str(variable_inside(&c, "JAI_JAIL"), "default", "under both names");
        chain_done(&c);
    }
}

static void test_defaults(void)
{
    struct chain c;
    const struct file *files =
        FILES({DIR "/default.conf", "setenv MY_TOKEN\nunmask .ssh/config\n"});
    if (tap_is_str(run_chain(&c, files, WORDS(NONE)), NULL, "a file that includes nothing")) {
        tap_is_str(mask_of(&c, ".ssh"), "mask", "has the default masks");
        tap_is_str(mask_of(&c, ".ssh/config"), "unmask", "of which a part can be shown");
        tap_is_str(variable_inside(&c, "SSH_AUTH_SOCK"), "", "and the default filters");
        tap_is_str(variable_inside(&c, "AWS_REGION"), "", "of all kinds");
        tap_is_str(variable_inside(&c, "EDITOR"), "vi", "what they do not name passes");
        tap_is_str(variable_inside(&c, "MY_TOKEN"), "t", "as does what is named");
        chain_done(&c);
    }
    if (tap_is_str(run_chain(&c, FILES({DIR "/default.conf", "no-defaults\n"}), WORDS(NONE)), NULL,
                   "no-defaults in a file")) {
        tap_is_int(c.settings.mask_count, 0, "takes the masks off");
        tap_is_str(variable_inside(&c, "SSH_AUTH_SOCK"), "s", "and the filters");
        chain_done(&c);
    }
    if (tap_is_str(run_chain(&c, files, WORDS(W("--no-defaults"), NONE)), NULL, "or typed")) {
        tap_is_str(mask_of(&c, ".ssh"), "none", "does the same");
        chain_done(&c);
    }
    if (tap_is_str(
            run_chain(&c, FILES({DIR "/default.conf", "unsetenv *\nsetenv EDITOR\n"}), WORDS(NONE)),
            NULL, "nothing but a list")) {
        tap_is_str(variable_inside(&c, "EDITOR"), "vi", "has what is listed");
        tap_is_str(variable_inside(&c, "BRIG_MODE"), "", "and not even the jail's own");
        chain_done(&c);
    }
    if (tap_is_str(run_chain(&c, FILES({0}), WORDS(W("--setenv=*_TOKEN"), NONE)), NULL,
                   "a filter can be taken back whole")) {
        tap_is_str(variable_inside(&c, "MY_TOKEN"), "t", "and holds no more");
        chain_done(&c);
    }
    if (tap_is_str(run_chain(&c, files, WORDS(W("-msealed"), NONE)), NULL, "in a sealed jail")) {
        tap_ok(c.settings.mask_count == 1 && c.settings.policy->env_count == 1,
               "there is nothing for the defaults to hide");
        chain_done(&c);
    }
    size_t masks = 0;
    bool relative = true, unique = true;
    const char *mask, *other;
    for (mask = policy_default_masks; *mask; mask = policy_next_default(mask), masks++) {
        relative = relative && mask[0] != '/';
        for (other = policy_next_default(mask); *other; other = policy_next_default(other))
            unique = unique && strcmp(mask, other) != 0;
    }
    tap_is_int(mask + 1 - policy_default_masks, policy_default_masks_bytes,
               "an empty text ends the default masks");
    tap_ok(unique, "no default mask is there twice");
    tap_ok(masks > 200 && masks < SETTINGS_MASKS_MAX && relative, "all default masks are relative");
}

/* What there is if a file of jai is copied alone. */
static void test_built_in(void)
{
    struct chain c;
    const struct file *files =
        FILES({DIR "/default.conf", "conf .defaults\n"}, {DIR "/.jairc", "x=1\n"});
    if (tap_is_str(run_chain(&c, files, WORDS(NONE)), NULL, "a missing .defaults is built in")) {
        tap_is_int(c.settings.scripts.count, 1, "with the scripts that are there");
        tap_is_str(c.settings.scripts.items[0].path, DIR "/.jairc", "under their old name, too");
        chain_done(&c);
    }
    files = FILES({DIR "/.brigrc", "x=1\n"});
    if (tap_is_str(run_chain(&c, files, WORDS(NONE)), NULL, "as without any .conf")) {
        tap_is_int(c.settings.scripts.count, 1, "the script is read");
        chain_done(&c);
    }
    if (tap_is_str(run_chain(&c, files, WORDS(W("-msealed"), NONE)), NULL, "but for sealed")) {
        tap_is_int(c.settings.scripts.count, 0, "it is not");
        chain_done(&c);
    }
}

static void test_errors(void)
{
    static const struct {
        const char *conf;
        const char *jail;
        const char *message;
    } rows[] = {
        {"\nbogus 1\n", "", DIR "/default.conf:2: unknown directive 'bogus'. See brig.conf(5)"},
        {"result x\n", "",
         DIR "/default.conf:1: 'result' cannot stand in a file; give it on the command line, as "
             "--result"},
        {"unmount\n", "", "'unmount' cannot stand in a file"},
        {"memroy 1G\n", "", "unknown directive 'memroy'. Did you mean 'memory'?"},
        {"mode casul\n", "", "is not one of"},
        {"mode casul\n", "", "Did you mean 'casual'?"},
        {"init\n", "", "'init' cannot stand in a file"},
        {"dir\n", "", DIR "/default.conf:1: 'dir' needs a value: dir PATH[:DEST]"},
        {"nocwd yes\n", "", DIR "/default.conf:1: 'nocwd' takes no value, but was given 'yes'"},
        {"mode loose\n", "", DIR "/default.conf:1: mode: 'loose' is not one of "},
        {"jail .x\n", "",
         DIR "/default.conf:1: jail: '.x' cannot be the name of a jail: a name has 1 to 64 "
             "characters, no '/', and no '.' "
             "in front"},
        {"jail a/b\n", "", "'a/b' cannot be the name of a jail"},
        {"jail=\n", "", "'' cannot be the name of a jail"},
        {"", "\njail x\n",
         STORE "/default.jail:2: 'jail' is not possible in a .jail file or a file it includes"},
        {"", "conf sub\n", DIR "/sub.conf:1: 'jail' is not possible in a .jail file"},
        {"memory lots\n", "", DIR "/default.conf:1: memory: "},
        {"net some\n", "",
         DIR "/default.conf:1: net: 'some' is not one of none, loopback, allow, ask, open, host or "
             "learn"},
        {"setenv A b\n", "", "setenv: 'A b' has a blank in the name; write NAME=VALUE"},
        {"setenv *_NOPE\n", "", "setenv: no earlier filter is exactly '*_NOPE'"},
        {"mask ..\n", "", DIR "/default.conf:1: mask: "},
        {"mask .\n", "", "mask: '.' is the whole home directory; choose the mode bare or strict"},
        {"script=\n", "", "script: the value is empty"},
        {"conf nope\n", "", DIR "/default.conf:1: no such configuration file: nope"},
        {"conf default\n", "", DIR "/default.conf:1: configuration loop: "},
    };
    struct chain c;
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        const struct file *files =
            FILES({DIR "/default.conf", rows[i].conf}, {STORE "/default.jail", rows[i].jail},
                  {DIR "/sub.conf", "jail y\n"});
        const char *message = run_chain(&c, files, WORDS(NONE));
        tap_has_str(message ? message : "no error", rows[i].message, "error %zu is told in words",
                    i);
        if (!message)
            chain_done(&c);
    }
    tap_has_str(run_chain(&c, FILES({0}), WORDS(W("-j.."), NONE)),
                "--jail: '..' cannot be the name", "a jail's name is checked when it is typed");
    tap_has_str(run_chain(&c, FILES({0}), WORDS(W("-u"), W("-dx"))), "-u runs no command",
                "-u goes with no grant");
    tap_has_str(run_chain(&c, FILES({0}), WORDS(W("-u"), NONE)), "-u runs no command",
                "nor a command");
    tap_has_str(run_chain(&c, FILES({0}), WORDS(W("-D"), W("--complete"), NONE)), "the first word",
                "--complete comes first");
    tap_has_str(run_chain(&c, FILES({0}), WORDS(W("--unmask=/nope"), NONE)), "no earlier mask",
                "what was never masked cannot be shown");
}

static void test_project(void)
{
    struct chain c;
    const struct file *files =
        FILES({CWD "/.brig.conf", "rdir lib\nrdir? src\nmask .env\nmask? ~/key\nunsetenv EDITOR\n"
                                  "net none\nmemory 1G\nmode strict\n"});
    if (tap_is_str(run_chain(&c, files, WORDS(W("-d" CWD "/src"), NONE)), NULL, "a project")) {
        tap_is_str(rule(&c, CWD "/lib"), "read-only [" CWD "/.brig.conf:1]", "makes read-only");
        tap_is_str(rule(&c, CWD "/src"), "read-write [command line]", "not what is typed");
        tap_is_str(rule(&c, CWD "/.env"), "mask [" CWD "/.brig.conf:3]", "hides what is its own");
        tap_has_str(rule(&c, HOME "/key"), "mask", "and what is not");
        tap_is_str(variable_inside(&c, "EDITOR"), "", "takes variables");
        tap_ok(c.config.mode == BRIG_MODE_STRICT && c.settings.policy->network == BRIG_NET_NONE &&
                   c.settings.policy->limits[BRIG_LIMIT_MEMORY_BYTES] == 1 << 30,
               "network, memory and mode");
        tap_has_str(c.config.project_text, "mask .env", "and can be shown");
        chain_done(&c);
    }
    if (tap_is_str(run_chain(&c, files, WORDS(W("-mcasual"), W("-D"), NONE)), NULL,
                   "without the working directory")) {
        tap_ok(!c.config.project_text && c.config.mode == BRIG_MODE_CASUAL, "it is not read");
        chain_done(&c);
    }
    static const char *const refused[] = {
        "dir x\n",          "dir! x\n",          "rdir /etc\n",
        "rdir ../other\n",  "rdir x:/y\n",       "unmask .ssh\n",
        "setenv A=b\n",     "net host\n",        "memory none\n",
        "memory 4G\n",      "conf x\n",          "conf? x\n",
        "view host\n",      "xdir x\n",          "jail j\n",
        "storage s\n",      "command c\n",       "script s\n",
        "initjail i\n",     "no-defaults\n",     "disable seccomp\n",
        "allow-nested\n",   "device /dev/kvm\n", "nocwd\n",
        "mode casual\n",    "seccomp dev\n",     "on-unsupported ignore\n",
        "unprotect .git\n", "no-protect\n",      "root /x\n",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(refused); i++) {
        const char *message = run_chain(
            &c,
            FILES({CWD "/.brig.conf", refused[i]}, {DIR "/default.conf", "mode bare\nmemory 2G\n"}),
            WORDS(NONE));
        tap_ok(message && strstr(message, CWD "/.brig.conf:1: ") && strstr(message, "only narrow"),
               "%.*s cannot be widened by a project: %s", (int)strcspn(refused[i], "\n"),
               refused[i], message ? message : "no error");
        if (!message)
            chain_done(&c);
    }
    if (tap_is_str(
            run_chain(&c, FILES({CWD "/.brig.conf", "rdir s/t\n"}), WORDS(W("--mask=./s"), NONE)),
            NULL, "what is hidden stays hidden")) {
        tap_is_str(rule(&c, CWD "/s/t"), "none", "and is not made readable");
        chain_done(&c);
    }
    const struct file *hidden =
        FILES({CWD "/.brig.conf", "rdir s/t\nrdir s/u\nrdir k\nrdir plain\n"},
              {DIR "/default.conf", "mask project/s\nunmask project/s/u\nmask proj*/?\n"});
    if (tap_is_str(run_chain(&c, hidden, WORDS(NONE)), NULL, "also by a mask in the home")) {
        tap_is_str(rule(&c, CWD "/s/t"), "none", "what is below it");
        tap_has_str(rule(&c, CWD "/plain"), "read-only", "but nothing else");
        tap_is_str(rule(&c, CWD "/k"), "none", "and what a pattern hides");
        chain_done(&c);
    }
}

/* As many as allowed, and one more. */
static void test_limits(void)
{
    struct chain c;
    autostr struct str text = {0};
    for (int i = 0; i < CONFIG_LINES_MAX; i++)
        str_append(&text, "nocwd\n");
    if (tap_is_str(run_chain(&c, FILES({DIR "/default.conf", text.data}), WORDS(NONE)), NULL,
                   "as many directives as possible"))
        chain_done(&c);
    str_append(&text, "nocwd\n");
    tap_has_str(run_chain(&c, FILES({DIR "/default.conf", text.data}), WORDS(NONE)),
                "too many directives", "one more is refused");
    autostr struct str scripts = {0};
    for (int i = 0; i < SETTINGS_PROGRAMS_MAX; i++)
        str_appendf(&scripts, "script s%d\n", i);
    if (tap_is_str(run_chain(&c, FILES({DIR "/default.conf", scripts.data}), WORDS(NONE)), NULL,
                   "as many scripts as possible"))
        chain_done(&c);
    tap_has_str(
        run_chain(&c, FILES({DIR "/default.conf", scripts.data}), WORDS(W("--script=more"), NONE)),
        "exceeds the limit of", "one more is refused");
    autostr struct str masks = {0};
    str_append(&masks, "no-defaults\n");
    for (int i = 0; i < SETTINGS_MASKS_MAX; i++)
        str_appendf(&masks, "mask m%d\n", i);
    if (tap_is_str(run_chain(&c, FILES({DIR "/default.conf", masks.data}), WORDS(NONE)), NULL,
                   "as many masks as possible"))
        chain_done(&c);
    tap_has_str(
        run_chain(&c, FILES({DIR "/default.conf", masks.data}), WORDS(W("--mask=more"), NONE)),
        "too many masks", "one more is refused");
    char name[SETTINGS_JAIL_MAX + 4] = "-j";
    memset(name + 2, 'j', SETTINGS_JAIL_MAX + 1);
    tap_has_str(run_chain(&c, FILES({0}), WORDS(name, NONE)), "cannot be the name",
                "a name too long");
    name[SETTINGS_JAIL_MAX + 2] = '\0';
    if (tap_is_str(run_chain(&c, FILES({0}), WORDS(name, NONE)), NULL, "the longest name"))
        chain_done(&c);
}

int main(void)
{
    test_choice();
    test_mode();
    test_precedence();
    test_paths();
    test_variables();
    test_defaults();
    test_built_in();
    test_errors();
    test_project();
    test_limits();
    return tap_done();
}
