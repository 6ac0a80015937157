//! Lists of similar markers, such as `?, ?, ?` or `(?, ?), (?, ?)`. A list takes the same memory whatever its length is.

use helenus_cql::types::CqlType;

use super::Term;

/// A list of values that are markers, or tuples of markers. The values have the same types, and the markers are numbered in the order of
/// the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkerList {
    /// Index of the first marker.
    first: usize,
    /// Types of the markers of one value.
    types: Box<[CqlType]>,
    /// Number of values.
    count: usize,
}

impl MarkerList {
    /// Returns the list of the values, each given by its terms. `None` if the values are no such list, or fewer than two.
    pub fn of<'t>(values: impl IntoIterator<Item = &'t [Term]>) -> Option<MarkerList> {
        let mut values = values.into_iter();
        let model = values.next()?;
        let first = model.first()?.marker_index()?;
        let types: Option<Box<[CqlType]>> = model.iter().map(marker_type).collect();
        let mut list = MarkerList {
            first,
            types: types?,
            count: 0,
        };
        for value in std::iter::once(model).chain(values) {
            if !list.is_continued_by(value) {
                return None;
            }
            list.count += 1;
        }
        (list.count > 1).then_some(list)
    }

    /// Returns the number of values.
    pub fn value_count(&self) -> usize {
        self.count
    }

    /// Returns true if these terms are those of the value that would follow the list's last one.
    fn is_continued_by(&self, value: &[Term]) -> bool {
        let next = self.first + self.count * self.types.len();
        let is_next = |(at, (term, expected)): (usize, (&Term, &CqlType))| matches!(term, Term::Marker { index, ty } if *index == next + at && ty == expected);
        value.len() == self.types.len() && value.iter().zip(&self.types).enumerate().all(is_next)
    }

    /// Returns the values, each as a list of its terms.
    pub fn values(&self) -> impl Iterator<Item = Vec<Term>> {
        let width = self.types.len();
        let value = move |at: usize| {
            let begin = self.first + at * width;
            let terms = (begin..).zip(&self.types);
            terms
                .map(|(index, ty)| Term::Marker {
                    index,
                    ty: ty.clone(),
                })
                .collect()
        };
        (0..self.count).map(value)
    }

    /// Returns the terms of all values.
    pub fn terms(&self) -> impl Iterator<Item = Term> {
        let markers = self.first..self.first + self.count * self.types.len();
        markers
            .zip(self.types.iter().cycle())
            .map(|(index, ty)| Term::Marker {
                index,
                ty: ty.clone(),
            })
    }
}

fn marker_type(term: &Term) -> Option<CqlType> {
    match term {
        Term::Marker { ty, .. } => Some(ty.clone()),
        _ => None,
    }
}

#[cfg(test)]
#[path = "marker_list_tests.rs"]
mod tests;
