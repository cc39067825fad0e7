/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Zero-copy transmit: which packets are sent from where they lie. See
 * docs/design/zero-copy.md.
 *
 * Pure functions; the state belongs to the caller.
 */
#ifndef VL_LANE_ZCOPY_H
#define VL_LANE_ZCOPY_H

#include <stdbool.h>
#include <stdint.h>

#include "lane/backend.h"
#include "lane/dest.h"

/*
 * Bytes of a frame from which on a send without a copy is tried. Naming pages to
 * the kernel and reaping a second event cost about what copying a few KB does:
 * a frame of 1500 bytes is not worth it, one of 9000 is. Where it is wanted at
 * any price, not for frames that are little more than headers.
 */
#define VL_ZC_BYTES_AUTO 4096u
#define VL_ZC_BYTES_ON   256u

/*
 * Segments of a frame that are sent together. Measured per segment of 1350
 * bytes: 242 ns copied, 40 of them in one message; 1194 ns without a copy,
 * since more than 8 do not fit one message.
 */
#define VL_ZC_SEGMENTS_AUTO 8u

/* Pieces of a message without a copy: the fragments of a socket buffer. A piece
 * is a header, or what of the frame lies in one page. */
#define VL_ZC_PIECES_MAX 17u
#define VL_ZC_PAGE       4096u

/*
 * Parts of the window. A destination may hold one in four, so that a slow one
 * alone leaves three for others even before it is known as slow. One side lane,
 * which may have several slow destinations, the same; all side lanes together
 * half, so that many slow destinations leave half to the express lane.
 */
#define VL_ZC_DEST_PART  4u
#define VL_ZC_LANE_PART  4u
#define VL_ZC_SIDES_PART 2u

/*
 * A destination whose oldest packet has been pending for longer is slow: its
 * packets are copied until that has left. So the window is for those that give
 * it back, and a stop waits for what was begun in so much time.
 */
#define VL_ZC_SLOW_NS 100000000ULL

/*
 * Of so many packets the kernel said whether it copied them after all. If more
 * than half, the destination is left alone for a time, then a few packets find
 * out whether that has changed; if not, it is left alone for twice as long.
 */
#define VL_ZC_SAMPLE       32u
#define VL_ZC_SAMPLE_AGAIN 8u
#define VL_ZC_OFF_MIN_NS   1000000000ULL
#define VL_ZC_OFF_DOUBLES  5u

/* Why a packet is copied. */
enum vl_zc_why {
	VL_ZC_NOT_COPIED,
	VL_ZC_OFF,      /* the backend cannot, or shall not */
	VL_ZC_OURS,     /* it lies in our own buffers already */
	VL_ZC_SHORT,    /* VL_ZC_BYTES_* */
	VL_ZC_SEGMENTS, /* VL_ZC_SEGMENTS_AUTO */
	VL_ZC_PIECES,   /* VL_ZC_PIECES_MAX */
	VL_ZC_STOPPING, /* the queue is being stopped */
	VL_ZC_NOMEM,    /* the kernel locks no more memory, VL_ZC_OFF_MIN_NS */
	VL_ZC_USELESS,  /* the kernel copies after all */
	VL_ZC_SLOW,     /* VL_ZC_SLOW_NS */
	VL_ZC_SHARE,    /* its destination or its lane holds enough */
	VL_ZC_WINDOW,   /* all of them together do */
	VL_ZC_WHYS,
};

/* A destination, as far as zero-copy is concerned; several may share one. */
#define VL_ZC_DESTS 64u
struct vl_zc_dest {
	uint32_t descs;       /* that its pending packets hold */
	uint8_t seen, copied; /* packets since the last verdict */
	uint8_t failures;     /* verdicts on end that it is useless */
	uint64_t off_until_ns;
};

/* Which of them a key belongs to. */
unsigned int vl_zc_dest_index(const struct vl_dest_key *key);

/* The memory of a packet was released; the kernel had @copied it. */
void vl_zc_dest_released(struct vl_zc_dest *d, bool copied, uint64_t now_ns);

/* Segments of a frame of @len bytes, at most; 1 if @gso_size is 0. */
uint32_t vl_zc_segments(uint32_t len, uint32_t gso_size);

/* Pieces of a message with the frame @iov in @segments, at most: each has a
 * header in front, and may begin and end within a page. */
uint32_t vl_zc_pieces(const struct iovec *iov, unsigned int n,
		      uint32_t segments);

/*
 * What the frame itself says: @len bytes, the payload in @iov, @gso_size as in
 * its virtio header, 0 unless it is to be segmented. VL_ZC_NOT_COPIED, OFF,
 * SHORT, SEGMENTS or PIECES.
 */
enum vl_zc_why vl_zc_frame(enum vl_zerocopy mode, uint32_t len,
			   uint32_t gso_size, const struct iovec *iov,
			   unsigned int n);

/* What is pending when a packet is to be sent. All in descriptors. */
struct vl_zc_room {
	enum vl_zerocopy mode;
	bool stopping;
	uint64_t nomem_until_ns; /* not before, for want of memory */
	/* As others do it, to compare with: one window, and nothing else. */
	bool classic;
	uint32_t hold;     /* more that would be held, */
	uint32_t charge;   /* and pending; 0 where the chain is counted */
	uint32_t held;     /* by packets that are pending or wait */
	uint32_t held_max; /* half of the virtqueue */
	uint32_t pending;
	uint32_t pending_max; /* the window: not more than held_max */
	const struct vl_zc_dest *dest;
	uint32_t lane_descs;  /* pending on the packet's lane, */
	uint32_t sides_descs; /* on all side lanes; 0 for the express lane */
	bool side;
	uint64_t now_ns;
	uint64_t oldest_ns; /* when the first pending one of the destination was
			     * sent; 0: there is none */
};

/* Whether there is room: VL_ZC_NOT_COPIED, STOPPING, NOMEM, USELESS, SLOW,
 * SHARE or WINDOW. One packet of each destination may be pending whatever it holds. */
enum vl_zc_why vl_zc_room(const struct vl_zc_room *r);

#endif
