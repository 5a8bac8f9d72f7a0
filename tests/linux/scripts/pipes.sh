# Pipelines: order, status, long streams, early ends, named pipes.
echo one | cat | cat | tr a-z A-Z
seq 1 10000 | grep 7 | wc -l
seq 1 100000 | tail -n 1
yes | head -n 3
seq 1 1000000 | head -n 1
false | true
echo "status $?"
true | false
echo "status $?"
! true
echo "status $?"
printf 'b\na\nc\n' | sort | while read -r line; do echo "line $line"; done
{ echo out; echo err >&2; } 2>&1 | sort
echo "in $(echo a command | (read -r first rest; echo "$rest, $first"))"
mkfifo named
(echo through a name >named) &
cat named
wait
rm named
dd if=/dev/zero bs=4096 count=256 2>/dev/null | md5sum
for n in 1 2 3 4 5 6 7 8; do echo $n; done | (while read -r n; do sum=$((sum + n)); done; echo sum $sum)
(sleep 0.1; echo late) | (read -r word; echo "got $word")
seq 1 5 | xargs -n 2 echo pair
tee copy </etc/hostname | cat
cmp copy /etc/hostname && echo same
