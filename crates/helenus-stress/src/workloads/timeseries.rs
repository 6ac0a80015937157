//! `timeseries`: sensors write readings, and the newest ones are read first. tlp-stress's BasicTimeSeries.

use anyhow::Result;
use async_trait::async_trait;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::CqlTimeuuid;

use super::{Class, Field, Info, Operation, OperationOutcome, Parameter, ReadSummary, Setup, Workload};
use crate::data::fields::Generator;
use crate::data::value::ValueFormat;
use crate::db::{Db, OpError};
use crate::operation::Slot;

pub const INFO: Info = Info {
    name: "timeseries",
    aliases: &["BasicTimeSeries"],
    about: "Sensors that report: append a reading, read the newest",
    operations: &[
        Operation {
            name: "read",
            class: Class::Read,
            weight: 0.1,
            about: "the newest readings of a random sensor",
        },
        Operation {
            name: "write",
            class: Class::Write,
            weight: 0.9,
            about: "a reading of a random sensor",
        },
        Operation {
            name: "delete",
            class: Class::Delete,
            weight: 0.0,
            about: "all readings of a random sensor",
        },
    ],
    parameters: &[
        Parameter {
            name: "limit",
            alias: None,
            default: "500",
            about: "how many readings a read takes",
        },
        Parameter {
            name: "rows",
            alias: None,
            default: "10",
            about: "how many readings a sensor is populated with",
        },
    ],
    fields: &[Field {
        name: "sensor_data.data",
        default: "random(100,200)",
    }],
    partitions: 100_000,
    pieces: None,
    shared_keys: false,
    pools: None,
    published: &[],
    schema: |_| {
        Ok(vec![
            "CREATE TABLE IF NOT EXISTS sensor_data (sensor_id text, timestamp timeuuid, data text, \
             PRIMARY KEY (sensor_id, timestamp)) WITH CLUSTERING ORDER BY (timestamp DESC)"
                .into(),
        ])
    },
    prepare: |setup, db| Box::pin(async move { Ok(Box::new(TimeSeries::new(setup, db).await?) as _) }),
};

struct TimeSeries {
    setup: Setup,
    data: Generator,
    limit: i32,
    rows: u64,
    insert: PreparedStatement,
    select: PreparedStatement,
    delete: PreparedStatement,
}

impl TimeSeries {
    async fn new(setup: &Setup, db: &Db) -> Result<Self> {
        Ok(Self {
            setup: setup.clone(),
            data: setup.generator("sensor_data.data")?,
            limit: i32::try_from(setup.count("limit")?)?,
            rows: setup.count("rows")?,
            insert: db
                .prepare("INSERT INTO sensor_data (sensor_id, timestamp, data) VALUES (?, ?, ?)")
                .await?,
            select: db
                .prepare("SELECT data FROM sensor_data WHERE sensor_id = ? LIMIT ?")
                .await?,
            delete: db.prepare("DELETE FROM sensor_data WHERE sensor_id = ?").await?,
        })
    }

    async fn write(&self, db: &Db, at: CqlTimeuuid, slot: &mut Slot) -> OperationOutcome {
        slot.fill(self.data, ValueFormat::Text);
        db.execute(&self.insert, (slot.key(), at, slot.text())).await?;
        Ok(ReadSummary::rows(1))
    }

    async fn read(&self, db: &Db, limit: i32, expected: Option<u64>, slot: &Slot) -> OperationOutcome {
        let result = db.execute(&self.select, (slot.key(), limit)).await?;
        let rows = result.into_rows_result().map_err(OpError::unreadable)?;
        slot.check_rows(&rows, ValueFormat::Text, expected)
    }
}

/// Returns a time-based UUID for a time in microseconds since 1970. `node` distinguishes those of the same microsecond.
fn timeuuid(micros: u64, node: u64) -> CqlTimeuuid {
    const HUNDRED_NS_1582_TO_1970: u64 = 0x01B2_1DD2_1381_4000;
    let ticks = micros * 10 + HUNDRED_NS_1582_TO_1970;
    let time_low = ticks & 0xFFFF_FFFF;
    let time_mid = (ticks >> 32) & 0xFFFF;
    let time_high = (ticks >> 48) & 0x0FFF;
    let most = (time_low << 32) | (time_mid << 16) | 0x1000 | time_high;
    let least = 0x8000_0000_0000_0000 | (node & 0x3FFF_FFFF_FFFF_FFFF);
    CqlTimeuuid::from_u128((u128::from(most) << 64) | u128::from(least))
}

#[async_trait]
impl Workload for TimeSeries {
    async fn perform(&self, db: &Db, operation: usize, slot: &mut Slot) -> OperationOutcome {
        let key = slot.pick();
        slot.set_key(&self.setup.keys, key);
        match INFO.operations[operation].class {
            Class::Read => self.read(db, self.limit, None, slot).await,
            Class::Write => {
                let at = timeuuid(slot.now_micros(), slot.random());
                self.write(db, at, slot).await
            }
            Class::Delete => {
                db.execute(&self.delete, (slot.key(),)).await?;
                Ok(ReadSummary::rows(1))
            }
        }
    }

    async fn populate(&self, db: &Db, key: u64, slot: &mut Slot) -> OperationOutcome {
        slot.set_key(&self.setup.keys, key);
        for row in 0..self.rows {
            // The UUID is always the same for a row, so that a retry writes no other row.
            self.write(db, timeuuid(1_600_000_000_000_000 + row, key), slot)
                .await?;
        }
        Ok(ReadSummary::rows(self.rows))
    }

    async fn verify(&self, db: &Db, key: u64, slot: &mut Slot) -> OperationOutcome {
        slot.set_key(&self.setup.keys, key);
        self.read(db, i32::MAX, Some(self.rows), slot).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_uuids_are_of_version_one_and_order_by_time() {
        let (early, late) = (
            timeuuid(1_600_000_000_000_000, 5),
            timeuuid(1_600_000_000_000_001, 1),
        );
        assert!(early < late);
        assert_eq!(early.to_string(), "5fe94000-f5bc-11ea-8000-000000000005");
    }
}
