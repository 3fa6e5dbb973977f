//! Bounds that the state machine has too: one number, whoever refuses first.

use nexus_contract::limits as ours;
use nexus_domain::limits as theirs;

#[test]
fn bounds_are_those_of_the_state_machine() {
    let same = |name: &str, ours: u32, theirs: usize| {
        assert_eq!(usize::try_from(ours), Ok(theirs), "{name}");
    };
    let wide = |name: &str, ours: u32, theirs: u64| assert_eq!(u64::from(ours), theirs, "{name}");
    same("message", ours::MESSAGE_CHARS_MAX, theirs::TEXT_CHARS_MAX);
    assert_eq!(ours::MESSAGES_MAX, theirs::READ_MESSAGES_MAX);
    assert_eq!(ours::MAIL_MAX, theirs::MAIL_READ_MAX);
    same("events", ours::EVENTS_MAX, theirs::EVENTS_LIST_MAX);
    same("name", ours::NAME_CHARS_MAX, theirs::NAME_CHARS_MAX);
    same("note", ours::NOTE_CHARS_MAX, theirs::NOTE_CHARS_MAX);
    same("title", ours::TITLE_CHARS_MAX, theirs::TITLE_CHARS_MAX);
    same("id", ours::ID_CHARS_MAX, theirs::ACTOR_ID_BYTES_MAX);
    same("topic", ours::TOPIC_CHARS_MAX, theirs::TOPIC_CHARS_MAX);
    same("summary", ours::SUMMARY_CHARS_MAX, theirs::SUMMARY_CHARS_MAX);
    same("stance's note", ours::STANCE_NOTE_CHARS_MAX, theirs::STANCE_NOTE_CHARS_MAX);
    same("meetings", ours::MEETINGS_MAX, theirs::MEETINGS_LIST_MAX);
    same("metadata", ours::TASK_METADATA_BYTES_MAX, theirs::TASK_METADATA_BYTES_MAX);
    same("target", ours::TASK_TARGET_BYTES_MAX, theirs::TASK_TARGET_BYTES_MAX);
    same("result_uri", ours::TASK_URI_BYTES_MAX, theirs::TASK_URI_BYTES_MAX);
    same("error_message", ours::TASK_ERROR_BYTES_MAX, theirs::TASK_ERROR_BYTES_MAX);
    assert_eq!(ours::TASK_TTL_MILLIS_MAX, theirs::TASK_TTL_TICKS_MAX);
    same("tasks", ours::TASKS_MAX, theirs::TASKS_LIST_MAX);
    same("project's id", ours::PROJECT_ID_CHARS_MAX, theirs::PROJECT_ID_BYTES_MAX);
    same("project's name", ours::PROJECT_NAME_CHARS_MAX, theirs::PROJECT_NAME_CHARS_MAX);
    same("description", ours::DESCRIPTION_CHARS_MAX, theirs::DESCRIPTION_CHARS_MAX);
    same("manifest's texts", ours::MANIFEST_TEXT_CHARS_MAX, theirs::MANIFEST_TEXT_CHARS_MAX);
    same("manifest's lists", ours::MANIFEST_ITEMS_MAX, theirs::MANIFEST_ITEMS_MAX);
    same("versions", ours::VERSION_CHARS_MAX, theirs::VERSION_CHARS_MAX);
    same("search", ours::SEARCH_MAX, theirs::SEARCH_LIST_MAX);
    same("fileName", ours::ASSET_NAME_BYTES_MAX, theirs::ASSET_NAME_BYTES_MAX);
    assert_eq!(ours::ASSET_BYTES_MAX, theirs::ASSET_BYTES_MAX);
    wide("texts", ours::DOCUMENT_BYTES_MAX, theirs::TEXT_BYTES_MAX);
    same("document's title", ours::DOCUMENT_TITLE_CHARS_MAX, theirs::DOCUMENT_TITLE_CHARS_MAX);
}
