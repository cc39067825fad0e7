/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "vhost_client.h"

unsigned int open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void check_none_runs(const struct device *d)
{
	for (unsigned int i = 0; i < CLIENT_VRINGS; i++)
		assert_false(d->running[i]);
}

static void check_fd(int fd)
{
	if (fd >= 0)
		assert_true(fcntl(fd, F_GETFD) >= 0);
}

static uint64_t dev_features(void *dev)
{
	(void)dev;
	return F_OFFERED;
}

static int dev_set_features(void *dev, uint64_t features)
{
	struct device *d = dev;

	check_none_runs(d);
	assert_int_equal(features & ~F_OFFERED, 0);
	d->features = features;
	d->set_features_calls++;
	return 0;
}

static int dev_set_mem(void *dev, struct vl_guest_mem *mem)
{
	struct device *d = dev;

	check_none_runs(d);
	if (mem && d->fail_mem)
		return d->fail_mem;
	vl_guest_mem_put(d->mem);
	d->mem = mem ? vl_guest_mem_get(mem) : NULL;
	d->set_mem_calls++;
	return 0;
}

static int dev_start(void *dev, unsigned int index, const struct vl_vring *ring)
{
	struct device *d = dev;

	assert_true(index < CLIENT_VRINGS);
	assert_false(d->running[index]);
	assert_non_null(d->mem);
	assert_true(ring->num >= 2 && ring->num <= VL_VQ_SIZE_MAX);
	assert_int_equal(ring->event_idx, !!(d->features & F_EVENT_IDX));
	assert_int_equal(ring->indirect, !!(d->features & F_INDIRECT));
	check_fd(ring->kick_fd);
	check_fd(ring->call_fd);
	check_fd(ring->err_fd);
	d->starts[index]++;
	if (d->fail_start)
		return d->fail_start;
	/* All of it can be touched (ASan and the kernel would tell). */
	*(volatile char *)ring->desc = *(volatile char *)ring->desc;
	((volatile char *)ring->used)[5 + 8 * ring->num] = 0;
	d->running[index] = true;
	d->ring[index] = *ring;
	return 0;
}

static void dev_stop(void *dev, unsigned int index, uint16_t *base)
{
	struct device *d = dev;

	assert_true(index < CLIENT_VRINGS);
	assert_true(d->running[index]);
	check_fd(d->ring[index].kick_fd);
	check_fd(d->ring[index].call_fd);
	check_fd(d->ring[index].err_fd);
	d->running[index] = false;
	d->stops[index]++;
	*base = (uint16_t)(d->ring[index].base + d->consumed);
}

static void dev_call(void *dev, unsigned int index, int fd)
{
	struct device *d = dev;

	assert_true(d->running[index]);
	check_fd(d->ring[index].call_fd);
	check_fd(fd);
	d->ring[index].call_fd = fd;
	d->calls++;
}

static void dev_err(void *dev, unsigned int index, int fd)
{
	struct device *d = dev;

	assert_true(d->running[index]);
	check_fd(d->ring[index].err_fd);
	check_fd(fd);
	d->ring[index].err_fd = fd;
	d->errs++;
}

static int dev_get_config(void *dev, uint32_t offset, void *buf, uint32_t len)
{
	(void)dev;
	assert_true(len <= VL_MSG_CONFIG_MAX);
	if (offset > 12 || len > 12 - offset)
		return -EINVAL;
	for (uint32_t i = 0; i < len; i++)
		((uint8_t *)buf)[i] = (uint8_t)(0xc0 + offset + i);
	return 0;
}

static int dev_set_mtu(void *dev, uint64_t mtu)
{
	struct device *d = dev;

	if (mtu < 68 || mtu > 65535)
		return -EINVAL;
	d->mtu = mtu;
	return 0;
}

static void dev_reset(void *dev)
{
	struct device *d = dev;

	check_none_runs(d);
	d->features = 0;
	d->resets++;
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

void client_connect(struct client *c)
{
	int pair[2];

	if (c->sock >= 0)
		close(c->sock);
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	c->sock = pair[0];
	assert_int_equal(vl_vhost_attach(c->vu, pair[1]), 0);
	assert_int_equal(vl_vhost_fd(c->vu), pair[1]);
}

void client_open(struct client *c)
{
	const struct vl_vhost_config config = {
		.queue_pairs = CLIENT_VRINGS / 2,
		.vrings = CLIENT_VRINGS,
	};

	memset(c, 0, sizeof(*c));
	c->sock = -1;
	c->fds_before = open_fds();
	c->mem_fd = memfd_create("guest", MFD_CLOEXEC);
	c->event_fd = eventfd(0, EFD_CLOEXEC);
	assert_true(c->mem_fd >= 0 && c->event_fd >= 0);
	assert_int_equal(ftruncate(c->mem_fd, CLIENT_MEM_SIZE), 0);
	assert_int_equal(vl_vhost_new(&config, &ops, &c->dev, &c->vu), 0);
	client_connect(c);
}

void client_close(struct client *c)
{
	vl_vhost_free(c->vu);
	check_none_runs(&c->dev);
	assert_null(c->dev.mem);
	close(c->mem_fd);
	close(c->event_fd);
	close(c->sock);
	assert_int_equal(open_fds(), c->fds_before);
}

void client_send_fds(struct client *c, uint32_t request, uint32_t flags,
		     const void *payload, uint32_t size, int fd, unsigned int n)
{
	union {
		char buf[CMSG_SPACE(VL_MSG_FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct {
		struct vl_msg_header h;
		char payload[VL_MSG_PAYLOAD_MAX];
	} wire = { .h = { request, flags, size } };
	struct iovec iov = { &wire, sizeof(wire.h) + size };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (size)
		memcpy(wire.payload, payload, size);
	memset(&control, 0, sizeof(control));
	if (n) {
		mh.msg_control = &control;
		mh.msg_controllen = CMSG_SPACE(n * sizeof(int));
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(n * sizeof(int));
		for (unsigned int i = 0; i < n; i++)
			memcpy(CMSG_DATA(&control.align) + i * sizeof(int), &fd,
			       sizeof(fd));
	}
	assert_int_equal(sendmsg(c->sock, &mh, MSG_DONTWAIT | MSG_NOSIGNAL),
			 iov.iov_len);
}

int client_do(struct client *c, uint32_t request, const void *payload,
	      uint32_t size, int fd)
{
	struct vl_vhost_msg answer;
	int ret;

	client_send_fds(c, request, VL_MSG_VERSION, payload, size, fd, fd >= 0);
	ret = vl_vhost_input(c->vu);
	assert_false(client_answer(c, &answer));
	return ret;
}

int client_u64(struct client *c, uint32_t request, uint64_t value)
{
	return client_do(c, request, &value, sizeof(value), -1);
}

int client_state(struct client *c, uint32_t request, uint32_t index,
		 uint32_t num)
{
	const struct vl_msg_vring_state s = { index, num };

	return client_do(c, request, &s, sizeof(s), -1);
}

bool client_answer(struct client *c, struct vl_vhost_msg *out)
{
	ssize_t n =
		recv(c->sock, &out->header, sizeof(out->header), MSG_DONTWAIT);

	if (n <= 0)
		return false;
	assert_int_equal(n, sizeof(out->header));
	assert_int_equal(out->header.flags, VL_MSG_VERSION | VL_MSG_REPLY);
	assert_true(out->header.size <= VL_MSG_PAYLOAD_MAX);
	if (out->header.size)
		assert_int_equal(recv(c->sock, &out->payload, out->header.size,
				      MSG_DONTWAIT),
				 out->header.size);
	return true;
}

uint64_t client_ack(struct client *c, uint32_t request, const void *payload,
		    uint32_t size, int fd)
{
	struct vl_vhost_msg answer;

	client_send_fds(c, request, VL_MSG_VERSION | VL_MSG_NEED_REPLY, payload,
			size, fd, fd >= 0);
	assert_int_equal(vl_vhost_input(c->vu), 0);
	assert_true(client_answer(c, &answer));
	assert_int_equal(answer.header.request, request);
	assert_int_equal(answer.header.size, 8);
	return answer.payload.u64;
}

uint64_t client_get(struct client *c, uint32_t request)
{
	struct vl_vhost_msg answer;

	client_send_fds(c, request, VL_MSG_VERSION, NULL, 0, -1, 0);
	assert_int_equal(vl_vhost_input(c->vu), 0);
	assert_true(client_answer(c, &answer));
	assert_int_equal(answer.header.request, request);
	assert_int_equal(answer.header.size, 8);
	return answer.payload.u64;
}

uint32_t client_base(struct client *c, uint32_t index)
{
	const struct vl_msg_vring_state s = { index, 0x5a5a5a5a };
	struct vl_vhost_msg answer;

	client_send_fds(c, VHOST_USER_GET_VRING_BASE, VL_MSG_VERSION, &s,
			sizeof(s), -1, 0);
	assert_int_equal(vl_vhost_input(c->vu), 0);
	assert_true(client_answer(c, &answer));
	assert_int_equal(answer.header.size, sizeof(s));
	assert_int_equal(answer.payload.state.index, index);
	return answer.payload.state.num;
}

struct vl_msg_mem client_table(void)
{
	return (struct vl_msg_mem){
		.n = 1,
		.region[0] = { .gpa = 0,
			       .size = CLIENT_MEM_SIZE,
			       .uva = CLIENT_UVA },
	};
}

struct vl_msg_vring_addr client_addr(uint32_t index)
{
	uint64_t base = CLIENT_UVA + index * 0x8000ULL;

	return (struct vl_msg_vring_addr){
		.index = index,
		.desc = base,
		.avail = base + 16ULL * CLIENT_RING_NUM,
		.used = base + 0x4000,
	};
}

int client_set_mem(struct client *c)
{
	struct vl_msg_mem table = client_table();

	return client_do(c, VHOST_USER_SET_MEM_TABLE, &table, 8 + 32,
			 c->mem_fd);
}

void client_ring(struct client *c, uint32_t index, uint16_t base)
{
	struct vl_msg_vring_addr addr = client_addr(index);
	uint64_t value = index;

	assert_int_equal(client_state(c, VHOST_USER_SET_VRING_NUM, index,
				      CLIENT_RING_NUM),
			 0);
	assert_int_equal(
		client_state(c, VHOST_USER_SET_VRING_BASE, index, base), 0);
	assert_int_equal(client_do(c, VHOST_USER_SET_VRING_ADDR, &addr,
				   sizeof(addr), -1),
			 0);
	assert_int_equal(
		client_do(c, VHOST_USER_SET_VRING_CALL, &value, 8, c->event_fd),
		0);
	assert_int_equal(
		client_do(c, VHOST_USER_SET_VRING_KICK, &value, 8, c->event_fd),
		0);
}

unsigned int client_running(const struct client *c)
{
	struct vl_vhost_state state;
	unsigned int n = 0;

	vl_vhost_state(c->vu, &state);
	for (unsigned int i = 0; i < CLIENT_VRINGS; i++)
		n += c->dev.running[i];
	assert_int_equal(state.rings_running, n);
	return n;
}
