/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One vhost-user session per input, over a device that only checks the
 * contract of struct vl_vhost_ops.
 *
 * The input is a list of steps, each led by one selector byte:
 *
 *   bit 7      raw: a length byte, then that many bytes go to the socket
 *   otherwise  a message: request, flags and size bytes, then the payload; the
 *              header is made from them, so that most inputs reach a handler
 *   bits 0-2   descriptors with it: 0, 1, 2, 8 or 253 memory files, 1 eventfd,
 *              1 socket, a mixture
 *   bit 3      replies are left unread
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "vhost/vhost_msg.h"
#include "vhost/vhost_user.h"

#define VRINGS   5u
#define MEM_SIZE (256u * 1024)
#define FDS_SEEN 1024

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The finding: stops the fuzzer here. */
static void check(bool ok)
{
	if (!ok)
		__builtin_trap();
}

static struct {
	struct vl_guest_mem *mem;
	bool running[VRINGS];
	struct vl_vring ring[VRINGS];
} device;

static void check_none_runs(void)
{
	for (unsigned int i = 0; i < VRINGS; i++)
		check(!device.running[i]);
}

static void check_fd(int fd)
{
	check(fd == -1 || fcntl(fd, F_GETFD) >= 0);
}

static uint64_t dev_features(void *dev)
{
	(void)dev;
	return ~0ULL & ~(1ULL << VHOST_USER_F_PROTOCOL_FEATURES);
}

static int dev_set_features(void *dev, uint64_t features)
{
	(void)dev;
	check_none_runs();
	check(!(features & 1ULL << VHOST_USER_F_PROTOCOL_FEATURES));
	return 0;
}

static int dev_set_mem(void *dev, struct vl_guest_mem *mem)
{
	(void)dev;
	check_none_runs();
	vl_guest_mem_put(device.mem);
	device.mem = mem ? vl_guest_mem_get(mem) : NULL;
	return 0;
}

static void touch(void *start, size_t len)
{
	volatile char *p = start;

	p[0] = p[len - 1];
	p[len - 1] = p[0];
}

static int dev_start(void *dev, unsigned int index, const struct vl_vring *ring)
{
	(void)dev;
	check(index < VRINGS && !device.running[index] && device.mem);
	check(ring->num >= 2 && ring->num <= VL_VQ_SIZE_MAX);
	check((ring->num & (ring->num - 1)) == 0);
	touch(ring->desc, 16 * (size_t)ring->num);
	touch(ring->avail, 6 + 2 * (size_t)ring->num);
	touch(ring->used, 6 + 8 * (size_t)ring->num);
	check_fd(ring->kick_fd);
	check_fd(ring->call_fd);
	check_fd(ring->err_fd);
	device.running[index] = true;
	device.ring[index] = *ring;
	return 0;
}

static void dev_stop(void *dev, unsigned int index, uint16_t *base)
{
	(void)dev;
	check(index < VRINGS && device.running[index]);
	check_fd(device.ring[index].kick_fd);
	check_fd(device.ring[index].call_fd);
	check_fd(device.ring[index].err_fd);
	device.running[index] = false;
	*base = (uint16_t)(device.ring[index].base + 1);
}

static void dev_call(void *dev, unsigned int index, int fd)
{
	(void)dev;
	check(index < VRINGS && device.running[index]);
	check_fd(device.ring[index].call_fd);
	check_fd(fd);
	device.ring[index].call_fd = fd;
}

static void dev_err(void *dev, unsigned int index, int fd)
{
	(void)dev;
	check(index < VRINGS && device.running[index]);
	check_fd(device.ring[index].err_fd);
	check_fd(fd);
	device.ring[index].err_fd = fd;
}

static int dev_get_config(void *dev, uint32_t offset, void *buf, uint32_t len)
{
	(void)dev;
	check(len <= VL_MSG_CONFIG_MAX);
	if (offset > 12 || len > 12 - offset)
		return -1;
	memset(buf, 0x42, len);
	return 0;
}

static int dev_set_mtu(void *dev, uint64_t mtu)
{
	(void)dev;
	return mtu < 68 ? -1 : 0;
}

static void dev_reset(void *dev)
{
	(void)dev;
	check_none_runs();
}

static const struct vl_vhost_ops ops = {
	.features = dev_features,
	.set_features = dev_set_features,
	.set_mem = dev_set_mem,
	.vring_start = dev_start,
	.vring_stop = dev_stop,
	.vring_call = dev_call,
	.vring_err = dev_err,
	.get_config = dev_get_config,
	.set_mtu = dev_set_mtu,
	.reset = dev_reset,
};

/* Lives as long as the process, so that its limit of log lines works. */
static struct vl_vhost *vhost;
static int mem_fd, event_fd, other_sock[2];

static void set_up(void)
{
	const struct vl_vhost_config config = { .queue_pairs = 2,
						.vrings = VRINGS };

	mem_fd = memfd_create("guest", MFD_CLOEXEC);
	event_fd = eventfd(0, EFD_CLOEXEC);
	check(mem_fd >= 0 && event_fd >= 0);
	check(ftruncate(mem_fd, MEM_SIZE) == 0);
	check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, other_sock) ==
	      0);
	check(vl_vhost_new(&config, &ops, NULL, &vhost) == 0);
}

static unsigned int open_fds(void)
{
	unsigned int n = 0;

	for (int fd = 0; fd < FDS_SEEN; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

struct input {
	const uint8_t *data;
	size_t left;
};

static uint8_t next_byte(struct input *in)
{
	if (!in->left)
		return 0;
	in->left--;
	return *in->data++;
}

static size_t next_bytes(struct input *in, uint8_t *to, size_t len)
{
	if (len > in->left)
		len = in->left;
	memcpy(to, in->data, len);
	in->data += len;
	in->left -= len;
	return len;
}

/* The descriptors that a selector means, in @fds. */
static size_t pick_fds(uint8_t selector, int fds[VL_MSG_FDS_MAX])
{
	static const uint8_t counts[] = { 0, 1, 2, 8, VL_MSG_FDS_MAX, 1, 1, 3 };
	const int mixture[] = { mem_fd, event_fd, other_sock[0] };
	uint8_t kind = selector & 7;

	for (size_t i = 0; i < counts[kind]; i++) {
		if (kind == 5)
			fds[i] = event_fd;
		else if (kind == 6)
			fds[i] = other_sock[0];
		else
			fds[i] = kind == 7 ? mixture[i] : mem_fd;
	}
	return counts[kind];
}

static bool send_step(int sock, uint8_t selector, void *bytes, size_t len)
{
	union {
		char buf[CMSG_SPACE(VL_MSG_FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control;
	int fds[VL_MSG_FDS_MAX];
	size_t n = pick_fds(selector, fds);
	struct iovec iov = { .iov_base = bytes, .iov_len = len };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (n && len) {
		memset(&control, 0, sizeof(control));
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(&control.align), fds, n * sizeof(int));
		mh.msg_control = &control;
		mh.msg_controllen = CMSG_SPACE(n * sizeof(int));
	}
	return sendmsg(sock, &mh, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

/* Builds what the next step sends; returns its length. */
static size_t next_step(struct input *in, uint8_t selector,
			uint8_t bytes[VL_MSG_HEADER_SIZE + 2 * 256])
{
	struct vl_msg_header h;
	size_t len;

	if (selector & 0x80)
		return next_bytes(in, bytes, next_byte(in));
	h.request = next_byte(in);
	h.flags = (next_byte(in) & 0xcu) | VL_MSG_VERSION;
	len = next_byte(in) + (selector & 0x40 ? 13u : 0u);
	h.size = (uint32_t)len;
	memcpy(bytes, &h, sizeof(h));
	memset(bytes + sizeof(h), 0, len);
	next_bytes(in, bytes + sizeof(h), len);
	return sizeof(h) + len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t bytes[VL_MSG_HEADER_SIZE + 2 * 256];
	struct input in = { .data = data, .left = size };
	int pair[2], ret = 0;
	unsigned int fds;

	if (!vhost)
		set_up();
	fds = open_fds();
	check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	check(vl_vhost_attach(vhost, pair[1]) == 0);
	while (in.left && !ret) {
		uint8_t selector = next_byte(&in);
		size_t len = next_step(&in, selector, bytes);

		if (!send_step(pair[0], selector, bytes, len))
			break;
		/* A raw step holds at most 21 messages. */
		for (int i = 0; i < 2 && !ret; i++)
			ret = vl_vhost_input(vhost);
		check(ret <= 0);
		vl_vhost_config_changed(vhost);
		while (!(selector & 8) &&
		       recv(pair[0], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
			;
		while (recv(other_sock[1], bytes, sizeof(bytes), MSG_DONTWAIT) >
		       0)
			;
	}
	check((vl_vhost_fd(vhost) >= 0) == (ret == 0));
	vl_vhost_detach(vhost);
	close(pair[0]);
	check_none_runs();
	check(!device.mem);
	check(open_fds() == fds);
	return 0;
}
