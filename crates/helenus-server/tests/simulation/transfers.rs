//! Transfers between accounts by BEGIN TRANSACTION, through random nodes, and the check that what clients saw is strictly serializable.
//!
//! Each write to an account raises its version by one, and notes its own id with the version that it replaced. So the notes that are read in
//! the end give the order of all writes to each account.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::clients::{Clients, Failure};
use crate::machine;
use crate::scenario::{Report, Scenario, fault, late_requests};
use crate::serializability::{Access, Operation, check};
use crate::world::World;

const NODES: usize = 3;
const CLIENTS: usize = 8;
const ACCOUNTS: u64 = 8;
const BALANCE: i64 = 100;
/// Time under load.
const LOAD: Duration = Duration::from_secs(45);
/// Maximum time until all accounts are answered again when all faults have ended.
const RECOVERY_MAX: Duration = Duration::from_secs(60);

/// All scenarios, by name.
pub const ALL: [(&str, Scenario); 4] = [
    ("transfers_random_faults", fault),
    ("transfers_late_requests", late_requests),
    ("transfers_kills", kill),
    ("transfers_divided", divide),
];

/// Kills a node in the middle of its transactions. It soon starts again.
fn kill(world: &mut World) {
    let node = world.dice.range(0..world.node_count() as u64) as usize;
    world.kill(node);
    let away = world.dice.millis(1..4000);
    world.run_for(away);
    world.start(node);
}

/// Cuts two nodes off from each other, or stops one. Messages arrive late: often after an owner has begun to decide without the coordinator,
/// and before lock sessions have ended.
fn divide(world: &mut World) {
    let node = world.dice.range(0..world.node_count() as u64) as usize;
    let duration = match world.dice.chance(75) {
        true => world.dice.millis(1050..2800),
        false => world.dice.millis(50..1000),
    };
    if world.dice.chance(25) {
        world.pause(node, duration);
    } else {
        world.network.divide(node, (node + 1) % world.node_count());
    }
    world.run_for(duration);
    world.network.heal();
}

#[derive(Default)]
struct State {
    last_id: u64,
    operations: Vec<Operation>,
    errors: u64,
    /// A version of each account that was there lately.
    recent: BTreeMap<u64, u64>,
}

/// The clients, and what they saw.
#[derive(Clone)]
struct Tellers {
    clients: Clients,
    nodes: u64,
    state: Arc<Mutex<State>>,
}

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

impl Tellers {
    async fn run(self, until: Duration) {
        let dice = self.clients.dice().clone();
        while machine::elapsed() < until {
            tokio::time::sleep(dice.millis(1..80)).await;
            let node = dice.range(0..self.nodes) as usize;
            let order = self.choose();
            if let Err(why) = self.carry_out(node, order).await {
                self.state
                    .lock()
                    .unwrap()
                    .operations
                    .push(Operation::impossible(why));
            }
        }
    }

    fn choose(&self) -> Order {
        let dice = self.clients.dice();
        let account = || dice.range(1..ACCOUNTS + 1);
        let other = |than: u64| (than + dice.range(0..ACCOUNTS - 1)) % ACCOUNTS + 1;
        let mut state = self.state.lock().unwrap();
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

    async fn carry_out(&self, node: usize, order: Order) -> Result<(), String> {
        let begin = machine::elapsed();
        let result = self.clients.run(node, &order.text).await;
        let end = machine::elapsed();
        let shown = match &result {
            Ok(rows) => format!("\"{rows}\""),
            Err(Failure::NotDone(error)) => format!("not done: {error}"),
            Err(Failure::Unknown(error)) => format!("unknown: {error}"),
        };
        tracing::debug!(
            node,
            text = order.text,
            begin_ms = begin.as_millis(),
            shown,
            "operation"
        );
        let mut state = self.state.lock().unwrap();
        let answer = match result {
            Ok(rows) => (order.read)(&rows).ok_or_else(|| format!("{}: {rows}", order.text))?,
            Err(failure) => {
                state.errors += 1;
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

    /// Runs a statement until it is answered.
    async fn run_at_last(self, node: usize, text: String) -> String {
        loop {
            if let Ok(rows) = self.clients.run(node, &text).await {
                return rows;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

fn answered(world: &mut World, tellers: &Tellers, node: usize, text: &str) -> Result<String, String> {
    let task = world.spawn(tellers.clone().run_at_last(node, text.to_owned()));
    let rows = world.run_until(task, RECOVERY_MAX);
    rows.ok_or_else(|| format!("no answer within {RECOVERY_MAX:?} at node {node}: {text}"))
}

/// Runs three nodes under load, does what the scenario does again and again, and checks what clients saw.
pub fn run(scenario: Scenario, seed: u64) -> Result<Report, String> {
    let mut world = World::new(seed, NODES);
    (0..NODES).for_each(|node| world.start(node));
    let tellers = Tellers {
        clients: Clients::new(&world),
        nodes: NODES as u64,
        state: Arc::default(),
    };
    let create = [
        "CREATE KEYSPACE IF NOT EXISTS ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE IF NOT EXISTS ks.a (k bigint PRIMARY KEY, balance bigint, version bigint, notes map<bigint, bigint>) \
         WITH transactional_mode = 'full'",
    ];
    let accounts = (1..=ACCOUNTS).map(|k| {
        format!("INSERT INTO ks.a (k, balance, version, notes) VALUES ({k}, {BALANCE}, 0, {{0: 0}})")
    });
    for text in create.into_iter().map(str::to_owned).chain(accounts) {
        answered(&mut world, &tellers, 0, &text)?;
    }
    let until = world.now() + LOAD;
    for _ in 0..CLIENTS {
        world.spawn(tellers.clone().run(until));
    }
    let mut faults = 0;
    while world.now() < until {
        let calm = world.dice.millis(200..3000);
        world.run_for(calm);
        scenario(&mut world);
        faults += 1;
    }
    world.bucket.heal();
    world.network.heal();
    (0..NODES).for_each(|node| world.start(node));
    // Statements that were sent before may take effect until then.
    world.run_for(Duration::from_secs(30));
    // A node that was stopping until now is started too.
    (0..NODES).for_each(|node| world.start(node));
    let mut notes: BTreeMap<u64, BTreeMap<u64, u64>> = BTreeMap::new();
    let mut sum = 0;
    for k in 1..=ACCOUNTS {
        let node = k as usize % NODES;
        let text = format!("SELECT balance FROM ks.a WHERE k = {k}");
        let balance = answered(&mut world, &tellers, node, &text)?;
        sum += balance.parse::<i64>().map_err(|_| format!("{text}: {balance}"))?;
        let text = format!("SELECT notes FROM ks.a WHERE k = {k}");
        let rows = answered(&mut world, &tellers, node, &text)?;
        notes.insert(k, notes_of(&rows).ok_or_else(|| format!("{text}: {rows}"))?);
    }
    if sum != BALANCE * ACCOUNTS as i64 {
        return Err(format!("the sum is {sum} in the end"));
    }
    let state = tellers.state.lock().unwrap();
    check(&state.operations, &notes)?;
    Ok(Report {
        operations: state.operations.len(),
        errors: state.errors,
        faults,
        simulated: world.now(),
    })
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
