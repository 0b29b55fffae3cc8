/* SPDX-License-Identifier: MIT */
/* Prints docs/api.md, or with --openapi what GET /openapi.json answers. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "server/http/openapi.h"

int main(int argc, char **argv)
{
    autostr struct str out = {0};
    if (argc == 2 && strcmp(argv[1], "--openapi") == 0)
        openapi_write(&out);
    else if (argc == 1)
        openapi_write_markdown(&out);
    if (out.failed || !out.data) {
        (void)fputs("usage: gen-api [--openapi]\n", stderr);
        return 1;
    }
    return fwrite(out.data, 1, out.length, stdout) == out.length ? 0 : 1;
}
