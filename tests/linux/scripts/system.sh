# What a shell user asks about the system.
uname -s
uname -m
hostname
id
whoami
pwd | grep -o '/case$'
tty
nproc
ps >list && grep -c ps list
grep -c . /proc/mounts >/dev/null && echo mounts
free >/dev/null && echo free
uptime >/dev/null && echo uptime
df /tmp >/dev/null && echo df
cat /proc/self/comm
stat -c '%a %U %G %F' /tmp /dev/null /etc/passwd
umask
ulimit -n >/dev/null && echo ulimit
env -i A=1 env
kill -l | grep -c TERM
which sh
readlink -f /bin/../bin/sh
realpath .. | grep -c tmp
mktemp /tmp/x.XXXXXX | wc -c
touch -d @1000000 stamped && stat -c %Y stamped
truncate -s 1000 sparse && stat -c %s sparse
dd if=/dev/urandom of=random bs=1000 count=3 2>/dev/null; stat -c %s random
test -c /dev/null && test -d /proc && test ! -e /nowhere && echo tests
sleep 0.01 && echo slept
usleep 1000 && echo slept
setsid sh -c 'echo own session'
find /proc/self/fd -type l 2>/dev/null | wc -l >/dev/null && echo descriptors
cp /bin/bash copy && ./copy -c 'echo a copy runs' && rm copy
printf '#!/bin/bash\necho by bash $1\n' >script; chmod +x script; ./script word
printf 'echo without a first line\n' >plain; chmod +x plain; ./plain
./missing; echo "status $?"
/tmp; echo "status $?"
chmod -x script; ./script; echo "status $?"
mkdir locked; chmod 0 locked; ls locked; echo "status $?"
chroot . /x 2>/dev/null; echo "status $?"
