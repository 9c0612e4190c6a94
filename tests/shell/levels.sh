#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# The kernels of every instruction-set level give the results that the unit tests expect, also those of
# levels below the processor's, and so do all ways to multiply bf16. A library that was built with one level
# (LEVELS=v4) runs that one each time.
set -u
. tests/shell/check.bash
build=$(realpath "${1:-build}")
levels="test_unsigned test_elementwise test_math_f32 test_math_f64 test_reduce test_sort test_linear test_conv"
bf16="test_product_pairs test_conv_bf16 test_attention"

# pass VARIABLE=VALUE TEST...
pass() {
	local setting=$1 name
	shift
	for name; do
		[ -x "$build/tests/$name" ] || { echo "there is no $name"; return 1; }
		env "$setting" "$build/tests/$name" >"$build/results/level.out" 2>&1 || { cat "$build/results/level.out"; return 1; }
	done
}

# shellcheck disable=SC2086
{
	kernels_of_level_v2_pass() { pass TENSOR_CPU_LEVEL=v2 $levels; }
	kernels_of_level_v3_pass() { pass TENSOR_CPU_LEVEL=v3 $levels; }
	kernels_of_level_v4_pass() { pass TENSOR_CPU_LEVEL=v4 $levels; }
	# The processor alone chooses one of these.
	bf16_without_pairs_passes() { pass TENSOR_CPU_PAIRS=none $bf16; }
	bf16_with_pairs_for_small_products_passes() { pass TENSOR_CPU_PAIRS=small $bf16; }
	bf16_with_pairs_for_all_products_passes() { pass TENSOR_CPU_PAIRS=all $bf16; }
}

check_all kernels_of_level_v2_pass kernels_of_level_v3_pass kernels_of_level_v4_pass bf16_without_pairs_passes \
	bf16_with_pairs_for_small_products_passes bf16_with_pairs_for_all_products_passes
