//! Methods of tuples and of values of user types: Cassandra's `TupleValue` and `UDTValue`.

use std::rc::Rc;

use helenus_cql::types::CqlType;

use crate::ast::Type;
use crate::conversion::assigned;
use crate::error::Failure;
use crate::value::{Fields, LookupResult, Value, field_types, java_type};

/// Names of getters and setters, without `get` and `set`, each with its Java type. A getter of a primitive returns zero for null.
const ACCESSORS: &[(&str, &str)] = &[
    ("Bool", "Boolean"),
    ("BytesUnsafe", "ByteBuffer"),
    ("Byte", "Byte"),
    ("Bytes", "ByteBuffer"),
    ("Date", "LocalDate"),
    ("Decimal", "BigDecimal"),
    ("Double", "Double"),
    ("Float", "Float"),
    ("Inet", "InetAddress"),
    ("Int", "Integer"),
    ("List", "List"),
    ("Long", "Long"),
    ("Map", "Map"),
    ("Set", "Set"),
    ("Short", "Short"),
    ("String", "String"),
    ("Time", "Long"),
    ("Timestamp", "Date"),
    ("TupleValue", "TupleValue"),
    ("UDTValue", "UDTValue"),
    ("UUID", "UUID"),
    ("Varint", "BigInteger"),
];

pub(crate) fn call(object: &Value, fields: &Rc<Fields>, method: &str, arguments: &[Value]) -> LookupResult {
    let Some(which) = arguments.first() else {
        return Ok(None);
    };
    let at = position(&fields.ty, which)?;
    let types = field_types(&fields.ty);
    let Some(ty) = types.get(at) else { return Ok(None) };
    if method == "isNull" {
        return Ok(Some(Value::Boolean(fields.values.borrow()[at].is_null())));
    }
    let (is_getter, what) = match (method.strip_prefix("get"), method.strip_prefix("set")) {
        (Some(what), _) => (true, what),
        (_, Some(what)) => (false, what),
        _ => return Ok(None),
    };
    let java = java_type(ty, true);
    if what == "Object" || what.is_empty() || what == "ToNull" {
    } else {
        let Some((_, class)) = ACCESSORS.iter().find(|(name, _)| *name == what) else {
            return Ok(None);
        };
        if *class != java.name() {
            let message = format!(
                "Codec not found for requested operation: [{ty} <-> {}]",
                crate::classes::whole_name(class)
            );
            return Err(Failure::thrown(
                "org.apache.cassandra.cql3.functions.types.exceptions.CodecNotFoundException",
                message,
            ));
        }
    }
    if is_getter {
        let value = fields.values.borrow()[at].clone();
        return Ok(Some(match (value.is_null(), what) {
            (true, "Bool") => Value::Boolean(false),
            (true, "Byte" | "Short" | "Int" | "Long" | "Time" | "Float" | "Double") => {
                let zero = java
                    .unboxed()
                    .and_then(|ty| crate::number::convert(&Value::Int(0), &ty));
                zero.unwrap_or(Value::Null)
            }
            _ => value,
        }));
    }
    let value = match (what, arguments.get(1)) {
        ("ToNull", None) => Value::Null,
        (_, Some(value)) => value.clone(),
        _ => return Ok(None),
    };
    // A setter accepts any value that can be assigned to the field's type, such as an `int` for a `long`.
    let target = match what {
        "Byte" | "Short" | "Int" | "Long" | "Time" | "Float" | "Double" if !value.is_null() => {
            java.unboxed().unwrap_or(java)
        }
        _ => java,
    };
    let value = match &target {
        Type::Class(..) if value.is_null() => value,
        target => assigned(value, target)?,
    };
    fields.values.borrow_mut()[at] = value;
    Ok(Some(object.clone()))
}

/// Returns the index of the field with this name or number.
fn position(ty: &CqlType, which: &Value) -> Result<usize, Failure> {
    match (ty, which) {
        (CqlType::Udt { definition, .. }, Value::String(name)) => {
            let name = name.as_ref();
            let exact = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
            let lower = name.to_lowercase();
            definition.field_index(exact.unwrap_or(&lower)).ok_or_else(|| {
                let message = format!("{name} is not a field defined in this UDT");
                Failure::thrown("java.lang.IllegalArgumentException", message)
            })
        }
        (_, which) => {
            let at = which.to_int()?;
            let len = field_types(ty).len();
            usize::try_from(at).ok().filter(|at| *at < len).ok_or_else(|| {
                let message = format!("Index {at} out of bounds for length {len}");
                Failure::thrown("java.lang.ArrayIndexOutOfBoundsException", message)
            })
        }
    }
}
