# What Linux programs ask native services (systems/linux-services.toml).
# Each line of output is compared.
PATH=$PATH:/test/bin
as_nobody() { su nobody -s /bin/sh -c "$1"; }

ls -l /srv | sed -n 's/ .* / /; /own-service\|tasks/p'
pin milk 'and bread'
pin -r 1
pin -r 7
as_nobody 'PATH=$PATH:/test/bin; pin -r 0; baton tasks'

# The board is started again, and its clients go on with the next call.
baton kill own-service
sleep 1
pin -r 0
pin eggs

# Whoever is killed while it waits takes its call with it: there are eight who carry them.
i=0
while [ $i -lt 20 ]; do
    timeout -s KILL 0.02 baton wait unix
    i=$((i + 1))
done 2>/dev/null
baton tasks | sed -n 's/^\(own-service *[a-z]*\) .*/\1/p'

# Nine at once: one of them waits until another is done.
for i in 1 2 3 4 5 6 7 8; do
    timeout -s KILL 2 baton wait unix 2>/dev/null &
done
sleep 0.2
pin -r 0
wait
echo services work
