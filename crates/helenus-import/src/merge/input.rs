//! One SSTable of a merge: its events, with their places.

use bytes::Bytes;
use helenus_row::key::successor;
use helenus_row::transfer::TransferBound;
use helenus_row::{Deletion, murmur3_token};
use helenus_sstable::{EXPIRED_LIVENESS_TTL_S, Event, Events, Partition, RangeTombstoneMarker, Row, SsTable};

use super::MergeOptions;
use super::convert::deletion_of;
use super::head::{Content, Head, Position, is_after_rows};
use crate::error::{ImportError, refused_key};
use crate::table::{TableLayout, Targets};

/// An open SSTable.
pub(super) struct Input {
    events: Events,
    /// Path of Data.db, for errors.
    pub(super) file: String,
    pub(super) targets: Targets,
    /// The start and the deletion of the range in which the last item was.
    pub(super) open: Option<(TransferBound, Deletion)>,
    token: i64,
    key: Bytes,
    from_token: Option<i64>,
    /// False if this is the only input, so that rows need no places.
    has_positions: bool,
    data_len: u64,
    data_bytes: u64,
}

impl Input {
    pub(super) fn open(
        layout: &TableLayout,
        sstable: &SsTable,
        file: String,
        data_bytes: u64,
        has_positions: bool,
        options: &MergeOptions,
    ) -> Result<Input, ImportError> {
        Ok(Input {
            events: sstable.events(options.limits)?,
            file,
            targets: layout.targets(sstable),
            open: None,
            token: i64::MIN,
            key: Bytes::new(),
            from_token: options.from_token,
            has_positions,
            data_len: sstable.data_len(),
            data_bytes,
        })
    }

    /// Returns the bytes of Data.db that have been read, as they lie on the disk.
    pub(super) fn bytes_read(&self) -> u64 {
        let read = u128::from(self.events.offset()) * u128::from(self.data_bytes);
        u64::try_from(read / u128::from(self.data_len.max(1))).unwrap_or(u64::MAX)
    }

    /// Returns the next item. `None` at the end of the file.
    pub(super) fn next_head(
        &mut self,
        layout: &TableLayout,
        input: usize,
    ) -> Result<Option<Head>, ImportError> {
        let Some(event) = self.next_event()? else {
            return Ok(None);
        };
        let (position, content) = match event {
            Event::Partition(partition) => {
                let deletion = partition.deletion.map(deletion_of);
                (Position::Start, Content::Partition(deletion))
            }
            Event::StaticRow(row) => (Position::Static, Content::StaticRow(row)),
            Event::Row(row) => {
                self.check_no_view(&row)?;
                (self.row_position(layout, &row)?, Content::Row(row))
            }
            Event::RangeTombstoneMarker(marker) => {
                (self.bound_position(layout, &marker)?, Content::Marker(marker))
            }
            Event::PartitionEnd => (Position::End, Content::End),
        };
        Ok(Some(Head {
            token: self.token,
            key: self.key.clone(),
            position,
            content,
            input,
        }))
    }

    /// Returns the next event of a partition that isn't skipped, and notes the partition.
    fn next_event(&mut self) -> Result<Option<Event>, ImportError> {
        let mut is_skipped = false;
        loop {
            let Some(event) = self.events.next().transpose()? else {
                return Ok(None);
            };
            match &event {
                Event::Partition(partition) => {
                    self.start(partition);
                    is_skipped = self.from_token.is_some_and(|from| self.token < from);
                }
                Event::PartitionEnd if is_skipped => {
                    is_skipped = false;
                    continue;
                }
                _ => {}
            }
            if !is_skipped {
                return Ok(Some(event));
            }
        }
    }

    fn start(&mut self, partition: &Partition) {
        self.token = murmur3_token(&partition.key);
        self.key = partition.key.clone();
    }

    /// Refuses a row that only materialized views have. Up to 3.11.10, schema.cql shows a view as a table.
    fn check_no_view(&self, row: &Row) -> Result<(), ImportError> {
        let expiry = row.liveness.and_then(|liveness| liveness.expiry);
        if expiry.is_none_or(|expiry| expiry.ttl_s != EXPIRED_LIVENESS_TTL_S) {
            return Ok(());
        }
        Err(ImportError::Refused(format!(
            "{}: a row has ended with its base row, so this is a materialized view. Leave it out with --exclude KEYSPACE.VIEW, and \
             create the view on the target",
            self.file
        )))
    }

    fn row_position(&self, layout: &TableLayout, row: &Row) -> Result<Position, ImportError> {
        let values = self.values(&row.clustering)?;
        if !self.has_positions {
            return Ok(Position::AfterRows);
        }
        let encoded = self.encode(layout, &values)?;
        Ok(Position::Clustering(encoded, true))
    }

    fn bound_position(
        &self,
        layout: &TableLayout,
        marker: &RangeTombstoneMarker,
    ) -> Result<Position, ImportError> {
        let values = self.values(&marker.prefix)?;
        if !self.has_positions {
            return Ok(Position::AfterRows);
        }
        let encoded = self.encode(layout, &values)?;
        if !is_after_rows(marker.kind) {
            return Ok(Position::Clustering(encoded, false));
        }
        Ok(successor(&encoded).map_or(Position::AfterRows, |after| Position::Clustering(after, false)))
    }

    fn encode(&self, layout: &TableLayout, values: &[&Bytes]) -> Result<Bytes, ImportError> {
        let encoded = layout.keys.encode_clustering(values);
        let encoded = encoded.map_err(|error| refused_key(&self.file, "a clustering value", &error))?;
        Ok(encoded.bytes)
    }

    /// Returns the values. Nulls may only be the last ones, as in rows of compact tables that lack clustering columns.
    fn values<'v>(&self, values: &'v [Option<Bytes>]) -> Result<Vec<&'v Bytes>, ImportError> {
        let present: Vec<&Bytes> = values.iter().map_while(Option::as_ref).collect();
        if values.iter().flatten().count() > present.len() {
            return Err(ImportError::Refused(format!(
                "{}: a row lacks a clustering value before its last one, as only Thrift clients wrote. Leave this table out",
                self.file
            )));
        }
        Ok(present)
    }
}
