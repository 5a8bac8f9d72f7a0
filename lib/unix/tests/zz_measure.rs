mod common;
#[path = "common/caller.rs"]
mod program;
use common::World;
use linux_raw_sys::general as linux;
use program::Program;

#[inline(never)]
fn measured(world: &World, program: &Program, number: u32, arguments: [u64; 6]) {
    std::hint::black_box(world.unix.system_call(&program.thread, number, arguments));
}
#[test]
fn measure() {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    program.mkdir("/tmp/dir");
    program.make("/tmp/dir/file", &[1; 65536]);
    let fd = program.opened("/tmp/dir/file", linux::O_RDWR);
    let buffer = (program.buffer + 4095) & !4095;
    let a = |a: &[u64]| { let mut s = [0; 6]; s[..a.len()].copy_from_slice(a); s };
    let (number, args) = match std::env::var("M").unwrap().as_str() {
        "getppid" => (linux::__NR_getppid, a(&[])),
        "read4k" => (linux::__NR_pread64, a(&[fd, buffer, 4096, 4096])),
        "read1" => (linux::__NR_pread64, a(&[fd, buffer, 1, 4096])),
        "write1" => (linux::__NR_pwrite64, a(&[fd, buffer, 1, 4096])),
        "write4k" => (linux::__NR_pwrite64, a(&[fd, buffer, 4096, 4096])),
        "stat" => (linux::__NR_stat, a(&[program.path(0, b"/tmp/dir/file"), buffer])),
        "fstat" => (linux::__NR_fstat, a(&[fd, buffer])),
        "open" => (linux::__NR_open, a(&[program.path(0, b"/tmp/dir/file"), 0])),
        "close" => { program.open("/tmp/dir/file", 0, 0); (linux::__NR_close, a(&[fd + 1])) }
        "access" => (linux::__NR_access, a(&[program.path(0, b"/tmp/dir/none"), 0])),
        "getdents" => { let d = program.opened("/tmp", 0); (linux::__NR_getdents64, a(&[d, buffer, 4096])) }
        _ => panic!(),
    };
    if number != linux::__NR_close && number != linux::__NR_getdents64 {
        for _ in 0..3 { world.unix.system_call(&program.thread, number, args); }
    }
    measured(&world, &program, number, args);
}
