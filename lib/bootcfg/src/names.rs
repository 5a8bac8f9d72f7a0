//! The names of services that a description gives.

use proto::Name;

/// Services that a task can provide.
pub const PROVIDES: usize = 4;
/// Services and raw files that a task can name as used.
pub const USES: usize = 12;
/// What a task uses whose description does not say.
pub const DEFAULT_USES: [&str; 3] = ["console", "pager", "unix"];
/// How a line says that there are none.
const NONE: &str = "-";

/// At most `N` names.
#[derive(Clone, Copy, Debug)]
pub struct Names<const N: usize> {
    list: [Name; N],
    count: usize,
}

impl<const N: usize> Default for Names<N> {
    fn default() -> Self {
        Self { list: [Name::default(); N], count: 0 }
    }
}

impl<const N: usize> Names<N> {
    /// Reads `a,b,c`; `None` if a name is empty, too long or twice there, or there are too many.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut names = Self::default();
        if text == NONE {
            return Some(names);
        }
        text.split(',').try_for_each(|word| names.add(word))?;
        Some(names)
    }

    fn add(&mut self, word: &str) -> Option<()> {
        let name = Name::new(word);
        if name.is_empty() || name.as_str() != word || self.place(name).is_some() {
            return None;
        }
        *self.list.get_mut(self.count)? = name;
        self.count += 1;
        Some(())
    }

    /// Where `name` stands in the list.
    #[must_use]
    pub fn place(&self, name: Name) -> Option<usize> {
        self.iter().position(|known| known == name)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Name> {
        self.list[..self.count].iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_whole_and_different() {
        let names = Names::<3>::parse("a,exactly-16-bytes,c").unwrap();
        assert_eq!(names.place(Name::new("exactly-16-bytes")), Some(1));
        assert_eq!(names.place(Name::new("d")), None);
        assert_eq!(Names::<3>::parse("-").unwrap().iter().count(), 0);
        for bad in ["", "a,", "a,b,a", "a,b,c,d", "longer-than-16-bytes"] {
            assert!(Names::<3>::parse(bad).is_none(), "{bad}");
        }
    }
}
