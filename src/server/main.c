/* SPDX-License-Identifier: MIT */
/* brigd: an HTTP server that runs untrusted code, each request in a separate jail. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "server/config/config.h"
#include "server/handover.h"
#include "server/role.h"

static const char usage[] =
    "Usage: brigd [OPTION]...\n"
    "Runs untrusted code in Python, Node, Bash and other languages, and agents, for\n"
    "other programs, over HTTP.\n"
    "\n"
    "  -c, --config FILE   the configuration (default: CONFIG_PATH, ./configs/config.yaml,\n"
    "                      $XDG_CONFIG_HOME/brig/brigd.yaml, /etc/brig/brigd.yaml, else none)\n"
    "  -l, --listen WHERE  ADDRESS:PORT, [IPV6]:PORT, :PORT or unix:/PATH\n"
    "                      (default: 127.0.0.1:8080)\n"
    "      --trace-requests\n"
    "                      tell in the access log where the time of each execution went\n"
    "      --check-config  say whether the configuration is right, and end\n"
    "      --print-config  print what holds, with where it came from, and end\n"
    "  -h, --help          this text\n"
    "  -V, --version       the version\n"
    "\n"
    "See brigd(8), brigd.yaml(5) and docs/api.md.\n";

enum { OPTION_CHECK = 256, OPTION_PRINT, OPTION_TRACE };

struct app {
    const char *config, *listen;
    bool check, print, trace;
};

/* Returns 0, or the exit status plus one. */
static int parse_options(struct app *app, int argc, char **argv)
{
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'},
        {"listen", required_argument, NULL, 'l'},
        {"check-config", no_argument, NULL, OPTION_CHECK},
        {"print-config", no_argument, NULL, OPTION_PRINT},
        {"trace-requests", no_argument, NULL, OPTION_TRACE},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {0},
    };
    for (int option; (option = getopt_long(argc, argv, "c:l:hV", options, NULL)) != -1;) {
        switch (option) {
        case 'c':
            app->config = optarg;
            break;
        case 'l':
            app->listen = optarg;
            break;
        case OPTION_CHECK:
            app->check = true;
            break;
        case OPTION_PRINT:
            app->print = true;
            break;
        case OPTION_TRACE:
            app->trace = true;
            break;
        case 'h':
            (void)fputs(usage, stdout);
            return 1;
        case 'V':
            (void)printf("brigd %s\n", brig_version());
            return 1;
        default:
            (void)fputs("Try 'brigd --help'.\n", stderr);
            return 3;
        }
    }
    if (optind == argc)
        return 0;
    (void)fprintf(stderr,
                  "brigd: unexpected argument '%s'; brigd takes only options. See brigd --help\n",
                  str_shown(argv[optind]).text);
    return 3;
}

static int run(const struct app *app, struct server_config *config, struct brig_error *err)
{
    if (app->print) {
        autostr struct str text = {0};
        config_print(config, &text);
        (void)fputs(text.data ? text.data : "", stdout);
        return 0;
    }
    if (app->check) {
        int result = handover_check(config, err);
        if (result < 0)
            return result;
        (void)printf("%s is right\n", config->path ? config->path : "The built-in configuration");
        return 0;
    }
    return supervisor_run(config, err);
}

int main(int argc, char **argv)
{
    struct app app = {0};
    struct brig_error err = {0};
    static struct server_config config; /* too large for the stack */
    int ended = parse_options(&app, argc, argv);
    if (ended)
        return ended - 1;
    int result = config_load(app.config, (const char *const *)environ, &config, &err);
    if (result == 0) {
        config_override(&config, app.listen, app.trace);
        result = run(&app, &config, &err);
        config_done(&config);
    }
    if (result < 0) {
        (void)fprintf(stderr, "brigd: %s\n", err.message);
        return result == BRIG_E_INVALID ? 2 : 1;
    }
    return 0;
}
