//! Prints the SSTables of a folder: `cargo run -p helenus-sstable --example sstable_dump -- FOLDER`.
//!
//! With `--lines`, prints every event of the files Data.db that are given instead of a folder (see [`lines`]).

use std::io::{BufWriter, Write, stdout};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use helenus_sstable::{Event, Limits, LocalFolder, SsTable, list};

mod lines;

use lines::Outcome;

fn main() -> Outcome {
    let (flags, paths): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|word| word.starts_with("--"));
    if paths.is_empty() {
        return Err("Give the folder of a table, or --lines and files Data.db".into());
    }
    let mut out = BufWriter::new(stdout().lock());
    for path in &paths {
        match flags.iter().any(|flag| flag == "--lines") {
            true => lines::print_file(&mut out, Path::new(path))?,
            false => summarize(&mut out, path)?,
        }
    }
    Ok(out.flush()?)
}

/// Prints the figures of a folder's SSTables, and the problems of those that can't be read.
fn summarize(out: &mut impl Write, path: &str) -> Outcome {
    let folder = Arc::new(LocalFolder::new(path));
    let listing = list(&*folder)?;
    for error in &listing.refused {
        writeln!(out, "{error}")?;
    }
    for listed in &listing.sstables {
        if let Err(error) = listed.check_complete() {
            writeln!(out, "{error}")?;
        }
        match SsTable::open(folder.clone(), &listed.descriptor) {
            Ok(sstable) => figures(out, &sstable)?,
            Err(error) => writeln!(out, "{error}")?,
        }
    }
    Ok(())
}

fn figures(out: &mut impl Write, sstable: &SsTable) -> Outcome {
    writeln!(out, "{}", sstable.descriptor())?;
    writeln!(out, "  {:?}", sstable.header())?;
    writeln!(out, "  {:?}", sstable.statistics().summary()?)?;
    writeln!(out, "  digest found: {}", sstable.verify_digest()?)?;
    let started = Instant::now();
    let (mut partitions, mut rows, mut cells, mut markers) = (0_u64, 0_u64, 0, 0_u64);
    for event in sstable.events(Limits::default())? {
        match event? {
            Event::Partition(_) => partitions += 1,
            Event::StaticRow(row) | Event::Row(row) => {
                rows += 1;
                cells += row.cells.len();
            }
            Event::RangeTombstoneMarker(_) => markers += 1,
            Event::PartitionEnd => {}
        }
    }
    let (bytes, time) = (sstable.data_len(), started.elapsed());
    writeln!(
        out,
        "  {partitions} partitions, {rows} rows, {cells} cells, {markers} markers of {bytes} bytes in {time:?}"
    )?;
    Ok(())
}
