# Traps: signals to the shell, the end, subshells, what is reset.
trap 'echo "caught USR1"' USR1
kill -USR1 $$
trap 'echo "caught TERM"; seen=1' TERM
kill -TERM $$
echo "seen $seen"
trap '' INT
kill -INT $$
echo "INT ignored"
trap - TERM
(trap 'echo "subshell ends"' EXIT; echo "in subshell")
(kill -USR1 $$; sleep 0.1) &
wait $!
echo "waited"
(sleep 0.2; kill -USR1 $$) &
sleep 0.5
wait
sh -c 'trap "echo bye; exit 4" TERM; kill -TERM $$; echo never'
echo "status $?"
sh -c 'trap "echo at the end" EXIT; exit 3'
echo "status $?"
sh -c 'kill -TERM $$; echo never'
echo "status $?"
sh -c 'kill -SEGV $$' 2>/dev/null
echo "status $?"
(
    trap 'echo "HUP in the loop"; exit 6' HUP
    (sleep 0.2; kill -HUP "$(cat pid)") &
    sh -c 'echo $PPID' >pid
    while :; do sleep 0.05; done
)
echo "status $?"
trap 'echo "the shell ends with $?"' EXIT
exit 7
