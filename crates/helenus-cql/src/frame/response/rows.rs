//! The rows of a result (spec v5, section 4.2.5.2).
//!
//! [`RowsBuilder`] writes cells directly into the bytes that are sent: a length and the serialized value.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};

use crate::error::CqlError;
use crate::frame::metadata::{PageMetadata, ResultMetadata};
use crate::frame::primitive::{Reader, len_i32, put_bytes};
use crate::frame::version::ProtocolVersion;

/// A page of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    pub metadata: Arc<ResultMetadata>,
    pub page: PageMetadata,
    pub content: RowsContent,
}

/// The cells of rows in the protocol's format, row after row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowsContent {
    column_count: usize,
    row_count: usize,
    cells: Bytes,
}

/// Collects cells, row after row and column after column.
#[derive(Debug)]
pub struct RowsBuilder {
    column_count: usize,
    cell_count: usize,
    cells: BytesMut,
}

impl RowsBuilder {
    /// Creates a builder for rows of at least one column.
    pub fn new(column_count: usize) -> RowsBuilder {
        RowsBuilder {
            column_count,
            cell_count: 0,
            cells: BytesMut::new(),
        }
    }

    /// Appends the next cell. `None` for null.
    pub fn push(&mut self, value: Option<&[u8]>) {
        put_bytes(&mut self.cells, value);
        self.cell_count += 1;
    }

    /// Appends the next cell, whose bytes `write` appends to the buffer.
    pub fn push_with(&mut self, write: impl FnOnce(&mut BytesMut)) {
        let start = self.cells.len();
        self.cells.put_i32(0);
        write(&mut self.cells);
        let len = len_i32(self.cells.len().saturating_sub(start + 4)).to_be_bytes();
        if let Some(field) = self.cells.get_mut(start..start + 4) {
            field.copy_from_slice(&len);
        }
        self.cell_count += 1;
    }

    /// Appends rows with the same number of columns. The last row so far must be complete.
    pub fn append(&mut self, rows: &RowsContent) {
        debug_assert_eq!(rows.column_count, self.column_count);
        self.cells.put_slice(&rows.cells);
        self.cell_count += rows.row_count * rows.column_count;
    }

    /// Returns the number of bytes written so far.
    pub fn len_bytes(&self) -> usize {
        self.cells.len()
    }

    /// Returns the number of complete rows so far.
    pub fn row_count(&self) -> usize {
        self.cell_count.checked_div(self.column_count).unwrap_or(0)
    }

    /// Returns the rows. The last row must be complete.
    pub fn finish(self) -> RowsContent {
        let row_count = self.row_count();
        debug_assert_eq!(row_count * self.column_count, self.cell_count);
        RowsContent {
            column_count: self.column_count,
            row_count,
            cells: self.cells.freeze(),
        }
    }
}

impl RowsContent {
    pub fn row_count(&self) -> usize {
        self.row_count
    }

    pub fn column_count(&self) -> usize {
        self.column_count
    }

    /// Returns the number of bytes of the cells.
    pub fn len_bytes(&self) -> usize {
        self.cells.len()
    }

    /// Returns the rows one by one. Corrupt cells end the iteration early.
    pub fn iter(&self) -> impl Iterator<Item = Vec<Option<Bytes>>> + use<> {
        let mut reader = Reader::new(self.cells.clone());
        let column_count = self.column_count;
        (0..self.row_count).map_while(move |_| (0..column_count).map(|_| reader.bytes().ok()).collect())
    }
}

impl Rows {
    pub fn new(metadata: Arc<ResultMetadata>, content: RowsContent) -> Rows {
        Rows {
            metadata,
            page: PageMetadata::default(),
            content,
        }
    }

    pub(crate) fn encode(&self, version: ProtocolVersion, out: &mut BytesMut) {
        self.metadata.encode(&self.page, version, out);
        out.put_i32(len_i32(self.content.row_count));
        out.put_slice(&self.content.cells);
    }

    pub(crate) fn decode(reader: &mut Reader, version: ProtocolVersion) -> Result<Rows, CqlError> {
        let (metadata, page, column_count) = ResultMetadata::decode(reader, version)?;
        let row_count = reader.i32()?;
        let row_count = usize::try_from(row_count)
            .map_err(|_| CqlError::Protocol(format!("Invalid count of rows {row_count}")))?;
        let cells = reader.clone().into_rest();
        if column_count.saturating_mul(row_count).saturating_mul(4) > cells.len()
            || (column_count == 0 && row_count > 0)
        {
            return Err(CqlError::Protocol("Not enough bytes for the rows".to_owned()));
        }
        for _ in 0..column_count * row_count {
            reader.bytes()?;
        }
        let cells = cells.slice(..cells.len() - reader.remaining());
        let content = RowsContent {
            column_count,
            row_count,
            cells,
        };
        Ok(Rows {
            metadata: Arc::new(metadata),
            page,
            content,
        })
    }
}
