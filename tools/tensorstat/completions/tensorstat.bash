# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# bash completion of tensorstat(1). Needs nothing but bash.

# Sets `object` and `command` to the first two words that are no options.
_tensorstat_object() {
	local i
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		-w | --watch | -b | --backend | --sort | --fields | --textfile) ((i++)) ;;
		-*) ;;
		*)
			if [ -z "$object" ]; then
				object=$(_tensorstat_full "${COMP_WORDS[i]}")
			elif [ -z "$command" ]; then
				command=${COMP_WORDS[i]}
			fi
			;;
		esac
	done
}

# The object that a word abbreviates: the first one in tensorstat's order.
_tensorstat_full() {
	local name
	for name in buffer client device stat top monitor metrics doctor export user plot group; do
		[[ $name != "$1"* ]] || { echo "$name"; return; }
	done
}

_tensorstat_of_object() {
	case $1 in
	buffer | client | export | user | group)
		if [ -z "$2" ]; then
			echo show help
		elif [ "$1" = buffer ]; then
			echo dtype minsize owner shared
		elif [ "$1" = export ]; then
			echo buffer owner
		elif [ "$1" = client ]; then
			echo pid
		elif [ "$1" = group ]; then
			echo owner
		fi ;;
	device)
		if [ -z "$2" ]; then
			echo show set help
		elif [ "$2" = set ]; then
			(cd /sys/module/tensor/parameters 2>/dev/null && echo *)
		fi ;;
	top) echo buffer process user owner text ;;
	monitor) echo alloc free import export seal revoke purge limit death ;;
	metrics) echo --textfile ;;
	plot) echo seconds every from to title ;;
	esac
}

_tensorstat() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} object="" command="" words=""
	COMPREPLY=()
	_tensorstat_object
	case $object:$prev in
	*:-b | *:--backend) words="device memfd" ;;
	buffer:dtype) words="bool u8 i8 i16 i32 i64 f16 bf16 f32 f64 c64 c128 u16 u32 u64 f8_e4m3fn f8_e5m2" ;;
	*:owner | client:pid) words=$(cd /proc && echo [1-9]*) ;;
	*:--textfile | plot:from | plot:to) mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
	*:--sort) words="id name dtype shape size pinned refs owner state uid buffers handles age" ;;
	*:--fields | *:-w | *:--watch | buffer:minsize | export:buffer | top:text | plot:seconds | plot:every | plot:title) return ;;
	*)
		case $cur in
		-*) words="--json --pretty --oneline --no-header --raw --color --numeric --sort --fields
			--watch --backend --textfile --help --version" ;;
		*)
			if [ -z "$object" ]; then
				words="buffer client export user group device stat top monitor metrics plot doctor help version"
			else
				words=$(_tensorstat_of_object "$object" "$command")
			fi ;;
		esac ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

complete -F _tensorstat tensorstat
