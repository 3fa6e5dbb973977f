//! Overlays against a plain map: what is read through two of them is what one map would hold.

#![expect(clippy::unwrap_used, reason = "a test stops where it fails, helpers included")]

use std::collections::BTreeMap;

use nexus_domain::{Direction, KeyRange, MemoryStore, Overlay, Read, Store};
use proptest::prelude::*;

/// One write: a key, and a value or nothing.
type Write = (Vec<u8>, Option<Vec<u8>>);

fn key() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(prop_oneof![0..3u8, Just(255)], 0..3)
}

fn writes() -> impl Strategy<Value = Vec<Write>> {
    let value = proptest::option::of(proptest::collection::vec(any::<u8>(), 0..3));
    proptest::collection::vec((key(), value), 0..30)
}

fn write(store: &mut impl Store, model: &mut BTreeMap<Vec<u8>, Vec<u8>>, writes: &[Write]) {
    for (key, value) in writes {
        match value {
            Some(value) => {
                store.put(key, value.clone()).unwrap();
                model.insert(key.clone(), value.clone());
            }
            None => {
                store.delete(key).unwrap();
                model.remove(key);
            }
        }
    }
}

fn rows(state: &impl Read, range: &KeyRange, direction: Direction) -> Vec<(Vec<u8>, Vec<u8>)> {
    state.scan(range.clone(), direction).map(Result::unwrap).collect()
}

fn compare(state: &impl Read, model: &BTreeMap<Vec<u8>, Vec<u8>>, range: &KeyRange) {
    let mut expected: Vec<_> = model
        .iter()
        .filter(|(key, _)| **key >= range.start)
        .filter(|(key, _)| range.end.as_ref().is_none_or(|end| *key < end))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    assert_eq!(rows(state, range, Direction::Forward), expected);
    expected.reverse();
    assert_eq!(rows(state, range, Direction::Reverse), expected);
    for (key, value) in model {
        assert_eq!(state.get(key).unwrap().as_ref(), Some(value));
    }
    assert_eq!(state.get(&range.start).unwrap(), model.get(&range.start).cloned());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn overlays_read_like_one_map(
        below in writes(), batch in writes(), own in writes(),
        start in key(), end in proptest::option::of(key()), prefix in key(),
    ) {
        let mut model = BTreeMap::new();
        let mut store = MemoryStore::default();
        write(&mut store, &mut model, &below);
        let mut batch_overlay = Overlay::new(&store);
        write(&mut batch_overlay, &mut model, &batch);
        let batch_model = model.clone();
        let mut entry_overlay = Overlay::new(&batch_overlay);
        write(&mut entry_overlay, &mut model, &own);
        for range in [KeyRange { start, end }, KeyRange::prefix(&prefix), KeyRange::prefix(&[])] {
            compare(&batch_overlay, &batch_model, &range);
            compare(&entry_overlay, &model, &range);
        }
        let changes = entry_overlay.into_changes();
        batch_overlay.absorb(changes);
        let changes = batch_overlay.into_changes();
        store.absorb(changes);
        compare(&store, &model, &KeyRange::prefix(&[]));
    }
}
