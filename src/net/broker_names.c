/* SPDX-License-Identifier: MIT */
/* The names that were asked for, and the address each has in the jail. Pure. */
#include "net/broker_names.h"

#include <stdlib.h>
#include <string.h>

#include "net/broker_wire.h"

#define FIRST_CAPACITY 64
#define IPV6_PREFIX_BYTES 6

static const uint8_t ipv6_prefix[16] = {0xfd, 0x62, 0x72, 0x69, 0x67, 0x00};

void names_done(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->texts[i]);
    free(names->texts);
    free(names->slots);
    *names = (struct names){0};
}

/* FNV-1a. A jail that makes names collide makes its own lookups slow, and those of nobody else; how
 * many it may make is limited. */
static uint32_t hash(const char *name)
{
    uint32_t value = 2166136261u;
    for (; *name; name++)
        value = (value ^ (uint8_t)*name) * 16777619u;
    return value;
}

/* The slot of a name: its own, or the empty one where it would be put. */
static uint32_t *find_slot(const struct names *names, const char *name)
{
    size_t mask = names->slot_count - 1;
    for (size_t at = hash(name) & mask;; at = (at + 1) & mask) {
        uint32_t *slot = &names->slots[at];
        if (*slot == 0 || strcmp(names->texts[*slot - 1], name) == 0)
            return slot;
    }
}

static bool grow(struct names *names)
{
    size_t capacity = names->capacity ? names->capacity * 2 : FIRST_CAPACITY;
    char **texts = reallocarray(names->texts, capacity, sizeof(*texts));
    if (!texts)
        return false;
    names->texts = texts;
    uint32_t *slots = calloc(capacity * 2, sizeof(*slots));
    if (!slots)
        return false;
    free(names->slots);
    names->slots = slots;
    names->slot_count = capacity * 2;
    names->capacity = capacity;
    for (size_t i = 0; i < names->count; i++)
        *find_slot(names, names->texts[i]) = (uint32_t)i + 1;
    return true;
}

int names_need(struct names *names, const char *name)
{
    uint32_t *slot = names->slot_count ? find_slot(names, name) : NULL;
    if (slot && *slot)
        return (int)*slot - 1;
    if (names->count >= names->limit)
        return -1;
    if (names->count == names->capacity && !grow(names))
        return -1;
    char *copy = strdup(name);
    if (!copy)
        return -1;
    *find_slot(names, name) = (uint32_t)names->count + 1;
    names->texts[names->count] = copy;
    return (int)names->count++;
}

static void put_u32(uint8_t bytes[4], uint32_t value)
{
    for (size_t i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(value >> (24 - 8 * i));
}

static uint32_t get_u32(const uint8_t bytes[4])
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

struct net_address names_ipv4(size_t index)
{
    uint8_t bytes[4];
    put_u32(bytes, DOOR_IPV4_FIRST + (uint32_t)index);
    return net_address_v4(bytes);
}

struct net_address names_ipv6(size_t index)
{
    uint8_t bytes[16];
    memcpy(bytes, ipv6_prefix, sizeof bytes);
    put_u32(bytes + 12, DOOR_IPV6_FIRST + (uint32_t)index);
    return net_address_v6(bytes);
}

bool names_is_ours(const struct net_address *address)
{
    if (address->family == NET_V6)
        return memcmp(address->bytes, ipv6_prefix, IPV6_PREFIX_BYTES) == 0;
    return get_u32(address->bytes) >> (32 - DOOR_IPV4_PREFIX_LENGTH) ==
           DOOR_IPV4_PREFIX >> (32 - DOOR_IPV4_PREFIX_LENGTH);
}

const char *names_find(const struct names *names, const struct net_address *address)
{
    if (!names_is_ours(address))
        return NULL;
    bool v4 = address->family == NET_V4;
    uint32_t number = get_u32(v4 ? address->bytes : address->bytes + 12);
    /* Below the first, this is a large number. */
    size_t index = (size_t)(number - (v4 ? DOOR_IPV4_FIRST : DOOR_IPV6_FIRST));
    if (index >= names->count)
        return NULL;
    struct net_address own = v4 ? names_ipv4(index) : names_ipv6(index);
    return net_address_equal(&own, address) ? names->texts[index] : NULL;
}
