//! `inet`: the 4 or 16 bytes of an address, parsed and printed as Java's `InetAddress` does.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bytes::Bytes;

use super::exactly;

/// Decodes an address. As in Java, 16 bytes of an IPv4-mapped address are an IPv4 address. `None` for other lengths.
pub fn from_bytes(bytes: &[u8]) -> Option<IpAddr> {
    if let Some(octets) = exactly::<4>(bytes) {
        return Some(IpAddr::V4(Ipv4Addr::from(octets)));
    }
    let address = Ipv6Addr::from(exactly::<16>(bytes)?);
    Some(address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4))
}

pub fn to_bytes(address: IpAddr) -> Bytes {
    match address {
        IpAddr::V4(address) => Bytes::copy_from_slice(&address.octets()),
        IpAddr::V6(address) => Bytes::copy_from_slice(&address.octets()),
    }
}

/// Implements `InetAddress.getHostAddress`. IPv6 is written in full, without leading zeros (`0:0:0:0:0:0:0:1`).
pub fn to_text(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let segments: Vec<String> = address
                .segments()
                .iter()
                .map(|segment| format!("{segment:x}"))
                .collect();
            segments.join(":")
        }
    }
}

/// Parses an address. The only accepted name is `localhost`, since no resolver is used.
///
/// # Errors
/// `Unable to make inet address from '…'`.
pub fn parse(text: &str) -> Result<IpAddr, String> {
    parse_address(text).ok_or_else(|| format!("Unable to make inet address from '{text}'"))
}

fn parse_address(text: &str) -> Option<IpAddr> {
    if text == "localhost" {
        return Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    if inner.is_none()
        && let Some(address) = parse_v4(text)
    {
        return Some(IpAddr::V4(address));
    }
    let address: Ipv6Addr = without_zone(inner.unwrap_or(text)).parse().ok()?;
    Some(address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4))
}

/// Returns an IPv6 address without the number of its zone (`fe80::1%0`), which values don't contain.
fn without_zone(text: &str) -> &str {
    match text.split_once('%') {
        Some((address, zone))
            if zone.bytes().all(|byte| byte.is_ascii_digit()) && zone.parse::<i32>().is_ok() =>
        {
            address
        }
        _ => text,
    }
}

/// Parses one to four decimal parts. The last part fills the remaining bytes (`127.1` is `127.0.0.1`).
fn parse_v4(text: &str) -> Option<Ipv4Addr> {
    let parts: Vec<&str> = text.split('.').collect();
    let (last, leading) = parts.split_last()?;
    if leading.len() > 3 {
        return None;
    }
    let number = |part: &str| -> Option<u32> {
        let valid = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if valid { part.parse().ok() } else { None }
    };
    let mut address = 0u32;
    for (position, part) in leading.iter().enumerate() {
        let value = number(part).filter(|value| *value <= 255)?;
        address |= value << (24 - 8 * position);
    }
    let tail = number(last)?;
    let room = 32 - 8 * leading.len() as u32;
    if room < 32 && tail >> room != 0 {
        return None;
    }
    Some(Ipv4Addr::from(address | tail))
}
