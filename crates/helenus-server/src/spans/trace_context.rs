//! The trace context of a client's request: `traceparent` of W3C Trace Context, in the custom payload.

use helenus_cql::frame::CustomPayload;
use opentelemetry::{SpanId, TraceId};

/// Name of the payload's entry, which is also that of the HTTP header.
const TRACEPARENT: &str = "traceparent";
const SAMPLED: u8 = 1;

/// The trace and the parent of a request's span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpanParent {
    pub trace: TraceId,
    /// The client's span. `None` if the trace begins with the request.
    pub span: Option<SpanId>,
}

impl SpanParent {
    /// Returns a trace that begins with the request.
    pub fn none() -> SpanParent {
        SpanParent {
            trace: TraceId::from_bytes(rand::random()),
            span: None,
        }
    }
}

/// The trace context of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TraceContext {
    pub parent: SpanParent,
    pub is_sampled: bool,
}

/// Returns the trace context in a request's payload. `None` if there is no valid one.
pub(super) fn of_payload(payload: &CustomPayload) -> Option<TraceContext> {
    let (_, value) = payload.iter().find(|(name, _)| name == TRACEPARENT)?;
    parse(std::str::from_utf8(value.as_deref()?).ok()?)
}

/// Parses `version-trace id-parent id-flags`, all in lowercase hexadecimal digits. Later versions may have more fields after it.
fn parse(text: &str) -> Option<TraceContext> {
    let mut fields = text.split('-');
    let [version, trace, span, flags] =
        [2, 32, 16, 2].map(|len| fields.next().filter(|field| is_hex(field, len)));
    let version = version?;
    if version == "ff" || (version == "00" && fields.next().is_some()) {
        return None;
    }
    let trace = TraceId::from_hex(trace?).ok()?;
    let span = SpanId::from_hex(span?).ok()?;
    if trace == TraceId::INVALID || span == SpanId::INVALID {
        return None;
    }
    let flags = u8::from_str_radix(flags?, 16).ok()?;
    Some(TraceContext {
        parent: SpanParent {
            trace,
            span: Some(span),
        },
        is_sampled: flags & SAMPLED != 0,
    })
}

fn is_hex(field: &str, len: usize) -> bool {
    field.len() == len
        && field
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    #[test]
    fn contexts_of_this_and_later_versions_are_read() {
        let read = |text: &str| parse(text).map(|context| (context.parent, context.is_sampled));
        let parent = SpanParent {
            trace: TraceId::from_hex(TRACE).unwrap(),
            span: Some(SpanId::from_hex(SPAN).unwrap()),
        };
        assert_eq!(read(&format!("00-{TRACE}-{SPAN}-01")), Some((parent, true)));
        assert_eq!(read(&format!("00-{TRACE}-{SPAN}-00")), Some((parent, false)));
        assert_eq!(read(&format!("cc-{TRACE}-{SPAN}-03-more")), Some((parent, true)));
    }

    #[test]
    fn what_is_no_context_is_none() {
        for text in [
            String::new(),
            "00".to_owned(),
            format!("00-{TRACE}-{SPAN}"),
            format!("00-{TRACE}-{SPAN}-01-more"),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
            format!("00-{}-{SPAN}-01", "0".repeat(32)),
            format!("00-{TRACE}-{}-01", "0".repeat(16)),
            format!("00-{TRACE}-{SPAN}-0"),
            format!("00-+{}-{SPAN}-01", &TRACE[1..]),
        ] {
            assert_eq!(parse(&text), None, "{text}");
        }
    }
}
