#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# Builds and test runs print [n/m] and the time left, in plain lines.
set -u
. tests/shell/check.bash
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
steps=packaging/build-steps
mkdir -p "$tmp/results"

# Replaces make: `first` and `second` pass, `third` fails, and the others write no count.
cat >"$tmp/make" <<'MAKE'
#!/bin/sh
for target; do
	case $target in
	first) echo "3 0 1" >"$RESULTS/first.tally" ;;
	second) echo "2 0 0" >"$RESULTS/second.tally" ;;
	third) echo "1 1 0" >"$RESULTS/third.tally"; exit 2 ;;
	broken-build) exit 2 ;;
	esac
done
MAKE
chmod +x "$tmp/make"

run_all() { env -u MAKEFLAGS RESULTS="$tmp/results" MAKE="$tmp/make" tests/run-all "$@"; }

build_counts_its_steps() {
	rm -rf "$tmp/b"
	env -u MAKEFLAGS $steps make "B=$tmp/b" "CC=true" "$tmp/b/bin/tensorstat" >"$tmp/out" 2>&1 || true
	local count
	count=$(find tools/tensorstat -name '*.c' | wc -l)
	cat "$tmp/out"
	[ "$(grep -c "^  \[ *[0-9]*/$((count + 1))\] CC " "$tmp/out")" = "$count" ]
	grep "^  \[$((count + 1))/$((count + 1))\] LD " "$tmp/out"
}

# 100 s for a weight of 250 of 1000: 300 s are left.
time_left_is_proportional_to_the_weight() {
	[ "$($steps print 20 250 "200 1000 $((EPOCHSECONDS - 100))" CC a.o)" = "  [ 20/200] CC      a.o (5 min left)" ]
	[ "$($steps print 21 260 "200 1000 $((EPOCHSECONDS - 100))" CC a.o)" = "  [ 21/200] CC      a.o" ]
}

no_estimate_before_a_tenth_is_done() {
	[ "$($steps print 10 10 "200 1000 $((EPOCHSECONDS - 100))" CC a.o)" = "  [ 10/200] CC      a.o" ]
}

verbose_build_has_no_steps() {
	env -u MAKEFLAGS V=1 MAKE=echo $steps make target | grep -v STEPS= | grep target
}

run_all_says_step_and_time_left() {
	printf 'first 60\nsecond 600\n' >"$tmp/results/durations"
	run_all "$tmp" first=first second=second >"$tmp/out"
	cat "$tmp/out"
	grep -x '== \[1/2\] make first (0 s since the start, about 11 min left)' "$tmp/out"
	grep -x '== \[2/2\] make second ([0-9]* s since the start, about 10 min left)' "$tmp/out"
	[ "$(tail -n 1 "$tmp/out")" = "5 passed, 0 failed, 1 skipped" ]
}

run_all_records_the_durations() {
	printf 'first 60\nother 7\n' >"$tmp/results/durations"
	run_all "$tmp" first=first second=second
	sort "$tmp/results/durations" | grep -vx 'first [0-5]\|second [0-5]\|other 7' | is_empty
	[ "$(wc -l <"$tmp/results/durations")" = 3 ]
}

run_all_counts_the_build_as_a_step() {
	run_all --build "all unit" "$tmp" first=first >"$tmp/out"
	cat "$tmp/out"
	grep '^== \[1/2\] make all unit (' "$tmp/out"
	grep '^== \[2/2\] make first (' "$tmp/out"
}

failed_build_ends_the_run() {
	fails run_all --build broken-build "$tmp" first=first >"$tmp/out" 2>&1
	grep 'make broken-build failed' "$tmp/out"
	fails grep 'make first' "$tmp/out"
}

failed_and_missing_counts_fail_the_run() {
	fails run_all "$tmp" third=third first=first >"$tmp/out"
	[ "$(tail -n 1 "$tmp/out")" = "4 passed, 1 failed, 1 skipped" ]
	fails run_all "$tmp" fourth=fourth >"$tmp/out"
	[ "$(tail -n 1 "$tmp/out")" = "0 passed, 1 failed, 0 skipped" ]
}

output_has_no_control_characters() {
	{
		run_all --build "all unit" "$tmp" first=first second=second
		$steps print 20 250 "200 1000 $((EPOCHSECONDS - 100))" CC a.o
	} | LC_ALL=C grep -n '[[:cntrl:]]' | is_empty
}

unit_and_shell_runners_number_their_programs() {
	printf '#!/bin/sh\necho "ok 1 - passes"\n' >"$tmp/program"
	chmod +x "$tmp/program"
	tests/run-unit "$tmp" unit "$tmp/program" "$tmp/program" | grep '^  \[2/2\] program .* 1 passed$'
	tests/run-shell "$tmp" shell "$tmp/program" "$tmp/program" | grep '^  \[2/2\] program .* passed$'
}

named_unit_tests_run_alone() {
	make -n test-unit T="view test_cat" | grep '^tests/run-unit ' >"$tmp/out"
	cat "$tmp/out"
	[ "$(sed 's|build/tests/||g' "$tmp/out")" = "tests/run-unit build unit test_view test_cat" ]
}

unknown_unit_test_is_an_error() {
	fails make test-unit T=nosuch >"$tmp/out" 2>&1
	grep 'T=nosuch names no test of this target; it takes one or more of: .* view ' "$tmp/out"
}

# In an empty build folder one instruction-set level is built; a folder with others keeps them.
demo_builds_the_level_of_this_machine() {
	local level
	level=$(packaging/host-level)
	make -n demo B="$tmp/none" >"$tmp/out"
	grep -c "cpu/init.o\|\.$level\.o" "$tmp/out"
	grep -o '\.v[234]\.o' "$tmp/out" | grep -vx "\.$level\.o" | is_empty
	mkdir -p "$tmp/levels/obj"
	echo 'v2 v3' >"$tmp/levels/obj/levels"
	make -n demo B="$tmp/levels" | grep -o '\.v[234]\.o' | sort -u >"$tmp/out"
	[ "$(echo $(cat "$tmp/out"))" = ".v2.o .v3.o" ]
}

host_level_follows_the_flags() {
	local v3="avx avx2 bmi1 bmi2 f16c fma abm movbe xsave" v4="avx512f avx512bw avx512cd avx512dq avx512vl"
	level_of() { echo "flags		: fpu $1 sse" >"$tmp/cpuinfo"; packaging/host-level "$tmp/cpuinfo"; }
	[ "$(level_of "")" = v2 ]
	[ "$(level_of "$v3")" = v3 ]
	[ "$(level_of "$v3 ${v4#avx512f}")" = v3 ]
	[ "$(level_of "$v3 $v4")" = v4 ]
}

unset MAKEFLAGS MAKELEVEL MFLAGS T
check_all build_counts_its_steps time_left_is_proportional_to_the_weight no_estimate_before_a_tenth_is_done \
	verbose_build_has_no_steps run_all_says_step_and_time_left run_all_records_the_durations \
	run_all_counts_the_build_as_a_step failed_build_ends_the_run failed_and_missing_counts_fail_the_run \
	output_has_no_control_characters unit_and_shell_runners_number_their_programs named_unit_tests_run_alone \
	unknown_unit_test_is_an_error demo_builds_the_level_of_this_machine host_level_follows_the_flags
