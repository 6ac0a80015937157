//! Results as text for the terminal.

use tabled::builder::Builder;
use tabled::settings::object::Columns;
use tabled::settings::style::HorizontalLine;
use tabled::settings::{Alignment, Modify, Padding, Style};

use super::cells::OperationColumns;
use super::comparison::{ComparedFigure, Comparison, RoundStats, Side};
use super::noise::SIGNIFICANCE;
use super::run::{ErrorCount, LoadModel, Pacing, PublishedFigure, ReadOutcome, RunResult, ServerFigure};
use super::units::{NONE, count, digits, duration, figure, micros, percent, rate};

/// Returns the final figures of a run: operations, outcomes of reads, pacing, errors by code, and the server's figures.
pub fn run(result: &RunResult) -> String {
    let mut parts = vec![format!("{}, {}", result.title(), duration(result.duration_s))];
    if matches!(result.load, LoadModel::Closed { .. }) {
        parts.push("Closed loop: service times under a load that throttles itself.".to_owned());
    }
    parts.push(format!("\n{}", operations(result)));
    parts.extend(result.pacing.map(|pacing| format!("\n{}", pacing_line(&pacing))));
    parts.extend(result.reads.and_then(|reads| reads_line(&reads)));
    parts.extend(errors(result));
    parts.extend(published(&result.published));
    parts.extend(server(&result.server));
    if !result.notes.is_empty() {
        parts.push(format!("\n{}", result.notes.join("\n")));
    }
    parts.join("\n") + "\n"
}

fn operations(result: &RunResult) -> String {
    let columns = OperationColumns::of(result.operations.iter());
    let mut builder = Builder::new();
    builder.push_record(std::iter::once("operation").chain(columns.heads()));
    for operation in &result.operations {
        builder.push_record(std::iter::once(operation.name.clone()).chain(columns.response(operation)));
        if let Some(cells) = columns.service(operation) {
            builder.push_record(std::iter::once("  service time".to_owned()).chain(cells));
        }
    }
    draw(builder, 1)
}

fn pacing_line(pacing: &Pacing) -> String {
    format!(
        "rate: {} of {} requested ({}); lag: {} at most, {} at the end",
        rate(pacing.achieved_per_s),
        rate(pacing.target_per_s),
        percent(pacing.achieved_per_s / pacing.target_per_s),
        micros(pacing.lag_max_ms * 1000.0),
        micros(pacing.lag_end_ms * 1000.0),
    )
}

fn reads_line(reads: &ReadOutcome) -> Option<String> {
    Some(format!(
        "reads: {} hit ({} hits, {} misses), {} missing, {} corrupt",
        percent(reads.hit_rate()?),
        count(reads.hits),
        count(reads.misses),
        count(reads.missing),
        count(reads.corrupt),
    ))
}

fn errors(result: &RunResult) -> Option<String> {
    let mut rows: Vec<(&str, &ErrorCount)> = Vec::new();
    for operation in &result.operations {
        rows.extend(
            operation
                .errors
                .iter()
                .map(|error| (operation.name.as_str(), error)),
        );
    }
    if rows.is_empty() {
        return None;
    }
    rows.sort_by_key(|(_, error)| std::cmp::Reverse(error.count));
    let mut builder = Builder::new();
    builder.push_record(["error", "code", "operation", "count", "one of the messages"]);
    for (operation, error) in rows {
        let message = error.example.as_deref().unwrap_or_default();
        builder.push_record([
            error.name.clone(),
            error.code_text(),
            operation.to_owned(),
            count(error.count),
            // Only the first line of a message fits into the table.
            message.lines().next().unwrap_or_default().to_owned(),
        ]);
    }
    let mut table = build(builder);
    table.with(Modify::new(Columns::new(..)).with(Alignment::left()));
    table.with(Modify::new(Columns::one(3)).with(Alignment::right()));
    Some(format!("\n{}", trimmed(&table.to_string())))
}

fn published(figures: &[PublishedFigure]) -> Option<String> {
    if figures.is_empty() {
        return None;
    }
    let mut builder = Builder::new();
    builder.push_record(["figure", "published", "measured here", ""]);
    for figure in figures {
        let note = figure.note.as_deref().unwrap_or_default();
        builder.push_record([figure.name.as_str(), &figure.published, &figure.measured, note]);
    }
    let mut table = build(builder);
    table.with(Modify::new(Columns::last()).with(Alignment::left()));
    Some(format!("\n{}", trimmed(&table.to_string())))
}

fn server(figures: &[ServerFigure]) -> Option<String> {
    if figures.is_empty() {
        return None;
    }
    let mut builder = Builder::new();
    builder.push_record(["server", ""]);
    for of in figures {
        builder.push_record([of.name.clone(), figure(of.value, &of.unit)]);
    }
    Some(format!("\n{}", draw(builder, 1)))
}

/// Returns the figures of a comparison in every round, then their medians, ranges, ratio and verdict.
pub fn comparison(comparison: &Comparison) -> String {
    let mut builder = Builder::new();
    let (a, b) = (&comparison.label_a, &comparison.label_b);
    builder.push_record(["figure", a, "range", b, "range", "ratio", "verdict"]);
    for of in &comparison.figures {
        builder.push_record([
            of.name.clone(),
            figure(of.a.median, &of.unit),
            range(&of.a, &of.unit),
            figure(of.b.median, &of.unit),
            range(&of.b, &of.unit),
            of.ratio
                .map_or(NONE.to_owned(), |ratio| format!("{}×", digits(ratio))),
            comparison.verdict(of),
        ]);
    }
    let mut table = build(builder);
    table.with(Modify::new(Columns::last()).with(Alignment::left()));
    let mut parts = vec![
        comparison.title(),
        format!("\n{}", all_rounds(comparison)),
        format!("\n{}", trimmed(&table.to_string())),
    ];
    parts.push(format!(
        "\nMedians of {} alternating rounds; the ratio is {b} over {a}. A difference counts when the two-sided Mann–Whitney\n\
         test gives p < {SIGNIFICANCE} (at five rounds: when the ranges do not overlap); else it is within the noise.",
        comparison.rounds.len()
    ));
    parts.extend(comparison.notes.iter().cloned());
    parts.join("\n") + "\n"
}

fn range(of: &RoundStats, unit: &str) -> String {
    format!("{} – {}", figure(of.min, unit), figure(of.max, unit))
}

fn all_rounds(comparison: &Comparison) -> String {
    let mut builder = Builder::new();
    let numbers = (1..=comparison.rounds.len()).map(|round| format!("round {round}"));
    builder.push_record(["figure".to_owned(), String::new()].into_iter().chain(numbers));
    for of in &comparison.figures {
        builder.push_record(round_cells(of, Side::A, &of.name, &comparison.label_a));
        builder.push_record(round_cells(of, Side::B, "", &comparison.label_b));
    }
    draw(builder, 2)
}

fn round_cells(of: &ComparedFigure, side: Side, name: &str, label: &str) -> Vec<String> {
    let spread = match side {
        Side::A => &of.a,
        Side::B => &of.b,
    };
    let rounds = spread.rounds.iter().map(|value| figure(*value, &of.unit));
    [name.to_owned(), label.to_owned()]
        .into_iter()
        .chain(rounds)
        .collect()
}

/// Returns a table. Its first `names` columns are names, and the others are figures.
fn draw(builder: Builder, names: usize) -> String {
    let mut table = build(builder);
    table.with(Modify::new(Columns::new(..names)).with(Alignment::left()));
    trimmed(&table.to_string())
}

fn build(builder: Builder) -> tabled::Table {
    let mut table = builder.build();
    table
        .with(Style::empty().horizontals([(1, HorizontalLine::new('─'))]))
        .with(Padding::new(0, 2, 0, 0))
        .with(Alignment::right())
        .with(Modify::new(Columns::first()).with(Alignment::left()));
    table
}

/// Returns the table without the blanks at the ends of lines.
fn trimmed(table: &str) -> String {
    table.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
