/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Anomaly mode: finds the node that computed a NaN, and the call that the node belongs to. */
#ifndef TENSOR_AUTOGRAD_ANOMALY_H
#define TENSOR_AUTOGRAD_ANOMALY_H

#include "autograd/graph/node.h"

/* Checks the gradients that a node computed for its inputs. 0, or -EDOM with the error set for a NaN. */
int anomaly_check(const tensor_node *n, tensor *const *grads);
/* Adds the place of the node's call to the error record. */
void anomaly_explain(const tensor_node *n);

#endif
