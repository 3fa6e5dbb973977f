//! Every bound of the state machine, with its reason.
//!
//! What happens at a bound stands with each: a refusal that names the field, a cut, or work that is
//! left to the next entry. Nothing is ever unbounded. They stand family by family; `fits` proves
//! what must hold between them.

mod fits;

/// One hour of ticks, for the bounds below.
const HOUR: u64 = 60 * 60 * 1000;

/// One day of ticks, for the bounds below.
pub const DAY_TICKS: u64 = 24 * HOUR;

/// An entry's bytes: the log is one queue, and a larger entry would block everybody else's on a
/// slow link (traps.md 21). Longer bodies come in chunks; a longer entry does not decode.
pub const ENTRY_BYTES_MAX: usize = 128 * 1024;

/// A kept outcome's bytes, so that the table of request ids stays small; longer refusals are cut.
pub const OUTCOME_BYTES_MAX: usize = 256;

/// How many client ids are kept for one actor; over it the new request is refused, because an
/// eviction would let an old one run twice (traps.md 7).
pub const CLIENT_IDS_MAX: u32 = 1_000;

/// How long a client id is kept at least, in ticks: promise 2 says 24 hours.
pub const CLIENT_ID_TICKS: u64 = DAY_TICKS;

/// Client ids end in groups of one hour, so that one timer serves many.
pub const CLIENT_BUCKET_TICKS: u64 = HOUR;

/// How many requests of one node may be open; over it the new one is refused (back-pressure).
pub const NODE_IDS_MAX: u32 = 10_000;

/// Answered records that one entry removes beside its own work; the rest goes with the next ones.
pub const SWEEP_ROWS_MAX: usize = 256;

/// Rows that one `Fire` changes (traps.md 4); the rest goes with the next one.
pub const FIRE_ROWS_MAX: usize = 256;

/// Conversations that one step of a removal looks at: each may change its row and its name's.
pub const REMOVAL_ROWS_MAX: usize = 120;

/// Client ids that one `Fire` forgets: each is a record, a row of its group and perhaps a count.
pub const FIRE_IDS_MAX: usize = 80;

/// Rows that one command changes (traps.md 21), so that no entry stalls the others.
pub const COMMAND_ROWS_MAX: usize = 1_000;

/// A client's request id in bytes: long enough for any UUID with a prefix, short for a key.
pub const CLIENT_ID_BYTES_MAX: usize = 200;

/// A conversation's or instance's id in bytes; longer ones are refused.
pub const ACTOR_ID_BYTES_MAX: usize = 200;

/// Members of one cluster; every one gets every entry, and lists of them are scanned.
pub const MEMBERS_MAX: usize = 128;

/// After this many ticks away a member is not waited for any more (traps.md 3): 30 days.
pub const GONE_TICKS: u64 = 30 * DAY_TICKS;

/// Voters that are noted: five is the most that is planned, and a joint change names both sets.
pub const VOTERS_MAX: usize = 16;

/// A member's name: fits a line of `nexus status`.
pub const MEMBER_NAME_CHARS_MAX: usize = 48;

/// What tells a machine from others, in bytes.
pub const HOST_BYTES_MAX: usize = 200;

/// Addresses of one member; a machine with more interfaces names its best ones.
pub const ADDRESSES_MAX: usize = 16;

/// One address in bytes: a host name and a port.
pub const ADDRESS_BYTES_MAX: usize = 262;

/// A public key (SPKI, DER) in bytes: RSA-8192 would fit, ours has 44 to 91.
pub const PUBLIC_KEY_BYTES_MAX: usize = 1_100;

/// The CA certificate (DER) in bytes.
pub const AUTHORITY_BYTES_MAX: usize = 8 * 1024;

/// The program's version text in bytes.
pub const SOFTWARE_BYTES_MAX: usize = 100;

/// Invites that are kept at once, used ones too: more are a script gone wild. Those that have ended
/// make room first.
pub const INVITES_MAX: usize = 64;

/// How long an invite is kept behind its end, in ticks, for people to see what became of it.
pub const INVITE_KEPT_TICKS: u64 = DAY_TICKS;

/// The public part of an invite code in bytes.
pub const INVITE_ID_BYTES_MAX: usize = 32;

/// The longest life of an invite, in ticks: an open door is shut after a month.
pub const INVITE_TICKS_MAX: u64 = 30 * DAY_TICKS;

/// Conversations that the cluster keeps; a new one beyond is refused.
pub const CONVERSATIONS_MAX: u64 = 100_000;

/// A conversation's name (n2n-nexus `set_profile`); longer ones are refused, made ones are cut.
pub const NAME_CHARS_MAX: usize = 48;

/// A conversation's note (n2n-nexus `set_profile`).
pub const NOTE_CHARS_MAX: usize = 200;

/// A conversation's title (n2n-nexus `set_profile`); what a client shows is cut to it.
pub const TITLE_CHARS_MAX: usize = 80;

/// A working directory in bytes: Linux's `PATH_MAX`.
pub const CWD_BYTES_MAX: usize = 4_096;

/// Numbers that are tried behind a taken name; then the name is refused.
pub const NAME_TRIES_MAX: u32 = 1_000;

/// Conversations in one `Transition`: each changes up to four rows.
pub const TRANSITION_CHANGES_MAX: usize = 240;

/// Conversations in one `Report`: each changes up to eight rows.
pub const REPORTS_MAX: usize = 120;

/// How often an active conversation's time is written, in ticks: each writing is three rows.
pub const TOUCH_TICKS: u64 = 60 * 1000;

/// Conversations that one listing returns.
pub const CONVERSATIONS_LIST_MAX: usize = 1_000;

/// Rows that one listing of peers looks at: offline ones and instances stand between.
pub const PEERS_SCAN_MAX: usize = 4_096;

/// How long a conversation is kept after its last activity, in ticks.
pub const CLOSED_TICKS: u64 = 30 * DAY_TICKS;

/// Conversations that one step of the walk through old ones looks at.
pub const CLOSED_LOOKED_MAX: usize = 64;

/// Rows that the removals of one such step change.
pub const CLOSED_ROWS_MAX: usize = 240;

/// Notices of one conversation; the oldest is given up for a new one, and counted.
pub const NOTICES_MAX: usize = 100;

/// Old notices that one new one removes: twice the inflow, so those that were shown go too.
pub const NOTICES_SWEPT_MAX: usize = 2;

/// Who may wait for the end of one conversation's turn.
pub const WATCHES_MAX: usize = 64;

/// How long such a wish stands, in ticks (n2n-nexus: 24 hours).
pub const WATCH_TICKS: u64 = DAY_TICKS;

/// Those who are told of ends of turns by one `Fire`: each is a notice and two rows of its wish.
pub const TURNS_TOLD_MAX: usize = 40;

/// A chat message's characters (n2n-nexus: 1 to 32,000).
pub const TEXT_CHARS_MAX: usize = 32_000;

/// Messages that one call reads (n2n-nexus `read_messages`).
pub const READ_MESSAGES_MAX: u32 = 500;

/// Rows that one `Take` looks at, the reader's own among them; the cursor then stands behind them
/// and the next `Take` goes on.
pub const TAKE_SCAN_ROWS_MAX: usize = 4_096;

/// Bytes of text that one `Take` hands out and one look at a room shows (the first message always):
/// an answer that a model can still read, and no cursor that runs ahead of what an answer can
/// carry.
pub const TAKE_TEXT_BYTES_MAX: usize = 1024 * 1024;

/// Pruned messages whose rows one `Fire` deletes.
pub const CHAT_SWEPT_MAX: usize = 240;

/// Events that are kept; the oldest go first.
pub const EVENTS_MAX: u64 = 10_000;

/// How long an event is kept, in ticks.
pub const EVENT_TICKS: u64 = 90 * DAY_TICKS;

/// Old events that one new event removes: twice the inflow, so a shorter bound is reached too.
pub const EVENTS_PRUNED_MAX: usize = 2;

/// Events that one call lists (n2n-nexus `list_events`).
pub const EVENTS_LIST_MAX: usize = 500;

/// An event's target and detail in characters; longer ones are cut.
pub const EVENT_TEXT_CHARS_MAX: usize = 200;

/// Bytes of one chunk of a long body. An entry that carries one holds a chat message up for 26 ms
/// on a link of 20 Mbit/s (traps.md 21); it is a multiple of SHA-256's block, so a running hash has
/// no remainder between two chunks.
pub const CHUNK_BYTES: u64 = 64 * 1024;

/// A text's bytes (a document, a project's notes, the strategy): readers get it whole, in one
/// answer, and sixteen chunks are still removed by the very command that replaces it. More is no
/// text for a model: it belongs in an asset.
pub const TEXT_BYTES_MAX: u64 = 1024 * 1024;

/// An asset's bytes: 4,096 chunks, a minute and a half of a link of 20 Mbit/s.
pub const ASSET_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Bytes of all assets and of uploads under way, unless the cluster sets another quota
/// (traps.md 21): every node holds all of them.
pub const ASSETS_QUOTA: u64 = 1024 * 1024 * 1024;

/// The highest quota that can be set: a snapshot carries all of it to a newcomer.
pub const ASSETS_QUOTA_MAX: u64 = 64 * 1024 * 1024 * 1024;

/// Bytes of all texts and of their uploads, apart from the assets', so that large files never keep
/// anybody from writing.
pub const TEXTS_QUOTA: u64 = 256 * 1024 * 1024;

/// Uploads that are open at once, silent ones too; at the bound a new one ends the one that was
/// silent for longest, and is refused when none is silent.
pub const UPLOADS_MAX: usize = 16;

/// Uploads of assets that move at once (traps.md 21), so that they leave room in the log.
pub const UPLOADS_MOVING_MAX: usize = 2;

/// How long an upload without a new chunk counts as moving, in ticks.
pub const UPLOAD_SILENT_TICKS: u64 = 60 * 1000;

/// How long an upload may last, in ticks (traps.md 21).
pub const UPLOAD_TICKS: u64 = HOUR;

/// Chunks that a command removes itself; those of a longer body are swept by timers.
pub const DISCARD_CHUNKS_MAX: u64 = TEXT_BYTES_MAX / CHUNK_BYTES;

/// Chunks that one step of a sweep removes: the digest reads and hashes each, so these are 2 MiB of
/// work.
pub const SWEEP_CHUNKS_MAX: u64 = 32;

/// Bytes of a body that one query reads.
pub const BODY_READ_BYTES_MAX: u64 = 1024 * 1024;

/// Assets of the cluster: their rows, not their bytes.
pub const ASSETS_MAX: u64 = 20_000;

/// Assets of one project: a list of them is one answer.
pub const ASSETS_PER_PROJECT_MAX: u64 = 1_000;

/// An asset's file name in bytes: what file systems take, and short enough for a kept reply.
pub const ASSET_NAME_BYTES_MAX: usize = 200;

/// Projects of the cluster: the topology without a project lists all of them, at most 20 us each.
pub const PROJECTS_MAX: u64 = 5_000;

/// A project's or document's id in bytes (n2n-nexus, open question 46).
pub const PROJECT_ID_BYTES_MAX: usize = 128;

/// A project's name.
pub const PROJECT_NAME_CHARS_MAX: usize = 200;

/// A project's description, which every search looks through.
pub const DESCRIPTION_CHARS_MAX: usize = 2_000;

/// Any other text of a manifest: a URL of the length that browsers take.
pub const MANIFEST_TEXT_CHARS_MAX: usize = 2_000;

/// Entries of one list of a manifest.
pub const MANIFEST_ITEMS_MAX: usize = 1_000;

/// A manifest's bytes: with notes of one chunk it fits an entry.
pub const MANIFEST_BYTES_MAX: usize = 56 * 1024;

/// Projects that one names in its relations and `apiDependencies`: each of those that go and of
/// those that come changes three rows.
pub const REFERENCES_MAX: usize = 128;

/// A version or version constraint in a manifest.
pub const VERSION_CHARS_MAX: usize = 100;

/// Projects that may refer to an id already when a rename takes it: each changes three rows. Those
/// that refer to the renamed project itself follow without a row of their own, however many.
pub const RENAME_REFERRERS_MAX: u64 = 300;

/// Projects that one search returns (n2n-nexus `search_projects`).
pub const SEARCH_LIST_MAX: usize = 200;

/// Relations that the topology of one project shows; beyond, it says that there are more.
pub const TOPOLOGY_RELATIONS_MAX: usize = 10_000;

/// Documents of the cluster.
pub const DOCUMENTS_MAX: u64 = 5_000;

/// Documents that one call lists; the next call goes on behind them.
pub const DOCUMENTS_LIST_MAX: usize = 1_000;

/// A document's title.
pub const DOCUMENT_TITLE_CHARS_MAX: usize = 200;

/// A meeting's id in bytes: 14 digits of time, 30 characters of topic, 4 to 13 of the entry.
pub const MEETING_ID_BYTES_MAX: usize = 64;

/// How much of a meeting's topic stands in its id (n2n-nexus).
pub const MEETING_SLUG_CHARS_MAX: usize = 30;

/// A meeting's topic: one line of a notice.
pub const TOPIC_CHARS_MAX: usize = 200;

/// What is said of a meeting's end: lists show it for each of 200 meetings. Longer minutes are a
/// document.
pub const SUMMARY_CHARS_MAX: usize = 8_000;

/// A note with a stance: it is posted, and shown with each look at the proposal.
pub const STANCE_NOTE_CHARS_MAX: usize = 2_000;

/// Meetings that are kept; one more lets the archived one that started first go, and is refused
/// when none is archived.
pub const MEETINGS_MAX: u64 = 10_000;

/// How long an archived meeting is kept, in ticks: a year, in which anybody may copy what counts.
pub const MEETING_KEPT_TICKS: u64 = 365 * DAY_TICKS;

/// Messages of one meeting, the cluster's own not counted in: then it is time for another one.
pub const MEETING_MESSAGES_MAX: u64 = 100_000;

/// Who may have a place in one meeting, members and guests: a place stays as long as the meeting.
pub const MEETING_READERS_MAX: u64 = 10_000;

/// Members of one meeting: each look at a draft goes through all, and one reminder marks them all.
pub const MEETING_MEMBERS_MAX: usize = 200;

/// Meetings that may have something to tell a conversation when it takes part in another one: each
/// of its hooks looks at all of them.
pub const MEETINGS_JOINED_MAX: usize = 128;

/// Meetings that one look for news goes through; reopened ones may be more than one may join, and
/// those behind are told when earlier ones are through.
pub const NEWS_MEETINGS_MAX: usize = 512;

/// Messages that one look for news counts; a notice says that there are more.
pub const NEWS_ROWS_MAX: usize = 512;

/// Senders that news of a meeting name.
pub const NEWS_SENDERS_MAX: usize = 5;

/// Stances on one proposal: each look at it goes through all.
pub const STANCES_MAX: usize = 500;

/// Stances on one proposal beyond which guests take none, so that members always can.
pub const GUEST_STANCES_MAX: usize = 200;

/// How long a meeting must be quiet at most before approvers are reminded, in minutes: a month.
pub const REMINDER_MINUTES_MAX: u32 = 30 * 24 * 60;

/// Approvers that a message about their list names.
pub const APPROVERS_NAMED_MAX: usize = 20;

/// Participants, stances and objections that are shown of one meeting.
pub const MEETING_SHOWN_MAX: usize = 200;

/// Meetings that one call lists (n2n-nexus `list_meetings`).
pub const MEETINGS_LIST_MAX: usize = 200;

/// Conversations that one `Told` speaks of: each changes its member's row, the meeting's, and what
/// it is involved in.
pub const TOLD_MAX: usize = 240;

/// Tasks that the cluster keeps; a new one beyond is refused.
pub const TASKS_MAX: u64 = 100_000;

/// A task's metadata in bytes of JSON: a list of 500 tasks is still an answer.
pub const TASK_METADATA_BYTES_MAX: usize = 16 * 1024;

/// What is compared between tasks, in bytes: it stands in a key.
pub const TASK_TARGET_BYTES_MAX: usize = 512;

/// Where a task's result is, in bytes: the longest address that programs agree on.
pub const TASK_URI_BYTES_MAX: usize = 2_048;

/// What went wrong with a task, in bytes.
pub const TASK_ERROR_BYTES_MAX: usize = 8 * 1024;

/// The longest time to live of a task, in ticks.
pub const TASK_TTL_TICKS_MAX: u64 = 366 * DAY_TICKS;

/// How long a finished task is kept, in ticks (n2n-nexus: 7 days).
pub const TASK_KEPT_TICKS: u64 = 7 * DAY_TICKS;

/// A task's progress when it is done, in millionths.
pub const PROGRESS_MAX: u32 = 1_000_000;

/// Tasks that one call lists (n2n-nexus `list_tasks`).
pub const TASKS_LIST_MAX: usize = 500;

/// Bytes of text in one list of tasks, the first task always: see [`TAKE_TEXT_BYTES_MAX`].
pub const TASKS_LIST_BYTES_MAX: usize = 1024 * 1024;

/// Direct messages that one call reads (n2n-nexus `read`).
pub const MAIL_READ_MAX: u32 = 50;

/// Bytes of text that one `Take` of direct messages hands out, the first message always: see
/// [`TAKE_TEXT_BYTES_MAX`].
pub const MAIL_TAKE_BYTES_MAX: u64 = 1024 * 1024;

/// Characters of a message's first line in a notice (n2n-nexus).
pub const FIRST_LINE_CHARS_MAX: usize = 100;

/// Messages with a text in one inbox; over it the new one is refused.
pub const INBOX_MESSAGES_MAX: u64 = 100_000;

/// Bytes of text in one inbox; over it texts that were read go early, else the new message is
/// refused: nobody reads that much any more.
pub const INBOX_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Messages in all inboxes; over it new ones are refused.
pub const MAIL_KEPT_MAX: u64 = 1_000_000;

/// Bytes of text in all inboxes; over it new messages are refused.
pub const MAIL_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Messages without a text that one inbox keeps, for receipts and replies; the oldest go first.
pub const RECEIPTS_MAX: u64 = 1_000;

/// Receipts that one call lists.
pub const RECEIPTS_LIST_MAX: usize = 200;

/// How long a text is kept at least after it was read, in ticks: as long as a repeated call may ask
/// for it.
pub const READ_TEXT_TICKS: u64 = CLIENT_ID_TICKS;

/// After how long a message counts as unread, in ticks of its reader's node being up.
pub const UNREAD_TICKS: u64 = DAY_TICKS;

/// How long a message is kept, read or not, in ticks.
pub const MAIL_KEPT_TICKS: u64 = 30 * DAY_TICKS;

/// Messages whose texts one step deletes, with as many envelopes: four rows each.
pub const MAIL_SWEPT_MAX: u64 = 48;

/// Messages of 30 days that one `Fire` deletes: four rows each, and a notice to the sender.
pub const MAIL_EXPIRED_MAX: usize = 24;

/// Messages of whose being unread one `Fire` tells: a notice each at most.
pub const UNREAD_TOLD_MAX: usize = 48;

/// Every how many entries the digests are kept, so that nodes compare at a common index.
pub const DIGEST_STRIDE: u64 = 64;

/// How many of those are kept (traps.md 22).
pub const DIGEST_MARKS_MAX: u64 = 1_024;
