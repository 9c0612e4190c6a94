// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Files: tensors with names in a safetensors file, one tensor in a .npy file, read and mapped. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <tensor/tensor.h>
#include <unistd.h>

static double sum_of(tensor *t)
{
	double sum = -1;

	tensor_scope {
		tensor_item(tensor_sum(t), &sum);
	}
	return sum;
}

static int with_names(const char *path)
{
	int wrong = 1;

	tensor_scope {
		struct tensor_named model[] = {
			{ "weight",
			  tensor_ones(TENSOR_SHAPE(3, 4), TENSOR_OPTIONS(.dtype = TENSOR_BF16)) },
			{ "bias", tensor_arange(TENSOR_SCALAR(4), TENSOR_OPTIONS(0)) },
		};

		/* Written beside the file and renamed: a reader sees the old file or the new one. */
		if (tensor_save_safetensors(path, model, 2, NULL, 0) < 0)
			break;
		tensor_archive *archive = tensor_open_safetensors(path, NULL);
		tensor *weight = tensor_archive_get(archive, "weight");

		wrong = sum_of(weight) != 12 || tensor_dtype(weight) != TENSOR_BF16 ||
			sum_of(tensor_archive_get(archive, "bias")) != 6 ||
			tensor_archive_count(archive) != 2;
		/* A name that is not there is an error like any other. */
		wrong += tensor_archive_get(archive, "scale") ||
			 tensor_last_error()->code != ENOENT;
		tensor_archive_close(archive); /* its tensors stay */
		wrong += sum_of(weight) != 12;
	}
	return wrong;
}

static int mapped(const char *path)
{
	int wrong = 1;

	tensor_scope {
		tensor *x = tensor_linspace(TENSOR_SCALAR(0), TENSOR_SCALAR(1), 5,
					    TENSOR_OPTIONS(.dtype = TENSOR_F64));

		if (tensor_save_npy(path, x) < 0)
			break;
		/* No byte is read before it is used, and none can be written. */
		tensor *y = tensor_load_npy(path, &(struct tensor_load_options){ .map = true });

		wrong = sum_of(y) != 2.5 || tensor_is_writable(y);
		wrong += tensor_mul_scalar_(y, TENSOR_SCALAR(2)) ||
			 tensor_last_error()->code != EACCES;
	}
	return wrong;
}

int main(void)
{
	char folder[] = "/tmp/tensor-files-XXXXXX";
	int wrong;

	if (!mkdtemp(folder) || chdir(folder) < 0)
		return 1;
	wrong = with_names("model.safetensors") + mapped("x.npy");
	unlink("model.safetensors");
	unlink("x.npy");
	rmdir(folder);
	return wrong != 0;
}
