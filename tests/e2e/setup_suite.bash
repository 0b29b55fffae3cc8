# SPDX-License-Identifier: MIT
# Run once around all suites of this folder: makes and removes the ordinary user.

setup_suite() {
    # shellcheck source=tests/e2e/lib.bash
    . "${BATS_TEST_DIRNAME:-$(dirname "${BASH_SOURCE[0]}")}/lib.bash"
    [ -x "$BRIG" ] || {
        echo "no brig to test at $BRIG: build it first, or set BRIG" >&2
        return 1
    }
    lib_user_create
    if lib_is_root && ! run_as_user test -x "$BRIG"; then
        echo "$BRIG cannot be reached by the test user: its directories must be searchable" >&2
        return 1
    fi
}

teardown_suite() {
    lib_user_remove
}
