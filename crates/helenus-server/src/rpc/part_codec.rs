//! Encodes and decodes the results of parts of reads, for the node that combines them.

use helenus_cql::error::CqlError;
use helenus_query::analysis::selection::{NamedGroup, NamedRow};
use helenus_query::cluster::{PartAnswer, PartPage, PartRows, RemoteError};
use helenus_query::failure::ExecutionError;
use helenus_query::response::{Response, Rows as ResultRows};
use helenus_query::rows::{CellView, RowCounts};

use super::envelope;
use super::proto::part_response::Rows;
use super::proto::{
    Cell, ColumnCells, ColumnValue, FirstRow, PartPage as SentPage, PartResponse, PartialGroup,
};

/// Encodes the result of a part.
pub(super) fn response(result: Result<PartAnswer, ExecutionError>) -> PartResponse {
    match result {
        Ok(answer) => answered(answer),
        Err(ExecutionError::NotOwned) => PartResponse {
            not_mine: true,
            ..PartResponse::default()
        },
        Err(ExecutionError::Failed(error)) => failed(error),
    }
}

fn failed(error: CqlError) -> PartResponse {
    PartResponse {
        error: envelope::answer(Err(error)),
        ..PartResponse::default()
    }
}

fn answered(answer: PartAnswer) -> PartResponse {
    let PartAnswer { rows, met } = answer;
    PartResponse {
        rows: Some(match rows {
            PartRows::Counted(rows) => Rows::Counted(rows),
            PartRows::Group(group) => Rows::Group(PartialGroup {
                states: group.states,
                first: group.first.map(first_row),
            }),
            PartRows::Page(page) => Rows::Page(sent_page(page)),
        }),
        live: met.live as u64,
        dead: met.dead as u64,
        tombstones: met.tombstones as u64,
        last_token: met.last_token,
        ..PartResponse::default()
    }
}

fn sent_page(page: PartPage) -> SentPage {
    let rows = Response::Rows(ResultRows {
        metadata: page.metadata,
        content: page.content,
        paging_state: page.last,
    });
    SentPage {
        rows: envelope::answer(Ok(rows.into())),
        is_cut: page.is_cut,
    }
}

fn first_row(row: NamedRow) -> FirstRow {
    let cell = |cell: CellView| Cell {
        path: cell.path,
        value: cell.value,
        timestamp_us: cell.timestamp_us,
        ttl_s: cell.ttl_s,
    };
    let values = row.values.into_iter();
    let cells = row.cells.into_iter();
    FirstRow {
        values: values
            .map(|(column, value)| ColumnValue { column, value })
            .collect(),
        cells: cells
            .map(|(column, cells)| ColumnCells {
                column,
                cells: cells.into_iter().map(cell).collect(),
            })
            .collect(),
    }
}

/// Decodes the result of [`response`].
///
/// # Errors
/// The error that the other node sent, or an error that the result is of an unknown kind.
pub(super) fn answer(response: PartResponse) -> Result<PartAnswer, RemoteError> {
    if response.not_mine {
        return Err(RemoteError::NotOwned);
    }
    let unknown = |what: &str| RemoteError::NoAnswer(what.to_owned());
    if !response.error.is_empty() {
        let error = envelope::outcome(&response.error).err();
        return Err(error.map_or_else(|| unknown("an error was expected"), RemoteError::Failed));
    }
    let rows = match response.rows {
        Some(Rows::Counted(rows)) => PartRows::Counted(rows),
        Some(Rows::Group(group)) => PartRows::Group(NamedGroup {
            states: group.states,
            first: group.first.map(named_row),
        }),
        Some(Rows::Page(page)) => PartRows::Page(received_page(page)?),
        None => return Err(unknown("the result of a part was expected")),
    };
    let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    Ok(PartAnswer {
        rows,
        met: RowCounts {
            live: count(response.live),
            dead: count(response.dead),
            tombstones: count(response.tombstones),
            last_token: response.last_token,
        },
    })
}

fn received_page(page: SentPage) -> Result<PartPage, RemoteError> {
    match envelope::outcome(&page.rows).map(|outcome| outcome.response) {
        Ok(Response::Rows(rows)) => Ok(PartPage {
            metadata: rows.metadata,
            content: rows.content,
            last: rows.paging_state,
            is_cut: page.is_cut,
        }),
        Ok(_) => Err(RemoteError::NoAnswer("rows were expected".to_owned())),
        Err(error) => Err(RemoteError::NoAnswer(error.to_string())),
    }
}

fn named_row(row: FirstRow) -> NamedRow {
    let cell = |cell: Cell| CellView {
        path: cell.path,
        value: cell.value,
        timestamp_us: cell.timestamp_us,
        ttl_s: cell.ttl_s,
    };
    let (values, columns) = (row.values.into_iter(), row.cells.into_iter());
    NamedRow {
        values: values.map(|value| (value.column, value.value)).collect(),
        cells: columns
            .map(|column| (column.column, column.cells.into_iter().map(cell).collect()))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use helenus_cql::types::{CqlType, NativeType};
    use helenus_query::response::{ColumnSpec, ResultMetadata, RowsBuilder};
    use prost::Message;

    use super::*;

    /// Returns a result after encoding and decoding it.
    fn sent(result: Result<PartAnswer, ExecutionError>) -> Result<PartAnswer, RemoteError> {
        let bytes = response(result).encode_to_vec();
        answer(PartResponse::decode(bytes.as_slice()).unwrap())
    }

    fn met() -> RowCounts {
        RowCounts {
            live: 3,
            dead: 2,
            tombstones: 7,
            last_token: Some(i64::MIN),
        }
    }

    #[test]
    fn counts_and_groups_come_as_they_were_sent() {
        let cell = |path: Option<&'static [u8]>, ttl_s| CellView {
            path: path.map(Bytes::from_static),
            value: Bytes::from_static(b"v"),
            timestamp_us: -5,
            ttl_s,
        };
        let first = NamedRow {
            values: vec![
                ("a".to_owned(), Some(Bytes::from_static(b"1"))),
                ("b".to_owned(), None),
                ("c".to_owned(), Some(Bytes::new())),
            ],
            cells: vec![
                ("a".to_owned(), vec![cell(None, Some(9)), cell(Some(b""), None)]),
                ("b".to_owned(), Vec::new()),
            ],
        };
        let states = vec![Bytes::from_static(b"state"), Bytes::new()];
        let group = |first| {
            PartRows::Group(NamedGroup {
                states: states.clone(),
                first,
            })
        };
        let nothing = RowCounts::default();
        for (rows, met) in [
            (PartRows::Counted(0), nothing),
            (PartRows::Counted(u64::MAX), met()),
            (PartRows::Group(NamedGroup::default()), nothing),
            (group(None), met()),
            (group(Some(NamedRow::default())), met()),
            (group(Some(first)), met()),
            (page(&[], None, false), nothing),
            (page(&[Some(b"1"), None, Some(b"")], Some("state"), true), met()),
        ] {
            let answer = PartAnswer { rows, met };
            assert_eq!(sent(Ok(answer.clone())), Ok(answer));
        }
    }

    /// Returns rows with one column.
    fn page(cells: &[Option<&[u8]>], last: Option<&'static str>, is_cut: bool) -> PartRows {
        let column = ColumnSpec::new("ks", "t", "v", CqlType::Native(NativeType::Blob));
        let mut builder = RowsBuilder::new(1);
        cells.iter().for_each(|cell| builder.push(*cell));
        PartRows::Page(PartPage {
            metadata: Arc::new(ResultMetadata::new(vec![column])),
            content: builder.finish(),
            last: last.map(Bytes::from),
            is_cut,
        })
    }

    #[test]
    fn failures_come_with_their_code_and_text() {
        assert_eq!(sent(Err(ExecutionError::NotOwned)), Err(RemoteError::NotOwned));
        let failure = CqlError::invalid("no such column");
        assert_eq!(
            sent(Err(failure.clone().into())),
            Err(RemoteError::Failed(failure))
        );
    }

    #[test]
    fn an_answer_without_rows_is_none() {
        assert!(matches!(
            answer(PartResponse::default()),
            Err(RemoteError::NoAnswer(_))
        ));
    }
}
