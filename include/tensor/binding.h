/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* For bindings of other languages, which keep an object of their own for each tensor. */
#ifndef TENSOR_BINDING_H
#define TENSOR_BINDING_H

#include <tensor/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The object of a binding that stands for t: a borrowed pointer, NULL for a new tensor. A binding
 * sets it when it makes the object and clears it before it frees the object, both under a lock of
 * its own, so that it finds the same object when an operator returns the same tensor. Views and
 * detached tensors are other tensors. One binding in a process may use it. NULL for NULL.
 */
void *tensor_binding(const tensor *t);
void tensor_set_binding(tensor *t, void *object);

/*
 * The number of references to t, those of its views included: 1 if the caller has the only one. For
 * a garbage collector that has to know whether it sees all owners. 0 for NULL.
 */
int64_t tensor_use_count(const tensor *t);

#ifdef __cplusplus
}
#endif
#endif
