# Debian's bubblewrap: a root directory of one's own, in namespaces of one's own.
# The root directory of the first file system cannot be exchanged; one that is mounted on it can.
if [ -z "$mounted" ]; then
    mkdir -p /root-of-test
    mounted=0 unshare -m sh "$0"
    rm -r /root-of-test
    exit
elif [ "$mounted" = 0 ]; then
    mount --rbind / /root-of-test
    cd /root-of-test && mount --move /root-of-test / && mounted=1 exec chroot . sh "$0"
fi
cp /etc/passwd /tmp/passwd
echo user:x:1000:1000::/tmp:/bin/sh >> /etc/passwd
as_user() { su user -s /bin/sh -c "$1"; }

echo "== root"
bwrap --ro-bind / / --unshare-pid --proc /proc --dev /dev sh -c 'id; echo /proc/[0-9]*; touch /x; echo name > /proc/sys/kernel/hostname; ls /dev'
echo "status $?"
echo "== a user"
as_user 'bwrap --ro-bind / / --unshare-pid --proc /proc --dev /dev sh -c "id; touch /x; cat /proc/self/uid_map; cat /proc/1/comm"'
echo "== all of it, in memory"
as_user 'bwrap --unshare-user --unshare-ipc --unshare-uts --unshare-pid --hostname box --uid 0 --gid 0 --tmpfs / --ro-bind /bin /bin --ro-bind-try /lib /lib --ro-bind-try /lib64 /lib64 --proc /proc --dev /dev --tmpfs /tmp --dir /var --symlink usr/x /y --die-with-parent --new-session sh -c "hostname; id; ls -a /; readlink /y; echo text > /tmp/a; cat /tmp/a; cut -d \" \" -f 2 /proc/mounts"'
echo "== refused"
as_user 'bwrap --bind /root /nowhere/file true; bwrap --ro-bind / / nobody-has-this'
echo "status $?"
cat /tmp/passwd > /etc/passwd
rm /tmp/passwd
