# SPDX-License-Identifier: MIT
"""Talk to a command while it runs, and end it when enough was heard."""

import brig

SCRIPT = "n=0; while read -r line; do n=$((n + 1)); echo \"$n: $line\"; done; echo end"

with brig.start(["sh", "-c", SCRIPT], stdin=brig.PIPE, stdout=brig.PIPE, text=True, timeout=30) as job:
    for word in ("one", "two"):
        job.stdin.write(word + "\n")
        print(job.stdout.readline().strip())
    #> 1: one
    #> 2: two
    job.stdin.close()
    print(job.stdout.read().strip(), job.wait())
    #> end 0

# The limit holds although this program only reads.
with brig.start(["sh", "-c", "while :; do echo tick; sleep 0.1; done"], stdout=brig.PIPE, text=True, timeout=3) as job:
    ticks = sum(1 for line in job.stdout)
try:
    job.wait()
except brig.TimeoutError as error:
    print(ticks > 0, error.result.outcome)
    #> True timeout
