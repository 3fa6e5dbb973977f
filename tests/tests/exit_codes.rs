//! The exit codes that the documentation promises, each line of its table typed into a shell.
#![expect(clippy::unwrap_used, reason = "all of this file is a test")]

use std::io::Read as _;
use std::net::TcpListener;
use std::process::Command;

use nexus_tests::command::{self, Ended};
use nexus_tests::process::Node;

/// Where the table is.
const PAGE: &str = include_str!("../../ops/docs/troubleshooting.md");

/// One line of the table: what is typed, how it ends, and words of what it says then.
struct Row {
    line: String,
    code: i32,
    words: String,
}

fn rows() -> Vec<Row> {
    let is_row = |line: &&str| line.starts_with("| `nexus ");
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [typed, code, words] = cells.as_slice() else { panic!("{line}") };
        Row {
            line: typed.trim_matches('`').to_owned(),
            code: code.parse().unwrap(),
            words: words.trim_matches(|letter| letter == '"' || letter == ' ').to_owned(),
        }
    };
    PAGE.lines().filter(is_row).map(row).collect()
}

/// Types a line into a shell, as on the machine of a node.
async fn typed(node: &Node, line: &str) -> Ended {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("nexus() {{ \"$UNDER_TEST\" \"$@\"; }}; {line}"));
    command.env("UNDER_TEST", command::binary()).env("NEXUS_ROOT", node.data());
    for other in ["NEXUS_ENDPOINT", "NEXUS_TOKEN", "NEXUS_INSTANCE_ID", "NEXUS_LOG"] {
        command.env_remove(other);
    }
    command::run(command).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_line_of_the_table_ends_as_it_says() {
    let node = Node::found("typed").await;
    let rows = rows();
    for code in 0..=3 {
        assert!(rows.iter().any(|row| row.code == code), "the table has no line of code {code}");
    }
    assert!(rows.len() >= 20, "the table has {} lines", rows.len());
    for Row { line, code, words } in rows {
        let ended = typed(&node, &line).await;
        assert_eq!(ended.code(), code, "{line}: {ended}");
        assert!(ended.stderr.contains(&words), "{line}: {words:?} is not in: {ended}");
        assert!(!ended.stderr.contains("panicked"), "{line}: {ended}");
        assert_eq!(code == 0, !ended.stderr.contains("error: "), "{line}: {ended}");
    }
    let history = node.http().history().await.unwrap();
    assert_eq!(history.len(), 1, "a refused line changed something: {history:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_else_answers_is_no_node() {
    let node = Node::new("nowhere");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // It reads a little and hangs up: the rest that was sent makes that a reset. The thread ends
    // with the test.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut some = [0; 16];
            stream.unwrap().read_exact(&mut some).unwrap();
        }
    });
    for verb in [
        "status",
        "status --digest",
        "status --wait 1",
        "status --json",
        "peers",
        "invite list",
        "call list_events",
    ] {
        let line = format!("nexus {verb} --endpoint {address}");
        let ended = typed(&node, &line).await;
        assert_eq!(ended.code(), 3, "{line}: {ended}");
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!(said.contains("not reachable") && said.contains("--endpoint"), "{line}: {ended}");
        assert!(!said.contains("unknown_outcome"), "{line}: {ended}");
    }
}
