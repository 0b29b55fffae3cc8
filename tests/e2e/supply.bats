#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What is said about the programs: the SPDX document, their hardening, and known updates of their libraries.
# shellcheck disable=SC2154 # status and output are set by `run`

load lib

setup() {
    needs readelf python3
    scratch_make root
    TOOLS=$LIB_ROOT/tools
    BUILT=$(cd "$(dirname "$BRIG")/../.." && pwd)
}

teardown() {
    scratch_remove
}

@test "the SPDX document is whole, and says what readelf and the checksums say" {
    "$TOOLS/sbom" "$BUILT" >"$SCRATCH/sbom.json"
    must python3 - "$SCRATCH/sbom.json" "$BUILT" <<'END'
import hashlib, json, pathlib, re, subprocess, sys
document, build = json.load(open(sys.argv[1])), pathlib.Path(sys.argv[2])
for key in ("spdxVersion", "dataLicense", "SPDXID", "name", "documentNamespace", "creationInfo"):
    assert document[key], key
assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", document["creationInfo"]["created"])
elements = document["packages"] + document["files"]
names = [element["SPDXID"] for element in elements]
assert len(set(names)) == len(names), "an identifier is used twice"
assert all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", name) for name in names)
known = {*names, "SPDXRef-DOCUMENT"}
relations = {(r["spdxElementId"], r["relationshipType"], r["relatedSpdxElement"]) for r in document["relationships"]}
assert all(one in known and other in known for one, _, other in relations), "a relationship leads nowhere"
assert ("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-Package-brig") in relations
sums = []
for file in document["files"]:
    path, = (path for path in build.glob("src/**/" + file["fileName"][2:]) if path.is_file())
    for checksum in file["checksums"]:
        found = hashlib.new(checksum["algorithm"].lower(), path.read_bytes()).hexdigest()
        assert found == checksum["checksumValue"], path
    sums.append(file["checksums"][0]["checksumValue"])
    needed = re.findall(r"NEEDED.*\[(?!libbrig)", subprocess.run(["readelf", "-dW", path], capture_output=True, text=True).stdout)
    linked = [r for r in relations if r[0] == file["SPDXID"] and r[1].endswith("_LINK")]
    # Libraries of one package have one relationship.
    assert 1 <= len(linked) <= max(len(needed), 1), (path, needed, linked)
    assert len(needed) == 0 or all(r[1] == "DYNAMIC_LINK" for r in linked)
    assert ("SPDXRef-Package-brig", "CONTAINS", file["SPDXID"]) in relations
code = document["packages"][0]["packageVerificationCode"]["packageVerificationCodeValue"]
assert hashlib.sha1("".join(sorted(sums)).encode()).hexdigest() == code
assert "./brig" in [file["fileName"] for file in document["files"]]
END
    # The same programs give the same document.
    "$TOOLS/sbom" "$BUILT" | cmp - "$SCRATCH/sbom.json"
    must_exit 1 "$TOOLS/sbom" "$SCRATCH"
    output_has 'build them first'
}

@test "the programs are hardened, and one that is not is noticed" {
    needs cc
    mkdir -p "$SCRATCH/src/cli"
    echo 'int main(void) { return 0; }' >"$SCRATCH/main.c"
    cc -no-pie -Wl,-z,norelro -Wl,-z,lazy -Wl,-z,execstack -fno-stack-protector -o "$SCRATCH/src/cli/brig" "$SCRATCH/main.c"
    must_exit 1 "$TOOLS/check-hardening" "$SCRATCH"
    output_has 'position-independent is missing'
    output_has 'RELRO is missing'
    output_has 'immediate binding is missing'
    output_has 'no executable stack is missing'
    output_has 'stack protector is missing'
    output_has 'fortified functions is missing'
    must "$TOOLS/check-hardening" "$BUILT"
}

@test "vulncheck lists every library and says what is not covered; a newer version is a failure" {
    mkdir "$SCRATCH/bin"
    cat >"$SCRATCH/bin/apt-cache" <<'END'
#!/bin/sh
printf '%s:\n  Installed: 1\n  Candidate: %s\n  Version table:\n     %s 500\n        500 http://deb.example/debian-security x/main Packages\n' \
    "$2" "$VERSION" "$VERSION"
END
    chmod +x "$SCRATCH/bin/apt-cache"
    needs dpkg-query
    PATH=$SCRATCH/bin:$PATH VERSION=0 run "$TOOLS/vulncheck" "$BUILT"
    output_has 'current   libc6'
    output_has 'Not covered:'
    output_lacks outdated
    PATH=$SCRATCH/bin:$PATH VERSION=99999 must_exit 1 "$TOOLS/vulncheck" "$BUILT"
    output_has 'outdated  libc6'
    output_has '99999 is available as a security update'
}
