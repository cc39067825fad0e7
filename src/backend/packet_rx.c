/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A frame is read straight into the driver's buffers, and mostly that is all.
 * But a packet socket hands over what is in the host as it is:
 *
 *   - a frame that waits for segmentation, or for its checksum, also when the
 *     driver did not agree to either;
 *   - a frame whose VLAN tag the kernel took off and tells beside it.
 *
 * Such a frame is taken out into a buffer of ours and put right there. Then it
 * goes into the buffers that it was read into; if it was cut, its first segment
 * does, and the others wait for the reads that follow. As long as something
 * waits nothing overtakes it: frames that were read behind it wait too, and
 * nothing else is read. So each read of a batch adds one frame at most to those
 * that wait, and each has a buffer.
 *
 * A driver that does not take every kind of frame may be given one that is
 * larger than its buffers and has to be cut first. So its reads get the rest of
 * our buffer behind the driver's memory; the frame then lies in our buffer where
 * it belongs already.
 *
 * Positions in a frame are those in the driver's memory: with the virtio header
 * of its length, which may be longer than the kernel's.
 */
#include "backend/packet_rx.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "backend/frame_fix.h"
#include "base/barrier.h"
#include "base/iov.h"
#include "base/util.h"
#include "lane/gso.h"

/* Reads of a batch (VL_RX_BATCH), and pieces of all of them. */
#define READS_MAX 64u
#define IOV_MAX_  1024u
#define IOV_TOTAL (4096u + 3u * READS_MAX)

#define KERNEL_HDR ((uint32_t)sizeof(struct virtio_net_hdr))
#define HDR_MAX    12u
/* The largest IP packet with an Ethernet header and two tags. */
#define FRAME_MAX  (65535u + ETH_HLEN + 2 * VL_TAG_LEN)
/* In front of it the tag that is put back needs room. */
#define FRONT      16u
#define BUFFER     (FRONT + HDR_MAX + FRAME_MAX + 1u)

/* struct vl_offload as one word, which is read while another thread writes. */
#define TAKES_CSUM     1u
#define TAKES_TSO4     2u
#define TAKES_TSO6     4u
#define TAKES_ECN      8u
#define TAKES_USO4     16u
#define TAKES_USO6     32u
#define KERNEL_IS_LESS 64u /* the kernel's header is shorter */
#define HDR_SHIFT      8u

struct packet_read {
	struct msghdr msg;
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
	} control;
	const struct iovec *iov; /* the driver's */
	unsigned int n;
	uint32_t room; /* bytes of that */
	uint32_t tail; /* bytes of our buffer behind it */
	uint64_t tag;
};

/* A frame in a buffer of ours. */
struct packet_waiting {
	uint8_t *at;  /* its virtio header */
	uint32_t len; /* with that */
	bool cut;
	struct vl_gso gso;
	uint32_t done; /* bytes of payload */
};

struct vl_packet_rx {
	uint32_t shared; /* TAKES_*, header length */
	/* The same, as of this batch. */
	struct vl_offload takes;
	bool takes_all;
	uint32_t gap; /* bytes by which the kernel's header is shorter */

	int file;
	uint64_t tag;
	struct packet_read read[READS_MAX];
	uint32_t n_reads, in_flight;
	struct iovec iov[IOV_TOTAL];
	uint32_t n_iov;

	struct packet_waiting waiting[READS_MAX];
	uint32_t first, n_waiting;
	uint32_t waiting_hdr_len;
	uint8_t *buffers; /* one per read, and one for a segment */
};

struct vl_packet_rx *vl_packet_rx_new(void)
{
	struct vl_packet_rx *rx = calloc(1, sizeof(*rx));

	if (!rx)
		return NULL;
	/* Large and rarely touched: calloc leaves it unmapped. */
	rx->buffers = calloc(READS_MAX + 1, BUFFER);
	if (!rx->buffers) {
		free(rx);
		return NULL;
	}
	return rx;
}

void vl_packet_rx_free(struct vl_packet_rx *rx)
{
	if (rx)
		free(rx->buffers);
	free(rx);
}

void vl_packet_rx_set_offload(struct vl_packet_rx *rx,
			      const struct vl_offload *o,
			      uint32_t kernel_hdr_len)
{
	uint32_t word =
		(o->csum ? TAKES_CSUM : 0) | (o->tso4 ? TAKES_TSO4 : 0) |
		(o->tso6 ? TAKES_TSO6 : 0) | (o->ecn ? TAKES_ECN : 0) |
		(o->uso4 ? TAKES_USO4 : 0) | (o->uso6 ? TAKES_USO6 : 0) |
		(kernel_hdr_len < o->hdr_len ? KERNEL_IS_LESS : 0) |
		o->hdr_len << HDR_SHIFT;

	vl_write_once(&rx->shared, word);
}

void vl_packet_rx_start(struct vl_packet_rx *rx, int file, uint64_t tag)
{
	rx->file = file;
	rx->tag = tag;
}

void vl_packet_rx_forget(struct vl_packet_rx *rx)
{
	rx->n_waiting = 0;
}

static uint8_t *buffer(struct vl_packet_rx *rx, uint32_t i)
{
	return rx->buffers + (size_t)i * BUFFER + FRONT;
}

static void begin_batch(struct vl_packet_rx *rx)
{
	uint32_t word = vl_read_once(&rx->shared);

	rx->takes = (struct vl_offload){
		.hdr_len = word >> HDR_SHIFT,
		.csum = word & TAKES_CSUM,
		.tso4 = word & TAKES_TSO4,
		.tso6 = word & TAKES_TSO6,
		.ecn = word & TAKES_ECN,
		.uso4 = word & TAKES_USO4,
		.uso6 = word & TAKES_USO6,
	};
	rx->takes_all = vl_fix_takes_all(&rx->takes);
	rx->gap = word & KERNEL_IS_LESS ? rx->takes.hdr_len - KERNEL_HDR : 0;
	rx->n_reads = 0;
	rx->n_iov = 0;
	if (rx->waiting_hdr_len != rx->takes.hdr_len)
		rx->n_waiting = 0;
	rx->waiting_hdr_len = rx->takes.hdr_len;
}

/* The next part of waiting frame @w, as a frame in @out with the header that
 * the driver takes. Returns its length; the last one makes w->cut false. */
static uint32_t next_segment(const struct vl_packet_rx *rx,
			     struct packet_waiting *w, uint8_t *out)
{
	const uint32_t hdr_len = rx->takes.hdr_len;
	const uint8_t *frame = w->at + hdr_len;
	uint32_t len =
		vl_min_u32(vl_gso_part(&w->gso, 0), w->gso.payload - w->done);
	uint32_t frame_len = w->gso.head_len + len;
	struct virtio_net_hdr hdr;

	vl_gso_head(&w->gso, frame, w->done, len, &hdr, out + hdr_len);
	memcpy(out + hdr_len + w->gso.head_len,
	       frame + w->gso.head_len + w->done, len);
	w->done += len;
	if (w->done == w->gso.payload)
		w->cut = false;
	if (!rx->takes.csum)
		(void)vl_fix_complete_csum(&hdr, out + hdr_len, frame_len);
	memset(out, 0, hdr_len);
	memcpy(out, &hdr, sizeof(hdr));
	return hdr_len + frame_len;
}

/* Gives the buffers @iov what waits first. Returns its length, or @room, which
 * says "cut off", when it does not fit. */
static int serve(struct vl_packet_rx *rx, const struct iovec *iov,
		 unsigned int n, uint32_t room)
{
	struct packet_waiting *w = &rx->waiting[rx->first];
	uint8_t *at = w->at;
	uint32_t len = w->len;

	if (w->cut) {
		at = buffer(rx, READS_MAX);
		len = next_segment(rx, w, at);
	}
	if (!w->cut) {
		rx->first = (rx->first + 1) % READS_MAX;
		rx->n_waiting--;
	}
	(void)vl_iov_write(iov, n, 0, at, len);
	return (int)vl_min_u32(len, room);
}

/* Makes the list that the kernel reads into: the driver's without the bytes
 * that the kernel's header lacks, and our buffer behind it. */
static int lay_out(struct vl_packet_rx *rx, struct packet_read *r)
{
	struct iovec *out = rx->iov + rx->n_iov;
	unsigned int n = r->n;

	r->msg.msg_iov = (struct iovec *)(uintptr_t)r->iov;
	r->msg.msg_iovlen = n;
	r->tail = 0;
	if (!rx->gap && (rx->takes_all || r->room >= BUFFER - FRONT))
		return 0;
	if (rx->n_iov + n + 3 > IOV_TOTAL)
		return -ENOBUFS;
	if (rx->gap) {
		int head = vl_iov_slice(r->iov, n, 0, KERNEL_HDR, out, 2);
		int rest =
			head < 0 ? head
				 : vl_iov_slice(r->iov, n, KERNEL_HDR + rx->gap,
						r->room - KERNEL_HDR - rx->gap,
						out + head, n + 1);

		if (rest < 0)
			return rest;
		n = (unsigned int)(head + rest);
	} else {
		memcpy(out, r->iov, n * sizeof(*out));
	}
	if (!rx->takes_all && n < IOV_MAX_ && r->room < BUFFER - FRONT) {
		r->tail = BUFFER - FRONT - r->room;
		out[n++] = (struct iovec){
			buffer(rx, (uint32_t)(r - rx->read)) + r->room,
			r->tail,
		};
	}
	r->msg.msg_iov = out;
	r->msg.msg_iovlen = n;
	rx->n_iov += n;
	return 0;
}

void vl_packet_rx_recv(struct vl_packet_rx *rx, struct vl_io *io,
		       const struct vl_frame *f)
{
	uint32_t room =
		(uint32_t)vl_min_u64(vl_iov_len(f->iov, f->n), INT32_MAX);
	struct packet_read *r;

	if (!rx->in_flight)
		begin_batch(rx);
	if (rx->n_waiting) {
		vl_io_post(io, serve(rx, f->iov, f->n, room), f->tag);
		return;
	}
	if (rx->n_reads == READS_MAX) {
		vl_io_post(io, -ECANCELED, f->tag);
		return;
	}
	r = &rx->read[rx->n_reads];
	r->iov = f->iov;
	r->n = f->n;
	r->room = room;
	r->tag = f->tag;
	if (lay_out(rx, r)) {
		vl_io_post(io, -ECANCELED, f->tag);
		return;
	}
	r->msg.msg_control = r->control.room;
	r->msg.msg_controllen = sizeof(r->control.room);
	vl_io_recvmsg(io, rx->file, &r->msg, rx->tag + rx->n_reads);
	rx->n_reads++;
	rx->in_flight++;
}

/* What the kernel says of the frame beside it; NULL: nothing. */
static const struct tpacket_auxdata *aux_of(const struct packet_read *r)
{
	const struct cmsghdr *c = &r->control.align;

	if (r->msg.msg_controllen < CMSG_LEN(sizeof(struct tpacket_auxdata)) ||
	    c->cmsg_level != SOL_PACKET || c->cmsg_type != PACKET_AUXDATA)
		return NULL;
	return (const struct tpacket_auxdata *)(const void *)CMSG_DATA(c);
}

static bool has_tag(const struct packet_read *r)
{
	const struct tpacket_auxdata *aux = aux_of(r);

	return aux && aux->tp_status & TP_STATUS_VLAN_VALID;
}

/* Whether the driver takes the frame as it was read. */
static bool is_plain(const struct vl_packet_rx *rx, const struct packet_read *r)
{
	struct virtio_net_hdr hdr = { 0 };

	if (vl_unlikely(has_tag(r)))
		return false;
	if (rx->takes_all)
		return true;
	(void)vl_iov_read(r->iov, r->n, 0, &hdr, sizeof(hdr));
	if (!rx->takes.csum && hdr.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
		return false;
	return vl_fix_takes_gso(&rx->takes, hdr.gso_type);
}

/* Puts the tag of read @r back into its frame in @w. */
static void restore_tag(const struct vl_packet_rx *rx,
			const struct packet_read *r, struct packet_waiting *w,
			struct virtio_net_hdr *hdr)
{
	const struct tpacket_auxdata *aux = aux_of(r);
	uint16_t tpid = aux->tp_status & TP_STATUS_VLAN_TPID_VALID
				? aux->tp_vlan_tpid
				: ETH_P_8021Q;

	vl_fix_insert_tag(w->at, rx->takes.hdr_len, tpid, aux->tp_vlan_tci,
			  hdr);
	w->at -= VL_TAG_LEN;
	w->len += VL_TAG_LEN;
}

/* Takes the frame of @len bytes out of what read @r read into, and puts it
 * right. It waits then. Returns 0, or -EINVAL when it cannot be put right. */
static int take_out(struct vl_packet_rx *rx, const struct packet_read *r,
		    uint32_t len)
{
	const uint32_t hdr_len = rx->takes.hdr_len;
	struct packet_waiting *w =
		&rx->waiting[(rx->first + rx->n_waiting) % READS_MAX];
	struct virtio_net_hdr hdr;
	uint8_t *frame;

	if (len < hdr_len + ETH_HLEN)
		return -EINVAL;
	w->at = buffer(rx, (uint32_t)(r - rx->read));
	w->len = len;
	w->cut = false;
	w->done = 0;
	/* The rest is there already. */
	(void)vl_iov_read(r->iov, r->n, 0, w->at, vl_min_u32(len, r->room));
	memcpy(&hdr, w->at, sizeof(hdr));
	if (has_tag(r))
		restore_tag(rx, r, w, &hdr);
	frame = w->at + hdr_len;
	len = w->len - hdr_len;
	if (!vl_fix_takes_gso(&rx->takes, hdr.gso_type)) {
		if (vl_gso_parse(&hdr, frame, vl_min_u32(len, VL_GSO_HEAD_MAX),
				 len, &w->gso))
			return -EINVAL;
		w->cut = true;
	} else if (!rx->takes.csum && hdr.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM &&
		   vl_fix_complete_csum(&hdr, frame, len)) {
		return -EINVAL;
	}
	memcpy(w->at, &hdr, sizeof(hdr));
	rx->n_waiting++;
	return 0;
}

/* What has become of read @r, which got @got bytes: of what it was for. */
static int finish(struct vl_packet_rx *rx, const struct packet_read *r,
		  uint32_t got)
{
	int err;

	/* Cut off, and it says so. */
	if (got >= r->room + r->tail)
		return (int)r->room;
	if (vl_likely(!rx->n_waiting && is_plain(rx, r)))
		return (int)vl_min_u32(got, r->room);
	err = take_out(rx, r, got);
	return err ? err : serve(rx, r->iov, r->n, r->room);
}

void vl_packet_rx_complete(struct vl_packet_rx *rx,
			   const struct vl_io_event *ev,
			   vl_frame_event_fn *emit, void *ctx)
{
	uint64_t index = ev->tag - rx->tag;
	struct packet_read *r = &rx->read[index];
	struct vl_io_event out = { .res = ev->res };

	if (index >= rx->n_reads || !rx->in_flight)
		return;
	rx->in_flight--;
	out.tag = r->tag;
	if (vl_likely(ev->res > 0))
		out.res = finish(rx, r, (uint32_t)ev->res + rx->gap);
	else if (rx->n_waiting && vl_io_verdict(ev->res) == VL_IO_AGAIN)
		out.res = serve(rx, r->iov, r->n, r->room);
	emit(ctx, &out);
}
