//! Conditions of transactions, tested on rows in memory.

use std::collections::HashMap;

use bytes::Bytes;
use helenus_cql::parser::parse_statement;
use helenus_cql::types::CqlType;
use helenus_cql::value::pack::{pack_list, pack_map, pack_set};

use crate::analysis::transaction::TransactionPlan;
use crate::analysis::transaction::condition::ReadValues;
use crate::analysis::{EvalContext, Plan, plan};
use crate::clock::SystemClock;
use crate::engine::ddl::in_memory::InMemorySchema;
use crate::request::BoundValue;

/// A row of the table `t`, by the names of its columns. `None` if it does not exist.
struct Row<'r> {
    plan: &'r TransactionPlan,
    columns: Option<HashMap<&'static str, Bytes>>,
}

impl ReadValues for Row<'_> {
    fn exists(&self, _read: usize) -> bool {
        self.columns.is_some()
    }

    fn column(&self, read: usize, column: usize) -> Option<Bytes> {
        let table = self.plan.reads.get(read)?.select.table();
        let name = table.columns.get(column)?.name.as_str();
        self.columns.as_ref()?.get(name).cloned()
    }
}

fn int(value: i32) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

fn row() -> HashMap<&'static str, Bytes> {
    HashMap::from([
        ("v", int(5)),
        ("m", pack_map(&CqlType::TEXT, [("x", int(-5))])),
        ("l", pack_list([int(10), int(20)])),
        ("s", pack_set(&CqlType::INT, [int(3)])),
    ])
}

/// Returns true if the condition on the row `a` holds. The values are those of its markers.
fn holds(
    condition: &str,
    values: &[BoundValue],
    columns: Option<HashMap<&'static str, Bytes>>,
) -> Result<bool, String> {
    let mut schema = InMemorySchema::new("k");
    let table = "CREATE TABLE t (k int PRIMARY KEY, v int, w int, m map<text, int>, l list<int>, s set<int>) \
                 WITH transactional_mode = 'full'";
    schema.apply(table).unwrap();
    let text = format!(
        "BEGIN TRANSACTION LET a = (SELECT * FROM t WHERE k = 1); IF {condition} THEN DELETE FROM t WHERE k = 1; END IF \
         COMMIT TRANSACTION"
    );
    let parsed = parse_statement(&text).map_err(|error| error.to_string())?;
    let planned = plan(&schema.schema, Some("k"), &parsed).map_err(|error| error.to_string())?;
    let Plan::Transaction(plan) = &planned.plan else {
        panic!("{text}");
    };
    let eval = EvalContext {
        values,
        clock: &SystemClock,
        protocol_version: 5,
    };
    let row = Row { plan, columns };
    let mut all = true;
    for condition in plan.branches.iter().flat_map(|branch| &branch.conditions) {
        all &= condition.holds(&row, &eval).map_err(|error| error.to_string())?;
    }
    Ok(all)
}

#[test]
fn each_operator_compares_with_the_value() {
    let expected = [
        ("=", [false, true, false]),
        ("!=", [true, false, true]),
        ("<", [false, false, true]),
        ("<=", [false, true, true]),
        (">", [true, false, false]),
        (">=", [true, true, false]),
    ];
    for (operator, answers) in expected {
        for (value, answer) in [4, 5, 6].into_iter().zip(answers) {
            let condition = format!("a.v {operator} {value}");
            assert_eq!(holds(&condition, &[], Some(row())), Ok(answer), "{condition}");
            let bound = [BoundValue::Set(int(value))];
            assert_eq!(
                holds(&format!("a.v {operator} ?"), &bound, Some(row())),
                Ok(answer)
            );
        }
    }
}

#[test]
fn comparison_with_a_null_never_holds() {
    for operator in ["=", "!=", "<", "<=", ">", ">="] {
        for subject in ["a.w", "a.m['y']", "a.l[2]"] {
            let condition = format!("{subject} {operator} 1");
            assert_eq!(holds(&condition, &[], Some(row())), Ok(false), "{condition}");
            assert_eq!(holds(&condition, &[], None), Ok(false), "{condition}, no row");
        }
    }
}

#[test]
fn null_is_tested_by_is_null_only() {
    for (subject, is_null) in [
        ("a", false),
        ("a.v", false),
        ("a.w", true),
        ("a.m['x']", false),
        ("a.m['y']", true),
        ("a.l[1]", false),
        ("a.l[2]", true),
        ("a.s[3]", false),
        ("a.s[4]", true),
    ] {
        assert_eq!(
            holds(&format!("{subject} IS NULL"), &[], Some(row())),
            Ok(is_null),
            "{subject}"
        );
        assert_eq!(
            holds(&format!("{subject} IS NOT NULL"), &[], Some(row())),
            Ok(!is_null)
        );
        assert_eq!(holds(&format!("{subject} IS NULL"), &[], None), Ok(true));
    }
    let refused = "Invalid comparison with null for operator; use IS NULL or IS NOT NULL instead";
    assert_eq!(holds("a.v = null", &[], Some(row())), Err(refused.to_owned()));
    assert_eq!(
        holds("a.v = ?", &[BoundValue::Null], Some(row())),
        Err(refused.to_owned())
    );
    // The value is refused although the row does not exist.
    assert_eq!(
        holds("a.v = ?", &[BoundValue::Null], None),
        Err(refused.to_owned())
    );
    assert!(holds("a.v = ?", &[BoundValue::Unset], Some(row())).is_err());
}

#[test]
fn parts_and_whole_collections_are_compared_by_their_types() {
    for (condition, answer) in [
        // By the type of the keys, -5 would be more than 3.
        ("a.m['x'] < 3", true),
        ("a.m = {'x': -5}", true),
        ("a.m != {'x': -5}", false),
        ("a.l[0] = 10 AND a.l[1] = 20", true),
        ("a.l[0] = 10 AND a.l[1] = 21", false),
        ("a.l = [10, 20]", true),
        ("a.s = {3}", true),
        ("a.s = {4}", false),
    ] {
        assert_eq!(holds(condition, &[], Some(row())), Ok(answer), "{condition}");
    }
    let element = [
        BoundValue::Set(Bytes::from_static(b"x")),
        BoundValue::Set(int(-5)),
    ];
    assert_eq!(holds("a.m[?] = ?", &element, Some(row())), Ok(true));
}

#[test]
fn what_cannot_be_compared_is_refused() {
    for condition in [
        "a = 1",
        "a.q = 1",
        "b.v = 1",
        "a.v[0] = 1",
        "a.v.f = 1",
        "a.s[3] = 3",
        "a.v = 'text'",
        "a.l[-1] = 1",
    ] {
        assert!(holds(condition, &[], Some(row())).is_err(), "{condition}");
    }
}
