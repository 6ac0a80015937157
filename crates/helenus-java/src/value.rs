//! Values as a function sees them, and their conversion from and to CQL (Cassandra's `JavaDriverUtils` and `TypeCodec`).

use std::cell::{Ref, RefCell};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use helenus_cql::types::{CqlType, NativeType};
use helenus_cql::value::{CqlValue, Decimal, Duration};
use num_bigint::BigInt;

use crate::ast::Type;
use crate::budget::{self, ELEMENT};
use crate::buffer::Buffer;
use crate::classes::whole_name;
use crate::error::Failure;
use crate::ordered::Ordered;
use crate::rounding::RoundingMode;
use crate::time::calendar::Calendar;
use crate::time::date_format::DateFormat;
use crate::time::temporal::Temporal;

/// The result of evaluating a part of a function.
pub(crate) type EvalResult<T = Value> = Result<T, Failure>;

/// The result of a call or lookup. `None` if the class has no such method or constant.
pub(crate) type LookupResult = EvalResult<Option<Value>>;

/// The CQL date of 1970-01-01. CQL dates count days from 2^31 days before.
const EPOCH_DAY: i64 = 1 << 31;

/// A value. All holders of a mutable value share it.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Null,
    Boolean(bool),
    Char(u16),
    Byte(i8),
    Short(i16),
    Int(i32),
    Long(i64),
    Float(f32),
    Double(f64),
    String(Arc<str>),
    BigInteger(BigInt),
    BigDecimal(Decimal),
    Uuid(u128),
    Inet(IpAddr),
    Duration(Duration),
    /// Milliseconds since 1970-01-01.
    Date(Rc<RefCell<i64>>),
    /// Days since 1970-01-01.
    LocalDate(i64),
    ByteBuffer(Rc<Buffer>),
    List(Rc<RefCell<Vec<Value>>>),
    Set(Rc<Ordered<Value>>),
    Map(Rc<Ordered<(Value, Value)>>),
    /// A tuple or a value of a user type.
    Fields(Rc<Fields>),
    Array(Rc<Array>),
    StringBuilder(Rc<RefCell<String>>),
    Iterator(Rc<RefCell<std::vec::IntoIter<Value>>>),
    Entry(Rc<(Value, Value)>),
    Class(Type),
    RoundingMode(RoundingMode),
    /// A value of `java.time`.
    Temporal(Rc<Temporal>),
    Calendar(Rc<Calendar>),
    DateFormat(Rc<DateFormat>),
    Exception(Rc<Failure>),
}

/// An element of a collection takes no more memory than it is counted with.
const _: () = assert!(size_of::<Value>() + 16 <= ELEMENT);

/// An array, whose length is fixed.
#[derive(Debug)]
pub(crate) struct Array {
    /// The type of the elements.
    pub of: Type,
    pub values: RefCell<Vec<Value>>,
}

impl Array {
    pub fn new(of: Type, values: Vec<Value>) -> Array {
        Array {
            of,
            values: RefCell::new(values),
        }
    }

    fn at(&self, index: i32) -> Result<usize, Failure> {
        let len = self.values.borrow().len();
        let at = usize::try_from(index).ok().filter(|at| *at < len);
        at.ok_or_else(|| {
            Failure::thrown(
                "java.lang.ArrayIndexOutOfBoundsException",
                format!("Index {index} out of bounds for length {len}"),
            )
        })
    }

    /// Returns an element.
    ///
    /// # Errors
    /// If there is no such element, as for [`set`](Self::set).
    pub fn get(&self, index: i32) -> Result<Value, Failure> {
        let at = self.at(index)?;
        Ok(self.values.borrow()[at].clone())
    }

    pub fn set(&self, index: i32, value: Value) -> Result<(), Failure> {
        let at = self.at(index)?;
        self.values.borrow_mut()[at] = value;
        Ok(())
    }
}

/// A tuple or a value of a user type.
#[derive(Debug)]
pub(crate) struct Fields {
    pub ty: CqlType,
    pub values: RefCell<Vec<Value>>,
}

impl Fields {
    /// Returns a value whose fields are all null.
    pub fn new(ty: CqlType) -> Fields {
        let len = field_types(&ty).len();
        Fields {
            ty,
            values: RefCell::new(vec![Value::Null; len]),
        }
    }
}

/// Returns the types of the fields of a tuple or a user type. Empty for other types.
pub(crate) fn field_types(ty: &CqlType) -> Vec<&CqlType> {
    match ty {
        CqlType::Tuple(elements) => elements.iter().collect(),
        CqlType::Udt { definition, .. } => definition.fields.iter().map(|field| &field.ty).collect(),
        _ => Vec::new(),
    }
}

/// Returns the Java type of a parameter or a result. It is that of the type's values, except that a `timeuuid` is passed as its bytes.
/// Cassandra's `CQL3Type.Native.TIMEUUID.getUDFType` names a type without a codec.
pub(crate) fn parameter_type(ty: &CqlType, is_nullable: bool) -> Type {
    match ty {
        CqlType::Native(NativeType::Timeuuid) => Type::class("ByteBuffer"),
        _ => java_type(ty, is_nullable),
    }
}

/// Returns the Java type of a value. The type is primitive if possible and if the value is never null.
pub(crate) fn java_type(ty: &CqlType, is_nullable: bool) -> Type {
    let boxed = |ty: &CqlType| java_type(ty, true);
    let native = match ty {
        CqlType::Native(native) => native,
        CqlType::List { element, .. } | CqlType::Vector { element, .. } => {
            return Type::generic("List", vec![boxed(element)]);
        }
        CqlType::Set { element, .. } => return Type::generic("Set", vec![boxed(element)]),
        CqlType::Map { key, value, .. } => return Type::generic("Map", vec![boxed(key), boxed(value)]),
        CqlType::Tuple(_) => return Type::class("TupleValue"),
        CqlType::Udt { .. } => return Type::class("UDTValue"),
        CqlType::Custom(_) => return Type::class("ByteBuffer"),
    };
    let boxed = match native {
        NativeType::Ascii | NativeType::Text => "String",
        NativeType::Bigint | NativeType::Counter | NativeType::Time => "Long",
        NativeType::Blob | NativeType::Empty => "ByteBuffer",
        NativeType::Boolean => "Boolean",
        NativeType::Decimal => "BigDecimal",
        NativeType::Double => "Double",
        NativeType::Float => "Float",
        NativeType::Int => "Integer",
        NativeType::Timestamp => "Date",
        NativeType::Uuid | NativeType::Timeuuid => "UUID",
        NativeType::Varint => "BigInteger",
        NativeType::Inet => "InetAddress",
        NativeType::Date => "LocalDate",
        NativeType::Smallint => "Short",
        NativeType::Tinyint => "Byte",
        NativeType::Duration => "Duration",
    };
    let boxed = Type::class(boxed);
    match is_nullable {
        true => boxed,
        false => boxed.unboxed().unwrap_or(boxed),
    }
}

impl Value {
    pub fn string(text: impl AsRef<str>) -> Value {
        Value::String(Arc::from(text.as_ref()))
    }

    pub fn list(values: Vec<Value>) -> Value {
        Value::List(Rc::new(RefCell::new(values)))
    }

    pub fn set(values: Vec<Value>) -> Value {
        Value::Set(Rc::new(Ordered::as_inserted(values)))
    }

    pub fn map(entries: Vec<(Value, Value)>) -> Value {
        Value::Map(Rc::new(Ordered::as_inserted(entries)))
    }

    pub fn temporal(temporal: Temporal) -> Value {
        Value::Temporal(Rc::new(temporal))
    }

    pub fn date(millis: i64) -> Value {
        Value::Date(Rc::new(RefCell::new(millis)))
    }

    /// Returns the elements of a list or a set. `None` for other values.
    pub fn elements(&self) -> Option<Ref<'_, Vec<Value>>> {
        match self {
            Value::List(values) => Some(values.borrow()),
            Value::Set(values) => Some(values.borrow()),
            _ => None,
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    pub(crate) fn bytes(bytes: &[u8]) -> Value {
        Value::ByteBuffer(Rc::new(Buffer::new(bytes)))
    }

    /// Returns the value of a parameter.
    ///
    /// # Errors
    /// If it takes more memory than a call may, or too much time.
    pub fn of_parameter(ty: &CqlType, value: Option<CqlValue>) -> EvalResult {
        match value {
            Some(CqlValue::Timeuuid(value)) => Ok(Value::bytes(&value.to_be_bytes())),
            value => Value::from_cql(ty, value),
        }
    }

    /// Converts a CQL value to a Java value.
    ///
    /// # Errors
    /// As [`of_parameter`](Self::of_parameter).
    pub fn from_cql(ty: &CqlType, value: Option<CqlValue>) -> EvalResult {
        let Some(value) = value else {
            return Ok(Value::Null);
        };
        budget::walk(1)?;
        budget::spend(size_of_cql(&value))?;
        Ok(match value {
            CqlValue::Empty => match ty {
                CqlType::Native(NativeType::Ascii | NativeType::Text) => Value::string(""),
                CqlType::Native(NativeType::Blob) => Value::bytes(&[]),
                _ => Value::Null,
            },
            CqlValue::Ascii(text) | CqlValue::Text(text) => Value::string(text),
            CqlValue::Blob(bytes) => Value::bytes(&bytes),
            CqlValue::Boolean(value) => Value::Boolean(value),
            CqlValue::Tinyint(value) => Value::Byte(value),
            CqlValue::Smallint(value) => Value::Short(value),
            CqlValue::Int(value) => Value::Int(value),
            CqlValue::Bigint(value) | CqlValue::Counter(value) | CqlValue::Time(value) => Value::Long(value),
            CqlValue::Float(value) => Value::Float(value),
            CqlValue::Double(value) => Value::Double(value),
            CqlValue::Varint(value) => Value::BigInteger(value),
            CqlValue::Decimal(value) => Value::BigDecimal(value),
            CqlValue::Duration(value) => Value::Duration(value),
            CqlValue::Inet(value) => Value::Inet(value),
            CqlValue::Uuid(value) | CqlValue::Timeuuid(value) => Value::Uuid(value),
            CqlValue::Date(days) => Value::LocalDate(i64::from(days) - EPOCH_DAY),
            CqlValue::Timestamp(millis) => Value::date(millis),
            CqlValue::List(values) | CqlValue::Vector(values) => Value::list(elements_from(ty, values)?),
            CqlValue::Set(values) => Value::set(elements_from(ty, values)?),
            CqlValue::Map(entries) => Value::map(entries_from(ty, entries)?),
            CqlValue::Tuple(values) | CqlValue::Udt(values) => {
                let fields = Fields::new(ty.clone());
                for ((slot, ty), value) in fields
                    .values
                    .borrow_mut()
                    .iter_mut()
                    .zip(field_types(ty))
                    .zip(values)
                {
                    *slot = Value::from_cql(ty, value)?;
                }
                Value::Fields(Rc::new(fields))
            }
        })
    }

    /// Converts the value to a CQL value of type `ty`.
    ///
    /// # Errors
    /// If the value's class does not match the type.
    pub fn into_cql(self, ty: &CqlType) -> Result<Option<CqlValue>, Failure> {
        if self.is_null() {
            return Ok(None);
        }
        budget::walk(1)?;
        budget::room(into_size(&self))?;
        let class = self.class_name();
        let cast = || Failure::class_cast(&class, whole_name(java_type(ty, true).name()));
        let value = match (ty, self) {
            (CqlType::Native(native), value) => native_to_cql(*native, value).ok_or_else(cast)?,
            (CqlType::List { element, .. }, Value::List(values)) => CqlValue::List(elements_to(
                element,
                values.borrow().iter(),
                "Collection elements",
            )?),
            (CqlType::Vector { element, .. }, Value::List(values)) => CqlValue::Vector(elements_to(
                element,
                values.borrow().iter(),
                "Collection elements",
            )?),
            (CqlType::Set { element, .. }, Value::Set(values)) => CqlValue::Set(elements_to(
                element,
                values.borrow().iter(),
                "Collection elements",
            )?),
            (CqlType::Map { key, value, .. }, Value::Map(entries)) => {
                let entries = entries.borrow();
                let keys = elements_to(key, entries.iter().map(|(key, _)| key), "Map keys")?;
                let values = elements_to(value, entries.iter().map(|(_, value)| value), "Map values")?;
                CqlValue::Map(keys.into_iter().zip(values).collect())
            }
            (CqlType::Tuple(_) | CqlType::Udt { .. }, Value::Fields(fields)) => {
                let values = fields.values.borrow();
                let values = values.iter().cloned().zip(field_types(ty));
                let values = values
                    .map(|(value, ty)| value.into_cql(ty))
                    .collect::<Result<_, _>>()?;
                match ty {
                    CqlType::Tuple(_) => CqlValue::Tuple(values),
                    _ => CqlValue::Udt(values),
                }
            }
            _ => return Err(cast()),
        };
        Ok(Some(value))
    }

    /// Returns the full name of the value's class, as messages show it.
    pub fn class_name(&self) -> String {
        whole_name(self.simple_class()).to_owned()
    }

    /// Returns the last part of the name of the value's class.
    pub fn simple_class(&self) -> &str {
        match self {
            Value::Null => "null",
            Value::Boolean(_) => "Boolean",
            Value::Char(_) => "Character",
            Value::Byte(_) => "Byte",
            Value::Short(_) => "Short",
            Value::Int(_) => "Integer",
            Value::Long(_) => "Long",
            Value::Float(_) => "Float",
            Value::Double(_) => "Double",
            Value::String(_) => "String",
            Value::BigInteger(_) => "BigInteger",
            Value::BigDecimal(_) => "BigDecimal",
            Value::Uuid(_) => "UUID",
            Value::Inet(_) => "InetAddress",
            Value::Duration(_) => "Duration",
            Value::Date(_) => "Date",
            Value::LocalDate(_) => "LocalDate",
            Value::ByteBuffer(_) => "ByteBuffer",
            Value::List(_) => "List",
            Value::Set(_) => "Set",
            Value::Map(_) => "Map",
            Value::Fields(fields) => match fields.ty {
                CqlType::Tuple(_) => "TupleValue",
                _ => "UDTValue",
            },
            Value::Array(_) => "array",
            Value::StringBuilder(_) => "StringBuilder",
            Value::Iterator(_) => "Iterator",
            Value::Entry(_) => "Entry",
            Value::Class(_) => "Class",
            Value::RoundingMode(_) => "RoundingMode",
            Value::Temporal(temporal) => temporal.class(),
            Value::Calendar(_) => "GregorianCalendar",
            Value::DateFormat(_) => "SimpleDateFormat",
            Value::Exception(failure) => match failure.as_ref() {
                Failure::Thrown { class, .. } => class.rsplit('.').next().unwrap_or_default(),
                Failure::TimedOut => "Error",
            },
        }
    }

    /// Returns true if the value holds no other values.
    pub fn is_plain(&self) -> bool {
        !matches!(
            self,
            Value::List(_)
                | Value::Set(_)
                | Value::Map(_)
                | Value::Array(_)
                | Value::Fields(_)
                | Value::Iterator(_)
                | Value::Entry(_)
        )
    }

    /// Returns true if both are the same mutable object. `None` if the two are not mutable objects of one class.
    pub fn is_same_object(&self, other: &Value) -> Option<bool> {
        Some(match (self, other) {
            (Value::List(a), Value::List(b)) => Rc::ptr_eq(a, b),
            (Value::Set(a), Value::Set(b)) => Rc::ptr_eq(a, b),
            (Value::Map(a), Value::Map(b)) => Rc::ptr_eq(a, b),
            (Value::Array(a), Value::Array(b)) => Rc::ptr_eq(a, b),
            (Value::Fields(a), Value::Fields(b)) => Rc::ptr_eq(a, b),
            (Value::Date(a), Value::Date(b)) => Rc::ptr_eq(a, b),
            (Value::Calendar(a), Value::Calendar(b)) => Rc::ptr_eq(a, b),
            (Value::DateFormat(a), Value::DateFormat(b)) => Rc::ptr_eq(a, b),
            _ => return None,
        })
    }

    /// Compares two values as `Object.equals` does. Returns true immediately if the call's time is over, so that searches end.
    pub fn equals(&self, other: &Value) -> bool {
        let steps = match (self, other) {
            (Value::String(a), Value::String(b)) if a.len() == b.len() => budget::steps_of(a.len()),
            _ => 1,
        };
        if budget::is_over(steps) {
            return true;
        }
        match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Boolean(a), Value::Boolean(b)) => a == b,
            (Value::Char(a), Value::Char(b)) => a == b,
            (Value::Byte(a), Value::Byte(b)) => a == b,
            (Value::Short(a), Value::Short(b)) => a == b,
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::Long(a), Value::Long(b)) => a == b,
            // Java compares the bits: NaN equals itself, and zero differs from minus zero.
            (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(),
            (Value::Double(a), Value::Double(b)) => a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(),
            (Value::String(a), Value::String(b)) => a == b,
            (Value::BigInteger(a), Value::BigInteger(b)) => a == b,
            (Value::BigDecimal(a), Value::BigDecimal(b)) => a == b,
            (Value::Uuid(a), Value::Uuid(b)) => a == b,
            (Value::Inet(a), Value::Inet(b)) => a == b,
            (Value::Duration(a), Value::Duration(b)) => a == b,
            (Value::Date(a), Value::Date(b)) => a == b,
            (Value::LocalDate(a), Value::LocalDate(b)) => a == b,
            (Value::ByteBuffer(a), Value::ByteBuffer(b)) => a.remaining() == b.remaining(),
            (Value::List(a), Value::List(b)) => all_equal(&a.borrow(), &b.borrow()),
            (Value::Set(a), Value::Set(b)) => {
                let (a, b) = (a.borrow(), b.borrow());
                a.len() == b.len() && a.iter().all(|a| b.iter().any(|b| a.equals(b)))
            }
            (Value::Map(a), Value::Map(b)) => {
                let (a, b) = (a.borrow(), b.borrow());
                let same = |(key, value): &(Value, Value)| {
                    let found = b.iter().find(|(other, _)| key.equals(other));
                    found.is_some_and(|(_, other)| value.equals(other))
                };
                a.len() == b.len() && a.iter().all(same)
            }
            (Value::Fields(a), Value::Fields(b)) => {
                a.ty == b.ty && all_equal(&a.values.borrow(), &b.values.borrow())
            }
            (Value::Array(a), Value::Array(b)) => Rc::ptr_eq(a, b),
            (Value::Entry(a), Value::Entry(b)) => a.0.equals(&b.0) && a.1.equals(&b.1),
            (Value::Class(a), Value::Class(b)) => a == b,
            (Value::RoundingMode(a), Value::RoundingMode(b)) => a == b,
            (Value::Temporal(a), Value::Temporal(b)) => a == b,
            (Value::Calendar(a), Value::Calendar(b)) => {
                matches!((a.millis(), b.millis()), (Ok(a), Ok(b)) if a == b)
            }
            (Value::DateFormat(a), Value::DateFormat(b)) => a.pattern() == b.pattern(),
            (Value::StringBuilder(a), Value::StringBuilder(b)) => Rc::ptr_eq(a, b),
            (Value::Exception(a), Value::Exception(b)) => Rc::ptr_eq(a, b),
            _ => false,
        }
    }
}

fn all_equal(a: &[Value], b: &[Value]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.equals(b))
}

/// Copies elements.
///
/// # Errors
/// If the copy takes more memory than a call may, or too much time.
pub(crate) fn copied<T: Clone>(elements: &[T]) -> EvalResult<Vec<T>> {
    budget::room_for(elements.len() * size_of::<T>().div_ceil(size_of::<Value>()))?;
    Ok(elements.to_vec())
}

/// Returns the bytes that a CQL value takes as a Java value, without the bytes of its elements.
fn size_of_cql(value: &CqlValue) -> usize {
    match value {
        CqlValue::Ascii(text) | CqlValue::Text(text) => text.len(),
        CqlValue::Blob(bytes) => bytes.len(),
        CqlValue::List(values) | CqlValue::Vector(values) | CqlValue::Set(values) => values.len() * ELEMENT,
        CqlValue::Map(entries) => entries.len() * 2 * ELEMENT,
        CqlValue::Tuple(values) | CqlValue::Udt(values) => values.len() * ELEMENT,
        _ => 0,
    }
}

/// Returns the bytes that a Java value takes as a CQL value, without the bytes of its elements.
fn into_size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::ByteBuffer(buffer) => buffer.remaining_len(),
        Value::List(values) => values.borrow().len() * size_of::<CqlValue>(),
        Value::Set(values) => values.borrow().len() * size_of::<CqlValue>(),
        Value::Map(entries) => entries.borrow().len() * 4 * size_of::<CqlValue>(),
        _ => 0,
    }
}

fn elements_from(ty: &CqlType, values: Vec<CqlValue>) -> EvalResult<Vec<Value>> {
    let (CqlType::List { element, .. } | CqlType::Set { element, .. } | CqlType::Vector { element, .. }) = ty
    else {
        return Ok(Vec::new());
    };
    let values = values.into_iter();
    values
        .map(|value| Value::from_cql(element, Some(value)))
        .collect()
}

fn entries_from(ty: &CqlType, entries: Vec<(CqlValue, CqlValue)>) -> EvalResult<Vec<(Value, Value)>> {
    let CqlType::Map { key, value, .. } = ty else {
        return Ok(Vec::new());
    };
    let entry = |(k, v)| Ok((Value::from_cql(key, Some(k))?, Value::from_cql(value, Some(v))?));
    entries.into_iter().map(entry).collect()
}

fn elements_to<'a>(
    ty: &CqlType,
    values: impl IntoIterator<Item = &'a Value>,
    what: &str,
) -> Result<Vec<CqlValue>, Failure> {
    let null = || Failure::null_pointer_because(format!("{what} cannot be null"));
    let element = |value: &Value| value.clone().into_cql(ty)?.ok_or_else(null);
    values.into_iter().map(element).collect()
}

fn native_to_cql(native: NativeType, value: Value) -> Option<CqlValue> {
    Some(match (native, value) {
        (NativeType::Ascii, Value::String(text)) => CqlValue::Ascii(text.as_ref().to_owned()),
        (NativeType::Text, Value::String(text)) => CqlValue::Text(text.as_ref().to_owned()),
        (NativeType::Bigint, Value::Long(value)) => CqlValue::Bigint(value),
        (NativeType::Counter, Value::Long(value)) => CqlValue::Counter(value),
        (NativeType::Time, Value::Long(value)) => CqlValue::Time(value),
        (NativeType::Blob, Value::ByteBuffer(buffer)) => CqlValue::Blob(buffer.remaining()),
        (NativeType::Boolean, Value::Boolean(value)) => CqlValue::Boolean(value),
        (NativeType::Decimal, Value::BigDecimal(value)) => CqlValue::Decimal(value),
        (NativeType::Double, Value::Double(value)) => CqlValue::Double(value),
        (NativeType::Float, Value::Float(value)) => CqlValue::Float(value),
        (NativeType::Int, Value::Int(value)) => CqlValue::Int(value),
        (NativeType::Timestamp, Value::Date(millis)) => CqlValue::Timestamp(*millis.borrow()),
        (NativeType::Uuid, Value::Uuid(value)) => CqlValue::Uuid(value),
        (NativeType::Timeuuid, Value::Uuid(value)) => CqlValue::Timeuuid(value),
        (NativeType::Timeuuid, Value::ByteBuffer(buffer)) => {
            CqlValue::Timeuuid(u128::from_be_bytes(buffer.remaining().as_ref().try_into().ok()?))
        }
        (NativeType::Varint, Value::BigInteger(value)) => CqlValue::Varint(value),
        (NativeType::Inet, Value::Inet(value)) => CqlValue::Inet(value),
        (NativeType::Date, Value::LocalDate(days)) => CqlValue::Date(u32::try_from(days + EPOCH_DAY).ok()?),
        (NativeType::Smallint, Value::Short(value)) => CqlValue::Smallint(value),
        (NativeType::Tinyint, Value::Byte(value)) => CqlValue::Tinyint(value),
        (NativeType::Duration, Value::Duration(value)) => CqlValue::Duration(value),
        _ => return None,
    })
}
