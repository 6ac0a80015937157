//! `int_as_blob`, `blob_as_int` and so on (Cassandra's `BytesConversionFcts`), and their old names.

use helenus_cql::error::CqlError;
use helenus_cql::types::{CqlType, NativeType};
use helenus_cql::value::{hex, validate};

use super::NativeFunction;

/// Returns the conversions between blobs and every other scalar type.
pub fn functions() -> Vec<NativeFunction> {
    let mut functions = Vec::new();
    for native in NativeType::ALL {
        match native {
            NativeType::Blob => {}
            NativeType::Text => {
                add(&mut functions, native, "text");
                add(&mut functions, native, "varchar");
            }
            other => add(&mut functions, other, other.name()),
        }
    }
    functions
}

fn add(functions: &mut Vec<NativeFunction>, native: NativeType, type_name: &'static str) {
    for name in [format!("{type_name}_as_blob"), format!("{type_name}asblob")] {
        functions.push(NativeFunction::new(
            &name,
            [CqlType::Native(native)],
            CqlType::BLOB,
            |args, _| Ok(args.first().cloned().flatten()),
        ));
    }
    for name in [format!("blob_as_{type_name}"), format!("blobas{type_name}")] {
        functions.push(from_blob(&name, native, type_name));
    }
}

fn from_blob(name: &str, native: NativeType, type_name: &'static str) -> NativeFunction {
    let ty = CqlType::Native(native);
    let (to, full_name) = (ty.clone(), format!("system.{name}"));
    NativeFunction::new(name, [CqlType::BLOB], ty, move |args, _| {
        let Some(Some(value)) = args.first() else {
            return Ok(None);
        };
        if validate(&to, value).is_err() {
            let value = hex(value);
            return Err(CqlError::invalid(format!(
                "In call to function {full_name}, value 0x{value} is not a valid binary representation for type {type_name}"
            )));
        }
        Ok(Some(value.clone()))
    })
}
