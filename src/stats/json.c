/* SPDX-License-Identifier: BSD-3-Clause */
#include "stats/json.h"

#include <arpa/inet.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An object under construction, and whether any step lacked memory. */
struct writer {
	bool failed;
};

static struct json_object *new_object(struct writer *w)
{
	struct json_object *o = json_object_new_object();

	if (!o)
		w->failed = true;
	return o;
}

/* Puts @value, whose reference is taken, into @parent. */
static void put(struct writer *w, struct json_object *parent, const char *key,
		struct json_object *value)
{
	if (!parent || !value || json_object_object_add(parent, key, value)) {
		json_object_put(value);
		w->failed = true;
	}
}

static void put_u64(struct writer *w, struct json_object *o, const char *key,
		    uint64_t value)
{
	put(w, o, key, json_object_new_uint64(value));
}

static void put_bool(struct writer *w, struct json_object *o, const char *key,
		     bool value)
{
	put(w, o, key, json_object_new_boolean(value));
}

static void put_text(struct writer *w, struct json_object *o, const char *key,
		     const char *value)
{
	put(w, o, key, json_object_new_string(value ? value : "unknown"));
}

/* JSON numbers of other readers are doubles; bit masks go as text. */
static void put_hex(struct writer *w, struct json_object *o, const char *key,
		    uint64_t value)
{
	char text[2 + 16 + 1];

	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)value);
	put_text(w, o, key, text);
}

static void put_ratio(struct writer *w, struct json_object *o, const char *key,
		      double value)
{
	char text[32];

	snprintf(text, sizeof(text), "%.4f", value);
	put(w, o, key, json_object_new_double_s(value, text));
}

static void put_latency(struct writer *w, struct json_object *queue,
			const struct vl_hist *h)
{
	struct json_object *o = new_object(w);

	put_u64(w, o, "p50", vl_hist_percentile(h, 500));
	put_u64(w, o, "p90", vl_hist_percentile(h, 900));
	put_u64(w, o, "p99", vl_hist_percentile(h, 990));
	put_u64(w, o, "p999", vl_hist_percentile(h, 999));
	put_u64(w, o, "samples", vl_hist_total(h));
	put(w, queue, "latency_ns", o);
}

static struct json_object *queue_json(struct writer *w,
				      const struct vl_queue_snapshot *q,
				      const struct vl_counter *table,
				      size_t count, const void *counters)
{
	struct json_object *o = new_object(w);

	for (size_t i = 0; i < count; i++)
		put_u64(w, o, table[i].name,
			vl_counter_value(&table[i], counters));
	put_bool(w, o, "running", q->running);
	put_bool(w, o, "broken", q->broken);
	put_u64(w, o, "size", q->size);
	put_u64(w, o, "pending", q->pending);
	put_u64(w, o, "notifications_sent", q->notifications_sent);
	put_u64(w, o, "notifications_suppressed", q->notifications_suppressed);
	put_latency(w, o, &q->latency_ns);
	return o;
}

static struct json_object *worker_json(struct writer *w,
				       const struct vl_pair_snapshot *p)
{
	struct json_object *o = new_object(w);
	double packets = (double)p->tx.packets + (double)p->rx.packets;

	put_u64(w, o, "cpu_ns", p->cpu_ns);
	put_u64(w, o, "cycles", p->cycles);
	put_u64(w, o, "syscalls", p->syscalls);
	put_u64(w, o, "waits", p->waits);
	put_ratio(w, o, "syscalls_per_packet",
		  packets > 0 ? (double)p->syscalls / packets : 0);
	return o;
}

/* Appends @value, whose reference is taken. */
static void append(struct writer *w, struct json_object *array,
		   struct json_object *value)
{
	if (!array || !value || json_object_array_add(array, value)) {
		json_object_put(value);
		w->failed = true;
	}
}

static struct json_object *dest_json(struct writer *w,
				     const struct vl_dest_snapshot *d)
{
	struct json_object *o = new_object(w);
	char mac[18], ip[INET6_ADDRSTRLEN] = "";
	int family = d->addr_len == 4 ? AF_INET : AF_INET6;

	snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", d->mac[0],
		 d->mac[1], d->mac[2], d->mac[3], d->mac[4], d->mac[5]);
	put_text(w, o, "mac", mac);
	if (d->addr_len && inet_ntop(family, d->addr, ip, sizeof(ip)))
		put_text(w, o, "ip", ip);
	put_u64(w, o, "parked_packets", d->parked);
	return o;
}

static struct json_object *lane_json(struct writer *w, unsigned int index,
				     const struct vl_lane_snapshot *l)
{
	struct json_object *o = new_object(w);
	struct json_object *named = json_object_new_array();

	put_u64(w, o, "index", index);
	put_text(w, o, "state", l->state);
	put_u64(w, o, "destinations", l->destinations);
	for (uint32_t i = 0; i < l->named; i++)
		append(w, named, dest_json(w, &l->dest[i]));
	put(w, o, "busiest", named);
	put_u64(w, o, "parked_packets", l->parked_packets);
	put_u64(w, o, "parked_bytes", l->parked_bytes);
	put_u64(w, o, "pending_packets", l->pending);
	put_u64(w, o, "drain_rate", l->drain_rate);
	put_u64(w, o, "queue_delay_ns", l->delay_ns);
	put_u64(w, o, "oldest_ns", l->oldest_ns);
	for (size_t i = 0; i < vl_lane_counter_count; i++)
		put_u64(w, o, vl_lane_counter_table[i].name,
			vl_counter_value(&vl_lane_counter_table[i],
					 &l->counters));
	return o;
}

static void put_zerocopy(struct writer *w, struct json_object *pair,
			 const struct vl_zc_snapshot *zc)
{
	struct json_object *o = new_object(w);

	put_text(w, o, "mode", zc->mode ? zc->mode : "off");
	put_u64(w, o, "pending_packets", zc->packets);
	put_u64(w, o, "pending_packets_max", zc->packets_max);
	put_u64(w, o, "pending_descriptors", zc->descs);
	put_u64(w, o, "pending_descriptors_max", zc->descs_max);
	put_u64(w, o, "window", zc->window);
	put_u64(w, o, "oldest_ns", zc->oldest_ns);
	put(w, pair, "zerocopy", o);
}

static void put_tunnel(struct writer *w, struct json_object *pair,
		       const struct vl_tunnel_counters *c)
{
	struct json_object *o = new_object(w);

	for (size_t i = 0; i < vl_tunnel_counter_count; i++)
		put_u64(w, o, vl_tunnel_counter_table[i].name,
			vl_counter_value(&vl_tunnel_counter_table[i], c));
	put(w, pair, "tunnel", o);
}

static void put_lanes(struct writer *w, struct json_object *pair,
		      const struct vl_pair_snapshot *p)
{
	struct json_object *held = new_object(w);
	struct json_object *array = json_object_new_array();

	put_u64(w, held, "descriptors", p->held_descs);
	put_u64(w, held, "descriptors_max", p->held_max);
	put_u64(w, held, "pool_bytes", p->pool_bytes);
	put_u64(w, held, "pool_bytes_max", p->pool_max);
	put(w, pair, "held", held);
	for (unsigned int i = 0; i < p->lanes; i++)
		append(w, array, lane_json(w, i, &p->lane[i]));
	put(w, pair, "lanes", array);
}

static void put_pairs(struct writer *w, struct json_object *top,
		      const struct vl_snapshot *s)
{
	struct json_object *array = json_object_new_array();

	for (unsigned int i = 0; array && i < s->pairs; i++) {
		const struct vl_pair_snapshot *p = &s->pair[i];
		struct json_object *o = new_object(w);

		put(w, o, "tx",
		    queue_json(w, &p->txq, vl_tx_counter_table,
			       vl_tx_counter_count, &p->tx));
		put(w, o, "rx",
		    queue_json(w, &p->rxq, vl_rx_counter_table,
			       vl_rx_counter_count, &p->rx));
		put(w, o, "worker", worker_json(w, p));
		put_zerocopy(w, o, &p->zc);
		if (p->has_tunnel)
			put_tunnel(w, o, &p->tunnel);
		put_lanes(w, o, p);
		append(w, array, o);
	}
	put(w, top, "queue_pairs", array);
}

static void put_device(struct writer *w, struct json_object *top,
		       const struct vl_snapshot *s)
{
	put_u64(w, top, "uptime_ns", s->uptime_ns);
	put_text(w, top, "backend", s->backend);
	put_text(w, top, "link", s->link);
	put_text(w, top, "engine", s->engine);
	put_text(w, top, "mac", s->mac);
	put_u64(w, top, "mtu", s->mtu);
	put_bool(w, top, "connected", s->connected);
	put_hex(w, top, "features", s->features);
	put_hex(w, top, "protocol_features", s->protocol_features);
	put_u64(w, top, "sessions", s->sessions);
	put_u64(w, top, "messages", s->messages);
	put_u64(w, top, "protocol_errors", s->protocol_errors);
	put_u64(w, top, "guest_memory", s->guest_memory);
	put_u64(w, top, "memory_regions", s->memory_regions);
	put_u64(w, top, "ctrl_commands", s->ctrl_commands);
	put_u64(w, top, "ctrl_errors", s->ctrl_errors);
	put_u64(w, top, "cpu_ns", s->cpu_ns);
	put_text(w, top, "cycles_source", s->cycles_source);
	put_ratio(w, top, "bits_per_cycle", vl_snapshot_bits_per_cycle(s));
}

char *vl_snapshot_json(const struct vl_snapshot *s)
{
	struct writer w = { .failed = false };
	struct json_object *top = new_object(&w);
	const char *text;
	char *copy = NULL;

	put_device(&w, top, s);
	put_pairs(&w, top, s);
	if (!w.failed) {
		text = json_object_to_json_string_ext(
			top, JSON_C_TO_STRING_PLAIN |
				     JSON_C_TO_STRING_NOSLASHESCAPE);
		copy = text ? strdup(text) : NULL;
	}
	json_object_put(top);
	return copy;
}
