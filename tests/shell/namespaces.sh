#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# Two network namespaces, as two machines: a link that is slow and loses packets, and its cut. Channels between machines over it, and
# ranks of a process group through Open MPI. Skipped where namespaces may not be made.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/shell/check.bash
build=$(realpath "$1")
tmp=$(mktemp -d) || exit 1
a=tensor-a-$$ b=tensor-b-$$
here=10.213.77.1 there=10.213.77.2
# UCX takes the loopback devices of two namespaces for one, because they are on one machine.
export UCX_TLS=tcp UCX_NET_DEVICES=veth0 TENSOR_NUM_THREADS=1

remove() {
	ip netns del $a 2>/dev/null
	ip netns del $b 2>/dev/null
	rm -rf "$tmp"
}
trap remove EXIT

# in_a COMMAND..., in_b COMMAND...: the command in that namespace, with a host name of its own.
in_a() { ip netns exec $a unshare --uts sh -c 'hostname tensor-a; exec "$@"' sh "$@"; }
in_b() { ip netns exec $b unshare --uts sh -c 'hostname tensor-b; exec "$@"' sh "$@"; }

make_namespaces() {
	ip netns add $a && ip netns add $b &&
		ip link add veth0 netns $a type veth peer name veth0 netns $b &&
		ip -n $a addr add $here/24 dev veth0 && ip -n $b addr add $there/24 dev veth0 &&
		ip -n $a link set lo up && ip -n $b link set lo up &&
		ip -n $a link set veth0 up && ip -n $b link set veth0 up && links_are_up
}

# UCX uses a device only if it carries packets when the program begins.
links_are_up() {
	local n
	for n in $a $b; do
		for _ in $(seq 100); do ip -n $n -br link show veth0 | grep -q ' UP ' && break; sleep 0.05; done
	done
	ip -n $a -br link show veth0 | grep ' UP '
}

# slow: delay and loss on both ends. A kernel without netem has a short queue, which delays packets and drops what does not fit.
slow() {
	local n
	for n in $a $b; do
		ip netns exec $n tc qdisc replace dev veth0 root netem delay 3ms 1ms loss 1% 2>/dev/null ||
			ip netns exec $n tc qdisc replace dev veth0 root tbf rate 400mbit burst 64kb limit 96kb || return
	done
}

need_namespaces() {
	[ -n "$made" ] || { echo "no network namespaces: $why"; exit 77; }
}

need_ucx() {
	need_namespaces
	ls "$build"/libtensor_ucx.so.* >/dev/null 2>&1 || { echo "no plugin of UCX"; exit 77; }
}

# sent: the bytes that have left a.
sent() { ip netns exec $a cat /sys/class/net/veth0/statistics/tx_bytes; }

# listen MILLISECONDS: a receiver in b, whose address is in $tmp/address.
listen() {
	: >"$tmp/address"
	in_b timeout 60 "$build/examples/transfer" receive ucx://$there:0 "$1" >"$tmp/address" 2>"$tmp/receiver" &
	receiver=$!
	for _ in $(seq 100); do [ -s "$tmp/address" ] && return; sleep 0.05; done
	cat "$tmp/receiver"
	return 1
}

a_tensor_crosses_a_slow_link() {
	need_ucx
	slow
	listen 10000
	in_a timeout 60 "$build/examples/transfer" send "$(cat "$tmp/address")" 10000 24 | grep -x "sent 24 MiB, and the sum came back"
	wait $receiver
	# Packets were lost.
	ip netns exec $a tc -s qdisc show dev veth0 | grep -E 'dropped [1-9]' >/dev/null
}

# The timeout is two seconds: the error comes after at most a quarter more, and the end of a program on a busy machine.
a_cut_in_the_middle_is_an_error_in_time() {
	need_ucx
	local begin end rc=0 received=0 before
	for n in $a $b; do ip netns exec $n tc qdisc replace dev veth0 root tbf rate 200mbit burst 64kb limit 256kb; done
	before=$(sent)
	listen 2000
	in_a timeout 60 "$build/examples/transfer" send "$(cat "$tmp/address")" 2000 900 >"$tmp/sender" 2>&1 &
	local sender=$!
	for _ in $(seq 100); do [ $(($(sent) - before)) -gt 20000000 ] && break; sleep 0.05; done
	kill -0 $sender && kill -0 $receiver || { cat "$tmp/sender" "$tmp/receiver"; return 1; }
	ip -n $a link set veth0 down
	begin=$(date +%s%N)
	wait $sender || rc=$?
	end=$(date +%s%N)
	wait $receiver || received=$?
	ip -n $a link set veth0 up
	cat "$tmp/sender" "$tmp/receiver"
	echo "the sender ended $(((end - begin) / 1000000)) ms after the cut, status $rc"
	[ $rc = 1 ]
	[ $(((end - begin) / 1000000)) -lt 4000 ]
	grep -q "nothing came from the peer for 2000 ms" "$tmp/sender"
	[ $received = 1 ]
	grep -q "nothing came from the peer for 2000 ms" "$tmp/receiver"
}

# mpirun begins its other half through a command in the place of ssh.
ranks_of_open_mpi_in_two_namespaces() {
	need_namespaces
	command -v mpirun.openmpi >/dev/null && ls "$build"/libtensor_mpi_openmpi.so.* >/dev/null 2>&1 || {
		echo "no Open MPI"
		exit 77
	}
	slow
	cat >"$tmp/agent" <<-END
		#!/bin/sh
		shift
		exec ip netns exec $b unshare --uts sh -c "hostname tensor-b; \$*"
	END
	chmod +x "$tmp/agent"
	export TEST_GROUP=mpi OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
	for program in $mpi_programs; do
		in_a timeout -k 5 100 mpirun.openmpi --host $here,$there -np 2 --map-by node --mca plm_rsh_agent "$tmp/agent" \
			--mca btl self,tcp --mca pml ob1 --mca btl_tcp_if_include veth0 --mca oob_tcp_if_include veth0 \
			-x TEST_GROUP -x TENSOR_NUM_THREADS "$build/tests/$program" >"$tmp/mpi" 2>&1 </dev/null || { cat "$tmp/mpi"; return 1; }
		grep -q '^\[  PASSED  \] [1-9]' "$tmp/mpi" || { cat "$tmp/mpi"; return 1; }
	done
}

mpi_programs=test_group_engines
made= why=
why=$(make_namespaces 2>&1) && made=yes
check_all a_tensor_crosses_a_slow_link a_cut_in_the_middle_is_an_error_in_time ranks_of_open_mpi_in_two_namespaces
