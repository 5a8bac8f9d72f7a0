//! What is measured, as data: the rows of `report.json` (docs/measuring.md).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};

/// Parameters of a row: message length, number of threads, ...
pub type Parameters = BTreeMap<String, serde_json::Value>;

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The suite it belongs to.
    pub suite: String,
    /// What was measured; starts with the suite or the family of names.
    pub name: String,
    /// Whose figure: `baton`, `linux`, `pistachio`, `sel4`, `l4re`, `paper`.
    pub system: String,
    /// `instructions`, `lines`, `pages`, `percent`, `cycles`, ...
    pub unit: String,
    /// The figure.
    #[serde(serialize_with = "plain_number")]
    pub value: f64,
    /// How it was come by.
    pub method: String,
    /// Under which circumstances.
    pub parameters: Parameters,
}

/// Whole numbers without a decimal point.
fn plain_number<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        serializer.serialize_i64(*value as i64)
    } else {
        serializer.serialize_f64(*value)
    }
}

/// Counted by the plugin between two marks.
pub const INSTRUMENT: &str = "emulator, counted by the instrument";
/// Counted by the time stamp counter, which ticks once per instruction.
pub const TICKS: &str = "emulator, time stamp counter = instructions";
/// Taken from the record of earlier measurements of the peers.
pub const RECORDED: &str = "recorded";

impl Row {
    /// A figure of Baton's, in instructions, from the instrument.
    #[must_use]
    pub fn baton(suite: &str, name: &str, value: f64) -> Self {
        Self {
            suite: suite.to_owned(),
            name: name.to_owned(),
            system: "baton".to_owned(),
            unit: "instructions".to_owned(),
            value,
            method: INSTRUMENT.to_owned(),
            parameters: Parameters::new(),
        }
    }

    /// The same figure of another system.
    #[must_use]
    pub fn of(mut self, system: &str, method: &str) -> Self {
        self.system = system.to_owned();
        self.method = method.to_owned();
        self
    }

    /// The same figure in another unit.
    #[must_use]
    pub fn unit(mut self, unit: &str) -> Self {
        self.unit = unit.to_owned();
        self
    }

    /// With a parameter.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<serde_json::Value>) -> Self {
        self.parameters.insert(name.to_owned(), value.into());
        self
    }

    /// A whole-number parameter.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<u64> {
        self.parameters.get(name)?.as_u64()
    }
}

/// A number the way people read it: thousands apart, few decimals.
#[must_use]
pub fn readable(value: f64) -> String {
    if value.fract() != 0.0 {
        let decimals = if value.abs() < 10.0 { 2 } else { 1 };
        return format!("{value:.decimals$}");
    }
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_exactly_the_documented_keys() {
        let row = Row::baton("ipc", "ipc/short-cross-kernel", 35.0).with("call", 34);
        let json = serde_json::to_value(&row).unwrap();
        let keys: Vec<_> = json.as_object().unwrap().keys().cloned().collect();
        let mut wanted = ["suite", "name", "system", "unit", "value", "method", "parameters"];
        wanted.sort_unstable();
        assert_eq!(keys, wanted);
        assert_eq!(json["value"].to_string(), "35");
        assert_eq!(serde_json::from_value::<Row>(json).unwrap(), row);
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(readable(35.0), "35");
        assert_eq!(readable(1234567.0), "1,234,567");
        assert_eq!(readable(-1000.0), "-1,000");
        assert_eq!(readable(1.234), "1.23");
        assert_eq!(readable(12.34), "12.3");
    }
}
