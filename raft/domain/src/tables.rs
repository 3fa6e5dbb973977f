//! Typed tables over the key-value space, and the list of all of them.
//!
//! The first byte of a key is its table. `00` belongs to the consensus side (applied log id,
//! membership); `01`-`0f` are the books (clock, versions, request records, due index, digests);
//! from `10` on stands the content, family by family. The two digests follow this border
//! (see [`crate::digest`]), so a table's number decides what "changes nothing" means for it.

use alloc::string::String;
use alloc::vec::Vec;
use core::marker::PhantomData;

use minicbor::{Decode, Encode};

use crate::bodies::{Chunk, Storage, Upload};
use crate::chat::{Cursor, Message, RoomState};
use crate::clock::Clock;
use crate::cluster::{ClusterRow, Invite, Member, Voters};
use crate::codec;
use crate::conversations::nodes::NodeRow;
use crate::conversations::turns::{Ended, Watch};
use crate::conversations::{Conversation, Totals};
use crate::documents::{Document, Strategy};
use crate::events::{EventRow, Window};
use crate::keys::Key;
use crate::mail::{Envelope, Inbox, MailTotals, Place, Text};
use crate::meetings::{Meeting, Member as MeetingMember, Stance, Totals as MeetingTotals};
use crate::notices::{Notice, NoticeWindow};
use crate::projects::{Asset, Details, Head, Label, ProjectTotals, References};
use crate::requests::{Floor, Record};
use crate::store::{Direction, Fault, KeyRange, Read, Store};
use crate::tasks::{Task, TaskTotals};

/// The cluster clock, one row.
pub(crate) const CLOCK: Table<(), Clock> = Table::new(0x01);
/// The state version, one row.
pub(crate) const VERSION: Table<(), u32> = Table::new(0x02);
/// Records of node ids: node, boot, counter.
pub(crate) const NODE_RECORDS: Table<(u64, u64, u64), Record> = Table::new(0x03);
/// What each node has answered.
pub(crate) const FLOORS: Table<u64, Floor> = Table::new(0x04);
/// Records of client ids: actor, id.
pub(crate) const CLIENT_RECORDS: Table<(String, String), Record> = Table::new(0x05);
/// How many client ids each actor has.
pub(crate) const CLIENT_COUNTS: Table<String, u32> = Table::new(0x06);
/// Client ids by the hour in which they came: hour, actor, id.
pub(crate) const CLIENT_HOURS: Table<(u64, String, String), ()> = Table::new(0x07);
/// What is due: tick, kind, id, generation.
pub(crate) const DUE: Table<(u64, u8, String, u64), ()> = Table::new(0x08);
/// The digests, one raw row; in neither digest.
pub(crate) const DIGESTS: u8 = 0x0e;
/// Digests at multiples of 64; in neither digest.
pub(crate) const DIGEST_MARKS: u8 = 0x0f;

/// The first table of the content.
pub(crate) const CONTENT: u8 = 0x10;
/// The cluster, one row.
pub(crate) const CLUSTER: Table<(), ClusterRow> = Table::new(0x10);
/// Members by node id.
pub(crate) const MEMBERS: Table<u64, Member> = Table::new(0x11);
/// Invites by the public part of their code.
pub(crate) const INVITES: Table<String, Invite> = Table::new(0x12);
/// Who votes, as the log last said, one row.
pub(crate) const VOTERS: Table<(), Voters> = Table::new(0x13);

/// Conversations by id.
pub(crate) const CONVERSATIONS: Table<String, Conversation> = Table::new(0x18);
/// Who holds a name among those that are not offline.
pub(crate) const NAMES: Table<String, String> = Table::new(0x19);
/// Conversations by the tick of their last activity.
pub(crate) const ACTIVITY: Table<(u64, String), ()> = Table::new(0x1a);
/// How many conversations there are, one row.
pub(crate) const TOTALS: Table<(), Totals> = Table::new(0x1b);
/// Notices: conversation, number.
pub(crate) const NOTICES: Table<(String, u64), Notice> = Table::new(0x1c);
/// Which notices of a conversation are kept and shown.
pub(crate) const NOTICE_WINDOWS: Table<String, NoticeWindow> = Table::new(0x1d);
/// Who wishes to be told when a turn ends: whose turn, who wishes.
pub(crate) const WATCHES: Table<(String, String), Watch> = Table::new(0x1e);
/// Turns that an entry ended, until all who wish were told: its index.
pub(crate) const TURNS: Table<u64, Ended> = Table::new(0x1f);

/// Rooms by their key.
pub(crate) const ROOMS: Table<RoomKey, RoomState> = Table::new(0x20);
/// Messages: room, number.
pub(crate) const MESSAGES: Table<(RoomKey, u64), Message> = Table::new(0x21);
/// Cursors: room, reader.
pub(crate) const CURSORS: Table<(RoomKey, String), Cursor> = Table::new(0x22);
/// What nodes are doing, where that was noted.
pub(crate) const NODES: Table<u64, NodeRow> = Table::new(0x23);

/// Events by number.
pub(crate) const EVENTS: Table<u64, EventRow> = Table::new(0x28);
/// Which event numbers are kept, one row.
pub(crate) const EVENT_WINDOW: Table<(), Window> = Table::new(0x29);

/// Projects by id: what is searched and listed.
pub(crate) const PROJECTS: Table<String, Head> = Table::new(0x30);
/// The id of each project's number.
pub(crate) const PROJECT_NUMBERS: Table<u64, String> = Table::new(0x31);
/// The rest of the manifests, by the project's number.
pub(crate) const MANIFESTS: Table<u64, Details> = Table::new(0x32);
/// What a project refers to, by its label.
pub(crate) const REFERENCES: Table<u64, References> = Table::new(0x33);
/// Who refers to what: label of the target, label of the source.
pub(crate) const REFERRERS: Table<(u64, u64), ()> = Table::new(0x34);
/// Ids that are projects or are referred to, by label.
pub(crate) const LABELS: Table<u64, Label> = Table::new(0x35);
/// The label of each id.
pub(crate) const LABEL_NUMBERS: Table<String, u64> = Table::new(0x36);
/// How many projects and relations there are, one row.
pub(crate) const PROJECT_TOTALS: Table<(), ProjectTotals> = Table::new(0x37);
/// Assets: project's number, name.
pub(crate) const ASSETS: Table<(u64, String), Asset> = Table::new(0x38);
/// Chunks of bodies: body's number, place.
pub(crate) const CHUNKS: Table<(u64, u64), Chunk> = Table::new(0x39);
/// Uploads under way, by the number of their body.
pub(crate) const UPLOADS: Table<u64, Upload> = Table::new(0x3a);
/// What bodies take, one row.
pub(crate) const STORAGE: Table<(), Storage> = Table::new(0x3b);
/// Documents by id.
pub(crate) const DOCUMENTS: Table<String, Document> = Table::new(0x3c);
/// Documents by the index of the entry that wrote them last.
pub(crate) const DOCUMENT_ORDER: Table<(u64, String), ()> = Table::new(0x3d);
/// How many documents there are, one row.
pub(crate) const DOCUMENT_TOTALS: Table<(), u64> = Table::new(0x3e);
/// The strategy, one row.
pub(crate) const STRATEGY: Table<(), Strategy> = Table::new(0x3f);

/// Meetings by id.
pub(crate) const MEETINGS: Table<String, Meeting> = Table::new(0x40);
/// Meetings in the order in which they were started.
pub(crate) const MEETINGS_STARTED: Table<u64, String> = Table::new(0x41);
/// Meetings of a phase in the order in which they were started.
pub(crate) const MEETINGS_IN_PHASE: Table<(u8, u64), String> = Table::new(0x42);
/// Active meetings in the order in which they were started or reopened.
pub(crate) const MEETINGS_ACTIVE: Table<u64, String> = Table::new(0x43);
/// How many meetings there are and were, one row.
pub(crate) const MEETING_TOTALS: Table<(), MeetingTotals> = Table::new(0x44);
/// Members: meeting, conversation or instance.
pub(crate) const MEETING_MEMBERS: Table<(String, String), MeetingMember> = Table::new(0x45);
/// Who spoke: meeting, conversation or instance.
pub(crate) const MEETING_SPEAKERS: Table<(String, String), ()> = Table::new(0x46);
/// Stances: meeting, number of the proposal, conversation or instance.
pub(crate) const STANCES: Table<(String, u64, String), Stance> = Table::new(0x47);
/// Which meetings may have something to tell a conversation: conversation, meeting.
pub(crate) const INVOLVED: Table<(String, String), ()> = Table::new(0x48);
/// The tick of the last message of a meeting that waits for stances.
pub(crate) const MEETING_PULSES: Table<String, u64> = Table::new(0x49);
/// How many have a place in a meeting.
pub(crate) const MEETING_READERS: Table<String, u64> = Table::new(0x4a);

/// Tasks by number.
pub(crate) const TASKS: Table<u64, Task> = Table::new(0x50);
/// Tasks by status: its number, the task's.
pub(crate) const TASKS_BY_STATUS: Table<(u8, u64), ()> = Table::new(0x51);
/// Tasks that are not finished by what they are about: target, the task's number.
pub(crate) const TASK_TARGETS: Table<(String, u64), ()> = Table::new(0x52);
/// The counter of tasks, one row.
pub(crate) const TASK_TOTALS: Table<(), TaskTotals> = Table::new(0x53);

/// Inboxes by conversation.
pub(crate) const INBOXES: Table<String, Inbox> = Table::new(0x56);
/// Messages without their texts: whose inbox, number.
pub(crate) const ENVELOPES: Table<(String, u64), Envelope> = Table::new(0x57);
/// Texts of messages: whose inbox, number.
pub(crate) const TEXTS: Table<(String, u64), Text> = Table::new(0x58);
/// Where a message lies, by its id.
pub(crate) const MAIL_IDS: Table<u64, Place> = Table::new(0x59);
/// Messages by who sent them: sender, id.
pub(crate) const SENT: Table<(String, u64), ()> = Table::new(0x5a);
/// The counters of messages, one row.
pub(crate) const MAIL_TOTALS: Table<(), MailTotals> = Table::new(0x5b);
/// Inboxes with something unread: the reader's node, after how many ticks of its being up that was
/// so for a day, whose.
pub(crate) const UNREAD: Table<(u64, u64, String), ()> = Table::new(0x5c);

/// A room in a key: its kind, and its id behind it (empty for the global chat).
pub(crate) type RoomKey = (u8, String);

/// One table: keys of one shape, values of one type.
#[derive(Debug)]
pub(crate) struct Table<K, V> {
    id: u8,
    shape: PhantomData<fn() -> (K, V)>,
}

impl<K: Key, V> Table<K, V> {
    const fn new(id: u8) -> Self {
        Self { id, shape: PhantomData }
    }

    /// Returns a row's key.
    pub(crate) fn key(&self, key: K::Ref<'_>) -> Vec<u8> {
        let mut out = Vec::with_capacity(48);
        out.push(self.id);
        K::write(key, &mut out);
        out
    }

    /// Returns the range of all its keys.
    pub(crate) fn all(&self) -> KeyRange {
        KeyRange::prefix(&[self.id])
    }

    /// Returns the range of its keys that begin with `part`.
    pub(crate) fn beginning<P: Key>(&self, part: P::Ref<'_>) -> KeyRange {
        let mut prefix = Vec::with_capacity(48);
        prefix.push(self.id);
        P::write(part, &mut prefix);
        KeyRange::prefix(&prefix)
    }

    /// Returns whether there is such a row.
    pub(crate) fn has(&self, state: &impl Read, key: K::Ref<'_>) -> Result<bool, Fault> {
        Ok(state.get(&self.key(key))?.is_some())
    }

    /// Deletes a row.
    pub(crate) fn delete(&self, state: &mut impl Store, key: K::Ref<'_>) -> Result<(), Fault> {
        state.delete(&self.key(key))
    }

    /// Counts the rows of a range, up to a bound.
    pub(crate) fn count(
        &self,
        state: &impl Read,
        range: KeyRange,
        most: usize,
    ) -> Result<usize, Fault> {
        let mut count: usize = 0;
        for row in state.scan(range, Direction::Forward).take(most) {
            row?;
            count = count.saturating_add(1);
        }
        Ok(count)
    }

    /// Reads a key of this table.
    pub(crate) fn parse(&self, key: &[u8]) -> Result<K, Fault> {
        let rest = key.split_first().filter(|(id, _)| **id == self.id);
        let parsed = rest.and_then(|(_, mut rest)| K::read(&mut rest).filter(|_| rest.is_empty()));
        parsed.ok_or_else(|| Fault::at(key, "the key is damaged"))
    }

    /// Scans the keys of a range.
    pub(crate) fn keys<'a, R: Read>(
        &'a self,
        state: &'a R,
        range: KeyRange,
        direction: Direction,
    ) -> impl Iterator<Item = Result<K, Fault>> + 'a {
        state.scan(range, direction).map(|row| self.parse(&row?.0))
    }
}

impl<K: Key, V: Encode<()> + for<'b> Decode<'b, ()>> Table<K, V> {
    /// Returns a row.
    pub(crate) fn get(&self, state: &impl Read, key: K::Ref<'_>) -> Result<Option<V>, Fault> {
        let key = self.key(key);
        state.get(&key)?.map(|value| codec::decode_value(&key, &value)).transpose()
    }

    /// Returns a row that another one names.
    pub(crate) fn must(&self, state: &impl Read, key: K::Ref<'_>) -> Result<V, Fault> {
        let key = self.key(key);
        let lost = || Fault::at(&key, "an index names what is not there");
        codec::decode_value(&key, &state.get(&key)?.ok_or_else(lost)?)
    }

    /// Sets a row.
    pub(crate) fn put(
        &self,
        state: &mut impl Store,
        key: K::Ref<'_>,
        value: &V,
    ) -> Result<(), Fault> {
        state.put(&self.key(key), codec::encode_value(value))
    }

    /// Scans the rows of a range.
    pub(crate) fn rows<'a, R: Read>(
        &'a self,
        state: &'a R,
        range: KeyRange,
        direction: Direction,
    ) -> impl Iterator<Item = Result<(K, V), Fault>> + 'a {
        state.scan(range, direction).map(|row| {
            let (key, value) = row?;
            Ok((self.parse(&key)?, codec::decode_value(&key, &value)?))
        })
    }
}
