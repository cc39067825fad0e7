/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A vhost-user session (QEMU, docs/interop/vhost-user.rst).
 *
 * One table has a row per request: its handler, what payload and how many
 * descriptors it may have, which ring it is about, what must stand still
 * meanwhile and whether it has an answer of its own. handle() does everything
 * that rows have in common, always in this order:
 *
 *   check size, descriptors and ring index; stop what must stand still; run
 *   the handler; close descriptors nobody took; let vl_vhost_evaluate() start
 *   and stop rings; answer.
 *
 * The answer comes last, so whatever a front-end asked for is true when it
 * reads the answer: after GET_VRING_BASE or a disable nothing touches that
 * ring any more.
 *
 * A request that is refused ends the session, unless the front-end asked for
 * an acknowledgement (REPLY_ACK): it gets a non-zero one then and decides
 * itself. The state stays as it was before.
 *
 * Reset (RESET_DEVICE, status 0) forgets what the driver set up. What the two
 * ends of the connection agreed upon stays: protocol features, memory, and
 * the descriptors for call and err.
 */
#include "vhost/vhost_user.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "vhost/session.h"
#include "vhost/vhost_msg.h"

#define BIT(n)                  (1ULL << (n))
#define F_PROTOCOL              BIT(VHOST_USER_F_PROTOCOL_FEATURES)
#define MESSAGES_PER_INPUT      16
#define BACKEND_READS_PER_INPUT 16
/* The index of a ring in KICK, CALL and ERR messages has 8 bits. */
#define VRINGS_MAX              256u

#define PROTOCOL_FEATURES                                                      \
	(BIT(VHOST_USER_PROTOCOL_F_MQ) |                                       \
	 BIT(VHOST_USER_PROTOCOL_F_REPLY_ACK) |                                \
	 BIT(VHOST_USER_PROTOCOL_F_NET_MTU) |                                  \
	 BIT(VHOST_USER_PROTOCOL_F_BACKEND_REQ) |                              \
	 BIT(VHOST_USER_PROTOCOL_F_CONFIG) |                                   \
	 BIT(VHOST_USER_PROTOCOL_F_RESET_DEVICE) |                             \
	 BIT(VHOST_USER_PROTOCOL_F_CONFIGURE_MEM_SLOTS) |                      \
	 BIT(VHOST_USER_PROTOCOL_F_STATUS))

uint64_t vl_vhost_protocol_features(void)
{
	return PROTOCOL_FEATURES;
}

int vl_vhost_refuse(struct vl_vhost *vu, int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(vu->reason, sizeof(vu->reason), fmt, args);
	va_end(args);
	return err;
}

/* Makes the payload of the answer: one 64-bit value. */
static int answer_u64(struct vl_vhost_msg *msg, uint64_t value)
{
	msg->payload.u64 = value;
	msg->header.size = sizeof(msg->payload.u64);
	return 0;
}

static int get_features(struct vl_vhost *vu, struct vl_vhost_msg *msg,
			struct vl_vhost_ring *ring)
{
	(void)ring;
	return answer_u64(msg, vu->ops->features(vu->dev) | F_PROTOCOL);
}

static int set_features(struct vl_vhost *vu, struct vl_vhost_msg *msg,
			struct vl_vhost_ring *ring)
{
	uint64_t wanted = msg->payload.u64;
	uint64_t unknown = wanted & ~(vu->ops->features(vu->dev) | F_PROTOCOL);
	int err;

	(void)ring;
	if (unknown)
		return vl_vhost_refuse(vu, -EINVAL,
				       "bits 0x%llx were never offered",
				       (unsigned long long)unknown);
	/* Front-ends repeat it while rings run: only a change stops them. */
	if (!vu->features_set || (wanted ^ vu->features) & ~F_PROTOCOL) {
		vl_vhost_stop_all(vu);
		err = vu->ops->set_features(vu->dev, wanted & ~F_PROTOCOL);
		if (err)
			return vl_vhost_refuse(
				vu, err, "the device cannot take 0x%llx: %s",
				(unsigned long long)wanted,
				strerrordesc_np(-err));
	}
	vu->features = wanted;
	vu->features_set = true;
	return 0;
}

static int get_protocol_features(struct vl_vhost *vu, struct vl_vhost_msg *msg,
				 struct vl_vhost_ring *ring)
{
	(void)vu;
	(void)ring;
	return answer_u64(msg, PROTOCOL_FEATURES);
}

static int set_protocol_features(struct vl_vhost *vu, struct vl_vhost_msg *msg,
				 struct vl_vhost_ring *ring)
{
	uint64_t unknown = msg->payload.u64 & ~PROTOCOL_FEATURES;

	(void)ring;
	if (unknown)
		return vl_vhost_refuse(vu, -EINVAL,
				       "bits 0x%llx were never offered",
				       (unsigned long long)unknown);
	vu->protocol_features = msg->payload.u64;
	return 0;
}

static int get_queue_num(struct vl_vhost *vu, struct vl_vhost_msg *msg,
			 struct vl_vhost_ring *ring)
{
	(void)ring;
	return answer_u64(msg, vu->config.queue_pairs);
}

/* SET_OWNER has no meaning with one front-end; RESET_OWNER is obsolete. */
static int no_effect(struct vl_vhost *vu, struct vl_vhost_msg *msg,
		     struct vl_vhost_ring *ring)
{
	(void)vu;
	(void)msg;
	(void)ring;
	return 0;
}

/* Dirty pages cannot be logged: a migration must not begin. */
static int set_log(struct vl_vhost *vu, struct vl_vhost_msg *msg,
		   struct vl_vhost_ring *ring)
{
	(void)msg;
	(void)ring;
	return vl_vhost_refuse(vu, -EOPNOTSUPP,
			       "the dirty log was never offered; live "
			       "migration is not possible");
}

/* Makes @mem, whose reference is taken, the memory of the session. */
static int use_mem(struct vl_vhost *vu, struct vl_guest_mem *mem)
{
	int err = vu->ops->set_mem(vu->dev, mem);

	if (err) {
		vl_guest_mem_put(mem);
		return vl_vhost_refuse(vu, err,
				       "the device cannot use the memory: %s",
				       strerrordesc_np(-err));
	}
	vl_guest_mem_put(vu->mem);
	vu->mem = mem;
	return 0;
}

static struct vl_mem_region region_of(const struct vl_msg_region *r, int fd)
{
	return (struct vl_mem_region){
		.gpa = r->gpa,
		.size = r->size,
		.uva = r->uva,
		.mmap_offset = r->mmap_offset,
		.fd = fd,
	};
}

static int set_mem_table(struct vl_vhost *vu, struct vl_vhost_msg *msg,
			 struct vl_vhost_ring *ring)
{
	const struct vl_msg_mem *table = &msg->payload.mem;
	struct vl_mem_region region[VL_MSG_REGIONS_MAX];
	struct vl_guest_mem *mem;
	size_t size;
	int err;

	(void)ring;
	if (table->n == 0)
		return vl_vhost_refuse(vu, -EINVAL,
				       "no region; guest memory has to be "
				       "shared (QEMU: memory-backend-memfd,"
				       "share=on)");
	size = offsetof(struct vl_msg_mem, region) +
	       (size_t)table->n * sizeof(table->region[0]);
	if (table->n > VL_MSG_REGIONS_MAX || table->n != msg->n_fds ||
	    msg->header.size < size)
		return vl_vhost_refuse(vu, -EINVAL,
				       "%u regions do not match %u descriptors "
				       "in a payload of %u bytes",
				       table->n, msg->n_fds, msg->header.size);
	for (uint32_t i = 0; i < table->n; i++)
		region[i] = region_of(&table->region[i], msg->fd[i]);
	err = vl_guest_mem_new(region, table->n, &mem);
	if (err)
		return vl_vhost_refuse(vu, err,
				       "a region is empty, overlaps another, "
				       "is longer than its file or cannot be "
				       "mapped: %s",
				       strerrordesc_np(-err));
	return use_mem(vu, mem);
}

static int get_max_mem_slots(struct vl_vhost *vu, struct vl_vhost_msg *msg,
			     struct vl_vhost_ring *ring)
{
	(void)vu;
	(void)ring;
	return answer_u64(msg, VL_GUEST_MEM_REGIONS_MAX);
}

static int add_mem_reg(struct vl_vhost *vu, struct vl_vhost_msg *msg,
		       struct vl_vhost_ring *ring)
{
	const struct vl_msg_region *r = &msg->payload.mem_reg.region;
	const struct vl_mem_region region = region_of(r, msg->fd[0]);
	struct vl_guest_mem *mem;
	int err;

	(void)ring;
	err = vl_guest_mem_add(vu->mem, &region, &mem);
	if (err)
		return vl_vhost_refuse(
			vu, err, "region of 0x%llx bytes at 0x%llx: %s",
			(unsigned long long)r->size, (unsigned long long)r->gpa,
			strerrordesc_np(-err));
	return use_mem(vu, mem);
}

static int rem_mem_reg(struct vl_vhost *vu, struct vl_vhost_msg *msg,
		       struct vl_vhost_ring *ring)
{
	const struct vl_msg_region *r = &msg->payload.mem_reg.region;
	const struct vl_mem_region region = region_of(r, -1);
	struct vl_guest_mem *mem;
	int err;

	(void)ring;
	err = vl_guest_mem_remove(vu->mem, &region, &mem);
	if (err)
		return vl_vhost_refuse(vu, err,
				       "no region of 0x%llx bytes at 0x%llx "
				       "was added",
				       (unsigned long long)r->size,
				       (unsigned long long)r->gpa);
	return use_mem(vu, mem);
}

static int set_mtu(struct vl_vhost *vu, struct vl_vhost_msg *msg,
		   struct vl_vhost_ring *ring)
{
	int err = vu->ops->set_mtu(vu->dev, msg->payload.u64);

	(void)ring;
	if (!err)
		return 0;
	return vl_vhost_refuse(vu, VL_REFUSED, "MTU %llu: %s",
			       (unsigned long long)msg->payload.u64,
			       strerrordesc_np(-err));
}

static void close_backend(struct vl_vhost *vu)
{
	if (vu->backend_fd >= 0)
		close(vu->backend_fd);
	vu->backend_fd = -1;
}

static int set_backend_req_fd(struct vl_vhost *vu, struct vl_vhost_msg *msg,
			      struct vl_vhost_ring *ring)
{
	struct stat st;

	(void)ring;
	if (fstat(msg->fd[0], &st) < 0 || !S_ISSOCK(st.st_mode))
		return vl_vhost_refuse(vu, -EINVAL,
				       "the descriptor is no socket");
	close_backend(vu);
	vu->backend_fd = vl_msg_take_fd(msg, 0);
	return 0;
}

/* What cannot be read is answered with an empty payload, as specified. */
static int get_config(struct vl_vhost *vu, struct vl_vhost_msg *msg,
		      struct vl_vhost_ring *ring)
{
	struct vl_msg_config *c = &msg->payload.config;

	(void)ring;
	if (c->size > VL_MSG_CONFIG_MAX ||
	    vu->ops->get_config(vu->dev, c->offset, c->data, c->size))
		msg->header.size = 0;
	else
		msg->header.size = VL_MSG_CONFIG_HEADER_SIZE + c->size;
	return 0;
}

static int set_config(struct vl_vhost *vu, struct vl_vhost_msg *msg,
		      struct vl_vhost_ring *ring)
{
	(void)msg;
	(void)ring;
	return vl_vhost_refuse(vu, VL_REFUSED,
			       "the configuration space is read-only");
}

static void reset(struct vl_vhost *vu)
{
	vl_vhost_stop_all(vu);
	for (unsigned int i = 0; i < vu->config.vrings; i++)
		vl_vhost_ring_reset(&vu->ring[i]);
	vu->features = 0;
	vu->features_set = false;
	vu->status = 0;
	vu->ops->reset(vu->dev);
}

static int reset_device(struct vl_vhost *vu, struct vl_vhost_msg *msg,
			struct vl_vhost_ring *ring)
{
	(void)msg;
	(void)ring;
	reset(vu);
	return 0;
}

static int set_status(struct vl_vhost *vu, struct vl_vhost_msg *msg,
		      struct vl_vhost_ring *ring)
{
	(void)ring;
	if (msg->payload.u64 == 0)
		reset(vu);
	vu->status = msg->payload.u64;
	return 0;
}

static int get_status(struct vl_vhost *vu, struct vl_vhost_msg *msg,
		      struct vl_vhost_ring *ring)
{
	(void)ring;
	return answer_u64(msg, vu->status);
}

/* Where a request names its ring. */
enum ring_field {
	RING_NONE,
	RING_U32, /* first field of the payload */
	RING_U8,  /* low byte of the payload's u64 */
};

/* What stands still while the handler runs. */
enum stops {
	STOP_NONE,
	STOP_RING,
	STOP_ALL,
};

struct row {
	const char *name;
	int (*handle)(struct vl_vhost *vu, struct vl_vhost_msg *msg,
		      struct vl_vhost_ring *ring);
	uint32_t size_min, size_max;
	uint32_t fds_min, fds_max;
	enum ring_field ring;
	enum stops stops;
	bool answers; /* the handler leaves the answer in the message */
};

#define SIZE(n)       .size_min = (n), .size_max = (n)
#define SIZES(lo, hi) .size_min = (lo), .size_max = (hi)
#define FDS(lo, hi)   .fds_min = (lo), .fds_max = (hi)
#define ABOUT_U32     .ring = RING_U32, SIZE(sizeof(struct vl_msg_vring_state))
#define ABOUT_U8      .ring = RING_U8, SIZE(8), FDS(0, 1)

/* clang-format off */
static const struct row table[] = {
	[VHOST_USER_GET_FEATURES] = {
		"GET_FEATURES", get_features, SIZE(0), .answers = true },
	[VHOST_USER_SET_FEATURES] = {
		"SET_FEATURES", set_features, SIZE(8) },
	[VHOST_USER_SET_OWNER] = {
		"SET_OWNER", no_effect, SIZE(0) },
	[VHOST_USER_RESET_OWNER] = {
		"RESET_OWNER", no_effect, SIZE(0) },
	[VHOST_USER_SET_MEM_TABLE] = {
		"SET_MEM_TABLE", set_mem_table,
		SIZES(8, sizeof(struct vl_msg_mem)),
		FDS(0, VL_MSG_REGIONS_MAX), .stops = STOP_ALL },
	[VHOST_USER_SET_LOG_BASE] = {
		"SET_LOG_BASE", set_log, SIZES(8, 16), FDS(0, 1) },
	[VHOST_USER_SET_LOG_FD] = {
		"SET_LOG_FD", set_log, SIZES(0, 8), FDS(0, 1) },
	[VHOST_USER_SET_VRING_NUM] = {
		"SET_VRING_NUM", vl_vhost_set_vring_num,
		ABOUT_U32, .stops = STOP_RING },
	[VHOST_USER_SET_VRING_ADDR] = {
		"SET_VRING_ADDR", vl_vhost_set_vring_addr, .ring = RING_U32,
		SIZE(sizeof(struct vl_msg_vring_addr)), .stops = STOP_RING },
	[VHOST_USER_SET_VRING_BASE] = {
		"SET_VRING_BASE", vl_vhost_set_vring_base,
		ABOUT_U32, .stops = STOP_RING },
	[VHOST_USER_GET_VRING_BASE] = {
		"GET_VRING_BASE", vl_vhost_get_vring_base,
		ABOUT_U32, .stops = STOP_RING, .answers = true },
	[VHOST_USER_SET_VRING_KICK] = {
		"SET_VRING_KICK", vl_vhost_set_vring_kick,
		ABOUT_U8, .stops = STOP_RING },
	[VHOST_USER_SET_VRING_CALL] = {
		"SET_VRING_CALL", vl_vhost_set_vring_call, ABOUT_U8 },
	[VHOST_USER_SET_VRING_ERR] = {
		"SET_VRING_ERR", vl_vhost_set_vring_err, ABOUT_U8 },
	[VHOST_USER_GET_PROTOCOL_FEATURES] = {
		"GET_PROTOCOL_FEATURES", get_protocol_features,
		SIZE(0), .answers = true },
	[VHOST_USER_SET_PROTOCOL_FEATURES] = {
		"SET_PROTOCOL_FEATURES", set_protocol_features, SIZE(8) },
	[VHOST_USER_GET_QUEUE_NUM] = {
		"GET_QUEUE_NUM", get_queue_num, SIZE(0), .answers = true },
	[VHOST_USER_SET_VRING_ENABLE] = {
		"SET_VRING_ENABLE", vl_vhost_set_vring_enable, ABOUT_U32 },
	[VHOST_USER_NET_SET_MTU] = {
		"NET_SET_MTU", set_mtu, SIZE(8) },
	[VHOST_USER_SET_BACKEND_REQ_FD] = {
		"SET_BACKEND_REQ_FD", set_backend_req_fd, SIZE(0), FDS(1, 1) },
	[VHOST_USER_GET_CONFIG] = {
		"GET_CONFIG", get_config,
		SIZES(VL_MSG_CONFIG_HEADER_SIZE, VL_MSG_PAYLOAD_MAX),
		.answers = true },
	[VHOST_USER_SET_CONFIG] = {
		"SET_CONFIG", set_config,
		SIZES(VL_MSG_CONFIG_HEADER_SIZE, VL_MSG_PAYLOAD_MAX) },
	[VHOST_USER_RESET_DEVICE] = {
		"RESET_DEVICE", reset_device, SIZE(0) },
	[VHOST_USER_GET_MAX_MEM_SLOTS] = {
		"GET_MAX_MEM_SLOTS", get_max_mem_slots,
		SIZE(0), .answers = true },
	[VHOST_USER_ADD_MEM_REG] = {
		"ADD_MEM_REG", add_mem_reg,
		SIZE(sizeof(struct vl_msg_mem_reg)), FDS(1, 1),
		.stops = STOP_ALL },
	[VHOST_USER_REM_MEM_REG] = {
		"REM_MEM_REG", rem_mem_reg,
		SIZE(sizeof(struct vl_msg_mem_reg)), FDS(0, 1),
		.stops = STOP_ALL },
	[VHOST_USER_SET_STATUS] = {
		"SET_STATUS", set_status, SIZE(8) },
	[VHOST_USER_GET_STATUS] = {
		"GET_STATUS", get_status, SIZE(0), .answers = true },
};
/* clang-format on */

static const struct row *find_row(uint32_t request)
{
	if (request >= VL_ARRAY_SIZE(table) || !table[request].handle)
		return NULL;
	return &table[request];
}

/* Checks what every request has; finds the ring that it is about, if any. */
static int check(struct vl_vhost *vu, const struct row *row,
		 const struct vl_vhost_msg *msg, struct vl_vhost_ring **ring)
{
	uint32_t size = msg->header.size, index = 0;

	*ring = NULL;
	if (size < row->size_min || size > row->size_max)
		return vl_vhost_refuse(vu, -EPROTO,
				       "payload of %u bytes instead of %u to "
				       "%u",
				       size, row->size_min, row->size_max);
	if (msg->n_fds < row->fds_min || msg->n_fds > row->fds_max)
		return vl_vhost_refuse(vu, -EPROTO,
				       "%u file descriptors instead of %u to "
				       "%u",
				       msg->n_fds, row->fds_min, row->fds_max);
	if (row->ring == RING_NONE)
		return 0;
	if (row->ring == RING_U32)
		index = msg->payload.state.index;
	else
		index = (uint32_t)msg->payload.u64 & VL_MSG_VRING_INDEX_MASK;
	if (index >= vu->config.vrings)
		return vl_vhost_refuse(vu, -EINVAL,
				       "ring %u of %u; give virtlane as many "
				       "queue pairs as the front-end uses",
				       index, vu->config.vrings);
	*ring = &vu->ring[index];
	return 0;
}

static int run(struct vl_vhost *vu, const struct row *row,
	       struct vl_vhost_msg *msg)
{
	struct vl_vhost_ring *ring;
	int err = check(vu, row, msg, &ring);

	if (err)
		return err;
	if (row->stops == STOP_ALL)
		vl_vhost_stop_all(vu);
	else if (row->stops == STOP_RING)
		vl_vhost_ring_stop(vu, ring);
	return row->handle(vu, msg, ring);
}

static int reply(struct vl_vhost *vu, struct vl_vhost_msg *msg)
{
	int err;

	msg->header.flags = VL_MSG_VERSION | VL_MSG_REPLY;
	err = vl_msg_send(vu->sock, &msg->header, &msg->payload);
	if (err == -ENOBUFS)
		vl_log_limited(&vu->limit, VL_LOG_ERROR, "vhost",
			       "the front-end does not read its replies; "
			       "ending the session");
	return err == -EPIPE ? -ECONNRESET : err;
}

/* Sends the answer that is due, if one is; decides whether @ret is the end. */
static int answer(struct vl_vhost *vu, const struct row *row,
		  struct vl_vhost_msg *msg, int ret)
{
	const char *name = row ? row->name : "request";
	bool acked =
		!(row && row->answers) &&
		msg->header.flags & VL_MSG_NEED_REPLY &&
		vu->protocol_features & BIT(VHOST_USER_PROTOCOL_F_REPLY_ACK);

	if (ret < 0)
		vu->protocol_errors++;
	if (ret)
		vl_log_limited(&vu->limit,
			       ret < 0 ? VL_LOG_ERROR : VL_LOG_WARNING, "vhost",
			       "%s: %s; %s", name, vu->reason,
			       acked     ? "told the front-end"
			       : ret < 0 ? "ending the session"
					 : "ignored");
	if (acked) {
		answer_u64(msg, ret != 0);
		return reply(vu, msg);
	}
	if (ret < 0)
		return ret;
	return row && row->answers ? reply(vu, msg) : 0;
}

static int handle(struct vl_vhost *vu, struct vl_vhost_msg *msg)
{
	const struct row *row = find_row(msg->header.request);
	int ret;

	vu->messages++;
	if (row)
		ret = run(vu, row, msg);
	else
		ret = vl_vhost_refuse(vu, VL_REFUSED, "type %u is not known",
				      msg->header.request);
	vl_msg_close_fds(msg);
	vl_vhost_evaluate(vu);
	return answer(vu, row, msg, ret);
}

int vl_vhost_input(struct vl_vhost *vu)
{
	if (vu->sock < 0)
		return -ECONNRESET;
	for (int i = 0; i < MESSAGES_PER_INPUT; i++) {
		int ret = vl_msg_read(&vu->reader, vu->sock);

		if (ret == 0)
			return 0;
		if (ret < 0 && ret != -ECONNRESET) {
			vu->protocol_errors++;
			vl_log_limited(&vu->limit, VL_LOG_ERROR, "vhost",
				       "%s; ending the session",
				       vl_msg_read_error(ret));
		}
		if (ret > 0)
			ret = handle(vu, &vu->reader.msg);
		if (ret < 0) {
			vl_vhost_detach(vu);
			return ret;
		}
	}
	return 0;
}

void vl_vhost_backend_input(struct vl_vhost *vu)
{
	char trash[512];

	/* Descriptors that come along are closed by the kernel: recv(2) asks
	 * for none. */
	for (int i = 0; i < BACKEND_READS_PER_INPUT; i++) {
		ssize_t n = recv(vu->backend_fd, trash, sizeof(trash),
				 MSG_DONTWAIT);

		if (n > 0)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		close_backend(vu);
		return;
	}
}

void vl_vhost_config_changed(struct vl_vhost *vu)
{
	const struct vl_msg_header header = {
		.request = VHOST_USER_BACKEND_CONFIG_CHANGE_MSG,
		.flags = VL_MSG_VERSION,
	};
	int err;

	if (vu->backend_fd < 0 ||
	    !(vu->protocol_features & BIT(VHOST_USER_PROTOCOL_F_CONFIG)))
		return;
	err = vl_msg_send(vu->backend_fd, &header, NULL);
	/* Seen by vl_vhost_backend_input(), whose caller watches it. */
	if (err == -EIO)
		(void)shutdown(vu->backend_fd, SHUT_RDWR);
	if (err)
		vl_log_limited(&vu->limit, VL_LOG_WARNING, "vhost",
			       "the front-end was not told of a configuration "
			       "change: %s",
			       strerrordesc_np(-err));
}

int vl_vhost_attach(struct vl_vhost *vu, int sock)
{
	if (vu->sock >= 0) {
		close(sock);
		return -EBUSY;
	}
	vu->sock = sock;
	vu->sessions++;
	return 0;
}

void vl_vhost_detach(struct vl_vhost *vu)
{
	if (vu->sock < 0)
		return;
	vl_vhost_stop_all(vu);
	(void)vu->ops->set_mem(vu->dev, NULL);
	vl_guest_mem_put(vu->mem);
	vu->mem = NULL;
	reset(vu);
	for (unsigned int i = 0; i < vu->config.vrings; i++)
		vl_vhost_ring_clear(&vu->ring[i]);
	vu->protocol_features = 0;
	vl_msg_close_fds(&vu->reader.msg);
	vu->reader.got = 0;
	close_backend(vu);
	close(vu->sock);
	vu->sock = -1;
}

int vl_vhost_new(const struct vl_vhost_config *config,
		 const struct vl_vhost_ops *ops, void *dev,
		 struct vl_vhost **out)
{
	struct vl_vhost *vu;

	if (!config->queue_pairs || config->vrings < 2 ||
	    config->vrings > VRINGS_MAX)
		return -EINVAL;
	vu = calloc(1, sizeof(*vu) + config->vrings * sizeof(vu->ring[0]));
	if (!vu)
		return -ENOMEM;
	vu->config = *config;
	vu->ops = ops;
	vu->dev = dev;
	vu->sock = -1;
	vu->backend_fd = -1;
	for (unsigned int i = 0; i < config->vrings; i++)
		vl_vhost_ring_init(&vu->ring[i]);
	*out = vu;
	return 0;
}

void vl_vhost_free(struct vl_vhost *vu)
{
	if (!vu)
		return;
	vl_vhost_detach(vu);
	free(vu);
}

int vl_vhost_fd(const struct vl_vhost *vu)
{
	return vu->sock;
}

int vl_vhost_backend_fd(const struct vl_vhost *vu)
{
	return vu->backend_fd;
}

void vl_vhost_state(const struct vl_vhost *vu, struct vl_vhost_state *out)
{
	*out = (struct vl_vhost_state){
		.connected = vu->sock >= 0,
		.protocol_features = vu->protocol_features,
		.sessions = vu->sessions,
		.messages = vu->messages,
		.protocol_errors = vu->protocol_errors,
	};
	for (unsigned int i = 0; i < vu->config.vrings; i++)
		out->rings_running += vu->ring[i].running;
}
