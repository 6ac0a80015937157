//! Reads the SSTables of a folder on one thread and prints the speed:
//! `cargo run --release -p helenus-sstable --example sstable_throughput -- FOLDER [SECONDS]`.
//!
//! The folder is read again until the seconds (5 unless given) are over, so that it comes from the page cache.

use std::sync::Arc;
use std::time::{Duration, Instant};

use helenus_sstable::{Event, Limits, LocalFolder, SsTable, list};

const DEFAULT_SECONDS: u64 = 5;
const MB: f64 = 1_000_000.0;

#[derive(Default)]
struct Counted {
    compressed_bytes: u64,
    data_bytes: u64,
    partitions: u64,
    rows: u64,
    cells: u64,
    value_bytes: u64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("Give the folder of a table")?;
    let seconds = arguments
        .next()
        .map_or(Ok(DEFAULT_SECONDS), |text| text.parse())?;
    let folder = Arc::new(LocalFolder::new(folder));
    let mut sstables = Vec::new();
    for listed in list(&*folder)?.sstables {
        sstables.push((
            SsTable::open(folder.clone(), &listed.descriptor)?,
            listed.data_bytes,
        ));
    }
    if sstables.is_empty() {
        return Err("The folder has no SSTable".into());
    }
    let started = Instant::now();
    let mut counted = Counted::default();
    while started.elapsed() < Duration::from_secs(seconds) {
        for (sstable, bytes) in &sstables {
            counted.compressed_bytes += bytes;
            counted.data_bytes += sstable.data_len();
            counted.read(sstable)?;
        }
    }
    let rate = |count: u64| count as f64 / started.elapsed().as_secs_f64();
    println!(
        "{:.0} MB/s compressed, {:.0} MB/s of data, {:.0} rows/s, {:.0} cells/s, {:.0} partitions/s, {:.0} MB/s of values",
        rate(counted.compressed_bytes) / MB,
        rate(counted.data_bytes) / MB,
        rate(counted.rows),
        rate(counted.cells),
        rate(counted.partitions),
        rate(counted.value_bytes) / MB,
    );
    Ok(())
}

impl Counted {
    fn read(&mut self, sstable: &SsTable) -> Result<(), helenus_sstable::SstableError> {
        for event in sstable.events(Limits::default())? {
            match event? {
                Event::Partition(_) => self.partitions += 1,
                Event::StaticRow(row) | Event::Row(row) => {
                    self.rows += 1;
                    self.cells += row.cells.len() as u64;
                    let bytes = row.cells.iter().map(|cell| cell.value.len() as u64);
                    self.value_bytes += bytes.sum::<u64>();
                }
                Event::RangeTombstoneMarker(_) | Event::PartitionEnd => {}
            }
        }
        Ok(())
    }
}
