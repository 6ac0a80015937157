//! The machine's clocks and random numbers on a simulated thread.
//!
//! Libraries read them by functions of the C library, which this test binary replaces. So all readings on a simulated thread follow from
//! the seed: those of `Instant` and `SystemTime`, the keys of hash maps, and the seeds of random generators. Other threads read the machine.
#![allow(unsafe_code, reason = "replaces functions of the C library")]

use std::cell::Cell;
use std::time::Duration;

use libc::{c_int, c_long, c_uint, c_void, clockid_t, size_t, ssize_t, timespec};

/// The wall clock's time at the beginning of a simulation: 2030-01-01.
pub const EPOCH: Duration = Duration::from_secs(1_893_456_000);
/// Time since boot at the beginning of a simulation. Some programs subtract hours from it.
const BOOT: Duration = Duration::from_secs(1_000_000);

/// Number of the node outside of all nodes: clients and the store.
pub const OUTSIDE: usize = usize::MAX;

/// The state of the machine that programs on this thread can read.
#[derive(Clone, Copy)]
struct Machine {
    node: usize,
    /// Time since the simulation began, by this node's clock.
    elapsed: Duration,
    /// Time for which the process was paused.
    paused: Duration,
    /// Lead of the wall clock over `elapsed`, in microseconds.
    wall_ahead_us: i64,
    /// State of the random generator.
    random: u64,
}

thread_local! {
    static MACHINE: Cell<Option<Machine>> = const { Cell::new(None) };
}

fn machine() -> Option<Machine> {
    MACHINE.get()
}

/// Makes this thread a simulated one.
pub fn begin(seed: u64) {
    MACHINE.set(Some(Machine {
        node: OUTSIDE,
        elapsed: Duration::ZERO,
        paused: Duration::ZERO,
        wall_ahead_us: 0,
        random: seed,
    }));
}

/// Sets the node whose code runs next, and its clocks.
pub fn enter(node: usize, elapsed: Duration, paused: Duration, wall_ahead_us: i64) {
    if let Some(machine) = machine() {
        MACHINE.set(Some(Machine {
            node,
            elapsed,
            paused,
            wall_ahead_us,
            ..machine
        }));
    }
}

/// Returns the number of the node whose code runs, or [`OUTSIDE`].
pub fn node() -> usize {
    machine().map_or(OUTSIDE, |machine| machine.node)
}

/// Returns the time since the simulation began, by the clock of the node whose code runs.
pub fn elapsed() -> Duration {
    machine().map_or(Duration::ZERO, |machine| machine.elapsed)
}

/// Returns the time since the simulation began without the time for which the process was paused.
pub fn elapsed_unpaused() -> Duration {
    machine().map_or(Duration::ZERO, |machine| machine.elapsed - machine.paused)
}

/// Returns microseconds since 1970, by the wall clock of the node whose code runs.
pub fn wall_us() -> i64 {
    machine().map_or(0, |machine| wall_us_of(&machine))
}

fn wall_us_of(machine: &Machine) -> i64 {
    (EPOCH + machine.elapsed).as_micros() as i64 + machine.wall_ahead_us
}

/// Returns the next random number (SplitMix64).
fn random(machine: &mut Machine) -> u64 {
    machine.random = machine.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (machine.random ^ (machine.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[unsafe(no_mangle)]
extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    let Some(machine) = machine() else {
        // SAFETY: the arguments are those of the caller.
        return unsafe { libc::syscall(libc::SYS_clock_gettime, clock as c_long, time) as c_int };
    };
    let since = match clock {
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE => {
            Duration::from_micros(wall_us_of(&machine).max(0) as u64)
        }
        _ => BOOT + machine.elapsed,
    };
    // SAFETY: the caller passes a valid pointer, as the C library requires.
    unsafe {
        (*time).tv_sec = since.as_secs() as _;
        (*time).tv_nsec = since.subsec_nanos() as _;
    }
    0
}

#[unsafe(no_mangle)]
extern "C" fn getrandom(into: *mut c_void, len: size_t, flags: c_uint) -> ssize_t {
    let Some(mut machine) = machine() else {
        // SAFETY: the arguments are those of the caller.
        return unsafe { libc::syscall(libc::SYS_getrandom, into, len, flags) as ssize_t };
    };
    for at in 0..len {
        let byte = random(&mut machine) as u8;
        // SAFETY: the caller passes a buffer of `len` bytes, as the C library requires.
        unsafe { into.cast::<u8>().add(at).write(byte) };
    }
    MACHINE.set(Some(machine));
    len as ssize_t
}

/// Removes the randomness of addresses from processes that this one starts, because hash maps use addresses as seeds. Does nothing where
/// that is forbidden.
pub fn fix_addresses_of_children() {
    // SAFETY: the call changes a flag of this process.
    unsafe {
        let now = libc::personality(0xffff_ffff);
        libc::personality(now as libc::c_ulong | libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
    }
}
