//! Clients that run statements through nodes, over connections of the native protocol.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::frame::Response;
use helenus_cql::frame::response::{QueryResult, Rows};

use crate::dice::Dice;
use crate::native_client::NativeClient;
use crate::network::SimulatedNetwork;
use crate::node::native_address;
use crate::world::World;

/// Time after which a client gives up waiting for an answer.
const PATIENCE: Duration = Duration::from_secs(12);
/// Pause before a statement that must succeed is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// Clients of all nodes. They share the connections that no request uses.
#[derive(Clone)]
pub struct Clients {
    pub dice: Dice,
    network: SimulatedNetwork,
    /// Idle connections by node.
    idle: Arc<Vec<Mutex<Vec<NativeClient>>>>,
}

/// Reason for which a statement has no result.
pub enum Failure {
    /// The statement certainly had no effect.
    NotDone(String),
    /// The statement may have taken effect, or may take effect later.
    Unknown(String),
}

/// A page of rows, with the values as CQL literals, and the state from which the next page is read. `None` after the last page.
pub type Page = (Vec<Vec<String>>, Option<Bytes>);

impl Clients {
    pub fn new(world: &World) -> Clients {
        Clients {
            dice: world.dice.clone(),
            network: world.network.clone(),
            idle: Arc::new((0..world.node_count()).map(|_| Mutex::default()).collect()),
        }
    }

    pub fn node_count(&self) -> usize {
        self.idle.len()
    }

    /// Returns the number of a random node.
    pub fn any_node(&self) -> usize {
        self.dice.range(0..self.node_count() as u64) as usize
    }

    /// Runs a statement through a node, and returns the values of all rows as one text.
    pub async fn run(&self, node: usize, text: &str) -> Result<String, Failure> {
        let (rows, _) = self.page(node, text, None).await?;
        Ok(rows.concat().join(", "))
    }

    /// Runs a statement through a node. `page` has the maximum rows and the state of the page before.
    pub async fn page(
        &self,
        node: usize,
        text: &str,
        page: Option<(i32, Option<Bytes>)>,
    ) -> Result<Page, Failure> {
        let idle = self.idle[node].lock().unwrap().pop();
        let mut client = match idle {
            Some(client) => client,
            None => self.connect(node).await?,
        };
        match tokio::time::timeout(PATIENCE, client.query(text, page)).await {
            Ok(Ok(response)) => {
                self.idle[node].lock().unwrap().push(client);
                shown(response)
            }
            Ok(Err(error)) => Err(Failure::Unknown(format!("the connection ended: {error}"))),
            Err(_) => Err(Failure::Unknown("no answer".to_owned())),
        }
    }

    async fn connect(&self, node: usize) -> Result<NativeClient, Failure> {
        let address: SocketAddr = native_address(node);
        let connecting = NativeClient::connect(&self.network, address);
        match tokio::time::timeout(PATIENCE, connecting).await {
            Ok(Ok(client)) => Ok(client),
            Ok(Err(error)) => Err(Failure::NotDone(format!("no connection: {error}"))),
            Err(_) => Err(Failure::NotDone("no connection in time".to_owned())),
        }
    }

    /// Runs a statement until it succeeds.
    pub async fn run_at_last(&self, node: usize, text: &str) -> String {
        loop {
            if let Ok(rows) = self.run(node, text).await {
                return rows;
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }
}

/// Returns the text of a result for the trace.
pub fn as_text(result: &Result<String, Failure>) -> String {
    match result {
        Ok(rows) => format!("\"{rows}\""),
        Err(Failure::NotDone(error)) => format!("not done: {error}"),
        Err(Failure::Unknown(error)) => format!("unknown: {error}"),
    }
}

fn shown(response: Response) -> Result<Page, Failure> {
    match response {
        Response::Result(QueryResult::Rows(rows)) => Ok((literals(&rows), rows.page.paging_state)),
        Response::Error(error) => Err(failure(&error)),
        _ => Ok((Vec::new(), None)),
    }
}

fn failure(error: &CqlError) -> Failure {
    let text = error.to_string();
    match error {
        CqlError::Unavailable { .. }
        | CqlError::Overloaded(_)
        | CqlError::IsBootstrapping(_)
        | CqlError::Invalid(_) => Failure::NotDone(text),
        _ => Failure::Unknown(text),
    }
}

fn literals(rows: &Rows) -> Vec<Vec<String>> {
    let literal = |ty, value: Option<Bytes>| match value {
        Some(value) => helenus_cql::value::to_cql_literal(ty, &value).unwrap(),
        None => "null".to_owned(),
    };
    let row = |cells: Vec<Option<Bytes>>| {
        let columns = rows.metadata.columns.iter();
        columns
            .zip(cells)
            .map(|(column, cell)| literal(&column.ty, cell))
            .collect()
    };
    rows.content.iter().map(row).collect()
}
