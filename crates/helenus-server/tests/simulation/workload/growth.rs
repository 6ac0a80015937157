//! Partitions that grow, read by pages: rows that were acknowledged before a scan began are present, rows that failed are absent, and no row
//! occurs twice.

use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use bytes::Bytes;

use super::Workload;
use crate::clients::{Clients, Failure, Page};

/// Number of rows after which the next partition begins.
const ROWS: u64 = 80;
const PAGE_ROWS: i32 = 7;

/// Rows by partition and clustering key, with their states.
type Rows = BTreeMap<(u64, u64), RowState>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum RowState {
    Acknowledged,
    NotDone,
    /// The outcome is not known, or not known yet.
    Unknown,
}

#[derive(Default)]
struct State {
    last: u64,
    rows: Rows,
    scans: usize,
    /// The first scan that is impossible.
    failure: Option<String>,
}

#[derive(Default)]
pub struct Growth(Mutex<State>);

/// The rows that a scan reads.
#[derive(Clone, Copy, Debug)]
enum Scan {
    Partition(u64),
    Table,
}

impl Scan {
    fn text(self) -> String {
        match self {
            Scan::Partition(p) => format!("SELECT p, c FROM ks.growth WHERE p = {p}"),
            Scan::Table => "SELECT p, c FROM ks.growth".to_owned(),
        }
    }

    fn covers(self, (partition, _): (u64, u64)) -> bool {
        match self {
            Scan::Partition(p) => p == partition,
            Scan::Table => true,
        }
    }
}

impl Growth {
    async fn insert(&self, clients: &Clients) {
        let key @ (p, c) = {
            let mut state = self.0.lock().unwrap();
            state.last += 1;
            let key = (state.last / ROWS, state.last % ROWS);
            state.rows.insert(key, RowState::Unknown);
            key
        };
        let text = format!("INSERT INTO ks.growth (p, c) VALUES ({p}, {c})");
        let state = match clients.run(clients.any_node(), &text).await {
            Ok(_) => RowState::Acknowledged,
            Err(Failure::NotDone(_)) => RowState::NotDone,
            Err(Failure::Unknown(_)) => return,
        };
        self.0.lock().unwrap().rows.insert(key, state);
    }

    /// Reads all pages, each through a random node. `None` if a page has no answer.
    async fn scan(&self, clients: &Clients, scan: Scan, repeats: bool) -> Option<Vec<(u64, u64)>> {
        let (mut found, mut state): (Vec<(u64, u64)>, Option<Bytes>) = (Vec::new(), None);
        loop {
            let text = scan.text();
            let page = clients.page(clients.any_node(), &text, Some((PAGE_ROWS, state.clone())));
            let (rows, next): Page = match page.await {
                Ok(page) => page,
                Err(_) if repeats => {
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                    continue;
                }
                Err(_) => return None,
            };
            found.extend(
                rows.iter()
                    .map(|row| (row[0].parse().unwrap(), row[1].parse().unwrap())),
            );
            match next {
                Some(next) => state = Some(next),
                None => return Some(found),
            }
        }
    }

    /// Compares the rows of a scan with the states that all rows had before and have after it.
    fn compare(&self, scan: Scan, before: &Rows, found: &[(u64, u64)]) {
        let mut state = self.0.lock().unwrap();
        state.scans += 1;
        let mut counts: BTreeMap<(u64, u64), usize> = BTreeMap::new();
        found.iter().for_each(|key| *counts.entry(*key).or_default() += 1);
        let missing = before.iter().find(|(key, row)| {
            scan.covers(**key) && **row == RowState::Acknowledged && !counts.contains_key(key)
        });
        let twice = counts.iter().find(|(_, count)| **count > 1);
        let failed = counts
            .keys()
            .find(|key| state.rows.get(key).is_none_or(|row| *row == RowState::NotDone));
        let is_sorted = match scan {
            Scan::Partition(_) => found.is_sorted(),
            Scan::Table => true,
        };
        let why = match (missing, twice, failed) {
            (Some((key, _)), _, _) => format!("row {key:?} is missing"),
            (_, Some((key, _)), _) => format!("row {key:?} occurs twice"),
            (_, _, Some(key)) => format!("row {key:?} is there, but its write failed"),
            _ if !is_sorted => "rows are not in order".to_owned(),
            _ => return,
        };
        state
            .failure
            .get_or_insert(format!("{scan:?}: {why}; found {found:?}"));
    }

    fn states(&self) -> Rows {
        self.0.lock().unwrap().rows.clone()
    }
}

#[async_trait]
impl Workload for Growth {
    fn schema(&self) -> Vec<String> {
        vec!["CREATE TABLE IF NOT EXISTS ks.growth (p bigint, c bigint, PRIMARY KEY (p, c))".to_owned()]
    }

    async fn operate(&self, clients: &Clients) {
        let scan = match clients.dice.range(0..20) {
            0..16 => return self.insert(clients).await,
            16..19 => Scan::Partition(self.0.lock().unwrap().last / ROWS),
            _ => Scan::Table,
        };
        let before = self.states();
        if let Some(found) = self.scan(clients, scan, false).await {
            self.compare(scan, &before, &found);
        }
    }

    async fn read_at_last(&self, clients: &Clients) {
        let before = self.states();
        let found = self.scan(clients, Scan::Table, true).await;
        self.compare(Scan::Table, &before, &found.unwrap_or_default());
    }

    fn check(&self) -> Result<(), String> {
        match &self.0.lock().unwrap().failure {
            Some(why) => Err(why.clone()),
            None => Ok(()),
        }
    }

    fn operation_count(&self) -> usize {
        let state = self.0.lock().unwrap();
        state.rows.len() + state.scans
    }
}
