/* SPDX-License-Identifier: BSD-3-Clause */
#include "stats/snapshot.h"

double vl_snapshot_bits_per_cycle(const struct vl_snapshot *s)
{
	double bits = 0, cycles = 0;

	for (unsigned int i = 0; i < s->pairs; i++) {
		const struct vl_pair_snapshot *p = &s->pair[i];

		bits += 8.0 * ((double)p->tx.bytes + (double)p->rx.bytes);
		cycles += (double)p->cycles;
	}
	return cycles > 0 ? bits / cycles : 0;
}
