/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The split ring alone: the input writes rings and memory and calls pop,
 * unpop, push and the rest in any order a device could. Checked: every buffer
 * lies in guest memory, the lengths add up, no chain is counted wrong.
 */
#include <errno.h>
#include <string.h>

#include "fuzz_guest.h"

#define HELD_MAX 512u

static struct fuzz_guest guest;

static struct {
	struct vl_virtqueue vq;
	uint16_t held[HELD_MAX]; /* heads popped, in order */
	uint32_t n_held;
	uint32_t unpoppable; /* popped in a row, none pushed since */
} dev;

static void check_chain(const struct vl_chain *c)
{
	uint64_t readable = 0, writable = 0;

	fuzz_check(c->n_readable + c->n_writable <= c->iov_cap);
	for (uint32_t i = 0; i < c->n_readable + c->n_writable; i++) {
		const struct iovec *v = &c->iov[i];

		fuzz_check(v->iov_len > 0);
		fuzz_check(fuzz_guest_owns(&guest, v->iov_base, v->iov_len));
		if (i < c->n_readable)
			readable += v->iov_len;
		else
			writable += v->iov_len;
	}
	fuzz_check(readable == c->len_readable);
	fuzz_check(writable == c->len_writable);
}

static void pop(uint8_t how)
{
	static struct iovec iov[VL_CHAIN_IOV_MAX];
	struct vl_chain c = {
		.iov = iov,
		.iov_cap = how & 1 ? VL_CHAIN_IOV_MAX : (uint32_t)how >> 1,
	};
	uint64_t before = dev.vq.popped;
	int n;

	if (dev.n_held == HELD_MAX)
		return;
	n = vl_vq_pop(&dev.vq, &c);
	if (n == -ENOBUFS) {
		fuzz_check(c.iov_cap < VL_CHAIN_IOV_MAX);
		fuzz_check(dev.vq.popped == before);
		return;
	}
	if (n == 0)
		return;
	fuzz_check(n == 1 || n == -EBADMSG);
	fuzz_check(dev.vq.popped == before + 1);
	fuzz_check(c.head < dev.vq.ring.num);
	if (n == 1)
		check_chain(&c);
	dev.held[dev.n_held++] = c.head;
	dev.unpoppable++;
}

static void push(uint8_t which, uint32_t len)
{
	uint32_t i;

	if (!dev.n_held)
		return;
	i = which % dev.n_held;
	vl_vq_push(&dev.vq, dev.held[i], len);
	memmove(&dev.held[i], &dev.held[i + 1],
		(dev.n_held - i - 1) * sizeof(dev.held[0]));
	dev.n_held--;
	dev.unpoppable = 0;
}

static void unpop(uint8_t n)
{
	if (n > dev.unpoppable)
		return;
	vl_vq_unpop(&dev.vq, n);
	dev.n_held -= n;
	dev.unpoppable -= n;
}

static void step(uint8_t op, struct fuzz_input *in)
{
	uint8_t which;

	if (fuzz_guest_step(&guest, op, in))
		return;
	switch (op) {
	case 4:
		pop(fuzz_u8(in));
		break;
	case 5:
		which = fuzz_u8(in);
		push(which, fuzz_u32(in));
		break;
	case 6:
		unpop(fuzz_u8(in));
		break;
	case 7:
		vl_vq_publish(&dev.vq);
		vl_vq_notify(&dev.vq);
		break;
	case 8:
		(void)vl_vq_enable_kick(&dev.vq);
		break;
	case 9:
		vl_vq_disable_kick(&dev.vq);
		break;
	default:
		(void)vl_vq_available(&dev.vq);
		break;
	}
	fuzz_check(dev.vq.in_flight == dev.n_held);
	fuzz_check(dev.vq.popped ==
		   dev.vq.pushed + dev.vq.unpopped + dev.vq.in_flight);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	struct vl_vring vring;

	if (!guest.mem)
		fuzz_guest_init(&guest);
	memset(&dev, 0, sizeof(dev));
	fuzz_guest_reset(&guest, &in);
	vring = fuzz_guest_vring(&guest, 0);
	vring.indirect = !(fuzz_u8(&in) & 1);
	vring.event_idx = !(fuzz_u8(&in) & 1);
	fuzz_check(vl_vq_start(&dev.vq, "fuzz", &vring, guest.mem) == 0);
	while (in.left)
		step(fuzz_u8(&in) % 11, &in);
	while (dev.n_held)
		push(0, 0);
	vl_vq_stop(&dev.vq);
	return 0;
}
