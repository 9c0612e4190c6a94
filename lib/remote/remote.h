/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Channels between machines: open.c connects, listen.c accepts, connection.c is the connection and state.c what it has under
 * way, receive.c the messages that come, send.c and parcel.c those that go, serve.c the thread that serves all connections of
 * the process, memory.c buffers that are registered with the network.
 */
#ifndef TENSOR_REMOTE_IMPL_H
#define TENSOR_REMOTE_IMPL_H

#include "remote/frame.h"
#include "remote/transport.h"
#include "sharing/group.h"
#include "sharing/link.h"
#include "sharing/send.h"

#include <tensor/remote.h>

#define REMOTE_WINDOW	4		    /* pieces that are under way */
#define REMOTE_LOOK_NS	INT64_C(50000000)   /* the longest sleep of a thread that waits */
#define REMOTE_LEAST_NS INT64_C(100000000)  /* the shortest timeout of an end */
#define REMOTE_LEAVE_NS INT64_C(2000000000) /* for the peer to say that it has received all */

/* ---- the thread (serve.c) ---- */

/* What the thread serves. Its functions are called with the lock of the thread, which is taken before all others. */
struct served {
	struct served *next, **link;
	int (*fd)(struct served *s);
	void (*serve)(struct served *s);
	void (*leave)(struct served *s); /* the program ends: says so to the peer; may be NULL */
	void (*flush)(struct served *s, int64_t until); /* after leave(): waits for the peer */
	int64_t due; /* serve() is called then, or when the descriptor is readable */
	int event; /* of the descriptors for which the thread waits, the number of this one; 0: none */
};

/* 0, or -errno with the error set: there is no thread. */
int serve_add(const char *function, struct served *s);
/* serve() is not called any more when it returns. */
void serve_remove(struct served *s);
/* Both inside of the serve() of another one. */
void serve_add_inside(struct served *s);
void serve_remove_inside(struct served *s);
/*
 * What the thread does without its lock, once. The end of a tensor, for instance, can call a function of the program, which uses
 * channels, or needs a lock that another thread holds while it does.
 */
struct serve_task {
	struct serve_task *next;
	void (*run)(struct serve_task *task);
};

void serve_task(struct serve_task *task, void (*run)(struct serve_task *task));
/* The process uses a transport from now on, and a child of fork() cannot. */
void serve_mark_used(void);
/* Whether the process is a child of one that has used a transport. */
bool serve_is_parents(void);
/* 0, or -EBUSY with the error set: the process is such a child. */
int serve_check(const char *function);

/* ---- the connection (connection.c) ---- */

struct incoming;
struct parcel;

/* A frame that is being sent. */
struct remote_op {
	struct remote_op *next, **link;
	struct frame frame;
	void *data; /* freed with it; NULL for pieces */
	struct parcel *parcel;
	size_t bytes;
};

struct remote;
struct arrival;
typedef void (*arrival_fn)(struct remote *r, const struct arrival *a, int err);

/* Data that is being received. */
struct arrival {
	struct arrival *next, **link;
	struct incoming *in;
	size_t bytes;
	arrival_fn end; /* called when it is there, or will not come */
};

struct remote {
	struct served served;
	const struct transport *transport;
	struct tensor_channel_listener *listener; /* that has not given it to the program yet */
	struct remote *queued;			  /* the next in a list of the listener */
	int event;				  /* readable while a receive would not wait */
	int64_t timeout_ns, spin_ns, opened;
	uint64_t max_bytes;
	uint32_t records;
	tensor_channel_progress progress;
	void *progress_context;

	pthread_mutex_t lock; /* of all that follows */
	pthread_cond_t changed;
	struct transport_connection *connection; /* NULL: closed */
	struct remote_op *ops;
	struct arrival *arrivals;
	unsigned n_ops;
	bool is_open;  /* the peer has greeted */
	bool has_left; /* the peer sends no more messages */
	bool all_came; /* it has received all */
	bool is_shown; /* event is readable */
	bool pings;    /* a ping is being sent */
	int dead;      /* error that ended the connection, -errno, and its text */
	char why[TENSOR_ERROR_TEXT / 2];
	int64_t heard, ping_ns, ping_at;

	/* Sending. */
	uint32_t credits, peer_records; /* messages that may be sent */
	uint64_t peer_max, number;	/* the last number of a message */
	struct parcel *out;		/* the long message that is being sent */

	/* Receiving. */
	struct incoming *in;		/* the message that is being received */
	struct incoming *first, **last; /* those that wait for the program */
	uint32_t waiting, taken; /* how many, and how many it has received since the last TAKEN */
	uint64_t held;		 /* bytes of those and of in, */
	uint32_t buffers;	 /* and the buffers that long ones have */
	uint64_t dropped;	 /* number of a message of which pieces may still come */
	struct link_habit habit;
};

/* With options that were checked; NULL with the error set. */
struct remote *remote_new(const char *function, const struct transport *transport,
			  const struct tensor_remote_options *options);
/* Checks options; *to: with the defaults. 0, or -EINVAL with the error set. */
int remote_options(const char *function, const struct tensor_remote_options *o,
		   struct tensor_remote_options *to);
/* Ends the connection and frees it; the thread does not serve it any more. */
void remote_free(struct remote *r);
/* A channel on it, which it consumes. NULL with the error set. */
tensor_channel *remote_channel(const char *function, struct remote *r);

extern const struct transport_events remote_events;
/* Greets; the connection has begun. With the lock. */
void remote_greet(struct remote *r);

/* ---- state.c; the caller holds the lock of the connection ---- */

/* Ends the connection because of err, -errno. */
void remote_fail(struct remote *r, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Sets the error of a connection that has ended, or -EPIPE; returns it. */
int remote_ended(const struct remote *r, const char *function);
/* Sends a frame with data, which it frees, or with elements of a parcel. */
void remote_post(struct remote *r, const struct frame *f, void *data, struct parcel *parcel,
		 const void *from, size_t bytes);
/* The same without data. */
void remote_say(struct remote *r, enum frame_kind kind, uint64_t message, uint64_t a, uint64_t b);
/* Goes on without waiting. Whether anything happened. */
bool remote_step(struct remote *r);
/* Sleeps until something may have happened, the time is over, or for REMOTE_LOOK_NS. */
void remote_wait(struct remote *r, int64_t until);
/* Makes the eventfd readable, or not. */
void remote_show(struct remote *r);
/* Asks the network for its descriptor. False if there is more to do. */
bool remote_arm(struct remote *r);
/*
 * Nothing is under way afterwards. The network may take its time, in which the lock is free; what it says meanwhile does not
 * count.
 */
void remote_disconnect(struct remote *r, int64_t wait_ns);

/* NULL without memory. */
struct arrival *arrival_new(struct remote *r, struct incoming *in, size_t bytes, arrival_fn end);
void arrival_end(struct remote *r, struct arrival *a, int err);
/* The frame was sent, or not. */
void op_end(struct remote *r, struct remote_op *op, int err);

/* ---- receive.c; with the lock, too ---- */

/* The frame of a message, or of a piece, has data for *to. NULL: it is dropped, or has ended the connection. */
struct incoming *incoming_begin(struct remote *r, const struct frame *f, size_t bytes, void **to);
struct incoming *incoming_piece(struct remote *r, const struct frame *f, size_t bytes, void **to);
/* The data is there, or will not come. */
void incoming_data(struct remote *r, const struct arrival *a, int err);
/* The sender gives up. */
void incoming_abort(struct remote *r, const struct frame *f);
/* Makes room for a long message that waits for it, if there is any now. */
void incoming_grant(struct remote *r);
/* Frees all that came, at the end. */
void incoming_end(struct remote *r);
/* Of struct channel_remote. */
int remote_receive(tensor_channel *ch, int64_t until);

/* ---- send.c and parcel.c ---- */

enum answer { ANSWER_NONE, ANSWER_GRANT, ANSWER_DONE, ANSWER_REFUSED };

/* A message that goes: its tensors, or copies of them in contiguous memory. */
struct parcel {
	struct serve_task left; /* first; frees it */
	uint32_t n;
	uint64_t total;
	tensor *tensors[FRAME_TENSORS]; /* owned */
	const char *from[FRAME_TENSORS];
	struct frame_tensor *
		table; /* with the elements of a short message behind it; NULL: it is the frame's */

	/* With the lock of the connection. */
	uint64_t number, done; /* bytes that were sent */
	uint32_t part;	       /* the next piece */
	uint64_t at;
	unsigned pending; /* pieces under way */
	bool is_left;	  /* its send has ended: the thread frees it after the last piece */
	enum answer answer;
	int code; /* of ANSWER_REFUSED */
};

/* Checks and packs (parcel.c). NULL with the error set. */
struct parcel *parcel_new(const struct outgoing *o);
/* With its elements; of a short one. */
size_t parcel_short(struct parcel *p);
void parcel_free(struct parcel *p);

/* An answer of the peer; with the lock. */
void remote_answered(struct remote *r, const struct frame *f);
/* A piece was sent, or not; with the lock. */
void parcel_sent(struct parcel *p, size_t bytes, int err);
int remote_send(tensor_channel *ch, const struct outgoing *o);

/* ---- memory.c ---- */

/* Registers the buffer of a storage, if it has one, with the network; once. */
void memory_register(const struct transport *transport, struct tensor_storage *s);

/* ---- address.c ---- */

struct addrinfo;
/* The addresses of "ucx://HOST:PORT", for freeaddrinfo(). 0, or -errno with the error set. */
int address_find(const char *function, const char *text, bool listens, struct addrinfo **found);

#endif
