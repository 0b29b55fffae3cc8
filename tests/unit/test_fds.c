/* SPDX-License-Identifier: MIT */
/* Where fds are kept, and starts of a caller that has very many of them. */
#include "base/fds.h"
#include "jail/job/job.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <brig/brig.h>

#include "tap.h"

#define MANY 600
#define JOBS 20
#define JAIL_UID (1500000000 + (uid_t)getpid()) /* for root: of nobody */

static int open_null(void)
{
    return open("/dev/null", O_RDWR | O_CLOEXEC);
}

static void test_moving(void)
{
    tap_is_int(fds_keep_high(-1), -1, "what is no fd stays none");
    int low = open_null();
    tap_is_int(fds_keep_high(low), low, "of few fds none is moved");
    int crowded = fcntl(low, F_DUPFD_CLOEXEC, 100);
    int moved = fds_keep_high(crowded);
    tap_ok(moved >= FDS_HIGH, "of many, one is moved up");
    tap_ok(fcntl(crowded, F_GETFD) < 0, "and is no longer where it was");
    tap_is_int(fcntl(moved, F_GETFD), FD_CLOEXEC, "it is not for those we execute");
    tap_is_int(fds_keep_high(moved), moved, "what is high stays");
    (void)close(low);
    (void)close(moved);
}

static struct brig_job *start(const struct brig_policy *policy, int out, const char *script)
{
    const char *argv[] = {"/bin/sh", "-c", script, NULL};
    struct brig_pass_fd pass = {.fd = out, .number = 7};
    struct brig_command command = {.size = sizeof(struct brig_command),
                                   .argv = argv,
                                   .stdio = {{.kind = BRIG_STDIO_NULL},
                                             {.kind = BRIG_STDIO_FD, .fd = out},
                                             {.kind = BRIG_STDIO_CAPTURE}},
                                   .pass_fds = &pass,
                                   .pass_fd_count = 1};
    struct brig_job *job = NULL;
    struct brig_error err = {0};
    if (brig_start(policy, &command, &job, &err) < 0)
        tap_diag("%s", err.message);
    return job;
}

static bool ends_well(struct brig_job *job)
{
    struct brig_result result = {0};
    bool well = job && brig_job_wait(job, NULL) == 0 && job_take_result(job, &result, NULL) == 0 &&
                result.outcome == BRIG_EXITED && result.exit_code == 0;
    result_done(&result);
    brig_job_free(job);
    return well;
}

/* What the jail writes to `out` must come out of the other end. */
static void test_output(const struct brig_policy *policy, int out, int in, const char *name)
{
    char text[8] = "";
    bool well = ends_well(start(policy, out, "echo -n ab && echo -n cd >&7"));
    tap_ok(well && read(in, text, 4) == 4 && strcmp(text, "abcd") == 0, "%s", name);
}

/* Whatever numbers a start uses itself: the command gets all that it wants. */
static void test_all_numbers(const struct brig_policy *policy, int out, int in)
{
    struct brig_pass_fd pass[BRIG_PASS_FD_MAX];
    const char *argv[] = {"/bin/bash", "-c", "for ((n = 3; n < 35; n++)); do echo -n x >&$n; done",
                          NULL};
    struct brig_command command = {.size = sizeof(struct brig_command),
                                   .argv = argv,
                                   .pass_fds = pass,
                                   .pass_fd_count = BRIG_PASS_FD_MAX};
    for (int i = 0; i < BRIG_PASS_FD_MAX; i++)
        pass[i] = (struct brig_pass_fd){.fd = out, .number = 3 + i};
    struct brig_job *job = NULL;
    char text[BRIG_PASS_FD_MAX];
    bool well = brig_start(policy, &command, &job, NULL) == 0 && ends_well(job);
    tap_ok(well && read(in, text, sizeof text) == BRIG_PASS_FD_MAX,
           "fds can be passed under all the low numbers at once");
}

static void test_many(const struct brig_policy *policy)
{
    struct brig_job *jobs[JOBS];
    int ends[2], well = 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        tap_bail("pipe2: %s", strerror(errno));
    for (int i = 0; i < JOBS; i++)
        jobs[i] = start(policy, ends[0], "read -r line <&7; exit 0"); /* until the pipe ends */
    (void)close(ends[1]);
    for (int i = 0; i < JOBS; i++)
        well += ends_well(jobs[i]);
    (void)close(ends[0]);
    tap_is_int(well, JOBS, "jobs beside each other, whose fds are moved, end well");
}

int main(void)
{
    struct rlimit files = {.rlim_cur = 4096, .rlim_max = 4096};
    int ends[2], fds[MANY];
    if (setrlimit(RLIMIT_NOFILE, &files) < 0 || pipe2(ends, O_CLOEXEC) < 0)
        return 1;
    test_moving();
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);
    struct brig_identity identity = {.size = sizeof(struct brig_identity),
                                     .host_uid = JAIL_UID,
                                     .host_gid = JAIL_UID,
                                     .inside_uid = (uid_t)-1,
                                     .inside_gid = (gid_t)-1};
    if (!policy || (geteuid() == 0 && brig_policy_identity(policy, &identity, NULL) < 0) ||
        brig_policy_on_unsupported(policy, BRIG_UNSUPPORTED_IGNORE, NULL) < 0)
        return 1;
    test_output(policy, ends[1], ends[0], "low fds come along");
    test_all_numbers(policy, ends[1], ends[0]);
    test_many(policy);
    int high = fcntl(ends[1], F_DUPFD_CLOEXEC, 2000);
    test_output(policy, high, ends[0], "so does a high one, which is looked at");
    for (int i = 0; i < MANY; i++)
        fds[i] = open_null();
    test_output(policy, ends[1], ends[0], "and a start whose own fds have to be high works");
    for (int i = 0; i < MANY; i++)
        (void)close(fds[i]);
    brig_policy_free(policy);
    return tap_done();
}
