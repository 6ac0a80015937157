//! The metrics of a bucket's cost.

use metrics::{describe_gauge, gauge};

use super::prices::BucketCost;

const REQUESTS: &str = "helenus_bucket_requests_per_second";
const READ_BYTES: &str = "helenus_bucket_read_bytes_per_second";
const DOLLARS: &str = "helenus_bucket_dollars_per_month";

/// Sets the help texts.
pub(super) fn describe() {
    describe_gauge!(
        REQUESTS,
        "Requests of this node to the bucket per second, averaged over the last minute and updated every 5 seconds"
    );
    describe_gauge!(
        READ_BYTES,
        "Bytes that this node reads from the bucket per second, averaged over the last minute and updated every 5 seconds"
    );
    describe_gauge!(
        DOLLARS,
        "Estimated cost of this node's requests in US dollars: 30 days at the rates of the last minute. (put + list) requests times \
         bucket_put_dollars_per_1000, get requests times bucket_get_dollars_per_1000, and bytes read times bucket_read_dollars_per_gb; \
         deletions are free. Storage, retries and further pages of listings are not included. NaN in the first five minutes"
    );
}

pub(super) fn record(cost: &BucketCost) {
    for (kind, per_second) in cost.rates.by_kind() {
        gauge!(REQUESTS, "kind" => kind).set(per_second);
    }
    gauge!(READ_BYTES).set(cost.rates.read_bytes);
    gauge!(DOLLARS).set(cost.settled_dollars().unwrap_or(f64::NAN));
}
