// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Stands for cuFFT, as far as the plugin uses it: transforms of one dimension with strides, whose workspace the caller
 * gives. Arguments are checked as its documentation describes them, and lines are computed by sums in double. A transform
 * to real numbers overwrites its input, which cuFFT may do.
 */
#include "host.hpp"

#include <cmath>
#include <complex>
#include <map>
#include <memory>

enum {
	CUFFT_SUCCESS = 0,
	CUFFT_INVALID_PLAN = 1,
	CUFFT_INVALID_TYPE = 3,
	CUFFT_INVALID_VALUE = 4,
	CUFFT_INVALID_SIZE = 8
};
enum { C2C = 0x29, R2C = 0x2a, C2R = 0x2c, Z2Z = 0x69, D2Z = 0x6a, Z2D = 0x6c };
enum : size_t { WORKSPACE = 1024 };

typedef std::complex<double> value;
typedef std::vector<value> values;

struct fft_plan {
	bool allocates = true, made = false;
	int type, device;
	long long n, in_stride, in_dist, out_stride, out_dist, batch;
	cudaStream_t stream = nullptr;
	char *workspace = nullptr;
	std::shared_ptr<const values> roots; /* of unity, of a transform forward */
};

static std::map<int, fft_plan> &plans = *new std::map<int, fft_plan>();

#define FFT()                     \
	host_call call(__func__); \
	if (call.injected)        \
	return call.injected

/*
 * In the caller's thread: ThreadSanitizer sees what std::polar() writes to the stack, which is that of a stream and of the
 * program.
 */
static std::shared_ptr<const values> roots_of(long long n)
{
	auto roots = std::make_shared<values>((size_t)n);

	for (long long k = 0; k < n; k++)
		(*roots)[(size_t)k] = std::polar(1.0, -2 * M_PI * (double)k / (double)n);
	return roots;
}

static fft_plan *plan_of(int handle)
{
	auto at = plans.find(handle);

	return at == plans.end() ? nullptr : &at->second;
}

extern "C" int cufftCreate(int *handle)
{
	static int last;

	FFT();
	*handle = ++last;
	plans[last] = fft_plan();
	return CUFFT_SUCCESS;
}

extern "C" int cufftDestroy(int handle)
{
	FFT();
	return plans.erase(handle) ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}

extern "C" int cufftSetAutoAllocation(int handle, int allocate)
{
	FFT();
	fft_plan *p = plan_of(handle);

	if (!p || p->made)
		return CUFFT_INVALID_PLAN;
	p->allocates = allocate;
	return CUFFT_SUCCESS;
}

extern "C" int cufftMakePlanMany64(int handle, int rank, long long *n, long long *in_embed,
				   long long in_stride, long long in_dist, long long *out_embed,
				   long long out_stride, long long out_dist, int type,
				   long long batch, size_t *workspace)
{
	FFT();
	fft_plan *p = plan_of(handle);

	if (!p || p->made)
		return CUFFT_INVALID_PLAN;
	if (type != C2C && type != R2C && type != C2R && type != Z2Z && type != D2Z && type != Z2D)
		return CUFFT_INVALID_TYPE;
	if (rank != 1 || !n || n[0] < 2 || batch < 1)
		return CUFFT_INVALID_SIZE;
	if (!in_embed || !out_embed || in_stride < 1 || out_stride < 1 || in_dist < 1 ||
	    out_dist < 1 || !workspace)
		return CUFFT_INVALID_VALUE;
	p->made = true;
	p->type = type;
	p->device = host_current_device();
	p->n = n[0];
	p->in_stride = in_stride;
	p->in_dist = in_dist;
	p->out_stride = out_stride;
	p->out_dist = out_dist;
	p->batch = batch;
	p->roots = roots_of(n[0]);
	*workspace = WORKSPACE;
	return CUFFT_SUCCESS;
}

extern "C" int cufftSetStream(int handle, cudaStream_t stream)
{
	FFT();
	fft_plan *p = plan_of(handle);

	if (!p)
		return CUFFT_INVALID_PLAN;
	p->stream = stream;
	return CUFFT_SUCCESS;
}

extern "C" int cufftSetWorkArea(int handle, void *workspace)
{
	FFT();
	fft_plan *p = plan_of(handle);

	if (!p || !p->made || (uintptr_t)workspace % 256)
		return CUFFT_INVALID_PLAN;
	p->workspace = (char *)workspace;
	return CUFFT_SUCCESS;
}

/* ---- a transform ---- */

struct side {
	char *data;
	long long stride, dist, count; /* count: elements of a line */
	bool real, wide;

	size_t size(void) const
	{
		return (wide ? 8 : 4) * (real ? 1 : 2);
	}

	char *at(long long line, long long i) const
	{
		return data + (line * dist + i * stride) * (long long)size();
	}

	void check(long long batch, bool write) const
	{
		for (long long line = 0; line < batch; line++)
			for (long long i = 0; i < count; i++) {
				host_check(at(line, i), size(), write, "cuFFT");
#ifdef CUDA_HOST_TSAN
				if (write)
					__tsan_write_range(at(line, i), size());
				else
					__tsan_read_range(at(line, i), size());
#endif
			}
	}

	value load(long long line, long long i) const
	{
		const float *f = (const float *)at(line, i);
		const double *d = (const double *)at(line, i);

		return wide ? value(d[0], real ? 0 : d[1]) : value(f[0], real ? 0 : f[1]);
	}

	void store(long long line, long long i, value v) const
	{
		float *f = (float *)at(line, i);
		double *d = (double *)at(line, i);

		if (wide)
			d[0] = v.real();
		else
			f[0] = (float)v.real();
		if (!real && wide)
			d[1] = v.imag();
		else if (!real)
			f[1] = (float)v.imag();
	}
};

static void transform(const fft_plan &p, const side &in, const side &out, int sign)
{
	const values &roots = *p.roots;
	values line((size_t)p.n);

	in.check(p.batch, false);
	out.check(p.batch, true);
	for (long long b = 0; b < p.batch; b++) {
		for (long long i = 0; i < p.n; i++)
			line[(size_t)i] = i < in.count ? in.load(b, i) :
							 std::conj(in.load(b, p.n - i));
		/* The imaginary parts that a Hermitian line has not. */
		if (out.real) {
			line[0] = line[0].real();
			if (p.n % 2 == 0)
				line[(size_t)p.n / 2] = line[(size_t)p.n / 2].real();
		}
		for (long long k = 0; k < out.count; k++) {
			value sum = 0;

			for (long long i = 0; i < p.n; i++) {
				value root = roots[(size_t)(i * k % p.n)];

				sum += line[(size_t)i] * (sign < 0 ? root : std::conj(root));
			}
			out.store(b, k, sum);
		}
		for (long long i = 0; out.real && i < in.count; i++)
			in.store(b, i, value(NAN, NAN));
	}
}

static int submit(int handle, int type, void *in, void *out, int sign)
{
	const fft_plan *found = plan_of(handle);
	bool wide = type == Z2Z || type == D2Z || type == Z2D;

	if (!found || !found->made || found->type != type)
		return CUFFT_INVALID_PLAN;
	const fft_plan p = *found;
	CUstream_st *s = host_stream(p.stream, p.device);
	if (!in || !out || s->device != p.device || (uintptr_t)in % (wide ? 16 : 8) ||
	    (uintptr_t)out % (wide ? 16 : 8) || (!p.allocates && !p.workspace))
		return CUFFT_INVALID_VALUE;
	if (host_device_of(in) != p.device || host_device_of(out) != p.device)
		host_fatal("cuFFT: %p, %p are not both memory of cuda:%d", in, out, p.device);
	if (in == out && (p.in_stride != p.out_stride || p.in_dist != p.out_dist))
		host_fatal("cuFFT: a transform in place has two layouts");
	side from = { (char *)in, p.in_stride, p.in_dist, p.n, type == R2C || type == D2Z, wide };
	side to = { (char *)out, p.out_stride, p.out_dist, p.n, type == C2R || type == Z2D, wide };
	if (to.real)
		from.count = p.n / 2 + 1;
	if (from.real)
		to.count = p.n / 2 + 1;
	host_counts.launches++;
	host_submit(s, "cuFFT", 1u << p.device, [=] {
		if (!p.allocates) {
			host_check(p.workspace, WORKSPACE, true, "cuFFT");
			memset(p.workspace, 0x5a, WORKSPACE);
		}
		transform(p, from, to, sign);
	});
	return CUFFT_SUCCESS;
}

extern "C" int cufftExecC2C(int plan, void *in, void *out, int direction)
{
	FFT();
	return submit(plan, C2C, in, out, direction);
}

extern "C" int cufftExecZ2Z(int plan, void *in, void *out, int direction)
{
	FFT();
	return submit(plan, Z2Z, in, out, direction);
}

extern "C" int cufftExecR2C(int plan, void *in, void *out)
{
	FFT();
	return submit(plan, R2C, in, out, -1);
}

extern "C" int cufftExecD2Z(int plan, void *in, void *out)
{
	FFT();
	return submit(plan, D2Z, in, out, -1);
}

extern "C" int cufftExecC2R(int plan, void *in, void *out)
{
	FFT();
	return submit(plan, C2R, in, out, 1);
}

extern "C" int cufftExecZ2D(int plan, void *in, void *out)
{
	FFT();
	return submit(plan, Z2D, in, out, 1);
}
