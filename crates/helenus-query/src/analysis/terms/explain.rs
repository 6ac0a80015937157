//! Terms as text, for printed plans.

use helenus_cql::types::CqlType;
use helenus_cql::value::text::to_cql_literal;

use super::Term;

fn joined(terms: &[Term], ty: Option<&CqlType>) -> String {
    let texts: Vec<String> = terms.iter().map(|term| term.explain(ty)).collect();
    texts.join(", ")
}

impl Term {
    /// Returns the term as CQL, with markers by their number. A constant of an unknown type is shown by its bytes.
    pub(crate) fn explain(&self, ty: Option<&CqlType>) -> String {
        let element = match ty {
            Some(CqlType::List { element, .. } | CqlType::Set { element, .. }) => Some(element.as_ref()),
            _ => None,
        };
        match self {
            Term::Constant(None) => "null".to_owned(),
            Term::Constant(Some(bytes)) => {
                ty.and_then(|ty| to_cql_literal(ty, bytes).ok())
                    .unwrap_or_else(|| {
                        format!(
                            "0x{}",
                            bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
                        )
                    })
            }
            Term::Marker { index, .. } => format!("?{index}"),
            Term::List(terms) => format!("[{}]", joined(terms, element)),
            Term::Set { elements, .. } => format!("{{{}}}", joined(elements, element)),
            Term::Map { entries, .. } => {
                let entry =
                    |(key, value): &(Term, Term)| format!("{}: {}", key.explain(None), value.explain(None));
                format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
            }
            Term::Tuple(terms) => format!("({})", joined(terms, None)),
            Term::UserType { fields, .. } => {
                let field =
                    |field: &Option<Term>| field.as_ref().map_or("-".to_owned(), |term| term.explain(None));
                format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
            }
            Term::Vector { elements, .. } => format!("[{}]", joined(elements, None)),
            Term::Function { function, args } => {
                let types = function.arg_types().iter();
                let args: Vec<String> = args
                    .iter()
                    .zip(types)
                    .map(|(arg, ty)| arg.explain(Some(ty)))
                    .collect();
                format!("{}({})", function.name(), args.join(", "))
            }
        }
    }
}
