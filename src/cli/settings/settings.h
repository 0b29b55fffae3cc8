/* SPDX-License-Identifier: MIT */
/* The result of the options of `brig run` and the directives of its files: a policy, and how to run
 * it. Pure: the caller provides the directories, and no system call is made. */
#pragma once

#include <sys/types.h>

#include <brig/brig.h>

#include "cli/settings/options.h"

/* The default grace period of `brig`. */
#define SETTINGS_GRACE_MS 5000
/* The default name of the jail, and the maximum length of a name, which is a prefix of file
 * names. */
#define SETTINGS_JAIL "default"
#define SETTINGS_JAIL_MAX 64
/* Origins: of settings on the command line, and of defaults. */
#define SETTINGS_TYPED "command line"
#define SETTINGS_BUILT_IN POLICY_BUILT_IN
/* Limits of lists. */
#define SETTINGS_MASKS_MAX 4096
#define SETTINGS_PROGRAMS_MAX 64
#define SETTINGS_UNPROTECT_MAX 1024
#define SETTINGS_INJECTS_MAX 16
#define SETTINGS_SECRETS_MAX 64

/* A mask in the home directory, or an unmask. Rules apply in order: the last one that matches a
 * path decides. */
struct settings_mask {
    const char *path;   /* relative to the home directory, normalised; '*' and '?' are wildcards */
    const char *origin; /* where the rule comes from, for explain and messages */
    bool unmask;        /* show it, also below a masked parent */
    bool optional;      /* given as mask? */
    bool typed;         /* on the command line */
    bool built_in;      /* one of the defaults, whose texts are constants */
    bool found;         /* it hides something in the home directory; see masks_mark_found() */
};

/* A script or an initjail program. */
struct settings_program {
    char *path;    /* absolute */
    bool optional; /* not an error if it is missing */
    bool typed;    /* on the command line */
    char *origin;
};

struct settings_programs {
    struct settings_program *items;
    size_t count;
};

/* A requested credential. Its secret is read only for a run. */
struct settings_inject {
    char *text;
    char *origin;
    bool optional; /* given as inject?: ignored if there is no secret */
};

/* What a shell in the jail does before the command. */
struct settings_prelude {
    /* A file to create unless it exists: the placeholder of a credential, for a program that does
     * not start without. "~/…" or absolute, without quotes. NULL: `text` is shell. */
    const char *path;
    const char *text; /* the content of the file, without single quotes */
};
/* The jail in which an agent logs in gets no optional credential. */
#define SETTINGS_LOGIN_JAIL "login-"
#define SETTINGS_PRELUDES_MAX (SETTINGS_INJECTS_MAX + 1)

/* A file that contains a credential, which is hidden in the jail. */
struct settings_secret {
    char *path; /* absolute, without links */
    char *origin;
    dev_t dev;
    ino_t ino;
};

/* The parts of the desktop session that can be granted. */
enum settings_desktop {
    SETTINGS_X11,
    SETTINGS_WAYLAND,
    SETTINGS_AUDIO,
    SETTINGS_SSH_AGENT,
    SETTINGS_GPG_AGENT,
    SETTINGS_DBUS,
    SETTINGS_DESKTOP_COUNT_,
};

/* Where the current option or directive was given, which decides what relative paths are relative
 * to. */
enum settings_place {
    SETTINGS_COMMAND_LINE, /* to the working directory */
    SETTINGS_FILE,         /* to the home directory; scripts and programs to config_dir */
    SETTINGS_PROJECT,      /* to the working directory; also masks */
};

/* Whether changes to a directory are written aside. */
enum settings_review {
    SETTINGS_REVIEW_OFF,
    SETTINGS_REVIEW_ON,
    SETTINGS_REVIEW_AUTO, /* and applied during the run, if they have no risk */
};

struct settings {
    struct brig_policy *policy; /* owned */
    /* Borrowed, absolute: */
    const char *cwd;        /* as getcwd() returned it */
    int cwd_fd;             /* the same directory, opened once; -1: only the path is known */
    const char *home;       /* the real home directory */
    const char *config_dir; /* the configuration directory */
    char *const *sources;   /* the files that were read */
    size_t source_count;
    enum settings_place place;

    /* The jail; set by config_apply(). Borrowed from the configuration. */
    const char *jail;              /* its name: one component, not beginning with a dot */
    bool jail_given;               /* on the command line */
    bool jail_exists;              /* NAME.jail exists */
    const char *project;           /* the project that the jail belongs to, or NULL */
    const struct profile *profile; /* of the command; NULL: none */
    enum brig_mode mode;           /* of the policy */
    const char *mode_origin;       /* what chose it; NULL: the default of the jail's name */
    const char *storage;           /* where jails are kept, absolute; need not exist */

    char *image;              /* the name of --image, or NULL; owned */
    struct image *image_used; /* the same, opened by image_apply(); owned, or NULL */

    struct settings_mask *masks; /* owned */
    size_t mask_count;
    bool late_masks; /* the default masks are not in `masks`, but apply to grants */
    struct settings_programs scripts;   /* owned; in order, without duplicates */
    struct settings_programs initjails; /* owned */
    char *command;                      /* a shell command; NULL: not given, "": none */
    /* All scripts, concatenated by script_prepare(); owned. They become a file with mode 0400 at
     * script_path, in the jail's /tmp. NULL: none. */
    char *script;
    size_t script_length;
    char *script_path;

    /* Paths that are not protected: absolute, or relative to the top of a granted directory;
     * owned. */
    char **unprotect;
    size_t unprotect_count;
    bool no_protect;             /* nothing is protected */
    bool protect_report;         /* new files that execute something are reported, not held back */
    bool foreign;                /* root may work in a directory of another user */
    enum settings_review review; /* of the working directory */
    bool review_typed;           /* on the command line */

    bool checkpoint;           /* keep what the run could change */
    bool checkpoint_optional;  /* given as checkpoint?: only if it is possible */
    uint64_t checkpoint_bytes; /* the limit for ignored files; 0: the default */

    /* The origin of each request, owned; NULL: not requested. */
    char *desktop[SETTINGS_DESKTOP_COUNT_];
    bool desktop_asked; /* for at least one of them */

    /* The network. */
    bool net_given; /* by --net; otherwise the allow rules decide */
    bool net_learn;
    char *allow_typed; /* the last --allow of the command line, or NULL; owned */
    struct settings_inject injects[SETTINGS_INJECTS_MAX];
    size_t inject_count;
    struct settings_prelude preludes[SETTINGS_PRELUDES_MAX]; /* texts are constant */
    size_t prelude_count;
    struct oauth *oauth; /* tokens that are refreshed, by inject_apply(); owned, or NULL */
    char *account_file;  /* the content of a prelude; owned */
    struct settings_secret secrets[SETTINGS_SECRETS_MAX]; /* by inject_apply(); owned */
    size_t secret_count;
    char *net_log;   /* a path or a number; owned, or NULL */
    char *net_rules; /* a number; owned, or NULL */

    bool nocwd;
    bool cwd_settled;   /* a rule for exactly the working directory was given or removed */
    bool workdir_given; /* by --workdir */
    bool dry_run;
    bool plan;   /* with dry_run: print the plan */
    char *facts; /* the file with the facts for the plan, or NULL; owned */
    bool json;
    bool verbose;
    bool unmount;
    char *result; /* owned, or NULL */
    struct brig_pass_fd pass_fds[BRIG_PASS_FD_MAX];
    size_t pass_fd_count;
};

/* Options that must be known before the others are applied, wherever they are on the command line.
 * Texts are borrowed from argv. */
struct settings_scan {
    /* The last value of each option, "" if it takes none; NULL: not given. */
    const char *given[OPTION_COUNT_];
    enum brig_mode mode; /* if it was given */
    int command;         /* the index of the command's first word in argv, or argc */
    bool of_verb;        /* for a verb such as `brig status`: NOCWD does not change the jail */
};

/* Reads argv[1…] up to the command. Checks the form of every option, and the values of --mode and
 * --jail. Returns at once on --help and --version. */
int settings_scan(int argc, char *const *argv, struct settings_scan *ret_scan,
                  struct brig_error *err);

/* Initialises a policy of the mode with brig's defaults; the directories are "/" until they are
 * set. Release with settings_done. */
int settings_init(struct settings *settings, enum brig_mode mode, const char *cwd,
                  struct brig_error *err);
void settings_done(struct settings *settings);

/* Applies one option or directive, given at settings->place; rules get the policy's current origin.
 * An error names the option, the value and what is allowed. */
int settings_apply(struct settings *settings, const struct option_use *use, struct brig_error *err);

/* Applies all options of argv[1…] in order, then checks their combination. */
int settings_apply_all(struct settings *settings, int argc, char *const *argv,
                       struct brig_error *err);

/* The setters of options about files, in settings_files.c: grants, masks, directories, exceptions
 * from protection. */
int settings_grant(struct settings *settings, enum brig_access access, unsigned flags,
                   const char *value, struct brig_error *err);
int settings_ungrant(struct settings *settings, const char *value, struct brig_error *err);
int settings_mask(struct settings *settings, unsigned flags, const char *value,
                  struct brig_error *err);
int settings_unmask(struct settings *settings, const char *value, struct brig_error *err);
int settings_root(struct settings *settings, const char *value, struct brig_error *err);
int settings_workdir(struct settings *settings, const char *value, struct brig_error *err);
int settings_unprotect(struct settings *settings, const char *value, struct brig_error *err);
/* Releases what these setters added; part of settings_done(). */
void settings_files_done(struct settings *settings);

/* Adds the built-in masks outside the home: spools, mailboxes, snapshots. They are added in every
 * view, and mask_names_keep_masks() removes the ones that no grant contains. */
int settings_hide_outside(struct settings *settings, struct brig_error *err);
/* Adds all built-in masks, including those of settings_hide_outside(), and the environment
 * filters. */
int settings_apply_defaults(struct settings *settings, struct brig_error *err);

/* Masks a file in the home directory, relative to it, regardless of earlier rules. */
int settings_hide_in_home(struct settings *settings, const char *path, struct brig_error *err);

/* Fails if this is not a valid name of a jail. */
int settings_check_jail(const char *name, struct brig_error *err);

/* Splits "PATH[:DEST]", in which "\:" and "\\" stand for a colon and a backslash, and makes both
 * absolute. *ret_dest is NULL if there is no DEST. The caller frees both. With `single` there is no
 * DEST, and a colon is part of the name. In files a colon is part of the name unless an absolute
 * DEST follows, so that names with a colon need no quoting there. */
int settings_split_path(const struct settings *settings, const char *value, bool single,
                        char **ret_path, char **ret_dest, struct brig_error *err);
