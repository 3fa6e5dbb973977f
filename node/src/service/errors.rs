//! Errors of the log as callers see them: a stable code, what is wrong, what would be right.

use std::time::Duration;

use nexus_contract::{ApiError, ErrorCode, ReadMarks};
use nexus_domain::{Rejection, limits};
use nexus_raft::{ProposeError, ReadError};

/// After how many seconds a call may be right that others were in the way of: a minute, in which an
/// upload that does not move loses its place.
const BUSY_SECONDS: u64 = limits::UPLOAD_SILENT_TICKS.div_ceil(1_000);

/// Turns the end of a write into a refusal.
pub(super) fn write(tool: &str, error: ProposeError) -> ApiError {
    match error {
        ProposeError::Rejected(rejection) => rejected(tool, &rejection),
        ProposeError::NoQuorum { missing, retry_after } => ApiError::new(
            ErrorCode::NoQuorum,
            format!("no majority of the voters answers: {missing}; nothing was done"),
        )
        .with_retry_after(whole_seconds(retry_after)),
        ProposeError::Unknown { request, missing } => {
            let missing = missing.map(|text| format!("; but now {text}"));
            let text = format!(
                "no answer came in time, so the call may or may not have been done: call again \
                 with request id {request}, which has one effect however often it is sent{}",
                missing.unwrap_or_default()
            );
            ApiError::new(ErrorCode::UnknownOutcome, text).with_request_id(request)
        }
        ProposeError::Busy { retry_after } => ApiError::new(
            ErrorCode::Busy,
            "too many writes wait on this node: call again in a moment; nothing was done",
        )
        .with_retry_after(whole_seconds(retry_after)),
        error @ ProposeError::TooLarge { .. } => {
            ApiError::invalid_arguments(tool, crate::cli::chain(&error))
        }
        ProposeError::Stopping => ApiError::new(
            ErrorCode::Stopping,
            "the node is stopping; call again once it is back; nothing was done",
        )
        .with_retry_after(1),
        error @ ProposeError::DiskFull { .. } => {
            ApiError::new(ErrorCode::DiskFull, error.to_string())
        }
        ProposeError::Fatal(what) => {
            ApiError::internal(format!("the node has stopped working: {what}; look into its log"))
        }
    }
}

/// Gives the end of a write the request id with which its caller repeats the call, where the entry
/// in the log goes by another one.
pub(super) fn repeated_with(error: ProposeError, id: Option<&str>) -> ProposeError {
    match (error, id) {
        (ProposeError::Unknown { missing, .. }, Some(id)) => {
            ProposeError::Unknown { request: id.to_owned(), missing }
        }
        (ProposeError::DiskFull { .. }, Some(id)) => {
            ProposeError::DiskFull { request: id.to_owned() }
        }
        (error, _) => error,
    }
}

/// As [`write()`], for a verb that takes no request id: where its end is not known, `look` says how
/// to find out.
pub(super) fn verb(name: &str, error: ProposeError, look: &str) -> ApiError {
    let ProposeError::Unknown { missing, .. } = error else {
        return write(name, error);
    };
    let missing = missing.map(|text| format!("; {text}"));
    let text = format!(
        "no answer came in time, so it may or may not have been done: {look}{}",
        missing.unwrap_or_default()
    );
    ApiError::new(ErrorCode::UnknownOutcome, text)
}

/// Turns the end of what must precede a write into a refusal: the write itself was not begun, so an
/// unknown outcome there is none of the call's.
pub(super) fn not_begun(tool: &str, request_id: Option<&str>, error: ProposeError) -> ApiError {
    let ProposeError::Unknown { missing, .. } = error else {
        return write(tool, error);
    };
    let missing = missing.map(|text| format!("; {text}"));
    let text = format!(
        "no answer came in time while the caller was made known; the call itself was not begun: \
         call again{}",
        missing.unwrap_or_default()
    );
    let error = ApiError::new(ErrorCode::NoQuorum, text).with_retry_after(1);
    match request_id {
        Some(id) => error.with_request_id(id),
        None => error,
    }
}

/// Turns a refusal of the state machine into ours.
fn rejected(tool: &str, rejection: &Rejection) -> ApiError {
    let code = match rejection.code() {
        "invalid_arguments" => return ApiError::invalid_arguments(tool, rejection),
        "not_found" => ErrorCode::NotFound,
        "request_expired" => ErrorCode::RequestExpired,
        "rate_limited" => ErrorCode::RateLimited,
        "not_here" => ErrorCode::NotHere,
        "invite_ended" => ErrorCode::InviteEnded,
        "internal" => ErrorCode::Internal,
        "full" => ErrorCode::Full,
        // Others are in the way for a short while: uploads that move, or open ones.
        "busy" => {
            let busy = ApiError::new(ErrorCode::Busy, rejection.to_string());
            return busy.with_retry_after(BUSY_SECONDS);
        }
        // What the state does not allow: a conflict with it, a version too new, too late, or not
        // the actor's to do.
        _ => ErrorCode::Conflict,
    };
    ApiError::new(code, rejection.to_string())
}

/// Turns a failed look at the state into a refusal.
pub(super) fn read(error: &ReadError) -> ApiError {
    ApiError::internal(crate::cli::chain(error))
}

/// What a field names does not exist; `remedy` says where to find what does.
pub(super) fn not_found(field: &str, what: &str, remedy: &str) -> ApiError {
    ApiError::new(ErrorCode::NotFound, format!("{field}: {what} does not exist; {remedy}"))
}

/// Gives a refusal of what does not exist the field and the remedy, as [`not_found`] does; any
/// other refusal stays as it is.
pub(super) fn missing(error: ApiError, field: &str, what: &str, remedy: &str) -> ApiError {
    if error.code == ErrorCode::NotFound { not_found(field, what, remedy) } else { error }
}

/// What a field names is not in the state that was looked at. A stale one may lack what is new, so
/// nothing is said to be missing then.
pub(super) fn absent(is_stale: bool, field: &str, what: &str, remedy: &str) -> ApiError {
    if !is_stale {
        return not_found(field, what, remedy);
    }
    let text = format!(
        "{field}: {what} is not known on this node, and no majority of the voters answers to say \
         whether it is new: call again, or look later; {remedy}"
    );
    ApiError::new(ErrorCode::NoQuorum, text).with_retry_after(1)
}

/// Adds to a refusal of what does not exist that it is this node's own word, where the read was
/// stale: elsewhere it may exist.
pub(super) fn as_known_here(marks: &ReadMarks, mut error: ApiError) -> ApiError {
    if marks.stale == Some(true) {
        let as_of = marks.as_of.as_deref().unwrap_or("an unknown time");
        error.message.push_str(&format!(
            "; no majority of the voters answers, so this is what this node knew last (as of \
             {as_of})"
        ));
    }
    error
}

/// Gives a refusal that begins with the thing that a field names the field.
pub(super) fn named(error: ApiError, field: &str, thing: &str) -> ApiError {
    let rest = error.message.strip_prefix(thing);
    if !rest.is_some_and(|rest| rest.starts_with(' ') || rest.starts_with(':')) {
        return error;
    }
    let message = format!("{field}: {}", error.message);
    ApiError { message, ..error }
}

/// The messages are taken, and this node does not have them yet.
pub(super) fn behind(request_id: Option<&str>) -> ApiError {
    let text = "the messages are taken, and this node is too far behind to show them now: call \
                again with the same request id, and they come; or read them with afterId";
    done_and_not_shown(text, request_id)
}

/// The call is done, and this node cannot show its result yet; `text` says so. The same call under
/// the same request id shows it later, so the code is the one that says to do that.
pub(super) fn done_and_not_shown(text: &str, request_id: Option<&str>) -> ApiError {
    let error = ApiError::new(ErrorCode::UnknownOutcome, text).with_retry_after(1);
    match request_id {
        Some(id) => error.with_request_id(id),
        None => error,
    }
}

/// The log answered with another command's reply.
pub(super) fn odd_reply(tool: &str) -> ApiError {
    ApiError::internal(format!("the log answered {tool} with another command's reply"))
}

fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verb_without_request_ids_says_where_to_look() {
        let unknown = ProposeError::Unknown { request: "r-1".into(), missing: None };
        let error = verb("node remove", unknown, "look at `nexus status`");
        assert_eq!((error.code, error.request_id), (ErrorCode::UnknownOutcome, None));
        assert!(error.message.ends_with("done: look at `nexus status`"), "{}", error.message);
        assert!(!error.message.contains("request id"), "{}", error.message);
        let busy = verb("node remove", ProposeError::Stopping, "look");
        assert_eq!(busy.code, ErrorCode::Stopping);
    }

    #[test]
    fn refusals_keep_their_code_and_name_the_field() {
        let invalid = Rejection::Invalid { field: "name".into(), rule: "is taken".into() };
        let error = write("set_profile", ProposeError::Rejected(invalid));
        assert_eq!(error.code, ErrorCode::InvalidArguments);
        assert_eq!(error.message, "Invalid arguments for set_profile: name: is taken");
        for (rejection, code) in [
            (Rejection::RequestExpired, ErrorCode::RequestExpired),
            (Rejection::RequestReused, ErrorCode::Conflict),
            (Rejection::TooManyRequests { limit: 1 }, ErrorCode::RateLimited),
            (Rejection::NotHere { home: 2 }, ErrorCode::NotHere),
            (Rejection::NotFound { what: "x".into() }, ErrorCode::NotFound),
            (Rejection::Conflict { what: "x".into() }, ErrorCode::Conflict),
            (Rejection::Forbidden { what: "x".into() }, ErrorCode::Conflict),
            (Rejection::TooLate, ErrorCode::Conflict),
            (Rejection::VersionTooNew { needs: 2, has: 1 }, ErrorCode::Conflict),
            (Rejection::Impossible { what: "x".into() }, ErrorCode::Internal),
            (Rejection::Busy { what: "x".into() }, ErrorCode::Busy),
            (Rejection::Full { what: "x".into() }, ErrorCode::Full),
        ] {
            let error = write("t", ProposeError::Rejected(rejection));
            assert_eq!(error.code, code);
            assert_eq!(error.retry_after, (code == ErrorCode::Busy).then_some(60));
        }
    }

    #[test]
    fn the_two_unsure_ends_are_told_apart() {
        let retry_after = Duration::from_millis(1_500);
        let missing = "desk sleeps".to_owned();
        let error = write("t", ProposeError::NoQuorum { missing, retry_after });
        assert_eq!((error.code, error.retry_after), (ErrorCode::NoQuorum, Some(2)));
        assert!(
            error.message.contains("desk sleeps") && error.message.contains("nothing was done")
        );
        let error = write("t", ProposeError::Unknown { request: "n1.2.3".into(), missing: None });
        assert_eq!(error.code, ErrorCode::UnknownOutcome);
        assert_eq!(error.request_id.as_deref(), Some("n1.2.3"));
        let unknown = ProposeError::Unknown { request: "n1.2.3".into(), missing: None };
        let error = not_begun("t", Some("mine"), unknown);
        assert_eq!((error.code, error.request_id.as_deref()), (ErrorCode::NoQuorum, Some("mine")));
    }
}
