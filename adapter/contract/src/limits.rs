//! Every bound of the contract, with its reason.
//!
//! Some of them the state machine has too: those name its constant (`raft/domain/src/limits.rs`) in
//! brackets and have the same value, so that a refusal here and one there are the same;
//! `tests/limits.rs` holds them together.

/// Characters of a chat message or direct message: what a model can use in one reading
/// (`TEXT_CHARS_MAX`).
pub const MESSAGE_CHARS_MAX: u32 = 32_000;
/// Messages that one `read_messages` returns at most (`READ_MESSAGES_MAX`).
pub const MESSAGES_MAX: u32 = 500;
/// Messages that one `read_messages` returns when the caller does not say.
pub const MESSAGES_DEFAULT: u32 = 10;
/// Direct messages that one `read` returns at most (`MAIL_READ_MAX`).
pub const MAIL_MAX: u32 = 50;
/// Direct messages that one `read` returns when the caller does not say.
pub const MAIL_DEFAULT: u32 = 10;
/// Events that one `list_events` returns at most (`EVENTS_LIST_MAX`).
pub const EVENTS_MAX: u32 = 500;
/// Events that one `list_events` returns when the caller does not say.
pub const EVENTS_DEFAULT: u32 = 20;
/// Characters of a conversation's name: it stands in lists and is typed as an address
/// (`NAME_CHARS_MAX`).
pub const NAME_CHARS_MAX: u32 = 48;
/// Characters of a conversation's note: one line of a list (`NOTE_CHARS_MAX`).
pub const NOTE_CHARS_MAX: u32 = 200;
/// Characters of a conversation's title: one line of a list (`TITLE_CHARS_MAX`).
pub const TITLE_CHARS_MAX: u32 = 80;
/// Characters of any id given as an argument: longer ones were never made by us
/// (`ACTOR_ID_BYTES_MAX`).
pub const ID_CHARS_MAX: u32 = 200;
/// Characters of an event's action given as a filter.
pub const ACTION_CHARS_MAX: u32 = 64;

/// Characters of a meeting's topic: one line of a notice (`TOPIC_CHARS_MAX`).
pub const TOPIC_CHARS_MAX: u32 = 200;
/// Characters of what came of a meeting: lists show it for each of 200; longer minutes are a
/// document (`SUMMARY_CHARS_MAX`).
pub const SUMMARY_CHARS_MAX: u32 = 8_000;
/// Characters of the note with a stance: it is posted, and shown with each look at the proposal
/// (`STANCE_NOTE_CHARS_MAX`).
pub const STANCE_NOTE_CHARS_MAX: u32 = 2_000;
/// Meetings that one `list_meetings` returns at most (`MEETINGS_LIST_MAX`).
pub const MEETINGS_MAX: u32 = 200;
/// Meetings that one `list_meetings` returns when the caller does not say.
pub const MEETINGS_DEFAULT: u32 = 20;

/// Bytes of a task's metadata as JSON: a list of 500 tasks is still an answer
/// (`TASK_METADATA_BYTES_MAX`).
pub const TASK_METADATA_BYTES_MAX: u32 = 16 * 1024;
/// Bytes of what is compared between tasks: it stands in a key (`TASK_TARGET_BYTES_MAX`).
pub const TASK_TARGET_BYTES_MAX: u32 = 512;
/// Bytes of where a task's result is: the longest address that programs agree on
/// (`TASK_URI_BYTES_MAX`).
pub const TASK_URI_BYTES_MAX: u32 = 2_048;
/// Bytes of what went wrong with a task (`TASK_ERROR_BYTES_MAX`).
pub const TASK_ERROR_BYTES_MAX: u32 = 8 * 1024;
/// The longest time to live of a task in milliseconds, 366 days: what is older is no plan any more
/// (`TASK_TTL_TICKS_MAX`).
pub const TASK_TTL_MILLIS_MAX: u64 = 366 * 24 * 60 * 60 * 1000;
/// Tasks that one `list_tasks` returns at most (`TASKS_LIST_MAX`).
pub const TASKS_MAX: u32 = 500;
/// Tasks that one `list_tasks` returns when the caller does not say.
pub const TASKS_DEFAULT: u32 = 50;

/// Characters of the id of a project or document: it is part of paths (`PROJECT_ID_BYTES_MAX`).
pub const PROJECT_ID_CHARS_MAX: u32 = 128;
/// Characters of a project's name: one line of a list (`PROJECT_NAME_CHARS_MAX`).
pub const PROJECT_NAME_CHARS_MAX: u32 = 200;
/// Characters of a project's description, which every search looks through
/// (`DESCRIPTION_CHARS_MAX`).
pub const DESCRIPTION_CHARS_MAX: u32 = 2_000;
/// Characters of any other text of a manifest: a URL of the length that browsers take
/// (`MANIFEST_TEXT_CHARS_MAX`).
pub const MANIFEST_TEXT_CHARS_MAX: u32 = 2_000;
/// Entries of one list of a manifest: one entry of the log holds them all (`MANIFEST_ITEMS_MAX`).
pub const MANIFEST_ITEMS_MAX: u32 = 1_000;
/// Characters of a version or version constraint in a manifest (`VERSION_CHARS_MAX`).
pub const VERSION_CHARS_MAX: u32 = 100;
/// Projects that one search returns at most (`SEARCH_LIST_MAX`).
pub const SEARCH_MAX: u32 = 200;
/// Projects that one search returns when the caller does not say.
pub const SEARCH_DEFAULT: u32 = 10;
/// Characters of what is searched for: no name or id is longer, and a description is found by a
/// part.
pub const QUERY_CHARS_MAX: u32 = 200;
/// Bytes of an asset's file name: what file systems take (`ASSET_NAME_BYTES_MAX`).
pub const ASSET_NAME_BYTES_MAX: u32 = 200;
/// Characters of base64 that one call takes, 3 MiB of a file: more is streamed, so that it never
/// lies in memory whole.
pub const BASE64_CHARS_MAX: u32 = 4 * 1024 * 1024;

/// Bytes of an asset, whichever way it comes (`ASSET_BYTES_MAX`).
pub const ASSET_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Bytes of a document, of a project's notes and of the strategy: readers get it whole, in one
/// answer; more belongs in an asset (`TEXT_BYTES_MAX`).
pub const DOCUMENT_BYTES_MAX: u32 = 1024 * 1024;
/// Characters of a document's title: one line of a list (`DOCUMENT_TITLE_CHARS_MAX`).
pub const DOCUMENT_TITLE_CHARS_MAX: u32 = 200;

/// Bytes of the body of one call: base64 of the longest file that one call takes, or the longest
/// document with every character escaped as clients do that (two bytes become six), and room for
/// the rest of the call. More is refused before it is read.
pub const CALL_BYTES_MAX: usize = 6 * 1024 * 1024;
/// Bytes of any other body: names and numbers.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;

/// What a conversation's name is made of.
pub const NAME_PATTERN: &str = "^[A-Za-z0-9._@#-]+$";
/// What an id of ours or of a client is made of, and a name that is given as an address.
pub const ID_PATTERN: &str = "^[A-Za-z0-9._:@#+=~-]+$";
/// What the id of a project or document is made of.
pub const PROJECT_ID_PATTERN: &str = "^[A-Za-z0-9._-]+$";

/// Violations that one refusal names; the rest is counted.
pub const VIOLATIONS_SHOWN_MAX: usize = 5;
