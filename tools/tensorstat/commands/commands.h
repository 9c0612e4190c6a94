/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The commands. Each gets the words after its name, a list that ends with NULL. */
#ifndef TENSORSTAT_COMMANDS_H
#define TENSORSTAT_COMMANDS_H

#include "tensorstat.h"

enum status cmd_buffer(char **arg, const struct options *o);
enum status cmd_client(char **arg, const struct options *o);
enum status cmd_export(char **arg, const struct options *o);
enum status cmd_user(char **arg, const struct options *o);
enum status cmd_group(char **arg, const struct options *o);
enum status cmd_device(char **arg, const struct options *o);
enum status cmd_stat(char **arg, const struct options *o);
enum status cmd_top(char **arg, const struct options *o);
enum status cmd_monitor(char **arg, const struct options *o);
enum status cmd_metrics(char **arg, const struct options *o);
enum status cmd_plot(char **arg, const struct options *o);
enum status cmd_doctor(char **arg, const struct options *o);

#endif
