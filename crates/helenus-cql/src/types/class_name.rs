//! Types by the names of Cassandra's classes, as `custom` options of the protocol contain them
//! (`org.apache.cassandra.db.marshal.TypeParser`).

use std::fmt::Write;
use std::sync::Arc;

use crate::types::{CqlType, CustomType, NativeType, UserType, UserTypeField};

const LEXICAL_UUID: &str = "LexicalUUIDType";
/// The former class of `timestamp`.
const OLD_TIMESTAMP: &str = "DateType";
const PACKAGE: &str = "org.apache.cassandra.db.marshal.";
/// Maximum depth of nested types that are read from a name.
const DEPTH_MAX: usize = 64;

fn native_class(native: NativeType) -> &'static str {
    match native {
        NativeType::Empty => "EmptyType",
        NativeType::Ascii => "AsciiType",
        NativeType::Bigint => "LongType",
        NativeType::Blob => "BytesType",
        NativeType::Boolean => "BooleanType",
        NativeType::Counter => "CounterColumnType",
        NativeType::Decimal => "DecimalType",
        NativeType::Double => "DoubleType",
        NativeType::Float => "FloatType",
        NativeType::Int => "Int32Type",
        NativeType::Timestamp => "TimestampType",
        NativeType::Uuid => "UUIDType",
        NativeType::Text => "UTF8Type",
        NativeType::Varint => "IntegerType",
        NativeType::Timeuuid => "TimeUUIDType",
        NativeType::Inet => "InetAddressType",
        NativeType::Date => "SimpleDateType",
        NativeType::Time => "TimeType",
        NativeType::Smallint => "ShortType",
        NativeType::Tinyint => "ByteType",
        NativeType::Duration => "DurationType",
    }
}

/// Returns the name as Cassandra writes it (`AbstractType.toString`).
pub fn class_name(ty: &CqlType) -> String {
    let mut name = String::new();
    write_class(ty, false, &mut name);
    name
}

/// Appends the name of a type. `FrozenType` is not written again inside a frozen type.
fn write_class(ty: &CqlType, inside_frozen: bool, out: &mut String) {
    let wraps = !inside_frozen && is_frozen(ty);
    let inside = inside_frozen || is_frozen(ty);
    if wraps {
        out.push_str(PACKAGE);
        out.push_str("FrozenType(");
    }
    out.push_str(PACKAGE);
    match ty {
        CqlType::Native(native) => out.push_str(native_class(*native)),
        CqlType::List { element, .. } => write_parameters("ListType", [&**element], inside, out),
        CqlType::Set { element, .. } => write_parameters("SetType", [&**element], inside, out),
        CqlType::Map { key, value, .. } => write_parameters("MapType", [&**key, &**value], inside, out),
        CqlType::Tuple(elements) => write_parameters("TupleType", elements.iter(), true, out),
        CqlType::Udt { definition, .. } => write_user_type(definition, inside, out),
        CqlType::Vector { element, dimension } => {
            out.push_str("VectorType(");
            write_class(element, inside_frozen, out);
            let _ = write!(out, " , {dimension})");
        }
        CqlType::Custom(custom) => write_custom(custom, inside, out),
    }
    if wraps {
        out.push(')');
    }
}

fn is_frozen(ty: &CqlType) -> bool {
    match ty {
        CqlType::List { frozen, .. }
        | CqlType::Set { frozen, .. }
        | CqlType::Map { frozen, .. }
        | CqlType::Udt { frozen, .. } => *frozen,
        CqlType::Native(_) | CqlType::Tuple(_) | CqlType::Vector { .. } | CqlType::Custom(_) => false,
    }
}

fn write_custom(custom: &CustomType, inside_frozen: bool, out: &mut String) {
    match custom {
        CustomType::LexicalUuid => out.push_str(LEXICAL_UUID),
        CustomType::Composite(types) => write_parameters("CompositeType", types, inside_frozen, out),
        CustomType::DynamicComposite(aliases) => {
            out.push_str("DynamicCompositeType(");
            for (position, (alias, ty)) in aliases.iter().enumerate() {
                if position > 0 {
                    out.push(',');
                }
                let _ = write!(out, "{alias}=>");
                write_class(ty, inside_frozen, out);
            }
            out.push(')');
        }
    }
}

fn write_parameters<'a>(
    class: &str,
    parameters: impl IntoIterator<Item = &'a CqlType>,
    inside_frozen: bool,
    out: &mut String,
) {
    out.push_str(class);
    out.push('(');
    for (position, parameter) in parameters.into_iter().enumerate() {
        if position > 0 {
            out.push(',');
        }
        write_class(parameter, inside_frozen, out);
    }
    out.push(')');
}

fn write_user_type(definition: &UserType, inside_frozen: bool, out: &mut String) {
    let _ = write!(out, "UserType({},", definition.keyspace);
    push_hex(&definition.name, out);
    for field in &definition.fields {
        out.push(',');
        push_hex(&field.name, out);
        out.push(':');
        write_class(&field.ty, inside_frozen, out);
    }
    out.push(')');
}

fn push_hex(text: &str, out: &mut String) {
    for byte in text.bytes() {
        let _ = write!(out, "{byte:02x}");
    }
}

/// Returns the type of a class's name, with or without the package. `None` if CQL can't write the type. `ReversedType` is replaced by the
/// type inside it.
pub fn parse_class_name(name: &str) -> Option<CqlType> {
    let mut parser = Parser { rest: name.trim() };
    if parser.rest.is_empty() {
        return Some(CqlType::BLOB);
    }
    let ty = parser.class(false, 0)?;
    parser.rest.trim().is_empty().then_some(ty)
}

/// Returns the reason why a class is not that of a type, in Cassandra's words. `None` if it is, even if CQL can't write the type.
pub fn class_refusal(class: &str) -> Option<String> {
    /// Cassandra's types that CQL can't write.
    const INTERNAL: [&str; 10] = [
        "AbstractCompositeType",
        "CompositeType",
        "DateType",
        "DynamicCompositeType",
        "EmptyType",
        "LegacyTimeUUIDType",
        "LexicalUUIDType",
        "PartitionerDefinedOrder",
        "TupleType",
        "UserType",
    ];
    const PACKAGE: &str = "org.apache.cassandra.db.marshal.";
    /// Types that need parameters.
    const GENERIC: [&str; 7] = [
        "DynamicCompositeType",
        "FrozenType",
        "ListType",
        "MapType",
        "ReversedType",
        "SetType",
        "VectorType",
    ];
    if parse_class_name(class).is_some() {
        return None;
    }
    let short = class.strip_prefix(PACKAGE).unwrap_or(class);
    let (name, parameters) = short.split_once('(').unwrap_or((short, ""));
    if GENERIC.contains(&name) && parameters != ")" {
        return Some(format!(
            "Error setting type {class}: Invalid definition for comparator {PACKAGE}{name}."
        ));
    }
    if INTERNAL.contains(&name) {
        return None;
    }
    let package = if name.contains('.') { "" } else { PACKAGE };
    Some(format!(
        "Error setting type {class}: Unable to find abstract-type class '{package}{name}'"
    ))
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn class(&mut self, frozen: bool, depth: usize) -> Option<CqlType> {
        if depth > DEPTH_MAX {
            return None;
        }
        let name = self.word();
        let short = name.strip_prefix(PACKAGE).unwrap_or(name);
        if let Some(native) = NativeType::ALL
            .into_iter()
            .chain([NativeType::Empty])
            .find(|native| native_class(*native) == short)
        {
            self.skip_parameters(depth)?;
            return Some(CqlType::Native(native));
        }
        match short {
            LEXICAL_UUID => return Some(CqlType::Custom(Arc::new(CustomType::LexicalUuid))),
            OLD_TIMESTAMP => return Some(CqlType::TIMESTAMP),
            _ => {}
        }
        self.expect('(')?;
        let depth = depth + 1;
        let ty = match short {
            "FrozenType" => self.class(true, depth)?,
            "ReversedType" => self.class(frozen, depth)?,
            "ListType" => CqlType::list(self.class(true, depth)?, frozen),
            "SetType" => CqlType::set(self.class(true, depth)?, frozen),
            "MapType" => {
                let key = self.class(true, depth)?;
                self.expect(',')?;
                CqlType::map(key, self.class(true, depth)?, frozen)
            }
            "TupleType" => self.tuple(depth)?,
            "UserType" => self.user_type(frozen, depth)?,
            "VectorType" => {
                let element = self.class(frozen, depth)?;
                self.expect(',')?;
                CqlType::vector(element, self.dimension()?)
            }
            "CompositeType" => {
                let mut types = vec![self.class(frozen, depth)?];
                while self.expect(',').is_some() {
                    types.push(self.class(frozen, depth)?);
                }
                CqlType::Custom(Arc::new(CustomType::Composite(types)))
            }
            "DynamicCompositeType" => {
                let mut aliases = vec![self.alias(frozen, depth)?];
                while self.expect(',').is_some() {
                    aliases.push(self.alias(frozen, depth)?);
                }
                CqlType::Custom(Arc::new(CustomType::DynamicComposite(aliases)))
            }
            _ => return None,
        };
        self.expect(')')?;
        Some(ty)
    }

    /// Skips parameters, which a name may have even if the type takes none.
    fn skip_parameters(&mut self, depth: usize) -> Option<()> {
        if self.expect('(').is_none() {
            return Some(());
        }
        while self.expect(')').is_none() {
            self.class(false, depth + 1)?;
            self.expect(',');
        }
        Some(())
    }

    fn tuple(&mut self, depth: usize) -> Option<CqlType> {
        let mut elements = vec![self.class(true, depth)?];
        while self.expect(',').is_some() {
            elements.push(self.class(true, depth)?);
        }
        Some(CqlType::tuple(elements))
    }

    /// Reads an alias: a letter, an arrow, and its type.
    fn alias(&mut self, frozen: bool, depth: usize) -> Option<(char, CqlType)> {
        let mut letters = self.word().chars();
        let alias = letters.next().filter(char::is_ascii)?;
        self.expect('=')?;
        self.rest = self.rest.strip_prefix('>')?;
        (letters.next().is_none()).then_some((alias, self.class(frozen, depth)?))
    }

    fn user_type(&mut self, frozen: bool, depth: usize) -> Option<CqlType> {
        let keyspace = self.word().to_owned();
        self.expect(',')?;
        let name = unhex(self.word())?;
        let mut fields = Vec::new();
        while self.expect(',').is_some() {
            let name = unhex(self.word())?;
            self.expect(':')?;
            fields.push(UserTypeField {
                name,
                ty: self.class(frozen, depth)?,
            });
        }
        let definition = Arc::new(UserType {
            keyspace,
            name,
            fields,
        });
        Some(CqlType::Udt { definition, frozen })
    }

    fn word(&mut self) -> &'a str {
        let text = self.rest.trim_start();
        let end = text
            .find(|c: char| !(c.is_alphanumeric() || matches!(c, '.' | '_' | '$' | '-')))
            .unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        self.rest = rest;
        word
    }

    /// Reads a vector's dimension.
    fn dimension(&mut self) -> Option<u32> {
        let dimension: i32 = self.word().parse().ok()?;
        u32::try_from(dimension).ok().filter(|dimension| *dimension > 0)
    }

    fn expect(&mut self, wanted: char) -> Option<()> {
        self.rest = self.rest.trim_start().strip_prefix(wanted)?;
        Some(())
    }
}

fn unhex(text: &str) -> Option<String> {
    let digits: Option<Vec<u32>> = text.chars().map(|c| c.to_digit(16)).collect();
    let bytes: Option<Vec<u8>> = digits?
        .chunks(2)
        .map(|pair| match *pair {
            [high, low] => u8::try_from(high * 16 + low).ok(),
            _ => None,
        })
        .collect();
    String::from_utf8(bytes?).ok()
}
