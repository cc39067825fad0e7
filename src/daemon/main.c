/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtlane, the daemon. The order of its start is part of its security:
 *
 *   1. read the options, set the log level
 *   2. block the signals that end us, guard against shrinking guest memory
 *   3. open the host network                       may need CAP_NET_ADMIN
 *   4. open the front-end's socket and the stats socket     need their paths
 *   5. give up all capabilities
 *   6. filter system calls
 *   7. make the device: its worker threads inherit 5 and 6
 *   8. serve; only from here on a guest or a peer has a say
 *   9. say "ready"
 *
 * The steps are the rows of start_order[]; each may log and fail, which ends
 * the process with status 1. What was opened is closed in reverse order.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "backend/registry.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/advice.h"
#include "daemon/conf.h"
#include "daemon/ctl.h"
#include "daemon/loop.h"
#include "daemon/sandbox.h"
#include "daemon/session.h"
#include "daemon/usock.h"
#include "net/device.h"
#include "virtio/guest_mem.h"

enum exit_status {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
};

struct daemon {
	struct vl_conf conf;
	uint64_t began_ns;
	struct vl_loop *loop;
	int signal_fd;
	struct vl_backend *backend;
	struct vl_session *session;
	struct vl_ctl *ctl; /* NULL without --stats */
	enum vl_io_engine engine;
	struct vl_device *device;
	bool said; /* the step that failed has logged why */
};

static void on_signal(void *ctx, uint32_t events)
{
	struct daemon *d = ctx;
	struct signalfd_siginfo info;

	(void)events;
	if (read(d->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo == SIGHUP) {
		vl_log(VL_LOG_INFO, NULL,
		       "SIGHUP ignored; options are read at the start only");
		return;
	}
	vl_log(VL_LOG_INFO, NULL, "%s: ending",
	       info.ssi_signo == SIGTERM ? "SIGTERM" : "SIGINT");
	vl_loop_quit(d->loop, 0);
}

static int start_signals(struct daemon *d)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t set;
	int err = vl_loop_new(&d->loop);

	if (err)
		return err;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0 ||
	    sigaction(SIGPIPE, &ignore, NULL) < 0 ||
	    sigaction(SIGXFSZ, &ignore, NULL) < 0)
		return -errno;
	d->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (d->signal_fd < 0)
		return -errno;
	return vl_loop_add(d->loop, d->signal_fd, EPOLLIN, on_signal, d);
}

static int start_guard(struct daemon *d)
{
	(void)d;
	return vl_guest_mem_guard();
}

static int start_backend(struct daemon *d)
{
	struct vl_conf *conf = &d->conf;
	const char *advice;
	char why[256] = "";
	int err;

	/* The backend may have to know what it will receive for. */
	if (!conf->mac_set && conf->params.name) {
		err = vl_conf_default_mac(conf, conf->params.name, conf->mac);
		if (err)
			return err;
		conf->mac_set = true;
	}
	memcpy(conf->params.mac, conf->mac, sizeof(conf->params.mac));
	err = conf->backend->open(&conf->params, &d->backend, why, sizeof(why));
	if (err) {
		vl_log(VL_LOG_ERROR, NULL, "--backend=%s: %s",
		       conf->backend->name, why[0] ? why : strerror(-err));
		d->said = true;
		return err;
	}
	advice = vl_lanes_advice(conf, d->backend, vl_bridge_hides_pressure());
	if (advice)
		vl_log(VL_LOG_WARNING, d->backend->label, "%s", advice);
	if (conf->mac_set)
		return 0;
	return vl_conf_default_mac(conf, d->backend->label, conf->mac);
}

static int start_sockets(struct daemon *d)
{
	const struct vl_conf *conf = &d->conf;
	struct vl_session_config config = {
		.socket_path = conf->socket_path,
		.client = conf->client,
		.fd = conf->fd,
	};
	int err = vl_session_open(&config, d->loop, &d->session);

	d->said = err && err != -ENOMEM;
	if (err || !conf->stats_path)
		return err;
	err = vl_ctl_new(conf->stats_path, &d->ctl);
	if (err) {
		vl_log(VL_LOG_ERROR, NULL, "--stats=%s: %s; %s",
		       conf->stats_path, strerror(-err), vl_usock_advice(err));
		d->said = true;
	}
	return err;
}

static int start_privileges(struct daemon *d)
{
	return d->conf.sandbox ? vl_sandbox_drop_privileges() : 0;
}

static int start_filter(struct daemon *d)
{
	if (!d->conf.sandbox) {
		vl_log(VL_LOG_WARNING, NULL,
		       "sandbox is off: a hole would open the whole process");
		return 0;
	}
	if (!vl_sandbox_can_filter()) {
		vl_log(VL_LOG_INFO, NULL,
		       "built with a sanitizer: no system call filter");
		return 0;
	}
	return vl_sandbox_filter();
}

static int start_device(struct daemon *d)
{
	const struct vl_conf *conf = &d->conf;
	struct vl_device_config config = {
		.queue_pairs = conf->params.queue_pairs,
		.mtu = conf->mtu ? conf->mtu : d->backend->mtu_offer,
		.config_changed = vl_session_config_changed,
		.ctrl_watch = vl_session_ctrl_watch,
		.ctx = d->session,
	};
	const char *why = "";
	int engine = vl_io_choose(conf->engine, &why);

	if (engine < 0) {
		vl_log(VL_LOG_ERROR, NULL,
		       "--engine=uring: %s; give --engine=auto or sync", why);
		d->said = true;
		return engine;
	}
	d->engine = (enum vl_io_engine)engine;
	vl_log(VL_LOG_INFO, NULL, "engine %s: %s",
	       engine == VL_IO_URING ? "uring" : "sync", why);
	config.engine = d->engine;
	config.tx_full = conf->tx_full;
	memcpy(config.mac, conf->mac, sizeof(config.mac));
	return vl_device_new(&config, d->backend, &d->device);
}

static void on_backend_event(void *ctx, uint32_t events)
{
	struct daemon *d = ctx;

	(void)events;
	vl_device_backend_event(d->device);
}

/* The daemon's share of a snapshot. */
static void fill_snapshot(void *ctx, struct vl_snapshot *s)
{
	struct daemon *d = ctx;
	struct vl_vhost_state state;

	vl_device_snapshot(d->device, s);
	vl_session_state(d->session, &state);
	s->uptime_ns = vl_now_ns() - d->began_ns;
	s->cpu_ns = vl_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	s->connected = state.connected;
	s->protocol_features = state.protocol_features;
	s->sessions = state.sessions;
	s->messages = state.messages;
	s->protocol_errors = state.protocol_errors;
}

static int start_serving(struct daemon *d)
{
	int fd = d->backend->ops->event_fd(d->backend);
	int err = 0;

	if (fd >= 0)
		err = vl_loop_add(d->loop, fd, EPOLLIN, on_backend_event, d);
	if (!err && d->ctl)
		err = vl_ctl_start(d->ctl, d->loop, fill_snapshot, d);
	if (!err)
		err = vl_session_start(d->session, d->device,
				       d->conf.params.queue_pairs);
	return err;
}

static int say_ready(struct daemon *d)
{
	const uint8_t *m = d->conf.mac;
	unsigned int pairs = d->conf.params.queue_pairs;
	char lanes[32] = "";

	if (d->conf.tx_full == VL_TX_FULL_LANES && d->backend->ways > 1)
		(void)snprintf(lanes, sizeof(lanes), " of %u lanes",
			       d->backend->ways);

	vl_log(VL_LOG_INFO, NULL,
	       "ready: %s %s, offered MAC %02x:%02x:%02x:%02x:%02x:%02x, "
	       "%u queue pair%s%s",
	       d->conf.backend->name, d->backend->label, m[0], m[1], m[2], m[3],
	       m[4], m[5], pairs, pairs > 1 ? "s" : "", lanes);
	return 0;
}

/* What is said when a step fails without having said why. */
static const struct {
	const char *what;
	int (*start)(struct daemon *d);
} start_order[] = {
	{ "set up signals", start_signals },
	{ "guard guest memory", start_guard },
	{ "open the host network", start_backend },
	{ "open the sockets", start_sockets },
	{ "give up privileges", start_privileges },
	{ "filter system calls", start_filter },
	{ "make the device", start_device },
	{ "begin to serve", start_serving },
	{ "say ready", say_ready },
};

static int start(struct daemon *d)
{
	for (size_t i = 0; i < VL_ARRAY_SIZE(start_order); i++) {
		int err = start_order[i].start(d);

		if (err && !d->said)
			vl_log(VL_LOG_ERROR, NULL, "cannot %s: %s",
			       start_order[i].what, strerror(-err));
		if (err)
			return err;
	}
	return 0;
}

static void stop(struct daemon *d)
{
	vl_ctl_free(d->ctl);
	vl_session_free(d->session);
	if (d->device)
		vl_device_free(d->device);
	if (d->backend)
		d->backend->ops->close(d->backend);
	if (d->signal_fd >= 0)
		close(d->signal_fd);
	vl_loop_free(d->loop);
}

/* As the back-end program conventions of QEMU describe it. */
static void print_capabilities(void)
{
	printf("{\n  \"type\": \"net\",\n  \"features\": [");
	for (unsigned int i = 0; vl_backend_at(i); i++)
		printf("%s\"%s\"", i ? ", " : "", vl_backend_at(i)->name);
	printf("]\n}\n");
}

/* Options that print something and end. Returns true when there was one. */
static bool print_only(const struct vl_conf *conf)
{
	if (conf->print_capabilities)
		print_capabilities();
	else if (conf->help)
		vl_conf_help(stdout);
	else if (conf->version)
		printf("virtlane %s\n", VL_VERSION);
	else
		return false;
	return true;
}

static void show_errors(const struct vl_conf *conf)
{
	for (unsigned int i = 0; i < conf->errors; i++)
		vl_log(VL_LOG_ERROR, NULL, "%s", conf->error[i]);
	if (conf->error_left_out)
		vl_log(VL_LOG_ERROR, NULL, "and more of this kind");
}

/* Started with closed standard descriptors, what is opened next would take
 * their place, and log lines would go out as frames. */
static void fill_standard_fds(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char *argv[])
{
	static struct daemon d = { .signal_fd = -1 };
	int status = EXIT_FAILED;

	d.began_ns = vl_now_ns();
	fill_standard_fds();
	if (vl_conf_parse(&d.conf, argc, argv)) {
		show_errors(&d.conf);
		vl_conf_free(&d.conf);
		return EXIT_USAGE;
	}
	if (print_only(&d.conf)) {
		vl_conf_free(&d.conf);
		return fflush(stdout) ? EXIT_FAILED : EXIT_OK;
	}
	vl_log_set_level(d.conf.log_level);
	if (!start(&d) && !vl_loop_run(d.loop))
		status = EXIT_OK;
	stop(&d);
	vl_conf_free(&d.conf);
	return status;
}
