use serde_json::json;

use super::*;

fn report() -> Value {
    json!({
        "host_id": "2d0d3b5e-36f9-4a44-9a64-4f21d9b04e04",
        "data_center": "datacenter1",
        "rack": "rack1",
        "in_cluster": true,
        "serves_clients": true,
        "generation_s": 1_763_000_000,
        "uptime_s": 61,
        "memory_bytes": 3 << 19,
        "memory_bytes_max": 8_u64 << 30,
        "data_bytes": 106_834,
        "server_errors": 2,
        "row_cache": {"entries": 10, "bytes": 920, "capacity_bytes": 100 << 20, "hits": 30, "misses": 12},
        "block_cache": {"capacity_bytes": 384 << 20, "hits": 0, "misses": 0},
        "tokens": ["-1", "9223372036854775807"],
        "bucket": null,
    })
}

const FOLDER: &str = "\
ID                     : 2d0d3b5e-36f9-4a44-9a64-4f21d9b04e04
Gossip active          : true
Native Transport active: true
Load                   : 104.33 KiB
Generation No          : 1763000000
Uptime (seconds)       : 61
Heap Memory (MB)       : 1.50 / 8192.00
Off Heap Memory (MB)   : 0.00
Data Center            : datacenter1
Rack                   : rack1
Exceptions             : 2
Key Cache              : entries 0, size 0 bytes, capacity 0 bytes, 0 hits, 0 requests, NaN recent hit rate, 0 save period in seconds
Row Cache              : entries 10, size 920 bytes, capacity 100 MiB, 30 hits, 42 requests, 0.714 recent hit rate, 0 save period in seconds
Counter Cache          : entries 0, size 0 bytes, capacity 0 bytes, 0 hits, 0 requests, NaN recent hit rate, 0 save period in seconds
Chunk Cache            : capacity 384 MiB, 0 misses, 0 requests, NaN recent hit rate
Percent Repaired       : 100.0%
Token                  : (invoke with -T/--tokens to see all 2 tokens)
Bootstrap state        : COMPLETED
Bootstrap failed       : false
Decommissioning        : false
Decommission failed    : false
";

#[test]
fn a_store_in_a_folder() {
    assert_eq!(page(&report(), false), FOLDER);
}

#[test]
fn a_store_in_a_bucket_has_its_requests_and_their_cost_too() {
    let mut report = report();
    report["bucket"] = json!({
        "requests_per_second": {"get": 0.256, "put": 2.0, "list": 2.0, "delete": 0.0},
        "read_bytes_per_second": 1000.0,
        "dollars_per_month": 52.107,
    });
    let cost = "\
Bucket GET/s           : 0.26
Bucket PUT/s           : 2.00
Bucket LIST/s          : 2.00
Bucket DELETE/s        : 0.00
Bucket USD/month       : 52.11
";
    assert_eq!(page(&report, false), format!("{FOLDER}{cost}"));
    report["bucket"] = json!({"requests_per_second": null, "dollars_per_month": null});
    let unknown = page(&report, false);
    assert!(
        unknown.ends_with("Bucket DELETE/s        : -\nBucket USD/month       : -\n"),
        "{unknown}"
    );
}

#[test]
fn tokens_are_shown_on_demand() {
    let mut report = report();
    let shown = page(&report, true);
    assert!(
        shown.contains(
            "Token                  : -1\nToken                  : 9223372036854775807\nBootstrap state"
        ),
        "{shown}"
    );
    report["tokens"] = json!([]);
    let none = page(&report, false);
    assert!(
        none.contains(": (node is not joined to the cluster)\nBootstrap state"),
        "{none}"
    );
}
