// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A GPT of characters that learns the text of the GNU General Public License and continues it. Debian has
 * it in /usr/share/common-licenses/GPL-3; its verbatim copying is permitted. usage: see common.h
 */
#include "common.h"

enum { LAYERS = 2, EMBED = 64, HEADS = 4, LENGTH = 32, BATCH = 16, SYMBOLS = 128, MOST = 40000 };

#define TEXT "/usr/share/common-licenses/GPL-3"
#define INTS TENSOR_OPTIONS(.dtype = TENSOR_I64)
static int64_t text[MOST];

static tensor *gpt(tensor_module *m, tensor *symbols)
{
	tensor *at = tensor_arange(TENSOR_SCALAR(tensor_size(symbols, 1)), INTS);
	tensor *x = tensor_module_embedding(m, "symbol", symbols, SYMBOLS, EMBED);
	char name[16];

	x = tensor_add(x, tensor_module_embedding(m, "position", at, LENGTH, EMBED));
	for (int i = 0; i < LAYERS; i++) {
		snprintf(name, sizeof(name), "blocks.%d", i);
		x = tensor_module_transformer_block(m, name, x, HEADS, .feedforward = 4 * EMBED,
						    .causal = true,
						    .activation = TENSOR_ACTIVATION_GELU,
						    .norm_first = true, .batch_first = true);
	}
	return tensor_module_linear(m, "head", tensor_module_layer_norm(m, "norm", x), SYMBOLS);
}

/* Symbols of this rank's part of BATCH places of the text, or those after them. */
static tensor *batch(int64_t step, int64_t n, int after)
{
	int64_t rows[BATCH][LENGTH], at = step * BATCH, count = BATCH;

	ranks_part(&at, &count);
	for (int64_t b = 0; b < count; b++)
		for (int64_t i = 0; i < LENGTH; i++)
			rows[b][i] = text[(at + b) * 7919 % (n - LENGTH - 1) + i + after];
	return tensor_from_data(rows, TENSOR_SHAPE(count, LENGTH), INTS);
}

/* Prints what the model finds most likely after the first LENGTH symbols of the text. */
static void continue_text(tensor_module *m, int n)
{
	tensor_module_train(m, false);
	for (int i = 0; i < n; i++) {
		tensor_no_grad
			tensor_scope {
				tensor *x =
					tensor_from_data(text + i, TENSOR_SHAPE(1, LENGTH), INTS);

				x = tensor_index(gpt(m, x), TENSOR_I(0), TENSOR_I(-1));
				tensor_item_int(tensor_argmax(x, 0, false), &text[i + LENGTH]);
			}
		putchar((int)text[i + LENGTH]);
	}
	printf("%s", n ? "\n" : "");
}

int main(int argc, char **argv)
{
	FILE *f = fopen(TEXT, "r");
	struct training t;
	int64_t n = 0;

	for (int c; f && n < MOST && (c = getc(f)) != EOF;)
		text[n++] = c % SYMBOLS;
	if (n < 1000 || !training_begin(&t, argc, argv, 400))
		return n < 1000 ? puts("there is no " TEXT), 0 : 1;
	while (training_next(&t))
		tensor_scope {
			tensor *y = tensor_flatten(gpt(t.model, batch(t.step, n, 0)), 0, 1);

			y = tensor_loss_cross_entropy(y, tensor_flatten(batch(t.step, n, 1), 0, 1));
			training_step(&t, y, TENSOR_ADAMW(.lr = 3e-3));
		}
	continue_text(t.model, ranks_rank() ? 0 : 80);
	return fclose(f) || training_end(&t);
}
