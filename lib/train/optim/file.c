// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The file of an optimizer, or of an optimizer and a module: safetensors with the state tensors, and the options of each
 * group as metadata.
 */
#include "train/optim/optim.h"

#include "core/scope.h"
#include "dispatch/dispatch.h"

#include <stdio.h>
#include <stdlib.h>

#define FORMAT		"devtensor optimizer 1"
#define FORMAT_TRAINING "devtensor training 1"

/* ---- saving ---- */

struct saving {
	struct tensor_named *named;
	struct tensor_metadata *metadata;
	char (*names)[OPTIM_NAME];
	char (*groups)[2][OPTIM_TEXT]; /* key and value */
};

static int save(tensor_optim *o, const struct optim_file *f, struct saving *s, int64_t n)
{
	const bool alone = !f->with_module;
	int64_t nmetadata = 0, i;

	if (!s->named || !s->metadata || !s->names || !s->groups)
		return tensor_fail(ENOMEM, "%s: no memory", f->caller);
	for (i = 0; i < n; i++) {
		if (tensor_optim_state_at(o, i, &s->named[i]) < 0)
			return -thread()->error.code;
		snprintf(s->names[i], OPTIM_NAME, "%s%s", alone ? "" : OPTIM_PREFIX, o->name);
		s->named[i].name = s->names[i];
	}
	for (int64_t k = 0; k < f->nmodule; k++)
		s->named[i++] = f->module[k];
	s->metadata[nmetadata++] =
		(struct tensor_metadata){ "format", alone ? FORMAT : FORMAT_TRAINING };
	s->metadata[nmetadata++] =
		(struct tensor_metadata){ "method",
					  optim_method_name(o->groups[0].options.method) };
	for (int k = 0; k < o->ngroups; k++) {
		snprintf(s->groups[k][0], OPTIM_TEXT, "group.%d", k);
		optim_options_text(&o->groups[k], s->groups[k][1]);
		s->metadata[nmetadata++] =
			(struct tensor_metadata){ s->groups[k][0], s->groups[k][1] };
	}
	return tensor_save_safetensors(f->path, s->named, i, s->metadata, nmetadata);
}

int optim_save(tensor_optim *o, const struct optim_file *f)
{
	struct saving s;
	int64_t n;
	int err;

	if (optim_absent(f->caller, o))
		return -EINVAL;
	n = tensor_optim_state_count(o);
	s.named = calloc((size_t)(n + f->nmodule) + 1, sizeof(*s.named));
	s.names = calloc((size_t)n + 1, sizeof(*s.names));
	s.metadata = calloc((size_t)o->ngroups + 2, sizeof(*s.metadata));
	s.groups = calloc((size_t)o->ngroups, sizeof(*s.groups));
	err = save(o, f, &s, n);
	free(s.named);
	free(s.names);
	free(s.metadata);
	free(s.groups);
	return err;
}

TENSOR_EXPORT int tensor_optim_save(tensor_optim *o, const char *path)
{
	return optim_save(o, &(struct optim_file){ .caller = "optim_save", .path = path });
}

/* ---- loading ---- */

static const char *metadata_value(const tensor_archive *a, const char *key)
{
	for (int64_t i = 0; i < tensor_archive_metadata_count(a); i++) {
		const struct tensor_metadata *m = tensor_archive_metadata(a, i);

		if (!strcmp(m->key, key))
			return m->value;
	}
	return NULL;
}

/* Options of all groups of the file, checked against the optimizer. */
static int read_groups(const tensor_archive *a, const tensor_optim *o, struct optim_group *groups)
{
	const char *format = metadata_value(a, "format"), *method = metadata_value(a, "method");
	char key[32];

	if (!format || (strcmp(format, FORMAT) && strcmp(format, FORMAT_TRAINING)))
		return tensor_fail(EINVAL, "optim_load: the file is not that of an optimizer");
	if (!method || strcmp(method, optim_method_name(o->groups[0].options.method)))
		return tensor_fail(EINVAL, "optim_load: the file is for %s, the optimizer is %s",
				   QUOTED(method), optim_method_name(o->groups[0].options.method));
	snprintf(key, sizeof(key), "group.%d", o->ngroups);
	if (metadata_value(a, key))
		return tensor_fail(EINVAL, "optim_load: the file has more than %d groups",
				   o->ngroups);
	for (int k = 0; k < o->ngroups; k++) {
		const char *text;

		snprintf(key, sizeof(key), "group.%d", k);
		text = metadata_value(a, key);
		groups[k].options.method = o->groups[k].options.method;
		if (!text)
			return tensor_fail(EINVAL, "optim_load: the file has no group %d", k);
		if (optim_options_parse(text, &groups[k]) < 0)
			return tensor_fail(EBADMSG,
					   "optim_load: the options of group %d are not "
					   "readable",
					   k);
		if (optim_check("optim_load", &groups[k].options) < 0)
			return -EINVAL;
		if (groups[k].n != o->groups[k].n)
			return tensor_fail(
				EINVAL,
				"optim_load: group %d has %lld parameters, in the file %lld", k,
				(long long)o->groups[k].n, (long long)groups[k].n);
	}
	return 0;
}

static int load(tensor_optim *o, tensor_archive *a, struct optim_group *groups,
		struct tensor_named *state)
{
	int64_t n = 0;
	size_t prefix;

	if (!groups || !state)
		return tensor_fail(ENOMEM, "optim_load: no memory");
	if (read_groups(a, o, groups) < 0)
		return -thread()->error.code;
	prefix = strcmp(metadata_value(a, "format"), FORMAT) ? strlen(OPTIM_PREFIX) : 0;
	for (int64_t i = 0; i < tensor_archive_count(a); i++) {
		const char *name = tensor_archive_name(a, i);

		if (strncmp(name, OPTIM_PREFIX, prefix))
			continue;
		state[n].name = name + prefix;
		state[n].t = tensor_archive_at(a, i);
		if (!state[n++].t)
			return -thread()->error.code;
	}
	return optim_replace("optim_load", o, groups, state, n);
}

TENSOR_EXPORT int tensor_optim_load(tensor_optim *o, const char *path)
{
	struct tensor_scope_guard scope;
	struct optim_group *groups;
	struct tensor_named *state;
	tensor_archive *a;
	int err;

	if (optim_absent("optim_load", o))
		return -EINVAL;
	a = tensor_open_safetensors(path, NULL);
	if (!a)
		return -thread()->error.code;
	groups = calloc((size_t)o->ngroups, sizeof(*groups));
	state = calloc((size_t)tensor_archive_count(a) + 1, sizeof(*state));
	scope = tensor_scope_enter();
	err = load(o, a, groups, state);
	scope_leave(&scope);
	tensor_archive_close(a);
	free(groups);
	free(state);
	return err;
}
