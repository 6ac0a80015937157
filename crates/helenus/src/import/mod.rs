//! `helenus import`: brings the tables of a Cassandra cluster in, from the SSTables of its nodes.
//!
//! The command merges the SSTables of each table (crate `helenus-import`), and sends the rows with `INSERT … ROWS ?` over CQL. Batches are
//! idempotent: they carry the timestamps of the source, so any of them may be sent again.
//!
//! - `args`: the options;
//! - `from`: the places of the sources, with those in a `bucket`;
//! - `target`: the connection, and the target's schema;
//! - `prepare`: the schema's part of the work;
//! - `transfer`: the rows' part, with `pipeline`, `sender`, `window`, `pace`, `probe` and `progress`;
//! - `state`: the file to go on from;
//! - `since`: the time of a second import;
//! - `report`: the result;
//! - `verify`: the comparison of source and target, which sends nothing.

mod args;
mod bucket;
mod from;
mod pace;
mod pipeline;
mod prepare;
mod probe;
mod progress;
mod report;
mod sender;
mod since;
mod state;
pub mod target;
mod transfer;
mod verify;
mod window;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use helenus_import::schema::SourceSchema;
use helenus_import::source::{FilesOf, SourceOptions, Sources};

pub use args::ImportArgs;
use report::Report;
use state::State;
use target::Target;

use crate::comparison_exit::exit_code;
use crate::serve::descriptors;
use crate::shell::EXIT_INTERRUPTED;
use crate::shell::interrupt::Interrupt;

/// Runs the import or the verification. The exit code is 130 after Ctrl-C.
pub fn run(args: &ImportArgs) -> Result<ExitCode> {
    // Each SSTable is an open file.
    descriptors::raise();
    let interrupt = Interrupt::default();
    match args.verify {
        true => Ok(exit_code(verify(args, &interrupt), &interrupt)),
        false => import(args, &interrupt),
    }
}

/// Compares the sources with the target. Returns true if they are equal.
fn verify(args: &ImportArgs, interrupt: &Interrupt) -> Result<bool> {
    let (mut sources, schema) = find(args, interrupt)?;
    let mut target = Target::connect(&args.to, &args.connection, interrupt)?;
    interrupt.catch()?;
    let prepared = prepare::prepare(args, &mut sources, &schema, Some(&mut target))?;
    verify::verify_tables(args, &sources, &prepared.tables, &target, interrupt)
}

/// Finds the SSTables and the schema of the sources, without views.
fn find(args: &ImportArgs, interrupt: &Interrupt) -> Result<(Sources, SourceSchema)> {
    let files = match (&args.backup, &args.snapshot) {
        (Some(backup), _) => FilesOf::MedusaBackup(backup.clone()),
        (None, Some(tag)) => FilesOf::Snapshot(tag.clone()),
        (None, None) => FilesOf::Live,
    };
    let folders = from::folders(&args.from, interrupt)?;
    let mut sources = Sources::find(&SourceOptions { folders, files })?;
    sources.add_missing_types()?;
    let schema = SourceSchema::read(&sources.schemas)?;
    for view in schema.views.keys() {
        sources.leave_out_view(view);
    }
    Ok((sources, schema))
}

fn import(args: &ImportArgs, interrupt: &Interrupt) -> Result<ExitCode> {
    let (mut sources, schema) = find(args, interrupt)?;
    let mut target = match args.to.is_empty() {
        true if args.dry_run => None,
        true => bail!("give --to HOST, the node that takes the rows, or --dry-run"),
        false => Some(Target::connect(&args.to, &args.connection, interrupt)?),
    };
    interrupt.catch()?;
    let prepared = prepare::prepare(args, &mut sources, &schema, target.as_mut())?;
    let mut report = Report::new(&sources, prepared.report);
    let mut state = match &target {
        Some(_) if !args.dry_run && !args.schema_only => Some(State::open(args)?),
        _ => None,
    };
    if let Some(state) = state.as_ref().filter(|state| state.is_begun()) {
        eprintln!(
            "An interrupted import goes on after {}; --restart begins again.",
            state.position()
        );
    }
    if !args.schema_only {
        let imported = transfer::import_tables(
            args,
            &sources,
            &prepared.tables,
            target.as_mut(),
            state.as_mut(),
            interrupt,
            &mut report,
        );
        if let Err(error) = imported {
            report.print(args.json);
            let resumes = state.as_ref().filter(|state| state.is_begun());
            let error = match resumes {
                Some(state) => error.context(format!(
                    "stopped; the same command goes on after {}",
                    state.position()
                )),
                None => error,
            };
            if interrupt.is_set() {
                eprintln!("helenus: {error:#}");
                return Ok(ExitCode::from(EXIT_INTERRUPTED));
            }
            return Err(error);
        }
    }
    if let Some(state) = state {
        state.remove().context("the import is done")?;
    }
    report.print(args.json);
    Ok(ExitCode::SUCCESS)
}
