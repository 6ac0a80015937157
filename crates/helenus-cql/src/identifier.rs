//! Identifiers and texts, as CQL shows them.

/// Returns an identifier as CQL shows it: in double quotes unless it is a plain lower-case name and not a reserved word (Cassandra's
/// `ColumnIdentifier.maybeQuote`).
pub fn quote_identifier(name: &str) -> String {
    let mut chars = name.chars();
    let plain = chars.next().is_some_and(|c| c.is_ascii_lowercase())
        && chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain && !is_reserved_word(name) {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

/// Returns a text as a string literal: in single quotes, with inner quotes doubled.
pub fn quote_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Returns a name with its keyspace, each as [`quote_identifier`] shows it.
pub fn quote_qualified(keyspace: &str, name: &str) -> String {
    format!("{}.{}", quote_identifier(keyspace), quote_identifier(name))
}

/// Returns true for words that can't be a bare identifier (Cassandra's `ReservedKeywords`). `name` is in lower case.
fn is_reserved_word(name: &str) -> bool {
    const RESERVED: [&str; 56] = [
        "add",
        "allow",
        "alter",
        "and",
        "apply",
        "asc",
        "authorize",
        "batch",
        "begin",
        "by",
        "columnfamily",
        "create",
        "delete",
        "desc",
        "describe",
        "drop",
        "entries",
        "execute",
        "from",
        "full",
        "grant",
        "if",
        "in",
        "index",
        "infinity",
        "insert",
        "into",
        "is",
        "keyspace",
        "limit",
        "materialized",
        "modify",
        "nan",
        "norecursive",
        "not",
        "null",
        "of",
        "on",
        "or",
        "order",
        "primary",
        "rename",
        "revoke",
        "schema",
        "select",
        "set",
        "table",
        "to",
        "token",
        "truncate",
        "unlogged",
        "update",
        "use",
        "using",
        "view",
        "where",
    ];
    RESERVED.contains(&name) || name == "with"
}
