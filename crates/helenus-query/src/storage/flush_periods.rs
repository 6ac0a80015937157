//! `memtable_flush_period_in_ms`: flushes tablets whose memory has held rows of such a table for that period. Memtables belong to tablets,
//! so rows of other tables are flushed too.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use helenus_row::TableId;
use helenus_tablet::FailureStreak;
use tokio::time::Instant;

use super::ExecutionContext;
use crate::schema::Schema;

/// Bounds of the interval between two checks of the tablets, which is a quarter of the shortest period.
const INTERVAL_MIN: Duration = Duration::from_millis(50);
const INTERVAL_MAX: Duration = Duration::from_secs(1);

/// The tables with a flush period.
type Periods = Vec<(TableId, Duration)>;

/// Starts the periodic flushes. They follow changes of the schema and end with the node.
pub(crate) fn begin(context: &Arc<ExecutionContext>) {
    tokio::spawn(run(Arc::downgrade(context)));
}

async fn run(context: Weak<ExecutionContext>) {
    let mut schema: Option<Arc<Schema>> = None;
    let mut periods = Periods::new();
    let mut unflushed = Unflushed::default();
    let mut flushing = FailureStreak::new(
        "a tablet could not be flushed; trying again",
        "tablets are flushed again",
    );
    loop {
        let interval = interval(&periods);
        tokio::time::sleep(interval).await;
        let Some(context) = context.upgrade() else { return };
        let now = context.schema();
        if !schema.as_ref().is_some_and(|known| Arc::ptr_eq(known, &now)) {
            periods = periods_of(&now);
            schema = Some(now);
        }
        if periods.is_empty() {
            continue;
        }
        for tablet in context.store.tablets().iter() {
            let holds = |table: TableId| tablet.has_unflushed(&table.0.to_be_bytes());
            if unflushed.is_due(tablet.id(), &periods, interval, holds) {
                flushing.note(&tablet.flush().await);
            }
        }
    }
}

fn periods_of(schema: &Schema) -> Periods {
    let period = |millis: i32| u64::try_from(millis).ok().filter(|millis| *millis > 0);
    let tables = schema.stored_tables();
    tables
        .filter_map(|table| {
            let millis = period(table.options.memtable_flush_period_ms)?;
            Some((table.number, Duration::from_millis(millis)))
        })
        .collect()
}

fn interval(periods: &[(TableId, Duration)]) -> Duration {
    let shortest = periods.iter().map(|(_, period)| *period).min();
    shortest.map_or(INTERVAL_MAX, |shortest| {
        (shortest / 4).clamp(INTERVAL_MIN, INTERVAL_MAX)
    })
}

/// Times since which tablets have held rows of tables in memory.
#[derive(Debug, Default)]
struct Unflushed {
    since: HashMap<(u32, TableId), Instant>,
}

impl Unflushed {
    /// Returns true if the tablet must be flushed now. Otherwise its memory would hold rows of a table beyond their period before the next
    /// check.
    fn is_due(
        &mut self,
        tablet: u32,
        periods: &[(TableId, Duration)],
        interval: Duration,
        holds: impl Fn(TableId) -> bool,
    ) -> bool {
        let now = Instant::now();
        let mut is_due = false;
        for (table, period) in periods {
            let key = (tablet, *table);
            if holds(*table) {
                let since = *self.since.entry(key).or_insert(now);
                is_due |= now.duration_since(since) + interval >= *period;
            } else {
                self.since.remove(&key);
            }
        }
        if is_due {
            self.since.retain(|(known, _), _| *known != tablet);
        }
        is_due
    }
}

#[cfg(test)]
#[path = "flush_periods_tests.rs"]
mod tests;
