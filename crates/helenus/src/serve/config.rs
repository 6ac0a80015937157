//! All settings of a node, with their defaults.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::time::Duration;

use helenus_cluster::{LEASE_DEFAULT, MERGE_AFTER_DEFAULT};
use helenus_query::engine::AccessControl;
use helenus_query::engine::Limits;
use helenus_server::ServerConfig;
use helenus_server::tls::ClientTlsFiles;
use helenus_tablet::{StoreConfig, StoreUrl, machine_memory_bytes};

/// The Cassandra version that drivers and tools are told.
pub const CASSANDRA_VERSION: &str = "5.0.5";

/// Where nodes speak to each other, as in Cassandra.
const RPC_PORT: u16 = 7000;

/// What a node runs with. [`super::settings`] names and checks each of these.
#[derive(Clone)]
pub struct Config {
    pub store: StoreConfig,
    pub server: ServerConfig,
    pub limits: Limits,
    pub control: AccessControl,
    /// Of the role `cassandra`, if it is to be made a superuser.
    pub superuser_password: Option<String>,
    pub http: Option<SocketAddr>,
    /// Where other nodes are served, if the store is shared.
    pub rpc: Option<SocketAddr>,
    /// Where other nodes shall connect, if that is not where the node listens.
    pub rpc_advertise: Option<String>,
    /// The name of this node; its id is made of it.
    pub name: Option<String>,
    pub cluster_secret: Option<String>,
    pub rpc_tls_certificate: Option<PathBuf>,
    pub rpc_tls_key: Option<PathBuf>,
    pub rpc_tls_authority: Option<PathBuf>,
    pub tls_certificate: Option<PathBuf>,
    pub tls_key: Option<PathBuf>,
    pub tls_authority: Option<PathBuf>,
    pub tls_optional: bool,
    /// How often changed files of TLS are looked for.
    pub tls_reload: Duration,
    pub lease: Duration,
    pub merge_after: Duration,
    /// Where drivers shall connect, if that is not where the node listens.
    pub advertise: Option<SocketAddr>,
    pub cluster_name: String,
    pub data_center: String,
    pub rack: String,
    pub worker_threads: Option<usize>,
    /// A filter of tracing.
    pub log: String,
}

impl Config {
    /// The defaults for a store.
    pub fn new(store: StoreUrl) -> Config {
        let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Config {
            store: StoreConfig::new(store),
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
            data_center: "datacenter1".to_owned(),
            rack: "rack1".to_owned(),
            worker_threads: None,
            // Each tablet registers the same metrics; SlateDB warns of every one.
            log: "info,slatedb=warn,slatedb_common::metrics=error".to_owned(),
        }
    }

    /// The files of TLS for clients, if there are any.
    ///
    /// # Errors
    /// If some are there that make no sense without others.
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

    /// Where the data lies if nothing is said.
    pub fn default_store() -> StoreUrl {
        StoreUrl::File(PathBuf::from("./helenus-data"))
    }

    /// The address that `system.local` gives.
    pub fn advertised(&self) -> SocketAddr {
        self.advertise
            .unwrap_or_else(|| self.reachable(self.server.listen))
    }

    /// Where other nodes are served: beside the clients unless something else is said.
    pub fn rpc_listen(&self) -> SocketAddr {
        let ip = self.server.listen.ip();
        self.rpc.unwrap_or_else(|| SocketAddr::new(ip, RPC_PORT))
    }

    /// An address to connect to: that of the machine where the node listens on all of its addresses.
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

/// An eighth of the memory; at least one answer of the largest size fits.
fn answers_bytes_max(memory_bytes: u64) -> usize {
    usize::try_from(memory_bytes / 8)
        .unwrap_or(usize::MAX)
        .max(Limits::default().answer_bytes_max)
}

/// The address that this machine would send from; nothing is sent to find out.
fn machine_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    socket
        .local_addr()
        .ok()
        .map(|address| address.ip())
        .filter(|ip| !ip.is_unspecified())
}
