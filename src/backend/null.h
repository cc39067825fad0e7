/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The null backend: takes every frame, and receives those that a test gives
 * it. For tests, fuzzing, and to measure the device alone.
 */
#ifndef VL_BACKEND_NULL_H
#define VL_BACKEND_NULL_H

#include <sys/types.h>

#include "lane/backend.h"

extern const struct vl_backend_ops vl_backend_null;

/*
 * What a test may plug in; called on the worker thread of the port.
 *
 * send: a frame with its virtio header. Returns bytes taken or -errno, what
 *       the kernel would have answered.
 * recv: fills @iov with one frame, header first. Returns its whole length
 *       (may exceed the room: the rest is lost, as with a tap) or -EAGAIN.
 *
 * For lanes: a port has @ways ways out (0: one), whose sends are linked if there
 * are several; send_way is called instead of send. A way that answered -EAGAIN
 * is ready again when writable says so; vl_null_wake_way() makes it be asked.
 *
 * For zero-copy, which zerocopy and the fields below it offer (see vl_backend):
 * send_zc is called instead for a frame that may be sent from where it lies. It
 * answers as the others do, and sets *@more when the memory stays in use; the
 * frame's tag names it. It is in use until released says so: that is called on
 * vl_null_release(), for one frame after the other, in any order, until it
 * returns false.
 */
struct vl_null_hooks {
	int (*send)(void *ctx, unsigned int port, const struct iovec *iov,
		    unsigned int n);
	int (*recv)(void *ctx, unsigned int port, const struct iovec *iov,
		    unsigned int n);
	void *ctx;
	unsigned int ways;
	int (*send_way)(void *ctx, unsigned int port, unsigned int way,
			const struct iovec *iov, unsigned int n);
	bool (*writable)(void *ctx, unsigned int port, unsigned int way);

	enum vl_zerocopy zerocopy;
	uint32_t pending, gso_bytes, gso_segments;
	int (*send_zc)(void *ctx, unsigned int port, unsigned int way,
		       const struct vl_frame *f, bool *more);
	bool (*released)(void *ctx, unsigned int port, uint64_t *tag,
			 bool *copied);
};

/* Sets the hooks (NULL: none). Before the device is made over @b. */
void vl_null_set_hooks(struct vl_backend *b, const struct vl_null_hooks *hooks);

/*
 * recv has frames again after it answered -EAGAIN: wakes the port. Any
 * thread.
 */
void vl_null_wake(struct vl_backend *b, unsigned int port);

/* The hook writable has another answer for way @way. Any thread. */
void vl_null_wake_way(struct vl_backend *b, unsigned int port,
		      unsigned int way);

/* The hook released has frames to name. Any thread. */
void vl_null_release(struct vl_backend *b, unsigned int port);

#endif
