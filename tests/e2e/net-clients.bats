#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What reaches the network by other ways than curl does, through the network door of a whole jail: resolvers
# of languages, package managers, ssh and git. net.bats has the rules, and the proxies.

load net

@test "Node's resolvers" {
    needs node
    local get='require("http").get("http://" + process.argv[1] + "/", r => r.resume().on("end", () => process.exit(0))).on("error", e => { console.log(e.code); process.exit(7); })'
    must jail user --seccomp dev --memory none --allow good.example -- node -e "$get" good.example
    must_exit 7 jail user --seccomp dev --memory none --allow good.example -- node -e "$get" other.example
    output_has ENOTFOUND
    local ares='require("dns").resolve4(process.argv[1], (e, a) => { console.log(e ? e.code : a[0]); process.exit(e ? 7 : 0); })'
    must jail user --seccomp dev --memory none --allow good.example -- node -e "$ares" good.example
    output_has 198.18.
    must_exit 7 jail user --seccomp dev --memory none --allow good.example -- node -e "$ares" other.example
}

@test "Java's resolver" {
    needs java javac
    mkdir "$SCRATCH/java"
    cat > "$SCRATCH/java/Get.java" <<'JAVA'
public class Get {
    public static void main(String[] args) throws Exception {
        System.out.println(new java.net.URL("http://" + args[0] + "/").openStream().read() > 0);
    }
}
JAVA
    javac -d "$SCRATCH/java" "$SCRATCH/java/Get.java"
    chmod -R go+rX "$SCRATCH/java"
    must jail user --seccomp dev --memory none --view host --rdir "$SCRATCH/java" --allow good.example -- \
        java -cp "$SCRATCH/java" Get good.example
    output_has true
    must_fail jail user --seccomp dev --memory none --view host --rdir "$SCRATCH/java" --allow good.example -- \
        java -cp "$SCRATCH/java" Get other.example
    output_has UnknownHostException
}

@test "musl's resolver" {
    needs musl-gcc
    cat > "$SCRATCH/get.c" <<'C'
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG}, *found;
    if (argc != 2 || getaddrinfo(argv[1], "80", &hints, &found) != 0)
        return puts("no such name"), 7;
    int fd = socket(found->ai_family, SOCK_STREAM, 0);
    return connect(fd, found->ai_addr, found->ai_addrlen) < 0;
}
C
    musl-gcc -static -o "$SCRATCH/get" "$SCRATCH/get.c"
    must jail user --rdir "$SCRATCH" --allow good.example -- "$SCRATCH/get" good.example
    must jail user --rdir "$SCRATCH" --allow six.example -- "$SCRATCH/get" six.example
    must_exit 7 jail user --rdir "$SCRATCH" --allow good.example -- "$SCRATCH/get" other.example
}

@test "Go's resolver" {
    needs go
    mkdir "$SCRATCH/go"
    cat > "$SCRATCH/go/get.go" <<'GO'
package main

import (
	"fmt"
	"net/http"
	"os"
)

func main() {
	answer, err := http.Get("http://" + os.Args[1] + "/")
	if err != nil {
		fmt.Println(err)
		os.Exit(7)
	}
	answer.Body.Close()
}
GO
    (cd "$SCRATCH/go" && GOCACHE=$SCRATCH/go/cache CGO_ENABLED=0 GOFLAGS=-mod=mod go build -o get get.go)
    chmod -R go+rX "$SCRATCH/go"
    must jail user --seccomp dev --rdir "$SCRATCH/go" --allow good.example -- "$SCRATCH/go/get" good.example
    must_exit 7 jail user --seccomp dev --rdir "$SCRATCH/go" --allow good.example -- \
        "$SCRATCH/go/get" other.example
}

# A registry of one package, as files.
registry() {
    local root=$SCRATCH/registry
    mkdir -p "$root/npm/package" "$root/pip/simple/brigdemo" "$root/wheel/brigdemo-1.0.dist-info"
    echo '{"name":"brigdemo","version":"1.0.0","main":"index.js"}' > "$root/npm/package/package.json"
    echo 'module.exports = 42' > "$root/npm/package/index.js"
    tar -C "$root/npm" -czf "$root/npm/brigdemo-1.0.0.tgz" package
    cat > "$root/npm/brigdemo" <<JSON
{"name":"brigdemo","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"brigdemo",
"version":"1.0.0","dist":{"tarball":"http://good.example:8091/npm/brigdemo-1.0.0.tgz","shasum":
"$(sha1sum < "$root/npm/brigdemo-1.0.0.tgz" | cut -d' ' -f1)"}}}}
JSON
    echo 'answer = 42' > "$root/wheel/brigdemo.py"
    printf 'Metadata-Version: 2.1\nName: brigdemo\nVersion: 1.0\n' > "$root/wheel/brigdemo-1.0.dist-info/METADATA"
    printf 'Wheel-Version: 1.0\nGenerator: brig\nRoot-Is-Purelib: true\nTag: py3-none-any\n' > "$root/wheel/brigdemo-1.0.dist-info/WHEEL"
    printf 'brigdemo.py,,\nbrigdemo-1.0.dist-info/METADATA,,\nbrigdemo-1.0.dist-info/WHEEL,,\nbrigdemo-1.0.dist-info/RECORD,,\n' > "$root/wheel/brigdemo-1.0.dist-info/RECORD"
    (cd "$root/wheel" && python3 -m zipfile -c "$root/pip/simple/brigdemo/brigdemo-1.0-py3-none-any.whl" brigdemo.py brigdemo-1.0.dist-info)
    echo '<a href="brigdemo-1.0-py3-none-any.whl">brigdemo-1.0-py3-none-any.whl</a>' > "$root/pip/simple/brigdemo/index.html"
    chmod -R go+rX "$root"
    nsenter --net="$(cat "$WORLD/internet")" -- python3 -m http.server 8091 --bind 93.184.216.34 \
        --directory "$root" > "$SCRATCH/registry.log" 2>&1 3>&- &
    REGISTRY=$!
    await world root curl -sf -o /dev/null http://good.example:8091/
}

@test "npm and pip install from a registry that is allowed, and from no other" {
    needs npm pip3
    registry
    mkdir -m 0777 "$SCRATCH/work"
    local npm=(--seccomp dev --memory none --view host --dir "$SCRATCH/work" --workdir "$SCRATCH/work")
    local install='npm --silent --cache /tmp/c --fetch-retries=0 --registry http://good.example:8091/npm/ install brigdemo && node -p "require(\"brigdemo\")"'
    run jail user "${npm[@]}" --allow good.example:8091 -- sh -c "$install"
    local npm_status=$status npm_output=$output
    run jail user "${npm[@]}" --allow other.example:8091 -- sh -c "rm -rf node_modules; $install"
    local npm_denied=$status
    local pip='python3 -m venv --system-site-packages /tmp/v && /tmp/v/bin/pip -q install --retries 0 --index-url http://good.example:8091/pip/simple/ --trusted-host good.example brigdemo && /tmp/v/bin/python -c "import brigdemo; print(brigdemo.answer)"'
    run jail user "${npm[@]}" --allow good.example:8091 -- sh -c "$pip"
    local pip_status=$status pip_output=$output
    run jail user "${npm[@]}" --allow other.example:8091 -- sh -c "$pip"
    local pip_denied=$status
    kill "$REGISTRY"
    wait "$REGISTRY" || true
    echo "npm $npm_status: $npm_output; pip $pip_status: $pip_output" >&2
    [ "$npm_status" -eq 0 ]
    [ "${npm_output##*$'\n'}" = 42 ]
    [ "$npm_denied" -ne 0 ]
    [ "$pip_status" -eq 0 ]
    [ "${pip_output##*$'\n'}" = 42 ]
    [ "$pip_denied" -ne 0 ]
}

@test "ssh" {
    needs ssh
    # As far as both have said who they are: what follows is between them.
    local ssh=(ssh -v -F none -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o BatchMode=yes
        -o ConnectTimeout=9 joe@good.example true)
    must_fail jail user --seccomp dev --allow good.example:22 -- "${ssh[@]}"
    output_has "remote software version brigtest"
    must_fail jail user --seccomp dev --allow good.example -- "${ssh[@]}"
    output_lacks "remote software version"
}

@test "git over http" {
    needs git
    must_fail jail user --seccomp dev --allow good.example -- git ls-remote http://other.example/x.git
    output_has "Could not resolve host"
    must_fail jail user --seccomp dev --allow good.example -- git ls-remote http://good.example/x.git
    output_lacks "Could not resolve host"
}
