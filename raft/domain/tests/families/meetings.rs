//! What meetings cost: as much among a thousand as among a few, and no entry changes too many rows.

use nexus_domain::command::meetings::{Approver, Mode, Opinion, Since, Told};
use nexus_domain::command::{Category, ChatCommand, Client, DueKind, Room};
use nexus_domain::meetings::{self, Phase};
use nexus_domain::{
    Command, Direction, KeyRange, MeetingCommand, Overlay, Read as _, Reply, Store as _,
    SystemCommand, apply, due, invariants, limits, testing,
};

use super::cluster::Cluster;

fn start(cluster: &mut Cluster, id: &str, topic: &str) -> String {
    let start = Command::Meeting(MeetingCommand::Start { topic: topic.into() });
    let Reply::Meeting { id } = cluster.run(id, start) else { panic!("no meeting") };
    id
}

fn join(meeting: &str) -> Command {
    Command::Meeting(MeetingCommand::Join {
        meeting: meeting.into(),
        mode: Mode::Active,
        approver: Approver::Required,
        since: Since::Unsaid,
    })
}

fn send(meeting: &str) -> Command {
    let (room, text) = (Room::Meeting(meeting.into()), "hello".into());
    Command::Chat(ChatCommand::Send { room, text, category: Category::None })
}

fn draft(meeting: &str) -> Command {
    let (meeting, text) = (meeting.into(), "as we said".into());
    Command::Meeting(MeetingCommand::Draft { meeting, text, reminder_minutes: 10 })
}

fn stance(meeting: &str, proposal: u64, opinion: Opinion) -> Command {
    let (meeting, note) = (meeting.into(), "because".into());
    Command::Meeting(MeetingCommand::Stance { meeting, proposal, opinion, note })
}

fn archive(meeting: &str) -> Command {
    Command::Meeting(MeetingCommand::Archive { meeting: meeting.into() })
}

fn reopen(meeting: &str) -> Command {
    Command::Meeting(MeetingCommand::Reopen { meeting: meeting.into() })
}

fn end(meeting: &str) -> Command {
    Command::Meeting(MeetingCommand::End { meeting: meeting.into(), summary: "done".into() })
}

/// Returns rows read by everything that is asked or said of one meeting among `count` others, of
/// which a third is active, closed and archived each.
fn reads_among(count: usize) -> Vec<(&'static str, usize)> {
    let mut cluster = Cluster::new();
    cluster.register("mcp-1", Client::Instance, 1);
    cluster.register("claude:a", Client::Claude, 1);
    cluster.register("codex:b", Client::Codex, 1);
    for number in 0..count {
        let id = start(&mut cluster, "mcp-1", &format!("meeting {number}"));
        for _ in 0..3 {
            cluster.run("mcp-1", send(&id));
        }
        if number % 3 > 0 {
            cluster.run("mcp-1", end(&id));
        }
        if number % 3 > 1 {
            cluster.run("mcp-1", archive(&id));
        }
    }
    let plan = start(&mut cluster, "claude:a", "plan");
    cluster.run("codex:b", join(&plan));
    cluster.run("claude:a", send(&plan));
    cluster.run("claude:a", draft(&plan));
    let mut found = Vec::new();
    for phase in [None, Some(Phase::Active), Some(Phase::Closed), Some(Phase::Archived)] {
        assert_eq!(meetings::list(&cluster.store, phase, None, 3).unwrap().len(), 3);
        found.push(("list", cluster.look(|state| meetings::list(state, phase, None, 3))));
    }
    assert_eq!(meetings::default_meeting(&cluster.store).unwrap().as_ref(), Some(&plan));
    found.push(("default", cluster.look(meetings::default_meeting)));
    assert_eq!(meetings::view(&cluster.store, &plan).unwrap().unwrap().members.len(), 2);
    found.push(("view", cluster.look(|state| meetings::view(state, &plan))));
    assert_eq!(meetings::news(&cluster.store, "codex:b").unwrap().len(), 1);
    found.push(("news", cluster.look(|state| meetings::news(state, "codex:b"))));
    let post = MeetingCommand::Post { text: "here".into(), category: Category::None };
    let start = MeetingCommand::Start { topic: "next".into() };
    for (what, command) in [
        ("post", Command::Meeting(post)),
        ("start", Command::Meeting(start)),
        ("draft", draft(&plan)),
        ("stance", stance(&plan, 2, Opinion::Object)),
        ("join", join(&plan)),
        ("end", end("")),
    ] {
        found.push((what, cluster.cost("codex:b", command).read));
    }
    found
}

#[test]
fn a_thousand_meetings_cost_no_more_than_a_few() {
    assert_eq!(reads_among(1_000), reads_among(12));
}

#[test]
fn the_fullest_meeting_changes_few_rows_at_once() {
    let mut cluster = Cluster::new();
    cluster.register("claude:a", Client::Claude, 1);
    let plan = start(&mut cluster, "claude:a", "plan");
    let mut members = vec!["claude:a".to_string()];
    for number in 1..limits::MEETING_MEMBERS_MAX {
        let id = format!("codex:{number}");
        cluster.register(&id, Client::Codex, 1);
        cluster.run(&id, join(&plan));
        members.push(id);
    }
    cluster.run("claude:a", draft(&plan));
    let remind = cluster.first_due().unwrap();
    let changed = cluster.cost("", remind).changed;
    assert!((200..=limits::FIRE_ROWS_MAX).contains(&changed), "a reminder changed {changed} rows");
    // Everybody is reminded and told so; the last of all endorsements closes the meeting.
    let mut told = Vec::new();
    for id in &members {
        let news = meetings::news(&cluster.store, id).unwrap();
        assert!(news[0].reminded, "{id}: {news:?}");
        told.push(Told { woke: true, ..news[0].told.clone() });
    }
    told.extend(vec![told[0].clone(); limits::TOLD_MAX - told.len()]);
    let tell = Command::Meeting(MeetingCommand::Told { told });
    let changed = cluster.cost("", tell).changed;
    assert!((200..=limits::COMMAND_ROWS_MAX).contains(&changed), "telling changed {changed} rows");
    for (number, id) in members.iter().enumerate() {
        let answer = cluster.run(id, stance(&plan, 1, Opinion::Endorse));
        let Reply::Stanced { decision, .. } = answer else { panic!("{answer:?}") };
        let last = number + 1 == members.len();
        assert_eq!(decision > 0, last, "{id} was number {number}");
    }
    let view = meetings::view(&cluster.store, &plan).unwrap().unwrap();
    assert_eq!((view.meeting.phase, view.meeting.wakes), (Phase::Closed, 240));
    for id in &members[..199] {
        let news = meetings::news(&cluster.store, id).unwrap();
        assert!(news[0].ended && news[0].wakes, "{id}: {news:?}");
        let told = news.into_iter().map(|news| news.told).collect();
        cluster.run("", Command::Meeting(MeetingCommand::Told { told }));
    }
    let changed = cluster.cost("claude:a", reopen(&plan)).changed;
    assert!((200..=limits::COMMAND_ROWS_MAX).contains(&changed), "reopening changed {changed}");
    cluster.run("claude:a", end(&plan));
    cluster.run("claude:a", archive(&plan));
    let goes = cluster.first_due().unwrap();
    assert!(cluster.cost("", goes).changed < 30, "letting go is marked at once");
    assert_eq!(meetings::list(&cluster.store, None, None, 10).unwrap(), []);
    let mut steps = 0;
    while due::first(&cluster.store).unwrap().is_some() {
        let rest = cluster.first_due().unwrap();
        let changed = cluster.cost("", rest).changed;
        assert!(changed <= limits::FIRE_ROWS_MAX, "a step changed {changed} rows");
        steps += 1;
        assert_eq!(invariants::check(&cluster.store).unwrap(), Vec::<String>::new());
    }
    assert_eq!(steps, 4);
    for table in 0x40..=0x4au8 {
        let rows = cluster.store.scan(KeyRange::prefix(&[table]), Direction::Forward).count();
        assert_eq!(rows, usize::from(table == 0x44), "table {table:02x} keeps {rows} rows");
    }
}

#[test]
fn a_meeting_with_all_its_messages_still_comes_to_its_end() {
    let mut cluster = Cluster::new();
    for id in ["codex:a", "codex:b"] {
        cluster.register(id, Client::Codex, 1);
    }
    let plan = start(&mut cluster, "codex:a", "plan");
    cluster.run("codex:b", join(&plan));
    cluster.run("codex:a", draft(&plan));
    // A hundred thousand messages would take minutes; only their number counts here.
    let (key, _) =
        cluster.store.scan(KeyRange::prefix(&[0x20]), Direction::Forward).next().unwrap().unwrap();
    let count = u32::try_from(limits::MEETING_MESSAGES_MAX).unwrap();
    let value = [&[1, 0x81, 0x1a][..], &count.to_be_bytes()[..]].concat();
    cluster.store.put(&key, value).unwrap();
    let post = MeetingCommand::Post { text: "here".into(), category: Category::None };
    for command in
        [Command::Meeting(post), send(&plan), draft(&plan), stance(&plan, 1, Opinion::Object)]
    {
        let refusal = cluster.refused("codex:b", command);
        assert!(refusal.starts_with(&format!("meeting {plan}: has 100,000 messages")), "{refusal}");
    }
    cluster.run("codex:b", stance(&plan, 1, Opinion::Endorse));
    let last = cluster.run("codex:a", stance(&plan, 1, Opinion::Endorse));
    let decision = limits::MEETING_MESSAGES_MAX + 1;
    assert_eq!(last, Reply::Stanced { draft: 1, counted: true, decision });
}

#[test]
fn the_oldest_archived_meeting_makes_room_for_a_new_one() {
    let mut cluster = Cluster::new();
    cluster.register("mcp-1", Client::Instance, 1);
    let ids: Vec<_> =
        ["one", "two", "three"].map(|topic| start(&mut cluster, "mcp-1", topic)).into();
    // Ten thousand would take minutes; only their number counts here.
    let count = u16::try_from(limits::MEETINGS_MAX).unwrap();
    let value = [&[1, 0x82, 0x19][..], &count.to_be_bytes()[..], &[3][..]].concat();
    cluster.store.put(&[0x44], value).unwrap();
    let start = Command::Meeting(MeetingCommand::Start { topic: "more".into() });
    let refusal = cluster.refused("mcp-1", start.clone());
    assert!(refusal.starts_with("meetings: the cluster keeps 10,000"), "{refusal}");
    for id in [&ids[1], &ids[0]] {
        cluster.run("mcp-1", end(id));
        cluster.run("mcp-1", archive(id));
    }
    for (place, left) in [(0, 3), (1, 3)] {
        cluster.run("mcp-1", start.clone());
        assert_eq!(meetings::meeting(&cluster.store, &ids[place]).unwrap(), None);
        assert_eq!(meetings::list(&cluster.store, None, None, 10).unwrap().len(), left);
    }
    cluster.refused("mcp-1", start);
    assert!(meetings::meeting(&cluster.store, &ids[2]).unwrap().is_some());
}

/// What the sequences of other tests come through: every end that a meeting can have.
#[test]
fn sequences_reach_every_end() {
    let mut reached = [("consensus", 0), ("reminder", 0), ("removal", 0), ("objection", 0)];
    let mut log = testing::Sequence::new(21);
    for _ in 0..8_000 {
        let entry = log.next().unwrap();
        let command = &entry.proposal.command;
        let happened = if let Command::Meeting(MeetingCommand::Stance { opinion, .. }) = command {
            if *opinion == Opinion::Object { 3 } else { 0 }
        } else if let Command::System(SystemCommand::Fire { kind, .. }) = command
            && [DueKind::Reminder, DueKind::MeetingRest].contains(kind)
        {
            if *kind == DueKind::Reminder { 1 } else { 2 }
        } else {
            continue;
        };
        // The answer is kept, so it can be asked for again.
        let mut overlay = Overlay::new(log.state());
        let again = apply(&mut overlay, &entry, &mut Vec::new()).unwrap();
        let done = match &again {
            Ok(Reply::Stanced { decision, .. }) => happened == 3 || *decision > 0,
            Ok(reply) => matches!(reply, Reply::Fired { changed } if *changed > 1),
            Err(_) => false,
        };
        reached[happened].1 += u32::from(done);
    }
    assert!(reached.iter().all(|(_, times)| *times > 0), "{reached:?}");
}
