use helenus_cql::types::CqlType;
use helenus_row::Order;

use super::*;

fn int(value: i32) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

fn layout(order: Order) -> KeyLayout {
    KeyLayout::new(vec![(CqlType::INT, order), (CqlType::TEXT, order)])
}

/// Returns the bounds of the rows between two prefixes, as a statement with these bounds would record them.
fn recorded(layout: &KeyLayout, start: (&[Bytes], bool), end: (&[Bytes], bool)) -> (Bound, Bound) {
    let range = layout.slice(Some(start), Some(end)).expect("values of the types");
    let bounds = RangeBounds {
        is_start_exclusive: !start.1,
        is_end_exclusive: !end.1,
    };
    (
        start_bound(bounds, layout, &range.start),
        end_bound(bounds, layout, range.end.as_ref()),
    )
}

#[test]
fn bounds_are_those_of_the_statement() {
    let prefixes: Vec<Vec<Bytes>> = vec![
        vec![int(0)],
        vec![int(255)],
        vec![int(-1)],
        vec![int(i32::MAX - 1)],
        vec![int(7), Bytes::from_static(b"a")],
        vec![int(7), Bytes::from_static(b"")],
        vec![int(7), Bytes::from_static(b"\xc3\xbf")],
    ];
    for order in [Order::Asc, Order::Desc] {
        let layout = layout(order);
        // In descending order, no row with the same int comes after the empty text. So a range up to it ends with the int.
        let is_last = |values: &[Bytes]| order == Order::Desc && values.last().is_some_and(Bytes::is_empty);
        for values in prefixes.iter().filter(|values| !is_last(values)) {
            for is_inclusive in [true, false] {
                let bound = Bound {
                    values: values.clone(),
                    is_inclusive,
                };
                let at = (values.as_slice(), is_inclusive);
                let (start, end) = recorded(&layout, at, at);
                assert_eq!(start, bound, "{order:?}");
                assert_eq!(end, bound, "{order:?}");
            }
        }
    }
}

#[test]
fn open_bounds_have_no_values() {
    let layout = layout(Order::Asc);
    let open = Bound {
        values: Vec::new(),
        is_inclusive: true,
    };
    assert_eq!(start_bound(RangeBounds::default(), &layout, &Bytes::new()), open);
    assert_eq!(end_bound(RangeBounds::default(), &layout, None), open);
}
