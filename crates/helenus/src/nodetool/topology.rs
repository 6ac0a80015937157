//! The nodes of the cluster as several commands show them: those in the cluster, and those that are lost.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::bail;
use serde_json::Value;

use super::client::NodeClient;
use super::output::{file_size, host, list, text};

/// Form in which nodes are named.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Naming {
    /// True to show names instead of addresses (`-r`). A node without a name has its address.
    pub by_name: bool,
    /// True to show the port for clients (`-pp`).
    pub with_port: bool,
}

/// Nodes and tablets, as a node knows them.
pub(super) struct Topology {
    cluster: Value,
    /// Bytes of each node's tablets, by host id. Nodes with unknown size are missing.
    loads: Value,
    /// Hosts with several nodes, which differ only in their ports.
    shared_hosts: BTreeSet<String>,
}

impl Topology {
    pub fn request(node: &NodeClient) -> anyhow::Result<Topology> {
        let cluster = node.cluster()?;
        // The loads are optional, because the store may be unavailable.
        let loads = node.request("/cluster/loads").unwrap_or_default();
        Ok(Topology::new(cluster, loads))
    }

    fn new(cluster: Value, loads: Value) -> Topology {
        let mut seen = BTreeSet::new();
        let hosts = list(&cluster, "nodes").iter().chain(list(&cluster, "lost"));
        let hosts = hosts.map(|node| host(&text(node, "cql_address")));
        let shared_hosts = hosts.filter(|host| !seen.insert(host.clone())).collect();
        Topology {
            cluster,
            loads,
            shared_hosts,
        }
    }

    pub fn cluster(&self) -> &Value {
        &self.cluster
    }

    /// Returns all nodes: first those in the cluster, then the lost ones.
    pub fn nodes(&self) -> impl Iterator<Item = &Value> {
        let present = list(&self.cluster, "nodes").iter();
        present.chain(list(&self.cluster, "lost"))
    }

    /// Returns the nodes by their data centers.
    pub fn by_data_center(&self) -> BTreeMap<String, Vec<&Value>> {
        let mut centers = BTreeMap::<String, Vec<&Value>>::new();
        for node in self.nodes() {
            centers.entry(text(node, "data_center")).or_default().push(node);
        }
        centers
    }

    pub fn name(&self, node: &Value, naming: Naming) -> String {
        let name = node.get("name").and_then(Value::as_str);
        if let Some(name) = name.filter(|_| naming.by_name) {
            return name.to_owned();
        }
        let address = text(node, "cql_address");
        let host = host(&address);
        match naming.with_port || self.shared_hosts.contains(&host) {
            true => address,
            false => host,
        }
    }

    /// Returns the size of a node's tablets, or `?` if it is not known, such as that of a node that is down.
    pub fn load(&self, node: &Value) -> String {
        let bytes = self.load_bytes(node);
        bytes.map_or_else(|| "?".to_owned(), file_size)
    }

    pub fn load_bytes(&self, node: &Value) -> Option<u64> {
        self.loads.get(text(node, "host_id")).and_then(Value::as_u64)
    }

    /// Returns the tablets of a node.
    pub fn tablets_of<'t>(&'t self, node: &Value) -> impl Iterator<Item = &'t Value> + use<'t> {
        let id = text(node, "host_id");
        let tablets = list(&self.cluster, "tablets").iter();
        tablets.filter(move |tablet| text(tablet, "owner") == id)
    }

    /// Returns the node that owns a token.
    pub fn owner_of_token(&self, token: i64) -> Option<&Value> {
        let at = |tablet: &Value, name: &str| text(tablet, name).parse::<i64>().ok();
        let holds = |tablet: &&Value| {
            let (first, last) = (at(tablet, "first_token"), at(tablet, "last_token"));
            first.is_some_and(|first| first <= token) && last.is_some_and(|last| token <= last)
        };
        let tablet = list(&self.cluster, "tablets").iter().find(holds)?;
        let id = text(tablet, "owner");
        self.nodes().find(|node| text(node, "host_id") == id)
    }
}

/// Returns true if the node is alive.
pub(super) fn is_up(node: &Value) -> bool {
    node.get("alive").and_then(Value::as_bool) == Some(true)
}

/// Refuses a keyspace that does not exist, with Cassandra's message.
pub(super) fn check_keyspace(node: &NodeClient, keyspace: Option<&str>) -> anyhow::Result<()> {
    let Some(keyspace) = keyspace else { return Ok(()) };
    let keyspaces = node.rows("keyspaces")?;
    if keyspaces.iter().any(|row| text(row, "keyspace_name") == keyspace) {
        return Ok(());
    }
    bail!("The keyspace {keyspace}, does not exist")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(id: &str, address: &str) -> Value {
        json!({"host_id": id, "name": format!("name-{id}"), "cql_address": address, "data_center": "dc1", "alive": true})
    }

    #[test]
    fn a_port_is_shown_where_nodes_share_a_host() {
        let cluster = json!({"nodes": [node("a", "10.0.0.1:9042"), node("b", "10.0.0.2:9042")], "lost": [node("c", "10.0.0.2:9043")]});
        let topology = Topology::new(cluster, json!({"a": 2048}));
        let names: Vec<String> = topology
            .nodes()
            .map(|node| topology.name(node, Naming::default()))
            .collect();
        assert_eq!(names, ["10.0.0.1", "10.0.0.2:9042", "10.0.0.2:9043"]);
        let first = topology.nodes().next().unwrap();
        let naming = |by_name, with_port| topology.name(first, Naming { by_name, with_port });
        assert_eq!(
            (naming(true, false), naming(false, true)),
            ("name-a".to_owned(), "10.0.0.1:9042".to_owned())
        );
        let loads: Vec<String> = topology.nodes().map(|node| topology.load(node)).collect();
        assert_eq!(loads, ["2 KiB", "?", "?"]);
    }

    #[test]
    fn a_token_is_owned_by_the_node_of_its_tablet() {
        let tablet = |first: i64, last: i64, owner: &str| json!({"first_token": first.to_string(), "last_token": last.to_string(), "owner": owner});
        let cluster = json!({
            "nodes": [node("a", "10.0.0.1:9042"), node("b", "10.0.0.2:9042")],
            "tablets": [tablet(i64::MIN, -1, "a"), tablet(0, i64::MAX, "b")],
        });
        let topology = Topology::new(cluster, Value::Null);
        let owner = |token| text(topology.owner_of_token(token).unwrap(), "host_id");
        assert_eq!(
            (owner(i64::MIN), owner(-1), owner(0), owner(i64::MAX)),
            ("a".into(), "a".into(), "b".into(), "b".into())
        );
    }
}
