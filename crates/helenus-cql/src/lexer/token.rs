//! The kinds of token, and the keywords.

macro_rules! kinds {
    (keywords { $($keyword:ident = $text:literal => $name:literal,)* } others { $($other:ident => $other_name:literal,)* }) => {
        /// The kind of a token.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Kind {
            $(#[doc = $text] $keyword,)*
            $(#[doc = $other_name] $other,)*
        }

        impl Kind {
            /// Returns the kind's name in Cassandra's messages ("expecting K_FROM").
            pub fn name(self) -> &'static str {
                match self {
                    $(Kind::$keyword => $name,)*
                    $(Kind::$other => $other_name,)*
                }
            }
        }

        /// All keywords, sorted by text.
        pub(super) static KEYWORDS: &[(&str, Kind)] = &[$(($text, Kind::$keyword),)*];
    };
}

kinds! {
    keywords {
        Access = "access" => "K_ACCESS",
        Add = "add" => "K_ADD",
        Aggregate = "aggregate" => "K_AGGREGATE",
        Aggregates = "aggregates" => "K_AGGREGATES",
        All = "all" => "K_ALL",
        Allow = "allow" => "K_ALLOW",
        Alter = "alter" => "K_ALTER",
        And = "and" => "K_AND",
        Ann = "ann" => "K_ANN",
        Apply = "apply" => "K_APPLY",
        As = "as" => "K_AS",
        Asc = "asc" => "K_ASC",
        Ascii = "ascii" => "K_ASCII",
        Authorize = "authorize" => "K_AUTHORIZE",
        Batch = "batch" => "K_BATCH",
        Begin = "begin" => "K_BEGIN",
        Between = "between" => "K_BETWEEN",
        Bigint = "bigint" => "K_BIGINT",
        Blob = "blob" => "K_BLOB",
        Boolean = "boolean" => "K_BOOLEAN",
        By = "by" => "K_BY",
        Called = "called" => "K_CALLED",
        Cast = "cast" => "K_CAST",
        Check = "check" => "K_CHECK",
        Cidrs = "cidrs" => "K_CIDRS",
        Cluster = "cluster" => "K_CLUSTER",
        Clustering = "clustering" => "K_CLUSTERING",
        ColumnFamilies = "columnfamilies" => "K_TABLES",
        ColumnFamily = "columnfamily" => "K_COLUMNFAMILY",
        Compact = "compact" => "K_COMPACT",
        Contains = "contains" => "K_CONTAINS",
        Count = "count" => "K_COUNT",
        Counter = "counter" => "K_COUNTER",
        Create = "create" => "K_CREATE",
        Custom = "custom" => "K_CUSTOM",
        Datacenters = "datacenters" => "K_DATACENTERS",
        Date = "date" => "K_DATE",
        Decimal = "decimal" => "K_DECIMAL",
        Default = "default" => "K_DEFAULT",
        Delete = "delete" => "K_DELETE",
        Desc = "desc" => "K_DESC",
        Describe = "describe" => "K_DESCRIBE",
        Distinct = "distinct" => "K_DISTINCT",
        Double = "double" => "K_DOUBLE",
        Drop = "drop" => "K_DROP",
        Duration = "duration" => "K_DURATION",
        Entries = "entries" => "K_ENTRIES",
        Execute = "execute" => "K_EXECUTE",
        Exists = "exists" => "K_EXISTS",
        False = "false" => "BOOLEAN",
        Filtering = "filtering" => "K_FILTERING",
        FinalFunc = "finalfunc" => "K_FINALFUNC",
        Float = "float" => "K_FLOAT",
        From = "from" => "K_FROM",
        Frozen = "frozen" => "K_FROZEN",
        Full = "full" => "K_FULL",
        Function = "function" => "K_FUNCTION",
        Functions = "functions" => "K_FUNCTIONS",
        Generated = "generated" => "K_GENERATED",
        Grant = "grant" => "K_GRANT",
        Group = "group" => "K_GROUP",
        Hashed = "hashed" => "K_HASHED",
        Identity = "identity" => "K_IDENTITY",
        If = "if" => "K_IF",
        In = "in" => "K_IN",
        Index = "index" => "K_INDEX",
        Inet = "inet" => "K_INET",
        Infinity = "infinity" => "K_POSITIVE_INFINITY",
        InitCond = "initcond" => "K_INITCOND",
        Input = "input" => "K_INPUT",
        Insert = "insert" => "K_INSERT",
        Int = "int" => "K_INT",
        Internals = "internals" => "K_INTERNALS",
        Into = "into" => "K_INTO",
        Is = "is" => "K_IS",
        Json = "json" => "K_JSON",
        Key = "key" => "K_KEY",
        Keys = "keys" => "K_KEYS",
        Keyspace = "keyspace" => "K_KEYSPACE",
        Keyspaces = "keyspaces" => "K_KEYSPACES",
        Language = "language" => "K_LANGUAGE",
        Like = "like" => "K_LIKE",
        Limit = "limit" => "K_LIMIT",
        List = "list" => "K_LIST",
        Login = "login" => "K_LOGIN",
        Map = "map" => "K_MAP",
        Masked = "masked" => "K_MASKED",
        Materialized = "materialized" => "K_MATERIALIZED",
        MaxWriteTime = "maxwritetime" => "K_MAXWRITETIME",
        MBean = "mbean" => "K_MBEAN",
        MBeans = "mbeans" => "K_MBEANS",
        Modify = "modify" => "K_MODIFY",
        Nan = "nan" => "K_POSITIVE_NAN",
        NoLogin = "nologin" => "K_NOLOGIN",
        NoRecursive = "norecursive" => "K_NORECURSIVE",
        NoSuperuser = "nosuperuser" => "K_NOSUPERUSER",
        Not = "not" => "K_NOT",
        Null = "null" => "K_NULL",
        Of = "of" => "K_OF",
        On = "on" => "K_ON",
        Only = "only" => "K_ONLY",
        Options = "options" => "K_OPTIONS",
        Or = "or" => "K_OR",
        Order = "order" => "K_ORDER",
        Partition = "partition" => "K_PARTITION",
        Password = "password" => "K_PASSWORD",
        Per = "per" => "K_PER",
        Permission = "permission" => "K_PERMISSION",
        Permissions = "permissions" => "K_PERMISSIONS",
        Primary = "primary" => "K_PRIMARY",
        Rename = "rename" => "K_RENAME",
        Replace = "replace" => "K_REPLACE",
        Returns = "returns" => "K_RETURNS",
        Revoke = "revoke" => "K_REVOKE",
        Role = "role" => "K_ROLE",
        Roles = "roles" => "K_ROLES",
        Schema = "schema" => "K_SCHEMA",
        Select = "select" => "K_SELECT",
        SelectMasked = "select_masked" => "K_SELECT_MASKED",
        Set = "set" => "K_SET",
        SFunc = "sfunc" => "K_SFUNC",
        Smallint = "smallint" => "K_SMALLINT",
        Static = "static" => "K_STATIC",
        Storage = "storage" => "K_STORAGE",
        SType = "stype" => "K_STYPE",
        Superuser = "superuser" => "K_SUPERUSER",
        Superusers = "superusers" => "K_SUPERUSERS",
        Table = "table" => "K_COLUMNFAMILY",
        Tables = "tables" => "K_TABLES",
        Text = "text" => "K_TEXT",
        Time = "time" => "K_TIME",
        Timestamp = "timestamp" => "K_TIMESTAMP",
        Timeuuid = "timeuuid" => "K_TIMEUUID",
        Tinyint = "tinyint" => "K_TINYINT",
        To = "to" => "K_TO",
        Token = "token" => "K_TOKEN",
        Trigger = "trigger" => "K_TRIGGER",
        True = "true" => "BOOLEAN",
        Truncate = "truncate" => "K_TRUNCATE",
        Ttl = "ttl" => "K_TTL",
        Tuple = "tuple" => "K_TUPLE",
        Type = "type" => "K_TYPE",
        Types = "types" => "K_TYPES",
        Unlogged = "unlogged" => "K_UNLOGGED",
        Unmask = "unmask" => "K_UNMASK",
        Unset = "unset" => "K_UNSET",
        Update = "update" => "K_UPDATE",
        Use = "use" => "K_USE",
        User = "user" => "K_USER",
        Users = "users" => "K_USERS",
        Using = "using" => "K_USING",
        Uuid = "uuid" => "K_UUID",
        Values = "values" => "K_VALUES",
        Varchar = "varchar" => "K_VARCHAR",
        Varint = "varint" => "K_VARINT",
        Vector = "vector" => "K_VECTOR",
        View = "view" => "K_VIEW",
        Where = "where" => "K_WHERE",
        With = "with" => "K_WITH",
        WriteTime = "writetime" => "K_WRITETIME",
    }
    others {
        NegativeNan => "K_NEGATIVE_NAN",
        NegativeInfinity => "K_NEGATIVE_INFINITY",
        Identifier => "IDENT",
        QuotedName => "QUOTED_NAME",
        EmptyQuotedName => "EMPTY_QUOTED_NAME",
        /* Between single quotes. */
        StringLiteral => "STRING_LITERAL",
        DollarString => "STRING_LITERAL",
        Integer => "INTEGER",
        FloatLiteral => "FLOAT",
        DurationLiteral => "DURATION",
        UuidLiteral => "UUID",
        HexNumber => "HEXNUMBER",
        QuestionMark => "QMARK",
        Range => "RANGE",
        LeftParen => "'('",
        RightParen => "')'",
        LeftBracket => "'['",
        RightBracket => "']'",
        LeftBrace => "'{'",
        RightBrace => "'}'",
        Comma => "','",
        Semicolon => "';'",
        Colon => "':'",
        Dot => "'.'",
        Plus => "'+'",
        Minus => "'-'",
        Star => "'\\\\*'",
        Slash => "'/'",
        Percent => "'\\\\%'",
        PlusEq => "'+='",
        MinusEq => "'-='",
        EqSign => "'='",
        NeqSign => "'!='",
        Less => "'<'",
        LessEq => "'<='",
        Greater => "'>'",
        GreaterEq => "'>='",
        ExprOpen => "'expr('",
        Eof => "EOF",
    }
}

const LONGEST_KEYWORD: usize = 14;

impl Kind {
    /// Returns the keyword with this text, ignoring case. `None` if the text is not a keyword.
    pub(super) fn keyword(text: &[u8]) -> Option<Kind> {
        let mut lower = [0u8; LONGEST_KEYWORD];
        let lower = lower.get_mut(..text.len())?;
        lower.copy_from_slice(text);
        lower.make_ascii_lowercase();
        let found = KEYWORDS.binary_search_by(|(keyword, _)| keyword.as_bytes().cmp(lower));
        found
            .ok()
            .and_then(|index| KEYWORDS.get(index))
            .map(|(_, kind)| *kind)
    }

    /// Returns true for keywords that name a native type (the rule `native_type`).
    pub fn is_native_type(self) -> bool {
        use Kind::*;
        matches!(
            self,
            Ascii
                | Bigint
                | Blob
                | Boolean
                | Counter
                | Decimal
                | Double
                | Duration
                | Float
                | Inet
                | Int
                | Smallint
                | Text
                | Timestamp
                | Tinyint
                | Uuid
                | Varchar
                | Varint
                | Timeuuid
                | Date
                | Time
        )
    }

    /// Returns true for keywords that may be used as any identifier (the rule `basic_unreserved_keyword`).
    pub fn is_basic_unreserved(self) -> bool {
        use Kind::*;
        matches!(
            self,
            Keys | As
                | Cluster
                | Clustering
                | Compact
                | Storage
                | Tables
                | ColumnFamilies
                | Type
                | Types
                | Values
                | Map
                | List
                | Filtering
                | Permission
                | Permissions
                | Keyspaces
                | All
                | User
                | Users
                | Role
                | Roles
                | Identity
                | Superuser
                | Superusers
                | NoSuperuser
                | Login
                | NoLogin
                | Options
                | Password
                | Hashed
                | Generated
                | Exists
                | Custom
                | Trigger
                | Contains
                | Internals
                | Only
                | Static
                | Frozen
                | Tuple
                | Function
                | Functions
                | Aggregate
                | Aggregates
                | SFunc
                | SType
                | FinalFunc
                | InitCond
                | Returns
                | Language
                | Called
                | Input
                | Like
                | Per
                | Partition
                | Group
                | Datacenters
                | Cidrs
                | Access
                | Default
                | MBean
                | MBeans
                | Replace
                | Unset
                | Masked
                | Unmask
                | SelectMasked
                | Vector
                | Ann
                | Between
                | Check
        )
    }

    /// Returns true for keywords that may name a function (the rule `unreserved_function_keyword`).
    pub fn is_unreserved_function(self) -> bool {
        self.is_basic_unreserved() || self.is_native_type()
    }

    /// Returns true for keywords that may name a column (the rule `unreserved_keyword`).
    pub fn is_unreserved(self) -> bool {
        use Kind::*;
        self.is_unreserved_function()
            || matches!(
                self,
                Ttl | Count | WriteTime | MaxWriteTime | Key | Cast | Json | Distinct
            )
    }

    /// Returns true for tokens that may be an identifier (the rule `ident`).
    pub fn is_ident(self) -> bool {
        matches!(self, Kind::Identifier | Kind::QuotedName) || self.is_unreserved()
    }

    /// Returns true for string literals in single quotes and in dollars.
    pub fn is_string(self) -> bool {
        matches!(self, Kind::StringLiteral | Kind::DollarString)
    }

    /// Returns true for tokens that the rule `constant` accepts.
    pub fn is_constant(self) -> bool {
        use Kind::*;
        matches!(
            self,
            StringLiteral
                | DollarString
                | Integer
                | FloatLiteral
                | True
                | False
                | DurationLiteral
                | UuidLiteral
                | HexNumber
                | Nan
                | NegativeNan
                | Infinity
                | NegativeInfinity
        )
    }
}
