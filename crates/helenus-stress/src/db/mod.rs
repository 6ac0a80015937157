//! The database under load: a session of the driver without retries and speculative execution.

pub mod errors;
pub mod schema;
pub mod tls;

use std::num::NonZeroUsize;
use std::sync::Arc;

use anyhow::{Context, Result};
use scylla::client::execution_profile::{ExecutionProfile, ExecutionProfileBuilder};
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::client::{Compression, PoolSize};
use scylla::policies::load_balancing::{
    DefaultPolicy, LoadBalancingPolicy, NodeIdentifier, SingleTargetLoadBalancingPolicy,
};
use scylla::policies::retry::FallthroughRetryPolicy;
use scylla::response::query_result::QueryResult;
use scylla::response::{PagingState, PagingStateResponse};
use scylla::serialize::row::SerializeRow;
use scylla::statement::batch::Batch;
use scylla::statement::prepared::PreparedStatement;
use scylla::statement::unprepared::Statement;

use crate::cli::options::{ConnectArgs, FrameCompression};
use crate::results::Endpoint;

pub use errors::OpError;

/// Name and version of the driver, for results.
const DRIVER: &str = "scylla (Rust) 1.9";

/// A connected session and the server's identity.
pub struct Db {
    session: Session,
    page_size: i32,
    /// Number of nodes of the cluster.
    pub nodes: usize,
    pub endpoint: Endpoint,
}

impl Db {
    /// Connects. Reads only the part of the schema that routing needs, and only for `keyspace`.
    pub async fn connect(args: &ConnectArgs, keyspace: &str) -> Result<Self> {
        let addresses = args.addresses();
        let session = builder(args, &addresses, profile(args))?
            .keyspaces_to_fetch([keyspace])
            .fetch_full_schema_metadata(false)
            .build()
            .await
            .with_context(|| format!("can't connect to {}", addresses.join(", ")))?;
        let state = session.get_cluster_state();
        let nodes = state.get_nodes_info();
        if let [node] = nodes {
            // With a single node, load balancing would only cost time.
            let only = SingleTargetLoadBalancingPolicy::new(NodeIdentifier::HostId(node.host_id), None);
            session
                .get_default_execution_profile_handle()
                .clone()
                .map_to_another_profile(profile(args).load_balancing_policy(only).build());
        }
        let nodes = nodes.len();
        let mut db = Self {
            session,
            page_size: args.paging,
            nodes,
            endpoint: Endpoint {
                addresses,
                driver: DRIVER.into(),
                ..Endpoint::default()
            },
        };
        let (version, name) = db.version().await.context("can't read system.local")?;
        db.endpoint.release_version = version;
        db.endpoint.cluster_name = name;
        Ok(db)
    }

    /// Has the driver read tables that were created since it connected.
    pub async fn refresh(&self) -> Result<()> {
        Ok(self.session.refresh_metadata().await?)
    }

    async fn version(&self) -> Result<(String, String)> {
        let result = self
            .query("SELECT release_version, cluster_name FROM system.local WHERE key = 'local'")
            .await?;
        Ok(result.into_rows_result()?.single_row::<(String, String)>()?)
    }

    /// Runs a statement without preparing it.
    pub async fn query(&self, cql: &str) -> Result<QueryResult, OpError> {
        Ok(self.session.query_unpaged(cql, ()).await?)
    }

    /// Uses `keyspace` for all later statements.
    pub async fn use_keyspace(&self, keyspace: &str) -> Result<()> {
        self.session
            .use_keyspace(keyspace, false)
            .await
            .with_context(|| format!("can't use keyspace {keyspace}"))
    }

    /// Prepares a statement.
    pub async fn prepare(&self, cql: &str) -> Result<PreparedStatement> {
        let mut statement = Statement::new(cql);
        statement.set_page_size(self.page_size);
        let mut prepared = self
            .session
            .prepare(statement)
            .await
            .with_context(|| format!("can't prepare {cql}"))?;
        prepared.set_use_cached_result_metadata(true);
        Ok(prepared)
    }

    /// Runs a prepared statement. The result is a single page.
    pub async fn execute(
        &self,
        statement: &PreparedStatement,
        values: impl SerializeRow,
    ) -> Result<QueryResult, OpError> {
        Ok(self.session.execute_unpaged(statement, values).await?)
    }

    /// Fetches one page of a prepared statement's result.
    pub async fn execute_page(
        &self,
        statement: &PreparedStatement,
        values: impl SerializeRow,
        state: PagingState,
    ) -> Result<(QueryResult, PagingStateResponse), OpError> {
        Ok(self.session.execute_single_page(statement, values, state).await?)
    }

    /// Runs a batch.
    pub async fn batch<V: scylla::serialize::batch::BatchValues>(
        &self,
        batch: &Batch,
        values: V,
    ) -> Result<QueryResult, OpError> {
        Ok(self.session.batch(batch, values).await?)
    }
}

/// Connects like an application's driver, which reads the whole schema, and disconnects.
pub async fn connect_with_schema(args: &ConnectArgs) -> Result<()> {
    builder(args, &args.addresses(), profile(args))?.build().await?;
    Ok(())
}

fn builder(
    args: &ConnectArgs,
    addresses: &[String],
    profile: ExecutionProfileBuilder,
) -> Result<SessionBuilder> {
    let connections = NonZeroUsize::new(args.connections).unwrap_or(NonZeroUsize::MIN);
    let mut builder = SessionBuilder::new()
        .known_nodes(addresses)
        .user(&args.username, &args.password)
        .compression(args.frame_compression.map(|compression| match compression {
            FrameCompression::Lz4 => Compression::Lz4,
            FrameCompression::Snappy => Compression::Snappy,
        }))
        .connection_timeout(std::time::Duration::from_secs(10))
        .pool_size(PoolSize::PerHost(connections))
        .refresh_metadata_on_auto_schema_agreement(false)
        .schema_agreement_interval(std::time::Duration::from_millis(20))
        .default_execution_profile_handle(profile.build().into_handle());
    if let Some(dc) = &args.dc {
        builder = builder.prefer_datacenter(dc.clone());
    }
    if args.tls {
        builder = builder.tls_context(Some(tls::client_config(args.tls_authority.as_deref())?));
    }
    Ok(builder)
}

fn profile(args: &ConnectArgs) -> ExecutionProfileBuilder {
    let policy: Arc<dyn LoadBalancingPolicy> = DefaultPolicy::builder().token_aware(true).build();
    ExecutionProfile::builder()
        .consistency(args.cl.into())
        .serial_consistency(Some(args.scl.into()))
        .request_timeout(Some(args.timeout))
        .retry_policy(Arc::new(FallthroughRetryPolicy::new()))
        .load_balancing_policy(policy)
}
