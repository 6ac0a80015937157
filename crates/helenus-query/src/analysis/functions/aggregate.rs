//! Aggregates: `count`, `min`, `max`, `sum`, `avg` (Cassandra's `AggregateFcts`).

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::types::{CqlType, NativeType};
use helenus_cql::value::{Decimal, compare};
use num_bigint::BigInt;
use num_traits::Zero;

use super::number::{NUMERIC, Number};
use crate::schema::roles::Resource;

/// A function of the rows of a group, with the types of one overload.
pub trait AggregateFunction: fmt::Debug + Send + Sync {
    /// The qualified name, for example `system.sum`.
    fn name(&self) -> &str;
    fn arg_types(&self) -> &[CqlType];
    fn return_type(&self) -> &CqlType;
    /// The functions of users that are called with it, for which one needs a permission.
    fn executed(&self) -> Vec<Resource> {
        Vec::new()
    }
    /// A state that has seen no row.
    fn new_state(&self) -> Box<dyn AggregateState>;
    /// True if the rows may be taken in parts, whose states are merged in the order of the rows, with the result of taking them one by one.
    /// Not so where rounding depends on the order, and for functions of users.
    fn is_mergeable(&self) -> bool {
        false
    }
    /// The name of the result's column, given those of the arguments.
    fn column_name(&self, args: &[String]) -> String {
        format!("{}({})", self.name(), args.join(", "))
    }
}

/// What an aggregate remembers of the rows of a group.
pub trait AggregateState: Send {
    /// Takes the arguments of one row.
    ///
    /// # Errors
    /// Of a user's function that fails.
    fn add(&mut self, args: &[Option<Bytes>]) -> Result<(), CqlError>;
    /// The result for the rows so far.
    ///
    /// # Errors
    /// As [`AggregateState::add`].
    fn result(&self) -> Result<Option<Bytes>, CqlError>;
    /// Forgets the rows.
    fn reset(&mut self);
    /// The state of the rows so far, for [`AggregateState::merge`]; none of an aggregate that is not mergeable.
    fn partial(&self) -> Option<Bytes> {
        None
    }
    /// Takes the rows of a partial state of the same function, which come after those so far.
    fn merge(&mut self, _partial: &Bytes) {}
}

type NewState = Arc<dyn Fn() -> Box<dyn AggregateState> + Send + Sync>;

/// A native aggregate.
#[derive(Clone)]
pub struct NativeAggregate {
    name: String,
    arg_types: Vec<CqlType>,
    return_type: CqlType,
    new_state: NewState,
    is_mergeable: bool,
}

impl NativeAggregate {
    fn new<S: AggregateState + 'static>(
        name: &str,
        arg_types: impl Into<Vec<CqlType>>,
        return_type: CqlType,
        new_state: impl Fn() -> S + Send + Sync + 'static,
    ) -> NativeAggregate {
        let is_mergeable = new_state().partial().is_some();
        NativeAggregate {
            is_mergeable,
            name: format!("system.{name}"),
            arg_types: arg_types.into(),
            return_type,
            new_state: Arc::new(move || Box::new(new_state())),
        }
    }

    /// The name without its keyspace.
    pub fn short_name(&self) -> &str {
        self.name.strip_prefix("system.").unwrap_or(&self.name)
    }
}

impl fmt::Debug for NativeAggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&super::signature(&self.name, &self.arg_types, &self.return_type))
    }
}

impl AggregateFunction for NativeAggregate {
    fn name(&self) -> &str {
        &self.name
    }

    fn arg_types(&self) -> &[CqlType] {
        &self.arg_types
    }

    fn return_type(&self) -> &CqlType {
        &self.return_type
    }

    fn new_state(&self) -> Box<dyn AggregateState> {
        (self.new_state)()
    }

    fn is_mergeable(&self) -> bool {
        self.is_mergeable
    }

    fn column_name(&self, args: &[String]) -> String {
        if self.arg_types.is_empty() {
            return "count".to_owned();
        }
        format!("{}({})", self.name, args.join(", "))
    }
}

/// `count(*)`.
pub fn count_rows() -> NativeAggregate {
    NativeAggregate::new("count_rows", [], CqlType::BIGINT, Count::default)
}

/// The aggregates that have the same overloads for every call; `min` and `max` take any type.
pub fn functions() -> Vec<NativeAggregate> {
    let mut functions = vec![
        count_rows(),
        NativeAggregate::new("countRows", [], CqlType::BIGINT, Count::default),
        NativeAggregate::new("count", [CqlType::BLOB], CqlType::BIGINT, Count::default),
    ];
    for native in NUMERIC {
        functions.push(sum(native));
        functions.push(avg(native));
    }
    functions
}

/// `sum` of a numeric type; wraps around where the type is bounded.
pub fn sum(native: NativeType) -> NativeAggregate {
    let ty = CqlType::Native(native);
    NativeAggregate::new("sum", [ty.clone()], ty, move || Sum::new(native))
}

/// `avg` of a numeric type; of integers it is an integer.
pub fn avg(native: NativeType) -> NativeAggregate {
    let ty = CqlType::Native(native);
    NativeAggregate::new("avg", [ty.clone()], ty, move || Avg::new(native))
}

/// `min` of any type.
pub fn min(ty: &CqlType) -> NativeAggregate {
    extreme("min", ty, Ordering::Less)
}

/// `max` of any type.
pub fn max(ty: &CqlType) -> NativeAggregate {
    extreme("max", ty, Ordering::Greater)
}

fn extreme(name: &str, ty: &CqlType, better: Ordering) -> NativeAggregate {
    let arg = ty.clone();
    let state = move || Extreme {
        ty: arg.clone(),
        better,
        best: None,
    };
    NativeAggregate::new(name, [ty.clone()], ty.clone(), state)
}

/// Counts rows, or values that are not null.
#[derive(Default)]
struct Count {
    count: i64,
}

impl AggregateState for Count {
    fn add(&mut self, args: &[Option<Bytes>]) -> Result<(), CqlError> {
        if args.first().is_none_or(Option::is_some) {
            self.count += 1;
        }
        Ok(())
    }

    fn result(&self) -> Result<Option<Bytes>, CqlError> {
        Ok(Some(Bytes::copy_from_slice(&self.count.to_be_bytes())))
    }

    fn reset(&mut self) {
        self.count = 0;
    }

    fn partial(&self) -> Option<Bytes> {
        Some(Bytes::copy_from_slice(&self.count.to_be_bytes()))
    }

    fn merge(&mut self, partial: &Bytes) {
        self.count += i64_of(partial);
    }
}

/// The long that a partial state begins with.
fn i64_of(partial: &[u8]) -> i64 {
    partial
        .first_chunk()
        .map_or(0, |bytes| i64::from_be_bytes(*bytes))
}

struct Extreme {
    ty: CqlType,
    better: Ordering,
    best: Option<Bytes>,
}

impl Extreme {
    /// Of values that compare as equal, the first stays.
    fn see(&mut self, value: Bytes) {
        let is_better = match &self.best {
            Some(best) => compare(&self.ty, &value, best) == self.better,
            None => true,
        };
        if is_better {
            self.best = Some(value);
        }
    }
}

impl AggregateState for Extreme {
    fn add(&mut self, args: &[Option<Bytes>]) -> Result<(), CqlError> {
        if let Some(Some(value)) = args.first() {
            self.see(value.clone());
        }
        Ok(())
    }

    fn result(&self) -> Result<Option<Bytes>, CqlError> {
        Ok(self.best.clone())
    }

    fn reset(&mut self) {
        self.best = None;
    }

    /// One byte, and the value behind it if there is one.
    fn partial(&self) -> Option<Bytes> {
        let best = self.best.as_ref();
        Some(best.map_or_else(Bytes::new, |best| [&[1], best.as_ref()].concat().into()))
    }

    fn merge(&mut self, partial: &Bytes) {
        if !partial.is_empty() {
            self.see(partial.slice(1..));
        }
    }
}

/// A sum of doubles that keeps track of what rounding lost (Kahan), as Cassandra computes it.
#[derive(Default)]
struct DoubleSum {
    sum: f64,
    compensation: f64,
    simple_sum: f64,
}

impl DoubleSum {
    fn add(&mut self, value: f64) {
        self.simple_sum += value;
        let corrected = value - self.compensation;
        let rounded = self.sum + corrected;
        self.compensation = (rounded - self.sum) - corrected;
        self.sum = rounded;
    }

    fn total(&self) -> f64 {
        let total = self.sum + self.compensation;
        if total.is_nan() && self.simple_sum.is_infinite() {
            self.simple_sum
        } else {
            total
        }
    }
}

struct Sum {
    native: NativeType,
    long: i64,
    double: DoubleSum,
    varint: BigInt,
    decimal: Decimal,
}

impl Sum {
    fn new(native: NativeType) -> Sum {
        Sum {
            native,
            long: 0,
            double: DoubleSum::default(),
            varint: BigInt::zero(),
            decimal: Decimal::new(0, 0),
        }
    }
}

impl AggregateState for Sum {
    fn add(&mut self, args: &[Option<Bytes>]) -> Result<(), CqlError> {
        let value = args.first().and_then(Option::as_ref);
        let Some(number) = Number::decode(&CqlType::Native(self.native), value) else {
            return Ok(());
        };
        match (self.native, &number) {
            (NativeType::Float | NativeType::Double, number) => self.double.add(number.to_double()),
            (_, Number::Varint(value)) => self.varint += value,
            (_, Number::Decimal(value)) => {
                if let Some(sum) = self.decimal.add(value) {
                    self.decimal = sum;
                }
            }
            (_, number) => self.long = self.long.wrapping_add(number.to_long()),
        }
        Ok(())
    }

    fn result(&self) -> Result<Option<Bytes>, CqlError> {
        // The lowest bits of a long sum are those of a sum that wraps around earlier.
        let number = match self.native {
            NativeType::Tinyint => Number::Byte(self.long as i8),
            NativeType::Smallint => Number::Short(self.long as i16),
            NativeType::Int => Number::Int(self.long as i32),
            NativeType::Float => Number::Float(self.double.total() as f32),
            NativeType::Double => Number::Double(self.double.total()),
            NativeType::Varint => Number::Varint(self.varint.clone()),
            NativeType::Decimal => Number::Decimal(self.decimal.clone()),
            _ => Number::Long(self.long),
        };
        Ok(Some(number.encode()))
    }

    fn reset(&mut self) {
        *self = Sum::new(self.native);
    }

    fn partial(&self) -> Option<Bytes> {
        match self.native {
            NativeType::Float | NativeType::Double | NativeType::Decimal => None,
            NativeType::Varint => Some(self.varint.to_signed_bytes_be().into()),
            _ => Some(Bytes::copy_from_slice(&self.long.to_be_bytes())),
        }
    }

    fn merge(&mut self, partial: &Bytes) {
        match self.native {
            NativeType::Varint => self.varint += BigInt::from_signed_bytes_be(partial),
            _ => self.long = self.long.wrapping_add(i64_of(partial)),
        }
    }
}

struct Avg {
    native: NativeType,
    count: i32,
    sum: BigInt,
    double: DoubleSum,
    /// Set once the sum of doubles is out of range, though no value was infinite.
    big_sum: Option<Decimal>,
    /// The average so far; each value moves it, rounded to the scale that there is.
    decimal: Decimal,
}

impl Avg {
    fn new(native: NativeType) -> Avg {
        Avg {
            native,
            count: 0,
            sum: BigInt::zero(),
            double: DoubleSum::default(),
            big_sum: None,
            decimal: Decimal::new(0, 0),
        }
    }

    fn add_double(&mut self, value: f64) {
        let add = |sum: &Decimal| Decimal::from_double(value).and_then(|value| sum.add(&value));
        if let Some(big_sum) = &self.big_sum {
            self.big_sum = add(big_sum).or_else(|| self.big_sum.take());
            return;
        }
        let before = self.double.sum;
        self.double.add(value);
        if self.double.sum.is_infinite() && !value.is_infinite() {
            self.big_sum = Decimal::from_double(before).as_ref().and_then(add);
        }
    }

    fn double_average(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        match &self.big_sum {
            Some(sum) => {
                let count = Decimal::new(self.count, 0);
                sum.divide_half_even(&count, sum.scale)
                    .map_or(f64::NAN, |average| average.to_double())
            }
            None => self.double.total() / f64::from(self.count),
        }
    }

    fn add_decimal(&mut self, value: &Decimal) {
        let moved = || {
            let distance = value.subtract(&self.decimal)?;
            let step = distance.divide_half_even(&Decimal::new(self.count, 0), distance.scale)?;
            self.decimal.add(&step)
        };
        if let Some(moved) = moved() {
            self.decimal = moved;
        }
    }

    fn integer_average(&self) -> BigInt {
        if self.count == 0 {
            BigInt::zero()
        } else {
            &self.sum / self.count
        }
    }
}

impl AggregateState for Avg {
    fn add(&mut self, args: &[Option<Bytes>]) -> Result<(), CqlError> {
        let value = args.first().and_then(Option::as_ref);
        let Some(number) = Number::decode(&CqlType::Native(self.native), value) else {
            return Ok(());
        };
        self.count += 1;
        match &number {
            Number::Float(_) | Number::Double(_) => self.add_double(number.to_double()),
            Number::Decimal(value) => self.add_decimal(value),
            Number::Varint(value) => self.sum += value,
            other => self.sum += other.to_long(),
        }
        Ok(())
    }

    fn result(&self) -> Result<Option<Bytes>, CqlError> {
        let long = || Number::Varint(self.integer_average()).to_long();
        let number = match self.native {
            NativeType::Tinyint => Number::Byte(long() as i8),
            NativeType::Smallint => Number::Short(long() as i16),
            NativeType::Int => Number::Int(long() as i32),
            NativeType::Float => Number::Float(self.double_average() as f32),
            NativeType::Double => Number::Double(self.double_average()),
            NativeType::Varint => Number::Varint(self.integer_average()),
            NativeType::Decimal => Number::Decimal(self.decimal.clone()),
            _ => Number::Long(long()),
        };
        Ok(Some(number.encode()))
    }

    fn reset(&mut self) {
        *self = Avg::new(self.native);
    }

    /// The count, as a long, and the sum behind it.
    fn partial(&self) -> Option<Bytes> {
        match self.native {
            NativeType::Float | NativeType::Double | NativeType::Decimal => None,
            _ => {
                let count = i64::from(self.count).to_be_bytes();
                Some([count.as_slice(), &self.sum.to_signed_bytes_be()].concat().into())
            }
        }
    }

    fn merge(&mut self, partial: &Bytes) {
        let sum = partial.get(8..).unwrap_or_default();
        self.count = self.count.wrapping_add(i64_of(partial) as i32);
        self.sum += BigInt::from_signed_bytes_be(sum);
    }
}

#[cfg(test)]
#[path = "aggregate_tests.rs"]
mod tests;
