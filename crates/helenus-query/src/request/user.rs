//! The users of connections.

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::Arc;

use parking_lot::Mutex;

/// An authenticated user.
#[derive(Debug)]
pub struct User {
    /// The role's name.
    pub name: String,
    id: NonZeroU64,
}

impl User {
    /// Returns the user's number, which is never 0. A name keeps its number until the node restarts.
    pub fn id(&self) -> u64 {
        self.id.get()
    }
}

/// The users that this node has seen since it started.
#[derive(Debug, Default)]
pub(crate) struct Users(Mutex<HashMap<String, Arc<User>>>);

impl Users {
    /// Returns the user of that name. A new name gets a new number.
    pub fn get(&self, name: &str) -> Arc<User> {
        let mut users = self.0.lock();
        if let Some(user) = users.get(name) {
            return user.clone();
        }
        let id = NonZeroU64::MIN.saturating_add(users.len() as u64);
        let user = Arc::new(User {
            name: name.to_owned(),
            id,
        });
        users.insert(name.to_owned(), user.clone());
        user
    }
}
