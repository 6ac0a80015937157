//! A node that only reads from a store in a bucket (`helenus serve --read-only`).

use std::sync::Arc;

use anyhow::Context;
use helenus_query::engine::Engine;
use helenus_server::node::Reader;

use super::config::Config;

/// Starts to follow the changes of the store's nodes, and returns when this node can serve reads. `None` if the node is not read-only.
pub async fn start(config: &Config, engine: &Arc<Engine>) -> anyhow::Result<Option<Reader>> {
    if !config.store.read_only {
        return Ok(None);
    }
    if config.superuser_password.is_some() {
        tracing::warn!("a read-only node changes no roles: superuser_password has no effect");
    }
    let reader = Reader::start(engine, config.store.read_only_refresh_interval).await;
    reader.context("cannot read the store").map(Some)
}
