use super::*;

/// Runs a closure within the scope of a client's request that began to compute at `polled_at`.
fn within<T>(polled_at: Instant, run: impl FnOnce() -> T) -> T {
    let mut scope = Scope::default();
    scope.polled_at(polled_at);
    scope.swap();
    let result = run();
    scope.swap();
    result
}

fn look() -> Result<Step, CqlError> {
    hurry();
    CURRENT.with_borrow_mut(Scope::step)
}

#[test]
fn a_slice_ends() {
    let now = Instant::now();
    assert!(within(now + SLICE, || matches!(look(), Ok(Step::GoOn))));
    assert!(within(now - SLICE, || matches!(look(), Ok(Step::GiveWay))));
    assert!(matches!(look(), Ok(Step::Unknown)), "nobody's request");
}

#[test]
fn the_sooner_deadline_counts() {
    let began = Instant::now() - Duration::from_secs(2);
    within(began, || {
        limit_time(Duration::from_secs(1), false);
        limit_time(Duration::from_secs(3), true);
        assert!(matches!(look(), Err(CqlError::ReadTimeout { .. })));
        renew_time(Duration::from_secs(1));
        assert!(look().is_ok());
    });
    within(began, || {
        limit_time(Duration::from_secs(1), true);
        assert!(matches!(look(), Err(CqlError::WriteTimeout { .. })));
    });
}

#[test]
fn it_ends_when_its_client_has_gone() {
    let mut scope = Scope::default();
    scope.polled_at(Instant::now());
    let left = scope.left();
    assert!(scope.check(Instant::now()).is_ok());
    left.store(true, Ordering::Relaxed);
    assert!(scope.check(Instant::now()).is_err());
}
