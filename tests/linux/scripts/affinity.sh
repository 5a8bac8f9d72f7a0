# What commands are told of four processors, and may choose.
nproc
nproc --all
taskset -p $$ | sed "s/pid $$/pid/"
grep -c '^processor' /proc/cpuinfo
grep -c '^cpu[0-9]' /proc/stat
grep '^Cpus_allowed' /proc/self/status | tr '\t' ' '
for mask in 1 2 4 8 5 a f; do
    taskset $mask sh -c 'nproc; grep "^Cpus_allowed_list" /proc/self/status | tr "\t" " "'
done
for cpu in 0 1 2 3; do
    taskset -c $cpu sh -c 'n=0; while [ $n -lt 500 ]; do n=$((n + 1)); done; cut -d" " -f39 /proc/self/stat'
done
taskset -c 1,3 nproc
taskset -c 0-2 nproc
taskset -c 4 true 2>/dev/null || echo "no processor 4"
taskset 0 true 2>/dev/null || echo "none is refused"
# A running process is moved.
sleep 100 &
taskset -p 8 $! >/dev/null && grep '^Cpus_allowed:' /proc/$!/status | tr '\t' ' '
kill $!
wait $! 2>/dev/null
taskset -p 1 $! 2>/dev/null || echo "nobody there"
# Eight at once, and a pipe through all of them.
for i in 1 2 3 4 5 6 7 8; do (n=0; while [ $n -lt 2000 ]; do n=$((n + 1)); done; exit $i) & done
wait
seq 3000 | taskset 2 sed 's/$/x/' | taskset 4 grep x | taskset 8 wc -l
