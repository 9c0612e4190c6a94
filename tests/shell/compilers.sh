#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# The public headers, the first program of README.md and the tests of tests/cpp compile without a warning with
# every compiler and standard (-Wall -Wextra -Wpedantic; C++ also with the warnings of $strict, which a project that
# includes the headers may have on), and the programs run. Missing compilers are skipped.
set -u
. tests/shell/check.bash
build=$(readlink -f "$1")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
flags="-Iinclude -Iinclude/uapi -I$build/gen/include -Wall -Wextra -Werror"
strict="-Wshadow -Wconversion -Wsign-conversion -Wold-style-cast"
link="-L$build -ltensor -Wl,-rpath,$build"

# first NAME...: prints the first of these programs that is installed.
first() { for c; do command -v "$c" >/dev/null && echo "$c" && return; done; }
c_compilers="$(first gcc) $(first clang clang-14)"
cxx_compilers="$(first g++) $(first clang++ clang++-14)"
c_standards="c11 gnu11 c17 c2x"
cxx_standards="c++17 c++20 c++2b"

needs() {
	set -- $1
	[ $# -eq 2 ] || { echo "of two compilers there is: $*"; exit 77; }
}

# each_alone LANGUAGE COMPILER STANDARD HEADER...: compiles each header alone, which fails if an include is missing.
each_alone() {
	local language=$1 cc=$2 std=$3 h
	shift 3
	for h; do
		echo "#include <tensor/${h##*/}>" | $cc -x $language -std=$std -Wpedantic $flags -fsyntax-only -
	done
}

# all_together LANGUAGE COMPILER STANDARD HEADER...: compiles all headers in one file.
all_together() {
	local language=$1 cc=$2 std=$3
	shift 3
	printf '#include <tensor/%s>\n' "${@##*/}" | $cc -x $language -std=$std -Wpedantic $flags -fsyntax-only -
}

headers_compile_as_c() {
	needs "$c_compilers"
	for cc in $c_compilers; do
		each_alone c $cc c11 include/tensor/*.h
		for std in $c_standards; do all_together c $cc $std include/tensor/*.h; done
	done
}

headers_compile_as_cpp() {
	needs "$cxx_compilers"
	for cxx in $cxx_compilers; do
		each_alone c++ "$cxx $strict" c++17 include/tensor/*.h include/tensor/*.hpp
		for std in $cxx_standards; do
			all_together c++ "$cxx $strict" $std include/tensor/*.h include/tensor/*.hpp
		done
	done
}

# runs COMPILER "STANDARD..." FILE: compiles and runs the program with each standard, the first without optimisation,
# the next with -O2, and so on, and compares its output with README.md.
runs() {
	local std o=-O0
	for std in $2; do
		$1 -std=$std $o $flags "$3" -o "$tmp/first" $link
		"$tmp/first" | diff "$tmp/first.out" -
		[ $o = -O0 ] && o=-O2 || o=-O0
	done
}

# Types that a tensor_scalar cannot hold.
type_without_a_scalar_does_not_compile() {
	needs "$c_compilers"
	printf '#include <tensor/tensor.h>\nstruct bits { unsigned b : 40; } s;\n%s\n' \
		'tensor *f(tensor *x) { return tensor_add(x, TRY); }' |
		sed 's/unsigned b/unsigned long b/' >"$tmp/type.c"
	for cc in $c_compilers; do
		for try in '(__int128)1' '(unsigned __int128)1' '"text"' '(char *)0'; do
			for use in "$try" "TENSOR_SCALAR($try)"; do
				fails $cc -fsyntax-only $flags "-DTRY=$use" "$tmp/type.c" 2>"$tmp/said"
				grep -E "'_Generic'|‘_Generic’|generic association" "$tmp/said"
			done
		done
		$cc -fsyntax-only $flags "-DTRY=(unsigned long)s.b" "$tmp/type.c"
	done
}

first_program_runs_in_c() {
	needs "$c_compilers"
	readme_block c >"$tmp/first.c"
	readme_block text >"$tmp/first.out"
	for cc in $c_compilers; do runs $cc "$c_standards" "$tmp/first.c"; done
}

first_program_runs_in_cpp() {
	needs "$cxx_compilers"
	readme_block c >"$tmp/first.cc"
	readme_block text >"$tmp/first.out"
	for cxx in $cxx_compilers; do runs $cxx "$cxx_standards" "$tmp/first.cc"; done
}

# Writes program $1 of the guide, and the text block after it.
guide_program() {
	awk -v n="$1" '/^```cpp program$/ { k++; on = k == n; next } /^```$/ { on = 0 } on' docs/reference/cpp.md >"$tmp/guide.cc"
	awk -v n="$1" '/^```cpp program$/ { k++ } /^```text$/ { on = k == n; next } /^```$/ { on = 0 } on' \
		docs/reference/cpp.md >"$tmp/first.out"
}

# The same program with <tensor/tensor.hpp>, and those of the sections.
programs_of_the_guide_run() {
	needs "$cxx_compilers"
	n=$(grep -c '^```cpp program$' docs/reference/cpp.md)
	[ "$n" -ge 3 ]
	for i in $(seq "$n"); do
		guide_program "$i"
		grep -q 'int main' "$tmp/guide.cc"
		for cxx in $cxx_compilers; do runs $cxx "$cxx_standards" "$tmp/guide.cc"; done
	done
}

# The other C++ blocks of the guide, each in a scope of its own.
other_blocks_of_the_guide_run() {
	needs "$cxx_compilers"
	{
		printf '#include <tensor/tensor.hpp>\n#include <iostream>\n#include <sys/socket.h>\n'
		printf 'using namespace libtensor;\nint main()\n{\n'
		printf 'Tensor x = randn({ 2, 3 }).share(), y = ones({ 2, 3 }), inputs = randn({ 8, 3 }), targets = ones({ 8, 1 });\n'
		awk '/^```cpp$/ { on = 1; print "{"; next } /^```$/ { if (on) print "}"; on = 0 } on' docs/reference/cpp.md
		printf '}\n'
	} >"$tmp/pieces.cc"
	[ "$(grep -c '^{$' "$tmp/pieces.cc")" -gt 5 ]
	for cxx in $cxx_compilers; do
		$cxx -std=c++17 $flags -Wno-unused "$tmp/pieces.cc" -o "$tmp/pieces" $link
		"$tmp/pieces"
	done
}

# `make test-unit` covers g++ with C++17, the programs above clang++ with it.
cpp_tests_pass_with_clang_and_later_standards() {
	needs "$cxx_compilers"
	for t in tests/cpp/test_*.cc; do
		set -- $cxx_compilers
		for with in "$1 -std=c++20" "$2 -std=c++20 -O2"; do
			$with -Wpedantic $strict $flags "$t" -o "$tmp/test" $link -pthread
			"$tmp/test"
		done
	done
}

every_function_can_be_called() {
	needs "$cxx_compilers"
	for style in plain integers zeros sizes; do
		python3 tests/cpp/every_call.py "$build/gen/include/tensor/ops.hpp" $style >"$tmp/$style.cc"
		for cxx in $cxx_compilers; do $cxx -std=c++17 $strict $flags -fsyntax-only "$tmp/$style.cc"; done
	done
}

# refused STATEMENT...: passes if every compiler reports an error for each of the statements, and none without them.
# $refused_by: the standard
refused() {
	local n all std=${refused_by:-c++17}
	printf '#include <tensor/tensor.hpp>\nusing namespace libtensor; void f(); void f() {\n' >"$tmp/bad.cc"
	{ cat "$tmp/bad.cc"; echo '}'; } >"$tmp/good.cc"
	for cxx in $cxx_compilers; do $cxx -std=$std $flags -fsyntax-only "$tmp/good.cc"; done
	printf '[](tensor *x, Tensor t) { %s };\n' "$@" >>"$tmp/bad.cc"
	echo '}' >>"$tmp/bad.cc"
	for cxx in $cxx_compilers; do
		# clang stops after 20 errors.
		all=
		[[ $cxx != *clang* ]] || all=-ferror-limit=0
		fails $cxx -std=$std $flags -w $all -fsyntax-only "$tmp/bad.cc" 2>"$tmp/said"
		for n in $(seq 3 $(($# + 2))); do
			grep -q "bad.cc:$n:" "$tmp/said" || { echo "$cxx accepts $(sed -n ${n}p "$tmp/bad.cc")"; return 1; }
		done
	done
}

# A std::initializer_list that outlives its elements gave shapes of zeros with clang++ -O2.
dangling_lists_do_not_compile() {
	needs "$cxx_compilers"
	refused 'tensor_ints size = TENSOR_SHAPE(2, 3);' 'tensor_list list = TENSOR_LIST(x, x);' \
		'tensor_ints size = ints{ 2, 3 };' 'tensor_list list = tensors{ t, t };'
}

# The other refusals are in tests/cpp/test_cpp_arguments.cc. The number 0, which is also a null pointer, is one only
# where it is written in the call.
wrong_arguments_do_not_compile() {
	needs "$cxx_compilers"
	refused 'zeros({2, 2})[0] = ones({2});' 't.sum(1, 1);' 'Tensor u = x;' 't.sum(0, 0);' 't.sum(0, f64);' \
		't.div(2, 0);' 'einsum(0, { t });' 'einsum({ 0 }, { t });' 't.add({ nullptr });' 't.sort(1, 0);' \
		't.view(nullptr);' 'zeros({ 2.0 });' 'if (t == 0) return;' 'TENSOR_SHAPE(2.5);' 'TENSOR_SHAPE(true);' \
		'TENSOR_DEVICE_CUDA(1.5);'
}

# The enumerations of the headers that <tensor/tensor.hpp> includes; an enumerator of the program is an integer.
enumeration_of_the_library_is_no_integer() {
	needs "$cxx_compilers"
	local tries
	mapfile -t tries < <(echo '#include <tensor/tensor.hpp>' | g++ -x c++ -std=c++17 $flags -E - |
		grep -oP '^enum \Ktensor_\w+(?= \{)|^enum \Ktensor_\w+$' | sort -u |
		sed 's/.*/t.size((enum &)0);/')
	[ "${#tries[@]}" -ge 10 ]
	refused "${tries[@]}"
}

# With GNU extensions it is an integer type of 16 bytes, and there is no such dtype. Each statement alone, because a
# compiler reports the first use of the missing dtype.
int128_has_no_dtype() {
	local try
	needs "$cxx_compilers"
	for try in '(void)from(std::vector<__int128>{ 1, 2 });' 't.data<__int128>();' \
		't.mutable_data<unsigned __int128>();' 't.to_vector<__int128>();'; do
		refused_by=gnu++17 refused "$try"
	done
}

check_all headers_compile_as_c headers_compile_as_cpp type_without_a_scalar_does_not_compile first_program_runs_in_c \
	first_program_runs_in_cpp programs_of_the_guide_run other_blocks_of_the_guide_run \
	cpp_tests_pass_with_clang_and_later_standards every_function_can_be_called dangling_lists_do_not_compile \
	wrong_arguments_do_not_compile enumeration_of_the_library_is_no_integer int128_has_no_dtype
