//! Finds the shortest failure: of a long list of random operations that goes wrong, the
//! few that are to blame (delta debugging, Zeller and Hildebrandt 2002: leave out pieces
//! as long as it still fails).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Runs `operations` on a thread of its own, which gets a machine of its own; a panic is
/// a failure, too.
fn failure<T: Send + 'static>(
    operations: Vec<T>,
    run: &Arc<impl Fn(&[T]) -> Result<(), String> + Send + Sync + 'static>,
) -> Option<String> {
    let run = run.clone();
    let attempt = std::thread::spawn(move || {
        let result = catch_unwind(AssertUnwindSafe(|| run(&operations)));
        result.unwrap_or_else(|why| Err(sentence(why.as_ref())))
    });
    attempt.join().expect("panics are caught").err()
}

/// What a panic said.
fn sentence(why: &(dyn std::any::Any + Send)) -> String {
    let text = why.downcast_ref::<String>().map(String::as_str);
    text.or(why.downcast_ref::<&str>().copied()).unwrap_or("a panic without a word").to_owned()
}

/// If `run` fails on all `operations`: as few of them as suffice for that, and what it says
/// about those. Every operation left is needed: without it the rest does not fail.
pub fn shortest_failure<T: Clone + Send + 'static>(
    operations: Vec<T>,
    run: impl Fn(&[T]) -> Result<(), String> + Send + Sync + 'static,
) -> Option<(Vec<T>, String)> {
    let run = Arc::new(run);
    let mut why = failure(operations.clone(), &run)?;
    let mut kept = operations;
    let mut piece = kept.len().div_ceil(2);
    loop {
        let before = kept.len();
        let mut at = 0;
        while at < kept.len() {
            let end = (at + piece).min(kept.len());
            let rest = [&kept[..at], &kept[end..]].concat();
            match failure(rest.clone(), &run) {
                Some(sentence) => (kept, why) = (rest, sentence),
                None => at = end,
            }
        }
        if piece > 1 {
            piece = piece.div_ceil(2);
        } else if kept.len() == before {
            return Some((kept, why));
        }
    }
}
