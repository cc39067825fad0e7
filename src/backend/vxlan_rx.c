/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reception, in two ways.
 *
 * Direct. Each read names one request of the receiveq:
 *
 *	VXLAN header        -> front of the read's stash
 *	frame               -> the request's memory behind the virtio header
 *	what does not fit   -> rest of the stash, as far behind as it is in the
 *	                       datagram
 *
 * so a datagram of one frame that the driver takes as it is needs no copy; only
 * the virtio header is written. How many frames a datagram has is known only
 * after the read. From the first one on that has to be cut (vxlan_frame.c), all of
 * the batch are gathered: the middle is copied out of the request's memory into the
 * gap that was left for it, and the stash has the whole datagram. Then the
 * frames are dealt out to the requests in order, by copy.
 *
 * By stash. When such datagrams come the next reads go into the stash alone, few
 * at a time since each may have frames for many requests, until there were none
 * for a while.
 *
 * Frames that are left when all requests have got one stay in the stash and go to
 * the next requests. Nothing is read before they are gone, so order holds. They
 * outlive a stop of the queue.
 *
 * Guest memory is only looked at once, by vl_iov_read() of the headers or of all
 * of it; what a guest writes there meanwhile changes no decision, only its own
 * frame.
 */
#include "backend/vxlan_rx.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/in6.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "backend/vxlan_frame.h"
#include "backend/vxlan_proto.h"
#include "base/barrier.h"
#include "base/clock.h"
#include "base/csum.h"
#include "base/iov.h"
#include "base/log.h"
#include "base/util.h"

/* Since Linux 5.0, newer than Debian 12's <netinet/udp.h>. */
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define REQUESTS    64u
#define READS       32u
/* Datagrams of the other way: each may have more than 40 frames. */
#define STASH_READS 4u
/* Datagrams that need no cutting, in a row, until reads are direct again. */
#define STASH_RUN   64u
/* More than any datagram. */
#define STASH_BYTES 65536u
/* Pieces of all requests together. */
#define PIECES      4096u
/* Of one message (UIO_MAXIOV). */
#define MSG_PIECES  1024u
/* gso_size and frag_size, an int each. */
#define CONTROL     (2 * CMSG_SPACE(sizeof(int)))

_Static_assert(READS <= VL_VXLAN_RX_TAGS, "a tag for each read");

struct request {
	uint64_t tag;
	const struct iovec *iov;
	uint32_t n;
	uint32_t room; /* bytes, with the virtio header */
	bool answered;
};

struct read {
	struct msghdr msg;
	struct sockaddr_storage from;
	char control[CONTROL] __attribute__((aligned(8)));
	struct iovec stash;
	int32_t res;
};

/* A datagram, whole, in the stash of the read with this number. */
struct datagram {
	uint16_t read;
	uint16_t remote;
	uint32_t len, gso_size;
};

struct vl_vxlan_rx {
	struct vl_vxlan_fdb *fdb;
	struct vl_vxlan_format format;
	const char *label;
	int fd, file;
	uint64_t tag;

	struct request request[REQUESTS];
	uint32_t n_requests;
	uint32_t first; /* of those that the reads under way are for */
	struct iovec *pieces;
	uint32_t n_pieces;

	struct read read[READS];
	uint32_t n_reads, n_done; /* under way, and ended of these */
	bool direct;
	struct iovec *msg_pieces;
	uint8_t *stash; /* READS times STASH_BYTES */
	uint32_t stash_left;

	/* Frames that wait: these datagrams, the first one begun. */
	struct datagram waiting[READS];
	uint32_t at, n_waiting;
	bool begun;
	struct vl_vxlan_cut cut;

	/* The sender of the last datagram, and what was learned last. */
	struct vl_ip ip;
	int remote;
	uint8_t mac[ETH_ALEN];
	uint16_t mac_remote;
	uint64_t mac_until;
	uint64_t now_ns;

	struct vl_log_limit strangers, fragments;
};

/* How frames are handed over: by a function, or by the engine. */
struct sink {
	vl_frame_event_fn *emit;
	void *ctx;
	struct vl_io *io;
};

static int set_int(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) < 0 ? -errno
									: 0;
}

/* The filter sees a datagram from its UDP header on. */
static int attach_filter(int fd, uint32_t vni)
{
	const uint32_t all = UINT32_MAX;
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 8),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, VL_VXLAN_I, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 12),
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 8),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, vni, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, all),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog program = {
		.len = VL_ARRAY_SIZE(code),
		.filter = code,
	};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program,
			  sizeof(program)) < 0
		       ? -errno
		       : 0;
}

int vl_vxlan_rx_socket(int fd, uint32_t vni)
{
	int family = AF_INET, err;
	socklen_t len = sizeof(family);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &len) < 0)
		return -errno;
	err = attach_filter(fd, vni);
	if (!err)
		err = family == AF_INET6
			      ? set_int(fd, IPPROTO_IPV6, IPV6_RECVFRAGSIZE, 1)
			      : set_int(fd, IPPROTO_IP, IP_RECVFRAGSIZE, 1);
	if (!err)
		(void)set_int(fd, IPPROTO_UDP, UDP_GRO, 1);
	return err;
}

int vl_vxlan_rx_new(const struct vl_vxlan_rx_config *config,
		    struct vl_vxlan_rx **out)
{
	struct vl_vxlan_rx *rx = calloc(1, sizeof(*rx));

	if (!rx)
		return -ENOMEM;
	rx->fdb = config->fdb;
	rx->format.vni = config->vni;
	rx->format.mtu = config->mtu;
	rx->format.counters = config->counters;
	rx->format.offload.hdr_len = sizeof(struct virtio_net_hdr_mrg_rxbuf);
	rx->label = config->label ? config->label : "vxlan";
	rx->fd = config->fd;
	rx->file = -1;
	rx->remote = -ENOENT;
	rx->pieces = calloc(PIECES, sizeof(rx->pieces[0]));
	rx->msg_pieces =
		calloc(PIECES + (size_t)2 * READS, sizeof(rx->msg_pieces[0]));
	/* Large and rarely touched: calloc leaves it unmapped. */
	rx->stash = calloc(READS, STASH_BYTES);
	if (!rx->pieces || !rx->msg_pieces || !rx->stash) {
		vl_vxlan_rx_free(rx);
		return -ENOMEM;
	}
	*out = rx;
	return 0;
}

void vl_vxlan_rx_free(struct vl_vxlan_rx *rx)
{
	if (!rx)
		return;
	free(rx->pieces);
	free(rx->msg_pieces);
	free(rx->stash);
	free(rx);
}

int vl_vxlan_rx_start(struct vl_vxlan_rx *rx, struct vl_io *io, uint64_t tag)
{
	int file = vl_io_file_add(io, rx->fd);

	if (file < 0)
		return file;
	rx->file = file;
	rx->tag = tag;
	rx->n_requests = 0;
	rx->n_pieces = 0;
	rx->n_reads = 0;
	return 0;
}

void vl_vxlan_rx_stop(struct vl_vxlan_rx *rx, struct vl_io *io)
{
	vl_io_file_remove(io, rx->file);
	rx->file = -1;
}

void vl_vxlan_rx_set_offload(struct vl_vxlan_rx *rx,
			     const struct vl_offload *offload)
{
	rx->format.offload = *offload;
}

static uint8_t *stash_of(struct vl_vxlan_rx *rx, uint32_t read)
{
	return rx->stash + (size_t)read * STASH_BYTES;
}

void vl_vxlan_rx_recv(struct vl_vxlan_rx *rx, struct vl_io *io,
		      const struct vl_frame *frame)
{
	struct iovec *iov = rx->pieces + rx->n_pieces;

	if (rx->n_reads || rx->n_requests == REQUESTS ||
	    frame->n > PIECES - rx->n_pieces) {
		vl_io_post(io, -ECANCELED, frame->tag);
		return;
	}
	memcpy(iov, frame->iov, frame->n * sizeof(*iov));
	rx->n_pieces += frame->n;
	rx->request[rx->n_requests++] = (struct request){
		.tag = frame->tag,
		.iov = iov,
		.n = frame->n,
		.room = (uint32_t)vl_min_u64(vl_iov_len(iov, frame->n),
					     UINT32_MAX),
	};
}

static void answer(struct request *request, const struct sink *sink, int res)
{
	struct vl_io_event ev = { .tag = request->tag, .res = res };

	request->answered = true;
	if (sink->emit)
		sink->emit(sink->ctx, &ev);
	else
		vl_io_post(sink->io, res, request->tag);
}

/* Writes the virtio header and hands over a frame of @len bytes. */
static void hand_over(struct vl_vxlan_rx *rx, struct request *request,
		      const struct virtio_net_hdr *hdr, uint32_t len,
		      const struct sink *sink)
{
	struct virtio_net_hdr_mrg_rxbuf full = { .hdr = *hdr };
	uint32_t hdr_len = rx->format.offload.hdr_len;

	(void)vl_iov_write(request->iov, request->n, 0, &full, hdr_len);
	answer(request, sink, (int)(hdr_len + len));
}

static void learn(struct vl_vxlan_rx *rx, const uint8_t *mac, uint16_t remote)
{
	struct vl_tunnel_counters *c = rx->format.counters;

	if (vl_likely(remote == rx->mac_remote && rx->now_ns < rx->mac_until &&
		      !memcmp(mac, rx->mac, ETH_ALEN)))
		return;
	memcpy(rx->mac, mac, ETH_ALEN);
	rx->mac_remote = remote;
	/* Often enough that it does not look old. */
	rx->mac_until = rx->now_ns + VL_NS_PER_SEC / 10;
	switch (vl_vxlan_fdb_learn(rx->fdb, mac, remote, rx->now_ns)) {
	case VL_VXLAN_KNEW:
		break;
	case VL_VXLAN_LEARNED:
		VL_STAT_INC(c->learned);
		break;
	case VL_VXLAN_MOVED:
		VL_STAT_INC(c->moved);
		break;
	}
}

/* The next frame of those that wait; false: there is none. */
static bool next_piece(struct vl_vxlan_rx *rx, struct vl_vxlan_piece *piece)
{
	while (rx->at < rx->n_waiting) {
		const struct datagram *d = &rx->waiting[rx->at];

		if (!rx->begun)
			vl_vxlan_cut_start(&rx->format, stash_of(rx, d->read),
					   d->len, d->gso_size, &rx->cut);
		rx->begun = true;
		if (vl_vxlan_cut_next(&rx->format, &rx->cut, piece)) {
			if (rx->cut.train || rx->cut.segments)
				rx->stash_left = STASH_RUN;
			learn(rx, piece->mac, d->remote);
			return true;
		}
		rx->begun = false;
		rx->at++;
	}
	rx->n_waiting = 0;
	rx->at = 0;
	return false;
}

/* Deals the frames that wait out to the requests from number @from on. */
static void deal(struct vl_vxlan_rx *rx, uint32_t from, const struct sink *sink)
{
	uint32_t hdr_len = rx->format.offload.hdr_len;
	struct vl_vxlan_piece p;

	for (uint32_t i = from; i < rx->n_requests; i++) {
		struct request *q = &rx->request[i];

		if (q->answered)
			continue;
		if (!next_piece(rx, &p))
			return;
		(void)vl_iov_write(q->iov, q->n, hdr_len, p.head, p.head_len);
		if (p.rest_len)
			(void)vl_iov_write(q->iov, q->n, hdr_len + p.head_len,
					   p.rest, p.rest_len);
		hand_over(rx, q, &p.hdr, p.head_len + p.rest_len, sink);
	}
}

/* The list of read @r: in three parts if @q is given. Returns its entries, or
 * -errno when the request cannot be read into. */
static int make_list(struct vl_vxlan_rx *rx, uint32_t r,
		     const struct request *q, struct iovec *out)
{
	uint32_t hdr_len = rx->format.offload.hdr_len;
	uint8_t *stash = stash_of(rx, r);
	uint32_t body, gap;
	int n;

	if (q->room <= hdr_len)
		return -EINVAL;
	body = vl_min_u32(q->room - hdr_len, STASH_BYTES - VL_VXLAN_HDR);
	gap = VL_VXLAN_HDR + body;
	out[0] = (struct iovec){ stash, VL_VXLAN_HDR };
	n = vl_iov_slice(q->iov, q->n, hdr_len, body, out + 1, MSG_PIECES - 2);
	if (n < 0)
		return n;
	n++;
	if (gap < STASH_BYTES)
		out[n++] = (struct iovec){ stash + gap, STASH_BYTES - gap };
	return n;
}

static void queue_read(struct vl_vxlan_rx *rx, struct vl_io *io, uint32_t r,
		       struct iovec *iov, uint32_t n)
{
	struct read *read = &rx->read[r];

	read->msg = (struct msghdr){
		.msg_name = &read->from,
		.msg_namelen = sizeof(read->from),
		.msg_iov = iov,
		.msg_iovlen = n,
		.msg_control = read->control,
		.msg_controllen = sizeof(read->control),
	};
	vl_io_recvmsg(io, rx->file, &read->msg, rx->tag + r);
}

/* Direct reads for the requests from rx->first on. Returns false, with nothing
 * queued, when a request is too odd for it. */
static bool queue_direct(struct vl_vxlan_rx *rx, struct vl_io *io)
{
	uint32_t n = vl_min_u32(READS, rx->n_requests - rx->first);
	uint32_t used = 0, start[READS + 1];

	for (uint32_t r = 0; r < n; r++) {
		int pieces = make_list(rx, r, &rx->request[rx->first + r],
				       rx->msg_pieces + used);

		if (pieces < 0)
			return false;
		start[r] = used;
		used += (uint32_t)pieces;
	}
	start[n] = used;
	for (uint32_t r = 0; r < n; r++)
		queue_read(rx, io, r, rx->msg_pieces + start[r],
			   start[r + 1] - start[r]);
	rx->n_reads = n;
	return true;
}

static void queue_stash(struct vl_vxlan_rx *rx, struct vl_io *io)
{
	uint32_t n = vl_min_u32(STASH_READS, rx->n_requests - rx->first);

	for (uint32_t r = 0; r < n; r++) {
		struct iovec *iov = &rx->read[r].stash;

		*iov = (struct iovec){ stash_of(rx, r), STASH_BYTES };
		queue_read(rx, io, r, iov, 1);
	}
	rx->n_reads = n;
}

static void forget_requests(struct vl_vxlan_rx *rx)
{
	rx->n_requests = 0;
	rx->n_pieces = 0;
}

void vl_vxlan_rx_flush(struct vl_vxlan_rx *rx, struct vl_io *io)
{
	const struct sink sink = { .io = io };

	if (!rx->n_requests || rx->n_reads)
		return;
	rx->first = 0;
	if (rx->n_waiting) {
		rx->now_ns = vl_now_ns();
		deal(rx, 0, &sink);
		while (rx->first < rx->n_requests &&
		       rx->request[rx->first].answered)
			rx->first++;
	}
	if (rx->first == rx->n_requests) {
		forget_requests(rx);
		return;
	}
	rx->n_done = 0;
	rx->direct = !rx->stash_left && queue_direct(rx, io);
	if (!rx->direct)
		queue_stash(rx, io);
}

/* The sender's number, or a negative one for a stranger. */
static int find_remote(struct vl_vxlan_rx *rx, const struct read *read)
{
	struct vl_ip ip;

	vl_ip_from_sockaddr(&read->from, &ip);
	if (vl_unlikely(rx->remote < 0 || !vl_ip_equal(&ip, &rx->ip))) {
		rx->ip = ip;
		rx->remote = vl_vxlan_fdb_find(rx->fdb, &ip);
	}
	if (vl_unlikely(rx->remote < 0 ||
			!vl_vxlan_fdb_known(rx->fdb, (unsigned int)rx->remote)))
		return -ENOENT;
	return rx->remote;
}

static void report_stranger(struct vl_vxlan_rx *rx)
{
	char text[VL_IP_TEXT];

	vl_log_limited(&rx->strangers, VL_LOG_WARNING, rx->label,
		       "datagrams from %s are dropped, since it is no remote: "
		       "give remote=%s if it is to be one",
		       vl_ip_text(&rx->ip, text), text);
}

static void report_fragment(struct vl_vxlan_rx *rx, int size)
{
	char text[VL_IP_TEXT];

	vl_log_limited(&rx->fragments, VL_LOG_WARNING, rx->label,
		       "datagrams from %s were fragmented (%d bytes) and are "
		       "dropped: set the MTU of its end of the tunnel to %u",
		       vl_ip_text(&rx->ip, text), size, rx->format.mtu);
}

/* What the kernel says of the datagram of @read: fills in @d. Returns false when
 * it is dropped. */
static bool accept_datagram(struct vl_vxlan_rx *rx, struct read *read,
			    struct datagram *d)
{
	struct vl_tunnel_counters *c = rx->format.counters;
	int gso_size = 0, frag_size = 0, remote;

	for (struct cmsghdr *m = CMSG_FIRSTHDR(&read->msg); m;
	     m = CMSG_NXTHDR(&read->msg, m)) {
		if (m->cmsg_len < CMSG_LEN(sizeof(int)))
			continue;
		if (m->cmsg_level == IPPROTO_UDP && m->cmsg_type == UDP_GRO)
			memcpy(&gso_size, CMSG_DATA(m), sizeof(int));
		else if ((m->cmsg_level == IPPROTO_IP &&
			  m->cmsg_type == IP_RECVFRAGSIZE) ||
			 (m->cmsg_level == IPPROTO_IPV6 &&
			  m->cmsg_type == IPV6_RECVFRAGSIZE))
			memcpy(&frag_size, CMSG_DATA(m), sizeof(int));
	}
	remote = find_remote(rx, read);
	if (vl_unlikely(remote < 0)) {
		VL_STAT_INC(c->drop_peer);
		report_stranger(rx);
		return false;
	}
	if (vl_unlikely(frag_size)) {
		VL_STAT_INC(c->drop_fragment);
		report_fragment(rx, frag_size);
		return false;
	}
	if (vl_unlikely(read->msg.msg_flags & MSG_TRUNC)) {
		VL_STAT_INC(c->drop_truncated);
		return false;
	}
	if (vl_unlikely(read->res < (int)VL_VXLAN_LEAST)) {
		VL_STAT_INC(c->drop_short);
		return false;
	}
	*d = (struct datagram){
		.remote = (uint16_t)remote,
		.len = (uint32_t)read->res,
		.gso_size = gso_size > 0 ? (uint32_t)gso_size : 0,
	};
	return true;
}

static void wait_in_stash(struct vl_vxlan_rx *rx, uint32_t r,
			  const struct datagram *d)
{
	struct datagram *w = &rx->waiting[rx->n_waiting++];

	*w = *d;
	w->read = (uint16_t)r;
}

/* Fills the gap that a direct read left in its stash. */
static void gather(struct vl_vxlan_rx *rx, uint32_t r, const struct request *q,
		   const struct datagram *d)
{
	uint32_t hdr_len = rx->format.offload.hdr_len;

	(void)vl_iov_read(q->iov, q->n, hdr_len, stash_of(rx, r) + VL_VXLAN_HDR,
			  d->len - VL_VXLAN_HDR);
	wait_in_stash(rx, r, d);
}

/* Completes the checksum of the frame of request @q. */
static void complete_csum(struct vl_vxlan_rx *rx, const struct request *q,
			  struct vl_vxlan_info *info)
{
	uint32_t at = rx->format.offload.hdr_len;
	uint64_t sum = vl_csum_iov(q->iov, q->n, at + info->l4, info->l4_len);
	uint16_t csum = vl_vxlan_csum(sum);

	(void)vl_iov_write(q->iov, q->n, at + info->csum_at, &csum,
			   sizeof(csum));
	VL_STAT_INC(rx->format.counters->csum_completed);
	info->hdr = (struct virtio_net_hdr){ 0 };
}

/* Hands datagram @d of read @r over where it is. Returns false when it has to be
 * gathered first. */
static bool hand_over_direct(struct vl_vxlan_rx *rx, uint32_t r,
			     struct request *q, const struct datagram *d,
			     const struct sink *sink)
{
	uint32_t hdr_len = rx->format.offload.hdr_len;
	uint32_t len = d->len - VL_VXLAN_HDR;
	uint8_t head[VL_VXLAN_PEEK];
	struct vl_vxlan_info info;

	if (len > q->room - hdr_len ||
	    !vl_vxlan_is(stash_of(rx, r), rx->format.vni))
		return false;
	(void)vl_iov_read(q->iov, q->n, hdr_len, head,
			  vl_min_u32(len, sizeof(head)));
	vl_vxlan_inspect(head, len, d->gso_size, rx->format.mtu, &info);
	if (vl_vxlan_must_cut(&rx->format, d->len, d->gso_size, &info))
		return false;
	if (info.hdr.gso_type) {
		VL_STAT_INC(rx->format.counters->superframes);
		(void)vl_iov_write(q->iov, q->n, hdr_len + info.csum_at,
				   &info.partial, sizeof(info.partial));
	}
	if (info.hdr.flags && !rx->format.offload.csum)
		complete_csum(rx, q, &info);
	learn(rx, head + ETH_ALEN, d->remote);
	hand_over(rx, q, &info.hdr, len, sink);
	return true;
}

/* An error that tells of the request, or of the kernel; others say only that
 * nothing was read. */
static bool is_error(int res)
{
	return res < 0 && res != -EAGAIN && res != -ECANCELED &&
	       res != -EBUSY && res != -EINTR;
}

/* All reads ended: hands over or keeps what they found. Returns the first error,
 * if it is not one of a request, or 0. */
static int take_datagrams(struct vl_vxlan_rx *rx, const struct sink *sink)
{
	bool gathering = !rx->direct;
	int error = 0;

	for (uint32_t r = 0; r < rx->n_reads; r++) {
		struct request *q = &rx->request[rx->first + r];
		struct read *read = &rx->read[r];
		struct datagram d;

		if (read->res == -EFAULT)
			answer(q, sink, read->res);
		else if (is_error(read->res))
			error = error ? error : read->res;
		if (read->res < 0 || !accept_datagram(rx, read, &d))
			continue;
		if (!rx->direct) {
			rx->stash_left -= rx->stash_left > 0;
			wait_in_stash(rx, r, &d);
			continue;
		}
		if (!gathering)
			gathering = !hand_over_direct(rx, r, q, &d, sink);
		if (gathering)
			gather(rx, r, q, &d);
	}
	return error;
}

/*
 * Answers the requests that got no frame: behind the last that did, one is told
 * of an @error or that there is nothing more.
 */
static void answer_rest(struct vl_vxlan_rx *rx, bool empty, int error,
			const struct sink *sink)
{
	uint32_t last = rx->n_requests;

	while (last > rx->first && !rx->request[last - 1].answered)
		last--;
	for (uint32_t n = 0; n < rx->n_requests - rx->first; n++) {
		/* Those behind first, then what was left out in between. */
		uint32_t i = last + n;
		struct request *q;
		int res = -ECANCELED;

		if (i >= rx->n_requests)
			i = rx->first + i - rx->n_requests;
		q = &rx->request[i];
		if (q->answered)
			continue;
		if (error) {
			res = error;
			error = 0;
			/* Or the same would be tried again at once. */
			empty = true;
		} else if (empty) {
			res = -EAGAIN;
			empty = false;
		}
		answer(q, sink, res);
	}
}

void vl_vxlan_rx_complete(struct vl_vxlan_rx *rx, struct vl_io *io,
			  const struct vl_io_event *ev, vl_frame_event_fn *emit,
			  void *ctx)
{
	const struct sink sink = { .emit = emit, .ctx = ctx, .io = io };
	uint64_t r = ev->tag - rx->tag;
	bool empty = false;
	int error;

	if (r >= rx->n_reads)
		return;
	rx->read[r].res = ev->res;
	if (++rx->n_done < rx->n_reads)
		return;
	for (uint32_t i = 0; i < rx->n_reads; i++)
		empty |= rx->read[i].res == -EAGAIN;
	rx->now_ns = vl_now_ns();
	error = take_datagrams(rx, &sink);
	deal(rx, rx->first, &sink);
	answer_rest(rx, empty, error, &sink);
	rx->n_reads = 0;
	forget_requests(rx);
}
