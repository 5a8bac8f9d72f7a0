# Namespaces of process numbers, by programs of util-linux and busybox.
unshare -pf sh -c 'echo init is $$ of $PPID; sh -c "echo child is \$\$ of \$PPID"; exit 7'
echo $?
unshare -pf --mount-proc sh -c 'echo /proc/[0-9]*; readlink /proc/self; grep -E "^(Pid|PPid|NSpid|NSpgid)" /proc/self/status | cut -f 1,2
    sleep 1000 & kill -9 1; echo survives; kill -0 $! && echo the child as well'
unshare -pf sh -c '(sleep 0.1; echo orphan of $(cut -d " " -f 4 /proc/self/stat | wc -l)) & (exit 3); wait'
unshare -pf sh -c 'unshare -pf sh -c "echo inner \$\$; grep -c . /proc/self/status >/dev/null; awk \"/^NSpid/ { print NF - 1 }\" /proc/self/status"; echo outer $$'
unshare -pf sh -c 'kill -TERM 1; kill -INT $$; echo still there'
# A guest.
unshare -pf sh -c 'read pid rest </proc/self/stat; echo $pid >target; sleep 0.5' &
sleep 0.2
nsenter -t $(cat target) -p sh -c 'echo guest is $$ of $PPID'
wait
echo all ended
