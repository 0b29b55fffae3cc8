/* SPDX-License-Identifier: MIT */
/* The files by which programs in a jail with a network door find its name server. */
#include <string.h>

#include "base/cleanup.h"
#include "jail/view/view_parts.h"

#define NSSWITCH_MAX 8192

/* One server and no domain to search: every name is asked for as it stands. */
static const char resolv_text[] = "# The name server of this jail's network door.\n"
                                  "nameserver 198.18.0.2\n";
static const char hosts_line[] = "hosts: files dns\n";

/* "hosts:", with whatever is before and behind it on the line. */
static const char *find_hosts_line(const char *text)
{
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += strspn(line, "\n \t");
        if (strncmp(line, "hosts:", 6) == 0)
            return line;
    }
    return NULL;
}

static bool has_word(const char *line, size_t length, const char *word)
{
    size_t size = strlen(word);
    for (size_t i = 0; i + size <= length; i++)
        if (memcmp(line + i, word, size) == 0 && strchr(" \t:", line[i ? i - 1 : 0]) &&
            (i + size == length || strchr(" \t\n[", line[i + size])))
            return true;
    return false;
}

/* The host's services that answer for names are out of reach, and then the next is asked: what
 * matters is that files and dns are among them. */
static char *fix_nsswitch(struct arena *arena, const char *text)
{
    const char *line = find_hosts_line(text);
    size_t length = line ? strcspn(line, "\n") : 0;
    if (line && has_word(line, length, "files") && has_word(line, length, "dns"))
        return NULL;
    if (!line)
        return arena_concat(arena, text, "\n", hosts_line);
    size_t before = (size_t)(line - text);
    char *head = arena_copy(arena, text, before + 1);
    if (!head)
        return NULL;
    head[before] = 0;
    return arena_concat(arena, head, hosts_line, line + length + (line[length] == '\n'));
}

static char *hosts_text(struct view *view)
{
    const char *name = view->policy->hostname ? view->policy->hostname : "brig";
    return arena_concat(&view->plan->arena, "127.0.0.1\tlocalhost ", name, "\n::1\tlocalhost ",
                        name, "\n");
}

/* Over the host's file; over a link in its place, not over what that leads to. */
static void cover(struct view *view, const char *name, const char *dest, const char *text)
{
    bool ours = false;
    if (!text || view_mountpoint(view, dest, false, &ours, NULL) < 0)
        return;
    view_mkfile(view, view->scratch, name, 0444, text, strlen(text));
    const char *what = "mount the files of the network door";
    int slot = view_read_only_subtree(view, view->scratch, name, what);
    struct plan_step *step = view_attach(view, slot, dest, ours, what);
    if (step && !ours) {
        step->data = "/etc";
        step->length = strlen("/etc");
    }
}

static void add_to_frame(struct view *view, const char *path, const char *text)
{
    if (text)
        view_mkfile(view, view->root, path, 0444, text, strlen(text));
}

static char *read_nsswitch(struct view *view)
{
    struct arena *arena = &view->plan->arena;
    const char *root = view->policy->view == BRIG_VIEW_ROOT ? view->policy->root_path : "";
    const char *path = arena_concat(arena, root, "/etc/nsswitch.conf");
    char *text = NULL;
    size_t length = 0;
    if (!path || view_read_small_file(arena, path, NSSWITCH_MAX, &text, &length) < 0)
        return NULL;
    return text; /* what arena memory ends with is a NUL */
}

void view_add_door(struct view *view)
{
    struct arena *arena = &view->plan->arena;
    char *nsswitch = read_nsswitch(view);
    char *fixed = nsswitch ? fix_nsswitch(arena, nsswitch) : NULL;
    if (!view->frame) {
        cover(view, "resolv.conf", "/etc/resolv.conf", resolv_text);
        cover(view, "hosts", "/etc/hosts", hosts_text(view));
        cover(view, "nsswitch.conf", "/etc/nsswitch.conf", fixed);
        return;
    }
    view_mkdirs(view, view->root, "etc", 0755);
    add_to_frame(view, "etc/resolv.conf", resolv_text);
    add_to_frame(view, "etc/nsswitch.conf", fixed ? fixed : nsswitch);
    if (view->policy->view == BRIG_VIEW_SYSTEM) /* has the rest of /etc */
        return;
    add_to_frame(view, "etc/hosts", hosts_text(view));
    plan_add_rule(view->plan, PLAN_NO_SLOT, "/etc",
                  landlock_rights(view->abi, LANDLOCK_GRANT_READ, true));
}
