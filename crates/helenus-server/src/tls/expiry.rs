//! Reads the expiry time of a certificate. rustls does the rest of X.509.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use helenus_cql::value::civil::days_from_civil;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

const DAY_S: i64 = 86_400;
const SEQUENCE: u8 = 0x30;
/// DER tag of a certificate's version, which is optional.
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The expiry time of one of the node's certificates, as last read. Clones share the time.
#[derive(Clone, Debug, Default)]
pub struct Expiry(Arc<AtomicI64>);

impl Expiry {
    /// Returns the expiry time of the first certificate in a PEM text.
    pub(crate) fn of(pem: &[u8]) -> Expiry {
        let expiry = Expiry::default();
        expiry.read_again(pem);
        expiry
    }

    /// Replaces the time by that of the first certificate in a PEM text.
    pub(crate) fn read_again(&self, pem: &[u8]) {
        self.0.store(expiry_s(pem).unwrap_or(0), Ordering::Relaxed);
    }

    /// Returns the expiry time in seconds since 1970. `None` if it could not be read.
    pub fn at_s(&self) -> Option<i64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|at_s| *at_s != 0)
    }
}

/// Returns the expiry time of the first certificate in a PEM text, in seconds since 1970. `None` if the text has no readable certificate.
fn expiry_s(pem: &[u8]) -> Option<i64> {
    let certificate = CertificateDer::pem_slice_iter(pem).next()?.ok()?;
    not_after_s(&certificate)
}

/// Returns the end of a certificate's validity (RFC 5280, section 4.1), in seconds since 1970.
fn not_after_s(der: &[u8]) -> Option<i64> {
    let (certificate, _) = tagged(der, SEQUENCE)?;
    let (mut body, _) = tagged(certificate, SEQUENCE)?;
    if body.first() == Some(&VERSION) {
        (_, _, body) = element(body)?;
    }
    // Skips the serial number, the algorithm and the issuer.
    for _ in 0..3 {
        (_, _, body) = element(body)?;
    }
    let (validity, _) = tagged(body, SEQUENCE)?;
    let (_, _, after_begin) = element(validity)?;
    let (tag, end, _) = element(after_begin)?;
    seconds(tag, std::str::from_utf8(end).ok()?)
}

/// Splits off a DER element. Returns its tag, its content, and the bytes after it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], rest) = der.split_first_chunk()?;
    let (len, rest) = match first {
        short @ 0..0x80 => (usize::from(short), rest),
        long => {
            let (digits, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
            let digit = |len: usize, digit: &u8| len.checked_mul(256)?.checked_add(usize::from(*digit));
            (digits.iter().try_fold(0, digit)?, rest)
        }
    };
    let (content, rest) = rest.split_at_checked(len)?;
    Some((tag, content, rest))
}

/// Splits off a DER element that must have the tag `wanted`. Returns its content and the bytes after it.
fn tagged(der: &[u8], wanted: u8) -> Option<(&[u8], &[u8])> {
    let (tag, content, rest) = element(der)?;
    (tag == wanted).then_some((content, rest))
}

/// Parses a time, in seconds since 1970. RFC 5280 requires UTC and seconds.
fn seconds(tag: u8, text: &str) -> Option<i64> {
    let text = text.strip_suffix('Z')?;
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            let year: i64 = year.parse().ok()?;
            (year + if year < 50 { 2000 } else { 1900 }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = text.split_at_checked(4)?;
            (year.parse().ok()?, rest)
        }
        _ => return None,
    };
    let part = |at: usize| -> Option<i64> { rest.get(at..at + 2)?.parse().ok() };
    let (month, day, hour, minute, second) = (part(0)?, part(2)?, part(4)?, part(6)?, part(8)?);
    let is_date = (1..=12).contains(&month) && (1..=31).contains(&day);
    is_date.then(|| days_from_civil(year, month, day) * DAY_S + hour * 3600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ECDSA certificate. `openssl x509 -enddate` shows Nov  3 10:05:42 2031 GMT.
    const PEM: &str = "-----BEGIN CERTIFICATE-----\n\
        MIIBbTCCAROgAwIBAgIUBDlKxMObvBx8Vzj1C/xpFnEvce8wCgYIKoZIzj0EAwIw\n\
        DDEKMAgGA1UEAwwBaDAeFw0yNjExMjkxMDA1NDJaFw0zMTExMDMxMDA1NDJaMAwx\n\
        CjAIBgNVBAMMAWgwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATesf3MdZ3jewkI\n\
        SgmrAqimW+IQHV6e8jT+K9407xbVUzjVlY8cR51KBpXbUhX8pQQipm7g4dMdNA38\n\
        M6bpqXOQo1MwUTAdBgNVHQ4EFgQUP8IRGuStxI2UKkkSg/FBIeRQO9kwHwYDVR0j\n\
        BBgwFoAUP8IRGuStxI2UKkkSg/FBIeRQO9kwDwYDVR0TAQH/BAUwAwEB/zAKBggq\n\
        hkjOPQQDAgNIADBFAiEA4uaWU+g7LrtnTc85Z34PRPqtFbxhQU04AQNrlUS2n8AC\n\
        IAoPnlf4DpkdIszbRT3Uy/jzma7NaOmUX4OO+C0HjRGR\n\
        -----END CERTIFICATE-----";

    #[test]
    fn a_certificate_says_when_it_expires() {
        assert_eq!(expiry_s(PEM.as_bytes()), Some(1_951_466_742));
    }

    #[test]
    fn both_kinds_of_time_are_read() {
        assert_eq!(seconds(UTC_TIME, "700101000000Z"), Some(0));
        assert_eq!(seconds(UTC_TIME, "491231235959Z"), Some(2_524_607_999));
        assert_eq!(seconds(GENERALIZED_TIME, "20500101000000Z"), Some(2_524_608_000));
        assert_eq!(seconds(GENERALIZED_TIME, "20501301000000Z"), None);
    }

    #[test]
    fn damaged_certificates_are_not_read() {
        let whole = CertificateDer::pem_slice_iter(PEM.as_bytes())
            .next()
            .unwrap()
            .unwrap();
        for len in 0..whole.len() {
            assert_eq!(not_after_s(&whole[..len]), None, "{len} bytes");
        }
        assert_eq!(expiry_s(b"no certificate"), None);
    }
}
