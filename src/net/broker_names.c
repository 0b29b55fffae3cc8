/* SPDX-License-Identifier: MIT */
/* The table of the names that the jail has asked for, and of their addresses in the jail. */
#include "net/broker_names.h"

#include <arpa/inet.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "net/broker_wire.h"

static const uint8_t ipv6_prefix[DOOR_IPV6_PREFIX_LENGTH / 8] = {0xfd, 0x62, 0x72, 0x69, 0x67, 0};

static int compare_texts(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static void keep(void *text)
{
    (void)text;
}

void names_done(struct names *names)
{
    tdestroy(names->tree, keep);
    for (size_t i = 0; i < names->count; i++)
        free(names->texts[i]);
    free(names->texts);
    *names = (struct names){0};
}

int names_index(const struct names *names, const char *name)
{
    char **const *found = tfind(&name, &names->tree, compare_texts);
    return found ? (int)(*found - names->texts) : -1;
}

/* Reserves memory for the maximum number of names; the kernel allocates only the pages that are
 * used. The jail chooses the names: libc's tree is balanced, while its hash table could be made to
 * degrade to a linear search. */
int names_need(struct names *names, const char *name)
{
    if (!names->texts && !(names->texts = calloc(names->limit, sizeof(*names->texts))))
        return -1;
    int index = names_index(names, name);
    if (index >= 0)
        return index;
    char *copy = names->count < names->limit ? strdup(name) : NULL;
    if (!copy)
        return -1;
    names->texts[names->count] = copy;
    if (!tsearch(&names->texts[names->count], &names->tree, compare_texts)) {
        free(copy);
        return -1;
    }
    return (int)names->count++;
}

/* The last four bytes of an address of the door, as a number. */
static uint32_t number_of(const struct net_address *address)
{
    uint32_t wire;
    memcpy(&wire, address->bytes + (address->family == NET_V4 ? 0 : 12), sizeof wire);
    return ntohl(wire);
}

static struct net_address address_of(enum net_family family, uint32_t number)
{
    struct net_address address = {.family = family};
    uint32_t wire = htonl(number);
    if (family == NET_V6)
        memcpy(address.bytes, ipv6_prefix, sizeof ipv6_prefix);
    memcpy(address.bytes + (family == NET_V4 ? 0 : 12), &wire, sizeof wire);
    return address;
}

struct net_address names_ipv4(size_t index)
{
    return address_of(NET_V4, DOOR_IPV4_FIRST + (uint32_t)index);
}

struct net_address names_ipv6(size_t index)
{
    return address_of(NET_V6, DOOR_IPV6_FIRST + (uint32_t)index);
}

bool names_is_ours(const struct net_address *address)
{
    if (address->family == NET_V6)
        return memcmp(address->bytes, ipv6_prefix, sizeof ipv6_prefix) == 0;
    return number_of(address) >> (32 - DOOR_IPV4_PREFIX_LENGTH) ==
           DOOR_IPV4_PREFIX >> (32 - DOOR_IPV4_PREFIX_LENGTH);
}

const char *names_find(const struct names *names, const struct net_address *address)
{
    bool v4 = address->family == NET_V4;
    uint32_t first = v4 ? DOOR_IPV4_FIRST : DOOR_IPV6_FIRST;
    /* For an address below the first, the difference wraps to a large number. */
    size_t index = (size_t)(number_of(address) - first);
    if (index >= names->count)
        return NULL;
    struct net_address own = address_of(address->family, first + (uint32_t)index);
    return net_address_equal(&own, address) ? names->texts[index] : NULL;
}
