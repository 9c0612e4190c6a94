#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# kill -9 of the loader, then of the trainer, during training: the other processes report it and exit, and no
# buffer is left. Runs in the guest as well.
set -u
bin=${1:-/t}/bin
data=${DIGITS:-examples/digits}/digits.csv
tmp=$(mktemp -d)
pids=
echo "1..3"
trap 'kill -9 $pids 2>/dev/null; rm -rf "$tmp"' EXIT

fail() {
	echo "not ok - $*"
	tail -n 5 "$tmp"/*.log | sed 's/^/# /'
	exit 1
}

start() {
	# otherwise the log of the last watcher shows that training has begun
	rm -f "$tmp"/*.log
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

# The process exits within 10 s with status 3.
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
	"$bin/tensorstat" -r buffer show >"$tmp/left.log"
	for p in $pids; do
		grep -q "$p/digits" "$tmp/left.log" && fail "a buffer of $p is left"
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
echo "ok 1 - killed_loader_is_reported_and_leaves_nothing"

start
sleep 0.3
kill -9 "$trainer"
ends "$loader" loader
ends "$watcher" watcher
grep -q 'the trainer is gone\|loader: ' "$tmp/loader.log" || fail "the loader does not say why"
no_buffers
echo "ok 2 - killed_trainer_is_reported_and_leaves_nothing"

start
kill -9 "$watcher"
for _ in $(seq 100); do
	grep -q 'the watcher is gone after epoch' "$tmp/trainer.log" && break
	sleep 0.1
done
grep -q 'the watcher is gone after epoch' "$tmp/trainer.log" || fail "the trainer does not say so"
kill -0 "$trainer" || fail "the trainer did not go on without its watcher"
kill "$trainer"
ends "$loader" loader
echo "ok 3 - training_goes_on_without_its_watcher"
