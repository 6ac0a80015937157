//! `fql`: commands for full query logs.

use anyhow::Result;

use super::Ended;
use crate::cli::fql::{FqlArgs, FqlCommand};
use crate::fql;

pub fn run(args: &FqlArgs) -> Result<Ended> {
    match &args.command {
        FqlCommand::Dump(args) => fql::dump(args).map(|()| Ended::Well),
        FqlCommand::Replay(args) => {
            let replayed = fql::replay(args)?;
            println!(
                "{} queries replayed, {} left out, {} failed",
                replayed.queries, replayed.left_out, replayed.failed
            );
            Ok(match replayed.failed {
                0 => Ended::Well,
                _ => Ended::WithErrors,
            })
        }
        FqlCommand::Compare(args) => Ok(match fql::compare(args)? {
            0 => Ended::Well,
            _ => Ended::Unverified,
        }),
    }
}
