//! A topic in memory, for tests. A script determines the outcome of each produce request, and tests can read and add records.

use std::collections::VecDeque;
use std::ops::Range;

use async_trait::async_trait;
use parking_lot::Mutex;

use super::client::{TopicClient, TopicError, TopicRecord};

/// Scripted outcome of a produce request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Course {
    /// The request fails, and nothing is appended.
    Fails,
    /// The record is appended, but the answer is lost.
    AnswerLost,
    /// The given records of other writers are appended first.
    After(Vec<TopicRecord>),
    /// The record is appended, then the given ones, and the answer is lost.
    AnswerLostBefore(Vec<TopicRecord>),
}

#[derive(Default)]
struct State {
    start: i64,
    records: Vec<TopicRecord>,
    script: VecDeque<Course>,
    bytes_max: Option<usize>,
}

impl State {
    fn end(&self) -> i64 {
        self.start + self.records.len() as i64
    }
}

/// A topic with one partition.
#[derive(Default)]
pub(super) struct FakeTopic {
    state: Mutex<State>,
}

impl FakeTopic {
    pub fn script(&self, courses: impl IntoIterator<Item = Course>) {
        self.state.lock().script.extend(courses);
    }

    pub fn limit(&self, bytes_max: usize) {
        self.state.lock().bytes_max = Some(bytes_max);
    }

    pub fn push(&self, record: TopicRecord) {
        self.state.lock().records.push(record);
    }

    pub fn records(&self) -> Vec<TopicRecord> {
        self.state.lock().records.clone()
    }
}

#[async_trait]
impl TopicClient for FakeTopic {
    async fn partitions(&self) -> Result<u32, TopicError> {
        Ok(1)
    }

    async fn produce(&self, _: u32, record: TopicRecord) -> Result<i64, TopicError> {
        let mut state = self.state.lock();
        if state.bytes_max.is_some_and(|limit| record.value.len() > limit) {
            return Err(TopicError::TooLarge);
        }
        let lost = Err(TopicError::Failed("the answer is lost".into()));
        match state.script.pop_front() {
            Some(Course::Fails) => return Err(TopicError::Failed("no broker".into())),
            Some(Course::AnswerLost) => {
                state.records.push(record);
                return lost;
            }
            Some(Course::AnswerLostBefore(others)) => {
                state.records.push(record);
                state.records.extend(others);
                return lost;
            }
            Some(Course::After(others)) => state.records.extend(others),
            None => {}
        }
        state.records.push(record);
        Ok(state.end() - 1)
    }

    async fn fetch(&self, _: u32, offset: i64) -> Result<Vec<(i64, TopicRecord)>, TopicError> {
        let state = self.state.lock();
        if !(state.start..=state.end()).contains(&offset) {
            return Err(TopicError::OutOfRange);
        }
        let from = (offset - state.start) as usize;
        // Only a few records are returned, so that readers have to fetch repeatedly.
        let found = state.records.iter().skip(from).take(2).cloned();
        Ok((offset..).zip(found).collect())
    }

    async fn bounds(&self, _: u32) -> Result<Range<i64>, TopicError> {
        let state = self.state.lock();
        Ok(state.start..state.end())
    }

    async fn delete_before(&self, _: u32, offset: i64) -> Result<(), TopicError> {
        let mut state = self.state.lock();
        let count = (offset - state.start).max(0) as usize;
        state.records.drain(..count);
        state.start = offset.max(state.start);
        Ok(())
    }
}
