/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Framing of vhost-user messages (QEMU, docs/interop/vhost-user.rst, "Message
 * Specification"): a 12-byte header, a payload, and descriptors that travel
 * beside them. Nothing here knows what a message means.
 */
#ifndef VL_VHOST_VHOST_MSG_H
#define VL_VHOST_VHOST_MSG_H

#include <stddef.h>
#include <stdint.h>

/* Front-end message types ("Front-end message types"). */
enum vl_vhost_request {
	VHOST_USER_GET_FEATURES = 1,
	VHOST_USER_SET_FEATURES = 2,
	VHOST_USER_SET_OWNER = 3,
	VHOST_USER_RESET_OWNER = 4,
	VHOST_USER_SET_MEM_TABLE = 5,
	VHOST_USER_SET_LOG_BASE = 6,
	VHOST_USER_SET_LOG_FD = 7,
	VHOST_USER_SET_VRING_NUM = 8,
	VHOST_USER_SET_VRING_ADDR = 9,
	VHOST_USER_SET_VRING_BASE = 10,
	VHOST_USER_GET_VRING_BASE = 11,
	VHOST_USER_SET_VRING_KICK = 12,
	VHOST_USER_SET_VRING_CALL = 13,
	VHOST_USER_SET_VRING_ERR = 14,
	VHOST_USER_GET_PROTOCOL_FEATURES = 15,
	VHOST_USER_SET_PROTOCOL_FEATURES = 16,
	VHOST_USER_GET_QUEUE_NUM = 17,
	VHOST_USER_SET_VRING_ENABLE = 18,
	VHOST_USER_NET_SET_MTU = 20,
	VHOST_USER_SET_BACKEND_REQ_FD = 21,
	VHOST_USER_GET_CONFIG = 24,
	VHOST_USER_SET_CONFIG = 25,
	VHOST_USER_RESET_DEVICE = 34,
	VHOST_USER_GET_MAX_MEM_SLOTS = 36,
	VHOST_USER_ADD_MEM_REG = 37,
	VHOST_USER_REM_MEM_REG = 38,
	VHOST_USER_SET_STATUS = 39,
	VHOST_USER_GET_STATUS = 40,
};

/* Back-end message types. */
#define VHOST_USER_BACKEND_CONFIG_CHANGE_MSG 2u

/* Bits of the protocol features. */
#define VHOST_USER_PROTOCOL_F_MQ                  0
#define VHOST_USER_PROTOCOL_F_REPLY_ACK           3
#define VHOST_USER_PROTOCOL_F_NET_MTU             4
#define VHOST_USER_PROTOCOL_F_BACKEND_REQ         5
#define VHOST_USER_PROTOCOL_F_CONFIG              9
#define VHOST_USER_PROTOCOL_F_RESET_DEVICE        13
#define VHOST_USER_PROTOCOL_F_CONFIGURE_MEM_SLOTS 15
#define VHOST_USER_PROTOCOL_F_STATUS              16

/* Device feature bit that says protocol features can be negotiated. */
#define VHOST_USER_F_PROTOCOL_FEATURES 30

/* Header flags. */
#define VL_MSG_VERSION_MASK 0x3u
#define VL_MSG_VERSION      0x1u
#define VL_MSG_REPLY        0x4u
#define VL_MSG_NEED_REPLY   0x8u

/* In the u64 of SET_VRING_KICK, CALL and ERR. */
#define VL_MSG_VRING_INDEX_MASK 0xffu
#define VL_MSG_VRING_NOFD       0x100u

/* Descriptors in one recvmsg(2); Linux refuses to send more at once. */
#define VL_MSG_FDS_MAX     253u
#define VL_MSG_REGIONS_MAX 8u
#define VL_MSG_CONFIG_MAX  256u

struct vl_msg_header {
	uint32_t request;
	uint32_t flags;
	uint32_t size; /* bytes of payload */
};

struct vl_msg_region {
	uint64_t gpa;
	uint64_t size;
	uint64_t uva;
	uint64_t mmap_offset;
};

struct vl_msg_vring_state {
	uint32_t index;
	uint32_t num;
};

struct vl_msg_vring_addr {
	uint32_t index;
	uint32_t flags;
	uint64_t desc; /* addresses in the front-end's own memory */
	uint64_t used;
	uint64_t avail;
	uint64_t log; /* guest address */
};

struct vl_msg_mem {
	uint32_t n;
	uint32_t padding;
	struct vl_msg_region region[VL_MSG_REGIONS_MAX];
};

struct vl_msg_mem_reg {
	uint64_t padding;
	struct vl_msg_region region;
};

struct vl_msg_config {
	uint32_t offset;
	uint32_t size;
	uint32_t flags;
	uint8_t data[VL_MSG_CONFIG_MAX];
};

union vl_msg_payload {
	uint64_t u64;
	struct vl_msg_vring_state state;
	struct vl_msg_vring_addr addr;
	struct vl_msg_mem mem;
	struct vl_msg_mem_reg mem_reg;
	struct vl_msg_config config;
};

#define VL_MSG_HEADER_SIZE        12u
#define VL_MSG_CONFIG_HEADER_SIZE 12u
#define VL_MSG_PAYLOAD_MAX        (VL_MSG_CONFIG_HEADER_SIZE + VL_MSG_CONFIG_MAX)

_Static_assert(sizeof(struct vl_msg_header) == VL_MSG_HEADER_SIZE, "wire");
_Static_assert(sizeof(struct vl_msg_vring_addr) == 40, "wire");
_Static_assert(sizeof(struct vl_msg_mem_reg) == 40, "wire");
_Static_assert(offsetof(struct vl_msg_config, data) ==
		       VL_MSG_CONFIG_HEADER_SIZE,
	       "wire");
_Static_assert(sizeof(struct vl_msg_mem) <= VL_MSG_PAYLOAD_MAX,
	       "the bound covers every message");

struct vl_vhost_msg {
	struct vl_msg_header header;
	union vl_msg_payload payload; /* zero behind header.size */
	uint32_t n_fds;
	int fd[VL_MSG_FDS_MAX]; /* -1: taken by the handler */
};

/* A message that may have arrived in part. All zero is a valid start. */
struct vl_msg_reader {
	struct vl_vhost_msg msg;
	uint32_t got; /* bytes of header and payload so far */
};

/*
 * Reads from the stream socket @sock without blocking, never past the end of
 * one message. Returns
 *   1            r->msg is complete and its descriptors are the caller's,
 *                who calls vl_msg_close_fds() before the next read
 *   0            the rest has not arrived yet; call again when readable
 *   -ECONNRESET  the peer closed the connection
 *   -EMSGSIZE    payload larger than any message has
 *   -EPROTO      unknown version in the header's flags
 *   -EMFILE      descriptors were lost, or too many came with one message
 * or another -errno of recvmsg(2). On failure the descriptors are closed.
 */
int vl_msg_read(struct vl_msg_reader *r, int sock);

/* What a failure of vl_msg_read() means, and what to do; for the log. */
const char *vl_msg_read_error(int err);

/*
 * Sends one message without descriptors. Never blocks, never raises SIGPIPE.
 * -ENOBUFS when the peer does not read and the socket is full, nothing was sent
 * then; -EIO when only a part could be sent: the stream is unusable.
 */
int vl_msg_send(int sock, const struct vl_msg_header *header,
		const void *payload);

/* Takes descriptor @i out of the message; -1 when there is none. */
int vl_msg_take_fd(struct vl_vhost_msg *msg, uint32_t i);

/* Closes what is left. */
void vl_msg_close_fds(struct vl_vhost_msg *msg);

#endif
