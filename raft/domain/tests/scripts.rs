//! Golden scripts: commands in, answers, events and state out; one situation a file.
//!
//! `UPDATE_GOLDENFILES=1 cargo nextest run -p nexus-domain --test scripts` writes what is seen; its
//! diff is read like code. Scripts lie in `tests/scripts/`, one folder for each family, and `order`
//! for the fixed order of checks. The language stands at [`script::Runner`].

#![expect(clippy::unwrap_used, reason = "a test stops where it fails, helpers included")]

mod script;

test_each_file::test_each_path! { in "./raft/domain/tests/scripts" => run }

fn run(path: &std::path::Path) {
    goldenscript::run(&mut script::Runner::default(), path).unwrap();
}
