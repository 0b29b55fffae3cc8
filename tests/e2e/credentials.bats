#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Credentials that stay outside: presets, tokens of tools, passwords of git's remotes. A server on the host's loopback
# (tests/standin) stands in for the services, and writes down what it is sent.
# shellcheck disable=SC2154 # status and output are set by `run`
# shellcheck disable=SC2016 # what is in single quotes is for the shell in the jail

load lib

setup() {
    [ -x "$BUILD_DIR/src/net/brig-broker" ] || cannot "brig-broker was not built"
    needs python3 curl
    jails_setup
    standin_start
}

teardown() {
    [ -z "${STANDIN:-}" ] || { kill "$STANDIN"; wait "$STANDIN" || true; }
    rm -f "$HOME_OF_USER/.npmrc" "$HOME_OF_USER/.config/pip/pip.conf"
    jails_teardown
}

# standin_start OPTIONS…: sets URL; its log is $SCRATCH/log.
standin_start() {
    : >"$SCRATCH/log"
    rm -f "$SCRATCH/port"
    python3 "$BATS_TEST_DIRNAME/../standin/standin" "$SCRATCH/log" "$@" >"$SCRATCH/port" 3>&- &
    STANDIN=$!
    await test -s "$SCRATCH/port"
    URL=http://127.0.0.1:$(cat "$SCRATCH/port")
}

# seen: what the server was sent, with the credential of each request.
seen() {
    python3 -c '
import json, sys
for line in open(sys.argv[1]):
    row = json.loads(line)
    fields = row.get("headers", {})
    if "path" in row:
        print(row["method"], row["path"], *[fields[name] for name in ("authorization", "x-api-key", "x-goog-api-key")
                                            if name in fields])' "$SCRATCH/log"
}

# sealed WHO ARGS…
sealed() {
    local who=$1
    shift
    by "$who" -m sealed --net allow "$@"
}

# nowhere: no secret in the environment, files or processes of the jail. For its shell.
NOWHERE='env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline | tr "\0" "\n"; cat ~/.npmrc; grep -rs s3cre[t] . /tmp; true'

@test "each preset adds its credential, and the jail has a placeholder" {
    local rows pair who preset key variable path header
    mapfile -t rows <<END
@anthropic ANTHROPIC_API_KEY ANTHROPIC_BASE_URL v1/models GET /v1/models the-s3cret
@openai OPENAI_API_KEY OPENAI_BASE_URL models GET /v1/models Bearer the-s3cret
@gemini GEMINI_API_KEY GOOGLE_GEMINI_BASE_URL v1beta/models GET /v1beta/models the-s3cret
@openrouter OPENROUTER_API_KEY OPENROUTER_BASE_URL models GET /api/v1/models Bearer the-s3cret
@github GITHUB_TOKEN GITHUB_API_URL user GET /user Bearer the-s3cret
END
    for pair in $(pairs_of "$(everyone)" "${!rows[@]}"); do
        who=${pair%:*}
        read -r preset key variable path header <<<"${rows[${pair#*:}]}"
        : >"$SCRATCH/log"
        export "$key=the-s3cret"
        must sealed "$who" --inject "$preset upstream=$URL" -- \
            sh -c "$NOWHERE"'; curl -sSf "$'"$variable"'/'"$path"'" >/dev/null'
        unset "$key"
        output_lacks s3cret
        seen | grep -F "$header" || { seen; false; }
    done
    # The twin: without --inject the variable of a sealed jail can be passed on, and is seen.
    OPENAI_API_KEY=the-s3cret must run_as_user "$BRIG" -m sealed --setenv OPENAI_API_KEY -- sh -c "$NOWHERE"
    output_has s3cret
}

@test "a program that needs a file or an option gets it" {
    run_as_user mkdir bin
    run_as_user sh -c 'printf "#!/bin/sh\necho \"\$@\"; cat ~/.codex/auth.json ~/.gemini/settings.json\n" >bin/codex; chmod +x bin/codex'
    OPENAI_API_KEY=k GEMINI_API_KEY=k must sealed user --profile codex --inject "@openai upstream=$URL" --inject "@gemini upstream=$URL" -- \
        "$PWD/bin/codex" exec
    output_has '-c openai_base_url="http://127.18.0.1:8001/v1"'
    output_has '{"OPENAI_API_KEY":"injected-by-brig"}'
    output_has '{"security":{"auth":{"selectedType":"gemini-api-key"}}}'
    # A file that exists is kept, and another program has no such option.
    OPENAI_API_KEY=k must sealed user --inject "@openai upstream=$URL" -- sh -c 'echo own >~/.codex/auth.json; sh bin/codex x || true'
    output_has "x"
    output_has "own"
    output_lacks openai_base_url
}

@test "the token of npm comes from ~/.npmrc, which is not visible" {
    local who
    run_as_user sh -c 'printf "registry=%s/npm/\n//%s/npm/:_authToken=npm-s3cret\n" "$1" "${1#http://}" >~/.npmrc' - "$URL"
    for who in $(everyone); do
        must sealed "$who" --inject @npm -- sh -c "$NOWHERE"'; curl -sSf "${npm_config_registry}left-pad"'
        output_lacks s3cret
        seen | grep -F "GET /npm/left-pad Bearer npm-s3cret"
        must_fail sealed "$who" --inject @npm -- sh -c 'curl -sSf "${npm_config_registry%npm/}other"'
    done
    run_as_user sh -c 'echo >~/.npmrc'
    must_exit 125 sealed user --inject @npm -- true
    output_has "'NPM_TOKEN' is not set, and ~/.npmrc has no credential"
    must sealed user --dry-run --inject @npm -- true
}

@test "the password of pip's index comes from pip.conf, which is not visible" {
    run_as_user mkdir -p "$HOME_OF_USER/.config/pip"
    run_as_user sh -c 'printf "[global]\nindex-url = http://me:pip-s3cret@%s/simple/\n" "${1#http://}" >~/.config/pip/pip.conf' - "$URL"
    must sealed user --inject @pypi -- sh -c "$NOWHERE"'; cat ~/.config/pip/pip.conf; curl -sSf "${PIP_INDEX_URL}six/"'
    output_lacks s3cret
    seen | grep -F "GET /simple/six/ Basic $(printf me:pip-s3cret | base64)"
}

@test "gh and git use the token of GitHub, which stays outside" {
    local who
    needs git
    needs gh
    export GITHUB_TOKEN=the-s3cret
    run_as_user git init -q gh-project
    run_as_user git -C gh-project remote add origin https://github.com/owner/project.git
    for who in $(everyone); do
        : >"$SCRATCH/log"
        run sealed "$who" --inject "@github upstream=$URL" -- sh -c "$NOWHERE"'; cat /etc/hosts; cd gh-project && gh api user; gh repo view; git ls-remote'
        output_lacks s3cret
        seen | grep -F "GET /user Bearer the-s3cret"
        seen | grep -F "POST /graphql Bearer the-s3cret"
        seen | grep -F "GET /owner/project.git/info/refs?service=git-upload-pack Basic $(printf x-access-token:the-s3cret | base64)"
    done
    # The twin: the token itself, where it is passed on.
    must sealed user --setenv GITHUB_TOKEN -- sh -c "$NOWHERE"
    output_has s3cret
}

@test "several redirections of git, and the user's own settings" {
    needs git
    GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=user.name GIT_CONFIG_VALUE_0=own GITHUB_TOKEN=t \
        must run_as_user "$BRIG" -m casual -j redirects --net allow --inject "@github upstream=$URL" -- git config --list
    jail user redirects
    output_has "user.name=own"
    output_has "url.http://github.localhost/.insteadof=https://github.com/"
    run_as_user git init -q
    run_as_user git remote add a http://me:one-s3cret@git.example:8080/a.git
    run_as_user git remote add b https://me:two-s3cret@git.example/b.git
    GITHUB_TOKEN=t must sealed user --inject "@github upstream=$URL" --inject @git -- git config --list
    output_has "url.http://github.localhost/.insteadof=https://github.com/"
    output_has "url.http://127.18.0.1:8003/.insteadof=http://git.example:8080/"
    output_has "url.http://127.18.0.1:8004/.insteadof=https://git.example/"
    output_lacks s3cret
}

@test "git pushes and fetches with the password of a remote, which stays outside" {
    local who
    needs git
    kill "$STANDIN"
    wait "$STANDIN" || true
    git init -q --bare "$SCRATCH/served/r.git"
    git -C "$SCRATCH/served/r.git" config http.receivepack true
    standin_start --git "$SCRATCH/served"
    run_as_user git init -q -b main
    run_as_user git remote add origin "http://me:git-s3cret@${URL#http://}/git/r.git"
    for who in $(everyone); do
        must sealed "$who" --inject @git -- sh -c "
            git config user.name Me; git config user.email me@example.com
            echo $who >file; git add file; git commit -qm $who; git push -q origin HEAD:$who && git ls-remote origin
            git config --list; cat .git/config; $NOWHERE"
        output_has "refs/heads/$who"
        output_lacks s3cret
        # The twin: without it the server wants a password.
        GIT_TERMINAL_PROMPT=0 must_fail run_as_user git ls-remote "$URL/git/r.git"
    done
    seen | grep -F "Basic $(printf me:git-s3cret | base64)"
    run_as_user git remote remove origin
    must_exit 125 sealed user --inject @git -- true
    output_has "no remote of the repository here has a password in its URL"
}
