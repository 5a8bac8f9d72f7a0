//! Keys and keyrings.

use linux_raw_sys::{errno, general as l};

use crate::common::World;
use crate::common::caller::{Program, error};

const THREAD: u64 = -1_i64 as u64;
const PROCESS: u64 = -2_i64 as u64;
const SESSION: u64 = -3_i64 as u64;
const USER: u64 = -4_i64 as u64;

fn add(program: &Program<'_>, kind: &str, name: &str, bytes: &[u8], ring: u64) -> i64 {
    let [kind, name] = [kind, name].map(|text| program.world.text(&program.thread, text));
    let at = program.world.put(&program.thread, bytes);
    program.call(l::__NR_add_key, &[kind, name, at, bytes.len() as u64, ring])
}

fn request(program: &Program<'_>, kind: &str, name: &str, info: u64, ring: u64) -> i64 {
    let [kind, name] = [kind, name].map(|text| program.world.text(&program.thread, text));
    program.call(l::__NR_request_key, &[kind, name, info, ring])
}

fn control(program: &Program<'_>, arguments: &[u64]) -> i64 {
    program.call(l::__NR_keyctl, arguments)
}

fn contents(program: &Program<'_>, key: i64) -> Result<Vec<u8>, i64> {
    let len = control(program, &[11, key as u64, program.buffer, 4096]);
    if len < 0 {
        return Err(len);
    }
    Ok(program.world.read(&program.thread, program.buffer, len as usize))
}

#[test]
fn keys_are_found_where_they_were_put() {
    let world = World::new();
    let root = Program::new(&world, &world.first);
    let key = add(&root, "user", "name", b"secret", SESSION);
    assert!(key > 0, "{key}");
    assert_eq!(contents(&root, key), Ok(b"secret".to_vec()));
    assert_eq!(add(&root, "user", "name", b"other", SESSION), key, "the same key, changed");
    assert_eq!(contents(&root, key), Ok(b"other".to_vec()));
    assert_eq!(request(&root, "user", "name", 0, 0), key);
    assert_eq!(request(&root, "user", "nobody", 0, 0), error(errno::ENOKEY));
    assert_eq!(request(&root, "nothing", "name", 0, 0), error(errno::ENODEV));
    assert_eq!(request(&root, ".own", "name", 0, 0), error(errno::EPERM));
    let logon = add(&root, "logon", "a:b", b"secret", SESSION);
    assert_eq!(contents(&root, logon), Err(error(errno::EOPNOTSUPP)));
    assert_eq!(add(&root, "logon", "ab", b"secret", SESSION), error(errno::EINVAL));
    assert_eq!(add(&root, "keyring", "ring", b"x", SESSION), error(errno::EINVAL));
    // A buffer that is too small gets as many numbers as fit, and the whole length is told.
    let ring = contents(&root, SESSION as i64).expect("the session's keyring");
    assert_eq!(ring, [key, logon].map(|key| (key as i32).to_ne_bytes()).concat());
    world.write(&root.thread, root.buffer, &[9; 8]);
    assert_eq!(control(&root, &[11, SESSION, root.buffer, 4]), 8);
    assert_eq!(world.read(&root.thread, root.buffer + 4, 4), [9; 4]);
    // Children have the session's keys, not the process's; another user has none of them.
    let own = add(&root, "user", "own", b"x", PROCESS);
    let child = root.fork();
    assert_eq!(request(&child, "user", "name", 0, 0), key);
    assert_eq!(request(&child, "user", "own", 0, 0), error(errno::ENOKEY));
    assert_eq!(contents(&child, own), Err(error(errno::EACCES)));
    control(&child, &[1, 0]);
    child.lose_privileges();
    assert_eq!(contents(&child, key), Err(error(errno::EACCES)));
    assert_eq!(control(&child, &[3, key as u64]), error(errno::EACCES));
    assert_ne!(control(&child, &[0, USER, 1]), control(&root, &[0, USER, 1]));
    assert_eq!(control(&root, &[9, key as u64, SESSION]), 0);
    assert_eq!(contents(&root, key), Err(error(errno::ENOKEY)), "nobody holds it");
}

#[test]
fn keys_end() {
    let world = World::new();
    let root = Program::new(&world, &world.first);
    let revoked = add(&root, "user", "revoked", b"x", THREAD);
    let expired = add(&root, "user", "expired", b"x", THREAD);
    assert_eq!(control(&root, &[3, revoked as u64]), 0);
    assert_eq!(control(&root, &[15, expired as u64, 1]), 0);
    world.advance(2_000_000_000);
    assert_eq!(contents(&root, revoked), Err(error(errno::EKEYREVOKED)));
    assert_eq!(contents(&root, expired), Err(error(errno::EKEYEXPIRED)));
    assert_eq!(request(&root, "user", "revoked", 0, 0), error(errno::EKEYREVOKED));
    assert_eq!(request(&root, "user", "expired", 0, 0), error(errno::EKEYEXPIRED));
    // With the process's end, the process's keyring goes, and what is in it.
    let child = root.fork();
    let key = add(&child, "user", "own", b"x", PROCESS);
    world.call(&child.thread, l::__NR_exit_group, &[0]);
    assert_eq!(contents(&root, key), Err(error(errno::ENOKEY)));
    assert_eq!(control(&root, &[1, world.text(&root.thread, ".builtin")]), error(errno::EPERM));
}

#[test]
fn keyrings_hold_no_circles() {
    let world = World::new();
    let root = Program::new(&world, &world.first);
    let outer = add(&root, "keyring", "outer", b"", SESSION) as u64;
    let inner = add(&root, "keyring", "inner", b"", outer) as u64;
    assert_eq!(control(&root, &[8, outer, inner]), error(errno::EDEADLK));
    assert_eq!(control(&root, &[8, outer, outer]), error(errno::EDEADLK));
    // Without the right to write to the session's keyring, nothing can be made for it.
    control(&root, &[1, 0]);
    assert_eq!(control(&root, &[5, SESSION, 0x0B00_0000]), 0);
    assert_eq!(control(&root, &[14, 3]), 0);
    let info = world.text(&root.thread, "info");
    assert_eq!(request(&root, "user", "name", info, 0), error(errno::EACCES));
    // A long chain of keyrings comes to its end without a stack for each.
    control(&root, &[1, 0]);
    let new = |name: &str| {
        let ring = add(&root, "keyring", name, b"", SESSION) as u64;
        assert_eq!(control(&root, &[5, ring, 0x3F3F_0000]), 0);
        ring
    };
    let mut end = new("first");
    for number in 0..3000 {
        let next = new(&format!("{number}"));
        assert_eq!(control(&root, &[8, next, end]), 0);
        assert_eq!(control(&root, &[9, next, SESSION]), 0);
        end = next;
    }
    assert_eq!(contents(&root, end as i64), Ok(Vec::new()));
    assert_eq!(control(&root, &[7, SESSION]), 0);
    assert_eq!(contents(&root, end as i64), Err(error(errno::ENOKEY)));
}

/// Keyrings in keyrings in keyrings: each is looked at once, not once for each way to it.
#[test]
fn many_ways_lead_to_a_keyring() {
    let world = World::new();
    let root = Program::new(&world, &world.first);
    root.lose_privileges();
    let ring = |layer: usize, number: usize| {
        let ring = add(&root, "keyring", &format!("{layer}.{number}"), b"", SESSION);
        assert!(ring > 0, "{ring}");
        ring as u64
    };
    let layers: Vec<Vec<u64>> =
        (0..7).map(|layer| (0..40).map(|number| ring(layer, number)).collect()).collect();
    for (above, below) in layers.iter().zip(&layers[1..]) {
        for (outer, inner) in above.iter().flat_map(|one| below.iter().map(move |two| (*one, *two)))
        {
            assert_eq!(control(&root, &[8, inner, outer]), 0);
        }
    }
    let names = ["user", "none"].map(|text| world.text(&root.thread, text));
    let search = |ring: u64| control(&root, &[10, ring, names[0], names[1], 0]);
    assert_eq!(search(layers[0][0]), error(errno::ENOKEY));
    // Six levels below the one that is searched, and not seven.
    let key = add(&root, "user", "none", b"x", layers[6][39]);
    assert_eq!(search(layers[0][0]), key);
    let deeper = ring(7, 0);
    assert_eq!(control(&root, &[8, deeper, layers[6][0]]), 0);
    assert_eq!(control(&root, &[9, key as u64, layers[6][39]]), 0);
    let key = add(&root, "user", "none", b"x", deeper);
    assert_eq!(search(layers[0][0]), error(errno::ENOKEY));
    assert_eq!(search(layers[1][0]), key);
    // Circles are looked for in the same way.
    assert_eq!(control(&root, &[8, layers[1][0], deeper]), error(errno::EDEADLK));
    let outer = ring(8, 0);
    assert_eq!(control(&root, &[8, layers[0][0], outer]), error(errno::ELOOP));
    assert_eq!(control(&root, &[8, layers[1][0], outer]), 0);
}
