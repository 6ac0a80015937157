//! Requests to a node's HTTP port.

use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use helenus_server::node::admin_auth::authorization;
use helenus_server::rpc::secret::Secret;
use serde_json::Value;

const HTTP_DEFAULT: &str = "127.0.0.1:9180";
/// Maximum time that a node may take to answer.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);

const CLUSTER: &str = "/cluster";
const NODE: &str = "/node";
const CLIENTS: &str = "/node/clients";

// The node that requests go to. A doc comment here would replace the help text of `helenus nodetool`.
#[derive(Args, Debug)]
pub(crate) struct NodeClient {
    /// The node's HTTP address
    #[arg(
        long,
        value_name = "HOST:PORT",
        env = "HELENUS_HTTP",
        default_value = HTTP_DEFAULT,
        global = true
    )]
    http: String,
    /// The host of --http, as in Cassandra's nodetool
    #[arg(short = 'h', long, value_name = "HOST", global = true)]
    host: Option<String>,
    /// The port of --http, which is not the port of JMX
    #[arg(short, long, value_name = "PORT", global = true)]
    port: Option<u16>,
    /// The user of JMX: ignored, accepted so that scripts go on
    #[arg(short, long, value_name = "NAME", global = true, hide = true)]
    username: Option<String>,
    /// The password of JMX: ignored, accepted so that scripts go on (also -pw)
    #[arg(long, value_name = "PASSWORD", global = true, hide = true)]
    password: Option<String>,
    /// The file of the password of JMX: ignored, accepted so that scripts go on (also -pwf)
    #[arg(long, value_name = "FILE", global = true, hide = true)]
    password_file: Option<String>,
    /// Show the ports of nodes (also -pp)
    #[arg(long, global = true)]
    pub print_port: bool,
    /// The cluster's secret, for commands to a node on another machine
    #[arg(
        long,
        value_name = "SECRET",
        env = "HELENUS_CLUSTER_SECRET",
        hide_env_values = true,
        global = true
    )]
    pub secret: Option<String>,
}

impl NodeClient {
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address())
    }

    /// Returns the host and port of the node.
    pub fn address(&self) -> String {
        // HELENUS_HTTP is also a setting of the node, so it may be "off" in this environment.
        let http = if self.http == "off" {
            HTTP_DEFAULT
        } else {
            &self.http
        };
        let (host, port) = http.rsplit_once(':').unwrap_or((http, "9180"));
        let host = self.host.as_deref().unwrap_or(host);
        let port = self.port.map_or(port.to_owned(), |port| port.to_string());
        match host.contains(':') && !host.starts_with('[') {
            true => format!("[{host}]:{port}"),
            false => format!("{host}:{port}"),
        }
    }

    /// Returns the cluster document as the node knows it.
    pub fn cluster(&self) -> anyhow::Result<Value> {
        self.parse(CLUSTER, &self.get(CLUSTER)?)
    }

    /// Returns the node's report on itself. A node that is alone has one too.
    pub fn report(&self) -> anyhow::Result<Value> {
        self.request(NODE)
    }

    /// Returns the connected clients of the node.
    pub fn clients(&self) -> anyhow::Result<Value> {
        self.request(CLIENTS)
    }

    /// Requests a path that every node serves, and returns the JSON of the answer.
    pub fn request(&self, path: &str) -> anyhow::Result<Value> {
        let url = self.url(path);
        let answer = agent_for_any_status(TIMEOUT).get(&url).call();
        let mut answer = answer.with_context(|| format!("no report from {url}"))?;
        let text = answer.body_mut().read_to_string()?;
        match answer.status().is_success() {
            true => self.parse(path, &text),
            false if text.is_empty() => bail!("no report from {url}: {}", answer.status()),
            false => bail!("{}", text.trim_end()),
        }
    }

    /// Returns the rows of a virtual table, which the node computes.
    pub fn rows(&self, table: &str) -> anyhow::Result<Vec<Value>> {
        match self.request(&format!("/node/tables/{table}"))? {
            Value::Array(rows) => Ok(rows),
            _ => bail!(
                "the node at {} gave an unexpected answer: use the nodetool of its version",
                self.address()
            ),
        }
    }

    /// Sends a command and returns the answer. A node on another machine accepts it only if it is signed with the cluster's secret.
    /// `challenge` is the path from which the challenge to sign is read.
    pub fn command(
        &self,
        path: &str,
        body: &str,
        challenge: &str,
        timeout: Duration,
    ) -> anyhow::Result<String> {
        let mut request = agent_for_any_status(timeout).post(self.url(path));
        if let Some(secret) = &self.secret {
            let challenge = self.get(challenge)?;
            let command = format!("POST {path} {body}");
            let signed = authorization(&Secret::new(secret.as_str()), command.trim_end(), &challenge);
            request = request.header("authorization", signed);
        }
        let answer = request.send(body);
        let mut answer = answer.with_context(|| format!("no answer from {}", self.url(path)))?;
        let text = answer.body_mut().read_to_string()?;
        match answer.status().as_u16() {
            200 => Ok(text),
            403 => Err(anyhow!(
                "the node at {} takes commands from its own machine, as localhost or 127.0.0.1, or with the cluster's secret: give it by --secret or HELENUS_CLUSTER_SECRET",
                self.address()
            )),
            404 => Err(self.is_alone()),
            _ => Err(anyhow!("the node at {}: {}", self.address(), text.trim_end())),
        }
    }

    pub fn parse(&self, path: &str, text: &str) -> anyhow::Result<Value> {
        serde_json::from_str(text).with_context(|| format!("{} gave an unexpected answer", self.url(path)))
    }

    /// Requests a path that only nodes of a cluster serve, and returns the text of the answer.
    pub fn get(&self, path: &str) -> anyhow::Result<String> {
        let url = self.url(path);
        let mut answer = match agent(TIMEOUT).get(&url).call() {
            Err(ureq::Error::StatusCode(404)) => return Err(self.is_alone()),
            answer => answer.with_context(|| format!("no answer from {url}"))?,
        };
        Ok(answer.body_mut().read_to_string()?)
    }

    /// Returns the error of a command that only a node of a cluster can do.
    pub fn is_alone(&self) -> anyhow::Error {
        anyhow!(
            "the node at {} is alone: its store is a local folder",
            self.address()
        )
    }
}

/// Returns an HTTP client whose calls end after `timeout`.
fn agent(timeout: Duration) -> ureq::Agent {
    ureq::Agent::config_builder()
        .timeout_global(Some(timeout))
        .build()
        .into()
}

/// Returns an HTTP client whose calls end after `timeout`. A status such as 404 is not an error, so that the body can be read.
pub(super) fn agent_for_any_status(timeout: Duration) -> ureq::Agent {
    ureq::Agent::config_builder()
        .timeout_global(Some(timeout))
        .http_status_as_error(false)
        .build()
        .into()
}

/// Returns the body of a command with options: a line `name=value` for each option that is given.
pub(super) fn option_lines<const N: usize>(options: [(&str, &Option<String>); N]) -> String {
    let lines = options
        .into_iter()
        .filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?)));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(http: &str, host: Option<&str>, port: Option<u16>) -> String {
        let client = NodeClient {
            http: http.to_owned(),
            host: host.map(str::to_owned),
            port,
            username: None,
            password: None,
            password_file: None,
            print_port: false,
            secret: None,
        };
        client.address()
    }

    #[test]
    fn host_and_port_replace_those_of_the_address() {
        assert_eq!(address("10.0.0.1:9000", None, None), "10.0.0.1:9000");
        assert_eq!(address("10.0.0.1:9000", Some("db1"), None), "db1:9000");
        assert_eq!(address(HTTP_DEFAULT, Some("::1"), Some(80)), "[::1]:80");
        assert_eq!(address("off", None, None), HTTP_DEFAULT);
    }
}
