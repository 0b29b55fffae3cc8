# SPDX-License-Identifier: MIT
# Runs the code of a sandbox's context for the shell. An interactive bash reads this from its standard input, and then a
# line end for each run; it speaks JSON lines on descriptor 3, as interpreter.py does. SIGINT brings an interactive
# bash back to its prompt, where PROMPT_COMMAND ends the run. Characters that JSON escapes come as \uXXXX alone.
PS1='' PS2=''
set +o history +H +m
unset HISTFILE

__brig_say() {
    printf '{"type":"%s"%s}\n' "$1" "$2" >&3
}

# Ends the run that is open, if there is one. $1 is its exit status.
__brig_end() {
    [[ -n $__brig_run ]] || return 0
    local pair
    for pair in "${__brig_before[@]}"; do
        if [[ $pair == *=* ]]; then
            export "$pair"
        else
            unset "$pair"
        fi
    done
    if (($1 != 0)); then
        __brig_say error ',"run":'"$__brig_run"',"name":"ExitStatus","value":"'"$1"'","traceback":""'
    fi
    __brig_status=$1
    __brig_say 'done' ',"run":'"$__brig_run"
    __brig_run='' __brig_before=()
}

# Waits for a run, and sets its variables. Its code sees the exit status of the last run.
__brig_take() {
    local line='' rest pair name
    while IFS= read -r -u 3 line; do
        [[ $line =~ ^\{\"run\":([0-9]+),\"env\":\[(.*)\],\"code\":\"([^\"]*)\"\}$ ]] && break
    done
    [[ -n $line ]] || builtin exit 0
    __brig_run=${BASH_REMATCH[1]} __brig_before=()
    rest=${BASH_REMATCH[2]}
    printf -v __brig_code %b "${BASH_REMATCH[3]}"
    while [[ $rest =~ ^,?\"([^\"]*)\"(.*)$ ]]; do
        rest=${BASH_REMATCH[2]}
        printf -v pair %b "${BASH_REMATCH[1]}"
        name=${pair%%=*}
        if [[ -v $name ]]; then
            __brig_before+=("$name=${!name}")
        else
            __brig_before+=("$name")
        fi
        export "$pair"
    done
    __brig_say begun ',"run":'"$__brig_run"
    return "$__brig_status"
}

__brig_status=0
PROMPT_COMMAND='__brig_end $?; __brig_take; eval "$__brig_code" </dev/null 3>&-; __brig_end $?'; __brig_say ready
