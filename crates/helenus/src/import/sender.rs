//! A connection that sends batches, one at a time, and tries again after overloads and lost connections.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use bytes::Bytes;
use helenus_cql::error::{Consistency, CqlError};
use helenus_cql::frame::request::Execute;
use helenus_cql::frame::response::{QueryResult, Response};
use helenus_cql::frame::{BoundValue, BoundValues, QueryParameters, Request};

use super::window::Window;
use crate::shell::client::{Client, Login, Server, StatementError, interrupted};

/// Tries of a batch before the import stops.
const TRIES_MAX: u32 = 12;
const BACKOFF_FIRST: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(10);

/// A sender to one node.
pub struct Sender<'a> {
    server: &'a Server,
    login: Login,
    statement: &'a str,
    window: &'a Window,
    /// The connection, and the id of the statement on it. `None` before the first batch and after a loss.
    connection: Option<(Client, Bytes)>,
}

/// A failed try.
enum Failure {
    /// Another try may succeed.
    Again {
        error: anyhow::Error,
        is_overload: bool,
    },
    Final(anyhow::Error),
}

impl<'a> Sender<'a> {
    pub fn new(server: &'a Server, login: Login, statement: &'a str, window: &'a Window) -> Sender<'a> {
        Sender {
            server,
            login,
            statement,
            window,
            connection: None,
        }
    }

    /// Sends a blob until it is acknowledged.
    pub fn send(&mut self, blob: &Bytes) -> Result<()> {
        self.server.interrupt.sleep(self.window.delay(blob.len()));
        let mut backoff = BACKOFF_FIRST;
        for tries in 1.. {
            let started = Instant::now();
            match self.try_send(blob) {
                Ok(()) => {
                    self.window.acknowledged(started.elapsed());
                    break;
                }
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Again { error, .. }) if tries >= TRIES_MAX || self.server.interrupt.is_set() => {
                    return Err(error.context(format!("{tries} tries failed")));
                }
                Err(Failure::Again { is_overload, .. }) => {
                    if is_overload {
                        self.window.overloaded();
                    }
                    self.server.interrupt.sleep(backoff);
                    backoff = (backoff * 2).min(BACKOFF_MAX);
                }
            }
        }
        Ok(())
    }

    fn try_send(&mut self, blob: &Bytes) -> Result<(), Failure> {
        if self.connection.is_none() {
            self.connection = Some(self.connect()?);
        }
        let Some((client, id)) = &mut self.connection else {
            return Ok(());
        };
        let request = Request::Execute(Box::new(Execute {
            id: id.clone(),
            result_metadata_id: None,
            parameters: QueryParameters {
                consistency: Consistency::LocalQuorum,
                values: BoundValues::Positional(vec![BoundValue::Set(blob.clone())]),
                ..QueryParameters::default()
            },
        }));
        let answer = client
            .send(request, false)
            .and_then(|_| client.receive())
            .map(|(_, message)| message.response);
        match answer {
            Ok(Response::Result(QueryResult::Void)) => Ok(()),
            Ok(Response::Error(error)) => Err(self.failed(error)),
            Ok(other) => Err(Failure::Final(anyhow!(
                "the node answered a batch with {:?}; use a node of Helenus",
                other.opcode()
            ))),
            Err(error) => Err(self.lost(error)),
        }
    }

    fn connect(&mut self) -> Result<(Client, Bytes), Failure> {
        let again = |error: anyhow::Error| Failure::Again {
            error,
            is_overload: false,
        };
        let mut client = self.server.connect(&mut self.login).map_err(again)?;
        match client.prepare(self.statement) {
            Ok(prepared) => Ok((client, prepared.id)),
            Err(StatementError::Server(error)) => Err(match self.failed(error) {
                Failure::Final(error) => Failure::Final(error.context(self.statement.to_owned())),
                again => again,
            }),
            Err(error) => Err(self.lost(error)),
        }
    }

    /// Returns the failure for an error of the server.
    fn failed(&mut self, error: CqlError) -> Failure {
        let (error, is_overload) = match error {
            CqlError::Warned { error, .. } => return self.failed(*error),
            CqlError::Unprepared(_) => {
                self.connection = None;
                (error, false)
            }
            CqlError::Overloaded(_)
            | CqlError::RateLimited { .. }
            | CqlError::WriteTimeout { .. }
            | CqlError::WriteFailure { .. }
            | CqlError::ReadTimeout { .. } => (error, true),
            CqlError::Unavailable { .. } | CqlError::IsBootstrapping(_) => (error, false),
            _ => return Failure::Final(anyhow!("{error}")),
        };
        Failure::Again {
            error: anyhow!("{error}"),
            is_overload,
        }
    }

    /// Returns the failure for a lost connection, and gives the connection up.
    fn lost(&mut self, error: StatementError) -> Failure {
        self.connection = None;
        match error {
            StatementError::Server(error) => self.failed(error),
            StatementError::Cancelled => Failure::Final(interrupted()),
            StatementError::Disconnected(error) | StatementError::Output(error) => Failure::Again {
                error,
                is_overload: false,
            },
        }
    }
}
