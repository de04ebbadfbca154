// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes each result, such as a compiled image, only once while this program runs. All boots of this program then run
//! the same images, even if a file is edited meanwhile, and no boot waits for Cargo to find that nothing has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, ensure};

/// Results, by their inputs.
#[derive(Debug)]
pub struct Once<K, V>(Mutex<BTreeMap<K, Arc<V>>>);

impl<K: Ord + Clone, V> Default for Once<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Ord + Clone, V> Once<K, V> {
    /// Creates the value without any results.
    pub const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// Returns the result for `key`. Calls `make` if no earlier call has made this result, while other callers wait.
    /// After a failure, the next call tries again.
    pub fn get(&self, key: K, make: impl FnOnce() -> Result<V>) -> Result<Arc<V>> {
        let mut one = self.get_all(&[key], |_| Ok(vec![make()?]))?;
        Ok(one.swap_remove(0))
    }

    /// Like [`Self::get`], for several `keys`, whose results are in the same order. `make` gets only keys without a
    /// result, each once, and returns as many results.
    pub fn get_all(
        &self,
        keys: &[K],
        make: impl FnOnce(&[K]) -> Result<Vec<V>>,
    ) -> Result<Vec<Arc<V>>> {
        // A panic in `make` leaves the map as it was.
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let missing: BTreeSet<_> = keys.iter().filter(|&key| !made.contains_key(key)).collect();
        let missing: Vec<_> = missing.into_iter().cloned().collect();
        if !missing.is_empty() {
            let new = make(&missing)?;
            ensure!(new.len() == missing.len(), "a result is missing");
            made.extend(missing.into_iter().zip(new.into_iter().map(Arc::new)));
        }
        Ok(keys.iter().map(|key| made[key].clone()).collect())
    }
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn only_missing_things_of_several_are_made() {
        let once = Once::new();
        assert!(once.get_all(&[1, 2], |_| bail!("failed")).is_err());
        assert!(once.get_all(&[1, 2], |_| Ok(vec![10])).is_err());
        let tens = |keys: &[i32]| Ok(keys.iter().map(|key| 10 * key).collect());
        let all = |keys: &[i32]| -> Vec<i32> {
            let all = once.get_all(keys, tens).unwrap();
            all.iter().map(|value| **value).collect()
        };
        assert_eq!(all(&[2, 1, 2]), [20, 10, 20]);
        let third = |missing: &[i32]| {
            assert_eq!(missing, [3]);
            tens(missing)
        };
        assert_eq!(*once.get_all(&[1, 3], third).unwrap()[1], 30);
        assert_eq!(*once.get(3, || bail!("not called")).unwrap(), 30);
        assert!(all(&[]).is_empty());
    }

    #[test]
    fn a_thing_is_made_once_and_a_failure_is_not_kept() {
        let once = Once::new();
        assert!(once.get("a", || bail!("failed")).is_err());
        assert_eq!(*once.get("a", || Ok(1)).unwrap(), 1);
        assert_eq!(*once.get("a", || bail!("made again")).unwrap(), 1);
        assert_eq!(*once.get("b", || Ok(2)).unwrap(), 2);
    }
}
