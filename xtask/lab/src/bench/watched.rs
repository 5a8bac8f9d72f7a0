//! What the gate watches.

/// A row of a series: its name, a parameter, and the parameter's value.
pub type Point = (&'static str, &'static str, u64);

/// What is watched: its name, and the series of which the worst counts.
pub const WATCHED: [(&str, &[Point]); 24] = [
    (
        "ipc/short-cross-kernel",
        &[("ipc/words-cross-call", "words", 0), ("ipc/words-cross-reply", "words", 0)],
    ),
    (
        "ipc/short-local-kernel",
        &[("ipc/words-local-call", "words", 0), ("ipc/words-local-reply", "words", 0)],
    ),
    (
        "ipc/short-cross-kernel-complete",
        &[("ipc/complete-cross-call", "words", 0), ("ipc/complete-cross-reply", "words", 0)],
    ),
    (
        "ipc/short-cross-kernel-vector",
        &[("ipc/vector-dead-cross-call", "words", 0), ("ipc/vector-dead-cross-reply", "words", 0)],
    ),
    (
        "ipc/short-cross-kernel-x2-vector",
        &[("ipc/vector-kept-cross-call", "words", 0), ("ipc/vector-kept-cross-reply", "words", 0)],
    ),
    (
        "ipc/63-words-cross-kernel",
        &[("ipc/words-cross-call", "words", 63), ("ipc/words-cross-reply", "words", 63)],
    ),
    (
        "ipc/63-words-local-kernel",
        &[("ipc/words-local-call", "words", 63), ("ipc/words-local-reply", "words", 63)],
    ),
    ("lipc/one-way-user", &[("lipc/call", "words", 0), ("lipc/reply", "words", 0)]),
    ("lipc/one-way-kernel", &[("lipc/call", "words", 0), ("lipc/reply", "words", 0)]),
    (
        "lipc/armed-kernel",
        &[("lipc/armed-local-call", "words", 0), ("lipc/armed-local-reply", "words", 0)],
    ),
    (
        "lipc/armed-kernel-vector",
        &[("lipc/armed-vector-call", "words", 0), ("lipc/armed-vector-reply", "words", 0)],
    ),
    (
        "lipc/one-way-user-vector",
        &[("lipc/vector-call", "words", 0), ("lipc/vector-reply", "words", 0)],
    ),
    ("lipc/section-user", &[("lipc/section", "", 0)]),
    ("lrpc/null-call-kernel", &[("lrpc/null-call", "", 0)]),
    ("lrpc/null-return-kernel", &[("lrpc/null-return", "", 0)]),
    ("ipc/string-4096-kernel", &[("ipc/string-cross", "bytes", 4096)]),
    ("ipc/string-4096-kernel-unaligned", &[("ipc/string-cross-unaligned", "bytes", 4096)]),
    ("ops/page-fault", &[("ops/page-fault", "", 0)]),
    ("ops/exception", &[("ops/exception", "", 0)]),
    ("ops/interrupt", &[("ops/interrupt", "", 0)]),
    ("ops/timer-tick", &[("ops/timer-tick", "", 0)]),
    ("ops/thread-switch-self", &[("ops/thread-switch-self", "", 0)]),
    ("ops/thread-create", &[("ops/thread-create", "", 0)]),
    ("ops/thread-delete", &[("ops/thread-delete", "", 0)]),
];

/// What is watched of several processors: a short message on one that is not the first, and how many lines of the
/// kernel's are shared meanwhile.
pub const SHORT_THERE: &str = "smp/short-cross-kernel";
/// See [`SHORT_THERE`].
pub const SHARED_LINES: &str = "smp/shared-lines";

/// What is watched of Linux' programs: all instructions, the program's and the server's too.
pub const WATCHED_OF_LINUX: [&str; 3] =
    ["linux/getppid", "linux/getppid-vector", "linux/invalid-call"];
