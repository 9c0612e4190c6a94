#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# TENSOR_TRACE writes a valid file in Chrome's trace format, however the program ends.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/shell/check.bash
build=$(realpath "$1")
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

cat >"$tmp/prog.c" <<'END'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <tensor/tensor.h>
#include <unistd.h>

static void *compute(void *arg)
{
	for (int i = 0; i < 200; i++)
		tensor_scope
			tensor_mul(tensor_ones(TENSOR_SHAPE(3), TENSOR_OPTIONS(0)), tensor_ones(TENSOR_SHAPE(2, 1), TENSOR_OPTIONS(0)));
	return arg;
}

static void learn(void)
{
	tensor_scope {
		tensor *w = tensor_ones(TENSOR_SHAPE(4, 3), TENSOR_OPTIONS(0));
		tensor *x = tensor_ones(TENSOR_SHAPE(2, 3), TENSOR_OPTIONS(0));

		tensor_set_requires_grad(w, true);
		tensor_backward(tensor_sum(tensor_linear(x, w, tensor_none)));
		tensor_cat(TENSOR_LIST(x, x), 0);
		tensor_mm(x, x);	/* fails */
	}
}

static void share(void)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		exit(1);
	tensor_channel *a = tensor_channel_open(ends[0]), *b = tensor_channel_open(ends[1]);

	tensor_scope {
		tensor *t = tensor_ones(TENSOR_SHAPE(64), TENSOR_OPTIONS(0));

		if (tensor_share_memory(t) < 0 || tensor_send(a, t, 0) < 0 || !tensor_recv(b))
			exit(1);
	}
	tensor_channel_close(a);
	tensor_channel_close(b);
}

static void threads(void)
{
	pthread_t t[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, compute, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "learn"))
			learn();
		else if (!strcmp(argv[i], "share"))
			share();
		else if (!strcmp(argv[i], "threads"))
			threads();
		else if (!strcmp(argv[i], "fork")) {
			pid_t pid = fork();

			if (!pid) {
				tensor_release(tensor_ones(TENSOR_SHAPE(7), TENSOR_OPTIONS(0)));
				exit(0);
			}
			printf("%d\n", pid);
			wait(NULL);
		} else if (!strcmp(argv[i], "chdir")) {
			if (chdir("/"))
				return 1;
		} else if (!strcmp(argv[i], "close"))
			closefrom(3);
		else if (!strcmp(argv[i], "sleep")) {
			puts("ready");
			fflush(stdout);
			pause();
		} else if (!strcmp(argv[i], "abort"))
			abort();
	}
	return 0;
}
END

# Loads a trace and checks its format: complete events with a start, a duration, a process and a thread, which
# nest within a thread. Then runs the lines of $1 with `events` and `named(NAME)`.
cat >"$tmp/model.py" <<'END'
import json
import sys

text = open(sys.argv[1]).read()
closed = text.endswith(']\n')
events = json.loads(text if closed else text + ']')
assert events[0]['ph'] == 'M' and events[0]['name'] == 'process_name' and events[0]['args']['name'], events[0]
stacks = {}
for e in events[1:]:
    assert e['ph'] == 'X', e
    assert isinstance(e['name'], str) and e['cat'] in ('operator', 'backward', 'sharing'), e
    assert e['ts'] > 0 and e['dur'] >= 0, e
    assert isinstance(e['pid'], int) and isinstance(e['tid'], int) and e['pid'] == events[0]['pid'], e
for e in sorted(events[1:], key=lambda e: (round(e['ts'] * 1000), -round(e['dur'] * 1000))):
    begin, end = round(e['ts'] * 1000), round(e['ts'] * 1000) + round(e['dur'] * 1000)
    stack = stacks.setdefault(e['tid'], [])
    while stack and stack[-1][0] <= begin:
        stack.pop()
    assert not stack or end <= stack[-1][0], ('overlaps', e)
    e['inside'] = [name for _, name in stack]
    stack.append((end, e['name']))


def named(name):
    found = [e for e in events if e['name'] == name]
    assert found, (name, [e['name'] for e in events])
    return found


exec(sys.argv[2])
END
model() { /usr/bin/python3 "$tmp/model.py" "$1" "$2"; }
trace() { TENSOR_TRACE="$tmp/$1.json" "$tmp/prog" "${@:2}"; }

operators_have_shapes_dtypes_and_errors() {
	trace ops learn
	model "$tmp/ops.json" 'assert closed
mm = named("mm")
assert any(e["args"]["inputs"] == ["f32[2, 3]", "f32[2, 3]"] and e["args"].get("error") == 22 for e in mm), mm
assert named("cat")[0]["args"] == {"inputs": ["[f32[2, 3], f32[2, 3]]"], "outputs": ["f32[4, 3]"]}, named("cat")'
}

operator_that_autograd_records_is_one_event() {
	trace once learn
	model "$tmp/once.json" 'assert len(named("linear")) == 1 and len(named("sum")) == 1, events'
}

operators_of_a_composite_and_of_a_node_are_inside_it() {
	trace nest learn
	model "$tmp/nest.json" 'assert any(e["cat"] == "operator" and e["inside"] for e in events[1:])
nodes = [e for e in events if e.get("cat") == "backward"]
assert named("AccumulateGrad")[0]["cat"] == "backward"
assert any(e["inside"] and e["inside"][-1].endswith("Backward") for e in events[1:]), events'
}

sharing_is_recorded() {
	trace share share
	model "$tmp/share.json" 'assert named("tensor_send")[0]["args"]["tensor"] == "f32[64]"
assert named("tensor_recv")[0]["args"]["storage_bytes"] >= 256 and named("tensor_share_memory")'
}

threads_write_to_one_file() {
	trace threads threads
	model "$tmp/threads.json" 'mul = named("mul.Tensor")
assert len(mul) == 800 and len({e["tid"] for e in mul}) == 4, len(mul)
assert all(e["args"]["outputs"] == ["f32[2, 3]"] for e in mul)'
}

child_writes_to_its_own_file() {
	local child
	child=$(trace fork learn fork share)
	model "$tmp/fork.json" 'assert closed and named("tensor_send") and not any(e["args"].get("outputs") == ["f32[7]"] for e in events)'
	model "$tmp/fork.$child.json" "assert closed and events[0]['pid'] == $child
assert [e['args']['outputs'] for e in named('ones')] == [['f32[7]']]"
}

trace_of_an_aborted_program_lacks_the_bracket_alone() {
	fails trace abort learn abort
	model "$tmp/abort.json" 'assert not closed and named("linear")'
}

trace_of_a_killed_program_lacks_the_bracket_alone() {
	coproc { exec env TENSOR_TRACE="$tmp/kill.json" "$tmp/prog" learn sleep; }
	local pid=$COPROC_PID
	read -r _ <&"${COPROC[0]}"
	kill -9 "$pid"
	wait "$pid" || true
	model "$tmp/kill.json" 'assert not closed and named("linear")'
}

second_program_does_not_write_into_the_file_of_the_first() {
	coproc { exec env TENSOR_TRACE="$tmp/two.json" "$tmp/prog" learn sleep; }
	local pid=$COPROC_PID
	read -r _ <&"${COPROC[0]}"
	trace two share
	kill -9 "$pid"
	wait "$pid" || true
	model "$tmp/two.json" 'assert named("linear") and not any(e["name"] == "tensor_send" for e in events)'
	model "$(ls "$tmp"/two.*.json)" 'assert named("tensor_send")'
}

later_program_replaces_the_file() {
	trace later learn
	trace later share
	model "$tmp/later.json" 'assert named("tensor_send") and not any(e["name"] == "linear" for e in events)'
}

relative_path_is_kept_by_chdir() {
	(cd "$tmp" && TENSOR_TRACE=here.json ./prog chdir learn)
	model "$tmp/here.json" 'named("linear")'
}

# warns TEXT COMMAND...: passes if the command succeeds with one line on stderr that contains the text.
warns() {
	"${@:2}" 2>"$tmp/said"
	cat "$tmp/said"
	[ "$(wc -l <"$tmp/said")" -eq 1 ]
	grep -q "^libtensor: TENSOR_TRACE: cannot .*$1" "$tmp/said"
}

file_that_cannot_be_written_is_one_warning() {
	warns 'No such file or directory' trace no/folder learn share threads fork
	[ ! -e /dev/full ] || TENSOR_TRACE=/dev/full warns 'No space left' "$tmp/prog" learn share threads
}

full_disk_leaves_a_readable_file() {
	(ulimit -f 4 && warns 'File too large\|No space left' trace limit threads)
	model "$tmp/limit.json" 'named("mul.Tensor")'
}

descriptor_that_the_program_closed_ends_the_trace() {
	warns 'Bad file descriptor' trace closed learn close learn
	model "$tmp/closed.json" 'named("linear")'
}

# The reader of a pipe may end first, and a FIFO may have none: one warning, and the program continues.
pipe_without_a_reader_is_one_warning() {
	(TENSOR_TRACE=/dev/stdout "$tmp/prog" learn learn learn threads 2>"$tmp/pipe.err"; echo $? >"$tmp/pipe.rc") | head -c 10 >/dev/null
	[ "$(cat "$tmp/pipe.rc")" = 0 ]
	grep 'Broken pipe' "$tmp/pipe.err"
	mkfifo "$tmp/fifo"
	TENSOR_TRACE="$tmp/fifo" timeout 20 "$tmp/prog" learn 2>"$tmp/fifo.err"
	[ "$(wc -l <"$tmp/fifo.err")" = 1 ]
}

without_the_variable_no_file_is_made() {
	(cd "$tmp" && mkdir none && cd none && env -u TENSOR_TRACE ../prog learn && TENSOR_TRACE='' ../prog learn && ls | is_empty)
}

# Calls through the key's fallback have the same results, errors and layouts as without it. `make unit` builds these.
unit_tests_pass_while_they_are_traced() {
	local t
	for t in view autograd blocked quantized sparse format_arguments loss reduce sort stat random; do
		[ -x "$build/tests/test_$t" ] || { echo "no build/tests/test_$t: make unit"; exit 77; }
		TENSOR_TRACE="$tmp/unit.json" timeout 120 "$build/tests/test_$t" 2>&1 || { echo "test_$t"; return 1; }
		model "$tmp/unit.json" 'assert len(events) > 10'
	done
}

gcc -std=gnu11 -O1 -D_GNU_SOURCE -Wall -Wextra -Werror -Iinclude -I"$build/gen/include" "$tmp/prog.c" -o "$tmp/prog" -L"$build" \
	-ltensor -Wl,-rpath,"$build" -pthread || exit 1
check_all operators_have_shapes_dtypes_and_errors operator_that_autograd_records_is_one_event \
	operators_of_a_composite_and_of_a_node_are_inside_it sharing_is_recorded threads_write_to_one_file \
	child_writes_to_its_own_file trace_of_an_aborted_program_lacks_the_bracket_alone \
	trace_of_a_killed_program_lacks_the_bracket_alone second_program_does_not_write_into_the_file_of_the_first \
	later_program_replaces_the_file relative_path_is_kept_by_chdir file_that_cannot_be_written_is_one_warning \
	full_disk_leaves_a_readable_file descriptor_that_the_program_closed_ends_the_trace \
	pipe_without_a_reader_is_one_warning without_the_variable_no_file_is_made \
	unit_tests_pass_while_they_are_traced
