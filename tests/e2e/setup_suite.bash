# SPDX-License-Identifier: MIT
# Run once before all suites of this folder.

setup_suite() {
    # shellcheck source=tests/e2e/lib.bash
    . "${BATS_TEST_DIRNAME:-$(dirname "${BASH_SOURCE[0]}")}/lib.bash"
    [ -x "$BRIG" ] || {
        echo "no brig to test at $BRIG: build it first, or set BRIG" >&2
        return 1
    }
    lib_is_root || return 0
    [ -n "$LIB_USER" ] || {
        echo "as root use tests/run e2e/NAME, which makes an ordinary user for the suite" >&2
        return 1
    }
    if ! run_as_user test -x "$BRIG"; then
        echo "$BRIG cannot be reached by the test user: its directories must be searchable" >&2
        return 1
    fi
}
