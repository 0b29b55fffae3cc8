# SPDX-License-Identifier: MIT
# Finds the commands and programs in README.md and other pages, which tests run. README is the page without FILE.
# shellcheck shell=bash

# blocks LANGUAGE [N [MARK [FILE]]]: the text of the blocks to be run, or of the Nth of them.
blocks() {
    awk -v opening="\`\`\`$1" -v only="${2:-0}" -v mark="<!-- ${3:-run} -->" '
        $0 == mark { marked = 1; next }
        inside && /^```$/ { inside = 0; next }
        inside { if (!only || only == number) print; next }
        marked && $0 == opening { inside = 1; number++ }
        { marked = 0 }' "${4:-$README}"
}
