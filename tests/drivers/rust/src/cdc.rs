//! Reads captured changes by `scylla-cdc`, and prints each changed row as a line of JSON, until the process is ended.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use scylla::value::CqlValue;
use scylla_cdc::consumer::{CDCRow, Consumer, ConsumerFactory};
use scylla_cdc::log_reader::CDCLogReaderBuilder;

use crate::Outcome;

struct Printer;

fn number(value: Option<CqlValue>) -> String {
    value
        .and_then(|value| value.as_int())
        .map_or("null".to_owned(), |value| value.to_string())
}

#[async_trait]
impl Consumer for Printer {
    async fn consume_cdc(&mut self, mut row: CDCRow<'_>) -> anyhow::Result<()> {
        let (pk, v) = (number(row.take_value("pk")), number(row.take_value("v")));
        let (operation, time) = (row.operation.clone() as i8, row.time);
        println!(r#"{{"operation": {operation}, "time": "{time}", "pk": {pk}, "v": {v}}}"#);
        Ok(())
    }
}

#[async_trait]
impl ConsumerFactory for Printer {
    async fn new_consumer(&self) -> Box<dyn Consumer> {
        Box::new(Printer)
    }
}

/// Prints the changes of a table since a minute ago.
pub async fn main(address: &str, keyspace: &str, table: &str) -> Outcome {
    let session = Arc::new(crate::connect(address, None, None).await?);
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let start = now - Duration::from_secs(60);
    let (_reader, end) = CDCLogReaderBuilder::new()
        .session(session)
        .keyspace(keyspace)
        .table_name(table)
        .start_timestamp(start)
        .window_size(Duration::from_secs(5))
        .safety_interval(Duration::from_secs(1))
        .sleep_interval(Duration::from_millis(200))
        .consumer_factory(Arc::new(Printer))
        .build()
        .await?;
    Ok(end.await?)
}
