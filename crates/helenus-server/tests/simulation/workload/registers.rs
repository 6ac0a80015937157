//! Rows as registers, which are read, written, deleted and conditionally written, by key and by an index. Each row's history must be
//! linearizable. A materialized view of the rows has the same rows in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;

use super::Workload;
use crate::clients::{Clients, Failure, as_text};
use crate::machine;
use crate::register::{ABSENT, Call, Operation, explains};

/// Number of registers that are in use at a time.
const SLOTS: usize = 3;
/// Operations on a register, and those without an answer, after which another one takes its place. So each history can be checked.
const OPERATIONS: usize = 60;
const UNANSWERED: usize = 6;
/// Maximum number of comparisons with a view, one each second.
const COMPARISONS: usize = 20;

/// Way in which the rows of a table are found, besides their key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// By key only.
    Plain,
    Indexed,
    StorageAttached,
    Viewed,
}

impl Kind {
    fn table(self) -> &'static str {
        match self {
            Kind::Plain => "ks.plain",
            Kind::Indexed => "ks.indexed",
            Kind::StorageAttached => "ks.searched",
            Kind::Viewed => "ks.viewed",
        }
    }
}

/// A register in use.
#[derive(Clone, Copy, Default)]
struct Slot {
    key: u64,
    operations: usize,
    unanswered: usize,
    /// A value that was there lately.
    recent: u64,
}

#[derive(Default)]
struct State {
    slots: Vec<Slot>,
    last_key: u64,
    last_value: u64,
    operations: Vec<Operation>,
    /// Difference between the table and its view in the end. `None` if they have the same rows.
    difference: Option<String>,
}

impl State {
    fn begin_slot(&mut self, slot: usize) {
        self.last_key += 1;
        self.slots[slot] = Slot {
            key: self.last_key,
            ..Slot::default()
        };
    }

    /// Notes an operation with its outcome.
    fn record(&mut self, slot: usize, operation: Operation) {
        self.operations.push(operation);
        let used = &mut self.slots[slot];
        if used.key != operation.key {
            return;
        }
        used.operations += 1;
        used.unanswered += usize::from(operation.end.is_none());
        used.recent = match operation.call {
            Call::Read(value) | Call::Write(value) => value,
            Call::Search { .. } => used.recent,
            Call::Swap { new, found, .. } => found.unwrap_or(new),
        };
        if used.operations >= OPERATIONS || used.unanswered >= UNANSWERED {
            self.begin_slot(slot);
        }
    }
}

pub struct Registers {
    kind: Kind,
    state: Mutex<State>,
}

impl Registers {
    pub fn new(kind: Kind) -> Registers {
        let mut state = State {
            slots: vec![Slot::default(); SLOTS],
            ..State::default()
        };
        (0..SLOTS).for_each(|slot| state.begin_slot(slot));
        Registers {
            kind,
            state: Mutex::new(state),
        }
    }

    fn choose(&self, clients: &Clients, slot: usize) -> Call {
        let mut state = self.state.lock().unwrap();
        state.last_value += 1;
        let (new, recent) = (state.last_value, state.slots[slot].recent);
        match clients.dice.range(0..20) {
            0..4 => Call::Read(ABSENT),
            4..8 if matches!(self.kind, Kind::Indexed | Kind::StorageAttached) && recent != ABSENT => {
                Call::Search {
                    value: recent,
                    is_found: false,
                }
            }
            4..9 => Call::Read(ABSENT),
            9..14 => Call::Write(new),
            14..16 => Call::Write(ABSENT),
            _ => Call::Swap {
                expected: recent,
                new,
                found: None,
            },
        }
    }

    /// Compares the table with its view, until they have the same rows: a write of unknown outcome can take effect in between.
    async fn compare_view(&self, clients: &Clients) {
        for _ in 0..COMPARISONS {
            let [table, view] =
                [self.kind.table(), "ks.viewed_by_v"].map(|name| format!("SELECT k, v FROM {name}"));
            let table = pairs(&clients.run_at_last(clients.any_node(), &table).await);
            let view = pairs(&clients.run_at_last(clients.any_node(), &view).await);
            if table == view {
                self.state.lock().unwrap().difference = None;
                return;
            }
            self.state.lock().unwrap().difference = Some(format!("{table:?} and {view:?}"));
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    fn text(&self, key: u64, call: Call) -> String {
        let table = self.kind.table();
        match call {
            Call::Read(_) => format!("SELECT v FROM {table} WHERE k = {key}"),
            Call::Search { value, .. } => format!("SELECT k FROM {table} WHERE v = {value}"),
            Call::Write(ABSENT) => format!("DELETE FROM {table} WHERE k = {key}"),
            Call::Write(new) => format!("INSERT INTO {table} (k, v) VALUES ({key}, {new})"),
            Call::Swap {
                expected: ABSENT,
                new,
                ..
            } => format!("INSERT INTO {table} (k, v) VALUES ({key}, {new}) IF NOT EXISTS"),
            Call::Swap { expected, new, .. } => {
                format!("UPDATE {table} SET v = {new} WHERE k = {key} IF v = {expected}")
            }
        }
    }
}

/// Returns the values of rows with two columns.
fn pairs(rows: &str) -> BTreeSet<(u64, u64)> {
    let values: Vec<u64> = rows.split(", ").filter_map(|value| value.parse().ok()).collect();
    values.chunks(2).map(|pair| (pair[0], pair[1])).collect()
}

/// Returns the call with its answer.
fn answered(call: Call, rows: &str) -> Call {
    match call {
        Call::Read(_) => Call::Read(rows.parse().unwrap_or(ABSENT)),
        Call::Search { value, .. } => Call::Search {
            value,
            is_found: !rows.is_empty(),
        },
        Call::Swap { expected, new, .. } => {
            let mut values = rows.split(", ");
            let is_applied = values.next() == Some("true");
            let found = values.last().and_then(|value| value.parse().ok());
            Call::Swap {
                expected,
                new,
                found: (!is_applied).then(|| found.unwrap_or(ABSENT)),
            }
        }
        Call::Write(new) => Call::Write(new),
    }
}

#[async_trait]
impl Workload for Registers {
    fn schema(&self) -> Vec<String> {
        let table = self.kind.table();
        let mut statements = vec![format!(
            "CREATE TABLE IF NOT EXISTS {table} (k bigint PRIMARY KEY, v bigint)"
        )];
        match self.kind {
            Kind::Plain => {}
            Kind::Indexed => statements.push(format!("CREATE INDEX IF NOT EXISTS by_v ON {table} (v)")),
            Kind::StorageAttached => statements.push(format!(
                "CREATE INDEX IF NOT EXISTS sai_by_v ON {table} (v) USING 'sai'"
            )),
            Kind::Viewed => statements.push(format!(
                "CREATE MATERIALIZED VIEW IF NOT EXISTS ks.viewed_by_v AS SELECT * FROM {table} \
                 WHERE v IS NOT NULL AND k IS NOT NULL PRIMARY KEY (v, k)"
            )),
        }
        statements
    }

    async fn operate(&self, clients: &Clients) {
        let slot = clients.dice.range(0..SLOTS as u64) as usize;
        let call = self.choose(clients, slot);
        let (key, node) = (self.state.lock().unwrap().slots[slot].key, clients.any_node());
        let (text, begin) = (self.text(key, call), machine::elapsed());
        let result = clients.run(node, &text).await;
        let end = machine::elapsed();
        let shown = as_text(&result);
        tracing::debug!(node, text, begin_ms = begin.as_millis(), shown, "operation");
        let operation = match result {
            Ok(rows) => Operation {
                key,
                call: answered(call, &rows),
                begin,
                end: Some(end),
            },
            Err(Failure::Unknown(_)) if matches!(call, Call::Write(_) | Call::Swap { .. }) => Operation {
                key,
                call,
                begin,
                end: None,
            },
            // A read without an answer says nothing.
            Err(_) => return,
        };
        self.state.lock().unwrap().record(slot, operation);
    }

    async fn read_at_last(&self, clients: &Clients) {
        let last_key = self.state.lock().unwrap().last_key;
        for key in 1..=last_key {
            let begin = machine::elapsed();
            let text = self.text(key, Call::Read(ABSENT));
            let rows = clients
                .run_at_last(key as usize % clients.node_count(), &text)
                .await;
            let call = answered(Call::Read(ABSENT), &rows);
            self.state.lock().unwrap().operations.push(Operation {
                key,
                call,
                begin,
                end: Some(machine::elapsed()),
            });
        }
        if self.kind == Kind::Viewed {
            self.compare_view(clients).await;
        }
    }

    fn check(&self) -> Result<(), String> {
        let state = self.state.lock().unwrap();
        let table = self.kind.table();
        let mut keys: BTreeMap<u64, Vec<Operation>> = BTreeMap::new();
        for operation in &state.operations {
            keys.entry(operation.key).or_default().push(*operation);
        }
        for (key, mut operations) in keys {
            operations.sort_by_key(|operation| operation.begin);
            if !explains(&operations) {
                let lines: Vec<String> = operations
                    .iter()
                    .map(|operation| format!("{operation:?}"))
                    .collect();
                let lines = lines.join("\n");
                return Err(format!("{table}: no register explains key {key}:\n{lines}"));
            }
        }
        match &state.difference {
            Some(difference) => Err(format!("{table} and its view: {difference}")),
            None => Ok(()),
        }
    }

    fn operation_count(&self) -> usize {
        self.state.lock().unwrap().operations.len()
    }
}
