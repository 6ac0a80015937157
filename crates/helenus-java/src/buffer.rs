//! `java.nio.ByteBuffer`: bytes with a position at which the next read or write happens.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bytes::Bytes;

use crate::budget;
use crate::error::Failure;
use crate::strings;
use crate::value::Value;

/// A buffer's window on bytes, which several buffers may share.
#[derive(Debug)]
pub(crate) struct Buffer {
    bytes: Rc<RefCell<Vec<u8>>>,
    /// Index of the buffer's first byte in `bytes`.
    start: usize,
    capacity: usize,
    limit: Cell<usize>,
    position: Cell<usize>,
    mark: Cell<Option<usize>>,
    is_read_only: bool,
}

fn thrown(class: &str) -> Failure {
    Failure::Thrown {
        class: class.to_owned(),
        message: None,
    }
}

impl Buffer {
    #[must_use]
    pub fn new(bytes: &[u8]) -> Buffer {
        Buffer::on(Rc::new(RefCell::new(bytes.to_vec())), 0, bytes.len(), false)
    }

    fn on(bytes: Rc<RefCell<Vec<u8>>>, start: usize, capacity: usize, is_read_only: bool) -> Buffer {
        Buffer {
            bytes,
            start,
            capacity,
            limit: Cell::new(capacity),
            position: Cell::new(0),
            mark: Cell::new(None),
            is_read_only,
        }
    }

    /// Returns the number of bytes between position and limit.
    pub fn remaining_len(&self) -> usize {
        self.limit.get().saturating_sub(self.position.get())
    }

    /// Returns the bytes between position and limit, which are the buffer's value in CQL.
    #[must_use]
    pub fn remaining(&self) -> Bytes {
        let (from, to) = (self.start + self.position.get(), self.start + self.limit.get());
        Bytes::copy_from_slice(self.bytes.borrow().get(from..to).unwrap_or_default())
    }

    /// Returns the buffer's `toString`.
    #[must_use]
    pub fn shown(&self) -> String {
        let kind = if self.is_read_only {
            "HeapByteBufferR"
        } else {
            "HeapByteBuffer"
        };
        format!(
            "java.nio.{kind}[pos={} lim={} cap={}]",
            self.position.get(),
            self.limit.get(),
            self.capacity
        )
    }

    fn copy(&self, is_read_only: bool) -> Buffer {
        let copy = Buffer::on(self.bytes.clone(), self.start, self.capacity, is_read_only);
        copy.limit.set(self.limit.get());
        copy.position.set(self.position.get());
        copy.mark.set(self.mark.get());
        copy
    }

    /// Returns the place in `bytes` of a number of `len` bytes. Without an index, the number is at the position, which advances behind the
    /// number.
    fn place(&self, index: Option<&Value>, len: usize, exhausted: &str) -> Result<usize, Failure> {
        let from = match index {
            Some(index) => {
                let outside = || thrown("java.lang.IndexOutOfBoundsException");
                let from = usize::try_from(index.to_int()?).map_err(|_| outside())?;
                if from.saturating_add(len) > self.limit.get() {
                    return Err(outside());
                }
                from
            }
            None => {
                let from = self.position.get();
                if from + len > self.limit.get() {
                    return Err(thrown(exhausted));
                }
                self.position.set(from + len);
                from
            }
        };
        Ok(self.start + from)
    }

    fn read(&self, index: Option<&Value>, len: usize) -> Result<u64, Failure> {
        let from = self.place(index, len, "java.nio.BufferUnderflowException")?;
        let bytes = self.bytes.borrow();
        let bytes = bytes.get(from..from + len).unwrap_or_default();
        Ok(bytes
            .iter()
            .fold(0u64, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn write(&self, index: Option<&Value>, bytes: &[u8]) -> Result<(), Failure> {
        if self.is_read_only {
            return Err(thrown("java.nio.ReadOnlyBufferException"));
        }
        let from = self.place(index, bytes.len(), "java.nio.BufferOverflowException")?;
        if let Some(place) = self.bytes.borrow_mut().get_mut(from..from + bytes.len()) {
            place.copy_from_slice(bytes);
        }
        Ok(())
    }

    /// Sets position or limit, if the new value is within bounds.
    fn moved(&self, to: &Value, what: &str) -> Result<(), Failure> {
        let (cell, most) = match what {
            "position" => (&self.position, self.limit.get()),
            _ => (&self.limit, self.capacity),
        };
        let wanted = to.to_int()?;
        let to = usize::try_from(wanted).ok().filter(|to| *to <= most);
        let to = to.ok_or_else(|| {
            let new = format!("new{}{}", what[..1].to_uppercase(), &what[1..]);
            let bound = if what == "position" { "limit" } else { "capacity" };
            let message = match wanted < 0 {
                true => format!("{new} < 0: ({wanted} < 0)"),
                false => format!("{new} > {bound}: ({wanted} > {most})"),
            };
            Failure::thrown("java.lang.IllegalArgumentException", message)
        })?;
        cell.set(to);
        self.position.set(self.position.get().min(self.limit.get()));
        self.mark
            .set(self.mark.get().filter(|mark| *mark <= self.position.get()));
        Ok(())
    }

    /// Implements `flip`, `clear` and `rewind`: sets the position to 0, and the limit as the method says.
    fn turn(&self, method: &str) {
        match method {
            "flip" => self.limit.set(self.position.get()),
            "clear" => self.limit.set(self.capacity),
            _ => {}
        }
        self.position.set(0);
        self.mark.set(None);
    }
}

/// Returns the difference of the first two bytes that differ, as signed bytes. If no bytes differ, returns the difference of the lengths.
fn compare(a: &[u8], b: &[u8]) -> i32 {
    let differs = a.iter().zip(b).find(|(a, b)| a != b);
    match differs {
        Some((a, b)) => i32::from(*a as i8) - i32::from(*b as i8),
        None => a.len() as i32 - b.len() as i32,
    }
}

/// Calls a method of a buffer. `None` if there is no such method.
pub(crate) fn call(
    object: &Value,
    buffer: &Buffer,
    method: &str,
    arguments: &[Value],
) -> Result<Option<Value>, Failure> {
    let int = |number: usize| Some(Value::Int(number as i32));
    let new = |buffer: Buffer| Some(Value::ByteBuffer(Rc::new(buffer)));
    let same = || Some(object.clone());
    let position = buffer.position.get();
    Ok(match (method, arguments) {
        ("compareTo", [Value::ByteBuffer(other)]) => {
            budget::room(buffer.remaining_len() + other.remaining_len())?;
            budget::walk_bytes(buffer.remaining_len())?;
            Some(Value::Int(compare(&buffer.remaining(), &other.remaining())))
        }
        ("remaining", []) => int(buffer.limit.get() - position),
        ("hasRemaining", []) => Some(Value::Boolean(position < buffer.limit.get())),
        ("limit", []) => int(buffer.limit.get()),
        ("capacity", []) => int(buffer.capacity),
        ("position", []) => int(position),
        ("position" | "limit", [to]) => {
            buffer.moved(to, method)?;
            same()
        }
        ("flip" | "rewind" | "clear", []) => {
            buffer.turn(method);
            same()
        }
        ("mark", []) => {
            buffer.mark.set(Some(position));
            same()
        }
        ("reset", []) => {
            let mark = buffer.mark.get();
            buffer
                .position
                .set(mark.ok_or_else(|| thrown("java.nio.InvalidMarkException"))?);
            same()
        }
        ("isReadOnly", []) => Some(Value::Boolean(buffer.is_read_only)),
        ("hasArray", []) => Some(Value::Boolean(!buffer.is_read_only)),
        ("array", []) if buffer.is_read_only => return Err(thrown("java.nio.ReadOnlyBufferException")),
        ("array", []) => Some(strings::bytes_array(&buffer.bytes.borrow())?),
        ("arrayOffset", []) => int(buffer.start),
        ("duplicate", []) => new(buffer.copy(buffer.is_read_only)),
        ("asReadOnlyBuffer", []) => new(buffer.copy(true)),
        ("slice", []) => new(Buffer::on(
            buffer.bytes.clone(),
            buffer.start + position,
            buffer.limit.get() - position,
            buffer.is_read_only,
        )),
        ("get", [Value::Array(array)]) => {
            let len = array.values.borrow().len();
            let from = buffer.place(None, len, "java.nio.BufferUnderflowException")?;
            let bytes = buffer.bytes.borrow();
            let bytes = bytes.get(from..from + len).unwrap_or_default();
            budget::room_for(len)?;
            *array.values.borrow_mut() = bytes.iter().map(|byte| Value::Byte(*byte as i8)).collect();
            same()
        }
        ("get", index) => Some(Value::Byte(buffer.read(index.first(), 1)? as i8)),
        ("getShort", index) => Some(Value::Short(buffer.read(index.first(), 2)? as i16)),
        ("getInt", index) => Some(Value::Int(buffer.read(index.first(), 4)? as i32)),
        ("getLong", index) => Some(Value::Long(buffer.read(index.first(), 8)? as i64)),
        ("getFloat", index) => Some(Value::Float(
            f32::from_bits(buffer.read(index.first(), 4)? as u32),
        )),
        ("getDouble", index) => Some(Value::Double(f64::from_bits(buffer.read(index.first(), 8)?))),
        ("put", [Value::Array(array)]) => {
            let bytes = array.values.borrow();
            budget::room_for(bytes.len())?;
            let bytes: Vec<u8> = bytes
                .iter()
                .map(|byte| byte.as_long().unwrap_or_default() as u8)
                .collect();
            buffer.write(None, &bytes)?;
            same()
        }
        ("put", [Value::ByteBuffer(other)]) => {
            budget::room(other.remaining_len())?;
            budget::walk_bytes(other.remaining_len())?;
            buffer.write(None, &other.remaining())?;
            other.position.set(other.limit.get());
            same()
        }
        (_, [index @ .., value]) if method.starts_with("put") => {
            let whole = || value.as_long().unwrap_or_default();
            let real = || value.as_double().unwrap_or_default();
            let bytes = match method {
                "put" => vec![whole() as u8],
                "putShort" => (whole() as i16).to_be_bytes().to_vec(),
                "putInt" => (whole() as i32).to_be_bytes().to_vec(),
                "putLong" => whole().to_be_bytes().to_vec(),
                "putFloat" => (real() as f32).to_be_bytes().to_vec(),
                "putDouble" => real().to_be_bytes().to_vec(),
                _ => return Ok(None),
            };
            buffer.write(index.first(), &bytes)?;
            same()
        }
        _ => None,
    })
}
