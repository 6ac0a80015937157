//! A search of posting lists that is sent to their owner.

/// Posting lists of one node that are to be searched there.
#[derive(Clone, Debug)]
pub struct ListSearch {
    /// The number of the index's hidden table.
    pub index: u32,
    /// They are read in this order.
    pub lists: Vec<i64>,
    /// What is looked for; of length one where the index is for cosine.
    pub vector: Vec<f32>,
    /// The schema that the search was planned with; its owner's must not be older.
    pub schema_version: u64,
}
