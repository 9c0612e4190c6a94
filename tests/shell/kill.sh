#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# kill -9 of the loader, then of the trainer, in the middle of training: the others report it and
# end by themselves, and no buffer is left.
set -u
bin=$1/bin
tmp=$(mktemp -d)
data=${DIGITS_CSV:-examples/digits/digits.csv}
pids=
trap 'kill -9 $pids 2>/dev/null; rm -rf "$tmp"' EXIT

fail() {
	echo "FAILED: $*"
	tail -n 5 "$tmp"/*.log
	exit 1
}

start() {
	"$bin/digits-trainer" "$tmp/sock" 1000000 >"$tmp/trainer.log" 2>&1 &
	trainer=$!
	"$bin/digits-loader" "$tmp/sock" "$data" >"$tmp/loader.log" 2>&1 &
	loader=$!
	"$bin/digits-watcher" "$tmp/sock" >"$tmp/watcher.log" 2>&1 &
	watcher=$!
	pids="$trainer $loader $watcher"
	for _ in $(seq 100); do
		grep -q 'epoch   1 ' "$tmp/watcher.log" && return
		sleep 0.1
	done
	fail "training did not start"
}

# A process ends by itself within 10 s, with status 3.
ends() {
	for _ in $(seq 100); do
		kill -0 "$1" 2>/dev/null || break
		sleep 0.1
	done
	kill -0 "$1" 2>/dev/null && fail "$2 goes on without its peer"
	wait "$1"
	[ $? -eq 3 ] || fail "$2 did not end with status 3"
}

no_buffers() {
	for p in $pids; do
		"$bin/tensorstat" -j buffer show | grep -q "\"pid\": *$p\b" && fail "a buffer of $p is left"
	done
	return 0
}

start
sleep 0.3
"$bin/tensorstat" buffer show | grep -q w1 || fail "tensorstat does not show the weights"
kill -9 "$loader"
ends "$trainer" trainer
ends "$watcher" watcher
grep -q 'the loader is gone after epoch' "$tmp/trainer.log" || fail "the trainer does not say why"
grep -q 'the trainer is gone after epoch' "$tmp/watcher.log" || fail "the watcher does not say why"
no_buffers

start
sleep 0.3
kill -9 "$trainer"
ends "$loader" loader
ends "$watcher" watcher
grep -q 'the trainer is gone\|loader: ' "$tmp/loader.log" || fail "the loader does not say why"
no_buffers

start
kill -9 "$watcher"
sleep 0.5
kill -0 "$trainer" || fail "the trainer did not go on without its watcher"
grep -q 'the watcher is gone after epoch' "$tmp/trainer.log" || fail "the trainer does not say so"
kill "$trainer"
ends "$loader" loader
exit 0
