//! The files of the page. They are part of the binary, and the page loads nothing from other servers.

use axum::extract::Path;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};

const PAGE: &str = include_str!("assets/console.html");
/// Name, type and content of each file of the page.
const ASSETS: [(&str, &str, &str); 4] = [
    ("console.css", "text/css", include_str!("assets/console.css")),
    ("console.js", "text/javascript", include_str!("assets/console.js")),
    (
        "uPlot.min.css",
        "text/css",
        include_str!("assets/uplot/uPlot.min.css"),
    ),
    (
        "uPlot.iife.min.js",
        "text/javascript",
        include_str!("assets/uplot/uPlot.iife.min.js"),
    ),
];

/// Security policy that allows scripts, styles and requests of this server only. uPlot positions its parts by style attributes that it sets
/// through the DOM, which this policy permits.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      form-action 'none'; frame-ancestors 'none'; base-uri 'none'";

/// The headers of every response of the console.
pub(super) const SECURITY_HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    // The page must not be cached, because it changes with the version of the binary.
    (header::CACHE_CONTROL, "no-store"),
];

pub(super) async fn page() -> Response {
    let kind = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
    (SECURITY_HEADERS, kind, PAGE).into_response()
}

pub(super) async fn asset(Path(name): Path<String>) -> Response {
    match ASSETS.iter().find(|(known, _, _)| *known == name) {
        Some((_, kind, content)) => {
            let kind = [(header::CONTENT_TYPE, format!("{kind}; charset=utf-8"))];
            (SECURITY_HEADERS, kind, *content).into_response()
        }
        None => (StatusCode::NOT_FOUND, SECURITY_HEADERS, "there is no such file\n").into_response(),
    }
}
