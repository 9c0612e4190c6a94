# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# fish completion of tensorstat(1).

# The words before the cursor that are neither options nor their values; the first one is the object.
function __tensorstat_words
    set -l skip no
    for word in (commandline -opc)[2..-1]
        if test $skip = yes
            set skip no
        else if contains -- $word -w --watch -b --backend --sort --fields --textfile
            set skip yes
        else if not string match -q -- '-*' $word
            echo $word
        end
    end
end

# The object that the first word abbreviates: the first one in tensorstat's order.
function __tensorstat_object
    set -l words (__tensorstat_words)
    set -q words[1]; or return
    for object in buffer client device stat top monitor metrics doctor export user plot group
        if string match -q -- "$words[1]*" $object
            echo $object
            return
        end
    end
end

# __tensorstat_at OBJECT N: the word to complete is one after N words of that object.
function __tensorstat_at
    test (__tensorstat_object) = $argv[1] 2>/dev/null; and test (count (__tensorstat_words)) -eq $argv[2]
end

# __tensorstat_value OBJECT WORD...: the word before is one of these.
function __tensorstat_value
    set -l words (__tensorstat_words)
    test (__tensorstat_object) = $argv[1] 2>/dev/null; and contains -- $words[-1] $argv[2..-1]
end

# __tensorstat_filter OBJECT MIN WORD...: at least MIN words, the last of which takes no value (WORD... do).
function __tensorstat_filter
    set -l words (__tensorstat_words)
    test (__tensorstat_object) = $argv[1] 2>/dev/null; or return 1
    test (count $words) -ge $argv[2]; and not contains -- $words[-1] $argv[3..-1]
end

function __tensorstat_parameters
    path basename /sys/module/tensor/parameters/* 2>/dev/null
end

complete -c tensorstat -f
complete -c tensorstat -s j -l json -d 'a JSON array'
complete -c tensorstat -s p -l pretty -d 'indented JSON'
complete -c tensorstat -s o -l oneline -d 'names and values of each row'
complete -c tensorstat -s H -l no-header -d 'no header line'
complete -c tensorstat -s r -l raw -d 'sizes in bytes'
complete -c tensorstat -s c -l color -a 'always auto never' -d colours
complete -c tensorstat -s n -l numeric -d 'process IDs without names'
complete -c tensorstat -l sort -x -a 'id name dtype shape size pinned refs owner state uid buffers handles age' -d 'order of the rows'
complete -c tensorstat -l fields -x -d 'the columns to show'
complete -c tensorstat -s w -l watch -x -d 'repeat every SEC seconds'
complete -c tensorstat -s b -l backend -x -a 'device memfd' -d 'source of the rows'
complete -c tensorstat -l textfile -r -F -d 'file of metrics, replaced as a whole'
complete -c tensorstat -s h -l help -d 'print the usage'
complete -c tensorstat -s V -l version -d 'print the version'

set -l none 'test (count (__tensorstat_words)) -eq 0'
complete -c tensorstat -n $none -a buffer -d 'buffers and the processes that hold them'
complete -c tensorstat -n $none -a client -d 'processes that use the device'
complete -c tensorstat -n $none -a export -d 'descriptors and dma-bufs of buffers'
complete -c tensorstat -n $none -a user -d 'memory charged to each user'
complete -c tensorstat -n $none -a group -d 'ranks of process groups, and what they moved'
complete -c tensorstat -n $none -a device -d 'totals and parameters of the module'
complete -c tensorstat -n $none -a stat -d 'totals, a line for each sample'
complete -c tensorstat -n $none -a top -d 'live screen, the largest first'
complete -c tensorstat -n $none -a monitor -d 'events as they happen'
complete -c tensorstat -n $none -a metrics -d 'OpenMetrics text'
complete -c tensorstat -n $none -a plot -d 'memory over time as SVG or HTML'
complete -c tensorstat -n $none -a doctor -d 'check the installation and the limits'
complete -c tensorstat -n $none -a help -d 'print the usage'
complete -c tensorstat -n $none -a version -d 'print the version'

for object in buffer client export user group
    complete -c tensorstat -n "__tensorstat_at $object 1" -a 'show help'
end
complete -c tensorstat -n '__tensorstat_at device 1' -a 'show set help'
complete -c tensorstat -n '__tensorstat_at metrics 1' -a --textfile
complete -c tensorstat -n '__tensorstat_filter device 2; and test (__tensorstat_words)[2] = set' -a '(__tensorstat_parameters)'
complete -c tensorstat -n '__tensorstat_filter buffer 2 dtype minsize owner' -a 'dtype minsize owner shared'
complete -c tensorstat -n '__tensorstat_filter client 2 pid' -a pid
complete -c tensorstat -n '__tensorstat_filter export 2 buffer owner' -a 'buffer owner'
complete -c tensorstat -n '__tensorstat_filter group 2 owner' -a owner
complete -c tensorstat -n '__tensorstat_filter top 1 owner text' -a 'buffer process user owner text'
complete -c tensorstat -n '__tensorstat_filter monitor 1' -a 'alloc free import export seal revoke purge limit death'
complete -c tensorstat -n '__tensorstat_filter plot 1 seconds every from to title' -a 'seconds every from to title'
complete -c tensorstat -n '__tensorstat_value buffer dtype' \
    -a 'bool u8 i8 i16 i32 i64 f16 bf16 f32 f64 c64 c128 u16 u32 u64 f8_e4m3fn f8_e5m2'
complete -c tensorstat -n '__tensorstat_value plot from to' -F
for object in buffer export top group
    complete -c tensorstat -n "__tensorstat_value $object owner" -a '(__fish_complete_pids)'
end
complete -c tensorstat -n '__tensorstat_value client pid' -a '(__fish_complete_pids)'
