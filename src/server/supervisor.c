/* SPDX-License-Identifier: MIT */
/* Theory of operation.
 *
 * brigd consists of four processes. The supervisor, this one, reads the configuration, opens the
 * listening socket, forks the other three and connects each pair of them with a socket pair. It
 * handles no data from outside. The http process speaks HTTP and is unprivileged; the executor
 * starts and ends jails; the history process owns the database. If one of them ends unexpectedly it
 * is started again, and the others get a new socket to it. Each answers pings from its loop; one
 * that hangs is killed, and thereby started again. If the supervisor ends, the others end
 * too, and with the executor every jail.
 *
 * The supervisor keeps the journal open (journal.h), so that rows and counters outlive the
 * executor. */
#include <errno.h>
#include <fcntl.h>
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
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/str.h"
#include "server/config/config.h"
#include "server/handover.h"
#include "server/journal.h"
#include "server/listen.h"
#include "server/log.h"
#include "server/message.h"
#include "server/notify.h"
#include "server/process.h"
#include "server/role.h"

#define START_PATIENCE_MS 20000
#define DRAIN_MARGIN_MS 5000 /* for the other processes, in addition to the runs' drain timeout */
#define RESTART_FIRST_MS 50  /* doubled each time the process dies young */
#define RESTART_MOST_MS 5000
#define OLD_AGE_MS 10000 /* a process older than this is restarted at once */
#define NOBODY 65534
#define WORDS_AT_ONCE 16
/* Unanswered pings before a process counts as hung. Several, so that none does when the whole
 * machine was suspended or overloaded: the supervisor counts its own turns, not the time. */
#define PINGS_MAX 4
#define MEASURE_MS 10000 /* at least so often the processes are measured for /metrics */

struct role {
    role_main *begin;
    pid_t pid; /* 0: not running */
    struct channel *control;
    bool ready, told;    /* told to end */
    unsigned unanswered; /* pings since the last answer */
    uint64_t started_ms, restart_ms;
    uint64_t delay_ms;
};

struct supervisor {
    struct server_config *config;
    int listener, signals;
    int journal, journal_read; /* kept open for processes that are started again */
    struct journal_page *page;
    char where[LISTEN_TEXT_MAX];
    struct role roles[ROLES_];
    bool announced, stopping;
    uint64_t ping_every_ms, ping_ms; /* when the next is due */
    uint64_t drain_ms; /* when the executor is told to end; the http process knows it by itself */
    uint64_t kill_ms;  /* when remaining processes are killed */
};

static void say(const struct server_config *config, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void say(const struct server_config *config, enum log_level level, const char *format, ...)
{
    va_list args;
    autostr struct str text = {0};
    va_start(args, format);
    str_vappendf(&text, format, args);
    va_end(args);
    log_line(config->server.log_format, level, NULL, text.data ? text.data : "");
}

/* ---- in a new process ---- */

/* Wipes secrets that this role does not need from its memory. */
static void forget_secrets(const struct server_config *config, enum server_role role)
{
    if (role != ROLE_EXECUTOR)
        for (char **entry = environ; *entry; entry++)
            if (!str_starts_with(*entry, "TZ="))
                explicit_bzero(*entry, strlen(*entry));
    if (role != ROLE_HISTORY && config->database.dsn)
        explicit_bzero((char *)(uintptr_t)config->database.dsn, strlen(config->database.dsn));
    if (role != ROLE_EXECUTOR && config->callback.secret && *config->callback.secret) {
        char *secret = (char *)(uintptr_t)config->callback.secret;
        explicit_bzero(secret, strlen(secret));
        *secret = '*'; /* the http process needs to know that there is one */
    }
}

/* The http process runs as nobody if brigd was started by root. */
static int become_nobody(struct brig_error *err)
{
    if (geteuid() != 0)
        return 0;
    for (unsigned long capability = 0; prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0;)
        capability++; /* until the last capability of this kernel */
    if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
        setresuid(NOBODY, NOBODY, NOBODY) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot become uid %d", NOBODY);
    return 0;
}

static void close_others(const struct supervisor *supervisor, enum server_role role)
{
    for (int i = 0; i < ROLES_; i++) {
        if (supervisor->roles[i].control)
            (void)close(channel_fd(supervisor->roles[i].control));
    }
    (void)close(supervisor->signals);
    if (role != ROLE_HTTP) {
        (void)close(supervisor->listener);
        (void)close(supervisor->journal_read);
    }
    if (role != ROLE_EXECUTOR)
        (void)close(supervisor->journal);
    journal_unmap(supervisor->page); /* the http process may only read it */
}

static __attribute__((noreturn)) void be_role(const struct supervisor *supervisor,
                                              enum server_role role, int control_fd, pid_t parent)
{
    struct brig_error err = {0};
    struct channel *control = NULL;
    const struct role_fds fds = {.listener = role == ROLE_HTTP ? supervisor->listener : -1,
                                 .journal = role == ROLE_HTTP       ? supervisor->journal_read
                                            : role == ROLE_EXECUTOR ? supervisor->journal
                                                                    : -1};
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
    /* The supervisor handles Ctrl-C on a terminal. */
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    close_others(supervisor, role);
    forget_secrets(supervisor->config, role);
    int result = channel_new(&control_fd, &control, &err);
    if (result == 0 && role == ROLE_HTTP)
        result = become_nobody(&err);
    /* Changing ids resets both of these. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_DUMPABLE, 0);
    if (result == 0)
        result = supervisor->roles[role].begin(supervisor->config, control, &fds, &err);
    if (result < 0)
        log_line(supervisor->config->server.log_format, LEVEL_ERROR, server_role_name(role),
                 err.message);
    channel_free(control);
    _exit(result < 0 ? 1 : 0);
}

/* ---- starting and connecting ---- */

static void forget_role(struct role *role)
{
    channel_free(take_ptr(&role->control));
    role->pid = 0;
}

static int start_role(struct supervisor *supervisor, enum server_role which, struct brig_error *err)
{
    struct role *role = &supervisor->roles[which];
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a socket pair");
    autoclose int ours = ends[0], theirs = ends[1];
    int result = channel_new(&ours, &role->control, err);
    if (result < 0)
        return result;
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        be_role(supervisor, which, take_fd(&theirs), parent);
    if (pid < 0) {
        result =
            brig_fail(err, BRIG_E_SYSTEM, errno, "cannot start the %s", server_role_name(which));
        forget_role(role);
        return result;
    }
    role->pid = pid;
    role->ready = false;
    role->unanswered = 0;
    role->started_ms = clock_now_ms();
    role->restart_ms = 0;
    if (which == ROLE_HTTP)
        result = handover_tls(supervisor->config, role->control, err);
    if (result == 0 && which == ROLE_HTTP)
        result = handover_log(supervisor->config, role->control, err);
    if (result < 0)
        (void)kill(pid, SIGKILL); /* a process without certificate or log is of no use */
    return result;
}

/* Sends each of two processes a socket to the other. If one has died meanwhile, the socket is sent
 * when it is started again. */
static void connect_to_all(struct supervisor *supervisor, enum server_role which)
{
    struct role *roles = supervisor->roles;
    for (int other = 0; other < ROLES_; other++) {
        int ends[2];
        if (other == (int)which || roles[other].pid == 0 ||
            socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
            continue;
        (void)channel_send_fd(roles[which].control, MESSAGE_PEER, (uint64_t)other, ends[0], NULL);
        (void)channel_send_fd(roles[other].control, MESSAGE_PEER, which, ends[1], NULL);
        (void)close(ends[0]);
        (void)close(ends[1]);
    }
}

static int start_all(struct supervisor *supervisor, struct brig_error *err)
{
    for (int i = ROLES_; i-- > 0;) { /* start the http process last */
        int result = start_role(supervisor, (enum server_role)i, err);
        if (result < 0)
            return result;
        connect_to_all(supervisor, (enum server_role)i);
    }
    return 0;
}

/* ---- while it runs ---- */

/* A role that fails during the start ends brigd: restarting would not fix the cause. */
static int note_death(struct supervisor *supervisor, enum server_role which, int status,
                      struct brig_error *err)
{
    struct role *role = &supervisor->roles[which];
    const char *name = server_role_name(which);
    forget_role(role);
    if (supervisor->stopping) {
        if (which == ROLE_HTTP) /* connections would wait for nobody */
            own_close(&supervisor->listener);
        return 0;
    }
    if (!supervisor->announced)
        return brig_fail(err, BRIG_E_SETUP, 0, "the %s could not begin", name);
    supervisor->page->processes[which].deaths++;
    uint64_t now = clock_now_ms();
    bool young = now - role->started_ms < OLD_AGE_MS;
    role->delay_ms = !young ? 0 : role->delay_ms ? role->delay_ms * 2 : RESTART_FIRST_MS;
    if (role->delay_ms > RESTART_MOST_MS)
        role->delay_ms = RESTART_MOST_MS;
    role->restart_ms = now + role->delay_ms;
    if (WIFSIGNALED(status))
        say(supervisor->config, LEVEL_ERROR, "the %s died by signal %d; it is started again", name,
            WTERMSIG(status));
    else
        say(supervisor->config, LEVEL_ERROR, "the %s ended with %d; it is started again", name,
            WEXITSTATUS(status));
    return 0;
}

static int reap(struct supervisor *supervisor, struct brig_error *err)
{
    for (int i = 0; i < ROLES_; i++) {
        int status;
        if (supervisor->roles[i].pid == 0 ||
            waitpid(supervisor->roles[i].pid, &status, WNOHANG) != supervisor->roles[i].pid)
            continue;
        int result = note_death(supervisor, (enum server_role)i, status, err);
        if (result < 0)
            return result;
    }
    return 0;
}

static void restart_due(struct supervisor *supervisor)
{
    uint64_t now = clock_now_ms();
    for (int i = 0; i < ROLES_; i++) {
        struct role *role = &supervisor->roles[i];
        struct brig_error err = {0};
        if (role->pid != 0 || role->restart_ms == 0 || role->restart_ms > now ||
            supervisor->stopping)
            continue;
        if (start_role(supervisor, (enum server_role)i, &err) < 0) {
            say(supervisor->config, LEVEL_ERROR, "%s", err.message);
            role->restart_ms = now + RESTART_MOST_MS;
            continue;
        }
        connect_to_all(supervisor, (enum server_role)i);
    }
}

static void announce(struct supervisor *supervisor)
{
    for (int i = 0; i < ROLES_; i++)
        if (!supervisor->roles[i].ready)
            return;
    if (supervisor->announced || supervisor->stopping)
        return;
    supervisor->announced = true;
    say(supervisor->config, LEVEL_INFO, "listening on %s%s",
        supervisor->config->tls.enabled ? "https://" : "http://", supervisor->where);
    notify_systemd("READY=1\nSTATUS=listening");
}

/* It is started again when its death is noticed. The end of the executor would end all jails. */
static void replace(const struct supervisor *supervisor, uint64_t role)
{
    if ((role == ROLE_HTTP || role == ROLE_HISTORY) && supervisor->roles[role].pid != 0)
        (void)kill(supervisor->roles[role].pid, SIGKILL);
}

/* Receives messages of a role. Texts are sanitised so that each is one line in the log. Limited per
 * turn, so that a role which never stops sending does not keep the supervisor from signals and
 * other roles. */
static void hear(struct supervisor *supervisor, enum server_role which)
{
    struct role *role = &supervisor->roles[which];
    for (int i = 0; i < WORDS_AT_ONCE; i++) {
        automessage struct message message = {.fd = -1};
        if (!role->control || channel_receive(role->control, &message, NULL) <= 0)
            return;
        role->unanswered = 0;
        if (message.length > 0)
            log_line(supervisor->config->server.log_format,
                     message.type == MESSAGE_READY ? LEVEL_INFO : LEVEL_WARNING,
                     server_role_name(which), str_shown(message.bytes).text);
        if (message.type == MESSAGE_READY) {
            role->ready = true;
            announce(supervisor);
        }
        if (message.type == MESSAGE_REPLACE && which != ROLE_HTTP)
            replace(supervisor, message.tag);
    }
}

/* A role that was started again has the time of the first start to get ready: it may open a large
 * database. serve() watches the first start. */
static void ping(struct supervisor *supervisor, enum server_role which)
{
    struct role *role = &supervisor->roles[which];
    uint64_t every_ms = supervisor->ping_every_ms;
    uint64_t most = role->ready ? PINGS_MAX : START_PATIENCE_MS / every_ms + 1;
    if (role->pid == 0 || !supervisor->announced)
        return;
    if (role->unanswered++ < most) {
        if (role->ready)
            (void)channel_send(role->control, MESSAGE_PING, 0, NULL, 0, NULL);
        return;
    }
    say(supervisor->config, LEVEL_ERROR, "the %s has not answered for %llu s: it is killed",
        server_role_name(which), (unsigned long long)(most * every_ms) / 1000);
    role->unanswered = 0;
    supervisor->page->processes[which].hangs++;
    (void)kill(role->pid, SIGKILL);
}

static void measure(struct supervisor *supervisor)
{
    for (int i = 0; i < ROLES_; i++)
        if (supervisor->roles[i].pid != 0)
            process_measure(supervisor->roles[i].pid, &supervisor->page->processes[i]);
    process_measure(getpid(), &supervisor->page->processes[ROLES_]);
}

static void ping_all(struct supervisor *supervisor)
{
    uint64_t now = clock_now_ms();
    if (now < supervisor->ping_ms || supervisor->stopping)
        return;
    measure(supervisor);
    supervisor->ping_ms = now + supervisor->ping_every_ms;
    for (int i = 0; i < ROLES_ && supervisor->config->server.watchdog_ms > 0; i++)
        ping(supervisor, (enum server_role)i);
    if (supervisor->announced)
        notify_systemd("WATCHDOG=1");
}

/* systemd wants to hear from brigd at least twice in WATCHDOG_USEC. */
static uint64_t ping_interval(const struct server_config *config)
{
    const char *text = getenv("WATCHDOG_USEC");
    uint64_t every = MEASURE_MS, own = config->server.watchdog_ms / PINGS_MAX, systemd = 0;
    if (config->server.watchdog_ms > 0 && own < every)
        every = own > 0 ? own : 1;
    if (text && parse_uint(text, UINT32_MAX * UINT64_C(1000000), 0, &systemd, NULL) == 0 &&
        systemd / 2000 < every)
        every = systemd / 2000 > 0 ? systemd / 2000 : 1;
    return every;
}

static void tell_end(struct supervisor *supervisor, enum server_role which)
{
    struct role *role = &supervisor->roles[which];
    if (role->told)
        return;
    role->told = true;
    role->restart_ms = 0;
    if (role->pid != 0)
        (void)channel_send(role->control, MESSAGE_DRAIN, 0, NULL, 0, NULL);
}

/* The history process is stopped last: the others send it rows until they end. */
static void go_on_stopping(struct supervisor *supervisor)
{
    tell_end(supervisor, ROLE_HTTP);
    if (clock_now_ms() < supervisor->drain_ms)
        return;
    tell_end(supervisor, ROLE_EXECUTOR);
    if (supervisor->roles[ROLE_HTTP].pid == 0 && supervisor->roles[ROLE_EXECUTOR].pid == 0)
        tell_end(supervisor, ROLE_HISTORY);
}

static void kill_all(struct supervisor *supervisor)
{
    for (int i = 0; i < ROLES_; i++)
        if (supervisor->roles[i].pid != 0)
            (void)kill(supervisor->roles[i].pid, SIGKILL);
}

static void begin_stopping(struct supervisor *supervisor)
{
    if (supervisor->stopping) { /* second signal: kill at once */
        kill_all(supervisor);
        return;
    }
    supervisor->stopping = true;
    supervisor->drain_ms = clock_now_ms() + supervisor->config->server.drain_delay_ms;
    supervisor->kill_ms =
        supervisor->drain_ms + supervisor->config->server.drain_timeout_ms + DRAIN_MARGIN_MS;
    notify_systemd("STOPPING=1");
    say(supervisor->config, LEVEL_INFO,
        "stopping: waiting for running executions (a second signal ends them at once)");
}

/* Sends keys, rates and limits of the new configuration to the processes. */
static int distribute(struct supervisor *supervisor, const struct server_config *new,
                      struct brig_error *err)
{
    autostr struct str text = {0};
    config_reload_print(new, &text);
    int result = text.failed ? brig_fail_nomem(err)
                             : config_reload(supervisor->config, text.data, text.length, err);
    for (int i = 0; i < ROLES_ && result == 0; i++) {
        const struct role *role = &supervisor->roles[i];
        /* A process that starts again has the new configuration. */
        if (role->pid != 0 &&
            channel_send(role->control, MESSAGE_CONFIG, 0, text.data, text.length, NULL) < 0)
            (void)kill(role->pid, SIGKILL);
    }
    return result;
}

static int reload_config(struct supervisor *supervisor, struct brig_error *err)
{
    autostr struct str rest = {0};
    autofree struct server_config *new = calloc(1, sizeof *new);
    if (!new)
        return brig_fail_nomem(err);
    int result = config_load(supervisor->config->path, (const char *const *)environ, new, err);
    if (result < 0)
        return result;
    result = distribute(supervisor, new, err);
    config_reload_rest(supervisor->config, new, &rest);
    if (result == 0 && rest.length > 0)
        say(supervisor->config, LEVEL_WARNING, "these changes need a restart of brigd: %s",
            rest.data);
    config_done(new);
    return result;
}

static void reload(struct supervisor *supervisor)
{
    struct brig_error err = {0};
    struct channel *http = supervisor->roles[ROLE_HTTP].control;
    char state[64];
    (void)snprintf(state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%llu",
                   (unsigned long long)clock_now_us());
    notify_systemd(state);
    /* If the http process is not running, it gets everything when it starts. */
    if (reload_config(supervisor, &err) < 0)
        say(supervisor->config, LEVEL_ERROR, "the configuration stays as it was: %s", err.message);
    else if (http && handover_tls(supervisor->config, http, &err) < 0)
        say(supervisor->config, LEVEL_ERROR, "the certificate stays as it was: %s", err.message);
    else if (http && handover_log(supervisor->config, http, &err) < 0)
        say(supervisor->config, LEVEL_ERROR, "the access log stays as it was: %s", err.message);
    else
        say(supervisor->config, LEVEL_INFO,
            "reloaded: keys, rates, limits, certificate and access log");
    notify_systemd("READY=1");
}

static int take_signals(struct supervisor *supervisor, struct brig_error *err)
{
    struct signalfd_siginfo info;
    while (read(supervisor->signals, &info, sizeof info) == sizeof info) {
        int result = 0;
        if (info.ssi_signo == SIGCHLD)
            result = reap(supervisor, err);
        else if (info.ssi_signo == SIGHUP)
            reload(supervisor);
        else
            begin_stopping(supervisor);
        if (result < 0)
            return result;
    }
    return 0;
}

static int next_timeout(const struct supervisor *supervisor, uint64_t start_deadline_ms)
{
    uint64_t now = clock_now_ms(), due = supervisor->announced ? 0 : start_deadline_ms;
    uint64_t stop_ms = now < supervisor->drain_ms ? supervisor->drain_ms : supervisor->kill_ms;
    if (supervisor->stopping && (due == 0 || stop_ms < due))
        due = stop_ms;
    if (!supervisor->stopping && (due == 0 || supervisor->ping_ms < due))
        due = supervisor->ping_ms;
    for (int i = 0; i < ROLES_; i++)
        if (supervisor->roles[i].restart_ms && (due == 0 || supervisor->roles[i].restart_ms < due))
            due = supervisor->roles[i].restart_ms;
    if (due == 0)
        return -1;
    return due <= now ? 0 : (int)(due - now);
}

static bool all_over(const struct supervisor *supervisor)
{
    for (int i = 0; i < ROLES_; i++)
        if (supervisor->roles[i].pid != 0)
            return false;
    return true;
}

static int turn(struct supervisor *supervisor, uint64_t start_deadline_ms, struct brig_error *err)
{
    struct pollfd watches[ROLES_ + 1];
    for (int i = 0; i < ROLES_; i++) {
        const struct role *role = &supervisor->roles[i];
        watches[i] =
            (struct pollfd){.fd = role->control ? channel_fd(role->control) : -1, .events = POLLIN};
        if (role->control && channel_wants_write(role->control))
            watches[i].events |= POLLOUT;
    }
    watches[ROLES_] = (struct pollfd){.fd = supervisor->signals, .events = POLLIN};
    if (poll(watches, ROLES_ + 1, next_timeout(supervisor, start_deadline_ms)) < 0 &&
        errno != EINTR)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot wait");
    for (int i = 0; i < ROLES_; i++) {
        if (watches[i].revents & POLLOUT)
            (void)channel_flush(supervisor->roles[i].control, NULL);
        if (watches[i].revents & (POLLIN | POLLHUP))
            hear(supervisor, (enum server_role)i);
        /* A role that has closed its channel cannot be told to end. */
        if ((watches[i].revents & POLLHUP) && supervisor->roles[i].pid != 0 &&
            !supervisor->stopping)
            (void)kill(supervisor->roles[i].pid, SIGKILL);
    }
    int result = take_signals(supervisor, err);
    if (result < 0)
        return result;
    if (!supervisor->announced && !supervisor->stopping && clock_now_ms() > start_deadline_ms)
        return brig_fail(err, BRIG_E_SETUP, 0, "its parts took longer than %d s to begin",
                         START_PATIENCE_MS / 1000);
    restart_due(supervisor);
    ping_all(supervisor);
    return 0;
}

static int serve(struct supervisor *supervisor, struct brig_error *err)
{
    uint64_t start_deadline_ms = clock_now_ms() + START_PATIENCE_MS;
    while (!(supervisor->stopping && all_over(supervisor))) {
        if (supervisor->stopping) {
            go_on_stopping(supervisor);
            if (clock_now_ms() >= supervisor->kill_ms)
                kill_all(supervisor);
        }
        int result = turn(supervisor, start_deadline_ms, err);
        if (result < 0)
            return result;
    }
    return 0;
}

/* ---- start and end of the supervisor ---- */

static int make_journal(struct supervisor *supervisor, struct brig_error *err)
{
    int result = journal_create(&supervisor->journal, &supervisor->journal_read, err);
    if (result < 0)
        return result;
    supervisor->page = journal_map(supervisor->journal, true);
    return supervisor->page ? 0 : brig_fail(err, BRIG_E_SYSTEM, errno, "cannot map the journal");
}

static int block_signals(struct supervisor *supervisor, struct brig_error *err)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    supervisor->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (supervisor->signals < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot watch for signals");
    return 0;
}

static void warn(const struct supervisor *supervisor, bool public)
{
    const struct server_config *config = supervisor->config;
    for (size_t i = 0; i < config->warnings.count; i++)
        say(config, LEVEL_WARNING, "%s", config->warnings.items[i]);
    if (config->security.allowed_keys.count > 0)
        return;
    if (public)
        say(config, LEVEL_WARNING,
            "WARNING: %s can be reached from other machines, and no API key is asked for: anybody "
            "there "
            "can run code. Set security.allowed_keys, or listen on 127.0.0.1",
            supervisor->where);
    else
        say(config, LEVEL_WARNING,
            "no API key is asked for; set security.allowed_keys to ask for one");
}

static void end_all(struct supervisor *supervisor)
{
    kill_all(supervisor);
    for (int i = 0; i < ROLES_; i++) {
        if (supervisor->roles[i].pid != 0)
            (void)waitpid(supervisor->roles[i].pid, NULL, 0);
        forget_role(&supervisor->roles[i]);
    }
    if (supervisor->signals >= 0)
        (void)close(supervisor->signals);
    own_close(&supervisor->listener);
    own_close(&supervisor->journal);
    own_close(&supervisor->journal_read);
    journal_unmap(supervisor->page);
    /* systemd goes on listening on a socket that it passed. */
    if (str_starts_with(supervisor->where, "unix:/") &&
        !listen_is_given(getenv("LISTEN_FDS"), getenv("LISTEN_PID")))
        (void)unlink(supervisor->where + strlen("unix:"));
}

int supervisor_run(struct server_config *config, struct brig_error *err)
{
    bool public = false;
    struct supervisor supervisor = {
        .config = config,
        .listener = -1,
        .signals = -1,
        .journal = -1,
        .journal_read = -1,
        .ping_every_ms = ping_interval(config),
        .roles = {[ROLE_HTTP] = {.begin = http_main},
                  [ROLE_EXECUTOR] = {.begin = executor_main},
                  [ROLE_HISTORY] = {.begin = history_main}},
    };
    int result = listen_open(config->server.listen, getenv("LISTEN_FDS"), getenv("LISTEN_PID"),
                             &supervisor.listener, supervisor.where, &public, err);
    if (result < 0)
        return result;
    result = block_signals(&supervisor, err);
    if (result == 0)
        result = make_journal(&supervisor, err);
    if (result == 0) {
        warn(&supervisor, public);
        result = start_all(&supervisor, err);
    }
    if (result == 0)
        result = serve(&supervisor, err);
    end_all(&supervisor);
    return result;
}
