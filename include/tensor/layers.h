/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Layers: functions of a module (<tensor/module.h>), a name within it, and x.
 *
 *	y = tensor_module_conv2d(m, "conv1", x, 64, 3, .stride = 2, .padding = 1);
 *
 * The first call makes the layer's parameters as children of `name`: their sizes follow from x and
 * the arguments, their names, initial values and meaning are those of PyTorch's layer. Later calls use
 * them. A call with other sizes or options, or of another layer, fails with EINVAL.
 *
 * Options follow the arguments as designated initialisers. Zero, or an option that is left out, is the
 * default given here. An optional tensor is given by its address, so that the NULL of a failed
 * operator is not taken for an absent one: .mask = &mask.
 *
 * Each macro tensor_module_NAME() calls the function tensor_module_NAME_opt(), which takes the options
 * as a struct. Layers return a new tensor, as operators do; NULL with the error set. x has the dtype and
 * device of the tree.
 */
#ifndef TENSOR_LAYERS_H
#define TENSOR_LAYERS_H

#include <tensor/module.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The options of a call: .reserved lets a macro be called without any. */
#define TENSOR_LAYER3_(call, type, m, name, x, ...) call(m, name, x, (struct type){ __VA_ARGS__ })
#define TENSOR_LAYER4_(call, type, m, name, x, n, ...) \
	call(m, name, x, n, (struct type){ __VA_ARGS__ })
#define TENSOR_LAYER5_(call, type, m, name, x, n, k, ...) \
	call(m, name, x, n, k, (struct type){ __VA_ARGS__ })
#define TENSOR_LAYER6_(call, type, m, name, q, k, v, n, ...) \
	call(m, name, q, k, v, n, (struct type){ __VA_ARGS__ })

/* ---- linear ---- */

struct tensor_linear_options {
	bool no_bias TENSOR_ZERO_;
	uint32_t reserved TENSOR_ZERO_;
};

/* x [*, in], the result is [*, out]. weight [out, in], bias [out]: uniform in +-1/sqrt(in). */
tensor *tensor_module_linear_opt(tensor_module *m, const char *name, tensor *x, int64_t out,
				 struct tensor_linear_options options);
#define tensor_module_linear(...) \
	TENSOR_LAYER4_(tensor_module_linear_opt, tensor_linear_options, __VA_ARGS__, .reserved = 0)

struct tensor_embedding_options {
	bool padding TENSOR_ZERO_; /* the row padding_idx is zero at first and gets no gradient */
	int64_t padding_idx TENSOR_ZERO_;
	uint32_t reserved TENSOR_ZERO_;
};

/* Rows of weight [num, dim], which is normal with standard deviation 1. indices i64 or i32 [*], the
 * result is [*, dim]. */
tensor *tensor_module_embedding_opt(tensor_module *m, const char *name, tensor *indices,
				    int64_t num, int64_t dim,
				    struct tensor_embedding_options options);
#define tensor_module_embedding(...)                                                       \
	TENSOR_LAYER5_(tensor_module_embedding_opt, tensor_embedding_options, __VA_ARGS__, \
		       .reserved = 0)

/* Zeros with probability p in training, the others divided by 1 - p. Has no parameters, so no name. */
tensor *tensor_module_dropout(tensor_module *m, tensor *x, double p);

/* ---- convolution ---- */

/* The lists, if given, have a number for each dimension and replace the single numbers. */
struct tensor_conv_options {
	int64_t stride TENSOR_ZERO_, padding TENSOR_ZERO_, dilation TENSOR_ZERO_; /* 1, 0, 1 */
	int64_t groups TENSOR_ZERO_;						  /* 1 */
	int64_t output_padding TENSOR_ZERO_; /* 0; of transposed convolutions */
	tensor_ints kernels TENSOR_ZERO_, strides TENSOR_ZERO_, paddings TENSOR_ZERO_;
	tensor_ints dilations TENSOR_ZERO_, output_paddings TENSOR_ZERO_;
	bool no_bias TENSOR_ZERO_;
	uint32_t reserved TENSOR_ZERO_;
};

/* x [n, in, *] or [in, *] with 1, 2 or 3 dimensions after the channels. weight [out, in / groups, kernel,
 * ...], bias [out]: uniform in +-1/sqrt(in / groups * elements of the kernel). */
tensor *tensor_module_conv1d_opt(tensor_module *m, const char *name, tensor *x, int64_t out,
				 int64_t kernel, struct tensor_conv_options options);
tensor *tensor_module_conv2d_opt(tensor_module *m, const char *name, tensor *x, int64_t out,
				 int64_t kernel, struct tensor_conv_options options);
tensor *tensor_module_conv3d_opt(tensor_module *m, const char *name, tensor *x, int64_t out,
				 int64_t kernel, struct tensor_conv_options options);
/* weight [in, out / groups, kernel, kernel], uniform in +-1/sqrt(out / groups * elements of the kernel). */
tensor *tensor_module_conv_transpose2d_opt(tensor_module *m, const char *name, tensor *x,
					   int64_t out, int64_t kernel,
					   struct tensor_conv_options options);
#define TENSOR_CONV_(...) TENSOR_LAYER5_(__VA_ARGS__, .reserved = 0)
#define tensor_module_conv1d(...) \
	TENSOR_CONV_(tensor_module_conv1d_opt, tensor_conv_options, __VA_ARGS__)
#define tensor_module_conv2d(...) \
	TENSOR_CONV_(tensor_module_conv2d_opt, tensor_conv_options, __VA_ARGS__)
#define tensor_module_conv3d(...) \
	TENSOR_CONV_(tensor_module_conv3d_opt, tensor_conv_options, __VA_ARGS__)
#define tensor_module_conv_transpose2d(...) \
	TENSOR_CONV_(tensor_module_conv_transpose2d_opt, tensor_conv_options, __VA_ARGS__)

/* ---- normalisation ---- */

struct tensor_norm_options {
	double eps TENSOR_ZERO_;      /* 1e-5; rms_norm: that of the dtype */
	double momentum TENSOR_ZERO_; /* 0.1; of running statistics */
	int64_t dims
		TENSOR_ZERO_; /* layer_norm, rms_norm: normalise the last `dims` dimensions, 1 */
	bool cumulative TENSOR_ZERO_; /* batch_norm: running statistics are means over all batches */
	bool no_affine TENSOR_ZERO_;  /* neither weight nor bias */
	bool no_bias TENSOR_ZERO_;    /* layer_norm: weight, but no bias */
	bool no_stats TENSOR_ZERO_;   /* batch_norm: no running statistics */
	bool affine TENSOR_ZERO_;     /* instance_norm: weight and bias */
	bool stats TENSOR_ZERO_;      /* instance_norm: running statistics */
	uint32_t reserved TENSOR_ZERO_;
};

/* x [n, c] or [n, c, *]. weight [c] ones, bias [c] zeros; buffers running_mean, running_var,
 * num_batches_tracked, which training updates and evaluation uses. EINVAL for one value of a channel in
 * training: it has no variance; a loader's .drop_last leaves out a batch of one sample. */
tensor *tensor_module_batch_norm_opt(tensor_module *m, const char *name, tensor *x,
				     struct tensor_norm_options options);
/* x [n, c, *] with at least one dimension after the channels. The default has no parameters. */
tensor *tensor_module_instance_norm_opt(tensor_module *m, const char *name, tensor *x,
					struct tensor_norm_options options);
/* weight ones, bias zeros, of the sizes of the last dimensions. */
tensor *tensor_module_layer_norm_opt(tensor_module *m, const char *name, tensor *x,
				     struct tensor_norm_options options);
tensor *tensor_module_rms_norm_opt(tensor_module *m, const char *name, tensor *x,
				   struct tensor_norm_options options);
/* x [n, c, *]; weight [c], bias [c]. */
tensor *tensor_module_group_norm_opt(tensor_module *m, const char *name, tensor *x, int64_t groups,
				     struct tensor_norm_options options);
#define TENSOR_NORM_(...) TENSOR_LAYER3_(__VA_ARGS__, .reserved = 0)
#define tensor_module_batch_norm(...) \
	TENSOR_NORM_(tensor_module_batch_norm_opt, tensor_norm_options, __VA_ARGS__)
#define tensor_module_instance_norm(...) \
	TENSOR_NORM_(tensor_module_instance_norm_opt, tensor_norm_options, __VA_ARGS__)
#define tensor_module_layer_norm(...) \
	TENSOR_NORM_(tensor_module_layer_norm_opt, tensor_norm_options, __VA_ARGS__)
#define tensor_module_rms_norm(...) \
	TENSOR_NORM_(tensor_module_rms_norm_opt, tensor_norm_options, __VA_ARGS__)
#define tensor_module_group_norm(...)                                                  \
	TENSOR_LAYER4_(tensor_module_group_norm_opt, tensor_norm_options, __VA_ARGS__, \
		       .reserved = 0)

/* ---- recurrent layers ---- */

/* Hidden states, and of an LSTM cell states, [layers * directions, batch, hidden]. Both NULL: zeros. A
 * call replaces them by the last states, new tensors; on failure by NULL. */
struct tensor_rnn_state {
	tensor *h, *c;
};

struct tensor_rnn_options {
	int64_t layers TENSOR_ZERO_; /* 1 */
	double dropout TENSOR_ZERO_; /* between layers, in training */
	struct tensor_rnn_state *state TENSOR_ZERO_;
	bool bidirectional TENSOR_ZERO_, batch_first TENSOR_ZERO_, no_bias TENSOR_ZERO_;
	uint32_t reserved TENSOR_ZERO_;
};

/* x [time, batch, in], with .batch_first [batch, time, in], or [time, in]; the result has hidden *
 * directions instead of in. weight_ih_l0 [4 hidden, in], weight_hh_l0 [4 hidden, hidden], bias_ih_l0,
 * bias_hh_l0 (gru: 3 hidden) and so on for each layer, with _reverse: uniform in +-1/sqrt(hidden). */
tensor *tensor_module_lstm_opt(tensor_module *m, const char *name, tensor *x, int64_t hidden,
			       struct tensor_rnn_options options);
tensor *tensor_module_gru_opt(tensor_module *m, const char *name, tensor *x, int64_t hidden,
			      struct tensor_rnn_options options);
#define TENSOR_RNN_(...)	TENSOR_LAYER4_(__VA_ARGS__, .reserved = 0)
#define tensor_module_lstm(...) TENSOR_RNN_(tensor_module_lstm_opt, tensor_rnn_options, __VA_ARGS__)
#define tensor_module_gru(...)	TENSOR_RNN_(tensor_module_gru_opt, tensor_rnn_options, __VA_ARGS__)

/* ---- attention ---- */

enum tensor_activation {
	TENSOR_ACTIVATION_RELU = 0,
	TENSOR_ACTIVATION_GELU, /* with erf */
};

struct tensor_attention_options {
	/* [query length, key length] or [batch * heads, ..., ...]: bool, true where attention is not
	 * allowed, or floating, added to the scores. */
	tensor *const *mask TENSOR_ZERO_;
	/* [batch, key length], bool: true where a key is padding. */
	tensor *const *key_padding TENSOR_ZERO_;
	double dropout TENSOR_ZERO_;
	bool causal TENSOR_ZERO_; /* query i attends to keys 0 to i */
	bool batch_first TENSOR_ZERO_, no_bias TENSOR_ZERO_;
	/* transformer_block */
	bool norm_first TENSOR_ZERO_;
	uint8_t activation TENSOR_ZERO_;  /* enum tensor_activation */
	int64_t feedforward TENSOR_ZERO_; /* 2048 */
	double eps TENSOR_ZERO_;	  /* 1e-5 */
	uint32_t reserved TENSOR_ZERO_;
};

/* query [length, batch, embed], with .batch_first [batch, length, embed], or [length, embed]; the
 * result has its shape. key and value may have other lengths and features. in_proj_weight [3 embed, embed]
 * (or q_proj_weight, k_proj_weight, v_proj_weight), in_proj_bias, out_proj.weight, out_proj.bias. */
tensor *tensor_module_multi_head_attention_opt(tensor_module *m, const char *name, tensor *query,
					       tensor *key, tensor *value, int64_t heads,
					       struct tensor_attention_options options);
#define tensor_module_multi_head_attention(...)                                          \
	TENSOR_LAYER6_(tensor_module_multi_head_attention_opt, tensor_attention_options, \
		       __VA_ARGS__, .reserved = 0)

/* PyTorch's TransformerEncoderLayer: attention of x to itself (self_attn) and two linear layers
 * (linear1, linear2), each with a sum and a layer norm (norm1, norm2), after it or, with .norm_first,
 * before it. The default of .dropout is 0. */
tensor *tensor_module_transformer_block_opt(tensor_module *m, const char *name, tensor *x,
					    int64_t heads, struct tensor_attention_options options);
#define tensor_module_transformer_block(...)                                                       \
	TENSOR_LAYER4_(tensor_module_transformer_block_opt, tensor_attention_options, __VA_ARGS__, \
		       .reserved = 0)

#ifdef __cplusplus
}
#endif
#endif
