// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * libtensor_onednn.so: its constructor registers the table of functions, or the reason why oneDNN
 * cannot be used. The order of the files, lowest first: engine.c; primitive.c; memory.c; pool.c,
 * norm.c and product.c; plugin.c.
 */
#include "kernels/onednn/onednn.h"

#include <stdio.h>
#include <tensor/dispatch.h>

static const struct onednn_plugin plugin = {
	.from_dense = onednn_from_dense,
	.to_dense = onednn_to_dense,
	.empty = onednn_empty,
	.is_plain = onednn_is_plain,
	.clone = onednn_clone,
	.reshape = onednn_reshape,
	.permute = onednn_permute,
	.as_order = onednn_as_order,
	.zero_padding = onednn_zero_padding,
	.convolution = onednn_convolution,
	.linear = onednn_linear,
	.convolution_weight = onednn_convolution_weight,
	.linear_weight = onednn_linear_weight,
	.pool = onednn_pool,
	.softmax = onednn_softmax,
	.batch_norm = onednn_batch_norm,
};

__attribute__((constructor)) static void load(void)
{
	const dnnl_version_t *v = dnnl_version();
	char why[TENSOR_ERROR_TEXT];
	dnnl_status_t status;

	/* Descriptors are structs of oneDNN: another major version lays them out differently. */
	if (v->major != DNNL_VERSION_MAJOR || v->minor < DNNL_VERSION_MINOR) {
		snprintf(why, sizeof(why), "built for version %d.%d, found %d.%d",
			 DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, v->major, v->minor);
		tensor_register_onednn(NULL, why);
		return;
	}
	if (onednn_memory_for("to_mkldnn", MEMORY_TO_MAKE) < 0) {
		tensor_register_onednn(NULL, "no memory for oneDNN");
		return;
	}
	status = onednn_engine_open();
	if (status != dnnl_success) {
		snprintf(why, sizeof(why), "no engine for the CPU (%d)", status);
		tensor_register_onednn(NULL, why);
		return;
	}
	tensor_register_onednn(&plugin, NULL);
}
