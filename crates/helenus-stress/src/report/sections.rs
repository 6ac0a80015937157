//! The charts of a report. Colours distinguish operations if there is one run, and runs if there are several.

use std::collections::BTreeSet;

use super::chart::{Axis, Chart, ChartData, Ink, Line, Mark, Number, Series, Shade, Unit};
use super::percentiles;
use super::series::{Row, RunSeries};
use crate::results::histograms::{response_tag, service_tag};
use crate::results::{IntervalOperation, LoadModel};

/// Charts under one heading.
pub struct Section {
    pub id: &'static str,
    pub title: &'static str,
    /// A sentence that explains the charts.
    pub hint: &'static str,
    /// Variants between which all charts of the section can be switched. Empty if there is only one.
    pub switch: Vec<Choice>,
    /// Charts with their indexes in [`ChartData::charts`].
    pub charts: Vec<(usize, Chart)>,
    /// Text that replaces the charts if there are none.
    pub empty: &'static str,
}

/// One position of a section's switch.
pub struct Choice {
    pub label: &'static str,
    /// True if this variant is shown first.
    pub chosen: bool,
}

/// Builder of sections. Its charts share their axes.
pub struct Builder<'a> {
    run_series: &'a [RunSeries<'a>],
    operations: Vec<String>,
    times: Vec<u64>,
    /// True if the intervals of the series differ in length.
    span: bool,
    data: ChartData,
}

type LatencyField = fn(&IntervalOperation) -> u64;

const LATENCIES: [(&str, LatencyField, Shade); 4] = [
    ("p50", |of| of.p50_us, Shade::Pale),
    ("p99", |of| of.p99_us, Shade::Full),
    ("p99.9", |of| of.p99_9_us, Shade::Deep),
    ("max", |of| of.max_us, Shade::Grey),
];

/// The name among [`LATENCIES`] that is shown first if there are several series.
const FIRST_LATENCY: &str = "p99";

impl<'a> Builder<'a> {
    /// Creates a builder for the series, which are drawn in their order.
    pub fn new(run_series: &'a [RunSeries<'a>]) -> Self {
        let times: BTreeSet<u64> = run_series.iter().flat_map(RunSeries::times).collect();
        let times: Vec<u64> = times.into_iter().collect();
        let steps: BTreeSet<u64> = run_series
            .iter()
            .map(RunSeries::step_ms)
            .filter(|step| *step > 0)
            .collect();
        let time = times.iter().map(|ms| Number(*ms as f64 / 1000.0)).collect();
        Self {
            run_series,
            operations: operations(run_series),
            times,
            span: steps.len() > 1,
            data: ChartData {
                time,
                ..ChartData::default()
            },
        }
    }

    /// Returns all sections, and the data of their charts.
    pub fn build(mut self) -> (Vec<Section>, ChartData) {
        let mut sections = vec![
            self.throughput(),
            self.latency(),
            self.percentiles(),
            self.errors(),
        ];
        if self
            .run_series
            .iter()
            .flat_map(RunSeries::results)
            .any(|run| matches!(run.load, LoadModel::Open { .. }))
        {
            sections.push(self.lag());
        }
        sections.push(self.server());
        (sections, self.data)
    }

    fn single(&self) -> bool {
        self.run_series.len() == 1
    }

    fn throughput(&mut self) -> Section {
        let mut charts = Vec::new();
        if self.single() {
            let mut series = self.by_operation(|row, name| row.rate(Some(name)));
            if series.len() > 1 {
                series.push(self.all_operations());
            }
            charts.push(
                self.chart("Operations a second", Unit::Rate, series)
                    .wide()
                    .filled(),
            );
        } else {
            if self.operations.len() > 1 {
                let series = self.by_run_series(|row| row.rate(None));
                charts.push(self.chart("All operations", Unit::Rate, series).wide());
            }
            for name in self.operations.clone() {
                let series = self.by_run_series(|row| row.rate(Some(&name)));
                charts.push(self.chart(&name, Unit::Rate, series));
            }
        }
        if let (Some(target), Some(chart)) = (self.target_rate(), charts.first_mut()) {
            chart.series.push(self.target_series(target));
        }
        self.section("throughput", "Throughput", "", charts, NO_INTERVALS)
    }

    fn all_operations(&self) -> Series {
        Series {
            label: "all".into(),
            ink: Ink::new(0).shade(Shade::Grey),
            variants: vec![self.run_series[0].line(&self.times, |row| row.rate(None))],
        }
    }

    fn target_series(&self, rate: f64) -> Series {
        Series {
            label: "target".into(),
            ink: Ink::new(0).shade(Shade::Grey).dashed(),
            variants: vec![Line::plain(self.times.iter().map(|_| Some(rate)))],
        }
    }

    /// Returns the target rate of all runs. `None` if they differ, or a loop is closed.
    fn target_rate(&self) -> Option<f64> {
        let mut rates = self
            .run_series
            .iter()
            .flat_map(RunSeries::results)
            .map(|run| match run.load {
                LoadModel::Open { rate_per_s } => Some(rate_per_s),
                LoadModel::Closed { .. } => None,
            });
        let first = rates.next()??;
        rates.all(|rate| rate == Some(first)).then_some(first)
    }

    fn latency(&mut self) -> Section {
        let mut charts = Vec::new();
        for (index, name) in self.operations.clone().iter().enumerate() {
            let series = if self.single() {
                self.by_latency(index, name)
            } else {
                self.latency_by_run_series(name)
            };
            charts.push(self.chart(name, Unit::Micros, series).log());
        }
        let hint = "Response times of each interval, on a logarithmic scale.";
        let mut section = self.section("latency", "Latency over time", hint, charts, NO_INTERVALS);
        if !self.single() && !section.charts.is_empty() {
            section.switch = LATENCIES
                .map(|(label, ..)| Choice {
                    label,
                    chosen: label == FIRST_LATENCY,
                })
                .into();
        }
        section
    }

    fn by_latency(&self, colour: usize, name: &str) -> Vec<Series> {
        let series = |(label, field, shade): (&str, LatencyField, Shade)| Series {
            label: label.to_owned(),
            ink: Ink::new(colour).shade(shade),
            variants: vec![self.run_series[0].line(&self.times, |row| latency(row, name, field))],
        };
        LATENCIES.map(series).into()
    }

    fn latency_by_run_series(&self, name: &str) -> Vec<Series> {
        self.each_run_series(|series| {
            LATENCIES
                .map(|(_, field, _)| series.line(&self.times, |row| latency(row, name, field)))
                .into()
        })
    }

    fn percentiles(&mut self) -> Section {
        let tagged: Vec<_> = self
            .operations
            .iter()
            .map(|name| [response_tag(name), service_tag(name)])
            .map(|tags| {
                tags.map(|tag| {
                    self.run_series
                        .iter()
                        .map(|series| series.histogram(&tag))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        let axis = percentiles::axis(tagged.iter().flatten().flatten().flatten());
        let line = |histogram: &Option<_>| percentiles::line(histogram.as_ref(), &axis);
        let mut charts = Vec::new();
        let mut differ = false;
        if self.single() {
            let mut series = Vec::new();
            for (colour, (name, [response, service])) in self.operations.iter().zip(&tagged).enumerate() {
                let ink = Ink::new(colour);
                let own = service[0].is_some() && service[0] != response[0];
                let label = if own {
                    format!("{name} response")
                } else {
                    name.clone()
                };
                series.push(Series {
                    label,
                    ink,
                    variants: vec![line(&response[0])],
                });
                if own {
                    let label = format!("{name} service");
                    series.push(Series {
                        label,
                        ink: ink.dashed(),
                        variants: vec![line(&service[0])],
                    });
                }
            }
            charts.push(
                self.chart("All percentiles", Unit::Micros, series)
                    .percentile()
                    .log()
                    .wide(),
            );
        } else {
            for (name, [response, service]) in self.operations.iter().zip(&tagged) {
                differ |= response != service;
                let series = (self
                    .run_series
                    .iter()
                    .zip(response.iter().zip(service))
                    .enumerate())
                .map(|(colour, (series, (response, service)))| Series {
                    label: series.label.clone(),
                    ink: Ink::new(colour),
                    variants: vec![line(response), line(service)],
                })
                .collect();
                charts.push(self.chart(name, Unit::Micros, series).percentile().log());
            }
        }
        self.data.percentile = axis.into_iter().map(Number).collect();
        let hint = "Over the whole run. Each step to the right is one nine more; a line ends at its slowest operation.";
        let empty = "The folder holds no histograms.";
        let mut section = self.section("percentiles", "Latency by percentile", hint, charts, empty);
        if differ {
            section.switch = vec![
                Choice {
                    label: "response time",
                    chosen: true,
                },
                Choice {
                    label: "service time",
                    chosen: false,
                },
            ];
        }
        section
    }

    fn errors(&mut self) -> Section {
        let any = self
            .run_series
            .iter()
            .flat_map(RunSeries::results)
            .any(|run| run.error_count() > 0);
        let mut charts = Vec::new();
        if any {
            let series = if self.single() {
                self.by_operation(|row, name| row.error_rate(Some(name)))
            } else {
                self.by_run_series(|row| row.error_rate(None))
            };
            charts.push(self.chart("Errors a second", Unit::Rate, series).wide().filled());
        }
        let empty = if any { NO_INTERVALS } else { "No operation failed." };
        self.section("errors", "Errors", "", charts, empty)
    }

    fn lag(&mut self) -> Section {
        let series = self.by_run_series(|row| row.interval.lag_ms.map(|ms| ms * 1000.0));
        let charts = vec![self.chart("Lag", Unit::Micros, series).wide().filled()];
        let hint = "How far the load generator was behind the schedule that the rate sets. It is part of response times.";
        self.section("lag", "Lag", hint, charts, "No lag was recorded.")
    }

    fn server(&mut self) -> Section {
        let cpu = self.by_run_series(|row| row.interval.server.cpu_cores);
        let memory = self.by_run_series(|row| row.interval.server.rss_bytes.map(|bytes| bytes as f64));
        let mut charts = vec![
            self.chart("CPU cores in use", Unit::Cores, cpu).filled(),
            self.chart("Resident memory", Unit::Bytes, memory).filled(),
        ];
        for name in self.gauges() {
            let series = self.by_run_series(|row| row.interval.server.gauges.get(&name).copied());
            let unit = if name.ends_with("_bytes") {
                Unit::Bytes
            } else {
                Unit::Plain
            };
            charts.push(self.chart(&name, unit, series).filled());
        }
        let hint = "What the server said of itself, scraped during the run.";
        self.section(
            "server",
            "Server",
            hint,
            charts,
            "The server's own figures were not scraped.",
        )
    }

    fn gauges(&self) -> BTreeSet<String> {
        let intervals = self
            .run_series
            .iter()
            .flat_map(|series| &series.runs)
            .flat_map(|run| &run.intervals);
        intervals
            .flat_map(|interval| interval.server.gauges.keys().cloned())
            .collect()
    }

    /// Returns a line for each operation. There must be only one series.
    fn by_operation(&self, of: impl Fn(&Row, &str) -> Option<f64>) -> Vec<Series> {
        let series = &self.run_series[0];
        let series = |(colour, name): (usize, &String)| Series {
            label: name.clone(),
            ink: Ink::new(colour),
            variants: vec![series.line(&self.times, |row| of(row, name))],
        };
        self.operations.iter().enumerate().map(series).collect()
    }

    /// Returns a line for each series.
    fn by_run_series(&self, of: impl Fn(&Row) -> Option<f64>) -> Vec<Series> {
        self.each_run_series(|series| vec![series.line(&self.times, &of)])
    }

    fn each_run_series(&self, variants: impl Fn(&RunSeries<'a>) -> Vec<Line>) -> Vec<Series> {
        let series = |(colour, series): (usize, &RunSeries<'a>)| Series {
            label: series.label.clone(),
            ink: Ink::new(colour),
            variants: variants(series),
        };
        self.run_series.iter().enumerate().map(series).collect()
    }

    fn chart(&self, title: &str, unit: Unit, series: Vec<Series>) -> Chart {
        Chart {
            title: title.to_owned(),
            axis: Axis::Time,
            unit,
            log: false,
            fill: false,
            span: self.span,
            marks: self.marks(),
            series,
            wide: false,
        }
    }

    /// Returns the starts of the phases of a single run. Empty if there are several runs.
    fn marks(&self) -> Vec<Mark> {
        match self.run_series {
            [series] if series.runs.len() == 1 => {
                let phases = &series.runs[0].result.phases;
                phases
                    .iter()
                    .map(|phase| Mark {
                        at: Number(phase.start_s),
                        label: phase.name.clone(),
                    })
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns a section without empty charts and lines.
    fn section(
        &mut self,
        id: &'static str,
        title: &'static str,
        hint: &'static str,
        charts: Vec<Chart>,
        empty: &'static str,
    ) -> Section {
        let mut kept = Vec::new();
        for mut chart in charts.into_iter().filter(|chart| !chart.is_empty()) {
            chart
                .series
                .retain(|series| !series.variants.iter().all(Line::is_empty));
            self.data.charts.push(chart.clone());
            kept.push((self.data.charts.len() - 1, chart));
        }
        // Two charts are side by side, so the last one of an odd number gets the whole width.
        if kept.iter().filter(|(_, chart)| !chart.wide).count() % 2 == 1
            && let Some((_, last)) = kept.iter_mut().rfind(|(_, chart)| !chart.wide)
        {
            last.wide = true;
        }
        Section {
            id,
            title,
            hint,
            switch: Vec::new(),
            charts: kept,
            empty,
        }
    }
}

const NO_INTERVALS: &str = "The folder holds no intervals.";

fn latency(row: &Row, name: &str, field: LatencyField) -> Option<f64> {
    let of = row.interval.operations.get(name)?;
    // A logarithmic scale has no zero.
    (of.ops > 0).then(|| field(of).max(1) as f64)
}

/// Returns the operations of all series, in the order of their first occurrence.
fn operations(run_series: &[RunSeries<'_>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for operation in run_series
        .iter()
        .flat_map(RunSeries::results)
        .flat_map(|run| &run.operations)
    {
        if !names.contains(&operation.name) {
            names.push(operation.name.clone());
        }
    }
    names
}

impl Chart {
    fn wide(mut self) -> Self {
        self.wide = true;
        self
    }

    fn log(mut self) -> Self {
        self.log = true;
        self
    }

    fn filled(mut self) -> Self {
        self.fill = true;
        self
    }

    fn percentile(mut self) -> Self {
        self.axis = Axis::Percentile;
        self.marks.clear();
        self
    }
}

#[cfg(test)]
#[path = "sections_tests.rs"]
mod tests;
