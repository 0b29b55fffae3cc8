# SPDX-License-Identifier: MIT
"""The policies whose plans are golden. A case is (name, words, where, more): the words of the command
line before the command, the working directory relative to the home, and what else is different:
    env      variables besides the usual
    command  the command and its words (default: true)
    facts    {name: values} in place of those of the user or of root
    hide     a file of the world that is not there for this case
    modes    only in these (default: all four); who: only "user" or "root"
"""

MODES = ("casual", "bare", "strict", "sealed")
WHO = ("user", "root")

NETS = (
    ("default", []),
    ("none", ["--net", "none"]),
    ("open", ["--net", "open"]),
    ("host", ["--net", "host"]),
    ("learn", ["--net", "learn"]),
    ("ask", ["--net", "ask", "--allow", "good.example"]),
    ("allow", ["--allow", "example.com", "--allow", "*.example.org:443,8443/tls"]),
)
PLACES = (("nothing", ["-D"], ""), ("project", [], "project"), ("repository", [], "repo"))


def products():
    for net, words in NETS:
        for place, more, where in PLACES:
            yield (f"{place}, network {net}", more + words, where, {})


GRANTS = (
    ("a directory elsewhere", ["-d", "/srv/shared"]),
    ("a directory elsewhere, read-only", ["-r", "/srv/shared"]),
    ("a directory in the home", ["-d", "~/Documents"]),
    ("a file in the home, read-only", ["-r", "~/notes.md"]),
    ("a file, read-write", ["-d", "/srv/shared/data.txt"]),
    ("a directory at another path", ["-d", "/srv/shared:/data"]),
    ("a file at another path", ["-r", "~/notes.md:/data/notes"]),
    ("a directory twice", ["-d", "/srv/shared", "-d", "/srv/shared:/again"]),
    ("the project at another path, too", ["-d", ".:/work"]),
    ("a read-only part of the project", ["-r", "sub"]),
    ("the project, reviewed", ["-R"]),
    ("a directory elsewhere, reviewed", ["--review-dir", "/srv/shared"]),
    ("a part of the reviewed project, not reviewed", ["-R", "-d", "sub"]),
    ("the reviewed project by another path", ["--review-dir", "sub", "-d", ".:/work"]),
    ("a writable part of a read-only directory", ["-r", "/srv/shared", "-d", "/srv/shared/sub"]),
    ("grants below each other", ["-r", "/srv", "-d", "/srv/shared", "-r", "/srv/shared/sub"]),
    ("below the jail's own directories", ["-d", "/srv/shared:/tmp/shared", "-r", "/srv/shared:/run/shared"]),
    ("below /var/tmp and /dev/shm", ["-d", "/srv/shared:/var/tmp/a", "-d", "/srv/shared:/dev/shm/b"]),
    ("the host's /tmp", ["-d", "/tmp"]),
    ("the host's /run", ["-r", "/run"]),
    ("the host's /dev/shm", ["-d", "/dev/shm"]),
    ("a directory by a link", ["-d", "/srv/link"]),
    ("a directory of the home by a link", ["-d", "~/link-to-project"]),
    ("a link below the project", ["-d", "out"]),
    ("a name with a colon", ["-r", r"~/with\:colon:/data"]),
    ("the whole home", ["-d", "~"]),
    ("the whole home, read-only", ["-r", "~"]),
    ("/etc", ["-r", "/etc"]),
    ("the host's /proc", ["-r", "/proc/1"]),
    ("brig's own directory", ["-d", "~/.config/brig"]),
    ("a directory above brig's own", ["-d", "~/.config"]),
    ("something missing", ["-d", "/srv/missing"]),
    ("something missing, optional", ["--dir?", "/srv/missing", "--rdir?", "~/missing"]),
    ("something missing, to be made", ["--dir!", "~/made/by/brig"]),
    ("something missing, to be made elsewhere", ["--dir!", "/srv/made"]),
    ("a grant that is taken back", ["-d", "/srv/shared", "-x", "/srv/shared"]),
    ("the working directory taken back", ["-x", "."]),
    ("the working directory read-only", ["-r", "."]),
    ("a device", ["--device", "/dev/dri"]),
    ("a single device, and one that is missing", ["--device", "/dev/kvm", "--device?", "/dev/fuse"]),
    ("a socket", ["-d", "/run/docker.sock"]),
    ("a repository without a working tree", ["-d", "~/bare.git"]),
)

MASKS = (
    ("a file of the project", ["--mask", "./.env"]),
    ("a directory of the project", ["--mask", "./data"]),
    ("deep in the project", ["--mask", "./sub/deep/token"]),
    ("a link in the project", ["--mask", "./link.env"]),
    ("a file of the home", ["--mask", "notes.md"]),
    ("a directory of the home", ["--mask", "Documents"]),
    ("a pattern in the home", ["--mask", "Documents/*.txt"]),
    ("a pattern for several directories", ["--mask", "*/secret.txt"]),
    ("a file of the project, by the home", ["--mask", "project/secret.txt"]),
    ("a pattern in the project, by the home", ["--mask", "project/data/*.key"]),
    ("a pattern that is spelt as a path", ["--mask", "./data/*.key"]),
    ("an absolute path", ["--mask", "/opt/tool"]),
    ("an absolute path in a grant", ["-d", "/srv/shared", "--mask", "/srv/shared/sub"]),
    ("in a grant at another path", ["-d", "/srv/shared:/data", "--mask", "/srv/shared/data.txt"]),
    ("in the project at another path", ["-d", ".:/work", "--mask", "./.env"]),
    ("below a link of the home", ["--mask", ".docker/config.json"]),
    ("a link of the home", ["--mask", ".docker"]),
    ("what a link leads to", ["-d", "~/dot", "--mask", ".docker"]),
    ("something missing", ["--mask", "./missing"]),
    ("something missing, optional", ["--mask?", "./missing", "--mask?", "missing-at-home"]),
    ("a default mask taken back", ["--unmask", ".ssh"]),
    ("a part of a default mask shown", ["--unmask", ".ssh/known_hosts"]),
    ("a part of a mask shown", ["--mask", "Documents", "--unmask", "Documents/letter.txt"]),
    ("hidden, shown and hidden again", ["--mask", "Documents", "--unmask", "Documents", "--mask", "Documents"]),
    ("a whole directory that is granted", ["-d", "~/Documents", "--mask", "Documents"]),
    ("a parent of the project", ["--mask", "/home"]),
    ("without defaults", ["--no-defaults"]),
    ("secrets inside of a grant", ["-r", "~/.config"]),
    ("a grant of what is masked", ["-r", "~/.ssh"]),
    ("with a tilde that no shell has replaced", ["--mask", "~/notes.md"]),
)

PROTECTION = (
    ("none", ["--no-protect"], "repo"),
    ("not of git's hooks", ["--unprotect", ".git/hooks"], "repo"),
    ("not of git", ["--unprotect", ".git"], "repo"),
    ("not of an editor", ["--unprotect", ".vscode"], "repo"),
    ("of a worktree", [], "wt"),
    ("of a repository that is not ours", [], "stranger"),
    ("of hooks elsewhere", [], "hooked"),
    ("of a repository granted by another path", ["-d", ".:/work"], "repo"),
    ("of a repository that is granted besides", ["-d", "../repo"], "project"),
    ("in a subdirectory of a repository", [], "repo/src"),
    ("in a repository without a working tree", [], "bare.git"),
    ("in the home itself", [], ""),
    ("in a project with a file of its own", [], "configured"),
)

VIEWS = (
    ("the system", ["--view", "system"]),
    ("the host", ["--view", "host"]),
    ("empty", ["--view", "empty"]),
    ("a root of another system", ["--root", "/srv/other-system"]),
)

NETWORK = (
    ("an address and a range", ["--allow", "192.0.2.7:22", "--allow", "10.0.0.0/8:5432", "--allow", "[2001:db8::/32]:443"]),
    ("a service of the host", ["--allow", "host:3000"]),
    ("presets", ["--net", "allow", "--allow", "@pypi", "--allow", "@npm"]),
    ("what is denied", ["--net", "open", "--deny", "ads.example.com", "--deny", "203.0.113.0/24"]),
    ("every name", ["--net", "allow", "--allow", "*"]),
    ("a port for all", ["--net", "allow", "--allow", "example.com:8000-8999"]),
    ("published ports", ["--net", "open", "-p", "8080:80", "-p", "0.0.0.0:9090:90"]),
    ("credentials", ["--net", "open", "--inject", "@anthropic", "--inject",
                     "api.example.com Authorization=bearer:env:TOKEN url=EXAMPLE_URL methods=GET,POST path=/v1"]),
    ("variables for a proxy", ["--net", "open", "--proxy-env"]),
    ("a proxy of the host", ["--net", "open"]),
    ("loopback only", ["--net", "loopback"]),
    ("limits", ["--net", "open", "--net-connections", "10", "--net-bytes", "1M", "--net-idle", "30"]),
)
NETWORK_ENV = {"credentials": {"ANTHROPIC_API_KEY": "sk-test", "TOKEN": "t0ken"},
               "a proxy of the host": {"HTTPS_PROXY": "http://proxy.example.com:3128"}}

LIMITS = (
    ("of time", ["--timeout", "30", "--cpu-time", "1.5s", "--grace", "1"]),
    ("of memory, processors and processes", ["--memory", "1G", "--cpu", "150%", "--pids", "100"]),
    ("of disks", ["--io-read", "10M", "--io-write", "5M", "--disk", "100M", "--disk-inodes", "1000"]),
    ("of each process", ["--address-space", "2G", "--file-size", "1M", "--open-files", "64"]),
    ("of output", ["--output", "64k"]),
    ("of watches", ["--inotify-watches", "128"]),
    ("that are lifted", ["--memory", "none", "--pids", "none", "--cpu", "none", "--disk", "none"]),
)
NO_GROUP = {"cgroup": "none", "cgroup-at-hand": "no"}

WALLS = (
    ("nested sandboxes", ["--allow-nested"]),
    ("traced denials", ["--trace-denials"]),
    ("system calls of code", ["--seccomp", "code"]),
    ("system calls of dev", ["--seccomp", "dev"]),
    ("without Landlock", ["--disable", "landlock"]),
    ("without a filter", ["--disable", "seccomp"]),
    ("with capabilities", ["--disable", "caps"]),
    ("without namespaces", ["--disable", "namespaces", "-D"]),
    ("without the limit on nested namespaces", ["--disable", "nested"]),
)

ENVIRONMENT = (
    ("set, passed on and taken away", ["--setenv", "A=1", "--setenv", "MY_TOKEN", "--unsetenv", "EDITOR"]),
    ("patterns", ["--unsetenv", "COMPANY_*", "--setenv", "COMPANY_NAME"]),
    ("a filter taken back", ["--setenv", "*_TOKEN"]),
    ("the working directory", ["--workdir", "/tmp"]),
    ("the host name", ["--hostname", "box"]),
    ("a descriptor", ["--pass-fd", "5"]),
    ("no terminal", ["--no-terminal"]),
    ("a line of shell", ["--command", "exec \"$0\" \"$@\""]),
    ("a script", ["--script", "/etc/conf-a/.brigrc"]),
    ("a jail with a name", ["-j", "work"]),
    ("another storage", ["--storage", "/srv/jails"]),
)
SECRETS = {"MY_TOKEN": "t", "COMPANY_NAME": "c", "COMPANY_ID": "i", "EDITOR": "vi", "DATABASE_URL": "pg://u:p@h/d"}

DESKTOP = (
    ("X11", ["--x11"]), ("Wayland", ["--wayland"]), ("sound", ["--audio"]), ("the agent of SSH", ["--ssh-agent"]),
    ("the session bus", ["--dbus"]),
)
DESKTOP_ENV = {"XDG_RUNTIME_DIR": "/run/user/1000", "WAYLAND_DISPLAY": "wayland-0", "DISPLAY": ":0",
               "SSH_AUTH_SOCK": "/run/user/1000/agent.sock",
               "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/user/1000/bus"}

HOSTS = (
    ("Landlock ABI 0", {"landlock": "0"}), ("Landlock ABI 1", {"landlock": "1"}),
    ("Landlock ABI 3", {"landlock": "3"}), ("Landlock ABI 5", {"landlock": "5"}),
    ("Landlock ABI 9", {"landlock": "9"}), ("Landlock ABI 10", {"landlock": "10"}),
    ("no cgroup", NO_GROUP), ("a cgroup at hand", {"cgroup-at-hand": "yes"}),
    ("no groups", {"groups": "none"}), ("a smaller /proc", {"proc": "sys fs"}),
    ("few open files", {"files": "256 256"}),
)


def shapes():
    for name, words in GRANTS:
        yield (f"grant: {name}", words, "project", {})
    for name, words in MASKS:
        yield (f"mask: {name}", words, "project", {})
    for name, words, where in PROTECTION:
        yield (f"protection: {name}", words, where, {})
    for name, words in VIEWS:
        yield (f"view: {name}", words, "project", {})
    for name, words in NETWORK:
        yield (f"network: {name}", words + ["-D"], "", {"env": NETWORK_ENV.get(name, {})})
    for name, words in LIMITS:
        yield (f"limits: {name}", words, "project", {})
        yield (f"limits without a cgroup: {name}", words, "project", {"facts": NO_GROUP})
        yield (f"limits without a cgroup, warned of: {name}", words + ["--on-unsupported", "warn"], "project",
               {"facts": NO_GROUP, "modes": ("sealed",)})
    for name, words in WALLS:
        yield (f"walls: {name}", words, "project", {})
    for name, words in ENVIRONMENT:
        yield (f"environment: {name}", words, "project", {"env": SECRETS})
    for name, words in DESKTOP:
        yield (f"desktop: {name}", words, "project", {"env": DESKTOP_ENV, "modes": ("casual", "strict")})
    for name, facts in HOSTS:
        yield (f"host: {name}", [], "project", {"facts": facts})
        yield (f"host: {name}, with the host's network", ["--net", "host"], "project",
               {"facts": facts, "modes": ("casual",)})
    for what in ("fail", "warn", "ignore"):
        yield (f"host: no namespaces, {what}", ["--on-unsupported", what], "project",
               {"facts": {"namespaces": "no"}, "modes": ("casual", "sealed")})
        yield (f"host: no namespaces, {what}, nothing", ["--on-unsupported", what, "-D"], "",
               {"facts": {"namespaces": "no"}, "modes": ("sealed",)})
        yield (f"host: neither namespaces nor Landlock, {what}", ["--on-unsupported", what, "-D"], "",
               {"facts": {"namespaces": "no", "landlock": "0"}, "modes": ("sealed",)})
    yield ("host: groups that cannot be dropped", [], "project", {"hide": "/etc/subgid", "who": "user"})
    yield ("host: no resolv.conf", [], "project", {"hide": "/etc/resolv.conf"})
    yield ("host: no nsswitch.conf", [], "project", {"hide": "/etc/nsswitch.conf"})
    yield ("command: none, so the shell", [], "project", {"command": []})
    yield ("command: a path and words", [], "project", {"command": ["./main", "-d", "two words", "--", "\t"]})
    yield ("command: without a PATH", [], "project", {"env": {"PATH": None}})


def configurations():
    for name, directory in (("a", "/etc/conf-a"), ("b", "/etc/conf-b"), ("c", "/etc/conf-c")):
        more = {"env": {"BRIG_CONFIG_DIR": directory, **SECRETS}}
        yield (f"configuration {name}", [], "project", more)
        yield (f"configuration {name}, and the command line", ["--unmask", "Documents", "--memory", "4G"], "repo", more)
        yield (f"configuration {name}, of the command", [], "project", {**more, "command": ["claude"]})


def behind_sudo():
    """Root for ann: what root grants is looked at with her rights."""
    env = {"SUDO_UID": "1000", "SUDO_GID": "1000"}
    for name, words, where in (("nothing", ["-D"], ""), ("project", [], "project"), ("repository", [], "repo"),
                               ("a grant elsewhere", ["-d", "/srv/shared"], "project"),
                               ("masks", ["--mask", "./.env", "--mask", "Documents"], "project"),
                               ("no network", ["--net", "none"], "project")):
        yield (f"sudo: {name}", words, where, {"env": env, "who": "root", "home": "/home/ann"})


# Which shapes are worth it: where a mode is made of the same parts as another, the parts that differ.
SHAPES_OF = {
    ("casual", "user"): ("",), ("strict", "user"): ("",), ("sealed", "user"): ("",),
    ("bare", "user"): ("grant", "mask", "protection", "view"),
    ("casual", "root"): ("grant", "mask", "protection", "view", "host", "walls", "sudo"),
    ("strict", "root"): ("grant", "mask", "protection", "sudo"),
    ("bare", "root"): ("view", "sudo"), ("sealed", "root"): ("grant", "view", "limits", "host", "sudo"),
}


def all_cases():
    """(mode, who, case): those of one mode and one user are in a file together."""
    for mode in MODES:
        for who in WHO:
            kinds = SHAPES_OF[(mode, who)]
            rows = list(products())
            rows += [case for case in list(shapes()) + list(behind_sudo()) if case[0].startswith(kinds)]
            for case in rows:
                more = case[3]
                if mode in more.get("modes", MODES) and more.get("who", who) == who:
                    yield (mode, who, case)
    for who in WHO:
        for case in [("base", [], "", {})] + list(configurations()):
            yield (None, who, case)
