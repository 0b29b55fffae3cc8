#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Start-up files in a copy-on-write home: lines that set filtered variables are hidden, and come back when the jail's
# version is applied. As an ordinary user, as root for that user, and as root.

# shellcheck disable=SC2016 # scripts for the jail
# shellcheck disable=SC2030,SC2031 # each test has its own variables
# shellcheck disable=SC2154 # status and output are set by `run`

load lib

setup() {
    jails_setup
    JAIL=startup-${BATS_TEST_NUMBER:-0}
    for who in $(everyone); do
        jail "$who" "$JAIL"
    done
    run_as_user sh -c 'cd && mkdir .kept && for f in .bashrc .profile .bash_profile; do [ ! -e $f ] || mv $f .kept; done'
    run_as_user sh -c "cat >~/.bashrc; cat ~/.bashrc >~/.saved; chmod 640 ~/.bashrc" <<'END'
# my own
export EDITOR=vi
if [ -n "$HOME" ]; then
    export GITHUB_TOKEN=ghp_verysecret
fi
export CERT_KEY="first-secret
second-secret"
export INDEX=https://me:url-secret@example.com/
export LAST_TOKEN=last-secret
END
}

teardown() {
    umount "$HOME_OF_USER/.mounted" 2>/dev/null || true
    run_as_user sh -c 'cd && rm -rf .bashrc .profile .saved .zshrc .dotfiles .config/fish .config/environment.d .mounted && for f in .kept/.[a-z]*; do [ ! -e "$f" ] || mv "$f" .; done; rmdir .kept'
    jails_teardown
}

# inside WHO [OPTIONS… --] SCRIPT
inside() {
    local who=$1
    shift
    by "$who" -m casual -j "$JAIL" "${@:1:$#-1}" -- bash -c "cd; ${!#}"
}

home() {
    run_as_user sh -c "cd; $1"
}

unchanged() {
    home 'cmp .bashrc .saved'
}

@test "lines that set filtered variables are hidden, and the file stays a shell's" {
    local who
    for who in $(everyone); do
        must inside "$who" 'cat .bashrc; stat -c %a .bashrc; wc -l <.bashrc; bash -n .bashrc && . ./.bashrc && echo "editor $EDITOR, token ${GITHUB_TOKEN-none}, $LAST_TOKEN"'
        output_lacks secret
        output_has '# my own'
        output_has '    : # brig: hidden line 1, which sets GITHUB_TOKEN'
        output_has 'editor vi, token none, '
        output_has 640
        output_has 9
        must inside "$who" 'bash -ic env 2>/dev/null'
        output_has EDITOR=vi
        output_lacks secret
    done
    unchanged
}

@test "the lines of a variable that is passed on are shown" {
    local who
    for who in $(everyone); do
        must inside "$who" --setenv GITHUB_TOKEN 'cat .bashrc'
        output_has ghp_verysecret
        output_lacks last-secret
        must inside "$who" --setenv GITHUB_TOKEN=other 'cat .bashrc; . ./.bashrc; echo "has $GITHUB_TOKEN"'
        output_lacks ghp_verysecret
        output_has 'has other'
    done
}

@test "files that are links, in other directories or made later" {
    local who
    home 'mkdir -p .dotfiles/fish .config/environment.d; mv .bashrc .dotfiles/bashrc; ln -s .dotfiles/bashrc .bashrc
          echo "set -gx A_TOKEN fish-secret" >.dotfiles/fish/config.fish; ln -s ../.dotfiles/fish .config/fish
          echo "A_TOKEN=conf-secret" >.config/environment.d/a.conf'
    for who in $(everyone); do
        must inside "$who" 'cat .bashrc .dotfiles/bashrc .config/fish/config.fish .dotfiles/fish/config.fish .config/environment.d/a.conf; readlink .bashrc .config/fish; ls .dotfiles'
        output_lacks secret
        output_has 'which sets A_TOKEN'
        output_has .dotfiles/bashrc
        # The link can be replaced, and the target changed.
        must inside "$who" 'echo new >>.dotfiles/bashrc; cat .bashrc'
        output_has new
        output_lacks secret
        must by "$who" diff -j "$JAIL"
        output_has '+new'
        output_lacks secret
        must by "$who" apply -j "$JAIL" --all --risky
        home 'grep -q new .bashrc && grep -q last-secret .bashrc && test -L .bashrc'
        must by "$who" undo -j "$JAIL"
        home 'cmp .bashrc .saved'
        must by "$who" discard -j "$JAIL" --all
    done
    home 'rm .bashrc; mv .dotfiles/bashrc .bashrc'
}

@test "what start-up files read, and copies of them, have their lines hidden, too" {
    local who file
    local files=".bashrc~ .bashrc.bak .bashrc.swp .bashrc.d/mine.sh .zshrc.local .zshrc.pre-oh-my-zsh .config/zsh/.zshrc
        .config/fish/conf.d/a.fish .xprofile .bash_logout"
    home "mkdir -p .bashrc.d .config/zsh .config/fish/conf.d .plain; for f in $(echo $files); do printf 'export A_TOKEN=other-secret\n# rest\n' >\$f; done
          cp .bashrc.bak .plain/bashrc.bak"
    for who in $(everyone); do
        must inside "$who" "cat $(echo $files)"
        output_lacks secret
        output_has 'which sets A_TOKEN'
        output_has '# rest'
        # The twin: a file that no shell reads is a file as any other.
        must inside "$who" 'cat .plain/bashrc.bak'
        output_has other-secret
        # Such a file is flagged, and keeps its lines when it is applied.
        must inside "$who" 'echo new >>.zshrc.local'
        must_exit 1 by "$who" apply -j "$JAIL" --all
        must by "$who" apply -j "$JAIL" --all --risky
        home 'grep -q new .zshrc.local && grep -q other-secret .zshrc.local'
        must by "$who" undo -j "$JAIL"
        must by "$who" discard -j "$JAIL" --all
    done
    home "rm -r $(echo $files) .plain"
}

@test "tokens in the configuration of git are hidden, and git still reads it" {
    local who
    export token=x
    home 'cat >.gitconfig; cp .gitconfig .saved-git' <<'END'
[user]
	name = Jo
	email = jo@example.com
[url "https://ghp_verysecret@git.example/"]
	insteadOf = https://git.example/
[github]
	user = jo
	token = last-secret
END
    for who in $(everyone); do
        must inside "$who" 'cat .gitconfig; git config --global --list'
        output_lacks secret
        output_has 'user.name=Jo'
        output_has 'github.user=jo'
        # The twin: a token that is passed on.
        must inside "$who" --setenv token 'git config --global --list'
        output_has github.token=last-secret
        must inside "$who" 'git config --global alias.st status'
        must by "$who" apply -j "$JAIL" --risky "$HOME_OF_USER/.gitconfig"
        must home 'git config --global --get alias.st && git config --global --unset alias.st'
        must home 'diff .gitconfig .saved-git'
    done
    home 'rm .gitconfig .saved-git'
}

@test "a start-up file that is a link to a file outside the home is hidden with its target" {
    local who outside
    lib_is_root || cannot "it needs a directory outside the home"
    outside=$(mktemp -d /var/lib/brig-dotfiles.XXXXXX)
    LIB_SCRATCHES="$LIB_SCRATCHES $outside"
    chmod 755 "$outside"
    echo 'export A_TOKEN=outside-secret' >"$outside/bashrc"
    echo 'alias l=ls' >"$outside/aliases"
    home "mv .bashrc .saved-bashrc; ln -s $outside/bashrc .bashrc; ln -s $outside/aliases .bash_aliases"
    for who in $(everyone); do
        must inside "$who" "cat .bashrc $outside/bashrc 2>/dev/null; cat .bash_aliases $outside/aliases"
        output_lacks secret
        output_has 'alias l=ls'
    done
    home 'rm .bashrc .bash_aliases; mv .saved-bashrc .bashrc'
}

@test "while a run lasts, new and changed files do not show what is hidden, and the next run has them" {
    home 'rm -rf .config/fish'
    run_as_user "$BRIG" -m casual -j "$JAIL" -- bash -c "$AWAIT;"'
        cat ~/.bashrc >first; : >up
        until [ -e go ]; do cat ~/.bashrc~ ~/.bashrc.swp ~/.zshrc.bak; done >copies 2>/dev/null
        cat ~/.bashrc ~/.zshrc ~/.config/fish/config.fish ~/.config/environment.d/*.conf >seen 2>/dev/null
        : >done; await_file end' 3>&- &
    local first=$!
    await_file up
    # An editor makes copies: there is no moment at which they can be read.
    home 'for i in 1 2 3 4 5 6 7 8; do cp .bashrc .bashrc~; cp .bashrc .bashrc.swp; cp .bashrc .zshrc.bak; cat .bashrc~ >/dev/null; rm .bashrc~ .bashrc.swp .zshrc.bak; done'
    home 'echo "export B_TOKEN=new-secret" >>.bashrc; echo "export A_TOKEN=new-secret" >.zshrc
          sed -i s/vi/ed/ .bashrc
          mkdir -p .config/fish .config/environment.d; echo "set -x A_TOKEN new-secret" >.config/fish/config.fish
          echo "A_TOKEN=new-secret" >.config/environment.d/b.conf'
    must inside user 'cat .bashrc .zshrc .config/fish/config.fish .config/environment.d/b.conf 2>/dev/null; true'
    output_lacks secret
    output_has 'EDITOR=ed'
    output_has 'which sets B_TOKEN'
    output_has 'which sets A_TOKEN'
    touch go
    await_file done
    must_fail grep secret seen copies
    touch end
    wait "$first"
    must inside user 'cat .config/fish/config.fish .config/environment.d/b.conf'
    output_lacks secret
    output_has 'which sets A_TOKEN'
    home 'rm .zshrc; cp .saved .bashrc'
}

@test "two runs with different rules: a line is hidden if one of them hides it" {
    run_as_user "$BRIG" -m casual -j "$JAIL" --setenv GITHUB_TOKEN -- bash -c "$AWAIT;"': >up; await_file go; cat ~/.bashrc >seen' 3>&- &
    local first=$!
    await_file up
    must inside user 'cat .bashrc'
    output_lacks secret
    touch go
    wait "$first"
    must_fail grep secret seen
}

@test "status, diff, apply and undo: only what the jail did, and the hidden lines stay" {
    local who
    for who in $(everyone); do
        must inside "$who" 'touch .bashrc; chmod 640 .bashrc'
        must by "$who" status -j "$JAIL"
        output_lacks .bashrc
        must inside "$who" 'sed -i s/vi/emacs/ .bashrc; echo "export PATH=/jail:\$PATH" >>.bashrc'
        must by "$who" status -j "$JAIL"
        output_has .bashrc
        must by "$who" diff -j "$JAIL"
        output_has '+export EDITOR=emacs'
        output_has '+export PATH=/jail'
        output_lacks secret
        must by "$who" apply -j "$JAIL" --all --risky
        home 'sed s/emacs/vi/ .bashrc >.new; sed -i "\$d" .new; cmp .new .saved; rm .new; grep -q PATH=/jail .bashrc; test $(stat -c %a .bashrc) = 640'
        must by "$who" status -j "$JAIL"
        output_lacks .bashrc
        must by "$who" undo -j "$JAIL"
        unchanged
        must by "$who" discard -j "$JAIL" --all
        unchanged
    done
}

@test "apply during a run, and at its end" {
    run_as_user "$BRIG" -m casual -j "$JAIL" -- bash -c "$AWAIT;"'echo "# more" >>~/.bashrc; : >up; await_file go' 3>&- &
    local first=$!
    await_file up
    must by user apply -j "$JAIL" --live --risky --all
    home 'sed "\$d" .bashrc | cmp - .saved; grep -q "# more" .bashrc'
    must by user status -j "$JAIL"
    output_lacks .bashrc
    touch go
    wait "$first"
}

@test "a jail that has removed hidden lines or the file does not remove them outside" {
    local who
    for who in $(everyone); do
        must inside "$who" 'grep -v brig: .bashrc >.new; mv .new .bashrc'
        must_exit 1 by "$who" apply -j "$JAIL" --all --risky
        output_has 'hidden from the jail'
        must_exit 1 by "$who" apply -j "$JAIL" --all --risky --conflict theirs
        unchanged
        must inside "$who" 'rm .bashrc'
        must by "$who" status -j "$JAIL"
        output_has 'hidden from the jail'
        must_exit 1 by "$who" apply -j "$JAIL" --all --risky
        output_has 'lines that are hidden from the jail'
        unchanged
        must inside "$who" 'ln -s /etc/passwd .bashrc'
        must_exit 1 by "$who" apply -j "$JAIL" --all --risky
        unchanged
        must by "$who" discard -j "$JAIL" --all
        # Who wants to lose them can.
        must inside "$who" 'rm .bashrc'
        must by "$who" apply -j "$JAIL" --all --risky --conflict theirs
        home 'test ! -e .bashrc'
        must by "$who" undo -j "$JAIL"
        unchanged
        must by "$who" discard -j "$JAIL" --all
    done
}

@test "a deleted directory with a start-up file is a conflict" {
    home 'mkdir -p .config/fish; echo "set -gx A_TOKEN fish-secret" >.config/fish/config.fish'
    must inside user 'rm -r .config/fish'
    must_exit 1 by user apply -j "$JAIL" --all --risky
    home 'grep -q fish-secret .config/fish/config.fish'
}

@test "a jail that was forked keeps the hidden lines, too" {
    jail user "$JAIL-fork"
    must inside user 'echo "# more" >>.bashrc'
    must by user fork "$JAIL" "$JAIL-fork"
    must by user diff -j "$JAIL-fork"
    output_lacks secret
    must by user apply -j "$JAIL-fork" --all --risky
    home 'sed "\$d" .bashrc | cmp - .saved'
    home 'cp .saved .bashrc'
}

@test "with fuse-overlayfs it is the same" {
    lib_is_root || cannot "mounts need root"
    [ -e /usr/bin/fuse-overlayfs ] || cannot "fuse-overlayfs is not installed"
    run_as_user test -w /dev/fuse || cannot "the user may not open /dev/fuse"
    mkdir "$HOME_OF_USER/.mounted"
    mount -t tmpfs none "$HOME_OF_USER/.mounted"
    must inside user 'cat .bashrc'
    output_lacks secret
    output_has 'which sets GITHUB_TOKEN'
    must inside user 'echo "# more" >>.bashrc'
    must by user diff -j "$JAIL"
    output_has '+# more'
    output_lacks secret
    must by user apply -j "$JAIL" --all --risky
    home 'sed "\$d" .bashrc | cmp - .saved'
    must by user undo -j "$JAIL"
    unchanged
}

@test "a file that is too large is hidden as a whole, and one that is masked stays hidden" {
    home 'head -c 300000 /dev/zero | tr "\0" "#" >>.bashrc'
    must_fail inside user 'cat .bashrc'
    home 'cp .saved .bashrc'
    must inside user 'cat .bashrc'
    must_fail inside user --mask .bashrc 'grep . .bashrc'
}

# project NAME: a directory beside others, with tokens, in the home.
project() {
    home "mkdir -p $SCRATCH/$1 && cd $SCRATCH/$1 && echo DB_PASSWORD=env-secret >.env && echo DB_PASSWORD= >.env.example"
}

@test "the name of a directory cannot add a command to a remedy that is typed" {
    local line name here="$SCRATCH/project/named"
    jail user "$JAIL-user"
    for name in 'a;touch made;' "b\$(touch made)" "c'; touch made; '" $'d\ntouch made\n'; do
        rm -rf "$here"
        run_as_user mkdir -p "$here/$name"
        echo 'DB_PASSWORD=abcdefgh12345678' | run_as_user tee "$here/$name/.env" >/dev/null
        run_as_user git -C "$here" init -q
        cd "$here"
        must by user doctor
        line=$(grep -F -- "to hide it: --mask" <<<"$output")
        eval "must_fail by user -m casual -j $JAIL-user ${line##*to hide it: } -- sh -c 'grep . ./*/.env'"
        output_lacks DB_PASSWORD
        [ ! -e made ]
        # The twin: without the remedy it can be read.
        must by user -m casual -j "$JAIL-user" -- sh -c 'cat ./*/.env'
        output_has DB_PASSWORD=
        cd "$SCRATCH/project"
    done
}

@test "the first run in a project tells where tokens are, once, and by name only" {
    local who
    needs git
    for who in $(everyone); do
        jail "$who" "$JAIL-$who"
        project "$who/first"
        project "$who/second"
        home "cd $SCRATCH/$who/first && git init -q . && git remote add origin https://me:git-secret@github.com/a/b"
        cd "$SCRATCH/$who/first"
        # The search ends early on a machine that is held up, with what comes last missing: then once more, as new.
        first_run() {
            run_as_user rm -rf "${BRIG_CONFIG_DIR:-$HOME_OF_USER/.local/share/brig}/.projects"
            run by "$who" -m casual -j "$JAIL-$who" -- true
            [[ $status -ne 0 || $output == *"$who/second/.env"* ]]
        }
        await first_run || true # the lines below show what it said
        [ "$status" -eq 0 ]
        output_has './.env sets DB_PASSWORD: a jail here can read it; to hide it: --mask ./.env'
        output_has '~/.bashrc sets GITHUB_TOKEN, CERT_KEY'
        output_has '--inject @github'
        output_has "$who/second/.env sets DB_PASSWORD: a casual jail can read it; to hide it: brig mask "
        output_lacks secret
        output_lacks example
        must by "$who" -m casual -j "$JAIL-$who" -- true
        output_lacks DB_PASSWORD
        output_lacks .bashrc
        # The remedies work.
        must_fail by "$who" -m casual -j "$JAIL-$who" --mask ./.env -- grep . .env
        must by "$who" mask -j "$JAIL-$who" "$SCRATCH/$who/second/.env"
        must_fail by "$who" -m casual -j "$JAIL-$who" -- grep . "$SCRATCH/$who/second/.env"
        cd "$SCRATCH/$who/second"
        must by "$who" -m strict -j "$JAIL-strict-$who" --mask ./.env -- true
        output_lacks DB_PASSWORD
        output_lacks .bashrc
        jail "$who" "$JAIL-strict-$who"
        cd "$SCRATCH/$who/first"
        must by "$who" doctor
        output_has 'Token: ./.env sets DB_PASSWORD'
        output_has 'Token: git remote origin has a URL with a password: jails get the remote without the password; to use it in a jail: --inject @github'
        output_has "Token: ~/.bashrc sets GITHUB_TOKEN"
        output_lacks secret
        must by "$who" doctor --json
        must python3 -c 'import json, sys
tokens = json.loads(sys.argv[1])["tokens"]
assert {"startup", "env", "remote"} <= {token["kind"] for token in tokens}, tokens' "$output"
        cd "$SCRATCH/project"
    done
}

# Root's home is another one meanwhile, in a mount namespace.
@test "as root, whose jail has a uid that owns nothing, it is the same" {
    lib_is_root || cannot "this is for root"
    local own
    own=$(mktemp -d "${BRIG_SCRATCH:-/var/lib}/brigtest.XXXXXXXX")
    LIB_SCRATCHES="$LIB_SCRATCHES $own"
    chmod 0755 "$own"
    mkdir "$own/home" "$own/project"
    printf 'first\nexport A_TOKEN=root-secret\n' >"$own/home/.bashrc"
    chmod 0600 "$own/home/.bashrc"
    cp -p "$own/home/.bashrc" "$own/saved"
    jail root "$JAIL"
    must unshare -m env HOME=/root BRIG_CONFIG_DIR="$ROOT_STORE" sh -ec '
        mount --bind "$1/home" /root; cd "$1/project"
        "$2" -m casual -j "$3" -- sh -c "cat ~/.bashrc; stat -c %a ~/.bashrc; echo more >>~/.bashrc"
        "$2" diff -j "$3"
        "$2" apply -j "$3" --all --risky
        "$2" stop "$3"' - "$own" "$BRIG" "$JAIL"
    output_lacks root-secret
    output_has 'which sets A_TOKEN'
    output_has 600
    output_has '+more'
    { cat "$own/saved" && echo more; } | cmp - "$own/home/.bashrc"
    [ "$(stat -c '%u %a' "$own/home/.bashrc")" = '0 600' ]
}
