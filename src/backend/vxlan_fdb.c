/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two tables of fixed size, read by every worker for every frame.
 *
 * Remotes are appended by the control thread and never removed, so their numbers
 * can be kept by anyone. An address is written before its slot of the hash table
 * names it. What changes is a bit for each: flooded to, known.
 *
 * MAC addresses: buckets of 8 places, a cache line of 64-bit words (address,
 * static or not, remote) and apart from it the time at which each was seen. An
 * address is in its bucket or nowhere, so a look-up is one cache line. A full
 * bucket loses the learned address that was not seen for longest; so whoever
 * sends from ever new addresses only pushes out learned ones, and which share a
 * bucket cannot be foretold (the hash has a random factor).
 *
 * Workers change a place by compare-and-swap and give up when they lose the race:
 * the next frame teaches the same. Two of them may put one address into two
 * places, or one learn what the control thread just made static. So each looks
 * through the bucket again after it has put something in, with a full barrier
 * between: at least one sees both. Static ones win, then the first place.
 *
 * An address that is behind a remote which is not known any more is not valid.
 */
#include "backend/vxlan_fdb.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/barrier.h"
#include "base/clock.h"
#include "base/util.h"

#define BUCKET_BITS 11u
#define BUCKETS     (1u << BUCKET_BITS)
#define PLACES      8u

/* Time is counted in units of 67 ms: 32 bits are 9 years. */
#define TICK_SHIFT 26u

/* A place: MAC address << 16 | static << 15 | remote. 0: empty. */
#define STATIC_BIT  (1ULL << 15)
#define REMOTE_BITS 0x7fffULL

#define IP_SLOTS (2u * VL_VXLAN_REMOTES)

struct vl_vxlan_fdb {
	uint64_t place[BUCKETS][PLACES] __attribute__((aligned(64)));
	uint32_t seen[BUCKETS][PLACES];

	uint64_t factor;
	uint32_t ageing; /* ticks, 0: never */
	bool deaf;       /* learns nothing */
	uint32_t n_remotes;
	uint64_t flood[VL_VXLAN_REMOTES / 64];
	uint64_t known[VL_VXLAN_REMOTES / 64];
	uint16_t ip_slot[IP_SLOTS]; /* number of a remote + 1, 0: empty */
	struct vl_ip ip[VL_VXLAN_REMOTES];
	/* Static addresses behind each; control thread only. */
	uint32_t statics[VL_VXLAN_REMOTES];
};

_Static_assert(VL_VXLAN_FLOOD >= VL_VXLAN_REMOTES &&
		       VL_VXLAN_FLOOD <= REMOTE_BITS,
	       "FLOOD is no remote");

int vl_vxlan_fdb_new(uint64_t ageing_ns, struct vl_vxlan_fdb **out)
{
	struct vl_vxlan_fdb *fdb = aligned_alloc(64, sizeof(*fdb));
	uint64_t ticks = (ageing_ns + (1ULL << TICK_SHIFT) - 1) >> TICK_SHIFT;

	if (!fdb)
		return -ENOMEM;
	memset(fdb, 0, sizeof(*fdb));
	if (getrandom(&fdb->factor, sizeof(fdb->factor), GRND_NONBLOCK) < 0) {
		int err = -errno;

		free(fdb);
		return err;
	}
	fdb->factor |= 1;
	/* Half of the range: ages are told from times in the future. */
	fdb->ageing = (uint32_t)vl_min_u64(ticks, INT32_MAX);
	*out = fdb;
	return 0;
}

void vl_vxlan_fdb_free(struct vl_vxlan_fdb *fdb)
{
	free(fdb);
}

static bool get_bit(const uint64_t *bits, unsigned int index)
{
	return vl_load_acquire(&bits[index / 64]) >> index % 64 & 1;
}

static void put_bit(uint64_t *bits, unsigned int index, bool value)
{
	uint64_t bit = 1ULL << index % 64;
	uint64_t old = bits[index / 64];

	vl_store_release(&bits[index / 64], value ? old | bit : old & ~bit);
}

static unsigned int ip_start(const struct vl_vxlan_fdb *fdb,
			     const struct vl_ip *ip)
{
	uint64_t half[2];

	memcpy(half, ip->addr, sizeof(half));
	return (unsigned int)((half[0] * fdb->factor ^
			       (half[1] + ip->len) * (fdb->factor << 1 | 1)) >>
			      40) %
	       IP_SLOTS;
}

/* The slot that names @ip, or the empty one where it would belong. */
static unsigned int ip_slot(const struct vl_vxlan_fdb *fdb,
			    const struct vl_ip *ip)
{
	unsigned int at = ip_start(fdb, ip);

	/* At least half of the slots are empty. */
	for (;; at = (at + 1) % IP_SLOTS) {
		uint16_t named = vl_load_acquire(&fdb->ip_slot[at]);

		if (!named || vl_ip_equal(&fdb->ip[named - 1], ip))
			return at;
	}
}

int vl_vxlan_fdb_find(const struct vl_vxlan_fdb *fdb, const struct vl_ip *ip)
{
	uint16_t named = vl_load_acquire(&fdb->ip_slot[ip_slot(fdb, ip)]);

	return named ? named - 1 : -ENOENT;
}

int vl_vxlan_fdb_remote(struct vl_vxlan_fdb *fdb, const struct vl_ip *ip)
{
	unsigned int slot = ip_slot(fdb, ip);
	uint32_t n = fdb->n_remotes;

	if (ip->len != 4 && ip->len != 16)
		return -EINVAL;
	if (fdb->ip_slot[slot])
		return fdb->ip_slot[slot] - 1;
	if (n == VL_VXLAN_REMOTES)
		return -ENOSPC;
	fdb->ip[n] = *ip;
	vl_store_release(&fdb->ip_slot[slot], (uint16_t)(n + 1));
	vl_store_release(&fdb->n_remotes, n + 1);
	return (int)n;
}

const struct vl_ip *vl_vxlan_fdb_ip(const struct vl_vxlan_fdb *fdb,
				    unsigned int remote)
{
	return &fdb->ip[remote];
}

unsigned int vl_vxlan_fdb_remotes(const struct vl_vxlan_fdb *fdb)
{
	return vl_load_acquire(&fdb->n_remotes);
}

unsigned int vl_vxlan_fdb_next_flood(const struct vl_vxlan_fdb *fdb,
				     unsigned int from)
{
	for (unsigned int w = from / 64; w < VL_VXLAN_REMOTES / 64; w++) {
		uint64_t bits = vl_load_acquire(&fdb->flood[w]);

		if (w == from / 64)
			bits &= ~0ULL << from % 64;
		if (bits)
			return w * 64 + (unsigned int)__builtin_ctzll(bits);
	}
	return VL_VXLAN_REMOTES;
}

bool vl_vxlan_fdb_known(const struct vl_vxlan_fdb *fdb, unsigned int remote)
{
	return get_bit(fdb->known, remote);
}

static unsigned int remote_of(uint64_t entry)
{
	return (unsigned int)(entry & REMOTE_BITS);
}

/* Learned addresses must not come back with their remote. */
static void forget_learned(struct vl_vxlan_fdb *fdb, unsigned int remote)
{
	for (unsigned int i = 0; i < BUCKETS * PLACES; i++) {
		uint64_t *place = &fdb->place[i / PLACES][i % PLACES];
		uint64_t entry = vl_load_acquire(place);

		if (entry && !(entry & STATIC_BIT) &&
		    remote_of(entry) == remote)
			(void)vl_cas(place, entry, 0);
	}
}

/* What makes a remote known changed. */
static void update_known(struct vl_vxlan_fdb *fdb, unsigned int remote)
{
	bool known = get_bit(fdb->flood, remote) || fdb->statics[remote];

	if (known == get_bit(fdb->known, remote))
		return;
	put_bit(fdb->known, remote, known);
	if (!known)
		forget_learned(fdb, remote);
}

void vl_vxlan_fdb_set_flood(struct vl_vxlan_fdb *fdb, unsigned int remote,
			    bool flood)
{
	put_bit(fdb->flood, remote, flood);
	update_known(fdb, remote);
}

/* The address as the upper bits of a place; 0 for what is no sender's. */
static uint64_t mac_key(const uint8_t mac[6])
{
	uint64_t key = 0;

	memcpy(&key, mac, 6);
	return mac[0] & 1 ? 0 : key << 16;
}

static unsigned int bucket_of(const struct vl_vxlan_fdb *fdb, uint64_t key)
{
	uint64_t h = (key >> 16) * fdb->factor;

	/* Alone, a factor may be one for which addresses in a row meet. */
	h = (h ^ h >> 32) * 0x9e3779b97f4a7c15ULL;
	return (unsigned int)(h >> (64 - BUCKET_BITS));
}

static bool same_mac(uint64_t a, uint64_t b)
{
	return (a ^ b) >> 16 == 0;
}

static uint32_t tick_of(uint64_t now_ns)
{
	return (uint32_t)(now_ns >> TICK_SHIFT);
}

/* Ticks since the entry in this place was seen. */
static uint32_t age_of(const struct vl_vxlan_fdb *fdb, unsigned int bucket,
		       unsigned int i, uint32_t tick)
{
	int32_t age = (int32_t)(tick - vl_read_once(&fdb->seen[bucket][i]));

	/* Another worker may know a later time. */
	return age < 0 ? 0 : (uint32_t)age;
}

static bool is_valid(const struct vl_vxlan_fdb *fdb, uint64_t entry,
		     uint32_t age)
{
	if (entry & STATIC_BIT)
		return true;
	return (!fdb->ageing || age < fdb->ageing) &&
	       vl_vxlan_fdb_known(fdb, remote_of(entry));
}

/* The place of the address, or PLACES. A static one counts, even if a worker is
 * about to notice that it learned the same. */
static unsigned int find_place(const struct vl_vxlan_fdb *fdb,
			       unsigned int bucket, uint64_t key,
			       uint64_t *entry)
{
	unsigned int found = PLACES;

	for (unsigned int i = 0; i < PLACES; i++) {
		uint64_t e = vl_load_acquire(&fdb->place[bucket][i]);

		if (vl_likely(!same_mac(e, key)))
			continue;
		if (found == PLACES || e & STATIC_BIT) {
			found = i;
			*entry = e;
		}
	}
	return found;
}

/* The place for a new address: empty, no longer valid, or longest not seen;
 * PLACES when all are static. */
static unsigned int find_victim(const struct vl_vxlan_fdb *fdb,
				unsigned int bucket, uint32_t tick,
				uint64_t *victim)
{
	unsigned int best = PLACES;
	uint64_t most = 0;

	for (unsigned int i = 0; i < PLACES; i++) {
		uint64_t entry = vl_load_acquire(&fdb->place[bucket][i]);
		uint32_t age = age_of(fdb, bucket, i, tick);
		uint64_t worth = 1ULL + age;

		if (entry & STATIC_BIT)
			continue;
		if (!entry)
			worth = UINT64_MAX;
		else if (!is_valid(fdb, entry, age))
			worth = UINT64_MAX - 1;
		if (worth > most) {
			most = worth;
			best = i;
			*victim = entry;
		}
	}
	return best;
}

/* @entry was put into place @mine. Takes it out again where another one of the
 * same address is to stay: a static one, or one in a place before. */
static bool settle(struct vl_vxlan_fdb *fdb, unsigned int bucket,
		   unsigned int mine, uint64_t entry)
{
	for (unsigned int i = 0; i < PLACES; i++) {
		uint64_t other = vl_load_acquire(&fdb->place[bucket][i]);

		if (i == mine || !same_mac(other, entry))
			continue;
		if (i < mine || other & STATIC_BIT) {
			(void)vl_cas(&fdb->place[bucket][mine], entry, 0);
			return false;
		}
	}
	return true;
}

static enum vl_vxlan_learnt insert(struct vl_vxlan_fdb *fdb,
				   unsigned int bucket, uint64_t entry,
				   uint32_t tick)
{
	uint64_t victim = 0;
	unsigned int i = find_victim(fdb, bucket, tick, &victim);

	if (i == PLACES)
		return VL_VXLAN_KNEW;
	/* Before the entry, or it could be taken for an old one. */
	vl_write_once(&fdb->seen[bucket][i], tick);
	if (!vl_cas(&fdb->place[bucket][i], victim, entry))
		return VL_VXLAN_KNEW;
	/* Pairs with the one in vl_vxlan_fdb_static_add(), and with itself. */
	vl_full_fence();
	return settle(fdb, bucket, i, entry) ? VL_VXLAN_LEARNED : VL_VXLAN_KNEW;
}

void vl_vxlan_fdb_learn_nothing(struct vl_vxlan_fdb *fdb)
{
	fdb->deaf = true;
}

enum vl_vxlan_learnt vl_vxlan_fdb_learn(struct vl_vxlan_fdb *fdb,
					const uint8_t mac[6],
					unsigned int remote, uint64_t now_ns)
{
	uint64_t key = mac_key(mac), entry = 0;
	unsigned int bucket = bucket_of(fdb, key), i;
	uint32_t tick = tick_of(now_ns);
	bool was_valid;

	if (!key || fdb->deaf)
		return VL_VXLAN_KNEW;
	i = find_place(fdb, bucket, key, &entry);
	if (i == PLACES)
		return insert(fdb, bucket, key | remote, tick);
	if (entry & STATIC_BIT)
		return VL_VXLAN_KNEW;
	was_valid = is_valid(fdb, entry, age_of(fdb, bucket, i, tick));
	/* Not for every frame: other workers read this memory. */
	if (vl_read_once(&fdb->seen[bucket][i]) != tick)
		vl_write_once(&fdb->seen[bucket][i], tick);
	if (remote_of(entry) != remote &&
	    !vl_cas(&fdb->place[bucket][i], entry, key | remote))
		return VL_VXLAN_KNEW;
	if (!was_valid)
		return VL_VXLAN_LEARNED;
	return remote_of(entry) == remote ? VL_VXLAN_KNEW : VL_VXLAN_MOVED;
}

unsigned int vl_vxlan_fdb_lookup(const struct vl_vxlan_fdb *fdb,
				 const uint8_t mac[6], uint64_t now_ns)
{
	uint64_t key = mac_key(mac), entry = 0;
	unsigned int bucket = bucket_of(fdb, key), i;

	if (!key)
		return VL_VXLAN_FLOOD;
	i = find_place(fdb, bucket, key, &entry);
	if (i == PLACES ||
	    !is_valid(fdb, entry, age_of(fdb, bucket, i, tick_of(now_ns))))
		return VL_VXLAN_FLOOD;
	return remote_of(entry);
}

/* Takes learned entries of the address of @entry, in place @mine, out. */
static void drop_others(struct vl_vxlan_fdb *fdb, unsigned int bucket,
			unsigned int mine, uint64_t entry)
{
	for (unsigned int i = 0; i < PLACES; i++) {
		uint64_t other = vl_load_acquire(&fdb->place[bucket][i]);

		if (i != mine && same_mac(other, entry))
			(void)vl_cas(&fdb->place[bucket][i], other, 0);
	}
}

int vl_vxlan_fdb_static_add(struct vl_vxlan_fdb *fdb, const uint8_t mac[6],
			    unsigned int remote)
{
	uint64_t key = mac_key(mac), old = 0;
	uint64_t entry = key | STATIC_BIT | remote;
	unsigned int bucket = bucket_of(fdb, key), i;

	if (!key)
		return -EINVAL;
	i = find_place(fdb, bucket, key, &old);
	if (i == PLACES)
		i = find_victim(fdb, bucket, tick_of(vl_now_ns()), &old);
	if (i == PLACES)
		return -ENOSPC;
	fdb->statics[remote]++;
	update_known(fdb, remote);
	/* Whatever a worker has put there meanwhile: its own compare-and-swap
	 * cannot succeed afterwards. */
	vl_store_release(&fdb->place[bucket][i], entry);
	/* Pairs with the one in insert(). */
	vl_full_fence();
	drop_others(fdb, bucket, i, entry);
	if (old & STATIC_BIT) {
		fdb->statics[remote_of(old)]--;
		update_known(fdb, remote_of(old));
	}
	return 0;
}

int vl_vxlan_fdb_static_del(struct vl_vxlan_fdb *fdb, const uint8_t mac[6])
{
	uint64_t key = mac_key(mac), entry = 0;
	unsigned int bucket = bucket_of(fdb, key);
	unsigned int i = key ? find_place(fdb, bucket, key, &entry) : PLACES;

	if (i == PLACES || !(entry & STATIC_BIT))
		return -ENOENT;
	vl_store_release(&fdb->place[bucket][i], 0);
	fdb->statics[remote_of(entry)]--;
	update_known(fdb, remote_of(entry));
	return 0;
}

unsigned int vl_vxlan_fdb_each(const struct vl_vxlan_fdb *fdb, uint64_t now_ns,
			       vl_vxlan_entry_fn *fn, void *ctx)
{
	unsigned int n = 0;

	for (unsigned int at = 0; at < BUCKETS * PLACES; at++) {
		unsigned int bucket = at / PLACES, i = at % PLACES;
		uint64_t entry = vl_load_acquire(&fdb->place[bucket][i]);
		uint32_t age = age_of(fdb, bucket, i, tick_of(now_ns));
		struct vl_vxlan_entry e = {
			.is_static = entry & STATIC_BIT,
			.remote = remote_of(entry),
		};
		uint64_t mac = entry >> 16;

		if (!entry || !is_valid(fdb, entry, age))
			continue;
		n++;
		if (!fn)
			continue;
		memcpy(e.mac, &mac, sizeof(e.mac));
		e.age_ns = e.is_static ? 0 : (uint64_t)age << TICK_SHIFT;
		fn(ctx, &e);
	}
	return n;
}
