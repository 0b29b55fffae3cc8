/* SPDX-License-Identifier: MIT */
/* Starts zygotes and sends them orders: see zygote.h. */
#include "jail/prepare/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/str.h"
#include "jail/cgroup/limits.h"
#include "jail/confine/denials.h"
#include "jail/job/job.h"
#include "jail/job/spawn.h"
#include "jail/job/streams.h"
#include "jail/plan/plan_flat.h"
#include "jail/prepare/template.h"
#include "jail/prepare/zygote_wire.h"
#include "policy/policy.h"

#define LIBRARY_NAME "brig-zygote.so"
#define LIBRARY_PLACE "/tmp"
#define LIBRARY_MAX (8 << 20)
#define LAST_WORDS_MAX 300
/* How long to wait for a zygote to exit: a millisecond, or longer if all CPUs are busy. One that takes
 * even longer exits too, but is reaped by another process: as does one that is still starting, which
 * does not look at its socket. */
#define END_PATIENCE_MS 2000
#define START_PATIENCE_MS 200

struct zygote {
    struct brig_template *template;
    struct plan plan; /* executed by the zygote for each run; uses the template's memory */
    struct spawned process;
    int socket;
    int words; /* the zygote's output, for error messages */
    bool ready, gone;
    unsigned shares;      /* references besides the owner's */
    uint64_t answered_us; /* when it last completed a jail */
};

/* ---- messages ---- */

static int send_message(int socket, const struct zygote_message *message, const void *bytes,
                        size_t length, const int *fds, size_t fd_count)
{
    const struct iovec parts[] = {{(void *)(uintptr_t)message, sizeof *message},
                                  {(void *)(uintptr_t)bytes, length}};
    ssize_t sent = fdpass_send(socket, parts, length > 0 ? 2 : 1, fds, fd_count, MSG_DONTWAIT);
    return sent < 0 ? (int)sent : 0;
}

/* The zygote reads the messages once it is initialised. */
static int send_plan(const struct zygote *zygote, struct brig_error *err)
{
    autostr struct str flat = {0};
    if (plan_flatten(&zygote->plan, &flat) < 0)
        return brig_fail_nomem(err);
    struct zygote_message message = {.type = ZYGOTE_PLAN, .length = (uint32_t)flat.length};
    for (size_t sent = 0, piece; sent < flat.length; sent += piece) {
        piece = flat.length - sent;
        if (piece > ZYGOTE_PIECE_BYTES)
            piece = ZYGOTE_PIECE_BYTES;
        bool last = sent + piece == flat.length;
        int result = send_message(zygote->socket, &message, flat.data + sent, piece,
                                  &zygote->plan.init_fd, last ? 1 : 0);
        if (result < 0)
            return brig_fail(err, BRIG_E_SETUP, -result, "cannot send a zygote its plan");
    }
    return 0;
}

/* `wire` and `gate` are the child's ends. */
static int send_order(const struct zygote *zygote, const struct plan *plan, uint32_t host_id,
                      int wire, int gate, const struct streams *streams, struct brig_error *err)
{
    int fds[ZYGOTE_FDS_MAX] = {wire, streams->fds[0], streams->fds[1], streams->fds[2], gate};
    size_t count = ZYGOTE_FDS_MIN;
    struct zygote_message message = {.type = ZYGOTE_FORK,
                                     .host_uid = host_id,
                                     .host_gid = host_id,
                                     .has_network = plan->join_netns >= 0,
                                     .has_cgroup = plan->cgroup_fd >= 0,
                                     .join_count = (uint8_t)plan->join_count};
    if (plan->join_netns >= 0)
        fds[count++] = plan->join_netns;
    if (plan->cgroup_fd >= 0)
        fds[count++] = plan->cgroup_fd;
    for (size_t i = 0; i < plan->join_count; i++)
        fds[count++] = plan->join_fds[i];
    int result = send_message(zygote->socket, &message, NULL, 0, fds, count);
    if (result == -EAGAIN)
        return brig_fail(err, BRIG_E_STATE, 0, "the zygote has too many orders already");
    return result < 0 ? brig_fail(err, BRIG_E_STATE, -result, "the zygote is gone") : 0;
}

/* ---- the process ---- */

/* The zygote's streams are of the same kinds as those of runs: the interpreter remembers their
 * kinds. */
struct own_streams {
    int input;
    int pipe[2];
};

static int open_streams(struct own_streams *streams, struct brig_error *err)
{
    int made = memfd_create("brig-stdin", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (made < 0 || pipe2(streams->pipe, O_CLOEXEC | O_NONBLOCK) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a zygote's streams");
    streams->input = made;
    return 0;
}

static void close_streams(struct own_streams *streams)
{
    int fds[] = {streams->input, streams->pipe[0], streams->pipe[1]};
    for (size_t i = 0; i < ARRAY_LENGTH(fds); i++)
        close_fd(&fds[i]);
}

/* The zygote has the environment of the runs, plus variables that the library removes again. */
static int set_variables(struct brig_policy *policy, const struct zygote_config *config,
                         struct brig_error *err)
{
    int result = brig_policy_setenv(policy, ZYGOTE_FILE_VARIABLE, config->file, err);
    if (result == 0)
        result = brig_policy_setenv(policy, ZYGOTE_MODULES_VARIABLE,
                                    config->modules ? config->modules : "", err);
    if (result == 0)
        result = brig_policy_setenv(policy, "LD_PRELOAD", LIBRARY_PLACE "/" LIBRARY_NAME, err);
    if (result == 0) /* symbols that are resolved once need not be resolved in each run */
        result = brig_policy_setenv(policy, "LD_BIND_NOW", "1", err);
    return result;
}

static struct plan_step *add_step(struct plan *plan, enum plan_op op, int slot, const char *what)
{
    struct plan_step *step = plan_add(plan, op, what);
    if (step)
        step->slot = slot;
    return step;
}

/* Puts the library where every run mounts a private directory, so that runs do not see it. */
static int add_library(struct plan *plan, int library, struct brig_error *err)
{
    struct stat info;
    if (fstat(library, &info) < 0 || info.st_size <= 0 || info.st_size > LIBRARY_MAX)
        return brig_fail(err, BRIG_E_SETUP, errno, "the zygote library cannot be loaded");
    char *bytes = arena_alloc(&plan->arena, (size_t)info.st_size);
    if (!bytes)
        return brig_fail_nomem(err);
    if (pread(library, bytes, (size_t)info.st_size, 0) != info.st_size)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot read the library of zygotes");
    (void)plan_new_slot(plan); /* PLAN_PTY_SLOT */
    int root = plan_new_slot(plan), own = plan_new_slot(plan);
    (void)add_step(plan, PLAN_OPEN_ROOT, root, "open the template's root");
    struct plan_step *tmpfs = add_step(plan, PLAN_TMPFS, own, "make a zygote's own directory");
    struct plan_step *file = add_step(plan, PLAN_MKFILE, own, "write the library of a zygote");
    struct plan_step *attach = add_step(plan, PLAN_ATTACH, own, "attach a zygote's own directory");
    if (!tmpfs || !file || !attach)
        return brig_fail_nomem(err);
    /* Each call may have moved the array. */
    tmpfs = attach - 2;
    file = attach - 1;
    tmpfs->path = "mode=0755\0size=16m\0";
    file->path = LIBRARY_NAME;
    file->mode = 0555;
    file->data = bytes;
    file->length = (size_t)info.st_size;
    attach->path = LIBRARY_PLACE;
    attach->from = root;
    attach->mode = 1;
    return 0;
}

/* The zygote joins the template's namespaces, with capabilities to create others in them, and is
 * separated from the host in the remaining kinds of namespaces. */
static void set_namespaces(struct plan *plan, const struct brig_template *template)
{
    plan->rung = PLAN_FULL;
    plan->join_userns = template->fresh.join_userns;
    plan->join_mntns = template->fresh.join_mntns;
    plan->become = template->fresh.become;
    plan->become_joined = template->fresh.become_joined;
    plan->host_uid = template->fresh.host_uid;
    plan->host_gid = template->fresh.host_gid;
    plan->clone_flags = CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
    plan->init_fd = template->fresh.init_fd;
    plan->init_mode = "h";
    plan->keep_caps = true;
    plan->home = template->fresh.home;
}

static int start_process(struct zygote *zygote, const struct zygote_config *config,
                         const struct brig_policy *policy, int socket,
                         const struct own_streams *streams, struct brig_error *err)
{
    const struct brig_pass_fd pass = {.fd = socket, .number = ZYGOTE_SOCKET_FD};
    struct brig_command command = {.size = sizeof(struct brig_command),
                                   .argv = config->argv,
                                   .pass_fds = &pass,
                                   .pass_fd_count = 1};
    struct plan_input input = {
        .policy = policy,
        .command = &command,
        .stdio_fds = {streams->input, streams->pipe[1], streams->pipe[1]},
        .host_terminal = -1,
        .pty_fd = -1,
    };
    struct plan plan = PLAN_INIT;
    set_namespaces(&plan, zygote->template);
    int result = add_library(&plan, config->library, err);
    if (result == 0)
        result = plan_add_command(&plan, &input, err);
    plan.rlimit_count = 0; /* they are for the runs */
    if (result == 0)
        result = spawn_jail(&plan, &zygote->process, err);
    plan_done(&plan);
    return result;
}

static int launch(struct zygote *zygote, const struct zygote_config *config, struct brig_error *err)
{
    struct own_streams streams = {-1, {-1, -1}};
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a socket pair");
    zygote->socket = fds_keep_high(pair[0]);
    autoclose int theirs = pair[1];
    struct brig_policy *policy = brig_policy_copy(config->policy);
    int result = policy ? set_variables(policy, config, err) : brig_fail_nomem(err);
    if (result == 0)
        result = open_streams(&streams, err);
    if (result == 0)
        result = start_process(zygote, config, policy, theirs, &streams, err);
    zygote->words = fds_keep_high(take_fd(&streams.pipe[0]));
    close_streams(&streams);
    brig_policy_free(policy);
    return result;
}

/* ---- the plan for runs ---- */

/* Limits that cgroups cannot enforce here become rlimits, which are the same for all runs. */
static int settle_limits(struct plan *plan, const struct brig_policy *policy,
                         struct brig_error *err)
{
    struct limits limits = {0};
    int result = limits_init(&limits, policy, err);
    if (result < 0)
        return result;
    plan->limits_missing = limits_note(&limits, policy, true, &plan->unenforced);
    plan_rlimits(plan, policy);
    limits_done(&limits);
    return 0;
}

static int make_plan(struct zygote *zygote, struct brig_error *err)
{
    struct brig_template *template = zygote->template;
    /* Masks and doors need work by the process that starts a jail. */
    if (template->fresh.mask_count > 0 || template->fresh.door)
        return brig_fail(err, BRIG_E_UNSUPPORTED, 0,
                         "a policy with masks or with a network door cannot have a zygote");
    struct denials denials = DENIALS_INIT;
    struct plan *plan = &template->fresh;
    plan->workdir = template->policy->workdir;
    int result = settle_limits(plan, template->policy, err);
    if (result == 0 && template->policy->trace) {
        struct arena own = plan->arena;
        plan->arena = template->compiled.arena; /* lives as long as the template */
        result = denials_prepare(&denials, plan, true, err);
        template->compiled.arena = plan->arena;
        plan->arena = own;
    }
    zygote->plan = *plan;
    return result;
}

/* ---- start and end ---- */

int zygote_new(const struct zygote_config *config, struct zygote **ret_zygote,
               struct brig_error *err)
{
    struct zygote *zygote = calloc(1, sizeof *zygote);
    if (!zygote)
        return brig_fail_nomem(err);
    zygote->socket = zygote->words = -1;
    const struct template_ids ids = {.first = config->first_id, .count = config->id_count};
    int result = template_new(config->policy, PLAN_NESTED, &ids, &zygote->template, err);
    if (result == 0)
        result = make_plan(zygote, err);
    if (result == 0)
        result = launch(zygote, config, err);
    if (result == 0)
        result = send_plan(zygote, err);
    if (result < 0) {
        zygote_free(zygote);
        return result;
    }
    *ret_zygote = zygote;
    return 0;
}

const struct brig_policy *zygote_policy(const struct zygote *zygote)
{
    return zygote->template->policy;
}

int zygote_fd(const struct zygote *zygote)
{
    return zygote->socket;
}

bool zygote_is_ready(const struct zygote *zygote)
{
    return zygote->ready && !zygote->gone;
}

int zygote_process(struct zygote *zygote, struct brig_error *err)
{
    struct zygote_message message;
    ssize_t length;
    do
        length = recv(zygote->socket, &message, sizeof message, MSG_DONTWAIT);
    while (length < 0 && (errno == EINTR || errno == ECONNRESET));
    if (length < 0 && errno == EAGAIN)
        return 0;
    if (length != (ssize_t)sizeof message) {
        char words[LAST_WORDS_MAX + 1] = "";
        zygote->gone = true;
        ssize_t count = read(zygote->words, words, LAST_WORDS_MAX);
        return brig_fail(err, BRIG_E_STATE, 0, "the zygote is gone%s%s", count > 0 ? ": " : "",
                         str_shown(words).text);
    }
    zygote->ready = message.type == ZYGOTE_READY;
    return 0;
}

void zygote_free(struct zygote *zygote)
{
    if (!zygote || zygote->shares-- > 0)
        return;
    close_fd(&zygote->socket); /* ends the zygote, and then its supervisor */
    struct pollfd ended = {.fd = zygote->process.pidfd, .events = POLLIN};
    if (zygote->process.pid > 0)
        (void)poll(&ended, 1, zygote->ready ? END_PATIENCE_MS : START_PATIENCE_MS);
    close_fd(&zygote->words);
    spawn_end(&zygote->process);
    brig_template_free(zygote->template);
    free(zygote);
}

/* ---- a job in a jail made by a zygote ---- */

/* Root's zygote does not run as root and may not clone into a cgroup: its children write themselves
 * into a file that brig opened. On v2 this write waits for a machine-wide lock, but no client waits
 * for it. If v1 has the limits, v2 only counts CPU time, and is skipped without a limit on that. */
static int enter_as_isolated_uid(struct brig_job *job, bool counted, int *ret_procs,
                                 struct brig_error *err)
{
    struct plan *plan = &job->plan;
    int group = plan->cgroup_fd;
    plan->cgroup_fd = *ret_procs = -1;
    if (group < 0 || (cgroup_kind(job->limits.group) != CGROUP_V2 && !counted))
        return 0;
    *ret_procs = cgroup_open_procs(job->limits.group);
    if (*ret_procs < 0 || plan->join_count == CGROUP_JOIN_MAX)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot open the jail's group");
    plan->join_fds[plan->join_count++] = *ret_procs;
    return 0;
}

static int order_jail(struct brig_job *job, struct zygote *zygote, uint32_t host_id,
                      const struct streams *streams, struct brig_error *err)
{
    int wires[2], gates[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, wires) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a socket pair");
    job->wire = fds_keep_high(wires[0]);
    autoclose int wire = wires[1];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, gates) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a socket pair");
    job->gate = fds_keep_high(gates[0]);
    autoclose int gate = gates[1];
    autoclose int procs = -1;
    job->started_us = clock_now_us();
    bool counted = zygote->template->policy->limits[BRIG_LIMIT_CPU_MS] != 0;
    int result = job->plan.become_joined ? enter_as_isolated_uid(job, counted, &procs, err) : 0;
    return result < 0 ? result : send_order(zygote, &job->plan, host_id, wire, gate, streams, err);
}

int zygote_start(struct zygote *zygote, uint32_t host_id, struct brig_job *job,
                 const struct streams *streams, struct brig_error *err)
{
    struct brig_template *template = zygote->template;
    for (int i = 0; i < 3; i++)
        if (streams->fds[i] < 0)
            return brig_fail(err, BRIG_E_INVALID, 0, "stdio %d must be an fd or bytes", i);
    int result = limits_init(&job->limits, template->policy, err);
    if (result < 0)
        return result;
    int network = template_plan(template, &job->plan);
    plan_use_limits(&job->plan, template->policy, &job->limits);
    job->denials.filter = job->plan.seccomp_told ? job->plan.seccomp : NULL;
    job->denials.all = true;
    job->own_peak_kb = 0; /* the child does not share the caller's memory */
    job->building = calloc(1, sizeof *job->building);
    result = job->building && job->plan.limits_missing == zygote->plan.limits_missing
                 ? order_jail(job, zygote, host_id, streams, err)
                 : brig_fail(err, BRIG_E_STATE, 0, "the zygote has other limits than the run");
    if (network >= 0) {
        (void)close(network);
        template_refill(template);
    }
    if (result < 0)
        return result;
    job->building->zygote = zygote;
    zygote->shares++;
    return plan_trim(&job->plan, err);
}

/* ---- messages while the jail is built ---- */

void job_building_free(struct job_building *building)
{
    zygote_free(building->zygote);
    free(building);
}

static int take_pid(struct brig_job *job, pid_t pid, int *pidfd, struct brig_error *err)
{
    if (job->pidfd >= 0)
        return 0;
    job->pidfd = fds_keep_high(take_fd(pidfd));
    job->pid = pid;
    struct epoll_event event = {.events = EPOLLIN, .data.fd = job->pidfd};
    if (job->pidfd < 0 || epoll_ctl(job->epoll, EPOLL_CTL_ADD, job->pidfd, &event) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot watch the job");
    return 0;
}

/* The steps are in the zygote's plan: the job's plan was trimmed. */
static void note_soft_failure(struct brig_job *job, const struct wire_message *message)
{
    struct plan told = job->building->zygote->plan;
    told.unenforced = job->plan.unenforced;
    plan_note_soft_failure(&told, message->a, message->b);
    job->plan.unenforced = told.unenforced;
}

/* Both messages have arrived: that init runs, and its pid. */
static void finish(struct brig_job *job)
{
    struct job_building *building = job->building;
    if (!building->started || job->pid <= 0)
        return;
    building->zygote->answered_us = clock_now_us();
    job_building_free(take_ptr(&job->building));
}

int job_build(struct brig_job *job, const struct wire_message *message, int fd,
              struct brig_error *err)
{
    autoclose int own = fd;
    struct job_building *building = job->building;
    int result = 0;
    switch (message->type) {
    case WIRE_FAILED:
        return plan_explain_failure(&building->zygote->plan, message->a, message->b, err);
    case WIRE_SOFT:
        note_soft_failure(job, message);
        break;
    case WIRE_PID:
        result = take_pid(job, message->a, &own, err);
        break;
    case WIRE_KEPT:
        job->kept = fds_keep_high(take_fd(&own));
        break;
    case WIRE_LATE:
        job->late = fds_keep_high(take_fd(&own));
        break;
    case WIRE_DENIALS:
        result = denials_listen(&job->denials, take_fd(&own), job->epoll, err);
        break;
    case WIRE_STARTED:
        building->started = true;
        break;
    default:
        break;
    }
    if (result == 0)
        finish(job);
    return result;
}

/* A zygote with many orders makes one jail after the other. */
const struct zygote *job_stuck_zygote(const struct brig_job *job, uint64_t patience_us)
{
    const struct zygote *zygote = job->building ? job->building->zygote : NULL;
    if (!zygote)
        return NULL;
    uint64_t since = zygote->answered_us > job->started_us ? zygote->answered_us : job->started_us;
    return clock_now_us() >= since + patience_us ? zygote : NULL;
}
