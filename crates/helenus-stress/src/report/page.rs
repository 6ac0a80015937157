//! The page: fills in `templates/report.html`. Askama escapes all text from results.

use anyhow::Result;
use askama::Template;
use serde_json::Value;

use super::chart::{ChartData, Ink};
use super::dot_plot::{self, WIDTH};
use super::sections::{Builder, Section};
use super::series::RunSeries;
use super::summary::{self, ErrorRow, Notice, SummaryRow, Tile};
use crate::results::units::{count, digits, duration, figure, rate};
use crate::results::{ComparedFigure, Comparison, Endpoint, RunResult, Verdict};

const UPLOT_CSS: &str = include_str!("../../assets/uplot.min.css");
const UPLOT_JS: &str = include_str!("../../assets/uplot.min.js");
const UPLOT_LICENSE: &str = include_str!("../../assets/uplot.LICENSE");
const REPORT_CSS: &str = include_str!("../../assets/report.css");
const REPORT_JS: &str = include_str!("../../assets/report.js");

/// Content of the template.
#[derive(Template)]
#[template(path = "report.html")]
pub struct Page {
    heading: String,
    load: String,
    facts: Vec<Fact>,
    notices: Vec<Notice>,
    tiles: Vec<Tile>,
    /// Labels and colours of the series. Empty if there is only one.
    run_series: Vec<(String, Ink)>,
    compared: Option<Compared>,
    /// Heads of the summary's cells.
    heads: Vec<&'static str>,
    summary: Vec<SummaryRow>,
    published: Vec<PublishedRow>,
    phases: Vec<PhaseRow>,
    sections: Vec<Section>,
    errors: Vec<ErrorRow>,
    server: Vec<ServerRow>,
    setups: Vec<Setup>,
    data: ChartData,
}

/// A name and its value.
struct Fact {
    name: String,
    value: String,
}

/// The tables of a comparison.
struct Compared {
    label_a: String,
    label_b: String,
    rounds: Vec<usize>,
    rows: Vec<ComparedRow>,
}

/// One figure of a comparison.
struct ComparedRow {
    name: String,
    a: SideCells,
    b: SideCells,
    ratio: String,
    verdict: String,
    class: &'static str,
    p_value: String,
    dot_plot: [dot_plot::Side; 2],
}

/// One side of a figure, as text.
struct SideCells {
    median: String,
    range: String,
    deviation: String,
    rounds: Vec<String>,
}

struct PublishedRow {
    series: String,
    name: String,
    published: String,
    measured: String,
    note: String,
}

struct PhaseRow {
    name: String,
    start: String,
    duration: String,
    count: String,
    rate: String,
}

struct ServerRow {
    name: String,
    cells: Vec<String>,
}

/// Configuration of a series.
struct Setup {
    label: String,
    command_line: String,
    facts: Vec<Fact>,
    config: Vec<Fact>,
}

impl Page {
    /// Returns the page of runs, each of which is a series.
    pub fn of_runs(run_series: &[RunSeries<'_>]) -> Self {
        let runs: Vec<&RunResult> = run_series.iter().flat_map(RunSeries::results).collect();
        let mut page = Self::of_run_series(run_series);
        if let [run] = runs[..] {
            page.heading = format!("{} on {}", workload_name(run), run.label);
            page.facts = run_facts(run);
            page.tiles = summary::tiles(run);
            page.phases = phases(run);
        } else {
            let workloads = unique(runs.iter().map(|run| workload_name(run)));
            page.heading = format!(
                "{}: {}",
                workloads.join(", "),
                unique(run_series.iter().map(|l| l.label.clone())).join(", ")
            );
        }
        page.load = unique(runs.iter().map(|run| capitalised(&run.load.name()))).join(" / ");
        (page.heads, page.summary) = summary::summary(run_series);
        page.published = published(run_series);
        page.server = server(run_series);
        page.setups = run_series
            .iter()
            .flat_map(|series| series.results().map(|run| run_setup(&series.label, run)))
            .collect();
        page
    }

    /// Returns the page of a comparison, whose sides are the series.
    pub fn of_comparison(comparison: &Comparison, run_series: &[RunSeries<'_>; 2]) -> Self {
        let mut page = Self::of_run_series(run_series);
        page.heading = format!(
            "{}: {} against {}",
            comparison.workload, comparison.label_a, comparison.label_b
        );
        page.load = capitalised(&comparison.load.name());
        page.facts = vec![
            fact("Started", time(comparison.started_at)),
            fact("Rounds", comparison.rounds.len()),
            fact("helenus-stress", &comparison.tool_version),
        ];
        page.notices.extend(comparison.notes.iter().map(|note| Notice {
            level: summary::Level::Warning,
            text: note.clone(),
        }));
        page.compared = Some(compared(comparison));
        let setup = |label: &str, endpoint| Setup {
            label: label.to_owned(),
            command_line: command_line(&comparison.command_line),
            facts: endpoint_facts(endpoint),
            config: config(&comparison.config),
        };
        page.setups = vec![
            setup(&comparison.label_a, &comparison.endpoint_a),
            setup(&comparison.label_b, &comparison.endpoint_b),
        ];
        page
    }

    /// Returns the parts that both kinds of pages share.
    fn of_run_series(run_series: &[RunSeries<'_>]) -> Self {
        let (sections, data) = Builder::new(run_series).build();
        let several = run_series.len() > 1;
        let inks = run_series
            .iter()
            .enumerate()
            .map(|(index, series)| (series.label.clone(), Ink::new(index)));
        Self {
            heading: String::new(),
            load: String::new(),
            facts: Vec::new(),
            notices: summary::notices(run_series),
            tiles: Vec::new(),
            run_series: if several { inks.collect() } else { Vec::new() },
            compared: None,
            heads: Vec::new(),
            summary: Vec::new(),
            published: Vec::new(),
            phases: Vec::new(),
            sections,
            errors: summary::errors(run_series),
            server: Vec::new(),
            setups: Vec::new(),
            data,
        }
    }

    /// Returns the page as HTML.
    pub fn to_html(&self) -> Result<String> {
        Ok(self.render()?)
    }

    /// Returns the charts' data for a script element. `<` is escaped, so that no text can end the element.
    fn data_json(&self) -> String {
        // Numbers, strings and lists always serialize.
        serde_json::to_string(&self.data)
            .unwrap_or_default()
            .replace('<', "\\u003c")
    }
}

fn workload_name(run: &RunResult) -> String {
    match run.kind {
        crate::results::RunKind::Run => run.workload.clone(),
        other => format!("{} {}", run.workload, other.name()),
    }
}

fn fact(name: &str, value: impl ToString) -> Fact {
    Fact {
        name: name.to_owned(),
        value: value.to_string(),
    }
}

fn time(at: chrono::DateTime<chrono::Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

fn unique(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut unique: Vec<String> = Vec::new();
    for name in names {
        if !unique.contains(&name) {
            unique.push(name);
        }
    }
    unique
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or(String::new(), |first| {
        first.to_uppercase().chain(characters).collect()
    })
}

fn run_facts(run: &RunResult) -> Vec<Fact> {
    let mut facts = vec![
        fact("Started", time(run.started_at)),
        fact("Took", duration(run.duration_s)),
    ];
    facts.extend(endpoint_facts(&run.endpoint));
    facts.push(fact("helenus-stress", &run.tool_version));
    facts
}

fn endpoint_facts(endpoint: &Endpoint) -> Vec<Fact> {
    vec![
        fact("Endpoint", endpoint.addresses.join(", ")),
        fact("Release", &endpoint.release_version),
        fact("Cluster", &endpoint.cluster_name),
        fact("Driver", &endpoint.driver),
    ]
}

fn run_setup(label: &str, run: &RunResult) -> Setup {
    Setup {
        label: label.to_owned(),
        command_line: command_line(&run.command_line),
        facts: run_facts(run),
        config: config(&run.config),
    }
}

/// Returns a command line that can be pasted into a shell.
fn command_line(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    let quoted = |word: &String| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

fn config(config: &serde_json::Map<String, Value>) -> Vec<Fact> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    config
        .iter()
        .map(|(name, value)| fact(name, text(value)))
        .collect()
}

fn phases(run: &RunResult) -> Vec<PhaseRow> {
    let row = |phase: &crate::results::Phase| PhaseRow {
        name: phase.name.clone(),
        start: duration(phase.start_s),
        duration: duration(phase.duration_s),
        count: count(phase.count),
        rate: if phase.duration_s > 0.0 {
            rate(phase.count as f64 / phase.duration_s)
        } else {
            "–".into()
        },
    };
    run.phases.iter().map(row).collect()
}

fn published(run_series: &[RunSeries<'_>]) -> Vec<PublishedRow> {
    let of = |series: &RunSeries<'_>, run: &RunResult| {
        let row = |figure: &crate::results::PublishedFigure| PublishedRow {
            series: if run_series.len() > 1 {
                series.label.clone()
            } else {
                String::new()
            },
            name: figure.name.clone(),
            published: figure.published.clone(),
            measured: figure.measured.clone(),
            note: figure.note.clone().unwrap_or_default(),
        };
        run.published.iter().map(row).collect::<Vec<_>>()
    };
    run_series
        .iter()
        .flat_map(|series| series.results().flat_map(move |run| of(series, run)))
        .collect()
}

/// Returns the server's figures over whole runs, with a column for each run.
fn server(run_series: &[RunSeries<'_>]) -> Vec<ServerRow> {
    let runs: Vec<&RunResult> = run_series.iter().flat_map(RunSeries::results).collect();
    let names = unique(
        runs.iter()
            .flat_map(|run| &run.server)
            .map(|figure| figure.name.clone()),
    );
    let cell = |run: &&RunResult, name: &str| {
        let found = run.server.iter().find(|figure| figure.name == name);
        found.map_or("–".to_owned(), |of| figure(of.value, &of.unit))
    };
    names
        .into_iter()
        .map(|name| ServerRow {
            cells: runs.iter().map(|run| cell(run, &name)).collect(),
            name,
        })
        .collect()
}

fn compared(comparison: &Comparison) -> Compared {
    let row = |of: &ComparedFigure| ComparedRow {
        name: of.name.clone(),
        a: side_cells(&of.a, &of.unit),
        b: side_cells(&of.b, &of.unit),
        ratio: of.ratio.map_or("–".into(), |ratio| format!("{}×", digits(ratio))),
        verdict: comparison.verdict(of),
        class: match of.verdict {
            Verdict::WithinNoise => "noise",
            Verdict::ABetter => "a-better",
            Verdict::BBetter => "b-better",
            Verdict::Differs => "differs",
        },
        p_value: digits(of.p_value),
        dot_plot: dot_plot::dot_plot(of),
    };
    Compared {
        label_a: comparison.label_a.clone(),
        label_b: comparison.label_b.clone(),
        rounds: (1..=comparison.rounds.len()).collect(),
        rows: comparison.figures.iter().map(row).collect(),
    }
}

fn side_cells(of: &crate::results::comparison::RoundStats, unit: &str) -> SideCells {
    let show = |value: f64| figure(value, unit);
    SideCells {
        median: show(of.median),
        range: format!("{} – {}", show(of.min), show(of.max)),
        deviation: show(of.deviation),
        rounds: of.rounds.iter().map(|value| show(*value)).collect(),
    }
}
