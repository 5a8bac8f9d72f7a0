# So many processors, as the first argument says: programs see them, choose among them and run
# on all of them at the same time. Prints a sentence for what is wrong.
want=$1
fail() { echo "wrong: $*"; exit 1; }
work() { n=0; while [ $n -lt "$1" ]; do n=$((n + 1)); done; }
busy() { sed -n 's/^cpu[0-9]* \([0-9]*\) .*/\1/p' /proc/stat | tr '\n' ' '; }

[ "$(nproc)" = "$want" ] || fail "nproc says $(nproc)"
[ "$(grep -c '^processor' /proc/cpuinfo)" = "$want" ] || fail "cpuinfo has other processors"
[ "$(grep -c '^cpu[0-9]' /proc/stat)" = "$want" ] || fail "stat has other processors"

# Each has computed, and together more than one could in that time.
hundredths() { sed "s/ .*//; s/\.//; s/^0*//" /proc/uptime; } # "095" would be octal
start=$(hundredths)
before=$(busy)
i=0
while [ $i -lt $((want * 2)) ]; do work 40000 & i=$((i + 1)); done
wait
set -- $before
sum=0
for now in $(busy); do
    [ $((now - $1)) -ge 5 ] || fail "a processor has done $((now - $1)) hundredths of a second"
    sum=$((sum + now - $1))
    shift
done
passed=$(($(hundredths) - start))
[ $((sum * 10)) -gt $((passed * 11)) ] || fail "busy for $sum hundredths of a second only, in $passed"
echo "busy for $sum hundredths of a second in $passed"

# What one may not use does not compute: all of it is done on the last.
last=$((want - 1))
one=$(taskset -c $last sh -c 'n=0; while [ $n -lt 20000 ]; do n=$((n + 1)); done; cut -d" " -f39 /proc/self/stat; nproc')
[ "$one" = "$last
1" ] || fail "with processor $last only: $one"
taskset -c "$want" true 2>/dev/null && fail "processor $want is there"

# As many as processors in a pipe, and signals to those that compute.
[ "$(seq 2000 | sed 's/$/x/' | grep -c x | tr -d '\n')" = 2000 ] || fail "the pipe has lost lines"
for signal in TERM KILL INT; do
    i=0
    pids=
    while [ $i -lt $((want * 2)) ]; do
        (while :; do :; done) &
        pids="$pids $!"
        i=$((i + 1))
    done
    kill -STOP $pids
    kill -CONT $pids
    kill -$signal $pids
    # INT is ignored by what runs in the background.
    [ $signal = INT ] && kill -KILL $pids
    wait $pids 2>/dev/null
done
echo "all processors work"
