//! `helenus-stress report`: result folders as one page for a browser.

use std::path::PathBuf;

use anyhow::Result;

use crate::results::Loaded;

/// Arguments of `helenus-stress report`.
#[derive(clap::Args, Debug)]
pub struct ReportArgs {
    /// Folders of runs (several are laid over each other), or of one comparison
    #[arg(required = true, value_name = "DIR")]
    pub directories: Vec<PathBuf>,
}

/// Reads the folders and says what they hold.
pub fn run(args: &ReportArgs) -> Result<()> {
    for directory in &args.directories {
        match Loaded::read(directory)? {
            Loaded::Run(run) => println!("{}: {}", directory.display(), run.result.title()),
            Loaded::Comparison(comparison) => println!("{}: {}", directory.display(), comparison.title()),
        }
    }
    Ok(())
}
