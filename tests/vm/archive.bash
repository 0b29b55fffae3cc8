# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Packages from the archive that this machine uses anyway, of another suite or another architecture. The apt
# state is a folder of the caller's: neither the machine's sources nor its packages change.

# The addresses of Debian's archive as this machine knows it, one a line.
archives() {
    local VERSION_CODENAME=''
    # shellcheck source=/dev/null
    . /etc/os-release
    # The words in parentheses are put in by apt.
    # shellcheck disable=SC2016
    apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
        awk -v release="$VERSION_CODENAME" '$1 == release && $2 == "main" && !seen[$3]++ { print $3 }'
}

# From here on apt, with apt_options, knows one suite of one archive, and nothing of what is installed.
use_suite() { # use_suite ARCHIVE SUITE ARCHITECTURE STATE-FOLDER
    rm -rf "$4"
    mkdir -p "$4/lists/partial" "$4/sources" || return
    printf '%s\n' 'Types: deb' "URIs: $1" "Suites: $2" 'Components: main' \
        'Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg' > "$4/sources/archive.sources"
    # shellcheck disable=SC2034 # used by the caller
    apt_options=(-o Acquire::Retries=3 -o APT::Sandbox::User=root -o Dir::Etc::sourcelist=/dev/null
        -o "Dir::Etc::sourceparts=$4/sources" -o "Dir::State::lists=$4/lists"
        -o "APT::Architecture=$3" -o "APT::Architectures=$3"
        -o Dir::State::status=/dev/null -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=)
    apt-get "${apt_options[@]}" -qq -o APT::Update::Error-Mode=any update >&2
}
