// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* from_blob(): tensors on memory of the program. */
#include <tensor/tensor.hpp>

#include "check.hpp"

#include <memory>
#include <thread>
#include <vector>

using namespace libtensor;

static bool holds(const Tensor &t, const std::vector<double> &values)
{
	return t.to_vector<double>() == values;
}

TEST(the_memory_is_used_and_not_copied)
{
	float values[6] = { 1, 2, 3, 4, 5, 6 };
	Tensor t = from_blob(values, { 2, 3 });

	CHECK(t.dtype() == f32 && t.data<float>() == values && holds(t, { 1, 2, 3, 4, 5, 6 }));
	t.mul_(2);
	CHECK(values[5] == 12);
	values[0] = 7;
	CHECK(t[0][0].item<int>() == 7);
}

TEST(strides_may_be_any)
{
	double values[6] = { 1, 2, 3, 4, 5, 6 };

	CHECK(holds(from_blob(values, { 3, 2 }, { 1, 3 }), { 1, 4, 2, 5, 3, 6 }));
	CHECK(holds(from_blob(values + 5, { 6 }, { -1 }), { 6, 5, 4, 3, 2, 1 }));
	CHECK(holds(from_blob(values, { 2, 2 }, { 0, 1 }), { 1, 2, 1, 2 }));
}

TEST(the_deleter_runs_once_with_the_last_reference)
{
	auto *values = new int32_t[3]{ 1, 2, 3 };
	auto count = std::make_shared<int>(0);
	void *address = nullptr;
	{
		Tensor row;
		{
			Tensor t = from_blob(values, { 3 }, [count, &address](void *data) {
				++*count;
				address = data;
				delete[] static_cast<int32_t *>(data);
			});
			Tensor copy = t;

			row = t.unsqueeze(0)[0];
			CHECK(t.dtype() == i32);
		}
		CHECK(*count == 0 && holds(row, { 1, 2, 3 }));
	}
	CHECK(*count == 1 && address == values && count.use_count() == 1);
}

TEST(a_deleter_may_own_what_holds_the_memory)
{
	auto values = std::make_shared<std::vector<double>>(4, 0.5);
	std::weak_ptr<std::vector<double>> watch = values;
	Tensor t = from_blob(values->data(), { 2, 2 }, { 2, 1 }, [values](void *) {});

	values.reset();
	CHECK(!watch.expired() && holds(t * 2, { 1, 1, 1, 1 }));
	std::thread([&] { t = Tensor(); }).join();
	CHECK(watch.expired());
}

TEST(autograd_keeps_the_memory)
{
	int deleted = 0;
	float values[2] = { 3, 4 };
	Tensor w = ones({ 2 }).set_requires_grad(), loss;
	{
		Tensor x = from_blob(values, { 2 }, [&](void *) { deleted++; });

		loss = (w * x).sum();
	}
	CHECK(deleted == 0);
	loss.backward();
	loss = Tensor();
	CHECK(deleted == 1 && holds(w.grad(), { 3, 4 }));
}

TEST(constant_memory_is_not_written)
{
	static const float values[] = { 1, 2, 3 };
	Tensor t = from_blob(values, { 3 });

	CHECK(!t.is_writable() && holds(t + 1, { 2, 3, 4 }));
	CHECK(CHECK_THROWS(error, t.add_(1)).code() == EACCES);
	CHECK(!from_blob(static_cast<const void *>(values), { 3 }, f32).is_writable());
	CHECK(!from_blob(static_cast<const void *>(values), { 2 }, { 2 }, f32).is_writable());
}

TEST(options_have_the_dtype_of_untyped_memory)
{
	alignas(8) uint16_t words[4] = { 0x3f80, 0x4000, 0, 0 }; /* 1 and 2 in bf16 */
	int deleted = 0;
	{
		Tensor t = from_blob(static_cast<void *>(words), { 2 }, bf16);
		Tensor s = from_blob(static_cast<void *>(words), { 2 }, { 0 }, options(bf16),
				     [&](void *) { deleted++; });

		CHECK(t.dtype() == bf16 && holds(t, { 1, 2 }) && holds(s, { 1, 1 }));
	}
	CHECK(deleted == 1);
}

TEST(a_failed_call_does_not_delete)
{
	int deleted = 0;
	auto held = std::make_shared<int>(0);
	float values[4] = {};
	auto deleter = [&deleted, held](void *) { deleted++; };
	float *unaligned = reinterpret_cast<float *>(reinterpret_cast<char *>(values) + 1);

	CHECK(CHECK_THROWS(error, from_blob(values, { 2, 2 }, { 1 }, deleter)).code() == EINVAL);
	CHECK(CHECK_THROWS(error, from_blob(unaligned, { 2 }, deleter)).code() == EINVAL);
	CHECK(CHECK_THROWS(error, from_blob(static_cast<float *>(nullptr), { 2 }, deleter)).code() ==
	      EINVAL);
	CHECK(CHECK_THROWS(error, from_blob(values, { -1 }, deleter)).code() == EINVAL);
	CHECK(deleted == 0 && held.use_count() == 2);
	from_blob(static_cast<float *>(nullptr), { 0 }, deleter);
	CHECK(deleted == 1);
}
