use proptest::prelude::*;

use crate::ast::*;
use crate::error::CqlError;
use crate::parser::parse_statement;

fn transaction(text: &str) -> Transaction {
    match parse_statement(text).map(|parsed| parsed.statement) {
        Ok(Statement::Transaction(transaction)) => *transaction,
        other => panic!("{text}: {other:?}"),
    }
}

fn syntax_error(text: &str) -> String {
    match parse_statement(text) {
        Err(CqlError::Syntax(message)) => message,
        other => panic!("{text}: {other:?}"),
    }
}

fn shown(reference: &RowReference) -> String {
    reference.to_string()
}

const TRANSFER: &str = "BEGIN TRANSACTION
  LET a = (SELECT balance FROM acc WHERE id = ?);
  LET b = (SELECT * FROM ks.acc WHERE id = ? LIMIT 1);
  SELECT a.balance, b.balance;
  IF a.balance >= 100 AND b IS NOT NULL THEN
    UPDATE acc SET balance -= 100 WHERE id = ?;
    UPDATE acc SET balance += 100 WHERE id = ?;
  END IF
COMMIT TRANSACTION";

#[test]
fn parts_are_in_the_order_of_the_text() {
    let parsed = parse_statement(TRANSFER).unwrap();
    assert_eq!(parsed.bind_markers.len(), 4);
    let transaction = transaction(TRANSFER);
    let names: Vec<&str> = transaction
        .assignments
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(names, ["a", "b"]);
    let [first, second] = transaction.assignments.as_slice() else {
        panic!("{transaction:?}");
    };
    assert_eq!((first.select.line, first.select.column), (2, 12));
    assert!(second.select.statement.items.is_empty() && second.select.statement.limit.is_some());
    let Returning::References(references) = &transaction.returning else {
        panic!("{transaction:?}");
    };
    assert_eq!(
        references.iter().map(shown).collect::<Vec<_>>(),
        ["a.balance", "b.balance"]
    );
    let [branch] = transaction.branches.as_slice() else {
        panic!("{transaction:?}");
    };
    assert_eq!((branch.conditions.len(), branch.writes.len()), (2, 2));
    assert!(transaction.otherwise.is_empty() && transaction.unconditional.is_empty());
    assert_eq!(transaction.tables().count(), 4);
}

#[test]
fn every_branch_has_its_own_writes() {
    let write = |k: i32| format!("INSERT INTO t (k) VALUES ({k});");
    let text = format!(
        "BEGIN TRANSACTION LET a = (SELECT v FROM t WHERE k = 0); IF a.v < 1 THEN {} ELSE IF a.v = 1 THEN {} {} ELSE {} \
         END IF {} COMMIT TRANSACTION;",
        write(1),
        write(2),
        write(3),
        write(4),
        write(5)
    );
    let transaction = transaction(&text);
    let counts: Vec<usize> = transaction
        .branches
        .iter()
        .map(|branch| branch.writes.len())
        .collect();
    assert_eq!(counts, [1, 2]);
    assert_eq!(
        (transaction.otherwise.len(), transaction.unconditional.len()),
        (1, 1)
    );
}

#[test]
fn conditions_may_begin_with_the_value() {
    let condition = |text: &str| {
        let text = format!(
            "BEGIN TRANSACTION LET a = (SELECT * FROM t WHERE k = 0); IF {text} THEN DELETE FROM t WHERE k = 1; END IF \
             COMMIT TRANSACTION"
        );
        let mut transaction = transaction(&text);
        transaction.branches.remove(0).conditions.remove(0)
    };
    let mirrored = [
        ("5 < a.v", "a.v > 5"),
        ("5 <= a.v", "a.v >= 5"),
        ("5 > a.v", "a.v < 5"),
        ("5 >= a.v", "a.v <= 5"),
        ("5 = a.v", "a.v = 5"),
        ("5 != a.v", "a.v != 5"),
        ("? = a.v", "a.v = ?"),
    ];
    for (reversed, plain) in mirrored {
        assert_eq!(condition(reversed), condition(plain), "{reversed}");
    }
    let references = ["a.v", "a.m['k']", "a.l[0]", "a.u.f", "a.\"Q\"", "a"];
    for reference in references {
        let of = condition(&format!("{reference} IS NULL")).reference;
        assert_eq!(shown(&of), reference.replace('"', ""));
    }
    assert!(matches!(
        condition("a.v = f(1) ").test,
        TransactionTest::Compare(Operator::Eq, _)
    ));
}

#[test]
fn written_values_may_be_references() {
    let values = [
        "UPDATE t SET v = a.v WHERE k = 1",
        "UPDATE t SET v += a.v, w -= a.m[1] WHERE k = 1",
        "UPDATE t SET v = v + a.v, w = w - a.v WHERE k = 1",
        "UPDATE t SET m['x'] = a.v, u.f = a.u.g WHERE k = 1",
        "INSERT INTO t (k, v, w) VALUES (1, a.v, a.l[0])",
    ];
    for value in values {
        transaction(&format!("BEGIN TRANSACTION {value}; COMMIT TRANSACTION"));
        assert!(
            parse_statement(value).is_err(),
            "a reference outside of a transaction: {value}"
        );
    }
    // A call of a function of a keyspace is no reference.
    transaction("BEGIN TRANSACTION UPDATE t SET v = ks.f(1) WHERE k = 1; COMMIT TRANSACTION");
}

#[test]
fn the_form_of_ycql_is_accepted() {
    let text = "BEGIN TRANSACTION INSERT INTO t (k) VALUES (1); DELETE FROM t WHERE k = 2; END TRANSACTION;";
    assert_eq!(transaction(text).unconditional.len(), 2);
}

#[test]
fn words_of_transactions_are_ordinary_names() {
    let names = ["transaction", "let", "then", "end", "commit", "else"];
    for name in names {
        parse_statement(&format!("SELECT {name} FROM {name} WHERE {name} = 1")).unwrap();
        parse_statement(&format!(
            "UPDATE t SET {name} = {name} + 1 WHERE k = 1 IF {name} = 2"
        ))
        .unwrap();
    }
    transaction(
        "BEGIN TRANSACTION LET let = (SELECT then FROM end WHERE k = 1); SELECT let.then; IF let.then = 1 THEN \
         UPDATE end SET commit = 1 WHERE k = 1; END IF COMMIT TRANSACTION",
    );
}

#[test]
fn syntax_errors_name_the_token() {
    let begin = "BEGIN TRANSACTION LET a = (SELECT v FROM t WHERE k = 1); ";
    let unfinished = syntax_error(&format!(
        "{begin}IF a.v = 1 THEN DELETE FROM t WHERE k = 1; COMMIT TRANSACTION"
    ));
    assert!(unfinished.contains("failed predicate"), "{unfinished}");
    let unopened = syntax_error("BEGIN TRANSACTION DELETE FROM t WHERE k = 1; END IF COMMIT TRANSACTION");
    assert!(unopened.contains("failed predicate"), "{unopened}");
    let both = syntax_error(&format!(
        "{begin}SELECT v FROM t WHERE k = 1; SELECT a.v; COMMIT TRANSACTION"
    ));
    assert!(both.contains("no viable alternative"), "{both}");
    let refused = [
        "SELECT a.v, b.v",
        "BEGIN TRANSACTION",
        "BEGIN TRANSACTION COMMIT",
        "BEGIN TRANSACTION DELETE FROM t WHERE k = 1 COMMIT TRANSACTION",
        "BEGIN TRANSACTION LET a = SELECT v FROM t WHERE k = 1; COMMIT TRANSACTION",
        "BEGIN TRANSACTION LET a = (SELECT v FROM t WHERE k = 1 ORDER BY c); COMMIT TRANSACTION",
        "BEGIN TRANSACTION LET a = (SELECT v FROM t); COMMIT TRANSACTION",
        "BEGIN TRANSACTION IF a.v = b.v THEN END IF COMMIT TRANSACTION",
        "BEGIN TRANSACTION IF a.v = 1 OR a.v = 2 THEN END IF COMMIT TRANSACTION",
        "BEGIN TRANSACTION DELETE FROM t WHERE k = 1; SELECT v FROM t WHERE k = 1; COMMIT TRANSACTION",
        "BEGIN TRANSACTION DELETE FROM t WHERE k = 1; COMMIT TRANSACTION SELECT",
    ];
    for text in refused {
        syntax_error(text);
    }
}

proptest! {
    /// Tokens of a transaction in any order never make the parser panic.
    #[test]
    fn any_order_of_tokens_is_parsed_or_refused(order in proptest::collection::vec(any::<proptest::sample::Index>(), 0..60)) {
        let tokens: Vec<&str> = TRANSFER.split_whitespace().chain(["ELSE", "a.b", "a.m[", "]", "?", "END"]).collect();
        let text: Vec<&str> = order.iter().map(|at| *at.get(&tokens)).collect();
        let _ = parse_statement(&format!("BEGIN TRANSACTION {}", text.join(" ")));
    }

    /// A transaction that lacks a part of its text is parsed or refused.
    #[test]
    fn any_part_of_a_transaction_may_be_missing(from in 0..TRANSFER.len(), len in 0..80_usize) {
        let to = (from + len).min(TRANSFER.len());
        let _ = parse_statement(&format!("{}{}", &TRANSFER[..from], &TRANSFER[to..]));
    }
}
