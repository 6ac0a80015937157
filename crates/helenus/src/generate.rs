//! `helenus generate`: prints the files that packages ship beside the binary. They are generated from the binary's own definitions.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, CommandFactory, Subcommand};
use clap_complete::Shell;

use crate::Cli;
use crate::serve::{settings, settings_file};

/// Prints files that belong to an installation.
#[derive(Args, Debug)]
pub struct GenerateArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Clone, Debug)]
enum What {
    /// A TOML file of all settings, commented out, with descriptions and defaults
    Config {
        /// A setting that is not commented out; may be given several times
        #[arg(long = "set", value_name = "NAME=VALUE")]
        set: Vec<String>,
    },
    /// Completions of the command line for a shell
    Completions { shell: Shell },
    /// A man page for each command, into a folder
    Man { folder: PathBuf },
}

/// Writes the requested file or folder.
pub fn run(args: &GenerateArgs) -> anyhow::Result<ExitCode> {
    let text = match &args.what {
        What::Config { set } => settings_file::text(&settings::pairs(set)?)?.into_bytes(),
        What::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "helenus", &mut text);
            text
        }
        What::Man { folder } => return man_pages(folder),
    };
    io::stdout().write_all(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn man_pages(folder: &Path) -> anyhow::Result<ExitCode> {
    let failed = || format!("cannot write man pages to {}", folder.display());
    std::fs::create_dir_all(folder).with_context(failed)?;
    clap_mangen::generate_to(Cli::command(), folder).with_context(failed)?;
    Ok(ExitCode::SUCCESS)
}
