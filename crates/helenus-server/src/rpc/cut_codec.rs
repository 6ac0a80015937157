//! Encodes and decodes the messages between nodes about a consistent cut.

use bytes::Bytes;
use helenus_query::cluster::{Pin, PinnedCut};
use helenus_tablet::{HistoryPosition, PinnedTablet, TokenRange};
use uuid::Uuid;

use super::proto::{self, HoldRequest, HoldResponse, PinRequest, PinResponse, Tokens, pin_request};

fn id(bytes: &[u8]) -> Result<Uuid, String> {
    Uuid::from_slice(bytes).map_err(|_| "the id of a moment, a checkpoint or a log has 16 bytes".to_owned())
}

fn id_bytes(id: Uuid) -> Bytes {
    Bytes::copy_from_slice(id.as_bytes())
}

fn tokens(of: TokenRange) -> Tokens {
    Tokens {
        first: of.first,
        last: of.last,
    }
}

fn token_range(of: &Tokens) -> TokenRange {
    TokenRange {
        first: of.first,
        last: of.last,
    }
}

pub(super) fn hold_request(cut: Uuid) -> HoldRequest {
    HoldRequest {
        moment: id_bytes(cut),
    }
}

/// Returns the id of the cut.
///
/// # Errors
/// The id is invalid.
pub(super) fn cut(request: &HoldRequest) -> Result<Uuid, String> {
    id(&request.moment)
}

pub(super) fn hold_response(tablets: Vec<TokenRange>) -> HoldResponse {
    HoldResponse {
        tablets: tablets.into_iter().map(tokens).collect(),
    }
}

pub(super) fn held(response: &HoldResponse) -> Vec<TokenRange> {
    response.tablets.iter().map(token_range).collect()
}

pub(super) fn pin_request(pin: Pin) -> PinRequest {
    PinRequest {
        what: Some(match pin {
            Pin::Held(cut) => pin_request::What::Held(id_bytes(cut)),
            Pin::Release(cut) => pin_request::What::LetGo(id_bytes(cut)),
            Pin::Flushed => pin_request::What::Flushed(true),
        }),
    }
}

/// Decodes a request to pin or unpin tablets.
///
/// # Errors
/// This version does not know the kind of the request, or its id is invalid.
pub(super) fn pin(request: &PinRequest) -> Result<Pin, String> {
    match &request.what {
        Some(pin_request::What::Held(cut)) => id(cut).map(Pin::Held),
        Some(pin_request::What::LetGo(cut)) => id(cut).map(Pin::Release),
        Some(pin_request::What::Flushed(_)) => Ok(Pin::Flushed),
        None => Err("the request to pin is of a newer version of Helenus".to_owned()),
    }
}

pub(super) fn pin_response(cut: PinnedCut) -> PinResponse {
    let tablet = |tablet: PinnedTablet| proto::PinnedTablet {
        tablet: tablet.id,
        tokens: Some(tokens(tablet.tokens)),
        manifest: tablet.manifest,
        checkpoint: id_bytes(tablet.checkpoint),
    };
    PinResponse {
        tablets: cut.tablets.into_iter().map(tablet).collect(),
        positions: cut.positions.into_iter().map(log_position).collect(),
    }
}

fn log_position(position: HistoryPosition) -> proto::LogPosition {
    proto::LogPosition {
        log: id_bytes(position.log),
        segment: position.segment,
        offset: position.offset,
    }
}

/// Decodes the pinned tablets and the positions in the logs.
///
/// # Errors
/// The tokens of a tablet are missing, or the id of a checkpoint or a log is invalid.
pub(super) fn pinned(response: &PinResponse) -> Result<PinnedCut, String> {
    let tablet = |tablet: &proto::PinnedTablet| {
        let tokens = tablet.tokens.as_ref().map(token_range);
        Ok(PinnedTablet {
            id: tablet.tablet,
            tokens: tokens.ok_or_else(|| "a pinned tablet has no tokens".to_owned())?,
            manifest: tablet.manifest,
            checkpoint: id(&tablet.checkpoint)?,
        })
    };
    let position = |position: &proto::LogPosition| {
        Ok(HistoryPosition {
            log: id(&position.log)?,
            segment: position.segment,
            offset: position.offset,
        })
    };
    Ok(PinnedCut {
        tablets: response
            .tablets
            .iter()
            .map(tablet)
            .collect::<Result<_, String>>()?,
        positions: response
            .positions
            .iter()
            .map(position)
            .collect::<Result<_, String>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_messages_between_nodes_round_trip() {
        let number = Uuid::from_u128(7);
        assert_eq!(cut(&hold_request(number)).unwrap(), number);
        let range = TokenRange {
            first: i64::MIN,
            last: -3,
        };
        assert_eq!(held(&hold_response(vec![range])), [range]);
        for what in [Pin::Held(number), Pin::Release(number), Pin::Flushed] {
            assert_eq!(pin(&pin_request(what)).unwrap(), what);
        }
        assert!(pin(&PinRequest { what: None }).is_err());
        let tablet = PinnedTablet {
            id: 3,
            tokens: range,
            manifest: 12,
            checkpoint: number,
        };
        let cut = PinnedCut {
            tablets: vec![tablet],
            positions: vec![HistoryPosition {
                log: number,
                segment: 5,
                offset: u64::MAX,
            }],
        };
        let mut sent = pin_response(cut.clone());
        assert_eq!(pinned(&sent).unwrap(), cut);
        sent.tablets[0].tokens = None;
        assert!(pinned(&sent).is_err());
    }
}
