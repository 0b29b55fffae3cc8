# SPDX-License-Identifier: MIT
# Completion of brigctl for bash. The options come from its help texts.

_brigctl() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command='' like place words='' i
    local languages='python node bash c c++ go java rust ruby php perl lua r sqlite'
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        exec | claude | submit | wait | ls | show | kill | health | runtimes)
            command=${COMP_WORDS[i]} place=$i
            break
            ;;
        esac
    done
    COMPREPLY=()
    # submit has the options of exec, and more.
    like=${command/submit/exec}
    case $like:$previous:$current in
    # Words that are not known here.
    exec:-[cetm]:* | exec:--code:* | exec:--env:* | exec:--return:* | exec:--allow:* | claude:-[tm]:*) return ;;
    exec:-p:* | exec:--priority:* | exec:--callback:* | exec:--secret:*) return ;;
    *:--timeout:* | *:--memory:* | *:--since:* | *:--limit:* | *:--cursor:* | ls:-n:*) return ;;
    :-[sk]:* | :--server:* | :--key:*) return ;;
    exec:-[fo]:* | exec:--file:* | exec:--out:* | wait:-o:* | wait:--out:* | claude:-d:* | claude:--dir:* | :--cacert:*)
        compopt -o default
        return
        ;;
    ls:-l:* | ls:--language:*) words=$languages ;;
    ls:-s:* | ls:--status:*) words='running ok error timeout oom killed blocked' ;;
    exec:*:-* | claude:*:-* | wait:*:-* | ls:*:-* | :*:-*)
        words=$({ brigctl $like --help; [ "$like" = "$command" ] || brigctl "$command" --help; } 2> /dev/null |
            grep -oE '^ +(-[a-zA-Z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+')
        ;;
    exec:*)
        if ((COMP_CWORD > place + 1)); then
            compopt -o default
            return
        fi
        words=$languages
        ;;
    :*) words='exec claude submit wait ls show kill health runtimes' ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -F _brigctl brigctl
