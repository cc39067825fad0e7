/* SPDX-License-Identifier: BSD-3-Clause */
/* The session as a well-behaved front-end sees it. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "vhost_client.h"

static void test_negotiation(void **state)
{
	struct client c;

	(void)state;
	client_open(&c);
	assert_int_equal(client_do(&c, VHOST_USER_SET_OWNER, NULL, 0, -1), 0);
	assert_int_equal(client_get(&c, VHOST_USER_GET_FEATURES),
			 F_OFFERED | F_PROTOCOL);
	assert_int_equal(client_get(&c, VHOST_USER_GET_PROTOCOL_FEATURES),
			 0x1a239);
	assert_int_equal(vl_vhost_protocol_features(), 0x1a239);
	assert_int_equal(client_get(&c, VHOST_USER_GET_QUEUE_NUM), 2);
	assert_int_equal(client_get(&c, VHOST_USER_GET_MAX_MEM_SLOTS), 509);
	assert_int_equal(client_u64(&c, VHOST_USER_SET_FEATURES,
				    F_PROTOCOL | F_VERSION_1 | F_INDIRECT),
			 0);
	assert_int_equal(c.dev.features, F_VERSION_1 | F_INDIRECT);
	assert_int_equal(client_do(&c, VHOST_USER_RESET_OWNER, NULL, 0, -1), 0);
	client_close(&c);
}

static void test_features_never_offered(void **state)
{
	struct client c;

	(void)state;
	client_open(&c);
	assert_int_equal(client_u64(&c, VHOST_USER_SET_FEATURES, 1ULL << 63),
			 -EINVAL);
	assert_int_equal(c.dev.set_features_calls, 0);
	assert_int_equal(vl_vhost_fd(c.vu), -1);
	client_connect(&c);
	assert_int_equal(
		client_u64(&c, VHOST_USER_SET_PROTOCOL_FEATURES, 1ULL << 1),
		-EINVAL);
	client_close(&c);
}

/* Each protocol feature can be taken alone (B67). */
static void test_each_protocol_feature_alone(void **state)
{
	uint64_t all = vl_vhost_protocol_features();

	(void)state;
	for (unsigned int bit = 0; bit < 64; bit++) {
		struct client c;

		if (!(all & 1ULL << bit))
			continue;
		client_open(&c);
		assert_int_equal(client_u64(&c,
					    VHOST_USER_SET_PROTOCOL_FEATURES,
					    1ULL << bit),
				 0);
		client_u64(&c, VHOST_USER_SET_FEATURES, F_VERSION_1);
		client_set_mem(&c);
		client_ring(&c, 0, 0);
		assert_int_equal(client_running(&c), 1);
		client_close(&c);
	}
}

static void test_without_protocol_features(void **state)
{
	struct client c;

	(void)state;
	client_open(&c);
	client_u64(&c, VHOST_USER_SET_FEATURES,
		   F_VERSION_1 | F_EVENT_IDX | F_INDIRECT);
	assert_int_equal(client_set_mem(&c), 0);
	for (uint32_t i = 0; i < CLIENT_VRINGS; i++) {
		client_ring(&c, i, (uint16_t)(100 + i));
		assert_int_equal(client_running(&c), i + 1);
		assert_int_equal(c.dev.ring[i].base, 100 + i);
		assert_int_equal(c.dev.ring[i].num, CLIENT_RING_NUM);
	}
	client_close(&c);
}

static void test_enable_decides(void **state)
{
	struct client c;

	(void)state;
	client_open(&c);
	client_u64(&c, VHOST_USER_SET_FEATURES, F_PROTOCOL | F_VERSION_1);
	client_set_mem(&c);
	client_ring(&c, 1, 7); /* the kick comes before the enable (B26) */
	assert_int_equal(client_running(&c), 0);
	client_state(&c, VHOST_USER_SET_VRING_ENABLE, 1, 1);
	assert_int_equal(client_running(&c), 1);
	c.dev.consumed = 5;
	client_state(&c, VHOST_USER_SET_VRING_ENABLE, 1, 0);
	assert_int_equal(client_running(&c), 0);
	client_state(&c, VHOST_USER_SET_VRING_ENABLE, 1, 1);
	assert_int_equal(c.dev.ring[1].base, 12);
	client_close(&c);
}

/* user-mode-linux: the last SET_FEATURES lacks bit 30 and no enable comes. */
static void test_bit_30_dropped_later(void **state)
{
	struct client c;

	(void)state;
	client_open(&c);
	client_u64(&c, VHOST_USER_SET_FEATURES, F_PROTOCOL | F_VERSION_1);
	client_set_mem(&c);
	client_ring(&c, 0, 0);
	assert_int_equal(client_running(&c), 0);
	client_u64(&c, VHOST_USER_SET_FEATURES, F_VERSION_1);
	assert_int_equal(client_running(&c), 1);
	assert_int_equal(c.dev.set_features_calls, 1);
	client_close(&c);
}

/* B51: what does not change must not stop anything. */
static void test_repeated_features(void **state)
{
	struct client c;

	(void)state;
	client_open(&c);
	client_u64(&c, VHOST_USER_SET_FEATURES, F_VERSION_1);
	client_set_mem(&c);
	client_ring(&c, 0, 0);
	assert_int_equal(c.dev.starts[0], 1);
	client_u64(&c, VHOST_USER_SET_FEATURES, F_VERSION_1);
	assert_int_equal(c.dev.stops[0], 0);
	assert_int_equal(c.dev.set_features_calls, 1);
	c.dev.consumed = 3;
	client_u64(&c, VHOST_USER_SET_FEATURES, F_VERSION_1 | F_EVENT_IDX);
	assert_int_equal(c.dev.stops[0], 1);
	assert_int_equal(client_running(&c), 1);
	assert_true(c.dev.ring[0].event_idx);
	assert_int_equal(c.dev.ring[0].base, 3);
	client_close(&c);
}

static void test_vring_base(void **state)
{
	struct client c;

	(void)state;
	client_open(&c);
	client_u64(&c, VHOST_USER_SET_FEATURES, F_VERSION_1);
	assert_int_equal(client_base(&c, 2), 0); /* never ran */
	client_state(&c, VHOST_USER_SET_VRING_BASE, 2, 0xabcd0007);
	assert_int_equal(client_base(&c, 2), 7);
	client_set_mem(&c);
	client_ring(&c, 0, 65535);
	client_ring(&c, 1, 0);
	c.dev.consumed = 1;
	assert_int_equal(client_base(&c, 0), 0);
	assert_int_equal(client_running(&c), 1);
	assert_int_equal(client_base(&c, 0), 0); /* stopped */
	/* Only a new kick starts it again, where it was. */
	client_state(&c, VHOST_USER_SET_VRING_ENABLE, 0, 1);
	assert_int_equal(client_running(&c), 1);
	assert_int_equal(client_do(&c, VHOST_USER_SET_VRING_KICK,
				   &(uint64_t){ 0 }, 8, c.event_fd),
			 0);
	assert_int_equal(client_running(&c), 2);
	assert_int_equal(c.dev.ring[0].base, 0);
	client_close(&c);
}

/* The kick descriptor given with GET_VRING_BASE's ring is closed. */
static void test_vring_base_closes_kick(void **state)
{
	struct client c;
	unsigned int fds;

	(void)state;
	client_open(&c);
	fds = open_fds();
	for (int i = 0; i < 1000; i++) {
		uint64_t index = 3;

		client_do(&c, VHOST_USER_SET_VRING_KICK, &index, 8, c.event_fd);
		assert_int_equal(open_fds(), fds + 1);
		client_base(&c, 3);
		assert_int_equal(open_fds(), fds);
	}
	client_close(&c);
}

static void test_call_and_err(void **state)
{
	struct client c;
	uint64_t with = 0, nofd = VL_MSG_VRING_NOFD;
	int pair[2], fd = eventfd(0, 0);

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	client_open(&c);
	client_u64(&c, VHOST_USER_SET_FEATURES, F_VERSION_1);
	client_set_mem(&c);
	client_ring(&c, 0, 0);
	assert_int_equal(c.dev.stops[0], 0);
	client_do(&c, VHOST_USER_SET_VRING_CALL, &with, 8, fd);
	assert_int_equal(c.dev.calls, 1);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	client_do(&c, VHOST_USER_SET_VRING_CALL, &with, 8, pair[0]);
	assert_true(fcntl(pair[0], F_GETFL) & O_NONBLOCK);
	client_do(&c, VHOST_USER_SET_VRING_CALL, &nofd, 8, -1);
	assert_int_equal(c.dev.calls, 3);
	assert_int_equal(c.dev.ring[0].call_fd, -1);
	client_do(&c, VHOST_USER_SET_VRING_ERR, &with, 8, pair[1]);
	assert_int_equal(c.dev.errs, 1);
	assert_true(fcntl(pair[1], F_GETFL) & O_NONBLOCK);
	client_do(&c, VHOST_USER_SET_VRING_ERR, &nofd, 8, -1);
	assert_int_equal(c.dev.ring[0].err_fd, -1);
	assert_int_equal(c.dev.stops[0], 0);
	/* A polled ring has no kick descriptor, yet runs. */
	client_do(&c, VHOST_USER_SET_VRING_KICK, &nofd, 8, -1);
	assert_int_equal(client_running(&c), 1);
	assert_int_equal(c.dev.ring[0].kick_fd, -1);
	client_close(&c);
	close(fd);
	close(pair[0]);
	close(pair[1]);
}

static void test_files_that_cannot_signal(void **state)
{
	static const uint32_t requests[] = { VHOST_USER_SET_VRING_KICK,
					     VHOST_USER_SET_VRING_CALL,
					     VHOST_USER_SET_VRING_ERR };

	(void)state;
	for (int i = 0; i < 3; i++) {
		uint64_t ring = 1;
		struct client c;
		int dir = open("/", O_RDONLY | O_DIRECTORY);

		client_open(&c);
		client_u64(&c, VHOST_USER_SET_PROTOCOL_FEATURES, P_REPLY_ACK);
		assert_int_not_equal(
			client_ack(&c, requests[i], &ring, 8, c.mem_fd), 0);
		assert_int_not_equal(client_ack(&c, requests[i], &ring, 8, dir),
				     0);
		assert_int_not_equal(client_ack(&c, requests[i], &ring, 8, -1),
				     0);
		assert_int_equal(
			client_ack(&c, requests[i], &ring, 8, c.event_fd), 0);
		client_close(&c);
		close(dir);
	}
}

/* Every order of a complete set of messages ends with a running ring (B52). */
static void test_any_order(void **state)
{
	static const int n = 8;
	unsigned int seed = 1;

	(void)state;
	for (int round = 0; round < 3000; round++) {
		int order[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
		struct vl_msg_mem table = client_table();
		struct vl_msg_vring_addr addr = client_addr(3);
		struct vl_msg_vring_state num = { 3, CLIENT_RING_NUM },
					  base = { 3, 77 }, on = { 3, 1 };
		uint64_t ring = 3, features = F_PROTOCOL | F_VERSION_1;
		struct client c;

		for (int i = n - 1; i > 0; i--) {
			int j = rand_r(&seed) % (i + 1), t = order[i];

			order[i] = order[j];
			order[j] = t;
		}
		client_open(&c);
		for (int i = 0; i < n; i++) {
			const struct {
				uint32_t request;
				const void *payload;
				uint32_t size;
				int fd;
			} m[] = {
				{ VHOST_USER_SET_FEATURES, &features, 8, -1 },
				{ VHOST_USER_SET_MEM_TABLE, &table, 40,
				  c.mem_fd },
				{ VHOST_USER_SET_VRING_NUM, &num, 8, -1 },
				{ VHOST_USER_SET_VRING_BASE, &base, 8, -1 },
				{ VHOST_USER_SET_VRING_ADDR, &addr, 40, -1 },
				{ VHOST_USER_SET_VRING_KICK, &ring, 8,
				  c.event_fd },
				{ VHOST_USER_SET_VRING_CALL, &ring, 8,
				  c.event_fd },
				{ VHOST_USER_SET_VRING_ENABLE, &on, 8, -1 },
			};
			int k = order[i];

			assert_int_equal(client_do(&c, m[k].request,
						   m[k].payload, m[k].size,
						   m[k].fd),
					 0);
		}
		assert_int_equal(client_running(&c), 1);
		assert_int_equal(c.dev.ring[3].base, 77);
		assert_int_equal(c.dev.ring[3].event_idx, false);
		assert_int_equal(c.dev.features, F_VERSION_1);
		assert_true(c.dev.ring[3].call_fd >= 0);
		client_close(&c);
	}
}

static void check_reset(uint32_t request, const void *payload, uint32_t size)
{
	struct client c;

	client_open(&c);
	client_u64(&c, VHOST_USER_SET_PROTOCOL_FEATURES, P_REPLY_ACK);
	client_u64(&c, VHOST_USER_SET_FEATURES, F_PROTOCOL | F_VERSION_1);
	client_set_mem(&c);
	client_ring(&c, 0, 9);
	client_state(&c, VHOST_USER_SET_VRING_ENABLE, 0, 1);
	client_u64(&c, VHOST_USER_SET_STATUS, 15);
	assert_int_equal(client_get(&c, VHOST_USER_GET_STATUS), 15);
	assert_int_equal(client_running(&c), 1);
	assert_int_equal(client_ack(&c, request, payload, size, -1), 0);
	assert_int_equal(client_running(&c), 0);
	assert_int_equal(c.dev.resets, 1);
	assert_int_equal(client_get(&c, VHOST_USER_GET_STATUS), 0);
	assert_int_equal(client_base(&c, 0), 0);
	assert_non_null(c.dev.mem);
	/* The driver comes back; memory and protocol features are still good.
	 * The ring is disabled until it is enabled again. */
	client_u64(&c, VHOST_USER_SET_FEATURES, F_PROTOCOL | F_VERSION_1);
	client_ring(&c, 0, 0);
	assert_int_equal(client_running(&c), 0);
	client_state(&c, VHOST_USER_SET_VRING_ENABLE, 0, 1);
	assert_int_equal(client_running(&c), 1);
	client_close(&c);
}

static void test_reset(void **state)
{
	uint64_t zero = 0;

	(void)state;
	check_reset(VHOST_USER_RESET_DEVICE, NULL, 0);
	check_reset(VHOST_USER_SET_STATUS, &zero, 8);
}

static void test_memory_change_under_rings(void **state)
{
	struct vl_msg_mem table = client_table();
	struct vl_msg_mem_reg reg = {
		.region = { .gpa = 1ULL << 32, .size = 0x1000, .uva = 0x1000 }
	};
	struct client c;

	(void)state;
	client_open(&c);
	client_u64(&c, VHOST_USER_SET_FEATURES, F_VERSION_1);
	client_set_mem(&c);
	client_ring(&c, 0, 0);
	client_ring(&c, 4, 0);
	c.dev.consumed = 2;
	assert_int_equal(client_do(&c, VHOST_USER_ADD_MEM_REG, &reg,
				   sizeof(reg), c.mem_fd),
			 0);
	assert_int_equal(client_running(&c), 2);
	assert_int_equal(c.dev.ring[0].base, 2);
	assert_int_equal(vl_guest_mem_count(c.dev.mem), 2);
	/* Ring 4 lies behind the end of this table: it waits for better. */
	table.region[0].size = 4 * 0x8000ULL;
	assert_int_equal(
		client_do(&c, VHOST_USER_SET_MEM_TABLE, &table, 40, c.mem_fd),
		0);
	assert_true(c.dev.running[0]);
	assert_false(c.dev.running[4]);
	client_set_mem(&c);
	assert_int_equal(client_running(&c), 2);
	assert_int_equal(c.dev.ring[4].base, 4);
	client_close(&c);
}

/* A refused table leaves the old one in use. */
static void test_memory_refused(void **state)
{
	struct vl_msg_mem table = client_table();
	struct client c;

	(void)state;
	client_open(&c);
	client_u64(&c, VHOST_USER_SET_PROTOCOL_FEATURES, P_REPLY_ACK);
	client_u64(&c, VHOST_USER_SET_FEATURES, F_VERSION_1);
	client_set_mem(&c);
	client_ring(&c, 0, 0);
	table.region[0].size *= 2;
	assert_int_not_equal(
		client_ack(&c, VHOST_USER_SET_MEM_TABLE, &table, 40, c.mem_fd),
		0);
	assert_int_equal(client_running(&c), 1);
	c.dev.fail_mem = -ENOMEM;
	table = client_table();
	assert_int_not_equal(
		client_ack(&c, VHOST_USER_SET_MEM_TABLE, &table, 40, c.mem_fd),
		0);
	assert_int_equal(client_running(&c), 1);
	client_close(&c);
}

/* user-mode-linux sends room for more regions than it uses. */
static void test_table_longer_than_needed(void **state)
{
	struct vl_msg_mem table = client_table();
	struct client c;

	(void)state;
	client_open(&c);
	assert_int_equal(client_do(&c, VHOST_USER_SET_MEM_TABLE, &table, 8 + 64,
				   c.mem_fd),
			 0);
	assert_int_equal(vl_guest_mem_count(c.dev.mem), 1);
	client_close(&c);
}

static void test_ring_cannot_start(void **state)
{
	struct client c;

	(void)state;
	client_open(&c);
	c.dev.fail_start = -ENOMEM;
	client_u64(&c, VHOST_USER_SET_FEATURES, F_VERSION_1);
	client_set_mem(&c);
	client_ring(&c, 0, 0);
	assert_int_equal(client_running(&c), 0);
	c.dev.fail_start = 0;
	assert_int_equal(client_get(&c, VHOST_USER_GET_QUEUE_NUM), 2);
	assert_int_equal(client_running(&c), 1);
	client_close(&c);
}

static void test_config(void **state)
{
	struct vl_msg_config q = { .offset = 6, .size = 6 };
	struct vl_vhost_msg a;
	struct client c;

	(void)state;
	client_open(&c);
	client_send_fds(&c, VHOST_USER_GET_CONFIG, VL_MSG_VERSION, &q, 12 + 6,
			-1, 0);
	assert_int_equal(vl_vhost_input(c.vu), 0);
	assert_true(client_answer(&c, &a));
	assert_int_equal(a.header.size, 12 + 6);
	assert_int_equal(a.payload.config.offset, 6);
	assert_int_equal(a.payload.config.data[0], 0xc6);
	assert_int_equal(a.payload.config.data[5], 0xcb);
	client_close(&c);
}

static void test_mtu(void **state)
{
	struct client c;

	(void)state;
	client_open(&c);
	assert_int_equal(client_u64(&c, VHOST_USER_NET_SET_MTU, 9000), 0);
	assert_int_equal(c.dev.mtu, 9000);
	assert_int_equal(client_u64(&c, VHOST_USER_NET_SET_MTU, 1), 0);
	assert_int_equal(c.dev.mtu, 9000);
	client_u64(&c, VHOST_USER_SET_PROTOCOL_FEATURES, P_REPLY_ACK);
	assert_int_not_equal(client_ack(&c, VHOST_USER_NET_SET_MTU,
					&(uint64_t){ 65536 }, 8, -1),
			     0);
	client_close(&c);
}

static void test_backend_channel(void **state)
{
	struct vl_msg_header h;
	char text[8] = "reply";
	struct client c;
	int pair[2];

	(void)state;
	client_open(&c);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(
		client_do(&c, VHOST_USER_SET_BACKEND_REQ_FD, NULL, 0, pair[1]),
		0);
	assert_true(vl_vhost_backend_fd(c.vu) >= 0);
	vl_vhost_config_changed(c.vu); /* CONFIG was not taken */
	assert_int_equal(recv(pair[0], &h, sizeof(h), MSG_DONTWAIT), -1);
	client_u64(&c, VHOST_USER_SET_PROTOCOL_FEATURES, P_CONFIG);
	vl_vhost_config_changed(c.vu);
	assert_int_equal(recv(pair[0], &h, sizeof(h), MSG_DONTWAIT), 12);
	assert_int_equal(h.request, VHOST_USER_BACKEND_CONFIG_CHANGE_MSG);
	assert_int_equal(h.flags, VL_MSG_VERSION);
	assert_int_equal(h.size, 0);
	assert_int_equal(send(pair[0], text, 8, 0), 8);
	vl_vhost_backend_input(c.vu);
	assert_true(vl_vhost_backend_fd(c.vu) >= 0);
	/* Nobody reads: not a reason to wait or to end anything. */
	for (int i = 0; i < 100000; i++)
		vl_vhost_config_changed(c.vu);
	close(pair[0]);
	vl_vhost_config_changed(c.vu);
	vl_vhost_backend_input(c.vu);
	assert_int_equal(vl_vhost_backend_fd(c.vu), -1);
	vl_vhost_config_changed(c.vu);
	assert_int_equal(client_get(&c, VHOST_USER_GET_QUEUE_NUM), 2);
	assert_int_equal(client_do(&c, VHOST_USER_SET_BACKEND_REQ_FD, NULL, 0,
				   c.event_fd),
			 -EINVAL);
	close(pair[1]);
	client_close(&c);
}

static void test_sessions(void **state)
{
	struct vl_vhost_state s;
	struct client c;
	int pair[2];

	(void)state;
	client_open(&c);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(vl_vhost_attach(c.vu, pair[0]), -EBUSY);
	assert_int_equal(fcntl(pair[0], F_GETFD), -1);
	close(pair[1]);
	for (unsigned int i = 1; i <= 1000; i++) {
		client_u64(&c, VHOST_USER_SET_FEATURES, F_VERSION_1);
		client_set_mem(&c);
		client_ring(&c, 0, 0);
		client_ring(&c, 3, 0);
		assert_int_equal(client_running(&c), 2);
		close(c.sock);
		c.sock = -1;
		assert_int_equal(vl_vhost_input(c.vu), -ECONNRESET);
		assert_int_equal(client_running(&c), 0);
		assert_null(c.dev.mem);
		assert_int_equal(c.dev.resets, i);
		vl_vhost_state(c.vu, &s);
		assert_false(s.connected);
		assert_int_equal(s.sessions, i);
		client_connect(&c);
		vl_vhost_state(c.vu, &s);
		assert_int_equal(s.protocol_errors, 0);
	}
	client_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_negotiation),
		cmocka_unit_test(test_features_never_offered),
		cmocka_unit_test(test_each_protocol_feature_alone),
		cmocka_unit_test(test_without_protocol_features),
		cmocka_unit_test(test_enable_decides),
		cmocka_unit_test(test_bit_30_dropped_later),
		cmocka_unit_test(test_repeated_features),
		cmocka_unit_test(test_vring_base),
		cmocka_unit_test(test_vring_base_closes_kick),
		cmocka_unit_test(test_call_and_err),
		cmocka_unit_test(test_files_that_cannot_signal),
		cmocka_unit_test(test_any_order),
		cmocka_unit_test(test_reset),
		cmocka_unit_test(test_memory_change_under_rings),
		cmocka_unit_test(test_memory_refused),
		cmocka_unit_test(test_table_longer_than_needed),
		cmocka_unit_test(test_ring_cannot_start),
		cmocka_unit_test(test_config),
		cmocka_unit_test(test_mtu),
		cmocka_unit_test(test_backend_channel),
		cmocka_unit_test(test_sessions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
