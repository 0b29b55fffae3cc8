#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# brig login: the credential of an agent is kept outside, refreshed there, and never seen in a jail. tests/standin has the
# server and the agent.
# shellcheck disable=SC2154 # status and output are set by `run`
# shellcheck disable=SC2016 # what is in single quotes is for the shell in the jail

load lib

setup() {
    [ -x "$BUILD_DIR/src/token/brig-token" ] || cannot "brig-token was not built"
    needs python3 curl
    lib_is_root || cannot "it would use your own configuration"
    jails_setup
    CONFIG=$HOME_OF_USER/.config/brig
    STORE=$HOME_OF_USER/.local/share/brig/.agents/claude
    # The jail of the log-in sees neither the home nor the project; a sealed one does not see /opt.
    AGENT=$(mktemp -d /opt/brig-agent.XXXXXX)/claude
    cp "$BATS_TEST_DIRNAME/../standin/agent" "$AGENT"
    chmod -R a+rX "${AGENT%/*}"
    run_as_user cp "$AGENT" agent
    standin_start --expires 3600
}

teardown() {
    [ -z "${STANDIN:-}" ] || { kill "$STANDIN"; wait "$STANDIN" || true; }
    touch "$SCRATCH/project/done"
    [ -z "${RUNS:-}" ] || wait $RUNS || true
    rm -rf "${AGENT%/*}" "$STORE" "$CONFIG/claude.conf"
    jails_teardown
}

standin_start() {
    local port
    if [ -n "${STANDIN:-}" ]; then
        kill "$STANDIN"
        wait "$STANDIN" || true
    fi
    : >"$SCRATCH/log"
    rm -f "$SCRATCH/port"
    python3 "$BATS_TEST_DIRNAME/../standin/standin" "$SCRATCH/log" "$@" >"$SCRATCH/port" 3>&- &
    STANDIN=$!
    await test -s "$SCRATCH/port"
    port=$(cat "$SCRATCH/port")
    URL=http://127.0.0.1:$port
    CALLBACK=$(python3 -IS -c 'import _socket; s = _socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    run_as_user mkdir -p "$CONFIG"
    run_as_user tee "$CONFIG/claude.conf" >/dev/null <<END
login $AGENT login http://host:$port $CALLBACK
host-login host:$port
login-port $CALLBACK
oauth endpoint=$URL/oauth/token client=c access=claudeAiOauth.accessToken refresh=claudeAiOauth.refreshToken expires=claudeAiOauth.expiresAt
END
}

# seen: the credentials that the API was sent.
seen() {
    grep -F '"path": "/v1/messages"' "$SCRATCH/log" | grep -o '"authorization": "[^"]*"' | cut -d'"' -f4
}

state() {
    curl -sS "$URL/oauth/state"
}

# browser: is redirected by the server to the agent's port, when that is there.
browser() {
    curl -sSL "$URL/oauth/authorize?redirect_uri=http://127.0.0.1:$CALLBACK/callback&state=x" 2>/dev/null | grep -q "logged in"
}

# put ACCESS [EXPIRES]: a credential in the store, with the server's newest refresh token.
put() {
    local code token
    code=$(curl -sS -o /dev/null -w '%{redirect_url}' "$URL/oauth/authorize?redirect_uri=http://x/" | sed 's/.*code=\([^&]*\).*/\1/')
    token=$(curl -sS -d "grant_type=authorization_code&code=$code" "$URL/oauth/token" | sed 's/.*"refresh_token": "\([^"]*\)".*/\1/')
    run_as_user mkdir -p -m 700 "$STORE"
    echo "{\"a\":\"$1\",\"r\":\"$token\",\"e\":${2:-0}}" |
        run_as_user "$BUILD_DIR/src/token/brig-token" keep "$STORE" access=a refresh=r expires=e
}

ask() {
    run_as_user "$BRIG" -m sealed --net allow --inject "@claude upstream=$URL" -- "$@"
}

# The environment, files, descriptors and processes of the jail, and the store.
LOOK='env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr "\0" "\n"; ls -l /proc/[0-9]*/fd
      grep -rs "s3cre[t]" ~ . /tmp /run /etc 2>/dev/null; true'

@test "brig login takes the credential out of a jail that is then removed" {
    local pid
    run_as_user "$BRIG" login claude >"$SCRATCH/said" 2>&1 3>&- &
    pid=$!
    await browser
    wait "$pid" || { cat "$SCRATCH/said"; false; }
    grep -F "the credential of 'claude' is kept" "$SCRATCH/said"
    grep -F '"access":"access-1-s3cret","refresh":"refresh-1-s3cret"' "$STORE/credential.json"
    [ "$(stat -c %a "$STORE/credential.json")" = 600 ]
    must run_as_user "$BRIG" list
    output_lacks login-claude
    [ ! -e "$HOME_OF_USER/.local/share/brig/login-claude.home" ]
    must ask ./agent ask
    output_has 200
    [ "$(seen)" = "Bearer access-1-s3cret" ]
    # The user's own directory of the agent is not touched.
    [ ! -e "$HOME_OF_USER/.claude" ]
    must run_as_user "$BRIG" logout claude
    [ ! -e "$STORE/credential.json" ]
    must_exit 125 ask true
    output_has "brig login claude"
    must_exit 125 run_as_user "$BRIG" logout claude
}

@test "a log-in that leaves nothing keeps nothing" {
    run_as_user sed -i "s|^login .*|login /bin/true|" "$CONFIG/claude.conf"
    must_exit 125 run_as_user "$BRIG" login claude
    output_has "has left no credential"
    [ ! -e "$STORE/credential.json" ]
    must_exit 125 run_as_user "$BRIG" login make
    output_has "does not say how"
    must_exit 125 run_as_user "$BRIG" login nosuch
}

@test "an agent that a project has put into PATH does not log in" {
    local script='#!/bin/sh
mkdir -p ~/.claude; echo "{\"claudeAiOauth\":{\"accessToken\":\"planted\"}}" >~/.claude/.credentials.json'
    run_as_user sed -i "s|^login .*|login claude|" "$CONFIG/claude.conf"
    run_as_user sh -c 'mkdir bin && echo "$1" >bin/claude && chmod 755 bin/claude' sh "$script"
    PATH=./bin:$PWD/bin:/usr/bin:/bin must_exit 125 run_as_user "$BRIG" login claude
    output_has "has left no credential"
    [ ! -e "$STORE/credential.json" ]
    # The twin: the same program elsewhere.
    cp bin/claude "$AGENT"
    ANTHROPIC_API_KEY=sk-1 PATH=./bin:$PWD/bin:${AGENT%/*}:/usr/bin:/bin must run_as_user "$BRIG" login claude
    # A log-in is not introduced as a run of the agent, and needs no key.
    output_lacks "for the first time"
    output_lacks "was not passed"
    grep -F planted "$STORE/credential.json"
}

@test "no token is visible in any jail" {
    local mode
    put the-access-s3cret 4102444800
    must run_as_user cat "$STORE/credential.json"
    output_has s3cret # the twin: the user outside can read it
    for mode in casual bare strict sealed; do
        must run_as_user "$BRIG" -m "$mode" -j "look-$mode" --net allow --inject "@claude upstream=$URL" -- \
            sh -c "$LOOK; cat $STORE/credential.json 2>/dev/null; ./agent ask"
        jail user "look-$mode"
        output_lacks s3cret
        output_lacks memfd
        output_has "CLAUDE_CODE_OAUTH_TOKEN=injected-by-brig"
    done
    [ "$(seen | sort -u)" = "Bearer the-access-s3cret" ]
    must_exit 125 run_as_user "$BRIG" -m sealed -r "$STORE" -- true
    output_has "never granted"
    # A variable that is passed on is found by the same search.
    OTHER=x-s3cret must run_as_user "$BRIG" -m sealed --setenv OTHER -- sh -c "$LOOK"
    output_has s3cret
}

@test "a token that expires is refreshed before the run, once for several runs" {
    local i
    put old-s3cret "$(($(date +%s) + 60))"
    RUNS=
    for i in 1 2 3 4; do
        ask ./agent ask >"$SCRATCH/run.$i" 2>/dev/null 3>&- &
        RUNS="$RUNS $!"
    done
    for i in $RUNS; do
        wait "$i"
    done
    RUNS=
    [ "$(cat "$SCRATCH"/run.?)" = "$(printf '200\n200\n200\n200')" ]
    state | grep -F '"refreshes": 1'
    [ "$(seen | sort -u)" = "Bearer access-2-s3cret" ]
    # The rotated refresh token was kept.
    grep -F refresh-2-s3cret "$STORE/credential.json"
    # One that is still valid is used although the server is gone, and one that is not is an error.
    kill "$STANDIN"
    wait "$STANDIN" || true
    STANDIN=
    echo '{"a":"x","r":"y","e":1000}' | run_as_user "$BUILD_DIR/src/token/brig-token" keep "$STORE" access=a refresh=r expires=e
    must_exit 125 ask true
    output_has "cannot reach the log-in server"
    output_lacks s3cret
}

# refreshed_within SECONDS: whether a run that began with a token saw it refreshed so many seconds later; it is
# five minutes before its end that a token is.
refreshed_within() {
    rm -f done
    standin_start --expires $((300 + $1))
    put first-s3cret "$(($(date +%s) + 300 + $1))"
    ask ./agent ask done >"$SCRATCH/run" 2>/dev/null 3>&- &
    RUNS=$!
    await grep -q "Bearer access-2-s3cret" "$SCRATCH/log"
    run_as_user touch done
    wait "$RUNS"
    RUNS=
    must test "$(sort -u "$SCRATCH/run")" = 200
    [ "$(seen | uniq | head -2)" = "$(printf 'Bearer first-s3cret\nBearer access-2-s3cret')" ]
}

@test "a token is refreshed while a run lasts" {
    # On a slow machine the run may begin too late.
    refreshed_within 2 || refreshed_within 8 || refreshed_within 30
}

@test "a refusal causes one refresh" {
    put stale-s3cret 4102444800
    ask ./agent ask done >"$SCRATCH/run" 2>/dev/null 3>&- &
    RUNS=$!
    await grep -q 200 "$SCRATCH/run"
    run_as_user touch done
    wait "$RUNS"
    RUNS=
    [ "$(uniq "$SCRATCH/run")" = "$(printf '401\n200')" ]
    state | grep -F '"refreshes": 1'
    # A server that refuses everything is not asked again and again.
    rm -f done
    standin_start --deny
    put any-s3cret 4102444800
    ask ./agent ask done >"$SCRATCH/run" 2>/dev/null 3>&- &
    RUNS=$!
    await sh -c '[ "$(grep -c "Bearer access-2" "$1")" -ge 20 ]' - "$SCRATCH/log"
    run_as_user touch done
    wait "$RUNS"
    RUNS=
    state | grep -F '"refreshes": 1'
}

@test "what is in the store must be as it should be" {
    local token=$BUILD_DIR/src/token/brig-token text
    run_as_user mkdir -p -m 700 "$STORE"
    for text in '' '{' '[]' '{"a":1}' '{"a":""}' '{"a":"x y"}' '{"a":"x\ny"}' '{"a":"x","a":"y"}' \
        "{\"a\":\"$(head -c 5000 /dev/zero | tr '\0' x)\"}" "{\"b\":\"$(head -c 70000 /dev/zero | tr '\0' x)\",\"a\":\"x\"}"; do
        must_fail run_as_user sh -c 'printf %s "$3" | "$1" keep "$2" access=a' - "$token" "$STORE" "$text"
        [ ! -e "$STORE/credential.json" ]
    done
    # A file left by a crash is no obstacle.
    run_as_user sh -c 'echo half >"$1/credential.json.new"' - "$STORE"
    must run_as_user sh -c 'echo "{\"a\":{\"b\":\"x\"}}" | "$1" keep "$2" access=a.b' - "$token" "$STORE"
    must run_as_user "$token" take "$STORE"
    [ "$output" = "1 0 - x" ]
    [ ! -e "$STORE/credential.json.new" ]
}
