// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* <tensor/tensor.hpp>: ownership, errors, data in and out, operators, differentiation, sharing. */
#include <tensor/tensor.hpp>

#include "check.hpp"

#include <array>
#include <cmath>
#include <sstream>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace libtensor;

static uint64_t live_tensors()
{
	struct tensor_live_counts counts;

	tensor_live_counts(&counts);
	return counts.tensors;
}

static Tensor matrix()
{
	return from<float>({ { 1, 2, 3 }, { 4, 5, 6 } });
}

static bool holds(const Tensor &t, const std::vector<double> &values)
{
	return t.to_vector<double>() == values;
}

/* ---- ownership ---- */

TEST(copy_shares_and_move_transfers)
{
	uint64_t before = live_tensors();
	{
		Tensor a = matrix(), b = a, c = std::move(a);

		CHECK(!a.defined() && b.is_same(c) && live_tensors() == before + 1);
		b.add_(1);
		CHECK(holds(c, { 2, 3, 4, 5, 6, 7 }));
		c = Tensor();
		CHECK(live_tensors() == before + 1);
		b = *&b;
		CHECK(b.numel() == 6);
	}
	CHECK(live_tensors() == before);
}

TEST(result_outlives_the_scope_of_c_and_leaves_nothing)
{
	uint64_t before = live_tensors();
	{
		Tensor kept;

		tensor_scope {
			Tensor a = matrix();

			kept = (a * 2).sum();
			CHECK(tensor_add(a.get(), a.get()));
		}
		CHECK(kept.item<int>() == 42 && live_tensors() == before + 1);
	}
	CHECK(live_tensors() == before);
}

TEST(scope_object_ends_with_an_exception)
{
	uint64_t before = live_tensors();

	CHECK_THROWS(std::runtime_error, {
		scope s;
		CHECK(tensor_ones(TENSOR_SHAPE(3), TENSOR_OPTIONS(0)));
		throw std::runtime_error("leave");
	});
	CHECK(live_tensors() == before);
}

TEST(references_cross_to_the_c_interface)
{
	uint64_t before = live_tensors();
	Tensor owned(tensor_ones(TENSOR_SHAPE(2), TENSOR_OPTIONS(0)));
	Tensor second = Tensor::borrowed(owned.get());
	::tensor *raw = second.release();

	CHECK(!second.defined() && raw == owned.get());
	tensor_release(raw);
	owned = Tensor();
	CHECK(live_tensors() == before);
}

TEST(a_temporary_is_not_assigned_to)
{
	static_assert(!std::is_assignable_v<Tensor, Tensor>,
		      "x[0] = y would change a temporary alone");
	static_assert(std::is_nothrow_move_constructible_v<Tensor> &&
			      sizeof(Tensor) == sizeof(void *),
		      "");
	Tensor x = zeros({ 2, 2 });

	x[0].copy_(ones({ 2 }));
	x[1] += 3;
	CHECK(holds(x, { 1, 1, 3, 3 }));
}

/* ---- errors ---- */

TEST(error_has_code_operator_and_text)
{
	error e = CHECK_THROWS(error, mm(matrix(), matrix()));

	CHECK(e.code() == EINVAL && e.op() == "mm");
	CHECK(std::string(e.what()).find("mat2 must have 3 rows") != std::string::npos);
}

TEST(empty_tensor_is_reported_and_not_the_error_before)
{
	CHECK_THROWS(error, mm(matrix(), matrix()));
	error e = CHECK_THROWS(error, Tensor().relu());

	CHECK(e.code() == EINVAL && std::string(e.what()).find("NULL") != std::string::npos);
}

TEST(failed_call_leaves_no_tensor)
{
	uint64_t before = live_tensors();

	CHECK_THROWS(error, cat({ matrix(), zeros({ 2 }) }, 0));
	CHECK_THROWS(error, matrix().view({ 4, 4 }));
	CHECK_THROWS(error, matrix().to_vector<float>().at(0) > 0 ? matrix().item<float>() : 0);
	CHECK(live_tensors() == before);
}

/* ---- data in and out ---- */

TEST(dtype_follows_the_type_of_elements)
{
	CHECK(from<float>({ 1 }).dtype() == f32 && from<double>({ 1 }).dtype() == f64);
	CHECK(from<int>({ 1 }).dtype() == i32 && from<long>({ 1 }).dtype() == i64);
	CHECK(from<long long>({ 1 }).dtype() == i64 && from<uint8_t>({ 1 }).dtype() == u8);
	CHECK(from<bool>({ true }).dtype() == boolean);
	CHECK(from<std::complex<float>>({ { 1, 2 } }).dtype() == c64);
}

TEST(containers_go_in_and_out)
{
	std::vector<int> values = { 1, 2, 3, 4, 5, 6 };
	std::array<double, 2> pair = { 1, 2 };
	Tensor t = from(values, { 2, 3 });

	CHECK(t.sizes() == shape({ 2, 3 }) && t.to_vector<int>() == values);
	CHECK(from(pair).dtype() == f64);
	CHECK(holds(t.transpose(0, 1), { 1, 4, 2, 5, 3, 6 }));
	CHECK(CHECK_THROWS(error, from(values, { 4, 2 })).code() == EINVAL);
	CHECK(CHECK_THROWS(error, (from<int>({ { 1, 2 }, { 3 } }))).code() == EINVAL);
}

TEST(elements_are_reached_in_place)
{
	Tensor t = matrix();

	t.mutable_data<float>()[2] = 9;
	CHECK(t.data<float>()[2] == 9 && t.index({ 0, 2 }).item<float>() == 9);
	CHECK(CHECK_THROWS(error, t.data<double>()).code() == EINVAL);
	t.copy_from(std::vector<float>{ 6, 5, 4, 3, 2, 1 });
	CHECK(holds(t, { 6, 5, 4, 3, 2, 1 }));
#ifdef __cpp_lib_span
	CHECK(t.span<float>().size() == 6 && t.span<float>()[0] == 6);
	CHECK(holds(from(t.span<float>(), { 3, 2 }), { 6, 5, 4, 3, 2, 1 }));
#endif
}

TEST(item_converts)
{
	CHECK(from<int64_t>({ 1ll << 60 }).item<int64_t>() == 1ll << 60);
	CHECK(from<float>({ 2.5 }).item<int>() == 2 && from<bool>({ true }).item<bool>());
	CHECK(full({}, std::complex<double>(1, 2)).item<std::complex<double>>() ==
	      std::complex<double>(1, 2));
	CHECK(from<uint64_t>({ UINT64_MAX }).item<uint64_t>() == UINT64_MAX);
	/* `if (x == y)` does not compile: a comparison gives a tensor. */
	static_assert(!std::is_constructible_v<bool, Tensor>);
	CHECK(CHECK_THROWS(error, matrix().item<float>()).code() == EINVAL);
}

TEST(stream_has_the_text_of_tensor_print)
{
	std::ostringstream out;

	out << matrix() << " " << matrix().sizes();
	CHECK(out.str() == "tensor([[1., 2., 3.],\n        [4., 5., 6.]]) [2, 3]");
}

TEST(options_make_dtype_and_device)
{
	CHECK(zeros({ 2 }, f64).dtype() == f64 && zeros({}, options()).dim() == 0);
	CHECK(ones(shape{ 2, 2 }, options(i64).device(cpu)).dtype() == i64);
	CHECK(matrix().to(f16).dtype() == f16 && matrix().to(cpu).device().type == TENSOR_CPU);
}

/* ---- operators ---- */

TEST(arithmetic_takes_tensors_and_numbers_on_both_sides)
{
	Tensor a = from<float>({ 1, 2, 4 }), b = from<float>({ 4, 2, 1 });

	CHECK(holds(a + b, { 5, 4, 5 }) && holds(a - b, { -3, 0, 3 }) && holds(a * b, { 4, 4, 4 }));
	CHECK(holds(a / b, { 0.25, 1, 4 }) && holds(-a, { -1, -2, -4 }) &&
	      holds(a % 3, { 1, 2, 1 }));
	CHECK(holds(a + 1, { 2, 3, 5 }) && holds(1 + a, { 2, 3, 5 }) && holds(10 - a, { 9, 8, 6 }));
	CHECK(holds(8 / a, { 8, 4, 2 }) && holds(0.5 * a, { 0.5, 1, 2 }) &&
	      holds(a + 0, { 1, 2, 4 }));
	CHECK((a.to(i32) + 1).dtype() == i32 && (a.to(i32) + 0.5).dtype() == f32);
}

TEST(comparisons_are_elementwise)
{
	Tensor a = from<int>({ 1, 2, 3 });

	CHECK(holds(a == 2, { 0, 1, 0 }) && holds(2 < a, { 0, 0, 1 }) &&
	      holds(a >= a, { 1, 1, 1 }));
	CHECK(holds((a > 1) & (a < 3), { 0, 1, 0 }) && holds(~(a == 1), { 0, 1, 1 }));
	CHECK((a != a).dtype() == boolean);
}

TEST(assignment_operators_write_to_the_left_side)
{
	Tensor a = from<float>({ 1, 2 }), same = a;

	a += 1;
	a *= a;
	a -= from<float>({ 1, 1 });
	a /= 2;
	CHECK(holds(same, { 1.5, 4 }) && a.is_same(same));
}

TEST(subscripts_select_index_and_store)
{
	Tensor x = arange(12).view({ 3, 4 });

	CHECK(holds(x[1], { 4, 5, 6, 7 }) && x[-1][0].item<int>() == 8);
	CHECK(holds(x.index({ range(), -1 }), { 3, 7, 11 }));
	CHECK(holds(x.index({ range(0, 2), range(std::nullopt, std::nullopt, 2) }),
		    { 0, 2, 4, 6 }));
	CHECK(x.index({ newaxis, ellipsis, 0 }).sizes() == shape({ 1, 3 }));
	CHECK(holds(x[x > 9], { 10, 11 }) &&
	      holds(x[from<int64_t>({ 2, 0 })][0], { 8, 9, 10, 11 }));
	x.index_put_({ 0, range(1, 3) }, scalar_tensor(0, i64));
	CHECK(holds(x[0], { 0, 0, 0, 3 }));
}

TEST(several_results_have_names)
{
	auto [values, indices] = from<float>({ { 1, 5, 2 }, { 9, 3, 4 } }).max(1);

	CHECK(holds(values, { 5, 9 }) && holds(indices, { 1, 0 }));
	CHECK(holds(matrix().topk(1).values, { 3, 6 }));

	std::vector<Tensor> parts = matrix().split(1, 1);

	CHECK(parts.size() == 3 && holds(parts[2], { 3, 6 }));
	CHECK(zeros({ 100, 1 }).unbind().size() == 100);
	CHECK(holds(cat(parts, 0), { 1, 4, 2, 5, 3, 6 }) &&
	      stack({ parts[0], parts[0] }).dim() == 3);
}

TEST(overloads_take_the_arguments_of_the_schema)
{
	Tensor x = matrix();

	CHECK(x.sum().item<int>() == 21 && holds(x.sum(1), { 6, 15 }) &&
	      x.sum({ 0, 1 }, true).dim() == 2);
	CHECK(x.sum(f64).dtype() == f64);
	CHECK(x.var().numel() == 1 && x.var({ 0 }).numel() == 3);
	CHECK(holds(where(x > 3, x, 0), { 0, 0, 0, 4, 5, 6 }));
	CHECK(holds(x.clamp(2, 4), { 2, 2, 3, 4, 4, 4 }) &&
	      holds(x.pow(2), { 1, 4, 9, 16, 25, 36 }));
	CHECK(holds(libtensor::pow(2, from<float>({ 1, 3 })), { 2, 8 }));
	CHECK(holds(x.masked_fill(x > 2, -1), { 1, 2, -1, -1, -1, -1 }));
	CHECK(x.all().item<bool>() && (x > 1).any(1).numel() == 2);
	CHECK(linear(x, ones({ 2, 3 })).sizes() == shape({ 2, 2 }));
	CHECK(holds(linear(x, ones({ 1, 3 }), ones({ 1 })), { 7, 16 }));
	CHECK(holds(einsum("ij->i", { x }), { 6, 15 }));
	CHECK(holds(x.add(x, 2), { 3, 6, 9, 12, 15, 18 }));
}

TEST(out_functions_write_to_their_first_argument)
{
	Tensor out = zeros({ 2, 3 });

	add_out(out, matrix(), matrix());
	CHECK(holds(out, { 2, 4, 6, 8, 10, 12 }));
}

TEST(generators_repeat_their_numbers)
{
	generator a(7), b(7);
	Tensor x = randn({ 5 }, a), y = randn({ 5 }, b), z = randn({ 5 }, b);

	CHECK((x == y).all().item<bool>() && !(x == z).all().item<bool>());
}

/* ---- differentiation ---- */

TEST(backward_leaves_gradients)
{
	Tensor w = from<double>({ 1, 2, 3 }).set_requires_grad();

	CHECK(!w.grad().defined());
	(w * w).sum().backward();
	CHECK(holds(w.grad(), { 2, 4, 6 }));
	w.zero_grad();
	(w * 3).backward(ones({ 3 }, f64));
	CHECK(holds(w.grad(), { 3, 3, 3 }) && w.requires_grad() && w.is_leaf());
}

TEST(grad_returns_gradients_and_touches_no_leaf)
{
	Tensor a = from<float>({ 2 }).set_requires_grad(),
	       b = from<float>({ 3 }).set_requires_grad();
	std::vector<Tensor> grads = grad({ a * a * b }, { a, b });

	CHECK(holds(grads[0], { 12 }) && holds(grads[1], { 4 }) && !a.grad().defined());
}

TEST(no_grad_ends_with_its_block)
{
	Tensor w = ones({ 2 }).set_requires_grad();

	CHECK_THROWS(error, {
		no_grad guard;
		CHECK(!(w * 2).requires_grad());
		mm(w, w);
	});
	CHECK((w * 2).requires_grad());
}

/* The step is as short as with libtorch: see docs/reference/cpp.md. */
TEST(training_reduces_the_loss)
{
	tensor_manual_seed(1);
	Tensor x = randn({ 64, 3 }), y = x.mm(from<float>({ { 1 }, { -2 }, { 3 } })) + 0.5;
	Tensor w = zeros({ 3, 1 }).set_requires_grad(), b = zeros({ 1 }).set_requires_grad();
	uint64_t after_first = 0;

	for (int step = 0; step < 200; step++) {
		Tensor loss = mse_loss(x.mm(w) + b, y);

		loss.backward();
		no_grad guard;
		for (const Tensor &p : { w, b }) {
			p -= 0.1 * p.grad();
			p.zero_grad();
		}
		if (!step)
			after_first = live_tensors();
	}
	CHECK(std::abs(w[1].item<float>() + 2) < 1e-2 && std::abs(b.item<float>() - 0.5) < 1e-2);
	CHECK(live_tensors() <= after_first);
}

/* ---- sharing ---- */

TEST(received_tensor_is_the_same_memory)
{
	int ends[2];
	uint64_t before = live_tensors();

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	{
		channel to(ends[0]), from_peer(ends[1]);
		Tensor sent = matrix();

		to.send(sent, TENSOR_SEND_READONLY);
		Tensor received = from_peer.receive();

		sent += 1;
		CHECK(holds(received, { 2, 3, 4, 5, 6, 7 }) && !received.is_writable());
		CHECK(CHECK_THROWS(error, received.mutable_data<float>()).code() == EACCES);
		CHECK(CHECK_THROWS(error, received.add_(1)).code() == EACCES);
	}
	close(ends[0]);
	close(ends[1]);
	CHECK(live_tensors() == before);
}

TEST(messages_go_through_rings_pools_and_groups)
{
	int ends[4];
	auto before = live_tensors();
	tensor_channel_options rings = {};

	rings.ring = true;
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends + 2) == 0);
	{
		channel to(ends[0], rings), from_peer(ends[1], rings);
		channel second(ends[2]), of_second(ends[3]);
		pool buffers({ 2, 3 });
		channel_group all;

		for (int i = 0; i < 10; i++) {
			Tensor loan = buffers.loan(0);

			loan.fill_(i);
			to.send_many({ loan, matrix() }, 7);
			message m = from_peer.receive_many(1000000000);

			CHECK(m.tag == 7u && m.tensors.size() == 2);
			CHECK(m.tensors[0].sum().item<int>() == 6 * i);
			from_peer.send(m.tensors[1], 0, 1000000000);
			to.receive(1000000000);
		}
		CHECK(to.has_ring() && buffers.available() == 4);
		CHECK(CHECK_THROWS(error, from_peer.receive(0)).code() == ETIMEDOUT);
		all.add(to);
		all.add(second);
		CHECK(all.count() == 2 && all.send({ matrix() }, 3) == 2 && !all.lost());
		CHECK(of_second.receive_many(0).tag == 3u && from_peer.receive_many(0).tag == 3u);
		all.remove(second);
		CHECK(CHECK_THROWS(error, all.remove(second)).code() == ENOENT);
	}
	for (int fd : ends)
		close(fd);
	CHECK(live_tensors() == before);
}

TEST(buffer_goes_through_a_descriptor)
{
	Tensor t = matrix().share().label("cpp");
	int fd = t.buffer_fd(TENSOR_BUFFER_READ | TENSOR_BUFFER_WRITE | TENSOR_BUFFER_EXPORT);
	Tensor other = from_buffer_fd(fd);

	close(fd);
	t[0] += 1;
	CHECK(other.sizes() == shape({ 2, 3 }) && other[0][0].item<int>() == 2);
}

TEST(threads_read_one_tensor)
{
	Tensor t = ones({ 1000 });
	std::vector<std::thread> threads;
	std::array<int, 4> sums = {};

	for (int &sum : sums)
		threads.emplace_back([t, &sum] { sum = (t * 2).sum().item<int>(); });
	for (std::thread &thread : threads)
		thread.join();
	CHECK(sums == (std::array<int, 4>{ 2000, 2000, 2000, 2000 }));
}
