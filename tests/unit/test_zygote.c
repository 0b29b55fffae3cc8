/* SPDX-License-Identifier: MIT */
/* A Python that is forked into jails: what its runs answer, that they are fresh and apart, and that they
 * end as a Python of their own would. Works as root and as an ordinary user. */
#include <fcntl.h>
#include <libgen.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "jail/cgroup/cgroup_driver.h"
#include "jail/confine/identity.h"
#include "jail/job/job.h"
#include "jail/prepare/zygote.h"
#include "job_support.h"
#include "policy/policy.h"

#define FIRST_ID (1800000000U + (unsigned)getpid() % 10000 * 64) /* of this process alone */
#define ID_COUNT 8

static const char *const argv[] = {"python3", "-u", "-B", "/workspace/main.py", NULL};

static struct brig_policy *python_policy(void)
{
    struct brig_policy *policy = new_policy();
    struct brig_error err = {0};
    struct brig_identity identity = {.size = sizeof(struct brig_identity),
                                     .host_uid = (uid_t)-1,
                                     .host_gid = (gid_t)-1,
                                     .inside_uid = 65534,
                                     .inside_gid = 65534,
                                     .name = "sandbox"};
    if (identity_is_root())
        identity.host_uid = identity.host_gid = FIRST_ID;
    int result = brig_policy_identity(policy, &identity, &err);
    if (result == 0)
        result = brig_policy_private(policy, BRIG_READ_ONLY, "/workspace", &err);
    if (result == 0)
        result = brig_policy_workdir(policy, "/workspace", &err);
    if (result == 0)
        result = brig_policy_setenv(policy, "PATH", "/usr/bin:/bin", &err);
    if (result == 0)
        result = brig_policy_setenv(policy, "HOME", "/tmp", &err);
    if (result == 0)
        result = brig_policy_seccomp(policy, BRIG_SECCOMP_CODE, &err);
    if (result == 0)
        result = brig_policy_trace(policy, true, &err);
    tap_is_int(result, 0, "a policy for Python: %s", err.message);
    return policy;
}

static struct brig_policy *late_policy(void)
{
    struct brig_policy *policy = python_policy();
    (void)policy_late_file(policy, "/workspace/main.py", 0444, NULL);
    policy->late_input = true;
    return policy;
}

/* From the build tree we are in. */
static int open_library(void)
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);
    path[length > 0 ? length : 0] = '\0';
    (void)strcat(dirname(path), "/../../src/zygote/brig-zygote.so");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    tap_ok(fd >= 0, "the library is at %s", path);
    return fd;
}

static struct zygote *start_zygote(const struct brig_policy *policy, const char *modules)
{
    struct zygote *zygote = NULL;
    struct brig_error err = {0};
    int library = open_library();
    struct zygote_config config = {.policy = policy,
                                   .argv = argv,
                                   .file = "/workspace/main.py",
                                   .modules = modules,
                                   .library = library};
    if (identity_is_root()) {
        config.first_id = FIRST_ID;
        config.id_count = ID_COUNT + 1;
    }
    tap_is_int(zygote_new(&config, &zygote, &err), 0, "a zygote: %s", err.message);
    (void)close(library);
    if (!zygote)
        return NULL;
    tap_ok(await_readable(zygote_fd(zygote)), "it says something");
    tap_is_int(zygote_process(zygote, &err), 0, "it is there: %s", err.message);
    tap_ok(zygote_is_ready(zygote), "and ready");
    return zygote;
}

static struct brig_job *fork_run(struct zygote *zygote)
{
    static unsigned turn;
    struct brig_job *job = NULL;
    struct brig_error err = {0};
    struct brig_command command = {.size = sizeof(struct brig_command),
                                   .argv = argv,
                                   .stdio = {{.kind = BRIG_STDIO_BYTES},
                                             {.kind = BRIG_STDIO_CAPTURE},
                                             {.kind = BRIG_STDIO_CAPTURE}}};
    const struct job_source source = {.zygote = zygote, .host_id = FIRST_ID + turn++ % ID_COUNT};
    int result = job_start(&source, &command, &job, &err);
    tap_is_int(result, 0, "a run is forked: %s", err.message);
    return job;
}

static bool await_made(struct brig_job *job)
{
    while (!job_is_waiting(job) && await_readable(brig_job_fd(job)) &&
           brig_job_process(job, NULL) == 0)
        ;
    return job_is_waiting(job);
}

static int release(struct brig_job *job, const char *code, const char *input)
{
    struct job_late late = {.code = code,
                            .code_length = strlen(code),
                            .input = input,
                            .input_length = strlen(input),
                            .wall_ms = (uint64_t)await_ms()};
    (void)await_made(job);
    return job_release(job, &late, NULL);
}

static void finish_run(struct brig_job *job, struct brig_result *ret_result)
{
    struct brig_error err = {0};
    tap_is_int(brig_job_wait(job, &err), 0, "it ends: %s", err.message);
    tap_is_int(job_take_result(job, ret_result, NULL), 0, "and has a result");
    brig_job_free(job);
}

static void run_python(struct zygote *zygote, const char *code, struct brig_result *ret_result)
{
    struct brig_job *job = fork_run(zygote);
    tap_is_int(release(job, code, ""), 0, "it is let go");
    finish_run(job, ret_result);
}

static void run_cold(const char *code, struct brig_result *ret_result)
{
    struct brig_policy *policy = python_policy();
    (void)brig_policy_file(policy, "/workspace/main.py", code, strlen(code), 0444, NULL);
    struct brig_command command = {.size = sizeof(struct brig_command),
                                   .argv = argv,
                                   .stdio = {{.kind = BRIG_STDIO_BYTES, .bytes = ""},
                                             {.kind = BRIG_STDIO_CAPTURE},
                                             {.kind = BRIG_STDIO_CAPTURE}}};
    struct brig_error err = {0};
    tap_is_int(job_run(policy, &command, ret_result, &err), 0, "a cold run: %s", err.message);
    brig_policy_free(policy);
}

static const char *text_of(const struct brig_capture *capture)
{
    return capture->data ? capture->data : "";
}

/* The same program, forked and cold, must answer the same. */
static void same(struct zygote *zygote, const char *code, const char *name)
{
    struct brig_result warm, cold;
    run_python(zygote, code, &warm);
    run_cold(code, &cold);
    tap_is_int(warm.outcome, cold.outcome, "%s: the same outcome", name);
    tap_is_int(warm.exit_code, cold.exit_code, "%s: the same exit code", name);
    tap_is_int(warm.signal, cold.signal, "%s: the same signal", name);
    tap_is_str(text_of(&warm.out), text_of(&cold.out), "%s: the same output", name);
    tap_is_str(text_of(&warm.err), text_of(&cold.err), "%s: the same errors", name);
    result_done(&warm);
    result_done(&cold);
}

static const struct {
    const char *name, *code;
} programs[] = {
    {"nothing", ""},
    {"output", "print(sum(range(100)))"},
    {"a traceback", "def f():\n    return 1 / 0\nf()\n"},
    {"bad syntax", "print('a'\n"},
    {"sys.exit(3)", "import sys\nsys.exit(3)"},
    {"sys.exit('text')", "import sys\nsys.exit('text')"},
    {"exit()", "exit()"},
    {"sys.exit(-1)", "import sys\nsys.exit(-1)"},
    {"sys.exit(300)", "import sys\nsys.exit(300)"},
    {"sys.exit(None)", "import sys\nsys.exit(None)"},
    {"sys.exit((1, 2))", "import sys\nsys.exit((1, 2))"},
    {"sys.exit(True)", "import sys\nsys.exit(True)"},
    {"an exit in a function",
     "def f():\n    raise SystemExit(4)\ntry:\n    f()\nfinally:\n    print('finally')"},
    {"an exit in a thread", "import threading\nt = threading.Thread(target=exit, "
                            "args=(3,))\nt.start()\nt.join()\nprint('main')"},
    {"an exit with exit functions",
     "import atexit, sys\natexit.register(print, 'bye')\nsys.exit(5)"},
    {"a class of its own for exits", "class E(SystemExit):\n    pass\nraise E(6)"},
    {"NUL in the code", "print(1)\nprint('a\\0b')"},
    {"a coding line", "# -*- coding: latin-1 -*-\nprint(len('\xe9'))"},
    {"a bad coding line", "# -*- coding: no-such -*-\nprint(1)"},
    {"bad UTF-8", "print('\xff\xfe')"},
    {"a byte order mark", "\xef\xbb\xbfprint('bom')"},
    {"windows line ends", "print(1)\r\nif True:\r\n    print(2)\r\n"},
    {"future", "from __future__ import annotations\nx: y = 1\nprint(__annotations__)"},
    {"the stack", "import inspect, sys\nprint(len(inspect.stack()), sys._getframe().f_back, "
                  "inspect.stack()[0].filename)"},
    {"an excepthook",
     "import sys\nsys.excepthook = lambda *a: print('hook', a[0], a[2].tb_next)\n1/0"},
    {"pickling",
     "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))).__module__)"},
    {"dataclasses",
     "import dataclasses\n@dataclasses.dataclass\nclass A:\n    x: int\nprint(A(1))"},
    {"importing itself", "import __main__, sys\nprint(__main__ is sys.modules['__main__'], "
                         "__main__.__dict__ is globals(), __main__.__file__)"},
    {"asyncio", "import asyncio\nasync def f():\n    await asyncio.sleep(0.01)\n    return "
                "3\nprint(asyncio.run(f()))"},
    {"os._exit", "import os\nos._exit(9)"},
    {"an abort", "import os\nos.abort()"},
    {"an interrupt", "raise KeyboardInterrupt"},
    {"a signal",
     "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\nimport time\ntime.sleep(9)"},
    {"exit functions",
     "import atexit\natexit.register(print, 'a')\natexit.register(print, 'b')\nprint('c')"},
    {"an exit function that fails",
     "import atexit\nclass C:\n    def __call__(self):\n        raise ValueError('x')\n"
     "    def __repr__(self):\n        return 'C'\natexit.register(C())"},
    {"__del__ at the end", "class A:\n    def __del__(self):\n        print('del', self.n)\na = "
                           "A()\na.n = 1\n_b = A()\n_b.n = 2\n"},
    {"__del__ with functions",
     "class A:\n    def __init__(self, n):\n        self.n = n\n    def __del__(self):\n        "
     "print('del', self.n)\n"
     "def f():\n    return a\na = A(1)\n_b = A(2)\nc = [A(3)]\nf.x = A(4)\n"},
    {"__del__ that imports",
     "class A:\n    def __del__(self):\n        try:\n            import math\n        except "
     "ImportError as e:\n            print(e)\na = A()\n"},
    {"__del__ of a cycle",
     "class A:\n    def __del__(self):\n        print('gone')\na = A()\na.a = a\ndel a\n"},
    {"threads", "import threading\ndef f():\n    printed.wait()\n    print('thread')\n"
                "printed = threading.Event()\nthreading.Thread(target=f).start()\n"
                "print('main')\nprinted.set()"},
    {"a daemon", "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), "
                 "daemon=True).start()\nprint('main')"},
    {"another stdout", "import sys, io\nsys.stdout = io.StringIO()\nprint('lost')"},
    {"a closed stdout", "import sys\nsys.stdout.close()"},
    {"closed fds", "import os\nos.closerange(0, 3)"},
    {"subprocesses",
     "import subprocess\nprint(subprocess.run(['/bin/echo', 'hi'], capture_output=True).stdout)"},
    {"multiprocessing", "import os\npid = os.fork()\nif pid == 0:\n    print('child')\n    "
                        "os._exit(0)\nos.waitpid(pid, 0)\nprint('parent')"},
    {"weakref.finalize",
     "import weakref\nclass A: pass\na = A()\nweakref.finalize(a, print, 'finalized')"},
    {"logging at exit", "import logging\nlogging.basicConfig()\nlogging.error('x')"},
    {"warnings", "import warnings\nwarnings.warn('careful')"},
    {"input",
     "import sys\nprint(repr(sys.stdin.read()), sys.stdin.seekable(), sys.stdin.isatty())"},
    {"itself",
     "import sys, os\nprint(sys.argv, sys.orig_argv, sys.path, sys.flags, sys.version, "
     "sys.executable, "
     "sys.prefix, __name__, __file__, __builtins__, __spec__, __loader__.__class__, __package__, "
     "sorted(globals()), os.getcwd(), os.getpid(), os.getppid() , os.getuid(), "
     "sorted(os.environ.items()))"},
    {"its modules", "import sys\nprint(sorted(sys.modules))"},
    {"its signals", "import signal\nprint([(s, str(signal.getsignal(s))) for s in range(1, 32)], "
                    "signal.pthread_sigmask(0, []))"},
    {"its streams",
     "import sys, os\nfor f in (sys.stdin, sys.stdout, sys.stderr):\n    print(f, f.buffer, "
     "f.line_buffering, f.write_through, f.errors, oct(os.fstat(f.fileno()).st_mode))"},
    {"its limits", "print(open('/proc/self/limits').read())"},
    {"its fds", "import os\nprint(sorted(os.listdir('/proc/self/fd')))"},
    {"its command line",
     "print(open('/proc/self/cmdline').read(), open('/proc/self/comm').read())"},
    /* Of those that lie on each other, only the last can be seen; and a tmpfs names who mounted it. */
    {"its mounts", "m = {}\nfor l in open('/proc/self/mountinfo'):\n    w = l.split()\n    m[w[4]] "
                   "= (w[3:6], w[w.index('-')+1:])\n"
                   "for k in sorted(m):\n    o = [x for x in m[k][1][2].split(',') if not "
                   "x.startswith(('uid=', 'gid='))]\n"
                   "    print(m[k][0], m[k][1][:2], o)"},
    {"its directories",
     "import os\nfor d in ('/', '/tmp', '/workspace', '/dev', '/etc', '/run', '/proc/self/task'):\n"
     "    print(d, sorted(os.listdir(d)))\n    s = os.stat(d)\n    print(oct(s.st_mode), "
     "s.st_uid)"},
    {"its identity", "for l in open('/proc/self/status'):\n    if l.split(':')[0] in ('Umask', "
                     "'Uid', 'Gid', 'NSpid', 'NSpgid', "
                     "'NoNewPrivs', 'Seccomp', 'Seccomp_filters', 'SigBlk', 'SigIgn', 'SigCgt', "
                     "'ShdPnd', 'SigPnd') or l.startswith('Cap'):\n        print(l)"},
    {"its maps of ids", "print(open('/proc/self/setgroups').read())\nprint(open('/proc/sys/user/"
                        "max_user_namespaces').read())"},
    {"its host name", "import socket, os\nprint(os.uname().nodename)"},
    {"what it may not",
     "import os\nfor f in (lambda: open('/etc/shadow'), lambda: open('/workspace/x', 'w'), lambda: "
     "os.setuid(0), "
     "lambda: os.chroot('/'), lambda: os.listdir('/proc/1/fd'), lambda: os.kill(1, 9), lambda: "
     "os.mkdir('/x')):\n"
     "    try:\n        print(f())\n    except Exception as e:\n        print(type(e), e)"},
};

static void test_same(struct zygote *zygote)
{
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++)
        same(zygote, programs[i].code, programs[i].name);
}

/* Two runs of one zygote must not draw the same. */
static void test_random(struct zygote *zygote)
{
    static const char code[] =
        "import random, uuid, os, ssl, secrets, tempfile\n"
        "print(random.random(), uuid.uuid4(), uuid.uuid1(), os.urandom(8), ssl.RAND_bytes(8), "
        "secrets.token_hex(8), tempfile.mktemp(), sep='\\n')";
    struct brig_result results[3];
    for (int i = 0; i < 3; i++) {
        run_python(zygote, code, &results[i]);
        is_exit(&results[i], 0, "a run that draws");
    }
    char *lines[3][8] = {0};
    for (int i = 0; i < 3; i++) {
        char *save = NULL,
             *line = results[i].out.data ? strtok_r(results[i].out.data, "\n", &save) : NULL;
        for (int k = 0; k < 8 && line; k++, line = strtok_r(NULL, "\n", &save))
            lines[i][k] = line;
    }
    for (int k = 0; k < 7; k++)
        tap_ok(lines[0][k] && lines[1][k] && lines[2][k] && strcmp(lines[0][k], lines[1][k]) != 0 &&
                   strcmp(lines[1][k], lines[2][k]) != 0 && strcmp(lines[0][k], lines[2][k]) != 0,
               "draw %d differs between runs: %s", k, lines[0][k] ? lines[0][k] : "");
    for (int i = 0; i < 3; i++)
        result_done(&results[i]);
}

/* Many at a time, parked, and released in another order. */
static void test_parked(struct zygote *zygote)
{
    struct brig_job *jobs[6];
    struct brig_result result;
    for (int i = 0; i < 6; i++)
        jobs[i] = fork_run(zygote);
    for (int i = 0; i < 6; i++)
        tap_ok(await_made(jobs[i]), "run %d waits", i);
    for (int i = 5; i >= 0; i--) {
        char code[64];
        (void)snprintf(code, sizeof code, "open('/tmp/x', 'x').close()\nprint(%d, input())", i);
        tap_is_int(release(jobs[i], code, "in\n"), 0, "run %d is let go", i);
        finish_run(jobs[i], &result);
        (void)snprintf(code, sizeof code, "%d in\n", i);
        tap_is_str(text_of(&result.out), code, "its answer is its own");
        result_done(&result);
    }
}

static void test_ends(const struct brig_policy *policy)
{
    struct zygote *zygote = start_zygote(policy, "json no_such_module_here");
    struct brig_result result;
    struct brig_job *job = fork_run(zygote), *waits = fork_run(zygote);
    (void)release(job, "import sys\nprint('json' in sys.modules)", "");
    zygote_free(zygote);
    finish_run(job, &result);
    is_exit(&result, 0, "a run goes on without its zygote");
    tap_is_str(text_of(&result.out), "True\n", "what was wanted had been imported");
    result_done(&result);
    brig_job_free(waits);
    tap_ok(true, "and one that waits can be freed");
}

static void test_limits(struct zygote *zygote)
{
    struct brig_result result;
    struct brig_job *job = fork_run(zygote);
    struct job_late late = {
        .code = "import time\ntime.sleep(60)", .code_length = 26, .input = "", .wall_ms = 100};
    (void)await_made(job);
    tap_is_int(job_release(job, &late, NULL), 0, "a short time");
    finish_run(job, &result);
    is_outcome(&result, BRIG_TIMEOUT, "a run that takes too long");
    result_done(&result);
    job = fork_run(zygote);
    (void)release(job, "while True: pass", "");
    (void)brig_job_cancel(job, NULL);
    finish_run(job, &result);
    is_outcome(&result, BRIG_CANCELLED, "a run that is ended");
    result_done(&result);
    run_python(zygote, "import ctypes\nctypes.CDLL(None).mount(b'a', b'/tmp', b'tmpfs', 0, None)",
               &result);
    tap_ok(result.denials.traced, "refused calls are listed");
    result_done(&result);
}

static ino_t namespace_of(pid_t pid, const char *which, int *ret_fd)
{
    char path[64];
    struct stat info = {0};
    (void)snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)pid, which);
    *ret_fd = open(path, O_RDONLY | O_CLOEXEC);
    tap_ok(*ret_fd >= 0 && fstat(*ret_fd, &info) == 0, "%s can be looked at", path);
    return info.st_ino;
}

/* One is made ahead for each, and who makes it is not of the jail: to make another for each run would take as
 * long as half of the rest. */
static void test_network(struct zygote *zygote)
{
    ino_t seen[2];
    for (int i = 0; i < 2; i++) {
        struct brig_job *job = fork_run(zygote);
        struct stat info = {0};
        int network = -1, user = -1;
        tap_ok(await_made(job), "a run waits");
        seen[i] = namespace_of(brig_job_pid(job), "net", &network);
        ino_t own = namespace_of(brig_job_pid(job), "user", &user);
        int maker = ioctl(network, NS_GET_USERNS);
        tap_ok(maker >= 0 && fstat(maker, &info) == 0 && info.st_ino != own,
               "it has the network that was made ahead");
        (void)close(network);
        (void)close(user);
        (void)close(maker);
        brig_job_free(job);
    }
    tap_ok(seen[0] != seen[1], "each run has one of its own");
}

/* ---- groups ---- */

#define MIB ((uint64_t)1 << 20)
#define GROUP_LIMIT (96 * MIB)

enum use { SMALL, LARGE, HUNGRY, FILES, TOO_MUCH, THREADS, USES };

static const char *const use_code[USES] = {
    [SMALL] = "print(1)",
    [LARGE] = "len(bytearray(60 << 20))",
    [HUNGRY] = "len(bytearray(80 << 20))", /* nearly all there is */
    [FILES] = "open('/tmp/a', 'wb').write(bytes(16 << 20))",
    [TOO_MUCH] = "len(bytearray(200 << 20))",
    [THREADS] = "import threading\n"
                "all_run = threading.Barrier(4)\n"
                "own = [threading.Thread(target=all_run.wait) for _ in range(4)]\n"
                "[thread.start() for thread in own]\n",
};

static void check_use(enum use use, const struct brig_result *result, int turn)
{
    const struct brig_usage *usage = &result->usage;
    if (use == TOO_MUCH) {
        is_outcome(result, BRIG_OOM, "a run that wants too much");
        tap_ok(usage->oom_kills > 0, "run %d: the kernel's kill is told", turn);
        return;
    }
    is_exit(result, 0, "a run in a group of its own");
    tap_is_int(usage->oom_kills, 0, "run %d: nobody was killed", turn);
    uint64_t least = use == LARGE    ? 60 * MIB
                     : use == HUNGRY ? 80 * MIB
                     : use == FILES  ? 16 * MIB
                                     : 0;
    uint64_t most = least + 12 * MIB;
    tap_ok(usage->peak_memory_bytes >= least && usage->peak_memory_bytes < most,
           "run %d: its peak is its own: %llu", turn, (unsigned long long)usage->peak_memory_bytes);
    tap_ok(use == THREADS ? usage->peak_pids >= 4 : usage->peak_pids <= 1,
           "run %d: so are its processes: %llu", turn, (unsigned long long)usage->peak_pids);
}

static void use_groups(struct zygote *zygote)
{
    for (int i = 0; i < USES; i++) {
        struct brig_result result;
        struct brig_job *job = fork_run(zygote);
        tap_ok(await_made(job), "a run waits");
        (void)release(job, use_code[i], "");
        finish_run(job, &result);
        check_use((enum use)i, &result, i);
        result_done(&result);
    }
}

static void test_groups(void)
{
    struct cgroup_support support;
    cgroup_probe(false, &support);
    unsigned wanted = CGROUP_MEMORY | CGROUP_PIDS | CGROUP_CPU;
    if (support.kind != CGROUP_V1 || (support.resources & wanted) != wanted)
        return; /* of v2, kernels before 6.1 do not count the peak of processes */
    struct brig_policy *policy = late_policy();
    (void)brig_policy_limit(policy, BRIG_LIMIT_MEMORY_BYTES, GROUP_LIMIT, NULL);
    (void)brig_policy_limit(policy, BRIG_LIMIT_PROCESSES, 20, NULL);
    (void)brig_policy_limit(policy, BRIG_LIMIT_CPU_PERCENT, 200, NULL);
    struct zygote *zygote = start_zygote(policy, NULL);
    if (zygote)
        use_groups(zygote);
    zygote_free(zygote);
    brig_policy_free(policy);
}

int main(void)
{
    struct brig_policy *policy = late_policy();
    struct zygote *zygote = start_zygote(policy, NULL);
    if (zygote) {
        test_same(zygote);
        test_random(zygote);
        test_parked(zygote);
        test_limits(zygote);
        test_network(zygote);
        zygote_free(zygote);
        test_ends(policy);
        test_groups();
    }
    brig_policy_free(policy);
    return tap_done();
}
