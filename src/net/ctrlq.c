/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A command is class, command and data in the device-readable part of a chain
 * and one byte of answer in the writable part, each split over buffers as the
 * driver likes. The answer is the only byte written: used length 1.
 *
 * Receive filtering (promiscuous and such modes, the MAC table) is accepted
 * and left to the host network: the spec makes it best effort (5.1.6.5.1), and
 * a tap delivers what its bridge floods.
 */
#include "net/ctrlq.h"

#include <errno.h>
#include <linux/virtio_net.h>
#include <string.h>

#include "base/barrier.h"
#include "base/iov.h"
#include "base/util.h"
#include "virtio/net_hdr.h"

/* Longest command taken: two MAC tables of 64 entries and some. */
#define COMMAND_MAX 1024u
/* Commands of one run. Some take the kernel a millisecond for each queue pair,
 * and messages of the front-end wait meanwhile. */
#define RUN_MAX     8u

struct command {
	uint8_t class;
	uint8_t cmd;
	uint32_t data_len;
	uint8_t data[COMMAND_MAX];
};

static int rx_mode(const struct command *c, bool extra)
{
	uint8_t last = extra ? VIRTIO_NET_CTRL_RX_NOBCAST
			     : VIRTIO_NET_CTRL_RX_ALLMULTI;

	return c->cmd <= last && c->data_len == 1 ? 0 : -EINVAL;
}

/* Two tables: number of entries, then the addresses. */
static int mac_table(const struct command *c)
{
	uint32_t at = 0;

	for (int table = 0; table < 2; table++) {
		uint32_t entries;

		if (c->data_len - at < sizeof(entries))
			return -EINVAL;
		memcpy(&entries, c->data + at, sizeof(entries));
		at += (uint32_t)sizeof(entries);
		if (entries > (c->data_len - at) / 6)
			return -EINVAL;
		at += entries * 6;
	}
	return at == c->data_len ? 0 : -EINVAL;
}

static int mac_command(struct vl_ctrlq *q, const struct command *c)
{
	switch (c->cmd) {
	case VIRTIO_NET_CTRL_MAC_TABLE_SET:
		return mac_table(c);
	case VIRTIO_NET_CTRL_MAC_ADDR_SET:
		return c->data_len == 6 ? q->ops->set_mac(q->dev, c->data)
					: -EINVAL;
	default:
		return -EOPNOTSUPP;
	}
}

static int mq_command(struct vl_ctrlq *q, const struct command *c)
{
	uint16_t pairs;

	if (c->cmd != VIRTIO_NET_CTRL_MQ_VQ_PAIRS_SET ||
	    c->data_len != sizeof(pairs))
		return -EINVAL;
	memcpy(&pairs, c->data, sizeof(pairs));
	return q->ops->set_pairs(q->dev, pairs);
}

static int offloads_command(struct vl_ctrlq *q, const struct command *c)
{
	uint64_t offloads;

	if (c->cmd != VIRTIO_NET_CTRL_GUEST_OFFLOADS_SET ||
	    c->data_len != sizeof(offloads))
		return -EINVAL;
	memcpy(&offloads, c->data, sizeof(offloads));
	return q->ops->set_offloads(q->dev, offloads);
}

/* The feature that makes each class legal, and what executes it. */
static int execute(struct vl_ctrlq *q, const struct command *c,
		   uint64_t features)
{
	bool extra = c->cmd > VIRTIO_NET_CTRL_RX_ALLMULTI;

	switch (c->class) {
	case VIRTIO_NET_CTRL_RX:
		if (!(features & VL_FEATURE(extra ? VIRTIO_NET_F_CTRL_RX_EXTRA
						  : VIRTIO_NET_F_CTRL_RX)))
			return -EOPNOTSUPP;
		return rx_mode(c, extra);
	case VIRTIO_NET_CTRL_MAC:
		if (!(features & (VL_FEATURE(VIRTIO_NET_F_CTRL_MAC_ADDR) |
				  VL_FEATURE(VIRTIO_NET_F_CTRL_RX))))
			return -EOPNOTSUPP;
		return mac_command(q, c);
	case VIRTIO_NET_CTRL_ANNOUNCE:
		if (!(features & VL_FEATURE(VIRTIO_NET_F_GUEST_ANNOUNCE)) ||
		    c->cmd != VIRTIO_NET_CTRL_ANNOUNCE_ACK)
			return -EOPNOTSUPP;
		return q->ops->announce_ack(q->dev);
	case VIRTIO_NET_CTRL_MQ:
		if (!(features & VL_FEATURE(VIRTIO_NET_F_MQ)))
			return -EOPNOTSUPP;
		return mq_command(q, c);
	case VIRTIO_NET_CTRL_GUEST_OFFLOADS:
		if (!(features & VL_FEATURE(VIRTIO_NET_F_CTRL_GUEST_OFFLOADS)))
			return -EOPNOTSUPP;
		return offloads_command(q, c);
	default:
		return -EOPNOTSUPP;
	}
}

/* One popped chain: returns the bytes written into it. */
static uint32_t run_chain(struct vl_ctrlq *q, const struct vl_chain *c,
			  uint64_t features)
{
	struct command command;
	uint8_t ack;
	int err;

	if (c->len_writable < sizeof(ack)) {
		VL_STAT_INC(q->errors);
		return 0;
	}
	if (c->len_readable < 2 || c->len_readable - 2 > COMMAND_MAX) {
		err = -EINVAL;
	} else {
		command.data_len = (uint32_t)c->len_readable - 2;
		(void)vl_iov_read(c->iov, c->n_readable, 0, &command.class, 1);
		(void)vl_iov_read(c->iov, c->n_readable, 1, &command.cmd, 1);
		(void)vl_iov_read(c->iov, c->n_readable, 2, command.data,
				  command.data_len);
		err = execute(q, &command, features);
	}
	VL_STAT_INC(q->commands);
	if (err)
		VL_STAT_INC(q->errors);
	ack = err ? VIRTIO_NET_ERR : VIRTIO_NET_OK;
	(void)vl_iov_write(c->iov + c->n_readable, c->n_writable, 0, &ack,
			   sizeof(ack));
	return sizeof(ack);
}

bool vl_ctrlq_run(struct vl_ctrlq *q, uint64_t features)
{
	uint32_t budget = q->vq.running ? RUN_MAX : 0;
	struct vl_chain c = { .iov = q->iov, .iov_cap = VL_CHAIN_IOV_MAX };
	int popped;

	vl_vq_disable_kick(&q->vq);
	while (budget--) {
		popped = vl_vq_pop(&q->vq, &c);
		if (popped == 0)
			return vl_vq_enable_kick(&q->vq);
		if (popped < 0) {
			VL_STAT_INC(q->errors);
			vl_vq_push(&q->vq, c.head, 0);
		} else {
			vl_vq_push(&q->vq, c.head, run_chain(q, &c, features));
		}
		vl_vq_publish(&q->vq);
		q->ops->notify(q->dev, &q->vq);
	}
	return q->vq.running && !q->vq.broken;
}
