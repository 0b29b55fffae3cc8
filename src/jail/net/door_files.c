/* SPDX-License-Identifier: MIT */
/* What a broker is given to read. */
#include "jail/net/door_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "jail/net/door_config.h"
#include "policy/policy.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

static int make_file(const char *name, const struct str *text, struct brig_error *err)
{
    int made = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (made < 0 && errno == EINVAL) /* before 6.3 */
        made = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    autoclose int fd = made;
    if (fd < 0 || write(fd, text->data, text->length) != (ssize_t)text->length ||
        lseek(fd, 0, SEEK_SET) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write the broker's configuration");
    return take_fd(&fd);
}

/* Room for all secrets at once: growing would leave copies of them behind. */
static int reserve_secrets(const struct policy_net *net, struct str *secrets,
                           struct brig_error *err)
{
    size_t room = 1 + (net->proxy_secret ? strlen(net->proxy_secret) + 1 : 0);
    for (size_t i = 0; i < net->inject_count; i++)
        room += strlen(net->inject[i].secret) + 1;
    secrets->data = calloc(1, room);
    secrets->capacity = room;
    return secrets->data ? 0 : brig_fail_nomem(err);
}

int door_make_files(const struct brig_policy *policy, uid_t uid, gid_t gid, int *ret_config,
                    int *ret_secrets, struct brig_error *err)
{
    autostr struct str text = {0};
    autostr struct str secrets = {0};
    autoclose int config = -1;
    int hidden = -1, result = reserve_secrets(&policy->net, &secrets, err);
    if (result < 0)
        return result;
    door_write_config(policy, uid, gid, &text, &secrets);
    if (text.failed || secrets.failed)
        result = brig_fail_nomem(err);
    if (result == 0)
        result = config = make_file("brig-door", &text, err);
    if (result >= 0 && secrets.length > 0)
        result = hidden = make_file("brig-door-secrets", &secrets, err);
    explicit_bzero(secrets.data, secrets.capacity);
    if (result < 0)
        return result;
    *ret_config = take_fd(&config);
    *ret_secrets = hidden;
    return 0;
}
