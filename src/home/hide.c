/* SPDX-License-Identifier: MIT */
/* What of a home directory is hidden in a jail. */
#include "home/hide.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "home/names.h"

#define HIDE_DEPTH_MAX 32 /* of a shown path below a hidden one, and of a pattern */
#define PATH_SIZE LINKS_PATH_MAX
#define WILDCARDS "*?["
/* Many patterns are for names in few directories: these are read once. */
#define LISTINGS 8

struct listing {
    char directory[PATH_SIZE];
    struct str names; /* each ended by a NUL */
};

/* What is in a directory that paths are in: many are in few, and most are not there. */
#define NEIGHBOURS 8
struct neighbours {
    char directory[256];
    bool looked; /* not for one path alone */
    bool plain;  /* no link leads there, and these are its names */
    struct names names;
};

struct hiding {
    const struct links_home *home;
    const struct hide_rules *rules;
    hide_visit visit;
    void *context;
    struct names top; /* of the home itself */
    struct neighbours around[NEIGHBOURS];
    size_t around_count;
    struct listing listings[LISTINGS];
    size_t listed;
};

bool hide_is_path(const char *path)
{
    return *path && *path != '/' && strcmp(path, "..") != 0 && strncmp(path, "../", 3) != 0 &&
           !strstr(path, "/../") && !strstr(path, "//") && strlen(path) < PATH_SIZE - 256;
}

static bool lies_below(const char *parent, const char *path)
{
    size_t length = strlen(parent);
    return strncmp(path, parent, length) == 0 && path[length] == '/';
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* ---- one path ---- */

static int tell(struct hiding *hiding, size_t rule, const char *path, enum links_found found,
                struct brig_error *err)
{
    if (found == LINKS_NOWHERE || strlen(path) >= PATH_SIZE - 256)
        return 0;
    const struct hide_place place = {
        .path = path,
        .rule = rule,
        .outside = found == LINKS_OUTSIDE,
        .linked = found != LINKS_NONE,
        .missing = found == LINKS_NONE && !names_may_have(&hiding->top, path),
    };
    return hiding->visit(hiding->context, &place, err);
}

static void look_around(struct neighbours *around, const struct links_home *home)
{
    autoclose int fd = links_open_plain(home, around->directory);
    around->looked = true;
    around->plain = fd >= 0;
    if (fd >= 0)
        names_read(&around->names, fd);
}

/* Those of a directory; NULL for one that nobody has asked for before. */
static struct neighbours *find_neighbours(struct hiding *hiding, const char *path, size_t length)
{
    size_t count = hiding->around_count < NEIGHBOURS ? hiding->around_count : NEIGHBOURS;
    for (size_t i = 0; i < count; i++) {
        struct neighbours *around = &hiding->around[i];
        if (strncmp(around->directory, path, length) == 0 && !around->directory[length])
            return around;
    }
    struct neighbours *around = &hiding->around[hiding->around_count++ % NEIGHBOURS];
    memcpy(around->directory, path, length);
    around->directory[length] = '\0';
    around->looked = around->plain = false;
    return NULL;
}

/* Whether a path is in a directory that no link leads to, and not there: then there is none. */
static bool is_missing(struct hiding *hiding, const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    if (length == 0 || length >= sizeof hiding->around->directory)
        return false;
    struct neighbours *around = find_neighbours(hiding, path, length);
    if (!around)
        return false;
    if (!around->looked)
        look_around(around, hiding->home);
    return around->plain && !names_may_have(&around->names, slash + 1);
}

/* The path, where it really is, and what it points to if it is a link itself. */
static int tell_all(struct hiding *hiding, size_t rule, const char *path, struct brig_error *err)
{
    char real[PATH_SIZE], target[PATH_SIZE];
    int status = tell(hiding, rule, path, LINKS_NONE, err);
    if (hiding->home->ignore || !names_may_have(&hiding->top, path) || is_missing(hiding, path) ||
        links_are_none(hiding->home, path))
        return status;
    enum links_found found = links_follow(hiding->home, path, false, real);
    if (status == 0 && found != LINKS_NONE)
        status = tell(hiding, rule, real, found, err);
    enum links_found end = links_follow(hiding->home, path, true, target);
    if (status == 0 && end != LINKS_NONE && (end != found || strcmp(real, target) != 0))
        status = tell(hiding, rule, target, end, err);
    return status;
}

static int hide_path(struct hiding *hiding, size_t rule, const char *path, int depth,
                     struct brig_error *err);

/* All but what is shown below it; what is made there later shows, too. */
static int hide_entries(struct hiding *hiding, size_t rule, const char *path, int depth,
                        struct brig_error *err)
{
    int fd = openat(hiding->home->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    int status = 0;
    const struct dirent *item;
    while (dir && status == 0 && (item = readdir(dir))) {
        char child[PATH_SIZE + 256];
        if (is_dots(item->d_name))
            continue;
        (void)snprintf(child, sizeof child, "%s/%s", path, item->d_name);
        status = hide_path(hiding, rule, child, depth + 1, err);
    }
    return status;
}

static int hide_path(struct hiding *hiding, size_t rule, const char *path, int depth,
                     struct brig_error *err)
{
    const struct hide_rules *rules = hiding->rules;
    if (!hide_is_path(path))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "a mask is a path relative to the home directory, but '%s' is not", path);
    bool has_shown = false;
    for (size_t i = 0; i < rules->shown_count; i++) {
        if (strcmp(rules->shown[i], path) == 0 || lies_below(rules->shown[i], path))
            return 0;
        has_shown = has_shown || lies_below(path, rules->shown[i]);
    }
    return has_shown && depth < HIDE_DEPTH_MAX ? hide_entries(hiding, rule, path, depth, err)
                                               : tell_all(hiding, rule, path, err);
}

/* ---- patterns ---- */

static void read_names(const struct hiding *hiding, struct listing *listing)
{
    const char *path = *listing->directory ? listing->directory : ".";
    int fd = openat(hiding->home->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *item;
    while (dir && (item = readdir(dir)))
        if (!is_dots(item->d_name))
            str_append_bytes(&listing->names, item->d_name, strlen(item->d_name) + 1);
}

static struct listing *list_directory(struct hiding *hiding, const char *directory)
{
    size_t count = hiding->listed < LISTINGS ? hiding->listed : LISTINGS;
    for (size_t i = 0; i < count; i++)
        if (strcmp(hiding->listings[i].directory, directory) == 0)
            return &hiding->listings[i];
    /* The first ones stay: the home directory is always among them. */
    struct listing *listing = &hiding->listings[count < LISTINGS ? count : LISTINGS - 1];
    hiding->listed++;
    str_done(&listing->names);
    *listing = (struct listing){0};
    (void)snprintf(listing->directory, sizeof listing->directory, "%s", directory);
    read_names(hiding, listing);
    return listing;
}

static int expand(struct hiding *hiding, size_t rule, const char *above, const char *pattern,
                  int depth, struct brig_error *err);

/* The names of a directory that one part of a pattern stands for. */
static int expand_names(struct hiding *hiding, size_t rule, const char *above, const char *part,
                        const char *rest, int depth, struct brig_error *err)
{
    const struct listing *listing = list_directory(hiding, above);
    autostr struct str names = {0}; /* a copy, as listings give way to others */
    str_append_bytes(&names, listing->names.data, listing->names.length);
    if (names.failed || listing->names.failed)
        return brig_fail_nomem(err);
    int status = 0;
    for (size_t at = 0; at < names.length && status == 0; at += strlen(names.data + at) + 1) {
        const char *name = names.data + at;
        char path[PATH_SIZE];
        if (fnmatch(part, name, 0) != 0)
            continue;
        int length = snprintf(path, sizeof path, "%s%s%s", above, *above ? "/" : "", name);
        if (length > 0 && (size_t)length < sizeof path)
            status = expand(hiding, rule, path, rest, depth + 1, err);
    }
    return status;
}

/* A pattern below a directory, part by part. */
static int expand(struct hiding *hiding, size_t rule, const char *above, const char *pattern,
                  int depth, struct brig_error *err)
{
    char path[PATH_SIZE], part[256];
    size_t fixed = strcspn(pattern, WILDCARDS); /* up to the part with the first wildcard */
    if (pattern[fixed])
        while (fixed > 0 && pattern[fixed - 1] != '/')
            fixed--;
    size_t taken = pattern[fixed] && fixed > 0 ? fixed - 1 : fixed;
    int length = snprintf(path, sizeof path, "%s%s%.*s", above, *above && taken > 0 ? "/" : "",
                          (int)taken, pattern);
    if (length < 0 || (size_t)length >= sizeof path || depth > HIDE_DEPTH_MAX)
        return 0;
    if (!pattern[fixed])
        return hide_path(hiding, rule, path, 0, err);
    const char *wild = pattern + fixed;
    size_t size = strcspn(wild, "/");
    if (size >= sizeof part)
        return 0;
    memcpy(part, wild, size);
    part[size] = 0;
    return expand_names(hiding, rule, path, part, wild + size + (wild[size] == '/'), depth, err);
}

/* By its first name, if that is not a pattern. */
static bool is_passed_over(const struct hide_rules *rules, const char *rule)
{
    size_t length = strcspn(rule, "/");
    return rules->only && length > 0 && strcspn(rule, WILDCARDS) >= length &&
           !names_may_have(rules->only, rule);
}

int hide_each(const struct links_home *home, const struct hide_rules *rules, hide_visit visit,
              void *context, struct brig_error *err)
{
    struct hiding hiding = {.home = home, .rules = rules, .visit = visit, .context = context};
    int status = 0;
    if (rules->hidden_count > 0)
        names_read(&hiding.top, home->fd);
    for (size_t i = 0; i < rules->hidden_count && status == 0; i++)
        if (!is_passed_over(rules, rules->hidden[i]))
            status = strpbrk(rules->hidden[i], WILDCARDS)
                         ? expand(&hiding, i, "", rules->hidden[i], 0, err)
                         : hide_path(&hiding, i, rules->hidden[i], 0, err);
    for (size_t i = 0; i < LISTINGS; i++)
        str_done(&hiding.listings[i].names);
    return status;
}
