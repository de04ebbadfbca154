// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes each result, such as a compiled image, only once while this program runs. All boots of this program then run
//! the same images, even if a file is edited meanwhile, and no boot waits for Cargo to find that nothing has changed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;

/// Results, by their inputs.
#[derive(Debug)]
pub struct Once<K, V>(Mutex<BTreeMap<K, Arc<V>>>);

impl<K: Ord, V> Default for Once<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Ord, V> Once<K, V> {
    /// Creates the value without any results.
    pub const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// Returns the result for `key`. Calls `make` if no earlier call has made this result, while other callers wait.
    /// After a failure, the next call tries again.
    pub fn get(&self, key: K, make: impl FnOnce() -> Result<V>) -> Result<Arc<V>> {
        // A panic in `make` leaves the map as it was.
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = made.get(&key) {
            return Ok(made.clone());
        }
        let new = Arc::new(make()?);
        made.insert(key, new.clone());
        Ok(new)
    }
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn a_thing_is_made_once_and_a_failure_is_not_kept() {
        let once = Once::new();
        assert!(once.get("a", || bail!("failed")).is_err());
        assert_eq!(*once.get("a", || Ok(1)).unwrap(), 1);
        assert_eq!(*once.get("a", || bail!("made again")).unwrap(), 1);
        assert_eq!(*once.get("b", || Ok(2)).unwrap(), 2);
    }
}
