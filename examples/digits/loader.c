// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The loader: reads the digits and sends them to the trainer in shared tensors. Every fifth image
 * is held out. For each epoch the other images are shuffled and shifted by up to a pixel, written
 * to one of two pairs of tensors while the trainer reads the other pair; the pixels are not copied
 * through the socket.
 *
 * usage: digits-loader SOCKET DIGITS.csv
 */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define IMAGES_MAX 8192
#define HELD_OUT   5
#define SLOTS	   2
#define SIDE	   8 /* width and height of an image in pixels */

struct image {
	float pixel[PIXELS]; /* 0 to 1 */
	int64_t digit;
};

struct pair {
	tensor *images, *labels; /* f32 [n, 64], i64 [n] */
};

static struct image images[IMAGES_MAX];

/* Parses a row of the file: 64 numbers 0..16 and a digit. Returns 0, or -1. */
static int parse(char *line, struct image *image)
{
	char *end;

	for (int i = 0; i <= PIXELS; i++) {
		long v = strtol(line, &end, 10);

		if (end == line || v < 0 || v > (i < PIXELS ? 16 : CLASSES - 1))
			return -1;
		if (i < PIXELS)
			image->pixel[i] = v / 16.0f;
		else
			image->digit = v;
		line = end + (*end == ',');
	}
	return 0;
}

static int read_images(const char *path)
{
	FILE *f = fopen(path, "r");
	char line[1024];
	int n = 0;

	if (!f) {
		perror(path);
		return -1;
	}
	while (n < IMAGES_MAX && fgets(line, sizeof(line), f)) {
		if (parse(line, &images[n]) < 0) {
			fprintf(stderr, "%s:%d: not a row of 64 pixels and a digit\n", path, n + 1);
			n = -1;
			break;
		}
		n++;
	}
	fclose(f);
	return n;
}

static int make_pair(struct pair *p, int64_t n)
{
	p->images = tensor_empty(TENSOR_INTS(n, PIXELS),
				 TENSOR_OPTIONS(.dtype = TENSOR_F32, .shareable = true));
	p->labels = tensor_empty(TENSOR_INTS(n),
				 TENSOR_OPTIONS(.dtype = TENSOR_I64, .shareable = true));
	if (!p->images || !p->labels)
		return tensor_perror("loader");
	tensor_set_label(p->images, "images");
	tensor_set_label(p->labels, "labels");
	return 0;
}

/* Shifts an image by dx, dy pixels; pixels from outside are 0. */
static void shift(float *out, const float *in, int dx, int dy)
{
	for (int y = 0; y < SIDE; y++) {
		for (int x = 0; x < SIDE; x++) {
			int fx = x - dx, fy = y - dy;
			bool inside = fx >= 0 && fx < SIDE && fy >= 0 && fy < SIDE;

			out[y * SIDE + x] = inside ? in[fy * SIDE + fx] : 0;
		}
	}
}

/* Writes the images in this order. With a seed, every other image is shifted by a pixel. */
static void fill(struct pair *p, const int *order, int n, uint64_t *seed)
{
	static const int8_t dx[] = { 1, -1, 0, 0 }, dy[] = { 0, 0, 1, -1 };
	float *pixel = tensor_mutable_data(p->images);
	int64_t *label = tensor_mutable_data(p->labels);

	for (int i = 0; i < n; i++) {
		const struct image *image = &images[order[i]];
		unsigned way = seed ? digits_random(seed) >> 61 : 7;

		if (way < 4)
			shift(pixel + i * PIXELS, image->pixel, dx[way], dy[way]);
		else
			memcpy(pixel + i * PIXELS, image->pixel, sizeof(image->pixel));
		label[i] = image->digit;
	}
}

static int send_pair(tensor_channel *channel, const struct pair *p)
{
	int err = tensor_send(channel, p->images, TENSOR_SEND_READONLY);

	return err < 0 ? err : tensor_send(channel, p->labels, TENSOR_SEND_READONLY);
}

static void release_pair(struct pair *p)
{
	tensor_release(p->images);
	tensor_release(p->labels);
}

static void shuffle(int *order, int n, uint64_t *seed)
{
	for (int i = n - 1; i > 0; i--) {
		int j = (int)(digits_random(seed) % (uint64_t)(i + 1)), tmp = order[i];

		order[i] = order[j];
		order[j] = tmp;
	}
}

/* The next answer of the trainer: 'n', 'e', or 0 if it has exited. */
static char answer(int fd)
{
	char c = 0;

	return digits_receive(fd, &c, 1) == 1 ? c : 0;
}

/*
 * The loader is one or two epochs ahead: the trainer may exit before the last tensors are sent. Its
 * 'e' can still be read then.
 */
static bool trainer_has_enough(int fd)
{
	char c;

	while ((c = answer(fd)) == 'n')
		;
	return c == 'e';
}

/* Sends epochs until the trainer answers 'e' or exits. */
static int serve(int fd, tensor_channel *channel, int *order, int n)
{
	struct pair slot[SLOTS] = { 0 };
	uint64_t seed = 20260101;
	int status = EXIT_SUCCESS;

	for (int i = 0; i < SLOTS && !status; i++)
		status = make_pair(&slot[i], n) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	for (long epoch = 0; !status; epoch++) {
		struct pair *p = &slot[epoch % SLOTS];
		/* A pair is overwritten only after the trainer has returned it. */
		char c = epoch < SLOTS ? 'n' : answer(fd);

		if (c == 'e')
			break;
		shuffle(order, n, &seed);
		fill(p, order, n, &seed);
		if (c == 'n' && send_pair(channel, p) == 0)
			continue;
		if (trainer_has_enough(fd))
			break;
		fprintf(stderr, "loader: the trainer is gone after epoch %ld\n", epoch);
		status = EXIT_PEER_GONE;
	}
	for (int i = 0; i < SLOTS; i++)
		release_pair(&slot[i]);
	return status;
}

int main(int argc, char **argv)
{
	static int train[IMAGES_MAX], held_out[IMAGES_MAX];
	int n, fd, trains = 0, holds = 0, status;
	tensor_channel *channel;
	struct pair test = { 0 };

	if (argc != 3) {
		fprintf(stderr, "usage: digits-loader SOCKET DIGITS.csv\n");
		return 2;
	}
	n = read_images(argv[2]);
	if (n < HELD_OUT)
		return EXIT_FAILURE;
	for (int i = 0; i < n; i++) {
		if (i % HELD_OUT == HELD_OUT - 1)
			held_out[holds++] = i;
		else
			train[trains++] = i;
	}
	fd = digits_connect(argv[1], ROLE_LOADER);
	if (fd < 0)
		return EXIT_FAILURE;
	channel = tensor_channel_open(fd);
	printf("loader:  %d images to train on, %d held out, storage: %s\n", trains, holds,
	       tensor_provider_name());
	fflush(stdout);
	if (!channel || make_pair(&test, holds) < 0) {
		tensor_perror("loader");
		return EXIT_FAILURE;
	}
	fill(&test, held_out, holds, NULL);
	if (send_pair(channel, &test) < 0) {
		tensor_perror("loader");
		return EXIT_FAILURE;
	}
	status = serve(fd, channel, train, trains);
	release_pair(&test);
	tensor_channel_close(channel);
	close(fd);
	return status;
}
