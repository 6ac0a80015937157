//! Random SSTables, each from one seed.

use std::sync::Arc;

use bytes::Bytes;

use super::files::{Compression, TestTable};
use crate::clustering::BoundKind;
use crate::column_type::ColumnType;
use crate::data::{
    Cell, CellKind, ComplexDeletion, DeletionTime, Event, Expiry, Liveness, Partition, RangeTombstoneMarker,
    Row, RowDeletion,
};
use crate::statistics::{Column, ColumnKind, SerializationHeader};
use crate::storage::Compressor;
use crate::version::Version;

const KINDS: [BoundKind; 6] = [
    BoundKind::ExclusiveEnd,
    BoundKind::InclusiveStart,
    BoundKind::ExclusiveEndInclusiveStart,
    BoundKind::InclusiveEndExclusiveStart,
    BoundKind::InclusiveEnd,
    BoundKind::ExclusiveStart,
];

/// A generator of numbers (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn one_in(&mut self, number: u64) -> bool {
        self.below(number) == 0
    }

    fn bytes(&mut self, len: usize) -> Bytes {
        // Few different bytes, so that some chunks are compressible.
        (0..len).map(|_| self.below(4) as u8).collect()
    }

    fn value(&mut self, column_type: &ColumnType) -> Bytes {
        let len = match column_type.value_len() {
            _ if self.one_in(8) => 0,
            Some(len) => len,
            None if self.one_in(40) => 3_000,
            None => self.below(40) as usize,
        };
        self.bytes(len)
    }
}

/// Returns a table and events that its files can contain.
pub fn random_table(version: Version, seed: u64) -> (TestTable, Vec<Event>) {
    let mut random = Random(seed);
    let mut table = TestTable::new(version);
    table.min_timestamp_us += random.below(1 << 50) as i64 - (1 << 49);
    table.min_local_deletion_s += random.below(1 << 30) as i64 - (1 << 29);
    table.min_ttl_s = random.below(100) as i32;
    match random.below(4) {
        0 => {}
        1 => {
            table.clustering = Vec::new();
            table.regular_columns = (0..70)
                .map(|number| (format!("c{number:02}"), "UTF8Type"))
                .collect();
        }
        2 => {
            table.clustering = vec!["UTF8Type"; 40];
            table.regular_columns = Vec::new();
        }
        _ => {
            table.clustering = vec![
                "ReversedType(UTF8Type)",
                "LongType",
                "UserType(ks,61,62:Int32Type)",
            ];
            let named = |name: &str, class| (name.to_owned(), class);
            table.static_columns = vec![named("s", "UTF8Type"), named("t", "MapType(UTF8Type,Int32Type)")];
            table.regular_columns = vec![
                named("a", "Int32Type"),
                named("b", "VectorType(FloatType , 2)"),
                named("c", "FrozenType(ListType(Int32Type))"),
                named("d", "ShortType"),
                named("x", "ListType(Int32Type)"),
                named("y", "SetType(UTF8Type)"),
                named("z", "UserType(ks,61,62:Int32Type,63:UTF8Type)"),
            ];
        }
    }
    let compressors = [
        Compressor::Lz4,
        Compressor::Snappy,
        Compressor::Deflate,
        Compressor::Zstd,
        Compressor::Noop,
    ];
    table.compression = compressors
        .get(random.below(6) as usize)
        .map(|compressor| Compression {
            compressor: *compressor,
            chunk_len: 64 << random.below(6),
            max_compressed_len: if random.one_in(2) { i32::MAX } else { 50 },
        });
    table.has_empty_chunk = random.one_in(2);
    let header = table.header();
    let mut events = Vec::new();
    for _ in 0..=random.below(4) {
        let mut generator = Generator {
            header: &header,
            random: &mut random,
        };
        generator.partition(&mut events);
    }
    (table, events)
}

struct Generator<'a> {
    header: &'a SerializationHeader,
    random: &'a mut Random,
}

impl Generator<'_> {
    fn partition(&mut self, events: &mut Vec<Event>) {
        let len = 1 + self.random.below(20) as usize;
        let deletion = self.random.one_in(4).then(|| DeletionTime {
            timestamp_us: self.random.below(1 << 60) as i64,
            ..self.deletion()
        });
        events.push(Event::Partition(Partition {
            key: self.random.bytes(len),
            deletion,
        }));
        let row = self.row(ColumnKind::Static);
        if !row.is_empty() && !self.header.static_columns.is_empty() {
            events.push(Event::StaticRow(row));
        }
        for _ in 0..self.random.below(12) {
            events.push(match self.random.one_in(5) {
                true => Event::RangeTombstoneMarker(self.marker()),
                false => Event::Row(self.row(ColumnKind::Regular)),
            });
        }
        events.push(Event::PartitionEnd);
    }

    fn timestamp(&mut self) -> i64 {
        let later = self.random.below(1_000_000) as i64;
        match self.random.one_in(20) {
            true => i64::MAX - later,
            false => self.header.encoding.min_timestamp_us + later,
        }
    }

    /// Returns a time in all of the range of the version.
    fn seconds(&mut self) -> i64 {
        let bound = if self.header.version.has_uint_deletion_time() {
            u64::from(u32::MAX)
        } else {
            i32::MAX as u64
        };
        self.random.below(bound) as i64
    }

    fn deletion(&mut self) -> DeletionTime {
        DeletionTime {
            timestamp_us: self.timestamp(),
            local_deletion_s: self.seconds(),
        }
    }

    fn expiry(&mut self) -> Expiry {
        Expiry {
            ttl_s: 1 + self.random.below(1_000_000) as i32,
            expires_at_s: self.seconds(),
        }
    }

    fn marker(&mut self) -> RangeTombstoneMarker {
        let kind = KINDS[self.random.below(6) as usize];
        let len = self.random.below(1 + self.header.clustering_types.len() as u64) as usize;
        let mut prefix = self.clustering();
        prefix.truncate(len);
        RangeTombstoneMarker {
            kind,
            prefix,
            end: kind.is_end().then(|| self.deletion()),
            start: kind.is_start().then(|| self.deletion()),
        }
    }

    fn clustering(&mut self) -> Vec<Option<Bytes>> {
        let random = &mut *self.random;
        let types = self.header.clustering_types.iter();
        types
            .map(|column_type| (!random.one_in(30)).then(|| random.value(column_type)))
            .collect()
    }

    fn row(&mut self, kind: ColumnKind) -> Row {
        let mut row = Row::default();
        if kind == ColumnKind::Regular {
            row.clustering = self.clustering();
            row.liveness = (!self.random.one_in(4)).then(|| Liveness {
                timestamp_us: self.timestamp(),
                expiry: self.random.one_in(3).then(|| self.expiry()),
            });
            row.deletion = self.random.one_in(6).then(|| RowDeletion {
                time: self.deletion(),
                is_shadowable: self.random.one_in(3),
            });
        }
        let has_all = self.random.one_in(3);
        let has_deletions = self.random.one_in(3);
        for column in self.header.columns(kind) {
            if !has_all && self.random.one_in(2) {
                continue;
            }
            if column.is_complex && has_deletions && self.random.one_in(2) {
                let column = Arc::clone(column);
                let time = self.deletion();
                row.complex_deletions.push(ComplexDeletion { column, time });
            }
            let cells = if column.is_complex {
                self.random.below(5)
            } else {
                1
            };
            for _ in 0..cells {
                let cell = self.cell(column, row.liveness);
                row.cells.push(cell);
            }
        }
        row
    }

    fn cell(&mut self, column: &Arc<Column>, liveness: Option<Liveness>) -> Cell {
        let row = liveness.filter(|_| self.random.one_in(2));
        let kind = match (self.random.below(3), row.and_then(|row| row.expiry)) {
            (0, _) => CellKind::Live,
            (1, _) => CellKind::Deleted {
                local_deletion_s: self.seconds(),
            },
            (_, Some(expiry)) => CellKind::Expiring(expiry),
            (_, None) => CellKind::Expiring(self.expiry()),
        };
        let path_len = self.random.below(20) as usize;
        Cell {
            column: Arc::clone(column),
            path: column.is_complex.then(|| self.random.bytes(path_len)),
            timestamp_us: row.map_or_else(|| self.timestamp(), |row| row.timestamp_us),
            kind,
            value: match kind {
                CellKind::Deleted { .. } => Bytes::new(),
                _ => self.random.value(&column.column_type),
            },
        }
    }
}
