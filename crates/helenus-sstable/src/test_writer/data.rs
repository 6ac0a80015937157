//! Writes Data.db.

use bytes::Bytes;

use super::{put_short_bytes, put_vint, put_vint_bytes};
use crate::clustering::BoundKind;
use crate::column_type::ColumnType;
use crate::data::{
    Cell, CellKind, DeletionTime, Event, Expiry, Liveness, Partition, RangeTombstoneMarker, Row,
    cell as cell_flags, row as row_flags,
};
use crate::statistics::{Column, ColumnKind, NO_DELETION_TIME_S, SerializationHeader};

const LIVE: DeletionTime = DeletionTime {
    timestamp_us: i64::MIN,
    local_deletion_s: NO_DELETION_TIME_S,
};

/// Returns the bytes of the events. An empty static row is written where the events have none.
pub fn encode(header: &SerializationHeader, events: &[Event]) -> Vec<u8> {
    let mut writer = Writer {
        header,
        out: Vec::new(),
        previous: 0,
    };
    for (position, event) in events.iter().enumerate() {
        let start = writer.out.len();
        match event {
            Event::Partition(partition) => {
                writer.partition(partition);
                let has_static = matches!(events.get(position + 1), Some(Event::StaticRow(_)));
                if !header.static_columns.is_empty() && !has_static {
                    writer.row(&Row::default(), ColumnKind::Static);
                }
            }
            Event::StaticRow(row) => writer.row(row, ColumnKind::Static),
            Event::Row(row) => writer.row(row, ColumnKind::Regular),
            Event::RangeTombstoneMarker(marker) => writer.marker(marker),
            Event::PartitionEnd => writer.out.push(row_flags::END_OF_PARTITION),
        }
        writer.previous = (writer.out.len() - start) as u64;
    }
    writer.out
}

struct Writer<'a> {
    header: &'a SerializationHeader,
    out: Vec<u8>,
    /// Bytes of the previous item.
    previous: u64,
}

impl Writer<'_> {
    fn partition(&mut self, partition: &Partition) {
        put_short_bytes(&mut self.out, &partition.key);
        let time = partition.deletion.unwrap_or(LIVE);
        if !self.header.version.has_uint_deletion_time() {
            let seconds = i32::try_from(time.local_deletion_s).unwrap_or(i32::MAX);
            self.out.extend(seconds.to_be_bytes());
            self.out.extend(time.timestamp_us.to_be_bytes());
        } else if time == LIVE {
            self.out.push(0x80);
        } else {
            self.out.extend(time.timestamp_us.to_be_bytes());
            let seconds = u32::try_from(time.local_deletion_s).unwrap_or(u32::MAX);
            self.out.extend(seconds.to_be_bytes());
        }
    }

    fn timestamp(&self, out: &mut Vec<u8>, timestamp_us: i64) {
        put_vint(
            out,
            timestamp_us.wrapping_sub(self.header.encoding.min_timestamp_us) as u64,
        );
    }

    fn local_deletion(&self, out: &mut Vec<u8>, seconds: i64) {
        let min = self.header.encoding.min_local_deletion_s;
        let seconds = match self.header.version.has_uint_deletion_time() {
            true => seconds,
            false => i64::from(i32::try_from(seconds).unwrap_or(i32::MAX)),
        };
        put_vint(out, i64::from(seconds.wrapping_sub(min) as i32) as u64);
    }

    fn ttl(&self, out: &mut Vec<u8>, ttl_s: i32) {
        put_vint(
            out,
            i64::from(ttl_s.wrapping_sub(self.header.encoding.min_ttl_s)) as u64,
        );
    }

    fn deletion(&self, out: &mut Vec<u8>, time: DeletionTime) {
        self.timestamp(out, time.timestamp_us);
        self.local_deletion(out, time.local_deletion_s);
    }

    /// Appends the size of a body, the size of the previous item and the body.
    fn body(&mut self, body: &[u8]) {
        let mut previous = Vec::new();
        put_vint(&mut previous, self.previous);
        put_vint(&mut self.out, (previous.len() + body.len()) as u64);
        self.out.extend(previous);
        self.out.extend(body);
    }

    fn row(&mut self, row: &Row, kind: ColumnKind) {
        let columns = self.header.columns(kind);
        let has = |column: &Column| {
            row.cells.iter().any(|cell| *cell.column == *column)
                || row
                    .complex_deletions
                    .iter()
                    .any(|deletion| *deletion.column == *column)
        };
        let present: Vec<bool> = columns.iter().map(|column| has(column)).collect();
        let has_all = present.iter().all(|present| *present);
        let is_shadowable = row.deletion.is_some_and(|deletion| deletion.is_shadowable);
        let mut flags = 0;
        let mut set = |flag: u8, is_set: bool| flags |= if is_set { flag } else { 0 };
        set(row_flags::HAS_TIMESTAMP, row.liveness.is_some());
        set(
            row_flags::HAS_TTL,
            row.liveness.is_some_and(|liveness| liveness.expiry.is_some()),
        );
        set(row_flags::HAS_DELETION, row.deletion.is_some());
        set(row_flags::HAS_ALL_COLUMNS, has_all);
        set(row_flags::HAS_COMPLEX_DELETION, !row.complex_deletions.is_empty());
        set(
            row_flags::HAS_EXTENDED_FLAGS,
            is_shadowable || kind == ColumnKind::Static,
        );
        self.out.push(flags);
        if flags & row_flags::HAS_EXTENDED_FLAGS != 0 {
            let shadowable = if is_shadowable {
                row_flags::HAS_SHADOWABLE_DELETION
            } else {
                0
            };
            self.out.push(shadowable | u8::from(kind == ColumnKind::Static));
        }
        if kind == ColumnKind::Regular {
            put_values(&mut self.out, &row.clustering, &self.header.clustering_types);
        }
        let mut body = Vec::new();
        if let Some(liveness) = row.liveness {
            self.timestamp(&mut body, liveness.timestamp_us);
            if let Some(expiry) = liveness.expiry {
                self.ttl(&mut body, expiry.ttl_s);
                self.local_deletion(&mut body, expiry.expires_at_s);
            }
        }
        if let Some(deletion) = row.deletion {
            self.deletion(&mut body, deletion.time);
        }
        if !has_all {
            put_subset(&mut body, &present);
        }
        for (column, _) in columns.iter().zip(present).filter(|(_, present)| *present) {
            self.column(&mut body, row, column);
        }
        self.body(&body);
    }

    fn column(&self, body: &mut Vec<u8>, row: &Row, column: &Column) {
        let cells: Vec<&Cell> = row.cells.iter().filter(|cell| *cell.column == *column).collect();
        if column.is_complex {
            if !row.complex_deletions.is_empty() {
                let mut deletions = row.complex_deletions.iter();
                let own = deletions.find(|deletion| *deletion.column == *column);
                self.deletion(body, own.map_or(LIVE, |own| own.time));
            }
            put_vint(body, cells.len() as u64);
        }
        for cell in cells {
            self.cell(body, cell, row.liveness);
        }
    }

    fn cell(&self, body: &mut Vec<u8>, cell: &Cell, liveness: Option<Liveness>) {
        let uses_timestamp = liveness.is_some_and(|row| row.timestamp_us == cell.timestamp_us);
        let (kind, local_deletion_s, expiry) = match cell.kind {
            CellKind::Live => (0, None, None),
            CellKind::Expiring(expiry) => (cell_flags::IS_EXPIRING, Some(expiry.expires_at_s), Some(expiry)),
            CellKind::Deleted { local_deletion_s } => (cell_flags::IS_DELETED, Some(local_deletion_s), None),
        };
        let uses_ttl = expiry.is_some() && liveness.is_some_and(|row| row.expiry == expiry);
        let mut flags = kind;
        flags |= if cell.value.is_empty() {
            cell_flags::HAS_EMPTY_VALUE
        } else {
            0
        };
        flags |= if uses_timestamp {
            cell_flags::USES_ROW_TIMESTAMP
        } else {
            0
        };
        flags |= if uses_ttl { cell_flags::USES_ROW_TTL } else { 0 };
        body.push(flags);
        if !uses_timestamp {
            self.timestamp(body, cell.timestamp_us);
        }
        if let (Some(seconds), false) = (local_deletion_s, uses_ttl) {
            self.local_deletion(body, seconds);
        }
        if let (Some(Expiry { ttl_s, .. }), false) = (expiry, uses_ttl) {
            self.ttl(body, ttl_s);
        }
        if let Some(path) = &cell.path {
            put_vint_bytes(body, path);
        }
        if !cell.value.is_empty() {
            put_value(body, &cell.value, &cell.column.column_type);
        }
    }

    fn marker(&mut self, marker: &RangeTombstoneMarker) {
        self.out.push(row_flags::IS_MARKER);
        self.out.push(ordinal(marker.kind));
        self.out
            .extend(u16::try_from(marker.prefix.len()).unwrap().to_be_bytes());
        put_values(&mut self.out, &marker.prefix, &self.header.clustering_types);
        let mut body = Vec::new();
        for time in [marker.end, marker.start].into_iter().flatten() {
            self.deletion(&mut body, time);
        }
        self.body(&body);
    }
}

pub(super) fn ordinal(kind: BoundKind) -> u8 {
    (0..=7)
        .find(|ordinal| BoundKind::from_ordinal(*ordinal) == Some(kind))
        .unwrap()
}

fn put_value(out: &mut Vec<u8>, value: &[u8], column_type: &ColumnType) {
    match column_type.value_len() {
        Some(len) => {
            assert_eq!(value.len(), len);
            out.extend(value);
        }
        None => put_vint_bytes(out, value),
    }
}

pub(super) fn put_values(out: &mut Vec<u8>, values: &[Option<Bytes>], types: &[ColumnType]) {
    for (values, types) in values.chunks(32).zip(types.chunks(32)) {
        let mut marks = 0_u64;
        for (position, value) in values.iter().enumerate() {
            let mark = match value {
                None => 2,
                Some(value) if value.is_empty() => 1,
                Some(_) => 0,
            };
            marks |= mark << (position * 2);
        }
        put_vint(out, marks);
        for (value, column_type) in values.iter().zip(types) {
            if let Some(value) = value.as_ref().filter(|value| !value.is_empty()) {
                put_value(out, value, column_type);
            }
        }
    }
}

/// Appends the columns that a row lacks some of (`Columns.Serializer.serializeSubset`).
fn put_subset(out: &mut Vec<u8>, present: &[bool]) {
    let positions = |wanted: bool| (0_u64..).zip(present).filter(move |(_, is)| **is == wanted);
    if present.len() < 64 {
        let absent = positions(false).fold(0, |bits, (position, _)| bits | 1 << position);
        put_vint(out, absent);
        return;
    }
    let count = positions(true).count();
    put_vint(out, (present.len() - count) as u64);
    for (position, _) in positions(count < present.len() / 2) {
        put_vint(out, position);
    }
}
