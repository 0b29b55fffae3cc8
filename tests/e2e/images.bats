#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Container images: loading them from each format, running in them, and archives made to harm whoever unpacks
# them. Each as root and as an ordinary user; each refusal has a twin in the tests of honest images.
# shellcheck disable=SC2016 # what is in single quotes is for the shell in the jail
# shellcheck disable=SC2154 # status and output are set by `run`
# shellcheck disable=SC2030,SC2031 # each test has its own directory

load lib

setup() {
    needs python3 busybox
    scratch_make root
    chmod 0755 "$SCRATCH"
    MAKE="$LIB_DIR/make_image.py"
    TOP=$SCRATCH
    cd "$TOP" || return
}

teardown() {
    local who
    for who in $(each_user); do
        as "$who" "$BRIG" image list --json 2>/dev/null | python3 -c \
            'import json, sys; [print(image["name"]) for image in json.load(sys.stdin)]' |
            while read -r name; do as "$who" "$BRIG" image rm "$name" || true; done
    done >/dev/null 2>&1
    cd / || true
    scratch_remove
}

# make FORMAT CASE: writes an image to ./image.
make() {
    rm -rf image
    python3 "$MAKE" "$1" image "$2"
    chmod -R a+rX image
}

# inside WHO NAME SCRIPT: in a sealed jail with the image as root.
inside() {
    as "$1" "$BRIG" -D -m sealed --image "$2" /bin/sh -c "$3"
}

# load_case WHO FORMAT CASE
load_case() {
    make "$2" "$3"
    run as "$1" "$BRIG" image load "$TOP/image"
}

# must_load WHO FORMAT CASE
must_load() {
    load_case "$@"
    [ "$status" -eq 0 ] || {
        echo "$*: $output" >&2
        return 1
    }
}

# must_refuse WHO FORMAT CASE TEXT: with this text in the message; nothing is left in the store.
must_refuse() {
    load_case "$1" "$2" "$3"
    [ "$status" -eq 125 ] || {
        echo "$*: exit $status, $output" >&2
        return 1
    }
    output_has "$4"
    must as "$1" "$BRIG" image list
    output_lacks test/
    # Names and layers of earlier attempts are gone as well.
    must as "$1" "$BRIG" image gc
}

@test "an image is loaded from each format, and its files are seen" {
    local who format
    for who in $(each_user); do
        for format in oci oci-archive docker; do
            must_load "$who" "$format" layers
            output_has 'loaded test/layers:1'
            must inside "$who" test/layers:1 'cat /etc/name; ls /dir; ls /etc/old 2>&1; id -un >/dev/null && echo user'
            output_has upper
            output_has two
            output_lacks one
            output_has 'No such file'
            output_has user
            must as "$who" "$BRIG" image rm test/layers:1
            run inside "$who" test/layers:1 true
            [ "$status" -eq 125 ]
            output_has "there is no image 'test/layers:1'"
        done
    done
}

@test "plain, gzip and zstd layers, and long names of both kinds" {
    local who name
    for who in $(each_user); do
        for name in plain base zstd; do
            [ "$name" != zstd ] || command -v zstd >/dev/null || continue
            must_load "$who" oci "$name"
            must inside "$who" test/base:1 'cat /etc/name'
            output_has base
        done
        for name in gnu pax; do
            must_load "$who" oci "$name"
            must inside "$who" test/base:1 'cat /longlink'
            output_has deep
        done
    done
}

@test "an image of a docker archive is chosen by its name, with and without docker.io" {
    local name
    make docker base
    for name in test/base:1 docker.io/test/base:1; do
        must as user "$BRIG" image load "docker-archive:$TOP/image:$name"
        output_has 'loaded test/base:1'
    done
    run as user "$BRIG" image load "docker-archive:$TOP/image:other.example/test/base:1"
    [ "$status" -eq 125 ]
    output_has "there is no image 'other.example/test/base:1' in it"
    gzip -f image
    run as user "$BRIG" image load "$TOP/image.gz"
    [ "$status" -eq 125 ]
    output_has 'it is compressed; decompress it first'
}

@test "an image gives command, environment and working directory, under the user's" {
    local who
    for who in $(each_user); do
        must_load "$who" oci base
        must as "$who" "$BRIG" -D -m sealed --image test/base:1
        [ "$output" = $'hello from the image\n/app' ]
        must as "$who" "$BRIG" -D -m sealed --setenv GREETING=mine --workdir /etc --image test/base:1
        [ "$output" = $'mine\n/etc' ]
        must as "$who" "$BRIG" -D -m strict -j img --image test/base:1 sh -c 'echo $GREETING; cat /etc/name'
        [ "$output" = $'hello from the image\nbase' ]
        must as "$who" "$BRIG" rm -f img
    done
}

@test "an image in a .conf file, and the last of image, root and view counts" {
    local who
    for who in $(each_user); do
        must_load "$who" oci base
        printf 'mode sealed\nimage test/base:1\n' >img.conf
        must as "$who" "$BRIG" -D -C "$SCRATCH/img.conf" cat /etc/name
        output_has base
        must as "$who" "$BRIG" -D -C "$SCRATCH/img.conf" --view system sh -c 'test ! -e /etc/name && echo host'
        output_has host
    done
}

@test "writes go to memory, count with /tmp, and are gone" {
    local who
    for who in $(each_user); do
        must_load "$who" oci base
        must inside "$who" test/base:1 'echo new >/etc/name && cat /etc/name && busybox rm -r /dir && echo removed'
        [ "$output" = $'new\nremoved' ]
        must inside "$who" test/base:1 'cat /etc/name /dir/one'
        [ "$output" = $'base\none' ]
        run as "$who" "$BRIG" -D -m sealed --disk 1M --image test/base:1 busybox dd if=/dev/zero of=/big bs=1M count=4
        [ "$status" -ne 0 ]
        output_has 'No space left'
    done
}

@test "a project is granted at its path, and nothing else of the host is there" {
    local who project
    for who in $(each_user); do
        must_load "$who" oci base
        scratch_make "$who"
        project=$SCRATCH
        cd "$project"
        must as "$who" "$BRIG" -m strict -j img --image test/base:1 sh -c 'pwd; echo made >file; ls -d /usr /home/*/.ssh 2>&1; cat /etc/name'
        output_has "$project"
        output_has 'No such file'
        [ "$(cat file)" = made ]
        must as "$who" "$BRIG" rm -f img
        cd "$TOP"
    done
}

@test "a layer that occurs twice, kinds that change between layers, and duplicates in one" {
    local who
    for who in $(each_user); do
        must_load "$who" oci twice
        must inside "$who" test/base:1 'cat /etc/name'
        [ "$output" = middle ]
        must_load "$who" oci types
        must inside "$who" test/base:1 'ls /x; cat /x/now /y; cat /z/name'
        [ "$output" = $'now\na directory\na file\nbase' ]
        must_load "$who" oci duplicates
        must inside "$who" test/base:1 'cat /d /e /f /etc/name'
        [ "$output" = $'second\nnow a file\nown\nbase' ]
    done
}

@test "set-id bits, devices and owners are dropped, and closed directories can be read" {
    local who
    for who in $(each_user); do
        must_load "$who" oci modes
        output_has '2 devices and FIFOs of a layer were left out'
        must inside "$who" test/base:1 'stat -c %a /suid; cat /closed/in; ls /device /fifo 2>&1; stat -c %u /etc/name; id -u'
        [ "${lines[0]}" = 755 ]
        [ "${lines[1]}" = in ]
        [ "${lines[4]}" = "${lines[5]}" ]
        output_lacks 'crw'
    done
}

@test "a hundred thousand files" {
    must_load user oci many
    must inside user test/base:1 'ls /many/99 | busybox wc -l'
    [ "$output" = 1000 ]
}

@test "names that lead out of the image are refused, or stay in it" {
    local who
    for who in $(each_user); do
        must_refuse "$who" oci dotdot 'unsafe name'
        must_refuse "$who" oci dotdot-inside 'unsafe name'
        must_refuse "$who" oci link-parent "not a directory"
        must_refuse "$who" oci link-relative "not a directory"
        must_refuse "$who" oci below-file "not a directory"
        must_refuse "$who" oci long-component 'unsafe name'
        must_refuse "$who" oci deep 'unsafe name'
        [ ! -e /tmp/escaped ]
        [ ! -e "$SCRATCH/outside" ]
        must_load "$who" oci absolute
        must inside "$who" test/base:1 'cat /etc/absolute'
        [ ! -e /etc/absolute ]
        must_load "$who" oci link-file
        must inside "$who" test/base:1 'cat /etc/victim'
        [ "$output" = own ]
        [ ! -e /tmp/brig-image-victim ]
        must as "$who" "$BRIG" image rm test/base:1
    done
}

@test "hard links lead to files of the same layer only" {
    local who
    for who in $(each_user); do
        must_refuse "$who" oci hard-outside 'unsafe name'
        must_refuse "$who" oci hard-absolute 'not a file of the same layer'
        must_refuse "$who" oci hard-through-link 'not a file of the same layer'
        must_refuse "$who" oci hard-directory 'not a file of the same layer'
        must_load "$who" oci base
        must inside "$who" test/base:1 'stat -c %h /bin/hard /bin/busybox'
        [ "$output" = $'2\n2' ]
        must as "$who" "$BRIG" image rm test/base:1
    done
}

@test "whiteouts hide names of their directory only" {
    local who
    for who in $(each_user); do
        must_refuse "$who" oci whiteout-parent 'unsafe name'
        must_refuse "$who" oci whiteout-empty 'unsafe name'
        must_refuse "$who" oci whiteout-directory 'unsafe name'
        must_refuse "$who" oci whiteout-through-link 'not a directory'
        must_refuse "$who" oci opaque-through-link 'not a directory'
        [ ! -c /tmp/victim ]
        must_load "$who" oci layers
        must inside "$who" test/layers:1 'ls -a /etc /dir'
        output_lacks .wh.
        must as "$who" "$BRIG" image rm test/layers:1
    done
}

@test "damaged archives are refused" {
    local who
    for who in $(each_user); do
        must_refuse "$who" oci bad-checksum 'not a valid tar archive'
        must_refuse "$who" oci truncated 'ends early'
        must_refuse "$who" oci truncated-gzip 'cannot be decompressed'
        must_refuse "$who" oci sparse 'not supported'
        must_refuse "$who" oci huge-size 'ends early'
        must_refuse "$who" oci bomb 'like a bomb'
        must_refuse "$who" oci no-layers '0 layers'
        must_refuse "$who" oci too-many-layers '128 layers'
        must_refuse "$who" oci deep-json 'not valid JSON'
        must_refuse "$who" oci path-digest 'no SHA-256 digest'
        must_refuse "$who" oci windows 'not for Linux'
    done
}

@test "layers have the digests and sizes that they are named by" {
    local who
    for who in $(each_user); do
        must_refuse "$who" oci wrong-size 'should have 7'
        must_refuse "$who" oci wrong-diff-id 'does not have its digest'
        must_refuse "$who" docker wrong-diff-id 'does not have its digest'
        must_refuse "$who" oci missing-layer 'lacks the layer'
        load_case "$who" oci wrong-digest
        [ "$status" -eq 125 ]
        must as "$who" "$BRIG" image list
        output_lacks test/
    done
}

# A brig-unpack that an image has taken over: it says what lies beside the image.
make_taken_over() {
    rm -rf bin
    mkdir bin
    cp "$BRIG" bin/brig
    printf '%s\n' '#!/bin/sh' 'if [ "$1" = image ]; then cp /image/said.record record && cp /image/said.places places' \
        'else mkdir files && echo evil >files/evil && : >hidden; fi' >bin/brig-unpack
    chmod -R a+rx bin
}

# say PATH: the places of the image are its manifest and, as its layer, the file.
say() {
    local digits
    digits=$(python3 -c 'import json; print(json.load(open("image/index.json"))["manifests"][0]["digest"][7:])')
    printf 'brig-image 1\nname test/base:1\ndigest %s\nlayer %s\n' "$(printf 1%.0s {1..64})" "$(printf 0%.0s {1..64})" \
        >image/said.record
    printf '0 %s %s\n' "$(stat -c %s "image/blobs/sha256/$digits")" "blobs/sha256/$digits" \
        "$(stat -c %s "image/$1")" "$1" >image/said.places
    chmod a+r image/said.*
}

@test "the digests of an image and its layers are not those that brig-unpack says" {
    local layer digest
    make oci base
    must as user "$BRIG" image load "$TOP/image"
    digest=$(as user "$BRIG" image inspect test/base:1 | sed -n 's/^digest *//p')
    layer=$(ls "$LIB_USER_HOME/.local/share/brig/images/layers")
    must as user "$BRIG" image rm test/base:1
    make_taken_over
    # A file that the manifest does not name cannot be a layer of the image with its digest.
    echo other >image/other
    chmod a+r image/other
    say other
    run as user "$TOP/bin/brig" image load "$TOP/image"
    [ "$status" -eq 125 ]
    output_has 'does not have its digest'
    ln -s /etc/passwd image/link
    say link
    run as user "$TOP/bin/brig" image load "$TOP/image"
    [ "$status" -eq 125 ]
    # One that it names is stored by the digest that the file has, and so is the image.
    say "blobs/sha256/${layer#sha256-}"
    must as user "$TOP/bin/brig" image load "$TOP/image"
    [ "$(ls "$LIB_USER_HOME/.local/share/brig/images/layers")" = "$layer" ]
    [ "$(as user "$BRIG" image inspect test/base:1 | sed -n 's/^digest *//p')" = "$digest" ]
}

@test "what an image says is not read as a record" {
    must_load user oci bad-env
    must as user "$BRIG" image inspect --json test/base:1
    python3 -c 'import json, sys
image = json.load(sys.stdin)
assert len(image["layers"]) == 1, image
assert image["env"] == ["A=1\nlayer " + "0" * 64, "B=%41"], image' <<<"$output"
}

@test "images share layers; rm and gc remove what no image and no run uses" {
    local layers=$LIB_USER_HOME/.local/share/brig/images/layers
    must_load user oci base
    must_load user oci layers
    [ "$(ls "$layers" | wc -l)" -eq 2 ]
    # A running jail keeps its layers.
    as user "$BRIG" -D -m sealed --image test/layers:1 /bin/sh -c 'echo up; read x; cat /etc/name' \
        < <(await_file "$SCRATCH/go"; echo) >out 2>err &
    local pid=$!
    await grep -q up out
    must as user "$BRIG" image rm test/base:1
    must as user "$BRIG" image rm test/layers:1
    output_has 'in use by running jails'
    [ "$(ls "$layers" | wc -l)" -eq 2 ]
    : >go
    wait "$pid" || { cat err; false; }
    [ "$(cat out)" = $'up\nupper' ]
    must as user "$BRIG" image gc
    output_has 'removed 2 layers'
    [ -z "$(ls "$layers")" ]
}

@test "an image is found by tag, by digest and pinned" {
    local digest
    must_load user oci base
    must as user "$BRIG" image load --name plain "$TOP/image"
    must inside user plain 'cat /etc/name'
    must as user "$BRIG" image load --name named:latest "$TOP/image"
    must inside user docker.io/library/named 'cat /etc/name'
    must as user "$BRIG" image load --name docker.io/own/named "$TOP/image"
    must inside user own/named 'cat /etc/name'
    must inside user docker.io/own/named 'cat /etc/name'
    digest=$(as user "$BRIG" image inspect test/base:1 | sed -n 's/^digest *//p')
    must inside user "test/base:1@$digest" 'cat /etc/name'
    must inside user "${digest:0:20}" 'cat /etc/name'
    run inside user "test/base:1@sha256:$(printf 0%.0s {1..64})" true
    [ "$status" -eq 125 ]
    output_has 'another digest'
    run as user "$BRIG" image load --name '../x' "$TOP/image"
    [ "$status" -eq 125 ]
    output_has 'not the name of an image'
}

@test "brig fetches nothing, and says how to" {
    run as user "$BRIG" image load docker://python:3.12-slim
    [ "$status" -eq 125 ]
    output_has "skopeo copy 'docker://python:3.12-slim' oci-archive:image.tar"
}

@test "images of umoci and skopeo" {
    needs umoci skopeo
    make oci no-user
    # umoci makes another image of it, skopeo copies it to each format.
    mkdir layout
    skopeo --insecure-policy copy -q oci:image:test/base:1 oci:layout:one
    umoci unpack --rootless --image layout:one bundle 2>/dev/null || cannot 'umoci cannot unpack here'
    echo changed >bundle/rootfs/etc/name
    rm bundle/rootfs/etc/old
    umoci repack --image layout:two bundle
    skopeo --insecure-policy copy -q oci:layout:two oci-archive:two.oci:two
    skopeo --insecure-policy copy -q oci:layout:two docker-archive:two.docker:two:1
    chmod -R a+rX .
    must as user "$BRIG" image load --name a "oci:$SCRATCH/layout:two"
    must as user "$BRIG" image load --name b "oci-archive:$SCRATCH/two.oci:two"
    must as user "$BRIG" image load --name c "docker-archive:$SCRATCH/two.docker"
    must as user "$BRIG" image load --name d "oci:$SCRATCH/layout:one"
    local name
    for name in a b c; do
        must inside user "$name" 'cat /etc/name; ls /etc/old 2>&1; true'
        output_has changed
        output_has 'No such file'
    done
    must inside user d 'cat /etc/name /etc/old'
    [ "$output" = $'base\nold' ]
}
