// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The choice between the backends. */
#include "args.h"
#include "backend/backend.h"

#include <string.h>

static const struct backend *const backends[] = { &device_backend, &memfd_backend };

enum status choose_backend(const char *name, const struct backend **b)
{
	static const char *const names[] = { "device", "memfd", NULL };
	enum status status = STATUS_NO_MODULE;

	for (size_t i = 0; i < sizeof(backends) / sizeof(*backends); i++) {
		if (name && strcmp(name, backends[i]->name))
			continue;
		*b = backends[i];
		status = backends[i]->open();
		if (status != STATUS_NO_MODULE)
			return status;
	}
	if (name && strcmp(name, device_backend.name))
		return usage_unknown("there is no backend", name, names);
	complain("the tensor module is not loaded");
	return status;
}
