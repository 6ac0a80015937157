//! Service levels, which limit the requests of roles. The statements are ScyllaDB's; Cassandra has none.

/// A statement about service levels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceLevelStatement {
    Create(CreateServiceLevel),
    Alter(AlterServiceLevel),
    Drop(DropServiceLevel),
    Attach {
        level: String,
        role: String,
    },
    /// DETACH SERVICE LEVEL FROM. The statement does not name the level, because a role has at most one.
    Detach {
        role: String,
    },
    List(ListServiceLevels),
}

/// `CREATE SERVICE LEVEL [IF NOT EXISTS] name [WITH options]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateServiceLevel {
    pub name: String,
    pub if_not_exists: bool,
    pub options: Vec<ServiceLevelOption>,
}

/// `ALTER SERVICE LEVEL name WITH options`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterServiceLevel {
    pub name: String,
    pub options: Vec<ServiceLevelOption>,
}

/// `DROP SERVICE LEVEL [IF EXISTS] name`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropServiceLevel {
    pub name: String,
    pub if_exists: bool,
}

/// An option with its value as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceLevelOption {
    pub name: String,
    /// The value. `None` for `null`, which removes a limit.
    pub value: Option<String>,
}

/// The subject of a LIST statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListServiceLevels {
    /// `LIST SERVICE LEVEL name`
    One(String),
    /// `LIST ALL SERVICE LEVELS`
    All,
    /// `LIST ATTACHED SERVICE LEVEL OF role`
    AttachedTo(String),
    /// `LIST ALL ATTACHED SERVICE LEVELS`
    AllAttached,
    /// `LIST EFFECTIVE SERVICE LEVEL OF role`
    EffectiveOf(String),
}
