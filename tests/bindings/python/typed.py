# SPDX-License-Identifier: MIT
"""A program for the type checker: a line that ends with `# E` must be an error, all others none. What
`reveal_type` says is written behind it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import brig


@dataclass
class Point:
    x: int


def make(x: int) -> Point:
    return Point(x)


async def fetch(x: int) -> str:
    return str(x)


@brig.jailed(timeout=5, types=[Point])
def decorated(x: int) -> Point:
    return Point(x)


@brig.jailed
async def decorated_async(x: int) -> str:
    return str(x)


with brig.Jail(timeout=5, memory_mb=256, fs_read_allow=["/srv"], network="none") as jail:
    reveal_type(jail.call(make, 3))  # R typed.Point
    reveal_type(jail.call(len, "text"))  # R builtins.int
    reveal_type(jail.try_call(make, 3))  # R brig._call.Outcome[typed.Point]
    reveal_type(jail.try_call(make, 3).unwrap())  # R typed.Point
    jail.call(make, "text")  # E
    jail.call(make)  # E
    reveal_type(jail.jailed(make)(3))  # R typed.Point
reveal_type(decorated(3))  # R typed.Point
decorated("text")  # E
brig.Jail(timeout="five")  # E
brig.Jail(tiemout=5)  # E
brig.Jail(network="open")  # E

reveal_type(brig.run(["true"]).stdout)  # R builtins.bytes
reveal_type(brig.run(["true"], text=True, timeout=3).stdout)  # R builtins.str
brig.run("true", nonesuch=1)  # E
brig.run(["true"], network="outer")  # E
reveal_type(brig.start(["true"], stdout=brig.PIPE, text=True).stdout.readline())  # R builtins.str
reveal_type(brig.start(["true"], stdout=brig.PIPE).communicate())  # R Tuple[builtins.bytes, builtins.bytes]
brig.start(["cat"], stdin=brig.PIPE).communicate("text")  # E
with brig.Template(timeout=5) as template:
    reveal_type(template.run(["true"], text=True).stdout)  # R builtins.str
    template.run(["true"], timeout=3)  # E
brig.Policy("sealed").grant("/srv", "read-only").limit(processes=3).network("open")
brig.Policy("sealed").grant("/srv", "all")  # E
brig.Policy("sealed").limit(speed=3)  # E
with brig.JailPoolExecutor(2, timeout=5) as pool:
    reveal_type(pool.submit(make, 3).result())  # R typed.Point
    pool.submit(make, "text")  # E
    reveal_type(list(pool.map(make, [1])))  # R builtins.list[typed.Point]


async def main() -> None:
    reveal_type(await brig.call_async(fetch, 3))  # R builtins.str
    reveal_type(await brig.call_async(make, 3))  # R typed.Point
    reveal_type(await decorated_async(3))  # R builtins.str
    job = await brig.start_async(["ls"], stdout=brig.PIPE, text=True)
    async for line in job.stdout:
        reveal_type(line)  # R builtins.str
    reveal_type((await brig.run_async(["true"])).stdout)  # R builtins.bytes


asyncio.run(main())
