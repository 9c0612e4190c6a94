// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The group of the host below a group of NCCL. A request of this group has one of the host in its place: with its memory if
 * that is memory of the host, else with no elements, so that the engine of the host only compares the calls of all ranks.
 */
#include "group/nccl/nccl.h"

#include <stddef.h>
#include <stdlib.h>

/* An error of the host's group ends this one, too. Returns res. */
static int carried(struct nccl *n, int res)
{
	tensor_group *host = n->host;
	char text[TENSOR_ERROR_TEXT];
	int err, failed;

	if (res >= 0)
		return res;
	pthread_mutex_lock(&host->lock);
	err = host->err;
	failed = host->stats.failed;
	memcpy(text, host->text, sizeof(text));
	pthread_mutex_unlock(&host->lock);
	return err ? group_fail(n->group, failed, -err, "%s", text) : res;
}

static const struct group_engine *engine_of(const struct nccl *n)
{
	return n->host->engine;
}

static tensor_request *host_of(const tensor_request *r)
{
	return r ? r->private[0] : NULL;
}

static void forget(struct nccl *n, tensor_request *r)
{
	tensor_request *h = host_of(r);

	if (engine_of(n)->drop)
		engine_of(n)->drop(h);
	r->private[0] = NULL;
	free(h);
}

int host_start(tensor_request *r)
{
	struct nccl *n = nccl_of(r->group);
	tensor_request *h = calloc(1, sizeof(*h));
	int err;

	if (!h)
		return tensor_fail(ENOMEM, "no memory");
	memcpy(h, r, offsetof(tensor_request, text));
	h->group = n->host;
	if (r->operation) {
		h->operation = NULL;
		h->in = h->out = NULL;
		h->n = 0;
	}
	r->private[0] = h;
	err = engine_of(n)->start ? carried(n, engine_of(n)->start(h)) : 0;
	if (err < 0)
		forget(n, r);
	return err;
}

int host_step(tensor_request *r)
{
	struct nccl *n = nccl_of(r->group);
	int res = carried(n, engine_of(n)->step(host_of(r)));

	if (res)
		forget(n, r);
	return res;
}

void host_drop(tensor_request *r)
{
	if (host_of(r))
		forget(nccl_of(r->group), r);
}

void host_arm(tensor_group *g)
{
	const struct nccl *n = nccl_of(g);

	if (engine_of(n)->arm)
		engine_of(n)->arm(n->host);
}

int host_sleep(tensor_group *g, tensor_request *r, int64_t ns)
{
	struct nccl *n = nccl_of(g);

	return carried(n, engine_of(n)->sleep(n->host, host_of(r), ns));
}

void host_wake(tensor_group *g)
{
	const struct nccl *n = nccl_of(g);

	if (engine_of(n)->wake)
		engine_of(n)->wake(n->host);
}

int host_late(tensor_group *g, tensor_request *r)
{
	struct nccl *n = nccl_of(g);

	return carried(n, engine_of(n)->late(n->host, host_of(r)));
}

void host_give_up(tensor_group *g)
{
	const struct nccl *n = nccl_of(g);

	if (!n->host->left && engine_of(n)->give_up)
		engine_of(n)->give_up(n->host);
	n->host->left = true;
}

void host_counted(tensor_group *g)
{
	const struct nccl *n = nccl_of(g);

	n->host->stats = g->stats;
	if (engine_of(n)->counted)
		engine_of(n)->counted(n->host);
}

int host_lost(struct nccl *n, bool closed)
{
	return engine_of(n)->lost ? carried(n, engine_of(n)->lost(n->host, closed)) : 0;
}

void host_close(struct nccl *n)
{
	tensor_group_close(n->host);
}
