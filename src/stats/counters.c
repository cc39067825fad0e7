/* SPDX-License-Identifier: BSD-3-Clause */
#include "stats/counters.h"

#include "base/barrier.h"
#include "base/util.h"

#define TX(f, u, h)                                                            \
	{                                                                      \
		.name = #f, .unit = (u), .help = (h),                          \
		.offset = offsetof(struct vl_tx_counters, f)                   \
	}
#define RX(f, u, h)                                                            \
	{                                                                      \
		.name = #f, .unit = (u), .help = (h),                          \
		.offset = offsetof(struct vl_rx_counters, f)                   \
	}
#define LANE(f, u, h)                                                          \
	{                                                                      \
		.name = #f, .unit = (u), .help = (h),                          \
		.offset = offsetof(struct vl_lane_counters, f)                 \
	}
#define TUNNEL(f, u, h)                                                        \
	{                                                                      \
		.name = #f, .unit = (u), .help = (h),                          \
		.offset = offsetof(struct vl_tunnel_counters, f)               \
	}

/* One row per counter. */
const struct vl_counter vl_tx_counter_table[] = {
	TX(packets, "packets", "packets the host network took"),
	TX(bytes, "bytes", "bytes of these, without the virtio header"),
	TX(gso_packets, "packets",
	   "of these, packets to be segmented later (TSO, USO)"),
	TX(csum_packets, "packets",
	   "of these, packets whose checksum the driver left partial"),
	TX(copied, "packets",
	   "packets joined in one small buffer first, since that is cheaper "
	   "than a list"),
	TX(gso_cut, "packets",
	   "packets cut into parts for a slow lane; each part counts as a "
	   "packet above and below"),
	TX(batches, "events", "submissions of a batch of packets"),
	TX(kicks, "events", "available buffer notifications from the driver"),
	TX(blocked, "events",
	   "times the host network was full and transmission waited"),
	TX(out_of_order, "packets",
	   "buffers handed back while an older one was still out"),
	TX(zc_packets, "packets", "sent without a copy (zerocopy=)"),
	TX(zc_copied, "packets",
	   "of these, packets that the kernel copied after all"),
	TX(copy_ours, "packets",
	   "sent as a copy: lay in buffers of the device's own already"),
	TX(copy_short, "packets", "sent as a copy: too short to be worth more"),
	TX(copy_segments, "packets",
	   "sent as a copy: many segments, which are cheaper together"),
	TX(copy_pieces, "packets",
	   "sent as a copy: in more pieces than the kernel takes"),
	TX(copy_stopping, "packets",
	   "sent as a copy: the queue was being stopped"),
	TX(copy_nomem, "packets",
	   "sent as a copy: the kernel had locked as much memory as it may"),
	TX(copy_useless, "packets",
	   "sent as a copy: the kernel copies for this destination after all"),
	TX(copy_slow, "packets",
	   "sent as a copy: older packets of this destination did not leave"),
	TX(copy_share, "packets",
	   "sent as a copy: this destination or lane held its share of the "
	   "window"),
	TX(copy_window, "packets",
	   "sent as a copy: packets that pend or wait held half of the "
	   "virtqueue"),
	TX(drop_chain, "packets", "dropped: malformed descriptor chain"),
	TX(drop_short, "packets",
	   "dropped: chain holds no Ethernet header behind the virtio header"),
	TX(drop_oversize, "packets", "dropped: longer than any frame may be"),
	TX(drop_header, "packets",
	   "dropped: virtio header contradicts the packet or the negotiated "
	   "features"),
	TX(drop_segments, "packets",
	   "dropped: more segments than the backend takes, even in parts"),
	TX(drop_refused, "packets",
	   "dropped: the host network refused this packet"),
	TX(drop_down, "packets", "dropped: the host interface is down"),
	TX(drop_gone, "packets", "dropped: the host interface was deleted"),
	TX(drop_nomem, "packets", "dropped: the host kernel had no memory"),
	TX(drop_full, "packets",
	   "dropped: the host network was full (--tx-full=drop)"),
	TX(drop_late, "packets",
	   "dropped: waited too long for its lane (CoDel)"),
	TX(drop_limit, "packets", "dropped: too many wait for the same lane"),
	TX(drop_pool, "packets", "dropped: no room left for packets that wait"),
};
const size_t vl_tx_counter_count = VL_ARRAY_SIZE(vl_tx_counter_table);

const struct vl_counter vl_rx_counter_table[] = {
	RX(packets, "packets", "packets given to the driver"),
	RX(bytes, "bytes", "bytes of these, without the virtio header"),
	RX(gso_packets, "packets",
	   "of these, packets that were not segmented (TSO, USO)"),
	RX(buffers, "buffers", "driver buffers (descriptor chains) filled"),
	RX(merged, "packets", "packets spread over more than one buffer"),
	RX(copied, "packets",
	   "packets of which a part was copied, since buffers had to be found "
	   "after the read"),
	RX(batches, "events", "submissions of a batch of reads"),
	RX(kicks, "events", "available buffer notifications from the driver"),
	RX(starved, "events",
	   "times reading stopped because the driver had posted no buffers"),
	RX(drop_chain, "buffers",
	   "driver buffers returned empty: malformed descriptor chain"),
	RX(drop_truncated, "packets",
	   "dropped: larger than the buffers the driver can offer"),
	RX(drop_refused, "events", "reads the host network refused"),
	RX(drop_stopped, "packets",
	   "dropped: waited for buffers when the driver went away"),
};
const size_t vl_rx_counter_count = VL_ARRAY_SIZE(vl_rx_counter_table);

const struct vl_counter vl_lane_counter_table[] = {
	LANE(packets, "packets", "packets the host network took on this lane"),
	LANE(bytes, "bytes", "bytes of these, without the virtio header"),
	LANE(refusals, "events",
	     "times the host network took no more on this lane"),
	LANE(moves, "events",
	     "destinations that came from the express lane, which was full"),
	LANE(merges, "events",
	     "times another slow lane was merged into this one"),
	LANE(returns, "events",
	     "times this lane was given back, its destinations to express"),
	LANE(probes, "packets",
	     "of the express lane: packets that it sent by a probe"),
	LANE(found_slow, "events", "destinations that these found to be slow"),
	LANE(drop_late, "packets", "dropped: waited too long (CoDel)"),
	LANE(drop_limit, "packets", "dropped: too many wait for this lane"),
	LANE(drop_pool, "packets",
	     "dropped: no room left for packets that wait, in any lane"),
};
const size_t vl_lane_counter_count = VL_ARRAY_SIZE(vl_lane_counter_table);

const struct vl_counter vl_tunnel_counter_table[] = {
	TUNNEL(trains, "datagrams",
	       "received datagrams that the kernel had joined (UDP_GRO)"),
	TUNNEL(train_frames, "packets", "packets in these"),
	TUNNEL(superframes, "packets",
	       "packets received before they were segmented (TSO, USO)"),
	TUNNEL(segmented, "packets",
	       "of these, packets cut here, since the driver takes none"),
	TUNNEL(csum_completed, "packets",
	       "received packets with a partial checksum, completed here since "
	       "the driver takes none"),
	TUNNEL(learned, "addresses", "MAC addresses that were new"),
	TUNNEL(moved, "addresses",
	       "MAC addresses that were seen behind another remote than "
	       "before"),
	TUNNEL(drop_peer, "packets",
	       "dropped: the datagram came from an address that is no remote"),
	TUNNEL(drop_vni, "packets", "dropped: no VXLAN header with our VNI"),
	TUNNEL(drop_short, "packets",
	       "dropped: no Ethernet header behind the VXLAN header"),
	TUNNEL(drop_fragment, "packets",
	       "dropped: the datagram had been fragmented; the MTU of a remote "
	       "is too large for the path"),
	TUNNEL(drop_truncated, "packets",
	       "dropped: the datagram was larger than any may be"),
	TUNNEL(drop_uncut, "packets",
	       "dropped: not segmented yet, and of a kind that can neither be "
	       "given to the driver nor be cut"),
	TUNNEL(messages, "datagrams", "messages sent, each to one remote"),
	TUNNEL(message_frames, "packets", "packets or segments in these"),
	TUNNEL(flood_frames, "packets",
	       "packets sent to every remote: broadcast, multicast, unknown"),
	TUNNEL(flood_copies, "packets", "copies made of these"),
	TUNNEL(flood_drops, "packets",
	       "dropped: copies for which there was no room"),
	TUNNEL(drop_mtu, "packets",
	       "dropped: too long for the path to the remote"),
	TUNNEL(drop_unreachable, "packets",
	       "dropped: the host has no way to the remote now"),
	TUNNEL(drop_no_remote, "packets",
	       "dropped: there is no remote to send it to"),
};
const size_t vl_tunnel_counter_count = VL_ARRAY_SIZE(vl_tunnel_counter_table);

_Static_assert(VL_ARRAY_SIZE(vl_tx_counter_table) * sizeof(uint64_t) ==
		       sizeof(struct vl_tx_counters),
	       "every transmit counter has a row");
_Static_assert(VL_ARRAY_SIZE(vl_rx_counter_table) * sizeof(uint64_t) ==
		       sizeof(struct vl_rx_counters),
	       "every receive counter has a row");
_Static_assert(VL_ARRAY_SIZE(vl_lane_counter_table) * sizeof(uint64_t) ==
		       sizeof(struct vl_lane_counters),
	       "every counter of a lane has a row");
_Static_assert(VL_ARRAY_SIZE(vl_tunnel_counter_table) * sizeof(uint64_t) ==
		       sizeof(struct vl_tunnel_counters),
	       "every counter of a tunnel has a row");

uint64_t vl_counter_value(const struct vl_counter *c, const void *base)
{
	const void *field = (const char *)base + c->offset;

	return vl_read_once((const uint64_t *)field);
}

void vl_counters_copy(void *dst, const void *src, size_t size)
{
	uint64_t *d = dst;
	const uint64_t *s = src;

	for (size_t i = 0; i < size / sizeof(*d); i++)
		d[i] = vl_read_once(&s[i]);
}
