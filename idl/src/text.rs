//! Lines of what is being written, indented.

/// A file that is being written.
#[derive(Default)]
pub struct Text {
    out: String,
    indent: usize,
}

impl Text {
    /// A line.
    pub fn line(&mut self, line: &str) {
        for _ in 0..self.indent {
            self.out.push_str("    ");
        }
        self.out.push_str(line);
        self.out.push('\n');
    }

    /// An empty line.
    pub fn blank(&mut self) {
        self.out.push('\n');
    }

    /// `head`, what `inside` writes, and the bracket that closes it.
    pub fn block(&mut self, head: &str, inside: impl FnOnce(&mut Self)) {
        self.line(head);
        self.indented(inside);
        self.line(if head.ends_with('[') {
            "]"
        } else if head.ends_with('(') {
            ")"
        } else {
            "}"
        });
    }

    /// What `inside` writes, further to the right.
    pub fn indented(&mut self, inside: impl FnOnce(&mut Self)) {
        self.indent += 1;
        inside(self);
        self.indent -= 1;
    }

    /// Makes of the last line, which is `from` but for its indentation, `to`.
    pub fn replace_last(&mut self, from: &str, to: &str) {
        let start = self.out.trim_end().len() - from.len();
        debug_assert_eq!(&self.out[start..].trim_end(), &from);
        let end = self.out[start..].trim_end().len() + start;
        self.out.replace_range(start..end, to);
    }

    /// An author's words as documentation, or what `otherwise` says.
    pub fn docs(&mut self, docs: Option<&str>, otherwise: impl FnOnce() -> String) {
        let words = docs.map_or_else(otherwise, str::to_owned);
        for line in words.trim_end().lines() {
            self.line(format!("/// {line}").trim_end());
        }
    }

    /// The same as a comment of C.
    pub fn remark(&mut self, docs: Option<&str>, otherwise: impl FnOnce() -> String) {
        let words = docs.map_or_else(otherwise, str::to_owned).replace("*/", "* /");
        let lines: Vec<&str> = words.trim_end().lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let start = if index == 0 { "/* " } else { " * " };
            let end = if index + 1 == lines.len() { " */" } else { "" };
            self.line(format!("{start}{line}{end}").trim_end());
        }
    }

    /// All of it.
    pub fn finish(self) -> String {
        self.out
    }
}
