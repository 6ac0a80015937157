//! Defects that are built in on purpose, to show that the simulation finds them. Defects of the nodes themselves are patches in
//! `tests/mutants`.

use std::sync::OnceLock;

/// A defect of what nodes rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// The clock of the lease stands still while a process is paused, so a node believes in a lease that has ended.
    LeaseClockStops,
    /// The store replaces objects of logs that were to be created. So a fence hides a record, and a record hides a fence.
    NoPutIfAbsent,
    /// The store acknowledges one PUT of a log in 50 without storing the object.
    LostPut,
}

/// All defects, by name.
pub const ALL: [(&str, Defect); 3] = [
    ("lease-clock-stops", Defect::LeaseClockStops),
    ("no-put-if-absent", Defect::NoPutIfAbsent),
    ("lost-put", Defect::LostPut),
];

/// Returns true if `HELENUS_SIM_DEFECT` names the defect. The variable can also name a patch.
pub fn is_active(defect: Defect) -> bool {
    static ACTIVE: OnceLock<Option<Defect>> = OnceLock::new();
    let active = ACTIVE.get_or_init(|| {
        let name = std::env::var("HELENUS_SIM_DEFECT").ok()?;
        let found = ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, defect)| *defect)
    });
    *active == Some(defect)
}
