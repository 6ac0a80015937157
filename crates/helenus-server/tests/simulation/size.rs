//! The size of a run: its workloads and its time. A failed run is repeated in smaller sizes.

use std::time::Duration;

use crate::seeds::number;
use crate::workload;

/// Seconds under load, unless the environment says otherwise.
const SECONDS: u64 = 30;
/// Minimum of the seconds under load.
const SECONDS_MIN: u64 = 5;

const SECONDS_VARIABLE: &str = "HELENUS_SIM_SECONDS";
const WORKLOADS_VARIABLE: &str = "HELENUS_SIM_WORKLOADS";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size {
    /// Seconds under load.
    pub seconds: u64,
    /// Names of the workloads.
    pub workloads: Vec<String>,
}

impl Size {
    /// Returns the size that the environment names: `HELENUS_SIM_SECONDS`, and `HELENUS_SIM_WORKLOADS` with names and commas between them.
    pub fn from_environment() -> Size {
        let workloads = match std::env::var(WORKLOADS_VARIABLE) {
            Ok(names) => names.split(',').map(str::to_owned).collect(),
            Err(_) => workload::names().map(str::to_owned).collect(),
        };
        Size {
            seconds: number(SECONDS_VARIABLE).unwrap_or(SECONDS),
            workloads,
        }
    }

    pub fn load(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }

    /// Returns the variables that name this size.
    pub fn variables(&self) -> [(&'static str, String); 2] {
        [
            (SECONDS_VARIABLE, self.seconds.to_string()),
            (WORKLOADS_VARIABLE, self.workloads.join(",")),
        ]
    }

    /// Returns the sizes to try next: each workload alone, all but one, and less time.
    pub fn smaller(&self) -> Vec<Size> {
        let with = |workloads: Vec<String>| Size {
            workloads,
            ..self.clone()
        };
        let mut sizes = Vec::new();
        if self.workloads.len() > 1 {
            sizes.extend(self.workloads.iter().map(|name| with(vec![name.clone()])));
        }
        if self.workloads.len() > 2 {
            let without = |left_out: &String| {
                let kept = self.workloads.iter().filter(|name| *name != left_out);
                with(kept.cloned().collect())
            };
            sizes.extend(self.workloads.iter().map(without));
        }
        for seconds in [self.seconds / 2, self.seconds * 3 / 4] {
            if seconds >= SECONDS_MIN {
                sizes.push(Size {
                    seconds,
                    ..self.clone()
                });
            }
        }
        sizes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smaller_sizes_end() {
        let mut size = Size {
            seconds: SECONDS,
            workloads: workload::names().map(str::to_owned).collect(),
        };
        while let Some(smaller) = size.smaller().pop() {
            assert_ne!(size, smaller);
            size = smaller;
        }
        assert!(size.seconds < 2 * SECONDS_MIN);
    }
}
