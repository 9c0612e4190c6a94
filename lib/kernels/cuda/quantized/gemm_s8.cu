// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Products of quantized matrices and their patches. A block computes a tile of TILE rows and columns; of each it keeps WORDS
 * words of four bytes in shared memory, and a thread adds the products of SIDE by SIDE words. The zero points are
 * accounted for by the sums of the rows. All sums are those of the CPU, modulo 2^32.
 */
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/launch_quantized.h"

#include "kernels/formula/quantize.h"

enum { TILE = 64, WORDS = 8, LANES = 16, SIDE = TILE / LANES };

/* Four bytes of a row of k from `at` on, zeros behind its end. */
static __device__ inline uint32_t word_of(const uint8_t *row, int64_t at, int64_t k)
{
	uint32_t word = 0;

	if (at + 4 <= k && (uintptr_t)(row + at) % 4 == 0)
		return *(const uint32_t *)(row + at);
	for (int b = 0; b < 4; b++)
		if (at + b < k)
			word |= (uint32_t)row[at + b] << 8 * b;
	return word;
}

/* sum + the products of the bytes of x, unsigned, and w, signed. */
static __device__ inline int32_t add_products(int32_t sum, uint32_t x, uint32_t w)
{
#ifdef __CUDA_ARCH__
	asm("dp4a.u32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(x), "r"(w));
	return sum;
#else
	uint32_t total = (uint32_t)sum;

	for (int b = 0; b < 32; b += 8)
		total += (uint32_t)((int32_t)(x >> b & 0xff) * (int8_t)(w >> b & 0xff));
	return (int32_t)total;
#endif
}

/* The words at column `at` of TILE rows from `first` on; of rows behind the last one they are zeros. */
static __device__ inline void load_words(uint32_t (*to)[WORDS + 1], const uint8_t *from,
					 int64_t first, int64_t rows, int64_t at, int64_t k)
{
	for (int i = threadIdx.x; i < TILE * WORDS; i += BLOCK) {
		const int64_t row = first + i / WORDS;

		to[i / WORDS][i % WORDS] =
			row < rows ? word_of(from + row * k, at + i % WORDS * 4, k) : 0;
	}
}

struct tile_sums {
	int32_t product[SIDE][SIDE], x[SIDE], w[SIDE];
};

static __device__ inline void store_tile(const cuda_gemm_s8 &p, const tile_sums &sums, int64_t i0,
					 int64_t j0)
{
#pragma unroll
	for (int c = 0; c < SIDE; c++) {
		const int64_t j = j0 + threadIdx.x % LANES + c * LANES;

		if (j >= p.n)
			continue;
		const float scale = p.scale[j];
		const float bias = !p.bias	     ? 0 :
				   p.bias_reciprocal ? p.bias[j] * (1.0f / scale) :
						       p.bias[j] / scale;
		const uint32_t zero = (uint32_t)p.w_zero[j], x_zero = (uint32_t)p.x_zero;
		const uint32_t offset =
			(uint32_t)p.k * x_zero * zero - x_zero * (uint32_t)sums.w[c];

#pragma unroll
		for (int r = 0; r < SIDE; r++) {
			const int64_t i = i0 + threadIdx.x / LANES + r * LANES;
			const uint32_t sum =
				(uint32_t)sums.product[r][c] + offset - zero * (uint32_t)sums.x[r];

			if (i < p.m)
				p.out[i * p.out_row + j * p.out_column] = (uint8_t)quantize_to_byte(
					(float)(int32_t)sum + bias, scale / p.out_scale, p.out_zero,
					(float)(p.low - p.out_zero), (float)(p.high - p.out_zero));
		}
	}
}

/* The operands of one of the products. */
static __device__ inline cuda_gemm_s8 product_of(cuda_gemm_s8 p, int64_t i)
{
	const int64_t first = i % p.groups * p.n;

	p.x += i * p.m * p.k;
	p.w += first * p.k;
	p.out += i * p.out_step;
	p.w_zero += first;
	p.scale += first;
	if (p.bias)
		p.bias += first;
	return p;
}

/* tiles: of one product. */
__global__ void __launch_bounds__(BLOCK) gemm_s8_kernel(cuda_gemm_s8 all, int64_t tiles)
{
	__shared__ uint32_t x[TILE][WORDS + 1], w[TILE][WORDS + 1];
	const int64_t across = (all.n + TILE - 1) / TILE;

	for (int64_t t = blockIdx.x; t < tiles * all.count; t += gridDim.x) {
		const cuda_gemm_s8 p = product_of(all, t / tiles);
		const int64_t i0 = t % tiles / across * TILE, j0 = t % across * TILE;
		tile_sums sums = {};

		for (int64_t at = 0; at < p.k; at += 4 * WORDS) {
			load_words(x, p.x, i0, p.m, at, p.k);
			load_words(w, (const uint8_t *)p.w, j0, p.n, at, p.k);
			__syncthreads();
#pragma unroll
			for (int k = 0; k < WORDS; k++) {
				uint32_t a[SIDE], b[SIDE];

#pragma unroll
				for (int s = 0; s < SIDE; s++) {
					a[s] = x[threadIdx.x / LANES + s * LANES][k];
					b[s] = w[threadIdx.x % LANES + s * LANES][k];
					sums.x[s] = add_products(sums.x[s], a[s], 0x01010101);
					sums.w[s] = add_products(sums.w[s], 0x01010101, b[s]);
				}
#pragma unroll
				for (int r = 0; r < SIDE; r++)
#pragma unroll
					for (int c = 0; c < SIDE; c++)
						sums.product[r][c] = add_products(
							sums.product[r][c], a[r], b[c]);
			}
			__syncthreads();
		}
		store_tile(p, sums, i0, j0);
	}
}

int cuda_launch_gemm_s8(const cuda_gemm_s8 *p, cudaStream_t stream)
{
	const int64_t tiles = (p->m + TILE - 1) / TILE * ((p->n + TILE - 1) / TILE);

	const int64_t most = tiles > INT32_MAX / p->count ? INT32_MAX : tiles * p->count;

	return launch(gemm_s8_kernel, (unsigned)most, BLOCK, stream, *p, tiles);
}

/* ---- patches ---- */

__global__ void patches_kernel(uint8_t *out, const uint8_t *image, cuda_patches p)
{
	const int64_t taps = p.kh * p.kw, size = p.channels * taps, places = p.oh * p.ow;

	for (int64_t i = first_element<int64_t>(); i < p.images * places * size;
	     i += element_step<int64_t>()) {
		const int64_t row = i / size, of = row / places, place = row - of * places;
		const int64_t c = of * p.channels + i % size / taps, tap = i % taps;
		const int64_t y =
			place / p.ow * p.stride[0] - p.padding[0] + tap / p.kw * p.dilation[0];
		const int64_t x =
			place % p.ow * p.stride[1] - p.padding[1] + tap % p.kw * p.dilation[1];
		const bool inside = y >= 0 && y < p.height && x >= 0 && x < p.width;

		out[i] = inside ? image[(c * p.height + y) * p.width + x] : p.fill;
	}
}

int cuda_launch_patches(uint8_t *out, const uint8_t *image, const cuda_patches *p,
			cudaStream_t stream)
{
	const int64_t n = p->images * p->oh * p->ow * p->channels * p->kh * p->kw;

	return launch(patches_kernel, grid_for(n, BLOCK), BLOCK, stream, out, image, *p);
}
