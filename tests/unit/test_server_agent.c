/* SPDX-License-Identifier: MIT */
/* Agents: a program called claude in a root directory of its own, with a work_dir, a credential and the
 * network door; and a service on loopback in the place of its API. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include "executor_support.h"
#include "policy/policy.h"
#include "server/executor/credential.h"
#include "server/executor/jail.h"

#define SECRET "sk-very-secret-0815"

static struct rig rig;
static struct runtime *claude;
static char top[] = "/tmp/brig-agent-XXXXXX";
static char root[64], work[64], upstream[64];

/* A tree with the programs the script below needs and their libraries, as `ldd` names them. */
static const char make_tree[] =
    "set -e; umask 022; chmod 755 \"$1\"; r=$1/root; w=$1/work\n"
    "mkdir -p $r/usr/bin $r/bin $r/etc $r/tmp $r/proc $r/dev $r/run $r/workspace $r/output "
    "$r/home/agent $w/.git\n"
    "for p in bash cat rm ls id env stat head grep; do cp \"$(command -v $p)\" $r/usr/bin/; done\n"
    "cp $r/usr/bin/bash $r/bin/sh\n"
    "for p in $r/usr/bin/*; do ldd $p | grep -o '/[^ ]*' | while read -r l; do\n"
    "  mkdir -p $r/${l%/*}; cp -L $l $r/$l; done; done\n"
    "echo pinned > $r/etc/version; echo 'work here' > $w/task\n"
    "cat > $r/usr/bin/claude && chmod 755 $r/usr/bin/claude\n"
    "[ -z \"$2\" ] || chown -R \"$2\" $w\n";

/* What it is told on its standard input, it does. */
static const char fake_claude[] =
    "#!/usr/bin/bash\n[ \"$*\" = '-p --dangerously-skip-permissions' ] || "
    "exit 9\nread -r prompt\neval \"$prompt\"\n";

static void make_root(void)
{
    int ends[2];
    if (!mkdtemp(top) || pipe2(ends, O_CLOEXEC) < 0)
        tap_bail("no directory");
    pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(ends[0], 0);
        (void)execl("/bin/bash", "bash", "-c", make_tree, "make", top,
                    geteuid() == 0 ? "1000:1000" : "", (char *)NULL);
        _exit(127);
    }
    (void)close(ends[0]);
    (void)!write(ends[1], fake_claude, strlen(fake_claude));
    (void)close(ends[1]);
    int status = 1;
    if (waitpid(pid, &status, 0) != pid || status != 0)
        tap_bail("the tree cannot be made");
    (void)snprintf(root, sizeof root, "%s/root", top);
    (void)snprintf(work, sizeof work, "%s/work", top);
}

static void remove_root(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)execlp("rm", "rm", "-rf", "--", top, (char *)NULL);
        _exit(127);
    }
    (void)waitpid(pid, NULL, 0);
}

/* ---- the API's place ---- */

/* Answers each request with its own head. */
static void serve(int listener)
{
    for (;;) {
        char head[8192], answer[9000];
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        size_t length = 0;
        for (ssize_t got = 1; got > 0 && length < sizeof head - 1; length += (size_t)got) {
            head[length] = '\0';
            if (strstr(head, "\r\n\r\n"))
                break;
            if ((got = read(fd, head + length, sizeof head - 1 - length)) < 0)
                break;
        }
        int size = snprintf(answer, sizeof answer,
                            "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
                            length, head);
        (void)!write(fd, answer, (size_t)size);
        (void)close(fd);
    }
}

static pid_t start_upstream(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    autoclose int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) < 0 || listen(fd, 8) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) < 0)
        tap_bail("no socket");
    (void)snprintf(upstream, sizeof upstream, "http://127.0.0.1:%u", ntohs(address.sin_port));
    pid_t pid = fork();
    if (pid == 0)
        serve(fd);
    return pid;
}

/* ---- tests ---- */

static const struct execution_result *prompt(const char *text, const char *work_dir)
{
    struct execution_request request = request_for("claude", text);
    request.work_dir = work_dir;
    return &execute(&rig, &request)->result;
}

static void test_inside(void)
{
    is_output(prompt("id -u; pwd; echo $HOME; cat /etc/version; ls -A ~; ls /workspace", NULL),
              "1000\n/workspace\n/home/agent\npinned\n", "an agent has a root of its own");
    is_output(prompt("echo x > ~/x; cat ~/x; echo y > y; cat y", NULL), "x\ny\n",
              "it can write to its home and its workspace");
    is_output(prompt("ls ~; (echo x > /etc/x) 2>/dev/null || echo refused", NULL), "refused\n",
              "the next one finds nothing there, and its root is read-only");
    struct execution_request request = request_for("claude", "true");
    request.stdin_bytes = (struct execution_bytes){"x", 1};
    tap_has_str(execute(&rig, &request)->result.message, "reads the code there",
                "its input is its prompt");
}

#define KEY_ZEROS "000000000000000000000000000000000000000000000000"
#define KEY_BELOW "aaaaaaaaaaaaaaaa"
#define KEY_ABOVE "bbbbbbbbbbbbbbbb"

/* One key has the work_dir and nothing beside it, another has another directory. */
static void give_keys_roots(void)
{
    static struct config_list below, elsewhere;
    below = (struct config_list){.items = {work}, .count = 1};
    elsewhere = (struct config_list){.items = {"/srv"}, .count = 1};
    rig.config.security.allowed_keys = (struct config_list){
        .items = {"sha256:" KEY_BELOW KEY_ZEROS, "sha256:" KEY_ABOVE KEY_ZEROS}, .count = 2};
    rig.config.security.keys[0].roots = &below;
    rig.config.security.keys[1].roots = &elsewhere;
}

static const struct execution_result *prompt_of(const char *domain, const char *work_dir)
{
    struct execution_request request = request_for("claude", "cat task");
    request.work_dir = work_dir;
    request.domain = domain;
    return &execute(&rig, &request)->result;
}

static void test_key_roots(void)
{
    is_output(prompt_of(KEY_BELOW, work), "work here\n", "a key has the work_dir that it may name");
    is_status(prompt_of(KEY_BELOW, top), EXECUTION_SETUP_FAILED, "and not the directory above");
    is_output(prompt_of("", work), "work here\n", "without a key the roots of all hold");
    const struct execution_result *result = prompt_of(KEY_ABOVE, work);
    is_status(result, EXECUTION_SETUP_FAILED, "a key with other roots has not");
    tap_has_str(result->message, "workdir_roots", "with the setting that decides");
}

static void test_workdir(void)
{
    is_output(prompt("cat task; echo done > result", work), "work here\n", "a work_dir is there");
    char path[128], text[16] = "";
    (void)snprintf(path, sizeof path, "%s/result", work);
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info, top_info;
    (void)!read(fd, text, sizeof text - 1);
    tap_is_str(text, "done\n", "what is written there stays");
    tap_ok(fd >= 0 && fstat(fd, &info) == 0 && stat(work, &top_info) == 0 &&
               info.st_uid == top_info.st_uid,
           "and belongs to the directory's owner");
    const struct execution_result *result = prompt("true", "/etc");
    is_status(result, EXECUTION_SETUP_FAILED, "another directory is refused");
    tap_has_str(result->message, "allowed_workdir_roots", "with the setting that decides");
    (void)snprintf(path, sizeof path, "%s/link", work);
    (void)!symlink("/etc", path);
    is_status(prompt("ls", path), EXECUTION_SETUP_FAILED, "a link does not lead there");
    (void)unlink(path);
    /* Not every architecture has a /lib64. */
    bool lib64 = access("/lib64", F_OK) == 0;
    is_output(prompt("ls ..", work),
              lib64 ? "bin\ndev\netc\nhome\nlib\nlib64\noutput\nproc\nrun\ntmp\nusr\nworkspace\n"
                    : "bin\ndev\netc\nhome\nlib\noutput\nproc\nrun\ntmp\nusr\nworkspace\n",
              "above it is the jail's root");
}

static void test_secret_file(void)
{
    is_output(prompt("echo $ANTHROPIC_API_KEY; ls /run/secrets", NULL), SECRET "\n",
              "the agent has its key, and the file is gone");
    is_output(prompt("grep -c KEY /proc/1/environ /proc/$PPID/environ 2>/dev/null; grep -l "
                     "-r " SECRET " /run /tmp /home /workspace 2>/dev/null; echo -",
                     NULL),
              "-\n", "nothing else in the jail has it");
    const struct execution_result *result =
        run_code(&rig, "bash", "env; ls /run/secrets 2>/dev/null || true");
    tap_ok(result->status == EXECUTION_OK && !strstr(result->output.data, SECRET) &&
               !strstr(result->output.data, "auth_token"),
           "code that is no agent has neither");
}

static void test_door(void)
{
    const struct execution_result *result =
        prompt("exec 3<>/dev/tcp/evil.example/443 || echo refused", NULL);
    is_output(result, "refused\n", "an agent reaches its API alone");
    bool told = false;
    for (size_t i = 0; i < result->event_count; i++)
        told = told || (strcmp(result->events[i].type, "network_denied") == 0 &&
                        strstr(result->events[i].detail, "evil.example"));
    tap_ok(told, "and what it tried is an event");
    struct execution_request request = request_for("claude", "true");
    const char *allow[] = {"evil.example"};
    request.network = true;
    request.allow = allow;
    request.allow_count = 1;
    tap_has_str(execute(&rig, &request)->result.message, "only its own destinations",
                "a request cannot add to it");
    request = request_for("bash", "getent hosts evil.example || echo unknown; "
                                  "getent hosts good.example >/dev/null && echo known");
    const char *good[] = {"good.example"};
    request.network = true;
    request.allow = good;
    request.allow_count = 1;
    is_output(&execute(&rig, &request)->result, "unknown\nknown\n",
              "code with a list knows what is on it");
}

/* The network of the jail that a request for the whole network gets; -1 if it is refused. */
static int network_for(bool permitted, bool asked)
{
    const struct credential none = {0};
    const struct jail_ground ground = {.config = &rig.config, .credential = &none};
    struct execution_request request = request_for("claude", "true");
    struct brig_error err = {0};
    const char *field = NULL;
    struct jail jail = {.work_fd = -1};
    bool before = rig.config.sandbox.allow_network;
    rig.config.sandbox.allow_network = permitted;
    request.network = asked;
    int network = -1;
    if (executor_jail_check(&ground, claude, &request, &field, &err) == 0 &&
        executor_jail_make(&ground, claude, &request, JAIL_ONE, geteuid() == 0 ? 1000 : (uid_t)-1,
                           &jail, &err) == 0)
        network = (int)jail.policy->network;
    executor_jail_done(&jail);
    rig.config.sandbox.allow_network = before;
    return network;
}

static void test_whole_network(void)
{
    tap_is_int(network_for(false, true), -1, "an agent cannot ask for the whole network");
    tap_is_int(network_for(false, false), BRIG_NET_ALLOW, "without asking it has its own");
    tap_is_int(network_for(true, true), BRIG_NET_OPEN, "where it is permitted it gets all of it");
    tap_is_int(network_for(true, false), BRIG_NET_ALLOW, "if it asks");
}

static const char ask[] =
    "u=${ANTHROPIC_BASE_URL#http://}; exec 3<>/dev/tcp/${u%:*}/${u#*:} && printf 'POST "
    "/v1/messages "
    "HTTP/1.1\\r\\nHost: x\\r\\nx-api-key: mine\\r\\nContent-Length: 0\\r\\nConnection: "
    "close\\r\\n\\r\\n' >&3 && cat <&3; env; ls /run/secrets 2>/dev/null";

enum kind { KEY, TOKEN };

static void test_injected(enum kind kind)
{
    const struct execution_result *result = prompt(ask, NULL);
    const char *head = strstr(result->output.data, "\r\n\r\n");
    const char *end = head ? strstr(head, "ANTHROPIC_BASE_URL") : NULL;
    if (!tap_ok(head && end, "the door leads to the API"))
        show(result);
    if (!head || !end)
        return;
    tap_has_str(head, kind == KEY ? "x-api-key: " SECRET : "authorization: Bearer " SECRET,
                "which is asked with the credential");
    tap_ok(!strstr(head, "x-api-key: mine"), "and not with one the agent brings");
    tap_has_str(end, "ANTHROPIC_BASE_URL=http://127.18.0.1:8090\n", "at the port that was set");
    const char *last = strstr(end, SECRET);
    tap_ok(!last, "which is nowhere in the jail");
    tap_ok(!strstr(end, "auth_token"), "neither as a file");
}

static void restart(void)
{
    if (rig.supervisor)
        tap_is_int(rig_drain(&rig), 0, "an executor ends");
    rig_start(&rig);
}

int main(void)
{
    make_root();
    pid_t server = start_upstream();
    rig_config(&rig);
    for (size_t i = 0; i < rig.config.runtime_count; i++)
        if (strcmp(rig.config.runtimes[i].name, "claude") == 0)
            claude = &rig.config.runtimes[i];
    claude->root = root;
    rig.config.sandbox.allowed_workdir_roots = (struct config_list){.items = {top}, .count = 1};
    (void)setenv("ANTHROPIC_API_KEY", SECRET, 1);
    give_keys_roots();
    restart();
    test_inside();
    test_workdir();
    test_key_roots();
    test_secret_file();
    test_door();
    test_whole_network();
    rig.config.auth_proxy.port = 8090;
    rig.config.auth_proxy.upstream = upstream;
    restart();
    test_injected(KEY);
    (void)unsetenv("ANTHROPIC_API_KEY");
    (void)setenv("CLAUDE_CODE_OAUTH_TOKEN", SECRET, 1);
    restart();
    test_injected(TOKEN);
    tap_is_int(rig_drain(&rig), 0, "and it ends well");
    (void)kill(server, SIGKILL);
    (void)waitpid(server, NULL, 0);
    rig_done(&rig);
    remove_root();
    return tap_done();
}
