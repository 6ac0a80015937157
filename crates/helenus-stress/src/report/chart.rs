//! A chart for the page's script: data without markup.

use serde::{Serialize, Serializer};

/// All data that the script draws.
#[derive(Serialize, Debug, Default)]
pub struct ChartData {
    /// Seconds since the start: the axis of charts over time.
    pub time: Vec<Number>,
    /// Nines: the axis of charts over percentiles. 0 is the fastest, 1 is 90%, 2 is 99%, and so on.
    pub percentile: Vec<Number>,
    pub charts: Vec<Chart>,
}

/// Quantity on the horizontal axis.
#[derive(Serialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Axis {
    Time,
    Percentile,
}

/// Unit of the vertical axis.
#[derive(Serialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    Micros,
    Rate,
    Bytes,
    Cores,
    Plain,
}

/// One chart.
#[derive(Serialize, Clone, Debug)]
pub struct Chart {
    #[serde(skip)]
    pub title: String,
    pub axis: Axis,
    pub unit: Unit,
    /// True if the vertical axis is logarithmic.
    pub log: bool,
    /// True if the area below a single line is tinted.
    pub fill: bool,
    /// True if lines continue over missing values. This is needed if the intervals of several runs differ in length.
    pub span: bool,
    /// Vertical lines with a name.
    pub marks: Vec<Mark>,
    pub series: Vec<Series>,
    /// True if the chart has the whole width of the page.
    #[serde(skip)]
    pub wide: bool,
}

/// A time that is marked by a vertical line.
#[derive(Serialize, Clone, Debug)]
pub struct Mark {
    pub at: Number,
    pub label: String,
}

/// One line of a chart. Its colour comes from the CSS classes of its legend entry.
#[derive(Serialize, Clone, Debug)]
pub struct Series {
    pub label: String,
    #[serde(skip)]
    pub ink: Ink,
    /// A line for each variant of the section's switch. One line if there is no switch.
    pub variants: Vec<Line>,
}

/// Values of a line, one for each place on the axis.
#[derive(Serialize, Clone, Debug, Default)]
pub struct Line {
    pub middle: Vec<Option<Number>>,
    /// Minimum and maximum of several rounds. `None` if there is one run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub band: Option<(Vec<Option<Number>>, Vec<Option<Number>>)>,
}

impl Line {
    /// Returns a line without a band.
    pub fn plain(values: impl IntoIterator<Item = Option<f64>>) -> Self {
        let middle = values.into_iter().map(|value| value.map(Number)).collect();
        Self { middle, band: None }
    }

    /// Returns true if the line has no values.
    pub fn is_empty(&self) -> bool {
        self.middle.iter().all(Option::is_none)
    }
}

impl Chart {
    /// Returns true if no variant of any series has a value.
    pub fn is_empty(&self) -> bool {
        self.series
            .iter()
            .flat_map(|series| &series.variants)
            .all(Line::is_empty)
    }
}

/// Number of colours in `report.css`.
const COLOURS: usize = 6;

/// Appearance of a line, as CSS classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ink {
    /// Colour, which distinguishes the compared items.
    pub colour: usize,
    pub shade: Shade,
    pub dashed: bool,
}

/// Lightness, which distinguishes lines of one colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shade {
    Pale,
    Full,
    Deep,
    Grey,
}

impl Ink {
    /// Returns the full shade of a colour. After the last colour, the colours repeat and are dashed.
    pub fn new(colour: usize) -> Self {
        Self {
            colour: colour % COLOURS,
            shade: Shade::Full,
            dashed: !(colour / COLOURS).is_multiple_of(2),
        }
    }

    /// Returns this ink in another shade.
    pub fn shade(self, shade: Shade) -> Self {
        Self { shade, ..self }
    }

    /// Returns this ink with a dashed line.
    pub fn dashed(self) -> Self {
        Self { dashed: true, ..self }
    }

    /// Returns the CSS classes of the legend entry.
    pub fn classes(&self) -> String {
        let shade = match self.shade {
            Shade::Pale => "pale",
            Shade::Full => "full",
            Shade::Deep => "deep",
            Shade::Grey => "grey",
        };
        format!(
            "ink c{} {shade}{}",
            self.colour,
            if self.dashed { " dashed" } else { "" }
        )
    }
}

/// A number that is written with few characters: five digits, and no decimal point if it is whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number(pub f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rounded = round_to_five_digits(self.0);
        if rounded.fract() == 0.0 && rounded.abs() < 1e15 {
            return serializer.serialize_i64(rounded as i64);
        }
        serializer.serialize_f64(rounded)
    }
}

fn round_to_five_digits(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() || value.abs() >= 1e5 {
        return value.round();
    }
    let scale = 10f64.powi(4 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let text =
            serde_json::to_string(&[1.0, 0.123_456_789, 1234.567, 123_456.7, 0.0].map(Number)).unwrap();
        assert_eq!(text, "[1,0.12346,1234.6,123457,0]");
    }

    #[test]
    fn a_seventh_colour_is_the_first_one_dashed() {
        assert_eq!(Ink::new(6).classes(), "ink c0 full dashed");
        assert_eq!(Ink::new(5).shade(Shade::Grey).classes(), "ink c5 grey");
    }
}
