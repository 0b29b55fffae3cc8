# SPDX-License-Identifier: MIT
# Completion of brig for bash. The candidates come from brig --complete; see brig(1).

# Completes the command to run as if it had been typed alone, where the shell's
# completion library can do that. $1 is its index in COMP_WORDS.
_brig_command() {
    if declare -F _command_offset >/dev/null; then
        _command_offset "$1"
    elif (($1 == COMP_CWORD)); then
        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
    else
        compopt -o default
    fi
}

# Quotes the candidates: without `filenames` bash inserts them as they are, and a file can be called
# $(command). Inside quotes ($1 is not empty) those that would need more quotes are not offered.
_brig_quote() {
    local i text
    for i in "${!COMPREPLY[@]}"; do
        text=${COMPREPLY[i]% }
        if [[ ! $1 && $text ]]; then
            printf -v "COMPREPLY[i]" '%q%s' "$text" "${COMPREPLY[i]:${#text}}"
        elif [[ $text == *[\'\"\\\`\$!]* ]]; then
            unset "COMPREPLY[i]"
        fi
    done
}

_brig() {
    local rest=${COMP_LINE:0:COMP_POINT} words=() starts=() last i line found
    # Bash splits words at '=' and ':'; join what has no blank in between.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        if ((i == 0)) || [[ $rest == [[:blank:]]* ]]; then
            words+=('')
            starts+=("$i")
        fi
        rest=${rest#"${rest%%[![:blank:]]*}"}
        last=${COMP_WORDS[i]}
        ((i < COMP_CWORD)) || last=$rest
        words[-1]+=$last
        rest=${rest#"$last"}
    done
    # Bash replaces only the part after the last '=' or ':', or from an '@' on.
    [[ $last != [=:]* ]] || last=${last##*[=:]}
    local cut=$((${#words[-1]} - ${#last}))
    ((cut == 0)) || [[ ${words[-1]:cut-1:1} != @ ]] || ((cut--))
    # Inside quotes it replaces what is after the quote.
    local quoted=
    if [[ $last == [\'\"]* ]]; then
        quoted=yes
        words[-1]=${words[-1]/"$last"/"${last:1}"}
    fi
    local word=${words[-1]} spaces=
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
        $'\t_command_offset '*)
            _brig_command "${starts[${line#* }]}"
            ;;
        $'\t_files '* | $'\t_directories '*)
            i=${line#* }
            compopt -o filenames
            while IFS= read -r found; do
                ((cut <= i)) || found=${found:cut - i}
                COMPREPLY+=("$found")
            done < <(compgen "$([[ $line == $'\t_files '* ]] && echo -f || echo -d)" -- "${word:i}")
            ;;
        *)
            line=${line%%$'\t'*}
            COMPREPLY+=("${line:cut}")
            spaces=yes
            ;;
        esac
    done < <("${COMP_WORDS[0]}" --complete "${words[@]:1}" 2>/dev/null)
    # Candidates of brig end with a blank if they are complete.
    if [[ $spaces ]]; then
        compopt +o filenames -o nospace
        _brig_quote "$quoted"
    fi
}

complete -F _brig brig
