use super::*;

#[test]
fn sizes_have_at_most_two_decimals() {
    assert_eq!(file_size(0), "0 bytes");
    assert_eq!(file_size(1023), "1023 bytes");
    assert_eq!(file_size(1024), "1 KiB");
    assert_eq!(file_size(106_834), "104.33 KiB");
    assert_eq!(file_size(100 << 20), "100 MiB");
    assert_eq!(file_size(3 << 29), "1.5 GiB");
    assert_eq!(file_size(5 << 40), "5 TiB");
}
