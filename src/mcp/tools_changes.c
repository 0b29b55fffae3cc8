/* SPDX-License-Identifier: MIT */
/* The tools diff, apply and reset: brig's verbs for the copy of the project.
 *
 * The user confirms an apply through the client, which shows a form (elicitation). What is applied is
 * what the user was asked about: if the changes differ after the answer, also by a run of another
 * client in the same jail, the user is asked again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "mcp/session.h"

#define DIFF_BYTES 32768
#define QUESTION_COMMITS 10            /* of each branch */
#define STATUS_BYTES ((size_t)8 << 20) /* of brig status --json; half of it can be parsed */
#define QUESTION_CHANGES 30            /* that a question lists */
#define ROOTS_MAX 32                   /* reviewed directories of a jail */
#define KEY "confirm"                  /* of the question, for modern clients */

/* ---- diff ---- */

static void begin_diff(struct session *session, struct call *call)
{
    autofree char *path = NULL;
    const char *given = call_text(call, "path");
    const char *stat = call_flag(call, "stat") ? "--stat" : "--no-pager";
    if (session->generation == 0 && !session->jail_kept) {
        call_finish(call, "There are no changes.",
                    json_pack("{s:s, s:b}", "diff", "", "truncated", 0), false);
        return;
    }
    if (given && *given)
        (void)str_make(&path, NULL, given[0] == '/' ? "" : "./", given);
    call_start_verb(session, call, "diff",
                    (const char *const[]){"--no-pager", stat,
                                          path                   ? path
                                          : session->has_project ? "."
                                                                 : NULL,
                                          NULL},
                    -1, DIFF_BYTES);
}

static void ended_diff(struct session *session, struct call *call)
{
    (void)session;
    const struct excerpt *out = &call->child.captures[CHILD_OUTPUT];
    autostr struct str text = {0};
    if (!call_worked(call, 1))
        return;
    excerpt_print(out, &text);
    call_finish(call, text.length > 0 ? text.data : "There are no changes.",
                json_pack("{s:s, s:b}", "diff", text.data ? text.data : "", "truncated",
                          (int)excerpt_was_cut(out)),
                false);
}

const struct tool tool_diff = {.name = "diff", .begin = begin_diff, .ended = ended_diff};

/* ---- apply: what there is ---- */

/* The changes of brig status: files, and what was done in git. */
struct changes {
    json_t *status;
    size_t count, risky, conflicts;   /* without the copy of the home directory */
    const char *roots[ROOTS_MAX + 1]; /* the directories that have them; ends with NULL */
    size_t root_count;
    struct str items; /* for --shown: each has a token, a blank, the path and a NUL */
    char hash[SHA256_HEX_LENGTH + 1]; /* of all of them */
};

static void add_token(struct changes *changes, const json_t *item)
{
    static const char none[] = "00000000000000000000000000000000"; /* it is refused */
    const char *token = json_string_value(json_object_get(item, "token"));
    str_concat(&changes->items, token ? token : none, " ");
}

/* A branch, a stash or an index. */
static void add_git(struct changes *changes, const json_t *item)
{
    const char *name = json_string_value(json_object_get(item, "name"));
    add_token(changes, item);
    str_concat(&changes->items, "git:", name ? name : "");
    str_append_char(&changes->items, '\0');
}

static void add_item(struct changes *changes, const char *root, const json_t *change)
{
    const char *path = json_string_value(json_object_get(change, "path"));
    const json_t *bytes = json_object_get(change, "path_bytes");
    autofree char *decoded = bytes ? malloc(json_string_length(bytes) + 1) : NULL;
    size_t length = 0;
    if (decoded &&
        base64_decode(json_string_value(bytes), json_string_length(bytes), decoded, &length))
        decoded[length] = '\0';
    add_token(changes, change);
    str_concat(&changes->items, strcmp(root, "/") == 0 ? "" : root, "/",
               length > 0 ? decoded
               : path     ? path
                          : "");
    str_append_char(&changes->items, '\0');
}

static void add_root(struct changes *changes, const char *root)
{
    for (size_t i = 0; i < changes->root_count; i++)
        if (root && strcmp(changes->roots[i], root) == 0)
            return;
    if (root && changes->root_count < ROOTS_MAX)
        changes->roots[changes->root_count++] = root;
}

static void count_changes(struct changes *changes)
{
    json_t *layer, *change;
    size_t i, j;
    json_array_foreach(json_object_get(changes->status, "layers"), i, layer)
    {
        json_t *list = json_object_get(layer, "changes");
        const char *root = json_string_value(json_object_get(layer, "root"));
        if (!root || json_is_true(json_object_get(layer, "home")) || json_array_size(list) == 0)
            continue;
        add_root(changes, root);
        json_array_foreach(list, j, change)
        {
            changes->count++;
            changes->risky += json_object_get(change, "risk") != NULL;
            changes->conflicts += json_object_get(change, "conflict") != NULL;
            add_item(changes, root, change);
        }
    }
    json_array_foreach(json_object_get(changes->status, "git"), i, change)
    {
        add_root(changes, json_string_value(json_object_get(change, "root")));
        changes->count++;
        changes->risky += json_object_get(change, "risk") != NULL;
        add_git(changes, change);
    }
    sha256_hex(changes->items.data ? changes->items.data : "", changes->items.length,
               changes->hash);
}

/* Names are the jail's: a terminal and a form get no control characters. */
static void print_change(struct str *text, const char *root, const json_t *change)
{
    const char *path = json_string_value(json_object_get(change, "path"));
    const char *kind = json_string_value(json_object_get(change, "kind"));
    const char *risk = json_string_value(json_object_get(change, "risk"));
    str_concat(text, "\n", kind ? kind : "changed", " ");
    str_append_shown(text, root, strlen(root), "");
    str_append_char(text, '/');
    if (path)
        str_append_shown(text, path, strlen(path), "");
    if (risk)
        str_concat(text, "  RISK: ", risk);
    if (json_object_get(change, "conflict"))
        str_append(text, "  CONFLICT: you have changed this file too; it is skipped");
}

/* A branch, a stash or an index, with its commits. Their texts are the jail's, too. */
static void print_commits(struct str *text, const json_t *item)
{
    const char *name = json_string_value(json_object_get(item, "name"));
    const char *risk = json_string_value(json_object_get(item, "risk"));
    json_t *commit;
    size_t i, printed = 0;
    str_append(text, "\ngit ");
    str_append_shown(text, name ? name : "", name ? strlen(name) : 0, "");
    if (risk)
        str_concat(text, "  RISK: ", risk);
    json_array_foreach(json_object_get(item, "commits"), i, commit)
    {
        const char *id = json_string_value(json_object_get(commit, "id"));
        const char *subject = json_string_value(json_object_get(commit, "subject"));
        if (printed++ >= QUESTION_COMMITS)
            break;
        str_appendf(text, "\n  %.10s ", id ? id : "staged:");
        str_append_shown(text, subject ? subject : "", subject ? strlen(subject) : 0, "");
        str_append(text, ": ");
        str_append_count(text, json_array_size(json_object_get(commit, "files")), "file");
    }
    json_int_t count = json_integer_value(json_object_get(item, "count"));
    if (count > QUESTION_COMMITS)
        str_appendf(text, "\n  and %lld more commits", (long long)(count - QUESTION_COMMITS));
}

/* Flagged changes first, so that they are never among those that are left out. */
static void print_changes(const struct changes *changes, struct str *text)
{
    size_t printed = 0;
    for (int flagged = 1; flagged >= 0; flagged--) {
        json_t *layer, *change;
        size_t i, j;
        json_array_foreach(json_object_get(changes->status, "git"), i, change)
        {
            if ((json_object_get(change, "risk") != NULL) == (flagged == 1) &&
                printed < QUESTION_CHANGES) {
                print_commits(text, change);
                printed++;
            }
        }
        json_array_foreach(json_object_get(changes->status, "layers"), i, layer)
        {
            const char *root = json_string_value(json_object_get(layer, "root"));
            if (!root || json_is_true(json_object_get(layer, "home")))
                continue;
            json_array_foreach(json_object_get(layer, "changes"), j, change)
            {
                bool marked =
                    json_object_get(change, "risk") || json_object_get(change, "conflict");
                if (marked == (flagged == 1) && printed < QUESTION_CHANGES) {
                    print_change(text, root, change);
                    printed++;
                }
            }
        }
    }
    if (printed < changes->count)
        str_appendf(text, "\nand %zu more", changes->count - printed);
}

/* ---- apply: the question ---- */

/* The parameters of elicitation/create. */
static json_t *make_question(const struct session *session, const struct changes *changes)
{
    autostr struct str text = {0};
    str_appendf(&text, "Write %zu change%s of the sandbox to your files?", changes->count,
                changes->count == 1 ? "" : "s");
    print_changes(changes, &text);
    str_appendf(&text, "\n\nTo look at them first: brig review -j %s", session->jail);
    json_t *properties = json_object();
    if (changes->risky > 0)
        (void)json_object_set_new(properties, "risky",
                                  json_pack("{s:s, s:s, s:s, s:b}", "type", "boolean", "title",
                                            "Also write the changes marked RISK", "description",
                                            "Other programs execute or obey these files.",
                                            "default", 0));
    return json_pack("{s:s, s:s, s:{s:s, s:o}}", "mode", "form", "message",
                     text.failed ? "Write the changes of the sandbox to your files?" : text.data,
                     "requestedSchema", "type", "object", "properties", properties);
}

/* A modern client repeats the request with the answer and this token, which nothing else can know. */
static bool make_token(struct session *session)
{
    unsigned char bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        (void)snprintf(session->token + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

static void tell_user(struct session *session, struct call *call, const struct changes *changes)
{
    autostr struct str text = {0}, command = {0};
    str_appendf(&command, "brig review -j %s", session->jail);
    str_appendf(&text,
                "Nothing was applied, because this client cannot ask the user. There %s %zu "
                "change%s. Tell the user to type, in a terminal:\n  %s\nor, to apply all of them:\n"
                "  brig apply -j %s",
                changes->count == 1 ? "is" : "are", changes->count, changes->count == 1 ? "" : "s",
                command.data ? command.data : "", session->jail);
    for (size_t i = 0; i < changes->root_count; i++) {
        str_append_char(&text, ' ');
        str_append_word(&text, changes->roots[i]);
    }
    print_changes(changes, &text);
    call_finish(call, text.data,
                json_pack("{s:s, s:s, s:[]}", "status", "user_must_apply", "command",
                          command.data ? command.data : "", "messages"),
                false);
}

static void ask(struct session *session, struct call *call, const struct changes *changes)
{
    memcpy(call->asked, changes->hash, sizeof call->asked);
    call->confirmed = false;
    if (!call->elicits) {
        tell_user(session, call, changes);
    } else if (!call->modern) {
        session_ask(session, call, make_question(session, changes));
    } else if (make_token(session)) {
        memcpy(session->token_asked, changes->hash, sizeof session->token_asked);
        call->result = json_pack("{s:s, s:{s:{s:s, s:o}}, s:s}", "resultType", "input_required",
                                 "inputRequests", KEY, "method", "elicitation/create", "params",
                                 make_question(session, changes), "requestState", session->token);
    }
}

/* Reads an answer: false if the user has not agreed. */
static bool read_answer(struct call *call, const json_t *answer)
{
    const char *action = json_string_value(json_object_get(answer, "action"));
    call->confirmed = action && strcmp(action, "accept") == 0;
    call->risky = json_is_true(json_object_get(json_object_get(answer, "content"), "risky"));
    if (!call->confirmed)
        call_finish(call, "The user did not agree; nothing was applied.",
                    json_pack("{s:s, s:[]}", "status", "declined", "messages"), false);
    return call->confirmed;
}

static void answered(struct session *session, struct call *call, const json_t *answer)
{
    (void)session;
    (void)read_answer(call, answer);
}

/* ---- apply: the steps ---- */

/* Applies exactly what the user was asked about, or says that this is not possible. */
static void apply(struct session *session, struct call *call, const struct changes *changes)
{
    const char *words[3] = {"--shown"};
    autoclose int input =
        changes->items.failed ? -1 : child_input(changes->items.data, changes->items.length);
    if (input < 0)
        return call_fail(call, "Out of memory.");
    if (call->risky)
        words[1] = "--risky";
    call->applying = true;
    call_start_verb(session, call, "apply", words, input, DIFF_BYTES);
}

/* A modern client has repeated its request with an answer to the last question. */
static bool has_answer(const struct session *session, const struct call *call)
{
    const char *state = json_string_value(json_object_get(call->params, "requestState"));
    return call->modern && state && *session->token && strcmp(state, session->token) == 0 &&
           json_object_get(json_object_get(call->params, "inputResponses"), KEY);
}

static void begin_apply(struct session *session, struct call *call)
{
    if (session->generation == 0 && !session->jail_kept) {
        call_finish(call, "There are no changes.",
                    json_pack("{s:s, s:[]}", "status", "no_changes", "messages"), false);
        return;
    }
    if (has_answer(session, call)) {
        session->token[0] = '\0';
        memcpy(call->asked, session->token_asked, sizeof call->asked);
        if (!read_answer(call,
                         json_object_get(json_object_get(call->params, "inputResponses"), KEY)))
            return;
    }
    call_start_verb(session, call, "status", (const char *const[]){"--json", NULL}, -1,
                    STATUS_BYTES);
}

/* After brig apply. */
static void finish_apply(struct session *session, struct call *call)
{
    json_t *messages = call_messages(call), *line;
    size_t index;
    autostr struct str text = {0}, command = {0};
    bool whole = call->child.status == 0;
    json_array_foreach(messages, index, line) str_concat(&text, json_string_value(line), "\n");
    json_t *value = json_pack("{s:s, s:o}", "status", whole ? "applied" : "partly_applied",
                              "messages", messages);
    if (!whole) {
        str_appendf(&command, "brig review -j %s", session->jail);
        str_concat(&text, "The user can look at what is left: ", command.data ? command.data : "");
        (void)json_object_set_new(value, "command", json_string(command.data ? command.data : ""));
    }
    call_finish(call, text.data, value, !whole);
}

/* After brig status. */
static void consider(struct session *session, struct call *call)
{
    const struct excerpt *out = &call->child.captures[CHILD_OUTPUT];
    struct changes changes = {0};
    if (!call_worked(call, 0))
        return;
    changes.status = out->head.data ? json_loadb(out->head.data, out->head.length, 0, NULL) : NULL;
    count_changes(&changes);
    if (!changes.status)
        call_fail(call,
                  "There are too many changes to list. The user can apply them with brig "
                  "review -j %s.",
                  session->jail);
    else if (changes.count == 0)
        call_finish(call, "There are no changes.",
                    json_pack("{s:s, s:[]}", "status", "no_changes", "messages"), false);
    else if (call->confirmed && strcmp(call->asked, changes.hash) == 0)
        apply(session, call, &changes);
    else
        ask(session, call, &changes);
    json_decref(changes.status);
    str_done(&changes.items);
}

static void ended_apply(struct session *session, struct call *call)
{
    if (call->applying)
        finish_apply(session, call);
    else
        consider(session, call);
}

const struct tool tool_apply = {.name = "apply",
                                .alone = true,
                                .begin = begin_apply,
                                .ended = ended_apply,
                                .answered = answered};

/* ---- reset ---- */

static void begin_reset(struct session *session, struct call *call)
{
    if (session->generation == 0 && !session->jail_kept) {
        call_finish(call, "There are no changes.", json_pack("{s:[]}", "messages"), false);
        return;
    }
    session->generation++;
    call_start_verb(session, call, "discard", (const char *const[]){"--all", NULL}, -1, DIFF_BYTES);
}

static void ended_reset(struct session *session, struct call *call)
{
    (void)session;
    if (!call_worked(call, 0))
        return;
    call_finish(call, "All changes were dropped.",
                json_pack("{s:o}", "messages", call_messages(call)), false);
}

const struct tool tool_reset = {
    .name = "reset", .alone = true, .begin = begin_reset, .ended = ended_reset};
