//! Access control of the console.
//!
//! If authentication is on, the console requires the name and the password of a role, and a cookie identifies the session. If
//! authentication is off, every caller may use the console, as every client may connect. A page of another site can send no command in
//! either case:
//!
//! - A command (`POST`) needs a token in the header `x-helenus-token`. Only a page of this server can read the token, and no HTML form can
//!   send the header.
//! - Its `Origin`, if there is one, must be this server.
//! - Without authentication, `Host` must be an address or a name without a dot. So a site cannot make its own name point to this node (DNS
//!   rebinding). With authentication, the cookie is not sent under another name.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use helenus_query::engine::Engine;
use helenus_query::request::User;
use serde_json::json;

use super::assets::SECURITY_HEADERS;
use super::login_limit::LoginLimit;
use super::sessions::{Session, Sessions, digest, random_token};

const TOKEN_HEADER: &str = "x-helenus-token";
const LOGIN: &str = "/console/api/login";
const SESSION: &str = "/console/api/session";

/// Refusal of a request: the HTTP status and the reason.
pub(super) struct Refused(pub StatusCode, pub String);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let body = json!({ "error": self.1 }).to_string();
        (self.0, [(header::CONTENT_TYPE, "application/json")], body).into_response()
    }
}

fn refused<T>(status: StatusCode, why: &str) -> Result<T, Refused> {
    Err(Refused(status, why.to_owned()))
}

/// The caller of a request.
#[derive(Clone, Debug, Default)]
pub(super) struct Caller {
    /// The value of the session's cookie, and the session. `None` if authentication is off, or the caller has not logged in.
    pub session: Option<(String, Session)>,
}

impl Caller {
    pub fn user(&self) -> Option<Arc<User>> {
        self.session.as_ref().map(|(_, session)| session.user.clone())
    }
}

/// Decides which requests are allowed.
pub(super) struct Access {
    pub engine: Arc<Engine>,
    pub sessions: Sessions,
    pub logins: LoginLimit,
    /// Token of commands without a session: the log-in, and all commands if authentication is off.
    token: String,
    /// Name of the cookie. It contains the port, because browsers send cookies to every port of a host.
    cookie: String,
}

impl Access {
    pub fn new(engine: Arc<Engine>, port: u16) -> Access {
        Access {
            engine,
            sessions: Sessions::default(),
            logins: LoginLimit::default(),
            token: random_token(),
            cookie: format!("helenus-console-{port}"),
        }
    }

    /// Returns the header `set-cookie` that begins a session. An empty `id` ends the session.
    pub fn set_cookie(&self, id: &str) -> String {
        let end = if id.is_empty() { "; Max-Age=0" } else { "" };
        format!(
            "{}={id}; Path=/console; HttpOnly; SameSite=Strict{end}",
            self.cookie
        )
    }

    /// Returns the token that a caller's commands must have.
    pub fn token<'a>(&'a self, caller: &'a Caller) -> &'a str {
        caller
            .session
            .as_ref()
            .map_or(&self.token, |(_, session)| &session.token)
    }

    fn caller(&self, headers: &HeaderMap) -> Caller {
        let session = || {
            let id = cookie(headers, &self.cookie)?;
            let session = self.sessions.find(id, Instant::now())?;
            if !self.engine.may_stay(&session.user.name) {
                self.sessions.end(id);
                return None;
            }
            Some((id.to_owned(), session))
        };
        Caller {
            session: if self.engine.authenticates() {
                session()
            } else {
                None
            },
        }
    }

    /// Returns the caller of a request, if the request is allowed.
    fn check(&self, method: &Method, path: &str, headers: &HeaderMap) -> Result<Caller, Refused> {
        let host = text(headers, header::HOST.as_str()).unwrap_or_default();
        let authenticates = self.engine.authenticates();
        if !authenticates && !host_is_safe(host) {
            return refused(
                StatusCode::FORBIDDEN,
                "open the console by the node's IP address or by a name without a dot: under other names it is there only when the node \
                 has authentication",
            );
        }
        let caller = self.caller(headers);
        if authenticates && caller.session.is_none() && ![LOGIN, SESSION].contains(&path) {
            return refused(StatusCode::UNAUTHORIZED, "log in first");
        }
        if method != Method::GET {
            let same_origin =
                text(headers, header::ORIGIN.as_str()).is_none_or(|origin| is_same_origin(origin, host));
            if !same_origin {
                return refused(StatusCode::FORBIDDEN, "a page of another site sent this command");
            }
            let token = text(headers, TOKEN_HEADER).unwrap_or_default();
            if digest(token) != digest(self.token(&caller)) {
                return refused(
                    StatusCode::FORBIDDEN,
                    "the command has no valid token; load the page again",
                );
            }
        }
        Ok(caller)
    }
}

/// Refuses requests that are not allowed. Adds the [`Caller`] to the extensions of the others.
pub(super) async fn guard(State(access): State<Arc<Access>>, mut request: Request, next: Next) -> Response {
    let checked = access.check(request.method(), request.uri().path(), request.headers());
    let answer = match checked {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(refused) => refused.into_response(),
    };
    (SECURITY_HEADERS, answer).into_response()
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap_or_default())
}

fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let cookies = text(headers, header::COOKIE.as_str())?.split(';');
    let mut pairs = cookies.filter_map(|cookie| cookie.trim().split_once('='));
    pairs.find_map(|(known, value)| (known == name).then_some(value))
}

/// Returns true if a header `host` names this node by an address or a name that no public name server resolves.
pub(super) fn host_is_safe(host: &str) -> bool {
    if host.parse::<SocketAddr>().is_ok() || host.parse::<IpAddr>().is_ok() {
        return true;
    }
    if let Some(v6) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        return v6.parse::<IpAddr>().is_ok();
    }
    let name = host.split(':').next().unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && name.chars().all(is_plain)
}

/// Returns true if a header `origin` is that of a page from this host and port.
pub(super) fn is_same_origin(origin: &str, host: &str) -> bool {
    let origin = origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"));
    origin.is_some_and(|origin| origin.eq_ignore_ascii_case(host))
}
