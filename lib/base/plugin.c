// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Loads plugins of the library (plugin.h). */
#include "base/plugin.h"

#include "base/compiler.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The path of file in the folder of a library, if it is there. */
static bool path_in_folder_of(const char *library, const char *file, char *path, size_t size)
{
	const char *slash = strrchr(library, '/');
	int n;

	if (!slash)
		return false;
	n = snprintf(path, size, "%.*s/%s", (int)(slash - library), library, file);
	return n > 0 && (size_t)n < size && access(path, R_OK) == 0;
}

/* The same of libtensor, or of the file that a link to it names, as the one in the Python package does in the tree. */
static bool path_beside(const char *file, char *path, size_t size)
{
	static const char self;
	char *real;
	Dl_info info;
	bool found;

	if (!dladdr(&self, &info) || !info.dli_fname)
		return false;
	if (path_in_folder_of(info.dli_fname, file, path, size))
		return true;
	real = realpath(info.dli_fname, NULL);
	found = real && path_in_folder_of(real, file, path, size);
	free(real);
	return found;
}

bool plugin_open(const char *file, const char *variable, char *reason, size_t size)
{
	const char *path = secure_getenv(variable), *text;
	char beside[4096];

	if (!path || !*path)
		path = path_beside(file, beside, sizeof(beside)) ? beside : file;
	if (dlopen(path, RTLD_NOW | RTLD_LOCAL))
		return true;
	text = dlerror();
	snprintf(reason, size, "the plugin was not loaded: %.400s", text ? text : path);
	return false;
}
