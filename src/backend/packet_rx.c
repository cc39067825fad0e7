/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames come by a ring in memory that is shared with the kernel
 * (PACKET_RX_RING): to read one costs no system call. What is too large for a
 * slot waits in the socket besides (PACKET_COPY_THRESH, TP_STATUS_COPY), and is
 * read from there, straight into the driver's buffers.
 *
 * A packet socket hands over what is in the host as it is:
 *
 *   - a frame that waits for segmentation, or for its checksum, also when the
 *     driver did not agree to either;
 *   - a frame whose VLAN tag the kernel took off and tells beside it.
 *
 * Such a frame is put into a buffer of ours and made right there. If it was
 * cut, its first segment is delivered, and the others wait for the reads that
 * follow, before anything else.
 *
 * A driver that does not take every kind of frame may be given one that is
 * larger than its buffers and has to be cut first. So a large frame is read into
 * the driver's buffers and the rest of our buffer behind them; that rest then
 * lies where it belongs already.
 *
 * The kernel puts a virtio header of 10 bytes in front. Positions in a frame are
 * those in the driver's memory, with the header of its length.
 */
#include "backend/packet_rx.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/virtio_net.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "backend/frame_fix.h"
#include "base/barrier.h"
#include "base/iov.h"
#include "base/util.h"
#include "lane/gso.h"

#define SLOTS VL_PACKET_RX_SLOTS
#define SLOT  VL_PACKET_RX_SLOT
#define BLOCK 65536u

/* Pieces that the kernel takes. */
#define PIECES_MAX 1024u

#define KERNEL_HDR ((uint32_t)sizeof(struct virtio_net_hdr))
#define HDR_MAX    12u
/* The largest IP packet with an Ethernet header and two tags. */
#define FRAME_MAX  (65535u + ETH_HLEN + 2 * VL_TAG_LEN)
/* In front of it the tag that is put back needs room. */
#define FRONT      16u
#define BUFFER     (HDR_MAX + FRAME_MAX + 1u)

/* Frames thrown away at once. */
#define FORGET_MAX 65536u

/* struct vl_offload as one word, which is read while another thread writes. */
#define TAKES_CSUM 1u
#define TAKES_TSO4 2u
#define TAKES_TSO6 4u
#define TAKES_ECN  8u
#define TAKES_USO4 16u
#define TAKES_USO6 32u
#define HDR_SHIFT  8u

/* A VLAN tag beside a frame. */
struct packet_tag {
	bool valid;
	uint16_t tpid, tci;
};

struct vl_packet_rx {
	uint32_t shared; /* TAKES_*, header length */
	uint32_t seen;   /* the same, when looked at last */
	struct vl_offload takes;
	bool takes_all;

	char *map;
	int fd;
	uint32_t head;   /* the next slot */
	bool empty;      /* nothing is left, until the next submit */
	uint32_t frames; /* since the ring was empty last */

	/* A frame that was put right, and is not delivered, or not all of it. */
	bool waits;
	uint8_t *at;  /* its virtio header */
	uint32_t len; /* with that */
	bool cut;
	struct vl_gso gso;
	uint32_t done; /* bytes of payload */

	struct iovec iov[PIECES_MAX + 3];
	uint8_t buffer[FRONT + BUFFER];
	uint8_t segment[BUFFER];
};

static int set_option(int fd, int name, int value)
{
	return setsockopt(fd, SOL_PACKET, name, &value, sizeof(value));
}

char *vl_packet_rx_map(int fd)
{
	const struct tpacket_req req = {
		.tp_block_size = BLOCK,
		.tp_block_nr = SLOTS * SLOT / BLOCK,
		.tp_frame_size = SLOT,
		.tp_frame_nr = SLOTS,
	};
	char *map;

	if (set_option(fd, PACKET_VERSION, TPACKET_V2) ||
	    set_option(fd, PACKET_VNET_HDR, 1) ||
	    set_option(fd, PACKET_AUXDATA, 1) ||
	    set_option(fd, PACKET_COPY_THRESH, 1) ||
	    setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &req, sizeof(req)) < 0)
		return NULL;
	map = mmap(NULL, (size_t)SLOTS * SLOT, PROT_READ | PROT_WRITE,
		   MAP_SHARED, fd, 0);
	return map == MAP_FAILED ? NULL : map;
}

struct vl_packet_rx *vl_packet_rx_new(char *map, int fd)
{
	struct vl_packet_rx *rx = calloc(1, sizeof(*rx));

	if (!rx)
		return NULL;
	rx->map = map;
	rx->fd = fd;
	return rx;
}

void vl_packet_rx_free(struct vl_packet_rx *rx)
{
	free(rx);
}

void vl_packet_rx_set_offload(struct vl_packet_rx *rx,
			      const struct vl_offload *o)
{
	uint32_t word = (o->csum ? TAKES_CSUM : 0) |
			(o->tso4 ? TAKES_TSO4 : 0) |
			(o->tso6 ? TAKES_TSO6 : 0) | (o->ecn ? TAKES_ECN : 0) |
			(o->uso4 ? TAKES_USO4 : 0) |
			(o->uso6 ? TAKES_USO6 : 0) | o->hdr_len << HDR_SHIFT;

	vl_write_once(&rx->shared, word);
}

static void see_offload(struct vl_packet_rx *rx)
{
	uint32_t word = vl_read_once(&rx->shared);

	if (vl_likely(word == rx->seen))
		return;
	/* A header of another length: it was for another driver. */
	if (word >> HDR_SHIFT != rx->seen >> HDR_SHIFT)
		rx->waits = false;
	rx->seen = word;
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
}

static struct tpacket2_hdr *next_slot(const struct vl_packet_rx *rx)
{
	return (void *)(rx->map + (size_t)(rx->head % SLOTS) * SLOT);
}

/* The kernel may have the slot back. */
static void release_slot(struct vl_packet_rx *rx)
{
	vl_store_release(&next_slot(rx)->tp_status, (uint32_t)TP_STATUS_KERNEL);
	rx->head++;
}

void vl_packet_rx_forget(struct vl_packet_rx *rx)
{
	rx->waits = false;
	for (uint32_t i = 0; i < SLOTS; i++) {
		if (!(vl_load_acquire(&next_slot(rx)->tp_status) &
		      TP_STATUS_USER))
			break;
		release_slot(rx);
	}
	for (uint32_t i = 0; i < FORGET_MAX; i++)
		if (recv(rx->fd, NULL, 0, MSG_DONTWAIT | MSG_TRUNC) < 0)
			break;
}

void vl_packet_rx_flush(struct vl_packet_rx *rx)
{
	rx->empty = false;
}

/* Makes the next segment of the frame that waits. Returns its length. */
static uint32_t next_segment(struct vl_packet_rx *rx)
{
	const uint32_t hdr_len = rx->takes.hdr_len;
	const struct vl_gso *g = &rx->gso;
	const uint8_t *frame = rx->at + hdr_len;
	uint8_t *out = rx->segment;
	uint32_t len = vl_min_u32(vl_gso_part(g, 0), g->payload - rx->done);
	struct virtio_net_hdr hdr;

	vl_gso_head(g, frame, rx->done, len, &hdr, out + hdr_len);
	memcpy(out + hdr_len + g->head_len, frame + g->head_len + rx->done,
	       len);
	rx->done += len;
	if (!rx->takes.csum)
		(void)vl_fix_complete_csum(&hdr, out + hdr_len,
					   g->head_len + len);
	memset(out, 0, hdr_len);
	memcpy(out, &hdr, sizeof(hdr));
	return hdr_len + g->head_len + len;
}

/* Gives the driver's buffers what waits. Returns its length, or all that there
 * is room for, which says "cut off". */
static int serve(struct vl_packet_rx *rx, const struct vl_frame *f,
		 uint32_t room)
{
	const uint8_t *from = rx->at;
	uint32_t len = rx->len;

	if (rx->cut) {
		from = rx->segment;
		len = next_segment(rx);
	}
	rx->waits = rx->cut && rx->done < rx->gso.payload;
	(void)vl_iov_write(f->iov, f->n, 0, from, len);
	return (int)vl_min_u32(len, room);
}

/* Whether the driver takes a frame with this header and tag as it is. */
static bool is_plain(const struct vl_packet_rx *rx,
		     const struct virtio_net_hdr *hdr,
		     const struct packet_tag *tag)
{
	if (vl_unlikely(tag->valid))
		return false;
	if (vl_likely(rx->takes_all))
		return true;
	if (!rx->takes.csum && hdr->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
		return false;
	return vl_fix_takes_gso(&rx->takes, hdr->gso_type);
}

/* The frame of @len bytes with its virtio header in our buffer is put right, and
 * waits then. Returns 0, or -EINVAL when it cannot be. */
static int put_right(struct vl_packet_rx *rx, uint32_t len,
		     const struct packet_tag *tag)
{
	const uint32_t hdr_len = rx->takes.hdr_len;
	struct virtio_net_hdr hdr;
	uint8_t *frame;

	rx->at = rx->buffer + FRONT;
	rx->cut = false;
	rx->done = 0;
	memcpy(&hdr, rx->at, sizeof(hdr));
	if (tag->valid) {
		vl_fix_insert_tag(rx->at, hdr_len, tag->tpid, tag->tci, &hdr);
		rx->at -= VL_TAG_LEN;
		len += VL_TAG_LEN;
	}
	rx->len = len;
	frame = rx->at + hdr_len;
	len -= hdr_len;
	if (!vl_fix_takes_gso(&rx->takes, hdr.gso_type)) {
		if (vl_gso_parse(&hdr, frame, vl_min_u32(len, VL_GSO_HEAD_MAX),
				 len, &rx->gso))
			return -EINVAL;
		rx->cut = true;
	} else if (!rx->takes.csum && hdr.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM &&
		   vl_fix_complete_csum(&hdr, frame, len)) {
		return -EINVAL;
	}
	memcpy(rx->at, &hdr, sizeof(hdr));
	rx->waits = true;
	return 0;
}

/* Writes the kernel's header and the frame behind it, @len bytes together, as
 * the driver's header and frame. */
static void write_frame(const struct vl_packet_rx *rx, const struct iovec *iov,
			unsigned int n, const uint8_t *from, uint32_t len)
{
	const uint32_t hdr_len = rx->takes.hdr_len;
	const uint8_t gap[HDR_MAX - KERNEL_HDR] = { 0 };
	uint8_t *to = iov->iov_base;

	if (vl_likely(iov->iov_len >= hdr_len + len)) {
		memcpy(to, from, KERNEL_HDR);
		memcpy(to + KERNEL_HDR, gap, hdr_len - KERNEL_HDR);
		memcpy(to + hdr_len, from + KERNEL_HDR, len - KERNEL_HDR);
		return;
	}
	(void)vl_iov_write(iov, n, 0, from, KERNEL_HDR);
	(void)vl_iov_write(iov, n, KERNEL_HDR, gap, hdr_len - KERNEL_HDR);
	(void)vl_iov_write(iov, n, hdr_len, from + KERNEL_HDR,
			   len - KERNEL_HDR);
}

static struct packet_tag make_tag(uint32_t status, uint16_t tpid, uint16_t tci)
{
	return (struct packet_tag){
		.valid = status & TP_STATUS_VLAN_VALID,
		.tpid = status & TP_STATUS_VLAN_TPID_VALID ? tpid : ETH_P_8021Q,
		.tci = tci,
	};
}

/* The frame is in the next slot, @h. */
static int from_slot(struct vl_packet_rx *rx, const struct tpacket2_hdr *h,
		     const struct vl_frame *f, uint32_t room)
{
	const struct packet_tag tag =
		make_tag(h->tp_status, h->tp_vlan_tpid, h->tp_vlan_tci);
	const uint8_t *from = (const uint8_t *)h + h->tp_mac - KERNEL_HDR;
	uint32_t len = KERNEL_HDR + h->tp_snaplen;
	struct iovec ours = { rx->buffer + FRONT, BUFFER };
	struct virtio_net_hdr hdr;
	int err;

	/* Cut off, since there was no room in the socket either. */
	if (vl_unlikely(h->tp_snaplen < h->tp_len))
		return (int)room;
	if (vl_unlikely(h->tp_snaplen < ETH_HLEN))
		return -EINVAL;
	memcpy(&hdr, from, sizeof(hdr));
	if (vl_likely(is_plain(rx, &hdr, &tag))) {
		write_frame(rx, f->iov, f->n, from, len);
		return (int)vl_min_u32(len - KERNEL_HDR + rx->takes.hdr_len,
				       room);
	}
	write_frame(rx, &ours, 1, from, len);
	err = put_right(rx, len - KERNEL_HDR + rx->takes.hdr_len, &tag);
	return err ? err : serve(rx, f, room);
}

/* Makes the list that a large frame is read into: the driver's, without the bytes
 * that the kernel's header lacks, and our buffer behind it. Returns the number of
 * pieces or -errno; *@total are the bytes of the stream, with those. */
static int lay_out(struct vl_packet_rx *rx, const struct vl_frame *f,
		   uint32_t room, uint32_t *total)
{
	const uint32_t hdr_len = rx->takes.hdr_len;
	int head, rest;
	unsigned int n;

	*total = room;
	head = vl_iov_slice(f->iov, f->n, 0, KERNEL_HDR, rx->iov, PIECES_MAX);
	if (head < 0 || room < hdr_len)
		return -EINVAL;
	rest = vl_iov_slice(f->iov, f->n, hdr_len, room - hdr_len,
			    rx->iov + head, PIECES_MAX - (size_t)head);
	if (rest < 0)
		return rest;
	n = (unsigned int)(head + rest);
	if (!rx->takes_all && n < PIECES_MAX && room < BUFFER) {
		rx->iov[n++] = (struct iovec){
			rx->buffer + FRONT + room,
			BUFFER - room,
		};
		*total = BUFFER;
	}
	return (int)n;
}

/* The tag that the kernel tells of beside the message. */
static struct packet_tag tag_of(struct msghdr *m)
{
	const struct cmsghdr *c = CMSG_FIRSTHDR(m);
	struct tpacket_auxdata aux = { 0 };

	if (c && c->cmsg_level == SOL_PACKET &&
	    c->cmsg_type == PACKET_AUXDATA &&
	    c->cmsg_len >= CMSG_LEN(sizeof(aux)))
		memcpy(&aux, CMSG_DATA(c), sizeof(aux));
	return make_tag(aux.tp_status, aux.tp_vlan_tpid, aux.tp_vlan_tci);
}

/* The frame waits in the socket. */
static int from_socket(struct vl_packet_rx *rx, const struct vl_frame *f,
		       uint32_t room)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
	} control;
	struct msghdr m = {
		.msg_iov = rx->iov,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room),
	};
	struct virtio_net_hdr hdr;
	struct packet_tag tag;
	uint32_t total, len;
	ssize_t got;
	int n = lay_out(rx, f, room, &total);

	m.msg_iovlen = n < 0 ? 0 : (size_t)n;
	got = recvmsg(rx->fd, &m, MSG_DONTWAIT);
	/* One that could not be described was taken out all the same. */
	if (got < (ssize_t)(KERNEL_HDR + ETH_HLEN) || n < 0)
		return -EINVAL;
	len = (uint32_t)got - KERNEL_HDR + rx->takes.hdr_len;
	if (m.msg_flags & MSG_TRUNC || len >= total)
		return (int)room;
	tag = tag_of(&m);
	(void)vl_iov_read(f->iov, f->n, 0, &hdr, sizeof(hdr));
	if (vl_likely(is_plain(rx, &hdr, &tag)))
		return (int)vl_min_u32(len, room);
	if (len > BUFFER)
		return (int)room;
	(void)vl_iov_read(f->iov, f->n, 0, rx->buffer + FRONT,
			  vl_min_u32(len, room));
	n = put_right(rx, len, &tag);
	return n ? n : serve(rx, f, room);
}

/* There is nothing. An error of the socket makes it readable, too: where it was
 * so in vain, the error is taken. */
static int nothing(struct vl_packet_rx *rx)
{
	int error;
	socklen_t len = sizeof(error);

	if (!rx->frames)
		(void)getsockopt(rx->fd, SOL_SOCKET, SO_ERROR, &error, &len);
	rx->frames = 0;
	rx->empty = true;
	return -EAGAIN;
}

void vl_packet_rx_recv(struct vl_packet_rx *rx, struct vl_io *io,
		       const struct vl_frame *f)
{
	uint32_t room =
		(uint32_t)vl_min_u64(vl_iov_len(f->iov, f->n), INT32_MAX);
	const struct tpacket2_hdr *h = next_slot(rx);
	uint32_t status;
	int res;

	see_offload(rx);
	if (rx->waits) {
		vl_io_post(io, serve(rx, f, room), f->tag);
		return;
	}
	if (rx->empty) {
		vl_io_post(io, -ECANCELED, f->tag);
		return;
	}
	status = vl_load_acquire(&h->tp_status);
	if (!(status & TP_STATUS_USER)) {
		vl_io_post(io, nothing(rx), f->tag);
		return;
	}
	res = status & TP_STATUS_COPY ? from_socket(rx, f, room)
				      : from_slot(rx, h, f, room);
	rx->frames++;
	release_slot(rx);
	vl_io_post(io, res, f->tag);
}
