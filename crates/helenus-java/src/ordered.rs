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
    /// The order of insertion: `LinkedHashSet`, and collections from CQL.
    Insertion,
    /// The order of a hash table's buckets: `HashSet`.
    Hash,
    /// The natural order of keys: `TreeSet`.
    Sorted,
}

impl Order {
    /// Returns the order of the class with this name.
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

/// Elements with distinct keys, in an order.
#[derive(Debug)]
pub(crate) struct Ordered<T> {
    order: Order,
    /// Number of buckets of the hash table.
    buckets: Cell<usize>,
    elements: RefCell<Vec<T>>,
}

/// Buckets of an empty `HashMap`. Their number doubles when the table is filled to three quarters.
const BUCKETS: usize = 16;

impl<T: Keyed> Ordered<T> {
    /// Creates a collection that keeps elements in the order of insertion.
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

    /// Returns the index of the element with this key.
    pub fn find(&self, key: &Value) -> Option<usize> {
        self.elements
            .borrow()
            .iter()
            .position(|element| element.key().equals(key))
    }

    /// Inserts an element with a new key at its place in the order.
    ///
    /// # Errors
    /// If its key can't be compared with the others.
    pub fn insert(&self, element: T) -> Result<(), Failure> {
        // The elements are taken out meanwhile, because the key may be this collection or contain it.
        let mut elements = self.elements.take();
        let place = self.place(&mut elements, element.key());
        if let Ok(at) = place {
            elements.insert(at, element);
        }
        self.elements.replace(elements);
        place.map(drop)
    }

    /// Returns the index for an element with a new key. The hash table may grow for it.
    fn place(&self, elements: &mut [T], key: &Value) -> Result<usize, Failure> {
        match self.order {
            Order::Insertion => Ok(elements.len()),
            Order::Hash => {
                if elements.len() + 1 > self.buckets.get() / 4 * 3 {
                    self.buckets.set(self.buckets.get() * 2);
                    budget::room_for(elements.len())?;
                    // Each key is hashed only once. When the call's time ends, all hashes become 0, which must not happen between two
                    // comparisons of a key.
                    elements.sort_by_cached_key(|element| self.bucket(element.key()));
                }
                let bucket = self.bucket(key);
                Ok(elements.partition_point(|other| self.bucket(other.key()) <= bucket))
            }
            Order::Sorted => {
                // This check is for the first key, which also must be comparable.
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
