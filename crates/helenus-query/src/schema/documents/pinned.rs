//! Documents for pinned tablets.

use helenus_tablet::{PinnedTablet, TokenRange};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A tablet as of the time when it was pinned.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct PinnedDoc {
    tablet: u32,
    tokens: TokenRange,
    manifest: u64,
    checkpoint: Uuid,
}

impl From<&PinnedTablet> for PinnedDoc {
    fn from(pinned: &PinnedTablet) -> PinnedDoc {
        PinnedDoc {
            tablet: pinned.id,
            tokens: pinned.tokens,
            manifest: pinned.manifest,
            checkpoint: pinned.checkpoint,
        }
    }
}

impl From<PinnedDoc> for PinnedTablet {
    fn from(document: PinnedDoc) -> PinnedTablet {
        PinnedTablet {
            id: document.tablet,
            tokens: document.tokens,
            manifest: document.manifest,
            checkpoint: document.checkpoint,
        }
    }
}
