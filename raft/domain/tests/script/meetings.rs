//! What scripts say and ask of meetings; `m@plan` is the meeting with that topic.

use std::fmt::Write as _;

use goldenscript::ArgumentConsumer;
use nexus_domain::chat::Gist;
use nexus_domain::command::meetings::{Approver, Mode, Opinion, Since, Told};
use nexus_domain::command::{Category, Room};
use nexus_domain::meetings::{self, Approvals, Phase, View};
use nexus_domain::{Direction, KeyRange, MeetingCommand, MemoryStore, Read};

use super::{Result, key, position, text};

/// Returns the id of the meeting that a word names.
pub(super) fn named(state: &MemoryStore, word: &str) -> Result<String> {
    let Some(topic) = word.strip_prefix("m@") else { return Ok(text(word)) };
    let all = meetings::list(state, None, None, 200)?;
    let found = all.into_iter().find(|view| view.meeting.topic == topic);
    Ok(found.ok_or_else(|| format!("there is no meeting {topic}"))?.meeting.id)
}

/// Returns the room of a key, `in=m@plan`, or the global chat.
pub(super) fn room(state: &MemoryStore, args: &mut ArgumentConsumer<'_>) -> Result<Room> {
    match args.take_key("in") {
        Some(word) => Ok(Room::Meeting(named(state, word)?)),
        None => Ok(Room::Global),
    }
}

fn first(state: &MemoryStore, args: &mut ArgumentConsumer<'_>) -> Result<String> {
    named(state, args.next_pos().unwrap_or_default())
}

/// Reads a command about a meeting; `None` when the name is none.
pub(super) fn command(
    state: &MemoryStore,
    name: &str,
    args: &mut ArgumentConsumer<'_>,
) -> Result<Option<MeetingCommand>> {
    Ok(Some(match name {
        "start" => MeetingCommand::Start { topic: text(args.next_pos().unwrap_or_default()) },
        "end" => MeetingCommand::End {
            meeting: first(state, args)?,
            summary: text(args.take_key("summary").unwrap_or_default()),
        },
        "archive" => MeetingCommand::Archive { meeting: first(state, args)? },
        "reopen" => MeetingCommand::Reopen { meeting: first(state, args)? },
        "join" => join(state, args)?,
        "leave" => MeetingCommand::Leave { meeting: first(state, args)? },
        "post" => MeetingCommand::Post {
            text: text(args.next_pos().unwrap_or_default()),
            category: category(args.take_key("category")),
        },
        "draft" => MeetingCommand::Draft {
            meeting: named(state, args.take_key("in").unwrap_or_default())?,
            text: text(args.next_pos().unwrap_or_default()),
            reminder_minutes: key(args, "minutes")?.unwrap_or(0),
        },
        "stance" => MeetingCommand::Stance {
            meeting: first(state, args)?,
            proposal: position(args, "number")?,
            opinion: match args.next_pos() {
                Some("object") => Opinion::Object,
                Some("withdraw") => Opinion::Withdraw,
                _ => Opinion::Endorse,
            },
            note: text(args.take_key("note").unwrap_or_default()),
        },
        "told" => told(state, args)?,
        "tell" => tell(state, args)?,
        _ => return Ok(None),
    }))
}

pub(super) fn category(word: Option<&str>) -> Category {
    match word {
        Some("proposal") => Category::Proposal,
        Some("decision") => Category::Decision,
        _ => Category::None,
    }
}

fn join(state: &MemoryStore, args: &mut ArgumentConsumer<'_>) -> Result<MeetingCommand> {
    Ok(MeetingCommand::Join {
        meeting: first(state, args)?,
        mode: match args.take_key("mode") {
            Some("async") => Mode::Async,
            _ => Mode::Active,
        },
        approver: match args.take_key("approver") {
            Some("optional") => Approver::Optional,
            _ => Approver::Required,
        },
        since: match args.take_key("since") {
            None => Since::Unsaid,
            Some("latest") => Since::Latest,
            Some("beginning") => Since::After(0),
            Some(number) => Since::After(number.parse()?),
        },
    })
}

/// Says of each conversation that it was told all its news: `told claude:a woke=true`.
fn told(state: &MemoryStore, args: &mut ArgumentConsumer<'_>) -> Result<MeetingCommand> {
    let woke = key(args, "woke")?.unwrap_or(false);
    let mut all = Vec::new();
    while let Some(id) = args.next_pos() {
        let news = meetings::news(state, id)?;
        all.extend(news.into_iter().map(|news| Told { woke, ..news.told }));
    }
    Ok(MeetingCommand::Told { told: all })
}

/// Says one thing as it is given, as often as `fill` says.
fn tell(state: &MemoryStore, args: &mut ArgumentConsumer<'_>) -> Result<MeetingCommand> {
    let one = Told {
        meeting: first(state, args)?,
        conversation: position(args, "conversation")?,
        messages: key(args, "messages")?.unwrap_or(0),
        stances: key(args, "stances")?.unwrap_or(0),
        reminder: key(args, "reminder")?.unwrap_or(0),
        ended: key(args, "ended")?.unwrap_or(0),
        woke: key(args, "woke")?.unwrap_or(false),
    };
    Ok(MeetingCommand::Told { told: vec![one; key(args, "fill")?.unwrap_or(1)] })
}

/// Answers a query about meetings; `None` when the name is none.
pub(super) fn query(
    state: &MemoryStore,
    name: &str,
    args: &mut ArgumentConsumer<'_>,
) -> Result<Option<String>> {
    let mut out = String::new();
    match name {
        "default" => writeln!(out, "{:?}", meetings::default_meeting(state)?)?,
        "meetings" => {
            let phase = match args.take_key("status") {
                Some("active") => Some(Phase::Active),
                Some("closed") => Some(Phase::Closed),
                Some("archived") => Some(Phase::Archived),
                _ => None,
            };
            let before = args.take_key("before").map(|word| named(state, word)).transpose()?;
            let limit = key(args, "limit")?.unwrap_or(20);
            for view in meetings::list(state, phase, before.as_deref(), limit)? {
                writeln!(out, "{} {:?}", view.meeting.id, view.meeting.phase)?;
            }
        }
        "meeting" => match meetings::view(state, &first(state, args)?)? {
            Some(view) => show(&mut out, &view)?,
            None => writeln!(out, "None")?,
        },
        "approvals" => {
            let id = first(state, args)?;
            match meetings::approvals(state, &id, position(args, "number")?)? {
                Some(approvals) => show_approvals(&mut out, &approvals)?,
                None => writeln!(out, "None")?,
            }
        }
        "news" => show_news(&mut out, state, position(args, "conversation")?)?,
        // Rows of meetings by table, and messages and cursors of all rooms.
        "meeting-rows" => {
            for table in (0x40..=0x49).chain([0x20, 0x21, 0x22]) {
                let rows = state.scan(KeyRange::prefix(&[table]), Direction::Forward).count();
                write!(out, "{table:02x}={rows} ")?;
            }
            out.push('\n');
        }
        _ => return Ok(None),
    }
    Ok(Some(out))
}

fn show(out: &mut String, view: &View) -> Result<()> {
    let meeting = &view.meeting;
    writeln!(
        out,
        "{} {:?} {:?} by {} at {} messages={} decisions={} wakes={}",
        meeting.id,
        meeting.topic,
        meeting.phase,
        meeting.initiator,
        meeting.started_at,
        view.messages,
        meeting.decisions,
        meeting.wakes
    )?;
    writeln!(
        out,
        "  {:?} at {:?} by {:?} summary={:?}",
        meeting.ending, meeting.ended_at, meeting.ended_by, meeting.summary
    )?;
    writeln!(out, "  participants {:?}", view.participants)?;
    for member in &view.members {
        writeln!(
            out,
            "  member {} name={:?} title={:?} {:?} home={} {:?} {:?} joined={} wakes={} {:?}",
            member.id,
            member.name,
            member.title,
            member.status,
            member.home,
            member.mode,
            member.approver,
            member.joined_at,
            member.wakes,
            member.last_woken_at
        )?;
    }
    if let Some(proposal) = &view.proposal {
        out.push_str("  ");
        show_approvals(out, proposal)?;
    }
    Ok(())
}

fn show_approvals(out: &mut String, shown: &Approvals) -> Result<()> {
    let said = |all: &[meetings::Said]| {
        let short = all.iter().map(|said| {
            let note: String = said.note.chars().take(20).collect();
            format!("{}: {note}", said.id)
        });
        short.collect::<Vec<_>>()
    };
    writeln!(
        out,
        "proposal {} by {} v{} required={:?} endorsed={:?} waiting={:?} objections={:?} \
         reservations={:?} consensus={}",
        shown.message_id,
        shown.author,
        shown.approvers_version,
        shown.required,
        shown.endorsed,
        shown.waiting,
        said(&shown.objections),
        said(&shown.reservations),
        shown.is_consensus()
    )?;
    Ok(())
}

fn show_news(out: &mut String, state: &MemoryStore, conversation: String) -> Result<()> {
    let all = meetings::news(state, &conversation)?;
    for news in &all {
        let Gist { count, more, first, last, senders, .. } = &news.messages;
        writeln!(
            out,
            "{} ({:?}): {count} messages #{first}-#{last} more={more} from {senders:?} wakes={}",
            news.meeting.topic, news.mode, news.wakes
        )?;
        if news.ended {
            let meeting = &news.meeting;
            let (draft, decision) = (meeting.draft_number(), news.decision());
            writeln!(
                out,
                "  ended {:?} draft={draft} decision={decision:?} by {:?}: {:?}",
                meeting.ending, meeting.ended_by, meeting.summary
            )?;
        }
        for stance in &news.stances {
            writeln!(out, "  {} says {:?} {:?}", stance.id, stance.opinion, stance.note)?;
        }
        if news.reminded || !news.missing.is_empty() {
            writeln!(out, "  reminded={} missing={:?}", news.reminded, news.missing)?;
        }
    }
    if all.is_empty() {
        writeln!(out, "nothing")?;
    }
    Ok(())
}
