// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The types of parameters of <tensor/tensor.hpp>: calls that compile, calls that do not because an argument would be
 * converted to something else than it is, arguments that are stored in variables, and values out of range.
 */
#include <tensor/tensor.hpp>

#include "check.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string_view>

using namespace libtensor;

/* Whether a call with a tensor t and a value v of type V compiles. */
template <class V, class Call> constexpr bool compiles(Call)
{
	return std::is_invocable_v<Call, const Tensor &, const std::decay_t<V> &>;
}

#define CALL(...)                          \
	[]([[maybe_unused]] const auto &t, \
	   [[maybe_unused]] const auto &v) -> decltype(void(__VA_ARGS__)) {}
#define COMPILES(v, ...) static_assert(compiles<decltype(v)>(CALL(__VA_ARGS__)), "")
#define REFUSED(v, ...)	 static_assert(!compiles<decltype(v)>(CALL(__VA_ARGS__)), "")

static Tensor matrix()
{
	return from<float>({ { 1, 2, 3 }, { 4, 5, 6 } });
}

static bool holds(const Tensor &t, const std::vector<double> &values)
{
	return t.to_vector<double>() == values;
}

static int code_of(void (*function)())
{
	return CHECK_THROWS(error, function()).code();
}

/* ---- flags ---- */

TEST(flag_takes_bool_alone)
{
	COMPILES(true, t.sum(0, v));
	COMPILES(true, t.mean({ 0, 1 }, v));
	COMPILES(true, libtensor::sum(t, 0, v, f64));
	COMPILES(true, t.set_requires_grad(v));
	COMPILES(true, options().shareable(v));
	REFUSED(1, t.sum(0, v));
	REFUSED(f64, t.sum(0, v));
	REFUSED(f64, t.mean(0, v));
	REFUSED(f64, t.prod(0, v));
	REFUSED(f64, libtensor::sum(t, 0, v));
	REFUSED(0.5, t.sum({ 0, 1 }, v));
	REFUSED("true", t.sum(0, v));
	REFUSED(nullptr, t.sum(0, v));
	REFUSED(1, t.topk(2, 1, v));
	REFUSED(1, t.set_requires_grad(v));
	REFUSED(f64, options().shareable(v));
	REFUSED(1, grad_mode(v));
	CHECK(matrix().sum(0, true).dim() == 2 && matrix().sum(f64).dtype() == f64);
	CHECK(matrix().sum(0, false, f64).dtype() == f64);
}

TEST(element_of_a_vector_of_bool_is_a_flag)
{
	std::vector<bool> keep = { true, false };

	COMPILES(keep[0], t.sum(0, v));
	COMPILES(keep[0], t.std(v));
	COMPILES(keep[0], t + v);
	COMPILES(std::true_type(), t.sum(0, v));
	COMPILES(std::optional<bool>(), t.any(0, v.value_or(true)));
	REFUSED(keep[0], t.softmax(v));
	REFUSED(std::true_type(), t.softmax(v));
	REFUSED((std::integral_constant<int, 1>()), t.sum(0, v));
	CHECK(matrix().sum(0, keep[0]).dim() == 2 && matrix().sum(0, keep[1]).dim() == 1);
	CHECK(matrix().sum(0, std::true_type()).dim() == 2);
}

TEST(correction_is_a_number_and_unbiased_a_bool)
{
	Tensor x = from<double>({ { 1, 2 }, { 3, 5 } });

	CHECK(holds(x.var(0, 2), { INFINITY, INFINITY }));
	CHECK(holds(x.var(0, 0), { 1, 2.25 }) && holds(x.var(0, false), { 1, 2.25 }));
	CHECK(holds(x.var(0, 0.5), { 2 / 1.5, 4.5 / 1.5 }) && holds(x.var(0, true), { 2, 4.5 }));
	CHECK(holds(libtensor::var(x, 0, 0), { 1, 2.25 }) && x.std(0, 1, true).dim() == 2);
	CHECK(holds(x.var({ 0 }, 0), { 1, 2.25 }) && holds(std_mean(x, 0, 0).mean, { 2, 3.5 }));
	CHECK(holds(var_mean(x, 0, 0).var, { 1, 2.25 }) && x.std(true).numel() == 1);
	COMPILES(true, t.std(1, v, true));
	COMPILES(2, libtensor::std_mean(t, { 0, 1 }, v));
	REFUSED(f64, t.std(0, v));
}

TEST(sort_takes_dimension_and_order)
{
	Tensor x = from<float>({ { 1, 3, 2 }, { 6, 4, 5 } });

	CHECK(holds(x.sort(1, true).values, { 3, 2, 1, 6, 5, 4 }));
	CHECK(holds(x.sort(-1).values, { 1, 2, 3, 4, 5, 6 }));
	CHECK(holds(sort(x, 0, true).values, { 6, 4, 5, 1, 3, 2 }));
	CHECK(holds(x.sort(true, 1, true).values, { 3, 2, 1, 6, 5, 4 }));
	CHECK(holds(x.sort(std::nullopt, 1).values, { 1, 2, 3, 4, 5, 6 }));
	CHECK(holds(x.argsort(1, true), { 1, 2, 0, 0, 2, 1 }));
	/* Whether this is the order or the stability cannot be seen. */
	REFUSED(true, t.sort(v));
	REFUSED(true, t.argsort(v));
	REFUSED(1, t.sort(1, v));
}

/* ---- integers ---- */

TEST(dimension_takes_integers_alone)
{
	COMPILES(0, t.argmax(v));
	COMPILES(std::size_t(0), t.softmax(v));
	COMPILES(0u, t.max(v));
	COMPILES(int8_t(0), t.any(v));
	COMPILES(std::optional<int64_t>(), t.argmax(v));
	COMPILES(std::optional<int>(0), t.argmax(v));
	COMPILES(std::nullopt, t.argmax(v));
	REFUSED(true, t.argmax(v));
	REFUSED(1.5, t.argmax(v));
	REFUSED(std::optional<bool>(true), t.argmax(v));
	REFUSED(true, t.any(v));
	REFUSED(true, t.all(v, true));
	REFUSED(true, t.max(v));
	REFUSED(1.0f, t.softmax(v));
	REFUSED(f64, t.softmax(v));
	REFUSED('a', t.softmax(v));
	REFUSED(true, t.squeeze(v));
	REFUSED(true, t.flatten(v));
	REFUSED(true, t.size(v));
	REFUSED(1.5, t.size(v));
	REFUSED(nullptr, t.size(v));
	CHECK(holds(matrix().any(std::size_t(1)), { 1, 1 }) && matrix().argmax(1).numel() == 2);
	CHECK(matrix().squeeze(0).dim() == 2 && matrix().squeeze({ 0, 1 }).dim() == 2);
	CHECK(matrix().split(1, 1).size() == 3 && matrix().count_nonzero(0).numel() == 3);
}

/* Those of the library are types of other arguments; tests/shell/compilers.sh tries all. */
TEST(enumerator_of_the_program_is_an_integer)
{
	enum { batch, channel, two };
	enum byte : unsigned char { second = 1 };
	enum class scoped { second = 1 };
	Tensor x = matrix();

	REFUSED(scoped::second, t.size(v));
	REFUSED(scoped::second, t[v]);
	REFUSED(scoped::second, t + v);
	REFUSED(TENSOR_CHANNELS_LAST, t.size(v));
	REFUSED(f64, t[v]);
	REFUSED(f64, t * v);
	REFUSED(channel, t.sum(0, v));
	CHECK(x.size(channel) == 3 && x.size(second) == 3 && x.sizes()[batch] == 2);
	CHECK(holds(x[channel], { 4, 5, 6 }) && x.index({ channel, two }).item<int>() == 6);
	CHECK(holds(x.sum(channel), { 6, 15 }) && holds(x.sum({ batch, channel }), { 21 }));
	CHECK(holds((x * two)[0], { 2, 4, 6 }) && zeros({ two, 3 }).numel() == 6);
	CHECK(x.argmax(channel).numel() == 2 && x.std(batch, second).numel() == 3);
}

TEST(constant_as_a_type_is_an_integer)
{
	const std::integral_constant<int, 1> channel;
	Tensor x = matrix();

	CHECK(x.size(channel) == 3 && holds(x.sum(channel), { 6, 15 }));
	CHECK(holds(x[channel], { 4, 5, 6 }) && holds(x.select(0, channel) * channel, { 4, 5, 6 }));
	CHECK(zeros({ channel, channel }).numel() == 1);
	REFUSED((std::integral_constant<char, 1>()), t.size(v));
}

TEST(size_takes_integers_alone)
{
	COMPILES(2, libtensor::zeros(v));
	COMPILES(2u, libtensor::zeros({ v, v }));
	COMPILES(std::size_t(2), libtensor::zeros({ v, v }));
	COMPILES((std::array<int, 2>{ 2, 3 }), libtensor::zeros(v));
	REFUSED(f64, libtensor::zeros(v));
	REFUSED(cpu, libtensor::zeros(v));
	REFUSED(2.9, libtensor::zeros(v));
	REFUSED(2.9, libtensor::zeros({ v, v }));
	REFUSED(true, libtensor::zeros(v));
	REFUSED(true, libtensor::zeros({ v }));
	REFUSED('a', libtensor::zeros(v));
	REFUSED((std::array<double, 2>{ 2, 3 }), libtensor::zeros(v));
	REFUSED((std::vector<bool>{}), libtensor::zeros(v));
	REFUSED("23", libtensor::zeros(v));
	REFUSED(2.9, shape()[v]);
	REFUSED(2.9, shape{ v });
	REFUSED(true, shape{ v });
	REFUSED(2.9, t.view(v));
	REFUSED(true, libtensor::eye(v));
	REFUSED(2.9, libtensor::eye(v));
}

TEST(subscript_takes_integers_and_tensors)
{
	COMPILES(std::size_t(0), t[v]);
	COMPILES(-1L, t[v]);
	COMPILES(1u, t.index({ v, range(v, 2) }));
	COMPILES(std::nullopt, t.index({ range(v, v), ellipsis }));
	REFUSED(1.9, t[v]);
	REFUSED(true, t[v]);
	REFUSED(f64, t[v]);
	REFUSED(true, t.index({ v }));
	REFUSED(1.5, t.index({ v }));
	REFUSED(true, range(v, 2));
	REFUSED(0.5, range(0, v));

	Tensor x = matrix();
	std::size_t last = 1;
	const int all[] = { 0, -1 };

	CHECK(holds(x[0], { 1, 2, 3 }) && holds(x[-1], { 4, 5, 6 }) && holds(x[last][2u], { 6 }));
	CHECK(holds(x[all[1]], { 4, 5, 6 }) && x.index({ last, 0 }).item<int>() == 4);
}

TEST(other_numbers_are_no_bool)
{
	COMPILES(1, libtensor::dropout(t, v, true));
	COMPILES(0.5f, libtensor::dropout(t, v, true));
	REFUSED(true, libtensor::dropout(t, v, true));
	REFUSED(0.5, libtensor::dropout(t, 0.5, v));
	REFUSED(true, t.backward(v));
	REFUSED(2.0, t.backward(v));
	REFUSED(0, t.div(2, v));
	REFUSED(0, libtensor::einsum(v, { t }));
	COMPILES("floor", t.div(2, v));
	COMPILES(std::string("floor"), t.div(2, v));
	COMPILES(std::string_view("floor"), t.div(2, v));
	COMPILES(std::filesystem::path("x.npy"), load_npy(v));
	COMPILES(std::nullopt, t.div(2, v));
	COMPILES(nullptr, t.div(2, v));
	COMPILES(std::optional<std::string>("floor"), t.div(2, v));
	COMPILES(std::optional<const char *>(), t.div(2, v));
	REFUSED(std::optional<int>(0), t.div(2, v));
	REFUSED(f64, t.add(v));
	REFUSED(1, t.to(v));
	COMPILES(f64, t.to(v));
	REFUSED(1.5, cuda(v));
	REFUSED(true, cuda(v));
	REFUSED(nullptr, Tensor(v));
	CHECK(conv1d(ones({ 1, 1, 3 }), ones({ 1, 1, 2 }), {}, { 1 }, { 0 }).numel() == 2);
	CHECK(conv1d(ones({ 1, 1, 3 }), ones({ 1, 1, 2 }), {}, 1, "same").numel() == 3);
	CHECK(holds(linalg_matrix_rank(matrix(), 1e-3), { 2 }));
	CHECK(holds(matrix()[1].div(2, nullptr), { 2, 2.5, 3 }));
	CHECK(holds(matrix()[1].div(2, std::optional<std::string>("floor")), { 2, 2, 3 }));
	CHECK(holds(matrix()[1].div(2, std::optional<std::string>()), { 2, 2.5, 3 }));
}

TEST(integers_out_of_range_are_refused)
{
	CHECK(code_of([] { zeros(UINT64_MAX); }) == EOVERFLOW);
	CHECK(code_of([] { zeros({ 1, UINT64_MAX }); }) == EOVERFLOW);
	CHECK(code_of([] { (void)matrix().size(1ll << 32); }) == EINVAL);
	CHECK(code_of([] { (void)matrix().size(std::numeric_limits<std::size_t>::max()); }) ==
	      EOVERFLOW);
	CHECK(code_of([] { (void)matrix()[UINT64_MAX]; }) == EOVERFLOW);
	CHECK(code_of([] { (void)cuda(256); }) == EINVAL &&
	      code_of([] { (void)cuda(-1); }) == EINVAL);
	CHECK(code_of([] { (void)matrix().sizes()[2]; }) == EINVAL && matrix().sizes()[-1] == 3);
	CHECK(code_of([] { matrix().sum().backward(1ull << 40); }) == EINVAL);
	CHECK(code_of([] { save_npy(std::string("a\0b", 3), matrix()); }) == EINVAL);
	CHECK(cuda(3).index == 3 && cuda().index == 0);
	static_assert(cuda(2).index == 2, "a device is a constant");
	CHECK(TENSOR_DEVICE_CUDA(300).index < 0 && TENSOR_DEVICE_CUDA(3).index == 3);
}

/* ---- lists ---- */

TEST(braces_take_integers_of_every_type)
{
	std::size_t n = 2, m = 3;
	unsigned u = 1;
	long l = 2;
	const std::vector<std::size_t> sizes = { 2, 3 };

	CHECK(zeros({ n, m }).sizes() == shape({ n, m }) && zeros({ n, u, l, 1 }).dim() == 4);
	CHECK(zeros(sizes).sizes() == shape({ 2, 3 }) && zeros(n).numel() == 2);
	CHECK(ones(std::array<int, 2>{ 2, 3 }).numel() == 6 && matrix().view({ -1 }).dim() == 1);
	CHECK(ones(matrix().sizes()).numel() == 6 && zeros({}).dim() == 0 &&
	      zeros({ 0 }).dim() == 1);
	CHECK(matrix().sum({ 0, 1 }, true).dim() == 2 && from<int>({ 1, 2 }, { n, u }).dim() == 2);
	CHECK(tensor_sum_dim(matrix().get(), TENSOR_INTS(n, 1), false) == nullptr);
	tensor_clear_error();
}

static std::vector<int64_t> temporary_sizes()
{
	return std::vector<int64_t>(20, 1);
}

TEST(stored_lists_own_their_elements)
{
	ints braces = { 2, 3 }, one = 4, moved = temporary_sizes(), copy = braces;
	tensors list = { ones({ 2 }), zeros({ 2 }) },
		of_vector = std::vector<Tensor>(2, ones({ 1 })), same = list;
	scalars numbers = { 1, 2.5 }, of_doubles = std::vector<double>{ 1, 2.5 };
	subscript mask = ones({ 2 }) > 0, row = 1;

	matrix().exp().sum(); /* uses the stack and the memory of what was freed */
	CHECK(zeros(braces).sizes() == shape({ 2, 3 }) && zeros(copy).numel() == 6);
	CHECK(zeros(one).sizes() == shape({ 4 }));
	CHECK(CHECK_THROWS(error, zeros(moved)).code() == EINVAL);
	CHECK(holds(cat(list, 0), { 1, 1, 0, 0 }) && holds(cat(of_vector, 0), { 1, 1 }));
	list = of_vector;
	CHECK(holds(cat(list, 0), { 1, 1 }) && holds(cat(same, 0), { 1, 1, 0, 0 }));
	CHECK(holds(from<float>({ 5, 6 }).index({ mask }), { 5, 6 }) &&
	      holds(matrix().index({ row, 0 }), { 4 }));
	/* The lists of the C interface borrow: they are not made from a temporary. */
	static_assert(!std::is_convertible_v<ints, tensor_ints>);
	static_assert(!std::is_convertible_v<tensors, tensor_list>);
	static_assert(!std::is_convertible_v<scalars, tensor_scalars>);
	static_assert(!std::is_convertible_v<subscript, tensor_subscript>);
}

TEST(stored_tensors_are_released)
{
	struct tensor_live_counts before, after;

	tensor_live_counts(&before);
	{
		tensors list = { matrix(), Tensor() }, other = list;
		subscript rows = from<int64_t>({ 0 });
		subscript same = rows;

		other = list;
		list = { matrix() };
		same = 0;
	}
	tensor_live_counts(&after);
	CHECK(before.tensors == after.tensors);
}

/* ---- results of functions that write ---- */

TEST(reference_to_a_temporary_is_not_returned)
{
	using in_place = decltype(std::declval<Tensor>().add_(1));

	static_assert(std::is_same_v<in_place, Tensor>);
	static_assert(std::is_same_v<decltype(std::declval<Tensor>().set_requires_grad()), Tensor>);
	static_assert(std::is_same_v<decltype(std::declval<Tensor>().label("")), Tensor>);
	static_assert(std::is_same_v<decltype(std::declval<const Tensor>().share()), Tensor>);
	static_assert(std::is_same_v<decltype(std::declval<Tensor>() += 1), Tensor>);
	static_assert(std::is_same_v<decltype(fill_(std::declval<Tensor>(), 1)), Tensor>);
	static_assert(std::is_same_v<decltype(std::declval<Tensor &>().add_(1)), const Tensor &>);
	static_assert(std::is_same_v<decltype(std::declval<Tensor &>() += 1), const Tensor &>);
	static_assert(std::is_same_v<decltype(options().dtype(f64)), options>);

	const Tensor &w = matrix().set_requires_grad(), &x = matrix().fill_(3),
		     &y = (matrix() += 1);
	const options &wide = options().dtype(f64);
	Tensor out = matrix();

	matrix().exp().sum();
	CHECK(w.requires_grad() && holds(x[0], { 3, 3, 3 }) && holds(y[0], { 2, 3, 4 }));
	CHECK(zeros(1, wide).dtype() == f64);
	CHECK(add_out(out, x, x).is_same(out) && holds(out.mul_(2).add_(1)[0], { 13, 13, 13 }));
}

/* ---- errors ---- */

TEST(tensor_without_an_address_is_refused)
{
	static Tensor sparse = ones({ 2, 2 }).to_sparse();

	CHECK(code_of([] { (void)sparse.data<float>(); }) == EOPNOTSUPP);
	CHECK(code_of([] { (void)sparse.mutable_data<float>(); }) == EOPNOTSUPP);
	CHECK(tensor_last_error()->code == 0);
	sparse = Tensor();
	(void)zeros({ 0 }).data<float>();
	(void)zeros({ 0 }).mutable_data<float>();
}

#ifndef __SANITIZE_ADDRESS__ /* LeakSanitizer of gcc 12 crashes in a process that loaded oneDNN */
TEST(blocked_tensor_has_no_address)
{
	static Tensor blocked;

	try {
		blocked = ones({ 2, 3, 4, 4 }).to_mkldnn();
	} catch (const error &) {
		return; /* without the plugin */
	}
	CHECK(code_of([] { (void)blocked.data<float>(); }) == EOPNOTSUPP);
	CHECK(code_of([] { (void)blocked.mutable_data<float>(); }) == EOPNOTSUPP);
	blocked = Tensor();
}
#endif

TEST(empty_tensor_is_named)
{
	error e = CHECK_THROWS(error, Tensor().to_vector<float>());

	CHECK(e.code() == EINVAL && e.op() == "to_vector" &&
	      std::string(e.what()).find("the tensor is empty") != std::string::npos);
	e = CHECK_THROWS(error, Tensor().data<float>());
	CHECK(e.code() == EINVAL && e.op() == "data");
	CHECK(code_of([] { (void)Tensor().item<float>(); }) == EINVAL);
	CHECK(code_of([] { throw_error(); }) == EINVAL);
}

TEST(string_with_a_nul_byte_names_its_argument)
{
	error e = CHECK_THROWS(error, matrix().label(std::string("a\0b", 3)));

	CHECK(e.code() == EINVAL && e.op() == "set_label");
	e = CHECK_THROWS(error, matrix().div(2, std::string("a\0b", 3)));
	CHECK(e.code() == EINVAL && e.op() == "div.Scalar_mode" &&
	      std::string(e.what()).find("argument rounding_mode") != std::string::npos);
	CHECK(CHECK_THROWS(error, load_npy(std::string("a\0b", 3))).op() == "load_npy");
}

TEST(item_out_of_range_is_refused)
{
	CHECK(code_of([] { full({}, NAN).item<long>(); }) == EOVERFLOW);
	CHECK(code_of([] { full({}, NAN).item<unsigned>(); }) == EOVERFLOW);
	CHECK(code_of([] { full({}, INFINITY).item<int64_t>(); }) == EOVERFLOW);
	CHECK(code_of([] { full({}, 1e30).item<int>(); }) == EOVERFLOW);
	CHECK(code_of([] { full({}, 0x1p63, f64).item<int64_t>(); }) == EOVERFLOW);
	CHECK(code_of([] { full({}, 0x1p64, f64).item<uint64_t>(); }) == EOVERFLOW);
	CHECK(code_of([] { full({}, -1.0).item<uint8_t>(); }) == EOVERFLOW);
	CHECK(code_of([] { full({}, 300).item<int8_t>(); }) == EOVERFLOW);
	CHECK(code_of([] { full({}, -129).item<int8_t>(); }) == EOVERFLOW);
	CHECK(code_of([] { full({}, -1).item<unsigned>(); }) == EOVERFLOW);
	CHECK(code_of([] { full({}, -1).item<uint64_t>(); }) == EOVERFLOW);
	CHECK(code_of([] { full({}, UINT64_MAX).item<int64_t>(); }) == EOVERFLOW);
	CHECK(code_of([] { full({}, UINT64_MAX).item<uint32_t>(); }) == EOVERFLOW);
	CHECK(CHECK_THROWS(error, full({}, 300).item<int8_t>()).op() == "item");
}

TEST(item_in_range_is_converted)
{
	CHECK(full({}, UINT64_MAX).item<uint64_t>() == UINT64_MAX);
	CHECK(full({}, UINT64_MAX).item<double>() == 0x1p64);
	CHECK(full({}, 7, u64).item<int8_t>() == 7 && full({}, true).item<int>() == 1);
	CHECK(full({}, -128.9, f64).item<int8_t>() == -128 &&
	      full({}, 255.9, f64).item<uint8_t>() == 255);
	CHECK(full({}, -0.9).item<unsigned>() == 0);
	CHECK(full({}, -0x1p63, f64).item<int64_t>() == INT64_MIN);
	CHECK(full({}, INT64_MAX).item<uint64_t>() == INT64_MAX);
	CHECK(full({}, 0xfffffffffffff800p0, f64).item<uint64_t>() == 0xfffffffffffff800);
	CHECK(std::isnan(full({}, NAN).item<float>()) &&
	      full({}, 1e30, f64).item<float>() == 1e30f);
	CHECK(full({}, 0.5).item<bool>() && full({}, 256).item<bool>() &&
	      !full({}, 0).item<bool>());
	CHECK(full({}, std::complex<double>(0, 2)).item<bool>());
}

TEST(optional_number_is_an_optional_scalar)
{
	const std::optional<double> most = 2, none;
	const Tensor x = from<float>({ 1, 5 });

	CHECK(holds(x.clamp(std::nullopt, most), { 1, 2 }) && holds(x.clamp(none, most), { 1, 2 }));
	CHECK(holds(x.clamp(std::optional<int>(3), none), { 3, 5 }));
	REFUSED(most, t + v);
	REFUSED(std::optional<std::string>(), t.clamp(v, 2));
}

TEST(optional_tensor_may_be_missing)
{
	const std::optional<Tensor> bias = ones({ 2 }), none;
	const Tensor x = matrix(), w = from<float>({ { 1, 0, 0 }, { 0, 1, 0 } }), empty;

	CHECK(holds(linear(x, w, bias), { 2, 3, 5, 6 }) &&
	      holds(linear(x, w, none), { 1, 2, 4, 5 }));
	CHECK(holds(linear(x, w, empty), { 1, 2, 4, 5 }) &&
	      holds(linear(x, w, {}), { 1, 2, 4, 5 }));
	CHECK(holds(from<float>({ 1, 5 }).clamp(std::optional<Tensor>(), full({}, 2)), { 1, 2 }));
	REFUSED(bias, t + v);
	REFUSED(bias, libtensor::matmul(t, v));
	REFUSED(1, libtensor::linear(t, t, v));
	REFUSED(nullptr, libtensor::linear(t, t, v));
}

TEST(empty_scalar_is_refused)
{
	error e = CHECK_THROWS(error, matrix() + scalar());

	CHECK(e.code() == EINVAL && e.op() == "add.Scalar" &&
	      std::string(e.what()).find("argument other") != std::string::npos);
	CHECK(code_of([] { full({ 2 }, {}); }) == EINVAL);
	CHECK(holds(from<float>({ 1, 5 }).clamp(scalar(), 2), { 1, 2 }));
	CHECK(holds(from<float>({ 1, 5 }).clamp(std::nullopt, 2), { 1, 2 }));
	CHECK(holds(from<float>({ 1, 5 }).clamp({}, 2), { 1, 2 }));
	REFUSED(std::nullopt, t + v);
}

TEST(from_counts_the_elements)
{
	CHECK(from<float>({}).sizes() == shape({ 0 }));
	CHECK(from<float>({ {}, {} }).sizes() == shape({ 2, 0 }));
	CHECK(from(std::vector<float>{}).sizes() == shape({ 0 }));
	CHECK(holds(from<bool>({ { true, false }, { false, true } }), { 1, 0, 0, 1 }));
	CHECK(from<bool>({ { true, false } }).sizes() == shape({ 1, 2 }));
	CHECK(from(std::vector<float>{}, { 1ll << 40, 0, 1ll << 40 }).numel() == 0);
	CHECK(code_of([] { from(std::vector<float>{}, { 1ll << 32, 1ll << 32 }); }) == EOVERFLOW);
	CHECK(code_of([] { from(std::vector<float>{ 1 }, { -1, -1 }); }) == EINVAL);
	CHECK(code_of([] { from(std::vector<float>{ 1 }, { 2 }); }) == EINVAL);
}
