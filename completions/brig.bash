# SPDX-License-Identifier: MIT
# Completion of brig for bash. Made by tools/gen-cli-docs; do not edit.

# Completes the word after an option that takes a value.
_brig_value() {
    case $1 in
    -m | '--mode')
        mapfile -t COMPREPLY < <(compgen -W 'sealed' -- "$cur")
        return
        ;;
    '--view')
        mapfile -t COMPREPLY < <(compgen -W 'system host empty' -- "$cur")
        return
        ;;
    '--root')
        mapfile -t COMPREPLY < <(compgen -d -- "$cur")
        return
        ;;
    '--net')
        mapfile -t COMPREPLY < <(compgen -W 'none host' -- "$cur")
        return
        ;;
    '--seccomp')
        mapfile -t COMPREPLY < <(compgen -W 'dev code' -- "$cur")
        return
        ;;
    '--on-unsupported')
        mapfile -t COMPREPLY < <(compgen -W 'fail warn ignore' -- "$cur")
        return
        ;;
    '--disable')
        mapfile -t COMPREPLY < <(compgen -W 'landlock seccomp caps namespaces nested' -- "$cur")
        return
        ;;
    -d | '--dir')
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    '--dir!')
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    '--dir?')
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    -r | '--rdir')
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    '--rdir?')
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    '--mask')
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    '--mask?')
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    '--device')
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    '--device?')
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    -x | '--xdir')
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    '--timeout')
        COMPREPLY=()
        return
        ;;
    '--cpu-time')
        COMPREPLY=()
        return
        ;;
    '--grace')
        COMPREPLY=()
        return
        ;;
    '--memory')
        COMPREPLY=()
        return
        ;;
    '--cpu')
        COMPREPLY=()
        return
        ;;
    '--pids')
        COMPREPLY=()
        return
        ;;
    '--disk')
        COMPREPLY=()
        return
        ;;
    '--disk-inodes')
        COMPREPLY=()
        return
        ;;
    '--io-read')
        COMPREPLY=()
        return
        ;;
    '--io-write')
        COMPREPLY=()
        return
        ;;
    '--address-space')
        COMPREPLY=()
        return
        ;;
    '--file-size')
        COMPREPLY=()
        return
        ;;
    '--open-files')
        COMPREPLY=()
        return
        ;;
    '--output')
        COMPREPLY=()
        return
        ;;
    '--inotify-watches')
        COMPREPLY=()
        return
        ;;
    '--setenv')
        COMPREPLY=()
        return
        ;;
    '--unsetenv')
        COMPREPLY=()
        return
        ;;
    '--workdir')
        COMPREPLY=()
        return
        ;;
    '--hostname')
        COMPREPLY=()
        return
        ;;
    '--pass-fd')
        COMPREPLY=()
        return
        ;;
    '--result')
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    esac
}

_brig() {
    local cur=${COMP_WORDS[COMP_CWORD]} i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        -m | '--mode' | '--view' | '--root' | '--net' | '--seccomp' | '--on-unsupported' | '--disable' | -d | '--dir' | '--dir!' | '--dir?' | -r | '--rdir' | '--rdir?' | '--mask' | '--mask?' | '--device' | '--device?' | -x | '--xdir' | '--timeout' | '--cpu-time' | '--grace' | '--memory' | '--cpu' | '--pids' | '--disk' | '--disk-inodes' | '--io-read' | '--io-write' | '--address-space' | '--file-size' | '--open-files' | '--output' | '--inotify-watches' | '--setenv' | '--unsetenv' | '--workdir' | '--hostname' | '--pass-fd' | '--result')
            if ((i + 1 == COMP_CWORD)); then
                compopt -o filenames
                _brig_value "${COMP_WORDS[i]}"
                return
            fi
            ((i++))
            ;;
        --)
            _brig_command $((i + 1))
            return
            ;;
        -*) ;;
        run) ((i == 1)) || { _brig_command "$i"; return; } ;;
        *)
            _brig_command "$i"
            return
            ;;
        esac
    done
    if [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W '--mode --view --root --net --seccomp --allow-nested --on-unsupported --disable --dir --dir! --dir? --rdir --rdir? --mask --mask? --device --device? --xdir --nocwd --timeout --cpu-time --grace --memory --cpu --pids --disk --disk-inodes --io-read --io-write --address-space --file-size --open-files --output --inotify-watches --setenv --unsetenv --workdir --hostname --no-terminal --pass-fd --result --dry-run --json --verbose --help --version' -- "$cur")
        return
    fi
    mapfile -t COMPREPLY < <(compgen -c -- "$cur")
    if ((COMP_CWORD == 1)); then
        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W 'run doctor help version' -- "$cur")
    fi
}

# Completes the command to run as if it had been typed alone, where the shell's
# completion library can do that.
_brig_command() {
    if declare -F _command_offset >/dev/null; then
        _command_offset "$1"
    elif (($1 == COMP_CWORD)); then
        mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
    else
        compopt -o default
    fi
}

complete -F _brig brig
