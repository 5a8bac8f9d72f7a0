# What Python's own tests of os, subprocess, threading, signal, socket and select
# look at, in short: every line printed is the same on every run.
import errno, os, select, signal, socket, stat, subprocess, sys, tempfile, threading, time


def check(name, function, *args):
    try:
        print(name, function(*args))
    except OSError as error:
        print(name, errno.errorcode.get(error.errno, error.errno))


def files():
    with open("file", "w") as file:
        file.write("line\n" * 1000)
    check("size", os.path.getsize, "file")
    check("missing", os.stat, "missing")
    check("not a directory", os.listdir, "file")
    os.makedirs("a/b/c")
    check("exists", os.mkdir, "a")
    for name in ("x", "y", "\u00fcmlaut"):
        open(os.path.join("a", "b", name), "w").close()
    for top, folders, names in sorted(os.walk("a")):
        print("walk", top, sorted(folders), [ascii(name) for name in sorted(names)])
    with os.scandir("a/b") as entries:
        print("scan", sorted((ascii(e.name), e.is_dir(), e.is_file()) for e in entries))
    os.symlink("../file", "a/link")
    print("link", os.readlink("a/link"), os.path.islink("a/link"), os.path.realpath("a/link")[-5:])
    os.link("file", "hard")
    print("links", os.stat("file").st_nlink)
    os.chmod("file", 0o640)
    print("mode", stat.filemode(os.stat("file").st_mode))
    os.utime("file", ns=(1_000_000_007, 2_000_000_009))
    print("times", os.stat("file").st_atime_ns, os.stat("file").st_mtime_ns)
    os.rename("hard", "a/b/c/moved")
    os.replace("a/b/x", "a/b/y")
    check("rename", os.rename, "missing", "x")
    check("not empty", os.rmdir, "a")
    os.truncate("file", 10)
    with open("file", "rb") as file:
        print("read", file.read(), file.tell(), file.seek(-3, 2))
    descriptor = os.open("file", os.O_RDWR | os.O_APPEND)
    print("write", os.write(descriptor, b"end"), os.pread(descriptor, 4, 9), os.lseek(descriptor, 0, 1))
    print("vectors", os.writev(descriptor, [b"a", b"bc"]), os.fstat(descriptor).st_size)
    os.close(descriptor)
    check("closed", os.close, descriptor)
    with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile(dir=folder) as file:
        print("temporary", os.path.exists(file.name))
    check("access", os.access, "file", os.R_OK | os.W_OK)
    print("statvfs", os.statvfs(".").f_namemax)
    check("long name", open, "n" * 300)
    os.environb[b"BYTES"] = b"\xff"
    print("environment", os.environ["BYTES"].encode("utf-8", "surrogateescape"))


def processes():
    result = subprocess.run(["cat"], input=b"through a pipe", capture_output=True)
    print("run", result.returncode, result.stdout)
    result = subprocess.run("echo out; echo err >&2; exit 3", shell=True, capture_output=True, text=True)
    print("shell", result.returncode, result.stdout.strip(), result.stderr.strip())
    try:
        subprocess.run(["missing-program"])
    except FileNotFoundError as error:
        print("missing", error.errno == errno.ENOENT)
    try:
        subprocess.run(["sleep", "10"], timeout=0.2)
    except subprocess.TimeoutExpired:
        print("timeout")
    child = subprocess.Popen(["sleep", "10"])
    child.terminate()
    print("terminated", child.wait())
    pid = os.fork()
    if pid == 0:
        os._exit(17)
    print("fork", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    print("spawn", os.spawnvp(os.P_WAIT, "sh", ["sh", "-c", "exit 4"]), os.system("exit 5") >> 8)
    one = subprocess.Popen(["seq", "1", "1000"], stdout=subprocess.PIPE)
    two = subprocess.Popen(["wc", "-l"], stdin=one.stdout, stdout=subprocess.PIPE)
    print("pipeline", two.communicate()[0].strip())
    result = subprocess.run([sys.executable, "-c", "import sys; print(sys.argv)", "a b"], capture_output=True)
    print("python", result.stdout)
    print("big", len(subprocess.run(["seq", "1", "50000"], capture_output=True).stdout))
    print("environment", subprocess.run(["sh", "-c", "echo $X"], env={"X": "1"}, capture_output=True).stdout)


def threads():
    total, lock, done = [0], threading.Lock(), threading.Barrier(8)

    def work():
        for _ in range(1000):
            with lock:
                total[0] += 1
        done.wait()

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print("threads", total[0])
    event, queue = threading.Event(), []
    waiter = threading.Thread(target=lambda: queue.append(event.wait(5)))
    waiter.start()
    event.set()
    waiter.join()
    print("event", queue, threading.Event().wait(0.05), threading.active_count())
    timer = threading.Timer(0.05, queue.append, ["timer"])
    timer.start()
    timer.join()
    print(queue)


def signals():
    seen = []
    signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
    os.kill(os.getpid(), signal.SIGUSR1)
    print("signal", seen == [signal.SIGUSR1])
    signal.signal(signal.SIGALRM, lambda number, frame: seen.append("alarm"))
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    signal.pause()
    print("alarm", seen[1:])
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    os.kill(os.getpid(), signal.SIGUSR2)
    print("pending", signal.SIGUSR2 in signal.sigpending(), signal.sigwait([signal.SIGUSR2]) == signal.SIGUSR2)
    start = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    time.sleep(0.2)
    print("sleep goes on", time.monotonic() - start >= 0.2)


def sockets():
    one, two = socket.socketpair()
    one.sendall(b"x" * 100000) if False else one.send(b"pair")
    print("pair", two.recv(10))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        server.listen()

        def serve():
            connection, _ = server.accept()
            with connection:
                while data := connection.recv(4096):
                    connection.sendall(data.upper())

        server_thread = threading.Thread(target=serve)
        server_thread.start()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect("socket")
            client.sendall(b"hello")
            print("server", client.recv(100))
        server_thread.join()
    two.setblocking(False)
    check("nothing there", two.recv, 1)
    print("select", [len(ready) for ready in select.select([two], [two], [], 0)])
    poll = select.poll()
    poll.register(two, select.POLLIN)
    one.close()
    print("poll", [event for _, event in poll.poll(1000)], two.recv(1))
    with select.epoll() as epoll:
        reader, writer = os.pipe()
        epoll.register(reader, select.EPOLLIN)
        print("epoll", epoll.poll(0.01))
        os.write(writer, b"x")
        print("epoll", [event for _, event in epoll.poll(1)])
    check("no such socket", socket.socket(socket.AF_UNIX).connect, "nowhere")


def rest():
    print("random", len(os.urandom(100)), os.urandom(16) != os.urandom(16))
    print("times", time.time() > 0, time.monotonic() > 0, time.process_time() > 0, os.times().user >= 0)
    print("terminal", os.isatty(0), os.ttyname(os.openpty()[1]).startswith("/dev/pts/"))
    print("processors", os.cpu_count(), len(os.sched_getaffinity(0)))
    print("names", os.uname().sysname, os.uname().machine, os.getuid(), os.umask(0o22))
    check("load", lambda: len(os.getloadavg()))
    print("large", sum(range(1_000_000)), len(bytes(50_000_000)))
    try:
        sys.setrecursionlimit(1000)
        (lambda f: f(f))(lambda f: f(f))
    except RecursionError:
        print("recursion")
    import datetime, hashlib, pathlib, random, re, struct, zipfile
    print("modules", hashlib.sha256(b"x").hexdigest()[:8], struct.calcsize("qih"), random.Random(7).random())


os.chdir(tempfile.mkdtemp(dir="."))
for part in (files, processes, threads, signals, sockets, rest):
    print("==", part.__name__, flush=True)
    part()
    sys.stdout.flush()
