//! The trace of a request, in cqlsh's format.

use std::io::Write;
use std::time::{Duration, Instant};

use bytes::Bytes;
use helenus_cql::frame::QueryParameters;
use helenus_cql::frame::Rows;
use helenus_cql::frame::response::{QueryResult, Response};
use uuid::Uuid;

use super::client::{Client, StatementError};
use super::grid::{Grid, GridColumn};
use super::interrupt::Interrupt;
use super::results::show;

/// Maximum time to wait until a trace is complete, as in cqlsh.
const COMPLETE_WAIT_MAX: Duration = Duration::from_secs(10);
const COMPLETE_CHECK_INTERVAL: Duration = Duration::from_millis(30);

const COLUMNS: [(&str, bool); 5] = [
    ("activity", true),
    ("timestamp", true),
    ("source", true),
    ("source_elapsed", false),
    ("client", true),
];

/// Writes the trace with this id, even if it is not complete after a timeout. Returns false if the trace is missing or incomplete.
pub fn write_trace(
    client: &mut Client,
    interrupt: &Interrupt,
    id: Uuid,
    out: &mut dyn Write,
) -> Result<bool, StatementError> {
    let Some((session, is_complete)) = await_session(client, interrupt, id)? else {
        return Ok(false);
    };
    let text = |at: usize| session.get(at).cloned().unwrap_or_default();
    let (request, started, coordinator, duration, client_address, ended) =
        (text(0), text(1), text(2), text(3), text(4), text(5));
    let mut lines = vec![vec![
        request,
        started,
        coordinator.clone(),
        "0".to_owned(),
        client_address.clone(),
    ]];
    let events = format!(
        "SELECT activity, toTimestamp(event_id), source, source_elapsed FROM system_traces.events WHERE session_id = {id}"
    );
    for mut event in text_rows(client, &events)? {
        event.push(client_address.clone());
        lines.push(event);
    }
    if is_complete {
        lines.push(vec![
            "Request complete".to_owned(),
            ended,
            coordinator,
            duration,
            client_address,
        ]);
    }
    writeln!(out, "\nTracing session: {id}\n")?;
    let columns = COLUMNS.iter().map(|(name, leans_left)| GridColumn {
        name: (*name).to_owned(),
        leans_left: *leans_left,
    });
    let mut grid = Grid::new(columns.collect());
    grid.fit(&lines);
    grid.write_header(out)?;
    grid.write_rows(&lines, out)?;
    writeln!(out)?;
    Ok(is_complete)
}

/// Waits until the session's duration is known, and returns its texts: request, start, coordinator, duration, client, end. After a timeout,
/// returns them without a duration and false. `None` if there is no session.
fn await_session(
    client: &mut Client,
    interrupt: &Interrupt,
    id: Uuid,
) -> Result<Option<(Vec<String>, bool)>, StatementError> {
    let query = format!(
        "SELECT request, started_at, coordinator, duration, client FROM system_traces.sessions WHERE session_id = {id}"
    );
    let requested_at = Instant::now();
    loop {
        let rows = query_rows(client, &query)?;
        let row = rows.content.iter().next();
        let duration = row.as_ref().and_then(|row| int(row.get(3)?.as_ref()?));
        let has_waited_enough = requested_at.elapsed() > COMPLETE_WAIT_MAX;
        if let Some(row) = row
            && (duration.is_some() || has_waited_enough)
        {
            let types = rows.metadata.columns.iter().map(|column| &column.ty);
            let mut texts: Vec<String> = types
                .zip(&row)
                .map(|(ty, cell)| show(ty, cell.as_ref()))
                .collect();
            texts.push(end_text(&rows, &row, duration));
            return Ok(Some((texts, duration.is_some())));
        }
        if has_waited_enough {
            return Ok(None);
        }
        if interrupt.is_set() {
            return Err(StatementError::Cancelled);
        }
        std::thread::sleep(COMPLETE_CHECK_INTERVAL);
    }
}

/// Returns the end of the request, in the format of its start. Empty if it is not known.
fn end_text(rows: &Rows, row: &[Option<Bytes>], duration_micros: Option<i32>) -> String {
    let end = || {
        let ty = &rows.metadata.columns.get(1)?.ty;
        let started = row.get(1)?.as_ref()?;
        let started = i64::from_be_bytes(started.as_ref().try_into().ok()?);
        let end = started.checked_add(i64::from(duration_micros?) / 1000)?;
        Some(show(ty, Some(&Bytes::copy_from_slice(&end.to_be_bytes()))))
    };
    end().unwrap_or_default()
}

fn int(bytes: &Bytes) -> Option<i32> {
    Some(i32::from_be_bytes(bytes.as_ref().try_into().ok()?))
}

fn query_rows(client: &mut Client, query: &str) -> Result<Rows, StatementError> {
    let message = client.query(query, QueryParameters::default(), false)?;
    match message.response {
        Response::Result(QueryResult::Rows(rows)) => Ok(rows),
        _ => Ok(Rows::default()),
    }
}

fn text_rows(client: &mut Client, query: &str) -> Result<Vec<Vec<String>>, StatementError> {
    let rows = query_rows(client, query)?;
    let text = |row: Vec<Option<Bytes>>| {
        let cells = rows.metadata.columns.iter().zip(&row);
        cells
            .map(|(column, cell)| show(&column.ty, cell.as_ref()))
            .collect()
    };
    Ok(rows.content.iter().map(text).collect())
}
