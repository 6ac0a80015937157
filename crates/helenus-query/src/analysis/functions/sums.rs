//! The states of `sum` and `avg`.

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::types::{CqlType, NativeType};
use helenus_cql::value::Decimal;
use num_bigint::BigInt;
use num_traits::Zero;

use super::aggregate_state::{AggregateState, i64_of};
use super::number::Number;

/// A sum of doubles that keeps track of rounding errors (Kahan), as Cassandra computes it.
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

pub(super) struct Sum {
    native: NativeType,
    long: i64,
    double: DoubleSum,
    varint: BigInt,
    decimal: Decimal,
}

impl Sum {
    pub fn new(native: NativeType) -> Sum {
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
        // The lowest bits of a 64-bit sum equal those of a sum that wraps around in a smaller type.
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

pub(super) struct Avg {
    native: NativeType,
    count: i32,
    sum: BigInt,
    double: DoubleSum,
    /// The sum as a decimal. Set once the sum of doubles is out of range although no value was infinite.
    big_sum: Option<Decimal>,
    /// The average so far. Each value changes it, and the result is rounded to the current scale.
    decimal: Decimal,
}

impl Avg {
    pub fn new(native: NativeType) -> Avg {
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

    /// Returns the count as a 64-bit integer, followed by the sum.
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
