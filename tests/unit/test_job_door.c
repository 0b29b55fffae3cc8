/* SPDX-License-Identifier: MIT */
/* Jobs with a network door, from the caller's side: what is there in the jail, and what becomes of a
 * broker that is missing or ends. The real one is tested by tests/e2e/net.bats. */
#include <arpa/inet.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "job_support.h"
#include "net/broker_wire.h"

#define NO_BROKER "/bin/false"

static struct brig_policy *door_policy(enum brig_network network, const char *broker)
{
    struct brig_error err = {0};
    struct brig_policy *policy = new_policy();
    if (brig_policy_network(policy, network, &err) < 0 ||
        brig_policy_broker(policy, broker, &err) < 0)
        tap_bail("%s", err.message);
    return policy;
}

static void test_inside(void)
{
    struct brig_policy *policy = door_policy(BRIG_NET_ALLOW, NO_BROKER);
    struct brig_result result;
    int before = open_fds();
    tap_ok(run_shell(policy,
                     "grep -q 'nameserver 198.18.0.2' /etc/resolv.conf && "
                     "grep -q 198.18.0.1 /proc/net/fib_trie && "
                     /* 198.18.0.2:53 in hexadecimal, in the machine's order */
                     "grep -q ' 020012C6:0035 ' /proc/net/udp && "
                     "grep -q ' 020012C6:0035 ' /proc/net/tcp && "
                     "grep -q ' 010012C6:0001 ' /proc/net/tcp",
                     &result) == 0,
           "a jail with a door starts");
    is_exit(&result, 0, "and has its name server and the door in it");
    tap_is_int((long)result.notices.count, 0, "without a connection nobody misses the broker");
    result_done(&result);
    tap_is_int(open_fds(), before, "and no descriptor is left");
    brig_policy_free(policy);
}

static void test_missing(void)
{
    struct brig_policy *policy = door_policy(BRIG_NET_OPEN, "/no/such/broker");
    struct brig_result result;
    tap_is_int(run_shell(policy, "true", &result), BRIG_E_SETUP, "without a broker nothing starts");
    tap_has_str(result.error.message, "'/no/such/broker'", "and it is named");
    tap_has_str(result.error.message, "BRIG_NET_NONE", "with the remedy");
    result_done(&result);
    brig_policy_free(policy);
}

/* Asks the name server until it is refused. */
#define QUERY                                                                                      \
    "exec 3<>/dev/udp/198.18.0.2/53; echo x >&3; "                                                 \
    "for ((i = 0; i < 600; i++)); do echo x >&3 2>/dev/null || exit 3; sleep 0.1; done; exit 4"

static void test_ends(void)
{
    struct brig_policy *policy = door_policy(BRIG_NET_OPEN, NO_BROKER);
    const char *const argv[] = {"/bin/bash", "-c", QUERY, NULL};
    struct brig_command command = {.size = sizeof(struct brig_command), .argv = argv};
    struct brig_result result;
    int before = open_fds();
    tap_ok(run(policy, &command, &result) == 0, "a broker that ends at once");
    is_exit(&result, 3, "leaves the jail without a network, which it learns at once");
    tap_is_int((long)result.notices.count, 1, "and the result says so");
    tap_has_str(result.notices.text[0], "the jail has no network", "in words");
    result_done(&result);
    tap_is_int(open_fds(), before, "no descriptor is left");
    tap_ok(waitpid(-1, NULL, WNOHANG) < 0, "nor a process");
    (void)signal(SIGCHLD, SIG_IGN);
    tap_ok(run(policy, &command, &result) == 0,
           "the same for who does not want to hear of children");
    is_exit(&result, 3, "ends the same");
    result_done(&result);
    (void)signal(SIGCHLD, SIG_DFL);
    brig_policy_free(policy);
}

#define FAILURE "this broker cannot work"

static bool is_stopped(pid_t pid)
{
    char path[32], state = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool read = fscanf(file, "%*d (%*[^)]) %c", &state) == 1;
    (void)fclose(file);
    return read && state == 'T';
}

/* As a broker: fails with a message and reads none of the job's. The job is stopped meanwhile, so that
 * it hears of the message and of the end together. */
static int fail_as_broker(void)
{
    const struct door_failure failure = {
        .head = {.version = DOOR_WIRE_VERSION, .type = DOOR_FAILED}, .message = FAILURE};
    pid_t job = getppid(), own = getpid();
    (void)kill(job, SIGSTOP);
    if (fork() == 0) {
        (void)close(DOOR_CONTROL_FD);
        (void)await(getppid() != own);
        (void)kill(job, SIGCONT);
        return 0;
    }
    (void)await(is_stopped(job));
    return send(DOOR_CONTROL_FD, &failure, sizeof failure, 0) < 0 ? 2 : 1;
}

/* Its job. Gives the notice to `report`, and 0 if there is one and the jail learned that it has no network. */
static int run_failing(int report)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    struct brig_policy *policy = door_policy(BRIG_NET_OPEN, path);
    const char *const argv[] = {"/bin/bash", "-c", QUERY, NULL};
    struct brig_command command = {.size = sizeof(struct brig_command), .argv = argv};
    struct brig_result result;
    bool good = run(policy, &command, &result) == 0 && result.exit_code == 3 &&
                result.notices.count == 1 &&
                write(report, result.notices.text[0], strlen(result.notices.text[0])) > 0;
    result_done(&result);
    brig_policy_free(policy);
    return good ? 0 : 1;
}

/* In a process of its own: a shell that started this one would say that it was stopped. */
static void test_fails(void)
{
    char text[512] = "";
    int ends[2], status = -1;
    if (pipe2(ends, O_CLOEXEC) < 0)
        tap_bail("no pipe");
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        _exit(run_failing(ends[1]));
    (void)close(ends[1]);
    (void)!read(ends[0], text, sizeof text - 1);
    (void)close(ends[0]);
    (void)waitpid(pid, &status, 0);
    tap_is_int(status, 0, "a broker that fails leaves the jail without a network, and a notice");
    tap_has_str(text, FAILURE, "with the broker's own words");
}

static void test_template(void)
{
    struct brig_error err = {0};
    struct brig_policy *policy = door_policy(BRIG_NET_ALLOW, NO_BROKER);
    struct brig_template *template = NULL;
    struct shell shell;
    shell_init(&shell, "grep -q ' 020012C6:0035 ' /proc/net/udp && "
                       "grep -q 'nameserver 198.18.0.2' /etc/resolv.conf");
    tap_is_int(brig_template_new(policy, &template, &err), 0, "a template with a door");
    for (int i = 0; i < 2; i++) {
        struct brig_job *job = NULL;
        struct brig_result result;
        tap_is_int(brig_template_start(template, &shell.command, &job, &err), 0, "a run of it");
        (void)finish(job, &result);
        is_exit(&result, 0, "has a door of its own");
        result_done(&result);
    }
    brig_template_free(template);
    brig_policy_free(policy);
}

static void test_published(void)
{
    struct brig_error err = {0};
    struct brig_policy *policy = door_policy(BRIG_NET_ALLOW, NO_BROKER);
    struct brig_result result;
    int taken = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof name;
    char text[32];
    if (bind(taken, (void *)&name, sizeof name) < 0 || listen(taken, 1) < 0 ||
        getsockname(taken, (void *)&name, &length) < 0)
        tap_bail("no port to take");
    (void)snprintf(text, sizeof text, "%u:80", ntohs(name.sin_port));
    (void)brig_policy_publish(policy, text, &err);
    tap_is_int(run_shell(policy, "true", &result), BRIG_E_SETUP,
               "a port that is in use is refused");
    tap_has_str(result.error.message, "cannot publish on port", "by its number");
    result_done(&result);
    (void)close(taken);
    tap_is_int(run_shell(policy, "true", &result), 0, "and taken when it is free");
    result_done(&result);
    brig_policy_free(policy);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], DOOR_ROLE_BROKER) == 0)
        return fail_as_broker();
    test_inside();
    test_missing();
    test_ends();
    test_fails();
    test_template();
    test_published();
    return tap_done();
}
