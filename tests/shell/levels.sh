#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# The kernels of every instruction-set level give the results that the unit tests expect, also those of
# levels below the processor's. A library that was built with one level (LEVELS=v4) runs that one each time.
set -u
. tests/shell/check.bash
build=$(realpath "${1:-build}")
tests="test_unsigned test_elementwise test_reduce test_sort test_linear test_conv"

# passes LEVEL
passes() {
	local name
	for name in $tests; do
		[ -x "$build/tests/$name" ] || { echo "there is no $name"; return 1; }
		TENSOR_CPU_LEVEL=$1 "$build/tests/$name" >"$build/results/level.out" 2>&1 || { cat "$build/results/level.out"; return 1; }
	done
}

kernels_of_level_v2_pass() { passes v2; }
kernels_of_level_v3_pass() { passes v3; }
kernels_of_level_v4_pass() { passes v4; }

check_all kernels_of_level_v2_pass kernels_of_level_v3_pass kernels_of_level_v4_pass
