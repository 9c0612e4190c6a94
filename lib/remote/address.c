// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Addresses of channels between machines: ucx://HOST:PORT. */
#include "remote/remote.h"

#include <netdb.h>
#include <stdlib.h>

#define SCHEME	 "ucx://"
#define HOST_MAX 256

static int refuse(const char *function, const char *text)
{
	return tensor_fail(EINVAL,
			   "%s: the address is ucx://HOST:PORT, with an IPv6 address in brackets, "
			   "got %s",
			   function, QUOTED(text));
}

/* "[::1]:4711" or "host:4711": the host into *host, the port as its result; NULL if it is neither. */
static const char *split(const char *text, char host[HOST_MAX])
{
	bool brackets = *text == '[';
	const char *end = brackets ? strchr(text, ']') : strchr(text, ':');
	size_t n;

	text += brackets;
	if (!end || end[brackets] != ':' || end == text)
		return NULL;
	n = (size_t)(end - text);
	if (n >= HOST_MAX)
		return NULL;
	memcpy(host, text, n);
	host[n] = 0;
	return end + brackets + 1;
}

static bool is_port(const char *text)
{
	size_t n = strspn(text, "0123456789");

	return n && n <= 5 && !text[n] && atoi(text) <= 65535;
}

int address_find(const char *function, const char *text, bool listens, struct addrinfo **found)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC };
	char host[HOST_MAX];
	const char *port;
	int err;

	if (!text || strncmp(text, SCHEME, strlen(SCHEME)))
		return refuse(function, text);
	port = split(text + strlen(SCHEME), host);
	if (!port || !is_port(port) || (!listens && !atoi(port)))
		return refuse(function, text);
	hints.ai_flags = AI_NUMERICSERV | (listens ? AI_PASSIVE : 0);
	err = getaddrinfo(host, port, &hints, found);
	if (err == EAI_MEMORY)
		return tensor_fail(ENOMEM, "%s: no memory", function);
	if (err)
		return tensor_fail(EHOSTUNREACH, "%s: the host of %s was not found: %s", function,
				   QUOTED(text), gai_strerror(err));
	return 0;
}
