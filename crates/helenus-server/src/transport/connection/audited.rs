//! A request that is written to the audit log when it has run.

use std::net::SocketAddr;
use std::sync::Arc;

use helenus_cql::error::CqlError;
use helenus_query::request::ClientState;

use super::statement_summary::{StatementSummary, text};
use crate::logs::audit::{Requester, RunningLog};
use crate::transport::Backend;
use crate::transport::server_state::ServerState;

/// The known facts of the request before it runs.
pub(super) struct AuditedRequest {
    pub log: Arc<RunningLog>,
    pub client: Arc<ClientState>,
    pub peer: SocketAddr,
    pub is_prepare: bool,
}

impl AuditedRequest {
    /// Writes the request and its error to the audit log. `error` is `None` if it succeeded.
    pub fn record<B: Backend>(
        &self,
        server: &ServerState<B>,
        summary: &StatementSummary<B::Prepared>,
        error: Option<&CqlError>,
    ) {
        let by = Requester {
            user: self.client.user.as_deref().map(|user| user.name.as_str()),
            peer: self.peer,
            node: server.config.listen,
            keyspace: self.client.keyspace.as_deref(),
        };
        match summary {
            StatementSummary::Text { text, .. } => self.log.statement(by, text, self.is_prepare, error),
            StatementSummary::Prepared { prepared, .. } => {
                self.log
                    .statement(by, server.backend.statement(prepared), false, error);
            }
            StatementSummary::Batch { audited, .. } => {
                let texts: Vec<String> = audited.iter().map(|one| text(&server.backend, one)).collect();
                self.log.batch(by, texts.iter().map(String::as_str), error);
            }
            StatementSummary::Login { user } => {
                let user = Some(user.as_str());
                self.log.login(Requester { user, ..by }, error);
            }
            // The node does not know the id of the prepared statement. The client will prepare the statement again.
            StatementSummary::Unknown => {}
        }
    }
}
