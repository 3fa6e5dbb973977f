//! Every bound of the contract, with its reason.

/// Characters of a chat message or direct message: what a model can use in one reading.
pub const MESSAGE_CHARS_MAX: u32 = 32_000;
/// Messages that one `read_messages` returns at most.
pub const MESSAGES_MAX: u32 = 500;
/// Messages that one `read_messages` returns when the caller does not say.
pub const MESSAGES_DEFAULT: u32 = 10;
/// Events that one `list_events` returns at most.
pub const EVENTS_MAX: u32 = 500;
/// Events that one `list_events` returns when the caller does not say.
pub const EVENTS_DEFAULT: u32 = 20;
/// Characters of a conversation's name: it stands in lists and is typed as an address.
pub const NAME_CHARS_MAX: u32 = 48;
/// Characters of a conversation's note: one line of a list.
pub const NOTE_CHARS_MAX: u32 = 200;
/// Characters of a conversation's title: one line of a list.
pub const TITLE_CHARS_MAX: u32 = 80;
/// Characters of any id given as an argument: longer ones were never made by us.
pub const ID_CHARS_MAX: u32 = 200;
/// Characters of an event's action given as a filter.
pub const ACTION_CHARS_MAX: u32 = 64;

/// What a conversation's name is made of.
pub const NAME_PATTERN: &str = "^[A-Za-z0-9._@#-]+$";

/// Violations that one refusal names; the rest is counted.
pub const VIOLATIONS_SHOWN_MAX: usize = 5;
