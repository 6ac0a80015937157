use super::*;

#[test]
fn a_connection_that_closes_does_not_open_again() {
    let mut lifecycle = Lifecycle::Open;
    lifecycle.close();
    assert_eq!(lifecycle, Lifecycle::Closing(SocketClose::Plain));
    lifecycle.node_stops(Stopping::WhenIdle);
    assert_eq!(lifecycle, Lifecycle::Closing(SocketClose::DrainInput));
    lifecycle.close();
    assert_eq!(lifecycle, Lifecycle::Closing(SocketClose::DrainInput));
}

#[test]
fn a_draining_connection_serves_then_rejects_then_closes() {
    let mut lifecycle = Lifecycle::Open;
    lifecycle.node_stops(Stopping::No);
    assert_eq!(lifecycle, Lifecycle::Open);
    lifecycle.node_stops(Stopping::WhenIdle);
    assert!(!lifecycle.rejects());
    lifecycle.node_stops(Stopping::Now);
    assert!(lifecycle.rejects());
    lifecycle.close();
    assert!(lifecycle.is_closing() && !lifecycle.rejects());
    assert_eq!(lifecycle.socket_close(), SocketClose::DrainInput);
}
