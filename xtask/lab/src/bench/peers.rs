//! The peers' recorded figures: counted on the same emulator with the same flags
//! (QEMU 7.2, one processor, icount), or published where it says so.

use super::row::{RECORDED, Row};

/// System, row, figure, remark.
type Record = (&'static str, &'static str, f64, &'static str);

/// Counted as Baton's own figures are: user to user between spaces, kernel
/// instructions only for one way and for round trips of the microkernels, all
/// instructions for Linux.
const COUNTED: &[Record] = &[
    ("pistachio", "ipc/short-cross-kernel", 79.0, "assembly fast path"),
    ("pistachio", "ipc/short-local-kernel", 78.0, "its Lipc enters the kernel too: 83"),
    ("pistachio", "ipc/63-words-cross-kernel", 146.0, "90 + 1 per word past 8"),
    ("pistachio", "lipc/armed-kernel", 83.0, "its Lipc, always by the kernel"),
    ("pistachio", "rpc/round-trip", 158.0, "kernel instructions of both ways"),
    ("pistachio", "ops/thread-switch-self", 80.0, ""),
    ("pistachio", "ops/timer-tick", 98.0, ""),
    (
        "sel4",
        "ipc/short-cross-kernel",
        215.0,
        "fast path, no Meltdown mitigation; call 189, reply 215",
    ),
    (
        "sel4",
        "rpc/round-trip",
        404.0,
        "424 with the mitigation, its default; 1,458 without the fast path",
    ),
    ("sel4", "rpc/4-words", 446.0, ""),
    ("sel4", "rpc/5-words", 1573.0, "leaves the fast path"),
    ("sel4", "rpc/120-words", 2723.0, ""),
    (
        "l4re",
        "ipc/short-cross-kernel",
        613.0,
        "published, retired instructions on an Intel N100: 587 to 613",
    ),
    ("l4re", "ipc/short-local-kernel", 557.0, "published: 543 to 557"),
    ("l4re", "ops/invalid-call", 147.0, "published: an empty system call"),
];

/// All recorded figures as rows of `suite`, for names that begin with `prefix`.
#[must_use]
pub fn rows(suite: &str, prefix: &str) -> Vec<Row> {
    let wanted = COUNTED.iter().filter(|(_, name, ..)| name.starts_with(prefix));
    wanted
        .map(|(system, name, value, remark)| {
            let row = Row::baton(suite, name, *value).of(system, RECORDED);
            if remark.is_empty() { row } else { row.with("remark", *remark) }
        })
        .collect()
}

/// The figure that Baton's row is compared with: the best of the peers'.
#[must_use]
pub fn best(rows: &[Row], of: &Row) -> Option<Row> {
    let same = rows.iter().filter(|row| {
        row.name == of.name && row.unit == of.unit && row.system != of.system && agree(row, of)
    });
    same.min_by(|a, b| a.value.total_cmp(&b.value)).cloned()
}

/// Whether the two rows were measured under the same circumstances: a recorded figure
/// may leave some out.
fn agree(peer: &Row, of: &Row) -> bool {
    let (theirs, ours) = (comparable(peer), comparable(of));
    let contained = theirs.iter().all(|parameter| ours.contains(parameter));
    contained && (peer.method == RECORDED || theirs.len() == ours.len())
}

/// Parameters that have to agree for two rows to be the same measurement.
fn comparable(row: &Row) -> Vec<(&String, &serde_json::Value)> {
    row.parameters.iter().filter(|(key, value)| value.is_u64() || *key == "program").collect()
}

#[cfg(test)]
mod tests {
    use super::super::row::TICKS;
    use super::*;

    #[test]
    fn the_best_peer_is_found() {
        let all = rows("rpc", "ipc/short-cross");
        let ours = Row::baton("ipc", "ipc/short-cross-kernel", 35.0).with("call", 34);
        assert_eq!(best(&all, &ours).unwrap().system, "pistachio");
        assert!(best(&all, &Row::baton("ops", "ops/unmap", 1.0)).is_none());
        let of = |bytes: u64| Row::baton("ablation", "ablation/x", 1.0).with("bytes", bytes);
        let paper = [of(8).of("paper", RECORDED), of(12).of("paper", RECORDED)];
        assert_eq!(best(&paper, &of(12)).unwrap().parameter("bytes"), Some(12));
        assert!(best(&paper, &of(128)).is_none());
        let exec = Row::baton("linux", "linux/exec", 2.0);
        let busybox = exec.clone().with("program", "busybox");
        let theirs = [exec.clone().of("linux", TICKS), busybox.clone().of("linux", TICKS)];
        assert_eq!(best(&theirs, &busybox).unwrap().parameters, busybox.parameters);
        assert_eq!(best(&theirs, &exec).unwrap().parameters, exec.parameters);
    }
}
