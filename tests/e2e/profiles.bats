#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Profiles of agents and tools: what they set, who wins over them, how the program is found, and what
# the user is told. The programs are small scripts under the names of agents.
# shellcheck disable=SC2154 # status and output are set by `run`
# shellcheck disable=SC2016 # what is in single quotes is for the shell in the jail

load lib

setup() {
    jails_setup
    CONFIG=$HOME_OF_USER/.config/brig
    run_as_user mkdir -p "$HOME_OF_USER/.local/bin" "$CONFIG"
    PATH=/usr/local/bin:/usr/bin:/bin
}

teardown() {
    rm -rf "$CONFIG" "$HOME_OF_USER/.local/bin" "$HOME_OF_USER/.local/share/claude" "$HOME_OF_USER/.nvm"
    jails_teardown
}

# agent PATH: a program that prints its arguments and what agents look at.
agent() {
    run_as_user mkdir -p "$(dirname "$1")"
    run_as_user sh -c 'cat >"$1" && chmod 0755 "$1"' sh "$1" <<'END'
#!/bin/sh
echo "arguments: $*"
env | grep -E '^(ANTHROPIC|OPENAI|CODEX|IS_SANDBOX|SANDBOX|DISABLE_AUTOUPDATER)' | sort
END
}

@test "profiles are listed, each is complete, and a wrong name gets an advice" {
    local name
    must "$BRIG" profiles
    output_has "claude     agent"
    output_has "cursor     agent  untested"
    for name in aider amp cargo claude codex copilot cursor gemini go goose jupyter make npm opencode pip qwen; do
        must "$BRIG" profiles "$name"
        output_has "about "
        output_has "kind "
        output_has "tested "
        # Every line is understood.
        must by user --dry-run --profile "$name" true
    done
    must_exit 125 "$BRIG" profiles claud
    output_has "Did you mean 'brig profiles claude'"
    must_exit 125 by user --profile claud true
    output_has "there is no profile 'claud'"
    must "$BRIG" profiles --json
    must python3 -c 'import json, sys
rows = json.loads(sys.argv[1])
assert {"name": "cursor", "kind": "agent", "tested": None, "about": "Cursor CLI"} in rows, rows' "$output"
}

@test "an agent is found where installers put it, in every mode" {
    local mode
    # A link to the real file, in a directory that is not in PATH.
    agent "$HOME_OF_USER/.local/share/claude/versions/2.1"
    run_as_user ln -s ../share/claude/versions/2.1 "$HOME_OF_USER/.local/bin/claude"
    for mode in casual bare strict; do
        must by user -m "$mode" claude one two
        output_has "arguments: one two"
        output_has IS_SANDBOX=1
        output_has SANDBOX=brig
        output_has DISABLE_AUTOUPDATER=1
    done
    # The program changes: the next run has the new one.
    agent "$HOME_OF_USER/.local/share/claude/versions/2.2"
    run_as_user sed -i 's/arguments/2.2/' "$HOME_OF_USER/.local/share/claude/versions/2.2"
    run_as_user ln -sf ../share/claude/versions/2.2 "$HOME_OF_USER/.local/bin/claude"
    for mode in casual bare strict; do
        must by user -m "$mode" claude one
        output_has "2.2: one"
    done
    # A package of Node.js below nvm.
    rm "$HOME_OF_USER/.local/bin/claude"
    agent "$HOME_OF_USER/.nvm/versions/node/v9.1.0/lib/node_modules/old/cli.js"
    agent "$HOME_OF_USER/.nvm/versions/node/v22.3.0/lib/node_modules/@a/claude/cli.js"
    run_as_user mkdir "$HOME_OF_USER/.nvm/versions/node/v9.1.0/bin" "$HOME_OF_USER/.nvm/versions/node/v22.3.0/bin"
    run_as_user ln -s ../lib/node_modules/old/cli.js "$HOME_OF_USER/.nvm/versions/node/v9.1.0/bin/claude"
    run_as_user ln -s ../lib/node_modules/@a/claude/cli.js "$HOME_OF_USER/.nvm/versions/node/v22.3.0/bin/claude"
    for mode in casual bare strict; do
        must by user -m "$mode" claude three
        output_has "arguments: three"
    done
    # The denial: the rest of the home is as hidden as before.
    run_as_user sh -c 'echo secret >~/.private-file'
    must_fail by user -m strict --profile claude cat "$HOME_OF_USER/.private-file"
    must by user -m casual --profile claude cat "$HOME_OF_USER/.private-file"
    run_as_user rm "$HOME_OF_USER/.private-file"
}

@test "of the directories around a program, strict shows those that are the program's own" {
    local mode prefix
    run_as_user sh -c 'mkdir -p ~/papers ~/.local/share/notes && echo secret | tee ~/.private ~/papers/one ~/.local/share/notes/one' >/dev/null
    # Packages of Node.js in the home and in ~/.local, as `npm config set prefix` has them.
    for prefix in "$HOME_OF_USER" "$HOME_OF_USER/.local"; do
        agent "$prefix/lib/node_modules/claude/cli.js"
        run_as_user mkdir -p "$prefix/bin"
        run_as_user ln -sf ../lib/node_modules/claude/cli.js "$prefix/bin/claude"
        for mode in bare strict; do
            must by user -m "$mode" --setenv "PATH=$prefix/bin:$PATH" "$prefix/bin/claude" one
            output_has "arguments: one"
            leaks "$mode" "$prefix/bin/claude"
        done
        rm -r "$prefix/lib/node_modules" "$prefix/bin/claude"
    done
    # A link to a script of the user's, in a directory with other files.
    run_as_user sh -c 'mkdir ~/unclaude && echo secret >~/unclaude/one'
    for prefix in "$HOME_OF_USER" "$HOME_OF_USER/papers" "$HOME_OF_USER/unclaude"; do
        agent "$prefix/wrapper.sh"
        run_as_user ln -sf "$prefix/wrapper.sh" "$HOME_OF_USER/.local/bin/claude"
        for mode in bare strict; do
            must by user -m "$mode" claude two
            output_has "arguments: two"
            leaks "$mode" "$HOME_OF_USER/.local/bin/claude"
        done
    done
    # A link in the project leads nowhere: its author has chosen where to.
    agent "$HOME_OF_USER/papers/claude-tools/run.sh"
    run_as_user sh -c 'echo secret >~/papers/claude-tools/one'
    run_as_user ln -s "$HOME_OF_USER/papers/claude-tools/run.sh" claude
    for mode in bare strict; do
        must by user explain -v -m "$mode" --profile claude "$PWD/claude"
        output_lacks claude-tools
    done
    # The twin: the same link elsewhere.
    run_as_user ln -sf "$HOME_OF_USER/papers/claude-tools/run.sh" "$HOME_OF_USER/.local/bin/claude"
    must by user explain -v -m strict claude
    output_has "$HOME_OF_USER/papers/claude-tools"
    run_as_user sh -c 'rm -r ~/papers ~/unclaude ~/.local/share/notes ~/.private ~/wrapper.sh'
}

# leaks MODE PROGRAM: no file of the user is visible where the program is shown.
leaks() {
    local program
    program=$(readlink -f "$2")
    run_as_user sh -c 'cat >"$1"' sh "$program" <<END
#!/bin/sh
cd "$HOME_OF_USER" && cat .private papers/one .local/share/notes/one unclaude/one
echo "cat has ended with \$?"
END
    must by user -m "$1" "$2"
    output_has "cat has ended with 1"
    output_lacks secret
    agent "$program"
}

@test "a key of the user stays outside, and brig says which ones it did not pass on" {
    agent "$HOME_OF_USER/.local/bin/claude"
    export BRIG_TEST_KEY=x ANTHROPIC_API_KEY=sk-secret-1
    must by user claude
    output_has "credentials: requests to api.anthropic.com get yours outside the jail"
    output_has ANTHROPIC_BASE_URL=http://127.
    # Claude Code asks about a key that it finds in ANTHROPIC_API_KEY.
    output_has ANTHROPIC_AUTH_TOKEN=injected-by-brig
    output_lacks ANTHROPIC_API_KEY=
    output_lacks "was not passed"
    must by user --inject @anthropic --profile none "$HOME_OF_USER/.local/bin/claude"
    output_has ANTHROPIC_API_KEY=injected-by-brig
    output_lacks ANTHROPIC_AUTH_TOKEN
    output_lacks sk-secret-1
    # Without a network door there is no injection: it says what to do.
    must by user --net host claude
    output_has "ANTHROPIC_API_KEY was not passed; use --inject @anthropic (it stays outside) or --setenv ANTHROPIC_API_KEY"
    output_lacks sk-secret-1
    must by user --net host --setenv ANTHROPIC_API_KEY claude
    output_lacks "was not passed"
    output_has sk-secret-1
    # One that brig cannot inject.
    export CLAUDE_CODE_OAUTH_TOKEN=oauth-secret
    must by user claude
    output_has "CLAUDE_CODE_OAUTH_TOKEN was not passed; use --setenv CLAUDE_CODE_OAUTH_TOKEN"
    # Nothing is said about what is not set.
    unset ANTHROPIC_API_KEY CLAUDE_CODE_OAUTH_TOKEN
    must by user claude
    output_lacks "was not passed"
    output_lacks ANTHROPIC_BASE_URL
}

@test "a program of the project is not taken for an agent, and uses no credential" {
    agent "$PWD/tools/claude"
    export BRIG_TEST_KEY=x ANTHROPIC_API_KEY=sk-secret-1
    local program
    for program in ./tools/claude "$PWD/tools/claude" "tools/../tools/claude"; do
        must by user "$program"
        output_has "arguments:"
        output_lacks ANTHROPIC
        output_lacks "for the first time"
    done
    # By PATH, too.
    PATH=$PWD/tools:$PATH must by user claude
    output_has "arguments:"
    output_lacks ANTHROPIC
    # The twins: the user's own program by its path and by PATH, and a profile that is asked for.
    agent "$HOME_OF_USER/.local/bin/claude"
    must by user "$HOME_OF_USER/.local/bin/claude"
    output_has ANTHROPIC_BASE_URL
    PATH=$HOME_OF_USER/.local/bin:$PWD/tools:$PATH must by user claude
    output_has ANTHROPIC_BASE_URL
    must by user --profile claude ./tools/claude
    output_has ANTHROPIC_BASE_URL
}

@test "what an agent can do is said at its first use in a project" {
    agent "$HOME_OF_USER/.local/bin/claude"
    must by user claude
    output_has "in this project for the first time"
    output_has "it can change this project (brig undo restores it)"
    output_has "network: every public host"
    output_has "brig login claude logs in once"
    must by user claude
    output_lacks "for the first time"
    run_as_user mkdir "$SCRATCH/two"
    cd "$SCRATCH/two"
    ANTHROPIC_API_KEY=sk-secret-1 must by user -R claude
    output_has "for the first time"
    output_lacks "brig login"
    output_has "a copy of this project, until you apply the changes"
}

@test "brig explain of an agent fits on one screen, and -v has every rule" {
    agent "$HOME_OF_USER/.local/bin/claude"
    must by user explain claude
    [ "${#lines[@]}" -le 24 ]
    output_has "can write     $PWD"
    output_has "network       open"
    output_has "  log-in      claude.com"
    must by user explain -v claude
    output_has "IS_SANDBOX=1  [profile claude:"
    must by user explain --json claude
    must python3 -c 'import json, sys; assert json.loads(sys.argv[1])["mode"] == "casual"' "$output"
}

@test "the state of an agent is not counted at the end of a run" {
    run_as_user sh -c 'cat >~/.local/bin/claude && chmod 0755 ~/.local/bin/claude' <<'END'
#!/bin/sh
mkdir -p ~/.claude/sessions; date +%N >~/.claude/sessions/1; date +%N >~/.claude.json; [ -z "$1" ] || date +%N >~/"$1"
END
    jail user state
    must by user -j state -m casual claude
    output_lacks "changed in the jail's copy"
    must by user -j state -m casual claude other
    output_has "1 file changed in the jail's copy of your home, 1 new; see brig status"
    must by user -j state -m casual claude .claude.json2
    output_has "1 file changed in the jail's copy of your home"
    must by user status -j state -v
    output_has ".claude/sessions/1"
    output_has ".claude.json"
}

@test "an agent's run can be undone" {
    echo mine | run_as_user tee file >/dev/null
    run_as_user sh -c 'cat >~/.local/bin/claude && chmod 0755 ~/.local/bin/claude' <<'END'
#!/bin/sh
rm -rf ./*
END
    must by user claude
    [ ! -e file ]
    must by user undo
    [ "$(cat file)" = mine ]
    # The twin: --no-checkpoint.
    must by user --no-checkpoint claude
    [ ! -e file ]
}

@test "arguments are added after the command, unless the user gives others" {
    agent "$HOME_OF_USER/.local/bin/codex"
    must by user codex exec hi
    output_has 'arguments: -c sandbox_mode="danger-full-access"'
    output_has " exec hi"
    must by user codex --sandbox read-only
    output_has "arguments: --sandbox read-only"
    must by user codex --sandbox=read-only
    output_has "arguments: --sandbox=read-only"
    must by user --profile none "$HOME_OF_USER/.local/bin/codex" exec
    output_has "arguments: exec"
    output_lacks sandbox_mode
}

@test "files and options are stronger than a profile, line by line" {
    agent "$HOME_OF_USER/.local/bin/codex"
    printf '%s\n' 'setenv SANDBOX=mine' 'arguments' 'arguments --from ${SANDBOX} --x' 'arguments --none ${UNSET_VARIABLE}' |
        run_as_user tee "$CONFIG/codex.conf" >/dev/null
    must by user codex go
    output_has "arguments: --from mine --x go"
    output_has SANDBOX=mine
    output_has IS_SANDBOX=1
    must by user --setenv SANDBOX=typed codex go
    output_has SANDBOX=typed
    # For another program, by its file.
    echo 'conf @codex' | run_as_user tee "$CONFIG/other.conf" >/dev/null
    agent "$HOME_OF_USER/.local/bin/other"
    must by user --setenv "PATH=$HOME_OF_USER/.local/bin:/usr/bin:/bin" other
    output_has SANDBOX=brig
    # A project cannot use these words.
    echo 'arguments --evil' | run_as_user tee .brig.conf >/dev/null
    must_exit 125 by user codex
    output_has "unknown directive 'arguments'"
}

@test "with --net allow the hosts that the agent needs are allowed, and no others" {
    must by user why --net allow --profile codex auth.openai.com:443 api.openai.com:443
    must_fail by user why --net allow --profile codex ab.chatgpt.com:443
    must_fail by user why --net allow auth.openai.com:443
}

@test "sealed uses a profile only if it is asked for" {
    agent "$SCRATCH/project/claude"
    must by user -m sealed ./claude
    output_lacks IS_SANDBOX
    must by user -m sealed --profile claude ./claude
    output_has IS_SANDBOX=1
}

@test "of a large project an optional checkpoint leaves out files, and brig says so" {
    agent "$HOME_OF_USER/.local/bin/claude"
    run_as_user sh -c 'echo one >file; fallocate -l 300M large'
    must by user claude
    output_has "checkpoint of '$PWD': left out: large (300 MiB); more than 256 MiB would be read: --checkpoint does that"
    # A file of holes takes no space, and cannot switch off the checkpoint.
    rm large
    run_as_user truncate -s 1T large
    must by user --checkpoint claude
    output_has "left out: large (1 TiB); more than 1 GiB of holes would be stored"
    # The twin: if it is asked for.
    rm large
    run_as_user fallocate -l 257M large
    must by user --checkpoint claude
    output_lacks "left out"
}
