use super::*;

fn marker(index: usize, ty: CqlType) -> Term {
    Term::Marker { index, ty }
}

fn of(values: &[Vec<Term>]) -> Option<MarkerList> {
    MarkerList::of(values.iter().map(Vec::as_slice))
}

fn shown(terms: impl IntoIterator<Item = Term>) -> Vec<(usize, String)> {
    let shown = |term| match term {
        Term::Marker { index, ty } => (index, ty.to_string()),
        other => panic!("{other:?}"),
    };
    terms.into_iter().map(shown).collect()
}

#[test]
fn like_markers_become_one_list() {
    let values: Vec<Vec<Term>> = (3..9_003)
        .map(|index| vec![marker(index, CqlType::INT)])
        .collect();
    let list = of(&values).unwrap();
    assert_eq!(list.count, 9_000);
    assert_eq!(shown(list.terms()), shown(values.concat()));
}

#[test]
fn tuples_of_markers_become_one_list() {
    let tuple = |at: usize| vec![marker(at, CqlType::INT), marker(at + 1, CqlType::TEXT)];
    let values = [tuple(1), tuple(3), tuple(5)];
    let list = of(&values).unwrap();
    assert_eq!(shown(list.terms()), shown(values.concat()));
    let listed: Vec<_> = list.values().map(shown).collect();
    assert_eq!(listed, values.map(shown));
}

#[test]
fn other_lists_are_none() {
    let int = |index| vec![marker(index, CqlType::INT)];
    assert_eq!(of(&[]), None);
    assert_eq!(of(&[int(0)]), None);
    assert_eq!(of(&[int(0), int(2)]), None);
    assert_eq!(of(&[int(0), vec![marker(1, CqlType::TEXT)]]), None);
    assert_eq!(of(&[int(0), vec![Term::Constant(None)]]), None);
    assert_eq!(of(&[vec![Term::Constant(None)], int(0)]), None);
    assert_eq!(of(&[int(0), [int(1), int(2)].concat()]), None);
}
