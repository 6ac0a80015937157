//! The shape of a statement: its text without literal values.

use helenus_cql::lexer::{Kind, tokenize};

/// Returns the statement with `?` instead of each constant. It ends before text that is not a token, such as an unterminated string.
pub fn without_values(statement: &str) -> String {
    let tokens = tokenize(statement);
    let end = tokens.error.map_or(statement.len(), |error| error.offset);
    let mut shape = String::with_capacity(statement.len());
    let mut copied = 0;
    for token in &tokens.tokens {
        let (start, behind) = (token.start as usize, token.end as usize);
        if behind > end || token.kind == Kind::Eof {
            break;
        }
        if token.kind.is_constant() {
            shape.push_str(statement.get(copied..start).unwrap_or_default());
            shape.push('?');
            copied = behind;
        }
    }
    // An unterminated string begins before the position of the error.
    let rest = statement.get(copied..end).unwrap_or_default();
    shape.push_str(rest.split(['\'', '$']).next().unwrap_or_default());
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_left_out() {
        assert_eq!(
            without_values(
                "SELECT * FROM s.\"T\" WHERE k = 1 AND name IN ('it''s', $$x$$) AND b = 0xff AND d = -1.5e3 LIMIT 10"
            ),
            "SELECT * FROM s.\"T\" WHERE k = ? AND name IN (?, ?) AND b = ? AND d = ? LIMIT ?"
        );
        assert_eq!(
            without_values("INSERT INTO t (k) VALUES (?)"),
            "INSERT INTO t (k) VALUES (?)"
        );
        let cut = without_values("INSERT INTO t (k, v) VALUES (1, 'a secret that was cu");
        assert!(
            !cut.contains("secret") && cut.starts_with("INSERT INTO t (k, v) VALUES (?, "),
            "{cut}"
        );
    }
}
