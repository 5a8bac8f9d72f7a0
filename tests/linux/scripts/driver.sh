# Runs the cases of /test/plan, one line each: a name, and a line for the shell.
# Marks where each begins and how it ends; control characters become visible, so
# that every byte arrives. Each case has an empty directory of its own. It does not
# end: who reads the console stops the machine once the last mark has arrived, since
# a machine that stops itself takes along what its serial line still holds.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=vt100 LC_ALL=C
export PYTHONDONTWRITEBYTECODE=1
umask 022
while read -r name run; do
    echo "@@ case $name"
    mkdir -p /tmp/case
    cd /tmp/case
    {
        sh -c "$run" </dev/null 2>&1
        echo $? >/tmp/status
    } | cat -v
    read -r status </tmp/status
    cd /
    rm -rf /tmp/case /tmp/status
    echo
    echo "@@ exit $name $status"
done </test/plan
read -r the_machine_is_stopped
