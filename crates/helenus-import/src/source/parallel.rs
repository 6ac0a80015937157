//! Work on several threads, because each item waits for the storage.

use std::panic::resume_unwind;
use std::thread;

/// Threads that wait for the storage.
const THREADS: usize = 16;

/// Returns the results in the order of the items.
///
/// # Errors
/// The first error in that order.
pub(super) fn in_parallel<T: Sync, R: Send, E: Send>(
    items: &[T],
    work: impl Fn(&T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let len = items.len().div_ceil(THREADS).max(1);
    thread::scope(|scope| {
        let work = &work;
        let workers: Vec<_> = items
            .chunks(len)
            .map(|chunk| scope.spawn(move || chunk.iter().map(work).collect::<Result<Vec<R>, E>>()))
            .collect();
        let mut results = Vec::with_capacity(items.len());
        for worker in workers {
            let done = worker.join().unwrap_or_else(|panic| resume_unwind(panic));
            results.extend(done?);
        }
        Ok(results)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order() {
        let items: Vec<usize> = (0..100).collect();
        let doubled = in_parallel(&items, |item| Ok::<_, usize>(item * 2)).unwrap();
        assert!(doubled.iter().zip(&items).all(|(found, item)| *found == item * 2));
        let failed = in_parallel(&items, |item| if *item < 40 { Ok(()) } else { Err(*item) });
        assert_eq!(failed, Err(40));
        assert_eq!(
            in_parallel(&[], |item: &usize| Ok::<_, usize>(*item)),
            Ok(Vec::new())
        );
    }
}
