# SPDX-License-Identifier: MIT
"""A policy: what a jail may see, reach and use, as plain data that is checked as it is built."""

from __future__ import annotations

import json
import os
from ctypes import byref, c_size_t, c_void_p
from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional, Sequence, Union

from ._library import BrigError, Identity, Inject, carried_broker, check, library, strings
from ._options import Path
from ._process import Owned

if TYPE_CHECKING:
    from typing_extensions import Literal

    from ._options import Mode, Network, OnUnsupported

    View = Literal["system", "host", "root", "empty"]
    Access = Literal["read-write", "read-only", "mask", "device", "protect"]
    PrivateAccess = Literal["read-write", "read-only"]
    Seccomp = Literal["dev", "code"]
    Terminal = Literal["auto", "none"]
    Layer = Literal["landlock", "seccomp", "caps", "namespaces", "nested"]

MODES = {"sealed": 0, "casual": 1, "bare": 2, "strict": 3}
VIEWS = {"system": 0, "host": 1, "root": 2, "empty": 3}
ACCESS = {"read-write": 0, "read-only": 1, "mask": 2, "device": 3, "protect": 4}
NETWORKS = {"none": 0, "host": 1, "allow": 2, "open": 3, "loopback": 4}
CALL_NETWORKS = {"none": 0, "host": 1}  # a function has no door
SECCOMP = {"dev": 0, "code": 1}
TERMINALS = {"auto": 0, "none": 1}
ON_UNSUPPORTED = {"raise": 0, "warn": 1, "ignore": 2}
LAYERS = {"landlock": 1, "seccomp": 2, "caps": 4, "namespaces": 8, "nested": 16}
LIMITS = {
    "wall_ms": 0,
    "cpu_ms": 1,
    "grace_ms": 2,
    "address_space_bytes": 3,
    "file_size_bytes": 4,
    "open_files": 5,
    "processes": 6,
    "output_bytes": 7,
    "disk_bytes": 8,
    "disk_inodes": 9,
    "memory_bytes": 10,
    "cpu_percent": 11,
    "io_read_bytes_per_second": 12,
    "io_write_bytes_per_second": 13,
    "inotify_watches": 14,
    "net_connections": 15,
    "net_bytes": 16,
    "net_idle_ms": 17,
}
_GRANT_OPTIONAL, _GRANT_CREATE = 1, 2
_ID_CHOOSE = 0xFFFFFFFF


def word(table: Mapping[str, int], name: str, value: str) -> int:
    """The number of a word, or a ValueError that lists all of them."""
    if value not in table:
        raise ValueError(f"{name}={value!r} is not one of {', '.join(map(repr, table))}")
    return table[value]


def text_of(name: str, value: Any) -> bytes:
    """A text as C wants it."""
    encoded_value = os.fsencode(value)
    if b"\0" in encoded_value:
        raise ValueError(f"{name}={value!r} has a NUL byte in it")
    return encoded_value


def encoded(path: Any) -> bytes:
    """An absolute path as C wants it."""
    return os.path.abspath(text_of("path", path))


def _optional(name: str, value: Optional[str]) -> Optional[bytes]:
    return None if value is None else text_of(name, value)


def _list(name: str, values: Optional[Sequence[str]]) -> Any:
    if isinstance(values, (str, bytes)):
        raise TypeError(f"{name} is a list: {name}=[{values!r}]")
    return None if values is None else strings(values)


def policy_given(given: Optional[Policy]) -> Optional[Policy]:
    """The option `policy`; the name of a mode is a common mistake."""
    if given is not None and not isinstance(given, Policy):
        raise TypeError(f"policy={given!r} is not a brig.Policy")
    return given


class Policy(Owned):
    """What a jail may do: a mode, and what differs from it. Every method that changes the policy
    returns it, so that calls can be chained. A policy that no thread changes may be used by several.

    >>> policy = brig.Policy("sealed").grant("/srv/data", "read-only").limit(processes=64)

    Modes: 'sealed' (system directories, grants, no network, the syscall profile 'code', limits),
    'casual' (the host read-only, network 'open'), 'bare' (the same with an empty home) and 'strict'
    (system directories and grants alone, network 'open').
    """

    _free = "brig_policy_free"
    _kind = "policy"

    def __init__(self, mode: Mode = "sealed") -> None:
        super().__init__(library().brig_policy_new(word(MODES, "mode", mode)))
        # What was said with limit() and on_unsupported(): defaults of other options do not replace it.
        self._said: Dict[str, Any] = {}
        if not self._handle:
            raise MemoryError("no memory for a policy")
        broker = carried_broker()
        if broker is not None:
            self.broker(broker)

    def copy(self) -> Policy:
        """The same policy once more."""
        copied = Policy.__new__(Policy)
        Owned.__init__(copied, library().brig_policy_copy(self._handle))
        copied._said = dict(self._said)
        if not copied._handle:
            raise MemoryError("no memory for a policy")
        return copied

    def _set(self, function: str, *arguments: Any) -> Policy:
        err = BrigError()
        check(getattr(library(), function)(self._handle, *arguments, byref(err)), err)
        return self

    # ---- Files -----------------------------------------------------------------------------------

    def view(self, view: View, root: Optional[Path] = None) -> Policy:
        """What of the filesystem is there before grants: 'system', 'host', 'root' or 'empty'. `root`
        is the directory of 'root'."""
        path = None if root is None else encoded(root)
        return self._set("brig_policy_view", word(VIEWS, "view", view), path)

    def grant(
        self,
        path: Path,
        access: Access = "read-write",
        dest: Optional[Path] = None,
        *,
        optional: bool = False,
        create: bool = False,
    ) -> Policy:
        """Grants a path, in the jail at `dest` if it is given: 'read-write', 'read-only', 'mask'
        (hidden), 'device' or 'protect' (inside a read-write grant: not to be written or replaced).
        With optional=True it may be missing; with create=True a missing directory is made."""
        flags = (_GRANT_OPTIONAL if optional else 0) | (_GRANT_CREATE if create else 0)
        return self._set(
            "brig_policy_grant",
            word(ACCESS, "access", access),
            encoded(path),
            None if dest is None else encoded(dest),
            flags,
        )

    def ungrant(self, dest: Path) -> int:
        """Takes back every earlier grant for exactly this destination; says how many there were."""
        removed = c_size_t()
        self._set("brig_policy_ungrant", encoded(dest), byref(removed))
        return removed.value

    def private(self, dest: Path, access: PrivateAccess = "read-write") -> Policy:
        """A directory of the jail's own: in memory, gone with the jail. 'read-only' for one that holds
        what file() puts there and nothing else."""
        return self._set("brig_policy_private", word(ACCESS, "access", access), encoded(dest))

    def file(self, dest: Path, content: Union[bytes, str], mode: int = 0o644) -> Policy:
        """A file in a private directory, in /tmp, /run or the home."""
        data = content.encode() if isinstance(content, str) else bytes(content)
        return self._set("brig_policy_file", encoded(dest), data, len(data), mode)

    def keep(self, dest: Path) -> Policy:
        """Keeps the directory that private() made at dest beyond the end of the command, for
        Job.kept_file(). One in each policy."""
        return self._set("brig_policy_keep", encoded(dest))

    def workdir(self, path: Path) -> Policy:
        """The directory in which the command starts, as the jail sees it."""
        return self._set("brig_policy_workdir", encoded(path))

    # ---- Network ---------------------------------------------------------------------------------

    def network(self, network: Network) -> Policy:
        """'none', 'loopback', 'host' (the caller's), 'allow' (what allow() names) or 'open' (all that
        is public)."""
        return self._set("brig_policy_network", word(NETWORKS, "network", network))

    def allow(self, *rules: str) -> Policy:
        """Destinations of the networks 'allow' and 'open', which other networks ignore: 'example.com',
        '*.example.com:443', '@npm', 'host:5432' for a service of the host's loopback."""
        for rule in rules:
            self._set("brig_policy_allow", text_of("rule", rule))
        return self

    def deny(self, *rules: str) -> Policy:
        """Destinations that are refused, whatever else allows them."""
        for rule in rules:
            self._set("brig_policy_deny", text_of("rule", rule))
        return self

    def publish(self, *ports: str) -> Policy:
        """Makes ports of the jail's loopback reachable from the host: '[ADDRESS:]HOSTPORT:PORT'."""
        for port in ports:
            self._set("brig_policy_publish", text_of("port", port))
        return self

    def inject(
        self,
        name: str,
        *,
        header: str,
        value: str,
        upstream: Optional[str] = None,
        variable: Optional[str] = None,
        suffix: Optional[str] = None,
        ca: Optional[Path] = None,
        methods: Optional[Sequence[str]] = None,
        paths: Optional[Sequence[str]] = None,
        strip: Optional[Sequence[str]] = None,
        site: Optional[str] = None,
    ) -> Policy:
        """A credential that never enters the jail: inside, `variable` names an address of plain HTTP;
        outside, `header` with `value` is added to each request to the host `name`, which goes on by
        TLS to `upstream` (https://NAME). `suffix` is put behind the address in the variable, `ca` is
        a file of certificates to trust; `methods` and `paths` (what they begin with) are the only ones
        allowed, and the headers in `strip` are dropped. `site` is a name that ends with '.localhost':
        the credential is at http://SITE as well, for programs that cannot be told a port."""
        native = Inject()
        native.name, native.header = text_of("name", name), text_of("header", header)
        native.value, native.upstream = text_of("value", value), _optional("upstream", upstream)
        native.variable, native.suffix = _optional("variable", variable), _optional("suffix", suffix)
        native.ca = None if ca is None else encoded(ca)
        native.methods, native.paths = _list("methods", methods), _list("paths", paths)
        native.strip, native.site = _list("strip", strip), _optional("site", site)
        return self._set("brig_policy_inject", byref(native))

    def proxy_env(self, on: bool = True) -> Policy:
        """Sets HTTP_PROXY and its kind in the jail to the proxies that a network with rules has."""
        return self._set("brig_policy_proxy_env", on)

    def net_proxy(
        self, proxy: str, secret: Optional[str] = None, no_proxy: Optional[Sequence[str]] = None
    ) -> Policy:
        """The host's own HTTP proxy, 'HOST:PORT', through which connections of the jail are made;
        `secret` is its Proxy-Authorization, `no_proxy` the ends of names to go without it."""
        rest = (_optional("secret", secret), _list("no_proxy", no_proxy))
        return self._set("brig_policy_net_proxy", text_of("proxy", proxy), *rest)

    def broker(self, path: Path) -> Policy:
        """The program brig-broker; by default the one that was installed with the library."""
        return self._set("brig_policy_broker", encoded(path))

    # ---- Limits and confinement ------------------------------------------------------------------

    def limit(
        self,
        *,
        wall_ms: Optional[int] = None,
        cpu_ms: Optional[int] = None,
        grace_ms: Optional[int] = None,
        address_space_bytes: Optional[int] = None,
        file_size_bytes: Optional[int] = None,
        open_files: Optional[int] = None,
        processes: Optional[int] = None,
        output_bytes: Optional[int] = None,
        disk_bytes: Optional[int] = None,
        disk_inodes: Optional[int] = None,
        memory_bytes: Optional[int] = None,
        cpu_percent: Optional[int] = None,
        io_read_bytes_per_second: Optional[int] = None,
        io_write_bytes_per_second: Optional[int] = None,
        inotify_watches: Optional[int] = None,
        net_connections: Optional[int] = None,
        net_bytes: Optional[int] = None,
        net_idle_ms: Optional[int] = None,
    ) -> Policy:
        """Sets limits; 0 is no limit, None leaves it as it is. grace_ms is the time between TERM and
        KILL; cpu_ms, processes, memory_bytes, cpu_percent and io_… are of the whole jail,
        address_space_bytes and open_files of each process; disk_… are of the private directories."""
        given = {name: value for name, value in locals().items() if name in LIMITS and value is not None}
        for name, value in given.items():
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise ValueError(f"{name}={value!r} is not a limit: give a whole number from 0")
            self._set("brig_policy_limit", LIMITS[name], value)
        self._said.update(given)
        return self

    def seccomp(self, profile: Seccomp) -> Policy:
        """The syscall profile: 'code' (deny by default) or 'dev' (a deny-list, for build tools)."""
        return self._set("brig_policy_seccomp", word(SECCOMP, "profile", profile))

    def allow_nested(self, allow: bool = True) -> Policy:
        """Lets programs with a sandbox of their own make user namespaces inside."""
        return self._set("brig_policy_allow_nested", allow)

    def unix_sockets(self, allow: bool = True) -> Policy:
        """Lets functions without namespaces and without a network make UNIX sockets."""
        return self._set("brig_policy_unix_sockets", allow)

    def disable(self, *layers: Layer) -> Policy:
        """Switches layers off, to find out which one stops a program: 'landlock', 'seccomp', 'caps',
        'namespaces', 'nested'. The result lists them as not enforced."""
        bits = sum(LAYERS[name] for name in {*layers} if word(LAYERS, "layer", name))
        return self._set("brig_policy_disable", bits)

    def on_unsupported(self, what: OnUnsupported) -> Policy:
        """What follows when this system cannot enforce something: 'raise', 'warn' or 'ignore'."""
        number = word(ON_UNSUPPORTED, "on_unsupported", what)
        self._said["on_unsupported"] = what
        return self._set("brig_policy_on_unsupported", number)

    def trace(self, on: bool = True) -> Policy:
        """Lists refused system calls in the result's details, as "denials"."""
        return self._set("brig_policy_trace", on)

    # ---- What the jail is ------------------------------------------------------------------------

    def identity(
        self,
        *,
        host_uid: Optional[int] = None,
        host_gid: Optional[int] = None,
        inside_uid: Optional[int] = None,
        inside_gid: Optional[int] = None,
        name: Optional[str] = None,
        home: Optional[Path] = None,
        shell: Optional[Path] = None,
    ) -> Policy:
        """Who the jail is, on the host and inside; the library chooses what is not given."""
        native = Identity()
        for field, value in zip(
            ("host_uid", "host_gid", "inside_uid", "inside_gid"),
            (host_uid, host_gid, inside_uid, inside_gid),
        ):
            setattr(native, field, _ID_CHOOSE if value is None else _id(field, value))
        native.name = _optional("name", name)
        native.home = None if home is None else encoded(home)
        native.shell = None if shell is None else encoded(shell)
        return self._set("brig_policy_identity", byref(native))

    def hostname(self, name: str) -> Policy:
        """The host name inside ('brig')."""
        return self._set("brig_policy_hostname", text_of("name", name))

    def terminal(self, terminal: Terminal) -> Policy:
        """What becomes of a terminal of the caller's: 'auto' (the jail gets one of its own in its
        place) or 'none' (/dev/null)."""
        return self._set("brig_policy_terminal", word(TERMINALS, "terminal", terminal))

    def setenv(
        self, variables: Optional[Mapping[str, Optional[str]]] = None, /, **more: Optional[str]
    ) -> Policy:
        """Sets variables inside; None as a value is the caller's own, past earlier unsetenv()."""
        for name, value in {**(variables or {}), **more}.items():
            data = None if value is None else text_of(name, value)
            self._set("brig_policy_setenv", text_of("name", name), data)
        return self

    def host_env(self, on: bool = True) -> Policy:
        """Says that the variables a command gets are the host's: those that the mode does not keep are
        left out. Without it they are refused. run() and start() say so unless env= is given."""
        return self._set("brig_policy_host_env", on)

    def unsetenv(self, *patterns: str) -> Policy:
        """Removes variables whose names match; `*` stands for any characters."""
        for pattern in patterns:
            self._set("brig_policy_unsetenv", text_of("pattern", pattern))
        return self

    # ---- Reading it ------------------------------------------------------------------------------

    def origin(self, origin: str) -> Policy:
        """Where the rules added from now on come from; shown by explain()."""
        return self._set("brig_policy_origin", text_of("origin", origin))

    def explain(self) -> str:
        """The effective policy, for people."""
        return self._explain(0)

    def to_dict(self) -> Dict[str, Any]:
        """The effective policy as plain data."""
        found: Dict[str, Any] = json.loads(self._explain(1))
        return found

    def _explain(self, as_json: int) -> str:
        text = c_void_p()
        self._set("brig_policy_explain", as_json, byref(text))
        return library().take_text(text)


def _id(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _ID_CHOOSE:
        raise ValueError(f"{name}={value!r} is not a user or group id")
    return value


__all__ = ["LIMITS", "Policy"]
