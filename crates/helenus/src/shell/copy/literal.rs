//! Parsing of values in files of COPY TO and of cqlsh. Single values are bare, collections are as in CQL.

use bytes::Bytes;
use helenus_cql::types::{CqlType, NativeType, UserType};
use helenus_cql::value::{
    from_string, pack_list, pack_map, pack_set, pack_tuple, pack_vector, text::parse_hex,
};

/// Parses and serializes a value. `null` is the text for null in fields of tuples and user types.
pub fn from_text(ty: &CqlType, text: &str, null: &str) -> Result<Bytes, String> {
    if let CqlType::Native(native) = ty {
        return bare(*native, text);
    }
    let mut reader = LiteralReader { rest: text, null };
    let value = reader.value(ty)?.ok_or("null is no value of a column here")?;
    match reader.rest.trim() {
        "" => Ok(value),
        rest => Err(format!("'{rest}' follows a value of type {ty}")),
    }
}

fn bare(native: NativeType, text: &str) -> Result<Bytes, String> {
    let ty = CqlType::Native(native);
    match native {
        NativeType::Text | NativeType::Ascii => from_string(&ty, text),
        _ if text.trim().is_empty() => Err(format!("an empty text is not a value of type {ty}")),
        NativeType::Blob => {
            let text = text.trim();
            parse_hex(
                text.strip_prefix("0x")
                    .ok_or_else(|| format!("{text} does not begin with 0x"))?,
            )
        }
        NativeType::Counter => from_string(&CqlType::BIGINT, text.trim()),
        _ => from_string(&ty, text.trim()),
    }
}

/// Parser of literals at the start of a text.
struct LiteralReader<'t> {
    rest: &'t str,
    /// Unquoted text for null, as in cqlsh.
    null: &'t str,
}

impl LiteralReader<'_> {
    /// Reads a value. `None` if it is `null`, or the text for null.
    fn value(&mut self, ty: &CqlType) -> Result<Option<Bytes>, String> {
        self.rest = self.rest.trim_start();
        if self.takes_null() {
            return Ok(None);
        }
        Ok(Some(match ty {
            CqlType::List { element, .. } => pack_list(self.elements('[', ']', element)?),
            CqlType::Vector { element, .. } => pack_vector(element, self.elements('[', ']', element)?),
            CqlType::Set { element, .. } => pack_set(element, self.elements('{', '}', element)?),
            CqlType::Map { key, value, .. } => pack_map(key, self.entries(key, value)?),
            CqlType::Tuple(elements) => pack_tuple(self.tuple(elements)?),
            CqlType::Udt { definition, .. } => pack_tuple(self.fields(definition)?),
            CqlType::Native(native) => bare(*native, &self.scalar()?)?,
            CqlType::Custom(_) => bare(NativeType::Blob, &self.scalar()?)?,
        }))
    }

    fn takes_null(&mut self) -> bool {
        if self.rest.starts_with(['\'', '"', '[', '{', '(']) {
            return false;
        }
        let (word, rest) = self.rest.split_at(self.word_len());
        let is_null = word.trim().eq_ignore_ascii_case("null") || word.trim() == self.null;
        if is_null {
            self.rest = rest;
        }
        is_null
    }

    /// Returns the number of bytes before the next delimiter.
    fn word_len(&self) -> usize {
        let next = self.rest.find([',', ':', ']', '}', ')']);
        next.unwrap_or(self.rest.len())
    }

    fn takes(&mut self, sign: char) -> bool {
        let rest = self.rest.trim_start();
        let after = rest.strip_prefix(sign);
        self.rest = after.unwrap_or(rest);
        after.is_some()
    }

    fn expect(&mut self, sign: char) -> Result<(), String> {
        match self.takes(sign) {
            true => Ok(()),
            false => Err(format!("{sign} is expected at '{}'", self.rest)),
        }
    }

    /// Reads items between two delimiters, separated by commas.
    fn list<T>(
        &mut self,
        open: char,
        close: char,
        mut item: impl FnMut(&mut Self) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        self.expect(open)?;
        let mut items = Vec::new();
        if self.takes(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.takes(close) {
                return Ok(items);
            }
            self.expect(',')?;
        }
    }

    fn element(&mut self, ty: &CqlType) -> Result<Bytes, String> {
        self.value(ty)?
            .ok_or_else(|| "null is no element of a collection".to_owned())
    }

    fn elements(&mut self, open: char, close: char, element: &CqlType) -> Result<Vec<Bytes>, String> {
        self.list(open, close, |reader| reader.element(element))
    }

    fn entries(&mut self, key: &CqlType, value: &CqlType) -> Result<Vec<(Bytes, Bytes)>, String> {
        self.list('{', '}', |reader| {
            let key = reader.element(key)?;
            reader.expect(':')?;
            Ok((key, reader.element(value)?))
        })
    }

    fn tuple(&mut self, elements: &[CqlType]) -> Result<Vec<Option<Bytes>>, String> {
        let mut types = elements.iter();
        self.list('(', ')', |reader| {
            let ty = types.next().ok_or("a tuple has too many elements")?;
            reader.value(ty)
        })
    }

    fn fields(&mut self, definition: &UserType) -> Result<Vec<Option<Bytes>>, String> {
        let mut values = vec![None; definition.fields.len()];
        self.list('{', '}', |reader| {
            let name = reader.scalar()?;
            reader.expect(':')?;
            let mut fields = definition.fields.iter().zip(&mut values);
            let field = fields.find(|(field, _)| field.name == name);
            let (field, value) = field.ok_or_else(|| format!("the type has no field {name}"))?;
            *value = reader.value(&field.ty)?;
            Ok(())
        })?;
        Ok(values)
    }

    /// Reads a quoted string or name, or the text before the next delimiter.
    fn scalar(&mut self) -> Result<String, String> {
        self.rest = self.rest.trim_start();
        match self.rest.chars().next() {
            Some(quote @ ('\'' | '"')) => self.quoted(quote),
            _ => {
                let (word, rest) = self.rest.split_at(self.word_len());
                self.rest = rest;
                Ok(word.trim().to_owned())
            }
        }
    }

    fn quoted(&mut self, quote: char) -> Result<String, String> {
        let mut text = String::new();
        let mut rest = self.rest.get(1..).unwrap_or_default();
        loop {
            let (part, after) = rest
                .split_once(quote)
                .ok_or_else(|| format!("{} has no end", self.rest))?;
            text.push_str(part);
            rest = after;
            match rest.strip_prefix(quote) {
                Some(after) => {
                    text.push(quote);
                    rest = after;
                }
                None => {
                    self.rest = rest;
                    return Ok(text);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn literals_come_back_as_they_are_written() {
        let text = Arc::new(CqlType::Native(NativeType::Text));
        let int = Arc::new(CqlType::Native(NativeType::Int));
        let frozen = false;
        let list = CqlType::List {
            element: Arc::clone(&text),
            frozen,
        };
        let map = CqlType::Map {
            key: Arc::clone(&text),
            value: Arc::new(list.clone()),
            frozen,
        };
        let tuple = CqlType::Tuple(vec![(*int).clone(), (*text).clone()].into());
        for (ty, written) in [
            (&list, "['it''s', 'b,]']"),
            (&list, "[]"),
            (&map, "{'a: b': ['x'], 'c': []}"),
            (&tuple, "(7, null)"),
        ] {
            let bytes = from_text(ty, written, "").unwrap();
            assert_eq!(helenus_cql::value::to_cql_literal(ty, &bytes).unwrap(), written);
        }
        assert!(from_text(&list, "['a'", "").is_err());
        assert!(from_text(&list, "['a'] x", "").is_err());
        assert!(from_text(&list, "[, 'a']", "").is_err());
        assert!(from_text(&int, "", "").is_err());
    }

    #[test]
    fn null_fields_have_the_text_for_null() {
        let tuple = CqlType::Tuple(vec![CqlType::INT, CqlType::TEXT].into());
        let null = from_text(&tuple, "(null, null)", "").unwrap();
        for (written, text) in [
            ("(, )", ""),
            ("(NULL,-)", "-"),
            ("(-, - )", "-"),
            ("(N/A, N/A)", "N/A"),
        ] {
            assert_eq!(from_text(&tuple, written, text).unwrap(), null, "{written}");
        }
        let empty = from_text(&tuple, "(1, '')", "").unwrap();
        assert_eq!(
            empty,
            pack_tuple([Some(1i32.to_be_bytes().as_slice()), Some(b"")])
        );
        assert!(from_text(&tuple, "(, )", "-").is_err());
    }
}
