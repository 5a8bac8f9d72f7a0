//! Times in classes that double: how long a server was missed.

use core::fmt;

/// Classes: the first up to [`FIRST_US`], each further one twice as far, the last open.
const CLASSES: usize = 12;
const FIRST_US: u64 = 500;

/// A histogram of times.
#[derive(Clone, Copy, Debug, Default)]
pub struct Histogram {
    classes: [u64; CLASSES],
    count: u64,
    sum_us: u64,
    longest_us: u64,
}

impl Histogram {
    /// Counts one time.
    pub fn add(&mut self, us: u64) {
        let class = (0..CLASSES - 1).find(|class| us <= FIRST_US << class).unwrap_or(CLASSES - 1);
        self.classes[class] += 1;
        self.count += 1;
        self.sum_us += us;
        self.longest_us = self.longest_us.max(us);
    }
}

impl fmt::Display for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} times, {} us on average, {} us at most;",
            self.count,
            self.sum_us / self.count.max(1),
            self.longest_us
        )?;
        for (class, count) in self.classes.iter().enumerate().filter(|(_, count)| **count != 0) {
            let limit = FIRST_US << class;
            match class {
                0..8 if class + 1 < CLASSES => write!(f, " <={limit}: {count}")?,
                _ if class + 1 < CLASSES => write!(f, " <={}k: {count}", limit / 1000)?,
                _ => write!(f, " more: {count}")?,
            }
        }
        Ok(())
    }
}
