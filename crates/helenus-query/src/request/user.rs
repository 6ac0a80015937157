//! Who a connection is.

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::Arc;

use parking_lot::Mutex;

/// Who has logged in on a connection.
#[derive(Debug)]
pub struct User {
    /// A role's.
    pub name: String,
    id: NonZeroU64,
}

impl User {
    /// Returns a number of its own, which is not 0; the same for the same name as long as the node runs.
    pub fn id(&self) -> u64 {
        self.id.get()
    }
}

/// The users that have been seen on this node.
#[derive(Debug, Default)]
pub(crate) struct Users(Mutex<HashMap<String, Arc<User>>>);

impl Users {
    /// Returns the user of that name.
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
