use super::*;

fn assert_dollars(prices: BucketPrices, rates: BucketRates, expected: f64) {
    let dollars = prices.cost(rates).dollars_per_month;
    assert!((dollars - expected).abs() < 1e-6 * expected.max(1.0), "{dollars}");
}

#[test]
fn a_node_at_rest_at_the_prices_of_s3() {
    let rates = BucketRates {
        puts: 2.0,
        lists: 2.0,
        ..BucketRates::default()
    };
    assert_dollars(BucketPrices::default(), rates, 51.84);
    assert_dollars(BucketPrices::default(), BucketRates::default(), 0.0);
}

#[test]
fn each_kind_has_its_price() {
    let one = BucketRates::default();
    let prices = BucketPrices {
        put_dollars_per_1000: 1.0,
        get_dollars_per_1000: 10.0,
        read_dollars_per_gb: 100.0,
    };
    assert_dollars(prices, BucketRates { puts: 1.0, ..one }, 2592.0);
    assert_dollars(prices, BucketRates { lists: 1.0, ..one }, 2592.0);
    assert_dollars(prices, BucketRates { gets: 1.0, ..one }, 25_920.0);
    assert_dollars(prices, BucketRates { deletes: 1.0, ..one }, 0.0);
    let read_bytes = f64::from(1_u32 << 30);
    assert_dollars(prices, BucketRates { read_bytes, ..one }, 259_200_000.0);
}
