//! Transfers between accounts by BEGIN TRANSACTION, and reads of the accounts: what clients see is strictly serializable.
//!
//! Each write to an account raises its version by one, and notes its own id with the version that it replaced. So the notes that are read in
//! the end give the order of all writes to each account.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;

use super::Workload;
use crate::clients::{Clients, Failure, as_text};
use crate::machine;
use crate::serializability::{Access, Operation, check};

/// Number of clients. Transactions meet each other often.
const CLIENTS: usize = 8;
const ACCOUNTS: u64 = 8;
const BALANCE: i64 = 100;
/// Time after which statements that were sent before have taken effect, or never will.
const SETTLED_AFTER: Duration = Duration::from_secs(30);

#[derive(Default)]
struct State {
    last_id: u64,
    operations: Vec<Operation>,
    /// A version of each account that was there lately.
    recent: BTreeMap<u64, u64>,
    /// The sum of all balances in the end, and the notes of each account.
    last_sum: i64,
    notes: BTreeMap<u64, BTreeMap<u64, u64>>,
}

#[derive(Default)]
pub struct Transfers(Mutex<State>);

/// An operation that is to be made.
struct Order {
    text: String,
    /// Id of the notes that it leaves, and the accounts that it writes. `None` if it only reads.
    writes: Option<(u64, Vec<u64>)>,
    /// Returns the accesses from the answer. `None` if the answer is invalid.
    read: Box<dyn Fn(&str) -> Option<Answer> + Send>,
}

/// The content of an answer.
struct Answer {
    /// Versions of accounts as of one time.
    seen: Vec<(u64, u64)>,
    is_applied: bool,
    /// The sum of all balances, if the answer has all.
    sum: Option<i64>,
    /// True if the accounts were not read at one time.
    is_apart: bool,
}

impl Answer {
    fn of_reads(seen: Vec<(u64, u64)>) -> Answer {
        Answer {
            seen,
            is_applied: false,
            sum: None,
            is_apart: false,
        }
    }
}

fn numbers(rows: &str) -> Option<Vec<i64>> {
    rows.split(", ").map(|value| value.parse().ok()).collect()
}

fn transfer(id: u64, from: u64, to: u64, amount: i64) -> Order {
    let write = |of: u64, name: &str, sign: char| {
        format!(
            "UPDATE ks.a SET balance {sign}= {amount}, version += 1, notes[{id}] = {name}.version WHERE k = {of};"
        )
    };
    let (debit, credit) = (write(from, "a", '-'), write(to, "b", '+'));
    Order {
        text: format!(
            "BEGIN TRANSACTION \
             LET a = (SELECT balance, version FROM ks.a WHERE k = {from}); \
             LET b = (SELECT balance, version FROM ks.a WHERE k = {to}); \
             SELECT a.balance, a.version, b.balance, b.version; \
             IF a.balance >= {amount} THEN {debit} {credit} END IF \
             COMMIT TRANSACTION"
        ),
        writes: Some((id, vec![from, to])),
        read: Box::new(move |rows| {
            let [balance, a, _, b] = numbers(rows)?.try_into().ok()?;
            Some(Answer {
                is_applied: balance >= amount,
                ..Answer::of_reads(vec![(from, a as u64), (to, b as u64)])
            })
        }),
    }
}

/// Writes to one account and depends on two others, which are only read.
fn dependent(id: u64, of: u64, others: [u64; 2]) -> Order {
    let [x, y] = others;
    Order {
        text: format!(
            "BEGIN TRANSACTION \
             LET a = (SELECT version FROM ks.a WHERE k = {of}); \
             LET x = (SELECT version FROM ks.a WHERE k = {x}); \
             LET y = (SELECT version FROM ks.a WHERE k = {y}); \
             SELECT a.version, x.version, y.version; \
             UPDATE ks.a SET version += 1, notes[{id}] = a.version WHERE k = {of}; \
             COMMIT TRANSACTION"
        ),
        writes: Some((id, vec![of])),
        read: Box::new(move |rows| {
            let seen = [of, x, y].into_iter().zip(numbers(rows)?);
            Some(Answer {
                is_applied: true,
                ..Answer::of_reads(seen.map(|(k, version)| (k, version as u64)).collect())
            })
        }),
    }
}

/// Writes to one account under the condition that it has this version.
fn conditional(id: u64, of: u64, expected: u64) -> Order {
    let new = expected + 1;
    Order {
        text: format!(
            "UPDATE ks.a SET version = {new}, notes[{id}] = {expected} WHERE k = {of} IF version = {expected}"
        ),
        writes: Some((id, vec![of])),
        read: Box::new(move |rows| match rows.split_once(", ") {
            None => Some(Answer {
                is_applied: true,
                ..Answer::of_reads(vec![(of, expected)])
            }),
            Some((_, version)) => Some(Answer::of_reads(vec![(of, version.parse().ok()?)])),
        }),
    }
}

fn read_one(of: u64) -> Order {
    Order {
        text: format!("SELECT version FROM ks.a WHERE k = {of}"),
        writes: None,
        read: Box::new(move |rows| Some(Answer::of_reads(vec![(of, rows.parse().ok()?)]))),
    }
}

/// Reads all accounts, in a transaction or by a scan.
fn read_all(in_transaction: bool) -> Order {
    let keys: Vec<String> = (1..=ACCOUNTS).map(|k| k.to_string()).collect();
    Order {
        text: match in_transaction {
            true => format!(
                "BEGIN TRANSACTION SELECT k, version, balance FROM ks.a WHERE k IN ({}); COMMIT TRANSACTION",
                keys.join(", ")
            ),
            false => "SELECT k, version, balance FROM ks.a".to_owned(),
        },
        writes: None,
        read: Box::new(move |rows| {
            let values = numbers(rows)?;
            let rows: Vec<&[i64]> = values.chunks_exact(3).collect();
            Some(Answer {
                sum: in_transaction.then(|| rows.iter().map(|row| row[2]).sum()),
                is_apart: !in_transaction,
                ..Answer::of_reads(rows.iter().map(|row| (row[0] as u64, row[1] as u64)).collect())
            })
        }),
    }
}

impl Transfers {
    fn choose(&self, clients: &Clients) -> Order {
        let dice = &clients.dice;
        let account = || dice.range(1..ACCOUNTS + 1);
        let other = |than: u64| (than + dice.range(0..ACCOUNTS - 1)) % ACCOUNTS + 1;
        let mut state = self.0.lock().unwrap();
        state.last_id += 1;
        let id = state.last_id;
        match dice.range(0..12) {
            0..5 => {
                let from = account();
                transfer(id, from, other(from), dice.range(1..60) as i64)
            }
            5 => {
                let of = account();
                dependent(id, of, [other(of), other(of)])
            }
            6 => {
                let of = account();
                conditional(id, of, state.recent.get(&of).copied().unwrap_or(0))
            }
            7 | 8 => read_one(account()),
            9 => read_all(false),
            _ => read_all(true),
        }
    }

    async fn carry_out(&self, clients: &Clients, order: Order) -> Result<(), String> {
        let (node, begin) = (clients.any_node(), machine::elapsed());
        let result = clients.run(node, &order.text).await;
        let end = machine::elapsed();
        let shown = as_text(&result);
        tracing::debug!(
            node,
            text = order.text,
            begin_ms = begin.as_millis(),
            shown,
            "operation"
        );
        let mut state = self.0.lock().unwrap();
        let answer = match result {
            Ok(rows) => (order.read)(&rows).ok_or_else(|| format!("{}: {rows}", order.text))?,
            Err(failure) => {
                if let Some((id, accounts)) = order.writes {
                    let accesses = accounts.into_iter().map(Access::unknown).collect();
                    let operation = Operation::new(order.text, begin, None, accesses);
                    let is_possible = matches!(failure, Failure::Unknown(_));
                    let is_applied = (!is_possible).then_some(false);
                    state.operations.push(operation.written_by(id, is_applied));
                }
                return Ok(());
            }
        };
        if let Some(sum) = answer.sum
            && (sum != BALANCE * ACCOUNTS as i64 || answer.seen.len() != ACCOUNTS as usize)
        {
            return Err(format!(
                "{} has seen the sum {sum}: {:?}",
                order.text, answer.seen
            ));
        }
        for (k, version) in &answer.seen {
            state.recent.insert(*k, *version);
        }
        if answer.is_apart {
            for (k, version) in answer.seen {
                let accesses = vec![Access::read(k, version)];
                state
                    .operations
                    .push(Operation::new(order.text.clone(), begin, Some(end), accesses));
            }
            return Ok(());
        }
        let written = order.writes.as_ref().filter(|_| answer.is_applied);
        let access = |(k, version): (u64, u64)| match written {
            Some((_, accounts)) if accounts.contains(&k) => Access::replaced(k, version),
            _ => Access::read(k, version),
        };
        let accesses = answer.seen.into_iter().map(access).collect();
        let operation = Operation::new(order.text, begin, Some(end), accesses);
        state.operations.push(match order.writes {
            Some((id, _)) => operation.written_by(id, Some(answer.is_applied)),
            None => operation,
        });
        Ok(())
    }
}

#[async_trait]
impl Workload for Transfers {
    fn schema(&self) -> Vec<String> {
        let table = "CREATE TABLE IF NOT EXISTS ks.a (k bigint PRIMARY KEY, balance bigint, version bigint, notes map<bigint, bigint>) \
                     WITH transactional_mode = 'full'";
        let account =
            |k| format!("INSERT INTO ks.a (k, balance, version, notes) VALUES ({k}, {BALANCE}, 0, {{0: 0}})");
        std::iter::once(table.to_owned())
            .chain((1..=ACCOUNTS).map(account))
            .collect()
    }

    async fn operate(&self, clients: &Clients) {
        let order = self.choose(clients);
        if let Err(why) = self.carry_out(clients, order).await {
            let impossible = Operation::impossible(why);
            self.0.lock().unwrap().operations.push(impossible);
        }
    }

    async fn read_at_last(&self, clients: &Clients) {
        tokio::time::sleep(SETTLED_AFTER).await;
        for k in 1..=ACCOUNTS {
            let node = k as usize % clients.node_count();
            let balance = format!("SELECT balance FROM ks.a WHERE k = {k}");
            let balance = clients.run_at_last(node, &balance).await;
            let notes = format!("SELECT notes FROM ks.a WHERE k = {k}");
            let notes = clients.run_at_last(node, &notes).await;
            let mut state = self.0.lock().unwrap();
            state.last_sum += balance.parse::<i64>().unwrap_or(i64::from(i32::MIN));
            state.notes.insert(k, notes_of(&notes).unwrap_or_default());
        }
    }

    fn check(&self) -> Result<(), String> {
        let state = self.0.lock().unwrap();
        if state.last_sum != BALANCE * ACCOUNTS as i64 {
            return Err(format!("the sum is {} in the end", state.last_sum));
        }
        check(&state.operations, &state.notes)
    }

    fn operation_count(&self) -> usize {
        self.0.lock().unwrap().operations.len()
    }

    fn clients(&self) -> usize {
        CLIENTS
    }
}

/// Parses the literal of a map: ids of writes, with the versions that they replaced.
fn notes_of(literal: &str) -> Option<BTreeMap<u64, u64>> {
    let inner = literal.strip_prefix('{')?.strip_suffix('}')?;
    let notes = inner.split(", ").map(|note| {
        let (id, version) = note.split_once(": ")?;
        Some((id.parse().ok()?, version.parse().ok()?))
    });
    let mut notes: BTreeMap<u64, u64> = notes.collect::<Option<_>>()?;
    // The note of the account's creation.
    notes.remove(&0);
    Some(notes)
}
