/* SPDX-License-Identifier: MIT */
/* The executor with code that means harm, in each language, and what is left when it is killed. */
#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "executor_support.h"
#include "jail/cgroup/cgroup.h"
#include "jail/cgroup/cgroup_driver.h"
#include "server/journal.h"

static struct rig rig;
static char marker[32]; /* how long a process sleeps: nobody else sleeps as long */

/* ---- what the host has ---- */

/* How many processes of the machine have this among their arguments. */
static int count_processes(void)
{
    int count = 0;
    autodir DIR *proc = opendir("/proc");
    for (const struct dirent *entry; proc && (entry = readdir(proc));) {
        char path[300], text[4096];
        (void)snprintf(path, sizeof path, "/proc/%s/cmdline", entry->d_name);
        autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text);
        if (length > 0 && memmem(text, (size_t)length, marker, strlen(marker)) &&
            atol(entry->d_name) != getpid()) /* NOLINT(cert-err34-c) */
            count++;
    }
    return count;
}

/* Code with MARK replaced by the marker. */
static const char *mark(const char *code)
{
    static char text[1024];
    const char *at = strstr(code, "MARK");
    if (!at)
        return code;
    (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - code), code, marker, at + 4);
    return text;
}

static int listen_on_loopback(unsigned *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) < 0 || listen(fd, 8) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) < 0)
        tap_bail("no socket: %s", strerror(errno));
    *ret_port = ntohs(address.sin_port);
    return fd;
}

/* ---- ways out ---- */

/* Each prints what it could do; what it should be able to is among it, as the twin. */
static const struct {
    const char *language, *code, *output, *name;
} ways_out[] = {
    {"python",
     "import os\n"
     "def able(f, *a):\n"
     "    try: f(*a)\n"
     "    except OSError: return False\n"
     "    return True\n"
     "print([n for n in ('/etc/passwd', '/etc/shadow', '/root/.bashrc', '/var/run/docker.sock',\n"
     "    '/proc/1/environ', '/proc/1/mem', '/proc/kcore', '/sys/kernel', '/dev/mem', "
     "'/dev/kmsg')\n"
     "    if able(open, n, 'rb')])",
     "['/etc/passwd']\n", "python reads nothing of the host's but what it needs"},
    {"python",
     "import ctypes, os\n"
     "c = ctypes.CDLL(None, use_errno=True)\n"
     "def calls(): return {\n"
     "    'mount': c.mount(b'none', b'/tmp', b'tmpfs', 0, None), 'unshare': "
     "c.unshare(0x10000000),\n"
     "    'chroot': c.chroot(b'/tmp'), 'setuid': c.setuid(0), 'ptrace': c.ptrace(16, 1, 0, 0),\n"
     "    'setns': c.setns(0, 0), 'kill': c.kill(1, 0), 'getpid': c.getpid() and 0,\n"
     "    'keyctl': c.syscall(250, 0, 0, 0, 0), 'bpf': c.syscall(321, 0, 0, 0),\n"
     "    'init_module': c.syscall(175, 0, 0, 0), 'reboot': c.reboot(0x4321fedc)}\n"
     "print([k for k, v in calls().items() if v == 0])",
     "['getpid']\n", "python's system calls lead nowhere"},
    {"python",
     "import os\n"
     "print(sorted(int(p) for p in os.listdir('/proc') if p.isdigit()) == [1, os.getpid()])",
     "True\n", "python sees no other process"},
    {"python",
     "import os, signal\n"
     "try: os.kill(-1, signal.SIGKILL)\n"
     "except OSError: pass\n"
     "print('alive')",
     "alive\n", "python has nobody to kill"},
    {"node",
     "const fs = require('fs');\n"
     "console.log(['/etc/passwd', '/etc/shadow', '/proc/1/environ', '/root'].filter((n) => {\n"
     "  try { fs.readdirSync('/'); fs.openSync(n, 'r'); return true; } catch { return false; }}))",
     "[ '/etc/passwd' ]\n", "node reads nothing of the host's but what it needs"},
    {"node",
     "const { execSync } = require('child_process');\n"
     "const able = (c) => { try { execSync(c, { stdio: 'ignore' }); return true; } catch { return "
     "false; }};\n"
     "console.log(['true', 'mount -t tmpfs x /tmp', 'unshare -U true', 'su -c true', 'kill -9 1',\n"
     "  'mknod /tmp/x b 8 0', 'cat /proc/1/environ', 'chmod u+s /tmp'].filter(able))",
     "[ 'true' ]\n", "node starts programs, but none that helps"},
    {"bash",
     "for c in 'true' 'cat /etc/shadow' 'unshare -r true' 'mount -t proc x /tmp' 'ls /root' "
     "'nsenter -t 1 -m true' 'mknod /tmp/x c 1 3' 'echo x > /proc/sys/kernel/core_pattern' "
     "'echo 1 > /proc/sysrq-trigger' 'cat /proc/1/root/etc/passwd'; do\n"
     "  sh -c \"$c\" >/dev/null 2>&1 && echo \"$c\"; done; true",
     "true\n", "a shell's commands lead nowhere"},
    {"bash",
     "cd /; for d in . .. ../.. /proc/self/root /proc/self/cwd/..; do ls -d $d/workspace; done "
     ">/dev/null && ls / | grep -c -e home -e workspace",
     "2\n", "there is no way up"},
    {"perl",
     "print join ',', grep { open my $f, '<', $_ } '/etc/passwd', '/etc/shadow', '/root', "
     "'/proc/1/environ'",
     "/etc/passwd", "perl reads nothing of the host's but what it needs"},
    {"ruby",
     "p(%w[/etc/passwd /etc/shadow /root /proc/1/environ].select { |n| File.readable?(n) })",
     "[\"/etc/passwd\"]\n", "nor does ruby"},
};

static void test_ways_out(void)
{
    for (size_t i = 0; i < ARRAY_LENGTH(ways_out); i++) {
        const struct execution_result *result =
            run_code(&rig, ways_out[i].language, ways_out[i].code);
        is_output(result, ways_out[i].output, ways_out[i].name);
    }
}

static void test_network(void)
{
    static const struct {
        const char *language, *code;
    } tries[] = {
        {"python", "import socket\n"
                   "try: socket.create_connection(('127.0.0.1', %u), 2); print('in')\n"
                   "except OSError: print('refused')"},
        {"node", "const s = require('net').connect(%u, '127.0.0.1');\n"
                 "s.on('connect', () => { console.log('in'); process.exit(); });\n"
                 "s.on('error', () => console.log('refused'));"},
        {"ruby", "require 'socket'\n"
                 "begin; TCPSocket.new('127.0.0.1', %u); puts 'in'; rescue SystemCallError; "
                 "puts 'refused'; end"},
        {"perl", "use IO::Socket::INET; print IO::Socket::INET->new(PeerAddr => '127.0.0.1', "
                 "PeerPort => %u) ? \"in\\n\" : \"refused\\n\""},
    };
    unsigned port;
    autoclose int listener = listen_on_loopback(&port);
    char code[1024];
    for (size_t i = 0; i < ARRAY_LENGTH(tries); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        (void)snprintf(code, sizeof code, tries[i].code, port);
#pragma GCC diagnostic pop
        is_output(run_code(&rig, tries[i].language, code), "refused\n", tries[i].language);
    }
    struct pollfd waiting = {.fd = listener, .events = POLLIN};
    tap_is_int(poll(&waiting, 1, 0), 0, "nobody has come to a service of the host");
    autoclose int twin = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    tap_is_int(connect(twin, (struct sockaddr *)&address, sizeof address), 0,
               "though one outside can");
}

/* ---- taking too much ---- */

static void test_bombs(void)
{
    static const struct {
        const char *language, *code;
    } bombs[] = {
        {"bash", "b() { b | b & }; b; sleep 60"},
        {"python", "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"},
        {"node", "const { spawn } = require('child_process');\n"
                 "setInterval(() => { for (let i = 0; i < 20; i++) spawn('sleep', ['60'])\n"
                 "  .on('error', () => {}); }, 1);"},
        {"perl", "while (1) { fork }"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(bombs); i++) {
        struct execution_request request = request_for(bombs[i].language, bombs[i].code);
        request.timeout_ms = 1500;
        const struct execution_result *result = &execute(&rig, &request)->result;
        tap_ok(result->status == EXECUTION_TIMEOUT || result->status == EXECUTION_ERROR ||
                   result->status == EXECUTION_OOM,
               "a fork bomb in %s is ended", bombs[i].language);
        tap_ok(result->pids_used <= 50, "and had no more than its %llu processes",
               (unsigned long long)result->pids_used);
    }
    is_output(run_code(&rig, "bash", "echo still here"), "still here\n", "and others are served");
}

static void test_memory(void)
{
    static const struct {
        const char *language, *code;
    } eaters[] = {
        {"python", "x = []\nwhile True: x.append(bytearray(8 << 20))"},
        {"node", "const x = []; for (;;) x.push(Buffer.alloc(8 << 20, 1));"},
        {"perl", "my @x; push @x, 'x' x (8 << 20) while 1"},
        {"ruby", "x = []; x << 'x' * (8 << 20) while true"},
        {"bash", "head -c 100000000 /dev/zero > /tmp/x; tail /dev/zero"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(eaters); i++) {
        struct execution_request request = request_for(eaters[i].language, eaters[i].code);
        request.limits[EXECUTION_MEMORY_MB] = 128;
        const struct execution_result *result = &execute(&rig, &request)->result;
        bool bounded = true; /* for all processes together; else each has a limit of its own */
        for (size_t k = 0; k < result->unenforced_count; k++)
            bounded = bounded && !strstr(result->unenforced[k], "memory");
        if (bounded)
            is_status(result, EXECUTION_OOM, "who takes too much memory is ended for it");
        else
            tap_ok(result->status == EXECUTION_ERROR || result->status == EXECUTION_OOM,
                   "who takes too much memory fails, and the result says how it was bounded");
    }
}

/* ---- not ending ---- */

static void test_endings(void)
{
    static const struct {
        const char *language, *code, *name;
    } rows[] = {
        {"python",
         /* The pipe ends when the daemon has begun. */
         "import os\n"
         "os.closerange(0, 1024)\n"
         "r, w = os.pipe()\n"
         "if os.fork() == 0:\n"
         "    os.setsid()\n"
         "    if os.fork() == 0: os.execvp('sleep', ['sleep', 'MARK'])\n"
         "    os._exit(0)\n"
         "os.close(w)\n"
         "os.read(r, 1)",
         "a daemon of python ends with its run"},
        {"bash",
         "exec 0<&- 1>&- 2>&-\n"
         "setsid sh -c 'trap \"\" TERM HUP INT; exec sleep MARK' &\n"
         "until read -r name < /proc/$!/comm && [ \"$name\" = sleep ]; do :; done",
         "so does a shell's"},
        {"node",
         "const { spawn } = require('child_process');\n"
         "spawn('sleep', ['MARK'], { detached: true, stdio: 'ignore' }).unref();",
         "and one of node"},
        {"perl",
         "use POSIX; pipe(my $r, my $w);\n"
         "if (!fork) { POSIX::setsid(); close STDOUT; exec 'sleep', 'MARK' }\n"
         "close $w; sysread $r, my $byte, 1",
         "and one of perl"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        is_status(run_code(&rig, rows[i].language, mark(rows[i].code)), EXECUTION_OK, rows[i].name);
        tap_ok(await(count_processes() == 0), "and nothing of it is left");
    }
    struct execution_request request =
        request_for("bash", "trap '' TERM INT HUP; kill -STOP $$; sleep 60");
    request.timeout_ms = 800;
    is_status(&execute(&rig, &request)->result, EXECUTION_TIMEOUT,
              "who stops himself and hears nothing is ended in time");
}

/* What a run returns is read after it: names that are no text, deep trees, many files. */
static void test_returned(void)
{
    struct execution_request request = request_for(
        "python", "import os\nos.chdir('/output')\n"
                  "open(b'\\xff\\n\\x01', 'w').write('x')\nos.mkdir('d')\nos.mkfifo('d/fifo')\n"
                  "os.symlink('/proc/1/environ', 'd/link')\nos.symlink('/', 'd/root')\n"
                  "open('hidden', 'w').write('x'); os.chmod('hidden', 0)\n"
                  "for i in range(300): open('n%03d' % i, 'w').write('x')\n"
                  "p = b'deep'\nfor i in range(60):\n    os.mkdir(p); os.chdir(p)\n");
    const char *returns[] = {"**"};
    request.returns = returns;
    request.return_count = 1;
    const struct execution_result *result = &execute(&rig, &request)->result;
    is_status(result, EXECUTION_OK, "whatever is there can be looked at");
    /* The executor spends 50 ms of CPU time on this: an emulated machine may find fewer files. */
    if (await_slowness() == 1)
        tap_is_int((long)result->file_count, EXECUTION_RETURNED_FILES_MAX, "as many as may be");
    else
        tap_ok(result->file_count <= EXECUTION_RETURNED_FILES_MAX, "no more than may be");
    tap_has_str(result->message, "Not all files", "and that there was more is said");
    for (size_t i = 0; i < result->file_count; i++)
        if (strstr(result->files[i].name, "link") || strstr(result->files[i].name, "fifo"))
            tap_fail("no link and no pipe: %s", result->files[i].name);
    request =
        request_for("bash", "head -c 9000000 /dev/zero > /output/big; echo x > /output/small");
    request.returns = returns;
    request.return_count = 1;
    result = &execute(&rig, &request)->result;
    size_t total = 0;
    for (size_t i = 0; i < result->file_count; i++)
        total += result->files[i].content.length;
    tap_is_int((long)result->file_count, 2, "a file that is too large is there");
    tap_ok(total <= EXECUTION_RETURNED_BYTES_MAX, "but not all of it");
}

/* Names and patterns that almost fit, each with each: the executor has others to serve. */
static void test_patterns(void)
{
    char pattern[160] = "*";
    const char *returns[EXECUTION_RETURNS_MAX];
    struct execution_request request =
        request_for("python", "import os\nos.chdir('/output')\n"
                              "for i in range(10000): open('a' * 240 + '%05d' % i, 'w').close()");
    memset(pattern + 1, 'a', 120);
    (void)snprintf(pattern + 121, sizeof pattern - 121, "[b-c]x");
    for (size_t i = 0; i < EXECUTION_RETURNS_MAX; i++)
        returns[i] = pattern;
    request.returns = returns;
    request.return_count = EXECUTION_RETURNS_MAX;
    request.timeout_ms = (uint64_t)await_ms();
    const struct execution_result *result = &execute(&rig, &request)->result;
    is_status(result, EXECUTION_OK, "patterns that almost fit do not harm the run");
    tap_has_str(result->message, "Not all files", "and the search for them is cut short");
}

static int fds_of(pid_t pid)
{
    char path[64];
    int count = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/fd", pid);
    autodir DIR *dir = opendir(path);
    while (dir && readdir(dir))
        count++;
    return count;
}

/* Once nothing changes any more: what is over is put away after it was told. */
static int settled_fds(pid_t pid)
{
    int count = fds_of(pid), same = 0;
    (void)await((same = count == fds_of(pid) ? same + 1 : 0, count = fds_of(pid), same >= 50));
    return count;
}

/* One run after the other, of every kind of end, leaves neither a descriptor nor a process. */
static void test_one_by_one(void)
{
    static const char *const codes[] = {"true", "exit 3", "kill -9 $$", "head -c 2000000 /dev/zero",
                                        "sleep 60"};
    (void)run_code(&rig, "bash", "true");
    int before = settled_fds(rig.executor);
    const size_t rounds = (size_t)tap_rounds(20, 60);
    for (size_t i = 0; i < rounds; i++) {
        struct execution_request request = request_for("bash", codes[i % ARRAY_LENGTH(codes)]);
        const char *returns[] = {"*"};
        request.timeout_ms = 500;
        request.returns = returns;
        request.return_count = i % 2;
        (void)execute(&rig, &request);
    }
    (void)run_code(&rig, "cobol", "");
    (void)run_code(&rig, "bash", "true");
    tap_ok(await(fds_of(rig.executor) <= before), "many runs leave no descriptor");
}

/* As many directories as names can ask for: they are made while others wait. */
static void test_directories(void)
{
    enum { DEPTH = EXECUTION_PARTS_MAX - 1 };
    static char names[EXECUTION_FILES_MAX][16 * EXECUTION_PARTS_MAX];
    static struct execution_file files[EXECUTION_FILES_MAX];
    struct execution_request request = request_for("bash", "find . -name end | wc -l");
    for (int i = 0; i < EXECUTION_FILES_MAX; i++) {
        size_t used = 0;
        for (int k = 0; k < DEPTH; k++)
            used += (size_t)snprintf(names[i] + used, sizeof names[i] - used, "%d/", i);
        (void)snprintf(names[i] + used, sizeof names[i] - used, "end");
        files[i] = (struct execution_file){names[i], {"x", 1}, false};
    }
    request.files = files;
    request.file_count = EXECUTION_FILES_MAX;
    is_output(&execute(&rig, &request)->result, "256\n", "256 files, 16 deep, are there");
}

/* ---- a http process that lies ---- */

/* The same lies every time. */
static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

/* A request that is right but for a few bytes, or ends too early, or goes on. */
static void make_lie(struct str *out, uint32_t *state)
{
    static const char *const words[] = {"*", "x"};
    static const struct execution_pair pairs[] = {{"A", "b"}};
    static const struct execution_file files[] = {{"data", {"x", 1}, false}};
    struct execution_request request = request_for("bash", "true");
    request.args = request.returns = (const char **)(uintptr_t)words;
    request.env = (struct execution_pair *)(uintptr_t)pairs;
    request.files = (struct execution_file *)(uintptr_t)files;
    request.arg_count = request.return_count = 2;
    request.env_count = request.file_count = 1;
    if (execution_request_encode(&request, out, NULL) < 0)
        tap_bail("out of memory");
    for (uint32_t i = next_random(state) % 4; i > 0; i--)
        out->data[next_random(state) % out->length] = (char)next_random(state);
    if (next_random(state) % 8 == 0)
        out->length = next_random(state) % out->length;
    else if (next_random(state) % 8 == 0)
        str_append(out, "and more");
}

/* 1 with an answer, 0 once the channel is at its end, -1 for neither. */
static int wait_for_either(uint64_t tag)
{
    uint64_t deadline = clock_now_ms() + (uint64_t)await_ms();
    while (clock_now_ms() < deadline) {
        char byte;
        struct pollfd waiting = {.fd = channel_fd(rig.http), .events = POLLIN};
        if (!pump(&rig))
            return -1;
        if (is_done(&rig, tag))
            return 1;
        if (recv(waiting.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
            return 0;
        (void)poll(&waiting, 1, 200);
    }
    return -1;
}

/* Whatever it says: it gets an answer or is cut off, and the executor is none the worse for it. */
static void test_lies(void)
{
    uint32_t state = 7;
    int answered = 0, cut = 0, lost = 0;
    int before = 0; /* the most that honest runs leave: one count can be too early */
    for (int i = 0; i < 5; i++) {
        (void)run_code(&rig, "bash", "true");
        int now = settled_fds(rig.executor);
        before = now > before ? now : before;
    }
    for (int i = 0; i < 400 && lost == 0; i++) {
        autostr struct str bytes = {0};
        uint64_t tag = ++rig.tag;
        make_lie(&bytes, &state);
        struct answer *answer = &rig.answers[tag % DONES_MAX];
        execution_result_done(&answer->result);
        *answer = (struct answer){0};
        (void)channel_send(rig.http, MESSAGE_EXECUTE, tag, bytes.data, bytes.length, NULL);
        int got = wait_for_either(tag);
        answered += got == 1;
        cut += got == 0;
        lost += got < 0;
        if (got == 1)
            continue;
        channel_free(take_ptr(&rig.http));
        rig.http = connect_peer(&rig, ROLE_HTTP);
    }
    tap_is_int(lost, 0, "each lie is answered or ends the channel");
    tap_ok(answered > 20 && cut > 20, "%d were answered, %d cut off", answered, cut);
    is_output(run_code(&rig, "bash", "echo still here"), "still here\n", "the truth is served");
    tap_ok(await(fds_of(rig.executor) <= before), "and no descriptor is lost");
}

static off_t journal_size(pid_t pid)
{
    char path[300], target[64];
    (void)snprintf(path, sizeof path, "/proc/%d/fd", pid);
    autodir DIR *fds = opendir(path);
    for (const struct dirent *entry; fds && (entry = readdir(fds));) {
        struct stat info;
        ssize_t length = readlinkat(dirfd(fds), entry->d_name, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        if (strstr(target, "brigd-journal") && fstatat(dirfd(fds), entry->d_name, &info, 0) == 0)
            return info.st_blocks * 512;
    }
    tap_bail("no journal");
}

/* Rows of refused requests wait for a history process that does not read. */
static void test_blocked(void)
{
    enum { ROWS = 600 };
    static char code[1 << 20];
    struct execution_request request = request_for("bash", code);
    autostr struct str bytes = {0};
    char id[EXECUTION_ID_LENGTH + 1];
    memset(code, '#', sizeof code - 1);
    request.code = (struct execution_bytes){code, sizeof code - 1};
    execution_id_make(id);
    request.id = id;
    if (execution_request_encode(&request, &bytes, NULL) < 0)
        tap_bail("a request");
    for (int sent = 0; sent < ROWS;) {
        struct pollfd ready = {.fd = channel_fd(rig.http), .events = POLLOUT};
        if (channel_wants_write(rig.http))
            (void)(poll(&ready, 1, await_ms()) && channel_flush(rig.http, NULL));
        else if (channel_send(rig.http, MESSAGE_BLOCKED, 0, bytes.data, bytes.length, NULL) == 0)
            sent++;
        else
            tap_bail("the executor does not read");
    }
    off_t kept = journal_size(rig.executor);
    is_output(run_code(&rig, "bash", "echo still here"), "still here\n",
              "the executor works after many refused requests");
    tap_ok(kept < (off_t)(JOURNAL_BYTES_FULL + sizeof code), "whose rows took at most %lld bytes",
           (long long)JOURNAL_BYTES_FULL);
}

/* A http process that was taken over begins executions although the journal is full. */
static void test_journal(void)
{
    static struct execution_event events[EXECUTION_EVENTS_MAX];
    static char detail[4000];
    struct execution_request request = request_for("no such language", "");
    autostr struct str bytes = {0};
    int got = 1;
    memset(detail, 'x', sizeof detail - 1);
    for (size_t i = 0; i < EXECUTION_EVENTS_MAX; i++)
        events[i] = (struct execution_event){.type = "t", .detail = detail};
    request.events = events;
    request.event_count = EXECUTION_EVENTS_MAX;
    if (execution_request_encode(&request, &bytes, NULL) < 0)
        tap_bail("a request");
    for (uint64_t tag = 1; tag < 4000 && got >= 0; tag++) {
        struct pollfd ready = {.fd = channel_fd(rig.http), .events = POLLIN | POLLOUT};
        (void)channel_send(rig.http, MESSAGE_EXECUTE, tag, bytes.data, bytes.length, NULL);
        do {
            automessage struct message message = {.fd = -1};
            (void)poll(&ready, 1, await_ms());
            (void)channel_flush(rig.http, NULL);
            got = channel_receive(rig.http, &message, NULL);
        } while (got > 0 || (got == 0 && channel_wants_write(rig.http)));
    }
    tap_ok(got < 0, "it is cut off in the end");
    tap_ok(journal_size(rig.executor) < (off_t)(2 * JOURNAL_BYTES_FULL + sizeof(detail) * 256),
           "before its rows take more than twice the journal's bytes");
    channel_free(take_ptr(&rig.http));
    rig.http = connect_peer(&rig, ROLE_HTTP);
    tap_ok(await(pump(&rig) && journal_size(rig.executor) < (off_t)JOURNAL_BYTES_FULL),
           "the history process takes the rows");
    is_output(run_code(&rig, "bash", "echo still here"), "still here\n", "the next one is served");
}

/* ---- very many, and a violent end ---- */

static bool runs_many(struct rig *of, uint64_t count)
{
    return of->gauges.active >= count;
}

static int sleepers(void)
{
    struct rlimit limit;
    int count = tap_rounds(200, 1000);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max < (rlim_t)count * 12)
        count = (int)(limit.rlim_max / 12);
    if (getrlimit(RLIMIT_NPROC, &limit) == 0 && geteuid() != 0 &&
        limit.rlim_cur < (rlim_t)count * 4)
        count = (int)(limit.rlim_cur / 4);
    return count;
}

static void test_many(void)
{
    int count = sleepers();
    uint64_t first = rig.tag + 1;
    char code[64];
    (void)snprintf(code, sizeof code, "exec sleep %s", marker);
    for (int i = 0; i < count; i++) {
        struct execution_request request = request_for("bash", code);
        request.timeout_ms = 600000;
        (void)send_request(&rig, &request);
        (void)pump(&rig);
    }
    tap_ok(wait_for(&rig, runs_many, (uint64_t)count), "%d runs at a time", count);
    tap_ok(await(count_processes() == count), "each with its process");
    is_output(run_code(&rig, "bash", "echo one more"), "one more\n", "and one more is served");
    (void)kill(rig.executor, SIGKILL);
    (void)waitpid(rig.executor, NULL, 0);
    tap_ok(await(count_processes() == 0), "with the executor, killed, all of them end");
    for (uint64_t tag = first; tag <= rig.tag; tag++)
        rig.answers[tag % DONES_MAX].done = false;
    drop_peers(&rig);
}

static size_t files_in(const char *path)
{
    size_t count = 0;
    autodir DIR *dir = opendir(path);
    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        count += entry->d_name[0] != '.';
    return count;
}

struct record {
    int32_t pid;
    uint32_t reserved;
    uint64_t start;
};

static int write_instance(const char *name, pid_t pid, uint64_t start)
{
    char path[128];
    struct record record = {.pid = pid, .start = start};
    (void)snprintf(path, sizeof path, "%s/%s", rig.state_dir, name);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, &record, sizeof record) != (ssize_t)sizeof record)
        tap_bail("cannot write '%s'", path);
    return fd;
}

static pid_t start_sleeper(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)execlp("sleep", "sleep", "600", (char *)NULL);
        _exit(127);
    }
    return pid;
}

static void end_sleeper(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

static void test_orphans(void)
{
    tap_is_int((long)files_in(rig.state_dir), 1, "an executor that was killed leaves its file");
    pid_t orphan = start_sleeper(), other = start_sleeper(), owned = start_sleeper();
    (void)close(write_instance("jails-1-1", orphan, cgroup_start_time(orphan)));
    (void)close(write_instance("jails-2-2", other, cgroup_start_time(other) + 1));
    autoclose int held = write_instance("jails-3-3", owned, cgroup_start_time(owned));
    (void)flock(held, LOCK_EX | LOCK_NB);
    size_t before = rig.row_count;
    rig_start(&rig);
    is_output(run_code(&rig, "bash", "echo again"), "again\n", "the next one serves again");
    tap_is_int(rig.rows[before], MESSAGE_NEW_EXECUTOR, "and says that it is new");
    int status = 0;
    tap_is_int(waitpid(orphan, &status, 0), orphan, "what an earlier one left is ended");
    tap_ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "by being killed");
    tap_is_int(waitpid(other, &status, WNOHANG), 0, "who only has the same pid is not");
    tap_is_int(waitpid(owned, &status, WNOHANG), 0, "nor one whose executor lives");
    tap_is_int((long)files_in(rig.state_dir), 2, "files of the dead are gone");
    end_sleeper(other);
    end_sleeper(owned);
    char path[128];
    (void)snprintf(path, sizeof path, "%s/jails-3-3", rig.state_dir);
    (void)unlink(path);
}

int main(int argc, char **argv)
{
    static const struct rig_test tests[] = {
        {"ways-out", test_ways_out},
        {"network", test_network},
        {"bombs", test_bombs},
        {"memory", test_memory},
        {"endings", test_endings},
        {"returned", test_returned},
        {"patterns", test_patterns},
        {"lies", test_lies},
        {"blocked", test_blocked},
        {"journal", test_journal},
        {"directories", test_directories},
        {"one-by-one", test_one_by_one},
        {"many", test_many},
        {"orphans", test_orphans},
    };
    (void)snprintf(marker, sizeof marker, "4242.%d", (int)getpid());
    need_interpreters();
    rig_config(&rig);
    rig_start(&rig);
    run_tests(tests, ARRAY_LENGTH(tests), argc, argv);
    if (rig.supervisor)
        tap_is_int(rig_drain(&rig), 0, "and it ends well");
    rig_done(&rig);
    return tap_done();
}
