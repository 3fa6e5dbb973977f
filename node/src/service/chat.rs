//! What is said to all and in meetings: posting is a write; reading what is unread moves the
//! reader's place, so it is a write too, but only when there is something to read.

mod history;

use std::collections::BTreeMap;
use std::time::Duration;

use nexus_contract::chat::{
    Category, Identity, Message, ReadMessagesInput, ReadMessagesOutput, ReadMode, Room,
    SendMessageInput, SendMessageOutput,
};
use nexus_contract::{ApiError, ErrorCode, ReadMarks};
use nexus_domain::command::{self, ChatCommand};
use nexus_domain::conversations::conversation;
use nexus_domain::reply::IdRange;
use nexus_domain::{Command, Fault, MeetingCommand, Reply, chat, meetings};
use nexus_raft::{Committed, View};

use super::meetings::{REMEDY, refused};
use super::{Answer, Call, Service, errors, time, written};

/// How long the messages that were just taken are waited for on a node that is behind.
const BODIES_LIMIT: Duration = Duration::from_secs(5);

/// `send_message`: to the meeting that is given, else to the default one, else to all.
pub(super) async fn send_message(
    service: &Service,
    about: &Call<'_>,
    input: SendMessageInput,
) -> Answer {
    let identity = about.who()?.identity();
    let SendMessageInput { message: text, category, meeting_id, draft } = input;
    let is_draft = draft == Some(true);
    let category = category.map_or(command::Category::None, into_command);
    let command = match &meeting_id {
        _ if is_draft => Command::Meeting(MeetingCommand::Draft {
            meeting: meeting_id.clone().unwrap_or_default(),
            text,
            reminder_minutes: service.reminder_minutes,
        }),
        Some(id) => {
            let room = command::Room::Meeting(id.clone());
            Command::Chat(ChatCommand::Send { room, text, category })
        }
        None => Command::Meeting(MeetingCommand::Post { text, category }),
    };
    let committed = service.propose(about, command).await;
    let committed =
        committed.map_err(|error| refused(error, meeting_id.as_deref().unwrap_or_default()))?;
    let (meeting, id) = if let Reply::PostedIn { meeting, id } = &committed.reply {
        (meeting.clone(), *id)
    } else if let Reply::Posted { id } = &committed.reply {
        (meeting_id.clone().unwrap_or_default(), *id)
    } else {
        return Err(errors::odd_reply(about.tool));
    };
    let message = match meeting.as_str() {
        "" => format!("Message {id} is posted to the global chat."),
        meeting if is_draft => format!(
            "Message {id} is the current draft of meeting {meeting}: each required approver, you \
             too if you are one, now takes a stance on it (stance)."
        ),
        meeting if meeting_id.is_none() => {
            format!("Message {id} is posted to meeting {meeting}, the default while it is active.")
        }
        meeting => format!("Message {id} is posted to meeting {meeting}."),
    };
    let meeting_id = (!meeting.is_empty()).then_some(meeting);
    written(&committed).stamp(&SendMessageOutput {
        ok: true,
        sent_to: if meeting_id.is_some() { Room::Meeting } else { Room::Global },
        meeting_id,
        message_id: id,
        identity,
        current_proposal_id: is_draft.then_some(id),
        message,
    })
}

/// `read_messages`: unread, or history; of the meeting that is given, else of the global chat.
pub(super) async fn read_messages(
    service: &Service,
    about: &Call<'_>,
    input: &ReadMessagesInput,
) -> Answer {
    let room = Spot::of(input);
    match input.mode() {
        ReadMode::History => history::read(service, about, &room, input).await,
        ReadMode::Unread => unread(service, about, &room, input).await,
    }
}

/// Where it is read.
struct Spot {
    room: command::Room,
}

impl Spot {
    fn of(input: &ReadMessagesInput) -> Self {
        let room = match &input.meeting_id {
            Some(id) => command::Room::Meeting(id.clone()),
            None => command::Room::Global,
        };
        Self { room }
    }

    /// Returns the meeting's id.
    fn meeting(&self) -> Option<&str> {
        match &self.room {
            command::Room::Global => None,
            command::Room::Meeting(id) => Some(id),
        }
    }

    /// Returns whether a state has it.
    fn is_in(&self, view: &View<'_>) -> Result<bool, Fault> {
        match self.meeting() {
            None => Ok(true),
            Some(id) => Ok(meetings::meeting(view, id)?.is_some()),
        }
    }

    /// The state that was looked at does not have it.
    fn absent(&self, is_stale: bool) -> ApiError {
        let what = format!("meeting {}", self.meeting().unwrap_or_default());
        errors::absent(is_stale, "meetingId", &what, REMEDY)
    }

    fn answer(
        &self,
        mode: ReadMode,
        identity: Option<Identity>,
        messages: Vec<Message>,
        note: Option<String>,
    ) -> ReadMessagesOutput {
        let count = u32::try_from(messages.len()).unwrap_or(u32::MAX);
        let meeting_id = self.meeting().map(str::to_owned);
        let source = if meeting_id.is_some() { Room::Meeting } else { Room::Global };
        ReadMessagesOutput { source, mode, identity, meeting_id, messages, count, note }
    }
}

async fn unread(
    service: &Service,
    about: &Call<'_>,
    spot: &Spot,
    input: &ReadMessagesInput,
) -> Answer {
    let who = about.who()?;
    match service.make_known(about, who).await {
        Ok(()) => {}
        Err(error) if error.code == ErrorCode::NoQuorum => {
            return unmoved(service, about, spot, input).await;
        }
        Err(error) => return Err(error),
    }
    let room = &spot.room;
    let fresh = service
        .read(|view| {
            if !spot.is_in(view)? {
                return Ok(None);
            }
            // What was handed out and not yet confirmed may be asked for again under the same
            // request id, so the log must be asked too.
            let open =
                chat::cursor(view, room, &who.id)?.is_some_and(|cursor| cursor.seen < cursor.taken);
            Ok(Some(open || chat::unread(view, room, &who.id)?))
        })
        .await?;
    if fresh.stale.is_some() {
        return unmoved(service, about, spot, input).await;
    }
    let identity = Some(who.identity());
    if !fresh.value.ok_or_else(|| spot.absent(false))? {
        let answer = spot.answer(ReadMode::Unread, identity, Vec::new(), None);
        return ReadMarks::default().stamp(&answer);
    }
    let take = ChatCommand::Take { room: room.clone(), limit: input.count };
    let committed = match service.propose(about, Command::Chat(take)).await {
        Ok(committed) => committed,
        Err(error) if error.code == ErrorCode::NoQuorum => {
            return unmoved(service, about, spot, input).await;
        }
        Err(error) => return Err(refused(error, spot.meeting().unwrap_or_default())),
    };
    let Reply::Taken { again, fresh, first } = committed.reply else {
        return Err(errors::odd_reply(about.tool));
    };
    let messages = bodies(service, about, spot, &committed, (again, fresh)).await?;
    let note = first.then(|| {
        "You read here for the first time and start at the newest message; older ones: latest or \
         afterId."
            .to_owned()
    });
    ReadMarks::default().stamp(&spot.answer(ReadMode::Unread, identity, messages, note))
}

/// Loads what was taken from a state that has it.
async fn bodies(
    service: &Service,
    about: &Call<'_>,
    spot: &Spot,
    committed: &Committed,
    (again, fresh): (IdRange, IdRange),
) -> Result<Vec<Message>, ApiError> {
    let who = about.who()?;
    if !committed.applied_here && !service.cluster.wait_applied(committed.index, BODIES_LIMIT).await
    {
        return Err(errors::behind(about.request_id));
    }
    let load = |view: &View<'_>, range: IdRange, is_again: bool| {
        if range.after == range.upto {
            return Ok(Vec::new());
        }
        shown(view, chat::load(view, &spot.room, range, &who.id, usize::MAX)?, is_again)
    };
    let found = service.cluster.look(|view| {
        let mut messages = load(view, again, true)?;
        messages.append(&mut load(view, fresh, false)?);
        Ok(messages)
    });
    found.map_err(|error| errors::read(&error))
}

/// Shows what is unread as far as this node knows, without moving the reader's place.
async fn unmoved(
    service: &Service,
    about: &Call<'_>,
    spot: &Spot,
    input: &ReadMessagesInput,
) -> Answer {
    let who = about.who()?;
    let count = usize::try_from(input.count).unwrap_or(usize::MAX);
    let room = &spot.room;
    let fresh = service
        .read(|view| {
            if !spot.is_in(view)? {
                return Ok(None);
            }
            let after = match (chat::cursor(view, room, &who.id)?, room) {
                (Some(cursor), _) => cursor.taken,
                // A meeting is read from its first message.
                (None, command::Room::Meeting(_)) => 0,
                (None, command::Room::Global) => return Ok(Some(None)),
            };
            let upto = chat::last_id(view, room)?;
            let range = IdRange { after, upto: upto.max(after) };
            let found = chat::load(view, room, range, &who.id, count)?;
            shown(view, found, false).map(|messages| Some(Some(messages)))
        })
        .await?;
    let is_stale = fresh.stale.is_some();
    let mut marks = service.marks(about, &fresh);
    let messages = fresh.value.ok_or_else(|| spot.absent(is_stale))?;
    let note = match &messages {
        Some(_) => {
            "No majority of the voters answers: the messages are shown as far as this node \
                    has them, and come again."
        }
        None => {
            "No majority of the voters answers, and this reader is not known here: older \
                 messages can be read with latest or afterId."
        }
    };
    marks.cursor_moved = Some(false);
    let (identity, messages) = (Some(who.identity()), messages.unwrap_or_default());
    marks.stamp(&spot.answer(ReadMode::Unread, identity, messages, Some(note.to_owned())))
}

/// Shows messages, with the names that their authors have now: those are what `send` takes.
fn shown(view: &View<'_>, found: Vec<chat::Message>, again: bool) -> Result<Vec<Message>, Fault> {
    let mut names: BTreeMap<String, Option<String>> = BTreeMap::new();
    let mut messages = Vec::with_capacity(found.len());
    for message in found {
        let sender_name = match message.sender_name {
            None => None,
            Some(then) => {
                let now = match names.get(&message.from) {
                    Some(now) => now.clone(),
                    None => {
                        let now = conversation(view, &message.from)?.map(|known| known.name);
                        names.insert(message.from.clone(), now.clone());
                        now
                    }
                };
                // Who is not known any more is called as it was called then.
                Some(now.unwrap_or(then))
            }
        };
        messages.push(Message {
            id: message.id,
            from: message.from,
            sender_name,
            text: message.text,
            category: from_command(message.category),
            timestamp: time::text(message.at),
            again,
        });
    }
    Ok(messages)
}

fn into_command(category: Category) -> command::Category {
    match category {
        Category::Proposal => command::Category::Proposal,
        Category::Decision => command::Category::Decision,
        Category::Update => command::Category::Update,
        Category::Chat => command::Category::Chat,
        Category::MeetingStart => command::Category::MeetingStart,
    }
}

fn from_command(category: command::Category) -> Option<Category> {
    match category {
        command::Category::None => None,
        command::Category::Proposal => Some(Category::Proposal),
        command::Category::Decision => Some(Category::Decision),
        command::Category::Update => Some(Category::Update),
        command::Category::Chat => Some(Category::Chat),
        command::Category::MeetingStart => Some(Category::MeetingStart),
    }
}
