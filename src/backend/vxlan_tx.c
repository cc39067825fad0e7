/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames to datagrams.
 *
 * A message is one sendmsg: one datagram, or a train of them of one size to one
 * remote (UDP_SEGMENT; udp(7)). Frames that follow each other to one remote go
 * into one message while they have the same length; a shorter one ends it, as the
 * kernel wants it. A frame that waits for segmentation fills a message of its own:
 * each segment gets headers in the message's scratch memory, its payload stays
 * where it is (lane/gso.h). The device has cut it before, so that one message is
 * enough, and its result is that of the frame.
 *
 * Checksums. Nobody behind us knows of the frame in the datagram, so a partial
 * checksum is completed here, in scratch memory: what the driver owns is never
 * written to.
 *
 * Copies. A frame for a group, or for an address that nobody was seen with, goes to
 * every remote that is a member of the flood list (head-end replication), as a
 * message to each. Such copies are not worth waiting for: one that is refused is
 * lost, and counted.
 *
 * Sockets. The express way has several, remote number i uses number i modulo their
 * number, so that one remote does not fill another's send buffer. Messages are kept
 * back until flush(), and queued socket by socket: those of one socket are linked,
 * so that one that is refused is not overtaken by the next (lane_set.c), unless
 * there is room for all of them. What goes to different sockets needs no order,
 * but for probes, whose packets come first in their batch.
 */
#include "backend/vxlan_tx.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/sockios.h>
#include <linux/udp.h>
#include <linux/virtio_net.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "backend/vxlan_proto.h"
#include "base/barrier.h"
#include "base/clock.h"
#include "base/csum.h"
#include "base/iov.h"
#include "base/log.h"
#include "base/uapi.h"
#include "base/util.h"
#include "lane/gso.h"

#define MESSAGES   VL_VXLAN_TX_TAGS
/* Bytes of a message: below 65507, what IPv4 leaves of a datagram. */
#define BYTES_MAX  65000u
/* Pieces: a header and one or two of payload for each segment; those of a frame
 * by reference are at most 35 more. */
#define PIECES_MAX 192u
#define HEAD_BYTES (VL_VXLAN_SEGMENTS * (VL_VXLAN_HDR + VL_GSO_HEAD_MAX))
/* What a kernel buffer without a copy can point to (MAX_SKB_FRAGS). */
#define FRAGS_MAX  17u
#define PAGE_BYTES 4096u
/* Messages that zero-copy leaves to others. */
#define ZC_SPARE   512u
/* Messages of a socket for which asking for its room costs less than links. */
#define ASK_ROOM   4u
/* Frames under way that go to several remotes: no more than a submit holds. */
#define FLOODS     256u
#define NO_FLOOD   UINT16_MAX

struct message {
	struct message *next; /* of its socket, or free */
	struct msghdr hdr;
	uint32_t bytes;
	uint32_t head_used;
	uint32_t segment; /* bytes of each, but the last may have fewer */
	uint16_t n_segments;
	uint16_t n_pieces;
	uint16_t n_frames;
	uint16_t frags;  /* pages, if it is sent without a copy */
	uint16_t remote; /* and */
	uint8_t way;     /* where it is the open one */
	uint8_t socket;
	uint16_t flood; /* its frame goes to others too; NO_FLOOD: does not */
	bool zerocopy;
	uint64_t tag[VL_VXLAN_SEGMENTS];
	struct iovec piece[PIECES_MAX];
	_Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(uint16_t))];
	uint8_t head[HEAD_BYTES];
};

/* A frame that goes to several remotes. */
struct flood {
	uint64_t tag;
	uint16_t left; /* messages not answered */
	int sent;      /* what it is answered with: >= 0 if one was sent */
};

/* The message that more frames may join. */
struct open_at {
	struct message *remote[VL_VXLAN_REMOTES];
};

struct socket_queue {
	struct message *head, *tail;
	uint32_t n;
	int file;
	int fd;
};

struct vl_vxlan_tx {
	struct vl_vxlan_tx_config config;
	uint8_t vxlan[VL_VXLAN_HDR];
	uint64_t tag;
	uint64_t now_ns;  /* of this batch, 0: not looked at yet */
	uint32_t hdr_len; /* of the virtio header in front of frames */
	bool can_zerocopy;
	bool no_segments; /* the route does not take UDP_SEGMENT */
	unsigned int n_sockets;
	unsigned int full; /* express socket that refused last */
	struct vl_log_limit log_limit;
	struct socket_queue socket[VL_VXLAN_SOCKETS_MAX];
	struct sockaddr_storage addr[VL_VXLAN_REMOTES];
	uint32_t addr_len[VL_VXLAN_REMOTES]; /* 0: not known yet */
	/* Bytes of a datagram that is too long for the path, 0: not known. */
	uint32_t too_long[VL_VXLAN_REMOTES];
	struct open_at open[VL_VXLAN_WAYS_MAX + VL_PROBES_MAX];
	struct flood flood[FLOODS];
	uint16_t free_flood[FLOODS];
	uint32_t n_free_flood;
	struct message *messages;
	struct message *free;
	uint32_t n_free;
};

/* A frame, as send() sees it. */
struct frame {
	const struct vl_frame *f;
	struct virtio_net_hdr hdr;
	uint32_t hdr_len; /* of the virtio header in front */
	uint32_t len;
	uint8_t peek[VL_GSO_HEAD_MAX]; /* its first bytes, copied once */
	uint32_t n_peek;
	uint8_t way;
};

/* Where in a frame the next byte is to be taken from. */
struct cursor {
	const struct iovec *iov;
	unsigned int n;
	size_t offset;
};

int vl_vxlan_tx_new(const struct vl_vxlan_tx_config *config,
		    struct vl_vxlan_tx **out)
{
	struct vl_vxlan_tx *tx = calloc(1, sizeof(*tx));

	if (!tx)
		return -ENOMEM;
	tx->config = *config;
	tx->n_sockets = config->express + config->ways - 1;
	for (unsigned int i = 0; i < tx->n_sockets; i++) {
		tx->socket[i].fd = config->fd[i];
		tx->socket[i].file = -1;
	}
	vl_vxlan_write(tx->vxlan, config->vni);
	/* Large and mostly untouched: calloc leaves them unmapped. */
	tx->messages = calloc(MESSAGES, sizeof(tx->messages[0]));
	if (!tx->messages) {
		free(tx);
		return -ENOMEM;
	}
	for (unsigned int i = MESSAGES; i > 0; i--) {
		tx->messages[i - 1].next = tx->free;
		tx->free = &tx->messages[i - 1];
	}
	tx->n_free = MESSAGES;
	for (unsigned int i = 0; config->mtu && i < VL_VXLAN_REMOTES; i++)
		tx->too_long[i] = VL_VXLAN_HDR + ETH_HLEN + config->mtu + 1;
	for (uint16_t i = 0; i < FLOODS; i++)
		tx->free_flood[tx->n_free_flood++] = i;
	*out = tx;
	return 0;
}

void vl_vxlan_tx_free(struct vl_vxlan_tx *tx)
{
	if (!tx)
		return;
	free(tx->messages);
	free(tx);
}

void vl_vxlan_tx_set_hdr_len(struct vl_vxlan_tx *tx, uint32_t hdr_len)
{
	tx->hdr_len = hdr_len;
}

int vl_vxlan_tx_start(struct vl_vxlan_tx *tx, struct vl_io *io, uint64_t tag)
{
	tx->tag = tag;
	tx->can_zerocopy = tx->config.zerocopy && vl_io_can_zerocopy(io);
	for (unsigned int i = 0; i < tx->n_sockets; i++) {
		tx->socket[i].file = vl_io_file_add(io, tx->socket[i].fd);
		if (tx->socket[i].file < 0)
			return tx->socket[i].file;
	}
	return 0;
}

void vl_vxlan_tx_stop(struct vl_vxlan_tx *tx, struct vl_io *io)
{
	for (unsigned int i = 0; i < tx->n_sockets; i++)
		vl_io_file_remove(io, tx->socket[i].file);
}

int vl_vxlan_tx_fd(const struct vl_vxlan_tx *tx, unsigned int way)
{
	return tx->socket[way ? tx->config.express + way - 1 : tx->full].fd;
}

static void release(struct vl_vxlan_tx *tx, struct message *m)
{
	m->next = tx->free;
	tx->free = m;
	tx->n_free++;
}

/* Nothing joins @m any more. */
static void shut(struct vl_vxlan_tx *tx, const struct message *m)
{
	struct message **open = &tx->open[m->way].remote[m->remote];

	if (*open == m)
		*open = NULL;
}

/* Makes a message to @remote, the last one of its socket's; NULL: none is free. */
static struct message *begin(struct vl_vxlan_tx *tx, struct vl_io *io,
			     unsigned int way, unsigned int remote)
{
	struct message *m = tx->free;
	struct socket_queue *q;
	unsigned int s = way ? tx->config.express + way - 1
			     : remote % tx->config.express;

	if (vl_unlikely(!m))
		return NULL;
	if (vl_unlikely(!tx->addr_len[remote]))
		tx->addr_len[remote] =
			vl_ip_sockaddr(vl_vxlan_fdb_ip(tx->config.fdb, remote),
				       tx->config.port, &tx->addr[remote]);
	tx->free = m->next;
	tx->n_free--;
	m->next = NULL;
	m->hdr = (struct msghdr){
		.msg_name = &tx->addr[remote],
		.msg_namelen = tx->addr_len[remote],
		.msg_iov = m->piece,
	};
	m->bytes = 0;
	m->head_used = 0;
	m->segment = 0;
	m->n_segments = 0;
	m->n_pieces = 0;
	m->n_frames = 0;
	m->frags = 0;
	m->remote = (uint16_t)remote;
	m->way = (uint8_t)way;
	m->socket = (uint8_t)s;
	m->flood = NO_FLOOD;
	m->zerocopy = false;
	q = &tx->socket[s];
	if (q->tail)
		q->tail->next = m;
	else
		q->head = m;
	q->tail = m;
	q->n++;
	vl_io_reserve(io, 1);
	return m;
}

static void add_piece(struct message *m, void *base, size_t len)
{
	uintptr_t at = (uintptr_t)base;

	m->piece[m->n_pieces++] =
		(struct iovec){ .iov_base = base, .iov_len = len };
	m->bytes += (uint32_t)len;
	m->frags +=
		(uint16_t)((at + len - 1) / PAGE_BYTES - at / PAGE_BYTES + 1);
}

/* Adds the next @len bytes of @c, which has them: in at most as many pieces as
 * @c has, and one. */
static void add_from(struct message *m, struct cursor *c, size_t len)
{
	while (len && c->n && m->n_pieces < PIECES_MAX) {
		size_t part = vl_min_u64(len, c->iov->iov_len - c->offset);

		if (part)
			add_piece(m, (char *)c->iov->iov_base + c->offset,
				  part);
		len -= part;
		c->offset += part;
		if (c->offset == c->iov->iov_len) {
			c->iov++;
			c->n--;
			c->offset = 0;
		}
	}
}

/* The place for a VXLAN header and @len bytes of a frame's. */
static uint8_t *add_head(struct vl_vxlan_tx *tx, struct message *m, size_t len)
{
	uint8_t *at = m->head + m->head_used;

	m->head_used += (uint32_t)(VL_VXLAN_HDR + len);
	memcpy(at, tx->vxlan, VL_VXLAN_HDR);
	add_piece(m, at, VL_VXLAN_HDR + len);
	return at + VL_VXLAN_HDR;
}

static void cursor_at(struct cursor *c, const struct frame *fr, size_t offset)
{
	*c = (struct cursor){ .iov = fr->f->iov, .n = fr->f->n };
	offset += fr->hdr_len;
	while (c->n && offset >= c->iov->iov_len) {
		offset -= c->iov->iov_len;
		c->iov++;
		c->n--;
	}
	c->offset = offset;
}

/* Bytes of a frame up to and with its checksum field; 0: it is complete. */
static uint32_t csum_end(const struct frame *fr)
{
	if (!(fr->hdr.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM))
		return 0;
	return (uint32_t)fr->hdr.csum_start + fr->hdr.csum_offset + 2;
}

/* Puts the checksum of the @len bytes behind @start of the last pieces, from
 * number @first on, into its field at @field, where the sum of the pseudo header is
 * already. 0 is sent as 0xffff: for UDP it would mean that there is none. */
static void complete_csum(const struct message *m, unsigned int first,
			  uint32_t start, uint32_t len, uint8_t *field)
{
	uint16_t sum = (uint16_t)~vl_csum_fold(
		vl_csum_iov(m->piece + first, m->n_pieces - first,
			    VL_VXLAN_HDR + start, len));

	if (!sum)
		sum = 0xffff;
	memcpy(field, &sum, sizeof(sum));
}

/* Adds one whole frame to @m, which has room for it. */
static void add_frame(struct vl_vxlan_tx *tx, struct message *m,
		      const struct frame *fr)
{
	uint32_t end = csum_end(fr);
	unsigned int first = m->n_pieces;
	struct cursor c;
	uint8_t *head = NULL;

	if (!end) {
		add_piece(m, tx->vxlan, VL_VXLAN_HDR);
	} else {
		head = add_head(tx, m, end);
		(void)vl_iov_read(fr->f->iov, fr->f->n, fr->hdr_len, head, end);
	}
	cursor_at(&c, fr, end);
	add_from(m, &c, fr->len - end);
	if (end)
		complete_csum(m, first, fr->hdr.csum_start,
			      fr->len - fr->hdr.csum_start, head + end - 2);
	m->n_segments++;
	if (m->n_segments == 1)
		m->segment = m->bytes;
}

/* Whether @fr may join @m, which is the last one to its remote. */
static bool may_join(const struct vl_vxlan_tx *tx, const struct message *m,
		     const struct frame *fr)
{
	return fr->len + VL_VXLAN_HDR <= m->segment && !tx->no_segments &&
	       m->n_segments < VL_VXLAN_SEGMENTS &&
	       m->bytes + m->segment <= BYTES_MAX &&
	       m->n_pieces + fr->f->n + 2 <= PIECES_MAX &&
	       m->head_used + VL_VXLAN_HDR + csum_end(fr) <= HEAD_BYTES &&
	       m->zerocopy == fr->f->zerocopy &&
	       (!m->zerocopy || m->frags + 2 * fr->f->n + 1 <= FRAGS_MAX);
}

/* Whether such a datagram does not fit the path: a shorter one behind it must not be
 * lost with it. */
static bool is_too_long(const struct vl_vxlan_tx *tx, const struct message *m)
{
	uint32_t bytes = tx->too_long[m->remote];

	return vl_unlikely(bytes) && m->segment >= bytes;
}

static void learn_too_long(struct vl_vxlan_tx *tx, const struct message *m)
{
	uint32_t *bytes = &tx->too_long[m->remote];

	if (!*bytes || m->segment < *bytes)
		*bytes = m->segment;
}

/* Adds the frame to a message to @remote. NULL: there is no place for it. */
static struct message *send_frame(struct vl_vxlan_tx *tx, struct vl_io *io,
				  const struct frame *fr, unsigned int remote)
{
	struct message **open = &tx->open[fr->way].remote[remote];
	struct message *m = *open;

	if (!m || !may_join(tx, m, fr)) {
		if (VL_VXLAN_HDR + csum_end(fr) > HEAD_BYTES)
			return NULL;
		m = begin(tx, io, fr->way, remote);
		if (!m)
			return NULL;
		m->zerocopy = fr->f->zerocopy;
	}
	add_frame(tx, m, fr);
	*open = m->bytes % m->segment || is_too_long(tx, m) ? NULL : m;
	return m;
}

/* The segments of a frame as a message of their own. */
static struct message *send_gso(struct vl_vxlan_tx *tx, struct vl_io *io,
				const struct frame *fr, unsigned int remote)
{
	struct message *m;
	struct vl_gso g;
	struct cursor c;

	if (vl_gso_parse(&fr->hdr, fr->peek, fr->n_peek, fr->len, &g) ||
	    (g.payload - 1) / g.gso_size >= VL_VXLAN_SEGMENTS ||
	    fr->len > VL_VXLAN_GSO_BYTES || tx->no_segments)
		return NULL;
	tx->open[fr->way].remote[remote] = NULL;
	m = begin(tx, io, fr->way, remote);
	if (!m)
		return NULL;
	m->zerocopy = fr->f->zerocopy;
	cursor_at(&c, fr, g.head_len);
	for (uint32_t done = 0; done < g.payload; done += g.gso_size) {
		uint32_t len = vl_min_u32(g.gso_size, g.payload - done);
		unsigned int first = m->n_pieces;
		uint8_t *head = add_head(tx, m, g.head_len);
		struct virtio_net_hdr hdr;

		vl_gso_head(&g, fr->peek, done, len, &hdr, head);
		add_from(m, &c, len);
		complete_csum(m, first, hdr.csum_start,
			      g.head_len - hdr.csum_start + len,
			      head + hdr.csum_start + hdr.csum_offset);
		m->n_segments++;
		if (m->n_segments == 1)
			m->segment = m->bytes;
	}
	return m;
}

/* Both kinds of frame. Returns 0 or why the frame cannot be sent. */
static int send_to(struct vl_vxlan_tx *tx, struct vl_io *io,
		   const struct frame *fr, unsigned int remote, uint16_t flood)
{
	bool gso = fr->hdr.gso_type != VIRTIO_NET_HDR_GSO_NONE;
	struct message *m = gso ? send_gso(tx, io, fr, remote)
				: send_frame(tx, io, fr, remote);

	if (!m)
		return tx->free ? -EINVAL : -ENOBUFS;
	if (flood != NO_FLOOD) {
		m->flood = flood;
		m->zerocopy = false;
	}
	m->tag[m->n_frames++] = fr->f->tag;
	if (gso || flood != NO_FLOOD)
		shut(tx, m);
	return 0;
}

/* One copy to each remote of the flood list. */
static int send_flood(struct vl_vxlan_tx *tx, struct vl_io *io,
		      const struct frame *fr)
{
	struct vl_tunnel_counters *n = tx->config.counters;
	unsigned int remote = vl_vxlan_fdb_next_flood(tx->config.fdb, 0);
	struct flood *fl;
	uint16_t index;

	if (remote == VL_VXLAN_REMOTES) {
		VL_STAT_INC(n->drop_no_remote);
		return -EHOSTUNREACH;
	}
	if (!tx->n_free_flood)
		return -ENOBUFS;
	index = tx->free_flood[--tx->n_free_flood];
	fl = &tx->flood[index];
	*fl = (struct flood){ .tag = fr->f->tag, .sent = -ENOBUFS };
	for (; remote < VL_VXLAN_REMOTES;
	     remote = vl_vxlan_fdb_next_flood(tx->config.fdb, remote + 1)) {
		/* A message that others joined is not this frame's alone. */
		tx->open[fr->way].remote[remote] = NULL;
		if (!vl_io_room(io) || send_to(tx, io, fr, remote, index)) {
			VL_STAT_INC(n->flood_drops);
			continue;
		}
		fl->left++;
	}
	if (!fl->left) {
		tx->free_flood[tx->n_free_flood++] = index;
		return -ENOBUFS;
	}
	VL_STAT_INC(n->flood_frames);
	VL_STAT_ADD(n->flood_copies, fl->left);
	return 0;
}

/* Where @mac is: a remote, or VL_VXLAN_FLOOD if it may be behind any of several. */
static unsigned int find_remote(const struct vl_vxlan_tx *tx,
				const uint8_t *mac)
{
	const struct vl_vxlan_fdb *fdb = tx->config.fdb;
	unsigned int remote = vl_vxlan_fdb_lookup(fdb, mac, tx->now_ns), only;

	if (remote != VL_VXLAN_FLOOD)
		return remote;
	only = vl_vxlan_fdb_next_flood(fdb, 0);
	if (only < VL_VXLAN_REMOTES &&
	    vl_vxlan_fdb_next_flood(fdb, only + 1) == VL_VXLAN_REMOTES)
		return only;
	return remote;
}

void vl_vxlan_tx_send(struct vl_vxlan_tx *tx, unsigned int way,
		      struct vl_io *io, const struct vl_frame *f)
{
	struct frame fr = { .f = f, .way = (uint8_t)way };
	struct vl_frame copied;
	unsigned int remote;
	int err;

	fr.hdr_len = tx->hdr_len;
	fr.len = (uint32_t)vl_iov_len(f->iov, f->n) - fr.hdr_len;
	(void)vl_iov_read(f->iov, f->n, 0, &fr.hdr, sizeof(fr.hdr));
	fr.n_peek = (uint32_t)vl_iov_read(f->iov, f->n, fr.hdr_len, fr.peek,
					  sizeof(fr.peek));
	if (f->zerocopy && (!tx->can_zerocopy || tx->n_free < ZC_SPARE)) {
		copied = *f;
		copied.zerocopy = false;
		fr.f = &copied;
	}
	if (!tx->now_ns)
		tx->now_ns = vl_now_ns();
	remote = find_remote(tx, fr.peek);
	err = remote == VL_VXLAN_FLOOD ? send_flood(tx, io, &fr)
				       : send_to(tx, io, &fr, remote, NO_FLOOD);
	if (vl_unlikely(err))
		vl_io_post(io, err, f->tag);
}

/* Whether the socket takes all of its queue for sure. A message is charged with
 * the memory of its buffer, up to twice its bytes or all of each page that is sent
 * without a copy, and a descriptor. */
static bool has_room(const struct vl_vxlan_tx *tx, const struct socket_queue *q)
{
	uint64_t charge = 0;
	int used;

	if (q->n < ASK_ROOM || ioctl(q->fd, SIOCOUTQ, &used) < 0)
		return false;
	for (const struct message *m = q->head; m; m = m->next)
		charge += vl_max_u32(2 * m->bytes,
				     m->zerocopy ? m->frags * PAGE_BYTES : 0) +
			  2048;
	return (uint64_t)used + charge < (uint64_t)tx->config.sndbuf;
}

/* The last bytes of the message: how it is sent. */
static void finish(struct vl_vxlan_tx *tx, struct message *m)
{
	struct cmsghdr *c = (void *)m->control;
	uint16_t size = (uint16_t)m->segment;

	shut(tx, m);
	m->hdr.msg_iovlen = m->n_pieces;
	if (m->frags > FRAGS_MAX)
		m->zerocopy = false;
	VL_STAT_INC(tx->config.counters->messages);
	VL_STAT_ADD(tx->config.counters->message_frames, m->n_segments);
	if (m->n_segments < 2)
		return;
	memset(m->control, 0, sizeof(m->control));
	c->cmsg_level = IPPROTO_UDP;
	c->cmsg_type = UDP_SEGMENT;
	c->cmsg_len = CMSG_LEN(sizeof(size));
	memcpy(CMSG_DATA(c), &size, sizeof(size));
	m->hdr.msg_control = m->control;
	m->hdr.msg_controllen = sizeof(m->control);
}

static void flush_socket(struct vl_vxlan_tx *tx, struct vl_io *io,
			 struct socket_queue *q, bool express)
{
	bool link = q->n > 1 && !(express && has_room(tx, q));

	vl_io_reserve(io, -(int)q->n);
	while (q->head) {
		struct message *m = q->head;
		unsigned int flags = m->next && link ? VL_IO_LINKED : 0;

		q->head = m->next;
		finish(tx, m);
		if (m->zerocopy)
			flags |= VL_IO_ZEROCOPY;
		vl_io_sendmsg(io, q->file, &m->hdr, flags,
			      tx->tag + (uint64_t)(m - tx->messages));
	}
	q->tail = NULL;
	q->n = 0;
}

void vl_vxlan_tx_flush(struct vl_vxlan_tx *tx, struct vl_io *io)
{
	tx->now_ns = 0;
	/* Probes first: what they send was the first of its batch. */
	for (unsigned int i = tx->n_sockets; i > 0; i--)
		if (tx->socket[i - 1].n)
			flush_socket(tx, io, &tx->socket[i - 1],
				     i <= tx->config.express);
}

/* Whether @res only says that there is no room now. */
static bool is_no_room(int res)
{
	return res == -EAGAIN || res == -ECANCELED || res == -ENOBUFS ||
	       res == -ENOMEM;
}

/* A message was not sent, for a reason that somebody can do something about. */
static void explain(struct vl_vxlan_tx *tx, const struct message *m, int res)
{
	char text[VL_IP_TEXT];

	vl_ip_text(vl_vxlan_fdb_ip(tx->config.fdb, m->remote), text);
	if (res == -EMSGSIZE) {
		learn_too_long(tx, m);
		VL_STAT_ADD(tx->config.counters->drop_mtu, m->n_segments);
		vl_log_limited(&tx->log_limit, VL_LOG_WARNING, text,
			       "a frame of %u bytes does not fit the path to "
			       "this remote and is not fragmented: raise the "
			       "MTU of the underlay or lower the guest's",
			       m->segment - VL_VXLAN_HDR);
	} else if (res == -EIO && m->n_segments > 1) {
		tx->no_segments = true;
		vl_write_once(tx->config.gso_segments, 1);
		vl_log_limited(&tx->log_limit, VL_LOG_WARNING, text,
			       "the route to this remote does not segment "
			       "datagrams (IPsec?): frames and segments are "
			       "sent one by one from now on");
	} else if (!is_no_room(res)) {
		VL_STAT_ADD(tx->config.counters->drop_unreachable,
			    m->n_segments);
		vl_log_limited(&tx->log_limit, VL_LOG_WARNING, text,
			       "this remote cannot be reached (%s): see \"ip "
			       "route get\", and the address and link of the "
			       "underlay",
			       strerror(-res));
	}
}

static void answer_flood(struct vl_vxlan_tx *tx, uint16_t index, int res,
			 vl_frame_event_fn *emit, void *ctx)
{
	struct flood *fl = &tx->flood[index];
	struct vl_io_event ev = { .tag = fl->tag };

	if (is_no_room(res))
		VL_STAT_INC(tx->config.counters->flood_drops);
	else if (res >= 0 || fl->sent < 0)
		fl->sent = res;
	if (--fl->left)
		return;
	/* Never -EAGAIN: what was sent must not be sent again. */
	ev.res = fl->sent;
	tx->free_flood[tx->n_free_flood++] = index;
	emit(ctx, &ev);
}

void vl_vxlan_tx_complete(struct vl_vxlan_tx *tx, const struct vl_io_event *ev,
			  vl_frame_event_fn *emit, void *ctx)
{
	struct message *m = &tx->messages[ev->tag - tx->tag];
	struct vl_io_event frame = *ev;

	if (!ev->released && ev->res < 0) {
		explain(tx, m, ev->res);
		if (ev->res == -EAGAIN && m->way == 0)
			tx->full = m->socket;
	} else if (!ev->released && is_too_long(tx, m)) {
		tx->too_long[m->remote] = 0;
	}
	if (m->flood != NO_FLOOD) {
		answer_flood(tx, m->flood, ev->res, emit, ctx);
	} else {
		for (unsigned int i = 0; i < m->n_frames; i++) {
			frame.tag = m->tag[i];
			emit(ctx, &frame);
		}
	}
	if (!ev->more)
		release(tx, m);
}
