/* SPDX-License-Identifier: MIT */
/* Theory of operation.
 *
 * brigd is four kinds of processes. The keeper, this one, reads the configuration, opens the listening
 * socket, forks the other three and connects each with each by a socket pair. It handles no byte that
 * came from outside. The front speaks HTTP and holds no power; the warden starts and ends jails; the
 * recorder owns the history. Whichever ends before it was told to is started again, and the others are
 * handed a new socket to it. If the keeper ends, so do they, and with the warden every jail. */
#include "server/keeper.h"

#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/own.h"
#include "base/str.h"
#include "server/config.h"
#include "server/keeper_log.h"
#include "server/keeper_tls.h"
#include "server/listen.h"
#include "server/message.h"
#include "server/notify.h"
#include "server/role.h"

#define START_PATIENCE_MS 20000
#define DRAIN_MARGIN_MS 5000 /* what the others have beyond the runs' own time */
#define RESTART_FIRST_MS 50  /* doubled at each time it dies young */
#define RESTART_MOST_MS 5000
#define OLD_AGE_MS 10000 /* dies older than this: it is started again at once */
#define NOBODY 65534
#define WORDS_AT_ONCE 16

struct role {
    role_main *begin;
    pid_t pid; /* 0: not running */
    int pidfd;
    struct channel *control;
    bool ready, told, over; /* over: it was told to end, and did */
    uint64_t started_ms, restart_ms;
    uint64_t delay_ms;
};

struct keeper {
    const struct server_config *config;
    int listener, signals;
    char where[LISTEN_TEXT_MAX];
    struct role roles[ROLES_];
    bool announced, stopping;
    uint64_t kill_ms; /* when patience ends */
};

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
    va_list args;
    autostr struct str line = {0};
    va_start(args, format);
    str_append(&line, "brigd: ");
    str_vappendf(&line, format, args);
    str_append_char(&line, '\n');
    va_end(args);
    if (!line.failed)
        (void)!write(2, line.data, line.length);
}

/* ---- in a new process ---- */

/* What only one of them has business with is not left in the memory of the others. */
static void forget_secrets(const struct server_config *config, enum server_role role)
{
    if (role != ROLE_WARDEN)
        for (char **entry = environ; *entry; entry++)
            if (!str_starts_with(*entry, "TZ="))
                explicit_bzero(*entry, strlen(*entry));
    if (role != ROLE_RECORDER && config->database.dsn)
        explicit_bzero((char *)(uintptr_t)config->database.dsn, strlen(config->database.dsn));
}

/* The front of a brigd that root has started is nobody. */
static int become_nobody(struct brig_error *err)
{
    if (geteuid() != 0)
        return 0;
    for (unsigned long capability = 0; prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0;)
        capability++; /* up to the last one this kernel has */
    if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
        setresuid(NOBODY, NOBODY, NOBODY) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot become uid %d", NOBODY);
    return 0;
}

static void close_others(const struct keeper *keeper, enum server_role role)
{
    for (int i = 0; i < ROLES_; i++) {
        if (keeper->roles[i].pidfd >= 0)
            (void)close(keeper->roles[i].pidfd);
        if (keeper->roles[i].control)
            (void)close(channel_fd(keeper->roles[i].control));
    }
    (void)close(keeper->signals);
    if (role != ROLE_FRONT)
        (void)close(keeper->listener);
}

static __attribute__((noreturn)) void be_role(const struct keeper *keeper, enum server_role role,
                                              int control_fd, pid_t parent)
{
    struct brig_error err = {0};
    struct channel *control = NULL;
    sigset_t none;
    char name[16];
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    (void)snprintf(name, sizeof name, "brigd-%s", server_role_name(role));
    (void)prctl(PR_SET_NAME, name);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    /* A terminal's Ctrl-C is the keeper's to answer. */
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    close_others(keeper, role);
    forget_secrets(keeper->config, role);
    int result = channel_new(&control_fd, &control, &err);
    if (result == 0 && role == ROLE_FRONT)
        result = front_prepare(keeper->config, &err);
    if (result == 0 && role == ROLE_FRONT)
        result = become_nobody(&err);
    /* Setting ids clears both of these. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_DUMPABLE, 0);
    if (result == 0)
        result = keeper->roles[role].begin(keeper->config, control,
                                           role == ROLE_FRONT ? keeper->listener : -1, &err);
    if (result < 0)
        say("%s: %s", server_role_name(role), err.message);
    channel_free(control);
    _exit(result < 0 ? 1 : 0);
}

/* ---- starting and connecting ---- */

static int connect_roles(struct keeper *keeper, enum server_role a, enum server_role b,
                         struct brig_error *err)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a socket pair");
    autoclose int first = ends[0], second = ends[1];
    int result = channel_send_fd(keeper->roles[a].control, MESSAGE_PEER, b, first, err);
    if (result == 0)
        result = channel_send_fd(keeper->roles[b].control, MESSAGE_PEER, a, second, err);
    return result;
}

static int start_role(struct keeper *keeper, enum server_role which, struct brig_error *err)
{
    struct role *role = &keeper->roles[which];
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a socket pair");
    autoclose int ours = ends[0], theirs = ends[1];
    int result = channel_new(&ours, &role->control, err);
    if (result < 0)
        return result;
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        be_role(keeper, which, take_fd(&theirs), parent);
    if (pid < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot start the %s", server_role_name(which));
    role->pid = pid;
    role->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    role->ready = false;
    role->started_ms = clock_now_ms();
    role->restart_ms = 0;
    if (which == ROLE_FRONT)
        return keeper_tls_send(keeper->config, role->control, err);
    return 0;
}

/* What cannot be sent because the other one has died meanwhile is sent when it lives again. */
static void connect_to_all(struct keeper *keeper, enum server_role which)
{
    for (int other = 0; other < ROLES_; other++)
        if (other != (int)which && keeper->roles[other].pid != 0)
            (void)connect_roles(keeper, which, (enum server_role)other, NULL);
}

/* One that is dead already has said why, and is found dead as soon as we serve. */
static int connect_at_start(struct keeper *keeper, enum server_role a, enum server_role b,
                            struct brig_error *err)
{
    struct brig_error why = {0};
    int result = connect_roles(keeper, a, b, &why);
    if (result == 0 || why.sys_errno == EPIPE || why.sys_errno == ECONNRESET)
        return 0;
    if (err)
        *err = why;
    return result;
}

static int start_all(struct keeper *keeper, struct brig_error *err)
{
    for (int i = ROLES_; i-- > 0;) { /* who serves others comes first */
        int result = start_role(keeper, (enum server_role)i, err);
        if (result < 0)
            return result;
        for (int other = i + 1; result == 0 && other < ROLES_; other++)
            result = connect_at_start(keeper, (enum server_role)i, (enum server_role)other, err);
        if (result < 0)
            return result;
    }
    return 0;
}

/* ---- while it runs ---- */

static void forget_role(struct role *role)
{
    channel_free(take_ptr(&role->control));
    if (role->pidfd >= 0)
        (void)close(take_fd(&role->pidfd));
    role->pid = 0;
}

/* At the start a role that cannot begin ends everything: what is wrong will not mend itself. */
static int note_death(struct keeper *keeper, enum server_role which, int status,
                      struct brig_error *err)
{
    struct role *role = &keeper->roles[which];
    const char *name = server_role_name(which);
    bool clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    forget_role(role);
    role->over = keeper->stopping && role->told;
    if (role->over && clean)
        return 0;
    if (!keeper->announced && !keeper->stopping)
        return brig_fail(err, BRIG_E_SETUP, 0, "the %s could not begin", name);
    if (keeper->stopping)
        return 0;
    uint64_t now = clock_now_ms();
    bool young = now - role->started_ms < OLD_AGE_MS;
    role->delay_ms = !young ? 0 : role->delay_ms ? role->delay_ms * 2 : RESTART_FIRST_MS;
    if (role->delay_ms > RESTART_MOST_MS)
        role->delay_ms = RESTART_MOST_MS;
    role->restart_ms = now + role->delay_ms;
    if (WIFSIGNALED(status))
        say("the %s died by signal %d; it is started again", name, WTERMSIG(status));
    else
        say("the %s ended with %d; it is started again", name, WEXITSTATUS(status));
    return 0;
}

static int reap(struct keeper *keeper, struct brig_error *err)
{
    for (int i = 0; i < ROLES_; i++) {
        int status;
        if (keeper->roles[i].pid == 0 ||
            waitpid(keeper->roles[i].pid, &status, WNOHANG) != keeper->roles[i].pid)
            continue;
        int result = note_death(keeper, (enum server_role)i, status, err);
        if (result < 0)
            return result;
    }
    return 0;
}

static void restart_due(struct keeper *keeper)
{
    uint64_t now = clock_now_ms();
    for (int i = 0; i < ROLES_; i++) {
        struct role *role = &keeper->roles[i];
        struct brig_error err = {0};
        if (role->pid != 0 || role->restart_ms == 0 || role->restart_ms > now || keeper->stopping)
            continue;
        if (start_role(keeper, (enum server_role)i, &err) < 0) {
            say("%s", err.message);
            role->restart_ms = now + RESTART_MOST_MS;
            continue;
        }
        connect_to_all(keeper, (enum server_role)i);
    }
}

static void announce(struct keeper *keeper)
{
    for (int i = 0; i < ROLES_; i++)
        if (!keeper->roles[i].ready)
            return;
    if (keeper->announced || keeper->stopping)
        return;
    keeper->announced = true;
    say("listening on %s%s", keeper->config->tls.enabled ? "https://" : "http://", keeper->where);
    notify_systemd("READY=1\nSTATUS=listening");
}

/* What a role says. Its text is for a log: nothing in it may look like more than one line. So many at a
 * time: one that never stops must not keep the keeper from signals and from the others. */
static void hear(struct keeper *keeper, enum server_role which)
{
    struct role *role = &keeper->roles[which];
    for (int i = 0; i < WORDS_AT_ONCE; i++) {
        automessage struct message message = {.fd = -1};
        if (!role->control || channel_receive(role->control, &message, NULL) <= 0)
            return;
        if (message.length > 0)
            say("%s: %s", server_role_name(which), str_shown(message.bytes).text);
        if (message.type == MESSAGE_READY) {
            role->ready = true;
            announce(keeper);
        }
    }
}

static void tell_end(struct keeper *keeper, enum server_role which)
{
    struct role *role = &keeper->roles[which];
    if (role->told)
        return;
    role->told = true;
    role->restart_ms = 0;
    if (role->pid == 0 || channel_send(role->control, MESSAGE_DRAIN, 0, NULL, 0, NULL) < 0)
        role->over = role->pid == 0;
}

/* The recorder last: the others have rows for it until they end. */
static void go_on_stopping(struct keeper *keeper)
{
    tell_end(keeper, ROLE_FRONT);
    tell_end(keeper, ROLE_WARDEN);
    if (keeper->roles[ROLE_FRONT].pid == 0 && keeper->roles[ROLE_WARDEN].pid == 0)
        tell_end(keeper, ROLE_RECORDER);
}

static void kill_all(struct keeper *keeper)
{
    for (int i = 0; i < ROLES_; i++)
        if (keeper->roles[i].pid != 0)
            (void)kill(keeper->roles[i].pid, SIGKILL);
}

static void begin_stopping(struct keeper *keeper)
{
    if (keeper->stopping) { /* asked twice: at once */
        kill_all(keeper);
        return;
    }
    keeper->stopping = true;
    keeper->kill_ms = clock_now_ms() + keeper->config->server.drain_timeout_ms + DRAIN_MARGIN_MS;
    notify_systemd("STOPPING=1");
    say("stopping: waiting for running executions (a second signal ends them at once)");
}

static void reload(struct keeper *keeper)
{
    struct brig_error err = {0};
    struct channel *front = keeper->roles[ROLE_FRONT].control;
    notify_reloading();
    /* One that is not there now reads both when it begins. */
    if (front && keeper_tls_send(keeper->config, front, &err) < 0)
        say("the certificate stays as it was: %s", err.message);
    else if (front && keeper_log_send(keeper->config, front, &err) < 0)
        say("the access log stays as it was: %s", err.message);
    else
        say("certificate and access log were opened again; for other changes restart brigd");
    notify_systemd("READY=1");
}

static int take_signals(struct keeper *keeper, struct brig_error *err)
{
    struct signalfd_siginfo info;
    while (read(keeper->signals, &info, sizeof info) == sizeof info) {
        int result = 0;
        if (info.ssi_signo == SIGCHLD)
            result = reap(keeper, err);
        else if (info.ssi_signo == SIGHUP)
            reload(keeper);
        else
            begin_stopping(keeper);
        if (result < 0)
            return result;
    }
    return 0;
}

static int next_timeout(const struct keeper *keeper, uint64_t start_deadline_ms)
{
    uint64_t now = clock_now_ms(), due = keeper->announced ? 0 : start_deadline_ms;
    if (keeper->stopping && (due == 0 || keeper->kill_ms < due))
        due = keeper->kill_ms;
    for (int i = 0; i < ROLES_; i++)
        if (keeper->roles[i].restart_ms && (due == 0 || keeper->roles[i].restart_ms < due))
            due = keeper->roles[i].restart_ms;
    if (due == 0)
        return -1;
    return due <= now ? 0 : (int)(due - now);
}

static bool all_over(const struct keeper *keeper)
{
    for (int i = 0; i < ROLES_; i++)
        if (keeper->roles[i].pid != 0)
            return false;
    return true;
}

/* One turn of the loop. */
static int turn(struct keeper *keeper, uint64_t start_deadline_ms, struct brig_error *err)
{
    struct pollfd watches[ROLES_ + 1];
    for (int i = 0; i < ROLES_; i++) {
        const struct role *role = &keeper->roles[i];
        watches[i] =
            (struct pollfd){.fd = role->control ? channel_fd(role->control) : -1, .events = POLLIN};
        if (role->control && channel_wants_write(role->control))
            watches[i].events |= POLLOUT;
    }
    watches[ROLES_] = (struct pollfd){.fd = keeper->signals, .events = POLLIN};
    if (poll(watches, ROLES_ + 1, next_timeout(keeper, start_deadline_ms)) < 0 && errno != EINTR)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot wait");
    for (int i = 0; i < ROLES_; i++) {
        if (watches[i].revents & POLLOUT)
            (void)channel_flush(keeper->roles[i].control, NULL);
        if (watches[i].revents & (POLLIN | POLLHUP))
            hear(keeper, (enum server_role)i);
        /* One whose end is closed is as good as dead; its death follows, or is seen to. */
        if ((watches[i].revents & POLLHUP) && keeper->roles[i].pid != 0)
            (void)kill(keeper->roles[i].pid, keeper->stopping ? 0 : SIGKILL);
    }
    int result = take_signals(keeper, err);
    if (result < 0)
        return result;
    if (!keeper->announced && !keeper->stopping && clock_now_ms() > start_deadline_ms)
        return brig_fail(err, BRIG_E_SETUP, 0, "its parts took longer than %d s to begin",
                         START_PATIENCE_MS / 1000);
    restart_due(keeper);
    return 0;
}

static int serve(struct keeper *keeper, struct brig_error *err)
{
    uint64_t start_deadline_ms = clock_now_ms() + START_PATIENCE_MS;
    while (!(keeper->stopping && all_over(keeper))) {
        if (keeper->stopping) {
            go_on_stopping(keeper);
            if (clock_now_ms() >= keeper->kill_ms)
                kill_all(keeper);
        }
        int result = turn(keeper, start_deadline_ms, err);
        if (result < 0)
            return result;
    }
    return 0;
}

/* ---- its own beginning and end ---- */

static int block_signals(struct keeper *keeper, struct brig_error *err)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    keeper->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (keeper->signals < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot watch for signals");
    return 0;
}

static void warn(const struct keeper *keeper, bool public)
{
    const struct server_config *config = keeper->config;
    for (size_t i = 0; i < config->warnings.count; i++)
        say("warning: %s", config->warnings.items[i]);
    if (config->security.allowed_keys.count > 0)
        return;
    if (public)
        say("WARNING: %s can be reached from other machines, and no API key is asked for: anybody "
            "there "
            "can run code. Set security.allowed_keys, or listen on 127.0.0.1",
            keeper->where);
    else
        say("warning: no API key is asked for; set security.allowed_keys to ask for one");
}

static void end_all(struct keeper *keeper)
{
    kill_all(keeper);
    for (int i = 0; i < ROLES_; i++) {
        if (keeper->roles[i].pid != 0)
            (void)waitpid(keeper->roles[i].pid, NULL, 0);
        forget_role(&keeper->roles[i]);
    }
    if (keeper->signals >= 0)
        (void)close(keeper->signals);
    if (keeper->listener >= 0)
        (void)close(keeper->listener);
    if (str_starts_with(keeper->where, "unix:/"))
        (void)unlink(keeper->where + strlen("unix:"));
}

int keeper_run(const struct server_config *config, struct brig_error *err)
{
    bool public = false;
    struct keeper keeper = {
        .config = config,
        .listener = -1,
        .signals = -1,
        .roles = {[ROLE_FRONT] = {.begin = front_main, .pidfd = -1},
                  [ROLE_WARDEN] = {.begin = warden_main, .pidfd = -1},
                  [ROLE_RECORDER] = {.begin = recorder_main, .pidfd = -1}},
    };
    int result = listen_open(config->server.listen, getenv("LISTEN_FDS"), getenv("LISTEN_PID"),
                             &keeper.listener, keeper.where, &public, err);
    if (result < 0)
        return result;
    result = block_signals(&keeper, err);
    if (result == 0) {
        warn(&keeper, public);
        result = start_all(&keeper, err);
    }
    if (result == 0)
        result = serve(&keeper, err);
    end_all(&keeper);
    return result;
}
