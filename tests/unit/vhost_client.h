/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A vhost-user front-end and a device that only records, with the protocol
 * under test between them. The device checks the rules of struct vl_vhost_ops
 * at every call; breaking one fails the test.
 */
#ifndef VL_TESTS_VHOST_CLIENT_H
#define VL_TESTS_VHOST_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "vhost/vhost_msg.h"
#include "vhost/vhost_user.h"

#define CLIENT_VRINGS   5u
#define CLIENT_UVA      0x7f0000000000ULL
#define CLIENT_MEM_SIZE (1ULL << 20)
#define CLIENT_RING_NUM 256u

#define F_EVENT_IDX (1ULL << 29)
#define F_INDIRECT  (1ULL << 28)
#define F_VERSION_1 (1ULL << 32)
#define F_MAC       (1ULL << 5)
#define F_PROTOCOL  (1ULL << 30)
#define F_OFFERED   (F_EVENT_IDX | F_INDIRECT | F_VERSION_1 | F_MAC)
#define P_REPLY_ACK (1ULL << 3)
#define P_CONFIG    (1ULL << 9)

struct device {
	uint64_t features;
	struct vl_guest_mem *mem; /* a reference of our own */
	bool running[CLIENT_VRINGS];
	struct vl_vring ring[CLIENT_VRINGS];
	uint16_t consumed; /* entries each run takes before it stops */
	unsigned int starts[CLIENT_VRINGS];
	unsigned int stops[CLIENT_VRINGS];
	unsigned int set_features_calls, set_mem_calls, resets, calls, errs;
	uint64_t mtu;
	int fail_start; /* what vring_start() returns */
	int fail_mem;
};

struct client {
	struct vl_vhost *vu;
	struct device dev;
	int sock;
	int mem_fd;
	int event_fd;
	unsigned int fds_before;
};

unsigned int open_fds(void);

/* The whole set-up; checks on close that no descriptor is left. */
void client_open(struct client *c);
void client_close(struct client *c);
/* A new connection of the same vhost. */
void client_connect(struct client *c);

/* Sends one message with @n copies of @fd. */
void client_send_fds(struct client *c, uint32_t request, uint32_t flags,
		     const void *payload, uint32_t size, int fd,
		     unsigned int n);
/* The same, handled, and no answer expected. Returns vl_vhost_input(). */
int client_do(struct client *c, uint32_t request, const void *payload,
	      uint32_t size, int fd);
int client_u64(struct client *c, uint32_t request, uint64_t value);
int client_state(struct client *c, uint32_t request, uint32_t index,
		 uint32_t num);

/* Takes one answer; false when there is none. */
bool client_answer(struct client *c, struct vl_vhost_msg *out);
/* Sends with NEED_REPLY and returns the acknowledgement. */
uint64_t client_ack(struct client *c, uint32_t request, const void *payload,
		    uint32_t size, int fd);
/* Asks without payload for a u64. */
uint64_t client_get(struct client *c, uint32_t request);
/* GET_VRING_BASE. */
uint32_t client_base(struct client *c, uint32_t index);

/* One region of the client's memory file, and where its ring lies. */
struct vl_msg_mem client_table(void);
struct vl_msg_vring_addr client_addr(uint32_t index);

int client_set_mem(struct client *c);
/* NUM, BASE, ADDR, CALL and KICK. */
void client_ring(struct client *c, uint32_t index, uint16_t base);

unsigned int client_running(const struct client *c);

#endif
