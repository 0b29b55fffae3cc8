#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# brig help TOPIC: every page is short, and names only options and verbs that exist.
# shellcheck disable=SC2154 # status and output are set by `run`

load lib

topics() {
    "$BRIG" --complete help '' | sed 's/ *\t.*//'
}

@test "there is a page for every verb and subject, on two screens of 80 columns" {
    local topic
    for topic in $(topics); do
        [ "$topic" != run ] || continue
        must "$BRIG" help "$topic"
        [ -n "$output" ]
        [ "${#lines[@]}" -le 46 ] || { echo "$topic is too long" >&2; false; }
        ! grep -nE '^.{81}' <<<"$output" >&2 || { echo "$topic is too wide" >&2; false; }
    done
    must "$BRIG" help network
    output_has --allow
    must "$BRIG" apply --help
    output_has --conflict
}

@test "a topic that does not exist is an error, with the nearest name" {
    must_exit 125 "$BRIG" help nework
    output_has "Did you mean 'network'?"
    must_exit 125 "$BRIG" help zzzzzz
    output_has 'there is no topic'
    must_exit 125 "$BRIG" help network limits
}

@test "pages name only options, verbs and files that exist" {
    local known verbs word
    known=$(for verb in $(topics); do "$BRIG" help "$verb" | sed -n '/^Usage/,/^$/p'; done; "$BRIG" --help)
    verbs=$("$BRIG" --complete '' | sed 's/ *\t.*//')
    for word in $(cat "$LIB_ROOT"/docs/help/*.txt | grep -oE -- '--[a-z][a-z0-9-]+' | sort -u); do
        grep -qE -- "[^a-z-]$word([^a-z-]|\$)" <<<"$known" || { echo "no option $word" >&2; false; }
    done
    for word in $(grep -ohE 'brig help [a-z]+' "$LIB_ROOT"/docs/help/*.txt | sort -u | sed 's/brig help //'); do
        [ -e "$LIB_ROOT/docs/help/$word.txt" ] || { echo "no page $word" >&2; false; }
    done
    for word in $(grep -ohE '^  brig [a-z]+' "$LIB_ROOT"/docs/help/*.txt | sort -u | sed 's/  brig //'); do
        grep -qx "$word" <<<"$verbs" || { echo "no verb $word" >&2; false; }
    done
    for word in $(grep -ohE 'docs/[a-z-]+\.md' "$LIB_ROOT"/docs/help/*.txt | sort -u); do
        [ -e "$LIB_ROOT/$word" ] || { echo "no $word" >&2; false; }
    done
}

@test "every option of a verb is described in its page" {
    local verb option
    for verb in $("$BRIG" --complete '' | sed -n 's/ \t.*//p'); do
        for option in $("$BRIG" --complete "$verb" - | grep -vE $'^(--help|--jail) |\t' | grep -- '^-' || true); do
            echo "brig $verb $option has no description" >&2
            false
        done
    done
}

@test "--version -v names features and libraries" {
    must "$BRIG" --version
    [ "${#lines[@]}" -eq 1 ]
    must "$BRIG" --version -v
    [ "${#lines[@]}" -gt 5 ]
    output_has 'built by: '
    output_has 'network (brig-broker): '
    output_has 'kernel: Linux '
    [ "$output" = "$("$BRIG" version -v)" ]
    must_exit 125 "$BRIG" version --nonsense
}
