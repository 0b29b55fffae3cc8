# SPDX-License-Identifier: MIT
"""The table of test suites. They are found by their files: a new one is run without being named here.
Named are those that run more than once, or that some groups leave out.

A suite is a program that prints TAP. Groups:

    check   to be run after every change: golden, the quick unit tests, a jail in every mode
    test    to be run before every push: check, and all other suites that are worth their time
    all     every suite except those of vm, vm-cpus, fresh and slow
    unit e2e bindings escape lint fuzz vm-quick vm vm-cpus fresh packages slow    by kind
"""

import dataclasses
import glob
import os
import shutil


@dataclasses.dataclass
class Suite:
    name: str
    command: list
    groups: tuple
    # root; user (the suite's own); member (the same, in a cgroup that belongs to it); namespace (root of a
    # user namespace that the user makes); plain (root, without namespaces and cgroups of the suite's own); or
    # here: as the caller in the clone, with the caller's environment.
    who: str = "root"
    needs: tuple = ("build",)  # the names of builds
    target: str = ""  # what it needs of a build that is not made whole
    on_disk: bool = False  # /tmp, homes and scratch are on a disk, where every supported kernel can map ids; or in memory
    has_user: bool = True  # as root it makes use of an ordinary user
    variables: dict = dataclasses.field(default_factory=dict)
    seconds: int = 1200
    background: bool = False  # it uses much CPU and has no deadlines inside: run with nice
    weight: int = 1
    sentence: str = ""  # the command is one test, and this is its name
    stream: bool = False  # it prints several suites: see --inside of tests/run


# ---- Builds --------------------------------------------------------------------------------------

# Without optimisation it takes a quarter of the time to compile what the sanitizers add.
SANITIZED = ["-Db_sanitize=address,undefined", "-Db_lundef=false"]
STRICT = ["-Dwerror=true"]
BUILDS = {  # name: (what is tested, compiler, options)
    "build": ("it builds with gcc", "gcc", []),
    "build-clang": ("it builds with clang without a warning", "clang", [*STRICT, "-Dtests=false"]),
    "build-asan": ("it builds without a warning with the address and undefined-behaviour sanitizers", "gcc",
                   [*STRICT, *SANITIZED, "-Dbuildtype=debug"]),
    "build-tsan": ("it builds with the thread sanitizer", "gcc", [*STRICT, "-Db_sanitize=thread", "-Db_lundef=false"]),
    "build-fuzz": ("the fuzz targets build", "clang", [*STRICT, "-Dfuzz=true", *SANITIZED]),
}
# Programs that unit tests start, or load, from the folder that they are in.
ALWAYS_BUILT = "tests/unit/brig-broker", "src/zygote/brig-zygote.so"


def build(name, targets):
    """Targets are those to be built; without any, everything."""
    sentence, compiler, options = BUILDS[name]
    return Suite(name, ["tools/build", name, *options, *(["--", *targets] if targets else [])], (), who="here",
                 needs=(), variables={"CC": compiler}, seconds=3600, background=True, weight=1000, sentence=sentence)


# ---- Unit tests ----------------------------------------------------------------------------------

# Each takes more than a few seconds of CPU time.
SLOW_UNITS = """test_call_many test_job_stuck test_server_hostile test_server_executor test_zygote test_template
    test_server_history test_server_store test_cgroup test_call_hostile""".split()
# They ask the kernel for something that it may refuse to a user.
ASK_KERNEL = """test_api test_broker_confine test_call test_call_hostile test_call_many test_call_status test_call_whole
    test_landlock test_layers test_path test_private test_probe test_seccomp test_server_agent test_server_hostile
    test_server_executor""".split()
# They make jails, which is different again as root of a user namespace.
MAKE_JAILS = "test_call test_job test_layers test_private".split()


def stems(pattern):
    return sorted(os.path.splitext(os.path.basename(path))[0] for path in glob.glob(pattern))


def starts_with(name, beginnings):
    return any(name.startswith(beginning) for beginning in beginnings)


def unit_suites():
    for name in stems("tests/unit/test_*.c"):
        program = f"build/tests/unit/{name}"
        alone = {"on_disk": True, "has_user": False}
        groups, seldom = ("test", "all", "unit"), ("all", "unit")
        slow = name in SLOW_UNITS
        yield Suite(f"unit/{name}", [program], groups if slow else ("check", *groups), **alone)
        sanitized = f"tests/unit/{name}"
        yield Suite(f"asan/{name}", [f"build-asan/{sanitized}"], seldom,
                    needs=("build-asan",), target=sanitized, variables={"BUILD_DIR": "build-asan"}, **alone)
        if name in ASK_KERNEL or name.startswith("test_job"):
            yield Suite(f"user/{name}", [program], seldom if slow else groups, who="user", on_disk=True)
        if starts_with(name, MAKE_JAILS):
            yield Suite(f"namespace/{name}", [program], groups if name in MAKE_JAILS else seldom, who="namespace", on_disk=True)
        if name in ("test_server_hostile", "test_server_executor"):
            yield Suite(f"pools/{name}", [program], seldom if name == "test_server_hostile" else groups,
                        variables={"BRIG_TEST_POOLS": "on"}, **alone)
    for name, arguments in (("test_api", []), ("test_call_many", ["threads"])):
        program = f"tests/unit/{name}"
        yield Suite(f"tsan/{name}", [f"build-tsan/{program}", *arguments], ("all", "unit"),
                    needs=("build-tsan",), target=program, on_disk=True, has_user=False)


# ---- End to end ----------------------------------------------------------------------------------


def is_program(path):
    return os.path.isfile(path) and os.access(path, os.X_OK) and not path.endswith((".bats", ".bash", ".py"))


# Begun first where it is not known yet how long they take.
LONG = """fresh-short vm-cgroup lint/quick e2e/net escape/user escape/root e2e/server_http e2e/git-hostile e2e/apply e2e/git
    e2e/server_pools e2e/git-nested e2e/review e2e/held e2e/status""".split()

# Each takes more than a few seconds of CPU time, and others test most of the same: docs/architecture.md says which.
SLOW_E2E = "build dist git-served git-large images net-clients reflink server_web".split()

# These behave differently in memory, or need a home on a disk as users have it. make test-all puts every suite on a disk.
ON_DISK = "disk homes limits masks modes".split()


def e2e_suites():
    groups = ("test", "all", "e2e")
    for name in stems("tests/e2e/*.bats"):
        yield Suite(f"e2e/{name}", ["bats", "--tap", f"tests/e2e/{name}.bats"],
                    ("check", *groups) if name == "modes" else ("all", "e2e") if name in SLOW_E2E else groups,
                    seconds=2400 if name == "git-large" else 1200, on_disk=name in ON_DISK)
    for path in sorted(filter(is_program, glob.glob("tests/e2e/*"))):
        name = os.path.basename(path)
        yield Suite(f"e2e/{name}", [path], ("all", "e2e") if name in SLOW_E2E else groups)
    yield Suite("e2e/git-pairs", ["bats", "--tap", "tests/e2e/git.bats"], ("all", "e2e"),
                variables={"BRIG_TEST_PAIRS": "all"}, seconds=2400)
    yield Suite("e2e/server_runs-cold", ["tests/e2e/server_runs"], ("all", "e2e"), variables={"BRIG_TEST_POOLS": "off"})


def escape_suites():
    for who in ("root", "user") if os.geteuid() == 0 else ("user",):
        yield Suite(f"escape/{who}", ["tests/escape/run", "--who", who], ("test", "all", "escape"), seconds=2400)


# These give the same results for root (values, types, documents), so they run as the user only. The others run as
# root too in make test-all; what root's jails are, unit tests and e2e test in make test.
AS_USER_ONLY = """test_executor test_logging test_module test_plain test_policy test_readme test_tutorial test_types
    test_typing""".split()


def binding_suites():
    groups = ("test", "all", "bindings")
    languages = [  # the folder, the interpreter with its options, how tests end
        *(("python", [python], "py") for python in os.environ.get("BRIG_PYTHONS", "python3").split()),
        ("ruby", ["ruby", "-w"], "rb"), ("node", ["node"], "mjs"), ("go", [], ""),
    ]
    for folder, command, ending in languages:
        for path in sorted(glob.glob(f"tests/bindings/{folder}/test_*{ending and '.' + ending}")):
            stem = os.path.splitext(os.path.basename(path))[0]
            name = f"{os.path.basename(command[0]) if command else folder}/{stem}"
            if stem not in AS_USER_ONLY:
                yield Suite(name, [*command, path], ("all", "bindings"), has_user=False)
            yield Suite(f"user/{name}", [*command, path], groups, who="user")
    yield Suite("bindings/install", ["tests/bindings/install"], groups, has_user=False)
    # It downloads the compiler, once.
    yield Suite("bindings/node-types", ["tests/bindings/node-types"], ("all",), who="here")


# ---- Others --------------------------------------------------------------------------------------


# Those that need neither another build nor minutes.
QUICK_LINT = """format shell functions cloexec layers includes conditions documents spdx state child exports abi public_header headers
    generated fuzz_targets manual hardening""".split()


def lint_suites():
    for name, checks, needs in (("quick", QUICK_LINT, "build"), ("tidy", ["tidy"], "build-clang"),
                                ("cppcheck", ["cpp_check"], "build"), ("analyzer", ["analyzer"], "build"),
                                ("clang", ["clang_symbols"], "build-clang")):
        yield Suite(f"lint/{name}", ["tools/lint", *checks], (*(["test"] if name == "quick" else []), "all", "lint"),
                    who="here", needs=(needs,), seconds=3600, background=True)


def fuzz_suites(logs):
    """tests/fuzz/seeds/<parser> holds inputs to begin with."""
    seconds = os.environ.get("FUZZ_SECONDS", "1")
    for name in stems("tests/fuzz/fuzz_*.c"):
        seeds = f"tests/fuzz/seeds/{name.removeprefix('fuzz_')}"
        corpus = f"build-fuzz/corpus/{name}"
        yield Suite(f"fuzz/{name}", [
            "sh", "-c", 'mkdir -p "$1"; shift; exec "$@"', "-", corpus, f"build-fuzz/tests/fuzz/{name}",
            f"-max_total_time={seconds}", "-timeout=30", "-rss_limit_mb=1024", "-verbosity=0",
            f"-artifact_prefix={logs}/{name}-", corpus, *([seeds] if os.path.isdir(seeds) else []),
        ], ("all", "fuzz"), who="here", needs=("build-fuzz",), background=True, seconds=1200 + int(seconds),
            sentence=f"{name} finds nothing in {seconds} seconds")


def other_suites():
    yield Suite("selftest", ["tests/selftest"], ("check", "test", "all"), has_user=False)
    yield Suite("golden", ["tests/golden/run"], ("check", "test", "all"))
    yield Suite("fresh-short", ["tests/fresh/run", "--short"], ("test", "all"), who="here", needs=(), background=True,
                seconds=3600)
    yield Suite("fresh", ["tests/fresh/run"], ("fresh",), who="here", needs=(), background=True, seconds=6 * 3600)
    # It downloads what the packages need, each time.
    yield Suite("packages", ["tests/fresh/run", "deb-build", "deb-install", "deb-cross"], ("all", "packages"), who="here",
                needs=(), background=True, seconds=3 * 3600)
    yield Suite("archive", ["tests/fresh/run", "dist-build", "dist-install"], ("all", "packages"), who="here", needs=(),
                background=True, seconds=3 * 3600)
    # It downloads the clients, once.
    yield Suite("mcp-clients", ["tests/mcp/run"], ("all",), who="here", seconds=3600)
    yield Suite("e2b-client", ["tests/e2b/run"], ("all",), who="here", seconds=3600)
    yield Suite("e2b-interpreter", ["tests/e2b/run", "interpreter.mjs"], ("all",), who="here", seconds=3600)
    yield Suite("judge0-client", ["tests/judge0/run"], ("all",), who="here", seconds=3600)
    yield Suite("piston-clients", ["tests/piston/run"], ("all",), who="here")
    # It downloads the agents each time, and removes them.
    yield Suite("agents", ["tests/agents/run"], ("all",), who="here", seconds=3600)
    for path in sorted(glob.glob("tests/slow/*")):
        yield Suite(f"slow/{os.path.basename(path)}", [path], ("slow",), who="here", seconds=3600)


# ---- Virtual machines ----------------------------------------------------------------------------

# What takes longest, in machines of its own.
HOMES = [f"e2e/{name}" for name in ("masks", "protect", "homes", "hostile-home", "planted")]
NET = ["e2e/net*", "e2e/broker*"]
SERVER = ["e2e/*server*", "e2e/*brigctl", "e2e/api-docs"]


def machine(name, groups, patterns, kernel="bpo", options=(), seconds=7200):
    command = ["tests/vm/run", "-k", kernel, "-t", str(seconds), *options, "--",
               "{stage}/tests/run", "--inside", *patterns]
    return Suite(name, command, groups, who="here", seconds=seconds + 60, background=True, stream=True)


def machine_suites():
    # What most users have: another kernel, and cgroup v2.
    yield machine("vm-cgroup", ("test", "all", "vm-quick"), ["--quick", "*cgroup"], seconds=2400)
    # And a systemd that limits a login.
    yield machine("vm-login", ("all", "vm-quick"), ["--quick", "login*"], options=["--systemd"], seconds=2400)
    yield machine("vm-jails", ("all", "vm-quick"), ["--quick", "e2e/*", "quota", "escape*", "unit/*"], seconds=3600)
    for kernel in os.environ.get("VM_KERNELS", "bpo").split():
        prefix = f"vm-{kernel}"
        others = [f"!{pattern}" for pattern in HOMES + NET + SERVER]
        for name, patterns in (("homes", HOMES), ("net", NET), ("server", SERVER),
                               ("e2e", ["e2e/*", "quota", *others]), ("escape", ["escape*", "unit/*"])):
            yield machine(f"{prefix}-{name}", ("vm",), patterns, kernel)
        yield machine(f"{prefix}-login", ("vm",), ["login*"], kernel, ["--systemd"], 3600)
    # Where there is one CPU, and many. Emulated, they share one CPU of this machine, so few suites run at a time.
    for cpus in ("1", "16"):
        options = ["-c", cpus, "-m", "3G"]
        yield machine(f"vm-cpus-{cpus}-unit", ("vm-cpus",), ["-j", "2", "unit/test_*"], options=options)
        yield machine(f"vm-cpus-{cpus}-jails", ("vm-cpus",), ["-j", "2", "--quick", "e2e/*limits", "escape*"],
                      options=options)


def table(logs):
    """Every suite, in the order in which it is best begun when nothing is known of its time."""
    suites = [*machine_suites(), *escape_suites(), *e2e_suites(), *binding_suites(), *other_suites(), *unit_suites(),
              *lint_suites(), *fuzz_suites(logs)]
    # Without root every suite runs as the caller: leave out the user's variants.
    return [suite for suite in suites if suite.who != "user" or os.geteuid() == 0]


# ---- Inside a virtual machine --------------------------------------------------------------------


def inside_units():
    quick = "test_cgroup test_job test_job_ends test_landlock test_path".split()
    for name in stems("tests/unit/test_*.c"):
        program = f"build/tests/unit/{name}"
        yield Suite(f"unit/{name}", [program], ("quick",) if name in quick else (), on_disk=True)
        if name in "test_cgroup test_landlock test_path test_probe test_seccomp".split() or name.startswith("test_job"):
            yield Suite(f"unit/user/{name}", [program], () if name == "test_seccomp" else ("quick",), who="member",
                        on_disk=True)
        if name.startswith("test_job"):
            yield Suite(f"unit/namespace/{name}", [program], (), who="namespace", on_disk=True)


def inside_e2e(quick):
    bats = ["bats", "--tap", "--timing"]
    limits = "tests/e2e/limits.bats"
    only = ["--filter-tags", "quick"] if quick else []
    yield Suite("e2e/limits", [*bats, *only, limits], ("quick",))
    yield Suite("quota", [*bats, *only, "tests/vm/quota.bats"], ("quick",))
    # Again as a user that owns a cgroup, without the tests that are about root.
    tags = "quick,!root" if quick else "!root"
    yield Suite("e2e/user/limits", [*bats, "--filter-tags", tags, limits], ("quick",), who="member")
    for name in stems("tests/e2e/*.bats"):
        if name != "limits":
            yield Suite(f"e2e/{name}", [*bats, f"tests/e2e/{name}.bats"], ())
    for path in sorted(filter(is_program, glob.glob("tests/e2e/*"))):
        name = os.path.basename(path)
        yield Suite(f"e2e/{name}", [path], ())
        if name.startswith(("brigctl", "server")):
            yield Suite(f"e2e/user/{name}", [path], (), who="member")


def inside_escapes(quick):
    command = ["tests/escape/run", "--off", "none"]
    yield Suite("escape", command, ())
    if quick:
        command += ["--view", "system", "--who"]
        yield Suite("escape-user", [*command, "user"], ("quick",))
        yield Suite("escape-mounts", [*command, "root", "grants and masks", "mounts and namespaces"], ("quick",))


def inside_logins(quick):
    """Where systemd runs the machine. These are run in its own namespaces and groups."""
    bats = ["bats", "--tap", "--timing"]
    yield Suite("login", [*bats, "tests/vm/login.bats"], ("quick",), who="plain")
    if os.path.exists("build/systemd/brigd.service"):
        yield Suite("login/service", [*bats, "tests/vm/service.bats"], (), who="plain")
    tags = "quick,!root" if quick else "!root"
    yield Suite("login/limits", ["runuser", "-l", "{user}", "-c",
                                 "export BUILD_DIR='{stage}/build' BRIG_SLOW={slow} BATS_TEST_TIMEOUT={timeout}; "
                                 f"exec bats --tap --timing --filter-tags '{tags}' '{{stage}}/tests/e2e/limits.bats'"],
                ("quick",), who="plain")


def table_inside(quick):
    """The suites of a virtual machine: with --quick those that test most of what differs between
    machines for their time; of limits.bats and quota.bats the tests with the tag `quick`."""
    if os.path.isdir("/run/systemd/system"):
        suites = [*inside_logins(quick), *(suite for suite in inside_units() if suite.name.endswith("test_cgroup"))]
    else:
        # The longest first.
        suites = [*inside_escapes(quick), *inside_e2e(quick), *inside_units()]
    return [suite for suite in suites if not quick or "quick" in suite.groups]


def missing_program(suite):
    """The first program of the command, if it is not installed."""
    program = suite.command[0]
    return None if "/" in program or shutil.which(program) else program
