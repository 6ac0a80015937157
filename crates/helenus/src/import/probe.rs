//! Probes: small requests to a node, whose times show how much an import slows other requests down.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use helenus_cql::frame::Request;
use helenus_cql::frame::request::Options;

use super::window::Window;
use crate::shell::client::{Client, Login, Server};

/// Time between two probes of a node.
const INTERVAL: Duration = Duration::from_millis(25);

/// Probes a node until `is_over` becomes true.
pub fn probe(server: &Server, login: Login, node: usize, window: &Window, is_over: &AtomicBool) {
    let mut login = login;
    let mut client: Option<Client> = None;
    while !is_over.load(Ordering::Relaxed) && server.interrupt.sleep(INTERVAL) {
        if client.is_none() {
            // The senders report a node that cannot be reached.
            client = server.connect(&mut login).ok();
        }
        let Some(connection) = &mut client else { continue };
        let started = Instant::now();
        let answer = connection
            .send(Request::Options(Options), false)
            .and_then(|_| connection.receive());
        match answer {
            Ok(_) => window.probed(node, started.elapsed()),
            Err(_) => client = None,
        }
    }
}
