//! Sets and maps, iterated in Java's order.

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::ops::Deref;

use crate::budget;
use crate::error::Failure;
use crate::methods::{compare, hash};
use crate::value::Value;

/// The order of a set's or a map's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// As they were put in: `LinkedHashSet`, and what comes from CQL.
    Insertion,
    /// By the buckets of a hash table: `HashSet`.
    Hash,
    /// `TreeSet`
    Sorted,
}

impl Order {
    /// That of the class with this name.
    pub fn of_class(class: &str) -> Order {
        match class {
            "HashSet" | "HashMap" => Order::Hash,
            "TreeSet" | "TreeMap" => Order::Sorted,
            _ => Order::Insertion,
        }
    }
}

/// An element of a set, or an entry of a map.
pub(crate) trait Keyed {
    fn key(&self) -> &Value;
}

impl Keyed for Value {
    fn key(&self) -> &Value {
        self
    }
}

impl Keyed for (Value, Value) {
    fn key(&self) -> &Value {
        &self.0
    }
}

/// Elements with different keys.
#[derive(Debug)]
pub(crate) struct Ordered<T> {
    order: Order,
    /// Buckets of the hash table.
    buckets: Cell<usize>,
    elements: RefCell<Vec<T>>,
}

/// Buckets of an empty `HashMap`; there are twice as many once it is filled to three quarters.
const BUCKETS: usize = 16;

impl<T: Keyed> Ordered<T> {
    /// Elements in the order in which they stand.
    pub fn as_inserted(elements: Vec<T>) -> Ordered<T> {
        Ordered {
            order: Order::Insertion,
            buckets: Cell::new(BUCKETS),
            elements: RefCell::new(elements),
        }
    }

    pub fn new(order: Order) -> Ordered<T> {
        Ordered {
            order,
            ..Ordered::as_inserted(Vec::new())
        }
    }

    /// Where the element of that key stands.
    pub fn find(&self, key: &Value) -> Option<usize> {
        self.elements
            .borrow()
            .iter()
            .position(|element| element.key().equals(key))
    }

    /// Puts an element with a new key where it belongs.
    ///
    /// # Errors
    /// If its key can't be compared with the others'.
    pub fn insert(&self, element: T) -> Result<(), Failure> {
        // Taken out meanwhile: a key may be what it is put into, or hold it.
        let mut elements = self.elements.take();
        let place = self.place(&mut elements, element.key());
        if let Ok(at) = place {
            elements.insert(at, element);
        }
        self.elements.replace(elements);
        place.map(drop)
    }

    /// Where an element with a new key belongs; the table may grow for it.
    fn place(&self, elements: &mut [T], key: &Value) -> Result<usize, Failure> {
        match self.order {
            Order::Insertion => Ok(elements.len()),
            Order::Hash => {
                if elements.len() + 1 > self.buckets.get() / 4 * 3 {
                    self.buckets.set(self.buckets.get() * 2);
                    budget::room_for(elements.len())?;
                    // Each key is hashed once: hashes of a call whose time is over are all the same.
                    elements.sort_by_cached_key(|element| self.bucket(element.key()));
                }
                let bucket = self.bucket(key);
                Ok(elements.partition_point(|other| self.bucket(other.key()) <= bucket))
            }
            Order::Sorted => {
                // Also for the first one, which must have an order.
                compare(key, key)?;
                let mut failed = None;
                let at = elements.partition_point(|other| {
                    let order = compare(other.key(), key);
                    order.unwrap_or_else(|failure| {
                        failed.get_or_insert(failure);
                        Ordering::Less
                    }) == Ordering::Less
                });
                failed.map_or(Ok(at), Err)
            }
        }
    }

    fn bucket(&self, key: &Value) -> usize {
        let hash = hash(key) as u32;
        (hash ^ hash >> 16) as usize & (self.buckets.get() - 1)
    }
}

impl<T> Deref for Ordered<T> {
    type Target = RefCell<Vec<T>>;

    fn deref(&self) -> &RefCell<Vec<T>> {
        &self.elements
    }
}
