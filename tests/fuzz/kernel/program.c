// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Generates and mutates programs. All random numbers come from one generator, so that a seed
 * reproduces a run.
 */
#include <string.h>

#include "fuzz.h"

/* The latest operands that the kernel compared. */
static uint64_t dictionary[256];
static unsigned int dictionary_nr;

uint64_t rng_next(struct rng *rng)
{
	uint64_t z = rng->state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

unsigned int rng_below(struct rng *rng, unsigned int n)
{
	return n ? rng_next(rng) % n : 0;
}

static bool one_in(struct rng *rng, unsigned int n)
{
	return !rng_below(rng, n);
}

void dictionary_add(uint64_t value)
{
	dictionary[dictionary_nr++ % ARRAY_SIZE(dictionary)] = value;
}

unsigned int call_args(const struct call_type *type)
{
	unsigned int n = 0;

	while (n < ARGS_MAX && type->args[n].name)
		n++;
	return n;
}

static uint64_t random_number(struct rng *rng)
{
	unsigned int known = dictionary_nr;

	if (known > ARRAY_SIZE(dictionary))
		known = ARRAY_SIZE(dictionary);
	switch (rng_below(rng, 8)) {
	case 0:
		return 0;
	case 1:
		return 1ULL << rng_below(rng, 64);
	case 2:
		return (1ULL << rng_below(rng, 64)) - 1;
	case 3:
		return -(uint64_t)rng_below(rng, 5000);
	case 4:
		return rng_next(rng) >> rng_below(rng, 64);
	case 5:
		if (known)
			return dictionary[rng_below(rng, known)];
		return rng_below(rng, 5000);
	default:
		return rng_below(rng, 20);
	}
}

/* Mostly small: a program that zeroes megabytes makes few calls per second. */
static uint64_t random_size(struct rng *rng)
{
	static const uint16_t large[] = { 256, 511, 512, 513, 1024, 1535 };
	uint64_t pages = 1 + rng_below(rng, 16);

	if (one_in(rng, 25))
		pages = large[rng_below(rng, ARRAY_SIZE(large))];
	if (one_in(rng, 40))
		return random_number(rng);
	return pages * PAGE + (one_in(rng, 8) ? rng_below(rng, 3) - 1 : 0);
}

uint64_t arg_invent(struct rng *rng, const struct arg_type *type)
{
	uint64_t value = 0;
	unsigned int i;

	switch (type->kind) {
	case KIND_ONE:
		return one_in(rng, 100) ? random_number(rng) : type->set[rng_below(rng, type->nr)];
	case KIND_BITS:
		for (i = 0; i < type->nr; i++)
			value |= one_in(rng, 3) ? type->set[i] : 0;
		return one_in(rng, 32) ? value ^ 1ULL << rng_below(rng, 32) : value;
	case KIND_BYTES:
		return random_size(rng);
	case KIND_ANY:
		return random_number(rng);
	}
	return 0;
}

int call_named(const char *name)
{
	unsigned int i;

	for (i = 0; i < call_types_nr; i++) {
		if (!strcmp(call_types[i].name, name))
			return i;
	}
	return -1;
}

static void call_fill(struct rng *rng, struct call *call, unsigned int type)
{
	unsigned int i;

	memset(call, 0, sizeof(*call));
	call->type = type;
	for (i = 0; i < call_args(&call_types[type]); i++)
		call->arg[i] = arg_invent(rng, &call_types[type].args[i]);
}

static void call_invent(struct rng *rng, struct call *call)
{
	unsigned int sum = 0, i, at;

	for (i = 0; i < call_types_nr; i++)
		sum += call_types[i].weight;
	at = rng_below(rng, sum);
	for (i = 0; at >= call_types[i].weight; i++)
		at -= call_types[i].weight;
	call_fill(rng, call, i);
}

/* Most calls need a device and a buffer: programs begin by opening them. */
static const char *const begin[] = { "open", "alloc", "export", "mmap" };

void prog_invent(struct rng *rng, struct prog *prog)
{
	unsigned int first = rng_below(rng, ARRAY_SIZE(begin) + 1), i;

	prog->nr = 4 + rng_below(rng, CALLS_MAX - 4);
	for (i = 0; i < prog->nr; i++) {
		if (i < first)
			call_fill(rng, &prog->call[i], call_named(begin[i]));
		else
			call_invent(rng, &prog->call[i]);
	}
}

static void arg_change(struct rng *rng, struct prog *prog)
{
	struct call *call = &prog->call[rng_below(rng, prog->nr)];
	const struct call_type *type = &call_types[call->type];
	unsigned int i = rng_below(rng, call_args(type));

	switch (rng_below(rng, 6)) {
	case 0:
		if (type->args[i].kind == KIND_ANY || type->args[i].kind == KIND_BYTES)
			call->arg[i] += rng_below(rng, 3) - 1;
		break;
	case 1:
		if (type->args[i].role == ROLE_VALUE)
			call->arg[i] ^= 1ULL << rng_below(rng, 64);
		break;
	default:
		call->arg[i] = arg_invent(rng, &type->args[i]);
	}
}

static void call_insert(struct rng *rng, struct prog *prog, const struct call *call)
{
	unsigned int at = rng_below(rng, prog->nr + 1);

	if (prog->nr == CALLS_MAX)
		prog->nr--;
	if (at > prog->nr)
		at = prog->nr;
	memmove(&prog->call[at + 1], &prog->call[at], (prog->nr - at) * sizeof(*call));
	if (call)
		prog->call[at] = *call;
	else
		call_invent(rng, &prog->call[at]);
	prog->nr++;
}

static void call_remove(struct rng *rng, struct prog *prog)
{
	unsigned int at = rng_below(rng, prog->nr);

	prog->nr--;
	memmove(&prog->call[at], &prog->call[at + 1], (prog->nr - at) * sizeof(prog->call[0]));
}

/* Appends the calls of another program from a random position. */
static void prog_splice(struct rng *rng, struct prog *prog, const struct prog *other)
{
	unsigned int keep = rng_below(rng, prog->nr + 1), from = rng_below(rng, other->nr);

	while (keep < CALLS_MAX && from < other->nr)
		prog->call[keep++] = other->call[from++];
	prog->nr = keep;
}

void prog_change(struct rng *rng, struct prog *prog, const struct prog *other)
{
	do {
		switch (rng_below(rng, 10)) {
		case 0:
			if (prog->nr > 1)
				call_remove(rng, prog);
			break;
		case 1:
			prog_splice(rng, prog, other);
			break;
		case 2:
			call_insert(rng, prog, &prog->call[rng_below(rng, prog->nr)]);
			break;
		case 3:
		case 4:
		case 5:
			call_insert(rng, prog, NULL);
			break;
		default:
			arg_change(rng, prog);
		}
	} while (!one_in(rng, 6));
}
