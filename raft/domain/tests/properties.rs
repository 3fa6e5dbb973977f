//! What must hold for every log: invariants, batch borders, retries, and input of any kind.

#![expect(clippy::unwrap_used, reason = "a test stops where it fails, helpers included")]

mod common;

use nexus_domain::command::DueKind;
use nexus_domain::testing::{self, Random, Sequence};
use nexus_domain::{
    ClusterCommand, Command, Direction, Entry, KeyRange, MemoryStore, Read, Rejection, Reply,
    RequestId, SystemCommand, codec, digest, invariants,
};
use proptest::prelude::*;

/// How many random logs each test tries; `PROPTEST_CASES` changes it.
const CASES: u32 = 24;

/// The logs in which everything must have happened at least once.
const SEEDS: std::ops::Range<u64> = 7..11;

/// What is done in them.
const DONE: [&str; 51] = [
    "started",
    "clock_step",
    "fire",
    "invite",
    "admit",
    "describe",
    "remove",
    "voters",
    "set_timing",
    "register",
    "set_profile",
    "chat_send",
    "chat_take",
    "burn",
    "withdraw",
    "transition",
    "report",
    "listen",
    "nodes",
    "chat_prune",
    "chat_clear",
    "project_sync",
    "project_update",
    "project_rename",
    "project_delete",
    "asset_put",
    "asset_delete",
    "upload_begin",
    "upload_chunk",
    "upload_abandon",
    "asset_commit",
    "set_quota",
    "doc_sync",
    "doc_delete",
    "strategy_update",
    "meeting_start",
    "meeting_end",
    "meeting_archive",
    "meeting_reopen",
    "meeting_join",
    "meeting_leave",
    "meeting_post",
    "meeting_draft",
    "meeting_stance",
    "meeting_told",
    "task_create",
    "task_update",
    "task_cancel",
    "mail_send",
    "mail_reply",
    "mail_take",
];

/// Why something is refused in them.
const REFUSED: [&str; 9] = [
    "version_too_new",
    "request_expired",
    "conflict",
    "not_here",
    "too_late",
    "invalid_arguments",
    "not_found",
    "forbidden",
    "busy",
];

/// Which timers find something to do in them.
const FIRED: [DueKind; 15] = [
    DueKind::Invite,
    DueKind::Requests,
    DueKind::Removal,
    DueKind::Upload,
    DueKind::Sweep,
    DueKind::Reminder,
    DueKind::Meeting,
    DueKind::MeetingRest,
    DueKind::Task,
    DueKind::Unread,
    DueKind::Mail,
    DueKind::Watch,
    DueKind::Turns,
    DueKind::Chat,
    DueKind::Closed,
];

/// A failure is repeated by the seeds that it prints, not by a file that would go stale.
fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(CASES) }
}

/// Applies entries in batches at random borders.
fn run(entries: &[Entry], borders: u64) -> (MemoryStore, Vec<Result<Reply, Rejection>>) {
    let mut store = MemoryStore::default();
    let mut outcomes = Vec::new();
    for batch in testing::batches(entries, borders) {
        outcomes.extend(testing::apply_batch(&mut store, batch).unwrap());
    }
    (store, outcomes)
}

/// Applies one entry as a batch of its own and returns whether the content stayed as it was.
fn one(store: &mut MemoryStore, entry: &Entry) -> (Result<Reply, Rejection>, bool) {
    let before = digest::read(store).unwrap().content;
    let mut outcomes = testing::apply_batch(store, std::slice::from_ref(entry)).unwrap();
    (outcomes.pop().unwrap(), digest::read(store).unwrap().content == before)
}

#[test]
fn sequences_do_something() {
    let mut kinds = std::collections::BTreeMap::<(&str, &str), u32>::new();
    for seed in SEEDS {
        let entries = testing::entries(seed, 6_000);
        assert_eq!(entries.len(), 6_000, "the sequence's own state failed");
        let (store, outcomes) = run(&entries, 1);
        for (entry, outcome) in entries.iter().zip(&outcomes) {
            let code = outcome.as_ref().map_or_else(Rejection::code, |_| "done");
            *kinds.entry((entry.proposal.command.kind(), code)).or_default() += 1;
        }
        assert_eq!(digest::history(&store).unwrap().len(), (6_001 / 64));
    }
    println!("{kinds:#?}");
    for kind in DONE {
        assert!(kinds.contains_key(&(kind, "done")), "no {kind} was done: {kinds:#?}");
    }
    let codes = kinds.keys().map(|(_, code)| *code).collect::<std::collections::BTreeSet<_>>();
    for code in REFUSED {
        assert!(codes.contains(code), "nothing was refused as {code}: {codes:?}");
    }
    assert!(!codes.contains("internal"), "{kinds:#?}");
}

#[test]
fn timers_find_something_to_do() {
    let mut fired = std::collections::BTreeSet::new();
    for seed in SEEDS {
        let entries = testing::entries(seed, 6_000);
        let (_, outcomes) = run(&entries, 1);
        for (entry, outcome) in entries.iter().zip(&outcomes) {
            if let Command::System(SystemCommand::Fire { kind, .. }) = entry.proposal.command
                && matches!(outcome, Ok(Reply::Fired { changed: 1.. }))
            {
                fired.insert(kind);
            }
        }
    }
    for kind in FIRED {
        assert!(fired.contains(&kind), "no timer of {kind:?} found anything to do: {fired:?}");
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn invariants_hold_after_every_entry(seed: u64) {
        let mut store = MemoryStore::default();
        for entry in Sequence::new(seed).take(300) {
            let _answered = one(&mut store, &entry);
            let found = invariants::check(&store).unwrap();
            prop_assert!(found.is_empty(), "after {entry:?}: {found:#?}");
        }
    }

    #[test]
    fn batch_borders_do_not_show(seed: u64, first: u64, second: u64) {
        let entries = testing::entries(seed, 400);
        let (one, answers) = run(&entries, first);
        let (other, others) = run(&entries, second);
        prop_assert_eq!(answers, others);
        prop_assert_eq!(digest::read(&one).unwrap(), digest::recompute(&one).unwrap());
        prop_assert!(one == other, "the rows differ");
    }

    #[test]
    fn a_refusal_changes_no_content(seed: u64) {
        let mut store = MemoryStore::default();
        for entry in Sequence::new(seed).take(400) {
            let (outcome, same) = one(&mut store, &entry);
            prop_assert!(outcome.is_ok() || same, "{entry:?} gave {outcome:?}");
        }
    }

    #[test]
    fn a_repeated_request_changes_nothing_and_answers_the_same(seed: u64, retry: u64) {
        let entries = testing::entries(seed, 400);
        let mut store = MemoryStore::default();
        let mut random = Random::new(retry);
        let mut repeated = 0;
        for entry in &entries {
            let (first, _) = one(&mut store, entry);
            // Refusals that leave the id free are answered anew; all others from the record.
            let kept = !matches!(
                first,
                Err(Rejection::VersionTooNew { .. }
                    | Rejection::NotHere { .. }
                    | Rejection::Forbidden { .. }
                    | Rejection::Invalid { .. })
            );
            if kept && random.chance(50) {
                let mut again = entry.clone();
                again.index += 100_000;
                again.stamp.tick += random.below(1_000);
                let (second, same) = one(&mut store, &again);
                prop_assert!(same, "{entry:?} had a second effect: {second:?}");
                let expired = second == Err(Rejection::RequestExpired);
                prop_assert!(first == second || expired, "{entry:?}: {first:?}, {second:?}");
                repeated += 1;
            }
        }
        prop_assert!(repeated > 50, "only {repeated} were repeated");
    }

    #[test]
    fn anything_at_all_is_answered(
        seed: u64, hostile in proptest::collection::vec(common::entry(), 1..60),
    ) {
        let mut store = MemoryStore::default();
        let mut entries = testing::entries(seed, 60);
        entries.extend(hostile);
        for entry in &entries {
            let (outcome, same) = one(&mut store, entry);
            prop_assert!(outcome.is_ok() || same, "{entry:?} gave {outcome:?}");
            let found = invariants::check(&store).unwrap();
            prop_assert!(found.is_empty(), "after {entry:?}: {found:#?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes_come_back(mut entry in common::entry()) {
        entry.proposal.version = 0;
        let unsaid = codec::decode_proposal(&codec::encode_proposal(&entry.proposal));
        prop_assert!(unsaid.is_err(), "a command that does not say what it needs is no proposal");
        entry.proposal.version = 1;
        let bytes = codec::encode_entry(&entry.stamp, &entry.proposal);
        let decoded = codec::decode_entry(entry.index, &bytes);
        if bytes.len() <= nexus_domain::limits::ENTRY_BYTES_MAX {
            prop_assert_eq!(decoded, Ok(entry.clone()));
        } else {
            prop_assert_eq!(decoded, Err(codec::DecodeError::TooLarge));
        }
        let mut longer = codec::encode_proposal(&entry.proposal);
        longer.push(0);
        prop_assert!(codec::decode_proposal(&longer).is_err());
    }

    #[test]
    fn any_bytes_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        for version in 0..3 {
            let mut framed = vec![version];
            framed.extend_from_slice(&bytes);
            let _refused = codec::decode_proposal(&framed).is_err();
            let _refused = codec::decode_entry(1, &framed).is_err();
        }
    }

    #[test]
    fn damaged_entries_are_refused_or_read(
        entry in common::entry(), place: proptest::sample::Index, value: u8,
    ) {
        let mut bytes = codec::encode_entry(&entry.stamp, &entry.proposal);
        let place = place.index(bytes.len());
        bytes[place] = value;
        if let Ok(read) = codec::decode_entry(entry.index, &bytes) {
            // What is read has exactly one form.
            prop_assert_eq!(codec::encode_entry(&read.stamp, &read.proposal), bytes);
        }
    }
}

/// Stored answers stay within the bound that keeps the table of request ids small.
#[test]
fn kept_answers_are_small() {
    let mut store = MemoryStore::default();
    let mut entry = Sequence::new(3).next().unwrap();
    one(&mut store, &entry).0.unwrap();
    let RequestId::Node { node, boot, .. } = entry.proposal.request else { panic!("{entry:?}") };
    entry.index += 1;
    entry.proposal.request = RequestId::Node { node, boot, counter: 1_000 };
    let id = "ü".repeat(20_000);
    entry.proposal.command = Command::Cluster(ClusterCommand::Withdraw { id });
    one(&mut store, &entry).0.unwrap_err();
    let rows = store.scan(KeyRange::prefix(&[3]), Direction::Forward);
    let longest = rows.map(|row| row.unwrap().1.len()).max().unwrap();
    // The record adds a hash of the call to the answer.
    let bounds = 100..=nexus_domain::limits::OUTCOME_BYTES_MAX + 24;
    assert!(bounds.contains(&longest), "{longest}");
}
