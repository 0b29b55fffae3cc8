# SPDX-License-Identifier: MIT
# Completion of brig for bash. Made by tools/gen-cli-docs; do not edit.

# Asks brig, where the answer depends on the user's files. What ends in a blank
# is finished.
_brig_ask() {
    compopt +o filenames -o nospace
    mapfile -t COMPREPLY < <("${COMP_WORDS[0]}" --complete "$1" "$cur" 2>/dev/null)
}

# Completes the word after an option that takes a value.
_brig_value() {
    case $1 in
    -m | '--mode')
        mapfile -t COMPREPLY < <(compgen -W 'casual bare strict sealed' -- "$cur")
        return
        ;;
    -j | '--jail')
        _brig_ask "$1"
        return
        ;;
    -C | '--conf')
        _brig_ask "$1"
        return
        ;;
    '--conf?')
        _brig_ask "$1"
        return
        ;;
    '--profile')
        COMPREPLY=()
        return
        ;;
    '--storage')
        mapfile -t COMPREPLY < <(compgen -d -- "$cur")
        return
        ;;
    '--command')
        COMPREPLY=()
        return
        ;;
    '--script')
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    '--script?')
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    '--initjail')
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    '--initjail?')
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
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
    '--net')
        mapfile -t COMPREPLY < <(compgen -W 'none loopback allow ask open host learn' -- "$cur")
        return
        ;;
    '--allow')
        COMPREPLY=()
        return
        ;;
    '--deny')
        COMPREPLY=()
        return
        ;;
    -p | '--publish')
        COMPREPLY=()
        return
        ;;
    '--inject')
        COMPREPLY=()
        return
        ;;
    '--inject?')
        COMPREPLY=()
        return
        ;;
    '--net-log')
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
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
    '--review-dir')
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    '--mask')
        _brig_ask "$1"
        return
        ;;
    '--mask?')
        _brig_ask "$1"
        return
        ;;
    '--unmask')
        _brig_ask "$1"
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
    '--unprotect')
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    '--protect')
        mapfile -t COMPREPLY < <(compgen -W 'hold report off' -- "$cur")
        return
        ;;
    '--checkpoint-size')
        COMPREPLY=()
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
    '--net-connections')
        COMPREPLY=()
        return
        ;;
    '--net-bytes')
        COMPREPLY=()
        return
        ;;
    '--net-idle')
        COMPREPLY=()
        return
        ;;
    '--setenv')
        _brig_ask "$1"
        return
        ;;
    '--unsetenv')
        _brig_ask "$1"
        return
        ;;
    '--workdir')
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
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
    '--net-rules')
        COMPREPLY=()
        return
        ;;
    '--facts')
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    esac
}

_brig() {
    local cur=${COMP_WORDS[COMP_CWORD]} why= i
    COMPREPLY=()
    [[ $COMP_CWORD -lt 2 || ${COMP_WORDS[1]} != why ]] || why=yes
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        -m | '--mode' | -j | '--jail' | -C | '--conf' | '--conf?' | '--profile' | '--storage' | '--command' | '--script' | '--script?' | '--initjail' | '--initjail?' | '--view' | '--root' | '--seccomp' | '--on-unsupported' | '--disable' | '--net' | '--allow' | '--deny' | -p | '--publish' | '--inject' | '--inject?' | '--net-log' | -d | '--dir' | '--dir!' | '--dir?' | -r | '--rdir' | '--rdir?' | '--review-dir' | '--mask' | '--mask?' | '--unmask' | '--device' | '--device?' | -x | '--xdir' | '--unprotect' | '--protect' | '--checkpoint-size' | '--timeout' | '--cpu-time' | '--grace' | '--memory' | '--cpu' | '--pids' | '--disk' | '--disk-inodes' | '--io-read' | '--io-write' | '--address-space' | '--file-size' | '--open-files' | '--output' | '--inotify-watches' | '--net-connections' | '--net-bytes' | '--net-idle' | '--setenv' | '--unsetenv' | '--workdir' | '--hostname' | '--pass-fd' | '--result' | '--net-rules' | '--facts')
            if ((i + 1 == COMP_CWORD)); then
                compopt -o filenames
                _brig_value "${COMP_WORDS[i]}"
                return
            fi
            ((i++))
            ;;
        --)
            [[ $why ]] && break
            _brig_command $((i + 1))
            return
            ;;
        -*) ;;
        stop | rm | fork | allow)
            ((i == 1)) || { _brig_command "$i"; return; }
            _brig_ask -j
            return
            ;;
        enter)
            ((i == 1 && COMP_CWORD == 2)) || { _brig_command $((i == 1 ? 3 : i)); return; }
            _brig_ask -j
            return
            ;;
        mask | unmask)
            ((i == 1)) || { _brig_command "$i"; return; }
            case ${COMP_WORDS[COMP_CWORD - 1]} in
            -j | --jail) _brig_ask -j ;;
            *) _brig_ask --mask ;;
            esac
            return
            ;;
        sync | status | diff | review | apply | discard | undo | log | held | keep | gc)
            ((i == 1)) || { _brig_command "$i"; return; }
            case ${COMP_WORDS[COMP_CWORD - 1]} in
            -j | --jail) _brig_ask -j ;;
            *) compopt -o default ;;
            esac
            return
            ;;
        run | explain | why) ((i == 1)) || { _brig_command "$i"; return; } ;;
        *)
            [[ $why ]] && break
            _brig_command "$i"
            return
            ;;
        esac
    done
    if [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W '--mode --jail --conf --conf? --profile --storage --no-defaults --command --script --script? --initjail --initjail? --view --root --seccomp --allow-nested --trace-denials --on-unsupported --disable --net --allow --deny --publish --inject --inject? --proxy-env --net-log --dir --dir! --dir? --rdir --rdir? --review --review-dir --mask --mask? --unmask --device --device? --xdir --nocwd --foreign --unprotect --protect --no-protect --checkpoint --checkpoint? --checkpoint-size --no-checkpoint --x11 --wayland --audio --ssh-agent --gpg-agent --dbus --timeout --cpu-time --grace --memory --cpu --pids --disk --disk-inodes --io-read --io-write --address-space --file-size --open-files --output --inotify-watches --net-connections --net-bytes --net-idle --setenv --unsetenv --workdir --hostname --no-terminal --pass-fd --result --net-rules --unmount --init --print-defaults --complete --dry-run --plan --facts --json --verbose --help --version' -- "$cur")
        return
    fi
    if [[ $why ]]; then
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
    fi
    mapfile -t COMPREPLY < <(compgen -c -- "$cur")
    if ((COMP_CWORD == 1)); then
        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W 'run explain why list enter stop rm cp mask unmask sync status diff review apply discard undo log held keep fork gc allow profiles login logout init doctor mcp mcp-wrap help version' -- "$cur")
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
