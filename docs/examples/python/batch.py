# SPDX-License-Identifier: MIT
"""Many untrusted functions at once: each in a jail, the answers as dataclasses, errors beside them."""

from concurrent.futures import as_completed
from dataclasses import dataclass
from typing import Dict

import brig


@dataclass
class Answer:
    name: str
    value: float


def evaluate(name: str, source: str) -> Answer:
    names: Dict[str, object] = {}
    exec(source, names)
    return Answer(name, float(names["answer"]))


SOURCES = {"sum": "answer = sum(range(10))", "loop": "while True: pass", "zero": "answer = 1 / 0", "pi": "answer = 3.14"}

with brig.JailPoolExecutor(2, timeout=30, cpu_timeout=1, network="none") as pool:
    futures = {pool.submit(evaluate, name, source): name for name, source in SOURCES.items()}
    lines = []
    for future in as_completed(futures):
        error = future.exception()
        lines.append(f"{futures[future]}: {type(error).__name__ if error else future.result().value}")
print("\n".join(sorted(lines)))
#> loop: CPUTimeoutError
#> pi: 3.14
#> sum: 45.0
#> zero: SandboxError
