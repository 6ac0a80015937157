//! Instructions that processes execute, counted by `perf stat`. Unlike CPU time, they do not depend on how busy the machine is.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};

const USER: &str = "instructions:u";
const KERNEL: &str = "instructions:k";
/// Time that `perf` has to attach to all threads before the load begins.
const ATTACH_TIME: Duration = Duration::from_millis(300);

/// Instructions of some processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instructions {
    pub user: u64,
    pub kernel: u64,
}

/// A running count of instructions.
pub struct InstructionCounter(Child);

impl InstructionCounter {
    /// Starts to count the instructions of these processes.
    pub async fn start(processes: &[u32]) -> Result<InstructionCounter> {
        let processes: Vec<String> = processes.iter().map(u32::to_string).collect();
        let child = Command::new("perf")
            .args(["stat", "--field-separator", ","])
            .args(["--event", USER, "--event", KERNEL])
            .args(["--pid", &processes.join(",")])
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("can't start `perf`, which counts instructions; install linux-perf or linux-tools")?;
        tokio::time::sleep(ATTACH_TIME).await;
        Ok(InstructionCounter(child))
    }

    /// Ends the count. `None` if the machine has no hardware counters, or does not permit their use.
    pub fn end(self) -> Result<Option<Instructions>> {
        // `perf` prints its report when it is interrupted. It has ended already if it could not attach.
        Command::new("kill")
            .args(["-INT", &self.0.id().to_string()])
            .status()?;
        let output = self.0.wait_with_output()?;
        Ok(counts_of(&String::from_utf8_lossy(&output.stderr)))
    }
}

/// Returns the counts in a report, whose lines begin with a count, a unit and an event.
fn counts_of(report: &str) -> Option<Instructions> {
    let count = |event: &str| {
        report.lines().find_map(|line| {
            let (count, rest) = line.split_once(',')?;
            let is_of_event = rest.split(',').nth(1) == Some(event);
            is_of_event.then(|| count.parse().ok()).flatten()
        })
    };
    Some(Instructions {
        user: count(USER)?,
        kernel: count(KERNEL)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_has_both_counts() {
        let report = "52000,,instructions:u,1000000,100.00,1.2,insn per cycle\n31000,,instructions:k,1000000,100.00,,\n";
        let counts = counts_of(report);
        let expected = Instructions {
            user: 52_000,
            kernel: 31_000,
        };
        assert_eq!(counts, Some(expected));
    }

    #[test]
    fn machine_without_counters_has_none() {
        let report =
            "<not supported>,,instructions:u,0,100.00,,\n<not supported>,,instructions:k,0,100.00,,\n";
        assert_eq!(counts_of(report), None);
        assert_eq!(counts_of(""), None);
    }
}
