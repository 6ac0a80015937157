//! Load and size of tablets.

use std::collections::HashMap;
use std::time::Instant;

use helenus_tablet::{StoreStats, TabletStats};
use serde_json::{Value, json};

/// Operations per second of the tablets that are open here, between the last two readings of their counters.
#[derive(Debug, Default)]
pub(super) struct TabletRates {
    at: Option<Instant>,
    counted: HashMap<u32, u64>,
    per_second: HashMap<u32, f64>,
}

/// Returns the operations since the tablet was opened, counted as for the cluster's load.
fn operations(stats: &TabletStats) -> u64 {
    stats.operands + stats.gets + stats.scans
}

impl TabletRates {
    pub fn add(&mut self, stats: &StoreStats) {
        let now = Instant::now();
        let elapsed_s = self.at.map(|at| now.duration_since(at).as_secs_f64());
        let counted = stats.tablets.iter().map(|tablet| (tablet.id, operations(tablet)));
        let counted: HashMap<u32, u64> = counted.collect();
        self.per_second = match elapsed_s {
            Some(elapsed_s) if elapsed_s > 0.0 => {
                let rate = |(id, count): (&u32, &u64)| {
                    let before = self.counted.get(id)?;
                    Some((*id, count.saturating_sub(*before) as f64 / elapsed_s))
                };
                counted.iter().filter_map(rate).collect()
            }
            _ => HashMap::new(),
        };
        self.at = Some(now);
        self.counted = counted;
    }
}

/// Adds the size and the load to those tablets of a report that are open here.
pub(super) fn add_load(report: &mut Value, stats: &StoreStats, rates: &TabletRates) {
    let tablets = report.get_mut("tablets").and_then(Value::as_array_mut);
    for tablet in tablets.into_iter().flatten() {
        let id = tablet.get("id").and_then(Value::as_u64);
        let open = stats.tablets.iter().find(|stats| Some(u64::from(stats.id)) == id);
        if let (Some(open), Some(tablet)) = (open, tablet.as_object_mut()) {
            tablet.insert("bytes".to_owned(), json!(open.data_bytes));
            let rate = rates.per_second.get(&open.id);
            tablet.insert("operations_per_second".to_owned(), json!(rate));
        }
    }
}
