//! All settings of a node, with their defaults.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::time::Duration;

use helenus_cluster::{LEASE_DEFAULT, MERGE_AFTER_DEFAULT};
use helenus_query::engine::AccessControl;
use helenus_query::engine::Limits;
use helenus_server::ServerConfig;
use helenus_server::backups::BackupSchedule;
use helenus_server::bucket_cost::BucketPrices;
use helenus_server::logs::audit::AuditOptions;
use helenus_server::logs::full_query_log::QueryLogOptions;
use helenus_server::tls::ClientTlsFiles;
use helenus_tablet::{StoreConfig, StoreUrl, machine_memory_bytes};

/// The Cassandra version reported to drivers and tools.
pub const CASSANDRA_VERSION: &str = "5.0.5";

/// Port for other nodes, as in Cassandra.
const RPC_PORT: u16 = 7000;

/// The settings of a node. [`super::settings`] names and checks each of them.
#[derive(Clone)]
pub struct Config {
    pub store: StoreConfig,
    pub server: ServerConfig,
    pub limits: Limits,
    pub control: AccessControl,
    /// Password of the superuser `cassandra`. `None` if the role is not made a superuser.
    pub superuser_password: Option<String>,
    pub http: Option<SocketAddr>,
    /// The address for other nodes, if the store is shared.
    pub rpc: Option<SocketAddr>,
    /// The address reported to other nodes. `None` if it is `rpc`.
    pub rpc_advertise: Option<String>,
    /// The name of this node, from which its host id is derived.
    pub name: Option<String>,
    pub cluster_secret: Option<String>,
    pub rpc_tls_certificate: Option<PathBuf>,
    pub rpc_tls_key: Option<PathBuf>,
    pub rpc_tls_authority: Option<PathBuf>,
    pub tls_certificate: Option<PathBuf>,
    pub tls_key: Option<PathBuf>,
    pub tls_authority: Option<PathBuf>,
    pub tls_optional: bool,
    /// Interval between checks for changed TLS files.
    pub tls_reload: Duration,
    pub lease: Duration,
    pub merge_after: Duration,
    /// The address reported to drivers. `None` if it is the one that the node listens on.
    pub advertise: Option<SocketAddr>,
    pub cluster_name: String,
    /// The version of Cassandra that drivers read. They choose their behaviour by it.
    pub release_version: String,
    pub data_center: String,
    pub rack: String,
    pub worker_threads: Option<usize>,
    /// Prices from which the cost of a store in a bucket is estimated.
    pub bucket_prices: BucketPrices,
    /// The collector of requests' spans. `None` if no spans are sent. The ratio is the part of the requests with spans.
    pub otlp_endpoint: Option<String>,
    pub otlp_sample_ratio: f64,
    /// Content and place of the audit log.
    pub audit: AuditOptions,
    /// Options with which the full query log is switched on.
    pub full_query_log: QueryLogOptions,
    /// Place of scheduled backups. `None` if there are none.
    pub backup_to: Option<StoreUrl>,
    pub backup_interval: Duration,
    pub backup_keep: usize,
    /// The file with the key of encrypted backups.
    pub backup_key_file: Option<PathBuf>,
    /// A filter of `tracing`, such as `info,slatedb=warn`.
    pub log: String,
    pub log_format: LogFormat,
}

/// Format of the log's lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    #[default]
    Text,
    /// A JSON object per line.
    Json,
}

impl LogFormat {
    pub fn name(self) -> &'static str {
        match self {
            LogFormat::Text => "text",
            LogFormat::Json => "json",
        }
    }

    /// Parses the name of a format.
    ///
    /// # Errors
    /// Fails if there is no such format.
    pub fn parse(text: &str) -> Result<LogFormat, String> {
        let formats = [LogFormat::Text, LogFormat::Json].into_iter();
        let mut named = formats.filter(|format| format.name() == text);
        named.next().ok_or_else(|| "neither".to_owned())
    }
}

impl Config {
    /// Returns the default configuration for a store.
    pub fn new(store: StoreUrl) -> Config {
        let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let cache_dir = match &store {
            StoreUrl::File(_) => None,
            StoreUrl::Remote(_) => Some(PathBuf::from("./helenus-cache")),
        };
        Config {
            store: StoreConfig {
                cache_dir,
                ..StoreConfig::new(store)
            },
            server: ServerConfig::new(local(9042), machine_memory_bytes()),
            limits: Limits {
                answers_bytes_max: answers_bytes_max(machine_memory_bytes()),
                ..Limits::default()
            },
            control: AccessControl::default(),
            superuser_password: None,
            http: Some(local(9180)),
            rpc: None,
            rpc_advertise: None,
            name: None,
            cluster_secret: None,
            rpc_tls_certificate: None,
            rpc_tls_key: None,
            rpc_tls_authority: None,
            tls_certificate: None,
            tls_key: None,
            tls_authority: None,
            tls_optional: false,
            tls_reload: Duration::from_secs(60),
            lease: LEASE_DEFAULT,
            merge_after: MERGE_AFTER_DEFAULT,
            advertise: None,
            cluster_name: "Helenus".to_owned(),
            release_version: CASSANDRA_VERSION.to_owned(),
            data_center: "datacenter1".to_owned(),
            rack: "rack1".to_owned(),
            worker_threads: None,
            bucket_prices: BucketPrices::default(),
            otlp_endpoint: None,
            otlp_sample_ratio: 0.01,
            backup_to: None,
            backup_interval: Duration::from_secs(24 * 3600),
            backup_keep: 7,
            backup_key_file: None,
            audit: AuditOptions::default(),
            full_query_log: QueryLogOptions::default(),
            // Messages of libraries are off where Helenus reports the same event once. SlateDB warns of every metric, because each tablet
            // registers the same ones. The store reports databases that fail or are opened by another node, and failures of the disk cache.
            // A database that was handed over must not log. The client of the bucket logs every retry; nodes report once that the bucket
            // does not answer.
            log: "info,object_store=warn,slatedb=warn,slatedb::dispatcher=off,slatedb::memtable_flusher=off,\
                  slatedb_common::metrics=error,foyer=off,rskafka=error"
                .to_owned(),
            log_format: LogFormat::default(),
        }
    }

    /// Returns the TLS files for clients. `None` if TLS is not configured.
    ///
    /// # Errors
    /// Fails if only a part of the required files is set.
    pub fn client_tls(&self) -> Result<Option<ClientTlsFiles>, String> {
        match (&self.tls_certificate, &self.tls_key) {
            (Some(certificate), Some(key)) => Ok(Some(ClientTlsFiles {
                certificate: certificate.clone(),
                key: key.clone(),
                authority: self.tls_authority.clone(),
                is_optional: self.tls_optional,
            })),
            (None, None) if self.tls_authority.is_none() && !self.tls_optional => Ok(None),
            _ => Err("TLS for clients needs both tls_certificate and tls_key".to_owned()),
        }
    }

    /// Returns the schedule of backups. `None` if no backups are scheduled.
    pub fn backup_schedule(&self) -> Option<BackupSchedule> {
        let to = match self.backup_to.as_ref()? {
            StoreUrl::File(folder) => folder.display().to_string(),
            StoreUrl::Remote(url) => url.to_string(),
        };
        Some(BackupSchedule {
            to,
            interval: self.backup_interval,
            keep: self.backup_keep,
            key_file: self
                .backup_key_file
                .as_ref()
                .map(|file| file.display().to_string()),
        })
    }

    /// Returns the default location of the data.
    pub fn default_store() -> StoreUrl {
        StoreUrl::File(PathBuf::from("./helenus-data"))
    }

    /// Returns the address for clients that `system.local` shows.
    pub fn advertised(&self) -> SocketAddr {
        self.advertise
            .unwrap_or_else(|| self.reachable(self.server.listen))
    }

    /// Returns the address for other nodes. By default it has the IP address for clients.
    pub fn rpc_listen(&self) -> SocketAddr {
        let ip = self.server.listen.ip();
        self.rpc.unwrap_or_else(|| SocketAddr::new(ip, RPC_PORT))
    }

    /// Returns an address to which others can connect. It is the machine's address if the node listens on all addresses.
    pub fn reachable(&self, listen: SocketAddr) -> SocketAddr {
        if !listen.ip().is_unspecified() {
            return listen;
        }
        SocketAddr::new(
            machine_address().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            listen.port(),
        )
    }
}

/// Returns the memory for answers: an eighth of the memory, but at least the size of the largest response.
fn answers_bytes_max(memory_bytes: u64) -> usize {
    usize::try_from(memory_bytes / 8)
        .unwrap_or(usize::MAX)
        .max(Limits::default().answer_bytes_max)
}

/// Returns the source address of packets to the internet. `None` if there is none. Sends nothing.
fn machine_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    socket
        .local_addr()
        .ok()
        .map(|address| address.ip())
        .filter(|ip| !ip.is_unspecified())
}
