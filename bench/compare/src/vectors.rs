//! Vectors from a mixture of Gaussians, which are always the same for a number, and the recall of a server's searches.

use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, bail};
use bytes::{BufMut, Bytes, BytesMut};
use helenus_cql::frame::Response;
use helenus_cql::frame::response::QueryResult;
use helenus_stress::raw::{Answer, Execution, Pace, RawLoad, RequestSource, Target};
use rand::rngs::SmallRng;
use rand::{RngCore, SeedableRng};

use crate::operation::{Operation, Sizes, position};

/// Number of Gaussians. Their centres have a standard normal distribution.
const GROUPS: u64 = 1_000;
/// Standard deviation of vectors from their centre.
const DEVIATION: f32 = 0.5;
/// Number of rows that a search requests.
pub const NEAREST: usize = 10;
/// Number of rows of which a filter keeps one.
pub const FILTERED: u64 = 100;
/// Number of queries that measure the recall, and first number of the vectors that are searched for.
const QUERIES: u64 = 100;
pub const QUERIES_FROM: u64 = 1 << 40;

/// Returns the statements that create the tables and indexes of vectors.
pub fn statements(dimension: usize) -> Vec<String> {
    let table = |name| {
        format!(
            "CREATE TABLE IF NOT EXISTS compare.{name} (id int PRIMARY KEY, few int, v vector<float, {dimension}>)"
        )
    };
    vec![
        table("vectors"),
        table("plain_vectors"),
        "CREATE INDEX IF NOT EXISTS vectors_few ON compare.vectors (few) USING 'sai'".to_owned(),
        "CREATE INDEX IF NOT EXISTS vectors_v ON compare.vectors (v) USING 'sai' \
         WITH OPTIONS = {'similarity_function': 'euclidean'}"
            .to_owned(),
    ]
}

/// Returns the vector with this number.
fn vector(dimension: usize, number: u64) -> Vec<f32> {
    let mut noise = SmallRng::seed_from_u64(number);
    let mut centre = SmallRng::seed_from_u64(u64::MAX - noise.next_u64() % GROUPS);
    let component = |_| gaussian(&mut centre) + DEVIATION * gaussian(&mut noise);
    (0..dimension).map(component).collect()
}

/// Returns an approximately standard normal number: the scaled sum of four uniform ones.
fn gaussian(random: &mut SmallRng) -> f32 {
    let drawn = random.next_u64();
    let uniform = |part: u32| ((drawn >> (16 * part)) & 0xFFFF) as f32 / 65_535.0 - 0.5;
    (0..4).map(uniform).sum::<f32>() * 3.0_f32.sqrt()
}

/// Returns the serialized vector with this number.
pub fn serialized(dimension: usize, number: u64) -> Bytes {
    let mut bytes = BytesMut::with_capacity(dimension * 4);
    vector(dimension, number)
        .iter()
        .for_each(|component| bytes.put_f32(*component));
    bytes.freeze()
}

/// Returns the value of the filtered column for a row.
pub fn few(number: u64) -> Bytes {
    position(number % FILTERED)
}

/// Returns the fraction of the nearest rows that a server finds. The server should be idle otherwise.
pub async fn recall(address: &str, operation: Operation, sizes: &Sizes) -> Result<f64> {
    let truth = nearest(operation, sizes);
    let wanted: usize = truth.iter().map(Vec::len).sum();
    let found = AtomicUsize::new(0);
    let source = Queries {
        operation,
        sizes,
        truth: &truth,
        requested: 0,
        answered: AtomicUsize::new(0),
        found: &found,
    };
    let load = RawLoad {
        in_flight: 1,
        pace: Pace::Closed,
        slowest_kept: 0,
    };
    let target = Target {
        address: address.to_owned(),
        source,
        random: SmallRng::seed_from_u64(0),
    };
    load.run([target]).await?;
    Ok(found.load(Ordering::Relaxed) as f64 / wanted.max(1) as f64)
}

/// Returns the rows that are really nearest to each query.
fn nearest(operation: Operation, sizes: &Sizes) -> Vec<Vec<i32>> {
    let queries: Vec<Vec<f32>> = (0..QUERIES)
        .map(|query| vector(sizes.dimension, QUERIES_FROM + query))
        .collect();
    let mut nearest = vec![Vec::<(f32, i32)>::new(); queries.len()];
    for number in 0..sizes.keys {
        let stored = vector(sizes.dimension, number);
        for (query, (wanted, nearest)) in (0..).zip(queries.iter().zip(&mut nearest)) {
            if operation == Operation::AnnFilter && number % FILTERED != query % FILTERED {
                continue;
            }
            let squares = wanted.iter().zip(&stored).map(|(x, y)| (x - y) * (x - y));
            let distance: f32 = squares.sum();
            let is_near = nearest.len() < NEAREST || nearest.last().is_some_and(|(far, _)| distance < *far);
            if is_near {
                nearest.push((distance, number as i32));
                nearest.sort_by(|(a, _), (b, _)| a.total_cmp(b));
                nearest.truncate(NEAREST);
            }
        }
    }
    let ids = |nearest: Vec<(f32, i32)>| nearest.into_iter().map(|(_, id)| id).collect();
    nearest.into_iter().map(ids).collect()
}

/// The queries of one connection, one after the other.
struct Queries<'a> {
    operation: Operation,
    sizes: &'a Sizes,
    truth: &'a [Vec<i32>],
    requested: u64,
    answered: AtomicUsize,
    found: &'a AtomicUsize,
}

impl RequestSource for Queries<'_> {
    fn statement(&self) -> &str {
        self.operation.statement()
    }

    fn next(&mut self, _: &mut SmallRng) -> Option<Execution> {
        let query = self.requested;
        self.requested += 1;
        let wanted = serialized(self.sizes.dimension, QUERIES_FROM + query);
        let values = match self.operation {
            Operation::AnnFilter => vec![few(query), wanted],
            _ => vec![wanted],
        };
        (query < QUERIES).then(|| Execution::of_row(values))
    }

    fn check(&self, response: Response) -> Result<Answer> {
        let Response::Result(QueryResult::Rows(rows)) = response else {
            bail!("{}: an answer without rows", self.operation.name());
        };
        let query = self.answered.fetch_add(1, Ordering::Relaxed);
        let truth = self.truth.get(query).map_or(&[][..], Vec::as_slice);
        for row in rows.content.iter() {
            let id = row.first().and_then(|id| id.as_deref()?.try_into().ok());
            if id.is_some_and(|id| truth.contains(&i32::from_be_bytes(id))) {
                self.found.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(Answer::last(1))
    }
}
