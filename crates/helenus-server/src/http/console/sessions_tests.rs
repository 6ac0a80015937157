use super::access::{host_is_safe, is_same_origin};
use super::sessions::random_token;

#[test]
fn tokens_differ() {
    assert_eq!(random_token().len(), 64);
    assert_ne!(random_token(), random_token());
}

#[test]
fn a_public_name_is_no_name_of_this_node() {
    for host in [
        "127.0.0.1:9180",
        "[::1]:9180",
        "10.0.0.3",
        "localhost:9180",
        "node1:9180",
    ] {
        assert!(host_is_safe(host), "{host}");
    }
    for host in ["evil.example:9180", "127.0.0.1.example.org", "", "node1.", "a b"] {
        assert!(!host_is_safe(host), "{host}");
    }
}

#[test]
fn a_command_comes_from_the_page_of_the_same_host() {
    assert!(is_same_origin("http://node1:9180", "node1:9180"));
    assert!(is_same_origin("https://node1", "node1"));
    for origin in ["http://evil.example", "null", "http://node1:9181", "node1:9180"] {
        assert!(!is_same_origin(origin, "node1:9180"), "{origin}");
    }
}
