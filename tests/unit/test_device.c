/* SPDX-License-Identifier: BSD-3-Clause */
/* The device as the protocol sees it: features, config space, control queue,
 * rings that start, stop and start again. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "device_fixture.h"
#include "ring_fixture.h"
#include "virtio/net_hdr.h"

#define CTRL (2 * DEV_PAIRS)
#define BASE                                                                   \
	(VL_FEATURE(VIRTIO_F_VERSION_1) | VL_FEATURE(VIRTIO_NET_F_MRG_RXBUF))
#define CTRL_FEATURES                                                          \
	(BASE | VL_FEATURE(VIRTIO_NET_F_CTRL_VQ) |                             \
	 VL_FEATURE(VIRTIO_NET_F_CTRL_RX) |                                    \
	 VL_FEATURE(VIRTIO_NET_F_CTRL_MAC_ADDR) |                              \
	 VL_FEATURE(VIRTIO_NET_F_MQ) | VL_FEATURE(VIRTIO_NET_F_GUEST_CSUM) |   \
	 VL_FEATURE(VIRTIO_NET_F_GUEST_TSO4) |                                 \
	 VL_FEATURE(VIRTIO_NET_F_CTRL_GUEST_OFFLOADS) |                        \
	 VL_FEATURE(VIRTIO_NET_F_GUEST_ANNOUNCE))

static struct device d;
static struct vl_snapshot snap;

static void init(uint64_t features)
{
	dev_init(&d, &(struct dev_config){ .engine = VL_IO_SYNC,
					   .features = features });
}

static void bad_configurations_are_refused(void **state)
{
	struct vl_device_config c = { .queue_pairs = 1, .engine = VL_IO_SYNC };
	struct vl_device *dev;

	(void)state;
	init(BASE);
	c.queue_pairs = 0;
	assert_int_equal(vl_device_new(&c, d.backend, &dev), -EINVAL);
	c.queue_pairs = VL_SNAPSHOT_PAIRS_MAX + 1;
	assert_int_equal(vl_device_new(&c, d.backend, &dev), -EINVAL);
	c.queue_pairs = DEV_PAIRS + 1; /* more than the backend has ports */
	assert_int_equal(vl_device_new(&c, d.backend, &dev), -EINVAL);
	dev_free(&d);
}

static void only_offered_features_are_taken(void **state)
{
	uint64_t offered;

	(void)state;
	init(BASE);
	offered = vl_device_features(d.dev);
	assert_true((offered & BASE) == BASE);
	assert_int_equal(vl_device_queues(d.dev), 2 * DEV_PAIRS + 1);
	for (unsigned int bit = 0; bit < 64; bit++) {
		bool ok = offered & VL_FEATURE(bit);

		assert_int_equal(vl_device_set_features(d.dev, VL_FEATURE(bit)),
				 ok ? 0 : -EINVAL);
	}
	assert_int_equal(vl_device_set_features(d.dev, offered), 0);
	assert_int_equal(vl_device_set_features(d.dev, 0), 0);
	dev_free(&d);
}

/* B64 */
static void config_space_is_bounded(void **state)
{
	uint8_t buf[512];
	uint16_t v;

	(void)state;
	init(BASE);
	assert_int_equal(vl_device_get_config(d.dev, 0, buf, 6), 0);
	assert_memory_equal(buf, "\x02\0\0\0\0\x01", 6);
	assert_int_equal(vl_device_get_config(d.dev, 6, &v, 2), 0);
	assert_int_equal(v, VIRTIO_NET_S_LINK_UP);
	assert_int_equal(vl_device_get_config(d.dev, 8, &v, 2), 0);
	assert_int_equal(v, DEV_PAIRS);
	assert_int_equal(vl_device_get_config(d.dev, 10, &v, 2), 0);
	assert_int_equal(v, 1500);
	assert_true(vl_device_get_config(d.dev, 0xffffffff, buf, 1) < 0);
	assert_true(vl_device_get_config(d.dev, 0, buf, 0xffffffff) < 0);
	assert_true(vl_device_get_config(d.dev, 0xffffffff, buf, 0xffffffff) <
		    0);
	assert_true(vl_device_get_config(d.dev, 257, buf, 1) < 0);
	dev_free(&d);
}

static void rings_need_memory_and_a_number(void **state)
{
	struct vl_vring vring;

	(void)state;
	init(BASE);
	fix_vring(&d.ring[0], d.gmem, &vring);
	assert_true(vl_device_vring_start(d.dev, CTRL + 1, &vring) < 0);
	vring.num = 3;
	assert_true(vl_device_vring_start(d.dev, 0, &vring) < 0);
	vring.num = 64;
	assert_int_equal(vl_device_set_mem(d.dev, NULL), 0);
	assert_true(vl_device_vring_start(d.dev, 0, &vring) < 0);
	assert_int_equal(vl_device_set_mem(d.dev, d.gmem), 0);
	dev_start_pair(&d);
	dev_tx_ok(&d, 1, 60);
	dev_free(&d);
}

/* B49: at any index, stopped and started again: nothing twice, nothing lost */
static void rings_restart_at_any_index(void **state)
{
	static const uint16_t starts[] = { 0, 1, 255, 32767, 65534, 65535 };

	(void)state;
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		uint16_t at = starts[i];

		dev_init(&d, &(struct dev_config){ .engine = VL_IO_SYNC,
						   .features = BASE,
						   .start = at });
		dev_start_pair(&d);
		for (int round = 0; round < 5; round++) {
			dev_tx_ok(&d, 1, 100);
			assert_int_equal(dev_stop(&d, 1), ++at);
			(void)dev_stop(&d, 1); /* twice: nothing happens */
			dev_start(&d, 1);
		}
		assert_int_equal(dev_sent_count(&d), 5);
		dev_free(&d);
	}
}

/* The driver was reset and starts with new rings at 0. */
static void driver_reset_starts_afresh(void **state)
{
	(void)state;
	init(BASE);
	for (int round = 0; round < 10; round++) {
		dev_start_pair(&d);
		dev_tx_ok(&d, 1, 100);
		dev_stop(&d, 0);
		dev_stop(&d, 1);
		vl_device_reset(d.dev);
		assert_int_equal(vl_device_set_features(d.dev, BASE), 0);
		assert_int_equal(vl_device_set_mem(d.dev, d.gmem), 0);
		rd_ring_reset(&d.ring[0], 0);
		rd_ring_reset(&d.ring[1], 0);
	}
	dev_free(&d);
}

/* B50: after the stop nothing is written any more. */
static void stopped_rings_touch_nothing(void **state)
{
	const struct timespec pause = { 0, 30000000 };
	static uint8_t before[1 << 20];
	uint64_t gpa;

	(void)state;
	init(BASE);
	gpa = dev_alloc(&d, sizeof(before), 0x55);
	dev_start_pair(&d);
	for (int i = 0; i < 60; i++) {
		struct rd_seg seg = { gpa + (uint64_t)i * 2048, 2048 };

		assert_true(rd_add(&d.ring[0], &seg, 0, 1, RD_DIRECT, 0) >= 0);
		assert_true(rd_add(&d.ring[1], &seg, 1, 0, RD_DIRECT, 0) >= 0);
	}
	for (int i = 0; i < 200; i++)
		dev_inject(&d, 0, 1000, 1);
	rd_publish(&d.ring[0]);
	rd_publish(&d.ring[1]);
	rd_kick(&d.ring[0]);
	rd_kick(&d.ring[1]);
	dev_wake(&d, 0);
	dev_stop(&d, 0);
	dev_stop(&d, 1);
	memcpy(before, d.mem.base, sizeof(before));
	nanosleep(&pause, NULL);
	assert_memory_equal(before, d.mem.base, sizeof(before));
	dev_free(&d);
}

/* B29: the call descriptor changes, vanishes and comes back. */
static void call_descriptor_is_replaced(void **state)
{
	uint64_t calls = 0;

	(void)state;
	init(BASE);
	dev_start_pair(&d);
	for (int i = 0; i < 50; i++) {
		vl_device_vring_call(d.dev, 1, -1);
		calls += rd_calls(&d.ring[1]);
		dev_tx_ok(&d, 1, 60);
		assert_int_equal(rd_calls(&d.ring[1]), 0);
		vl_device_vring_call(d.dev, 1, d.ring[1].call_fd);
		vl_device_vring_err(d.dev, 1, i & 1 ? d.ring[1].err_fd : -1);
		rd_enable_call(&d.ring[1], 1);
		dev_tx_ok(&d, 1, 60);
	}
	assert_true(calls > 0);
	dev_free(&d);
}

/* Each pair has a worker and a port of its own. */
static void pairs_are_independent(void **state)
{
	(void)state;
	init(BASE);
	for (unsigned int i = 0; i < 2 * DEV_PAIRS; i++)
		dev_start(&d, i);
	dev_tx_ok(&d, 1, 60);
	dev_tx_ok(&d, 3, 60);
	dev_stop(&d, 1);
	dev_tx_ok(&d, 3, 60);
	dev_start(&d, 1);
	dev_stop(&d, 3);
	dev_tx_ok(&d, 1, 60);
	dev_snapshot(&d, &snap);
	assert_int_equal(snap.pairs, DEV_PAIRS);
	assert_int_equal(snap.pair[0].tx.packets, 2);
	assert_int_equal(snap.pair[1].tx.packets, 2);
	assert_true(snap.pair[0].txq.running);
	assert_false(snap.pair[1].txq.running);
	assert_int_equal(snap.pair[0].txq.pending, 0);
	dev_free(&d);
}

/* Where the control queue is: behind the pairs that the driver knows of. */
static unsigned int ctrl = CTRL;

/* Runs a command; @n_data bytes of data, @split them byte by byte. Returns
 * the answer; -1 when the device wrote none. */
static int command(uint8_t class, uint8_t cmd, const void *data,
		   uint32_t n_data, bool split)
{
	uint64_t gpa = dev_alloc(&d, 2 + n_data + 1, 0xaa);
	uint8_t *p = dev_ptr(&d, gpa);
	struct rd_seg seg[40];
	unsigned int n = 0;
	struct rd_done done;

	p[0] = class;
	p[1] = cmd;
	memcpy(p + 2, data, n_data);
	if (split)
		for (; n < 2 + n_data; n++)
			seg[n] = (struct rd_seg){ gpa + n, 1 };
	else
		seg[n++] = (struct rd_seg){ gpa, 2 + n_data };
	seg[n] = (struct rd_seg){ gpa + 2 + n_data, 1 };
	assert_true(rd_add(&d.ring[ctrl], seg, n, 1, RD_DIRECT, 0) >= 0);
	dev_kick(&d, ctrl);
	vl_device_ctrl_kick(d.dev);
	assert_int_equal(rd_take(&d.ring[ctrl], &done), 1);
	assert_int_equal(done.len, 1); /* B12 */
	return p[2 + n_data] == 0xaa ? -1 : p[2 + n_data];
}

/* B65 */
static void control_commands(void **state)
{
	const uint64_t offloads = VL_FEATURE(VIRTIO_NET_F_GUEST_CSUM);
	const uint64_t foreign = VL_FEATURE(VIRTIO_NET_F_GUEST_UFO);
	const uint16_t one = 1, zero = 0, many = DEV_PAIRS + 1;
	const uint8_t on = 1, multicast[6] = { 1, 0, 0, 0, 0, 2 };
	const uint8_t mac[6] = { 2, 9, 9, 9, 9, 9 };
	const uint32_t tables[2] = { 0, 0 }, wrong[2] = { 0xffffffff, 0 };
	uint8_t buf[6];

	(void)state;
	init(CTRL_FEATURES);
	dev_start(&d, CTRL);
	assert_int_equal(d.watched_fd, d.ring[CTRL].kick_fd);
	for (int split = 0; split < 2; split++) {
#define OK(class, cmd, data, len)                                              \
	assert_int_equal(command(class, cmd, data, len, split), VIRTIO_NET_OK)
#define BAD(class, cmd, data, len)                                             \
	assert_int_equal(command(class, cmd, data, len, split), VIRTIO_NET_ERR)
		OK(VIRTIO_NET_CTRL_RX, VIRTIO_NET_CTRL_RX_PROMISC, &on, 1);
		BAD(VIRTIO_NET_CTRL_RX, VIRTIO_NET_CTRL_RX_PROMISC, &on, 0);
		BAD(VIRTIO_NET_CTRL_RX, 77, &on, 1);
		OK(VIRTIO_NET_CTRL_MAC, VIRTIO_NET_CTRL_MAC_ADDR_SET, mac, 6);
		BAD(VIRTIO_NET_CTRL_MAC, VIRTIO_NET_CTRL_MAC_ADDR_SET, mac, 5);
		BAD(VIRTIO_NET_CTRL_MAC, VIRTIO_NET_CTRL_MAC_ADDR_SET,
		    multicast, 6);
		OK(VIRTIO_NET_CTRL_MAC, VIRTIO_NET_CTRL_MAC_TABLE_SET, tables,
		   8);
		BAD(VIRTIO_NET_CTRL_MAC, VIRTIO_NET_CTRL_MAC_TABLE_SET, wrong,
		    8);
		BAD(VIRTIO_NET_CTRL_MAC, VIRTIO_NET_CTRL_MAC_TABLE_SET, tables,
		    7);
		OK(VIRTIO_NET_CTRL_MQ, VIRTIO_NET_CTRL_MQ_VQ_PAIRS_SET, &one,
		   2);
		BAD(VIRTIO_NET_CTRL_MQ, VIRTIO_NET_CTRL_MQ_VQ_PAIRS_SET, &zero,
		    2);
		BAD(VIRTIO_NET_CTRL_MQ, VIRTIO_NET_CTRL_MQ_VQ_PAIRS_SET, &many,
		    2);
		BAD(VIRTIO_NET_CTRL_MQ, VIRTIO_NET_CTRL_MQ_VQ_PAIRS_SET, &one,
		    1);
		OK(VIRTIO_NET_CTRL_GUEST_OFFLOADS,
		   VIRTIO_NET_CTRL_GUEST_OFFLOADS_SET, &offloads, 8);
		BAD(VIRTIO_NET_CTRL_GUEST_OFFLOADS,
		    VIRTIO_NET_CTRL_GUEST_OFFLOADS_SET, &foreign, 8);
		OK(VIRTIO_NET_CTRL_ANNOUNCE, VIRTIO_NET_CTRL_ANNOUNCE_ACK, "",
		   0);
		BAD(99, 0, "", 0);
	}
	assert_int_equal(vl_device_get_config(d.dev, 0, buf, 6), 0);
	assert_memory_equal(buf, mac, 6);
	dev_snapshot(&d, &snap);
	assert_int_equal(snap.ctrl_commands, 2 * 17);
	assert_int_equal(snap.ctrl_errors, 2 * 11);
	dev_stop(&d, CTRL);
	assert_int_equal(d.watched_fd, -1);
	dev_free(&d);
}

/* Commands without room for the answer, without a command, with too much. */
static void malformed_control_chains(void **state)
{
	uint64_t gpa;
	struct rd_seg seg[2];
	struct rd_done done;

	(void)state;
	init(CTRL_FEATURES);
	dev_start(&d, CTRL);
	gpa = dev_alloc(&d, 8192, 0);
	/* No answer possible. */
	seg[0] = (struct rd_seg){ gpa, 3 };
	assert_true(rd_add(&d.ring[CTRL], seg, 1, 0, RD_DIRECT, 0) >= 0);
	/* A status buffer of 4096 bytes: one of them is written. */
	seg[1] = (struct rd_seg){ gpa + 4096, 4096 };
	assert_true(rd_add(&d.ring[CTRL], seg, 1, 1, RD_DIRECT, 1) >= 0);
	/* Only a status; one with a zero length; not even one byte of class. */
	assert_true(rd_add(&d.ring[CTRL], seg + 1, 0, 1, RD_DIRECT, 1) >= 0);
	seg[0].len = 1;
	assert_true(rd_add(&d.ring[CTRL], seg, 1, 1, RD_DIRECT, 1) >= 0);
	seg[0].len = 4096;
	assert_true(rd_add(&d.ring[CTRL], seg, 1, 1, RD_DIRECT, 1) >= 0);
	seg[1].len = 0;
	assert_true(rd_add(&d.ring[CTRL], seg, 1, 1, RD_DIRECT, 0) >= 0);
	/* Not mapped. */
	seg[0].gpa = 0x10;
	assert_true(rd_add(&d.ring[CTRL], seg, 1, 0, RD_DIRECT, 0) >= 0);
	dev_kick(&d, CTRL);
	vl_device_ctrl_kick(d.dev);
	for (int i = 0; i < 7; i++) {
		assert_int_equal(rd_take(&d.ring[CTRL], &done), 1);
		assert_int_equal(done.len, done.cookie);
	}
	assert_int_equal(command(VIRTIO_NET_CTRL_ANNOUNCE,
				 VIRTIO_NET_CTRL_ANNOUNCE_ACK, "", 0, false),
			 VIRTIO_NET_OK);
	/* B03 on this queue too. */
	rd_desc(&d.ring[CTRL], 0, (struct rd_seg){ gpa, 0 }, VRING_DESC_F_NEXT,
		0);
	rd_avail(&d.ring[CTRL], 0);
	dev_kick(&d, CTRL);
	vl_device_ctrl_kick(d.dev);
	assert_int_equal(rd_used_count(&d.ring[CTRL]), 1);
	dev_free(&d);
}

/* Commands whose feature was not negotiated are refused. */
static void commands_need_their_feature(void **state)
{
	const uint16_t one = 1;
	const uint8_t on = 1;

	(void)state;
	init(BASE | VL_FEATURE(VIRTIO_NET_F_CTRL_VQ));
	ctrl = 2; /* without VIRTIO_NET_F_MQ */
	dev_start(&d, ctrl);
	assert_int_equal(d.watched_fd, d.ring[ctrl].kick_fd);
	assert_int_equal(command(VIRTIO_NET_CTRL_MQ,
				 VIRTIO_NET_CTRL_MQ_VQ_PAIRS_SET, &one, 2,
				 false),
			 VIRTIO_NET_ERR);
	assert_int_equal(command(VIRTIO_NET_CTRL_RX, VIRTIO_NET_CTRL_RX_PROMISC,
				 &on, 1, false),
			 VIRTIO_NET_ERR);
	ctrl = CTRL;
	dev_free(&d);
}

static void link_changes_are_reported(void **state)
{
	uint16_t status;

	(void)state;
	init(BASE | VL_FEATURE(VIRTIO_NET_F_STATUS));
	d.backend->link = VL_LINK_DOWN;
	vl_device_backend_event(d.dev);
	assert_int_equal(d.config_changes, 1);
	assert_int_equal(vl_device_get_config(d.dev, 6, &status, 2), 0);
	assert_int_equal(status & VIRTIO_NET_S_LINK_UP, 0);
	vl_device_backend_event(d.dev); /* the same again: no news */
	assert_int_equal(d.config_changes, 1);
	d.backend->link = VL_LINK_UP;
	vl_device_backend_event(d.dev);
	assert_int_equal(d.config_changes, 2);
	assert_int_equal(vl_device_get_config(d.dev, 6, &status, 2), 0);
	assert_int_equal(status & VIRTIO_NET_S_LINK_UP, VIRTIO_NET_S_LINK_UP);
	dev_free(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_configurations_are_refused),
		cmocka_unit_test(only_offered_features_are_taken),
		cmocka_unit_test(config_space_is_bounded),
		cmocka_unit_test(rings_need_memory_and_a_number),
		cmocka_unit_test(rings_restart_at_any_index),
		cmocka_unit_test(driver_reset_starts_afresh),
		cmocka_unit_test(stopped_rings_touch_nothing),
		cmocka_unit_test(call_descriptor_is_replaced),
		cmocka_unit_test(pairs_are_independent),
		cmocka_unit_test(control_commands),
		cmocka_unit_test(malformed_control_chains),
		cmocka_unit_test(commands_need_their_feature),
		cmocka_unit_test(link_changes_are_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
