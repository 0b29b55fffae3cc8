/* SPDX-License-Identifier: MIT */
/* The system parts of a view: /usr and similar directories, the files of /etc that programs need,
 * /dev and /proc. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "jail/job/result.h"
#include "jail/plan/facts.h"
#include "jail/view/view.h"
#include "jail/view/view_build.h"

/* A file of /etc up to this size is copied into the jail's root, a larger one is bound. */
#define COPY_LIMIT 16384

const char *const view_system_dirs[] = {"/usr",   "/bin",   "/sbin",  "/lib",
                                        "/lib32", "/lib64", "/libx32"};
const size_t view_system_dir_count = ARRAY_LENGTH(view_system_dirs);

/* Returns the bytes of a regular file, with a NUL after them; NULL if it is missing or larger. */
static char *read_small_file(struct arena *arena, const char *path, size_t limit,
                             size_t *ret_length)
{
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) || (uint64_t)info.st_size > limit)
        return NULL;
    char *data = arena_alloc(arena, (size_t)info.st_size + 1);
    ssize_t length = data ? read(fd, data, (size_t)info.st_size) : -1;
    *ret_length = length < 0 ? 0 : (size_t)length;
    return length < 0 ? NULL : data;
}

void view_bind_read_only(struct view *view, const char *path, const struct stat *info)
{
    bool directory = S_ISDIR(info->st_mode);
    bool ours = true;
    if (view_mountpoint(view, path, directory, &ours, NULL) < 0)
        return;
    int slot = plan_new_slot(view->plan);
    const char *what = arena_concat(&view->plan->arena, "mount '", path, "' read-only");
    struct plan_step *step = plan_add(view->plan, PLAN_TREE, what);
    step->slot = slot;
    step->path = path;
    step->flags = PLAN_ATTR_RDONLY | PLAN_ATTR_NOSUID | PLAN_ATTR_NODEV | PLAN_ATTR_RECURSIVE;
    step->check_identity = true;
    step->dev = info->st_dev;
    step->ino = info->st_ino;
    (void)view_attach(view, slot, path, ours, what);
    if (strncmp(path, "/etc/", 5) != 0) /* /etc has one rule as a whole */
        view_landlock(view, slot, path, LANDLOCK_GRANT_READ, directory);
    if (directory)
        view_add_place(view, (struct view_place){.dest = path, .host = path});
}

bool view_read_link(const char *path, char target[VIEW_LINK_BYTES])
{
    ssize_t length = readlink(path, target, VIEW_LINK_BYTES - 1);
    if (length <= 0)
        return false;
    target[length] = 0;
    return true;
}

void view_repeat_link(struct view *view, const char *path, const char *target)
{
    /* The link is relative, so that it cannot lead into the host tree while the jail is being
     * built. */
    const char *up = target[0] != '/' ? "" : strchr(path + 1, '/') ? "../" : "";
    view_symlink(view, view->root, path + 1,
                 arena_concat(&view->plan->arena, up, target + (target[0] == '/')));
}

bool view_copy_file(struct view *view, const char *path)
{
    size_t length = 0;
    const char *data = read_small_file(&view->plan->arena, path, COPY_LIMIT, &length);
    if (data)
        view_mkfile(view, view->root, path + 1, 0444, data, length);
    return data != NULL;
}

/* passwd and group with the jail's user, root and nobody. */
static char *passwd_text(const struct view *view)
{
    const struct jail_identity *id = view->identity;
    struct arena *arena = &view->plan->arena;
    return arena_printf(arena,
                        "root:x:0:0:root:/root:/usr/sbin/nologin\n%s:x:%u:%u:%s:%s:%s\n"
                        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
                        id->name, id->inside_uid, id->inside_gid, id->name, id->home, id->shell);
}

static char *group_text(const struct view *view)
{
    return arena_printf(&view->plan->arena, "root:x:0:\n%s:x:%u:\nnogroup:x:65534:\n",
                        view->identity->name, view->identity->inside_gid);
}

static char *hosts_text(const struct view *view)
{
    const char *name = view->policy->hostname ? view->policy->hostname : "brig";
    struct arena *arena = &view->plan->arena;
    char *text =
        arena_concat(arena, "127.0.0.1\tlocalhost ", name, "\n::1\tlocalhost ", name, "\n");
    const struct policy_net *net = &view->policy->net;
    for (size_t i = 0; text && i < net->inject_count; i++)
        if (net->inject[i].site)
            text = arena_concat(arena, text, net->inject[i].site_address, "\t", net->inject[i].site,
                                "\n");
    return text;
}

static void add_text(struct view *view, const char *path, const char *text)
{
    if (text)
        view_mkfile(view, view->root, path, 0444, text, strlen(text));
}

int view_add_system(struct view *view, struct brig_error *err)
{
    struct stat cpu;
    for (size_t i = 0; i < ARRAY_LENGTH(view_system_dirs); i++) {
        struct stat info;
        char target[VIEW_LINK_BYTES];
        if (view_read_link(view_system_dirs[i], target))
            view_repeat_link(view, view_system_dirs[i], target);
        else if (lstat(view_system_dirs[i], &info) == 0 && S_ISDIR(info.st_mode))
            view_bind_read_only(view, view_system_dirs[i], &info);
    }
    view_mkdirs(view, view->root, "etc", 0755);
    view_add_etc(view);
    add_text(view, "etc/passwd", passwd_text(view));
    add_text(view, "etc/group", group_text(view));
    add_text(view, "etc/hosts", hosts_text(view));
    add_text(view, "etc/gitconfig", view->policy->gitconfig);
    plan_add_rule(view->plan, PLAN_NO_SLOT, "/etc",
                  landlock_rights(view->abi, LANDLOCK_GRANT_READ, true));
    if (stat(VIEW_SYS_CPU, &cpu) == 0)
        view_bind_read_only(view, VIEW_SYS_CPU, &cpu);
    return view->plan->arena.failed ? brig_fail_nomem(err) : 0;
}

/* Mounts a text over a file of the host's /etc; returns NULL if there is no file to cover. */
static struct plan_step *cover(struct view *view, const char *dest, const char *text,
                               const char *what)
{
    const char *name = dest + strlen("/etc/");
    bool ours = false;
    if (!text || view_mountpoint(view, dest, false, &ours, NULL) < 0)
        return NULL;
    view_mkfile(view, view->scratch, name, 0444, text, strlen(text));
    int slot = view_read_only_subtree(view, view->scratch, name, what);
    return view_attach(view, slot, dest, ours, what);
}

/* Used if the host's /etc is visible and lacks the jail's user. */
void view_add_identity_files(struct view *view)
{
    if (!view->identity->synthetic && !view->layered)
        return;
    (void)cover(view, "/etc/passwd", passwd_text(view), "mount the jail's passwd");
    (void)cover(view, "/etc/group", group_text(view), "mount the jail's passwd");
    if (!view->layered || policy_has_door(view->policy))
        return;
    (void)cover(view, "/etc/hosts", hosts_text(view), "mount the jail's hosts");
    size_t length;
    char *resolv =
        view->policy->network == BRIG_NET_HOST
            ? read_small_file(&view->plan->arena, "/etc/resolv.conf", COPY_LIMIT, &length)
            : NULL;
    (void)cover(view, "/etc/resolv.conf", resolv, "mount the host's resolv.conf");
}

/* Makes a mount point in the root of an image, which may lack it. */
static void make_place(struct view *view, const char *dest)
{
    bool ours;
    if (view->layered)
        (void)view_mountpoint(view, dest, true, &ours, NULL); /* fails only without memory */
}

/* ---- /dev ---- */

static const char *const device_nodes[] = {"/dev/null",   "/dev/zero",    "/dev/full",
                                           "/dev/random", "/dev/urandom", "/dev/tty"};

static const struct {
    const char *path, *target;
} device_links[] = {{"fd", "/proc/self/fd"},
                    {"stdin", "/proc/self/fd/0"},
                    {"stdout", "/proc/self/fd/1"},
                    {"stderr", "/proc/self/fd/2"},
                    {"ptmx", "pts/ptmx"}};

/* Landlock allows mq_open() only with a rule for the root of the queues' filesystem, and a rule
 * needs a mount. A kernel may have none. */
static void add_message_queues(struct view *view, int dev, const char *prefix)
{
    struct plan *plan = view->plan;
    view_mkdirs(view, dev, arena_concat(&plan->arena, prefix, "mqueue"), 0755);
    int queues = plan_new_slot(plan);
    struct plan_step *step = plan_add(plan, PLAN_MQUEUE, "make the jail's message queues");
    step->slot = queues;
    step->path = "\0";
    step->flags = PLAN_ATTR_NOSUID | PLAN_ATTR_NODEV | PLAN_ATTR_NOEXEC;
    step->hint = "POSIX message queues do not work";
    step->soft = true;
    view_attach(view, queues, "/dev/mqueue", true, "mount /dev/mqueue")->soft = true;
    plan_add_rule(plan, PLAN_NO_SLOT, "/dev/mqueue",
                  landlock_rights(view->abi, LANDLOCK_GRANT_WRITE, true));
}

void view_add_dev(struct view *view)
{
    struct plan *plan = view->plan;
    int slot = view->root;
    const char *prefix = "dev/";
    if (!view->frame) {
        slot = view->dev = plan_new_slot(plan);
        prefix = "";
        struct plan_step *step = plan_add(plan, PLAN_TMPFS, "make the jail's /dev");
        step->slot = slot;
        step->path = "mode=0755\0size=64k\0";
        step->flags = PLAN_ATTR_NOSUID | PLAN_ATTR_NOEXEC;
        make_place(view, "/dev");
        (void)view_attach(view, slot, "/dev", false, "attach the jail's /dev");
    } else {
        view_mkdirs(view, slot, "dev", 0755);
    }
    view_add_place(view, (struct view_place){.dest = "/dev", .slot = slot, .prefix = prefix});
    for (size_t i = 0; i < ARRAY_LENGTH(device_nodes); i++) {
        struct plan_step *step = plan_add(plan, PLAN_DEVICE, "mount a device node");
        step->slot = slot;
        step->path = device_nodes[i];
        step->length = view->frame ? strlen("/") : strlen("/dev/");
        step->mode = 0444;
    }
    for (size_t i = 0; i < ARRAY_LENGTH(device_links); i++)
        view_symlink(view, slot, arena_concat(&plan->arena, prefix, device_links[i].path),
                     device_links[i].target);
    view_mkdirs(view, slot, arena_concat(&plan->arena, prefix, "pts"), 0755);
    if (view->frame)
        view_symlink(view, slot, "dev/shm", "../run/shm");
    else
        view_mkdirs(view, slot, "shm", 0755);
    int pts = plan_new_slot(plan);
    struct plan_step *step = plan_add(plan, PLAN_DEVPTS, "make the jail's terminals (devpts)");
    step->slot = pts;
    step->path = "newinstance\0ptmxmode=0666\0mode=0620\0max=128\0";
    step->flags = PLAN_ATTR_NOSUID | PLAN_ATTR_NOEXEC;
    (void)view_attach(view, pts, "/dev/pts", true, "mount /dev/pts");
    plan_add_rule(plan, PLAN_NO_SLOT, "/dev",
                  landlock_rights(view->abi, LANDLOCK_GRANT_DEVICE, true));
    if (view->policy->seccomp == BRIG_SECCOMP_DEV) /* `code` has no message queues */
        add_message_queues(view, slot, prefix);
}

/* ---- /proc ---- */

/* Hidden in every mode: they reveal facts about the host or other users' keys. */
static const char *const proc_hidden[] = {"keys", "key-users", "kcore", "timer_list"};
/* Read-only if /proc as a whole must be writable. */
static const char *const proc_read_only[] = {"sys", "sysrq-trigger", "irq",   "bus", "acpi",
                                             "fs",  "scsi",          "driver"};

static bool has_proc(const struct view *view, const char *path)
{
    const struct facts *facts = view->policy->facts;
    return facts && facts->proc[0] ? facts_has_proc(facts, path + strlen("/proc/"))
                                   : access(path, F_OK) == 0;
}

/* False if the file is missing, or only root can read it, as the jail is never root. */
static bool is_readable_proc(const struct view *view, const char *path)
{
    struct stat info;
    if (view->policy->facts && view->policy->facts->proc[0])
        return has_proc(view, path);
    return stat(path, &info) == 0 && info.st_mode & S_IROTH;
}

void view_add_proc(struct view *view)
{
    struct plan *plan = view->plan;
    /* Build tools and debuggers write to /proc/self (comm, oom_score_adj, mem); the profile `code`
     * does not need it. */
    bool writable = view->policy->seccomp == BRIG_SECCOMP_DEV;
    if (view->frame)
        view_mkdirs(view, view->root, "proc", 0555);
    int slot = plan_new_slot(plan);
    struct plan_step *step = plan_add(plan, PLAN_PROC, "mount a fresh /proc");
    step->slot = slot;
    step->path = "\0";
    step->flags =
        PLAN_ATTR_NOSUID | PLAN_ATTR_NODEV | PLAN_ATTR_NOEXEC | (writable ? 0 : PLAN_ATTR_RDONLY);
    step->hint = "In a container whose /proc is partly masked the kernel refuses a new one; "
                 "run `brig doctor`";
    make_place(view, "/proc");
    (void)view_attach(view, slot, "/proc", view->frame, "mount a fresh /proc");
    view_landlock(view, slot, "/proc", writable ? LANDLOCK_GRANT_DEVICE : LANDLOCK_GRANT_READ,
                  true);
    view_add_place(view, (struct view_place){.dest = "/proc", .host = "/proc"});
    /* The kernel allows a nested sandbox to mount procfs only if it sees all of this one. */
    if (view->policy->allow_nested) {
        unenforced_add(&plan->unenforced,
                       "no part of /proc is hidden or read-only, for the nested sandbox's sake");
        return;
    }
    int cover = PLAN_NO_SLOT; /* the first is made read-only, the others are clones of it */
    for (size_t i = 0; i < ARRAY_LENGTH(proc_hidden); i++) {
        char *path = arena_concat(&plan->arena, "/proc/", proc_hidden[i]);
        if (!path || !is_readable_proc(view, path))
            continue;
        const char *what = "hide a part of /proc";
        int mask = cover == PLAN_NO_SLOT
                       ? view_read_only_subtree(view, view->scratch, VIEW_EMPTY_FILE, what)
                       : view_subtree(view, cover, "", what);
        cover = mask;
        (void)view_attach(view, mask, path, true, what);
    }
    for (size_t i = 0; writable && i < ARRAY_LENGTH(proc_read_only); i++) {
        char *path = arena_concat(&plan->arena, "/proc/", proc_read_only[i]);
        if (!path || !has_proc(view, path))
            continue;
        const char *what = "make a part of /proc read-only";
        int part = view_read_only_subtree(view, slot, proc_read_only[i], what);
        (void)view_attach(view, part, path, true, what);
    }
}

/* ---- files for the network door ---- */

#define NSSWITCH_MAX 8192

/* One server and no search domain: every name is queried as it is. */
static const char resolv_text[] = "# The name server of this jail's network door.\n"
                                  "nameserver 198.18.0.2\n";
static const char hosts_line[] = "hosts: files dns\n";

/* Finds "hosts:", with any text before and after it on the line. */
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

/* The host's other name services are not reachable, so the next one is tried: files and dns must be
 * among them. */
static char *fix_nsswitch(struct arena *arena, const char *text)
{
    const char *line = find_hosts_line(text);
    size_t length = line ? strcspn(line, "\n") : 0;
    if (line && has_word(line, length, "files") && has_word(line, length, "dns"))
        return NULL;
    if (!line)
        return arena_concat(arena, text, "\n", hosts_line);
    return arena_printf(arena, "%.*s%s%s", (int)(line - text), text, hosts_line,
                        line + length + (line[length] == '\n'));
}

/* Covers the host's file; if that is a symlink, covers the link and not its target. */
static void cover_for_door(struct view *view, const char *dest, const char *text)
{
    struct plan_step *step = cover(view, dest, text, "mount the files of the network door");
    if (step) {
        step->data = "/etc";
        step->length = strlen("/etc");
    }
}

static char *read_nsswitch(struct view *view)
{
    struct arena *arena = &view->plan->arena;
    if (view->layered) /* an image has its own, or the default, which is "files dns" */
        return NULL;
    const char *root = view->policy->view == BRIG_VIEW_ROOT ? view->policy->root_path : "";
    const char *path = arena_concat(arena, root, "/etc/nsswitch.conf");
    size_t length;
    return path ? read_small_file(arena, path, NSSWITCH_MAX, &length) : NULL;
}

void view_add_door(struct view *view)
{
    struct arena *arena = &view->plan->arena;
    char *nsswitch = read_nsswitch(view);
    char *fixed = nsswitch ? fix_nsswitch(arena, nsswitch) : NULL;
    if (!view->frame) {
        cover_for_door(view, "/etc/resolv.conf", resolv_text);
        cover_for_door(view, "/etc/hosts", hosts_text(view));
        cover_for_door(view, "/etc/nsswitch.conf", fixed);
        return;
    }
    view_mkdirs(view, view->root, "etc", 0755);
    add_text(view, "etc/resolv.conf", resolv_text);
    add_text(view, "etc/nsswitch.conf", fixed ? fixed : nsswitch);
    if (view->policy->view == BRIG_VIEW_SYSTEM) /* the other views have the whole /etc */
        return;
    add_text(view, "etc/hosts", hosts_text(view));
    plan_add_rule(view->plan, PLAN_NO_SLOT, "/etc",
                  landlock_rights(view->abi, LANDLOCK_GRANT_READ, true));
}
