// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A GPT of characters that learns the text of the GNU General Public License from Debian's
 * /usr/share/common-licenses/GPL-3, whose verbatim copying is permitted, and continues it. usage: see
 * common.h
 */
#include "common.h"

#define TEXT	"/usr/share/common-licenses/GPL-3"
#define LAYERS	2
#define EMBED	64
#define HEADS	4
#define LENGTH	32 /* of the context */
#define BATCH	16
#define SYMBOLS 128

static int64_t text[40000];

static int64_t read_text(void)
{
	FILE *f = fopen(TEXT, "r");
	int64_t n = 0;

	for (int c; f && n < 40000 && (c = getc(f)) != EOF;)
		text[n++] = c % SYMBOLS;
	if (f)
		fclose(f);
	return n;
}

static tensor *gpt(tensor_module *m, tensor *symbols)
{
	int64_t length = tensor_size(symbols, 1);
	tensor *at = tensor_arange(TENSOR_SCALAR(length), TENSOR_OPTIONS(.dtype = TENSOR_I64));
	tensor *x = tensor_module_embedding(m, "symbol", symbols, SYMBOLS, EMBED);
	char name[16];

	x = tensor_add(x, tensor_module_embedding(m, "position", at, LENGTH, EMBED));
	for (int i = 0; i < LAYERS; i++) {
		snprintf(name, sizeof(name), "blocks.%d", i);
		x = tensor_module_transformer_block(m, name, x, HEADS, .feedforward = 4 * EMBED,
						    .causal = true, .norm_first = true,
						    .activation = TENSOR_ACTIVATION_GELU,
						    .batch_first = true);
	}
	return tensor_module_linear(m, "head", tensor_module_layer_norm(m, "norm", x), SYMBOLS);
}

/* Prints what the model finds most likely after the last LENGTH symbols. */
static void continue_text(tensor_module *m, int64_t *last, int n)
{
	tensor_module_train(m, false);
	for (int i = 0; i < n; i++) {
		tensor_no_grad
			tensor_scope {
				tensor *x = tensor_from_data(last + i, TENSOR_SHAPE(1, LENGTH),
							     TENSOR_OPTIONS(.dtype = TENSOR_I64));

				x = tensor_argmax(tensor_select(tensor_select(gpt(m, x), 0, 0), 0,
								-1),
						  0, false);
				tensor_item_int(x, &last[i + LENGTH]);
			}
		putchar((int)last[i + LENGTH]);
	}
	putchar('\n');
}

int main(int argc, char **argv)
{
	int64_t n = read_text(), rows[2][BATCH][LENGTH];
	struct training t;

	if (n < 1000)
		return perror(TEXT), 77;
	if (!training_begin(&t, argc, argv, 60))
		return 1;
	while (training_next(&t))
		tensor_scope {
			for (int64_t i = 0; i < 2 * BATCH * LENGTH; i++) {
				int64_t b = i / LENGTH % BATCH,
					begin = (t.step * BATCH + b) * 7919 % (n - LENGTH - 1);

				rows[i / LENGTH / BATCH][b][i % LENGTH] =
					text[begin + i % LENGTH + i / LENGTH / BATCH];
			}
			tensor *xy = tensor_from_data(rows, TENSOR_SHAPE(2, BATCH, LENGTH),
						      TENSOR_OPTIONS(.dtype = TENSOR_I64));
			tensor *y = tensor_flatten(gpt(t.model, tensor_select(xy, 0, 0)), 0, 1);

			y = tensor_loss_cross_entropy(y, tensor_flatten(tensor_select(xy, 0, 1), 0,
									-1));
			training_step(&t, y, TENSOR_ADAMW(.lr = 3e-3));
		}
	continue_text(t.model, text, 60);
	return training_end(&t);
}
