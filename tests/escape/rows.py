# SPDX-License-Identifier: MIT
"""What a row of the table is made of. The table itself is in table.py; README.md explains how to add
to it."""

from dataclasses import dataclass, field

LAYERS = ("landlock", "seccomp", "caps", "namespaces", "nested")


@dataclass(frozen=True)
class Twin:
    """Where the same action is allowed.

    kind     outside    as the jail's own host user, with no jail
             owner      the same as whoever starts the jail
             root       as the machine's root, with no jail
             userns     as root of a user namespace of its own (see main.c)
             rawuserns  in a user namespace without id maps
             jail       in a jail, with `options` in place of the row's
             term       outside; told to end by SIGTERM once it is ready, then looked at
             linger     outside; looked at after a while
             caller     outside; the helper that `arguments` names in place of brig, with a caller
    """

    kind: str
    options: tuple = ()
    arguments: tuple = ()
    effect: str = ""  # another effect to look for than the row's


OUTSIDE = Twin("outside")
ROOT = Twin("root")
USERNS = Twin("userns")


@dataclass(frozen=True)
class Row:
    """One attempt: the name is the probe's.

    effect   how a breach shows; see effects.py:
             leak         one of the harness's secrets is in the output
             output:TEXT  the text is a line of the output
             answer       the probe says so itself: nothing of it can be seen on the host
             NAME         the function of that name looks at the host
    open     layers without which the attempt may get through; "host:namespaces" only in that view,
             "user:namespaces" only as that user, "namespaces<6" only below that Landlock ABI
    """

    name: str
    what: str
    effect: str = "answer"
    twin: Twin = OUTSIDE
    options: tuple = ()
    open: tuple = ()
    views: tuple = ()  # none: all
    who: tuple = ()  # none: all
    whole: bool = False  # only with every layer on: slow, or about something layers are no part of
    statuses: tuple = (0, 1)  # how the run may end; none: however
    during: str = ""  # a function of effects.py called when the probe is ready
    terminal: bool = False  # standard error is a terminal
    controlling: bool = False  # and it is the controlling one
    caller: bool = False  # brig is started by a process of ours, in a group with it
    stdin: str = ""  # standard input: "victim" (a file outside, for reading) or "outside" (a directory)
    leaks: bool = False  # file descriptors are left open for brig to inherit
    needs: tuple = ()  # what must be there on the host; see World.lacks()
    theme: str = field(default="", compare=False)

    def can_enter(self):
        """Whether it makes sense in a jail that runs already: not if it is about what a run is given, or
        about how it ends."""
        return not self.caller and not self.during and not self.options
