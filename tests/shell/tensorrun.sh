#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# tensorrun: the environment of the ranks, their failures, signals, and its end.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/shell/check.bash
run=$(realpath "$1")/bin/tensorrun
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

# status COMMAND...: prints the exit status.
status() { "$@" >"$tmp/out" 2>"$tmp/err" && echo 0 || echo $?; }

ranks_get_their_numbers() {
	"$run" -n 3 sh -c 'echo "$TENSOR_RANK $TENSOR_SIZE $TENSOR_GROUP $TENSOR_GROUP_ADDRESS"' | sort >"$tmp/out"
	[ "$(cut -d' ' -f1-3 "$tmp/out" | paste -sd,)" = "0 3 local,1 3 local,2 3 local" ]
	[ "$(cut -d' ' -f4 "$tmp/out" | sort -u | wc -l)" = 1 ]
	[ "$("$run" true; echo $?)" = 0 ]
}

threads_are_shared_unless_they_are_set() {
	[ "$("$run" -n 100 printenv TENSOR_NUM_THREADS | sort -u)" = 1 ]
	[ "$(TENSOR_NUM_THREADS=7 "$run" -n 2 printenv TENSOR_NUM_THREADS | sort -u)" = 7 ]
}

status_is_that_of_the_first_failure() {
	[ "$(status "$run" -n 3 -- sh -c '[ $TENSOR_RANK != 1 ] || exit 5')" = 5 ]
	grep -q "rank 1: exit status 5" "$tmp/err"
	[ "$(status "$run" -n 2 sh -c '[ $TENSOR_RANK = 1 ] || kill -SEGV $$')" = 139 ]
	[ "$(status "$run" -n 2 "$tmp/none")" = 127 ]
}

other_ranks_end_after_a_failure() {
	local start=$SECONDS
	[ "$(status "$run" -n 3 -g 0 sh -c '[ $TENSOR_RANK = 2 ] && exit 4; trap "" TERM; sleep 60 & wait; sleep 60')" = 4 ]
	[ $((SECONDS - start)) -lt 20 ]
}

signals_go_to_all_ranks() {
	local pid rc=0
	"$run" -n 2 -g 20 sh -c "trap 'echo ended >>$tmp/signals; exit 3' TERM; echo begun >>$tmp/begun; while :; do sleep 0.1; done" &
	pid=$!
	for _ in $(seq 100); do [ "$(cat "$tmp/begun" 2>/dev/null | wc -l)" = 2 ] && break; sleep 0.1; done
	kill -TERM $pid
	wait $pid || rc=$?
	[ "$rc" = 143 ]
	[ "$(wc -l <"$tmp/signals")" = 2 ]
}

# $1: ranks whose first start loses rank 1 when all have begun; the others wait until they are ended. $2: a line for each.
cat >"$tmp/rank" <<'END'
echo "$TENSOR_SIZE $TENSOR_NUM_THREADS" >>"$2"
[ "$TENSOR_SIZE" = "$1" ] || exit 0
[ "$TENSOR_RANK" != 1 ] || { until [ "$(wc -l <"$2")" = "$1" ]; do sleep 0.05; done; kill -KILL $$; }
sleep 20 & trap 'kill $!; exit 1' TERM; wait
END

ranks_that_are_left_start_again() {
	[ "$(status "$run" -n 3 -g 0 --restarts 2 sh "$tmp/rank" 3 "$tmp/sizes")" = 0 ]
	grep -q "rank 1: Killed" "$tmp/err"
	grep -q "start again with 2 ranks" "$tmp/err"
	[ "$(cut -d' ' -f1 "$tmp/sizes" | paste -sd,)" = 3,3,3,2,2 ]
}

# Rank 2 is killed and rank 0 fails for that reason while tensorrun does not run, or in the other order: one rank is lost.
cat >"$tmp/late" <<'END'
[ "$TENSOR_SIZE" = 3 ] || { echo "$TENSOR_SIZE" >>"$1.again"; exit 0; }
echo $$ >"$1.$TENSOR_RANK"
[ "$TENSOR_RANK" = 0 ] || exec sleep 20
until [ -e "$1.go" ]; do sleep 0.02; done
exit 1
END

is_zombie() { grep -q '^State:.Z' "/proc/$1/status"; }

# Waits until the command succeeds.
until_done() { for _ in $(seq 200); do "$@" 2>/dev/null && return; sleep 0.05; done; return 1; }

begun() { [ -s "$1.0" ] && [ -s "$1.1" ] && [ -s "$1.2" ]; }

survivors_that_end_first_are_not_lost() {
	local order pid rc base
	for order in together after; do
		base=$tmp/late.$order
		"$run" -n 3 -g 3 -r 1 sh "$tmp/late" "$base" 2>"$base.err" &
		pid=$!
		until_done begun "$base"
		[ $order = after ] || kill -STOP $pid
		touch "$base.go"
		if [ $order = together ]; then
			until_done is_zombie "$(cat "$base.0")"
		else
			until_done grep -q "rank 0: exit status 1" "$base.err"
		fi
		kill -KILL "$(cat "$base.2")"
		[ $order = after ] || until_done is_zombie "$(cat "$base.2")"
		kill -CONT $pid
		rc=0
		wait $pid || rc=$?
		cat "$base.err"
		[ "$rc" = 0 ]
		grep -q "start again with 2 ranks" "$base.err"
		[ "$(cat "$base.again" | paste -sd,)" = 2,2 ]
	done
	grep -q "rank 2: Killed" "$tmp/late.together.err"
}

restarts_have_limits() {
	[ "$(status "$run" -n 3 -g 0 -r 5 -m 3 sh "$tmp/rank" 3 "$tmp/least")" = 137 ]
	[ "$(wc -l <"$tmp/least")" = 3 ]
	[ "$(status "$run" -n 4 -r 2 sh -c "echo \$TENSOR_SIZE >>$tmp/all; exit 3")" = 3 ]
	[ "$(sort -u "$tmp/all" | tail -1)" = 4 ]
	[ "$(sort -u "$tmp/all" | wc -l)" -le 3 ]
}

a_signal_is_no_reason_to_start_again() {
	local pid rc=0
	"$run" -n 2 -r 3 sh -c "echo >>$tmp/stopped; exec sleep 20" &
	pid=$!
	for _ in $(seq 100); do [ "$(cat "$tmp/stopped" 2>/dev/null | wc -l)" = 2 ] && break; sleep 0.1; done
	kill -TERM $pid
	wait $pid || rc=$?
	[ "$rc" = 143 ]
	[ "$(wc -l <"$tmp/stopped")" = 2 ]
}

ignored_signals_remain_ignored() {
	(trap '' HUP INT; exec "$run" -n 2 -g 0 sh -c "echo >>$tmp/ignoring; sleep 1") &
	local pid=$! rc=0
	for _ in $(seq 100); do [ "$(cat "$tmp/ignoring" 2>/dev/null | wc -l)" = 2 ] && break; sleep 0.1; done
	kill -HUP $pid
	kill -INT $pid
	wait $pid || rc=$?
	[ "$rc" = 0 ]
}

# As a program does that wants no zombies.
ended_ranks_are_seen_without_sigchld() {
	[ "$(status timeout -s KILL 10 env --ignore-signal=CHLD "$run" -n 2 sh -c 'exit 3')" = 3 ]
}

no_rank_outlives_it() {
	local pid
	"$run" -n 2 sh -c "echo \$\$ >>$tmp/pids; exec sleep 60" &
	pid=$!
	for _ in $(seq 100); do [ "$(cat "$tmp/pids" 2>/dev/null | wc -l)" = 2 ] && break; sleep 0.1; done
	kill -KILL $pid
	for _ in $(seq 100); do
		kill -0 $(cat "$tmp/pids") 2>/dev/null || return 0
		sleep 0.1
	done
	return 1
}

wrong_arguments_are_reported() {
	local args
	for args in "" "-n" "-n 0 true" "-n 129 true" "-n x true" "-g -1 true" "-q true" "-r x true" "-r -1 true" "-m 0 true"; do
		[ "$(status "$run" $args)" = 2 ] || { echo "$args"; return 1; }
		grep -q usage "$tmp/err"
	done
	"$run" --help | grep -q usage
}

check_all ranks_get_their_numbers threads_are_shared_unless_they_are_set status_is_that_of_the_first_failure \
	other_ranks_end_after_a_failure signals_go_to_all_ranks ranks_that_are_left_start_again survivors_that_end_first_are_not_lost \
	restarts_have_limits a_signal_is_no_reason_to_start_again ignored_signals_remain_ignored \
	ended_ranks_are_seen_without_sigchld no_rank_outlives_it wrong_arguments_are_reported
