#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The files that injected credentials come from are hidden in the jail. Nothing is sent: what the credentials do is in
# net.bats.
# Each file is also read where no credential comes from it: otherwise a test that finds nothing proves nothing.
# shellcheck disable=SC2154 # status and output are set by `run`
# shellcheck disable=SC2016 # what is in single quotes is for the shell in the jail

load lib

setup() {
    [ -x "$BUILD_DIR/src/net/brig-broker" ] || cannot "brig-broker was not built"
    jails_setup
    MADE=
}

teardown() {
    local name
    for name in $MADE; do
        rm -rf -- "${HOME_OF_USER:?}/$name"
    done
    jails_teardown
}

# put FILE…: makes a secret and, beside it, a file that stays visible; both are the user's.
put() {
    local file
    for file; do
        run_as_user sh -c 'echo token-in-file >"$1"; echo open >"${1%/*}/open"' - "$file"
    done
}

# hides WHO OPTIONS… -- FILE…: each FILE can be read in a jail with these options, and not if SECRET is a source as well;
# others can. WITH is the credential, if it is another.
hides() {
    local who=$1 options=() file
    shift
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    for file; do
        must by "$who" --net allow "${options[@]}" -- cat "$file"
        output_has token-in-file
    done
    must by "$who" --net allow --inject "api.example x-api-key=${WITH:-file:$SECRET}" "${options[@]}" -- \
        sh -c 'for file; do cat "$file" "${file%/*}/open"; cat "$file" <&-; done 2>/dev/null; true' - "$@"
    output_lacks token-in-file
    [ "$output" = "$(for file; do echo open; done)" ]
}

@test "the file of a secret is hidden in the working directory, in every mode" {
    local pair who mode
    SECRET=$PWD/token
    put "$SECRET"
    for pair in $(pairs_of "$(everyone)" casual bare strict sealed); do
        echo "# $pair" >&2
        who=${pair%:*} mode=${pair#*:}
        jail "$who" "cwd-$mode-$who"
        hides "$who" -m "$mode" -j "cwd-$mode-$who" -- "$SECRET"
    done
}

@test "the file of a secret is hidden in what is granted, at its own path and at another" {
    local pair who mode
    run_as_user mkdir -p "$SCRATCH/granted/deep" "$SCRATCH/dest"
    SECRET=$SCRATCH/granted/deep/token
    put "$SECRET"
    for pair in $(pairs_of "$(everyone)" casual bare strict sealed); do
        echo "# $pair" >&2
        who=${pair%:*} mode=${pair#*:}
        jail "$who" "granted-$mode-$who"
        hides "$who" -m "$mode" -j "granted-$mode-$who" -D -r "$SCRATCH/granted" -- "$SECRET"
        hides "$who" -m "$mode" -j "granted-$mode-$who" -D -d "$SCRATCH/granted:$SCRATCH/dest" -- \
            "$SCRATCH/dest/deep/token"
    done
}

@test "the file of a secret is hidden in the home, in its copy and where it is granted" {
    local pair who mode
    MADE=token-dir
    run_as_user mkdir -p "$HOME_OF_USER/token-dir"
    SECRET=$HOME_OF_USER/token-dir/token
    put "$SECRET"
    for who in $(everyone); do
        jail "$who" "home-$who"
        hides "$who" -m casual -j "home-$who" -- "$SECRET"
        # shellcheck disable=SC2088 # brig replaces it
        WITH='file:~/token-dir/token' hides "$who" -m casual -j "home-$who-spelt" -- "$SECRET"
        jail "$who" "home-$who-spelt"
    done
    for pair in $(pairs_of "$(everyone)" casual bare strict sealed); do
        echo "# $pair" >&2
        who=${pair%:*} mode=${pair#*:}
        jail "$who" "home-$mode-$who"
        hides "$who" -m "$mode" -j "home-$mode-$who" -r "$HOME_OF_USER/token-dir" -- "$SECRET"
    done
}

@test "root has the file of a secret hidden in its own jails" {
    lib_is_root || cannot "only root can be root"
    local mode
    scratch_make root
    SECRET=$SCRATCH/token
    echo token-in-file >"$SECRET"
    echo open >"$SCRATCH/open"
    cd "$SCRATCH"
    for mode in casual bare strict sealed; do
        echo "# $mode" >&2
        jail root "root-$mode"
        hides root -m "$mode" -j "root-$mode" -- "$SECRET"
    done
}

@test "the file of a secret is hidden by all its names, whatever link the credential names" {
    local mode
    run_as_user mkdir -p "$SCRATCH/real" links
    SECRET=$SCRATCH/real/token
    put "$SECRET"
    run_as_user ln -s "$SCRATCH/real/token" links/token
    run_as_user ln -s "$SCRATCH/real" "$SCRATCH/by-link"
    put links/other
    for mode in casual bare strict sealed; do
        jail user "links-$mode"
        WITH=file:links/token hides user -m "$mode" -j "links-$mode" -r "$SCRATCH/real" -- "$SECRET" "$PWD/links/token"
        hides user -m "$mode" -j "links-$mode" -D -r "$SCRATCH/by-link" -- "$SCRATCH/by-link/token"
    done
}

# elsewhere COMMAND…: as the user, where /mnt/twin shows the scratch directory.
elsewhere() {
    unshare -m --propagation private sh -c '
        mount -t tmpfs none /mnt && mkdir /mnt/twin && mount --bind "$1" /mnt/twin && user=$2 && home=$3 && shift 3 &&
        exec setpriv --reuid="$user" --regid="$user" --init-groups env HOME="$home" "$@"' - \
        "$SCRATCH" "$LIB_USER" "$HOME_OF_USER" "$@"
}

@test "another mount of the same directory does not show the file of a secret" {
    lib_is_root || cannot "mounts need root"
    SECRET=$PWD/token
    put "$SECRET"
    local rule="api.example x-api-key=file:$SECRET"
    jail user twin
    must elsewhere "$BRIG" -m sealed -D -r /mnt/twin -- cat /mnt/twin/project/token
    output_has token-in-file
    must elsewhere "$BRIG" -m sealed --net allow -D -r /mnt/twin --inject "$rule" -- \
        sh -c 'cat /mnt/twin/project/token; cat /mnt/twin/project/open'
    [ "$output" = open ]
    must elsewhere "$BRIG" -m sealed -D --view host -- cat /mnt/twin/project/token
    output_has token-in-file
    must elsewhere "$BRIG" -m sealed --net allow -D --view host --inject "$rule" -- \
        sh -c 'cat /mnt/twin/project/token; cat /mnt/twin/project/open'
    [ "$output" = open ]
}

# A file of one line in a directory of the system, which every view has.
one_line() {
    local file line form='^[ -~]{3,80}$'
    while read -r file; do
        IFS= read -r line <"$file" && [ "$(<"$file")" = "$line" ] && [[ $line =~ $form ]] && echo "$file" && break
    done < <(find /usr/share /usr/lib -type f -perm -004 -size -2 -name '[a-zA-Z]*' 2>/dev/null)
}

@test "the file of a secret is hidden in the directories of the system" {
    local file mode
    file=$(one_line)
    [ -n "$file" ] || cannot "there is no file of one line in /usr"
    for mode in casual bare strict sealed; do
        jail user "system-$mode"
        must run_as_user "$BRIG" -m "$mode" -j "system-$mode" -D -- grep -c . "$file"
        [ "$output" = 1 ]
        must_exit 1 run_as_user "$BRIG" -m "$mode" -j "system-$mode" -D --net allow \
            --inject "api.example x-api-key=file:$file" -- grep -c . "$file"
        [ "$output" = 0 ]
    done
}

@test "the files that a command names are hidden, and so is the program" {
    MADE=token-dir
    run_as_user mkdir -p "$HOME_OF_USER/token-dir" bin
    SECRET=$HOME_OF_USER/token-dir/token
    put "$SECRET" "$PWD/bin/key"
    run_as_user sh -c 'printf "#!/bin/sh\n# token-in-file\necho \"x\$(cat \"\$@\" </dev/null)\"\n" >bin/get; chmod +x bin/get'
    local line i=0
    for line in 'cat ~/token-dir/token' "cat <\$HOME/token-dir/token | head -n1" "sh -c 'cat \"$SECRET\"'" \
        "bin/get $SECRET" "FROM=x bin/get \"$SECRET\""; do
        echo "# $line" >&2
        i=$((i + 1))
        jail user "command-$i"
        # In turns in a copy of the home and in what is granted of it.
        if [ $((i % 2)) = 1 ] || [ -n "${BRIG_THOROUGH:-}" ]; then
            WITH="cmd:$line" hides user -m casual -j "command-$i" -- "$SECRET"
        fi
        if [ $((i % 2)) = 0 ] || [ -n "${BRIG_THOROUGH:-}" ]; then
            WITH="cmd:$line" hides user -m sealed -r "$HOME_OF_USER/token-dir" -- "$SECRET"
        fi
    done
    WITH='cmd:bin/get bin/key' hides user -m sealed -- "$PWD/bin/get" "$PWD/bin/key"
    # In PATH; programs of the project are not looked for there.
    run_as_user cp -r bin "$SCRATCH/tools"
    PATH=$SCRATCH/tools:$PATH WITH="cmd:get bin/key" hides user -m sealed -r "$SCRATCH/tools" -- "$SCRATCH/tools/get" "$PWD/bin/key"
    # Programs of the system stay.
    must run_as_user "$BRIG" -m sealed --net allow --inject "api.example x-api-key=cmd:cat bin/key" -- cat bin/open
    [ "$output" = open ]
}

@test "the file of ca= is hidden, except where all users of the machine have it" {
    SECRET=$PWD/ca.pem
    put "$SECRET"
    export API_KEY=key
    must run_as_user "$BRIG" -m sealed --net allow --inject "api.example x-api-key=env:API_KEY" -- cat ca.pem
    output_has token-in-file
    must run_as_user "$BRIG" -m sealed --net allow --inject "api.example x-api-key=env:API_KEY ca=$SECRET" -- \
        sh -c 'cat ca.pem; cat open'
    [ "$output" = open ]
    [ -s /etc/ssl/certs/ca-certificates.crt ] || skip "there are no certificates of the system"
    must run_as_user "$BRIG" -m casual -j ca --net allow \
        --inject "api.example x-api-key=env:API_KEY ca=/etc/ssl/certs/ca-certificates.crt" -- \
        test -s /etc/ssl/certs/ca-certificates.crt
    jail user ca
}

@test "no rule shows the file of a secret, and a grant of exactly that file is refused" {
    MADE=token-dir
    run_as_user mkdir -p "$HOME_OF_USER/token-dir"
    SECRET=$HOME_OF_USER/token-dir/token
    put "$SECRET"
    local option rule="api.example x-api-key=file:$SECRET"
    jail user rules
    hides user -m casual -j rules --unmask token-dir/token -- "$SECRET"
    jail user rules-above
    hides user -m casual -j rules-above --mask token-dir --unmask token-dir/token -r "$HOME_OF_USER/token-dir" -- "$SECRET"
    run_as_user ln -s "$SECRET" "$SCRATCH/link"
    run_as_user ln "$SECRET" "$SCRATCH/hard"
    for option in "-r$SECRET" "-d$SECRET" "-r$SECRET:/srv/key" "-r$SCRATCH/link" "-d$SCRATCH/hard" "--dir?=$SECRET"; do
        echo "# $option" >&2
        must run_as_user "$BRIG" -m sealed "$option" -- true
        must_exit 125 run_as_user "$BRIG" -m sealed --net allow --inject "$rule" "$option" -- true
        output_has "cannot be granted: an injected credential comes from it"
        output_has "[inject, command line]"
    done
}

@test "the file of a secret that is protected, too, is hidden" {
    local mode
    SECRET=$PWD/.envrc
    put "$SECRET"
    run_as_user git init -q
    for mode in casual bare strict sealed; do
        jail user "protected-$mode"
        hides user -m "$mode" -j "protected-$mode" -- "$SECRET"
        must run_as_user "$BRIG" -m "$mode" -j "protected-$mode" --net allow --mask ./.envrc \
            --inject "api.example x-api-key=file:$SECRET" -- sh -c 'cat .envrc; cat open'
        [ "$output" = open ]
    done
}

@test "a file that replaces that of a secret while the jail runs is hidden as well" {
    MADE=token-dir
    run_as_user mkdir -p "$HOME_OF_USER/token-dir"
    local where secret
    for where in "$HOME_OF_USER/token-dir" "$PWD"; do
        rm -f up go seen
        secret=$where/token
        put "$secret"
        jail user replaced
        run_as_user "$BRIG" -m casual -j replaced --net allow --inject "api.example x-api-key=file:$secret" -- sh -c "
            $AWAIT
            cat $secret >/dev/null 2>&1; : >up; await_file go; await_hidden $secret
            cat $secret >seen 2>/dev/null; echo end >>seen" 3>&- &
        local pid=$!
        await_file up
        run_as_user sh -c 'echo token-in-file >"$1.new"; mv "$1.new" "$1"; : >go' - "$secret"
        wait "$pid"
        [ "$(cat seen)" = end ]
    done
}

@test "explain and why tell that the file of a secret is hidden" {
    SECRET=$PWD/token
    put "$SECRET"
    must run_as_user "$BRIG" explain -m sealed --net allow --inject "api.example x-api-key=file:$SECRET"
    output_has "$SECRET"
    output_has "inject, command line"
    must run_as_user "$BRIG" why -m sealed "$SECRET"
    output_lacks "inject"
    run run_as_user "$BRIG" why -m sealed --net allow --inject "api.example x-api-key=file:$SECRET" "$SECRET"
    output_has "inject, command line"
}
