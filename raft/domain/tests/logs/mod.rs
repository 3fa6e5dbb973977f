//! Logs of families that came later, for the golden bytes: one file each, with files of its own
//! under `tests/golden/v1/`, so that no line of another family's changes.

pub(crate) mod projects;
