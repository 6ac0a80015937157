//! Prints the SSTables of a folder, and their events with `--events`: `cargo run -p helenus-sstable --example sstable_dump -- FOLDER`.

use std::sync::Arc;
use std::time::Instant;

use helenus_sstable::{Event, Limits, LocalFolder, SsTable, SstableError, list};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments
        .next()
        .ok_or("Give the folder of a table, and --events to print its events")?;
    let prints_events = arguments.any(|argument| argument == "--events");
    let folder = Arc::new(LocalFolder::new(folder));
    let listing = list(&*folder)?;
    for error in &listing.refused {
        println!("{error}");
    }
    for listed in &listing.sstables {
        if let Err(error) = listed.check_complete() {
            println!("{error}");
        }
        let sstable = SsTable::open(folder.clone(), &listed.descriptor);
        if let Err(error) = sstable.and_then(|sstable| dump(&sstable, prints_events)) {
            println!("{error}");
        }
    }
    Ok(())
}

fn dump(sstable: &SsTable, prints_events: bool) -> Result<(), SstableError> {
    println!("{}", sstable.descriptor());
    println!("  {:?}", sstable.header());
    println!("  {:?}", sstable.statistics().summary()?);
    println!("  digest found: {}", sstable.verify_digest()?);
    let started = Instant::now();
    let (mut partitions, mut rows, mut cells, mut markers) = (0_u64, 0_u64, 0, 0_u64);
    for event in sstable.events(Limits::default())? {
        let event = event?;
        if prints_events {
            println!("  {event:?}");
        }
        match event {
            Event::Partition(_) => partitions += 1,
            Event::StaticRow(row) | Event::Row(row) => {
                rows += 1;
                cells += row.cells.len();
            }
            Event::RangeTombstoneMarker(_) => markers += 1,
            Event::PartitionEnd => {}
        }
    }
    println!(
        "  {partitions} partitions, {rows} rows, {cells} cells, {markers} markers of {} bytes in {:?}",
        sstable.data_len(),
        started.elapsed()
    );
    Ok(())
}
