//! Named points between two steps, at which a crash test kills the process; nothing in the product.

/// Marks a point between two steps.
#[cfg(not(test))]
#[inline]
pub(crate) fn failpoint(_name: &'static str) {}

#[cfg(test)]
pub(super) use armed::arm;
#[cfg(test)]
pub(crate) use armed::failpoint;

#[cfg(test)]
mod armed {
    use std::sync::Mutex;

    use crate::store::lock;

    /// The point at which this process dies, and how often it is passed before.
    static ARMED: Mutex<Option<(String, u32)>> = Mutex::new(None);

    /// Has this process killed when it comes to `name` for the `count`-th time.
    pub(in crate::store) fn arm(name: &str, count: u32) {
        *lock(&ARMED) = Some((name.to_owned(), count));
    }

    /// Marks a point between two steps; the armed one ends the process as `kill -9` does.
    pub(crate) fn failpoint(name: &'static str) {
        // The lock is kept while dying, so that no other thread passes a point meanwhile.
        let mut armed = lock(&ARMED);
        let Some((wanted, count)) = armed.as_mut() else { return };
        if wanted != name {
            return;
        }
        *count = count.saturating_sub(1);
        if *count == 0 {
            let own = rustix::process::getpid();
            rustix::process::kill_process(own, rustix::process::Signal::KILL).ok();
            loop {
                std::thread::park();
            }
        }
    }
}
