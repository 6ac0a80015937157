//! The measured operations, each with its table, the table's initial rows, its statement and its values.

use anyhow::{Result, bail};
use bytes::Bytes;
use clap::ValueEnum;
use helenus_cql::frame::Response;
use helenus_cql::frame::response::QueryResult;
use helenus_stress::raw::{Answer, random_value};
use rand::Rng;
use rand::rngs::SmallRng;

use crate::vectors::{self, NEAREST};

/// Rows of one BATCH.
pub const BATCH_ROWS: usize = 20;
/// Numbers of rows written to a queue, of rows deleted from its front, of queues, and of rows that a request reads.
const QUEUE_ROWS: u64 = 2_000;
const QUEUE_DELETED: u64 = 1_900;
const QUEUES: u64 = 100;
const QUEUE_READ: usize = 100;
/// First number of the partitions that have the rows of a queue without deletions.
const PLAIN_QUEUE: u64 = 1_000_000;
/// Numbers of queues with cycles, of rows that wait in each, and of rows that a cycle reads.
pub const WORKING_QUEUES: u64 = 64;
pub const WAITING_ROWS: u64 = 100;
const HEAD_ROWS: usize = 10;
/// Number of rows that are overwritten repeatedly.
const HOT_KEYS: u64 = 1_000;
/// Rows of a slice of the wide partition.
const SLICE_ROWS: u64 = 100;
/// Numbers of rows within a range of indexed values, and of rows with one indexed value.
const RANGE_ROWS: u64 = 100;
const FEW_ROWS: u64 = 10;
/// Number of token ranges that a scan reads one by one.
const SCAN_RANGES: u64 = 32;
/// Keys of one IN.
const IN_KEYS: u64 = 1_000;
/// Rows per page of a scan.
const PAGE_ROWS: i32 = 5_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Operation {
    /// A write of a whole row
    Write,
    /// A read of a row by its key
    Read,
    /// A lightweight transaction that is applied: UPDATE … IF EXISTS
    Lwt,
    /// A write of a row to a table with four secondary indexes
    IndexedWrite,
    /// A read of a row by a secondary index
    IndexRead,
    /// A read of 100 rows by a range of a storage-attached index, in a table with one row per key
    IndexRange,
    /// A read of 10 rows by a storage-attached index on another column of that table
    IndexFew,
    /// A read like index-few, with a second index that finds every row
    IndexAnd,
    /// A read of the first 100 rows of a queue, to which 2,000 were written and from whose front 1,900 were deleted
    Queue,
    /// A read like queue, of partitions without deletions
    QueuePlain,
    /// A cycle of a queue with 100 rows: a row is appended, the first 10 are read, the first is deleted
    QueueCycle,
    /// A row that is written in an UNLOGGED BATCH of 20
    Batch,
    /// An overwrite of one of 1,000 rows
    HotWrite,
    /// A read of one of these 1,000 rows
    HotRead,
    /// A read of 100 rows at the start of a partition with one row per key
    SliceStart,
    /// A read of 100 rows in the middle of that partition
    SliceMiddle,
    /// A read of the last 100 rows of that partition, in order
    SliceEnd,
    /// A read of 100 rows backwards from the middle of that partition
    SliceReversed,
    /// A search of the 10 nearest vectors, in a table with one row per key
    Ann,
    /// A search like ann, among the rows that a filter keeps (one in 100)
    AnnFilter,
    /// A write of a row with a vector to a table with an index on it
    VectorWrite,
    /// A write like vector-write, without an index
    VectorPlainWrite,
    /// A row of a full scan by token ranges, in pages of 5,000
    Scan,
    /// A row that `SELECT count(*)` of the whole table counts
    Count,
    /// A row that a read of the whole table with ALLOW FILTERING examines and rejects
    Filter,
    /// A read of 1,000 rows by an IN of their keys
    In1000,
    /// An increment of a counter
    Counter,
    /// An increment of one counter, always the same
    HotCounter,
    /// A lightweight transaction on one row, always the same, that is applied
    HotLwt,
    /// A row that is appended to one partition
    Append,
    /// An overwrite of a row, in a table that captures no changes
    CdcNone,
    /// An overwrite of a row, in a table that captures changes
    CdcDelta,
    /// An overwrite of a row, in a table that captures changes with the rows before them
    CdcPreimage,
}

/// Sizes of keys and values, and the number of keys.
#[derive(Clone, Debug)]
pub struct Sizes {
    pub keys: u64,
    pub key_bytes: usize,
    pub value_bytes: usize,
    /// Number of components of a vector.
    pub dimension: usize,
}

/// A statement that runs for each number of `0..count` before measuring.
pub struct Fill {
    pub statement: &'static str,
    pub count: u64,
    pub values: fn(&Sizes, u64, &mut SmallRng) -> Vec<Bytes>,
}

/// Statements that create the keyspace, the tables and the indexes of all operations.
pub const STATEMENTS: [&str; 20] = [
    "CREATE KEYSPACE IF NOT EXISTS compare \
     WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE IF NOT EXISTS compare.kv (k text PRIMARY KEY, v blob)",
    "CREATE TABLE IF NOT EXISTS compare.batched (k text PRIMARY KEY, v blob)",
    "CREATE TABLE IF NOT EXISTS compare.indexed (id text PRIMARY KEY, a text, b text, c text, d text)",
    "CREATE TABLE IF NOT EXISTS compare.users (id text PRIMARY KEY, email text, v blob)",
    "CREATE TABLE IF NOT EXISTS compare.queue (q int, n int, v blob, PRIMARY KEY (q, n))",
    "CREATE TABLE IF NOT EXISTS compare.working (q int, n int, v blob, PRIMARY KEY (q, n))",
    "CREATE TABLE IF NOT EXISTS compare.hot (k text PRIMARY KEY, v blob)",
    "CREATE TABLE IF NOT EXISTS compare.wide (p int, c int, v blob, PRIMARY KEY (p, c))",
    "CREATE INDEX IF NOT EXISTS indexed_a ON compare.indexed (a)",
    "CREATE INDEX IF NOT EXISTS indexed_b ON compare.indexed (b)",
    "CREATE INDEX IF NOT EXISTS indexed_c ON compare.indexed (c)",
    "CREATE INDEX IF NOT EXISTS indexed_d ON compare.indexed (d)",
    "CREATE INDEX IF NOT EXISTS users_email ON compare.users (email)",
    "CREATE TABLE IF NOT EXISTS compare.ranged (id text PRIMARY KEY, n int, few int, every int, v blob)",
    "CREATE INDEX IF NOT EXISTS ranged_n ON compare.ranged (n) USING 'sai'",
    "CREATE INDEX IF NOT EXISTS ranged_few ON compare.ranged (few) USING 'sai'",
    "CREATE INDEX IF NOT EXISTS ranged_every ON compare.ranged (every) USING 'sai'",
    "CREATE TABLE IF NOT EXISTS compare.counters (k int PRIMARY KEY, n counter)",
    "CREATE TABLE IF NOT EXISTS compare.appended (p int, c timeuuid, v blob, PRIMARY KEY (p, c))",
];

/// Statements of a queue's cycle.
pub const QUEUE_CYCLE: [&str; 3] = [
    "INSERT INTO compare.working (q, n, v) VALUES (?, ?, ?)",
    "SELECT n, v FROM compare.working WHERE q = ? LIMIT 10",
    "DELETE FROM compare.working WHERE q = ? AND n = ?",
];
const INSERT: &str = "INSERT INTO compare.kv (k, v) VALUES (?, ?)";
const VECTOR_INSERT: &str = "INSERT INTO compare.vectors (id, few, v) VALUES (?, ?, ?)";
const HOT_INSERT: &str = "INSERT INTO compare.hot (k, v) VALUES (?, ?)";

/// The operations of `--instructions`.
pub const MAIN_OPERATIONS: [Operation; 8] = [
    Operation::Write,
    Operation::Read,
    Operation::Lwt,
    Operation::Counter,
    Operation::IndexedWrite,
    Operation::IndexRead,
    Operation::SliceMiddle,
    Operation::Batch,
];

impl Operation {
    pub fn name(self) -> &'static str {
        match self {
            Operation::Write => "write",
            Operation::Read => "read",
            Operation::Lwt => "lwt",
            Operation::IndexedWrite => "indexed-write",
            Operation::IndexRead => "index-read",
            Operation::IndexRange => "index-range",
            Operation::IndexFew => "index-few",
            Operation::IndexAnd => "index-and",
            Operation::Queue => "queue",
            Operation::QueuePlain => "queue-plain",
            Operation::QueueCycle => "queue-cycle",
            Operation::Batch => "batch",
            Operation::HotWrite => "hot-write",
            Operation::HotRead => "hot-read",
            Operation::SliceStart => "slice-start",
            Operation::SliceMiddle => "slice-middle",
            Operation::SliceEnd => "slice-end",
            Operation::SliceReversed => "slice-reversed",
            Operation::Ann => "ann",
            Operation::AnnFilter => "ann-filter",
            Operation::VectorWrite => "vector-write",
            Operation::VectorPlainWrite => "vector-plain-write",
            Operation::Scan => "scan",
            Operation::Count => "count",
            Operation::Filter => "filter",
            Operation::In1000 => "in-1000",
            Operation::Counter => "counter",
            Operation::HotCounter => "hot-counter",
            Operation::HotLwt => "hot-lwt",
            Operation::Append => "append",
            Operation::CdcNone => "cdc-none",
            Operation::CdcDelta => "cdc-delta",
            Operation::CdcPreimage => "cdc-preimage",
        }
    }

    pub fn statement(self) -> &'static str {
        match self {
            Operation::Write => INSERT,
            Operation::Read => "SELECT v FROM compare.kv WHERE k = ?",
            Operation::Lwt => "UPDATE compare.kv SET v = ? WHERE k = ? IF EXISTS",
            Operation::IndexedWrite => "INSERT INTO compare.indexed (id, a, b, c, d) VALUES (?, ?, ?, ?, ?)",
            Operation::IndexRead => "SELECT id, v FROM compare.users WHERE email = ?",
            Operation::IndexRange => "SELECT id, v FROM compare.ranged WHERE n >= ? AND n < ?",
            Operation::IndexFew => "SELECT id, v FROM compare.ranged WHERE few = ?",
            Operation::IndexAnd => "SELECT id, v FROM compare.ranged WHERE every = 1 AND few = ?",
            Operation::Queue | Operation::QueuePlain => {
                "SELECT n, v FROM compare.queue WHERE q = ? LIMIT 100"
            }
            Operation::QueueCycle => QUEUE_CYCLE[0],
            Operation::Batch => "INSERT INTO compare.batched (k, v) VALUES (?, ?)",
            Operation::HotWrite => HOT_INSERT,
            Operation::HotRead => "SELECT v FROM compare.hot WHERE k = ?",
            Operation::SliceStart | Operation::SliceMiddle | Operation::SliceEnd => {
                "SELECT c, v FROM compare.wide WHERE p = 1 AND c >= ? LIMIT 100"
            }
            Operation::SliceReversed => {
                "SELECT c, v FROM compare.wide WHERE p = 1 AND c <= ? ORDER BY c DESC LIMIT 100"
            }
            Operation::Ann => "SELECT id FROM compare.vectors ORDER BY v ANN OF ? LIMIT 10",
            Operation::AnnFilter => {
                "SELECT id FROM compare.vectors WHERE few = ? ORDER BY v ANN OF ? LIMIT 10"
            }
            Operation::VectorWrite => VECTOR_INSERT,
            Operation::VectorPlainWrite => "INSERT INTO compare.plain_vectors (id, few, v) VALUES (?, ?, ?)",
            Operation::Scan => "SELECT k, v FROM compare.kv WHERE token(k) > ? AND token(k) <= ?",
            Operation::Count => "SELECT count(*) FROM compare.kv",
            Operation::Filter => "SELECT k FROM compare.kv WHERE v = ? ALLOW FILTERING",
            Operation::In1000 => "SELECT k, v FROM compare.kv WHERE k IN ?",
            Operation::Counter => "UPDATE compare.counters SET n = n + 1 WHERE k = ?",
            Operation::HotCounter => "UPDATE compare.counters SET n = n + 1 WHERE k = 1",
            Operation::HotLwt => "UPDATE compare.hot SET v = ? WHERE k = ? IF EXISTS",
            Operation::Append => "INSERT INTO compare.appended (p, c, v) VALUES (1, now(), ?)",
            Operation::CdcNone => "INSERT INTO compare.cdc_none (k, v) VALUES (?, ?)",
            Operation::CdcDelta => "INSERT INTO compare.cdc_delta (k, v) VALUES (?, ?)",
            Operation::CdcPreimage => "INSERT INTO compare.cdc_preimage (k, v) VALUES (?, ?)",
        }
    }

    /// Returns true if the operation searches for nearest vectors.
    pub fn is_search(self) -> bool {
        matches!(self, Operation::Ann | Operation::AnnFilter)
    }

    /// Returns true if the operation's table has vectors.
    pub fn is_on_vectors(self) -> bool {
        self.is_search() || matches!(self, Operation::VectorWrite | Operation::VectorPlainWrite)
    }

    /// Returns the rows per page of an operation that may have several pages, and `None` for others.
    pub fn page_rows(self) -> Option<i32> {
        matches!(self, Operation::Scan | Operation::Filter).then_some(PAGE_ROWS)
    }

    /// Returns the number of rows that one request writes.
    pub fn rows_sent(self) -> usize {
        match self {
            Operation::Batch => BATCH_ROWS,
            _ => 1,
        }
    }

    /// Returns the fills of the operation's tables.
    pub fn fills(self, sizes: &Sizes) -> Vec<Fill> {
        let kv = || Fill {
            statement: INSERT,
            count: sizes.keys,
            values: |sizes, number, random| vec![sizes.key(number), sizes.value(random)],
        };
        match self {
            Operation::Read
            | Operation::Lwt
            | Operation::Scan
            | Operation::Count
            | Operation::Filter
            | Operation::In1000 => vec![kv()],
            Operation::CdcNone | Operation::CdcDelta | Operation::CdcPreimage => vec![Fill {
                statement: self.statement(),
                ..kv()
            }],
            Operation::Write
            | Operation::IndexedWrite
            | Operation::Batch
            | Operation::HotWrite
            | Operation::Counter
            | Operation::HotCounter
            | Operation::Append
            | Operation::VectorPlainWrite => Vec::new(),
            Operation::Ann | Operation::AnnFilter | Operation::VectorWrite => vec![Fill {
                statement: VECTOR_INSERT,
                count: sizes.keys,
                values: |sizes, number, _| sizes.vector_row(number),
            }],
            Operation::HotRead | Operation::HotLwt => vec![Fill {
                statement: HOT_INSERT,
                count: HOT_KEYS,
                values: |sizes, number, random| vec![sizes.key(number), sizes.value(random)],
            }],
            Operation::SliceStart
            | Operation::SliceMiddle
            | Operation::SliceEnd
            | Operation::SliceReversed => {
                vec![Fill {
                    statement: "INSERT INTO compare.wide (p, c, v) VALUES (1, ?, ?)",
                    count: sizes.keys,
                    values: |sizes, number, random| vec![position(number), sizes.value(random)],
                }]
            }
            Operation::IndexRead => vec![Fill {
                statement: "INSERT INTO compare.users (id, email, v) VALUES (?, ?, ?)",
                count: sizes.keys / 5,
                values: |sizes, number, random| vec![sizes.key(number), email(number), sizes.value(random)],
            }],
            Operation::IndexRange | Operation::IndexFew | Operation::IndexAnd => vec![Fill {
                statement: "INSERT INTO compare.ranged (id, n, few, every, v) VALUES (?, ?, ?, 1, ?)",
                count: sizes.keys,
                values: |sizes, number, random| {
                    let (n, few) = (position(number), position(number / FEW_ROWS));
                    vec![sizes.key(number), n, few, sizes.value(random)]
                },
            }],
            Operation::QueuePlain => vec![Fill {
                // A second space makes this statement differ from that of the queues, because each statement is filled once.
                statement: "INSERT INTO compare.queue (q, n, v)  VALUES (?, ?, ?)",
                count: QUEUES * QUEUE_ROWS,
                values: |sizes, number, random| {
                    let [queue, position] = queue_key(PLAIN_QUEUE + number % QUEUES, number / QUEUES);
                    vec![queue, position, sizes.value(random)]
                },
            }],
            Operation::QueueCycle => vec![Fill {
                statement: QUEUE_CYCLE[0],
                count: WORKING_QUEUES * WAITING_ROWS,
                values: |sizes, number, random| {
                    let [queue, position] = queue_key(number % WORKING_QUEUES, number / WORKING_QUEUES);
                    vec![queue, position, sizes.value(random)]
                },
            }],
            Operation::Queue => vec![
                Fill {
                    statement: "INSERT INTO compare.queue (q, n, v) VALUES (?, ?, ?)",
                    count: QUEUES * QUEUE_ROWS,
                    values: |sizes, number, random| {
                        let [queue, position] = queue_key(number % QUEUES, number / QUEUES);
                        vec![queue, position, sizes.value(random)]
                    },
                },
                Fill {
                    statement: "DELETE FROM compare.queue WHERE q = ? AND n = ?",
                    count: QUEUES * QUEUE_DELETED,
                    values: |_, number, _| queue_key(number % QUEUES, number / QUEUES).to_vec(),
                },
            ],
        }
    }

    /// Returns the values of one execution of the statement.
    pub fn values(self, sizes: &Sizes, random: &mut SmallRng) -> Vec<Bytes> {
        let number = random.random_range(0..sizes.keys);
        match self {
            Operation::Write
            | Operation::Batch
            | Operation::CdcNone
            | Operation::CdcDelta
            | Operation::CdcPreimage => vec![sizes.key(number), sizes.value(random)],
            Operation::Read => vec![sizes.key(number)],
            Operation::Lwt => vec![sizes.value(random), sizes.key(number)],
            Operation::IndexedWrite => {
                let mut values = vec![sizes.key(number)];
                values.extend(('a'..='d').map(|column| {
                    let value = random.random_range(0..sizes.keys);
                    Bytes::from(format!("{column}{value}"))
                }));
                values
            }
            Operation::IndexRead => vec![email(number % (sizes.keys / 5).max(1))],
            Operation::IndexRange => {
                let first = number.min(sizes.keys.saturating_sub(RANGE_ROWS));
                vec![position(first), position(first + RANGE_ROWS)]
            }
            Operation::IndexFew | Operation::IndexAnd => {
                vec![position(random.random_range(0..(sizes.keys / FEW_ROWS).max(1)))]
            }
            Operation::Queue => vec![position(random.random_range(0..QUEUES))],
            Operation::QueuePlain => vec![position(PLAIN_QUEUE + random.random_range(0..QUEUES))],
            Operation::QueueCycle => cycle_values(0, number % WORKING_QUEUES, number, sizes, random),
            Operation::HotWrite => vec![sizes.key(number % HOT_KEYS), sizes.value(random)],
            Operation::HotRead => vec![sizes.key(number % HOT_KEYS)],
            Operation::SliceStart => vec![position(0)],
            Operation::SliceMiddle | Operation::SliceReversed => vec![position(sizes.keys / 2)],
            Operation::SliceEnd => vec![position(sizes.keys.saturating_sub(SLICE_ROWS))],
            Operation::Ann => vec![sizes.sought(number)],
            Operation::AnnFilter => vec![vectors::few(number), sizes.sought(number)],
            Operation::VectorWrite | Operation::VectorPlainWrite => sizes.vector_row(number),
            Operation::Scan => scan_range(random.random_range(0..SCAN_RANGES)).to_vec(),
            Operation::Counter => vec![position(number)],
            Operation::Count | Operation::HotCounter => Vec::new(),
            Operation::In1000 => {
                let keys = (number..number + IN_KEYS).map(|number| sizes.key(number % sizes.keys));
                vec![list(keys.collect())]
            }
            Operation::HotLwt => vec![sizes.value(random), sizes.key(0)],
            Operation::Append | Operation::Filter => vec![sizes.value(random)],
        }
    }

    /// Checks an answer. Everything that is read was written before, so an answer without it is an error.
    pub fn check(self, response: Response, sizes: &Sizes) -> Result<Answer> {
        let wanted = match self {
            Operation::Write
            | Operation::IndexedWrite
            | Operation::Batch
            | Operation::HotWrite
            | Operation::Counter
            | Operation::HotCounter
            | Operation::Append
            | Operation::CdcNone
            | Operation::CdcDelta
            | Operation::CdcPreimage
            | Operation::VectorWrite
            | Operation::VectorPlainWrite => 0,
            Operation::Ann | Operation::AnnFilter => NEAREST,
            Operation::Read
            | Operation::Lwt
            | Operation::HotLwt
            | Operation::IndexRead
            | Operation::HotRead => 1,
            Operation::In1000 => IN_KEYS as usize,
            Operation::Count => return check_count(response),
            Operation::IndexRange => RANGE_ROWS as usize,
            Operation::IndexFew | Operation::IndexAnd => FEW_ROWS as usize,
            Operation::Queue | Operation::QueuePlain => QUEUE_READ,
            Operation::QueueCycle => return check_cycle(response),
            Operation::SliceStart
            | Operation::SliceMiddle
            | Operation::SliceEnd
            | Operation::SliceReversed => SLICE_ROWS as usize,
            Operation::Scan => return self.check_page(response),
            Operation::Filter => {
                let page = self.check_page(response)?;
                return Ok(Answer {
                    operations: if page.next_page.is_none() { sizes.keys } else { 0 },
                    ..page
                });
            }
        };
        match response {
            Response::Result(QueryResult::Void) if wanted == 0 => {}
            Response::Result(QueryResult::Rows(rows)) if rows.content.row_count() == wanted => {}
            Response::Result(QueryResult::Rows(rows)) => bail!(
                "{}: {wanted} rows were expected, {} came",
                self.name(),
                rows.content.row_count()
            ),
            Response::Error(error) => return Err(error.into()),
            other => bail!("{}: unexpected answer {:?}", self.name(), other.opcode()),
        }
        Ok(Answer::last(self.rows_sent() as u64))
    }

    fn check_page(self, response: Response) -> Result<Answer> {
        match response {
            Response::Result(QueryResult::Rows(rows)) => Ok(Answer {
                operations: rows.content.row_count() as u64,
                next_page: rows.page.paging_state,
            }),
            Response::Error(error) => Err(error.into()),
            other => bail!("{}: unexpected answer {:?}", self.name(), other.opcode()),
        }
    }
}

/// Returns the values of a statement of a queue's cycle. `ended` is the number of the queue's earlier cycles.
pub fn cycle_values(
    statement: usize,
    queue: u64,
    ended: u64,
    sizes: &Sizes,
    random: &mut SmallRng,
) -> Vec<Bytes> {
    match statement {
        0 => vec![
            position(queue),
            position(ended + WAITING_ROWS),
            sizes.value(random),
        ],
        1 => vec![position(queue)],
        _ => queue_key(queue, ended).to_vec(),
    }
}

/// Checks an answer of a cycle. The read counts as the cycle's operation.
fn check_cycle(response: Response) -> Result<Answer> {
    match response {
        Response::Result(QueryResult::Void) => Ok(Answer::last(0)),
        Response::Result(QueryResult::Rows(rows)) if rows.content.row_count() == HEAD_ROWS => {
            Ok(Answer::last(1))
        }
        Response::Error(error) => Err(error.into()),
        other => bail!("queue-cycle: unexpected answer {:?}", other.opcode()),
    }
}

/// Checks the answer of a count. Each counted row is an operation.
fn check_count(response: Response) -> Result<Answer> {
    let rows = match response {
        Response::Result(QueryResult::Rows(rows)) => rows,
        Response::Error(error) => return Err(error.into()),
        other => bail!("count: unexpected answer {:?}", other.opcode()),
    };
    let first = rows.content.iter().next().and_then(|row| row.into_iter().next());
    match first.flatten().as_deref().and_then(<[u8]>::first_chunk) {
        Some(count) => Ok(Answer::last(u64::from_be_bytes(*count))),
        None => bail!("count: expected one number of 8 bytes in the first row"),
    }
}

/// Returns the serialized list of values.
fn list(values: Vec<Bytes>) -> Bytes {
    let mut list = (values.len() as i32).to_be_bytes().to_vec();
    for value in values {
        list.extend_from_slice(&(value.len() as i32).to_be_bytes());
        list.extend_from_slice(&value);
    }
    list.into()
}

/// Returns a number as a serialized `int`.
pub fn position(number: u64) -> Bytes {
    Bytes::copy_from_slice(&(number as i32).to_be_bytes())
}

/// Returns the tokens between which a range of a scan lies.
fn scan_range(range: u64) -> [Bytes; 2] {
    [range, range + 1].map(|end| {
        let offset = (u128::from(u64::MAX) * u128::from(end) / u128::from(SCAN_RANGES)) as u64;
        let token = (offset as i64).wrapping_add(i64::MIN);
        Bytes::copy_from_slice(&token.to_be_bytes())
    })
}

fn queue_key(queue: u64, position: u64) -> [Bytes; 2] {
    [queue, position].map(self::position)
}

fn email(number: u64) -> Bytes {
    Bytes::from(format!("user{number}@example.com"))
}

impl Sizes {
    fn key(&self, number: u64) -> Bytes {
        Bytes::from(format!("{number:0width$}", width = self.key_bytes))
    }

    fn vector_row(&self, number: u64) -> Vec<Bytes> {
        let vector = vectors::serialized(self.dimension, number);
        vec![position(number), vectors::few(number), vector]
    }

    /// Returns a vector to search for, which no row has.
    fn sought(&self, number: u64) -> Bytes {
        vectors::serialized(self.dimension, vectors::QUERIES_FROM + number)
    }

    /// Returns a value of incompressible bytes.
    fn value(&self, random: &mut SmallRng) -> Bytes {
        random_value(self.value_bytes, random)
    }
}
