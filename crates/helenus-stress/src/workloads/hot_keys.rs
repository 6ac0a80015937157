//! `hot-keys`: overwrites and reads a thousand keys.

use anyhow::Result;

use super::kv::{Kv, OPERATIONS, create_table};
use super::{Field, Info};

pub const INFO: Info = Info {
    name: "hot-keys",
    aliases: &[],
    about: "A thousand keys, overwritten and read at full speed",
    operations: OPERATIONS,
    parameters: &[],
    fields: &[Field {
        name: "hot.value",
        default: "random(100,200)",
    }],
    partitions: 1000,
    pieces: None,
    shared_keys: true,
    pools: None,
    published: &[],
    schema: |_| Ok(vec![create_table("hot")]),
    prepare: |setup, db| Box::pin(async move { prepare(setup, db).await.map(|kv| Box::new(kv) as _) }),
};

async fn prepare(setup: &super::Setup, db: &crate::db::Db) -> Result<Kv> {
    Kv::new(setup, db, "hot", &INFO).await
}
