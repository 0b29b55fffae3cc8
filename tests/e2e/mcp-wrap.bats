#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# brig mcp-wrap: another MCP server in a jail, with a network that its first run has used.

# shellcheck disable=SC2154 # status and output are set by `run`

load net

# A server with one tool, which fetches a URL: for each request one line with the status, or the error.
make_server() {
    cat > "$SCRATCH/server.py" <<'PYTHON'
import json, sys, urllib.request
for line in sys.stdin:
    message = json.loads(line)
    result = "listed"
    if message["method"] == "tools/call":
        try:
            result = urllib.request.urlopen(message["params"]["url"], timeout=20).status
        except Exception as error:
            result = type(error).__name__
    print(message["id"], result, flush=True)
PYTHON
    chmod 0644 "$SCRATCH/server.py"
    RULES=$SCRATCH/config/mcp/server.conf
}

# wrap OPTIONS... -- MESSAGES...: what the server answers is the output, what brig says in $SCRATCH/said.
wrap() {
    local options=() message
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    for message; do
        printf '%s\n' "$message"
    done | world user env BRIG_CONFIG_DIR="$SCRATCH/config" timeout $((120 * ${BRIG_SLOW:-1})) "$BRIG" mcp-wrap \
        "${options[@]}" -r "$WORLD" -r "$SCRATCH" -- python3 "$SCRATCH/server.py" 2> "$SCRATCH/said"
}

teardown() {
    world user env BRIG_CONFIG_DIR="$SCRATCH/config" "$BRIG" -u > /dev/null 2>&1 || true
    scratch_remove
}

call() { # call URL
    printf '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"url":"%s"}}' "$1"
}
LIST='{"jsonrpc":"2.0","id":1,"method":"tools/list"}'

@test "a run without a call learns nothing, and the next one does" {
    make_server
    must wrap -- "$LIST"
    [ "$output" = "1 listed" ]
    grep 'no tool was called' "$SCRATCH/said"
    [ ! -e "$RULES" ]
    must wrap -- "$LIST" "$(call http://good.example/)"
    [ "$output" = "1 listed
1 200" ]
    grep "edit them in $RULES" "$SCRATCH/said"
    grep -x 'allow good.example:80' "$RULES"
    grep -x "# server: python3 $SCRATCH/server.py" "$RULES"
}

@test "later runs reach what was learned and nothing else, until it is edited or learned anew" {
    make_server
    must wrap -- "$(call http://good.example/)"
    must wrap -- "$(call http://good.example/)" "$(call http://other.example/)"
    [ "$output" = "1 200
1 URLError" ]
    run ! grep "first run" "$SCRATCH/said"
    echo 'allow other.example' >> "$RULES"
    must wrap -- "$(call http://other.example/)"
    [ "$output" = "1 200" ]
    must wrap --relearn -- "$(call http://other.example/)"
    run ! grep good.example "$RULES"
    must wrap -- "$(call http://good.example/)" "$(call http://other.example/)"
    [ "$output" = "1 URLError
1 200" ]
}

@test "rules belong to one server, and a network that is given is not learned" {
    make_server
    must wrap -- "$(call http://good.example/)"
    cp "$SCRATCH/server.py" "$SCRATCH/second.py"
    run world user env BRIG_CONFIG_DIR="$SCRATCH/config" "$BRIG" mcp-wrap --name server -- python3 "$SCRATCH/second.py"
    [ "$status" -eq 125 ]
    output_has "were learned for 'python3 $SCRATCH/server.py'"
    # Options before the name count, and variables for env do not.
    run world user env BRIG_CONFIG_DIR="$SCRATCH/config" "$BRIG" mcp-wrap -- python3 -E "$SCRATCH/server.py"
    [ "$status" -eq 125 ]
    output_has "were learned for 'python3 $SCRATCH/server.py'"
    run world user env BRIG_CONFIG_DIR="$SCRATCH/config" "$BRIG" mcp-wrap -- env MY=secret python3 "$SCRATCH/server.py"
    [ "$status" -eq 125 ]
    output_has "were learned for 'python3 $SCRATCH/server.py'"
    output_lacks secret
    run world user env BRIG_CONFIG_DIR="$SCRATCH/config" "$BRIG" mcp-wrap -- uv --directory server.py run second.py
    output_has "first run of 'second'"
    must wrap --name another --allow other.example -- "$(call http://good.example/)" "$(call http://other.example/)"
    [ "$output" = "1 URLError
1 200" ]
    [ ! -e "$SCRATCH/config/mcp/another.conf" ]
}

@test "the project is read-only, unless it is granted for writing" {
    as user mkdir "$SCRATCH/project"
    local script='if { echo x > file; } 2> /dev/null; then echo written; else echo refused; fi'
    for given in refused written; do
        local options=()
        [ "$given" = refused ] || options=(-d .)
        run as user env BRIG_CONFIG_DIR="$SCRATCH/config" sh -c 'cd "$1"; shift; exec "$@"' - "$SCRATCH/project" \
            "$BRIG" mcp-wrap --name project --net none "${options[@]}" -- sh -c "$script"
        [ "$output" = "$given" ]
    done
}

@test "names come from the command" {
    while read -r name command; do
        # shellcheck disable=SC2086 # words
        output=$(as user env BRIG_CONFIG_DIR="$SCRATCH/config" timeout 60 "$BRIG" mcp-wrap -m sealed -- $command \
            2>&1 < /dev/null) || true
        output_has "first run of '$name'"
    done <<'NAMES'
server-files /none/npx -y @scope/server-files@1.2.3 /somewhere
mcp-server-git /none/uvx --from mcp-server-git mcp-server-git
server /none/node build/server.js
tool_x /none/python3.11 -m tool_x --port 1
server-y ./server-y
NAMES
    for wrong in "--name ../x" "--name=.x" "-j name" "-C file" "--result x"; do
        # shellcheck disable=SC2086 # words
        run "$BRIG" mcp-wrap $wrong -- server
        [ "$status" -eq 125 ]
    done
    run "$BRIG" mcp-wrap
    [ "$status" -eq 125 ]
    output_has 'mcp-wrap needs a command'
}
