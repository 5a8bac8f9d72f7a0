//! Plots as SVG text: lines over logarithmic or linear axes. No scripts, no fonts,
//! no files beside the page that they are put into.

use super::row::readable;

/// One line of a plot.
#[derive(Clone, Debug)]
pub struct Line {
    /// What the legend says.
    pub name: String,
    /// In order of x.
    pub points: Vec<(f64, f64)>,
}

/// A plot's frame.
#[derive(Clone, Copy, Debug)]
pub struct Axes<'a> {
    /// Above the plot.
    pub title: &'a str,
    /// Below and beside it.
    pub x: &'a str,
    /// See `x`.
    pub y: &'a str,
    /// Whether both axes are logarithmic.
    pub logarithmic: bool,
}

const WIDTH: f64 = 720.0;
/// Of the plot itself: the legend comes above it.
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;
/// A row of the legend; the stroke before each name; a character, at most.
const ROW: f64 = 18.0;
const STROKE: f64 = 30.0;
const CHARACTER: f64 = 7.0;
/// Colours that the page's style names (`--s0` and so on), light or dark.
const COLOURS: usize = 6;
/// Lines are drawn one over the other: gaps of the later ones show those below.
const DASHES: [&str; 4] = ["none", "9 5", "3 4", "12 4 3 4"];

/// Values to places of one axis.
struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl Scale {
    fn over(values: impl Iterator<Item = f64> + Clone, logarithmic: bool) -> Self {
        let high = values.clone().fold(1.0, f64::max);
        let low = if logarithmic {
            values.filter(|v| *v > 0.0).fold(high, f64::min).max(1e-9)
        } else {
            0.0
        };
        let high = if high > low { high } else { low + 1.0 };
        Self { low, high, logarithmic }
    }

    /// 0 to 1.
    fn place(&self, value: f64) -> f64 {
        if self.logarithmic {
            let value = value.max(self.low);
            return (value / self.low).ln() / (self.high / self.low).ln();
        }
        (value - self.low) / (self.high - self.low)
    }

    /// Where the marks are.
    fn marks(&self) -> Vec<f64> {
        if self.logarithmic {
            let (first, last) = (self.low.log10().floor() as i32, self.high.log10().floor() as i32);
            // Within few decades there are marks between their ends.
            let steps: &[f64] = if last - first > 2 { &[1.0] } else { &[1.0, 2.0, 5.0] };
            let all =
                (first..=last).flat_map(|ten| steps.iter().map(move |s| s * 10_f64.powi(ten)));
            return all.filter(|mark| (self.low..=self.high).contains(mark)).collect();
        }
        let rough = self.high / 5.0;
        let unit = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .map(|m| m * unit)
            .into_iter()
            .find(|s| *s >= rough)
            .unwrap_or(rough);
        (0..=5).map(|i| f64::from(i) * step).filter(|v| *v <= self.high).collect()
    }
}

/// The plot as an `<svg>` element; empty without points.
#[must_use]
pub fn svg(axes: Axes<'_>, lines: &[Line]) -> String {
    let points = lines.iter().flat_map(|line| line.points.iter().copied());
    if points.clone().count() == 0 {
        return String::new();
    }
    let x = Scale::over(points.clone().map(|p| p.0), axes.logarithmic);
    let y = Scale::over(points.map(|p| p.1), axes.logarithmic);
    let drawn: Vec<&Line> = lines.iter().filter(|line| !line.points.is_empty()).collect();
    let (legend, rows) = legend(&drawn);
    let above = rows as f64 * ROW;
    let at = |px: f64, py: f64| {
        (
            LEFT + x.place(px) * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - y.place(py) * (HEIGHT - TOP - BOTTOM),
        )
    };
    let mut out = format!(
        "<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\" font-family=\"sans-serif\" font-size=\"12\">\
         <title>{1}</title><text x=\"{LEFT}\" y=\"20\" font-weight=\"bold\">{1}</text>{legend}\
         <g transform=\"translate(0 {above})\">",
        HEIGHT + above,
        escape(axes.title)
    );
    out += &frame(axes, &x, &y, &at);
    for (index, line) in drawn.into_iter().enumerate() {
        out += &draw(line, index, &at);
    }
    out + "</g></svg>"
}

/// What each line is, in rows below the title, where no line is drawn; how many rows.
fn legend(lines: &[&Line]) -> (String, usize) {
    let mut out = String::new();
    let (mut left, mut rows) = (LEFT, 1);
    for (index, line) in lines.iter().enumerate() {
        let width = STROKE + line.name.chars().count() as f64 * CHARACTER + 16.0;
        if left > LEFT && left + width > WIDTH {
            (left, rows) = (LEFT, rows + 1);
        }
        let (colour, dashes, y) = (colour(index), dashes(index), TOP + (rows as f64 - 1.0) * ROW);
        out += &format!(
            "<line x1=\"{left:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" \
             stroke-width=\"2\" stroke-dasharray=\"{dashes}\"/>\
             <text x=\"{:.1}\" y=\"{y:.1}\">{}</text>",
            y - 4.0,
            left + STROKE - 6.0,
            y - 4.0,
            left + STROKE,
            escape(&line.name)
        );
        left += width;
    }
    (out, rows)
}

fn colour(index: usize) -> String {
    format!("var(--s{})", index % COLOURS)
}

const fn dashes(index: usize) -> &'static str {
    DASHES[index % DASHES.len()]
}

fn frame(axes: Axes<'_>, x: &Scale, y: &Scale, at: &impl Fn(f64, f64) -> (f64, f64)) -> String {
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    let mut out = String::new();
    for mark in x.marks() {
        let (place, _) = at(mark, y.low);
        out += &format!(
            "<line x1=\"{place:.1}\" y1=\"{TOP}\" x2=\"{place:.1}\" y2=\"{bottom}\" class=\"grid\"/>\
             <text x=\"{place:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            bottom + 16.0,
            readable(mark)
        );
    }
    for mark in y.marks() {
        let (_, place) = at(x.low, mark);
        out += &format!(
            "<line x1=\"{LEFT}\" y1=\"{place:.1}\" x2=\"{right}\" y2=\"{place:.1}\" class=\"grid\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 6.0,
            place + 4.0,
            readable(mark)
        );
    }
    out + &format!(
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
         <text transform=\"translate(14 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        (LEFT + right) / 2.0,
        HEIGHT - 12.0,
        escape(axes.x),
        (TOP + bottom) / 2.0,
        escape(axes.y)
    )
}

fn draw(line: &Line, index: usize, at: &impl Fn(f64, f64) -> (f64, f64)) -> String {
    let (colour, dashes) = (colour(index), dashes(index));
    let places: Vec<(f64, f64)> = line.points.iter().map(|p| at(p.0, p.1)).collect();
    let path: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let mut out = format!(
        "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\" points=\"{}\"/>",
        path.join(" ")
    );
    for ((x, y), point) in places.iter().zip(&line.points) {
        out += &format!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"><title>{}: {}</title></circle>",
            readable(point.0),
            readable(point.1)
        );
    }
    out
}

/// Text inside XML.
#[must_use]
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    const AXES: Axes<'_> =
        Axes { title: "a < b", x: "bytes", y: "instructions", logarithmic: true };

    #[test]
    fn plots_are_well_formed() {
        let line =
            Line { name: "one & only".to_owned(), points: vec![(1.0, 10.0), (1000.0, 5000.0)] };
        let svg = svg(AXES, &[line]);
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>"));
        assert!(svg.contains("a &lt; b") && svg.contains("one &amp; only"));
        assert_eq!(svg.matches("<circle").count(), 2);
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn nothing_to_plot_is_nothing() {
        assert_eq!(svg(AXES, &[]), "");
    }

    #[test]
    fn marks_are_round() {
        assert_eq!(
            Scale::over([3.0, 40.0, 2000.0].into_iter(), true).marks(),
            [10.0, 100.0, 1000.0]
        );
        assert_eq!(Scale::over([8.0, 60.0].into_iter(), true).marks(), [10.0, 20.0, 50.0]);
        assert_eq!(Scale::over([9.0].into_iter(), false).marks(), [0.0, 2.0, 4.0, 6.0, 8.0]);
    }
}
