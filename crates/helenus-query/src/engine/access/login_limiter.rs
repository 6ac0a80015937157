//! Limits the number of password checks that run at a time. Waiting addresses take turns: each gets one turn before any gets another.
//! Clients that guess passwords from one address therefore delay each other, but no client at another address.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Grants turns.
#[derive(Clone)]
pub(crate) struct LoginLimiter(Arc<Mutex<Queue>>);

struct Queue {
    free: usize,
    /// Addresses with waiting clients, in the order of their turns. Each address is there only once.
    next: VecDeque<IpAddr>,
    waiting: HashMap<IpAddr, VecDeque<oneshot::Sender<LoginPermit>>>,
}

/// A turn, which ends when this is dropped.
pub(crate) struct LoginPermit(Option<LoginLimiter>);

impl LoginLimiter {
    pub fn new(at_a_time: usize) -> LoginLimiter {
        LoginLimiter(Arc::new(Mutex::new(Queue {
            free: at_a_time,
            next: VecDeque::new(),
            waiting: HashMap::new(),
        })))
    }

    /// Waits for a turn of that address. A caller that drops the future gets no turn.
    pub async fn take(&self, address: IpAddr) -> Option<LoginPermit> {
        let waits = {
            let mut queue = self.0.lock();
            if queue.free > 0 {
                queue.free -= 1;
                return Some(LoginPermit(Some(self.clone())));
            }
            let (turn, waits) = oneshot::channel();
            queue.push(address_group(address), turn);
            waits
        };
        waits.await.ok()
    }

    /// Passes a turn that has ended on to the next waiting client.
    fn pass_on(&self) {
        loop {
            let mut queue = self.0.lock();
            let Some(waits) = queue.pop() else {
                queue.free += 1;
                return;
            };
            drop(queue);
            // If the client no longer waits, the turn comes back. Dropping it must not call this function again.
            match waits.send(LoginPermit(Some(self.clone()))) {
                Ok(()) => return,
                Err(mut turn) => turn.0 = None,
            }
        }
    }
}

impl Queue {
    fn push(&mut self, address: IpAddr, turn: oneshot::Sender<LoginPermit>) {
        let waiting = self.waiting.entry(address).or_default();
        if waiting.is_empty() {
            self.next.push_back(address);
        }
        waiting.push_back(turn);
    }

    fn pop(&mut self) -> Option<oneshot::Sender<LoginPermit>> {
        let address = self.next.pop_front()?;
        let waiting = self.waiting.get_mut(&address)?;
        let first = waiting.pop_front();
        match waiting.is_empty() {
            true => drop(self.waiting.remove(&address)),
            false => self.next.push_back(address),
        }
        first
    }
}

impl Drop for LoginPermit {
    fn drop(&mut self) {
        if let Some(login_limiter) = self.0.take() {
            login_limiter.pass_on();
        }
    }
}

/// Returns the group of an address, which takes turns as one. For IPv6 this is the /64 network, since one machine usually has a whole
/// network.
fn address_group(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let network = v6.to_bits() >> 64 << 64;
            IpAddr::V6(network.into())
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[tokio::test]
    async fn an_address_waits_for_one_of_each_other_address() {
        let login_limiter = LoginLimiter::new(1);
        let first = login_limiter.take(address(1)).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for (number, last) in [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2), (6, 3)] {
            let (login_limiter, order) = (login_limiter.clone(), order.clone());
            tasks.push(tokio::spawn(async move {
                let _turn = login_limiter.take(address(last)).await;
                order.lock().push(number);
            }));
            tokio::task::yield_now().await;
        }
        drop(first);
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*order.lock(), [1, 4, 6, 2, 5, 3]);
    }

    #[tokio::test]
    async fn departed_client_is_skipped() {
        let login_limiter = LoginLimiter::new(1);
        let first = login_limiter.take(address(1)).await;
        for _ in 0..3 {
            let waits = login_limiter.take(address(2));
            assert!(
                tokio::time::timeout(std::time::Duration::from_millis(1), waits)
                    .await
                    .is_err()
            );
        }
        drop(first);
        assert!(login_limiter.take(address(3)).await.is_some());
        assert_eq!(login_limiter.0.lock().free, 1);
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let network = |text: &str| address_group(text.parse().unwrap());
        assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:1"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        assert_eq!(network("::ffff:192.0.2.1"), address(1));
    }
}
