//! An executor with one thread and virtual time, in which every choice depends on one seed.
//!
//! Tasks belong to groups, which stand for processes. A group can be paused, so that its tasks are not polled while the world continues,
//! and it can be killed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

pub type Group = u64;
/// The group of the world itself, which is never paused or killed.
pub const WORLD: Group = 0;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

#[derive(Default)]
struct GroupState {
    paused: bool,
    /// Tasks that were woken while the group was paused.
    deferred: BTreeSet<u64>,
}

struct State {
    now: Duration,
    rng: StdRng,
    next_id: u64,
    tasks: BTreeMap<u64, (Group, Option<Task>)>,
    groups: BTreeMap<Group, GroupState>,
    timers: BinaryHeap<Reverse<Timer>>,
    steps: u64,
}

struct Timer {
    time: Duration,
    id: u64,
    waker: Arc<Mutex<Option<Waker>>>,
}

impl PartialEq for Timer {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}
impl Eq for Timer {}
impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Timer {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.time, self.id).cmp(&(other.time, other.id))
    }
}

/// Ids of tasks to be polled.
type Ready = Arc<Mutex<Vec<u64>>>;

struct TaskWaker {
    id: u64,
    ready: Ready,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        let mut ready = self.ready.lock().unwrap();
        if !ready.contains(&self.id) {
            ready.push(self.id);
        }
    }
}

#[derive(Clone)]
pub struct Sim {
    state: Arc<Mutex<State>>,
    ready: Ready,
}

impl Sim {
    pub fn new(seed: u64) -> Self {
        let state = State {
            now: Duration::from_secs(1000),
            rng: StdRng::seed_from_u64(seed),
            next_id: 1,
            tasks: BTreeMap::new(),
            groups: BTreeMap::from([(WORLD, GroupState::default())]),
            timers: BinaryHeap::new(),
            steps: 0,
        };
        Sim {
            state: Arc::new(Mutex::new(state)),
            ready: Ready::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub fn now(&self) -> Duration {
        self.state().now
    }

    /// Returns the number of polls of tasks. Equal runs have equal numbers.
    pub fn steps(&self) -> u64 {
        self.state().steps
    }

    pub fn random(&self) -> u64 {
        self.state().rng.random()
    }

    pub fn range(&self, range: Range<u64>) -> u64 {
        self.state().rng.random_range(range)
    }

    pub fn chance(&self, percent: u64) -> bool {
        self.range(0..100) < percent
    }

    pub fn millis(&self, range: Range<u64>) -> Duration {
        Duration::from_micros(self.range(range.start * 1000..range.end * 1000))
    }

    pub fn pick<'a, T>(&self, items: &'a [T]) -> Option<&'a T> {
        (!items.is_empty()).then(|| &items[self.range(0..items.len() as u64) as usize])
    }

    pub fn new_group(&self) -> Group {
        let mut state = self.state();
        let group = state.new_id();
        state.groups.insert(group, GroupState::default());
        group
    }

    /// Spawns a task in a group. If the group was killed, the task never runs.
    pub fn spawn(&self, group: Group, task: impl Future<Output = ()> + Send + 'static) {
        let mut state = self.state();
        if state.groups.contains_key(&group) {
            let id = state.new_id();
            state.tasks.insert(id, (group, Some(Box::pin(task))));
            self.ready.lock().unwrap().push(id);
        }
    }

    pub fn is_running(&self, group: Group) -> bool {
        self.state().groups.get(&group).is_some_and(|group| !group.paused)
    }

    pub fn is_alive(&self, group: Group) -> bool {
        self.state().groups.contains_key(&group)
    }

    pub fn pause(&self, group: Group) {
        if let Some(group) = self.state().groups.get_mut(&group) {
            group.paused = true;
        }
    }

    pub fn resume(&self, group: Group) {
        if let Some(group) = self.state().groups.get_mut(&group) {
            group.paused = false;
            let woken = std::mem::take(&mut group.deferred);
            self.ready.lock().unwrap().extend(woken);
        }
    }

    pub fn kill(&self, group: Group) {
        let mut state = self.state();
        state.groups.remove(&group);
        let ids: Vec<_> = state
            .tasks
            .iter()
            .filter(|(_, (owner, _))| *owner == group)
            .map(|(id, _)| *id)
            .collect();
        let tasks: Vec<_> = ids.iter().map(|id| state.tasks.remove(id)).collect();
        // Futures are dropped without the lock, because their drops may wake other tasks.
        drop(state);
        drop(tasks);
    }

    pub fn sleep(&self, duration: Duration) -> Sleep {
        Sleep {
            sim: self.clone(),
            until: self.now() + duration,
            waker: None,
        }
    }

    /// Runs the world for a duration.
    pub fn run_for(&self, duration: Duration) {
        let until = self.now() + duration;
        self.run_while(until, || true);
    }

    /// Runs the world until `goes_on` returns false, or until a time. Returns true if `goes_on` returned false.
    pub fn run_while(&self, until: Duration, goes_on: impl Fn() -> bool) -> bool {
        while goes_on() {
            let ready = self.ready.lock().unwrap().len() as u64;
            if ready > 0 {
                let index = self.range(0..ready) as usize;
                let id = self.ready.lock().unwrap().swap_remove(index);
                self.poll(id);
            } else if !self.next_timer(until) {
                self.state().now = until;
                return false;
            }
        }
        true
    }

    fn poll(&self, id: u64) {
        let mut state = self.state();
        let Some((group, task)) = state.tasks.get_mut(&id) else {
            return;
        };
        let (group, task) = (*group, task.take());
        let Some(mut task) = task else { return };
        let group = state.groups.get_mut(&group);
        if let Some(group) = group
            && group.paused
        {
            group.deferred.insert(id);
            state.tasks.get_mut(&id).unwrap().1 = Some(task);
            return;
        }
        state.steps += 1;
        drop(state);
        let waker = Waker::from(Arc::new(TaskWaker {
            id,
            ready: self.ready.clone(),
        }));
        let done = task.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
        let mut state = self.state();
        // A task that killed its own group does not exist any more.
        match state.tasks.get_mut(&id) {
            Some(_) if done => {
                state.tasks.remove(&id);
            }
            Some((_, slot)) => {
                *slot = Some(task);
                return;
            }
            None => {}
        }
        drop(state);
        drop(task);
    }

    fn next_timer(&self, until: Duration) -> bool {
        let mut state = self.state();
        match state.timers.peek() {
            Some(Reverse(timer)) if timer.time <= until => {}
            _ => return false,
        }
        let Some(Reverse(timer)) = state.timers.pop() else {
            return false;
        };
        state.now = state.now.max(timer.time);
        drop(state);
        if let Some(waker) = timer.waker.lock().unwrap().take() {
            waker.wake();
        }
        true
    }
}

impl State {
    fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }
}

pub struct Sleep {
    sim: Sim,
    until: Duration,
    waker: Option<Arc<Mutex<Option<Waker>>>>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.sim.state();
        if state.now >= self.until {
            return Poll::Ready(());
        }
        let waker = Some(context.waker().clone());
        match &self.waker {
            Some(slot) => *slot.lock().unwrap() = waker,
            None => {
                let slot = Arc::new(Mutex::new(waker));
                let id = state.new_id();
                state.timers.push(Reverse(Timer {
                    time: self.until,
                    id,
                    waker: slot.clone(),
                }));
                drop(state);
                self.waker = Some(slot);
            }
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(slot) = &self.waker {
            slot.lock().unwrap().take();
        }
    }
}
