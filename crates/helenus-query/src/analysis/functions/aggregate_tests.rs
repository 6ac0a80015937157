use helenus_cql::value::{CqlValue, Decimal};
use num_bigint::BigInt;

use super::*;

type Values = Vec<Option<Bytes>>;

/// Returns numbers that are easily confused: repeated ones, both signs, and the limits of their types.
fn numbers(native: NativeType) -> Values {
    let of = |value: i64| {
        Some(match native {
            NativeType::Tinyint => CqlValue::Tinyint(value as i8),
            NativeType::Smallint => CqlValue::Smallint(value as i16),
            NativeType::Int => CqlValue::Int(value as i32),
            NativeType::Varint => CqlValue::Varint(BigInt::from(value) * i64::MAX),
            _ => CqlValue::Bigint(value),
        })
    };
    let values = [3, -7, 3, 0, i64::MAX, 1, i64::MIN, -1, 12, i64::MAX];
    let mut values: Values = values
        .into_iter()
        .map(|value| Some(of(value)?.encode(&CqlType::Native(native))))
        .collect();
    values.insert(4, None);
    values
}

fn one_by_one(function: &NativeAggregate, values: &Values) -> Box<dyn AggregateState> {
    let mut state = function.new_state();
    for value in values {
        state.add(std::slice::from_ref(value)).unwrap();
    }
    state
}

#[test]
fn parts_that_are_merged_give_what_rows_one_by_one_give() {
    for native in [
        NativeType::Tinyint,
        NativeType::Smallint,
        NativeType::Int,
        NativeType::Bigint,
        NativeType::Varint,
    ] {
        let ty = CqlType::Native(native);
        let count = NativeAggregate::new("count", [ty.clone()], CqlType::BIGINT, Count::default);
        let values = numbers(native);
        for function in [count, sum(native), avg(native), min(&ty), max(&ty)] {
            assert!(function.is_mergeable(), "{function:?}");
            let whole = one_by_one(&function, &values).result().unwrap();
            for first in 0..=values.len() {
                for second in first..=values.len() {
                    let parts = [&values[..first], &values[first..second], &values[second..]];
                    let mut merged = function.new_state();
                    for part in parts {
                        merged.merge(&one_by_one(&function, &part.to_vec()).partial().unwrap());
                    }
                    assert_eq!(merged.result().unwrap(), whole, "{function:?} {first} {second}");
                }
            }
        }
    }
}

#[test]
fn of_values_that_compare_as_equal_the_first_stays() {
    let ty = CqlType::Native(NativeType::Decimal);
    let decimal = |unscaled: i64, scale: i32| {
        let value = CqlValue::Decimal(Decimal::new(unscaled, scale));
        Some(value.encode(&CqlType::Native(NativeType::Decimal)))
    };
    let (first, second) = (vec![decimal(10, 1)], vec![decimal(100, 2)]);
    for function in [min(&ty), max(&ty)] {
        let mut merged = function.new_state();
        for part in [&first, &second] {
            merged.merge(&one_by_one(&function, part).partial().unwrap());
        }
        assert_eq!(merged.result().unwrap(), first[0]);
    }
}

#[test]
fn what_is_rounded_on_the_way_is_not_merged() {
    for native in [NativeType::Float, NativeType::Double, NativeType::Decimal] {
        assert!(!sum(native).is_mergeable());
        assert!(!avg(native).is_mergeable());
    }
}
