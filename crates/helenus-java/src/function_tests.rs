//! Tests functions as users write them.

use std::time::{Duration, Instant};

use helenus_cql::types::CqlType;
use helenus_cql::value::CqlValue;

use crate::{Failure, Function, Signature, Types};

pub(crate) struct NoTypes;

impl Types for NoTypes {
    fn user_type(&self, _: &str) -> Option<CqlType> {
        None
    }

    fn named(&self, _: &str) -> Option<CqlType> {
        None
    }
}

fn compile(source: &str, arguments: &[(&str, CqlType)], returns: CqlType) -> Result<Function, String> {
    let arguments = arguments
        .iter()
        .map(|(name, ty)| ((*name).to_owned(), ty.clone()));
    let signature = Signature {
        arguments: arguments.collect(),
        returns,
        is_called_on_null: true,
    };
    Function::compile(source, signature).map_err(|error| {
        let error = error.to_string();
        let lines = error.strip_prefix("Java source compilation failed:\n");
        lines.map_or(error.as_str(), str::trim_end).to_owned()
    })
}

fn call(function: &Function, arguments: Vec<Option<CqlValue>>) -> Result<Option<CqlValue>, Failure> {
    function.call(arguments, &NoTypes, Instant::now() + Duration::from_secs(5))
}

/// Returns the `int` that a body returns for two arguments.
fn int(source: &str, a: i32, b: i32) -> Result<Option<CqlValue>, Failure> {
    let function = compile(source, &[("a", CqlType::INT), ("b", CqlType::INT)], CqlType::INT).unwrap();
    call(&function, vec![Some(CqlValue::Int(a)), Some(CqlValue::Int(b))])
}

fn is_int(source: &str, expected: i32) {
    assert_eq!(int(source, 7, 3), Ok(Some(CqlValue::Int(expected))), "{source}");
}

fn text(source: &str) -> String {
    let function = compile(source, &[("t", CqlType::TEXT)], CqlType::TEXT).unwrap();
    match call(&function, vec![Some(CqlValue::Text("Helenus".into()))]) {
        Ok(Some(CqlValue::Text(text))) => text,
        other => panic!("{source}: {other:?}"),
    }
}

fn refused(source: &str) -> String {
    compile(source, &[("a", CqlType::INT), ("t", CqlType::TEXT)], CqlType::INT).unwrap_err()
}

#[test]
fn numbers_are_computed_with_as_in_java() {
    is_int("return a / b;", 2);
    is_int("return -a % b;", -1);
    is_int("return Integer.MAX_VALUE + a - 6;", i32::MIN);
    is_int("return a << 33 | 1;", 15);
    is_int("return -1 >>> 28;", 15);
    is_int("return -8 >> 1;", -4);
    is_int("return (int) 3.99e10;", i32::MAX);
    is_int("return (byte) 200 + (char) -1;", 65_479);
    is_int("long l = a; l *= 2.5; return (int) l;", 17);
    is_int("int i = a; i += 0.9; return i++ + ++i;", 16);
    is_int("return a > b && !(a == b) ? 1 : 0;", 1);
    is_int("return (a & 6) ^ ~0;", -7);
    is_int("return (a) - b;", 4);
    is_int(
        "return Math.max(a, b) + Math.abs(-2) + (int) Math.round(2.5);",
        12,
    );
    is_int("return 'a' + 1;", 98);
    let by_zero = int("return a / (b - 3);", 7, 3).unwrap_err();
    assert_eq!(by_zero.to_string(), "java.lang.ArithmeticException: / by zero");
}

#[test]
fn statements_run_in_their_order() {
    is_int(
        "int sum = 0; for (int i = 0, j = 10; i < j; i++, j--) sum += i; return sum;",
        10,
    );
    is_int(
        "int i = 0; while (true) { i++; if (i == 3) continue; if (i > 5) break; } return i;",
        6,
    );
    is_int("int i = 0; do { i++; } while (i < 4); return i;", 4);
    is_int(
        "switch (a) { case 1: return 1; case 7: b = b * 2; default: b++; } return b;",
        7,
    );
    is_int("switch ((char) (a + 90)) { case 'a': return 1; } return 2;", 1);
    is_int(
        "try { throw new IllegalStateException(\"no\"); } catch (RuntimeException e) { return e.getMessage().length(); }",
        2,
    );
    is_int(
        "int i = 1; try { i = 1 / (b - 3); } catch (Exception e) { i = 5; } finally { i++; } return i;",
        6,
    );
    is_int(
        "if (a == 1) return 1; else if (a == 7) return 2; else return 3;",
        2,
    );
    is_int("{ int c = 1; a += c; } int c = 2; return a + c;", 10);
}

#[test]
fn nulls_and_exceptions_come_out_as_failures() {
    let function = compile("return a + 1;", &[("a", CqlType::INT)], CqlType::INT).unwrap();
    assert_eq!(
        call(&function, vec![None]).unwrap_err().to_string(),
        "java.lang.NullPointerException: Cannot invoke \"java.lang.Integer.intValue()\" because \"<parameter1>\" is null"
    );
    let function = compile("return a == null ? 0 : a;", &[("a", CqlType::INT)], CqlType::INT).unwrap();
    assert_eq!(call(&function, vec![None]), Ok(Some(CqlValue::Int(0))));
    let thrown = int("throw new RuntimeException(\"no \" + a);", 7, 3).unwrap_err();
    assert_eq!(thrown.to_string(), "java.lang.RuntimeException: no 7");
    let null = compile("return null;", &[], CqlType::INT).unwrap();
    assert_eq!(call(&null, vec![]), Ok(None));
}

#[test]
fn a_function_ends_when_its_time_is_over() {
    let function = compile("while (true) { }", &[], CqlType::INT).unwrap();
    let stopped = function.call(vec![], &NoTypes, Instant::now() + Duration::from_millis(20));
    assert_eq!(stopped, Err(Failure::TimedOut));
}

#[test]
fn texts_are_put_together_and_taken_apart() {
    assert_eq!(
        text("return t + 1 + 2.0 + 'c' + true + null;"),
        "Helenus12.0ctruenull"
    );
    assert_eq!(
        text("return t.substring(1, 4).toUpperCase() + t.indexOf(\"nus\") + t.charAt(0);"),
        "ELE4H"
    );
    assert_eq!(
        text(
            "StringBuilder b = new StringBuilder(); for (int i = 0; i < 3; i++) b.append(i).append(','); return b.toString();"
        ),
        "0,1,2,"
    );
    assert_eq!(
        text("return String.format(\"%s-%03d-%.2f%%\", t, 7, 1.005);"),
        "Helenus-007-1.01%"
    );
    assert_eq!(
        text("return Integer.toHexString(255) + Long.valueOf(7).toString();"),
        "ff7"
    );
    assert_eq!(
        text("return t.replace(\"e\", \"\").trim().concat(\"!\");"),
        "Hlnus!"
    );
}

#[test]
fn collections_and_their_generics() {
    let list = CqlType::list(CqlType::INT, true);
    let function = compile(
        "java.util.Map<String, java.util.List<Integer>> m = new java.util.TreeMap<>(); int sum = 0; for (Integer i : l) sum += i; l.add(sum); return l;",
        &[("l", list.clone())],
        list.clone(),
    )
    .unwrap();
    let numbers = |numbers: &[i32]| {
        Some(CqlValue::List(
            numbers.iter().copied().map(CqlValue::Int).collect(),
        ))
    };
    assert_eq!(call(&function, vec![numbers(&[1, 2])]), Ok(numbers(&[1, 2, 3])));
    let map = CqlType::map(CqlType::TEXT, CqlType::INT, true);
    let function = compile(
        "m.put(\"b\", (Integer) m.get(\"a\") + 1); return m;",
        &[("m", map.clone())],
        map,
    )
    .unwrap();
    let entry = |key: &str, value| (CqlValue::Text(key.into()), CqlValue::Int(value));
    assert_eq!(
        call(&function, vec![Some(CqlValue::Map(vec![entry("a", 1)]))]),
        Ok(Some(CqlValue::Map(vec![entry("a", 1), entry("b", 2)])))
    );
}

#[test]
fn sets_and_maps_go_in_the_order_of_their_class() {
    let filled = |class: &str| {
        text(&format!(
            "Map<String, Integer> m = new {class}<String, Integer>(); m.put(\"b\", 1); m.put(\"alpha\", 2); m.put(\"zeta\", 3); return m.toString();"
        ))
    };
    assert_eq!(filled("LinkedHashMap"), "{b=1, alpha=2, zeta=3}");
    assert_eq!(filled("TreeMap"), "{alpha=2, b=1, zeta=3}");
    // In a table of 16 buckets, "zeta" is in the first, "b" in the third and "alpha" in the eighth. 17 and 1 share a bucket, and so do 25
    // and 9.
    assert_eq!(filled("HashMap"), "{zeta=3, b=1, alpha=2}");
    let numbers = "Set<Integer> s = new HashSet<Integer>(); for (int i = 0; i < 4; i++) s.add(25 - i * 8); return s.toString();";
    assert_eq!(text(numbers), "[17, 1, 25, 9]");
}

#[test]
fn arrays() {
    is_int(
        "int[] x = {a, b}; x[0]++; x[1] += 5; return x[0] * 100 + x[1] + x.length;",
        810,
    );
    is_int(
        "int[][] x = new int[2][3]; x[1][2] = a; return x[1][2] + x[0].length;",
        10,
    );
    is_int(
        "int sum = 0; for (int v : new int[]{1, 2, 3}) sum += v; return sum;",
        6,
    );
    is_int("return \"a,b,,\".split(\",\").length;", 2);
    is_int("return new int[1][].length;", 1);
    let failure = int("int[] x = new int[a]; return x[a];", 7, 3).unwrap_err();
    assert_eq!(
        failure.to_string(),
        "java.lang.ArrayIndexOutOfBoundsException: Index 7 out of bounds for length 7"
    );
}

/// Returns the error that a body throws.
fn thrown(source: &str) -> String {
    int(source, 7, 3).unwrap_err().to_string()
}

#[test]
fn a_function_takes_no_more_than_it_may() {
    let overflow = "java.lang.RuntimeException: java.lang.StackOverflowError";
    let memory = "java.lang.RuntimeException: java.lang.OutOfMemoryError: Java heap space";
    assert_eq!(
        thrown("List<Object> l = new ArrayList<Object>(); l.add(l); return l.toString().length();"),
        overflow
    );
    assert_eq!(
        thrown("List<Object> l = new ArrayList<Object>(); l.add(l); return l.hashCode();"),
        overflow
    );
    assert_eq!(thrown("String s = \"x\"; while (true) s = s + s;"), memory);
    assert_eq!(
        thrown("List<Object> l = new ArrayList<Object>(); while (true) l.add(new ArrayList<Object>(l));"),
        memory
    );
    assert_eq!(
        thrown(
            "List<Object> l = new ArrayList<Object>(); for (int i = 0; i < 60; i++) { List<Object> m = new ArrayList<Object>(); m.add(l); m.add(l); l = m; } return l.toString().length();"
        ),
        memory
    );
    assert_eq!(
        thrown("return String.format(\"%f\", new java.math.BigDecimal(\"1E+2000000000\")).length();"),
        memory
    );
    is_int(
        "return String.format(\"%.2f\", new java.math.BigDecimal(\"1E-2000000000\")).length();",
        4,
    );
    assert_eq!(
        thrown("int[] x = new int[-1]; return 1;"),
        "java.lang.NegativeArraySizeException: -1"
    );
    // Both bodies nest lists very deeply, from the inside and from the outside. Releasing such lists must not overflow the stack.
    let inside = "List<Object> l = new ArrayList<Object>(); for (int i = 0; i < 50000; i++) { List<Object> m = new ArrayList<Object>(); m.add(l); l = m; } return l.size();";
    is_int(inside, 1);
    let outside = "List<Object> all = new ArrayList<Object>(); List<Object> l = all; for (int i = 0; i < 50000; i++) { List<Object> m = new ArrayList<Object>(); l.add(m); l = m; } return all.size();";
    is_int(outside, 1);
}

#[test]
fn tuples_are_changed_in_place() {
    let tuple = CqlType::tuple(vec![CqlType::INT, CqlType::BIGINT]);
    let source = "if (v != null) { s.setInt(0, s.getInt(0) + 1); s.setLong(1, s.getLong(1) + v.intValue()); } return s;";
    let function = compile(
        source,
        &[("s", tuple.clone()), ("v", CqlType::INT)],
        tuple.clone(),
    )
    .unwrap();
    let state = |count, sum| {
        Some(CqlValue::Tuple(vec![
            Some(CqlValue::Int(count)),
            Some(CqlValue::Bigint(sum)),
        ]))
    };
    assert_eq!(
        call(&function, vec![state(1, 10), Some(CqlValue::Int(5))]),
        Ok(state(2, 15))
    );
    let made = compile(
        "TupleValue t = udfContext.newReturnTupleValue(); t.setInt(0, 4); return t;",
        &[],
        tuple,
    )
    .unwrap();
    assert_eq!(
        call(&made, vec![]),
        Ok(Some(CqlValue::Tuple(vec![Some(CqlValue::Int(4)), None])))
    );
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    assert_eq!(
        refused("return \"x\";"),
        "Line 1: Type mismatch: cannot convert from String to Integer"
    );
    assert_eq!(
        refused("\nreturn x;"),
        "Line 2: x cannot be resolved to a variable"
    );
    assert_eq!(
        refused("int b = 1"),
        "Line 1: Syntax error, insert \";\" to complete BlockStatements"
    );
    assert_eq!(
        refused("a = 2;"),
        "Line 1: This method must return a result of type Integer"
    );
    assert_eq!(refused("return Foo.bar();"), "Line 1: Foo cannot be resolved");
    assert_eq!(
        refused("int a = 1; return a;"),
        "Line 1: Duplicate local variable a"
    );
    assert_eq!(
        refused("return 1L;"),
        "Line 1: Type mismatch: cannot convert from long to Integer"
    );
    assert!(refused("if (t) return 1; return 2;").contains("from String to boolean"));
    assert!(refused("return a.b;").contains("b cannot be resolved or is not a field"));
    assert_eq!(
        refused("Thread x = new Thread();\nreturn x + 1;"),
        "Line 1: Thread cannot be resolved to a type\nLine 1: Thread cannot be resolved to a type"
    );
    assert_eq!(refused("return 1; return 2;"), "Line 1: Unreachable code");
    assert_eq!(
        refused("synchronized (this) { notify(); } return a;"),
        "Java UDF validation failed: [call to java.lang.Object.notify(), use of synchronized]"
    );
    assert_eq!(
        refused("return a; } static final int field = 1; { a++;"),
        "Java UDF validation failed: [field declared: field, initializer declared]"
    );
    assert_eq!(
        refused("return t.length(1);"),
        "Line 1: The method length() in the type String is not applicable for the arguments (int)"
    );
    assert!(refused(&format!("return a{};", " + 1".repeat(10_000))).contains("nested too deeply"));
    assert!(
        refused(&format!("return {}a{};", "(".repeat(1000), ")".repeat(1000))).contains("nested too deeply")
    );
}
