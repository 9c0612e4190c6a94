// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Loads plugins of the library (plugin.h). */
#include "base/plugin.h"

#include "base/compiler.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The path of file in the folder of libtensor. */
static bool path_beside(const char *file, char *path, size_t size)
{
	static const char self;
	const char *slash;
	Dl_info info;
	int n;

	if (!dladdr(&self, &info) || !info.dli_fname)
		return false;
	slash = strrchr(info.dli_fname, '/');
	if (!slash)
		return false;
	n = snprintf(path, size, "%.*s/%s", (int)(slash - info.dli_fname), info.dli_fname, file);
	return n > 0 && (size_t)n < size && access(path, R_OK) == 0;
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
