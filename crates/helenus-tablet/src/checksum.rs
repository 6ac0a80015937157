//! CRC-32C, the checksum of all files and objects.

/// Returns the CRC-32C (Castagnoli) of bytes.
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}
