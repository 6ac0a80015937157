//! Clients that read and write registers through random nodes, and record the answers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use helenus_cql::error::CqlError;
use helenus_query::request::{ClientState, QueryParameters};
use helenus_query::response::{Outcome, Response};

use crate::dice::Dice;
use crate::machine;
use crate::register::{ABSENT, Call, Operation};
use crate::world::{Entrances, World};

/// Time after which a client gives up waiting for an answer.
const PATIENCE: Duration = Duration::from_secs(12);
/// Number of registers that are in use at a time.
const SLOTS: usize = 8;
/// Operations on a register, and those without an answer, after which another one takes its place. So each history can be checked.
const OPERATIONS: usize = 60;
const UNANSWERED: usize = 6;

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
    errors: u64,
}

impl State {
    fn begin_slot(&mut self, slot: usize) {
        self.last_key += 1;
        self.slots[slot] = Slot {
            key: self.last_key,
            ..Slot::default()
        };
    }
}

/// The clients, and the answers that they have got.
#[derive(Clone)]
pub struct Clients {
    entrances: Entrances,
    dice: Dice,
    state: Arc<Mutex<State>>,
}

/// Reason for which a statement has no result.
pub enum Failure {
    /// The statement certainly had no effect.
    NotDone(String),
    /// The statement may have taken effect, or may take effect later.
    Unknown(String),
}

impl Clients {
    pub fn new(world: &World) -> Clients {
        let mut state = State {
            slots: vec![Slot::default(); SLOTS],
            ..State::default()
        };
        (0..SLOTS).for_each(|slot| state.begin_slot(slot));
        Clients {
            entrances: world.entrances.clone(),
            dice: world.dice.clone(),
            state: Arc::new(Mutex::new(state)),
        }
    }

    pub fn dice(&self) -> &Dice {
        &self.dice
    }

    /// Runs a statement through a node, and returns its rows as text.
    pub async fn run(&self, node: usize, text: &str) -> Result<String, Failure> {
        let entrance = self.entrances.lock().unwrap()[node].clone();
        let Some((runtime, started)) = entrance else {
            return Err(Failure::NotDone("no node there".to_owned()));
        };
        let statement = text.to_owned();
        let running = runtime.spawn(async move {
            let client = ClientState::default();
            started
                .engine
                .query(&client, &statement, &QueryParameters::default())
                .await
        });
        match tokio::time::timeout(PATIENCE, running).await {
            Ok(Ok(Ok(outcome))) => Ok(shown(&outcome)),
            Ok(Ok(Err(error))) => Err(failure(&error)),
            Ok(Err(_)) => Err(Failure::Unknown("the node was killed".to_owned())),
            Err(_) => Err(Failure::Unknown("no answer".to_owned())),
        }
    }

    /// Runs one client until that time.
    pub async fn run_client(self, until: Duration) {
        while machine::elapsed() < until {
            tokio::time::sleep(self.dice.millis(1..60)).await;
            let slot = self.dice.range(0..SLOTS as u64) as usize;
            let node = self.dice.range(0..self.entrances.lock().unwrap().len() as u64) as usize;
            let call = self.choose(slot);
            self.operate(slot, node, call).await;
        }
    }

    fn choose(&self, slot: usize) -> Call {
        let mut state = self.state.lock().unwrap();
        state.last_value += 1;
        let new = state.last_value;
        let expected = state.slots[slot].recent;
        match self.dice.range(0..10) {
            0..5 => Call::Read(ABSENT),
            5..8 => Call::Write(new),
            _ => Call::Swap {
                expected,
                new,
                found: None,
            },
        }
    }

    async fn operate(&self, slot: usize, node: usize, call: Call) {
        let (key, begin) = (self.state.lock().unwrap().slots[slot].key, machine::elapsed());
        let text = match call {
            Call::Read(_) => format!("SELECT v FROM ks.r WHERE k = {key}"),
            Call::Write(new) => format!("INSERT INTO ks.r (k, v) VALUES ({key}, {new})"),
            Call::Swap {
                expected: ABSENT,
                new,
                ..
            } => format!("INSERT INTO ks.r (k, v) VALUES ({key}, {new}) IF NOT EXISTS"),
            Call::Swap { expected, new, .. } => {
                format!("UPDATE ks.r SET v = {new} WHERE k = {key} IF v = {expected}")
            }
        };
        let result = self.run(node, &text).await;
        let end = machine::elapsed();
        let shown = match &result {
            Ok(rows) => format!("\"{rows}\""),
            Err(Failure::NotDone(error)) => format!("not done: {error}"),
            Err(Failure::Unknown(error)) => format!("unknown: {error}"),
        };
        tracing::debug!(node, text, begin_ms = begin.as_millis(), shown, "operation");
        let operation = match result {
            Ok(rows) => Some(Operation {
                key,
                call: answered(call, &rows),
                begin,
                end: Some(end),
            }),
            // A read without an answer says nothing.
            Err(Failure::Unknown(_)) if !matches!(call, Call::Read(_)) => Some(Operation {
                key,
                call,
                begin,
                end: None,
            }),
            Err(_) => None,
        };
        self.record(slot, operation);
    }

    fn record(&self, slot: usize, operation: Option<Operation>) {
        let mut state = self.state.lock().unwrap();
        let state = &mut *state;
        let Some(operation) = operation else {
            state.errors += 1;
            return;
        };
        state.operations.push(operation);
        let used = &mut state.slots[slot];
        if used.key != operation.key {
            return;
        }
        used.operations += 1;
        used.unanswered += usize::from(operation.end.is_none());
        used.recent = match operation.call {
            Call::Read(value) | Call::Write(value) => value,
            Call::Swap { new, found, .. } => found.unwrap_or(new),
        };
        if used.operations >= OPERATIONS || used.unanswered >= UNANSWERED {
            state.begin_slot(slot);
        }
    }

    /// Reads a register until it is answered, and records the answer.
    pub async fn read_at_last(self, key: u64, node: usize) {
        loop {
            let begin = machine::elapsed();
            let text = format!("SELECT v FROM ks.r WHERE k = {key}");
            if let Ok(rows) = self.run(node, &text).await {
                let call = answered(Call::Read(ABSENT), &rows);
                let end = Some(machine::elapsed());
                let operation = Operation {
                    key,
                    call,
                    begin,
                    end,
                };
                self.state.lock().unwrap().operations.push(operation);
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Returns all registers that were used.
    pub fn keys(&self) -> std::ops::RangeInclusive<u64> {
        1..=self.state.lock().unwrap().last_key
    }

    pub fn operations(&self) -> Vec<Operation> {
        self.state.lock().unwrap().operations.clone()
    }

    /// Returns the number of operations that had certainly no effect.
    pub fn errors(&self) -> u64 {
        self.state.lock().unwrap().errors
    }
}

/// Returns the call with its answer.
fn answered(call: Call, rows: &str) -> Call {
    match call {
        Call::Read(_) => Call::Read(rows.parse().unwrap_or(ABSENT)),
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
        write => write,
    }
}

fn failure(error: &CqlError) -> Failure {
    let text = error.to_string();
    match error {
        CqlError::Unavailable { .. }
        | CqlError::Overloaded(_)
        | CqlError::IsBootstrapping(_)
        | CqlError::Invalid(_) => Failure::NotDone(text),
        _ => Failure::Unknown(text),
    }
}

fn shown(outcome: &Outcome) -> String {
    let Response::Rows(rows) = &outcome.response else {
        return String::new();
    };
    let mut shown = Vec::new();
    for row in rows.content.iter() {
        for (value, column) in row.iter().zip(&rows.metadata.columns) {
            shown.push(match value {
                Some(value) => helenus_cql::value::to_cql_literal(&column.ty, value).unwrap(),
                None => "null".to_owned(),
            });
        }
    }
    shown.join(", ")
}
