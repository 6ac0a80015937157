//! The rounds of both sides of a figure as dots on a common scale that begins at zero.

use crate::results::ComparedFigure;

/// Width of the drawing, in its own units.
pub const WIDTH: f64 = 220.0;
/// Margin for the last dot.
const MARGIN: f64 = 6.0;

/// The row of one side in a drawing, with its places on the scale.
pub struct Side {
    /// CSS class of the side's colour.
    pub class: &'static str,
    /// Distance of the row from the top.
    pub y: i32,
    pub dots: Vec<String>,
    pub median: String,
    pub min: String,
    /// Width from the minimum to the maximum.
    pub width: String,
}

/// Returns the rows of a figure, one for each side.
pub fn dot_plot(figure: &ComparedFigure) -> [Side; 2] {
    let largest = figure.a.max.max(figure.b.max);
    let place = |value: f64| {
        let part = if largest > 0.0 {
            (value / largest).clamp(0.0, 1.0)
        } else {
            0.0
        };
        part * (WIDTH - MARGIN)
    };
    [("c0", 10, &figure.a), ("c1", 24, &figure.b)].map(|(class, y, of)| Side {
        class,
        y,
        dots: of
            .rounds
            .iter()
            .map(|value| format!("{:.1}", place(*value)))
            .collect(),
        median: format!("{:.1}", place(of.median) - 1.0),
        min: format!("{:.1}", place(of.min)),
        width: format!("{:.1}", place(of.max) - place(of.min)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::comparison::Direction;

    #[test]
    fn dots_lie_on_one_scale_from_zero() {
        let figure = ComparedFigure::new(
            "x",
            "",
            Some(Direction::Lower),
            vec![0.0, 50.0, 100.0],
            vec![200.0; 3],
        );
        let [a, b] = dot_plot(&figure);
        assert_eq!(a.dots, ["0.0", "53.5", "107.0"]);
        assert_eq!((b.median.as_str(), b.width.as_str()), ("213.0", "0.0"));
    }

    #[test]
    fn a_figure_of_zeros_is_drawn_at_zero() {
        let figure = ComparedFigure::new("x", "", Some(Direction::Lower), vec![0.0; 2], vec![0.0; 2]);
        assert_eq!(dot_plot(&figure)[0].dots, ["0.0", "0.0"]);
    }
}
