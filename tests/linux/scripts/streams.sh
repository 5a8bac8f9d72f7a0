# Linux programs and native tasks talk by streams (tests/systems/linux-services.toml).
# Each line of output is compared.
as_nobody() { su nobody -s /bin/sh -c "$1"; }

# A service is opened as a file.
exec 3<>/srv/shout
echo 'good morning' >&3
read -r answer <&3
echo "$answer"
exec 3<&-
as_nobody 'exec 3<>/srv/shout; echo "from $(id -un)" >&3; read -r answer <&3; echo "$answer"'

# As a socket; poll works. A program that does not read stops nobody but itself.
cat >/tmp/streams.py <<'END'
import select, socket, sys

def shout():
    one = socket.socket(socket.AF_UNIX)
    one.connect("/srv/shout")
    return one

lazy, busy = shout(), shout()
lazy.setblocking(False)
poll = select.poll()
poll.register(lazy, select.POLLOUT)
sent = 0
while poll.poll(300):
    sent += lazy.send(b"x" * 4096)
print("the one that does not read is stopped:", sent > 100000)
for size in (1, 479, 480, 481, 5000, 50000):
    text = (b"abcdefghij" * 5000)[:size]
    busy.sendall(text)
    back = b""
    while len(back) < size:
        back += busy.recv(size)
    assert back == text.upper(), size
print("the other goes on")
busy.shutdown(socket.SHUT_WR)
print("the end:", busy.recv(1))
poll.register(lazy, select.POLLIN)
got = 0
lazy.setblocking(True)
while got < sent:
    got += len(lazy.recv(65536))
print("nothing is lost:", got == sent)
END
python3 /tmp/streams.py

# A native task finds a program's socket, as far as the description of the task `unix` says.
cat >/tmp/desk.py <<'END'
import os, socket, struct
desk = socket.socket(socket.AF_UNIX)
desk.bind("/run/desk")
desk.listen()
one, _ = desk.accept()
print("the desk hears:", one.makefile().readline().strip())
print("of user", struct.unpack("3i", one.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1])
one.sendall(b"good day to you\n")
one.close()
END
baton start stranger
baton wait stranger
python3 /tmp/desk.py &
baton start visit
wait
baton wait visit

# The service ends: so do its streams. It is started again, and found again.
exec 3<>/srv/shout
baton kill shout
read -r answer <&3 || echo 'the end'
exec 3<&-
sleep 1
exec 3<>/srv/shout
echo 'again' >&3
read -r answer <&3
echo "$answer"
echo streams work
