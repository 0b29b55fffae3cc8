/* SPDX-License-Identifier: MIT */
/* Runs git, outside and in a sealed jail. */
#include "git/git.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/path.h"
#include "base/process.h"
#include "git/outside_path.h"
#include "jail/job/job.h"
#include "policy/policy.h"

#define GIT_CALL_MS (10 * 60 * 1000)
#define GIT_SEALED_MS (5 * 60 * 1000)
#define GIT_MEMORY ((rlim_t)8 << 30)
#define GIT_SEALED_MEMORY ((uint64_t)4 << 30)
#define GIT_WORDS_MAX 64
#define GIT_SAYS_MAX 4096
#define BULK_MEMORY                                                                                \
    "33554432" /* bytes that malloc of glibc takes from the kernel at once, and keeps */

/* ---- finding git ---- */

const char *git_variable(const char *const *environment, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; environment && environment[i]; i++)
        if (strncmp(environment[i], name, length) == 0 && environment[i][length] == '=')
            return environment[i] + length + 1;
    return NULL;
}

int git_find(struct git *git, const char *const *environment, const struct brig_policy *policy,
             struct git_user user, struct brig_error *err)
{
    *git = (struct git){.user = user, .environment = environment};
    autofree char *list = NULL;
    int status = outside_path(environment, policy, &list, err);
    if (status == 0)
        status = str_make(&git->path, err, "PATH=", list);
    const char *rest = list;
    char file[PATH_LENGTH_MAX + 1], real[PATH_LENGTH_MAX + 1];
    while (status == 0 && !git->program && path_next_program(&rest, "git", file))
        if (path_resolve(file, real) && access(real, X_OK) == 0 &&
            !outside_path_is_writable(policy, real))
            status = str_copy(file, &git->program, err);
    if (status < 0)
        git_done(git);
    return status;
}

int git_find_own(struct git *git, struct brig_error *err)
{
    return git_find(git, (const char *const *)environ, NULL, GIT_USER_SELF, err);
}

void git_done(struct git *git)
{
    free(git->program);
    free(git->path);
    git->program = git->path = NULL;
}

/* ---- outside ---- */

/* Settings for every call. The configuration of the user and the system is read as usual: it says,
 * for example, which directories are safe. */
static const char *const settings[] = {
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.untrackedCache=false",
    "-c",
    "core.fsync=reference,index", /* else a power loss would leave empty files */
    "-c",
    "gc.auto=0",
    "-c",
    "maintenance.auto=false",
    "-c",
    "submodule.recurse=false",
    "--no-optional-locks",
};

/* Sets the variables that git and its helpers need, but none that changes which repository or
 * program is used. Called in the child. */
static bool set_environment(const struct git *git, const struct git_call *call)
{
    static const char *const passed[] = {"HOME",   "PATH", "LANG",    "LC_ALL",         "LC_CTYPE",
                                         "TMPDIR", "USER", "LOGNAME", "XDG_CONFIG_HOME"};
    /* No transport program is started, whatever the config of a repository says, not even to fetch
     * missing objects. A git directory is the current directory; files of the working tree are
     * never read. */
    const char *const here = call->git_dir > 0 ? "." : NULL;
    const struct {
        const char *name, *value;
    } own[] = {{"GIT_TERMINAL_PROMPT", "0"},
               {"GIT_ALLOW_PROTOCOL", ""},
               {"GIT_NO_LAZY_FETCH", "1"},
               {"GIT_DIR", here},
               {"GIT_WORK_TREE", here},
               {"GIT_OBJECT_DIRECTORY", call->objects},
               {"GIT_INDEX_FILE", call->index},
               {"GIT_FLUSH", call->bulk ? "0" : NULL},
               {"MALLOC_TOP_PAD_", call->bulk ? BULK_MEMORY : NULL},
               {"MALLOC_TRIM_THRESHOLD_", call->bulk ? BULK_MEMORY : NULL},
               {"GIT_CONFIG_NOSYSTEM", call->own_settings ? "1" : NULL},
               {"GIT_CONFIG_GLOBAL", call->own_settings ? "/dev/null" : NULL}};
    const char *values[ARRAY_LENGTH(passed)]; /* looked up first: the array may be environ */
    for (size_t i = 0; i < ARRAY_LENGTH(passed); i++)
        values[i] = git->path && strcmp(passed[i], "PATH") == 0
                        ? git->path + strlen("PATH=")
                        : git_variable(git->environment, passed[i]);
    bool set = clearenv() == 0;
    for (size_t i = 0; i < ARRAY_LENGTH(passed) && set; i++)
        set = !values[i] || setenv(passed[i], values[i], 1) == 0;
    for (size_t i = 0; i < ARRAY_LENGTH(own) && set; i++)
        set = !own[i].value || setenv(own[i].name, own[i].value, 1) == 0;
    return set;
}

/* Whether a variable of the caller is passed on to a call for the user. */
static bool is_for_user(const char *variable)
{
    static const char *const passed[] = {
        "GIT_PAGER=",         "GIT_EXTERNAL_DIFF=", "GIT_DIFF_OPTS=",      "GIT_EDITOR=",
        "GIT_CONFIG_GLOBAL=", "GIT_CONFIG_SYSTEM=", "GIT_CONFIG_NOSYSTEM="};
    if (!str_starts_with(variable, "GIT_"))
        return true;
    for (size_t i = 0; i < ARRAY_LENGTH(passed); i++)
        if (str_starts_with(variable, passed[i]))
            return true;
    return false;
}

/* The environment of a call for the user; NULL if memory is lacking. */
static const char **make_user_environment(const struct git *git, const struct git_call *call)
{
    static const char *const none[] = {"GIT_TERMINAL_PROMPT=0",
                                       "GIT_ALLOW_PROTOCOL=", "GIT_NO_LAZY_FETCH=1", NULL};
    static const char *const all[] = {NULL};
    const char *const *own = call->fetches ? all : none;
    size_t count = 0, used = 0;
    while (git->environment && git->environment[count])
        count++;
    const char **made = calloc(count + ARRAY_LENGTH(none) + 2, sizeof *made);
    for (size_t i = 0; i < count && made; i++)
        if (is_for_user(git->environment[i]))
            made[used++] = git->path && str_starts_with(git->environment[i], "PATH=")
                               ? git->path
                               : git->environment[i];
    for (size_t i = 0; made && own[i]; i++)
        made[used++] = own[i];
    if (made && call->git_dir > 0)
        made[used++] = "GIT_DIR=.";
    return made;
}

uid_t git_owner(const struct git *git)
{
    return git->user.uid != (uid_t)-1 ? git->user.uid : geteuid();
}

bool git_become(const struct git_user *user)
{
    if (user->uid == (uid_t)-1 || geteuid() == user->uid)
        return true;
    return setgroups(0, NULL) == 0 && setresgid(user->gid, user->gid, user->gid) == 0 &&
           setresuid(user->uid, user->uid, user->uid) == 0 &&
           prctl(PR_SET_DUMPABLE, 1) == 0; /* else root owns /proc/self, and the id maps */
}

static __attribute__((noreturn)) void execute(const struct git *git, const struct git_call *call,
                                              char *const *argv, const int fds[3])
{
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    if (call->for_user) {
        (void)signal(SIGINT, SIG_DFL);
        (void)signal(SIGQUIT, SIG_DFL);
    }
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    bool ready = fchdir(call->git_dir > 0 ? call->git_dir : call->dir) == 0;
    for (int i = 0; i < 3; i++)
        ready = ready && dup2(fds[i], i) >= 0;
    ready = ready && git_become(&git->user);
    const char **for_user = ready && call->for_user ? make_user_environment(git, call) : NULL;
    if (for_user) {
        (void)execve(git->program, argv, (char *const *)(uintptr_t)for_user);
    } else if (ready && !call->for_user && set_environment(git, call)) {
        /* Objects of a jail may describe trees of any size: git must fail instead of exhausting the
         * memory. A graphical diff tool reserves more than that. Last, because a sanitizer's allocator
         * reserves more too. */
        (void)setrlimit(RLIMIT_AS, &(struct rlimit){GIT_MEMORY, GIT_MEMORY});
        (void)execv(git->program, argv);
    }
    _exit(127);
}

static int open_input(const struct git_call *call, struct brig_error *err)
{
    int fd = call->input_fd > 0 ? fcntl(call->input_fd, F_DUPFD_CLOEXEC, 3)
             : call->input      ? files_in_memory(call->input->data, call->input->length, err)
                                : open("/dev/null", O_RDONLY | O_CLOEXEC);
    return fd < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open the input of git") : fd;
}

/* Reads the available data; false at the end of the stream, or if there is too much. */
static bool take(int fd, struct str *out)
{
    char bytes[65536];
    ssize_t got = read(fd, bytes, sizeof bytes);
    if (got < 0)
        return errno == EINTR || errno == EAGAIN;
    if (got > 0 && out)
        str_append_bytes(out, bytes, (size_t)got);
    return got > 0 && !(out && out->failed);
}

/* Passes on the NUL-terminated texts, and keeps an incomplete one. */
static bool give_texts(const struct git_call *call, struct str *s)
{
    const char *at = s->data, *end;
    size_t left = s->length;
    while (left > 0 && (end = memchr(at, '\0', left))) {
        size_t length = (size_t)(end - at);
        if (!call->each(call->data, at, length))
            return false;
        at += length + 1;
        left -= length + 1;
    }
    if (left > 0)
        memmove(s->data, at, left);
    s->length = left;
    return true;
}

/* Reads both streams until they end or the time is up. */
static bool collect(const struct git_call *call, int streams[2])
{
    autostr struct str rest = {0}; /* an incomplete text for `each` */
    struct str *const into[2] = {call->each ? &rest : call->out, call->says};
    uint64_t until_ms = clock_now_ms() + GIT_CALL_MS;
    while (streams[0] >= 0 || streams[1] >= 0) {
        struct pollfd fds[2] = {{.fd = streams[0], .events = POLLIN},
                                {.fd = streams[1], .events = POLLIN}};
        uint64_t now_ms = clock_now_ms();
        if (now_ms >= until_ms)
            return false;
        if (poll(fds, 2, (int)(until_ms - now_ms)) < 0 && errno != EINTR)
            return false;
        for (int i = 0; i < 2; i++) {
            if (!fds[i].revents || take(streams[i], into[i]))
                continue;
            (void)close(take_fd(&streams[i]));
            if (into[i] && into[i]->failed)
                return false;
        }
        if (call->each && !give_texts(call, &rest))
            return false;
    }
    return true;
}

pid_t git_start(const struct git *git, const struct git_call *call, const int fds[3],
                struct brig_error *err)
{
    const char *argv[GIT_WORDS_MAX + ARRAY_LENGTH(settings)] = {"git"};
    size_t count = 1;
    for (size_t i = 0; i < ARRAY_LENGTH(settings); i++)
        argv[count++] = settings[i];
    for (size_t i = 0; i < GIT_WORDS_MAX - 2 && call->words[i]; i++)
        argv[count++] = call->words[i];
    pid_t pid = fork();
    if (pid == 0)
        execute(git, call, (char *const *)(uintptr_t)argv, fds);
    return pid < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot start git") : pid;
}

int git_run(const struct git *git, const struct git_call *call, struct brig_error *err)
{
    autoclose int in = open_input(call, err);
    if (in < 0)
        return BRIG_E_SYSTEM;
    int out[2] = {-1, -1}, says[2] = {-1, -1};
    pid_t pid = pipe2(out, O_CLOEXEC) < 0 || pipe2(says, O_CLOEXEC) < 0
                    ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot start git")
                    : git_start(git, call, (const int[3]){in, out[1], says[1]}, err);
    if (out[1] >= 0)
        (void)close(out[1]);
    if (says[1] >= 0)
        (void)close(says[1]);
    int streams[2] = {out[0], says[0]};
    bool whole = pid > 0 && collect(call, streams);
    for (int i = 0; i < 2; i++)
        if (streams[i] >= 0)
            (void)close(streams[i]);
    if (pid < 0)
        return BRIG_E_SYSTEM;
    if (!whole)
        (void)kill(pid, SIGKILL);
    int status = process_wait(pid);
    return whole ? status
                 : brig_fail(err, BRIG_E_SYSTEM, 0, "git %s took too long or wrote too much",
                             call->words[0]);
}

/* ---- talking to git ---- */

int git_talk_begin(const struct git *git, const struct git_call *call, struct git_talk *ret_talk,
                   struct brig_error *err)
{
    int ends[2];
    autoclose int says = memfd_create("git-says", MFD_CLOEXEC);
    if (says < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot start git");
    autoclose int ours = ends[0], theirs = ends[1];
    pid_t pid = git_start(git, call, (const int[3]){theirs, theirs, says}, err);
    if (pid < 0)
        return pid;
    *ret_talk = (struct git_talk){pid, take_fd(&ours), take_fd(&says)};
    return 0;
}

int git_talk_send(const struct git_talk *talk, const void *bytes, size_t length)
{
    const char *next = bytes;
    while (length > 0) {
        ssize_t sent = send(talk->channel, next, length, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR)
            return -errno;
        next += sent > 0 ? sent : 0;
        length -= sent > 0 ? (size_t)sent : 0;
    }
    return 0;
}

int git_talk_end(struct git_talk *talk, bool kills, struct str *says)
{
    char text[GIT_SAYS_MAX];
    if (talk->pid == 0)
        return 0;
    if (kills)
        (void)kill(talk->pid, SIGKILL);
    close_fd(&talk->channel);
    int status = process_wait(talk->pid);
    ssize_t length = pread(talk->says, text, sizeof text, 0);
    if (says && length > 0)
        str_append_bytes(says, text, (size_t)length);
    close_fd(&talk->says);
    talk->pid = 0;
    return status;
}

bool git_keep_link(void *paths, const char *text, size_t length)
{
    const char *tab = strchr(text, '\t');
    if (tab && str_starts_with(text, "160000 "))
        str_append_bytes(paths, tab + 1, (size_t)(text + length - tab));
    return !((const struct str *)paths)->failed;
}

/* ---- in a sealed jail ---- */

static const struct {
    const char *name, *value;
} sealed_environment[] = {
    {"LC_ALL", "C.UTF-8"},           {"GIT_DIR", GIT_SEALED_DIR},
    {"GIT_CONFIG_NOSYSTEM", "1"},    {"GIT_CONFIG_GLOBAL", "/dev/null"},
    {"GIT_AUTHOR_NAME", "brig"},     {"GIT_AUTHOR_EMAIL", "brig@localhost"},
    {"GIT_COMMITTER_NAME", "brig"},  {"GIT_COMMITTER_EMAIL", "brig@localhost"},
    {"GIT_AUTHOR_DATE", "@0 +0000"}, {"GIT_COMMITTER_DATE", "@0 +0000"},
};

static const struct {
    enum brig_limit limit;
    uint64_t value;
} sealed_limits[] = {
    {BRIG_LIMIT_WALL_MS, GIT_SEALED_MS},
    {BRIG_LIMIT_ADDRESS_SPACE, GIT_SEALED_MEMORY},
    {BRIG_LIMIT_OUTPUT_BYTES, STR_LENGTH_MAX / 2},
    {BRIG_LIMIT_FILE_SIZE, 0},
};

static struct brig_policy *
make_sealed_policy(const struct git *git, const struct git_sealed *sealed, struct brig_error *err)
{
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);
    if (!policy) {
        (void)brig_fail_nomem(err);
        return NULL;
    }
    const struct brig_identity identity = {.size = sizeof(struct brig_identity),
                                           .host_uid = git->user.uid,
                                           .host_gid = git->user.gid,
                                           .inside_uid = (uid_t)-1,
                                           .inside_gid = (gid_t)-1};
    int status = brig_policy_origin(policy, "git transfer", err);
    if (status == 0)
        status = brig_policy_identity(policy, &identity, err);
    if (status == 0)
        status = policy_grant_fd(policy, BRIG_READ_WRITE, sealed->dir, GIT_SEALED_DIR, err);
    for (size_t i = 0; i < sealed->object_count && status == 0; i++)
        status = policy_grant_fd(policy, BRIG_READ_ONLY, sealed->objects[i],
                                 sealed->object_dests[i], err);
    for (size_t i = 0; i < ARRAY_LENGTH(sealed_environment) && status == 0; i++)
        status = brig_policy_setenv(policy, sealed_environment[i].name, sealed_environment[i].value,
                                    err);
    for (size_t i = 0; i < ARRAY_LENGTH(sealed_limits) && status == 0; i++)
        status = brig_policy_limit(policy, sealed_limits[i].limit, sealed_limits[i].value, err);
    if (status == 0)
        return policy;
    brig_policy_free(policy);
    return NULL;
}

static int run_sealed(const struct git *git, const struct git_sealed *sealed,
                      const struct brig_command *command, struct str *out, struct brig_error *err)
{
    struct brig_policy *policy = make_sealed_policy(git, sealed, err);
    if (!policy)
        return err ? err->code : BRIG_E_SETUP;
    struct brig_result result = {0};
    int status = job_run(policy, command, &result, err);
    if (status == 0 && result.outcome != BRIG_EXITED)
        status = brig_fail(err, BRIG_E_SYSTEM, 0,
                           "git on the jail's repository was ended by a limit or a signal");
    if (status == 0 && result.out.truncated)
        status = brig_fail(err, BRIG_E_SYSTEM, 0, "git on the jail's repository wrote too much");
    if (status == 0 && out)
        str_append_bytes(out, result.out.data, result.out.length);
    int exit_code = result.exit_code;
    result_done(&result);
    brig_policy_free(policy);
    return status < 0 ? status : exit_code;
}

int git_run_sealed(const struct git *git, const struct git_sealed *sealed, const char *script,
                   struct str *out, struct brig_error *err)
{
    /* Opening a FIFO would block git, and links lead out of the directory. Hooks are not read. A file whose mode need not
     * change keeps its time of change, by which private_sign() knows it. */
    static const char clean[] =
        "find " GIT_SEALED_DIR " -type d ! -perm -0700 -exec chmod u+rwx {} ';' "
        "-o -type f ! -perm -0400 -exec chmod u+r {} + 2>/dev/null\n"
        "find " GIT_SEALED_DIR " -path " GIT_SEALED_DIR "/hooks -prune -o "
        "'(' -type p -o -type l ')' -exec rm -f {} + 2>/dev/null\n";
    autostr struct str text = {0};
    str_concat(&text, clean, script);
    if (text.failed)
        return brig_fail_nomem(err);
    const char *const argv[] = {"/bin/sh", "-c", text.data, NULL};
    const struct brig_command command = {
        .size = sizeof(struct brig_command),
        .argv = argv,
        .stdio = {{.kind = BRIG_STDIO_NULL},
                  {.kind = BRIG_STDIO_CAPTURE},
                  {.kind = BRIG_STDIO_NULL}},
    };
    return run_sealed(git, sealed, &command, out, err);
}

int git_pack_sealed(const struct git *git, const struct git_sealed *sealed,
                    const struct str *revisions, int output, struct brig_error *err)
{
    autoclose int input = files_in_memory(revisions->data, revisions->length, err);
    if (input < 0)
        return input;
    static const char *const argv[] = {"git",         "pack-objects",        "--revs", "--stdout",
                                       "--non-empty", "--delta-base-offset", "-q",     NULL};
    const struct brig_command command = {
        .size = sizeof(struct brig_command),
        .argv = argv,
        .stdio = {{.kind = BRIG_STDIO_FD, .fd = input},
                  {.kind = BRIG_STDIO_FD, .fd = output},
                  {.kind = BRIG_STDIO_NULL}},
    };
    return run_sealed(git, sealed, &command, NULL, err);
}
