/* SPDX-License-Identifier: MIT */
/* What the verbs that deal with jails share. */
#include "cli/jails.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/config.h"
#include "cli/config_files.h"
#include "cli/message.h"
#include "cli/settings.h"
#include "home/jails.h"
#include "policy/conf.h"
#include "policy/policy.h"

/* Where a run without options would keep its jails: files may say so. */
static int find_storage(const struct identity *identity, char *path, size_t size,
                        struct brig_error *err)
{
    const struct settings_scan nothing = {.nocwd = true};
    char cwd[PATH_LENGTH_MAX + 1];
    struct config_files files = {0};
    struct config config = {0};
    if (!getcwd(cwd, sizeof cwd))
        (void)snprintf(cwd, sizeof cwd, "/");
    int status = config_files_find(&files, identity, cwd, err);
    if (status == 0)
        status = config_read(&files.world, &nothing, 0, NULL, &config, err);
    if (status == 0)
        (void)snprintf(path, size, "%s", config.storage);
    config_done(&config);
    config_files_done(&files);
    return status;
}

int jails_place_find(struct jails_place *ret_place, struct brig_error *err)
{
    identity_find(&ret_place->identity);
    const struct identity *identity = &ret_place->identity;
    ret_place->uid = identity->host_uid != (uid_t)-1 ? identity->host_uid : geteuid();
    ret_place->stranger = geteuid() == 0 ? policy_isolated_uid(ret_place->uid) : (uid_t)-1;
    return find_storage(identity, ret_place->storage, sizeof ret_place->storage, err);
}

static int offer(void *context, const struct jail_info *jail, struct brig_error *err)
{
    (void)err;
    nearest_offer(context, jail->name, strlen(jail->name));
    return 0;
}

int jails_fail_unknown(const struct jails_place *place, const char *verb, const char *name,
                       struct brig_error *err)
{
    struct nearest nearest;
    if (name[0] == '-')
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "brig %s has no option '%s', and there is no jail of that name. See brig "
                         "%s --help",
                         verb, str_shown(name).text, verb);
    nearest_begin(&nearest, name);
    identity_enter(&place->identity);
    (void)jails_each(place->storage, place->uid, false, offer, &nearest, NULL);
    identity_leave(&place->identity);
    (void)brig_fail(err, BRIG_E_INVALID, 0, "there is no jail '%s'", str_shown(name).text);
    return nearest.best[0] ? nearest_advise(&nearest, "", BRIG_E_INVALID, err)
                           : brig_advise(err, BRIG_E_INVALID, "See brig list");
}

int jails_become_user(struct jails_place *place, struct brig_error *err)
{
    uid_t uid = place->uid;
    gid_t gid = place->identity.host_gid;
    place->stranger = (uid_t)-1;
    if (uid == geteuid())
        return 0;
    if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot act as uid %u", uid);
    return 0;
}

/* ---- -j ---- */

bool jails_take_option(int argc, char **argv, int *at, const char **ret_jail)
{
    const char *word = argv[*at];
    if (strcmp(word, "-j") == 0 || strcmp(word, "--jail") == 0) {
        if (*at + 1 >= argc)
            return false;
        *ret_jail = argv[++*at];
    } else if (str_starts_with(word, "--jail=")) {
        *ret_jail = word + strlen("--jail=");
    } else if (str_starts_with(word, "-j")) {
        *ret_jail = word + strlen("-j");
    } else {
        return false;
    }
    ++*at;
    return true;
}

static int check_jail(const struct jails_place *place, const char *verb, const char *name,
                      struct brig_error *err)
{
    struct jail_info jail;
    int status = jails_check_name(name, err);
    if (status == 0)
        status = jails_find(place->storage, name, place->uid, &jail, err);
    return status != 0 ? status : jails_fail_unknown(place, verb, name, err);
}

int jails_each_part(const struct jails_place *place, const char *verb, const char *jail,
                    const char *part, jails_part_visit visit, void *context, struct brig_error *err)
{
    struct dirent **names = NULL;
    int status = jail ? check_jail(place, verb, jail, err) : 0;
    autoclose int storage =
        status < 0 ? -1 : open(place->storage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (status < 0 || storage < 0 || jail)
        return status < 0 || storage < 0 ? status : visit(context, storage, jail, err);
    int count = scandirat(storage, ".", &names, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char *end = strrchr(names[i]->d_name, '.');
        if (status >= 0 && end && end > names[i]->d_name && strcmp(end, part) == 0) {
            *end = '\0';
            status = visit(context, storage, names[i]->d_name, err);
        }
        free(names[i]);
    }
    free(names);
    return status;
}

/* ---- -u ---- */

struct unmounting {
    const char *storage;
    uid_t uid;
    int status;
};

static int unmount_one(struct unmounting *unmounting, const char *name, struct brig_error *err)
{
    struct home_state state;
    int status = home_stop(unmounting->storage, name, unmounting->uid, &state, err);
    if (status != BRIG_E_STATE)
        return status;
    for (size_t i = 0; i < state.pid_count; i++)
        message_error("the jail '%s' is in use by process %d; end it, or: brig stop %s", name,
                      state.pids[i], name);
    unmounting->status = APP_FAILED;
    return 0;
}

static int visit(void *context, const struct jail_info *jail, struct brig_error *err)
{
    return jail->state.held ? unmount_one(context, jail->name, err) : 0;
}

int jails_unmount(const char *storage, const char *name, const struct identity *identity,
                  struct brig_error *err)
{
    uid_t user = identity->host_uid != (uid_t)-1 ? identity->host_uid : geteuid();
    struct unmounting unmounting = {.storage = storage};
    /* Root's jails may have an id of their own. */
    bool root = geteuid() == 0;
    const uid_t ids[] = {user, root ? policy_isolated_uid(user) : user};
    int status = 0;
    for (size_t i = 0; i < (root ? ARRAY_LENGTH(ids) : 1) && status >= 0; i++) {
        unmounting.uid = ids[i];
        status = name ? unmount_one(&unmounting, name, err)
                      : jails_each(storage, ids[i], false, visit, &unmounting, err);
    }
    return status < 0 ? status : unmounting.status;
}

/* ---- the mode ---- */

struct mode_found {
    char *buffer;
    size_t size;
};

static int take_directive(void *context, const struct conf_directive *directive,
                          struct brig_error *err)
{
    (void)err;
    const struct mode_found *found = context;
    if (strcmp(directive->name, "mode") == 0 && directive->value)
        (void)snprintf(found->buffer, found->size, "%s", directive->value);
    return 0;
}

static bool expands_nothing(void *context, const char *name)
{
    (void)context;
    (void)name;
    return false;
}

static const char *no_variable(void *context, const char *name)
{
    (void)context;
    (void)name;
    return NULL;
}

static int no_include(void *context, const char *name, bool optional,
                      struct conf_source *ret_source, struct brig_error *err)
{
    (void)context;
    (void)name;
    (void)optional;
    (void)ret_source;
    (void)err;
    return 0;
}

void jails_mode(const char *storage, const char *name, char *buffer, size_t size)
{
    struct mode_found found = {buffer, size};
    const struct conf_hooks hooks = {&found, take_directive, expands_nothing, no_variable,
                                     no_include};
    char file[PATH_COMPONENT_MAX + 1];
    (void)snprintf(buffer, size, "%s", strcmp(name, SETTINGS_JAIL) == 0 ? "casual" : "-");
    (void)snprintf(file, sizeof file, "%s.jail", name);
    autoclose int dir = open(storage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct conf_source source = {0};
    if (dir >= 0 && conf_load(dir, storage, file, true, &source, NULL) == 1)
        (void)conf_read(&source, &hooks, NULL);
    conf_source_done(&source);
}
