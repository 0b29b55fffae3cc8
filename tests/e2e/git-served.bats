#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A hostile private git directory, which is served to git fetch outside: brig ends in time, the user's repository stays
# as it was, and what is sound in it arrives.

# shellcheck disable=SC2016 # scripts for the jail
# shellcheck disable=SC2030,SC2031 # each test has its own JOB
# shellcheck disable=SC2154 # status and output are set by `run`

load lib
load hostile

@test "ref names that mean something to a shell, a terminal or git stay in the jail" {
    hostile_project
    write='id=$(git rev-parse main)
        set -- -x HEAD "\$(touch\${IFS}ran)" ";touch\${IFS}ran" "a|b" "a&b" "\`id\`" "a..b" "x.lock" "..x" "a b" "$(printf "a\033[31mb")" "$(printf "a\302\233b")" "@{u}"
        for n; do echo "$id" >".git/refs/heads/$n"; echo "$id" >".git/refs/tags/$n"; done; true'
    # The twin: outside git has such branches.
    as user sh -ec "$write"
    run out for-each-ref --format='%(refname)' refs/heads
    output_has '$(touch${IFS}ran)'
    for pair in user:casual user:sealed; do
        hostile_project
        must inside "$pair" "$write"'; git update-ref refs/heads/good $(git commit-tree -m good -p main main^{tree})'
        [ "$(out log -1 --format=%s good)" = good ]
        [ "$(find .git/refs -type f ! -path '*/refs/brig/*' | sort)" = $'.git/refs/heads/good\n.git/refs/heads/main' ]
        printf '%s' "$output" | LC_ALL=C grep -q $'\033' && return 1
        must out fsck --no-dangling
        not_executed
    done
}

# For a shell: what can be in place of the file $f of git's; $1 is the same file of another repository.
KINDS=('mkfifo "$f"' 'ln -s "$1" "$f"' 'ln -s /dev/zero "$f"' 'mkdir -p "$f"'
    'python3 -c "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])" "$f"')

# replaced FILE…: each file of git's is replaced by each kind in a run. brig ends, nothing is changed outside, and
# the next run works.
replaced() {
    local file kind before
    for file; do
        for kind in "${KINDS[@]}"; do
            hostile_project
            as user git init -q "$SCRATCH/other"
            before="$(out rev-parse HEAD; out ls-files -s; out symbolic-ref HEAD; cat .git/config)"
            run within 60 inside user:sealed "f=.git/$file; set -- '$SCRATCH/other/.git/$file'; rm -rf \"\$f\"; $kind"
            [ "$status" -lt 124 ] || {
                echo "exit $status: $file: $kind: $output" >&2
                return 1
            }
            run diff <(echo "$before") <(out rev-parse HEAD; out ls-files -s; out symbolic-ref HEAD; cat .git/config)
            [ "$status" -eq 0 ] || {
                echo "changed by $file: $kind: $output" >&2
                return 1
            }
            run within 60 inside user:sealed 'git log --format=%s; git update-ref refs/heads/good $(git commit-tree -m good -p main main^{tree})'
            [ "$(out log -1 --format=%s good)" = good ] || {
                echo "the run after $file: $kind: $output" >&2
                return 1
            }
        done
    done
}

@test "a FIFO, link, socket or directory in place of HEAD: brig ends, and nothing is changed" {
    # The twin: git outside waits for a FIFO.
    hostile_project
    as user sh -c 'rm .git/HEAD; mkfifo .git/HEAD'
    must_exit 124 timeout 2 git -c safe.directory='*' status
    replaced HEAD
}

@test "the same in place of refs" {
    replaced refs/heads/main refs packed-refs
}

@test "the same in place of the index and the config" {
    replaced index config
}

@test "the same in place of objects" {
    replaced objects objects/info objects/info/alternates
}

@test "the same in place of files that say what goes on" {
    replaced shallow info hooks MERGE_HEAD rebase-merge
}

@test "alternates and refs that lead to another repository bring nothing of it" {
    hostile_project
    as user sh -ec 'git init -q -b main ../secret; cd ../secret; echo sesame >s; git add s; git commit -q -m sesame'
    secret=$(as user git -C ../secret rev-parse HEAD)
    # The twin
    as user sh -ec "git clone -q . ../twin; cd ../twin; echo '$SCRATCH/secret/.git/objects' >.git/objects/info/alternates; git update-ref refs/heads/leak $secret; git cat-file -e leak:s"
    for attempt in "echo '$SCRATCH/secret/.git/objects' >.git/objects/info/alternates" \
        "echo '$SCRATCH/secret/.git/objects' >>.git/objects/info/alternates" \
        "rm -rf .git/objects; ln -s '$SCRATCH/secret/.git/objects' .git/objects" \
        "echo '../../../secret/.git/objects' >.git/objects/info/alternates" \
        "rm -rf .git/refs; ln -s '$SCRATCH/secret/.git/refs' .git/refs" \
        "echo '$SCRATCH/secret/.git' >.git/commondir" \
        "ln -s '$SCRATCH/secret/.git/refs/heads/main' .git/refs/heads/leak"; do
        run inside user:sealed "$attempt; echo $secret >.git/refs/heads/leak"
        must_fail out cat-file -e "$secret"
        must_fail out rev-parse -q --verify refs/heads/leak
        must out fsck --no-dangling
        [ "$(out symbolic-ref HEAD)" = refs/heads/main ]
    done
}

@test "objects that are garbage, missing or not what their name says are not taken over" {
    for damage in 'echo garbage >"$o"' ': >"$o"' 'rm "$o"' 'cp "$(find .git/objects -type f -path "*/??/*" ! -path "$o" | head -n 1)" "$o"' 'rm "$o"; mkfifo "$o"'; do
        hostile_project
        main=$(out rev-parse main)
        run within 60 inside user:sealed 'echo c >c; git add c; git commit -q -m c
            for o in $(find .git/objects -type f -path "*/??/*"); do chmod u+w "$o"; done
            id=$(git rev-parse main); o=.git/objects/$(echo $id | cut -c1-2)/$(echo $id | cut -c3-); '"$damage"
        [ "$status" -lt 124 ] || {
            echo "exit $status: $damage: $output" >&2
            return 1
        }
        [ "$(out rev-parse main)" = "$main" ]
        must out fsck --no-dangling
        [ -z "$(find .git -name '*.lock')" ]
        not_executed
    done
}

@test "a branch that is not a commit, a tag of a blob and a hostile .gitmodules" {
    hostile_project
    must within 100 inside user:sealed 'git rev-parse main:a >.git/refs/heads/blob; git rev-parse "main^{tree}" >.git/refs/heads/tree
        git tag blob main:a; git update-ref refs/heads/good $(git commit-tree -m good -p main main^{tree})'
    said=$output
    must_fail out rev-parse -q --verify refs/heads/blob
    must_fail out rev-parse -q --verify refs/heads/tree
    [ "$(out log -1 --format=%s good)" = good ] || {
        echo "$said" >&2
        return 1
    }
    must out fsck --no-dangling
    hostile_project
    run within 60 inside user:sealed 'printf "[submodule \"x\"]\n\tpath = x\n\turl = -u./evil\n\tupdate = !touch ran\n" >.gitmodules; git add .gitmodules; git commit -q -m modules'
    must out fsck --no-dangling
    not_executed
}

@test "twenty thousand refs arrive in time" {
    hostile_project
    must within 120 inside user:sealed 'id=$(git rev-parse main); { echo "# pack-refs with: peeled fully-peeled sorted "
        for i in $(seq 10001 30000); do echo "$id refs/heads/many/$i"; done; } >.git/packed-refs'
    [ "$(out for-each-ref refs/heads/many | wc -l)" = 20000 ]
    must out fsck --no-dangling
    # The next run is not slow either.
    must within 20 inside user:sealed 'git log -1 --format=%s'
}

# For a shell: `trees LEVELS WIDTH` writes as many trees, each with so many entries that are the next one, and
# prints the first. The last has one file.
TREES='trees() { python3 -I - "$@" <<PYTHON
import hashlib, os, sys, zlib
def put(kind, data):
    data = b"%s %d\0" % (kind, len(data)) + data
    oid = hashlib.sha1(data).hexdigest()
    os.makedirs(".git/objects/" + oid[:2], exist_ok=True)
    open(".git/objects/" + oid[:2] + "/" + oid[2:], "wb").write(zlib.compress(data, 1))
    return bytes.fromhex(oid)
levels, width = int(sys.argv[1]), int(sys.argv[2])
below = put(b"tree", b"100644 f\0" + put(b"blob", b"x\n"))
for level in range(levels):
    below = put(b"tree", b"".join(b"40000 d%d\0" % i + below for i in range(width)))
print(below.hex())
PYTHON
};'

@test "two thousand levels of trees: brig ends, and git outside works" {
    hostile_project
    run within 60 inside user:sealed "$TREES"'git update-ref refs/heads/deep $(git commit-tree -m deep -p main $(trees 2000 1))'
    [ "$status" -lt 124 ]
    must out status --porcelain
    must timeout 60 git -c safe.directory='*' fsck --no-dangling
    [ "$(out log --format=%s main)" = first ]
    not_executed
}

# few_bytes COMMAND…: with so little address space that a bomb fails instead of taking the machine down.
few_bytes() {
    (ulimit -v 3000000 && "$@")
}

@test "a tree of a thousand million entries is not unpacked into the index" {
    # Checked out by its branch, and by the cache of trees in the index, which git write-tree believes.
    for way in 'git update-ref HEAD $(git commit-tree -m bomb -p main $bomb)' \
        'python3 -I - "$bomb" <<PYTHON
import hashlib, sys
data = open(".git/index", "rb").read()[:-20]
at = data.find(b"TREE")
data = data if at < 0 else data[:at]
tree = b"\0" + b"2 0\n" + bytes.fromhex(sys.argv[1])
data += b"TREE" + len(tree).to_bytes(4, "big") + tree
open(".git/index", "wb").write(data + hashlib.sha1(data).digest())
PYTHON'; do
        hostile_project
        index=$(out ls-files -s)
        run few_bytes within 60 inside user:sealed "$TREES"' bomb=$(trees 9 10); '"$way"
        [ "$status" -lt 124 ] || {
            echo "exit $status: $output" >&2
            return 1
        }
        [ "$(out ls-files -s)" = "$index" ]
        [ -z "$(find .git -name '*.lock')" ]
        must few_bytes timeout 60 git -c safe.directory='*' status --porcelain
    done
}

@test "config of every size and form: brig ends and takes nothing over" {
    for text in '[remote "x"' '[remote "x"]url' '[remote "x"]\nurl = ext::touch\n' '[include]\npath = /dev/zero\n' '[core]\nrepositoryformatversion = 99\n'; do
        hostile_project
        before=$(cat .git/config)
        run within 60 inside user:sealed "printf '$text' >.git/config; true"
        [ "$status" -eq 0 ]
        [ "$(cat .git/config)" = "$before" ]
        not_executed
    done
    hostile_project
    before=$(cat .git/config)
    run within 60 inside user:sealed 'yes "[a]b = c" | head -c 50000000 >.git/config; true'
    [ "$status" -eq 0 ]
    [ "$(cat .git/config)" = "$before" ]
}

@test "variables that redirect git never reach the transfer" {
    hostile_project
    as user git init -q ../other
    must env GIT_DIR="$SCRATCH/other/.git" GIT_WORK_TREE="$SCRATCH/other" GIT_INDEX_FILE=/nowhere GIT_EXEC_PATH=/nowhere \
        GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.fsmonitor GIT_CONFIG_VALUE_0="$MARK" GIT_OBJECT_DIRECTORY=/nowhere \
        bash -c ". '$LIB_DIR/lib.bash'; run_as_user '$BRIG' -m sealed -j '$JAIL' ${GIT[*]} -- env -u GIT_DIR -u GIT_WORK_TREE -u GIT_INDEX_FILE -u GIT_EXEC_PATH -u GIT_OBJECT_DIRECTORY -u GIT_CONFIG_COUNT sh -ec 'echo c >c; git add c; git commit -q -m c'"
    [ "$(out log -1 --format=%s)" = c ]
    [ ! -e "$RAN" ]
}

@test "a git of the project's or of the jail's is not run outside" {
    hostile_project
    as user mkdir bin
    must inside user:sealed "printf '#!/bin/sh\n$MARK\n' >bin/git; chmod +x bin/git"
    must run_as_user env PATH="$PROJECT/bin:$PATH" "$BRIG" -m sealed -j "$JAIL" "${GIT[@]}" --setenv PATH=/usr/bin:/bin -- sh -ec 'echo c >c; git add c; git commit -q -m c'
    [ ! -e "$RAN" ]
    [ "$(out log -1 --format=%s)" = c ]
}

# For a jail: damages a git directory at random until the time is over. $1 is a seed, $2 the seconds.
FUZZ='
import os, random, sys, time
random.seed(int(sys.argv[1]))
end = time.time() + float(sys.argv[2])
while time.time() < end:
    files = [os.path.join(d, f) for d, _, names in os.walk(".git") for f in names]
    path = random.choice(files or [".git/HEAD"])
    try:
        what = random.randrange(7)
        if what == 0 and os.path.islink(path) is False:
            data = bytearray(open(path, "rb").read(1 << 20))
            for _ in range(random.randrange(1, 9)):
                data[random.randrange(len(data))] ^= 1 << random.randrange(8)
            open(path, "wb").write(data)
        elif what == 1:
            os.truncate(path, random.choice([0, 1, 20, 1 << 33]))
        elif what == 2:
            os.rename(path, random.choice(files))
        elif what == 3:
            os.unlink(path); os.mkfifo(path)
        elif what == 4:
            os.unlink(path); os.symlink(random.choice(["/dev/zero", "/etc/passwd", ".", "HEAD"]), path)
        elif what == 5:
            os.chmod(os.path.dirname(path), random.choice([0o111, 0o555, 0o700]))
        else:
            os.system("git add . 2>/dev/null; git commit -q -m fuzz --allow-empty 2>/dev/null; git branch -f b$RANDOM 2>/dev/null")
    except OSError:
        pass
    except ValueError:
        pass
    except IndexError:
        pass
'

@test "git directories that are damaged at random, while brig sync is repeated" {
    local main seed
    for seed in 1 2 3; do
        hostile_project
        as user sh -ec 'git branch keepme; echo staged >staged; git add staged'
        main=$(out rev-parse keepme)
        start user:sealed "timeout 20 python3 -c '$FUZZ' $seed 6; true"
        end=$((SECONDS + 6))
        for _ in $(seq 200); do
            [ "$SECONDS" -lt "$end" ] || break
            run within 60 by user sync
            [ "$status" -ne 124 ]
            [ "$status" -lt 128 ]
        done
        finish
        [ "$(out rev-parse keepme)" = "$main" ] || out cat-file -e "$main"
        [ ! -e .git/index.lock ]
        must out fsck --no-dangling
        must out log -1 main
        not_executed
        # And the next run works.
        run within 60 inside user:sealed 'git status'
        run within 60 inside user:sealed 'git log -1 --format=%s'
        [ "$status" -eq 0 ]
    done
}
