//! What the person at the terminal sees while something takes time: one moving
//! line per step on a terminal, one finished line per step anywhere.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// How often a spinner turns.
const TICK: Duration = Duration::from_millis(100);

/// The moving lines, one below the other while several steps go on at once.
static LINES: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// Prints `text` above the moving lines; lines that the terminal would cut in a word are broken
/// before it.
pub fn print(text: &str) {
    let text = wrapped(text, columns());
    LINES.suspend(|| println!("{text}"));
}

/// Says on standard error why a verb was not carried out.
pub fn complain(error: &anyhow::Error) {
    eprintln!("{}", wrapped(&format!("baton: {error:#}"), error_columns()));
}

/// What clap says of a command line that it refuses (or prints because it was asked to), and the
/// process's end.
pub fn refuse(error: &clap::Error) -> ! {
    let text = error.render().to_string();
    if error.use_stderr() && text.lines().any(|line| line.chars().count() > error_columns()) {
        eprint!("{}", wrapped(&text, error_columns()));
        std::process::exit(error.exit_code());
    }
    error.exit()
}

/// The width of the terminal on standard output; without one there is no limit.
#[must_use]
pub fn columns() -> usize {
    width(&console::Term::stdout())
}

fn error_columns() -> usize {
    width(&console::Term::stderr())
}

fn width(terminal: &console::Term) -> usize {
    let size = terminal.is_term().then(|| terminal.size_checked()).flatten();
    size.map_or(usize::MAX, |(_, columns)| usize::from(columns))
}

/// `text` with its lines broken between words where they are longer than `columns`; what goes on
/// is set in. A word that is longer than a line is left whole: it may be a path.
#[must_use]
pub fn wrapped(text: &str, columns: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            out.push('\n');
        }
        wrap_line(line, columns, &mut out);
    }
    out
}

fn wrap_line(line: &str, columns: usize, out: &mut String) {
    let indent = line.len() - line.trim_start().len() + 4;
    let mut rest = line.to_owned();
    while rest.chars().count() > columns {
        let end = rest.char_indices().nth(columns).map_or(rest.len(), |(at, _)| at);
        let begin = rest.len() - rest.trim_start().len();
        let space = |part: &str| part.rfind(' ').filter(|at| *at > begin);
        // In front of the border, else at the first place behind it.
        let behind = || rest[end..].find(' ').map(|at| end + at);
        let Some(at) = space(&rest[..=end.min(rest.len() - 1)]).or_else(behind) else { break };
        out.push_str(rest[..at].trim_end());
        out.push('\n');
        let left = rest[at..].trim_start();
        if left.is_empty() {
            return;
        }
        rest = format!("{:indent$}{left}", "");
    }
    out.push_str(&rest);
}

/// What the terminal is and how large: `xterm-256color 40 120`. `None` if there is none that
/// says so.
#[must_use]
pub fn terminal() -> Option<String> {
    let kind = std::env::var("TERM").ok().filter(|kind| is_kind(kind))?;
    let (rows, columns) = console::Term::stdout().size_checked()?;
    Some(format!("{kind} {rows} {columns}\n"))
}

/// Whether it may be a terminal's kind: one word that nothing could mistake.
fn is_kind(word: &str) -> bool {
    let usual = |c: char| c.is_ascii_alphanumeric() || "-._+".contains(c);
    !word.is_empty() && word.len() <= 32 && word.chars().all(usual)
}

/// One step with a duration.
pub struct Step {
    bar: ProgressBar,
    name: String,
    started: Instant,
}

impl Step {
    /// Shows that `name` has begun.
    #[must_use]
    pub fn start(name: impl Into<String>) -> Self {
        let name = name.into();
        let bar = LINES.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template("  {spinner} {prefix} {wide_msg} {elapsed}")
        {
            bar.set_style(style);
        }
        bar.set_prefix(name.clone());
        bar.enable_steady_tick(TICK);
        Self { bar, name, started: Instant::now() }
    }

    /// Shows what the step is doing now.
    pub fn say(&self, what: impl Into<String>) {
        self.bar.set_message(what.into());
    }

    /// Prints `line` above the moving line.
    pub fn line(&self, line: &str) {
        LINES.suspend(|| eprintln!("{line}"));
    }

    /// Time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Ends the step with one line.
    pub fn done(self, result: &str) {
        self.clear();
        let line = format!("  {:<28} {result:<34} {}", self.name, seconds(self.started.elapsed()));
        LINES.suspend(|| eprintln!("{line}"));
    }

    /// Ends the step without a word (nothing happened worth a line).
    pub fn vanish(self) {
        self.clear();
    }

    fn clear(&self) {
        self.bar.finish_and_clear();
        LINES.remove(&self.bar);
    }
}

/// A reader of whole numbers from `least` to `most` for the command line; what it refuses,
/// it refuses with a sentence.
pub fn number<T: TryFrom<u64>>(
    least: u64,
    most: u64,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync {
    move |text| {
        let range = if most == u64::MAX {
            format!("{least} or more")
        } else {
            format!("from {least} to {most}")
        };
        let Ok(value) = text.parse::<u64>() else {
            return Err(format!("it is not a whole number; give one, {range}"));
        };
        let inside = (least..=most).contains(&value);
        let value = if inside { T::try_from(value).ok() } else { None };
        value.ok_or_else(|| format!("it is out of range; give a number {range}"))
    }
}

/// A duration the way people read it.
#[must_use]
pub fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

/// A size the way people read it.
#[must_use]
pub fn bytes(count: u64) -> String {
    match count {
        0..0x400 => format!("{count} bytes"),
        0x400..0x10_0000 => format!("{} KiB", count >> 10),
        _ => format!("{:.1} MiB", count as f64 / f64::from(1 << 20)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_between_words() {
        assert_eq!(wrapped("a b\n\nc", 80), "a b\n\nc");
        assert_eq!(wrapped("baton: one two three", 12), "baton: one\n    two\n    three");
        assert_eq!(wrapped("  ein µµµµ zwei", 10), "  ein µµµµ\n      zwei");
        assert_eq!(
            wrapped("/a/path/that/is/long said it", 10),
            "/a/path/that/is/long\n    said\n    it"
        );
        assert_eq!(wrapped("0123456789", 4), "0123456789");
        assert_eq!(wrapped(&"word ".repeat(40), 9).lines().map(str::len).max(), Some(9));
    }

    #[test]
    fn a_terminals_kind_is_one_plain_word() {
        assert!(is_kind("xterm-256color") && is_kind("st.a+b_c"));
        assert!(!is_kind("") && !is_kind("a b") && !is_kind("x\n") && !is_kind(&"x".repeat(33)));
    }

    #[test]
    fn refused_numbers_are_answered_with_sentences() {
        let read = number::<u32>(16, 64);
        assert_eq!(read("64"), Ok(64));
        assert_eq!(read("x").unwrap_err(), "it is not a whole number; give one, from 16 to 64");
        assert_eq!(read("65").unwrap_err(), "it is out of range; give a number from 16 to 64");
        assert!(number::<u64>(1, u64::MAX)("0").unwrap_err().ends_with("a number 1 or more"));
    }
}
