//! Scans of the origin of a table ([`super::origins`]).
//!
//! The origin's tablets may have other token ranges than today's. Those that have a part of the range are scanned one after the other,
//! since the order of keys within a table is that of tokens.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use helenus_row::TokenRange;

use crate::error::StoreError;
use crate::stage::dead_ranges::Bounds;
use crate::tablet::Tablet;
use crate::tablet::origins::Origin;
use crate::tablet::over_origin::{OverOrigin, Row, RowsThere};
use crate::tablet::scan::Scan;

/// The rows of the origin in a range.
struct OriginRows {
    origin: Origin,
    reversed: bool,
    /// The parts of the range that are still to be scanned.
    parts: VecDeque<(Arc<Tablet>, Bounds)>,
    current: Option<Box<Scan>>,
}

/// Begins a scan of the origin's rows within the bounds and within `tokens`, to be merged with the table's own rows.
///
/// # Errors
/// See [`Origin::tablets`].
pub(super) async fn begin(
    origin: Origin,
    bounds: &Bounds,
    tokens: TokenRange,
    reversed: bool,
) -> Result<Box<OverOrigin>, StoreError> {
    let tablets = origin.tablets().await?;
    let parts = tablets.iter().filter_map(|tablet| {
        let bounds = origin.bounds_there(bounds, tablet.token_range(), tokens)?;
        Some((tablet.clone(), bounds))
    });
    let rows = OriginRows {
        parts: parts.collect(),
        origin,
        reversed,
        current: None,
    };
    Ok(Box::new(OverOrigin::new(Box::new(rows), reversed)))
}

impl RowsThere for OriginRows {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Row>, StoreError>> {
        self.step().boxed()
    }
}

impl OriginRows {
    async fn step(&mut self) -> Result<Option<Row>, StoreError> {
        loop {
            if let Some(scan) = &mut self.current {
                if let Some((key, row)) = scan.next().await? {
                    return Ok(Some((self.origin.own_key(&key), row)));
                }
                self.current = None;
            }
            let next = match self.reversed {
                false => self.parts.front(),
                true => self.parts.back(),
            };
            let Some((tablet, (start, end))) = next else {
                return Ok(None);
            };
            let scan = tablet.scan_all(start.clone(), end.clone(), self.reversed).await?;
            self.current = Some(Box::new(scan));
            match self.reversed {
                false => self.parts.pop_front(),
                true => self.parts.pop_back(),
            };
        }
    }
}
