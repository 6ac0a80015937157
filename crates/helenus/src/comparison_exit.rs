//! The exit codes of commands that compare.

use std::process::ExitCode;

use anyhow::Result;

use crate::shell::EXIT_INTERRUPTED;
use crate::shell::interrupt::Interrupt;

const EXIT_DIFFERENT: u8 = 1;
const EXIT_ERROR: u8 = 2;

/// Ends a comparison with its exit code: 0 if all is equal, 1 if there are differences, 2 after an error, and 130 after Ctrl-C.
pub fn exit_code(is_equal: Result<bool>, interrupt: &Interrupt) -> ExitCode {
    match is_equal {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(EXIT_DIFFERENT),
        Err(error) => {
            eprintln!("helenus: {error:#}");
            ExitCode::from(match interrupt.is_set() {
                true => EXIT_INTERRUPTED,
                false => EXIT_ERROR,
            })
        }
    }
}
