//! The global chat: posting is a write; reading what is unread moves the reader's place, so it is a
//! write too, but only when there is something to read.

use std::time::Duration;

use nexus_contract::chat::{
    Category, Identity, Message, ReadMessagesInput, ReadMessagesOutput, ReadMode, Room,
    SendMessageInput, SendMessageOutput,
};
use nexus_contract::{ApiError, ErrorCode, ReadMarks};
use nexus_domain::command::{self, ChatCommand};
use nexus_domain::reply::IdRange;
use nexus_domain::{Command, Reply, chat};
use nexus_raft::Committed;

use super::caller::Who;
use super::{Answer, Call, Service, errors, time, written};

const GLOBAL: command::Room = command::Room::Global;

/// How long the messages that were just taken are waited for on a node that is behind.
const BODIES_LIMIT: Duration = Duration::from_secs(5);

/// `send_message`.
pub(super) async fn send_message(
    service: &Service,
    about: &Call<'_>,
    input: SendMessageInput,
) -> Answer {
    let identity = about.who()?.identity();
    no_meeting(input.meeting_id.as_deref())?;
    no_draft(input.draft)?;
    let category = input.category.map_or(command::Category::None, into_command);
    let send = ChatCommand::Send { room: GLOBAL, text: input.message, category };
    let committed = service.propose(about, Command::Chat(send)).await?;
    let Reply::Posted { id } = committed.reply else {
        return Err(errors::odd_reply(about.tool));
    };
    written(&committed).stamp(&SendMessageOutput {
        ok: true,
        sent_to: Room::Global,
        meeting_id: None,
        message_id: id,
        identity,
        current_proposal_id: None,
        message: format!("Message {id} is posted to the global chat."),
    })
}

/// `read_messages`: unread, or history.
pub(super) async fn read_messages(
    service: &Service,
    about: &Call<'_>,
    input: &ReadMessagesInput,
) -> Answer {
    no_meeting(input.meeting_id.as_deref())?;
    match input.mode() {
        ReadMode::History => history(service, about, input).await,
        ReadMode::Unread => unread(service, about, input).await,
    }
}

async fn history(service: &Service, about: &Call<'_>, input: &ReadMessagesInput) -> Answer {
    let count = usize::try_from(input.count).unwrap_or(usize::MAX);
    let fresh = service
        .read(|view| match input.after_id {
            Some(id) => chat::after(view, &GLOBAL, id, count),
            None => chat::latest(view, &GLOBAL, count),
        })
        .await?;
    let messages = fresh.value.iter().map(|message| shown(message, false)).collect();
    service.marks(about, &fresh).stamp(&answer(ReadMode::History, None, messages, None))
}

async fn unread(service: &Service, about: &Call<'_>, input: &ReadMessagesInput) -> Answer {
    let who = about.who()?;
    match service.make_known(about, who).await {
        Ok(()) => {}
        Err(error) if error.code == ErrorCode::NoQuorum => {
            return unmoved(service, about, who, input).await;
        }
        Err(error) => return Err(error),
    }
    let fresh = service
        .read(|view| {
            // What was handed out and not yet confirmed may be asked for again under the same
            // request id, so the log must be asked too.
            let open = chat::cursor(view, &GLOBAL, &who.id)?
                .is_some_and(|cursor| cursor.seen < cursor.taken);
            Ok(open || chat::unread(view, &GLOBAL, &who.id)?)
        })
        .await?;
    if fresh.stale.is_some() {
        return unmoved(service, about, who, input).await;
    }
    let identity = who.identity();
    if !fresh.value {
        return ReadMarks::default().stamp(&answer(
            ReadMode::Unread,
            Some(identity),
            Vec::new(),
            None,
        ));
    }
    let take = ChatCommand::Take { room: GLOBAL, limit: input.count };
    let committed = match service.propose(about, Command::Chat(take)).await {
        Ok(committed) => committed,
        Err(error) if error.code == ErrorCode::NoQuorum => {
            return unmoved(service, about, who, input).await;
        }
        Err(error) => return Err(error),
    };
    let Reply::Taken { again, fresh, first } = committed.reply else {
        return Err(errors::odd_reply(about.tool));
    };
    let messages = bodies(service, about, who, &committed, again, fresh).await?;
    let note = first.then(|| {
        "You read here for the first time and start at the newest message; older ones: latest or \
         afterId."
            .to_owned()
    });
    ReadMarks::default().stamp(&answer(ReadMode::Unread, Some(identity), messages, note))
}

/// Loads what was taken from a state that has it.
async fn bodies(
    service: &Service,
    about: &Call<'_>,
    who: &Who,
    committed: &Committed,
    again: IdRange,
    fresh: IdRange,
) -> Result<Vec<Message>, ApiError> {
    if !committed.applied_here && !service.cluster.wait_applied(committed.index, BODIES_LIMIT).await
    {
        return Err(errors::behind(about.request_id));
    }
    let load = |range: IdRange, is_again: bool| {
        let found = service.cluster.look(|view| {
            if range.after == range.upto {
                return Ok(Vec::new());
            }
            chat::load(view, &GLOBAL, range, &who.id, usize::MAX)
        });
        let found = found.map_err(|error| errors::read(&error))?;
        Ok::<_, ApiError>(found.into_iter().map(move |message| shown(&message, is_again)))
    };
    Ok(load(again, true)?.chain(load(fresh, false)?).collect())
}

/// Shows what is unread as far as this node knows, without moving the reader's place.
async fn unmoved(
    service: &Service,
    about: &Call<'_>,
    who: &Who,
    input: &ReadMessagesInput,
) -> Answer {
    let count = usize::try_from(input.count).unwrap_or(usize::MAX);
    let fresh = service
        .read(|view| {
            let Some(cursor) = chat::cursor(view, &GLOBAL, &who.id)? else { return Ok(None) };
            let upto = chat::last_id(view, &GLOBAL)?;
            let range = IdRange { after: cursor.taken, upto: upto.max(cursor.taken) };
            chat::load(view, &GLOBAL, range, &who.id, count).map(Some)
        })
        .await?;
    let note = match &fresh.value {
        Some(_) => {
            "No majority of the voters answers: the messages are shown as far as this node \
                    has them, and come again."
        }
        None => {
            "No majority of the voters answers, and this reader is not known here: older \
                 messages can be read with latest or afterId."
        }
    };
    let messages = fresh.value.iter().flatten().map(|message| shown(message, false)).collect();
    let mut marks = service.marks(about, &fresh);
    marks.cursor_moved = Some(false);
    marks.stamp(&answer(ReadMode::Unread, Some(who.identity()), messages, Some(note.to_owned())))
}

fn answer(
    mode: ReadMode,
    identity: Option<Identity>,
    messages: Vec<Message>,
    note: Option<String>,
) -> ReadMessagesOutput {
    let count = u32::try_from(messages.len()).unwrap_or(u32::MAX);
    ReadMessagesOutput {
        source: Room::Global,
        mode,
        identity,
        meeting_id: None,
        messages,
        count,
        note,
    }
}

fn shown(message: &chat::Message, again: bool) -> Message {
    Message {
        id: message.id,
        from: message.from.clone(),
        sender_name: message.sender_name.clone(),
        text: message.text.clone(),
        category: from_command(message.category),
        timestamp: time::text(message.at),
        again,
    }
}

fn no_meeting(given: Option<&str>) -> Result<(), ApiError> {
    match given {
        None => Ok(()),
        Some(id) => Err(ApiError::new(
            ErrorCode::NotFound,
            format!("meeting {id:?} does not exist: leave meetingId out for the global chat"),
        )),
    }
}

fn no_draft(given: Option<bool>) -> Result<(), ApiError> {
    if given != Some(true) {
        return Ok(());
    }
    let text = "draft: no meeting is active, and a draft is a meeting's; leave draft out";
    Err(ApiError::new(ErrorCode::Conflict, text))
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
