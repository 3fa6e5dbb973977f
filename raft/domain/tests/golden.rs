//! Bytes that are written once are read for ever.
//!
//! `tests/golden/v1/` holds a log with every command, the state that it makes, and every answer as
//! it is kept. A program that reads or writes them differently cannot join a cluster of the others;
//! a new command adds lines, and no line ever changes. `UPDATE_GOLDENFILES=1` writes what is seen.

#![expect(clippy::unwrap_used, reason = "a test stops where it fails, helpers included")]

mod logs;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use logs::Log;
use nexus_domain::command::mail::MailCommand;
use nexus_domain::command::meetings::{Approver, Mode};
use nexus_domain::command::tasks::{TaskCommand, TaskStatus};
use nexus_domain::command::{
    ChatCommand, ClusterCommand, Command, ConversationCommand, DocumentCommand, ProjectCommand,
    SystemCommand,
};
use nexus_domain::reply::IdRange;
use nexus_domain::{
    KeyRange, MemoryStore, Read, Rejection, Reply, Store, codec, digest, invariants, testing,
};

/// Returns a number for each command; a new one must be added here, and to a log.
fn number(command: &Command) -> usize {
    match command {
        Command::Cluster(ClusterCommand::Found { .. }) => 0,
        Command::System(SystemCommand::Started { .. }) => 1,
        Command::System(SystemCommand::ClockStep { .. }) => 2,
        Command::System(SystemCommand::Upgrade { .. }) => 3,
        Command::System(SystemCommand::Fire { .. }) => 4,
        Command::Cluster(ClusterCommand::Invite { .. }) => 5,
        Command::Cluster(ClusterCommand::Withdraw { .. }) => 6,
        Command::Cluster(ClusterCommand::Admit { .. }) => 7,
        Command::Cluster(ClusterCommand::Describe { .. }) => 8,
        Command::Cluster(ClusterCommand::Remove { .. }) => 9,
        Command::Cluster(ClusterCommand::SetTiming { .. }) => 10,
        Command::Cluster(ClusterCommand::Burn { .. }) => 11,
        Command::Conversation(ConversationCommand::Register { .. }) => 12,
        Command::Conversation(ConversationCommand::Transition { .. }) => 13,
        Command::Conversation(ConversationCommand::SetProfile { .. }) => 14,
        Command::Chat(ChatCommand::Send { .. }) => 15,
        Command::Chat(ChatCommand::Take { .. }) => 16,
        Command::Cluster(ClusterCommand::Voters { .. }) => 17,
        Command::Project(ProjectCommand::Sync { .. }) => 18,
        Command::Project(ProjectCommand::Update { .. }) => 19,
        Command::Project(ProjectCommand::Rename { .. }) => 20,
        Command::Project(ProjectCommand::Delete { .. }) => 21,
        Command::Project(ProjectCommand::PutAsset { .. }) => 22,
        Command::Project(ProjectCommand::DeleteAsset { .. }) => 23,
        Command::Project(ProjectCommand::BeginUpload { .. }) => 24,
        Command::Project(ProjectCommand::UploadChunk { .. }) => 25,
        Command::Project(ProjectCommand::CommitAsset { .. }) => 26,
        Command::Project(ProjectCommand::AbandonUpload { .. }) => 27,
        Command::Project(ProjectCommand::SetQuota { .. }) => 28,
        Command::Document(DocumentCommand::Sync { .. }) => 29,
        Command::Document(DocumentCommand::Delete { .. }) => 30,
        Command::Document(DocumentCommand::SetStrategy { .. }) => 31,
        Command::Task(TaskCommand::Create { .. }) => 32,
        Command::Task(TaskCommand::Update { .. }) => 33,
        Command::Task(TaskCommand::Cancel { .. }) => 34,
        Command::Mail(MailCommand::Send { .. }) => 35,
        Command::Mail(MailCommand::Reply { .. }) => 36,
        Command::Mail(MailCommand::Take { .. }) => 37,
        Command::Conversation(ConversationCommand::Report { .. }) => 38,
        Command::Conversation(ConversationCommand::Listen { .. }) => 39,
        Command::Conversation(ConversationCommand::Nodes { .. }) => 40,
        Command::Chat(ChatCommand::Prune { .. }) => 41,
        Command::Chat(ChatCommand::Clear) => 42,
        Command::Meeting(command) => logs::meetings::number(command),
    }
}

/// How many commands there are.
const COMMANDS: usize = 43 + logs::meetings::COMMANDS;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digit).collect()
}

/// Compares lines with a golden file, or writes it.
fn golden(file: &str, lines: &[String]) -> String {
    let path = format!("{}/tests/golden/v1/{file}", env!("CARGO_MANIFEST_DIR"));
    let seen = lines.join("\n") + "\n";
    if option_env!("UPDATE_GOLDENFILES").is_some() {
        std::fs::write(&path, &seen).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap();
    assert_eq!(known, seen, "{file} differs: bytes that are in use must not change");
    known
}

fn dump(store: &MemoryStore) -> Vec<String> {
    store.rows().map(|(key, value)| format!("{} {}", hex(key), hex(value))).collect()
}

#[test]
fn every_command_keeps_its_bytes() {
    let mut covered = BTreeSet::new();
    for Log { prefix, entries, shared } in logs::all() {
        covered.extend(entries.iter().map(|entry| number(&entry.proposal.command)));
        let own = &entries[shared..];
        let lines: Vec<_> = own
            .iter()
            .map(|entry| {
                let bytes = codec::encode_entry(&entry.stamp, &entry.proposal);
                format!("{} {} {}", entry.index, entry.proposal.command.kind(), hex(&bytes))
            })
            .collect();
        for (line, entry) in golden(&format!("{prefix}log.hex"), &lines).lines().zip(own) {
            let bytes = bytes(line.rsplit(' ').next().unwrap());
            assert_eq!(codec::decode_entry(entry.index, &bytes).as_ref(), Ok(entry));
        }
    }
    assert_eq!(covered.len(), COMMANDS, "a command is missing in the logs: {covered:?}");
}

#[test]
fn every_row_keeps_its_bytes() {
    let tables: BTreeSet<_> = logs::all().iter().flat_map(rows_keep_their_bytes).collect();
    let first = [
        0x01, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x0e, 0x10, 0x11, 0x12, 0x13, 0x18, 0x19, 0x1a,
        0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 0x20, 0x21, 0x22, 0x23, 0x28, 0x29,
    ];
    let all: BTreeSet<_> = first
        .into_iter()
        .chain(0x30..0x40)
        .chain(0x40..0x4b)
        .chain(0x50..0x54)
        .chain(0x56..0x5d)
        .collect();
    assert_eq!(tables, all, "every table but the state version (02) and the marks (0f) is filled");
}

/// Compares the answers to a log and the rows that it makes with their golden files; returns the
/// tables that it fills.
fn rows_keep_their_bytes(log: &Log) -> BTreeSet<u8> {
    let Log { prefix, entries, shared } = log;
    let mut store = MemoryStore::default();
    let mut outcomes = Vec::new();
    for batch in testing::batches(entries, 0) {
        outcomes.extend(testing::apply_batch(&mut store, batch).unwrap());
    }
    let lines: Vec<_> =
        outcomes.iter().skip(*shared).map(|outcome| format!("{outcome:?}")).collect();
    golden(&format!("{prefix}answers.txt"), &lines);
    let known = golden(&format!("{prefix}rows.hex"), &dump(&store));
    // What stands in the file is a state that this program can go on with.
    let mut loaded = MemoryStore::default();
    for line in known.lines() {
        let (key, value) = line.split_once(' ').unwrap();
        loaded.put(&bytes(key), bytes(value)).unwrap();
    }
    assert_eq!(invariants::check(&loaded).unwrap(), Vec::<String>::new());
    assert_eq!(digest::read(&loaded).unwrap(), digest::recompute(&loaded).unwrap());
    (1..=255u8)
        .filter(|table| {
            loaded.scan(KeyRange::prefix(&[*table]), nexus_domain::Direction::Forward).count() > 0
        })
        .collect()
}

#[test]
fn every_answer_keeps_its_bytes() {
    let text = || String::from("x");
    let range = IdRange { after: 3, upto: 300 };
    let replies = [
        Reply::Done,
        Reply::Admitted { node: 12, name: text() },
        Reply::Registered { name: text(), from: 1 },
        Reply::Posted { id: 70_000 },
        Reply::Taken { again: IdRange::default(), fresh: range, first: true },
        Reply::Fired { changed: 7 },
        Reply::Named { name: text() },
        Reply::Uploading { upload: 70_000, next: 3 },
        Reply::Meeting { id: text() },
        Reply::PostedIn { meeting: text(), id: 300 },
        Reply::Joined { mode: Mode::Async, approver: Approver::Optional, again: true },
        Reply::Stanced { draft: 3, counted: true, decision: 300 },
        Reply::Sent { id: 300, to: text() },
        Reply::Task { id: 7, status: TaskStatus::Running, updated_at: 70_000, same_target: None },
        Reply::Task { id: 7, status: TaskStatus::Failed, updated_at: 1, same_target: Some(300) },
        Reply::Pruned { removed: 300, remaining: 7 },
    ];
    let refusals = [
        Rejection::VersionTooNew { needs: 2, has: 1 },
        Rejection::RequestExpired,
        Rejection::RequestReused,
        Rejection::TooManyRequests { limit: 1_000 },
        Rejection::NotHere { home: 12 },
        Rejection::TooLate,
        Rejection::Invalid { field: text(), rule: text() },
        Rejection::NotFound { what: text() },
        Rejection::Conflict { what: text() },
        Rejection::Forbidden { what: text() },
        Rejection::Impossible { what: text() },
        Rejection::Busy { what: text() },
        Rejection::TaskChanged {
            task: 7,
            status: TaskStatus::Cancelled,
            updated_at: 70_000,
            by: text(),
            by_name: text(),
        },
        Rejection::Full { what: text() },
    ];
    let mut lines = Vec::new();
    for reply in &replies {
        let bytes = codec::encode_value(reply);
        assert_eq!(codec::decode_value::<Reply>(b"", &bytes).as_ref(), Ok(reply));
        lines.push(format!("{reply:?} = {}", hex(&bytes)));
    }
    for refusal in &refusals {
        let bytes = codec::encode_value(refusal);
        assert_eq!(codec::decode_value::<Rejection>(b"", &bytes).as_ref(), Ok(refusal));
        lines.push(format!("{refusal:?} = {}", hex(&bytes)));
    }
    golden("values.hex", &lines);
}

#[test]
fn newer_and_damaged_bytes_are_told_apart() {
    let entry = logs::all()[0].entries[1].clone();
    let bytes = codec::encode_entry(&entry.stamp, &entry.proposal);
    let mut newer = bytes;
    newer[0] = 2;
    assert_eq!(codec::decode_entry(3, &newer), Err(codec::DecodeError::TooNew));
    let mut proposal = entry.proposal;
    proposal.version = nexus_domain::SUPPORTED + 1;
    let newer = codec::encode_proposal(&proposal);
    assert_eq!(codec::decode_proposal(&newer), Err(codec::DecodeError::TooNew));
    assert_eq!(codec::decode_proposal(&[]), Err(codec::DecodeError::Malformed));
    assert_eq!(codec::decode_proposal(&[0]), Err(codec::DecodeError::Malformed));
    let long = vec![1; nexus_domain::limits::ENTRY_BYTES_MAX + 1];
    assert_eq!(codec::decode_proposal(&long), Err(codec::DecodeError::TooLarge));
    // A variant that this program does not know, in a proposal of a newer version.
    let mut unknown = newer;
    unknown.extend_from_slice(&[0x82, 0x18, 0x63, 0x80]);
    assert_eq!(codec::decode_proposal(&unknown), Err(codec::DecodeError::TooNew));
}
