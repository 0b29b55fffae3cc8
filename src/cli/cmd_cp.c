/* SPDX-License-Identifier: MIT */
/* `brig cp`: copies files into a jail or out of it, whether something runs in it or not. It is a run
 * of its own in that jail, of cp, to which the host's side is granted and nothing else. Into a jail
 * brig becomes that run. Out of it, the run writes to a directory of its own, and brig, which waits for
 * it, moves what may come out to where it is wanted. The host's side is opened once, without following
 * links that a program in a jail may have made, and the run is granted what was opened or nothing. */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/copy_out.h"
#include "cli/identity.h"
#include "cli/jails.h"
#include "cli/message.h"
#include "cli/out_path.h"
#include "cli/workdir.h"
#include "home/jails.h"

/* Where the host's side is seen inside. */
#define COPY_DIRECTORY "/run/brig-copy"
/* The status if something was left out, as cp's. */
#define COPY_INCOMPLETE 1

/* The jail's side of a copy: "JAIL:PATH". */
struct side {
    char jail[HOME_NAME_MAX + 1];
    const char *path;
};

/* True if it names a jail. A path with a slash before its colon does not. */
static bool split_side(const char *word, struct side *ret_side)
{
    const char *colon = strchr(word, ':');
    size_t length = colon ? (size_t)(colon - word) : 0;
    if (length == 0 || length > HOME_NAME_MAX || memchr(word, '/', length))
        return false;
    memcpy(ret_side->jail, word, length);
    ret_side->jail[length] = 0;
    ret_side->path = colon + 1;
    return true;
}

static const char *last_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static int check_jail(const struct side *side, struct jails_place *place, struct brig_error *err)
{
    int status = jails_check_name(side->jail, err);
    if (status < 0 || (status = jails_place_find(place, err)) < 0)
        return status;
    struct jail_info jail;
    int found = jails_find(place->storage, side->jail, place->uid, &jail, err);
    return found != 0 ? found : jails_fail_unknown(place, cmd_cp.name, side->jail, err);
}

/* An open file of the host's, and where it is seen inside. */
struct grant {
    int fd;
    bool writable;
    const char *at;
};

/* `brig run … cp …`: the system's cp, not one that the jail may have in its home, with nothing of the
 * caller's environment and nothing of the configuration before it. Returns its exit status. */
static int execute(const struct side *side, const char *home, const struct grant *grant,
                   const char *from, const char *to, char **envp)
{
    const char *program = access("/usr/bin/cp", X_OK) == 0 ? "/usr/bin/cp" : "/bin/cp";
    const char *const argv[] = {
        "run",        "-j",
        side->jail,   "-D",
        "--workdir",  home ? home : "/",
        "--command",  "",
        "--unsetenv", "*",
        "--setenv",   "LC_ALL=C",
        "--setenv",   "PATH=/usr/bin:/bin",
        "--",         program,
        "-a",         "--",
        from,         to,
        NULL,
    };
    char **words = (char **)(uintptr_t)argv;
    const int count = (int)ARRAY_LENGTH(argv) - 1;
    const struct app app = {.argc = count,
                            .argv = words,
                            .envp = envp,
                            .grant_at = grant->at,
                            .grant_fd = grant->fd,
                            .grant_writable = grant->writable};
    return cmd_run.run(&app, count, words);
}

static const int forwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

/* Waits for the run, passing on signals that were sent to this process alone: those of a terminal the
 * run has got as well. */
static int wait_for(pid_t pid, const sigset_t *signals)
{
    for (;;) {
        siginfo_t info;
        int status;
        int signal = sigwaitinfo(signals, &info);
        if (signal > 0 && signal != SIGCHLD && info.si_code <= 0)
            (void)kill(pid, signal);
        if (signal != SIGCHLD || waitpid(pid, &status, WNOHANG) != pid)
            continue;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
}

/* Runs cp in the jail, which writes to the directory of the grant; its exit status, or a negative
 * code. */
static int run(const struct side *side, const char *home, const struct grant *grant, const char *to,
               char **envp, struct brig_error *err)
{
    sigset_t signals, before;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGCHLD);
    for (size_t i = 0; i < ARRAY_LENGTH(forwarded); i++)
        (void)sigaddset(&signals, forwarded[i]);
    (void)sigprocmask(SIG_BLOCK, &signals, &before);
    pid_t pid = fork();
    if (pid == 0) {
        (void)sigprocmask(SIG_SETMASK, &before, NULL);
        _exit(execute(side, home, grant, side->path, to, envp));
    }
    int status = pid < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno, "fork") : wait_for(pid, &signals);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return status;
}

/* Another user who owns the directory, or one above it, could replace what root writes there. */
static int refuse_foreign(int directory, const struct identity *identity, struct brig_error *err)
{
    char path[PATH_LENGTH_MAX + 1];
    int found = out_path_of(directory, path);
    if (found < 0)
        return brig_fail(err, BRIG_E_SYSTEM, -found, "cannot find out where to copy to");
    if (!workdir_is_foreign(path, identity))
        return 0;
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "you are root, and '%s' belongs to another user or is in a directory of one. "
                     "Copy to a directory of root's, such as /root, and move it from there",
                     str_shown(path).text);
}

/* The status to exit with, or a negative code. */
static int copy_out(const struct side *side, const struct identity *identity,
                    const struct out_path *target, char **envp, struct brig_error *err)
{
    struct copy_out copy;
    int status = refuse_foreign(target->dir_fd, identity, err);
    if (status < 0)
        return status;
    identity_enter(identity);
    status = copy_out_begin(target->dir_fd, &copy, err);
    identity_leave(identity);
    if (status < 0)
        return status;
    autostr struct str inside = {0};
    str_appendf(&inside, "%s/%s", COPY_DIRECTORY, target->name);
    const struct grant grant = {copy.stage, true, COPY_DIRECTORY};
    status = inside.failed ? brig_fail_nomem(err)
                           : run(side, identity->host_home, &grant, inside.data, envp, err);
    /* cp says 1 if it could not copy everything. */
    size_t left = 0;
    identity_enter(identity);
    int ended = copy_out_end(&copy, status == 0 || status == 1, &left, status < 0 ? NULL : err);
    identity_leave(identity);
    if (status < 0 || ended < 0)
        return status < 0 ? status : ended;
    return status == 0 && left > 0 ? COPY_INCOMPLETE : status;
}

/* The status to exit with, or a negative code. */
static int copy_in(const struct side *side, const struct identity *identity, const char *host,
                   const struct out_path *source, char **envp, struct brig_error *err)
{
    autostr struct str inside = {0};
    if (source->fd < 0)
        return brig_fail(err, BRIG_E_INVALID, ENOENT, "cannot copy '%s'", str_shown(host).text);
    str_appendf(&inside, "%s/%s", COPY_DIRECTORY, last_name(host));
    if (inside.failed)
        return brig_fail_nomem(err);
    const struct grant grant = {source->fd, false, inside.data};
    return execute(side, identity->host_home, &grant, inside.data, *side->path ? side->path : ".",
                   envp);
}

/* The status to exit with, or a negative code. */
static int copy(const char *from, const char *to, char **envp, struct brig_error *err)
{
    struct side side;
    bool inwards = split_side(to, &side);
    struct side other;
    if (inwards == split_side(from, &other))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "cp needs one side in a jail: brig cp SRC JAIL:PATH, or brig cp JAIL:PATH "
                         "DEST");
    if (!inwards)
        side = other;
    struct jails_place place;
    int status = check_jail(&side, &place, err);
    if (status < 0)
        return status;
    char cwd[PATH_LENGTH_MAX + 1];
    autofree char *host = NULL;
    if (!getcwd(cwd, sizeof cwd))
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot find out the working directory");
    if ((status = path_make_absolute(cwd, inwards ? from : to, &host, err)) < 0)
        return status;
    struct out_path found = OUT_PATH_INIT;
    identity_enter(&place.identity);
    status = out_path_find(host, &place.identity, &found, err);
    identity_leave(&place.identity);
    if (status == 0)
        status = inwards ? copy_in(&side, &place.identity, host, &found, envp, err)
                         : copy_out(&side, &place.identity, &found, envp, err);
    out_path_done(&found);
    return status;
}

static int run_cp(const struct app *app, int argc, char **argv)
{
    struct brig_error err = {0};
    if (argc != 3) {
        message_error("cp needs two names: brig cp SRC JAIL:PATH, or brig cp JAIL:PATH DEST");
        return APP_FAILED;
    }
    int status = copy(argv[1], argv[2], app->envp, &err);
    if (status >= 0)
        return status;
    message_error("%s", err.message);
    return APP_FAILED;
}

const struct command cmd_cp = {
    .name = "cp",
    .summary = "copy files into a jail or out of it",
    .usage = "SRC JAIL:PATH | JAIL:PATH DEST",
    .run = run_cp,
};
