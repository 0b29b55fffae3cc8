/* SPDX-License-Identifier: MIT */
#include "cli/verbs/status_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/error.h"
#include "changes/inventory.h"
#include "changes/layer/jail_option.h"
#include "changes/layer/layer.h"
#include "cli/report.h"

#define PART_BYTES 65536 /* output is printed in parts of about this size */

static int flush(struct status_printer *printer, size_t more_than, struct brig_error *err)
{
    if (printer->out.failed)
        return brig_fail_nomem(err);
    if (printer->out.length <= more_than)
        return 0;
    int status = message_print(&printer->out, err);
    printer->out.length = 0;
    return status;
}

/* ---- text ---- */

enum colour { PLAIN, RED, GREEN, YELLOW, BOLD, FAINT };

static void append_colour(struct status_printer *printer, enum colour colour)
{
    static const char *const codes[] = {"\033[m",   "\033[31m", "\033[32m",
                                        "\033[33m", "\033[1m",  "\033[2m"};
    if (printer->colour)
        str_append(&printer->out, codes[colour]);
}

static void append_coloured(struct status_printer *printer, enum colour colour, const char *text)
{
    append_colour(printer, colour);
    str_append(&printer->out, text);
    append_colour(printer, PLAIN);
}

static void append_name(struct str *out, const char *name)
{
    str_append_shown(out, name, strlen(name), "");
}

static void append_bytes(struct str *out, uint64_t bytes)
{
    str_append(out, str_size(bytes).text);
}

static const char *type_name(uint32_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return "file";
    case S_IFDIR:
        return "directory";
    case S_IFLNK:
        return "link";
    case S_IFIFO:
        return "fifo";
    case S_IFSOCK:
        return "socket";
    default:
        return "device";
    }
}

static void append_link(struct str *out, const char *target)
{
    if (!target)
        return;
    str_append(out, " to ");
    append_name(out, target);
}

/* What a deleted, replaced or replacing file is: "file, 12 bytes". */
static void append_object(struct str *out, uint32_t mode, uint64_t size, const char *target)
{
    str_append(out, type_name(mode));
    append_link(out, target);
    if (S_ISREG(mode)) {
        str_append(out, ", ");
        append_bytes(out, size);
    }
}

static void append_files(struct str *out, const struct inventory_item *item)
{
    if (!S_ISDIR(item->mode_before))
        return;
    str_append(out, " with ");
    str_append_count(out, item->files, "file");
    str_append(out, ", ");
    append_bytes(out, item->bytes);
}

static void append_sizes(struct str *out, const struct inventory_item *item)
{
    if (item->target_before && item->target_after) {
        str_append(out, "link");
        append_link(out, item->target_before);
        str_append(out, " ->");
        append_link(out, item->target_after);
    } else if (S_ISREG(item->mode_after)) {
        append_bytes(out, item->size_before);
        if (item->size_before != item->size_after) {
            str_append(out, " -> ");
            append_bytes(out, item->size_after);
        }
    }
}

/* "mode 0644 -> 0755, owner, attributes". */
static void append_meta(struct str *out, const struct inventory_item *item)
{
    const char *separator = item->kind == CHANGE_MODIFIED ? ", " : "";
    if (item->meta & CHANGE_MODE) {
        str_appendf(out, "%smode %04o -> %04o", separator, item->mode_before & 07777,
                    item->mode_after & 07777);
        separator = ", ";
    }
    if (item->meta & CHANGE_OWNER) {
        str_concat(out, separator, "owner");
        separator = ", ";
    }
    if (item->meta & CHANGE_ACL) {
        str_concat(out, separator, "ACL");
        separator = ", ";
    }
    if (item->meta & CHANGE_XATTRS)
        str_concat(out, separator, "extended attributes");
}

static void append_detail(struct str *out, const struct inventory_item *item)
{
    switch (item->kind) {
    case CHANGE_DELETED:
        append_object(out, item->mode_before, item->size_before, item->target_before);
        append_files(out, item);
        break;
    case CHANGE_TYPE:
        append_object(out, item->mode_before, item->size_before, item->target_before);
        append_files(out, item);
        str_append(out, " -> ");
        append_object(out, item->mode_after, item->size_after, item->target_after);
        break;
    case CHANGE_MODIFIED:
        append_sizes(out, item);
        append_meta(out, item);
        break;
    case CHANGE_METADATA:
        append_meta(out, item);
        break;
    case CHANGE_ADDED:
        append_object(out, item->mode_after, item->size_after, item->target_after);
        break;
    }
    if (item->renamed_from) {
        str_append(out, ", renamed from ");
        append_name(out, item->renamed_from);
    }
}

static void append_mark(struct status_printer *printer, enum colour colour, const char *mark,
                        const char *reason)
{
    if (!reason)
        return;
    append_colour(printer, colour);
    str_concat(&printer->out, mark, reason);
    append_colour(printer, PLAIN);
}

static int print_item(void *context, const struct inventory_item *item, struct brig_error *err)
{
    static const struct {
        const char *letter;
        enum colour colour;
    } kinds[] = {{"D", RED}, {"T", RED}, {"M", YELLOW}, {"m", YELLOW}, {"A", GREEN}};
    struct status_printer *printer = context;
    if (item->ignored || (item->state && !printer->state))
        return 0;
    str_append(&printer->out, "  ");
    append_coloured(printer, kinds[item->kind].colour,
                    item->renamed_from ? "R" : kinds[item->kind].letter);
    str_append(&printer->out, "  ");
    append_name(&printer->out, item->path);
    uint32_t mode = item->mode_after ? item->mode_after : item->mode_before;
    str_append(&printer->out, S_ISDIR(mode) ? "/  " : "  ");
    append_colour(printer, FAINT);
    append_detail(&printer->out, item);
    append_colour(printer, PLAIN);
    append_mark(printer, RED, "  ! ", item->risk);
    append_mark(printer, RED, "", item->risk ? names_class_words(item->class) : NULL);
    append_mark(printer, RED, "  conflict: ", item->conflict);
    append_mark(printer, RED, "  unreadable: ", item->unreadable);
    str_append_char(&printer->out, '\n');
    return flush(printer, PART_BYTES, err);
}

static int print_group(void *context, const struct inventory_group *group, struct brig_error *err)
{
    struct status_printer *printer = context;
    struct str *out = &printer->out;
    str_append(out, "  ");
    append_coloured(printer, FAINT, "I");
    str_append(out, "  ");
    append_name(out, *group->path ? group->path : ".");
    str_append(out, group->single ? "  " : "/  ");
    append_colour(printer, FAINT);
    str_append_count(out, group->files, "ignored file");
    str_append(out, ", ");
    append_bytes(out, group->bytes);
    append_colour(printer, PLAIN);
    if (group->risk) {
        append_colour(printer, RED);
        str_append(out, "  ! ");
        if (group->files > 1)
            str_appendf(out, "%" PRIu64 " flagged, the first: ", group->risky);
        str_append(out, group->risk);
        append_colour(printer, PLAIN);
    }
    str_append_char(out, '\n');
    return flush(printer, PART_BYTES, err);
}

static uint64_t total(const struct inventory_counts *counts)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < INVENTORY_KINDS; i++)
        sum += counts->kinds[i];
    return sum;
}

static void append_totals(struct str *out, const struct inventory_counts *counts)
{
    const struct {
        uint64_t count;
        const char *words;
    } rows[] = {
        {counts->kinds[CHANGE_DELETED], "deleted"},
        {counts->kinds[CHANGE_TYPE], "of another type"},
        {counts->kinds[CHANGE_MODIFIED], "modified"},
        {counts->kinds[CHANGE_METADATA], "with other metadata"},
        {counts->kinds[CHANGE_ADDED], "added"},
        {counts->ignored, "ignored by git"},
        {counts->risky, "flagged (!)"},
        {counts->conflicts, counts->conflicts == 1 ? "conflict" : "conflicts"},
        {counts->unreadable, "unreadable"},
    };
    str_append(out, "  ");
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        if (rows[i].count > 0)
            str_appendf(out, "%" PRIu64 " %s, ", rows[i].count, rows[i].words);
    append_bytes(out, counts->bytes);
    str_append_char(out, '\n');
}

static int print_text(struct status_printer *printer, const struct layer *layer,
                      struct inventory *inventory, struct brig_error *err)
{
    const struct inventory_counts *counts = inventory_counts(inventory);
    if (total(counts) == 0 && counts->state == 0)
        return 0;
    append_colour(printer, BOLD);
    append_name(&printer->out, layer->root);
    append_colour(printer, PLAIN);
    bool home = layer_is_home(layer->name);
    str_append(&printer->out, home ? ", your home" : ", reviewed");
    if (layer->lower < 0)
        str_append(&printer->out, ", does not exist any more");
    else if (layer->replaced)
        str_append(&printer->out, ", but not the directory that these changes were made for");
    str_append(&printer->out, layer->running ? ", in use by a run\n" : "\n");
    int result = inventory_each(inventory, print_item, printer, err);
    if (result == 0)
        result = inventory_each_group(inventory, print_group, printer, err);
    if (counts->state > 0) {
        str_append(&printer->out, "  state and caches of programs: ");
        str_append_count(&printer->out, counts->state, "file");
        str_append(&printer->out, printer->state ? "\n" : "; -v lists them\n");
    }
    if (total(counts) > 0)
        append_totals(&printer->out, counts);
    return result;
}

static void append_next(struct status_printer *printer)
{
    struct str *out = &printer->out;
    const struct jails_option jail = jails_option(printer->jail);
    if (printer->running)
        str_append(out, "A run of the jail is active: the list can change.\n");
    if (printer->interrupted > 0)
        str_appendf(out,
                    "Operation %" PRIu64 " was interrupted: brig apply%s --continue completes it, "
                    "brig apply%s --abort reverts it.\n",
                    printer->interrupted, jail.text, jail.text);
    if (printer->held > 0) {
        str_append_count(out, printer->held, "file");
        str_append(out, printer->held == 1 ? " is held back: see brig held.\n"
                                           : " are held back: see brig held.\n");
    }
    if (printer->items.risky > 0)
        str_appendf(out, "brig apply%s asks before flagged commits (!) are moved.\n", jail.text);
    if (printer->changes == 0 && printer->items.items > 0)
        str_appendf(out, "Next: brig diff%s, brig apply%s --all\n", jail.text, jail.text);
    if (printer->changes == 0)
        return;
    str_appendf(out, "Next: brig diff%s, brig review%s, brig apply%s PATH, brig discard%s PATH",
                jail.text, jail.text, jail.text, jail.text);
    if (printer->risky > 0)
        str_appendf(out, "; brig apply%s asks before flagged files (!)", jail.text);
    if (printer->conflicts > 0)
        str_appendf(out, "; brig apply%s asks what to do with conflicts", jail.text);
    str_append(out, ".\n");
}

/* ---- JSON ---- */

static void json_modes(struct json *json, const struct inventory_item *item)
{
    const uint32_t modes[] = {item->mode_before, item->mode_after};
    json_open_array(json, "mode");
    for (size_t i = 0; i < 2; i++) {
        char text[16];
        (void)snprintf(text, sizeof text, "%06o", modes[i]);
        json_text(json, NULL, modes[i] ? text : NULL);
    }
    json_close_array(json);
}

static bool has_size(uint32_t mode)
{
    return S_ISREG(mode) || S_ISLNK(mode);
}

static void json_sizes(struct json *json, const struct inventory_item *item)
{
    if (!has_size(item->mode_before) && !has_size(item->mode_after))
        return;
    const uint32_t modes[] = {item->mode_before, item->mode_after};
    const uint64_t sizes[] = {item->size_before, item->size_after};
    json_open_array(json, "size");
    for (size_t i = 0; i < 2; i++) {
        if (has_size(modes[i]))
            json_uint(json, NULL, sizes[i]);
        else
            json_nothing(json, NULL);
    }
    json_close_array(json);
}

static void json_optional(struct json *json, const char *key, const char *text)
{
    if (text)
        json_text(json, key, text);
}

static void json_token(struct json *json, const struct token *token)
{
    if (token->text[0])
        json_text(json, "token", token->text);
}

/* A path; if it is not UTF-8, KEY_bytes has it in base64. */
static void json_path(struct json *json, const char *key, const char *path)
{
    json_text(json, key, path);
    if (utf8_is_valid(path, strlen(path)))
        return;
    autostr struct str bytes = {0};
    char bytes_key[32];
    (void)str_fill(bytes_key, sizeof bytes_key, key, "_bytes");
    base64_append(&bytes, path, strlen(path));
    json_text(json, bytes_key, bytes.failed ? NULL : bytes.data);
}

static void json_item(struct json *json, const struct inventory_item *item)
{
    static const char *const kinds[] = {"deleted", "type", "modified", "metadata", "added"};
    uint32_t mode = item->mode_after ? item->mode_after : item->mode_before;
    json_open_object(json, NULL);
    json_path(json, "path", item->path);
    json_text(json, "kind", kinds[item->kind]);
    json_text(json, "type", type_name(mode));
    if (item->mode_before)
        json_text(json, "was", type_name(item->mode_before));
    json_modes(json, item);
    json_sizes(json, item);
    json_token(json, &item->token);
    if (item->meta & CHANGE_OWNER)
        json_bool(json, "owner", true);
    if (item->meta & CHANGE_ACL)
        json_bool(json, "acl", true);
    if (item->meta & CHANGE_XATTRS)
        json_bool(json, "xattrs", true);
    if (item->target_before || item->target_after) {
        json_open_array(json, "target");
        json_text(json, NULL, item->target_before);
        json_text(json, NULL, item->target_after);
        json_close_array(json);
    }
    if (item->renamed_from)
        json_path(json, "renamed_from", item->renamed_from);
    if (S_ISDIR(item->mode_before) && !S_ISDIR(item->mode_after)) {
        json_uint(json, "files", item->files);
        json_uint(json, "bytes", item->bytes);
    }
    if (item->ignored)
        json_bool(json, "ignored", true);
    if (item->state)
        json_bool(json, "state", true);
    json_optional(json, "conflict", item->conflict);
    json_optional(json, "risk", item->risk);
    json_optional(json, "class", item->risk ? names_class_name(item->class) : NULL);
    json_optional(json, "unreadable", item->unreadable);
    json_close_object(json);
}

static int print_json_item(void *context, const struct inventory_item *item, struct brig_error *err)
{
    struct status_printer *printer = context;
    if (!printer->grouped || (item->group == 0 && !item->state))
        json_item(&printer->writer, item);
    return flush(printer, PART_BYTES, err);
}

/* An ignored directory with everything in it. */
static int print_json_group(void *context, const struct inventory_group *group,
                            struct brig_error *err)
{
    struct status_printer *printer = context;
    struct json *json = &printer->writer;
    if (!group->whole)
        return 0;
    json_open_object(json, NULL);
    json_path(json, "path", group->path);
    json_text(json, "kind", "added");
    json_text(json, "type", "directory");
    json_uint(json, "files", group->files);
    json_uint(json, "bytes", group->bytes);
    json_bool(json, "ignored", true);
    json_token(json, &group->token);
    json_optional(json, "risk", group->risk);
    json_close_object(json);
    return flush(printer, PART_BYTES, err);
}

static int print_json(struct status_printer *printer, const struct layer *layer,
                      struct inventory *inventory, struct brig_error *err)
{
    const struct inventory_counts *counts = inventory_counts(inventory);
    struct json *json = &printer->writer;
    json_open_object(json, NULL);
    json_text(json, "name", layer->name);
    json_path(json, "root", layer->root);
    json_bool(json, "home", layer_is_home(layer->name));
    json_bool(json, "replaced", layer->replaced);
    json_open_array(json, "changes");
    int result = inventory_each(inventory, print_json_item, printer, err);
    if (result == 0 && printer->grouped)
        result = inventory_each_group(inventory, print_json_group, printer, err);
    json_close_array(json);
    json_open_object(json, "counts");
    json_uint(json, "deleted", counts->kinds[CHANGE_DELETED]);
    json_uint(json, "type", counts->kinds[CHANGE_TYPE]);
    json_uint(json, "modified", counts->kinds[CHANGE_MODIFIED]);
    json_uint(json, "metadata", counts->kinds[CHANGE_METADATA]);
    json_uint(json, "added", counts->kinds[CHANGE_ADDED]);
    json_uint(json, "conflicts", counts->conflicts);
    json_uint(json, "risky", counts->risky);
    json_uint(json, "bytes", counts->bytes);
    json_uint(json, "state", counts->state);
    json_close_object(json);
    json_close_object(json);
    return result;
}

/* ---- both ---- */

int status_print_begin(struct status_printer *printer, struct brig_error *err)
{
    const char *term = getenv("TERM"), *no_colour = getenv("NO_COLOR");
    printer->colour = !printer->json && isatty(STDOUT_FILENO) && !(no_colour && *no_colour) &&
                      term && strcmp(term, "dumb") != 0;
    if (printer->json) {
        json_init(&printer->writer, &printer->out);
        json_open_object(&printer->writer, NULL);
        json_text(&printer->writer, "jail", printer->jail);
        json_bool(&printer->writer, "running", printer->running);
        json_open_array(&printer->writer, "layers");
    }
    return flush(printer, PART_BYTES, err);
}

int status_print_layer(struct status_printer *printer, const struct layer *layer,
                       struct inventory *inventory, struct brig_error *err)
{
    const struct inventory_counts *counts = inventory_counts(inventory);
    printer->changes += total(counts);
    printer->conflicts += counts->conflicts;
    printer->risky += counts->risky;
    return printer->json ? print_json(printer, layer, inventory, err)
                         : print_text(printer, layer, inventory, err);
}

int status_print_end(struct status_printer *printer, struct brig_error *err)
{
    int status = 0;
    if (!printer->json) {
        printer->items.out = &printer->out;
        if (printer->git)
            status = printer->git(printer->git_context, &printer->items, err);
        append_next(printer);
        return status < 0 ? status : flush(printer, 0, err);
    }
    json_close_array(&printer->writer);
    json_open_array(&printer->writer, "git");
    printer->items.writer = &printer->writer;
    if (printer->git)
        status = printer->git(printer->git_context, &printer->items, err);
    if (status < 0)
        return status;
    json_close_array(&printer->writer);
    json_uint(&printer->writer, "held", printer->held);
    if (printer->interrupted > 0)
        json_uint(&printer->writer, "interrupted", printer->interrupted);
    else
        json_nothing(&printer->writer, "interrupted");
    json_close_object(&printer->writer);
    str_append_char(&printer->out, '\n');
    return flush(printer, 0, err);
}
