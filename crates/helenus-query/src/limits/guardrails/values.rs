//! Guardrails with lists of values (Cassandra's `Values`).

/// The settings and properties whose values can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    ReadConsistencyLevels,
    TableProperties,
    WriteConsistencyLevels,
}

/// The treatment of a listed value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueAct {
    Warned,
    /// The client is warned and the statement runs without the value. Only for table properties.
    Ignored,
    Disallowed,
}

impl ValueAct {
    /// Returns the suffix of the setting's name.
    pub fn suffix(self) -> &'static str {
        match self {
            ValueAct::Warned => "warned",
            ValueAct::Ignored => "ignored",
            ValueAct::Disallowed => "disallowed",
        }
    }
}

impl ValueKind {
    pub const ALL: [ValueKind; 3] = [
        ValueKind::ReadConsistencyLevels,
        ValueKind::TableProperties,
        ValueKind::WriteConsistencyLevels,
    ];

    /// Returns the guardrail's name in messages, which is also the prefix of the settings' names.
    pub fn name(self) -> &'static str {
        match self {
            ValueKind::ReadConsistencyLevels => "read_consistency_levels",
            ValueKind::TableProperties => "table_properties",
            ValueKind::WriteConsistencyLevels => "write_consistency_levels",
        }
    }

    /// Returns the treatments that this kind allows.
    pub fn acts(self) -> &'static [ValueAct] {
        match self {
            ValueKind::TableProperties => &[ValueAct::Warned, ValueAct::Ignored, ValueAct::Disallowed],
            ValueKind::ReadConsistencyLevels | ValueKind::WriteConsistencyLevels => {
                &[ValueAct::Warned, ValueAct::Disallowed]
            }
        }
    }

    pub(super) fn feature(self) -> &'static str {
        match self {
            ValueKind::ReadConsistencyLevels => "read consistency levels",
            ValueKind::TableProperties => "Table Properties",
            ValueKind::WriteConsistencyLevels => "write consistency levels",
        }
    }
}
