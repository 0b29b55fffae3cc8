/* SPDX-License-Identifier: MIT */
/* Entering a run: its record, who is believed, and how what was entered ends; the test itself is the
 * supervisor that is found. */
#include "jail/attach/attach.h"
#include "jail/job/job.h"

#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "job_support.h"

/* ---- The record --------------------------------------------------------------------------- */

static struct attach_record new_record(void)
{
    struct attach_record record = {.facts = {.init = 7,
                                             .host_uid = 1,
                                             .host_gid = 2,
                                             .owner = 3,
                                             .has_namespaces = 1,
                                             .landlock = {.handled_access_fs = 5},
                                             .landlock_size = 8},
                                   .jail = "work",
                                   .policy = brig_policy_new(BRIG_MODE_STRICT),
                                   .rules = calloc(2, sizeof *record.rules),
                                   .rule_count = 2};
    struct brig_policy *policy = record.policy;
    if (!policy || !record.rules || brig_policy_setenv(policy, "A", "", NULL) < 0 ||
        brig_policy_setenv(policy, "B", NULL, NULL) < 0 ||
        brig_policy_unsetenv(policy, "*_TOKEN", NULL) < 0 ||
        brig_policy_workdir(policy, "/work", NULL) < 0 ||
        str_copy("me", &policy->user_name, NULL) < 0)
        tap_bail("no memory for a record");
    policy->seccomp = BRIG_SECCOMP_CODE;
    policy->network = BRIG_NET_NONE;
    policy->limits[BRIG_LIMIT_OPEN_FILES] = 99;
    for (size_t i = 0; i < 2; i++)
        record.rules[i] =
            (struct attach_rule){.access = i + 1, .path = strdup(i ? "/usr/lib" : "/")};
    return record;
}

static void test_record(void)
{
    struct attach_record record = new_record(), read;
    autostr struct str bytes = {0};
    attach_record_write(&record, &bytes);
    if (attach_record_read(bytes.data, bytes.length, &read, NULL) < 0)
        tap_bail("a record cannot be read");
    const struct brig_policy *policy = read.policy;
    tap_is_int(read.facts.init, 7, "numbers of a record come back");
    tap_ok(memcmp(&read.facts, &record.facts, sizeof read.facts) == 0, "all of them");
    tap_is_str(read.jail, "work", "so does the name");
    tap_is_int(policy->mode, BRIG_MODE_STRICT, "and the policy's mode");
    tap_is_int(policy->seccomp, BRIG_SECCOMP_CODE, "its filter");
    tap_is_int((int)policy->limits[BRIG_LIMIT_OPEN_FILES], 99, "its limits");
    tap_is_str(policy->workdir, "/work", "its directory");
    tap_ok(policy->home == NULL && strcmp(policy->user_name, "me") == 0,
           "what it does not say is not said");
    tap_is_int((int)policy->env_count, 3, "its rules for variables");
    tap_ok(policy->env[0].kind == POLICY_ENV_SET && policy->env[1].kind == POLICY_ENV_EXPOSE &&
               policy->env[2].kind == POLICY_ENV_UNSET,
           "of each kind");
    tap_ok(read.rule_count == 2 && strcmp(read.rules[1].path, "/usr/lib") == 0 &&
               read.rules[1].access == 2,
           "and Landlock's");
    attach_record_done(&read);
    size_t refused = 0;
    for (size_t length = 0; length < bytes.length; length++)
        refused += attach_record_read(bytes.data, length, &read, NULL) == BRIG_E_INVALID;
    tap_is_int((int)refused, (int)bytes.length, "one that is cut off anywhere is refused");
    str_append_char(&bytes, 'x');
    tap_is_int(attach_record_read(bytes.data, bytes.length, &read, NULL), BRIG_E_INVALID,
               "so is one that goes on");
    attach_record_done(&record);
}

/* ---- Runs --------------------------------------------------------------------------------- */

static struct brig_policy *named_policy(const char *name)
{
    struct brig_policy *policy = new_policy();
    policy->jail_name = name;
    return policy;
}

/* A command in the run of this process; its result, or an error. */
static int enter_shell(const struct attach *entry, const char *script,
                       struct brig_result *ret_result)
{
    struct shell shell;
    struct brig_job *job = NULL;
    struct brig_error err = {0};
    shell_init(&shell, script);
    int code = job_start(&(struct job_source){.attach = entry}, &shell.command, &job, &err);
    if (code == 0)
        code = brig_job_wait(job, &err);
    if (code == 0)
        code = job_take_result(job, ret_result, &err);
    if (code < 0) {
        tap_diag("job_start: %s", err.message);
        *ret_result = (struct brig_result){.outcome = BRIG_SETUP_FAILED};
    }
    brig_job_free(job);
    return code;
}

static struct brig_job *start_shell(const struct brig_policy *policy, const char *script)
{
    struct shell shell;
    shell_init(&shell, script);
    struct brig_job *job = start(policy, &shell.command);
    if (!job)
        tap_bail("no run to enter");
    return job;
}

static void test_entering(void)
{
    struct brig_policy *policy = named_policy("work");
    struct brig_job *job = start_shell(policy, "echo mine >/tmp/file; exec sleep 1000");
    struct attach entry;
    struct brig_error err = {0};
    tap_is_int(attach_find(getpid(), &entry, &err), 0, "a run with a name is found by its process");
    tap_is_str(entry.record.jail, "work", "it has that name");
    struct brig_result result = {0};
    (void)enter_shell(&entry, "while ! cat /tmp/file 2>/dev/null; do :; done; exit 5", &result);
    is_exit(&result, 5, "a command in it");
    tap_is_str(result.out.data, "mine\n", "it sees what is there");
    result_done(&result);
    (void)enter_shell(&entry, "kill -9 $$", &result);
    tap_is_int(result.signal, SIGKILL, "one that a signal ends");
    result_done(&result);
    tap_is_int(brig_job_process(job, NULL), 0, "the run is not ended by that");
    (void)enter_shell(&entry, "(sleep 1000; :) & echo $!; exit 3", &result);
    is_exit(&result, 3, "one that leaves something behind");
    char script[64];
    (void)snprintf(script, sizeof script, "test -e /proc/%d",
                   result.out.data ? atoi(result.out.data) : 0);
    result_done(&result);
    (void)enter_shell(&entry, script, &result);
    is_exit(&result, 1, "what it left is gone");
    result_done(&result);
    brig_job_free(job);
    tap_ok(enter_shell(&entry, "true", &result) < 0, "when the run is over it cannot be entered");
    attach_done(&entry);
    tap_is_int(attach_find(getpid(), &entry, &err), BRIG_E_NOT_FOUND, "and is not found any more");
    brig_policy_free(policy);
}

static void test_names(void)
{
    struct attach entry;
    struct brig_policy *policy = new_policy();
    struct brig_job *job = start_shell(policy, "exec sleep 1000");
    tap_is_int(attach_find(getpid(), &entry, NULL), BRIG_E_NOT_FOUND,
               "a run without a name is not to be entered");
    brig_job_free(job);
    char name[ENTRY_NAME_MAX + 2];
    memset(name, 'x', sizeof name);
    name[ENTRY_NAME_MAX + 1] = 0;
    policy->jail_name = name;
    job = start_shell(policy, "exec sleep 1000");
    tap_is_int(attach_find(getpid(), &entry, NULL), BRIG_E_NOT_FOUND, "nor with too long a name");
    brig_job_free(job);
    name[ENTRY_NAME_MAX] = 0;
    job = start_shell(policy, "exec sleep 1000");
    tap_is_int(attach_find(getpid(), &entry, NULL), 0, "the longest name will do");
    attach_done(&entry);
    brig_job_free(job);
    brig_policy_free(policy);
}

/* The jail cannot end before all in it are reaped: a parent outside that is stopped, or does not
 * care, must not keep it. */
static void test_end_of_run(void)
{
    struct brig_policy *policy = named_policy("work");
    struct brig_job *job = start_shell(policy, "exec sleep 1000"), *entered = NULL;
    struct attach entry;
    struct shell shell;
    shell_init(&shell, "echo ready; exec sleep 1000");
    void (*before)(int) = signal(SIGCHLD, SIG_IGN);
    if (attach_find(getpid(), &entry, NULL) < 0 ||
        job_start(&(struct job_source){.attach = &entry}, &shell.command, &entered, NULL) < 0)
        tap_bail("the run cannot be entered");
    brig_job_free(job);
    tap_pass("a run ends while nobody waits for the command that entered it");
    struct brig_result result;
    tap_is_int(brig_job_wait(entered, NULL), 0, "and with it that");
    (void)job_take_result(entered, &result, NULL);
    tap_is_int(result.signal, SIGKILL, "by SIGKILL");
    result_done(&result);
    brig_job_free(entered);
    (void)signal(SIGCHLD, before);
    attach_done(&entry);
    brig_policy_free(policy);
}

static void test_cancelling(void)
{
    struct brig_policy *policy = named_policy("work");
    struct brig_job *job = start_shell(policy, "exec sleep 1000"), *entered = NULL;
    struct attach entry;
    struct shell shell;
    shell_init(&shell, "trap '' TERM; sleep 1000 & while :; do sleep 1000; done");
    if (attach_find(getpid(), &entry, NULL) < 0 ||
        job_start(&(struct job_source){.attach = &entry}, &shell.command, &entered, NULL) < 0)
        tap_bail("the run cannot be entered");
    brig_job_free(entered);
    struct brig_result result;
    (void)enter_shell(&entry, "echo /proc/[0-9]*/exe", &result);
    size_t count = 0; /* two inits, the run's sleep, this shell */
    for (const char *at = result.out.data; at && (at = strstr(at, "/exe")); at++)
        count++;
    tap_is_int((int)count, 4,
               "letting go of a command ends it with its children, and nothing else");
    result_done(&result);
    brig_job_free(job);
    attach_done(&entry);
    brig_policy_free(policy);
}

/* ---- Who is believed ---------------------------------------------------------------------- */

/* A process that claims to supervise a run; it says so by a byte, and ends with the pipe. */
static pid_t claim(const struct str *bytes, bool sealed, bool held, int *ret_pipe)
{
    int pair[2];
    char byte;
    if (pipe2(pair, O_CLOEXEC) < 0)
        tap_bail("no pipe");
    pid_t pid = fork();
    if (pid == 0) {
        int fd = (int)syscall(SYS_memfd_create, ENTRY_FILE, 2U | 1U /* sealing, cloexec */);
        if (write(fd, bytes->data, bytes->length) < 0 ||
            (sealed && fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) < 0) ||
            (held && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0))
            _exit(1);
        (void)!write(pair[1], "", 1);
        (void)close(pair[1]);
        for (;;)
            (void)pause();
    }
    (void)close(pair[1]);
    if (pid < 0 || read(pair[0], &byte, 1) != 1)
        tap_bail("no process to make a claim");
    *ret_pipe = pair[0];
    return pid;
}

static int look(const struct str *bytes, bool sealed, bool held)
{
    struct attach entry;
    autoclose int pipe = -1;
    pid_t pid = claim(bytes, sealed, held, &pipe);
    int code = attach_find(pid, &entry, NULL);
    if (code == 0)
        attach_done(&entry);
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    return code;
}

static void test_claims(void)
{
    struct attach_record record = new_record();
    autostr struct str bytes = {0}, other = {0};
    attach_record_write(&record, &bytes);
    attach_record_done(&record);
    bool held = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
    tap_is_int(look(&bytes, true, false), 0, "a process of ours that has a record is believed");
    tap_is_int(look(&bytes, false, false), BRIG_E_NOT_FOUND, "not if it could still be written to");
    if (!held)
        tap_is_int(look(&bytes, true, true), BRIG_E_NOT_FOUND,
                   "nor if it has no_new_privs, as all in jails have, and we have not");
    str_append(&other, "something else of that name");
    tap_is_int(look(&other, true, false), BRIG_E_INVALID, "nor with anything else in it");
    struct attach entry;
    tap_is_int(attach_find(INT32_MAX, &entry, NULL), BRIG_E_NOT_FOUND, "nor is nobody");
    if (getuid() != 0)
        tap_is_int(attach_find(1, &entry, NULL), BRIG_E_SYSTEM, "nor somebody else");
}

int main(void)
{
    test_record();
    test_claims();
    test_entering();
    test_names();
    test_end_of_run();
    test_cancelling();
    return tap_done();
}
