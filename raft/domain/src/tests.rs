//! Bounds that no test reaches by filling them: counters are set where they would be.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::bodies::Storage;
use crate::cluster::Member;
use crate::command::mail::MailCommand;
use crate::command::meetings::{Approver, MeetingCommand, Mode, Since};
use crate::command::projects::{Content, Manifest, UploadTarget};
use crate::command::tasks::TaskCommand;
use crate::command::{
    Category, ChatCommand, Client, ClusterCommand, ConversationCommand, DocumentCommand,
    ProjectCommand, Role, Room,
};
use crate::conversations::Totals;
use crate::mail::{Inbox, MailTotals};
use crate::tasks::TaskTotals;
use crate::{
    Actor, Answered, Command, Entry, MemoryStore, Proposal, Rejection, Reply, RequestId, Stamp,
    apply, limits, tables,
};

fn run(
    state: &mut MemoryStore,
    index: u64,
    id: &str,
    command: Command,
) -> Result<Reply, Rejection> {
    let actor = if id.is_empty() { Actor::Node } else { Actor::Conversation(id.into()) };
    let entry = Entry {
        index,
        stamp: Stamp { tick: index, at: index, node: 1 },
        proposal: Proposal {
            version: 1,
            request: RequestId::Node { node: 1, boot: 0, counter: index },
            actor,
            answered: Answered { boot: 0, below: 0 },
            not_after: u64::MAX,
            command,
        },
    };
    apply(state, &entry, &mut Vec::new()).unwrap()
}

/// Makes a cluster with two conversations.
fn cluster() -> MemoryStore {
    let mut state = MemoryStore::default();
    let found = ClusterCommand::Found {
        cluster: "c1".into(),
        authority: vec![1],
        public_key: vec![1],
        name: "alpha".into(),
        host: String::new(),
    };
    run(&mut state, 2, "", Command::Cluster(found)).unwrap();
    for (index, id) in [(3, "claude:a"), (4, "claude:b")] {
        let client = Client::Claude;
        let register = ConversationCommand::Register { client, cwd: "/x".into(), incarnation: 1 };
        run(&mut state, index, id, Command::Conversation(register)).unwrap();
    }
    state
}

fn send(state: &mut MemoryStore, index: u64) -> Result<Reply, Rejection> {
    let command = MailCommand::Send {
        to: "claude:b".into(),
        text: "hello".into(),
        expects_reply: true,
        wake: true,
        notify_when_idle: false,
    };
    run(state, index, "claude:a", Command::Mail(command))
}

fn is_full(outcome: &Result<Reply, Rejection>, word: &str) -> bool {
    matches!(outcome, Err(Rejection::Full { what }) if what.starts_with(word))
}

#[test]
fn an_inbox_takes_so_many_messages() {
    let mut state = cluster();
    send(&mut state, 5).unwrap();
    let mut inbox = tables::INBOXES.get(&state, "claude:b").unwrap().unwrap();
    // All but the newest lie behind its texts; the index of the unread one stays as it is.
    inbox.last = limits::INBOX_MESSAGES_MAX;
    tables::INBOXES.put(&mut state, "claude:b", &inbox).unwrap();
    let outcome = send(&mut state, 6);
    assert!(is_full(&outcome, "to: the inbox of claude:b is full"), "{outcome:?}");
    // One that was swept makes room.
    inbox.swept = 1;
    inbox.sweep_to = 1;
    tables::INBOXES.put(&mut state, "claude:b", &inbox).unwrap();
    assert_eq!(send(&mut state, 7), Ok(Reply::Sent { id: 2, to: "claude:b".into() }));
}

#[test]
fn the_cluster_keeps_so_many_messages_and_bytes() {
    let mut state = cluster();
    for (index, kept, bytes, fits) in [
        (5, limits::MAIL_KEPT_MAX, 0, false),
        (6, limits::MAIL_KEPT_MAX - 1, 0, true),
        (7, 0, limits::MAIL_BYTES_MAX - 4, false),
        (8, 0, limits::MAIL_BYTES_MAX - 5, true),
    ] {
        let last = tables::MAIL_TOTALS.get(&state, ()).unwrap().unwrap_or_default().last;
        tables::MAIL_TOTALS.put(&mut state, (), &MailTotals { last, kept, bytes }).unwrap();
        let outcome = send(&mut state, index);
        assert_eq!(outcome.is_ok(), fits, "{outcome:?}");
        assert!(fits || is_full(&outcome, "mail: the cluster keeps"), "{outcome:?}");
    }
}

#[test]
fn a_meeting_has_so_many_readers() {
    let mut state = cluster();
    let start = Command::Meeting(MeetingCommand::Start { topic: "plan".into() });
    let Ok(Reply::Meeting { id }) = run(&mut state, 5, "claude:a", start) else { panic!() };
    let room = Room::Meeting(id.clone());
    let text = "hello".into();
    let send = ChatCommand::Send { room: room.clone(), text, category: Category::None };
    run(&mut state, 6, "claude:a", Command::Chat(send)).unwrap();
    let take = Command::Chat(ChatCommand::Take { room, limit: 5 });
    let (mode, approver, since) = (Mode::Active, Approver::Required, Since::Unsaid);
    let join =
        Command::Meeting(MeetingCommand::Join { meeting: id.clone(), mode, approver, since });
    tables::MEETING_READERS.put(&mut state, &id, &limits::MEETING_READERS_MAX).unwrap();
    for (index, call) in [(7, take.clone()), (8, join.clone())] {
        let outcome = run(&mut state, index, "claude:b", call);
        let what = format!("meeting {id}: 10,000 have read it");
        assert!(is_full(&outcome, &what), "{outcome:?}");
    }
    tables::MEETING_READERS.put(&mut state, &id, &(limits::MEETING_READERS_MAX - 1)).unwrap();
    assert!(run(&mut state, 9, "claude:b", take.clone()).is_ok());
    // Who has a place keeps it.
    assert!(run(&mut state, 10, "claude:b", take).is_ok());
    assert!(run(&mut state, 11, "claude:b", join).is_ok());
    let places = tables::MEETING_READERS.get(&state, &id).unwrap();
    assert_eq!(places, Some(limits::MEETING_READERS_MAX));
}

#[test]
fn the_last_number_of_a_message_is_no_panic() {
    let mut state = cluster();
    let inbox = Inbox { last: u64::MAX, gone: u64::MAX, ..Inbox::default() };
    tables::INBOXES.put(&mut state, "claude:b", &inbox).unwrap();
    assert!(matches!(send(&mut state, 5), Err(Rejection::Impossible { .. })));
}

#[test]
fn the_cluster_keeps_so_many_tasks() {
    let mut state = cluster();
    let create =
        || Command::Task(TaskCommand::Create { source_meeting: None, metadata: None, ttl: None });
    let totals = TaskTotals { last: limits::TASKS_MAX + 7, count: limits::TASKS_MAX };
    tables::TASK_TOTALS.put(&mut state, (), &totals).unwrap();
    let outcome = run(&mut state, 5, "claude:a", create());
    assert!(is_full(&outcome, "tasks: the cluster keeps"), "{outcome:?}");
    let totals = TaskTotals { last: u64::MAX, count: 1 };
    tables::TASK_TOTALS.put(&mut state, (), &totals).unwrap();
    let outcome = run(&mut state, 6, "claude:a", create());
    assert!(matches!(outcome, Err(Rejection::Impossible { .. })), "{outcome:?}");
}

/// Says the same of every bound that a counter keeps, whichever the family; scripts fill the
/// others.
#[test]
fn whatever_the_cluster_keeps_is_full_in_one_way() {
    let mut state = cluster();
    let manifest = Manifest { id: "web_shop".into(), name: "shop".into(), ..Manifest::default() };
    let docs = || Content::Inline("x".into());
    let sync = ProjectCommand::Sync { manifest: manifest.into(), docs: docs() };
    run(&mut state, 5, "claude:a", Command::Project(sync)).unwrap();
    let secret_hash = vec![7; 32];
    let invite =
        ClusterCommand::Invite { id: "abc".into(), secret_hash, role: Role::Auto, ttl: 9_000 };
    run(&mut state, 6, "", Command::Cluster(invite)).unwrap();

    tables::TOTALS.put(&mut state, (), &Totals { count: limits::CONVERSATIONS_MAX }).unwrap();
    let storage = Storage {
        assets: limits::ASSETS_MAX,
        asset_bytes: limits::ASSETS_QUOTA,
        text_bytes: limits::TEXTS_QUOTA,
        ..tables::STORAGE.get(&state, ()).unwrap().unwrap()
    };
    tables::STORAGE.put(&mut state, (), &storage).unwrap();
    let first = tables::MEMBERS.get(&state, 1).unwrap().unwrap();
    for number in 1..limits::MEMBERS_MAX {
        let id = 100 + u64::try_from(number).unwrap();
        let member = Member { id, name: format!("m-{number}"), ..first.clone() };
        tables::MEMBERS.put(&mut state, id, &member).unwrap();
    }

    let register =
        ConversationCommand::Register { client: Client::Claude, cwd: "/x".into(), incarnation: 1 };
    let admit = ClusterCommand::Admit {
        invite: "abc".into(),
        public_key: vec![9],
        name: "box".into(),
        host: String::new(),
    };
    let asset = |name: &str| ("web_shop".into(), name.into());
    let (project, name) = asset("a.png");
    let put = ProjectCommand::PutAsset { project, name, bytes: vec![1] };
    let begin = |target| {
        let sha256 = vec![0; 32];
        Command::Project(ProjectCommand::BeginUpload { target, size: 1, sha256 })
    };
    let document =
        DocumentCommand::Sync { id: "plan".into(), title: "plan".into(), content: docs() };
    let strategy = DocumentCommand::SetStrategy { content: docs() };
    for (index, (actor, command, word)) in (7..).zip([
        ("claude:c", Command::Conversation(register), "conversations: the cluster keeps"),
        ("", Command::Cluster(admit), "cluster: has 128 members"),
        ("claude:a", Command::Project(put), "fileName: the cluster has 20,000 assets"),
        ("claude:a", begin(UploadTarget::Text), "size: all texts have 256 MiB"),
        ("claude:a", Command::Document(document), "content: all texts have 256 MiB"),
        ("claude:a", Command::Document(strategy), "content: all texts have 256 MiB"),
    ]) {
        let outcome = run(&mut state, index, actor, command);
        assert!(is_full(&outcome, word), "{word}: {outcome:?}");
    }
    tables::STORAGE.put(&mut state, (), &Storage { assets: 0, ..storage }).unwrap();
    let (project, name) = asset("a.png");
    let outcome = run(&mut state, 20, "claude:a", begin(UploadTarget::Asset { project, name }));
    assert!(is_full(&outcome, "size: all assets have"), "{outcome:?}");
}
