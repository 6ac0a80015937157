//! Guardrails on values out of a list (Cassandra's `Values`).

/// What values are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    ReadConsistencyLevels,
    TableProperties,
    WriteConsistencyLevels,
}

/// What happens to a value in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueAct {
    Warned,
    /// The client is warned, and the statement does as if the value were not there. Only of table properties.
    Ignored,
    Disallowed,
}

impl ValueAct {
    /// Returns the ending of the setting's name.
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

    /// Returns the guardrail's name in messages, and the beginning of its settings' names.
    pub fn name(self) -> &'static str {
        match self {
            ValueKind::ReadConsistencyLevels => "read_consistency_levels",
            ValueKind::TableProperties => "table_properties",
            ValueKind::WriteConsistencyLevels => "write_consistency_levels",
        }
    }

    /// What can happen to its values.
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
