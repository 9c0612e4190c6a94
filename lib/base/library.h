/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Functions of a library of others that is loaded when it is first needed: cuFFT, cuSOLVER, cuSPARSE, NCCL. */
#ifndef TENSOR_LIBRARY_H
#define TENSOR_LIBRARY_H

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

/* A function of the library, and the member of a struct of pointers that gets its address. */
struct library_function {
	const char *name;
	size_t at;
};

#define LIBRARY_FUNCTION(type, member, name) \
	{                                    \
		name, offsetof(type, member) \
	}

/* Loads the library, which stays loaded, and writes the addresses of n functions to *to. NULL, or the loader's error text. */
static inline const char *library_load(const char *file, const struct library_function *functions,
				       size_t n, void *to)
{
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return dlerror();
	for (size_t i = 0; i < n; i++) {
		void *f = dlsym(library, functions[i].name);

		if (!f)
			return dlerror();
		memcpy((char *)to + functions[i].at, &f, sizeof(f));
	}
	return NULL;
}

#endif
