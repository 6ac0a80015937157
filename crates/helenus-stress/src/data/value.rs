//! Values that can be verified: each has a mark of its key, a version and a checksum.
//!
//! A value begins with a header of 16 bytes, big-endian: a mark (4), a version (8) and a checksum (4). The payload follows. The mark is the
//! CRC-32 of the key and part. The checksum is the CRC-32 of the version, key, part and payload. In text each byte of the header is two
//! letters from `a` to `p`.
//!
//! A reader detects values that are torn, belong to another key, or have changed in any bit. No record of the writes is needed.

use rand::RngCore;

/// Encoding of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueFormat {
    /// Letters only.
    Text,
    /// Any bytes.
    Blob,
}

/// Identity of a value: its key, and its number among the key's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueId<'a> {
    pub key: &'a [u8],
    /// 0 if the key has one value.
    pub part: u64,
}

impl ValueId<'_> {
    fn mark(&self) -> [u8; 4] {
        let mut hasher = crc32fast::Hasher::new();
        self.add_to(&mut hasher);
        hasher.finalize().to_be_bytes()
    }

    fn add_to(&self, hasher: &mut crc32fast::Hasher) {
        hasher.update(self.key);
        hasher.update(&self.part.to_be_bytes());
    }
}

const HEADER: usize = 16;

impl ValueFormat {
    /// Returns the number of bytes before the payload, which is the minimum length of a value.
    pub fn header_len(self) -> usize {
        match self {
            ValueFormat::Text => 2 * HEADER,
            ValueFormat::Blob => HEADER,
        }
    }
}

/// Reason why a value is not one that was written under its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corruption {
    /// The value is too short for its header, or its header is not letters.
    Malformed,
    /// The value has the mark of another key.
    OtherKey,
    /// The checksum does not match.
    Checksum,
}

/// Replaces the content of `out` by a value of `len` bytes, at least those of the header. `payload` appends the given number of bytes.
pub fn write(
    out: &mut Vec<u8>,
    format: ValueFormat,
    id: ValueId<'_>,
    version: u64,
    len: usize,
    payload: impl FnOnce(&mut Vec<u8>, usize),
) {
    out.clear();
    let header_len = format.header_len();
    out.resize(header_len, 0);
    payload(out, len.saturating_sub(header_len));
    let header = header(id, version, &out[header_len..]);
    match format {
        ValueFormat::Blob => out[..HEADER].copy_from_slice(&header),
        ValueFormat::Text => {
            for (pair, byte) in out.chunks_exact_mut(2).zip(header) {
                pair.copy_from_slice(&[b'a' + (byte >> 4), b'a' + (byte & 15)]);
            }
        }
    }
}

/// Verifies a value that was read at `id`. Returns its version.
pub fn check(format: ValueFormat, id: ValueId<'_>, value: &[u8]) -> Result<u64, Corruption> {
    let (head, payload) = value
        .split_at_checked(format.header_len())
        .ok_or(Corruption::Malformed)?;
    let mut found = [0; HEADER];
    match format {
        ValueFormat::Blob => found.copy_from_slice(head),
        ValueFormat::Text => {
            for (byte, pair) in found.iter_mut().zip(head.chunks_exact(2)) {
                *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
            }
        }
    }
    let version = u64::from_be_bytes(std::array::from_fn(|i| found[4 + i]));
    if found == header(id, version, payload) {
        return Ok(version);
    }
    if found[..4] == id.mark() {
        return Err(Corruption::Checksum);
    }
    Err(Corruption::OtherKey)
}

fn nibble(letter: u8) -> Result<u8, Corruption> {
    match letter {
        b'a'..=b'p' => Ok(letter - b'a'),
        _ => Err(Corruption::Malformed),
    }
}

fn header(id: ValueId<'_>, version: u64, payload: &[u8]) -> [u8; HEADER] {
    let mut all = crc32fast::Hasher::new();
    all.update(&version.to_be_bytes());
    id.add_to(&mut all);
    all.update(payload);
    let mut header = [0; HEADER];
    header[..4].copy_from_slice(&id.mark());
    header[4..12].copy_from_slice(&version.to_be_bytes());
    header[12..].copy_from_slice(&all.finalize().to_be_bytes());
    header
}

/// Appends `len` random letters from `a` to `z`.
pub fn random_letters(out: &mut Vec<u8>, len: usize, rng: &mut impl RngCore) {
    let start = out.len();
    random_bytes(out, len, rng);
    for byte in &mut out[start..] {
        *byte = b'a' + ((u16::from(*byte) * 26) >> 8) as u8;
    }
}

/// Appends `len` random bytes, which are incompressible.
pub fn random_bytes(out: &mut Vec<u8>, len: usize, rng: &mut impl RngCore) {
    let start = out.len();
    out.resize(start + len, 0);
    rng.fill_bytes(&mut out[start..]);
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    use super::*;

    fn id(key: &str) -> ValueId<'_> {
        ValueId {
            key: key.as_bytes(),
            part: 3,
        }
    }

    fn value(format: ValueFormat, key: &str, len: usize) -> Vec<u8> {
        let mut rng = SmallRng::seed_from_u64(7);
        let mut out = b"left over".to_vec();
        write(&mut out, format, id(key), 42, len, |out, len| match format {
            ValueFormat::Text => random_letters(out, len, &mut rng),
            ValueFormat::Blob => random_bytes(out, len, &mut rng),
        });
        out
    }

    #[test]
    fn value_has_requested_length_and_returns_its_version() {
        for format in [ValueFormat::Text, ValueFormat::Blob] {
            for len in [format.header_len(), 100, 1_000] {
                let value = value(format, "001.0.1", len);
                assert_eq!(value.len(), len);
                assert_eq!(check(format, id("001.0.1"), &value), Ok(42));
            }
            assert_eq!(
                value(format, "k", 1).len(),
                format.header_len(),
                "no shorter than its header"
            );
        }
    }

    #[test]
    fn text_is_letters() {
        assert!(
            value(ValueFormat::Text, "k", 300)
                .iter()
                .all(u8::is_ascii_lowercase)
        );
    }

    #[test]
    fn any_changed_bit_is_found() {
        for format in [ValueFormat::Text, ValueFormat::Blob] {
            let whole = value(format, "k", 80);
            for at in 0..whole.len() * 8 {
                let mut broken = whole.clone();
                broken[at / 8] ^= 1 << (at % 8);
                assert!(check(format, id("k"), &broken).is_err(), "{format:?}, bit {at}");
            }
            assert_eq!(
                check(format, id("k"), &whole[..whole.len() - 1]),
                Err(Corruption::Checksum)
            );
            assert_eq!(check(format, id("k"), &whole[..3]), Err(Corruption::Malformed));
            assert_eq!(check(format, id("other"), &whole), Err(Corruption::OtherKey));
            let other_part = ValueId { part: 4, ..id("k") };
            assert_eq!(check(format, other_part, &whole), Err(Corruption::OtherKey));
        }
    }
}
