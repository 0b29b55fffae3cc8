/* SPDX-License-Identifier: MIT */
/* Versions in what programs print. */
#include "server/executor/versions.h"
#include "tap.h"

static void check(const char *text, const char *expected)
{
    char version[VERSION_MAX];
    version_find(text, version);
    tap_is_str(version, expected, "%s", text);
}

int main(void)
{
    check("Python 3.11.2\n", "3.11.2");
    check("v20.20.2\n", "20.20.2");
    check("gcc (Debian 12.2.0-14+deb12u1) 12.2.0\n", "12.2.0");
    check("go version go1.19.8 linux/arm64\n", "1.19.8");
    check("This is perl 5, version 36, subversion 0 (v5.36.0) built for aarch64-linux\n", "5.36.0");
    check("GNU bash, version 5.2.15(1)-release (aarch64-unknown-linux-gnu)\n", "5.2.15");
    check("Rscript (R) version 4.2.2 (2022-10-31)\n", "4.2.2");
    check("for aarch64-2.1: 7.5", "7.5");
    check("openjdk 17\n", "");
    check("", "");
    check("1.", "");
    check(".1.2", "");
    check("1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16 2.0", "2.0");
    return tap_done();
}
