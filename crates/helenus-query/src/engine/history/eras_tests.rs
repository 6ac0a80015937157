use super::*;

const HOUR: i64 = 3_600_000;

fn run(first_ms: i64, last_ms: i64) -> Run {
    Run::new(first_ms, last_ms)
}

/// Returns a base taken at a time, with the runs of the clocks since the previous base.
fn base(taken_ms: i64, shown: &[Run]) -> BaseTimes {
    BaseTimes {
        began_ms: Some(taken_ms - 5),
        taken_ms,
        shown: shown.to_vec(),
    }
}

fn place(base: usize, set_back: SetBack, before: Option<usize>) -> Result<Place, NoPlace> {
    Ok(Place {
        base,
        set_back,
        before,
    })
}

#[test]
fn a_time_follows_the_last_base_before_it() {
    let bases = [
        base(100, &[run(90, 100)]),
        base(200, &[run(100, 200)]),
        base(300, &[run(200, 300)]),
    ];
    let at = |time_ms| locate(&bases, &[run(300, 400)], time_ms);
    assert_eq!(at(99), Err(NoPlace::TooOld));
    assert_eq!(at(100), place(0, SetBack::Nowhere, Some(1)));
    assert_eq!(at(150), place(0, SetBack::Nowhere, Some(1)));
    assert_eq!(
        at(197),
        place(0, SetBack::Nowhere, Some(2)),
        "while the second was taken"
    );
    assert_eq!(at(200), place(1, SetBack::Nowhere, Some(2)));
    assert_eq!(at(400), place(2, SetBack::Nowhere, None));
}

#[test]
fn bases_of_older_binaries_are_in_the_order_of_their_times() {
    let old = |taken_ms| BaseTimes {
        began_ms: None,
        taken_ms,
        shown: Vec::new(),
    };
    let bases = [old(100), old(200)];
    assert_eq!(
        locate(&bases, &[run(200, 300)], 150),
        place(0, SetBack::Nowhere, None)
    );
    assert_eq!(
        locate(&bases, &[run(200, 300)], 200),
        place(1, SetBack::Nowhere, None)
    );
}

#[test]
fn clock_ahead_makes_only_own_times_uncertain() {
    let bases = [
        base(100, &[run(90, 100)]),
        // The process whose clock is ahead takes a base at once.
        base(HOUR + 210, &[run(100, 150), run(HOUR + 200, HOUR + 210)]),
        base(330, &[run(HOUR + 210, HOUR + 300), run(320, 330)]),
    ];
    let at = |time_ms: i64| locate(&bases, &[run(330, time_ms.max(400))], time_ms);
    assert_eq!(at(140), place(0, SetBack::Nowhere, Some(1)));
    assert_eq!(
        at(180),
        place(0, SetBack::Nowhere, Some(1)),
        "no clock has shown it"
    );
    // Commits while the second base was taken may follow its positions.
    let from_ms = HOUR + 205;
    assert_eq!(at(322), place(1, SetBack::Before { from_ms }, Some(2)));
    assert_eq!(at(400), place(2, SetBack::Nowhere, None));
    // An hour later, the right clock shows the same times.
    assert_eq!(at(HOUR + 199), place(2, SetBack::Nowhere, None));
    for time_ms in [HOUR + 200, HOUR + 250, HOUR + 300] {
        assert!(matches!(at(time_ms), Err(NoPlace::Uncertain(of)) if of.contains(time_ms)));
    }
    assert_eq!(at(HOUR + 301), place(2, SetBack::Nowhere, None));
}

#[test]
fn time_during_last_base_before_step_ends_at_step() {
    let bases = [
        base(100, &[run(90, 100)]),
        base(500, &[run(100, 500)]),
        base(330, &[run(500, 520), run(320, 330)]),
    ];
    let at = |time_ms| locate(&bases, &[run(330, 340)], time_ms);
    assert_eq!(at(497), place(0, SetBack::After, Some(2)));
    assert_eq!(at(450), place(0, SetBack::Nowhere, Some(1)));
}

#[test]
fn a_clock_that_is_ahead_for_a_moment_hides_nothing() {
    let bases = [
        base(100, &[run(90, 100)]),
        base(250, &[run(100, 200), run(2 * HOUR, 2 * HOUR + 5), run(240, 250)]),
    ];
    let at = |time_ms| locate(&bases, &[run(250, 400)], time_ms);
    assert_eq!(at(150), place(0, SetBack::After, Some(1)));
    assert_eq!(at(220), place(0, SetBack::After, Some(1)));
    assert_eq!(at(244), place(0, SetBack::Before { from_ms: 2 * HOUR }, Some(1)));
    assert_eq!(at(300), place(1, SetBack::Nowhere, None));
}

#[test]
fn first_needed_base_follows_order_of_bases() {
    let taken = [0, 100, 200, 300, 400];
    assert_eq!(first_needed(&taken, -1, 450), 0);
    assert_eq!(first_needed(&taken, 250, 450), 2);
    assert_eq!(first_needed(&taken, 300, 450), 3);
    // A base with a time in the future is ignored, and removed with the bases around it.
    assert_eq!(first_needed(&[0, 100, 10_000, 300, 400], 350, 450), 3);
    // A clock that was behind for a moment causes no removal of other bases.
    assert_eq!(first_needed(&[0, 100, 200, -9_000, 300], 50, 350), 0);
}
