//! What an SASI index answers by its options (Cassandra's `IndexMode` and `ColumnIndex.supports`).

use helenus_cql::ast::Operator;
use helenus_cql::types::{CqlType, NativeType};

use super::{Column, Index, IndexKind, LikeKind};

/// The class that CREATE INDEX names.
pub const SASI_CLASS: &str = "org.apache.cassandra.index.sasi.SASIIndex";

/// Text that is as long is not indexed.
pub const TERM_LEN_END: usize = 1_024;

/// Which terms are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SasiMode {
    Prefix,
    Contains,
    Sparse,
}

impl SasiMode {
    /// The mode of that name, in any case.
    pub fn named(name: &str) -> Option<SasiMode> {
        Some(match name.to_ascii_uppercase().as_str() {
            "PREFIX" => SasiMode::Prefix,
            "CONTAINS" => SasiMode::Contains,
            "SPARSE" => SasiMode::Sparse,
            _ => return None,
        })
    }
}

impl Index {
    pub fn is_sasi(&self) -> bool {
        self.kind == IndexKind::Custom
            && self
                .options
                .get("class_name")
                .is_some_and(|class| class == SASI_CLASS)
    }

    fn sasi_mode(&self) -> SasiMode {
        let mode = self.options.get("mode").and_then(|name| SasiMode::named(name));
        mode.unwrap_or(SasiMode::Prefix)
    }

    fn is_tokenizing(&self) -> bool {
        self.analysis().is_some_and(|analysis| analysis.is_tokenizing())
    }

    /// Whether an SASI index answers `column operator value`.
    pub fn sasi_supports(&self, column: &Column, operator: Operator) -> bool {
        let is_literal = is_literal(column, self.options.get("is_literal").map(String::as_str));
        match operator {
            Operator::Eq => !self.is_tokenizing(),
            Operator::Like => is_literal,
            operator => operator.is_slice() && !is_literal && self.sasi_mode() != SasiMode::Contains,
        }
    }

    /// Whether it answers LIKE with that pattern.
    pub fn sasi_supports_like(&self, kind: LikeKind) -> bool {
        match self.sasi_mode() {
            SasiMode::Prefix => matches!(kind, LikeKind::Matches | LikeKind::Prefix),
            SasiMode::Contains => kind != LikeKind::Prefix || !self.is_tokenizing(),
            SasiMode::Sparse => false,
        }
    }
}

/// Whether values are compared as text: those of text in ascending order, or as the option `is_literal` says.
pub fn is_literal(column: &Column, option: Option<&str>) -> bool {
    match option {
        Some(option) => option.eq_ignore_ascii_case("true"),
        None => is_text(&column.ty) && !column.is_reversed(),
    }
}

/// Whether values are text, which analyzers take.
pub fn is_text(ty: &CqlType) -> bool {
    matches!(ty, CqlType::Native(NativeType::Text | NativeType::Ascii))
}
