//! `nodetool tpstats`, in the format of Cassandra's (`TpStatsPrinter`): the pools of `system_views.thread_pools`.

use std::process::ExitCode;

use serde_json::{Map, Value, json};

use super::client::NodeClient;
use super::output::{Format, columns, number, text};

pub(super) fn run(node: &NodeClient, format: Option<Format>) -> anyhow::Result<ExitCode> {
    let pools = node.rows("thread_pools")?;
    match format {
        None => print!("{}", page(&pools)),
        Some(format) => print!("{}", format.text(&document(&pools))),
    }
    Ok(ExitCode::SUCCESS)
}

const FIELDS: [&str; 5] = [
    "active_tasks",
    "pending_tasks",
    "completed_tasks",
    "blocked_tasks",
    "blocked_tasks_all_time",
];

fn page(pools: &[Value]) -> String {
    let heads = [
        "Pool Name",
        "Active",
        "Pending",
        "Completed",
        "Blocked",
        "All time blocked",
    ];
    let mut rows = vec![heads.map(str::to_owned)];
    rows.extend(pools.iter().map(|pool| {
        let [active, pending, completed, blocked, blocked_ever] =
            FIELDS.map(|field| number(pool, field).to_string());
        [
            text(pool, "name"),
            active,
            pending,
            completed,
            blocked,
            blocked_ever,
        ]
    }));
    let dropped = "Message type                      Dropped     50%      95%      99%      Max";
    format!(
        "{}\nLatencies waiting in queue (micros) per dropped message types\n{dropped}\n",
        columns(&rows)
    )
}

/// Returns the pools as a document. Messages between nodes are not dropped, so there are no figures of dropped messages.
fn document(pools: &[Value]) -> Value {
    let names = [
        "ActiveTasks",
        "PendingTasks",
        "CompletedTasks",
        "CurrentlyBlockedTasks",
        "TotalBlockedTasks",
    ];
    let pool = |pool: &Value| {
        let figures: Map<String, Value> = names
            .into_iter()
            .zip(FIELDS)
            .map(|(name, field)| (name.to_owned(), number(pool, field).into()))
            .collect();
        (text(pool, "name"), Value::Object(figures))
    };
    let pools: Map<String, Value> = pools.iter().map(pool).collect();
    json!({ "ThreadPools": pools, "DroppedMessage": {}, "WaitLatencies": {} })
}
