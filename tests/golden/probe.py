# SPDX-License-Identifier: MIT
"""What a process sees inside of real jails, in the fixed world; without what differs between kernels."""

import os
import re
import resource
import subprocess

import plans
import world

LOOK = "/usr/bin/look"
STATUS = ("Uid", "Gid", "Groups", "NoNewPrivs", "Seccomp", "Seccomp_filters", "CapInh", "CapPrm", "CapEff", "CapBnd",
          "CapAmb")
FLAGS = ("ro", "rw", "nosuid", "nodev", "noexec")
OPTIONS = ("size", "nr_inodes", "mode")
LIMITS = {resource.RLIMIT_AS: "address space", resource.RLIMIT_CORE: "core", resource.RLIMIT_CPU: "cpu seconds",
          resource.RLIMIT_DATA: "data", resource.RLIMIT_FSIZE: "file size", resource.RLIMIT_NOFILE: "open files",
          resource.RLIMIT_NPROC: "processes"}

# The network door needs a broker, which the world does not have: tests/e2e/net.bats looks at that.
CASES = (
    ("casual", "casual, in a project", ["-m", "casual", "--net", "none"], "project"),
    ("casual", "casual, in a repository, with the host's network", ["-m", "casual", "--net", "host"], "repo"),
    ("casual", "casual, nothing granted, masks", ["-m", "casual", "--net", "none", "-D", "--mask", "notes.md"], ""),
    ("bare", "bare, in a project", ["-m", "bare", "--net", "none"], "project"),
    ("strict", "strict, in a project", ["-m", "strict", "--net", "none"], "project"),
    ("strict", "strict, with grants",
     ["-m", "strict", "--net", "host", "-r", "/srv/shared:/data", "-d", "/srv/shared/sub"], "project"),
    ("sealed", "sealed, nothing granted", ["-m", "sealed", "-D"], ""),
    ("sealed", "sealed, in a project, with a mask", ["-m", "sealed", "--mask", "./.env"], "project"),
    ("sealed", "sealed, limits",
     ["-m", "sealed", "-D", "--open-files", "64", "--file-size", "1M", "--address-space", "2G", "--cpu-time", "90",
      "--disk", "8M", "--disk-inodes", "100", "--on-unsupported", "warn"], ""),
    ("sealed", "sealed, nested sandboxes, another host name, a descriptor",
     ["-m", "sealed", "-D", "--allow-nested", "--hostname", "box", "--pass-fd", "5"], ""),
)


# ---- without what differs ----

def mount_line(line, device):
    """PATH: TYPE with its flags; of the world's own filesystem also which part of it."""
    before, after = line.split(" - ")
    _, _, major_minor, root, path, flags = before.split()[:6]
    kind, _, options = (after.split() + [""])[:3]
    if path.startswith("/proc/") and path != "/proc/sys":
        return None  # which of the others there are is the kernel's
    if path == "/dev/null":
        return "/dev/null: a device"  # of a devtmpfs, or in a container of a tmpfs
    text = f"{path}: " + (f"host {root}" if major_minor == device else kind.split(".")[0])
    if kind == "tmpfs" and major_minor != device:
        text += "".join(f" {option}" for option in sorted(options.split(",")) if option.split("=")[0] in OPTIONS)
    if kind == "fuse.fuse-overlayfs":
        text = f"{path}: overlay"
    return text + " " + " ".join(flag for flag in FLAGS if flag in flags.split(","))


def limit_line(line, outside):
    number, soft, hard = (int(word) for word in line.split())
    if number not in LIMITS:
        return None
    same = (soft, hard) == outside[number]
    return f"{LIMITS[number]} " + ("as outside" if same else f"{soft} {hard}")


def status_line(line, outside):
    name, value = line.split(":", 1)
    if name not in STATUS:
        return None
    if name == "Seccomp_filters":
        value = str(int(value) - outside)
    # Those of the caller: unmapped, and the user's own, which root's user of these tests does not have.
    words = [word for word in value.split() if name != "Groups" or word not in ("65534", "1000")]
    return f"{name} " + " ".join(words)


def namespace_line(line, outside):
    name, target = line.split()
    known = name in outside and not name.endswith("_for_children") and name != "time"
    return f"{name} {'shared' if outside[name] == target else 'own'}" if known else None


def descriptor_line(line):
    number, target = (line.split(None, 1) + [""])[:2]
    if not target:
        return None  # the directory that was read, and is closed
    return f"{number} " + re.sub(r"\[\d+\]", "", target)


def normal(text, around):
    """The sections of what the probe prints, as the golden files have them."""
    changes = {
        "descriptors": descriptor_line, "status": lambda line: status_line(line, around["filters"]),
        "limits": lambda line: limit_line(line, around["limits"]),
        "namespaces": lambda line: namespace_line(line, around["namespaces"]),
        "mounts": lambda line: mount_line(re.sub(r"run-[0-9a-f]{16}", "run-ID", line), around["device"]), "uid_map": lambda line: " ".join(line.split()),
        "gid_map": lambda line: " ".join(line.split()),
    }
    out = []
    for heading, lines in plans.sections_of(text):
        change = changes.get(heading, lambda line: line)
        kept = [line for line in (change(line.strip()) for line in lines) if line is not None]
        out.append(f"{heading}:\n" + "".join(f"  {line}\n" for line in sorted(kept)))
    return "".join(out)


# ---- in the world ----

def surroundings():
    """What the jails are compared with. Limits are lowered to what every machine has."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 4096))
    info = os.stat("/")
    with open("/proc/self/status", encoding="utf-8") as file:
        filters = re.search(r"^Seccomp_filters:\s*(\d+)", file.read(), re.M)
    return {"filters": int(filters[1]) if filters else 0,
            "limits": {number: tuple(value % 2**64 for value in resource.getrlimit(number)) for number in LIMITS},
            "namespaces": {name: os.readlink(f"/proc/self/ns/{name}") for name in os.listdir("/proc/self/ns")},
            "device": f"{os.major(info.st_dev)}:{os.minor(info.st_dev)}"}


def run(words, home, where):
    env = {"HOME": home, "PATH": "/usr/local/bin:/usr/bin", "TERM": "xterm", "LANG": "C.UTF-8",
           "SHELL": "/bin/bash", "USER": os.path.basename(home), "MY_TOKEN": "secret", "NO_COLOR": "1"}
    done = subprocess.run(words, cwd=os.path.join(home, where), env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, pass_fds=(5,), timeout=60, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def work(home):
    os.remove("/etc/subgid")  # the world's newgidmap is only a name
    os.remove("/usr/bin/git")  # as is its git: without one .git is read-only
    os.dup2(os.open("/dev/null", os.O_RDWR), 5)
    around = surroundings()
    results = []
    for mode, name, words, where in CASES:
        status, text, said = run([plans.BRIG] + words + ["--", LOOK], home, where)
        results.append((mode, name, words, status, normal(text, around) if status == 0 else said))
        run([plans.BRIG, "-u"], home, "")  # the next has its own mode, and nobody is left behind
    return results


def check_one(report, build, who, inside, real):
    programs = {}
    for path, place in ((plans.BRIG, "src/cli/brig"), (LOOK, "tests/probe/look")):
        with open(os.path.join(build, place), "rb") as file:
            programs[path] = file.read()
    results = world.World(inside, programs, lambda: work(plans.HOMES[who]), real).result()
    for mode in dict.fromkeys(row[0] for row in results):
        parts = []
        for _, name, words, status, text in (row for row in results if row[0] == mode):
            if status != 0 and ("brig doctor" in text or "id-mapped" in text or "overlay" in text):
                report.skip(f"probe {mode}-{who}", text.strip())
                parts = None
                break
            parts.append((name, f"=== {name}\n    brig {plans.shell_words(words)}\n"
                          + (f"fails with {status}\n" if status else "") + text + "\n"))
        if parts:
            report.check(f"probe {mode}-{who}", f"probe/{mode}-{who}.txt", parts)


def check(report, build):
    if not os.path.exists(os.path.join(build, "tests/probe/look")):
        report.skip("probe", "tests/probe/look was not built")
        return
    for who, inside in plans.IDS.items():
        real = who == "root"
        if real and os.geteuid() != 0:
            report.skip("probe of root", "needs root")
            continue
        try:
            check_one(report, build, who, inside, real)
        except world.Unavailable as error:
            report.skip(f"probe of {who}", str(error))
