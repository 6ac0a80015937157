//! Tests functions over large values. Whatever one call of a method creates or reads, it allocates little beyond the limits, and ends when
//! the function's time is over.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::{Duration, Instant};

use helenus_cql::types::CqlType;
use helenus_cql::value::CqlValue;

use crate::context::Context;
use crate::function_tests::NoTypes;
use crate::value::Value;
use crate::{Failure, Function, Signature, budget, interpret};

/// Counts the bytes that each thread holds, and the most that it has held.
struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // The access fails in a thread that is ending.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        let _ = MOST.try_with(|most| most.set(most.get().max(held.get())));
    });
}

#[expect(unsafe_code, reason = "an allocator is unsafe to write")]
// SAFETY: all calls are passed on unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller has the same obligations.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: the caller has the same obligations.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Maximum bytes that a function may hold at once: its allocation limit, and some more for texts that are being copied.
const HELD_MAX: isize = 400 << 20;

/// Returns a function with this body. Its parameters are a text `t`, a list of texts `l` and a blob `b`.
fn compile(body: &str) -> Function {
    let signature = Signature {
        arguments: vec![
            ("t".to_owned(), CqlType::TEXT),
            ("l".to_owned(), CqlType::list(CqlType::TEXT, false)),
            ("b".to_owned(), CqlType::BLOB),
        ],
        returns: CqlType::INT,
        is_called_on_null: false,
    };
    Function::compile(body, signature).unwrap_or_else(|error| panic!("{body}: {error}"))
}

/// Returns arguments of about `len` bytes each.
fn arguments(len: usize) -> Vec<Option<CqlValue>> {
    let elements = (0..len / 32).map(|number| CqlValue::Text(format!("{:09}", number * 7_919 % 1_000_003)));
    vec![
        Some(CqlValue::Text("x,".repeat(len / 2))),
        Some(CqlValue::List(elements.collect())),
        Some(CqlValue::Blob(vec![7; len].into())),
    ]
}

/// Bodies that each do one operation on a large value.
const BODIES: &[&str] = &[
    "return t.split(\",\").length;",
    "return t.split(\"\").length;",
    "return t.toCharArray().length;",
    "return t.getBytes().length;",
    "return b.array().length;",
    "return new String(t.toCharArray()).length();",
    "return t.replaceAll(\"x\", \"y\").length();",
    "return t.replaceAll(\"(.)\", \"$1\").length();",
    "return t.replace(\"x\", \"y\").length();",
    "return t.toUpperCase().length();",
    "return t.substring(1).length();",
    "return t.concat(t).length();",
    "return (t + t).length();",
    "return t.compareTo(t.substring(2));",
    "return t.equalsIgnoreCase(t) ? 1 : 0;",
    "return t.matches(\"(x,)*\") ? 1 : 0;",
    "return t.hashCode();",
    "return t.lastIndexOf(\"z\");",
    "return String.format(\"%s%s\", t, t).length();",
    "return String.join(t, l).length();",
    "return new StringBuilder(t).reverse().length();",
    "StringBuilder s = new StringBuilder(t); s.insert(1, t); return s.length();",
    "Collections.sort(l); return l.size();",
    "Object[] a = {l, l}; Arrays.sort(a); return 1;",
    "return new HashSet<String>(l).size();",
    "return new TreeSet<String>(l).size();",
    "return new ArrayList<String>(l).size();",
    "Set<String> s = new LinkedHashSet<String>(); s.addAll(l); return s.size();",
    "l.removeAll(new ArrayList<String>(l)); return l.size();",
    "return l.containsAll(l) ? 1 : 0;",
    "return l.contains(t) ? 1 : 0;",
    "return l.subList(1, l.size()).size();",
    "return l.equals(new ArrayList<String>(l)) ? 1 : 0;",
    "return l.hashCode();",
    "return l.toString().length();",
    "l.addAll(l); return l.size();",
    "int n = 0; for (String s : l) n++; return n;",
    "Iterator<String> i = l.iterator(); return i.hasNext() ? 1 : 0;",
    "return Collections.max(l).length();",
    "Collections.reverse(l); return l.size();",
    "return Arrays.asList(t.toCharArray()).size();",
    "return ByteBuffer.wrap(t.getBytes()).remaining();",
    "return ByteBuffer.allocate(16000000).put(b).remaining();",
    "return b.compareTo(b.duplicate());",
    "return new int[100000].length;",
    "return new int[300][100000].length;",
];

#[test]
fn large_values_stay_within_the_memory() {
    let arguments = arguments(6 << 20);
    for body in BODIES {
        let (function, arguments) = (compile(body), arguments.clone());
        let before = HELD.get();
        MOST.set(before);
        let result = function.call(arguments, &NoTypes, Instant::now() + Duration::from_millis(100));
        let held = MOST.get() - before;
        assert!(held < HELD_MAX, "{held} bytes: {body}: {result:?}");
    }
}

/// Checks that a call of a method over a large value ends with the function's time, before it has a result.
#[test]
fn large_values_end_with_the_time() {
    let arguments = arguments(1 << 20);
    for body in BODIES {
        let function = compile(body);
        let context = Context {
            signature: &function.signature,
            types: &NoTypes,
        };
        let _running = budget::begin(Instant::now() + Duration::from_secs(3600));
        let declared = function.signature.arguments.iter().zip(arguments.clone());
        let arguments = declared.map(|((_, ty), value)| Value::of_parameter(ty, value).unwrap());
        let arguments = arguments.collect();
        budget::expire();
        let result = interpret::run(&function.body, arguments, &context);
        assert_eq!(result, Err(Failure::TimedOut), "{body}");
    }
}

/// Checks that reading arguments counts against time and memory, too.
#[test]
fn large_arguments_are_counted() {
    let function = compile("return 1;");
    let late = function.call(arguments(1 << 20), &NoTypes, Instant::now());
    assert_eq!(late, Err(Failure::TimedOut));
    let mut arguments = arguments(32);
    arguments[1] = Some(CqlValue::List(vec![CqlValue::Text(String::new()); 6_000_000]));
    let before = HELD.get();
    MOST.set(before);
    let failure = function.call(arguments, &NoTypes, Instant::now() + Duration::from_secs(60));
    assert!(failure.unwrap_err().to_string().contains("OutOfMemoryError"));
    assert!(MOST.get() - before < 1 << 20);
}
