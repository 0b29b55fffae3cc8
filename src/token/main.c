/* SPDX-License-Identifier: MIT */
/* brig-token: keeps and refreshes the OAuth token of an agent.
 *
 *     brig-token keep DIRECTORY WORD=VALUE…   stores the credential file of an agent, from stdin
 *     brig-token take DIRECTORY WORD=VALUE…   prints the token: "SERIAL EXPIRES ACCOUNT ACCESS"
 *
 * Theory of operation. It runs outside every jail as the user, started by brig, and ends after one
 * request. The store is a directory of brig's storage, which no jail sees. `take` refreshes a token
 * that expires within five minutes, or whose serial number is `stale=`, under a lock: of several
 * runs one asks the server, and the others get its result. A server accepts a refresh token only
 * once, so the new one is on the disk before the access token is printed. Nothing but the access
 * token leaves this process, on a pipe; messages never contain a token. The words are the facts of
 * the agent's profile (struct token_facts). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/str.h"
#include "token/token.h"

#define EARLY_S 300 /* before it expires */

static int read_words(char **words, struct token_facts *facts, struct brig_error *err)
{
    const struct {
        const char *name;
        const char **value;
    } rows[] = {{"endpoint", &facts->endpoint}, {"client", &facts->client},
                {"secret", &facts->secret},     {"format", &facts->format},
                {"scope", &facts->scope},       {"access", &facts->access},
                {"refresh", &facts->refresh},   {"expires", &facts->expires},
                {"account", &facts->account},   {"ca", &facts->ca}};
    for (; *words; words++) {
        size_t length = strcspn(*words, "=");
        const char *value = *words + length + ((*words)[length] == '=');
        bool known = false;
        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
            if (strlen(rows[i].name) == length && strncmp(rows[i].name, *words, length) == 0) {
                *rows[i].value = value;
                known = true;
            }
        if (length == 5 && strncmp(*words, "stale", 5) == 0)
            known = parse_uint(value, INT64_MAX, PARSE_ZERO_OK, &facts->stale, err) == 0;
        if (!known)
            return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is not understood",
                             str_shown(*words).text);
    }
    return 0;
}

static int keep(int directory, const struct token_facts *facts, struct token *token,
                struct brig_error *err)
{
    struct token before = {0};
    (void)store_read(directory, &before, NULL); /* one that cannot be read is replaced */
    int status = store_import(STDIN_FILENO, facts, token, err);
    token->serial = before.serial + 1;
    token_done(&before);
    return status < 0 ? status : store_write(directory, token, err);
}

/* Refreshes the token if needed. One that is still valid is used if the server cannot be reached. */
static int renew(int directory, const struct token_facts *facts, struct token *token,
                 struct brig_error *err)
{
    int64_t now = (int64_t)time(NULL);
    bool stale = facts->stale > 0 && token->serial == facts->stale;
    bool early = token->expires > 0 && token->expires - now <= EARLY_S;
    if (!stale && !early)
        return 0;
    struct brig_error why = {0};
    int status = token_refresh(token, facts, &why);
    if (status == 0)
        return store_write(directory, token, err);
    if (!stale && token->expires > now) {
        (void)fprintf(stderr, "%s\n", why.message);
        return 0;
    }
    *err = why;
    return status;
}

static int take(int directory, const struct token_facts *facts, struct token *token,
                struct brig_error *err)
{
    int status = store_read(directory, token, err);
    if (status == 0 && !token->access)
        return brig_fail(err, BRIG_E_STATE, 0, "there is no credential");
    if (status == 0)
        status = renew(directory, facts, token, err);
    if (status < 0)
        return status;
    (void)printf("%llu %lld %s %s\n", (unsigned long long)token->serial, (long long)token->expires,
                 token->account ? token->account : "-", token->access);
    return fflush(stdout) == 0 ? 0 : brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write");
}

static int work(char **argv, struct brig_error *err)
{
    struct token_facts facts = {0};
    struct token token = {0};
    autoclose int directory = -1;
    autoclose int lock = -1;
    bool keeps = strcmp(argv[1], "keep") == 0;
    if (!keeps && strcmp(argv[1], "take") != 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is neither keep nor take", argv[1]);
    int status = read_words(argv + 3, &facts, err);
    if (status == 0)
        status = store_open(argv[2], &directory, &lock, err);
    if (status == 0)
        status =
            keeps ? keep(directory, &facts, &token, err) : take(directory, &facts, &token, err);
    token_done(&token);
    return status;
}

int main(int argc, char **argv)
{
    struct brig_error err = {0};
    static char buffer[2 * TOKEN_TEXT_MAX + 256]; /* so that stdio keeps no copy on the heap */
    const struct rlimit none = {0, 0};
    if (argc < 3) {
        (void)fputs("brig-token is started by brig, and is of no use by itself.\n", stderr);
        return 2;
    }
    (void)prctl(PR_SET_DUMPABLE, 0);
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)umask(077);
    (void)setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    int status = work(argv, &err);
    explicit_bzero(buffer, sizeof buffer);
    if (status < 0)
        (void)fprintf(stderr, "%s\n", err.message);
    return status < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
