//! A connection that only encodes and decodes frames.

use anyhow::{Context, Result, bail};
use bytes::{Bytes, BytesMut};
use helenus_cql::frame::request::{
    Batch, BatchKind, BatchStatement, Execute, Prepare, Query, Startup, StatementRef,
};
use helenus_cql::frame::response::QueryResult;
use helenus_cql::frame::{
    BoundValue, Decoder, Direction, MAX_BODY_LEN, OutputEncoder, ProtocolVersion, QueryParameters, Request,
    RequestMessage, Response, ResponseMessage,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const VERSION: ProtocolVersion = ProtocolVersion::V4;

/// The arguments of one execution of a prepared statement.
#[derive(Clone, Debug)]
pub struct Execution {
    /// Index of the statement among those of its source.
    pub statement: usize,
    /// Values of each row. Several rows are an UNLOGGED BATCH.
    pub rows: Vec<Vec<Bytes>>,
    /// Rows per page. `None` is the server's default.
    pub page_rows: Option<i32>,
    /// The paging state. `None` for the first page.
    pub page: Option<Bytes>,
}

impl Execution {
    /// Returns an execution with one row of values and without paging.
    pub fn of_row(values: Vec<Bytes>) -> Self {
        Self {
            statement: 0,
            rows: vec![values],
            page_rows: None,
            page: None,
        }
    }
}

/// A connection after STARTUP, without compression, authentication or events.
pub struct Connection {
    stream: TcpStream,
    decoder: Decoder,
    input: BytesMut,
    output: BytesMut,
}

impl Connection {
    /// Connects and sends STARTUP.
    ///
    /// # Errors
    /// Fails if the server cannot be reached or requires authentication.
    pub async fn open(address: &str) -> Result<Connection> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let mut connection = Connection {
            stream,
            decoder: Decoder::new(Direction::Response, MAX_BODY_LEN),
            input: BytesMut::with_capacity(64 * 1024),
            output: BytesMut::with_capacity(64 * 1024),
        };
        let options = vec![("CQL_VERSION".to_owned(), "3.0.0".to_owned())];
        match connection.call(Request::Startup(Startup { options })).await? {
            Response::Ready(_) => Ok(connection),
            other => bail!("STARTUP was answered with {:?}", other.opcode()),
        }
    }

    /// Runs a statement and waits for its response.
    ///
    /// # Errors
    /// Returns the server's error, or that of the connection.
    pub async fn query(&mut self, text: &str) -> Result<()> {
        let query = Query {
            query: text.to_owned(),
            parameters: QueryParameters::default(),
        };
        self.call(Request::Query(Box::new(query))).await?;
        Ok(())
    }

    /// Prepares a statement. Returns its id.
    ///
    /// # Errors
    /// Returns the server's error, or that of the connection.
    pub async fn prepare(&mut self, text: &str) -> Result<Bytes> {
        match self.call(prepare(text)).await? {
            Response::Result(QueryResult::Prepared(prepared)) => Ok(prepared.id),
            other => bail!("PREPARE was answered with {:?}", other.opcode()),
        }
    }

    /// Queues a PREPARE of a statement that the server no longer knows. Its id does not change.
    pub fn queue_prepare(&mut self, stream: i16, text: &str) {
        self.put(stream, prepare(text));
    }

    /// Queues an execution, which is a BATCH if it has several rows. [`Connection::flush`] sends it.
    pub fn queue_execution(&mut self, stream: i16, id: &Bytes, execution: &Execution) {
        let bound =
            |values: Vec<Bytes>| -> Vec<BoundValue> { values.into_iter().map(BoundValue::Set).collect() };
        let request = match <[Vec<Bytes>; 1]>::try_from(execution.rows.clone()) {
            Ok([values]) => Request::Execute(Box::new(Execute {
                id: id.clone(),
                result_metadata_id: None,
                parameters: QueryParameters {
                    values: bound(values).into(),
                    skip_metadata: true,
                    page_size: execution.page_rows,
                    paging_state: execution.page.clone(),
                    ..QueryParameters::default()
                },
            })),
            Err(rows) => Request::Batch(Box::new(Batch {
                kind: BatchKind::Unlogged,
                statements: rows
                    .into_iter()
                    .map(|values| BatchStatement {
                        statement: StatementRef::Prepared(id.clone()),
                        values: bound(values),
                    })
                    .collect(),
                parameters: QueryParameters::default(),
            })),
        };
        self.put(stream, request);
    }

    fn put(&mut self, stream: i16, request: Request) {
        let message = RequestMessage::new(request);
        OutputEncoder::unstarted().request(VERSION, stream, &message, &mut self.output);
    }

    /// Sends all queued requests.
    ///
    /// # Errors
    /// Fails if the connection is lost.
    pub async fn flush(&mut self) -> Result<()> {
        self.stream.write_all(&self.output).await?;
        self.output.clear();
        Ok(())
    }

    /// Returns the next complete response with its stream. `None` if more bytes are needed.
    ///
    /// # Errors
    /// Fails if the bytes are not a response.
    pub fn next_arrived(&mut self) -> Result<Option<(i16, Response)>> {
        let envelope = self
            .decoder
            .decode(&mut self.input)
            .map_err(|refused| refused.error)?;
        let Some(envelope) = envelope else { return Ok(None) };
        let stream = envelope.header.stream;
        Ok(Some((stream, ResponseMessage::decode(envelope)?.response)))
    }

    /// Waits for more bytes. Cancellation is safe, because received bytes are in the buffer.
    ///
    /// # Errors
    /// Fails if the connection is closed or lost.
    pub async fn fill(&mut self) -> Result<()> {
        if self.stream.read_buf(&mut self.input).await? == 0 {
            bail!("the server closed the connection with requests in flight: see its log, then run it again");
        }
        Ok(())
    }

    async fn call(&mut self, request: Request) -> Result<Response> {
        self.put(0, request);
        self.flush().await?;
        loop {
            match self.next_arrived()? {
                Some((_, Response::Error(error))) => return Err(error.into()),
                Some((_, response)) => return Ok(response),
                None => self.fill().await?,
            }
        }
    }
}

fn prepare(text: &str) -> Request {
    Request::Prepare(Prepare {
        query: text.to_owned(),
        ..Prepare::default()
    })
}

/// Runs statements one after the other on a new connection, such as those that create tables.
///
/// # Errors
/// Returns the first error, with its statement.
pub async fn run_statements(address: &str, statements: &[&str]) -> Result<()> {
    let mut connection = Connection::open(address).await?;
    for statement in statements {
        connection
            .query(statement)
            .await
            .with_context(|| (*statement).to_owned())?;
    }
    Ok(())
}
