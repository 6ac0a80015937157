//! The helenus-stress binary.

use std::process::ExitCode;

use helenus_stress::{cli, commands};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    commands::run(cli::parse(std::env::args_os()).command)
}
