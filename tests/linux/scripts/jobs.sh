# Jobs: background, wait, signals to jobs, job control without a terminal.
exec 2>/dev/null # what a shell says of its jobs depends on who comes first
sleep 0.2 &
first=$!
(exit 3) &
second=$!
wait $second
echo "second $?"
wait $first
echo "first $?"
sleep 30 &
kill $!
wait $!
echo "killed $?"
sleep 30 &
kill -KILL $!
wait $! 2>/dev/null
echo "killed $?"
wait 99999 2>/dev/null
echo "stranger $?"
(sleep 0.1; exit 5) &
(sleep 0.2; exit 6) &
wait
echo "all $?"
(sleep 0.1; echo inner >result) &
[ -e result ] || echo "not yet"
wait
cat result
set -m
sleep 30 &
kill -STOP $!
sleep 0.2
kill -CONT $!
kill -TERM $!
sleep 0.1 # a shell that has not seen the job's end yet would still call it stopped
wait $! 2>/dev/null
echo "stopped, continued, ended $?"
sh -c 'kill -STOP $$; echo continued' &
sleep 0.3
kill -CONT $!
wait
set +m
timeout 0.2 sleep 10
echo "timeout $?"
nohup echo no hangup 2>/dev/null
(trap '' TERM; sleep 0.3) &
sleep 0.1
kill $!
wait $!
echo "ignored $?"
