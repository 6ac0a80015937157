//! The content of an SSTable in lines, one for each item. Times are in the units of Cassandra, values are hexadecimal, `-` is absent and
//! `empty` a value without bytes.
//!
//! ```text
//! F nb-1-big                                            an SSTable
//! H key|clustering|static|regular [name] class          the serialization header
//! S …                                                   facts of the whole SSTable
//! P key deletion                                        the start of a partition
//! R static|clustering liveness deletion                 a row
//! X column deletion                                     the deletion of a whole collection
//! C column path timestamp live|ttl,expiry|deleted,time value
//! M kind clustering deletion-before deletion-after      a range tombstone marker
//! E                                                     the end of the partition
//! ```
//!
//! The tests of the import print the same lines with Cassandra's own classes, and the golden files of this crate were made by these.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use helenus_sstable::{
    BoundKind, Cell, CellKind, DeletionTime, Event, FileName, Limits, LocalFolder, NO_DELETION_TIME_S, Row,
    SsTable, parse_file_name,
};

pub type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Prints all lines of one SSTable.
pub fn print_file(out: &mut impl Write, path: &Path) -> Outcome {
    let folder = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let FileName { descriptor, .. } = parse_file_name(&name).ok_or("the file is none of an SSTable")??;
    let sstable = SsTable::open(Arc::new(LocalFolder::new(folder)), &descriptor)?;
    writeln!(out, "F {descriptor}")?;
    print_header(out, &sstable)?;
    if !sstable.verify_digest()? {
        return Err("the SSTable has no digest".into());
    }
    for event in sstable.events(Limits::default())? {
        match event? {
            Event::Partition(partition) => {
                let deletion = deletion(partition.deletion.as_ref());
                writeln!(out, "P {} {deletion}", hex(&partition.key))?;
            }
            Event::StaticRow(row) => print_row(out, "static", &row)?,
            Event::Row(row) => print_row(out, &clustering(&row.clustering), &row)?,
            Event::RangeTombstoneMarker(marker) => {
                let (kind, prefix) = (kind_name(marker.kind), clustering(&marker.prefix));
                let (end, start) = (deletion(marker.end.as_ref()), deletion(marker.start.as_ref()));
                writeln!(out, "M {kind} {prefix} {end} {start}")?;
            }
            Event::PartitionEnd => writeln!(out, "E")?,
        }
    }
    Ok(())
}

fn print_header(out: &mut impl Write, sstable: &SsTable) -> Outcome {
    let header = sstable.header();
    writeln!(out, "H key {}", header.key_type.class)?;
    for column_type in &header.clustering_types {
        writeln!(out, "H clustering {}", column_type.class)?;
    }
    for (kind, columns) in [
        ("static", &header.static_columns),
        ("regular", &header.regular_columns),
    ] {
        for column in columns {
            writeln!(out, "H {kind} {} {}", hex(&column.name), column.column_type.class)?;
        }
    }
    let summary = sstable
        .statistics()
        .summary()?
        .ok_or("the SSTable has no summary")?;
    writeln!(
        out,
        "S timestamp {} {}",
        summary.min_timestamp_us, summary.max_timestamp_us
    )?;
    let (min, max) = (
        time(summary.min_local_deletion_s),
        time(summary.max_local_deletion_s),
    );
    writeln!(out, "S deletion {min} {max}")?;
    writeln!(out, "S ttl {} {}", summary.min_ttl_s, summary.max_ttl_s)?;
    writeln!(
        out,
        "S level {} repaired {}",
        summary.level, summary.repaired_at_ms
    )?;
    writeln!(out, "S cells {} rows {}", summary.cells, summary.rows)?;
    Ok(())
}

fn print_row(out: &mut impl Write, clustering: &str, row: &Row) -> Outcome {
    let liveness = match row.liveness {
        None => "-".to_owned(),
        Some(liveness) => match liveness.expiry {
            None => liveness.timestamp_us.to_string(),
            Some(expiry) => {
                format!(
                    "{},{},{}",
                    liveness.timestamp_us,
                    expiry.ttl_s,
                    time(expiry.expires_at_s)
                )
            }
        },
    };
    let deleted = match &row.deletion {
        Some(deleted) if deleted.is_shadowable => format!("{},shadowable", deletion(Some(&deleted.time))),
        deleted => deletion(deleted.as_ref().map(|deleted| &deleted.time)),
    };
    writeln!(out, "R {clustering} {liveness} {deleted}")?;
    let mut deletions = row.complex_deletions.iter().peekable();
    let mut cells = row.cells.iter().peekable();
    // Deletions and cells have the same order of columns, and a column's deletion comes first.
    while deletions.peek().is_some() || cells.peek().is_some() {
        let place = |column: &Arc<helenus_sstable::Column>| (column.is_complex, column.name.clone());
        let is_deletion_next = match (deletions.peek(), cells.peek()) {
            (Some(deletion), Some(cell)) => place(&deletion.column) <= place(&cell.column),
            (Some(_), None) => true,
            (None, _) => false,
        };
        if is_deletion_next {
            if let Some(deleted) = deletions.next() {
                let name = hex(&deleted.column.name);
                writeln!(out, "X {name} {}", deletion(Some(&deleted.time)))?;
            }
        } else if let Some(cell) = cells.next() {
            print_cell(out, cell)?;
        }
    }
    Ok(())
}

fn print_cell(out: &mut impl Write, cell: &Cell) -> Outcome {
    let kind = match cell.kind {
        CellKind::Live => "live".to_owned(),
        CellKind::Expiring(expiry) => format!("{},{}", expiry.ttl_s, time(expiry.expires_at_s)),
        CellKind::Deleted { local_deletion_s } => format!("deleted,{}", time(local_deletion_s)),
    };
    let path = cell.path.as_ref().map_or("-".to_owned(), text);
    let (name, value) = (hex(&cell.column.name), text(&cell.value));
    writeln!(out, "C {name} {path} {} {kind} {value}", cell.timestamp_us)?;
    Ok(())
}

/// Returns the name of `ClusteringPrefix.Kind`.
fn kind_name(kind: BoundKind) -> &'static str {
    match kind {
        BoundKind::ExclusiveEnd => "EXCL_END_BOUND",
        BoundKind::InclusiveStart => "INCL_START_BOUND",
        BoundKind::ExclusiveEndInclusiveStart => "EXCL_END_INCL_START_BOUNDARY",
        BoundKind::InclusiveEndExclusiveStart => "INCL_END_EXCL_START_BOUNDARY",
        BoundKind::InclusiveEnd => "INCL_END_BOUND",
        BoundKind::ExclusiveStart => "EXCL_START_BOUND",
    }
}

fn clustering(values: &[Option<Bytes>]) -> String {
    if values.is_empty() {
        return ".".to_owned();
    }
    let values = values
        .iter()
        .map(|value| value.as_ref().map_or("null".to_owned(), text));
    values.collect::<Vec<String>>().join(",")
}

fn deletion(deletion: Option<&DeletionTime>) -> String {
    deletion.map_or("-".to_owned(), |deletion| {
        format!("{},{}", deletion.timestamp_us, time(deletion.local_deletion_s))
    })
}

fn time(seconds: i64) -> String {
    match seconds {
        NO_DELETION_TIME_S => "none".to_owned(),
        _ => seconds.to_string(),
    }
}

fn text(bytes: &Bytes) -> String {
    match bytes.is_empty() {
        true => "empty".to_owned(),
        false => hex(bytes),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
