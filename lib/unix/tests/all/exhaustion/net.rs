//! Pipes and sockets, here and on the internet.

use super::*;

#[test]
fn pipes_and_what_is_in_them() {
    exhausts(|program, number| {
        let (_, to) = match two(program, l::__NR_pipe2, &[]) {
            Ok(ends) => ends,
            Err(error) => return error,
        };
        if number % 2 == 0 {
            let size = u64::from(l::F_SETPIPE_SZ);
            program.call(l::__NR_fcntl, &[to, size, 1 << 20]);
        }
        let nonblocking = u64::from(l::O_NONBLOCK);
        program.call(l::__NR_fcntl, &[to, l::F_SETFL.into(), nonblocking]);
        program.call(l::__NR_write, &[to, program.buffer, 100_000])
    });
}

#[test]
fn sockets_and_messages() {
    exhausts(|program, _| {
        let kind = u64::from(n::SOCK_DGRAM | l::O_NONBLOCK);
        let (from, _) = match two(program, l::__NR_socketpair, &[1, kind, 0]) {
            Ok(both) => both,
            Err(error) => return error,
        };
        let mut result = 0;
        for _ in 0..300 {
            let arguments = [from, program.buffer, 1, 0, 0, 0];
            result = program.call(l::__NR_sendto, &arguments);
            if result < 0 {
                break;
            }
        }
        // A full socket is no refusal.
        if result == -i64::from(unix::errno::Errno::EAGAIN.0) { 0 } else { result }
    });
}

#[test]
fn bound_sockets() {
    exhausts(|program, number| {
        let fd = program.call(l::__NR_socket, &[1, u64::from(n::SOCK_DGRAM), 0]);
        if fd < 0 {
            return fd;
        }
        let mut address = vec![1, 0, 0];
        address.extend(format!("{number:0100}").bytes());
        program.world.write(&program.thread, program.buffer, &address);
        let arguments = [fd as u64, program.buffer, address.len() as u64];
        program.call(l::__NR_bind, &arguments)
    });
}

/// The bytes of a `struct sockaddr_in` on the loopback.
fn internet(port: u16) -> [u8; 16] {
    let mut address = [0; 16];
    address[0] = n::AF_INET as u8;
    address[2..4].copy_from_slice(&port.to_be_bytes());
    address[4..8].copy_from_slice(&[127, 0, 0, 1]);
    address
}

/// A socket of the Internet, and what a call with an address says of it.
fn on_the_internet(program: &Program<'_>, kind: u32, number: u32, port: u16) -> (u64, i64) {
    let kind = u64::from(kind | l::O_NONBLOCK);
    let fd = program.call(l::__NR_socket, &[n::AF_INET.into(), kind, 0]);
    if fd < 0 {
        return (0, fd);
    }
    program.world.write(&program.thread, program.buffer, &internet(port));
    (fd as u64, program.call(number, &[fd as u64, program.buffer, 16]))
}

#[test]
fn sockets_of_the_internet_and_connections() {
    exhausts(|program, number| {
        let (listens, kind) = (number.is_multiple_of(5_000) || number == 1, number % 3);
        if listens {
            let (fd, _) = on_the_internet(program, n::SOCK_STREAM, l::__NR_bind, 8_080);
            program.call(l::__NR_listen, &[fd, 100_000]);
        }
        let (kind, call, port) = match kind {
            0 => (n::SOCK_DGRAM, l::__NR_bind, 0),
            1 => (n::SOCK_DGRAM, l::__NR_connect, 8_080),
            _ => (n::SOCK_STREAM, l::__NR_connect, 8_080),
        };
        let result = on_the_internet(program, kind, call, port).1;
        let in_progress = -i64::from(unix::errno::Errno::EINPROGRESS.0);
        if result == in_progress { 0 } else { result }
    });
}

#[test]
fn a_user_leaves_ports_to_others() {
    let world = World::with_frames(4 * FRAMES);
    let root = Program::new(&world, &world.first);
    raise_limits(&root);
    let user = root.fork();
    user.lose_privileges();
    let mut had = 0;
    while on_the_internet(&user, n::SOCK_DGRAM, l::__NR_bind, 0).1 == 0 {
        had += 1;
    }
    assert_eq!(had, u64::from(ANY_PORTS / 2));
    let taken = on_the_internet(&user, n::SOCK_DGRAM, l::__NR_bind, 60_999).1;
    assert_eq!(
        taken,
        -i64::from(unix::errno::Errno::EADDRINUSE.0),
        "a port of its choice counts, too"
    );
    assert_eq!(on_the_internet(&user, n::SOCK_DGRAM, l::__NR_bind, 8_080).1, 0);
    assert_eq!(on_the_internet(&root, n::SOCK_DGRAM, l::__NR_bind, 0).1, 0);
    world.call(&user.thread, l::__NR_exit_group, &[0]);
    assert_eq!(world.unix.accounts.user(USER).used(What::Ports), 0);
}
