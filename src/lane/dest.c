/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hash table with a short run of places per key (VL_DEST_RUN), so that a
 * look-up is bounded whatever a guest sends. Entries never move: packets in
 * FIFOs point to them.
 */
#include "lane/dest.h"

#include <string.h>

#include "base/util.h"

#define VL_DEST_RUN 16u
/* So many times the mean traffic stands out; so does half of all. */
#define STANDS_OUT  8u
#define ETH_LEN     14u
#define VLAN_LEN    4u
#define TAGS_MAX    2u

_Static_assert((VL_DEST_MAX & (VL_DEST_MAX - 1)) == 0, "a power of two");

static uint16_t load_be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

void vl_dest_key(const uint8_t *frame, size_t len, struct vl_dest_key *key)
{
	size_t at = ETH_LEN;
	uint16_t type;

	memset(key, 0, sizeof(*key));
	if (len < ETH_LEN)
		return;
	memcpy(key->mac, frame, sizeof(key->mac));
	type = load_be16(frame + 12);
	for (unsigned int i = 0; i < TAGS_MAX && at + VLAN_LEN <= len &&
				 (type == 0x8100 || type == 0x88a8);
	     i++) {
		type = load_be16(frame + at + 2);
		at += VLAN_LEN;
	}
	if (type == 0x0800 && at + 20 <= len) {
		key->addr_len = 4;
		memcpy(key->addr, frame + at + 16, 4);
	} else if (type == 0x86dd && at + 40 <= len) {
		key->addr_len = 16;
		memcpy(key->addr, frame + at + 24, 16);
	}
}

static uint32_t hash(const struct vl_dest_key *key)
{
	uint64_t w[3], h = 0;

	_Static_assert(sizeof(*key) == sizeof(w), "hashed as three words");
	memcpy(w, key, sizeof(w));
	for (unsigned int i = 0; i < 3; i++) {
		h = (h ^ w[i]) * 0x9e3779b97f4a7c15ULL;
		h ^= h >> 29;
	}
	return (uint32_t)(h >> 16);
}

static struct vl_dest *place(struct vl_dest_table *t, uint32_t h, uint32_t i)
{
	return &t->entry[(h + i) & (VL_DEST_MAX - 1)];
}

struct vl_dest *vl_dest_find(struct vl_dest_table *t,
			     const struct vl_dest_key *key)
{
	uint32_t h;

	if (!t->count)
		return NULL;
	h = hash(key);
	for (uint32_t i = 0; i < VL_DEST_RUN; i++) {
		struct vl_dest *d = place(t, h, i);

		if (d->lane && !memcmp(&d->key, key, sizeof(*key)))
			return d;
	}
	return NULL;
}

struct vl_dest *vl_dest_add(struct vl_dest_table *t,
			    const struct vl_dest_key *key, uint8_t lane,
			    uint8_t *evicted)
{
	uint32_t h = hash(key);
	struct vl_dest *found = NULL;

	for (uint32_t i = 0; i < VL_DEST_RUN; i++) {
		struct vl_dest *d = place(t, h, i);

		if (d->lane && (d->parked || found))
			continue;
		found = d;
		if (!d->lane)
			break;
	}
	if (!found)
		return NULL;
	*evicted = found->lane;
	t->count += !found->lane;
	*found = (struct vl_dest){ .key = *key, .lane = lane };
	return found;
}

uint32_t vl_dest_move(struct vl_dest_table *t, uint8_t from, uint8_t to)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < VL_DEST_MAX; i++) {
		if (t->entry[i].lane != from)
			continue;
		t->entry[i].lane = to;
		n++;
	}
	return n;
}

void vl_dest_forgive(struct vl_dest_table *t, uint8_t lane)
{
	for (uint32_t i = 0; i < VL_DEST_MAX; i++)
		if (t->entry[i].lane == lane)
			t->entry[i].slow_ns = 0;
}

struct vl_dest *vl_dest_busiest(struct vl_dest_table *t, uint32_t lanes,
				uint64_t since_ns, bool *stands_out)
{
	struct vl_dest *best = NULL;
	uint64_t sum = 0, n = 0;

	for (uint32_t i = 0; i < VL_DEST_MAX; i++) {
		struct vl_dest *d = &t->entry[i];

		if (!d->lane)
			continue;
		d->traffic -= d->traffic >> 3;
		if (!(lanes & 1u << d->lane))
			continue;
		sum += d->traffic;
		n++;
		if (d->slow_ns <= since_ns &&
		    (!best || d->traffic > best->traffic))
			best = d;
	}
	*stands_out = best && (best->traffic * n >= STANDS_OUT * sum ||
			       best->traffic * 2ULL >= sum);
	return best;
}

void vl_dest_remove_lane(struct vl_dest_table *t, uint8_t lane)
{
	for (uint32_t i = 0; t->count && i < VL_DEST_MAX; i++) {
		if (t->entry[i].lane != lane)
			continue;
		t->entry[i].lane = 0;
		t->count--;
	}
}
