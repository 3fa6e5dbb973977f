//! What must hold between the bounds; a change that breaks it does not compile.

use super::*;

// A message of the longest text in four-byte characters fits an entry with its frame.
const _: () = assert!(TEXT_CHARS_MAX * 4 + 2_048 <= ENTRY_BYTES_MAX);
// Titles of all changes of a full `Transition`, with their ids, fit an entry.
const _: () = assert!(
    TRANSITION_CHANGES_MAX * (ACTOR_ID_BYTES_MAX + TITLE_CHARS_MAX * 4 + 16) + 2_048
        <= ENTRY_BYTES_MAX
);
const _: () = assert!(TRANSITION_CHANGES_MAX * 4 + 8 <= COMMAND_ROWS_MAX);
// A full `Report` fits an entry.
const _: () = assert!(
    REPORTS_MAX * (ACTOR_ID_BYTES_MAX + TITLE_CHARS_MAX * 4 + 64) + 2_048 <= ENTRY_BYTES_MAX
);
const _: () = assert!(REPORTS_MAX * 8 + 8 <= COMMAND_ROWS_MAX);
const _: () = assert!(FIRE_IDS_MAX * 3 + 8 <= FIRE_ROWS_MAX && FIRE_ROWS_MAX <= COMMAND_ROWS_MAX);
const _: () = assert!(REMOVAL_ROWS_MAX * 2 + 8 <= FIRE_ROWS_MAX);
// The longest names fit the replies that carry them.
const _: () = assert!(MEMBER_NAME_CHARS_MAX + 32 <= OUTCOME_BYTES_MAX);
const _: () = assert!(NAME_CHARS_MAX + 32 <= OUTCOME_BYTES_MAX);
// A number behind a name leaves room for the name.
const _: () = assert!(NAME_CHARS_MAX > 16 && MEMBER_NAME_CHARS_MAX > 16);
const _: () = assert!(READ_MESSAGES_MAX as usize <= TAKE_SCAN_ROWS_MAX);
// A chunk, and a whole manifest with notes of one chunk, fit an entry with their frame.
const _: () = assert!(CHUNK_BYTES <= (ENTRY_BYTES_MAX - MANIFEST_BYTES_MAX - 4_096) as u64);
// Whole blocks of SHA-256, and texts of whole chunks.
const _: () = assert!(CHUNK_BYTES.is_multiple_of(64) && TEXT_BYTES_MAX.is_multiple_of(CHUNK_BYTES));
// References that go and come, an old text, and the few rows of every command.
const _: () = assert!(REFERENCES_MAX * 6 + 16 + 60 <= COMMAND_ROWS_MAX);
const _: () = assert!(RENAME_REFERRERS_MAX * 3 + 60 <= COMMAND_ROWS_MAX as u64);
// A sweep's assets with a chunk and a timer each.
const _: () = assert!(SWEEP_CHUNKS_MAX * 3 + 8 <= FIRE_ROWS_MAX as u64);
// At the bound of open uploads the longest silent one may go within the command that begins.
const _: () = assert!(UPLOADS_MOVING_MAX < UPLOADS_MAX);
const _: () = assert!(ASSET_NAME_BYTES_MAX + 32 <= OUTCOME_BYTES_MAX);
// The longest topic, note and summary fit what carries them.
const _: () = assert!(SUMMARY_CHARS_MAX * 4 + 2_048 <= ENTRY_BYTES_MAX);
const _: () = assert!(TOPIC_CHARS_MAX <= EVENT_TEXT_CHARS_MAX);
const _: () = assert!(GUEST_STANCES_MAX + MEETING_MEMBERS_MAX < STANCES_MAX);
// A reminder marks all members, a reopened meeting involves all of them again.
const _: () = assert!(MEETING_MEMBERS_MAX + 8 <= FIRE_ROWS_MAX);
const _: () = assert!(TOLD_MAX * 3 <= COMMAND_ROWS_MAX);
const _: () =
    assert!(TOLD_MAX * (MEETING_ID_BYTES_MAX + ACTOR_ID_BYTES_MAX + 64) + 2_048 <= ENTRY_BYTES_MAX);
const _: () = assert!(14 + 1 + MEETING_SLUG_CHARS_MAX + 1 + 13 <= MEETING_ID_BYTES_MAX);
// What one `Fire` changes: see each bound. A notice is up to four rows.
const _: () = assert!(TURNS_TOLD_MAX * 6 + 8 <= FIRE_ROWS_MAX);
const _: () = assert!(UNREAD_TOLD_MAX * 4 + 12 <= FIRE_ROWS_MAX);
const _: () = assert!(MAIL_EXPIRED_MAX * 8 + 12 <= FIRE_ROWS_MAX);
const _: () = assert!(MAIL_SWEPT_MAX * 4 + 12 <= FIRE_ROWS_MAX as u64);
const _: () = assert!(CHAT_SWEPT_MAX + 8 <= FIRE_ROWS_MAX);
const _: () = assert!(CLOSED_ROWS_MAX + 8 <= FIRE_ROWS_MAX);
const _: () = assert!(NOTICES_MAX + 1 + WATCHES_MAX * 2 + 8 <= CLOSED_ROWS_MAX);
// A task's texts fit an entry with its frame.
const _: () = assert!(
    TASK_METADATA_BYTES_MAX
        + TASK_TARGET_BYTES_MAX
        + TASK_URI_BYTES_MAX
        + TASK_ERROR_BYTES_MAX
        + 2_048
        <= ENTRY_BYTES_MAX
);
