// SPDX-License-Identifier: LGPL-2.1-only OR MIT
#include "commands/commands.h"
enum status cmd_plot(char **arg, const struct options *o)
{
	return STATUS_OK;
}
