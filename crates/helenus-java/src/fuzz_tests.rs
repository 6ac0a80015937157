//! Fuzzes bodies: pieces are cut, doubled, swapped and taken from other bodies. Each body is either refused or can be called, and does not
//! panic, take long or overflow the stack. `HELENUS_FUZZ_SECONDS` is the time to run, one second if it is not set. The target in `fuzz/`
//! uses the same entry points.

use std::time::{Duration, Instant};

use helenus_cql::types::CqlType;
use helenus_cql::value::CqlValue;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::function_tests::NoTypes;
use crate::lexer::is_word_start;
use crate::{Function, Signature};

const SEEDS: &[&str] = &[
    "int sum = 0; for (int k = 0, j = 10; k < j; k++, j--) sum += k * l.get(0) % 3; return sum;",
    "StringBuilder b = new StringBuilder(); while (b.length() < 50) b.append(t).append('-').insert(0, 1.5); return b.toString().indexOf(\"nus\");",
    "List<Object> a = new ArrayList<Object>(); for (Integer x : l) { List<Object> c = new ArrayList<Object>(a); c.add(a); a.add(c); a = c; } return a.toString().length() + a.hashCode();",
    "Map<String, Object> m = new TreeMap<String, Object>(); m.put(t, l); m.put(\"x\", m.entrySet()); m.put(\"y\", m.values()); for (Map.Entry<String, Object> e : m.entrySet()) i += e.getKey().length(); return m.size();",
    "Set<Object> s = new HashSet<Object>(); s.add(l); s.add(s); s.add(t); return s.contains(i) ? 1 : s.size();",
    "try { p.setInt(0, i); return p.getInt(0) / 0; } catch (ArithmeticException | NullPointerException e) { return e.getMessage().length(); } finally { i = 5; }",
    "int[][] x = new int[3][]; x[1] = new int[]{1, 2, 3}; x[1][2] <<= 33; Object[] o = {x, t, l, null}; o[3] = o; return x[1].length + o.length;",
    "String[] parts = t.split(\"[e-n]+\"); String r = \"\"; for (String s : parts) r = r + s.replaceAll(\"(.)\", \"$1$1\"); return r.replace(\"\", r).length();",
    "java.math.BigInteger n = new java.math.BigInteger(\"123456789\"); do { n = n.multiply(n).pow(2); } while (n.bitLength() < 5000000); return n.intValue();",
    "java.math.BigDecimal d = new java.math.BigDecimal(\"1e1000000\"); return d.add(new java.math.BigDecimal(\"1e-1000000\")).multiply(d).toString().length();",
    "switch (i) { case 1: return 1; case 7: i = -i; break; default: i++; } Object o = i; return o instanceof Integer ? (Integer) o : (int) 3.5e10;",
    "l.addAll(l); l.removeAll(l); l.retainAll(l); Collections.sort(l); Collections.reverse(l); Iterator<Integer> it = l.iterator(); while (it.hasNext()) i += it.next(); return i;",
    "return String.format(\"%s-%03d-%.2f%%-%x\", t, i, 1.5, 255).compareTo(String.join(\",\", \"a\", t, t)) + Character.getNumericValue(t.charAt(i - 1));",
    "ByteBuffer b = ByteBuffer.wrap(t.getBytes()); return b.getInt(1) ^ b.get(0) + b.remaining() & ~(int) b.getLong(0);",
    "UUID u = new java.util.UUID(5L, -7L); java.util.Date d = new Date(86400000L); d.setTime(d.getTime() * Long.MAX_VALUE); return u.toString().length() + d.toString().length() + d.compareTo(new Date(0L));",
    "TupleValue v = udfContext.newArgTupleValue(\"p\"); v.setInt(0, 3); v.setString(1, t); return v.equals(p) ? v.toString().length() : v.hashCode();",
];

fn pieces(body: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for char in body.chars() {
        let is_word = |char: char| is_word_start(char) || char.is_ascii_digit();
        match pieces.last_mut() {
            Some(last) if is_word(char) && last.chars().all(is_word) => last.push(char),
            _ => pieces.push(char.to_string()),
        }
    }
    pieces
}

fn spoil(random: &mut StdRng, seeds: &[Vec<String>]) -> String {
    let mut body = seeds[random.random_range(0..seeds.len())].clone();
    for _ in 0..random.random_range(1..6) {
        let other = &seeds[random.random_range(0..seeds.len())];
        let from = random.random_range(0..other.len());
        let part = &other[from..other.len().min(from + random.random_range(1..20))];
        let at = random.random_range(0..=body.len());
        match random.random_range(0..6) {
            0 if at < body.len() => drop(body.remove(at)),
            1 if at < body.len() => body.swap(at, random.random_range(0..at + 1)),
            2 if at < body.len() => body[at] = part[0].clone(),
            3 if at < body.len() => body[at] = random.random::<i64>().to_string(),
            4 => body.truncate(at),
            _ => drop(body.splice(at..at, part.iter().cloned()).collect::<Vec<_>>()),
        }
    }
    body.concat()
}

fn signature() -> Signature {
    let arguments = [
        ("i", CqlType::INT),
        ("t", CqlType::TEXT),
        ("l", CqlType::list(CqlType::INT, false)),
        ("p", CqlType::tuple(vec![CqlType::INT, CqlType::TEXT])),
    ];
    Signature {
        arguments: arguments.map(|(name, ty)| (name.to_owned(), ty)).to_vec(),
        returns: CqlType::INT,
        is_called_on_null: true,
    }
}

/// Compiles and calls a body. Returns false if the body is refused.
fn run(body: &str) -> bool {
    let Ok(function) = Function::compile(body, signature()) else {
        return false;
    };
    let arguments = vec![
        Some(CqlValue::Int(7)),
        Some(CqlValue::Text("Helenus".into())),
        Some(CqlValue::List(vec![CqlValue::Int(1), CqlValue::Int(2)])),
        Some(CqlValue::Tuple(vec![None, Some(CqlValue::Text("x".into()))])),
    ];
    let begun = Instant::now();
    let _ = function.call(arguments, &NoTypes, begun + Duration::from_millis(20));
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "it went on after its time: {body}"
    );
    true
}

#[test]
fn spoiled_bodies() {
    let seconds = std::env::var("HELENUS_FUZZ_SECONDS").ok();
    let seconds = seconds.and_then(|seconds| seconds.parse().ok()).unwrap_or(1);
    let refused: Vec<String> = SEEDS
        .iter()
        .filter_map(|body| {
            Function::compile(body, signature())
                .err()
                .map(|error| format!("{body}: {error}"))
        })
        .collect();
    assert_eq!(refused, Vec::<String>::new());
    SEEDS.iter().for_each(|body| assert!(run(body)));
    let seeds: Vec<Vec<String>> = SEEDS.iter().map(|body| pieces(body)).collect();
    let seed = rand::random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut called = 0;
    while Instant::now() < until {
        called += u32::from(run(&spoil(&mut random, &seeds)));
    }
    assert!(called > 0);
}
