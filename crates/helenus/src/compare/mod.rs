//! `helenus compare`: compares the tables of two running clusters over CQL, as a migration with writes to both needs it.
//!
//! - `args`: the options;
//! - `plan`: the columns and statements of a table;
//! - `ranges`: the token ranges, all or a sample;
//! - `range_rows`: rows of one side;
//! - `row`, `join`: the comparison itself;
//! - `table`: the comparison of one table by several workers;
//! - `report`: the result.

mod args;
mod join;
mod plan;
mod range_rows;
mod ranges;
mod report;
mod row;
mod table;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use helenus_import::schema::LiveSchema;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

pub use args::CompareArgs;
use plan::TablePlan;
use ranges::ranges;
use report::{Report, TableReport};
use table::Comparison;

use crate::comparison_exit::exit_code;
use crate::import::target::{Target, text};
use crate::node_session::Nodes;
use crate::shell::ConnectionArgs;
use crate::shell::interrupt::Interrupt;

/// End of the name of the only partitioner whose order of rows is known.
const PARTITIONER: &str = "Murmur3Partitioner";
const TEMPLATE: &str = "{msg} [{bar:24}] {pos}/{len} ranges, {eta} left";

/// Runs the comparison. The exit code is 1 if there are differences, and 130 after Ctrl-C.
pub fn run(args: &CompareArgs) -> ExitCode {
    let interrupt = Interrupt::default();
    exit_code(compare(args, &interrupt), &interrupt)
}

/// Compares the clusters, and prints the report. Returns true if they are equal.
fn compare(args: &CompareArgs, interrupt: &Interrupt) -> Result<bool> {
    let (a, schema_a) = connect(
        "side a",
        &args.a,
        &args.a_connection.connection(),
        args,
        interrupt,
    )?;
    let (b, schema_b) = connect(
        "side b",
        &args.b,
        &args.b_connection.connection(),
        args,
        interrupt,
    )?;
    interrupt.catch()?;
    let seed = args.seed.unwrap_or_else(rand::random);
    let ranges = ranges(args.sample, seed, usize::from(args.workers));
    let mut report = Report {
        tables: Vec::new(),
        share: args.sample.0,
        seed,
    };
    let sides = [(&a, &schema_a), (&b, &schema_b)];
    compare_tables(args, sides, &ranges, interrupt, &mut report)?;
    report.print(args.json);
    Ok(report.is_equal())
}

/// Connects to a side, and reads its schema.
fn connect(
    name: &'static str,
    hosts: &[String],
    connection: &ConnectionArgs,
    args: &CompareArgs,
    interrupt: &Interrupt,
) -> Result<(Nodes, LiveSchema)> {
    let mut target = Target::connect(hosts, connection, interrupt).context(name)?;
    for row in target
        .select("SELECT partitioner FROM system.local")
        .context(name)?
    {
        let partitioner = text(&row, "partitioner")?;
        if !partitioner.ends_with(PARTITIONER) {
            bail!(
                "{name} has the partitioner {partitioner}; only clusters with {PARTITIONER} can be compared"
            );
        }
    }
    let schema = target.read_schema().context(name)?;
    let side = Nodes {
        name,
        servers: target.servers,
        login: target.login,
        consistency: args.consistency.into(),
    };
    Ok((side, schema))
}

fn compare_tables(
    args: &CompareArgs,
    [(a, schema_a), (b, schema_b)]: [(&Nodes, &LiveSchema); 2],
    ranges: &[(i64, i64)],
    interrupt: &Interrupt,
    report: &mut Report,
) -> Result<()> {
    let known = schema_a.tables.keys().chain(schema_b.tables.keys());
    args.tables
        .check_names(known.clone(), "neither cluster has any")?;
    let mut wanted: Vec<_> = known.filter(|name| args.is_wanted(name)).collect();
    wanted.sort();
    wanted.dedup();
    if wanted.is_empty() {
        bail!("neither cluster has tables of users; give --keyspace or --table");
    }
    for name in wanted {
        let mut table = TableReport::new(name);
        match (schema_a.tables.get(name), schema_b.tables.get(name)) {
            (Some(of_a), Some(of_b)) => {
                let planned = TablePlan::plan(name, of_a, of_b, !args.no_writetime);
                table.schema = planned.notes;
                match planned.plan {
                    Err(reason) => table.schema.push(reason),
                    Ok(plan) => {
                        let progress = progress(ranges.len(), args.json);
                        progress.set_message(name.to_string());
                        let comparison = Comparison {
                            args,
                            plan: &plan,
                            a,
                            b,
                            ranges,
                            interrupt,
                            progress: &progress,
                        };
                        let ended = comparison.run(&mut table);
                        progress.finish_and_clear();
                        ended?;
                    }
                }
            }
            (Some(_), None) => table.schema.push("the table is only in a".to_owned()),
            _ => table.schema.push("the table is only in b".to_owned()),
        }
        report.tables.push(table);
    }
    Ok(())
}

/// Starts a progress bar. A hidden one shows nothing.
fn progress(ranges: usize, is_hidden: bool) -> ProgressBar {
    let target = match is_hidden {
        true => ProgressDrawTarget::hidden(),
        false => ProgressDrawTarget::stderr_with_hz(4),
    };
    let bar = ProgressBar::with_draw_target(Some(ranges as u64), target);
    if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
        bar.set_style(style);
    }
    bar
}
