//! A stand-in for S3 with the requests that a node uses. It answers after a fixed time, and keeps nothing after its end.

use std::collections::HashMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, Method, Response, StatusCode, header};
use bytes::Bytes;

use crate::objects::{Condition, Objects};
use crate::response_delay::ResponseDelay;

const BODY_BYTES_MAX: usize = 1 << 30;
const PAGE: usize = 1000;

struct Stand {
    objects: Objects,
    delay: ResponseDelay,
}

/// Serves until the process is killed. Accepts any bucket and any credentials.
pub async fn serve(listen: SocketAddr, delay: Duration, folder: Option<PathBuf>) -> Result<()> {
    let stand = Arc::new(Stand {
        objects: Objects::new(folder),
        delay: ResponseDelay::new(delay),
    });
    let router = Router::new().fallback(answer).with_state(stand);
    let listener = tokio::net::TcpListener::bind(listen).await?;
    // Nagle's algorithm would delay small responses until earlier packets are acknowledged.
    let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
        let _ = stream.set_nodelay(true);
    });
    Ok(axum::serve(listener, router).await?)
}

type Parameters = HashMap<String, String>;

async fn answer(
    State(stand): State<Arc<Stand>>,
    Query(query): Query<Parameters>,
    request: Request,
) -> Response<Body> {
    let since = Instant::now();
    let answer = answer_of(&stand, &query, request)
        .await
        .unwrap_or_else(|error| plain(StatusCode::INTERNAL_SERVER_ERROR, Bytes::from(error.to_string())));
    stand.delay.wait(since).await;
    answer
}

async fn answer_of(stand: &Stand, query: &Parameters, request: Request) -> Result<Response<Body>> {
    let (head, body) = request.into_parts();
    let path = percent_decoded(head.uri.path().trim_start_matches('/'));
    let name = path.split_once('/').map_or("", |(_, name)| name).to_owned();
    let bytes = to_bytes(body, BODY_BYTES_MAX).await?;
    let objects = &stand.objects;
    let upload = query.get("uploadId");
    Ok(match (head.method, upload) {
        (Method::GET, _) if name.is_empty() => listing(objects, query),
        (Method::POST, _) if query.contains_key("delete") => {
            let text = String::from_utf8_lossy(&bytes);
            xml(delete_all(objects, &text))
        }
        (method @ (Method::GET | Method::HEAD), _) => {
            get(objects, &name, &head.headers, method == Method::HEAD)?
        }
        (Method::PUT, Some(upload)) => {
            let number = query.get("partNumber").and_then(|number| number.parse().ok());
            match objects.put_part(upload, number.unwrap_or_default(), &bytes) {
                true => tagged(&format!("\"part-{}\"", number.unwrap_or_default())),
                false => refused(StatusCode::NOT_FOUND, "NoSuchUpload"),
            }
        }
        (Method::PUT, None) if head.headers.contains_key("x-amz-copy-source") => {
            copy(objects, &name, &head.headers)?
        }
        (Method::PUT, None) => put(objects, &name, bytes, &head.headers)?,
        (Method::POST, None) => {
            let id = objects.begin_upload();
            xml(format!(
                "<InitiateMultipartUploadResult><Bucket>b</Bucket><Key>k</Key><UploadId>{id}</UploadId></InitiateMultipartUploadResult>"
            ))
        }
        (Method::POST, Some(upload)) => match objects.end_upload(upload) {
            Some(whole) => ended(put(objects, &name, whole, &head.headers)?),
            None => refused(StatusCode::NOT_FOUND, "NoSuchUpload"),
        },
        (Method::DELETE, Some(upload)) => {
            objects.end_upload(upload);
            plain(StatusCode::NO_CONTENT, Bytes::new())
        }
        (Method::DELETE, None) => {
            objects.delete(&name);
            plain(StatusCode::NO_CONTENT, Bytes::new())
        }
        _ => refused(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed"),
    })
}

fn put(objects: &Objects, name: &str, bytes: Bytes, headers: &HeaderMap) -> Result<Response<Body>> {
    let text = |name: header::HeaderName| headers.get(name)?.to_str().ok().map(str::to_owned);
    let condition = match (text(header::IF_NONE_MATCH), text(header::IF_MATCH)) {
        (Some(_), _) => Condition::Absent,
        (None, Some(e_tag)) => Condition::Matches(e_tag),
        (None, None) => Condition::None,
    };
    let metadata = headers
        .iter()
        .filter(|(name, _)| name.as_str().starts_with("x-amz-meta-"))
        .map(|(name, value)| {
            (
                name.to_string(),
                String::from_utf8_lossy(value.as_bytes()).into_owned(),
            )
        })
        .collect();
    Ok(match objects.put(name, bytes, metadata, &condition)? {
        Some(e_tag) => tagged(&e_tag),
        None => refused(StatusCode::PRECONDITION_FAILED, "PreconditionFailed"),
    })
}

fn copy(objects: &Objects, name: &str, headers: &HeaderMap) -> Result<Response<Body>> {
    let source = headers
        .get("x-amz-copy-source")
        .and_then(|source| source.to_str().ok());
    let path = percent_decoded(source.unwrap_or_default().trim_start_matches('/'));
    let from = path.split_once('/').and_then(|(_, name)| objects.get(name));
    let Some(from) = from else {
        return Ok(refused(StatusCode::NOT_FOUND, "NoSuchKey"));
    };
    let bytes = from.read(0..from.len())?;
    objects.put(name, bytes, from.metadata, &Condition::None)?;
    Ok(xml(format!(
        "<CopyObjectResult><ETag>{}</ETag></CopyObjectResult>",
        escaped(&from.e_tag)
    )))
}

/// Returns the answer to the end of an upload in parts, which has the tag in its body.
fn ended(answer: Response<Body>) -> Response<Body> {
    let e_tag = answer
        .headers()
        .get(header::ETAG)
        .and_then(|tag| tag.to_str().ok());
    match e_tag {
        Some(e_tag) => xml(format!(
            "<CompleteMultipartUploadResult><ETag>{}</ETag></CompleteMultipartUploadResult>",
            escaped(e_tag)
        )),
        None => answer,
    }
}

fn get(objects: &Objects, name: &str, headers: &HeaderMap, head: bool) -> Result<Response<Body>> {
    let Some(object) = objects.get(name) else {
        return Ok(refused(StatusCode::NOT_FOUND, "NoSuchKey"));
    };
    let len = object.len();
    let range = headers
        .get(header::RANGE)
        .and_then(|range| range.to_str().ok()?.strip_prefix("bytes="));
    let wanted = match range.and_then(|range| range.split_once('-')) {
        None => None,
        Some(("", last)) => Some(len.saturating_sub(last.parse()?)..len),
        Some((first, "")) => Some(first.parse()?..len),
        Some((first, last)) => Some(first.parse()?..last.parse::<u64>()?.saturating_add(1).min(len)),
    };
    if wanted.as_ref().is_some_and(|range| range.start >= range.end) {
        return Ok(refused(StatusCode::RANGE_NOT_SATISFIABLE, "InvalidRange"));
    }
    let mut answer = Response::builder().header(header::ETAG, &object.e_tag).header(
        header::LAST_MODIFIED,
        object.modified.format("%a, %d %b %Y %H:%M:%S GMT").to_string(),
    );
    for (name, value) in &object.metadata {
        answer = answer.header(name, value);
    }
    let range = match wanted {
        None => 0..len,
        Some(range) => {
            let of_all = format!("bytes {}-{}/{len}", range.start, range.end - 1);
            answer = answer
                .status(StatusCode::PARTIAL_CONTENT)
                .header(header::CONTENT_RANGE, of_all);
            range
        }
    };
    answer = answer.header(header::CONTENT_LENGTH, range.end - range.start);
    let body = match head {
        true => Body::empty(),
        false => Body::from(object.read(range)?),
    };
    Ok(answer.body(body)?)
}

fn listing(objects: &Objects, query: &Parameters) -> Response<Body> {
    let text = |name: &str| query.get(name).map(String::as_str);
    let after = text("continuation-token").or(text("start-after"));
    let most = text("max-keys")
        .and_then(|most| most.parse().ok())
        .unwrap_or(PAGE);
    let page = objects.list(
        text("prefix").unwrap_or_default(),
        query.contains_key("delimiter"),
        after,
        most.min(PAGE),
    );
    let mut out = String::from("<ListBucketResult>");
    for (name, object) in &page.objects {
        let _ = write!(
            out,
            "<Contents><Key>{}</Key><LastModified>{}</LastModified><ETag>{}</ETag><Size>{}</Size></Contents>",
            escaped(name),
            object.modified.format("%Y-%m-%dT%H:%M:%S%.3fZ"),
            escaped(&object.e_tag),
            object.len()
        );
    }
    for folder in &page.folders {
        let _ = write!(
            out,
            "<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>",
            escaped(folder)
        );
    }
    if let Some(next) = &page.next {
        let _ = write!(
            out,
            "<NextContinuationToken>{}</NextContinuationToken>",
            escaped(next)
        );
    }
    let _ = write!(
        out,
        "<IsTruncated>{}</IsTruncated></ListBucketResult>",
        page.next.is_some()
    );
    xml(out)
}

/// Deletes the objects between `<Key>` and `</Key>`.
fn delete_all(objects: &Objects, text: &str) -> String {
    let mut out = String::from("<DeleteResult>");
    for part in text.split("<Key>").skip(1) {
        let name = part.split("</Key>").next().unwrap_or_default();
        objects.delete(&unescaped(name));
        let _ = write!(out, "<Deleted><Key>{name}</Key></Deleted>");
    }
    out + "</DeleteResult>"
}

fn plain(status: StatusCode, body: Bytes) -> Response<Body> {
    let mut answer = Response::new(Body::from(body));
    *answer.status_mut() = status;
    answer
}

fn xml(text: String) -> Response<Body> {
    let mut answer = plain(StatusCode::OK, Bytes::from(text));
    let kind = header::HeaderValue::from_static("application/xml");
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    answer
}

fn refused(status: StatusCode, code: &str) -> Response<Body> {
    let text = format!("<Error><Code>{code}</Code><Message>{code}</Message></Error>");
    plain(status, Bytes::from(text))
}

fn tagged(e_tag: &str) -> Response<Body> {
    let mut answer = plain(StatusCode::OK, Bytes::new());
    if let Ok(value) = header::HeaderValue::from_str(e_tag) {
        answer.headers_mut().insert(header::ETAG, value);
    }
    answer
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&amp;", "&")
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, others)) = rest.split_first() {
        let hex = others
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        match hex.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if first == b'%' => {
                bytes.push(byte);
                rest = others.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(first);
                rest = others;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
