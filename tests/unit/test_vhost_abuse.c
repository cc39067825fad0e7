/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The session as a broken or hostile front-end sees it. client_close() checks
 * in every test that no ring runs, no memory and no descriptor is left.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "vhost_client.h"

#define REQUESTS 45u

/* A payload that the request accepts, and whether it needs a descriptor. */
struct sample {
	uint8_t payload[VL_MSG_PAYLOAD_MAX];
	uint32_t size;
	int fd;
	bool answers;
};

static struct sample sample_of(const struct client *c, uint32_t request)
{
	struct sample s = { .size = 8, .fd = -1 };
	struct vl_msg_mem table = client_table();
	struct vl_msg_vring_addr addr = client_addr(0);
	struct vl_msg_vring_state num = { 0, CLIENT_RING_NUM };
	struct vl_msg_mem_reg reg = { .region = table.region[0] };

	switch (request) {
	case VHOST_USER_GET_FEATURES:
	case VHOST_USER_GET_PROTOCOL_FEATURES:
	case VHOST_USER_GET_QUEUE_NUM:
	case VHOST_USER_GET_MAX_MEM_SLOTS:
	case VHOST_USER_GET_STATUS:
		s.size = 0;
		s.answers = true;
		break;
	case VHOST_USER_GET_CONFIG:
		s.size = VL_MSG_CONFIG_HEADER_SIZE;
		s.answers = true;
		break;
	case VHOST_USER_SET_CONFIG:
		s.size = VL_MSG_CONFIG_HEADER_SIZE;
		break;
	case VHOST_USER_GET_VRING_BASE:
		s.answers = true;
		break;
	case VHOST_USER_SET_OWNER:
	case VHOST_USER_RESET_OWNER:
	case VHOST_USER_RESET_DEVICE:
		s.size = 0;
		break;
	case VHOST_USER_SET_MEM_TABLE:
		memcpy(s.payload, &table, sizeof(table));
		s.size = 40;
		s.fd = c->mem_fd;
		break;
	case VHOST_USER_SET_VRING_NUM:
		memcpy(s.payload, &num, sizeof(num));
		break;
	case VHOST_USER_SET_VRING_ADDR:
		memcpy(s.payload, &addr, sizeof(addr));
		s.size = sizeof(addr);
		break;
	case VHOST_USER_SET_VRING_KICK:
	case VHOST_USER_SET_VRING_CALL:
	case VHOST_USER_SET_VRING_ERR:
		s.fd = c->event_fd;
		break;
	case VHOST_USER_SET_BACKEND_REQ_FD:
		s.size = 0;
		s.fd = c->sock;
		break;
	case VHOST_USER_ADD_MEM_REG:
	case VHOST_USER_REM_MEM_REG:
		memcpy(s.payload, &reg, sizeof(reg));
		s.size = sizeof(reg);
		s.fd = request == VHOST_USER_ADD_MEM_REG ? c->mem_fd : -1;
		break;
	default:
		break;
	}
	return s;
}

/* A session in which a ring runs. */
static void set_up(struct client *c, uint64_t protocol_features)
{
	client_u64(c, VHOST_USER_SET_PROTOCOL_FEATURES, protocol_features);
	client_u64(c, VHOST_USER_SET_FEATURES, F_VERSION_1);
	client_set_mem(c);
	client_ring(c, 1, 0);
	assert_int_equal(client_running(c), 1);
}

static void test_unknown_requests(void **state)
{
	static const uint32_t requests[] = { 0,  19, 22,       35,        41,
					     99, 44, 1u << 31, UINT32_MAX };
	struct client c;

	(void)state;
	client_open(&c);
	set_up(&c, 0);
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		assert_int_equal(client_u64(&c, requests[i], 0), 0);
	client_u64(&c, VHOST_USER_SET_PROTOCOL_FEATURES, P_REPLY_ACK);
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		assert_int_not_equal(
			client_ack(&c, requests[i], NULL, 0, c.event_fd), 0);
	assert_int_equal(client_running(&c), 1);
	client_close(&c);
}

/* B53: exactly one or no answer, for every request and both agreements. */
static void check_answers(uint32_t request, bool negotiated, bool need)
{
	uint32_t flags = VL_MSG_VERSION | (need ? VL_MSG_NEED_REPLY : 0);
	struct vl_vhost_msg a;
	struct client c;
	struct sample s;
	int ret;

	client_open(&c);
	client_u64(&c, VHOST_USER_SET_PROTOCOL_FEATURES,
		   negotiated ? P_REPLY_ACK : 0);
	s = sample_of(&c, request);
	/* Where it matters, stay with what was agreed upon. */
	if (request == VHOST_USER_SET_PROTOCOL_FEATURES && negotiated)
		s.payload[0] = P_REPLY_ACK;
	client_send_fds(&c, request, flags, s.payload, s.size, s.fd, s.fd >= 0);
	ret = vl_vhost_input(c.vu);
	if (s.answers || (negotiated && need)) {
		assert_int_equal(ret, 0);
		assert_true(client_answer(&c, &a));
		assert_int_equal(a.header.request, request);
		if (request == VHOST_USER_GET_CONFIG)
			assert_int_equal(a.header.size, s.size);
		else
			assert_int_equal(a.header.size, 8);
		/* NEED_REPLY does not turn an answer into a mere "done". */
		if (request == VHOST_USER_GET_FEATURES ||
		    request == VHOST_USER_GET_QUEUE_NUM)
			assert_int_not_equal(a.payload.u64, 0);
	}
	assert_false(client_answer(&c, &a));
	client_close(&c);
}

static void test_need_reply_matrix(void **state)
{
	(void)state;
	for (uint32_t request = 0; request < REQUESTS; request++) {
		for (int i = 0; i < 4; i++)
			check_answers(request, i & 1, i & 2);
	}
}

/* B55: whatever comes along is taken or closed. */
static void test_any_number_of_fds(void **state)
{
	static const unsigned int counts[] = { 0, 1, 8, VL_MSG_FDS_MAX };
	struct vl_vhost_msg a;

	(void)state;
	for (int round = 0; round < 40; round++) {
		for (uint32_t request = 0; request < REQUESTS; request++) {
			unsigned int n = counts[(round + request) % 4];
			uint64_t agreed = round & 4 ? P_REPLY_ACK : 0;
			struct client c;
			struct sample s;

			client_open(&c);
			set_up(&c, agreed);
			s = sample_of(&c, request);
			client_send_fds(&c, request,
					VL_MSG_VERSION | VL_MSG_NEED_REPLY,
					s.payload, s.size,
					round & 8 ? c.mem_fd : c.event_fd, n);
			vl_vhost_input(c.vu);
			while (client_answer(&c, &a))
				;
			client_close(&c);
		}
	}
}

/* The same within one session: nothing piles up. */
static void test_fds_stay_flat(void **state)
{
	struct client c;
	unsigned int fds;

	(void)state;
	client_open(&c);
	set_up(&c, P_REPLY_ACK);
	fds = open_fds();
	for (int i = 0; i < 3000; i++) {
		uint32_t request = (uint32_t)i % 3 ? VHOST_USER_SET_VRING_CALL
						   : VHOST_USER_SET_STATUS;
		uint64_t value = 1;
		struct vl_vhost_msg a;

		client_send_fds(&c, request, VL_MSG_VERSION | VL_MSG_NEED_REPLY,
				&value, 8, c.event_fd,
				i % 2 ? 8 : VL_MSG_FDS_MAX);
		assert_int_equal(vl_vhost_input(c.vu), 0);
		assert_true(client_answer(&c, &a));
		assert_int_not_equal(a.payload.u64, 0);
		assert_int_equal(open_fds(), fds);
	}
	client_close(&c);
}

/* Whether a request may have a payload of that size. */
static bool size_fits(uint32_t request, const struct sample *s, uint32_t size)
{
	switch (request) {
	case VHOST_USER_SET_MEM_TABLE:
		return size >= s->size && size <= sizeof(struct vl_msg_mem);
	case VHOST_USER_GET_CONFIG:
		return size >= s->size;
	default:
		return size == s->size;
	}
}

/* Requests that are refused whatever they hold. */
static bool refused(uint32_t request)
{
	switch (request) {
	case VHOST_USER_SET_LOG_BASE:
	case VHOST_USER_SET_LOG_FD:
	case VHOST_USER_SET_CONFIG:
	case VHOST_USER_REM_MEM_REG: /* the sample may not match */
	case VHOST_USER_ADD_MEM_REG: /* it is there already */
	case VHOST_USER_NET_SET_MTU: /* of the sample: 0 */
		return true;
	default:
		return request > VHOST_USER_GET_STATUS ||
		       (request >= 26 && request < 34) || request == 35 ||
		       request == 19 || request == 22 || request == 23;
	}
}

static void check_size(uint32_t request, uint32_t size)
{
	struct vl_vhost_msg a;
	struct client c;
	struct sample s;
	bool good;
	int ret;

	client_open(&c);
	set_up(&c, P_REPLY_ACK);
	s = sample_of(&c, request);
	good = size_fits(request, &s, size);
	client_send_fds(&c, request, VL_MSG_VERSION | VL_MSG_NEED_REPLY,
			s.payload, size, s.fd, s.fd >= 0);
	ret = vl_vhost_input(c.vu);
	if (s.answers) {
		assert_int_equal(ret, good ? 0 : -EPROTO);
	} else if (good && request == VHOST_USER_SET_PROTOCOL_FEATURES) {
		assert_int_equal(ret, 0); /* the sample drops REPLY_ACK */
	} else {
		assert_int_equal(ret, 0);
		assert_true(client_answer(&c, &a));
		if (!refused(request))
			assert_int_equal(a.payload.u64 == 0, good);
		else if (!good)
			assert_int_not_equal(a.payload.u64, 0);
	}
	client_close(&c);
}

/* B56 */
static void test_sizes(void **state)
{
	(void)state;
	for (uint32_t request = 1; request < REQUESTS; request++) {
		for (uint32_t size = 0; size <= VL_MSG_PAYLOAD_MAX; size += 4)
			check_size(request, size);
	}
}

static void test_payload_larger_than_any(void **state)
{
	static const uint32_t sizes[] = { VL_MSG_PAYLOAD_MAX + 1, 0x7fffffff,
					  0xffffffff };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct vl_msg_header h = { 1, VL_MSG_VERSION, sizes[i] };
		struct client c;

		client_open(&c);
		set_up(&c, 0);
		assert_int_equal(send(c.sock, &h, sizeof(h), 0), sizeof(h));
		assert_int_equal(vl_vhost_input(c.vu), -EMSGSIZE);
		assert_int_equal(vl_vhost_fd(c.vu), -1);
		client_close(&c);
	}
}

static void test_disconnect_after_each_byte(void **state)
{
	(void)state;
	for (uint32_t request = 0; request < REQUESTS; request++) {
		struct client c;
		struct sample s;

		client_open(&c);
		s = sample_of(&c, request);
		for (size_t n = 0; n < VL_MSG_HEADER_SIZE + s.size; n++) {
			struct vl_msg_header h = { request, VL_MSG_VERSION,
						   s.size };
			uint8_t wire[VL_MSG_HEADER_SIZE + VL_MSG_PAYLOAD_MAX];

			set_up(&c, 0);
			memcpy(wire, &h, sizeof(h));
			memcpy(wire + sizeof(h), s.payload, s.size);
			assert_int_equal(send(c.sock, wire, n, 0), n);
			assert_int_equal(vl_vhost_input(c.vu), 0);
			close(c.sock);
			c.sock = -1;
			assert_int_equal(vl_vhost_input(c.vu), -ECONNRESET);
			client_connect(&c);
		}
		client_close(&c);
	}
}

static void test_ring_index(void **state)
{
	static const uint32_t requests[] = {
		VHOST_USER_SET_VRING_NUM,    VHOST_USER_SET_VRING_ADDR,
		VHOST_USER_SET_VRING_BASE,   VHOST_USER_GET_VRING_BASE,
		VHOST_USER_SET_VRING_ENABLE, VHOST_USER_SET_VRING_KICK,
		VHOST_USER_SET_VRING_CALL,   VHOST_USER_SET_VRING_ERR,
	};
	static const uint32_t indices[] = { CLIENT_VRINGS, 64, 255, 256 + 64,
					    UINT32_MAX };

	(void)state;
	for (size_t i = 0; i < 8; i++) {
		for (size_t j = 0; j < 5; j++) {
			struct client c;
			struct sample s;

			client_open(&c);
			set_up(&c, 0);
			s = sample_of(&c, requests[i]);
			memcpy(s.payload, &indices[j], 4);
			assert_int_equal(client_do(&c, requests[i], s.payload,
						   s.size, s.fd),
					 -EINVAL);
			client_close(&c);
		}
	}
}

static void test_ring_sizes(void **state)
{
	static const struct {
		uint32_t num;
		bool good;
	} cases[] = {
		{ 0, false },        { 1, false },          { 2, true },
		{ 3, false },        { 255, false },        { 256, true },
		{ 32767, false },    { 32768, true },       { 65536, false },
		{ 1u << 31, false }, { UINT32_MAX, false },
	};
	struct client c;

	(void)state;
	client_open(&c);
	set_up(&c, P_REPLY_ACK);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vl_msg_vring_state s = { 0, cases[i].num };

		assert_int_equal(client_ack(&c, VHOST_USER_SET_VRING_NUM, &s,
					    sizeof(s), -1) == 0,
				 cases[i].good);
	}
	client_close(&c);
}

/* B57: rings partly mapped, not aligned, at the very end. */
static void test_ring_addresses(void **state)
{
	const uint64_t end = CLIENT_UVA + CLIENT_MEM_SIZE;
	const struct {
		uint64_t desc, avail, used;
		bool good;
	} cases[] = {
		{ end - 4096, CLIENT_UVA, CLIENT_UVA, true },
		{ end - 4096 + 16, CLIENT_UVA, CLIENT_UVA, false },
		{ CLIENT_UVA, end - 518, CLIENT_UVA, true },
		{ CLIENT_UVA, end - 516, CLIENT_UVA, false },
		{ CLIENT_UVA, CLIENT_UVA, end - 2056, true },
		{ CLIENT_UVA, CLIENT_UVA, end - 2052, false },
		{ CLIENT_UVA + 8, CLIENT_UVA, CLIENT_UVA, false },
		{ CLIENT_UVA, CLIENT_UVA + 1, CLIENT_UVA, false },
		{ CLIENT_UVA, CLIENT_UVA, CLIENT_UVA + 2, false },
		{ 0, CLIENT_UVA, CLIENT_UVA, false },
		{ UINT64_MAX - 15, CLIENT_UVA, CLIENT_UVA, false },
		{ CLIENT_UVA - 16, CLIENT_UVA, CLIENT_UVA, false },
	};
	struct client c;

	(void)state;
	client_open(&c);
	set_up(&c, P_REPLY_ACK);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vl_msg_vring_addr a = { .index = 1,
					       .desc = cases[i].desc,
					       .avail = cases[i].avail,
					       .used = cases[i].used };

		assert_int_equal(client_ack(&c, VHOST_USER_SET_VRING_ADDR, &a,
					    sizeof(a), -1) == 0,
				 cases[i].good);
		assert_int_equal(client_running(&c), cases[i].good);
	}
	client_close(&c);
}

/* A ring that was accepted before the memory came, and does not fit then. */
static void test_address_before_memory(void **state)
{
	struct vl_msg_vring_addr a = client_addr(1);
	struct client c;

	(void)state;
	client_open(&c);
	client_u64(&c, VHOST_USER_SET_FEATURES, F_VERSION_1);
	client_ring(&c, 1, 0);
	a.used = 0x1000;
	assert_int_equal(
		client_do(&c, VHOST_USER_SET_VRING_ADDR, &a, sizeof(a), -1), 0);
	assert_int_equal(client_set_mem(&c), 0);
	assert_int_equal(client_running(&c), 0);
	a = client_addr(1);
	assert_int_equal(
		client_do(&c, VHOST_USER_SET_VRING_ADDR, &a, sizeof(a), -1), 0);
	assert_int_equal(client_running(&c), 1);
	client_close(&c);
}

static void test_config_ranges(void **state)
{
	static const struct vl_msg_config cases[] = {
		{ .offset = 0xffffffff, .size = 1 },
		{ .offset = 0xffffffff, .size = 0xffffffff },
		{ .offset = 1, .size = 0xffffffff },
		{ .offset = 0, .size = 257 },
		{ .offset = 12, .size = 1 },
		{ .offset = 0xffffff80, .size = 256 },
	};
	struct client c;

	(void)state;
	client_open(&c);
	set_up(&c, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vl_vhost_msg a;

		client_send_fds(&c, VHOST_USER_GET_CONFIG, VL_MSG_VERSION,
				&cases[i], VL_MSG_CONFIG_HEADER_SIZE, -1, 0);
		assert_int_equal(vl_vhost_input(c.vu), 0);
		assert_true(client_answer(&c, &a));
		assert_int_equal(a.header.size, 0);
	}
	assert_int_equal(client_do(&c, VHOST_USER_SET_CONFIG, &cases[0],
				   VL_MSG_CONFIG_HEADER_SIZE, -1),
			 0);
	assert_int_equal(client_running(&c), 1);
	client_close(&c);
}

static void test_dirty_log_is_refused(void **state)
{
	static const uint32_t requests[] = { VHOST_USER_SET_LOG_BASE,
					     VHOST_USER_SET_LOG_FD };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct client c;

		client_open(&c);
		assert_int_equal(client_do(&c, requests[i], &(uint64_t){ 0 }, 8,
					   c.mem_fd),
				 -EOPNOTSUPP);
		client_close(&c);
	}
}

static void test_memory_tables(void **state)
{
	const uint64_t page = 4096, all = CLIENT_MEM_SIZE;
	const struct {
		uint32_t n, fds;
		struct vl_msg_region r[2];
		bool good;
	} cases[] = {
		{ 1, 1, { { 0, all, 0, 0 } }, true },
		{ 0, 0, { { 0, all, 0, 0 } }, false },
		{ 1, 0, { { 0, all, 0, 0 } }, false },
		{ 1, 2, { { 0, all, 0, 0 } }, false },
		{ 1, 1, { { 0, 0, 0, 0 } }, false },
		{ 1, 1, { { 0, all + 1, 0, 0 } }, false },
		{ 1, 1, { { 0, page, 0, all } }, false },
		{ 1, 1, { { 0, page, 0, UINT64_MAX - 10 } }, false },
		{ 1, 1, { { UINT64_MAX - 10, page, 0, 0 } }, false },
		{ 1, 1, { { 0, page, UINT64_MAX - 10, 0 } }, false },
		{ 2, 2, { { 0, all, 0, 0 }, { page, page, all, 0 } }, false },
		{ 2, 2, { { 0, all, 0, 0 }, { all, page, page, 0 } }, false },
		{ 2, 2, { { 0, page, 0, 0 }, { page, page, page, 0 } }, true },
		{ 9, 2, { { 0, page, 0, 0 }, { page, page, page, 0 } }, false },
		{ UINT32_MAX, 1, { { 0, page, 0, 0 } }, false },
	};
	struct client c;

	(void)state;
	client_open(&c);
	set_up(&c, P_REPLY_ACK);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vl_msg_mem t = { .n = cases[i].n };
		struct vl_vhost_msg a;

		memcpy(t.region, cases[i].r, sizeof(cases[i].r));
		client_send_fds(&c, VHOST_USER_SET_MEM_TABLE,
				VL_MSG_VERSION | VL_MSG_NEED_REPLY, &t, 8 + 64,
				c.mem_fd, cases[i].fds);
		assert_int_equal(vl_vhost_input(c.vu), 0);
		assert_true(client_answer(&c, &a));
		assert_int_equal(a.payload.u64 == 0, cases[i].good);
	}
	client_close(&c);
}

static unsigned int mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned int n = 0;
	int ch;

	assert_non_null(f);
	while ((ch = fgetc(f)) != EOF)
		n += ch == '\n';
	fclose(f);
	return n;
}

/* B59 */
static void test_add_and_remove(void **state)
{
	struct vl_msg_mem_reg reg = {
		.region = { .gpa = 1ULL << 30, .size = 4096, .uva = 0x10000 }
	};
	struct client c;
	unsigned int fds, maps = 0;

	(void)state;
	client_open(&c);
	set_up(&c, P_REPLY_ACK);
	fds = open_fds();
	for (int i = 0; i < 10000; i++) {
		assert_int_equal(client_ack(&c, VHOST_USER_ADD_MEM_REG, &reg,
					    sizeof(reg), c.mem_fd),
				 0);
		assert_int_equal(client_ack(&c, VHOST_USER_REM_MEM_REG, &reg,
					    sizeof(reg), i & 1 ? c.mem_fd : -1),
				 0);
		if (i % 1000 == 999) {
			assert_int_equal(open_fds(), fds);
			if (!maps)
				maps = mappings();
			/* The allocator may move a boundary or two. */
			assert_in_range(mappings(), maps - 4, maps + 4);
		}
	}
	assert_int_equal(client_running(&c), 1);
	/* Not there; then the same twice, to be removed twice. */
	assert_int_not_equal(
		client_ack(&c, VHOST_USER_REM_MEM_REG, &reg, sizeof(reg), -1),
		0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(client_ack(&c, VHOST_USER_ADD_MEM_REG, &reg,
					    sizeof(reg), c.mem_fd),
				 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(client_ack(&c, VHOST_USER_REM_MEM_REG, &reg,
					    sizeof(reg), -1) == 0,
				 i < 2);
	client_close(&c);
}

static void test_509_regions(void **state)
{
	struct vl_msg_mem_reg reg = { .region = { .size = 4096 } };
	struct client c;

	(void)state;
	client_open(&c);
	client_u64(&c, VHOST_USER_SET_PROTOCOL_FEATURES, P_REPLY_ACK);
	for (uint64_t i = 0; i < 510; i++) {
		reg.region.gpa = (1000 - i) * 8192;
		reg.region.uva = CLIENT_UVA + i * 4096;
		reg.region.mmap_offset = i % 256 * 4096;
		assert_int_equal(client_ack(&c, VHOST_USER_ADD_MEM_REG, &reg,
					    sizeof(reg), c.mem_fd) == 0,
				 i < 509);
	}
	assert_int_equal(vl_guest_mem_count(c.dev.mem), 509);
	client_close(&c);
}

/* The last region goes: rings stop, and run again when it is back. */
static void test_remove_all_memory(void **state)
{
	struct vl_msg_mem_reg reg = { .region = client_table().region[0] };
	struct client c;

	(void)state;
	client_open(&c);
	set_up(&c, P_REPLY_ACK);
	assert_int_equal(
		client_ack(&c, VHOST_USER_REM_MEM_REG, &reg, sizeof(reg), -1),
		0);
	assert_int_equal(client_running(&c), 0);
	assert_int_equal(client_ack(&c, VHOST_USER_ADD_MEM_REG, &reg,
				    sizeof(reg), c.mem_fd),
			 0);
	assert_int_equal(client_running(&c), 1);
	client_close(&c);
}

/* The file shrinks under a mapping: its rings do not run any more. */
static void test_lost_memory(void **state)
{
	struct client c;

	(void)state;
	assert_int_equal(vl_guest_mem_guard(), 0);
	client_open(&c);
	set_up(&c, P_REPLY_ACK);
	assert_int_equal(ftruncate(c.mem_fd, 0), 0);
	*(volatile char *)c.dev.ring[1].desc = 1;
	assert_true(vl_guest_mem_lost(c.dev.mem));
	assert_int_equal(client_get(&c, VHOST_USER_GET_QUEUE_NUM), 2);
	assert_int_equal(client_running(&c), 0);
	assert_int_equal(ftruncate(c.mem_fd, CLIENT_MEM_SIZE), 0);
	client_set_mem(&c);
	assert_int_equal(client_running(&c), 1);
	client_close(&c);
}

static void test_replies_never_read(void **state)
{
	struct client c;
	int ret = 0, n = 0;

	(void)state;
	client_open(&c);
	while (!ret && n++ < 100000) {
		client_send_fds(&c, VHOST_USER_GET_FEATURES, VL_MSG_VERSION,
				NULL, 0, -1, 0);
		ret = vl_vhost_input(c.vu);
	}
	assert_int_equal(ret, -ENOBUFS);
	assert_int_equal(vl_vhost_fd(c.vu), -1);
	client_connect(&c);
	assert_int_equal(client_get(&c, VHOST_USER_GET_QUEUE_NUM), 2);
	client_close(&c);
}

/* A burst cannot keep the thread: 16 messages per call. */
static void test_burst_is_bounded(void **state)
{
	struct vl_vhost_state s;
	struct client c;

	(void)state;
	client_open(&c);
	for (int i = 0; i < 100; i++)
		client_send_fds(&c, VHOST_USER_SET_OWNER, VL_MSG_VERSION, NULL,
				0, -1, 0);
	assert_int_equal(vl_vhost_input(c.vu), 0);
	vl_vhost_state(c.vu, &s);
	assert_int_equal(s.messages, 16);
	client_close(&c);
}

/* Any messages in any order; the device checks the rules at each call. */
static void test_random_messages(void **state)
{
	unsigned int seed = 7;

	(void)state;
	for (int session = 0; session < 1000; session++) {
		struct vl_vhost_msg a;
		struct client c;
		int ret = 0;

		client_open(&c);
		client_u64(&c, VHOST_USER_SET_PROTOCOL_FEATURES, P_REPLY_ACK);
		c.dev.consumed = (uint16_t)rand_r(&seed);
		for (int i = 0; i < 60 && !ret; i++) {
			uint32_t request = (uint32_t)rand_r(&seed) % REQUESTS;
			struct sample s = sample_of(&c, request);

			if (request == VHOST_USER_SET_PROTOCOL_FEATURES)
				continue;
			if (request == VHOST_USER_SET_FEATURES && i % 3)
				s.payload[3] = (uint8_t)(rand_r(&seed) & 0x70);
			if (s.size == 8 && request != VHOST_USER_SET_FEATURES)
				s.payload[0] = (uint8_t)(rand_r(&seed) % 2);
			client_send_fds(&c, request,
					VL_MSG_VERSION | VL_MSG_NEED_REPLY,
					s.payload, s.size, s.fd, s.fd >= 0);
			ret = vl_vhost_input(c.vu);
			while (client_answer(&c, &a))
				;
			client_running(&c);
		}
		client_close(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unknown_requests),
		cmocka_unit_test(test_need_reply_matrix),
		cmocka_unit_test(test_any_number_of_fds),
		cmocka_unit_test(test_fds_stay_flat),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_payload_larger_than_any),
		cmocka_unit_test(test_disconnect_after_each_byte),
		cmocka_unit_test(test_ring_index),
		cmocka_unit_test(test_ring_sizes),
		cmocka_unit_test(test_ring_addresses),
		cmocka_unit_test(test_address_before_memory),
		cmocka_unit_test(test_config_ranges),
		cmocka_unit_test(test_dirty_log_is_refused),
		cmocka_unit_test(test_memory_tables),
		cmocka_unit_test(test_add_and_remove),
		cmocka_unit_test(test_509_regions),
		cmocka_unit_test(test_remove_all_memory),
		cmocka_unit_test(test_lost_memory),
		cmocka_unit_test(test_replies_never_read),
		cmocka_unit_test(test_burst_is_bounded),
		cmocka_unit_test(test_random_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
