//! Checks a CQL server through the `scylla` driver. usage: helenus-driver-test HOST PORT
//!
//! Prints a line for each check, `ok NAME` or `FAIL NAME: why`, and exits 1 if one failed.

mod cdc;
mod checks;
mod cluster;

use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::time::Duration;

use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::client::{Compression, PoolSize};
use scylla::statement::Consistency;

pub const KEYSPACE: &str = "driver_rust";

/// The result of a check. Any error fails it.
pub type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Counts and prints the checks.
#[derive(Default)]
pub struct Report {
    pub prefix: String,
    passed: usize,
    failed: usize,
}

impl Report {
    pub async fn check(&mut self, name: &str, body: impl Future<Output = Outcome>) {
        match body.await {
            Ok(()) => {
                self.passed += 1;
                println!("ok {}{name}", self.prefix);
            }
            Err(e) => {
                self.failed += 1;
                println!("FAIL {}{name}: {}", self.prefix, e.to_string().replace('\n', " "));
            }
        }
    }
}

/// Fails the running check with a formatted message unless the condition holds.
#[macro_export]
macro_rules! that {
    ($condition:expr, $($words:tt)*) => {
        if !$condition {
            return Err(format!($($words)*).into());
        }
    };
}

/// Fails the running check unless both are equal.
#[macro_export]
macro_rules! same {
    ($got:expr, $want:expr) => {{
        let (got, want) = (&$got, &$want);
        if got != want {
            return Err(format!("line {}: got {got:?}, want {want:?}", line!()).into());
        }
    }};
}

/// Returns a session with one connection per node.
pub async fn connect(
    address: &str,
    compression: Option<Compression>,
    keyspace: Option<&str>,
) -> Result<Session, Box<dyn std::error::Error + Send + Sync>> {
    let profile = ExecutionProfile::builder()
        .consistency(Consistency::Quorum)
        .request_timeout(Some(Duration::from_secs(30)))
        .build();
    let mut builder = SessionBuilder::new()
        .known_node(address)
        .compression(compression)
        .connection_timeout(Duration::from_secs(20))
        .pool_size(PoolSize::PerHost(NonZeroUsize::MIN))
        .default_execution_profile_handle(profile.into_handle());
    if let Some(keyspace) = keyspace {
        builder = builder.use_keyspace(keyspace, false);
    }
    Ok(builder.build().await?)
}

async fn recreate_keyspace(address: &str) -> Outcome {
    let session = connect(address, None, None).await?;
    session
        .query_unpaged(format!("DROP KEYSPACE IF EXISTS {KEYSPACE}"), ())
        .await?;
    session
        .query_unpaged(
            format!(
                "CREATE KEYSPACE {KEYSPACE} WITH replication = \
                 {{'class': 'NetworkTopologyStrategy', 'datacenter1': 1}}"
            ),
            (),
        )
        .await?;
    Ok(())
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [command, host, port, keyspace] = &arguments[..]
        && command == "cluster"
    {
        return match cluster::main(&format!("{host}:{port}"), keyspace).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        };
    }
    if let [command, host, port, keyspace, table] = &arguments[..]
        && command == "cdc"
    {
        return match cdc::main(&format!("{host}:{port}"), keyspace, table).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        };
    }
    let mut arguments = arguments.into_iter();
    let (Some(host), Some(port)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: helenus-driver-test HOST PORT");
        return ExitCode::from(2);
    };
    let address = format!("{host}:{port}");
    let mut report = Report::default();
    for (name, compression) in [
        ("plain", None),
        ("lz4", Some(Compression::Lz4)),
        ("snappy", Some(Compression::Snappy)),
    ] {
        report.prefix = format!("v4 {name} ");
        report.check("create keyspace", recreate_keyspace(&address)).await;
        match connect(&address, compression, Some(KEYSPACE)).await {
            Ok(session) => checks::all(&session, &address, &mut report).await,
            Err(e) => report.check("connect", async { Err(e) }).await,
        }
    }
    report.prefix = String::new();
    report
        .check("drop keyspace", async {
            let session = connect(&address, None, None).await?;
            session
                .query_unpaged(format!("DROP KEYSPACE {KEYSPACE}"), ())
                .await?;
            Ok(())
        })
        .await;
    println!("{} checks passed", report.passed);
    if report.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
